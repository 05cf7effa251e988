//! Pods that came before their owners: messages of several watches come in any order. They are recorded at once with
//! what is known, and attributed again when an owner comes; after a while they are given up.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use sk_core::{ObjectKey, SimDuration, SimTime};

use crate::uid::Uid;

/// How many pods may wait.
const MAX_PODS: usize = 4_096;

/// How many bytes of pods may wait: room for [`MAX_PODS`] of an ordinary 8 KB.
const MAX_BYTES: usize = 32 << 20;

/// How long a pod waits. A watch that lags by more than this has been relisted.
const PATIENCE: SimDuration = SimDuration::from_mins(2);

/// A pod that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiter {
    pub(super) key: ObjectKey,
    /// The pod as it came.
    pub(super) raw: Bytes,
    pub(super) since: SimTime,
    /// For whom it waits.
    pub(super) owners: Vec<Uid>,
}

/// The pods that wait, by their uid.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pods: BTreeMap<Uid, Waiter>,
    by_owner: BTreeMap<Uid, Vec<Uid>>,
    /// In the order in which they came; those that no longer wait are passed over.
    order: VecDeque<(SimTime, Uid)>,
    bytes: usize,
    given_up: u64,
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.pods.len()
    }

    pub(super) fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Lets a pod wait. Those that must make room for it are given up.
    pub(super) fn add(&mut self, uid: &Uid, waiter: Waiter) -> Vec<Waiter> {
        self.remove(uid);
        self.bytes += waiter.raw.len();
        self.order.push_back((waiter.since, uid.clone()));
        waiter.owners.iter().for_each(|owner| self.by_owner.entry(owner.clone()).or_default().push(uid.clone()));
        self.pods.insert(uid.clone(), waiter);
        let mut crowded_out = Vec::new();
        while self.pods.len() > MAX_PODS || self.bytes > MAX_BYTES {
            let Some((_, oldest)) = self.order.pop_front() else { break };
            crowded_out.extend(self.give_up(&oldest));
        }
        crowded_out
    }

    /// Those that have waited for too long.
    pub(super) fn expire(&mut self, now: SimTime) -> Vec<Waiter> {
        let mut expired = Vec::new();
        while let Some((since, _)) = self.order.front()
            && now.since(*since) > PATIENCE
        {
            let Some((since, uid)) = self.order.pop_front() else { break };
            // One that has waited anew since then stands further back.
            if self.pods.get(&uid).is_some_and(|waiter| waiter.since == since) {
                expired.extend(self.give_up(&uid));
            }
        }
        expired
    }

    fn give_up(&mut self, uid: &Uid) -> Option<Waiter> {
        let waiter = self.remove(uid)?;
        self.given_up += 1;
        Some(waiter)
    }

    /// The pods that waited for this owner; they no longer do.
    pub(super) fn take(&mut self, owner: &Uid) -> Vec<(Uid, Waiter)> {
        let pods = self.by_owner.remove(owner).unwrap_or_default();
        pods.into_iter().filter_map(|uid| self.remove(&uid).map(|waiter| (uid, waiter))).collect()
    }

    /// The pod no longer waits.
    pub(super) fn remove(&mut self, uid: &Uid) -> Option<Waiter> {
        let waiter = self.pods.remove(uid)?;
        self.bytes -= waiter.raw.len();
        for owner in &waiter.owners {
            if let Some(pods) = self.by_owner.get_mut(owner) {
                pods.retain(|pod| pod != uid);
                if pods.is_empty() {
                    self.by_owner.remove(owner);
                }
            }
        }
        // Places in the order that nobody holds any more are not allowed to pile up.
        if self.order.len() > 2 * MAX_PODS {
            self.order.retain(|(_, uid)| self.pods.contains_key(uid));
        }
        Some(waiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(second: i64, bytes: usize) -> Waiter {
        Waiter {
            key: ObjectKey::namespaced("default", "pod"),
            raw: vec![b' '; bytes].into(),
            since: SimTime::from_secs(second),
            owners: vec![Uid::new("owner")],
        }
    }

    #[test]
    fn pods_wait_for_their_owner_and_not_for_ever() {
        let mut waiting = Waiting::default();
        let (a, b) = (Uid::new("a"), Uid::new("b"));
        waiting.add(&a, waiter(0, 1));
        waiting.add(&b, waiter(60, 1));
        assert_eq!(waiting.expire(SimTime::from_secs(120)).len(), 0);
        assert_eq!(waiting.expire(SimTime::from_secs(121)).len(), 1);
        assert_eq!(waiting.take(&Uid::new("owner")).len(), 1);
        assert_eq!((waiting.len(), waiting.bytes, waiting.by_owner.len(), waiting.given_up()), (0, 0, 0, 1));
    }

    #[test]
    fn there_is_room_for_so_many_pods_and_bytes() {
        let mut waiting = Waiting::default();
        for number in 0..=MAX_PODS {
            waiting.add(&Uid::new(&number.to_string()), waiter(0, 1));
        }
        assert_eq!((waiting.len(), waiting.given_up()), (MAX_PODS, 1));
        let crowded_out = waiting.add(&Uid::new("large"), waiter(0, MAX_BYTES));
        assert_eq!((crowded_out.len(), waiting.len(), waiting.bytes), (MAX_PODS, 1, MAX_BYTES));
    }
}
