//! The pods of one StatefulSet between syncs, counted as they change: which numbers they have, how many are ready,
//! available and of which revision, and which of them the next sync has to look at.
//!
//! Kubernetes lists them all in every sync. In debug builds every sync is decided a second time from a fresh list, and the two
//! plans must be the same (`mod.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sk_apiserver::kinds::{PodPhase, StatefulSetSpec};
use sk_apiserver::{Object, ObjectId, View};
use sk_core::limits::MAX_OBJECTS;
use sk_core::{SimTime, SmolStr};

use super::checked::Checked;
use super::identity::{ordinal_in, revision_of};
use crate::controllers::availability::Availability;
use crate::controllers::pods::ready_since;

/// The pods of one set.
#[derive(Clone, Debug)]
pub(super) struct Pods {
    start: i32,
    /// Those that are not being deleted, by number, and those that are.
    staying: BTreeMap<i32, ObjectId>,
    going: BTreeMap<i32, ObjectId>,
    /// Pods whose number another one has too (`web-0` and `web-00`). The youngest of them counts.
    doubles: BTreeSet<(i32, ObjectId)>,
    pub(super) ready: i32,
    pub(super) available: Availability,
    revisions: BTreeMap<SmolStr, OfRevision>,
    /// Which places were found with the pod that they need.
    pub(super) kept: Checked,
    /// Which were found with an available pod of the newest revision.
    pub(super) rolled: Checked,
}

/// The pods of one revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OfRevision {
    all: i32,
    staying: i32,
}

/// How many pods a set wants.
pub(super) fn wanted(spec: &StatefulSetSpec) -> usize {
    usize::try_from(spec.replicas).unwrap_or(0).min(MAX_OBJECTS)
}

impl Pods {
    /// The pods that a view shows. Nothing is known of what is in order.
    pub(super) fn of(set: &Object, spec: &StatefulSetSpec, view: View<'_>) -> Self {
        let mut pods = Self {
            start: spec.start_ordinal(),
            staying: BTreeMap::new(),
            going: BTreeMap::new(),
            doubles: BTreeSet::new(),
            ready: 0,
            available: Availability::new(spec.min_ready_seconds),
            revisions: BTreeMap::new(),
            kept: Checked::from(0),
            rolled: Checked::from(wanted(spec)),
        };
        let mine = |pod: &Object| pod.pod().is_some() && pod.controller().is_some_and(|owner| owner.uid == set.uid);
        for (id, pod) in view.owned_by(set.uid).filter(|(_, pod)| mine(pod)) {
            pods.changed(set, id, None, Some(pod), view);
        }
        pods
    }

    pub(super) fn total(&self) -> i32 {
        i32::try_from(self.staying.len() + self.going.len()).unwrap_or(i32::MAX)
    }

    /// The pod with a number.
    pub(super) fn get(&self, ordinal: i32) -> Option<ObjectId> {
        self.staying.get(&ordinal).or_else(|| self.going.get(&ordinal)).copied()
    }

    /// How many pods of a revision are not being deleted.
    pub(super) fn staying_of(&self, revision: &str) -> i32 {
        self.revisions.get(revision).map_or(0, |of| of.staying)
    }

    /// Has any pod this revision?
    pub(super) fn have_revision(&self, revision: &str) -> bool {
        self.revisions.contains_key(revision)
    }

    /// The pods beyond the wanted ones that are not being deleted, the highest number first.
    pub(super) fn condemned(&self, wanted: usize) -> impl Iterator<Item = (i32, ObjectId)> {
        self.beyond(&self.staying, wanted)
    }

    /// The same with those that are.
    pub(super) fn all_condemned(&self, wanted: usize) -> Vec<(i32, ObjectId)> {
        let mut all: Vec<_> = self.condemned(wanted).chain(self.beyond(&self.going, wanted)).collect();
        all.sort_unstable_by_key(|(ordinal, _)| std::cmp::Reverse(*ordinal));
        all
    }

