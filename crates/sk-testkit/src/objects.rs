//! Kubernetes objects for tests, built by chaining: `pod().name("a").owned_by(&rs).requests("1", "1Gi")`.
//!
//! An [`Object`] is plain JSON, so the engine, the real API server and a comparison can all use it. The builders make
//! the smallest object that a real API server accepts and leave the rest to it. They validate nothing: a test must be
//! able to build what a server refuses. Asking a builder for what its kind does not have (the requests of a Node) is a
//! mistake in the test and panics with a sentence.

use serde_json::{Map, Value, json};
use sk_core::{Gvk, ObjectKey};

/// The annotation by which KWOK knows its nodes.
pub const KWOK_NODE_ANNOTATION: (&str, &str) = ("kwok.x-k8s.io/node", "fake");

/// One Kubernetes object under construction, as JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Object(Value);

/// A Pod with one container.
pub fn pod() -> Object {
    Object(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default"}, "spec": pod_spec()}))
        .name("pod")
}

/// A Deployment of one replica; its pods carry the label `app: <name>`.
pub fn deployment() -> Object {
    workload("apps/v1", "Deployment").replicas(1).name("deployment")
}

/// A ReplicaSet of one replica; its pods carry the label `app: <name>`.
pub fn replica_set() -> Object {
    workload("apps/v1", "ReplicaSet").replicas(1).name("replicaset")
}

/// A StatefulSet of one replica; its pods carry the label `app: <name>`.
pub fn stateful_set() -> Object {
    workload("apps/v1", "StatefulSet").replicas(1).set("/spec/serviceName", "").name("statefulset")
}

/// A DaemonSet; its pods carry the label `app: <name>`.
pub fn daemon_set() -> Object {
    workload("apps/v1", "DaemonSet").name("daemonset")
}

/// A Job whose pods are never restarted; the server makes its selector.
pub fn job() -> Object {
    Object(json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "default"},
        "spec": {"template": {"spec": pod_spec()}},
    }))
    .pod_field("restartPolicy", "Never")
    .name("job")
}

/// A CronJob that fires every minute.
pub fn cron_job() -> Object {
    Object(json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"namespace": "default"},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": pod_spec()}}}},
    }))
    .pod_field("restartPolicy", "Never")
    .name("cronjob")
}

/// A Node that KWOK plays, with 4 CPUs, 16Gi of memory and room for 110 pods.
pub fn node() -> Object {
    Object(json!({"apiVersion": "v1", "kind": "Node", "metadata": {}}))
        .name("node")
        .annotation(KWOK_NODE_ANNOTATION.0, KWOK_NODE_ANNOTATION.1)
        .capacity("4", "16Gi", "110")
}

/// A Namespace.
pub fn namespace() -> Object {
    Object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {}})).name("namespace")
}

/// Any object, read from JSON.
pub fn object(value: Value) -> Object {
    Object(value)
}

fn pod_spec() -> Value {
    json!({"containers": [{"name": "main", "image": "example/app:1"}]})
}

fn workload(api_version: &str, kind: &str) -> Object {
    Object(json!({
        "apiVersion": api_version, "kind": kind, "metadata": {"namespace": "default"},
        "spec": {"selector": {"matchLabels": {}}, "template": {"metadata": {"labels": {}}, "spec": pod_spec()}},
    }))
}

impl Object {
    /// Its name. A workload's selector and pod label `app` follow the name.
    pub fn name(mut self, name: &str) -> Self {
        if self.0.pointer("/spec/selector/matchLabels").is_some() {
            self = self.set("/spec/selector/matchLabels/app", name).set("/spec/template/metadata/labels/app", name);
        }
        self.set("/metadata/name", name)
    }

    /// Its namespace; `default` by default.
    pub fn namespace(self, namespace: &str) -> Self {
        self.set("/metadata/namespace", namespace)
    }

    /// A label.
    pub fn label(self, key: &str, value: &str) -> Self {
        self.entry("/metadata/labels", key, value)
    }

    /// An annotation.
    pub fn annotation(self, key: &str, value: &str) -> Self {
        self.entry("/metadata/annotations", key, value)
    }

