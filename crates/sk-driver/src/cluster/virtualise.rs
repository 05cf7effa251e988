//! Virtualises an object for a cluster run. Pure.
//!
//! The plan has already removed what a server assigns. On a shared cluster, an object moves to a namespace of the run,
//! gets the run's labels and its root as owner, and its pods select virtual nodes. Nothing here has a client; the
//! applier decides whether a cluster-scoped object may be created.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use sk_api::simulation::names;
use sk_core::pointer::PointerPattern;
use sk_core::{Gvk, ObjectKey, ObjectRef, SmolStr};

use super::volumes;

/// Kinds that change how a cluster works, or belong to its machines. Replayed only when they are listed.
/// An empty kind stands for the whole group.
const CLUSTER_MACHINERY: [(&str, &str); 11] = [
    ("", "Node"),
    ("", "PersistentVolume"),
    ("admissionregistration.k8s.io", ""),
    ("apiextensions.k8s.io", ""),
    ("apiregistration.k8s.io", ""),
    ("certificates.k8s.io", ""),
    ("coordination.k8s.io", ""),
    ("flowcontrol.apiserver.k8s.io", ""),
    ("rbac.authorization.k8s.io", ""),
    ("simkube.io", ""),
    ("storage.k8s.io", "CSINode"),
];

/// Kinds that the cluster's own controllers make from others; replayed, they would fight over them.
const MADE_BY_CONTROLLERS: [(&str, &str); 5] = [
    ("", "Endpoints"),
    ("", "Event"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("events.k8s.io", "Event"),
    ("metrics.k8s.io", ""),
];

/// Kinds by which the cluster's own proxies and DNS take in the traffic of recorded host names: a replay must not answer
/// for the real service. Replayed only when they are listed. An empty kind stands for the whole group.
const OPEN_TO_OUTSIDE: [(&str, &str); 3] =
    [("extensions", "Ingress"), ("gateway.networking.k8s.io", ""), ("networking.k8s.io", "Ingress")];

/// `apiVersion` and `kind` of a run's root.
const ROOT: (&str, &str) = ("simkube.io/v1", "SimulationRoot");

/// The label by which Kubernetes lets namespaces be selected by name.
const NAMESPACE_NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Why an object of a trace is not replayed on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// It would change the behaviour of the cluster.
    Machinery,
    /// The cluster's own controllers make it.
    MadeByControllers,
    /// It would accept traffic from outside the cluster.
    OpenToOutside,
}

/// The run's root object, which owns everything that the run creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Its name.
    pub name: SmolStr,
    /// Its uid.
    pub uid: SmolStr,
}

/// How a run virtualises objects.
#[derive(Clone, Debug)]
pub struct Virtualiser {
    /// Before the name of each namespace.
    pub prefix: SmolStr,
    /// The simulation's name.
    pub simulation: SmolStr,
    /// The run's root, which owns everything.
    pub root: Root,
    /// Kinds that are replayed although they change the cluster.
    pub listed: BTreeSet<Gvk>,
}

#[cfg(test)]
impl Virtualiser {
    /// The virtualiser of a simulation `s`, for tests.
    pub(crate) fn example() -> Self {
        let root = Root { name: "sk-s-driver-root-0".into(), uid: "u".into() };
        Self { prefix: "virtual".into(), simulation: "s".into(), root, listed: BTreeSet::new() }
    }
}

impl Virtualiser {
    /// Is this object replayed? Otherwise why not. Of a deleted object the value may not be known.
    pub fn left_out(&self, object: &ObjectRef, value: Option<&Value>) -> Option<LeftOut> {
        let gvk = &object.gvk;
        let is_one_of = |table: &[(&str, &str)]| {
            table.iter().any(|(group, kind)| gvk.group == *group && (kind.is_empty() || gvk.kind == *kind))
        };
        if self.listed.contains(gvk) {
            None
        } else if is_one_of(&CLUSTER_MACHINERY) {
            Some(LeftOut::Machinery)
        } else if is_one_of(&MADE_BY_CONTROLLERS) || is_published_authority(object) || value.is_some_and(is_token) {
            Some(LeftOut::MadeByControllers)
        } else if is_one_of(&OPEN_TO_OUTSIDE) {
            Some(LeftOut::OpenToOutside)
        } else {
            None
        }
    }

    /// The namespace that stands for a recorded one.
    pub fn namespace(&self, original: &str) -> SmolStr {
        names::virtual_namespace(&self.prefix, original).into()
    }

