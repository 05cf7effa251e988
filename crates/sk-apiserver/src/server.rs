//! The verbs: what each request does to the store, and which requests the server refuses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sk_core::rng::Stream;
use sk_core::{Gvk, ObjectKey, ObjectRef, SimDuration, SimTime, SmolStr};

use crate::admission::{self, Admission};
use crate::binding::Binding;
use crate::custom::DEFINITION;
use crate::error::Invalid;
use crate::kinds::{self, Body, Condition, NamespacePhase};
use crate::limit_range::LIMIT_RANGE;
use crate::managed::Writing;
use crate::quota::RESOURCE_QUOTA;
use crate::read::{ListOptions, Page};
use crate::request::{Answer, Subresource};
use crate::store::{MAX_OBJECTS, ObjectId, Store};
use crate::{
    AdmitPod, ApiError, DeleteOptions, Deletion, Notice, Object, Patch, Propagation, Reason, Request, Rules, Uid,
    generation,
};

/// The largest object that is stored: what etcd takes (1.5 MiB, `DefaultMaxRequestBytes`), counted as JSON.
pub(crate) const MAX_STORED_BYTES: usize = 3 << 19;
/// Kubernetes appends this many random characters to a `generateName`.
const GENERATED_SUFFIX_LEN: usize = 5;
/// And cuts the prefix so that the name keeps to this length.
const MAX_GENERATED_NAME_LEN: usize = 63;
/// How often a generated name that is taken is generated again (`registry/rest/create.go`, 1.36).
const GENERATED_NAME_ATTEMPTS: usize = 8;

/// The API server: objects, and the rules for changing them.
#[derive(Clone)]
pub struct ApiServer {
    store: Store,
    pub(crate) admission: Admission,
    uids: Stream,
    suffixes: Stream,
    /// The disruption budgets there are: evictions ask for those of one namespace.
    pub(crate) budgets: BTreeSet<ObjectKey>,
    /// The quotas there are: every new object of a namespace is charged to its own.
    pub(crate) quotas: BTreeSet<ObjectKey>,
    /// The field manager of the client request being handled; other requests have none.
    pub(crate) writing: Option<Box<Writing>>,
}

