//! How many pods an object asks for and how much CPU they request, read from the object alone.
//!
//! Built-in kinds are known by name. In a custom resource the pod templates are found by their shape (a map under a
//! key that ends in `template`, with `spec.containers`), and their number is the `replicas` beside each, as in an Argo
//! Rollout, a Kubeflow training job or a Ray cluster.

use std::collections::BTreeSet;

use serde_json::Value;
use sk_core::pointer::PointerPattern;
use sk_core::{Gvk, Resources, SmolStr};
use sk_engine::kinds::PodSpec;

/// How deep templates are looked for: `spec.trainer.replicaSpecs.worker.template` is five deep.
const MAX_DEPTH: usize = 10;
/// How many templates of one object are counted; an object of 1 MiB may hold thousands.
const MAX_TEMPLATES: usize = 100;

/// What an object asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Pods in all; nothing if the object does not say.
    pub(crate) pods: Option<i64>,
    /// CPU in thousandths that its pods request at one moment; nothing if the number of pods is not known.
    pub(crate) cpu_m: Option<i64>,
    /// CPU in thousandths that one of its pods requests, the largest one.
    pub(crate) cpu_m_of_one: i64,
    /// Does one of its templates name a scheduler without a profile?
    pub(crate) other_scheduler: bool,
}

impl Demand {
    /// This one, or the other one where this one does not say how many pods.
    pub(crate) fn or(self, other: Option<Self>) -> Self {
        if self.pods.is_some() { self } else { other.unwrap_or(self) }
    }

    /// What the object asks for; nothing if it has no pod template.
    pub(crate) fn of(gvk: &Gvk, object: &Value, paths: &[PointerPattern], schedulers: &Schedulers) -> Option<Self> {
        let templates = templates(object, paths);
        let mut demand = Self { pods: Some(0), cpu_m: Some(0), ..Self::default() };
        for (beside, template) in &templates {
            let spec = &template["spec"];
            let cpu_m = requested(spec).cpu_milli.max(0);
            let pods = if gvk.kind == "Pod" { Some((1, 1)) } else { numbers(gvk, object, beside) };
            let add = |sum: Option<i64>, more: Option<i64>| Some(sum?.saturating_add(more?));
            demand.pods = add(demand.pods, pods.map(|(all, _)| all));
            demand.cpu_m = add(demand.cpu_m, pods.map(|(_, at_once)| at_once.saturating_mul(cpu_m)));
            demand.cpu_m_of_one = demand.cpu_m_of_one.max(cpu_m);
            demand.other_scheduler |= !schedulers.run(spec);
        }
        (!templates.is_empty()).then_some(demand)
    }
}

/// Pods in all, and at one time. `beside` is the parent of the template.
fn numbers(gvk: &Gvk, object: &Value, beside: &Value) -> Option<(i64, i64)> {
    let flag = |value: &Value| value.as_bool() == Some(true);
    let number = |name: &str, default: Option<i64>| match &beside[name] {
        Value::Null => default,
        value => value.as_i64().filter(|number| *number >= 0),
    };
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("batch", "CronJob" | "Job") if flag(&object["spec"]["suspend"]) => Some((0, 0)),
        ("batch", "Job") => {
            let at_once = number("parallelism", Some(1))?;
            let all = number("completions", Some(at_once))?;
            Some((all, all.min(at_once)))
        }
        // How often it fires and on how many nodes it runs, the object does not say.
        ("batch", "CronJob") | ("apps", "DaemonSet") => None,
        ("apps", _) | ("", _) => number("replicas", Some(1)).map(|replicas| (replicas, replicas)),
        _ => number("replicas", None).map(|replicas| (replicas, replicas)),
    }
}

/// Each pod template with its parent.
fn templates<'v>(object: &'v Value, paths: &[PointerPattern]) -> Vec<(&'v Value, &'v Value)> {
    let mut found = Vec::new();
    for pattern in paths {
        for (place, template) in pattern.find(object).take(MAX_TEMPLATES) {
            let parent = place.as_str().rsplit_once('/').map_or("", |(parent, _)| parent);
            found.push((object.pointer(parent).unwrap_or(&Value::Null), template));
        }
    }
    if found.is_empty() {
        find_by_shape(object, 0, &mut found);
    }
    found.retain(|(_, template)| template["spec"]["containers"].is_array());
    found
}