    /// The recorded namespace that this one stands for; `None` for namespaces that are not the run's.
    pub fn original_namespace<'n>(&self, namespace: &'n str) -> Option<&'n str> {
        namespace.strip_prefix(self.prefix.as_str())?.strip_prefix('-')
    }

    /// What an object is called in the run.
    pub fn key(&self, object: &ObjectRef) -> ObjectKey {
        let is_namespace = object.gvk.group.is_empty() && object.gvk.kind == "Namespace";
        ObjectKey {
            namespace: object.key.namespace.as_ref().map(|namespace| self.namespace(namespace)),
            name: if is_namespace { self.namespace(&object.key.name) } else { object.key.name.clone() },
        }
    }

    /// Virtualises an object whose pod templates stand at `templates`.
    pub fn object(&self, object: &ObjectRef, mut value: Value, templates: &[PointerPattern]) -> Value {
        let original = object.key.namespace_or_empty();
        for pattern in templates {
            pattern.change_each(&mut value, |_, template| self.template(original, template));
        }
        let key = self.key(object);
        let Some(fields) = value.as_object_mut() else { return value };
        clean_for_cluster(&object.gvk, fields);
        self.selectors(fields);
        let metadata = map_at(fields, "metadata");
        metadata.insert("name".into(), key.name.as_str().into());
        if let Some(namespace) = &key.namespace {
            metadata.insert("namespace".into(), namespace.as_str().into());
        }
        metadata.insert("ownerReferences".into(), json!([owner(&self.root)]));
        self.label(metadata);
        self.claims(&object.gvk, fields);
        value
    }

    /// A namespace of the run, as it is made when the trace has none.
    pub fn new_namespace(&self, original: &str) -> Value {
        let object = ObjectRef::new(Gvk::new_static("", "v1", "Namespace"), ObjectKey::cluster(original));
        let value = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": original}});
        self.object(&object, value, &[])
    }

    /// A ServiceAccount that a template names and that the trace does not have.
    pub fn new_service_account(&self, original_namespace: &str, name: &str) -> Value {
        let key = ObjectKey::namespaced(original_namespace, name);
        let object = ObjectRef::new(Gvk::new_static("", "v1", "ServiceAccount"), key);
        let metadata = json!({"name": name, "namespace": original_namespace});
        self.object(&object, json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}), &[])
    }

    /// Selects what the run has made in the cluster, and nothing of the machinery that runs it.
    pub fn selector(&self) -> String {
        format!("{}={},{}=true", names::SIMULATION_LABEL, self.simulation, names::VIRTUAL_LABEL)
    }

    fn label(&self, metadata: &mut Map<String, Value>) {
        let labels = map_at(metadata, "labels");
        labels.insert(names::SIMULATION_LABEL.into(), self.simulation.as_str().into());
        labels.insert(names::VIRTUAL_LABEL.into(), "true".into());
    }

    /// Pods of the template know where they came from and go to virtual nodes only. They carry the run's labels even if
    /// the webhook never saw them.
    fn template(&self, original_namespace: &str, template: &mut Value) {
        let Some(fields) = template.as_object_mut() else { return };
        let metadata = map_at(fields, "metadata");
        self.label(metadata);
        let annotations = map_at(metadata, "annotations");
        annotations.insert(names::ORIGINAL_NAMESPACE_ANNOTATION.into(), original_namespace.into());
        let spec = map_at(fields, "spec");
        // A pod that names its node passes by the scheduler, and so by the selector.
        spec.remove("nodeName");
        map_at(spec, "nodeSelector").insert(names::NODE_SELECTOR.0.into(), names::NODE_SELECTOR.1.into());
        let ours = toleration();
        let tolerations = list_at(spec, "tolerations");
        if !tolerations.contains(&ours) {
            tolerations.push(ours);
        }
        self.affinity(spec);
        volumes::virtualise_ephemeral(&self.simulation, spec);
    }

    /// Claims of volumes ask for the run's own.
    fn claims(&self, gvk: &Gvk, fields: &mut Map<String, Value>) {
        match (gvk.group.as_str(), gvk.kind.as_str()) {
            ("", "PersistentVolumeClaim") => volumes::virtualise_claim(&self.simulation, fields),
            ("apps", "StatefulSet") => volumes::virtualise_templates(&self.simulation, fields),
            _ => {}
        }
    }

    /// Affinity terms name namespaces.
    fn affinity(&self, spec: &mut Map<String, Value>) {
        let Some(affinity) = spec.get_mut("affinity") else { return };
        for side in ["podAffinity", "podAntiAffinity"] {
            for terms in [
                "requiredDuringSchedulingIgnoredDuringExecution/*",
                "preferredDuringSchedulingIgnoredDuringExecution/*/podAffinityTerm",
            ] {
                let names: PointerPattern =
                    format!("/{side}/{terms}/namespaces/*").parse().expect("these are JSON pointers");
                names.change_each(affinity, |_, name| self.rename(name));
            }
        }
    }

    /// Selectors of namespaces by their name, and subjects in namespaces, wherever they stand.
    fn selectors(&self, fields: &mut Map<String, Value>) {
        for (name, value) in fields.iter_mut() {
            match value {
                Value::Object(inner) if name == "namespaceSelector" => self.namespace_selector(inner),
                Value::Object(inner) => self.selectors(inner),
                Value::Array(items) if name == "subjects" => {
                    for namespace in items.iter_mut().filter_map(|subject| subject.get_mut("namespace")) {
                        self.rename(namespace);
                    }
                }
                Value::Array(items) => {
                    items.iter_mut().filter_map(Value::as_object_mut).for_each(|inner| self.selectors(inner));
                }
                _ => {}
            }
        }
    }

    fn namespace_selector(&self, selector: &mut Map<String, Value>) {
        let by_name = selector.get_mut("matchLabels").and_then(|labels| labels.get_mut(NAMESPACE_NAME_LABEL));
        if let Some(name) = by_name {
            self.rename(name);
        }
        for rule in selector.get_mut("matchExpressions").and_then(Value::as_array_mut).into_iter().flatten() {
            if rule.get("key").and_then(Value::as_str) == Some(NAMESPACE_NAME_LABEL) {
                let values = rule.get_mut("values").and_then(Value::as_array_mut);
                values.into_iter().flatten().for_each(|name| self.rename(name));
            }
        }
    }

    fn rename(&self, name: &mut Value) {
        if let Some(original) = name.as_str() {
            *name = self.namespace(original).as_str().into();
        }
    }
}

