//! How much memory a ledger takes per live object and pod. In a process of its own, because the memory of a process is
//! what Linux can tell.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(clippy::disallowed_methods, reason = "memory is asked of the operating system")]

use std::sync::Arc;

use serde_json::{Value, json};
use sk_api::tracer::Config;
use sk_core::{Gvk, SimTime};
use sk_ingest::{Ledger, PrivacyKey, Role, Rules};
use sk_testkit::objects::{deployment, pod};

const DEPLOYMENT: Gvk = Gvk::new_static("apps", "v1", "Deployment");
const POD: Gvk = Gvk::new_static("", "v1", "Pod");

/// So many that what a process takes anyway does not show.
const COUNT: usize = 8_000;

/// Anonymous memory of this process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1_024
}

/// Stand for the numbers of an object and of its owner, which has ten, and are as long.
const NUMBER: &str = "NNNNN";
const OWNER: &str = "OOOOO";

/// A Deployment of 2.4 KB, as a server sends it, with placeholders.
fn deployment_text() -> String {
    let mut object = deployment().name("service-NNNNN").uid("000NNNNN-0001-4222-8333-444455556666").into_value();
    let url = |index: usize| format!("https://backend-{index}.team-NNNNN.example.internal:8443/api");
    let env = |index: usize| json!({"name": format!("BACKEND_{index}_URL"), "value": url(index)});
    object["spec"]["template"]["spec"]["containers"][0]["env"] = (0..22).map(env).collect();
    object.to_string()
}

/// A running pod of that Deployment, with placeholders.
fn pod_text() -> String {
    let owner: Value = serde_json::from_str(&deployment_text().replace(NUMBER, OWNER)).unwrap();
    let mut object =
        pod().name("service-OOOOO-6b7f9c8d5-NNNNN").uid("000NNNNN-0002-4222-8333-444455556666").into_value();
    let template = &owner["spec"]["template"];
    object["metadata"]["labels"] = template["metadata"]["labels"].clone();
    object["metadata"]["creationTimestamp"] = json!("2026-11-01T08:00:00Z");
    object["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "controller": true,
        "name": "service-OOOOO", "uid": "000OOOOO-0001-4222-8333-444455556666"}]);
    object["spec"] = template["spec"].clone();
    object["spec"]["nodeName"] = json!("node-17.example.internal");
    object["status"] = json!({"phase": "Running",
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-01T08:00:01Z"}],
        "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": "2026-11-01T08:00:02Z"}}}]});
    object.to_string()
}

/// What each of [`COUNT`] more things takes.
fn each(ledger: &mut Ledger, rules: &Rules, kind: &Gvk, role: Role, text: &str) -> usize {
    let before = resident();
    let mut facts = Vec::new();
    for number in 0..COUNT {
        let json = text.replace(NUMBER, &format!("{number:05}")).replace(OWNER, &format!("{:05}", number / 10));
        let sighting = rules.sieve(kind, role, json.as_bytes()).unwrap().unwrap();
        ledger.applied(SimTime::from_secs(1_800_000_000), sighting, &mut facts);
        facts.clear();
    }
    resident().saturating_sub(before) / COUNT
}

#[test]
fn an_object_takes_little_more_than_its_json_and_a_pod_less_than_a_kilobyte() {
    let config = Config::parse("test", "{trackedObjects: {apps/v1.Deployment: {trackLifecycle: true}}}").unwrap();
    let rules = Arc::new(Rules::new(&config, PrivacyKey::new([7; 16])));
    let mut ledger = Ledger::new(rules.clone(), [POD]);
    let size = deployment_text().len();
    assert!((2_200..2_600).contains(&size), "{size}");
    let object = each(&mut ledger, &rules, &DEPLOYMENT, Role::Tracked, &deployment_text());
    let pod = each(&mut ledger, &rules, &POD, Role::Pod, &pod_text());
    let stats = ledger.stats();
    assert_eq!((stats.objects, stats.pods, stats.waiting_pods), (COUNT, COUNT, 0));
    println!("a Deployment of {size} bytes takes {object} bytes, a pod {pod}");
    assert!(object < 3 * 1_024, "{object} bytes per object of {size}");
    assert!(pod < 1_024, "{pod} bytes per pod");
}
