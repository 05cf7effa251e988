//! Pods that arrive before their owners, because events of several watches arrive in any order. They are recorded
//! immediately with what is known, and attributed again when an owner arrives.
//!
//! A pod waits as long as it exists, because its owner can arrive at any time: after an outage of one watch, or after a
//! restart. Its normalised spec, which is compared with templates, is kept for a limited time and within a bound; pods
//! of one template share it, so the first list of a whole cluster fits. If it was dropped, the pod is attributed to its
//! owner without a template and is *ripe*: the next read of the pod supplies the template.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use bytes::Bytes;
use sk_core::{ObjectKey, SimDuration, SimTime};
use xxhash_rust::xxh3::xxh3_128;

use crate::uid::Uid;

/// How many bytes of forms are held: of an ordinary 4 KB there is room for 8,192, and so for the pods of as many
/// ReplicaSets. A pod that waits takes about 300 bytes more; those are as many as live.
const MAX_BYTES: usize = 32 << 20;

/// How long a form is held. A watch that lags by more than this has been relisted.
const PATIENCE: SimDuration = SimDuration::from_mins(2);

/// A pod that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiter {
    pub(super) key: ObjectKey,
    /// For whom it waits.
    pub(super) owners: Vec<Uid>,
    pub(super) form: Form,
}

/// What is held of a pod that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// What templates are compared with, as JSON.
    Held(Bytes),
    /// Nothing, and nothing helps before an owner arrives.
    Dropped,
    /// Nothing, but reading the pod again would tell more.
    Ripe,
}

#[derive(Debug)]
struct Entry {
    key: ObjectKey,
    owners: Vec<Uid>,
    form: Kept,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Held { hash: u128, since: SimTime },
    Dropped,
    Ripe,
}

/// The pods that wait, by their uid.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pods: BTreeMap<Uid, Entry>,
    by_owner: BTreeMap<Uid, BTreeSet<Uid>>,
    /// Held forms by their hash, with how many pods have each.
    forms: BTreeMap<u128, (Bytes, usize)>,
    bytes: usize,
    /// Those with a form, in the order in which they came; places that are no longer held are passed over.
    order: VecDeque<(SimTime, Uid)>,
    held: usize,
    ripe: BTreeSet<Uid>,
    /// The last of the ripe ones that was shown.
    shown: Option<Uid>,
    given_up: u64,
}

impl Waiting {
    /// How many wait whose form is held.
    pub(super) fn patient(&self) -> usize {
        self.held
    }

    /// How many wait whose form is not held.
    pub(super) fn formless(&self) -> usize {
        self.pods.len() - self.held
    }

    /// How many of these should be read again.
    pub(super) fn ripe(&self) -> usize {
        self.ripe.len()
    }

    /// The next of these, by turns: after the last one it is nobody's turn, and then the first one's again.
    pub(super) fn next_ripe(&mut self, limit: usize) -> Vec<ObjectKey> {
        let after = self.shown.take().map_or(Bound::Unbounded, Bound::Excluded);
        let next: Vec<_> = self.ripe.range((after, Bound::Unbounded)).take(limit).collect();
        self.shown = next.last().map(|uid| (*uid).clone());
        next.into_iter().filter_map(|uid| self.pods.get(uid)).map(|entry| entry.key.clone()).collect()
    }

    /// Should this pod be read again?
    pub(super) fn is_ripe(&self, uid: &Uid) -> bool {
        self.pods.get(uid).is_some_and(|entry| entry.form == Kept::Ripe)
    }

    /// How often a form was dropped before the owner came.
    pub(super) fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Lets a pod wait from now on. Says whose forms had to be dropped for it.
    pub(super) fn add(&mut self, now: SimTime, uid: &Uid, waiter: Waiter) -> Vec<(Uid, ObjectKey)> {
        self.remove(uid);
        let form = match waiter.form {
            Form::Held(form) => self.hold(now, uid, form),
            Form::Dropped => Kept::Dropped,
            Form::Ripe => Kept::Ripe,
        };
        if form == Kept::Ripe {
            self.ripe.insert(uid.clone());
        }
        for owner in &waiter.owners {
            self.by_owner.entry(owner.clone()).or_default().insert(uid.clone());
        }
        self.pods.insert(uid.clone(), Entry { key: waiter.key, owners: waiter.owners, form });
        let mut crowded_out = Vec::new();
        while self.bytes > MAX_BYTES {
            let Some((since, oldest)) = self.order.pop_front() else { break };
            crowded_out.extend(self.drop_form(&oldest, since));
        }
        crowded_out
    }

    fn hold(&mut self, now: SimTime, uid: &Uid, form: Bytes) -> Kept {
        let hash = xxh3_128(&form);
        let (form, users) = self.forms.entry(hash).or_insert((form, 0));
        *users += 1;
        if *users == 1 {
            self.bytes += form.len();
        }
        self.held += 1;
        self.order.push_back((now, uid.clone()));
        Kept::Held { hash, since: now }
    }

    /// Drops the forms that were held for too long, and says whose.
    pub(super) fn expire(&mut self, now: SimTime) -> Vec<(Uid, ObjectKey)> {
        let mut expired = Vec::new();
        while let Some((since, _)) = self.order.front()
            && now.since(*since) > PATIENCE
        {
            let Some((since, uid)) = self.order.pop_front() else { break };
            expired.extend(self.drop_form(&uid, since));
        }
        expired
    }

    /// Drops the form that a pod holds since then; one that has waited anew stands further back.
    fn drop_form(&mut self, uid: &Uid, held_since: SimTime) -> Option<(Uid, ObjectKey)> {
        let entry = self.pods.get_mut(uid)?;
        let Kept::Held { hash, since } = entry.form else { return None };
        if since != held_since {
            return None;
        }
        entry.form = Kept::Dropped;
        let key = entry.key.clone();
        self.let_go(hash);
        self.given_up += 1;
        Some((uid.clone(), key))
    }

