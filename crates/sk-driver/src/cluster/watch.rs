//! Watches the run's pods and the virtual nodes, and acts on what it sees.
//!
//! A pod belongs to the run if it has both labels of a replayed object and is in one of the run's namespaces. (The
//! driver's own pod has the Simulation's label too; it is neither recorded nor patched.) Changes go to the recorder.
//! Pods that the webhook did not see get their delays and lifetimes late; running pods get the time at which they
//! complete; interrupted bare pods are created again if `rescheduleInterruptedBarePods` is set. If somebody deletes a
//! namespace of the run, that is recorded: its objects are missing through no fault of the replay.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::{Value, json};
use sk_api::simulation::names;
use sk_core::{Gvk, ObjectKey};
use tokio::sync::mpsc;

use super::context::Context;
use super::informer::{Effect, Informer, Pod, Stamp};
use super::request::{whole_story, with_retries};
use super::webhook::annotations_of;
use sk_replay::mutate::Mutator;

/// Patches of pods under way at a time.
const PATCHES: usize = 16;
/// Patches that wait: below 1 KB each, so 10 MB. A watch that fills it waits; pods then end later than they should.
const MAX_CHORES: usize = 10_000;

/// What is to be done to a pod because of what was seen.
type Chore = Effect;

/// Kinds whose objects are followed: each says once that it has seen everything that was there.
pub(crate) const FOLLOWED: usize = 2;

/// Follows pods, nodes and namespaces until it is dropped.
pub(crate) async fn follow(context: Arc<Context>, mutator: Arc<Mutex<Mutator>>, listed: mpsc::Sender<()>) {
    let (chores, waiting) = mpsc::channel(MAX_CHORES);
    let waiting = tokio::sync::Mutex::new(waiting);
    let ours = context.virtualiser.selector();
    let virtual_nodes = format!("{}={}", names::NODE_SELECTOR.0, names::NODE_SELECTOR.1);
    let workers = (0..PATCHES).map(|_| async {
        while let Some(chore) = next(&waiting).await {
            attend(&context, &mutator, chore).await;
        }
    });
    tokio::join!(
        follow_kind(&context, "Pod", &ours, &chores, &listed),
        follow_kind(&context, "Node", &virtual_nodes, &chores, &listed),
        follow_namespaces(&context, &ours),
        futures::future::join_all(workers),
    );
}

async fn next(chores: &tokio::sync::Mutex<mpsc::Receiver<Chore>>) -> Option<Chore> {
    chores.lock().await.recv().await
}

/// Follows all objects of a kind with these labels.
async fn follow_kind(
    context: &Context,
    kind: &str,
    labels: &str,
    chores: &mpsc::Sender<Chore>,
    listed: &mpsc::Sender<()>,
) {
    let resource = ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk("", "v1", kind));
    let api: Api<DynamicObject> = Api::all_with(context.client.clone(), &resource);
    let mut informer = Informer::new(context.virtualiser.clone());
    let mut events = watcher(api, watcher::Config::default().labels(labels)).default_backoff().boxed();
    while let Some(event) = events.next().await {
        let at = context.pace.now();
        let is_listed = matches!(event, Ok(watcher::Event::InitDone));
        let effects = match event {
            Ok(watcher::Event::Init) => {
                informer.begin_list();
                continue;
            }
            Ok(watcher::Event::InitDone) => Ok(informer.end_list(at)),
            Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => {
                informer.see(value_of(&object, kind), at)
            }
            Ok(watcher::Event::Delete(object)) => informer.lose(value_of(&object, kind), at),
            Err(error) => {
                context.retry.note_watch(&error);
                tracing::warn!(kind, "the watch was interrupted and starts again: {}", whole_story(&error));
                continue;
            }
        };
        match effects {
            Ok(effects) => {
                pass_on(context, effects, chores).await;
                if is_listed {
                    // Only the first is waited for.
                    let _ = listed.try_send(());
                }
            }
            Err(error) => {
                context.counters.count(|totals| totals.unreadable += 1);
                tracing::warn!(kind, "cannot parse a watched object: {error}");
            }
        }
    }
}

