//! New pods of a Job: from its template, with the tracking finalizer and, for indexed Jobs, the completion index.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};
use sk_apiserver::kinds::{COMPLETION_INDEX, Container, JOB_TRACKING, JobSpec, POD, Pod, PodSpec};
use sk_apiserver::{Body, Meta, Object, Request};
use sk_core::{ObjectKey, SmolStr};

use super::failure_policy;
use crate::controllers::pods;

/// How often a pod's index has failed before.
const INDEX_FAILURES: SmolStr = SmolStr::new_static("batch.kubernetes.io/job-index-failure-count");
/// And how often its failures were ignored.
const IGNORED_FAILURES: SmolStr = SmolStr::new_static("batch.kubernetes.io/job-index-ignored-failure-count");
/// How a container learns its index.
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// A generated name has at most so many characters before its suffix (`MaxGeneratedNameLength`).
const MAX_PREFIX_LEN: usize = 58;

/// Puts creations into batches of 1, 2, 4, …: as long as all goes well, more and more at a time.
pub(super) fn slow_start(creations: Vec<Request>, batches: &mut VecDeque<Vec<Request>>) {
    let mut left = creations.into_iter();
    for size in (0..).map(|doubling| 1_usize << doubling) {
        let batch: Vec<_> = left.by_ref().take(size).collect();
        if batch.is_empty() {
            return;
        }
        batches.push_back(batch);
    }
}

/// A pod like any other of its Job.
pub(super) fn pod(job: &Object, spec: &JobSpec) -> Request {
    create(job, spec, spec.template.spec.clone(), format!("{}-", job.key.name), |_| {})
}

/// The pod of an index; `replaces` is the failed one before it.
pub(super) fn indexed_pod(job: &Object, spec: &JobSpec, index: u32, replaces: Option<&Arc<Object>>) -> Request {
    let mut pod_spec = PodSpec::clone(&spec.template.spec);
    pod_spec.rest.insert("hostname".into(), json!(format!("{}-{index}", job.key.name)));
    pod_spec.init_containers.iter_mut().chain(&mut pod_spec.containers).for_each(tell_index);
    create(job, spec, Arc::new(pod_spec), prefix(&job.key.name, index), |meta| {
        let text = SmolStr::from(index.to_string());
        meta.labels.make_mut().insert(COMPLETION_INDEX.clone(), text.clone());
        let annotations = meta.annotations.make_mut();
        annotations.insert(COMPLETION_INDEX.clone(), text);
        if spec.backoff_limit_per_index.is_some() {
            let (failures, ignored) = replaces.map_or((0, 0), |failed| next_failures(failed, spec));
            annotations.insert(INDEX_FAILURES, failures.to_string().into());
            if ignored > 0 {
                annotations.insert(IGNORED_FAILURES, ignored.to_string().into());
            }
        }
    })
}

/// How often the index of a pod has failed, ignored failures left out.
pub(super) fn index_failures(pod: &Object) -> u32 {
    number(pod, &INDEX_FAILURES)
}

/// The same with them.
pub(super) fn all_index_failures(pod: &Object) -> u32 {
    index_failures(pod).saturating_add(number(pod, &IGNORED_FAILURES))
}

fn number(pod: &Object, annotation: &SmolStr) -> u32 {
    pod.meta.annotations.get(annotation).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn next_failures(failed: &Object, spec: &JobSpec) -> (u32, u32) {
    let (failures, ignored) = (index_failures(failed), number(failed, &IGNORED_FAILURES));
    match failure_policy::judge(failed, spec).counts {
        true => (failures.saturating_add(1), ignored),
        false => (failures, ignored.saturating_add(1)),
    }
}

/// `name-index-`, the name cut so that the index stays.
fn prefix(name: &str, index: u32) -> String {
    let ending = format!("-{index}-");
    let name: String = match name.len() + ending.len() > MAX_PREFIX_LEN {
        true => name.chars().take(MAX_PREFIX_LEN - ending.len()).collect(),
        false => name.to_owned(),
    };
    name + &ending
}

fn tell_index(container: &mut Container) {
    let variables = container.rest.entry("env").or_insert_with(|| json!([]));
    let Value::Array(variables) = variables else { return };
    if !variables.iter().any(|variable| variable["name"] == INDEX_VARIABLE) {
        let path = format!("metadata.labels['{COMPLETION_INDEX}']");
        variables.push(json!({"name": INDEX_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": path}}}));
    }
}

fn create(job: &Object, spec: &JobSpec, pod: Arc<PodSpec>, prefix: String, change: impl FnOnce(&mut Meta)) -> Request {
    let mut meta = Meta {
        labels: spec.template.metadata.labels.clone(),
        annotations: spec.template.metadata.annotations.clone(),
        owners: [job.as_controller()].into(),
        finalizers: pods::finalizers(&spec.template.metadata)
            .filter(|finalizer| *finalizer != JOB_TRACKING)
            .chain([JOB_TRACKING.clone()])
            .collect(),
        ..Meta::default()
    };
    change(&mut meta);
    let key = ObjectKey { namespace: job.key.namespace.clone(), name: SmolStr::default() };
    let body = Body::Pod(Pod { node_name: pods::pinned(&pod), ..Pod::new(pod) });
    Request::create(Object::new(&POD, key, meta, body).with_generate_name(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_and_its_index_stays() {
        assert_eq!(prefix("sum", 7), "sum-7-");
        let cut = prefix(&"a".repeat(60), 12);
        assert_eq!((cut.len(), cut.ends_with("a-12-")), (MAX_PREFIX_LEN, true));
    }
}
