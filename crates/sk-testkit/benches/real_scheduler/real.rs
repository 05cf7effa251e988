//! The real scheduler's side: an API server of its own for each measurement, and the scheduler's log.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use http::Request;
use kube::Client;
use serde_json::{Value, json};
use sk_testkit::control_plane::ControlPlane;
use sk_testkit::options::{Component, Options};

/// Requests that are under way at a time while the cluster is made.
const AT_A_TIME: usize = 32;
/// How long the scheduler may take for all pods.
const LIMIT: Duration = Duration::from_secs(300);
/// The kernel counts processor time in hundredths of a second (`USER_HZ`, 100 on every architecture that we run on).
const TICKS_PER_SECOND: f64 = 100.0;

/// Pods per second.
pub(crate) struct Speed {
    pub(crate) by_clock: f64,
    pub(crate) by_processor: f64,
}

/// All pods are there when the scheduler starts.
pub(crate) async fn place_all(nodes: &[Value], pods: &[Value]) -> Result<Speed, Box<dyn Error>> {
    let configuration = json!({"clientConnection": {"qps": 5000, "burst": 5000}});
    let mut plane = start("--v=2").await?;
    create(&plane.client(), nodes).await?;
    create(&plane.client(), pods).await?;
    plane.configure_scheduler(&configuration)?;
    plane.restart(Component::Scheduler).await?;
    let log = plane.log(Component::Scheduler);
    let pause = Duration::from_millis(100);
    // What it costs to start and to read the cluster is not counted.
    wait_for(&log, "Successfully bound pod", 1, pause).await?;
    let processor_before = processor_seconds(&plane.logs_dir())?;
    let before = moments(&log, "Successfully bound pod")?.len();
    wait_for(&log, "Successfully bound pod", pods.len(), pause).await?;
    let processor = processor_seconds(&plane.logs_dir())? - processor_before;
    let bound = moments(&log, "Successfully bound pod")?;
    drop(plane);
    let micros = bound.last().zip(bound.first()).map_or(1, |(last, first)| (last.1 - first.1).max(1));
    Ok(Speed {
        by_clock: (bound.len() - 1) as f64 / (micros as f64 / 1e6),
        by_processor: (bound.len() - before) as f64 / processor.max(1.0 / TICKS_PER_SECOND),
    })
}

/// One pod at a time, under the default configuration: what each stretch of its way took, in microseconds.
pub(crate) async fn place_one_by_one(
    nodes: &[Value],
    pods: &[Value],
) -> Result<Vec<(&'static str, Vec<i64>)>, Box<dyn Error>> {
    let mut plane = start("--v=3").await?;
    plane.configure_scheduler(&json!({}))?;
    plane.restart(Component::Scheduler).await?;
    create(&plane.client(), nodes).await?;
    let log = plane.log(Component::Scheduler);
    // It has to know the nodes before it is asked for one.
    wait_for(&log, "Add event for node", nodes.len(), Duration::from_millis(100)).await?;
    let (mut sent, mut answered) = (Vec::new(), Vec::new());
    for (number, pod) in pods.iter().enumerate() {
        sent.push(now());
        create(&plane.client(), std::slice::from_ref(pod)).await?;
        answered.push(now());
        // Reading the log takes processor time, so it is read when the pod is most likely bound already.
        tokio::time::sleep(Duration::from_millis(100)).await;
        wait_for(&log, "Successfully bound pod", number + 1, Duration::from_millis(100)).await?;
    }
    let told = |message: &str| moments(&log, message);
    let (seen, tried) = (told("Add event for unscheduled pod")?, told("Attempting to schedule pod")?);
    let (decided, bound) = (told("Attempting to bind pod to node")?, told("Successfully bound pod")?);
    drop(plane);
    let between = |from: &[(String, i64)], to: &[(String, i64)]| -> Vec<i64> {
        let of = |pod: &str| to.iter().find(|(known, _)| known == pod).map(|(_, at)| *at);
        from.iter().filter_map(|(pod, at)| Some(of(pod)? - at)).collect()
    };
    let named =
        |moments: Vec<i64>| -> Vec<(String, i64)> { bound.iter().map(|(pod, _)| pod.clone()).zip(moments).collect() };
    let (sent, answered) = (named(sent), named(answered));
    Ok(vec![
        ("sent until the API server has answered", between(&sent, &answered)),
        ("sent until the scheduler sees it", between(&sent, &seen)),
        ("seen until it is tried", between(&seen, &tried)),
        ("tried until it is decided", between(&tried, &decided)),
        ("decided until it is bound", between(&decided, &bound)),
        ("sent until it is bound", between(&sent, &bound)),
    ])
}

async fn start(verbosity: &str) -> Result<ControlPlane, Box<dyn Error>> {
    let options = Options::api_only()
        .flag(Component::ApiServer, "--disable-admission-plugins=TaintNodesByCondition")
        .flag(Component::Scheduler, verbosity);
    Ok(ControlPlane::start(options).await?)
}

async fn create(client: &Client, objects: &[Value]) -> Result<(), Box<dyn Error>> {
    let requests = objects.iter().map(|object| {
        let path = if object["kind"] == "Node" { "/api/v1/nodes" } else { "/api/v1/namespaces/default/pods" };
        let request = Request::post(path).header("Content-Type", "application/json");
        let request = request.body(object.to_string().into_bytes());
        async move { client.request::<Value>(request.map_err(kube::Error::HttpError)?).await.map(drop) }
    });
    Ok(futures::stream::iter(requests).buffer_unordered(AT_A_TIME).try_collect().await?)
}

async fn wait_for(log: &Path, message: &str, count: usize, pause: Duration) -> Result<(), Box<dyn Error>> {
    let began = std::time::Instant::now();
    while moments(log, message)?.len() < count {
        if began.elapsed() > LIMIT {
            return Err(format!("waited {} s for `{message}`", LIMIT.as_secs()).into());
        }
        tokio::time::sleep(pause).await;
    }
    Ok(())
}

/// Which pod a message was about, and when, in microseconds of the day; in order of time.
fn moments(log: &Path, message: &str) -> Result<Vec<(String, i64)>, Box<dyn Error>> {
    let text = std::fs::read_to_string(log)?;
    let moment = |line: &str| {
        let clock: jiff::civil::Time = line.split_whitespace().nth(1)?.parse().ok()?;
        let at = clock.duration_since(jiff::civil::Time::midnight()).as_micros();
        let pod = line.split("pod=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        Some((pod.to_owned(), i64::try_from(at).ok()?))
    };
    let mut found: Vec<_> = text.lines().filter(|line| line.contains(message)).filter_map(moment).collect();
    found.sort_by_key(|(_, at)| *at);
    Ok(found)
}

/// As the log's clock has it.
fn now() -> i64 {
    let clock = jiff::Zoned::now().time();
    i64::try_from(clock.duration_since(jiff::civil::Time::midnight()).as_micros()).unwrap_or_default()
}

/// What the scheduler whose files are in this control plane's folder has used of the processor, user and system.
fn processor_seconds(logs: &Path) -> Result<f64, Box<dyn Error>> {
    let folder = logs.parent().unwrap_or(logs).to_string_lossy().into_owned();
    for process in std::fs::read_dir("/proc")?.flatten() {
        let command = std::fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        let program = command.split('\0').next().unwrap_or_default();
        if !program.ends_with("kube-scheduler") || !command.contains(&folder) {
            continue;
        }
        let stat = std::fs::read_to_string(process.path().join("stat"))?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
        return Ok((ticks(11) + ticks(12)) / TICKS_PER_SECOND);
    }
    Err("the scheduler's process is not there".into())
}
