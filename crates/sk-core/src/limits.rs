//! Limits of a simulation that validation, planning and the run must agree on.
//!
//! Anybody may have written a trace, and one number in it can ask for more memory than any machine has. Such a number
//! is refused where it is read, with the name of its object, and not when memory runs out.

use serde_json::Value;

use crate::SimDuration;

/// How many objects a simulated cluster holds: seven times what Kubernetes itself is made for (150,000 pods). A pod
/// with its status is about 1 KiB there, so a full store is about 1 GiB.
pub const MAX_OBJECTS: usize = 1 << 20;

/// The longest stretch of time that is replayed: 400 days, a year and a month, which is also the longest that
/// `trace generate` makes. An empty cluster whose autoscaler looks every 10 s takes 3.5 million steps for it.
pub const MAX_WINDOW: SimDuration = SimDuration::from_mins(400 * 24 * 60);

/// An object asks for more pods than a simulated cluster holds objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pointer}` asks for {count} pods, and a simulated cluster holds at most {MAX_OBJECTS} objects")]
pub struct TooManyPods {
    /// Where in the object.
    pub pointer: &'static str,
    /// How many.
    pub count: u64,
}

/// Whether an object of one of Kubernetes' own kinds asks for more pods than there can be objects. Pods of a Job count
/// even when they are done: they stay until the Job is deleted.
pub fn check_pods(object: &Value) -> Result<(), TooManyPods> {
    for pointer in pod_counts(object) {
        let count = object.pointer(pointer).and_then(Value::as_u64);
        if let Some(count) = count.filter(|count| *count > MAX_OBJECTS as u64) {
            return Err(TooManyPods { pointer, count });
        }
    }
    Ok(())
}

/// Where an object says how many pods it wants.
fn pod_counts(object: &Value) -> &'static [&'static str] {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    match (group, text("kind")) {
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet") | ("", "ReplicationController") => &["/spec/replicas"],
        ("batch", "Job") => &["/spec/parallelism", "/spec/completions"],
        ("batch", "CronJob") => &["/spec/jobTemplate/spec/parallelism", "/spec/jobTemplate/spec/completions"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_count_beyond_the_store_is_found_where_it_stands() {
        let deployment = |replicas: Value| {
            let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": replicas}});
            check_pods(&object)
        };
        assert_eq!(deployment(json!(1 << 20)), Ok(()));
        assert_eq!(deployment(json!("many")), Ok(()), "which is validation's to judge");
        let refused = deployment(json!(i32::MAX)).unwrap_err();
        let words = "`/spec/replicas` asks for 2147483647 pods, and a simulated cluster holds at most 1048576 objects";
        assert_eq!(refused.to_string(), words);
        let spec = json!({"parallelism": 1, "completions": 2_000_000});
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "spec": spec});
        assert_eq!(check_pods(&job).map_err(|refused| refused.pointer), Err("/spec/completions"));
        let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"jobTemplate": {"spec": spec}}});
        assert!(check_pods(&cron).is_err());
        let custom = json!({"apiVersion": "example.com/v1", "kind": "Deployment", "spec": {"replicas": i32::MAX}});
        assert_eq!(check_pods(&custom), Ok(()), "nobody makes pods of it");
    }
}