impl ApiServer {
    /// An empty server whose uids and names follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            store: Store::default(),
            admission: Admission::new(),
            uids: Stream::new(seed, "uid"),
            suffixes: Stream::new(seed, "name-suffix"),
            budgets: BTreeSet::new(),
            quotas: BTreeSet::new(),
            writing: None,
        }
    }

    /// The same for objects that clients write: every default is written and every rule is kept. Recordings leave out
    /// what is not needed to simulate (images, for one) and have their defaults already, so a replay does without.
    pub fn strict(mut self) -> Self {
        self.admission.is_strict = true;
        self
    }

    /// Judges what comes from outside by these rules; see [`Self::judge`].
    pub fn set_rules(&mut self, rules: Rules) {
        self.admission.rules = rules;
    }

    /// Lets `hook` see every new pod before it is stored.
    pub fn set_pod_hook(&mut self, hook: Box<dyn AdmitPod>) {
        self.admission.hook = Some(hook);
    }

    /// The objects, to read.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Everybody has read the log up to `seen_by_all`.
    pub fn reclaim(&mut self, seen_by_all: u64) {
        self.store.reclaim(seen_by_all);
    }

    /// Every reader has read past `read_by_all`.
    pub fn forget(&mut self, read_by_all: u64) {
        self.store.forget(read_by_all);
    }

    /// What was decided without knowing, and how often.
    pub fn notices(&self) -> &BTreeMap<Notice, u64> {
        &self.admission.notices
    }

    /// Answers one request at the time `now`.
    pub fn handle(&mut self, now: SimTime, request: Request) -> Answer {
        match request {
            Request::Create(object) => self.create(now, *object),
            Request::Apply(object) => self.apply(now, *object),
            Request::Update(object) => self.update(now, *object),
            Request::UpdateStatus(object) => self.update_status(now, *object),
            Request::PatchPodStatus { pod, uid, conditions, nominated_node_name } => {
                self.patch_pod_status(now, &pod, uid, conditions, nominated_node_name)
            }
            Request::Bind { pod, uid, node } => {
                self.bind(now, &pod, &Binding { uid: Some(uid), node, ..Binding::default() })
            }
            Request::Evict { pod } => self.evict(now, pod, DeleteOptions::default()),
            Request::Delete { target, options } => self.delete(now, &target, options),
            Request::Patch { target, below, patch } => self.patch(now, &target, below, &patch),
            Request::Scale { target, scale } => self.scale(now, &target, &scale),
            Request::RemoveFinalizer { target, uid, finalizer } => self.remove_finalizer(now, &target, uid, &finalizer),
            Request::FinalizeNamespace { name } => self.finalize_namespace(now, &name),
        }
    }

    fn create(&mut self, now: SimTime, mut object: Object) -> Answer {
        if self.store.is_full() {
            let why = format!("the embedded API server holds at most {MAX_OBJECTS} objects");
            return Err(ApiError::forbidden(&object.gvk, &object.key.name, &why));
        }
        self.admission.definitions.place(&mut object);
        self.name(&mut object)?;
        let uid = Uid::from_random_bits(self.uids.next_u128());
        let identity = object.identity_mut();
        (identity.uid, identity.created) = (uid, now);
        if generation::is_counted(&object.gvk) {
            object.meta.generation = 1;
        }
        object.meta.deletion = None;
        if self.admission.is_strict {
            generation::count_template(&mut object, None);
        }
        self.manage(&mut object, None)?;
        let admitted = self.admission.admit(&mut object, &self.store, now).and_then(|()| self.charge(now, &object));
        if let Err(error) = admitted {
            self.admission.note_refusal(&object, &error);
            return Err(error);
        }
        self.refuse_large(&object)?;
        Ok(self.commit(now, None, object))
    }

    /// Sees to it that the object has a name that no other has: makes that of one which has only a prefix.
    fn name(&mut self, object: &mut Object) -> Result<(), ApiError> {
        if !object.key.name.is_empty() {
            return match self.store.find(&object.gvk, &object.key) {
                Some(_) => Err(ApiError::already_exists(&object.gvk, &object.key.name)),
                None => Ok(()),
            };
        }
        let Some(prefix) = object.generate_name.clone() else {
            let missing = [Invalid::new("metadata.name", "Required value: name or generateName is required")];
            return Err(ApiError::invalid(&object.gvk, "", &missing));
        };
        let longest = prefix.char_indices().nth(MAX_GENERATED_NAME_LEN - GENERATED_SUFFIX_LEN);
        let prefix = &prefix[..longest.map_or(prefix.len(), |(end, _)| end)];
        for _ in 0..GENERATED_NAME_ATTEMPTS {
            let mut name = String::with_capacity(prefix.len() + GENERATED_SUFFIX_LEN);
            name.push_str(prefix);
            self.suffixes.push_name_suffix(GENERATED_SUFFIX_LEN, &mut name);
            object.identity_mut().key.name = name.into();
            if self.store.find(&object.gvk, &object.key).is_none() {
                return Ok(());
            }
        }
        Err(ApiError::already_exists(&object.gvk, &object.key.name))
    }

    fn apply(&mut self, now: SimTime, mut object: Object) -> Answer {
        self.admission.definitions.place(&mut object);
        let Some((id, stored)) = self.store.find(&object.gvk, &object.key) else {
            return self.create(now, object);
        };
        let (stored, mut wanted) = (stored.clone(), Object::clone(stored));
        if let Body::Pod(_) = &wanted.body {
            // A pod's spec is not to be changed, and what admission wrote on it belongs to others than the one who
            // applies.
            add(&mut wanted.meta.labels, &object.meta.labels);
            add(&mut wanted.meta.annotations, &object.meta.annotations);
        } else {
            wanted.meta.labels = object.meta.labels;
            wanted.meta.annotations = object.meta.annotations;
            wanted.body = object.body;
            self.prepare_for_update(&mut wanted, &stored);
            wanted.body.keep_generated(&stored.body);
            generation::keep_revision(&mut wanted, &stored);
            generation::count_annotations(&mut wanted, &stored);
        }
        self.replace(now, id, &stored, wanted)
    }

    fn update(&mut self, now: SimTime, object: Object) -> Answer {
        let mut wanted = object;
        self.admission.definitions.place(&mut wanted);
        let (id, stored) = self.stored(&wanted)?;
        wanted.set_identity(stored.identity().clone());
        wanted.meta.generation = stored.meta.generation;
        wanted.meta.deletion = stored.meta.deletion;
        self.prepare_for_update(&mut wanted, &stored);
        if self.admission.is_strict {
            generation::keep_namespace_label(&mut wanted);
            generation::default_labels(&mut wanted);
        } else {
            wanted.body.keep_generated(&stored.body);
        }
        generation::count_annotations(&mut wanted, &stored);
        self.replace(now, id, &stored, wanted)
    }

    fn update_status(&mut self, now: SimTime, mut object: Object) -> Answer {
        let (id, stored) = self.stored(&object)?;
        let mut wanted = match (&stored.body, &mut object.body) {
            (Body::Pod(pod), Body::Pod(told)) => {
                stored.with_body(Body::Pod(pod.with_status(std::mem::take(&mut told.status))))
            }
            _ => {
                let mut wanted = Object::clone(&stored);
                wanted.body.set_status(&object.body);
                wanted
            }
        };
        if let (true, Body::Pod(pod)) = (self.admission.is_strict, &mut wanted.body) {
            kinds::qos::complete(pod);
            // A pod's status update may also change labels and annotations (`podStatusStrategy`).
            wanted.meta.labels = object.meta.labels.clone();
            wanted.meta.annotations = object.meta.annotations.clone();
        }
        if let Body::Deployment(_) = &wanted.body {
            // A deployment's revision is an annotation that its controller writes with the status.
            wanted.meta.annotations.clone_from(&object.meta.annotations);
        }
        if self.admission.is_strict && object.body.is_typed() {
            let wrong = crate::validation::status(&wanted.gvk, &wanted.to_json()["status"]);
            if !wrong.is_empty() {
                return Err(ApiError::invalid(&wanted.gvk, &wanted.key.name, &wrong));
            }
        }
        self.charge_change(now, &wanted, &stored, true)?;
        self.admission.complete_status(&mut wanted, &stored)?;
        self.replace(now, id, &stored, wanted)
    }

    /// Takes over what an update cannot change. A custom kind whose status has no path of its own has its status
    /// changed with the rest.
    fn prepare_for_update(&self, wanted: &mut Object, stored: &Object) {
        let status = match &wanted.body {
            Body::Other(other) if self.has_plain_status(wanted) => other.status.clone(),
            _ => return wanted.body.prepare_for_update(&stored.body),
        };
        if let Body::Other(other) = &mut wanted.body {
            other.status = status;
        }
    }

    fn has_plain_status(&self, object: &Object) -> bool {
        !object.body.is_typed()
            && self.admission.definitions.find(&object.gvk).is_some_and(|(_, version)| !version.has_status)
    }

    /// The object that an update speaks of, unless the update comes too late.
    fn stored(&self, object: &Object) -> Result<(ObjectId, Arc<Object>), ApiError> {
        let (id, stored) = self.find(&object.gvk, &object.key)?;
        if object.resource_version != 0 && object.resource_version != stored.resource_version {
            return Err(ApiError::stale(&object.gvk, &object.key.name));
        }
        if object.uid != Uid::default() && object.uid != stored.uid {
            return Err(wrong_uid(stored, object.uid));
        }
        Ok((id, stored.clone()))
    }

    /// Commits a changed object; one that says nothing new is not committed, as in Kubernetes.
    fn replace(&mut self, now: SimTime, id: ObjectId, stored: &Arc<Object>, mut wanted: Object) -> Answer {
        wanted.resource_version = stored.resource_version;
        self.keep_managers(&mut wanted, stored);
        if wanted == **stored {
            return Ok(stored.clone());
        }
        let is_desired = |wanted: &Object, server: &Self| {
            // A status without a path of its own is a part of what is desired.
            !wanted.body.same_desire(&stored.body) || (server.has_plain_status(wanted) && wanted.body != stored.body)
        };
        if is_desired(&wanted, self) {
            self.admission.complete(&mut wanted, Some(stored))?;
            if self.admission.is_strict {
                generation::count_template(&mut wanted, Some(stored));
            }
            let changed = wanted.body.validate_update(&stored.body);
            changed.map_err(|invalid| ApiError::invalid(&wanted.gvk, &wanted.key.name, &[invalid]))?;
            if wanted == **stored {
                return Ok(stored.clone());
            }
            self.charge_change(now, &wanted, stored, false)?;
            if is_desired(&wanted, self) && generation::counts_updates(stored) {
                wanted.meta.generation += 1;
            }
        } else if self.admission.is_strict && !same_metadata(&wanted, stored) {
            admission::validate_metadata(&wanted, Some(stored))?;
        }
        self.manage(&mut wanted, Some(stored))?;
        if wanted.meta.deletion.is_some_and(|deletion| deletion.grace_secs == 0) && is_released(&wanted) {
            wanted.resource_version = self.remove(now, id, stored)?.resource_version;
            return Ok(Arc::new(wanted));
        }
        self.refuse_large(&wanted)?;
        Ok(self.commit(now, Some(id), wanted))
    }

    /// What a client writes must fit into the store of a real server.
    fn refuse_large(&self, object: &Object) -> Result<(), ApiError> {
        if self.writing.is_none() || object.to_json().to_string().len() <= MAX_STORED_BYTES {
            return Ok(());
        }
        Err(ApiError::new(Reason::Unknown, "etcdserver: request is too large"))
    }

    fn patch_pod_status(
        &mut self,
        now: SimTime,
        key: &ObjectKey,
        uid: Uid,
        conditions: Vec<Condition>,
        nominated_node_name: Option<SmolStr>,
    ) -> Answer {
        let (id, stored) = self.find(&kinds::POD, key)?;
        if stored.uid != uid {
            return Err(wrong_uid(stored, uid));
        }
        let (stored, mut patched) = (stored.clone(), Object::clone(stored));
        if let Some(pod) = patched.pod_mut() {
            for condition in conditions {
                pod.status.set_condition(condition);
            }
            if let Some(node) = nominated_node_name {
                pod.status.nominated_node_name = Some(node).filter(|node| !node.is_empty());
            }
        }
        self.replace(now, id, &stored, patched)
    }

    /// A pod gets the zone and the region of its node.
    pub(crate) fn label_by_node(&mut self, pod: &mut Object, node: &str) {
        self.admission.topology.label(pod, node, &self.store);
    }

    pub(crate) fn delete(&mut self, now: SimTime, target: &ObjectRef, options: DeleteOptions) -> Answer {
        let (id, stored) = self.find(&target.gvk, &target.key)?;
        let stored = stored.clone();
        if let Some(uid) = options.uid.filter(|uid| *uid != stored.uid) {
            return Err(meant_for_another(&stored, &uid.to_string()));
        }
        if let Some(version) = options.resource_version.filter(|version| *version != stored.resource_version) {
            return Err(wrong_version(&stored, &version.to_string()));
        }
        let grace_secs = grace_of(&stored, options.grace_secs);
        let is_told = self.admission.is_strict && stored.pod().is_some();
        if grace_secs == 0 && options.propagation == Propagation::Background && is_released(&stored) && !is_told {
            return self.remove(now, id, &stored);
        }
        let mut going = Object::clone(&stored);
        if options.is_settled {
            drop_finalizers(&mut going, &["orphan", "foregroundDeletion"]);
        }
        match options.propagation {
            Propagation::Background => {}
            Propagation::Foreground => add_finalizer(&mut going, "foregroundDeletion"),
            Propagation::Orphan => add_finalizer(&mut going, "orphan"),
        }
        let is_gone_at_once = grace_secs == 0 && is_released(&going);
        if is_gone_at_once && !is_told {
            return self.remove(now, id, &stored);
        }
        let is_pending = stored.meta.deletion.is_some_and(|deletion| deletion.grace_secs > 0);
        if is_pending && options.grace_secs.is_none() {
            return Ok(stored);
        }
        mark_deleted(&mut going, now, grace_secs);
        let marked = if going == *stored { stored } else { self.commit(now, Some(id), going) };
        // A pod without a grace period is updated before it is deleted, and watchers see both.
        if is_gone_at_once { self.remove(now, id, &marked) } else { Ok(marked) }
    }

    /// Deletes every object that is selected: as they last were.
    pub fn delete_collection(
        &mut self,
        now: SimTime,
        gvk: &Gvk,
        which: &ListOptions,
        options: DeleteOptions,
    ) -> Result<Page, ApiError> {
        let mut page = self.list(gvk, which)?;
        for object in &mut page.items {
            *object = self.delete(now, &object.reference(), options)?;
        }
        Ok(page)
    }

    /// Applies a patch to the object as it is now, and stores what comes out as an update would.
    fn patch(&mut self, now: SimTime, target: &ObjectRef, below: Option<Subresource>, patch: &Patch) -> Answer {
        let (_, stored) = self.find(&target.gvk, &target.key)?;
        let stored = stored.clone();
        if below == Some(Subresource::Scale) {
            let scale = patch.apply(&crate::scale::GVK, self.scale_of(&stored))?;
            return self.scale(now, target, &scale);
        }
        let patched = patch.apply(&target.gvk, crate::schema::written_object(&stored))?;
        patch.refuse_unreadable(&patched)?;
        refuse_other_identity(&stored, &patched)?;
        let wanted = Object::read(patched, target.key.namespace.as_ref())?;
        if wanted.gvk != target.gvk {
            let (given, expected) = (&wanted.gvk.kind, &target.gvk.kind);
            return Err(ApiError::bad_request(format!("{given} cannot be handled as a {expected}")));
        }
        if wanted.key.namespace != target.key.namespace {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(ApiError::bad_request(message));
        }
        if wanted.key != target.key {
            let message = format!(
                "the name of the object ({}) does not match the name on the URL ({})",
                wanted.key.name, target.key.name
            );
            return Err(ApiError::bad_request(message));
        }
        match below {
            Some(Subresource::Status) => self.update_status(now, wanted),
            Some(Subresource::Scale) | None => self.update(now, wanted),
        }
    }

    /// Patches one finalizer away, regardless of other changes; does nothing if it is not there.
    fn remove_finalizer(&mut self, now: SimTime, target: &ObjectRef, uid: Uid, finalizer: &str) -> Answer {
        let (id, stored) = self.find(&target.gvk, &target.key)?;
        if stored.uid != uid {
            return Err(wrong_uid(stored, uid));
        }
        let (stored, mut released) = (stored.clone(), Object::clone(stored));
        if stored.meta.finalizers.iter().any(|known| known == finalizer) {
            released.meta.finalizers =
                stored.meta.finalizers.iter().filter(|known| *known != finalizer).cloned().collect();
        }
        self.replace(now, id, &stored, released)
    }

    fn finalize_namespace(&mut self, now: SimTime, name: &SmolStr) -> Answer {
        let (id, stored) = self.find(&kinds::NAMESPACE, &ObjectKey::cluster(name.clone()))?;
        let (stored, mut done) = (stored.clone(), Object::clone(stored));
        if let Body::Namespace(namespace) = &mut done.body {
            namespace.finalizers.retain(|finalizer| *finalizer != kinds::KUBERNETES_FINALIZER);
        }
        self.replace(now, id, &stored, done)
    }

    /// Updates a namespace's own finalizers; a terminating namespace without any is deleted.
    pub(crate) fn finalize(&mut self, now: SimTime, object: Object) -> Answer {
        let (id, stored) = self.stored(&object)?;
        let mut wanted = Object::clone(&stored);
        wanted.meta.labels = object.meta.labels;
        wanted.meta.annotations = object.meta.annotations;
        wanted.meta.finalizers = object.meta.finalizers;
        if let (Body::Namespace(wanted), Body::Namespace(given)) = (&mut wanted.body, object.body) {
            wanted.finalizers = given.finalizers;
        }
        generation::keep_namespace_label(&mut wanted);
        self.replace(now, id, &stored, wanted)
    }

    pub(crate) fn find(&self, gvk: &Gvk, key: &ObjectKey) -> Result<(ObjectId, &Arc<Object>), ApiError> {
        self.store.find(gvk, key).ok_or_else(|| ApiError::not_found(gvk, &key.name))
    }

    fn remove(&mut self, now: SimTime, id: ObjectId, stored: &Object) -> Answer {
        self.priorities_may_change(&stored.gvk);
        match &stored.gvk {
            gvk if *gvk == kinds::POD_DISRUPTION_BUDGET => drop(self.budgets.remove(&stored.key)),
            gvk if *gvk == RESOURCE_QUOTA => drop(self.quotas.remove(&stored.key)),
            gvk if *gvk == LIMIT_RANGE => self.admission.limits.gone(&stored.key),
            gvk if *gvk == DEFINITION => self.admission.definitions.gone(stored),
            _ => {}
        }
        let removed = self.store.commit_removal(now, id);
        removed.ok_or_else(|| ApiError::not_found(&stored.gvk, &stored.key.name))
    }

    pub(crate) fn commit(&mut self, now: SimTime, id: Option<ObjectId>, object: Object) -> Arc<Object> {
        self.priorities_may_change(&object.gvk);
        if let Body::Other(_) = &object.body {
            match &object.gvk {
                gvk if *gvk == kinds::POD_DISRUPTION_BUDGET => drop(self.budgets.insert(object.key.clone())),
                gvk if *gvk == RESOURCE_QUOTA => drop(self.quotas.insert(object.key.clone())),
                gvk if *gvk == LIMIT_RANGE => self.admission.limits.seen(&object),
                gvk if *gvk == DEFINITION => self.admission.definitions.seen(&object),
                _ => {}
            }
        }
        self.store.commit(now, id, object)
    }

    fn priorities_may_change(&mut self, gvk: &Gvk) {
        if *gvk == kinds::PRIORITY_CLASS {
            self.admission.forget_specs();
        }
    }
}

