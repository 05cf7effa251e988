//! Pods, from their first event to their end: emits a fact when a recorded property has changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use sk_core::{Gvk, ObjectKey, ObjectRef, OwnerReference, SimTime, SmolStr, StableHash, TemplateId};
use sk_store::log::{Attribution, Fact, PodFacts};

use super::life::{Advance, Life};
use super::versions::Found;
use super::waiting::{Form, Waiter};
use super::{Epoch, Ledger, Place, Trouble};
use crate::pod::slim;
use crate::rules::own_template;
use crate::sighting::{PodLook, Sighting};
use crate::uid::Uid;

/// What pods are.
const POD: Gvk = Gvk::new_static("", "v1", "Pod");

/// A pod that lives. What pods of one owner have in common is shared.
#[derive(Debug)]
pub(super) struct Pod {
    uid: Uid,
    owners: Arc<Vec<OwnerReference>>,
    attributions: Arc<Vec<Attribution>>,
    requests: Arc<BTreeMap<SmolStr, String>>,
    /// Only told of a pod whose life somebody wants.
    pod_hash: Option<StableHash>,
    life: Life,
    seen: Epoch,
}

/// An observation of a pod, and what else is known of it from the same sighting.
pub(super) struct SeenPod<'a> {
    pub(super) key: &'a ObjectKey,
    pub(super) uid: &'a SmolStr,
    pub(super) owners: &'a [OwnerReference],
    pub(super) look: &'a PodLook,
    /// What is kept of it, if pods are recorded.
    pub(super) body: Option<&'a Bytes>,
}

/// The known owners of a pod.
struct Descent {
    attributions: Vec<Attribution>,
    /// Owners that may still arrive.
    waits_for: Vec<Uid>,
    /// Would reading the pod again tell more?
    ripe: bool,
}

impl Pod {
    /// Everybody it belongs to.
    pub(super) fn owners(&self) -> &[OwnerReference] {
        &self.owners
    }

    /// The template of this owner that it is known to be made from.
    fn known_template(&self, owner: &Uid) -> Option<TemplateId> {
        let of_owner = self.attributions.iter().find(|one| Uid::new(&one.uid) == *owner);
        of_owner.and_then(|one| one.template.clone())
    }

    fn facts(&self, pod: &ObjectKey, deleted: Option<SimTime>, guessed: bool) -> Fact {
        Fact::Pod(Box::new(PodFacts {
            uid: self.uid.to_smol_str(),
            pod: pod.clone(),
            owners: self.owners.to_vec(),
            attributions: self.attributions.to_vec(),
            pod_hash: self.pod_hash.filter(|_| self.attributions.iter().any(|one| one.track_lifecycle)),
            created: self.life.created,
            scheduled: self.life.scheduled,
            started: self.life.containers.start(),
            finished: self.life.containers.end(),
            deleted,
            guessed,
            exit_code: self.life.exit_code,
            node: self.life.node.clone(),
            waits: self.life.waits.clone(),
            requests: BTreeMap::clone(&self.requests),
        }))
    }
}

impl Ledger {
    /// A pod was seen.
    pub(super) fn pod_applied(&mut self, now: SimTime, seen: &SeenPod<'_>, out: &mut Vec<Fact>) {
        let own_uid = Uid::new(seen.uid);
        if self.pods.get(seen.key).is_some_and(|known| known.uid != own_uid) {
            // Its end was not seen; it was there before this one was.
            self.pod_goes(now, seen.key, true, out);
        }
        let epoch = self.pod_epoch();
        let Some(known) = self.pods.get_mut(seen.key) else { return self.pod_came(now, &own_uid, seen, out) };
        known.seen = epoch;
        let advance = known.life.advance(now, seen.look);
        if *known.owners != seen.owners {
            let before = std::mem::take(&mut known.owners);
            known.owners = self.interners.owners.share(seen.owners, seen.owners.to_vec());
            self.refer(seen.owners);
            self.unrefer(&before, out);
            self.ask_for_unknown(seen.key.namespace.as_ref(), seen.owners);
            self.attribute_by_look(now, seen.key, &seen.look.raw, true, out);
        } else if self.waiting.is_ripe(&own_uid) {
            self.attribute_by_look(now, seen.key, &seen.look.raw, advance.changed, out);
        } else if advance.changed {
            out.push(known.facts(seen.key, None, false));
        }
        self.report(seen.key, advance);
    }

