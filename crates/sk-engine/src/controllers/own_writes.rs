//! A controller's own writes that its cache does not show yet (`consistency` in `pkg/controller/util`, on by default
//! in 1.36 for StatefulSets, DaemonSets, ReplicaSets and Jobs).
//!
//! A sync from a cache without the controller's own last writes would decide on outdated state. Kubernetes retries a
//! moment later; here no retry is needed, because the awaited change itself queues the key again.

use std::collections::BTreeMap;

use sk_apiserver::{Answer, ObjectId, View};

/// The newest version that was written for each key.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnWrites {
    newest: BTreeMap<ObjectId, u64>,
}

impl OwnWrites {
    /// A request for `key` was answered. Only writes to objects whose changes queue the key may be told.
    pub(crate) fn answered(&mut self, key: ObjectId, answer: &Answer) {
        if let Ok(object) = answer {
            let newest = self.newest.entry(key).or_default();
            *newest = object.resource_version.max(*newest);
        }
    }

    /// Has the reader seen all of them?
    pub(crate) fn are_seen(&mut self, key: ObjectId, view: View<'_>) -> bool {
        let seen = self.newest.get(&key).is_none_or(|newest| *newest <= view.cursor());
        if seen {
            self.newest.remove(&key);
        }
        seen
    }

    /// The object is gone.
    pub(crate) fn forget(&mut self, key: ObjectId) {
        self.newest.remove(&key);
    }
}
