//! Applies and deletes objects in the cluster, and touches nothing that the run did not create.
//!
//! Inside namespaces that the run created, server-side apply is safe. A namespace or another cluster-scoped object is
//! read first: if it exists and the run's root does not own it, it is left alone. Applying an ownerReference would
//! adopt it, and garbage collection would then delete somebody else's object.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use sk_api::simulation::names;
use sk_core::{ObjectKey, ObjectRef, SmolStr};

use super::kinds::Kind;
use super::request::{Refusal, RetryPolicy, with_retries};
use super::role_binding::RoleBinder;
use super::virtualise::Virtualiser;

/// How long an operation waits for an object of the run that is going, so that it can be made again, and how often it
/// looks. Emptying a namespace takes seconds; a finalizer of somebody else's could hold it for ever.
const GOING_PATIENCE: Duration = Duration::from_secs(120);
const GOING_LOOK: Duration = Duration::from_millis(200);

/// What came of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// The object is as in the trace.
    Yes,
    /// A foreign object has that name.
    LeftAlone,
    /// An earlier object of the run stands there and is going; nothing can be made in its place yet.
    Going,
}

/// What the run does with.
pub(crate) struct Applier<'r> {
    pub(crate) client: &'r Client,
    pub(crate) virtualiser: &'r Virtualiser,
    pub(crate) role_binder: &'r RoleBinder,
    pub(crate) retry: &'r RetryPolicy,
    pub(crate) parted: &'r Parted,
}

/// The uids of namespaces that the run itself has deleted and that are still going, so that it can tell when somebody else
/// deletes one.
pub(crate) type Parted = Mutex<BTreeSet<String>>;

