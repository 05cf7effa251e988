//! The state that all parts of one run on a cluster share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use serde_json::{Value, json};
use sk_core::{ObjectKey, ObjectRef};
use sk_engine::api::{Change, Object};
use sk_store::trace::TracerConfig;
use tokio::sync::mpsc;

use sk_replay::record::Seen;

use super::applier::{Applier, Parted};
use super::counters::Counters;
use super::kinds::Kinds;
use super::pace::Pace;
use super::request::{Refusal, RetryPolicy};
use super::role_binding::RoleBinder;
use super::stop::Stop;
use super::virtualise::Virtualiser;

/// Bare pods that are kept to be made again when they are interrupted: 20,000 of 5 KB are 100 MB. Pods beyond that are
/// not made again.
const MAX_BARE_PODS: usize = 20_000;

/// A message to the recorder.
#[derive(Debug)]
pub(crate) enum RecorderMessage {
    /// Something changed.
    Change(Seen),
    /// Nothing more is to be recorded.
    End,
}

/// What all parts of a run share.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) virtualiser: Virtualiser,
    /// What is bound in new namespaces.
    pub(crate) role_binder: RoleBinder,
    pub(crate) config: TracerConfig,
    pub(crate) kinds: Kinds,
    pub(crate) counters: Counters,
    /// For everything that the replay asks of the API server.
    pub(crate) retry: RetryPolicy,
    /// Namespaces that the run itself has deleted.
    pub(crate) parted: Parted,
    pub(crate) pace: Pace,
    pub(crate) stop: Stop,
    /// To the recorder.
    pub(crate) recorder: mpsc::Sender<RecorderMessage>,
    /// Stop at the first refusal?
    pub(crate) stop_on_refusal: bool,
    /// Bare pods that should be there, if interrupted ones are to be made again.
    pub(crate) bare_pods: Option<Mutex<BTreeMap<ObjectKey, Value>>>,
}

impl Context {
    pub(crate) fn applier(&self) -> Applier<'_> {
        Applier {
            client: &self.client,
            virtualiser: &self.virtualiser,
            role_binder: &self.role_binder,
            retry: &self.retry,
            parted: &self.parted,
        }
    }

    /// Counts a refusal; the run stops if that was asked for.
    pub(crate) fn refused(&self, object: &ObjectRef, refusal: &Refusal) {
        self.counters.refused(object, &refusal.to_string());
        if self.stop_on_refusal {
            self.stop.ask(&format!("the API server refused {object}: {refusal}"));
        }
    }

    /// Remembers a bare pod that should be there from now on, or no longer.
    pub(crate) fn expect_pod(&self, object: &ObjectRef, key: &ObjectKey, value: Option<&Value>) {
        let is_pod = object.gvk.group.is_empty() && object.gvk.kind == "Pod";
        let Some(pods) = self.bare_pods.as_ref().filter(|_| is_pod) else { return };
        let mut pods = pods.lock().unwrap_or_else(PoisonError::into_inner);
        match value {
            Some(value) if pods.len() < MAX_BARE_PODS => drop(pods.insert(key.clone(), value.clone())),
            Some(_) => {}
            None => drop(pods.remove(key)),
        }
    }

    /// The bare pod that should be there under this name.
    pub(crate) fn expected_pod(&self, key: &ObjectKey) -> Option<Value> {
        self.bare_pods.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Tells the recorder how many replicas an object wants from now on; `None`: it is gone, or never wanted any.
    pub(crate) async fn tell_replicas(&self, object: &ObjectRef, replicas: Option<i64>) {
        let mut metadata = json!({"name": object.key.name});
        if let Some(namespace) = &object.key.namespace {
            metadata["namespace"] = namespace.as_str().into();
        }
        let value = json!({
            "apiVersion": object.gvk.api_version(), "kind": object.gvk.kind, "metadata": metadata,
            "spec": {"replicas": replicas.unwrap_or(0)},
        });
        let change = if replicas.is_some() { Change::Modified } else { Change::Deleted };
        // A kind whose spec is of another shape has no replicas to tell of.
        let Ok(object) = Object::from_json(value) else { return };
        if object.pod().is_some() || object.node().is_some() {
            return;
        }
        self.record(Seen { at: self.pace.now(), change, object: Arc::new(object) }).await;
    }

    /// Tells the recorder of a change. A recorder that cannot write has stopped the run and needs no more.
    pub(crate) async fn record(&self, event: Seen) {
        let _ = self.recorder.send(RecorderMessage::Change(event)).await;
    }
}