/// The reference by which an object belongs to a run.
pub(crate) fn owner(root: &Root) -> Value {
    json!({"apiVersion": ROOT.0, "kind": ROOT.1, "name": root.name, "uid": root.uid, "blockOwnerDeletion": true})
}

/// What lets a pod onto virtual nodes.
pub(crate) fn toleration() -> Value {
    json!({"key": names::NODE_TAINT, "operator": "Exists", "effect": "NoSchedule"})
}

/// The ServiceAccounts that the pods of an object run as. A pod without one runs as `default`.
pub fn service_accounts(value: &Value, templates: &[PointerPattern]) -> BTreeSet<SmolStr> {
    let found = templates.iter().flat_map(|pattern| pattern.find(value));
    let name = |template: &Value| {
        let name = template.pointer("/spec/serviceAccountName").or_else(|| template.pointer("/spec/serviceAccount"));
        name.and_then(Value::as_str).filter(|name| !name.is_empty()).unwrap_or("default").into()
    };
    found.map(|(_, template)| name(template)).collect()
}

/// Each namespace is given this by the cluster itself.
fn is_published_authority(object: &ObjectRef) -> bool {
    object.gvk.group.is_empty() && object.gvk.kind == "ConfigMap" && object.key.name == "kube-root-ca.crt"
}

/// A ServiceAccount's token of another cluster is of no use here, and its account is not the same.
fn is_token(value: &Value) -> bool {
    value["kind"] == "Secret" && value["type"] == "kubernetes.io/service-account-token"
}

/// What another cluster would refuse, or would make real things of.
fn clean_for_cluster(gvk: &Gvk, fields: &mut Map<String, Value>) {
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Namespace") => {
            fields.remove("spec");
            if let Some(labels) = fields.get_mut("metadata").and_then(|metadata| metadata.get_mut("labels")) {
                labels.as_object_mut().map(|labels| labels.remove(NAMESPACE_NAME_LABEL));
            }
        }
        ("", "Pod") => {
            // Admission computes them from the priority class, and refuses a pod that says otherwise.
            let spec = map_at(fields, "spec");
            spec.remove("priority");
            spec.remove("preemptionPolicy");
        }
        ("", "Service") => {
            let spec = map_at(fields, "spec");
            // The recorded cluster's address families; this one has its own.
            spec.remove("ipFamilies");
            spec.remove("ipFamilyPolicy");
            // Every node would take traffic to these real addresses for itself.
            spec.remove("externalIPs");
            // A load balancer would be ordered from the cloud, and paid for.
            if spec.get("type").and_then(Value::as_str) == Some("LoadBalancer") {
                spec.insert("type".into(), "ClusterIP".into());
                for field in [
                    "allocateLoadBalancerNodePorts",
                    "loadBalancerClass",
                    "loadBalancerIP",
                    "loadBalancerSourceRanges",
                    "externalTrafficPolicy",
                ] {
                    spec.remove(field);
                }
            }
        }
        ("", "ServiceAccount") => drop(fields.remove("secrets")),
        _ => {}
    }
}