    /// A pod was looked at out of the order of its watch, because whose it is could not be told: only that is learnt. See
    /// [`Ledger::pods_to_look_at`].
    pub fn looked_at(&mut self, now: SimTime, sighting: &Sighting, out: &mut Vec<Fact>) {
        let (Some(look), key, uid) = (&sighting.pod, &sighting.object.key, Uid::new(&sighting.uid)) else { return };
        let is_same = |pod: &Pod| pod.uid == uid && *pod.owners == sighting.owners;
        if self.waiting.is_ripe(&uid) && self.pods.get(key).is_some_and(is_same) {
            self.attribute_by_look(now, key, &look.raw, false, out);
        }
    }

    fn pod_came(&mut self, now: SimTime, uid: &Uid, seen: &SeenPod<'_>, out: &mut Vec<Fact>) {
        let admitted = self.rules.admit_pod(&seen.look.raw);
        let requests = admitted.as_ref().map(|admitted| admitted.requests.clone()).unwrap_or_default();
        let own = seen.body.map(|body| self.own_attribution(seen.key, seen.uid, body)).into_iter().collect();
        let mut life = Life::new(now, seen.look);
        life.node = life.node.map(|node| SmolStr::clone(&self.interners.names.share(&node, node.clone())));
        let pod = Pod {
            uid: uid.clone(),
            owners: self.interners.owners.share(seen.owners, seen.owners.to_vec()),
            attributions: Arc::new(own),
            requests: self.interners.requests.share(&requests, requests.clone()),
            pod_hash: admitted.as_ref().map(|admitted| admitted.pod_hash),
            life,
            seen: self.pod_epoch(),
        };
        self.by_uid.entry(uid.clone()).or_insert_with(|| Place::Pod(seen.key.clone()));
        self.pods.insert(seen.key.clone(), pod);
        self.refer(seen.owners);
        self.ask_for_unknown(seen.key.namespace.as_ref(), seen.owners);
        self.attribute(now, seen.key, admitted.as_ref().map(|admitted| &admitted.form), true, out);
        // Others may have waited for this pod as their owner.
        self.owner_arrived(now, uid, out);
    }

    /// A pod is gone; what was seen is what it was in the end.
    pub(super) fn pod_deleted(&mut self, now: SimTime, seen: &SeenPod<'_>, out: &mut Vec<Fact>) {
        if self.pods.get(seen.key).is_some_and(|known| known.uid != Uid::new(seen.uid)) {
            // The name has another pod by now, whose coming has ended this one.
            return;
        }
        // What its containers said in the end counts, and a pod that was never seen has lived all the same.
        let before = out.len();
        self.pod_applied(now, seen, out);
        let is_own = |fact: &Fact| matches!(fact, Fact::Pod(pod) if pod.uid == *seen.uid);
        if out.len() > before && out.last().is_some_and(is_own) {
            // The fact that follows says the same, and that it is gone.
            out.pop();
        }
        self.pod_goes(now, seen.key, false, out);
    }

    /// The pod ends here. One that vanished was not seen to end.
    fn pod_goes(&mut self, now: SimTime, key: &ObjectKey, vanished: bool, out: &mut Vec<Fact>) {
        let Some(mut pod) = self.pods.remove(key) else { return };
        let unsure = pod.life.end(now);
        self.waiting.remove(&pod.uid);
        if matches!(self.by_uid.get(&pod.uid), Some(Place::Pod(_))) {
            self.by_uid.remove(&pod.uid);
        }
        out.push(pod.facts(key, Some(now), vanished && unsure));
        self.unrefer(&pod.owners, out);
    }

    /// What a list of pods did not bring is gone.
    pub(super) fn unseen_pods_vanish(&mut self, now: SimTime, epoch: Epoch, out: &mut Vec<Fact>) {
        let unseen = self.pods.iter().filter(|(_, pod)| pod.seen != epoch);
        let unseen: Vec<_> = unseen.map(|(key, _)| key.clone()).collect();
        unseen.iter().for_each(|key| self.pod_goes(now, key, true, out));
    }

