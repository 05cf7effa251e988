//! Replays 20,000 events at fifty times their speed on the real control plane and prints how late they were.
//!
//! ```text
//! make control-plane
//! cargo run --release -p sk-driver --features control-plane --example lateness [EVENTS] [SPEED] [EVENTS_PER_RECORDED_SECOND]
//! ```
//!
//! The events are changes of ConfigMaps and Deployments without replicas, one per recorded second unless told, so that
//! the API server is what is measured and not the scheduler. A second run with ten times the rate shows what is said when
//! the API server does not keep up.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sk_api::simulation::Simulation;
use sk_core::{SimDuration, SimTime};
use sk_driver::cluster::{Destination, Options, Stop, Webhook, run};
use sk_replay::plan::Window;
use sk_store::trace;
use sk_testkit::control_plane::ControlPlane;

/// Objects that the events are spread over.
const OBJECTS: u32 = 500;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: f64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (events, speed, rate) = (number(20_000.0)? as u32, number(50.0)?, number(1.0)?);
    let options = sk_testkit::Options::default().stages(&sk_driver::stages_yaml()).service_account_admission();
    let cluster = ControlPlane::start(options).await?;
    for rate in [rate, rate * 10.0] {
        replay(&cluster, events, speed, rate).await?;
    }
    Ok(())
}

async fn replay(cluster: &ControlPlane, events: u32, speed: f64, rate: f64) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let trace = Arc::new(trace::from_bytes("lateness", story(events, rate).into_bytes())?);
    let (start, end) = trace.span().ok_or("an empty trace")?;
    let options = Options {
        repetition: 0,
        window: Window { start, end, includes_end: true },
        seed: 1,
        stop_on_refusal: false,
        listed: BTreeSet::new(),
        webhook: Webhook::Own { bind: ([127, 0, 0, 1], 0).into(), url: "https://127.0.0.1".into() },
        destination: Destination::Folder(folder.path().join("run")),
        in_cluster: false,
        allow_hooks: true,
        version: env!("CARGO_PKG_VERSION").into(),
        stop_within: Duration::from_secs(100),
    };
    let simulation: Simulation = serde_json::from_value(json!({
        "apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": "lateness"},
        "spec": {"driver": {"tracePath": "/none"}, "speed": speed},
    }))?;
    let outcome = run(cluster.client(), &simulation, trace, &options, Stop::default()).await?;
    let (totals, lateness) = (&outcome.totals, &outcome.totals.lateness);
    println!(
        "{events} events at {speed}x, {:.0} a second: {} operations, {} refused, {} retries; \
         late p50 {:.0} ms, p99 {:.0} ms, max {:.0} ms, {} of them more than a second",
        rate * speed,
        totals.operations,
        totals.refused,
        totals.retries,
        lateness.p50_ms,
        lateness.p99_ms,
        lateness.max_ms,
        lateness.late,
    );
    for warning in &sk_record::Run::open(&folder.path().join("run"))?.meta().warnings {
        println!("  said in the record: {} ({})", warning.message, warning.count);
    }
    Ok(())
}

/// A trace of changes at an even rate, as text.
fn story(events: u32, rate: f64) -> String {
    let start = SimTime::from_secs(1_767_603_600);
    let mut text = json!({"simkube": "trace", "version": 1, "config": {"trackedObjects": {}}}).to_string();
    for event in 0..events {
        let at = start + SimDuration::from_micros((f64::from(event) / rate * 1e6) as i64);
        let metadata = json!({"name": format!("o{}", event % OBJECTS), "namespace": format!("n{}", event % 7)});
        let object = if event % 2 == 0 {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"n": event.to_string()}})
        } else {
            let labels = json!({"app": "a"});
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
                "spec": {
                    "replicas": 0, "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels, "annotations": {"n": event.to_string()}},
                        "spec": {"containers": [{"name": "c", "image": "i"}]},
                    },
                },
            })
        };
        text += &format!("\n{}", json!({"at": at.to_rfc3339_micros(), "apply": object}));
    }
    text + "\n"
}