impl Applier<'_> {
    fn api(&self, kind: &Kind, key: &ObjectKey) -> Api<DynamicObject> {
        match &key.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &kind.resource),
            None => Api::all_with(self.client.clone(), &kind.resource),
        }
    }

    /// Creates the object, or makes it this, once an earlier one of that name is gone. `value` is virtualised.
    pub(crate) async fn apply(&self, kind: &Kind, key: &ObjectKey, value: &Value) -> Result<Done, Refusal> {
        let began = Instant::now();
        loop {
            match self.apply_now(kind, key, value).await? {
                Done::Going => self.wait_until_gone(&self.api(kind, key), key, began).await?,
                done => return Ok(done),
            }
        }
    }

    /// Like [`Applier::apply`], but does not wait for an earlier object that is going.
    pub(crate) async fn apply_now(&self, kind: &Kind, key: &ObjectKey, value: &Value) -> Result<Done, Refusal> {
        let api = self.api(kind, key);
        if kind.is_namespaced {
            return self.apply_ours(&api, kind, key, value).await;
        }
        let done = match with_retries(self.retry, || api.get_metadata_opt(&key.name)).await? {
            Some(there) if !self.is_ours(&there) => Done::LeftAlone,
            Some(there) if is_going(&there) => Done::Going,
            Some(_) => self.apply_ours(&api, kind, key, value).await?,
            None => self.create(&api, value).await?,
        };
        self.open(kind, key, done).await
    }

    /// Sees to it that what is to be put into a namespace of the run can be.
    async fn open(&self, kind: &Kind, key: &ObjectKey, done: Done) -> Result<Done, Refusal> {
        if done == Done::Yes && kind.resource.group.is_empty() && kind.resource.kind == "Namespace" {
            self.role_binder.bind(self.client, self.retry, &key.name).await?;
        }
        Ok(done)
    }

    async fn wait_until_gone(&self, api: &Api<DynamicObject>, key: &ObjectKey, began: Instant) -> Result<(), Refusal> {
        loop {
            let there = with_retries(self.retry, || api.get_metadata_opt(&key.name)).await?;
            let Some(there) = there.filter(is_going) else { return Ok(()) };
            let finalizers = there.finalizers().join(", ");
            if began.elapsed() >= GOING_PATIENCE {
                return Err(Refusal::StillGoing { waited: GOING_PATIENCE, finalizers });
            }
            if !self.retry.pause(GOING_LOOK).await {
                return Err(Refusal::Stopped { last: format!("an earlier one is going, held by {finalizers}") });
            }
        }
    }

    /// Create, unlike apply, fails if the object exists.
    async fn create(&self, api: &Api<DynamicObject>, value: &Value) -> Result<Done, Refusal> {
        let object: DynamicObject =
            serde_json::from_value(value.clone()).map_err(|error| Refusal::Malformed(error.to_string()))?;
        let parameters = PostParams { field_manager: Some(names::REPLAY_MANAGER.to_owned()), ..PostParams::default() };
        match with_retries(self.retry, || api.create(&parameters, &object)).await {
            Ok(_) => Ok(Done::Yes),
            // Perhaps by us, if the first try's answer was lost.
            Err(refusal) if refusal.is_already_there() => {
                let name = object.name_any();
                let there = with_retries(self.retry, || api.get_metadata_opt(&name)).await?;
                Ok(if there.is_some_and(|there| self.is_ours(&there)) { Done::Yes } else { Done::LeftAlone })
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Applies, and looks at the answer: an object that is going takes changes and goes all the same.
    async fn apply_ours(
        &self,
        api: &Api<DynamicObject>,
        kind: &Kind,
        key: &ObjectKey,
        value: &Value,
    ) -> Result<Done, Refusal> {
        let parameters = PatchParams::apply(names::REPLAY_MANAGER).force();
        let patch = Patch::Apply(value);
        let applied = with_retries(self.retry, || api.patch_metadata(&key.name, &parameters, &patch)).await;
        match applied {
            Ok(there) => Ok(if is_going(&there) { Done::Going } else { Done::Yes }),
            Err(refusal @ Refusal::Server { code: 422, .. }) => {
                // What may not be changed may be made anew when the earlier one is gone.
                let there = with_retries(self.retry, || api.get_metadata_opt(&key.name)).await?;
                match there {
                    Some(there) if is_going(&there) => Ok(Done::Going),
                    // A pod's spec hardly changes after creation, and what admission added to it counts as a change.
                    Some(_) if kind.resource.kind == "Pod" => self.relabel(api, key, value).await,
                    // If there is no such object yet, the refusal says why.
                    _ => Err(refusal),
                }
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Changes of a pod what can be changed.
    async fn relabel(&self, api: &Api<DynamicObject>, key: &ObjectKey, value: &Value) -> Result<Done, Refusal> {
        let metadata = &value["metadata"];
        let patch = Patch::Merge(json!({
            "metadata": {"labels": metadata["labels"], "annotations": metadata["annotations"]},
        }));
        let parameters = PatchParams::default();
        with_retries(self.retry, || api.patch_metadata(&key.name, &parameters, &patch)).await.map(|_| Done::Yes)
    }

    /// Deletes the object. What was recorded is that it was gone, so pods get no grace; what belonged to it is collected.
    pub(crate) async fn delete(&self, kind: &Kind, key: &ObjectKey) -> Result<Done, Refusal> {
        let api = self.api(kind, key);
        let mut parameters = DeleteParams::background();
        if !kind.is_namespaced {
            match with_retries(self.retry, || api.get_metadata_opt(&key.name)).await? {
                None => return Ok(Done::Yes),
                Some(there) if !self.is_ours(&there) => return Ok(Done::LeftAlone),
                Some(there) => {
                    if let Some(uid) = there.uid().filter(|_| kind.resource.kind == "Namespace") {
                        self.parted.lock().unwrap_or_else(PoisonError::into_inner).insert(uid);
                    }
                    parameters = parameters.preconditions(uid_is(&there));
                }
            }
        }
        if kind.resource.kind == "Pod" {
            parameters = parameters.grace_period(0);
        }
        match with_retries(self.retry, || api.delete(&key.name, &parameters)).await {
            Err(refusal) if !refusal.is_not_found() => Err(refusal),
            _ => Ok(Done::Yes),
        }
    }

    /// Was it made by this run?
    fn is_ours(&self, object: &PartialObjectMeta<DynamicObject>) -> bool {
        let label = object.labels().get(names::SIMULATION_LABEL);
        let is_root = |owner: &k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference| {
            owner.uid == self.virtualiser.root.uid.as_str()
        };
        label.is_some_and(|name| *name == self.virtualiser.simulation.as_str())
            && object.owner_references().iter().any(is_root)
    }
}

/// Was it deleted, and is it still there?
fn is_going(object: &PartialObjectMeta<DynamicObject>) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

fn uid_is(object: &PartialObjectMeta<DynamicObject>) -> kube::api::Preconditions {
    kube::api::Preconditions { uid: object.uid(), resource_version: None }
}

/// Namespaces of the trace as the run finds them.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    /// Made by the run.
    pub(crate) ours: BTreeSet<SmolStr>,
    /// Somebody else's, under the name that ours would have.
    pub(crate) foreign: BTreeSet<SmolStr>,
}

/// Is it a namespace?
pub(crate) fn is_namespace(object: &ObjectRef) -> bool {
    object.gvk.group.is_empty() && object.gvk.kind == "Namespace"
}
