//! How long a failed pod is left lying before it is replaced, so that controller and node do not fight at full speed
//! (`flowcontrol.Backoff` as the daemon set controller uses it, 1.36).

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
