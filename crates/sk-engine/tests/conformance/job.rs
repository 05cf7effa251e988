//! A Job tells the same story as on the real control plane: every status it had, in order, and every step of its pods.

use serde_json::{Value, json};
use sk_engine::api::Object;
use sk_engine::kinds::{JOB, POD};

use crate::arm::Arm;
use crate::load;

/// A status without what differs from run to run: times become a word, uids of pods a number.
fn scrubbed(mut status: Value) -> Value {
    for name in ["startTime", "completionTime"] {
        if let Some(time) = status.get_mut(name) {
            *time = json!("<time>");
        }
    }
    for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        condition["lastProbeTime"] = json!("<time>");
        condition["lastTransitionTime"] = json!("<time>");
    }
    if let Some(uncounted) = status.pointer_mut("/uncountedTerminatedPods/succeeded") {
        *uncounted = json!(uncounted.as_array().map_or(0, Vec::len));
    }
    status
}

/// The distinct values of a row, each once where it stands several times in a row.
fn distinct<T: PartialEq>(row: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut row: Vec<T> = row.into_iter().collect();
    row.dedup();
    row
}

/// Where a pod was in its life, whether it had a node, and who still had to count it.
fn step(pod: &Value) -> Value {
    let exit_code = pod.pointer("/status/containerStatuses/0/state/terminated/exitCode");
    let reason = pod.pointer("/status/containerStatuses/0/state/terminated/reason");
    json!([pod["status"]["phase"], pod["spec"]["nodeName"], pod["metadata"]["finalizers"], exit_code, reason])
}

#[test]
fn a_job_of_three_pods_tells_the_same_story() {
    let (scenario, fixture) = load("job");
    let arm = Arm::play(&scenario);
    let of =
        |wanted: fn(&Object) -> bool| arm.changes().map(|event| &event.object).filter(move |object| wanted(object));

    let recorded = fixture.object("default/Job/sum").expect("the fixture has the Job");
    let statuses = distinct(recorded.states.iter().map(|state| scrubbed(state["status"].clone())));
    let played = distinct(of(|object| object.gvk == JOB).map(|job| scrubbed(job.to_json()["status"].clone())));
    assert_eq!(played, statuses);

    let added = arm.changes().filter(|event| event.before.is_none() && event.object.gvk == POD);
    let names: Vec<_> = added.map(|event| event.object.key.name.clone()).collect();
    for number in 1..=3 {
        let recorded = fixture.object(&format!("default/Job/sum/Pod#{number}")).expect("the fixture has three pods");
        let name = &names[number - 1];
        let steps = of(|object| object.gvk == POD).filter(|pod| pod.key.name == *name);
        let played = distinct(steps.map(|pod| step(&pod.to_json())));
        assert_eq!(played, distinct(recorded.states.iter().map(step)), "pod {number}");
    }
}

#[test]
fn a_new_job_is_filled_in_as_the_real_server_fills_it_in() {
    let (scenario, fixture) = load("job");
    let arm = Arm::play(&scenario);
    let job = arm.changes().find(|event| event.object.gvk == JOB).expect("the Job was made").object.to_json();
    let recorded = &fixture.object("default/Job/sum").expect("the fixture has the Job").states[0];
    let uid = job["metadata"]["uid"].as_str().expect("a Job has a uid");
    let named: Value =
        serde_json::from_str(&job.to_string().replace(uid, "<uid of default/Job/sum>")).expect("still JSON");
    assert_eq!(named["metadata"]["labels"], recorded["metadata"]["labels"]);
    for field in [
        "backoffLimit",
        "completionMode",
        "manualSelector",
        "parallelism",
        "podReplacementPolicy",
        "selector",
        "suspend",
    ] {
        assert_eq!(named["spec"][field], recorded["spec"][field], "{field}");
    }
    assert_eq!(named["spec"]["template"]["metadata"], recorded["spec"]["template"]["metadata"]);
}
