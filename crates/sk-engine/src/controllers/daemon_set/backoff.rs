//! How long a failed daemon pod stays before it is replaced, so that controller and kubelet do not fight at full speed
//! (`flowcontrol.Backoff` as the DaemonSet controller uses it, 1.36).

use std::collections::BTreeMap;

use sk_apiserver::ObjectId;
use sk_core::{SimDuration, SimTime, SmolStr};

const FIRST: SimDuration = SimDuration::from_secs(1);
const LONGEST: SimDuration = SimDuration::from_mins(15);
/// After this long without a failure the next one waits briefly again.
const FORGIVEN_AFTER: SimDuration = SimDuration::from_mins(30);

/// The waits of each set on each node.
#[derive(Clone, Debug, Default)]
pub(super) struct Backoff {
    entries: BTreeMap<(ObjectId, SmolStr), (SimDuration, SimTime)>,
}

impl Backoff {
    /// Is a failed pod on that node to be left for now, and when is somebody to look again? If not, the next one waits
    /// longer.
    pub(super) fn wait(&mut self, set: ObjectId, node: &SmolStr, now: SimTime) -> Option<SimDuration> {
        let known = self.entries.get(&(set, node.clone())).copied();
        let known = known.filter(|(_, since)| now.since(*since) <= FORGIVEN_AFTER);
        if let Some((delay, _)) = known.filter(|(delay, since)| now.since(*since) < *delay) {
            return Some(delay);
        }
        let delay = known.map_or(FIRST, |(delay, _)| (delay * 2).min(LONGEST));
        self.entries.insert((set, node.clone()), (delay, now));
        None
    }

    /// The set is gone.
    pub(super) fn forget(&mut self, set: ObjectId) {
        self.entries.retain(|(known, _), _| *known != set);
    }
}

#[cfg(test)]
mod tests {
    use sk_apiserver::{Object, ObjectId, Request};

    use super::*;

    /// An id, as a store gives it.
    fn some_set() -> ObjectId {
        let node = serde_json::json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
        let mut server = sk_apiserver::ApiServer::new(1);
        let node = Object::from_json(node).expect("a node");
        server.handle(SimTime::EPOCH, Request::create(node)).expect("an empty server takes it");
        server.store().now().everything().next().expect("it is there").0
    }

    #[test]
    fn each_failure_on_a_node_waits_twice_as_long_until_a_quiet_half_hour() {
        let (mut backoff, set, node) = (Backoff::default(), some_set(), SmolStr::new_static("n"));
        let mut wait = |secs| backoff.wait(set, &node, SimTime::from_secs(secs)).map(SimDuration::as_secs_f64);
        assert_eq!(wait(0), None, "the first is replaced at once");
        assert_eq!((wait(0), wait(1)), (Some(1.0), None));
        assert_eq!((wait(2), wait(3)), (Some(2.0), None));
        assert_eq!((wait(6), wait(7)), (Some(4.0), None));
        assert_eq!((wait(7 + 30 * 60 + 1), wait(7 + 30 * 60 + 1)), (None, Some(1.0)), "forgiven");
    }
}
