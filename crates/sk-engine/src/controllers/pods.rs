//! Questions about pods and requests that several controllers share.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;
use sk_apiserver::kinds::{POD, Pod, PodSpec, TemplateMeta};
use sk_apiserver::{Body, DeleteOptions, Meta, Object, OwnerRef, Request};
use sk_core::{ObjectKey, SimDuration, SimTime, SmolStr};

/// `SlowStartInitialBatchSize` (`controller_utils.go`, 1.36).
const FIRST_BATCH: usize = 1;

/// Neither ended nor going.
pub(crate) fn is_active(pod: &Object) -> bool {
    !pod.is_deleting() && pod.pod().is_some_and(|pod| !pod.status.phase.is_final())
}

/// Since when it is ready; `None` while it is not.
pub(crate) fn ready_since(pod: &Object) -> Option<SimTime> {
    pod.pod()?.status.condition("Ready").filter(|ready| ready.is_true())?.last_transition_time
}

/// How long it takes until a ready pod counts as available; zero: it does. `None`: it is not ready.
pub(crate) fn available_in(pod: &Object, min_ready_seconds: i32, now: SimTime) -> Option<SimDuration> {
    let min_ready = SimDuration::from_secs(i64::from(min_ready_seconds.max(0)));
    let left = min_ready - now.since(ready_since(pod)?);
    Some(left.max(SimDuration::ZERO))
}

/// Has it been ready for long enough? (`IsPodAvailable`)
pub(crate) fn is_available(pod: &Object, min_ready_seconds: i32, now: SimTime) -> bool {
    available_in(pod, min_ready_seconds, now) == Some(SimDuration::ZERO)
}

/// Deletes this very pod, not a later one of its name.
pub(crate) fn delete(pod: &Object) -> Request {
    let options = DeleteOptions { uid: Some(pod.uid), ..DeleteOptions::default() };
    Request::Delete { target: pod.reference(), options }
}

/// A pod without a name of its own, owned by `owner`, as its template wants it.
pub(crate) fn generated(
    owner: &Object,
    owners: &Arc<[OwnerRef]>,
    template: &TemplateMeta,
    spec: &Arc<PodSpec>,
) -> Request {
    let key = ObjectKey { namespace: owner.key.namespace.clone(), name: SmolStr::default() };
    let mut meta = Meta {
        labels: template.labels.clone(),
        annotations: template.annotations.clone(),
        owners: owners.clone(),
        ..Meta::default()
    };
    if finalizers(template).next().is_some() {
        meta.finalizers = finalizers(template).collect();
    }
    let body = Body::Pod(Pod { node_name: pinned(spec), ..Pod::new(spec.clone()) });
    let prefix: SmolStr = [owner.key.name.as_str(), "-"].concat().into();
    Request::create(Object::new(&POD, key, meta, body).with_generate_name(prefix))
}

/// The finalizers that pods of a template get (`getPodsFinalizers`).
pub(crate) fn finalizers(template: &TemplateMeta) -> impl Iterator<Item = SmolStr> {
    let all = template.rest.get("finalizers").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str).map(SmolStr::from)
}

/// The node that a template names: its pods go there without asking the scheduler.
pub(crate) fn pinned(spec: &PodSpec) -> Option<SmolStr> {
    spec.rest.get("nodeName").and_then(Value::as_str).filter(|node| !node.is_empty()).map(SmolStr::from)
}

/// Requests in batches of 1, 2, 4, …, so that one refusal does not become a thousand (`slowStartBatch`).
pub(crate) fn slow_start<T>(all: impl IntoIterator<Item = T>) -> VecDeque<Vec<T>> {
    let mut left = all.into_iter().peekable();
    let mut batches = VecDeque::new();
    let mut size = FIRST_BATCH;
    while left.peek().is_some() {
        batches.push_back(left.by_ref().take(size).collect());
        size = size.saturating_mul(2);
    }
    batches
}

/// In which of these batches the request at a place goes.
pub(crate) fn slow_start_batch(place: usize) -> u32 {
    (place / FIRST_BATCH + 1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_tells_its_batch() {
        for (number, batch) in slow_start(0..100).into_iter().enumerate() {
            assert!(batch.into_iter().all(|place| slow_start_batch(place) as usize == number));
        }
    }

    #[test]
    fn batches_double_until_all_is_sent() {
        let sizes = |count: usize| slow_start(0..count).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(0), Vec::<usize>::new());
        assert_eq!(sizes(1), [1]);
        assert_eq!(sizes(10), [1, 2, 4, 3]);
    }
}
