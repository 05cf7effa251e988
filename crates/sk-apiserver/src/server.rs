//! The verbs: each checks, admits and commits.

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_core::rng::Stream;
use sk_core::{Gvk, ObjectKey, ObjectRef, SimTime, SmolStr};

use crate::admission::{self, Admission};
use crate::error::ApiError;
use crate::kinds::{self, Condition, NamespacePhase, Resource};
use crate::store::{MAX_OBJECTS, Store};
use crate::{AdmitPod, Body, DeleteOptions, Deletion, Labels, Meta, Notice, Object, Propagation, Request, Uid};

/// Kubernetes appends this many random characters to a `generateName`.
const GENERATED_SUFFIX_LEN: usize = 5;
/// And cuts the prefix so that the name keeps to this length.
const MAX_GENERATED_NAME_LEN: usize = 63;
/// How often a taken generated name is drawn anew (`registry/rest/create.go`, 1.36).
const GENERATED_NAME_ATTEMPTS: usize = 8;

/// The API server: objects, and the rules for changing them.
pub struct ApiServer {
    store: Store,
    admission: Admission,
    uids: Stream,
    suffixes: Stream,
}

type Answer = Result<Arc<Object>, ApiError>;

impl ApiServer {
    /// An empty server whose uids and names follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            store: Store::default(),
            admission: Admission::new(),
            uids: Stream::new(seed, "uid"),
            suffixes: Stream::new(seed, "name-suffix"),
        }
    }

    /// Lets `hook` see every new pod before it is stored.
    pub fn set_pod_hook(&mut self, hook: Box<dyn AdmitPod>) {
        self.admission.hook = Some(hook);
    }

    /// The objects, to read.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What was decided without knowing, and how often.
    pub fn notices(&self) -> &BTreeMap<Notice, u64> {
        &self.admission.notices
    }

    /// Answers one request at the time `now`: the object as committed (for a removal, as it last was), or why not.
    pub fn handle(&mut self, now: SimTime, request: Request) -> Answer {
        match request {
            Request::Create(object) => self.create(now, object),
            Request::Apply(object) => self.apply(now, object),
            Request::Update(object) => self.update(now, object),
            Request::UpdateStatus(object) => self.update_status(now, &object),
            Request::Bind { pod, uid, node } => self.bind(now, &pod, uid, node),
            Request::Evict { pod } => self.evict(now, pod),
            Request::Delete { target, options } => self.delete(now, &target, options),
            Request::FinalizeNamespace { name } => self.finalize_namespace(now, &name),
        }
    }

    fn create(&mut self, now: SimTime, mut object: Object) -> Answer {
        if self.store.is_full() {
            let why = format!("the embedded API server holds at most {MAX_OBJECTS} objects");
            return Err(ApiError::forbidden(&Resource::of(&object.gvk), &object.key.name, &why));
        }
        self.name(&mut object)?;
        if self.store.get(&object.gvk, &object.key).is_some() {
            return Err(ApiError::already_exists(&Resource::of(&object.gvk), &object.key.name));
        }
        object.meta.uid = Uid::from_random_bits(self.uids.next_u128());
        object.meta.created = now;
        object.meta.generation = 1;
        object.meta.deletion = None;
        self.admission.admit(&mut object, &self.store, now)?;
        Ok(self.commit(now, object))
    }

    /// Makes the name of an object that has only a prefix.
    fn name(&mut self, object: &mut Object) -> Result<(), ApiError> {
        if !object.key.name.is_empty() {
            return Ok(());
        }
        let Some(prefix) = object.meta.generate_name.clone() else {
            return Err(ApiError::bad_request("name or generateName is required"));
        };
        let prefix: String = prefix.chars().take(MAX_GENERATED_NAME_LEN - GENERATED_SUFFIX_LEN).collect();
        for _ in 0..GENERATED_NAME_ATTEMPTS {
            object.key.name = format!("{prefix}{}", self.suffixes.name_suffix(GENERATED_SUFFIX_LEN)).into();
            if self.store.get(&object.gvk, &object.key).is_none() {
                return Ok(());
            }
        }
        Err(ApiError::already_exists(&Resource::of(&object.gvk), &object.key.name))
    }

    fn apply(&mut self, now: SimTime, object: Object) -> Answer {
        let Some(stored) = self.store.get(&object.gvk, &object.key).cloned() else {
            return self.create(now, object);
        };
        let mut wanted = Object::clone(&stored);
        if let Body::Pod(_) = &wanted.body {
            // A pod's spec is not to be changed, and what admission wrote on it belongs to others than the one who applies.
            Arc::make_mut(&mut wanted.meta.labels).extend(owned(&object.meta.labels));
            Arc::make_mut(&mut wanted.meta.annotations).extend(owned(&object.meta.annotations));
        } else {
            wanted.meta.labels = object.meta.labels;
            wanted.meta.annotations = object.meta.annotations;
            wanted.body = with_status_of(object.body, &stored.body);
        }
        self.replace(now, &stored, wanted)
    }

    fn update(&mut self, now: SimTime, object: Object) -> Answer {
        let stored = self.stored(&object)?;
        let server_owned = &stored.meta;
        let wanted = Object {
            meta: Meta {
                uid: server_owned.uid,
                created: server_owned.created,
                generation: server_owned.generation,
                deletion: server_owned.deletion,
                ..object.meta
            },
            body: with_status_of(object.body, &stored.body),
            ..object
        };
        self.replace(now, &stored, wanted)
    }

    fn update_status(&mut self, now: SimTime, object: &Object) -> Answer {
        let stored = self.stored(object)?;
        let mut wanted = Object::clone(&stored);
        wanted.body = with_status_of(stored.body.clone(), &object.body);
        self.replace(now, &stored, wanted)
    }

    /// The object that an update speaks of, unless the update comes too late.
    fn stored(&self, object: &Object) -> Answer {
        let stored = self.get(&object.reference())?;
        let (stale_version, stale_uid) = (object.resource_version, object.meta.uid);
        if stale_version != 0 && stale_version != stored.resource_version {
            return Err(ApiError::stale(&Resource::of(&object.gvk), &object.key.name));
        }
        if stale_uid != Uid::default() && stale_uid != stored.meta.uid {
            return Err(self.wrong_uid(stored, stale_uid));
        }
        Ok(stored.clone())
    }

    /// Commits a changed object; one that says nothing new is not committed, as in Kubernetes.
    fn replace(&mut self, now: SimTime, stored: &Arc<Object>, mut wanted: Object) -> Answer {
        wanted.resource_version = stored.resource_version;
        if wanted == **stored {
            return Ok(stored.clone());
        }
        if !same_desire(&wanted.body, &stored.body) {
            admission::validate(&wanted)?;
            wanted.meta.generation += 1;
        }
        let finished = wanted.meta.finalizers.is_empty() && kinds_finalizers(&wanted).is_empty();
        if wanted.meta.deletion.is_some_and(|deletion| deletion.grace_secs == 0) && finished {
            return self.remove(now, &wanted.reference());
        }
        Ok(self.commit(now, wanted))
    }

    fn bind(&mut self, now: SimTime, key: &ObjectKey, uid: Uid, node: SmolStr) -> Answer {
        let stored = self.get(&ObjectRef::new(kinds::POD, key.clone()))?.clone();
        let resource = Resource::of(&kinds::POD);
        if stored.meta.uid != uid {
            return Err(self.wrong_uid(&stored, uid));
        }
        if stored.is_deleting() {
            let why = format!("pod {} is being deleted, cannot be assigned to a host", key.name);
            return Err(ApiError::conflict(&resource, &key.name, &why));
        }
        let mut bound = Object::clone(&stored);
        let Some(pod) = bound.pod_mut() else { return Err(ApiError::not_found(&resource, &key.name)) };
        if let Some(taken) = &pod.node_name {
            let why = format!("pod {} is already assigned to node \"{taken}\"", key.name);
            return Err(ApiError::conflict(&resource, &key.name, &why));
        }
        pod.node_name = Some(node);
        pod.status.set_condition(Condition::new("PodScheduled", true, now));
        Ok(self.commit(now, bound))
    }

    /// The eviction API: the pod learns why it goes, then it is deleted. Disruption budgets are not modelled yet.
    fn evict(&mut self, now: SimTime, key: ObjectKey) -> Answer {
        let target = ObjectRef::new(kinds::POD, key);
        let stored = self.get(&target)?.clone();
        if !stored.is_deleting() {
            let mut marked = Object::clone(&stored);
            if let Some(pod) = marked.pod_mut() {
                let condition = Condition::new("DisruptionTarget", true, now);
                pod.status.set_condition(condition.because("EvictionByEvictionAPI", "Eviction API: evicting"));
            }
            self.commit(now, marked);
        }
        self.delete(now, &target, DeleteOptions { uid: Some(stored.meta.uid), ..DeleteOptions::default() })
    }

    fn delete(&mut self, now: SimTime, target: &ObjectRef, options: DeleteOptions) -> Answer {
        let stored = self.get(target)?.clone();
        if let Some(uid) = options.uid.filter(|uid| *uid != stored.meta.uid) {
            return Err(self.wrong_uid(&stored, uid));
        }
        let mut going = Object::clone(&stored);
        match options.propagation {
            Propagation::Background => {}
            Propagation::Foreground => add_finalizer(&mut going, "foregroundDeletion"),
            Propagation::Orphan => add_finalizer(&mut going, "orphan"),
        }
        let grace_secs = grace_of(&stored, options.grace_secs);
        if grace_secs == 0 && going.meta.finalizers.is_empty() && kinds_finalizers(&going).is_empty() {
            return self.remove(now, target);
        }
        let at = now + sk_core::SimDuration::from_secs(grace_secs);
        // A second request can only shorten the grace of the first.
        if going.meta.deletion.is_none_or(|deletion| grace_secs < deletion.grace_secs) {
            going.meta.deletion = Some(Deletion { at, grace_secs });
            // Kubernetes counts the deletion as a change of what is desired.
            going.meta.generation += 1;
        }
        if let Body::Namespace(namespace) = &mut going.body {
            namespace.phase = NamespacePhase::Terminating;
        }
        if going == *stored { Ok(stored) } else { Ok(self.commit(now, going)) }
    }

    fn finalize_namespace(&mut self, now: SimTime, name: &SmolStr) -> Answer {
        let stored = self.get(&ObjectRef::new(kinds::NAMESPACE, ObjectKey::cluster(name.clone())))?.clone();
        let mut done = Object::clone(&stored);
        if let Body::Namespace(namespace) = &mut done.body {
            namespace.finalizers.retain(|finalizer| *finalizer != kinds::KUBERNETES_FINALIZER);
        }
        self.replace(now, &stored, done)
    }

    fn get(&self, target: &ObjectRef) -> Result<&Arc<Object>, ApiError> {
        let stored = self.store.get(&target.gvk, &target.key);
        stored.ok_or_else(|| ApiError::not_found(&Resource::of(&target.gvk), &target.key.name))
    }

    fn wrong_uid(&self, stored: &Object, asked: Uid) -> ApiError {
        let what =
            format!("Precondition failed: UID in precondition: {asked}, UID in object meta: {}", stored.meta.uid);
        ApiError::conflict(&Resource::of(&stored.gvk), &stored.key.name, &what)
    }

    fn remove(&mut self, now: SimTime, target: &ObjectRef) -> Answer {
        self.priorities_may_change(&target.gvk);
        let removed = self.store.commit_removal(now, target);
        removed.ok_or_else(|| ApiError::not_found(&Resource::of(&target.gvk), &target.key.name))
    }

    fn commit(&mut self, now: SimTime, object: Object) -> Arc<Object> {
        self.priorities_may_change(&object.gvk);
        self.store.commit(now, object)
    }

    fn priorities_may_change(&mut self, gvk: &Gvk) {
        if *gvk == kinds::PRIORITY_CLASS {
            self.admission.forget_specs();
        }
    }
}