    /// An owner of waiting pods has arrived, or has new templates.
    pub(super) fn owner_arrived(&mut self, now: SimTime, owner: &Uid, out: &mut Vec<Fact>) {
        for (uid, Waiter { key, form, .. }) in self.waiting.take(owner) {
            let Some(pod) = self.pods.get(&key).filter(|pod| pod.uid == uid) else { continue };
            let form = match form {
                Form::Held(form) => read_form(&form, pod.life.node.as_ref()),
                Form::Dropped | Form::Ripe => None,
            };
            self.attribute(now, &key, form.as_ref(), false, out);
        }
    }

    /// With the bytes of the pod at hand.
    fn attribute_by_look(&mut self, now: SimTime, key: &ObjectKey, raw: &[u8], changed: bool, out: &mut Vec<Fact>) {
        let admitted = self.rules.admit_pod(raw);
        if let (Some(pod), Some(admitted)) = (self.pods.get_mut(key), &admitted) {
            // The log does not have it of a pod whose owners were not known.
            pod.pod_hash = pod.pod_hash.or(Some(admitted.pod_hash));
        }
        self.attribute(now, key, admitted.as_ref().map(|admitted| &admitted.form), changed, out);
    }

    /// Finds out whose the pod is, and with its form from which template; a fact if that, or something else, has changed.
    fn attribute(&mut self, now: SimTime, key: &ObjectKey, form: Option<&Value>, changed: bool, out: &mut Vec<Fact>) {
        let Some(pod) = self.pods.get(key) else { return };
        let Descent { attributions, waits_for, ripe } = self.descent(pod, form);
        let uid = pod.uid.clone();
        let parts: Vec<_> = attributions.iter().map(|one| (&one.owner, &one.uid, &one.template)).collect();
        let shared = self.interners.attributions.share(&parts, attributions.clone());
        let Some(pod) = self.pods.get_mut(key) else { return };
        let changed = changed || pod.attributions != shared;
        pod.attributions = shared;
        if changed {
            out.push(pod.facts(key, None, false));
        }
        if waits_for.is_empty() {
            self.waiting.remove(&uid);
            return;
        }
        let form = match form {
            Some(form) => Form::Held(slim(form).to_string().into()),
            None if ripe => Form::Ripe,
            None => Form::Dropped,
        };
        let crowded_out = self.waiting.add(now, &uid, Waiter { key: key.clone(), owners: waits_for, form });
        crowded_out.iter().for_each(|(_, key)| self.warn_unseen(key));
    }

    /// The recorded ancestors of a pod and the template of each that it was made from. Without its form no more is said
    /// of templates than was known.
    fn descent(&self, pod: &Pod, form: Option<&Value>) -> Descent {
        let ancestry = self.ancestry(&pod.owners);
        let own = pod.attributions.iter().take_while(|one| one.owner.gvk == POD && Uid::new(&one.uid) == pod.uid);
        let mut descent = Descent { attributions: own.cloned().collect(), waits_for: ancestry.unknown, ripe: false };
        for (kind, key) in ancestry.recorded {
            let Some(owner) = self.objects.get(&(kind, key.clone())) else { continue };
            let object = self.object_ref(kind, &key);
            let versions = owner.versions();
            let found = match form {
                Some(form) => versions.and_then(|versions| versions.origin(&self.rules, form, pod.life.created)),
                None => pod.known_template(&owner.uid).map(|id| Found { id, whole: true }),
            };
            if versions.is_some() && !found.as_ref().is_some_and(|found| found.whole) {
                descent.waits_for.push(owner.uid.clone());
                descent.ripe |= form.is_none();
            }
            let track_lifecycle = self.rules.of(&object.gvk).is_some_and(|rules| rules.track_lifecycle);
            let uid = owner.uid.to_smol_str();
            let template = found.map(|found| found.id);
            descent.attributions.push(Attribution { owner: object, uid, template, track_lifecycle });
        }
        descent
    }