    /// One pod less has this form.
    fn let_go(&mut self, hash: u128) -> Option<Bytes> {
        self.held -= 1;
        let (form, users) = self.forms.get_mut(&hash)?;
        let form = form.clone();
        *users -= 1;
        if *users == 0 {
            self.bytes -= form.len();
            self.forms.remove(&hash);
        }
        Some(form)
    }

    /// The pods that waited for this owner; they no longer do.
    pub(super) fn take(&mut self, owner: &Uid) -> Vec<(Uid, Waiter)> {
        let pods = self.by_owner.remove(owner).unwrap_or_default();
        pods.into_iter().filter_map(|uid| self.remove(&uid).map(|waiter| (uid, waiter))).collect()
    }

    /// The pod no longer waits.
    pub(super) fn remove(&mut self, uid: &Uid) -> Option<Waiter> {
        let Entry { key, owners, form } = self.pods.remove(uid)?;
        for owner in &owners {
            if let Some(pods) = self.by_owner.get_mut(owner) {
                pods.remove(uid);
                if pods.is_empty() {
                    self.by_owner.remove(owner);
                }
            }
        }
        let form = match form {
            Kept::Held { hash, .. } => self.let_go(hash).map_or(Form::Dropped, Form::Held),
            Kept::Dropped => Form::Dropped,
            Kept::Ripe => Form::Ripe,
        };
        self.ripe.remove(uid);
        // Places in the order that nobody holds any more are not allowed to pile up.
        if self.order.len() > 2 * self.held + 1_024 {
            let holds = |uid: &Uid| self.pods.get(uid).is_some_and(|entry| matches!(entry.form, Kept::Held { .. }));
            self.order.retain(|(_, uid)| holds(uid));
        }
        Some(Waiter { key, owners, form })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(form: Form) -> Waiter {
        Waiter { key: ObjectKey::namespaced("default", "pod"), owners: vec![Uid::new("owner")], form }
    }

    fn held(bytes: usize, content: usize) -> Waiter {
        let mut form = content.to_string().into_bytes();
        form.resize(bytes, b' ');
        waiter(Form::Held(form.into()))
    }

    fn at(second: i64) -> SimTime {
        SimTime::from_secs(second)
    }

    #[test]
    fn a_form_is_not_held_for_ever_but_the_pod_waits_on() {
        let mut waiting = Waiting::default();
        let (a, b) = (Uid::new("a"), Uid::new("b"));
        waiting.add(at(0), &a, held(9, 1));
        waiting.add(at(60), &b, held(9, 2));
        assert_eq!(waiting.expire(at(120)).len(), 0);
        assert_eq!(waiting.expire(at(121)), [(a, ObjectKey::namespaced("default", "pod"))]);
        assert_eq!((waiting.patient(), waiting.formless(), waiting.given_up()), (1, 1, 1));
        let forms: Vec<_> = waiting.take(&Uid::new("owner")).into_iter().map(|(_, waiter)| waiter.form).collect();
        assert!(matches!(forms.as_slice(), [Form::Dropped, Form::Held(_)]), "{forms:?}");
        assert_eq!((waiting.pods.len(), waiting.bytes, waiting.by_owner.len(), waiting.forms.len()), (0, 0, 0, 0));
    }

    #[test]
    fn there_is_room_for_so_many_bytes_and_equal_forms_take_theirs_once() {
        let mut waiting = Waiting::default();
        for number in 0..10 {
            assert!(waiting.add(at(0), &Uid::new(&number.to_string()), held(MAX_BYTES / 2, 0)).is_empty());
        }
        assert_eq!((waiting.patient(), waiting.bytes), (10, MAX_BYTES / 2));
        let crowded_out = waiting.add(at(0), &Uid::new("large"), held(MAX_BYTES, 1));
        assert_eq!((crowded_out.len(), waiting.patient(), waiting.formless()), (10, 1, 10));
        assert_eq!(waiting.bytes, MAX_BYTES);
    }

    #[test]
    fn a_pod_that_a_look_would_help_is_counted_until_it_no_longer_waits() {
        let mut waiting = Waiting::default();
        let uid = Uid::new("a");
        waiting.add(at(0), &uid, waiter(Form::Ripe));
        assert!(waiting.is_ripe(&uid) && waiting.ripe() == 1);
        waiting.add(at(1), &uid, waiter(Form::Dropped));
        assert!(!waiting.is_ripe(&uid) && waiting.ripe() == 0);
        waiting.add(at(2), &uid, waiter(Form::Ripe));
        waiting.remove(&uid);
        assert_eq!((waiting.ripe(), waiting.formless()), (0, 0));
    }

    #[test]
    fn pods_that_a_look_would_help_have_it_by_turns() {
        let mut waiting = Waiting::default();
        for name in ["a", "b", "c"] {
            let key = ObjectKey::namespaced("default", name);
            waiting.add(at(0), &Uid::new(name), Waiter { key, ..waiter(Form::Ripe) });
        }
        let mut names =
            |limit| waiting.next_ripe(limit).iter().map(|key| key.name.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!([names(2), names(2), names(2), names(9), names(1)], ["a b", "c", "", "a b c", ""]);
    }

    #[test]
    fn places_of_pods_that_no_longer_wait_do_not_pile_up() {
        let mut waiting = Waiting::default();
        for number in 0..100_000 {
            waiting.add(at(0), &Uid::new("a"), held(9, number));
        }
        assert!(waiting.order.len() < 2_048, "{}", waiting.order.len());
    }
}