    /// A label on the pods that a workload makes.
    pub fn pod_label(self, key: &str, value: &str) -> Self {
        let template = self.template_path();
        self.entry(&format!("{template}/metadata/labels"), key, value)
    }

    /// An annotation on the pods that a workload makes.
    pub fn pod_annotation(self, key: &str, value: &str) -> Self {
        let template = self.template_path();
        self.entry(&format!("{template}/metadata/annotations"), key, value)
    }

    /// Its uid, for objects that no server has numbered.
    pub fn uid(self, uid: &str) -> Self {
        self.set("/metadata/uid", uid)
    }

    /// `owner` becomes its controller. An owner without a uid is given one made from its kind and name.
    pub fn owned_by(mut self, owner: &Object) -> Self {
        let reference = json!({
            "apiVersion": owner.0["apiVersion"], "kind": owner.0["kind"], "name": owner.0["metadata"]["name"],
            "uid": owner.uid_or_made_up(), "controller": true, "blockOwnerDeletion": true,
        });
        let owners = at(&mut self.0, "/metadata/ownerReferences");
        match owners {
            Value::Array(list) => list.push(reference),
            other => *other = json!([reference]),
        }
        self
    }

    /// How many replicas a workload wants.
    pub fn replicas(self, replicas: u32) -> Self {
        self.set("/spec/replicas", replicas)
    }

    /// The first container's image.
    pub fn image(self, image: &str) -> Self {
        self.first_container("image", image)
    }

    /// The first container's command.
    pub fn command(self, command: &[&str]) -> Self {
        self.first_container("command", command)
    }

    /// The first container's requests of CPU and memory.
    pub fn requests(self, cpu: &str, memory: &str) -> Self {
        self.first_container("resources/requests", json!({"cpu": cpu, "memory": memory}))
    }

    /// The first container's limits of CPU and memory.
    pub fn limits(self, cpu: &str, memory: &str) -> Self {
        self.first_container("resources/limits", json!({"cpu": cpu, "memory": memory}))
    }

    /// A node label that its pods insist on.
    pub fn node_selector(self, key: &str, value: &str) -> Self {
        let spec = self.pod_spec_path();
        self.entry(&format!("{spec}/nodeSelector"), key, value)
    }

    /// Any field of the pod spec, wherever this kind keeps it.
    pub fn pod_field(self, field: &str, value: impl Into<Value>) -> Self {
        let spec = self.pod_spec_path();
        self.set(&format!("{spec}/{field}"), value)
    }

    /// The node that a pod is bound to.
    pub fn node_name(self, node: &str) -> Self {
        self.pod_field("nodeName", node)
    }

    /// A node's capacity and allocatable: CPU, memory, number of pods.
    pub fn capacity(self, cpu: &str, memory: &str, pods: &str) -> Self {
        let size = json!({"cpu": cpu, "memory": memory, "pods": pods});
        self.set("/status/capacity", size.clone()).set("/status/allocatable", size)
    }

    /// A taint on a node.
    pub fn taint(mut self, key: &str, value: &str, effect: &str) -> Self {
        let taint = json!({"key": key, "value": value, "effect": effect});
        match at(&mut self.0, "/spec/taints") {
            Value::Array(list) => list.push(taint),
            other => *other = json!([taint]),
        }
        self
    }

    /// A pod's phase, as a kubelet or KWOK would report it.
    pub fn phase(self, phase: &str) -> Self {
        self.set("/status/phase", phase)
    }

    /// Sets the field at a JSON pointer. Missing objects on the way are made; array elements must exist.
    pub fn set(mut self, pointer: &str, value: impl Into<Value>) -> Self {
        *at(&mut self.0, pointer) = value.into();
        self
    }

    /// The JSON, to look at.
    pub fn as_value(&self) -> &Value {
        &self.0
    }

    /// The JSON, to keep.
    pub fn into_value(self) -> Value {
        self.0
    }