fn find_by_shape<'v>(value: &'v Value, depth: usize, found: &mut Vec<(&'v Value, &'v Value)>) {
    if depth > MAX_DEPTH || found.len() >= MAX_TEMPLATES {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                let is_named = key.len() >= 8 && key.is_char_boundary(key.len() - 8);
                let is_template = is_named && key[key.len() - 8..].eq_ignore_ascii_case("template");
                if is_template && field["spec"]["containers"].is_array() {
                    found.push((value, field));
                } else {
                    find_by_shape(field, depth + 1, found);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| find_by_shape(item, depth + 1, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What a pod of this spec requests, by the scheduler's own reckoning; nothing where the spec cannot be read. What is
/// limited and not requested is requested, as the API server has it.
pub(crate) fn requested(spec: &Value) -> Resources {
    let Ok(mut spec) = serde_json::from_value::<PodSpec>(spec.clone()) else { return Resources::default() };
    for container in spec.containers.iter_mut().chain(&mut spec.init_containers) {
        let resources = &mut container.resources;
        for (name, limit) in &resources.limits {
            resources.requests.entry(name.clone()).or_insert(*limit);
        }
    }
    spec.requests().clone()
}

/// The schedulers that run, by the names that pods ask for them by.
#[derive(Clone, Debug)]
pub(crate) struct Schedulers(pub(crate) BTreeSet<SmolStr>);

/// What a pod that names no scheduler asks for.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

impl Default for Schedulers {
    fn default() -> Self {
        Self([SmolStr::new_static(DEFAULT_SCHEDULER)].into())
    }
}

impl Schedulers {
    /// Does the one run that a pod of this spec asks for?
    fn run(&self, spec: &Value) -> bool {
        let name = spec["schedulerName"].as_str().filter(|name| !name.is_empty());
        self.0.contains(name.unwrap_or(DEFAULT_SCHEDULER))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sk_core::registry::template_path;

    use super::*;

    fn demand(object: &Value) -> Option<Demand> {
        let (version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let gvk = Gvk::from_api_version(version, kind).unwrap();
        Demand::of(&gvk, object, template_path(&gvk).as_slice(), &Schedulers::default())
    }

    fn template(cpu: &str) -> Value {
        json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}})
    }

    fn numbers_of(object: &Value) -> (Option<i64>, Option<i64>) {
        let demand = demand(object).unwrap();
        (demand.pods, demand.cpu_m)
    }

    #[test]
    fn replicas_times_requests_is_what_a_workload_asks_for() {
        let set = |spec: Value| json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": spec});
        assert_eq!(numbers_of(&set(json!({"replicas": 3, "template": template("4")}))), (Some(3), Some(12_000)));
        assert_eq!(numbers_of(&set(json!({"template": template("250m")}))), (Some(1), Some(250)));
        assert_eq!(numbers_of(&set(json!({"replicas": "three", "template": template("1")}))), (None, None));
        assert_eq!(demand(&set(json!({"replicas": 3}))), None);
    }

    #[test]
    fn a_job_asks_for_its_completions_and_runs_so_many_at_once() {
        let job = |mut spec: Value| {
            spec["template"] = template("1");
            json!({"apiVersion": "batch/v1", "kind": "Job", "spec": spec})
        };
        assert_eq!(numbers_of(&job(json!({}))), (Some(1), Some(1_000)));
        assert_eq!(numbers_of(&job(json!({"completions": 50, "parallelism": 5}))), (Some(50), Some(5_000)));
        assert_eq!(numbers_of(&job(json!({"completions": 2, "parallelism": 5}))), (Some(2), Some(2_000)));
        assert_eq!(numbers_of(&job(json!({"completions": 50, "suspend": true}))), (Some(0), Some(0)));
    }

    #[test]
    fn nobody_can_tell_how_often_a_cron_job_fires_or_on_how_many_nodes_a_daemon_runs() {
        let job_template = json!({"spec": {"template": template("2")}});
        let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"jobTemplate": job_template}});
        let found = demand(&cron).unwrap();
        assert_eq!((found.pods, found.cpu_m, found.cpu_m_of_one), (None, None, 2_000));
        let daemon = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "spec": {"template": template("1")}});
        assert_eq!(numbers_of(&daemon), (None, None));
    }

    #[test]
    fn templates_of_custom_kinds_are_found_by_their_shape_with_the_replicas_beside_them() {
        let rollout = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
            "spec": {"replicas": 6, "template": template("500m")}});
        assert_eq!(numbers_of(&rollout), (Some(6), Some(3_000)));
        let training = json!({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": {
            "Master": {"replicas": 1, "template": template("1")},
            "Worker": {"replicas": 4, "template": template("2")}}}});
        assert_eq!(numbers_of(&training), (Some(5), Some(9_000)));
        let ray = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster",
            "spec": {"workerGroupSpecs": [{"replicas": 2, "template": template("8")}]}});
        assert_eq!(numbers_of(&ray), (Some(2), Some(16_000)));
        let knative =
            json!({"apiVersion": "serving.knative.dev/v1", "kind": "Service", "spec": {"template": template("1")}});
        assert_eq!(numbers_of(&knative), (None, None));
        let issuer = json!({"apiVersion": "cert-manager.io/v1", "kind": "Issuer", "spec": {"template": {"spec": {}}}});
        assert_eq!(demand(&issuer), None);
    }

    #[test]
    fn pods_for_a_scheduler_that_nobody_runs_are_told() {
        let pod = |name: &str| {
            json!({"apiVersion": "v1", "kind": "Pod",
            "spec": {"schedulerName": name, "containers": [{"name": "c"}]}})
        };
        assert!(!demand(&pod("default-scheduler")).unwrap().other_scheduler);
        assert!(demand(&pod("volcano")).unwrap().other_scheduler);
        let only = Schedulers([SmolStr::new_static("volcano")].into());
        let asks =
            |name: &str| Demand::of(&Gvk::new_static("", "v1", "Pod"), &pod(name), &["".parse().unwrap()], &only);
        assert!(!asks("volcano").unwrap().other_scheduler);
        assert!(asks("default-scheduler").unwrap().other_scheduler && asks("").unwrap().other_scheduler);
    }
}