/// The map under `name`; anything else there, null included, becomes an empty one.
pub(crate) fn map_at<'a>(fields: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let place = fields.entry(name).or_insert_with(|| json!({}));
    if !place.is_object() {
        *place = json!({});
    }
    place.as_object_mut().expect("it was made a map above")
}

/// The list under `name`; anything else there, null included, becomes an empty one.
fn list_at<'a>(fields: &'a mut Map<String, Value>, name: &str) -> &'a mut Vec<Value> {
    let place = fields.entry(name).or_insert_with(|| json!([]));
    if !place.is_array() {
        *place = json!([]);
    }
    place.as_array_mut().expect("it was made a list above")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn virtualised(value: Value, templates: &[&str]) -> Value {
        let templates: Vec<PointerPattern> = templates.iter().map(|path| path.parse().unwrap()).collect();
        let object = sk_store::trace::Object::new(value).unwrap();
        let reference = object.reference().clone();
        Virtualiser::example().object(&reference, object.into_value(), &templates)
    }

    #[test]
    fn the_drivers_own_pod_is_not_among_what_a_run_has_made() {
        let selector: sk_core::LabelSelector = Virtualiser::example().selector().parse().unwrap();
        let labels = |virtual_label: Option<&str>| {
            let name = (SmolStr::from(names::SIMULATION_LABEL), SmolStr::from("s"));
            let virtual_label = virtual_label.map(|value| (SmolStr::from(names::VIRTUAL_LABEL), SmolStr::from(value)));
            [name].into_iter().chain(virtual_label).collect::<std::collections::BTreeMap<_, _>>()
        };
        assert!(selector.matches(&labels(Some("true"))));
        assert!(!selector.matches(&labels(None)), "it carries the simulation's name and nothing else");
    }

    #[test]
    fn a_workload_moves_says_whose_it_is_and_asks_for_virtual_nodes() {
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"template": {"spec": {"containers": [], "nodeName": "real", "nodeSelector": {"disk": "ssd"}}}},
        });
        let virtualised = virtualised(deployment, &["/spec/template"]);
        let labels = json!({"simkube.io/simulation": "s", "simkube.io/virtual": "true"});
        assert_eq!(virtualised["metadata"]["namespace"], "virtual-shop");
        assert_eq!(virtualised["metadata"]["labels"], labels);
        assert_eq!(virtualised["metadata"]["ownerReferences"][0]["uid"], "u");
        assert_eq!(virtualised["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], true);
        let template = &virtualised["spec"]["template"];
        assert_eq!(template["metadata"]["annotations"]["static.simkube.io/original-namespace"], "shop");
        assert_eq!(template["metadata"]["labels"], labels);
        assert_eq!(template["spec"]["nodeSelector"], json!({"disk": "ssd", "type": "virtual"}));
        let toleration = json!([{"key": "kwok-provider", "operator": "Exists", "effect": "NoSchedule"}]);
        assert_eq!(template["spec"]["tolerations"], toleration);
        assert_eq!(template["spec"].get("nodeName"), None, "the scheduler would not be asked");
    }

    #[test]
    fn names_of_namespaces_inside_objects_follow() {
        let term = json!({"topologyKey": "zone", "namespaces": ["a", "b"],
            "namespaceSelector": {"matchExpressions": [{"key": NAMESPACE_NAME_LABEL, "operator": "In", "values": ["a"]}]}});
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a"},
            "spec": {"priority": 0, "affinity": {
                "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term.clone()]},
                "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]},
            }},
        });
        let text = virtualised(pod, &[""]).to_string();
        assert_eq!(text.matches("[\"virtual-a\",\"virtual-b\"]").count(), 2, "{text}");
        assert_eq!(text.matches("\"values\":[\"virtual-a\"]").count(), 2, "{text}");
        assert!(!text.contains("priority"), "{text}");
        let policy = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "n", "namespace": "a"},
            "spec": {"ingress": [{"from": [{"namespaceSelector": {"matchLabels": {NAMESPACE_NAME_LABEL: "b", "x": "y"}}}]}]},
        });
        let selector = &virtualised(policy, &[])["spec"]["ingress"][0]["from"][0]["namespaceSelector"]["matchLabels"];
        assert_eq!(*selector, json!({NAMESPACE_NAME_LABEL: "virtual-b", "x": "y"}));
    }

    #[test]
    fn a_namespace_takes_the_prefix_itself_and_comes_back() {
        let recorded = json!({
            "apiVersion": "v1", "kind": "Namespace", "spec": {"finalizers": ["kubernetes"]},
            "metadata": {"name": "shop", "labels": {NAMESPACE_NAME_LABEL: "shop", "team": "a"}},
        });
        let namespace = virtualised(recorded, &[]);
        assert_eq!(namespace["metadata"]["name"], "virtual-shop");
        assert_eq!(namespace["metadata"]["labels"]["team"], "a");
        assert!(namespace.get("spec").is_none() && namespace["metadata"]["labels"].get(NAMESPACE_NAME_LABEL).is_none());
        assert_eq!(Virtualiser::example().original_namespace("virtual-shop"), Some("shop"));
        assert_eq!(Virtualiser::example().original_namespace("virtualshop"), None);
    }

    #[test]
    fn what_changes_the_cluster_is_left_out_unless_it_is_listed() {
        let object = |kind: &str, name: &str| ObjectRef::new(kind.parse().unwrap(), name.parse().unwrap());
        for kind in [
            "v1.Node",
            "apiextensions.k8s.io/v1.CustomResourceDefinition",
            "rbac.authorization.k8s.io/v1.Role",
            "admissionregistration.k8s.io/v1.MutatingWebhookConfiguration",
            "apiregistration.k8s.io/v1.APIService",
        ] {
            assert_eq!(Virtualiser::example().left_out(&object(kind, "x"), None), Some(LeftOut::Machinery), "{kind}");
            let listed = Virtualiser { listed: [kind.parse().unwrap()].into(), ..Virtualiser::example() };
            assert_eq!(listed.left_out(&object(kind, "x"), None), None, "{kind}");
        }
        let authority = object("v1.ConfigMap", "a/kube-root-ca.crt");
        assert_eq!(Virtualiser::example().left_out(&authority, None), Some(LeftOut::MadeByControllers));
        for kind in ["v1.ConfigMap", "scheduling.k8s.io/v1.PriorityClass", "apps/v1.Deployment"] {
            assert_eq!(Virtualiser::example().left_out(&object(kind, "a/b"), None), None, "{kind}");
        }
    }

    #[test]
    fn recorded_hosts_are_not_answered_for_unless_that_is_listed() {
        for kind in ["networking.k8s.io/v1.Ingress", "gateway.networking.k8s.io/v1.HTTPRoute"] {
            let object = ObjectRef::new(kind.parse().unwrap(), "a/x".parse().unwrap());
            assert_eq!(Virtualiser::example().left_out(&object, None), Some(LeftOut::OpenToOutside), "{kind}");
            let listed = Virtualiser { listed: [kind.parse().unwrap()].into(), ..Virtualiser::example() };
            assert_eq!(listed.left_out(&object, None), None, "{kind}");
        }
        let policy = ObjectRef::new("networking.k8s.io/v1.NetworkPolicy".parse().unwrap(), "a/x".parse().unwrap());
        assert_eq!(Virtualiser::example().left_out(&policy, None), None);
    }

    #[test]
    fn no_load_balancer_is_ordered_and_no_address_taken() {
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "a"},
            "spec": {"type": "LoadBalancer", "ipFamilies": ["IPv6"], "loadBalancerClass": "x",
                "externalIPs": ["203.0.113.7"], "ports": [{"port": 80}]},
        });
        assert_eq!(virtualised(service, &[])["spec"], json!({"type": "ClusterIP", "ports": [{"port": 80}]}));
    }

    #[test]
    fn accounts_of_all_templates_are_found() {
        let templates = ["/a".parse().unwrap(), "/b/*".parse().unwrap()];
        let value =
            json!({"a": {"spec": {}}, "b": [{"spec": {"serviceAccountName": "x"}}, {"spec": {"serviceAccount": "y"}}]});
        assert_eq!(service_accounts(&value, &templates), ["default", "x", "y"].map(SmolStr::from).into());
    }

    #[test]
    fn objects_of_any_shape_are_left_standing() {
        for spec in [json!(null), json!(3), json!({"template": 3}), json!({"template": {"spec": [], "metadata": null}})]
        {
            let value = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec});
            virtualised(value, &["/spec/template"]);
        }
    }
}
