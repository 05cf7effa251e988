//! The StatefulSet controller (`pkg/controller/statefulset`, 1.36): pods with ordinals, created and deleted in order,
//! with claims that outlive them.
//!
//! `sync` decides, `identity` names and makes pods, `claims` makes claims and sets their owners.
//!
//! Simplified: claims are bound as soon as they are created; a pod whose volumes differ from the StatefulSet's claims
//! is left alone (the API server would refuse to change it).

mod claims;
mod identity;
mod sync;

use std::collections::BTreeSet;
use std::sync::Arc;

use sk_apiserver::kinds::{STATEFUL_SET, StatefulSetSpec};
use sk_apiserver::{
    Answer, ApiError, Body, Change, KindTag, Object, ObjectId, Reason, Request, Verb, View, WatchEvent,
};
use sk_core::memo::Memo;
use sk_core::{SimTime, SmolStr};

use self::sync::Sync;
use super::adoption::Adoption;
use super::own_writes::OwnWrites;
use super::pods::is_active;
use super::revisions::{HASH_MEMORY, Revisions, template_hash};
use crate::controller::{Plan, Reconciler};
use crate::events::{self, Event};
use crate::workqueue::WorkQueue;

/// How it signs Events.
const FROM: &str = "statefulset-controller";

/// The controller.
#[derive(Clone)]
pub(crate) struct StatefulSets {
    adoption: Adoption,
    own_writes: OwnWrites,
    hashes: Memo<StatefulSetSpec, SmolStr>,
    /// Sets for which something could not be made: they report all the same.
    refused: BTreeSet<ObjectId>,
}

impl StatefulSets {
    pub(crate) fn new() -> Self {
        let adoption = Adoption::new(&STATEFUL_SET, KindTag::Pod);
        Self { adoption, own_writes: OwnWrites::default(), hashes: Memo::new(HASH_MEMORY), refused: BTreeSet::new() }
    }
}

impl Reconciler for StatefulSets {
    type Key = ObjectId;

    const WATCHES: &'static [KindTag] = &[KindTag::StatefulSet, KindTag::Pod];

    fn pods_of(&self) -> Option<KindTag> {
        Some(KindTag::StatefulSet)
    }

    fn concerns(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        if let Body::StatefulSet(set) = &event.object.body {
            self.adoption.set_seen(event, &set.spec.selector, view);
            if event.change == Change::Deleted {
                self.refused.remove(&event.id);
                self.own_writes.forget(event.id);
            }
            return queue.add(event.id);
        }
        self.adoption.child_seen(event, view, queue);
        let owner = |pod: &Arc<Object>| {
            let owner = pod.controller().filter(|owner| owner.gvk == STATEFUL_SET)?;
            view.with_uid(owner.uid).map(|(id, _)| id)
        };
        for set in event.before.as_ref().and_then(owner).into_iter().chain(owner(&event.object)) {
            queue.add(set);
        }
    }

    fn reconcile(&mut self, id: &ObjectId, view: View<'_>, now: SimTime) -> Plan {
        let found = view.get(*id).and_then(|object| Some((object, object.stateful_set()?)));
        let Some((object, set)) = found else { return Plan::nothing() };
        if !self.own_writes.are_seen(*id, view) {
            return Plan::nothing();
        }
        let claims =
            self.adoption.claim(*id, object, view, |pod| is_active(pod) && identity::ordinal_in(object, pod).is_some());
        if !claims.is_empty() {
            return Plan::of(claims);
        }
        let hash = self.hashes.get_or_insert_with(&set.spec, |spec| template_hash(&spec.template));
        let revisions = Revisions::of(object, view);
        Sync::new(object, set, &revisions, &hash, view, now).plan(&revisions, &hash)
    }

    fn events(&self, id: &ObjectId, verb: Verb, answer: &Answer, view: View<'_>) -> Vec<Event> {
        let Some(set) = view.get(*id) else { return Vec::new() };
        let said = match answer {
            Ok(child) => said(set, verb, child, view),
            Err(error) => failed(set, verb, error),
        };
        said.into_iter().collect()
    }

    fn after_refusal(&mut self, id: &ObjectId, view: View<'_>, now: SimTime) -> Option<Request> {
        let object = view.get(*id).filter(|_| self.refused.remove(id))?;
        let set = object.stateful_set()?;
        let hash = self.hashes.get_or_insert_with(&set.spec, |spec| template_hash(&spec.template));
        Sync::new(object, set, &Revisions::of(object, view), &hash, view, now).report_alone()
    }

    fn answered(&mut self, id: &ObjectId, verb: Verb, answer: &Answer) {
        if verb == Verb::Create && answer.is_err() {
            self.refused.insert(*id);
        }
        if answer.as_ref().is_ok_and(|object| object.pod().is_some() || object.stateful_set().is_some()) {
            self.own_writes.answered(*id, answer);
        }
    }
}

/// What is said of a pod or claim that could not be made or deleted. That it is there already, or gone, is nothing to speak of.
fn failed(set: &Object, verb: Verb, error: &ApiError) -> Option<Event> {
    let (reason, wanted) = match (verb, error.reason) {
        (Verb::Create, Reason::AlreadyExists) | (Verb::Delete, Reason::NotFound) => return None,
        (Verb::Create, _) => ("FailedCreate", "Create"),
        (Verb::Delete, _) => ("FailedDelete", "Delete"),
        _ => return None,
    };
    let (child, set_name) = (&error.about.as_ref()?.name, &set.key.name);
    // A claim is called by its template, its set and its pod's number; a pod by its set and number.
    let is_claim = child.strip_prefix(set_name.as_str()).is_none_or(|rest| !rest.starts_with('-'));
    let message = match child.rsplit_once('-').filter(|_| is_claim) {
        Some((_, number)) => {
            format!(
                "{wanted} Claim {child} for Pod {set_name}-{number} in StatefulSet {set_name} failed error: {error}"
            )
        }
        None => format!("{wanted} Pod {child} in StatefulSet {set_name} failed error: {error}"),
    };
    Some(Event::warning(FROM, set, reason, message))
}

/// What is said of a pod or claim that was made or deleted (`recordPodEvent`, `recordClaimEvent`).
fn said(set: &Object, verb: Verb, child: &Object, view: View<'_>) -> Option<Event> {
    let (reason, done) = match verb {
        Verb::Create => ("SuccessfulCreate", "Create"),
        Verb::Delete => ("SuccessfulDelete", "Delete"),
        // An adopted pod is given what tells which of the set's pods it is; its adoption alone is not spoken of.
        Verb::Update if is_named_anew(child, view) => ("SuccessfulUpdate", "Update"),
        _ => return None,
    };
    let (child_name, set_name) = (&child.key.name, &set.key.name);
    let message = match child.gvk.kind.as_str() {
        "Pod" => format!("{done} Pod {child_name} in StatefulSet {set_name} successful"),
        "PersistentVolumeClaim" => {
            let (_, ordinal) = child_name.rsplit_once('-')?;
            format!("{done} Claim {child_name} Pod {set_name}-{ordinal} in StatefulSet {set_name} success")
        }
        _ => return None,
    };
    Some(Event::normal(FROM, set, reason, message))
}

fn is_named_anew(pod: &Object, view: View<'_>) -> bool {
    let before = events::before(pod, view).filter(|_| pod.pod().is_some());
    before.is_some_and(|before| before.meta.labels != pod.meta.labels)
}