fn owned(labels: &Labels) -> impl Iterator<Item = (SmolStr, SmolStr)> {
    labels.iter().map(|(key, value)| (key.clone(), value.clone()))
}

/// How long a pod gets to stop; everything else goes at once. A pod that was never placed or has ended needs no time.
fn grace_of(object: &Object, asked: Option<i64>) -> i64 {
    let Some(pod) = object.pod() else { return 0 };
    if pod.node_name.is_none() || pod.status.phase.is_final() {
        return 0;
    }
    let own = pod.spec.termination_grace_period_seconds.unwrap_or(admission::DEFAULT_GRACE_SECS);
    asked.unwrap_or(own).max(0)
}

fn add_finalizer(object: &mut Object, name: &'static str) {
    if !object.meta.finalizers.iter().any(|known| known == name) {
        object.meta.finalizers.push(SmolStr::new_static(name));
    }
}

/// Finalizers outside the metadata: only namespaces have them.
fn kinds_finalizers(object: &Object) -> &[SmolStr] {
    if let Body::Namespace(namespace) = &object.body { &namespace.finalizers } else { &[] }
}

/// `body` with its status taken from `other`, which is of the same kind.
fn with_status_of(body: Body, other: &Body) -> Body {
    match (body, other) {
        (Body::Pod(mut pod), Body::Pod(other)) => {
            pod.status.clone_from(&other.status);
            // A binding is not undone by an update.
            pod.node_name = pod.node_name.or_else(|| other.node_name.clone());
            Body::Pod(pod)
        }
        (Body::Node(mut node), Body::Node(other)) => {
            node.status.clone_from(&other.status);
            Body::Node(node)
        }
        (Body::Namespace(mut namespace), Body::Namespace(other)) => {
            namespace.phase = other.phase;
            // Only finalising changes these.
            namespace.finalizers.clone_from(&other.finalizers);
            Body::Namespace(namespace)
        }
        (Body::Deployment(mut deployment), Body::Deployment(other)) => {
            deployment.status = other.status.clone();
            Body::Deployment(deployment)
        }
        (Body::ReplicaSet(mut set), Body::ReplicaSet(other)) => {
            set.status = other.status.clone();
            Body::ReplicaSet(set)
        }
        (Body::Other(mut object), Body::Other(other)) => {
            object.status.clone_from(&other.status);
            Body::Other(object)
        }
        // An object of another kind has no status to take.
        (body, _) => body,
    }
}

/// Do both bodies desire the same? Then the generation stays.
fn same_desire(one: &Body, other: &Body) -> bool {
    match (one, other) {
        (Body::Pod(one), Body::Pod(other)) => {
            (Arc::ptr_eq(&one.spec, &other.spec) || one.spec == other.spec) && one.node_name == other.node_name
        }
        (Body::Node(one), Body::Node(other)) => one.spec == other.spec,
        (Body::Namespace(one), Body::Namespace(other)) => one.finalizers == other.finalizers,
        (Body::Deployment(one), Body::Deployment(other)) => one.spec == other.spec,
        (Body::ReplicaSet(one), Body::ReplicaSet(other)) => one.spec == other.spec,
        (Body::Other(one), Body::Other(other)) => one.fields == other.fields,
        _ => false,
    }
}
