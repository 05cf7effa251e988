//! Watches a running cluster: every event of several watches, and from them what exists now.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::core::TypeMeta;
use serde_json::Value;
use sk_core::{Gvk, ObjectKey, ObjectRef, SimDuration};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::RecordError;
use crate::canonical::{Change, Observation};
use crate::control_plane::ControlError;
use crate::control_plane::access::dynamic_api;
use crate::scenario::Condition;

/// Events kept of one scenario. A pod's life is about ten; ten thousand pods are more than a scenario should have.
const MAX_OBSERVATIONS: usize = 100_000;
/// Events under way from the watches to here; more wait in the connection.
const CHANNEL_SLOTS: usize = 1_024;
/// How long the API server keeps a watch open. The client allows no more than 295 s, and a scenario takes far less.
const WATCH_SECS: u32 = 290;

/// A view of the cluster that follows it.
pub(super) struct Live {
    incoming: mpsc::Receiver<Result<Observation, RecordError>>,
    observations: Vec<Observation>,
    existing: BTreeMap<ObjectRef, Value>,
    began: Instant,
    last_change: Instant,
    /// The watches; they end when this is dropped.
    _watches: JoinSet<()>,
}

impl Live {
    /// Lists and then watches all objects of these kinds.
    pub(super) async fn of(client: &Client, kinds: &[Gvk]) -> Result<Self, RecordError> {
        let (outgoing, incoming) = mpsc::channel(CHANNEL_SLOTS);
        let began = Instant::now();
        let mut live = Self {
            incoming,
            observations: Vec::new(),
            existing: BTreeMap::new(),
            began,
            last_change: began,
            _watches: JoinSet::new(),
        };
        for gvk in kinds {
            let api = dynamic_api(client.clone(), gvk, None).await?;
            let step = format!("list {gvk}");
            let listed = api.list(&ListParams::default()).await.map_err(ControlError::request(step))?;
            for object in listed.items {
                live.take_in(observation(gvk, Change::Added, object, 0))?;
            }
            let version = listed.metadata.resource_version.unwrap_or_default();
            live._watches.spawn(follow(gvk.clone(), api, version, outgoing.clone(), began));
        }
        Ok(live)
    }

    /// How long it has been watched, in milliseconds.
    pub(super) fn now_ms(&self) -> u64 {
        millis_since(self.began)
    }

    /// Everything seen so far.
    pub(super) fn into_observations(self) -> Vec<Observation> {
        self.observations
    }

    /// Takes in what happens for so long.
    pub(super) async fn follow_for(&mut self, span: Duration) -> Result<(), RecordError> {
        let end = Instant::now() + span;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            self.follow_once(left).await?;
        }
        Ok(())
    }

    /// Takes in the next event, if one comes in time.
    pub(super) async fn follow_once(&mut self, limit: Duration) -> Result<(), RecordError> {
        match tokio::time::timeout(limit, self.incoming.recv()).await {
            Ok(Some(event)) => self.take_in(event?),
            // A channel without senders has told of its failure before.
            Ok(None) | Err(_) => Ok(()),
        }
    }

    /// Something was just done: what follows from it has yet to be seen, so it is not quiet.
    pub(super) fn expect_change(&mut self) {
        self.last_change = Instant::now();
    }

    /// Does a condition hold now? Conditions on created objects are asked with [`Live::field`] instead.
    pub(super) fn holds(&self, condition: &Condition) -> bool {
        match condition {
            Condition::Field(field) => match (self.field(&field.of.0, &field.at), &field.is) {
                (Some(value), Some(wanted)) => value == wanted,
                (found, _) => found.is_some(),
            },
            Condition::Gone(target) => !self.existing.contains_key(&target.0),
            Condition::Count(count) => self.existing.keys().filter(|object| object.gvk == count.of).count() == count.is,
            Condition::Quiet(span) => self.last_change.elapsed() >= duration(*span),
            Condition::Each(_) => true,
        }
    }

    /// A field of an existing object.
    pub(super) fn field(&self, object: &ObjectRef, pointer: &str) -> Option<&Value> {
        self.existing.get(object)?.pointer(pointer)
    }

    /// The uid of an existing object.
    pub(super) fn uid(&self, object: &ObjectRef) -> Option<String> {
        self.field(object, "/metadata/uid").and_then(Value::as_str).map(str::to_owned)
    }

    fn take_in(&mut self, observation: Observation) -> Result<(), RecordError> {
        if self.observations.len() >= MAX_OBSERVATIONS {
            return Err(RecordError::TooMuch(MAX_OBSERVATIONS));
        }
        if let Some(object) = reference(&observation.object) {
            match observation.change {
                Change::Deleted => drop(self.existing.remove(&object)),
                Change::Added | Change::Modified => drop(self.existing.insert(object, observation.object.clone())),
            }
        }
        self.last_change = Instant::now();
        self.observations.push(observation);
        Ok(())
    }
}

/// A scenario's span on the real clock; none is negative.
pub(super) fn duration(span: SimDuration) -> Duration {
    Duration::from_micros(u64::try_from(span.as_micros()).unwrap_or(0))
}

/// Sends every event of a watch, and in the end that it ended: a gap in a recording must not go unnoticed.
async fn follow(
    gvk: Gvk,
    api: Api<DynamicObject>,
    version: String,
    outgoing: mpsc::Sender<Result<Observation, RecordError>>,
    began: Instant,
) {
    let ended = |reason: String| RecordError::Watch { kind: gvk.clone(), reason };
    let mut events = match api.watch(&WatchParams::default().timeout(WATCH_SECS), &version).await {
        Ok(events) => events.boxed(),
        Err(error) => return drop(outgoing.send(Err(ended(error.to_string()))).await),
    };
    let reason = loop {
        let (change, object) = match events.try_next().await {
            Ok(Some(WatchEvent::Added(object))) => (Change::Added, object),
            Ok(Some(WatchEvent::Modified(object))) => (Change::Modified, object),
            Ok(Some(WatchEvent::Deleted(object))) => (Change::Deleted, object),
            Ok(Some(WatchEvent::Bookmark(_))) => continue,
            Ok(Some(WatchEvent::Error(status))) => break status.message,
            Ok(None) => break format!("the server closes a watch after {WATCH_SECS} s; make the scenario shorter"),
            Err(error) => break error.to_string(),
        };
        if outgoing.send(Ok(observation(&gvk, change, object, millis_since(began)))).await.is_err() {
            return;
        }
    };
    let _ = outgoing.send(Err(ended(reason))).await;
}

fn observation(gvk: &Gvk, change: Change, mut object: DynamicObject, at_ms: u64) -> Observation {
    // The items of a list do not say what they are.
    object.types = Some(TypeMeta { api_version: gvk.api_version(), kind: gvk.kind.to_string() });
    let object = serde_json::to_value(object).expect("what came as JSON can be written as JSON");
    Observation { change, object, at_ms }
}

fn millis_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Which object a JSON value is.
pub(super) fn reference(object: &Value) -> Option<ObjectRef> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let gvk = Gvk::from_api_version(text("/apiVersion")?, text("/kind")?).ok()?;
    let name = text("/metadata/name")?;
    let key = match text("/metadata/namespace") {
        Some(namespace) => ObjectKey::namespaced(namespace, name),
        None => ObjectKey::cluster(name),
    };
    Some(ObjectRef::new(gvk, key))
}
