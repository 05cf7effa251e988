//! Server-side apply of a list of objects, with a list of changes.
//!
//! Objects are applied in the given order; the caller puts namespaces and CRDs first. A field of another field manager
//! is a conflict that names the manager, unless `--force` is set.

use std::fmt;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::runtime::{conditions, wait};
use serde_json::Value;
use sk_core::Gvk;

use super::kinds::{KindError, Kinds};
use super::{Cluster, words};

/// The field manager of objects that belong to neither installation.
pub(crate) const FIELD_MANAGER: &str = "skctl";
/// How long a new kind may take until it can be used; it is a second or two on a busy server.
const ESTABLISH_LIMIT: Duration = Duration::from_secs(60);

/// The outcome of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Created,
    Changed,
    Unchanged,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
        })
    }
}

/// How to apply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// The field manager. Two installations that share an object, their namespace, must not be the same owner, or each
    /// would take away what only the other has.
    pub(crate) manager: &'static str,
    pub(crate) dry_run: bool,
    pub(crate) force: bool,
}

/// Why an object was not applied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    #[error("{object} is not a Kubernetes object: {reason}; please report this")]
    NoObject { object: String, reason: String },
    #[error("the cluster does not know the kind {kind}, so {object} cannot be created; {advice}")]
    UnknownKind { kind: String, object: String, advice: &'static str },
    #[error("you may not apply {object}: {message}; ask somebody who may, or print it with `skctl manifests`")]
    Forbidden { object: String, message: String },
    #[error("{object} was changed by another field manager: {message}; --force overwrites those fields")]
    Conflict { object: String, message: String },
    #[error("the server refuses {object}: {message}")]
    Refused { object: String, message: String },
    #[error("cannot apply {object}: {reason}")]
    Request { object: String, reason: String },
    #[error("the kind {kind} was not ready after {limit} s; run it again", limit = ESTABLISH_LIMIT.as_secs())]
    NotEstablished { kind: String },
}

/// Applies objects one after the other.
pub(crate) struct Applier<'a> {
    cluster: &'a Cluster,
    manner: Manner,
    kinds: Kinds<'a>,
    /// Namespaces that a dry run has only pretended to create; what belongs in them cannot be asked about.
    pretended: Vec<String>,
}

impl<'a> Applier<'a> {
    pub(crate) fn new(cluster: &'a Cluster, manner: Manner) -> Self {
        Self { cluster, manner, kinds: Kinds::of(cluster), pretended: Vec::new() }
    }

    /// Applies one object. A new kind is waited for, so that the next object may be of it.
    pub(crate) async fn apply(&mut self, object: &Value) -> Result<Change, ApplyError> {
        let named = name_of(object);
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let no_object = |reason: &str| ApplyError::NoObject { object: named.clone(), reason: reason.to_owned() };
        let kind =
            Gvk::from_api_version(text("/apiVersion"), text("/kind")).map_err(|error| no_object(&error.to_string()))?;
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        if self.manner.dry_run && self.pretended.iter().any(|pretended| pretended == namespace) {
            return Ok(Change::Created);
        }
        let api = self.api(&kind, namespace, &named).await?;
        let failed = |error: kube::Error| failure(&named, error);
        let before = api.get_metadata_opt(name).await.map_err(failed)?;
        let mut params = PatchParams::apply(self.manner.manager);
        params.dry_run = self.manner.dry_run;
        params.force = self.manner.force;
        let after = api.patch(name, &params, &Patch::Apply(object)).await.map_err(failed)?;
        let change = match before {
            None => Change::Created,
            Some(before) if before.metadata.resource_version == after.metadata.resource_version => Change::Unchanged,
            Some(_) => Change::Changed,
        };
        match kind.kind.as_str() {
            "CustomResourceDefinition" if !self.manner.dry_run => self.until_established(name).await?,
            "Namespace" if self.manner.dry_run && change == Change::Created => self.pretended.push(name.to_owned()),
            _ => {}
        }
        Ok(change)
    }

    async fn api(&mut self, kind: &Gvk, namespace: &str, object: &str) -> Result<Api<DynamicObject>, ApplyError> {
        self.kinds.api(kind, namespace).await.map_err(|error| match error {
            KindError::Unknown(kind) => {
                ApplyError::UnknownKind { kind: kind.to_string(), object: object.to_owned(), advice: advice(&kind) }
            }
            KindError::Request(error) => failure(object, *error),
        })
    }

    async fn until_established(&self, name: &str) -> Result<(), ApplyError> {
        let api: Api<CustomResourceDefinition> = Api::all(self.cluster.client.clone());
        let established = wait::await_condition(api, name, conditions::is_crd_established());
        match tokio::time::timeout(ESTABLISH_LIMIT, established).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(ApplyError::NotEstablished { kind: name.to_owned() }),
        }
    }
}

/// What to do about a kind that the cluster lacks.
fn advice(kind: &Gvk) -> &'static str {
    if kind.group.ends_with("kwok.x-k8s.io") {
        "install KWOK first, with its kinds"
    } else {
        "its version of Kubernetes may be too old"
    }
}

fn failure(object: &str, error: kube::Error) -> ApplyError {
    let object = object.to_owned();
    match error {
        kube::Error::Api(status) => {
            let message = status.message.clone();
            match status.code {
                403 => ApplyError::Forbidden { object, message },
                409 => ApplyError::Conflict { object, message },
                _ => ApplyError::Refused { object, message },
            }
        }
        error => ApplyError::Request { object, reason: words(&error) },
    }
}

/// `Deployment simkube/sk-tracer`, for messages.
pub(crate) fn name_of(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let slash = if text("/metadata/namespace").is_empty() { "" } else { "/" };
    format!("{} {}{slash}{}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}