    /// A recorded pod is its own template.
    fn own_attribution(&self, key: &ObjectKey, uid: &SmolStr, body: &[u8]) -> Attribution {
        let template = serde_json::from_slice::<Value>(body).ok();
        Attribution {
            owner: ObjectRef::new(POD, key.clone()),
            uid: uid.clone(),
            template: template.map(|pod| TemplateId::of(own_template(), &pod)),
            track_lifecycle: self.rules.of(&POD).is_some_and(|rules| rules.track_lifecycle),
        }
    }

    fn pod_epoch(&mut self) -> Epoch {
        let id = self.kinds.id(&POD);
        self.kinds.epoch(id)
    }

    fn report(&mut self, key: &ObjectKey, advance: Advance) {
        let object = || ObjectRef::new(POD, key.clone());
        if advance.refused {
            self.counts.refused_lives += 1;
            self.warnings.add(object(), Trouble::LifeRefused);
        }
        if advance.wait_dropped {
            self.counts.dropped_waits += 1;
            self.warnings.add(object(), Trouble::WaitDropped);
        }
    }

    /// Drops the forms of pods whose owners have not come for too long. Nothing is wrong with one that has a template of
    /// each owner by its containers: admission may have changed the rest of it, and it need not wait any longer.
    pub(super) fn give_up_waiting(&mut self, now: SimTime) {
        for (uid, key) in self.waiting.expire(now) {
            self.warn_unseen(&key);
            let Some(pod) = self.pods.get(&key) else { continue };
            let has_templates =
                !pod.attributions.is_empty() && pod.attributions.iter().all(|one| one.template.is_some());
            if has_templates && self.ancestry(&pod.owners).unknown.is_empty() {
                self.waiting.remove(&uid);
            }
        }
    }

    fn warn_unseen(&mut self, key: &ObjectKey) {
        let has_template = |pod: &Pod| pod.attributions.iter().any(|one| one.template.is_some());
        if !self.pods.get(key).is_some_and(has_template) {
            self.warnings.add(ObjectRef::new(POD, key.clone()), Trouble::OwnerUnseen);
        }
    }

    /// Takes in a pod that the log knows.
    pub(super) fn restore_pod(&mut self, facts: PodFacts) {
        let life = Life::restore(&facts);
        let parts: Vec<_> = facts.attributions.iter().map(|one| (&one.owner, &one.uid, &one.template)).collect();
        let pod = Pod {
            uid: Uid::new(&facts.uid),
            owners: self.interners.owners.share(&facts.owners, facts.owners.clone()),
            attributions: self.interners.attributions.share(&parts, facts.attributions.clone()),
            requests: self.interners.requests.share(&facts.requests, facts.requests.clone()),
            pod_hash: facts.pod_hash,
            life,
            seen: 0,
        };
        self.by_uid.entry(pod.uid.clone()).or_insert_with(|| Place::Pod(facts.pod.clone()));
        self.refer(&facts.owners);
        self.pods.insert(facts.pod, pod);
    }

    /// Lets the pods wait that the log knows without their owners or templates. For when everything has been taken in.
    pub(super) fn restore_waiting(&mut self) {
        let keys: Vec<_> = self.pods.keys().cloned().collect();
        for key in keys {
            let Some(pod) = self.pods.get(&key) else { continue };
            let (uid, owners) = (pod.uid.clone(), Arc::clone(&pod.owners));
            let Descent { waits_for, ripe, .. } = self.descent(pod, None);
            if !waits_for.is_empty() {
                let form = if ripe { Form::Ripe } else { Form::Dropped };
                self.waiting.add(SimTime::EPOCH, &uid, Waiter { key: key.clone(), owners: waits_for, form });
            }
            self.ask_for_unknown(key.namespace.as_ref(), &owners);
        }
    }
}

/// A form that was held, with the node that pods of one template do not have in common.
fn read_form(form: &[u8], node: Option<&SmolStr>) -> Option<Value> {
    let mut form: Value = serde_json::from_slice(form).ok()?;
    if let (Some(spec), Some(node)) = (form["spec"].as_object_mut(), node) {
        spec.insert("nodeName".to_owned(), node.as_str().into());
    }
    Some(form)
}