/// Notes namespaces of the run that somebody else deletes.
async fn follow_namespaces(context: &Context, labels: &str) {
    let api: Api<PartialObjectMeta<Namespace>> = Api::all(context.client.clone());
    let mut events = watcher(api, watcher::Config::default().labels(labels)).default_backoff().boxed();
    let mut noted = BTreeSet::new();
    while let Some(event) = events.next().await {
        let (namespace, is_gone) = match event {
            Ok(watcher::Event::InitApply(namespace) | watcher::Event::Apply(namespace)) => (namespace, false),
            Ok(watcher::Event::Delete(namespace)) => (namespace, true),
            Ok(watcher::Event::Init | watcher::Event::InitDone) => continue,
            Err(error) => {
                context.retry.note_watch(&error);
                tracing::warn!(
                    kind = "Namespace",
                    "the watch was interrupted and starts again: {}",
                    whole_story(&error)
                );
                continue;
            }
        };
        let (name, uid) = (namespace.name_any(), namespace.uid().unwrap_or_default());
        let mut parted = context.parted.lock().unwrap_or_else(PoisonError::into_inner);
        let is_going = is_gone || namespace.metadata.deletion_timestamp.is_some();
        // Namespaces go in two steps, and only the first is news.
        if is_going && !parted.contains(&uid) && noted.insert(uid.clone()) {
            context.counters.lost_namespace(context.virtualiser.original_namespace(&name).unwrap_or(&name));
        }
        if is_gone {
            parted.remove(&uid);
            noted.remove(&uid);
        }
    }
}

/// Objects of a watch carry no kind of their own where they come from a list.
fn value_of(object: &DynamicObject, kind: &str) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    value["apiVersion"] = "v1".into();
    value["kind"] = kind.into();
    value
}

async fn pass_on(context: &Context, effects: Vec<Effect>, chores: &mpsc::Sender<Chore>) {
    for effect in effects {
        match effect {
            Effect::Record(event) => {
                let is_new_pod = event.object.pod().is_some() && event.change == sk_engine::api::Change::Added;
                context.counters.count(|totals| totals.pods += u64::from(is_new_pod));
                context.record(event).await;
            }
            chore => drop(chores.send(chore).await),
        }
    }
}

async fn attend(context: &Context, mutator: &Mutex<Mutator>, chore: Chore) {
    match chore {
        Effect::Record(_) => {}
        Effect::Admit(pod, stamp) => admit_late(context, mutator, &pod, &stamp).await,
        Effect::End(pod, lifetime) => {
            let end = jiff::Timestamp::now().saturating_add(wall(context, lifetime));
            // Only what is beyond the calendar has no end; it would outlive us anyway.
            let Ok(end) = end else { return };
            let patch = json!({"metadata": {
                "labels": {names::COMPLETE_LABEL: "true"},
                "annotations": {names::COMPLETE_TIME_ANNOTATION: end.to_string()},
            }});
            patch_pod(context, &pod, patch).await;
        }
        Effect::Interrupted(key) => reschedule(context, &key).await,
    }
}

fn wall(context: &Context, lifetime: sk_core::SimDuration) -> jiff::SignedDuration {
    jiff::SignedDuration::try_from(context.pace.wall(lifetime)).unwrap_or(jiff::SignedDuration::MAX)
}

async fn admit_late(context: &Context, mutator: &Mutex<Mutator>, pod: &Pod, stamp: &Stamp) {
    context.counters.count(|totals| totals.pods_without_webhook += 1);
    let decision = {
        let mut mutator = mutator.lock().unwrap_or_else(PoisonError::into_inner);
        mutator.decide(stamp.owner.as_deref(), stamp.template.as_deref())
    };
    let annotations: serde_json::Map<String, Value> = annotations_of(&decision, &context.pace).collect();
    patch_pod(context, pod, json!({"metadata": {"annotations": annotations}})).await;
}

/// Patches the very pod that was seen: the uid in the patch makes it fail for a later one of the same name.
async fn patch_pod(context: &Context, pod: &Pod, mut patch: Value) {
    patch["metadata"]["uid"] = pod.uid.as_str().into();
    let api: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(context.client.clone(), &pod.namespace);
    let parameters = PatchParams { field_manager: Some(names::REPLAY_MANAGER.to_owned()), ..PatchParams::default() };
    let patch = Patch::Merge(patch);
    let patched = with_retries(&context.retry, || api.patch_metadata(&pod.name, &parameters, &patch)).await;
    match patched {
        Err(refusal) if !refusal.is_not_found() => {
            tracing::warn!(kind = "Pod", namespace = %pod.namespace, name = %pod.name, "not patched: {refusal}");
        }
        _ => {}
    }
}

/// Makes an interrupted bare pod again, if it should still be there.
async fn reschedule(context: &Context, key: &ObjectKey) {
    let Some(value) = context.expected_pod(key) else { return };
    // Its predecessor is gone when the watch says so; a moment's grace costs nothing and spares a conflict.
    tokio::time::sleep(Duration::from_millis(10)).await;
    let pod = Gvk::new_static("", "v1", "Pod");
    let kind = context.kinds.get(&pod, &context.retry).await;
    let made = match kind {
        Ok(kind) => context.applier().apply(&kind, key, &value).await,
        Err(refusal) => Err(refusal),
    };
    match made {
        Ok(_) => context.counters.count(|totals| totals.rescheduled += 1),
        Err(refusal) => context.refused(&sk_core::ObjectRef::new(pod, key.clone()), &refusal),
    }
}
