//! Counts and names the pods that need a plugin which is not modelled and therefore passed through.

use std::collections::BTreeMap;

use sk_core::ObjectKey;
use sk_scheduler::class::PassedThrough;

/// So many are named; the others are counted.
const MAX_NAMED: usize = 5;

/// The pods that need one such thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodsPassed {
    /// How many there were.
    pub count: u64,
    /// The first of them.
    pub named: Vec<ObjectKey>,
}

/// By what they need.
#[derive(Clone, Debug, Default)]
pub(super) struct Passed(pub(super) BTreeMap<PassedThrough, PodsPassed>);

impl Passed {
    pub(super) fn count(&mut self, needs: &[PassedThrough], pod: &ObjectKey) {
        for need in needs {
            let pods = self.0.entry(*need).or_default();
            pods.count += 1;
            if pods.named.len() < MAX_NAMED {
                pods.named.push(pod.clone());
            }
        }
    }
}