pub(crate) fn wrong_uid(stored: &Object, asked: Uid) -> ApiError {
    let (plural, namespace) = (sk_core::registry::plural(&stored.gvk), stored.key.namespace.as_deref());
    let place = namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default();
    let what = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{plural}/{place}{}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {asked}, UID in object meta: {}",
        stored.key.name, stored.uid
    );
    ApiError::conflict(&stored.gvk, &stored.key.name, &what)
}

/// A deletion is meant for an object with another uid.
pub(crate) fn meant_for_another(stored: &Object, uid: &str) -> ApiError {
    let why = format!(
        "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and \
         then recreated",
        stored.uid
    );
    ApiError::conflict_on(&stored.gvk.group, &stored.gvk.kind, &stored.key.name, &why)
}

/// A deletion is meant for another version of an object.
pub(crate) fn wrong_version(stored: &Object, asked: &str) -> ApiError {
    let why = format!(
        "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({}). The object \
         might have been modified",
        stored.resource_version
    );
    ApiError::conflict_on(&stored.gvk.group, &stored.gvk.kind, &stored.key.name, &why)
}

/// What a patch may not change: who the object is, and whether it is going. A server names each twice
/// (`ValidateObjectMetaAccessorUpdate`).
fn refuse_other_identity(stored: &Object, patched: &serde_json::Value) -> Result<(), ApiError> {
    let before = stored.to_json();
    for name in ["uid", "deletionTimestamp"] {
        let (was, is) = (&before["metadata"][name], &patched["metadata"][name]);
        if was != is && is.is_string() {
            let wrong = Invalid::new(format!("metadata.{name}"), format!("Invalid value: {is}: field is immutable"));
            return Err(ApiError::invalid(&stored.gvk, &stored.key.name, &[wrong.clone(), wrong]));
        }
    }
    Ok(())
}