    /// The one of them with the highest number.
    pub(super) fn last_condemned(&self, wanted: usize) -> Option<ObjectId> {
        let (staying, going) = (self.condemned(wanted).next(), self.beyond(&self.going, wanted).next());
        staying.into_iter().chain(going).max_by_key(|(ordinal, _)| *ordinal).map(|(_, id)| id)
    }

    fn beyond<'a>(
        &self,
        pods: &'a BTreeMap<i32, ObjectId>,
        wanted: usize,
    ) -> impl Iterator<Item = (i32, ObjectId)> + use<'a> {
        let end = i32::try_from(wanted).unwrap_or(i32::MAX).saturating_add(self.start);
        let (above, below) = (pods.range(end..), pods.range(..self.start));
        above.rev().chain(below.rev()).map(|(ordinal, id)| (*ordinal, *id))
    }

    /// A claim of the pod with this number has changed.
    pub(super) fn claim_changed(&mut self, ordinal: i32) {
        if let Some(place) = self.place(ordinal) {
            self.kept.changed(place);
        }
    }

    fn place(&self, ordinal: i32) -> Option<usize> {
        ordinal.checked_sub(self.start).and_then(|place| usize::try_from(place).ok())
    }

    /// A pod came, changed or went; `None`: it was not the set's, or is not any more.
    pub(super) fn changed(
        &mut self,
        set: &Object,
        id: ObjectId,
        before: Option<&Arc<Object>>,
        after: Option<&Arc<Object>>,
        view: View<'_>,
    ) {
        let Some(ordinal) = before.or(after).and_then(|pod| ordinal_in(set, pod)) else { return };
        if let Some(place) = self.place(ordinal) {
            self.kept.changed(place);
            self.rolled.changed(place);
        }
        let youngest = self.get(ordinal);
        if youngest.is_some_and(|youngest| youngest > id) {
            match after {
                Some(_) => self.doubles.insert((ordinal, id)),
                None => self.doubles.remove(&(ordinal, id)),
            };
            return;
        }
        // It takes the place of an older one, or gives it back.
        let others = |id: &ObjectId| view.get(*id);
        if let Some(older) = youngest.filter(|older| *older != id) {
            self.count(ordinal, older, others(&older), None);
            self.doubles.insert((ordinal, older));
        }
        self.count(ordinal, id, before, after);
        let next = self.doubles.iter().filter(|(number, _)| *number == ordinal).map(|(_, id)| *id).max();
        if let Some(next) = next.filter(|_| after.is_none()) {
            self.doubles.remove(&(ordinal, next));
            self.count(ordinal, next, None, others(&next));
        }
    }

    fn count(&mut self, ordinal: i32, id: ObjectId, before: Option<&Arc<Object>>, after: Option<&Arc<Object>>) {
        let since = |pod: Option<&Arc<Object>>| pod.and_then(|pod| ready(pod));
        self.ready += i32::from(since(after).is_some()) - i32::from(since(before).is_some());
        self.available.change(id, since(before), since(after));
        if let Some(pod) = before {
            self.of_revision(pod, -1);
            if pod.is_deleting() { &mut self.going } else { &mut self.staying }.remove(&ordinal);
        }
        if let Some(pod) = after {
            self.of_revision(pod, 1);
            if pod.is_deleting() { &mut self.going } else { &mut self.staying }.insert(ordinal, id);
        }
    }

    fn of_revision(&mut self, pod: &Object, times: i32) {
        let revision = revision_of(pod);
        let mut of = self.revisions.get(revision).copied().unwrap_or_default();
        of.all += times;
        of.staying += times * i32::from(!pod.is_deleting());
        if of == OfRevision::default() {
            self.revisions.remove(revision);
        } else {
            self.revisions.insert(revision.into(), of);
        }
    }
}

/// Since when a pod runs and is ready.
fn ready(pod: &Object) -> Option<SimTime> {
    pod.pod().filter(|pod| pod.status.phase == PodPhase::Running).and_then(|_| ready_since(pod))
}
