//! The StatefulSet controller (`pkg/controller/statefulset`, 1.36): pods with ordinals, created and deleted in order,
//! with claims that outlive them.
//!
//! `sync` decides, `pods` counts pods as they change and knows where a sync has to look (`checked`), `identity` names and makes
//! pods, `claims` makes claims and sets their owners.
//!
//! Simplified: claims are bound as soon as they are created; a pod whose volumes differ from the StatefulSet's claims
//! is left alone (the API server would refuse to change it).

mod checked;
mod claims;
mod identity;
mod pods;
mod sync;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sk_apiserver::kinds::{STATEFUL_SET, StatefulSet, StatefulSetSpec};
use sk_apiserver::{
    Answer, ApiError, Body, Change, KindTag, Object, ObjectId, Reason, Request, Verb, View, WatchEvent,
};
use sk_core::memo::Memo;
use sk_core::{SimTime, SmolStr};

use self::pods::Pods;
use self::sync::Sync;
use super::adoption::Adoption;
use super::own_writes::OwnWrites;
use super::pods::is_active;
use super::revisions::{HASH_MEMORY, KnownRevisions, Revisions, template_hash};
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
    pods: BTreeMap<ObjectId, Pods>,
    revisions: KnownRevisions,
    /// The sets by namespace and by what the names of their claims begin with.
    claims: BTreeMap<(SmolStr, SmolStr), BTreeSet<ObjectId>>,
}

impl StatefulSets {
    pub(crate) fn new() -> Self {
        let adoption = Adoption::new(&STATEFUL_SET, KindTag::Pod);
        Self {
            adoption,
            own_writes: OwnWrites::default(),
            hashes: Memo::new(HASH_MEMORY),
            refused: BTreeSet::new(),
            pods: BTreeMap::new(),
            revisions: KnownRevisions::default(),
            claims: BTreeMap::new(),
        }
    }
}

impl Reconciler for StatefulSets {
    type Key = ObjectId;

    const WATCHES: &'static [KindTag] = &[KindTag::StatefulSet, KindTag::Pod, KindTag::Other];

    fn pods_of(&self) -> Option<KindTag> {
        Some(KindTag::StatefulSet)
    }

    fn concerns(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        match &event.object.body {
            Body::StatefulSet(set) => {
                self.adoption.set_seen(event, &set.spec.selector, view);
                self.set_seen(event, set, view);
                queue.add(event.id);
            }
            Body::Pod(_) => {
                self.adoption.child_seen(event, view, queue);
                self.pod_seen(event, view, queue);
            }
            // Nothing is to be done for their sake; the next sync knows of them.
            _ => {
                self.revisions.seen(event);
                self.claim_seen(event);
            }
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
        let revisions = Revisions::among(object, self.revisions.of(object.uid, view));
        let decide =
            |pods: &mut Pods| Sync::new(object, set, &revisions, &hash, pods, view, now).plan(&revisions, &hash);
        let plan = self.pods.get_mut(id).map_or_else(Plan::nothing, decide);
        debug_assert_eq!(
            format!("{plan:?}"),
            format!("{:?}", decide(&mut Pods::of(object, &set.spec, view))),
            "a sync of {} that looks at every pod decides otherwise",
            object.key
        );
        plan
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
        let revisions = Revisions::among(object, self.revisions.of(object.uid, view));
        Sync::new(object, set, &revisions, &hash, self.pods.get_mut(id)?, view, now).report_alone()
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

impl StatefulSets {
    /// What a set wants of its pods may have changed: they are counted anew.
    fn set_seen(&mut self, event: &WatchEvent, set: &StatefulSet, view: View<'_>) {
        // The API server refuses changes to claim templates.
        if event.change != Change::Modified {
            let namespace = event.object.key.namespace_or_empty();
            for template in &set.spec.volume_claim_templates {
                let prefix = claims::prefix(&event.object, template);
                let sets = self.claims.entry((namespace.into(), prefix.clone())).or_default();
                match event.change {
                    Change::Deleted => sets.remove(&event.id),
                    Change::Added | Change::Modified => sets.insert(event.id),
                };
                if sets.is_empty() {
                    self.claims.remove(&(namespace.into(), prefix));
                }
            }
        }
        if event.change == Change::Deleted {
            self.refused.remove(&event.id);
            self.own_writes.forget(event.id);
            self.pods.remove(&event.id);
            return;
        }
        let before = event.before.as_ref().and_then(|before| before.stateful_set());
        if !before.is_some_and(|before| Arc::ptr_eq(&before.spec, &set.spec) || before.spec == set.spec) {
            self.pods.insert(event.id, Pods::of(&event.object, &set.spec, view));
        }
    }

    fn pod_seen(&mut self, event: &WatchEvent, view: View<'_>, queue: &mut WorkQueue<ObjectId>) {
        let owner = |pod: &Arc<Object>| {
            let owner = pod.controller().filter(|owner| owner.gvk == STATEFUL_SET)?;
            view.with_uid(owner.uid)
        };
        let (old, new) = (event.before.as_ref().and_then(owner), owner(&event.object));
        let is_there = event.change != Change::Deleted;
        for (id, set) in old.into_iter().chain(new.filter(|(new, _)| old.is_none_or(|(old, _)| old != *new))) {
            queue.add(id);
            let is_its = |of: Option<(ObjectId, &Arc<Object>)>| of.is_some_and(|(owner, _)| owner == id);
            let before = event.before.as_ref().filter(|_| is_its(old));
            let after = Some(&event.object).filter(|_| is_there && is_its(new));
            if let Some(pods) = self.pods.get_mut(&id) {
                pods.changed(set, event.id, before, after, view);
            }
        }
    }

    fn claim_seen(&mut self, event: &WatchEvent) {
        if self.claims.is_empty() || event.object.gvk != claims::CLAIM {
            return;
        }
        let key = &event.object.key;
        let Some((prefix, number)) = key.name.rsplit_once('-') else { return };
        let sets = self.claims.get(&(key.namespace_or_empty().into(), prefix.into())).into_iter().flatten();
        let Ok(ordinal) = number.parse() else { return };
        for set in sets {
            if let Some(pods) = self.pods.get_mut(set) {
                pods.claim_changed(ordinal);
            }
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