/// The same shared metadata was validated before.
fn same_metadata(one: &Object, other: &Object) -> bool {
    one.meta.labels.is_same(&other.meta.labels)
        && one.meta.annotations.is_same(&other.meta.annotations)
        && one.meta.finalizers == other.meta.finalizers
        && one.has_owners_of(other)
}

/// Adds labels, in place of those of the same name; a map that has them all stays shared.
pub(crate) fn add(labels: &mut crate::Labels, more: &crate::Labels) {
    if !more.is_empty() && more.iter().any(|(key, value)| labels.get(key) != Some(value)) {
        labels.make_mut().extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
}

/// A pod's grace period; other kinds have none. A pod that was never scheduled or has ended has none either.
fn grace_of(object: &Object, asked: Option<i64>) -> i64 {
    let Some(pod) = object.pod() else { return 0 };
    if pod.node_name.is_none() || pod.status.phase.is_final() {
        return 0;
    }
    let own = pod.spec.termination_grace_period_seconds.unwrap_or(admission::DEFAULT_GRACE_SECS);
    // A negative grace period means one second.
    match asked.unwrap_or(own) {
        ..0 => 1,
        seconds => seconds,
    }
}

/// Sets the `deletionTimestamp`. A second request can only shorten the grace period of the first, which counts
/// from the first request on (`BeforeDelete`).
fn mark_deleted(going: &mut Object, now: SimTime, grace_secs: i64) {
    match going.meta.deletion {
        None => {
            going.meta.deletion = Some(Deletion { at: now + SimDuration::from_secs(grace_secs), grace_secs });
            // Kubernetes counts the deletion as a change of what is desired.
            going.meta.generation += i64::from(going.meta.generation > 0);
        }
        Some(known) if grace_secs < known.grace_secs => {
            let at = known.at + SimDuration::from_secs(grace_secs - known.grace_secs);
            going.meta.deletion = Some(Deletion { at, grace_secs });
        }
        Some(_) => {}
    }
    if let Body::Namespace(namespace) = &mut going.body {
        namespace.phase = NamespacePhase::Terminating;
    }
}

fn drop_finalizers(object: &mut Object, names: &[&str]) {
    if object.meta.finalizers.iter().any(|known| names.contains(&known.as_str())) {
        let kept = object.meta.finalizers.iter().filter(|known| !names.contains(&known.as_str()));
        object.meta.finalizers = kept.cloned().collect();
    }
}

fn add_finalizer(object: &mut Object, name: &'static str) {
    if !object.meta.finalizers.iter().any(|known| known == name) {
        let known = object.meta.finalizers.iter().cloned();
        object.meta.finalizers = known.chain([SmolStr::new_static(name)]).collect();
    }
}

/// Has the object no finalizers left? Namespaces also have finalizers in their spec.
fn is_released(object: &Object) -> bool {
    let own = object.namespace().map_or(&[][..], |namespace| &namespace.finalizers);
    object.meta.finalizers.is_empty() && own.is_empty()
}