    /// What type of object it is.
    pub fn gvk(&self) -> Gvk {
        let text = |field: &str| self.0[field].as_str().unwrap_or_default();
        Gvk::from_api_version(text("apiVersion"), text("kind")).expect("a built object has apiVersion and kind")
    }

    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        let text = |field: &str| self.0["metadata"][field].as_str();
        let name = text("name").expect("a built object has a name");
        text("namespace").map_or_else(|| ObjectKey::cluster(name), |namespace| ObjectKey::namespaced(namespace, name))
    }

    fn uid_or_made_up(&self) -> String {
        let metadata = &self.0["metadata"];
        let made_up = || format!("{}-{}-uid", self.gvk().kind, self.key().name);
        metadata["uid"].as_str().map_or_else(made_up, str::to_owned)
    }

    fn entry(mut self, map: &str, key: &str, value: &str) -> Self {
        match at(&mut self.0, map) {
            Value::Object(entries) => {
                entries.insert(key.to_owned(), value.into());
            }
            other => *other = json!({key: value}),
        }
        self
    }

    fn first_container(self, field: &str, value: impl Into<Value>) -> Self {
        let spec = self.pod_spec_path();
        self.set(&format!("{spec}/containers/0/{field}"), value)
    }

    fn pod_spec_path(&self) -> String {
        format!("{}/spec", self.template_path())
    }

    /// Where this kind keeps its pod template; a Pod is its own.
    fn template_path(&self) -> &'static str {
        match self.0["kind"].as_str() {
            Some("Pod") => "",
            Some("Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "Job") => "/spec/template",
            Some("CronJob") => "/spec/jobTemplate/spec/template",
            kind => panic!("{} has no pod template to set a field of", kind.unwrap_or("an object without a kind")),
        }
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        object.0
    }
}

/// The place that a JSON pointer names, made if it is missing.
fn at<'a>(root: &'a mut Value, pointer: &str) -> &'a mut Value {
    pointer.split('/').skip(1).fold(root, |place, part| {
        let part = part.replace("~1", "/").replace("~0", "~");
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
        match place {
            Value::Object(fields) => fields.entry(part).or_insert(Value::Null),
            Value::Array(list) => {
                let place = part.parse().ok().and_then(|index: usize| list.get_mut(index));
                place.unwrap_or_else(|| panic!("{pointer}: the list has no element {part}"))
            }
            other => panic!("{pointer}: {part} is asked of {other}, which has no fields"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_builds_the_object_it_reads_like() {
        let rs = replica_set().name("web").uid("u1");
        let built = pod().name("web-1").owned_by(&rs).requests("1", "1Gi").node_name("a").into_value();
        assert_eq!(built["metadata"]["ownerReferences"][0]["uid"], "u1");
        assert_eq!(built["metadata"]["ownerReferences"][0]["controller"], true);
        assert_eq!(built["spec"]["containers"][0]["resources"]["requests"], json!({"cpu": "1", "memory": "1Gi"}));
        assert_eq!(built["spec"]["nodeName"], "a");
    }

    #[test]
    fn a_workloads_selector_follows_its_last_name() {
        let built = deployment().name("a").name("b").pod_label("tier", "front").into_value();
        assert_eq!(built["spec"]["selector"]["matchLabels"], json!({"app": "b"}));
        assert_eq!(built["spec"]["template"]["metadata"]["labels"], json!({"app": "b", "tier": "front"}));
    }

    #[test]
    fn every_kind_keeps_its_pod_spec_where_kubernetes_does() {
        for (built, path) in [
            (pod(), "/spec"),
            (deployment(), "/spec/template/spec"),
            (job(), "/spec/template/spec"),
            (cron_job(), "/spec/jobTemplate/spec/template/spec"),
        ] {
            let built = built.node_selector("zone/x", "a").into_value();
            assert_eq!(built.pointer(path).unwrap()["nodeSelector"], json!({"zone/x": "a"}));
        }
    }

    #[test]
    fn an_object_knows_its_kind_and_key() {
        assert_eq!(cron_job().name("c").gvk().to_string(), "batch/v1.CronJob");
        assert_eq!(node().name("n").key(), ObjectKey::cluster("n"));
        assert_eq!(pod().namespace("x").name("p").key().to_string(), "x/p");
    }

    #[test]
    #[should_panic(expected = "Node has no pod template")]
    fn asking_a_node_for_requests_is_told_apart() {
        let _ = node().requests("1", "1Gi");
    }
}
