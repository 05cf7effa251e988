//! Which nodes a DaemonSet runs on, and the affinity and tolerations that its pods get (`NodeShouldRunDaemonPod`,
//! `util/daemonset_util.go`, 1.36).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use sk_apiserver::Object;
use sk_apiserver::kinds::{DaemonSetSpec, PodSpec};
use sk_core::{SmolStr, TaintEffect, Toleration};
use sk_scheduler::PodClass;
use sk_scheduler::class::NodeSelectorTerm;

const NODE_AFFINITY: &str = "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
const NAME_FIELD: &str = "metadata.name";

/// What a daemon set's template says about nodes.
#[derive(Clone, Debug)]
pub(super) struct Placement {
    /// The template with the tolerations that every daemon pod has.
    spec: PodSpec,
    node_name: Option<SmolStr>,
    selector: BTreeMap<SmolStr, SmolStr>,
    required: Option<Vec<NodeSelectorTerm>>,
}

/// May a node have the pod?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fit {
    /// It should get one.
    pub(super) should_run: bool,
    /// One that is there may stay.
    pub(super) may_stay: bool,
}

impl Placement {
    pub(super) fn of(set: &DaemonSetSpec) -> Self {
        let mut spec = PodSpec::clone(&set.template.spec);
        add_tolerations(&mut spec);
        let class = PodClass::from_json("", &json!({}), &json!(spec));
        // A template that the scheduler cannot read fits nowhere.
        let nowhere = || Some(Vec::new());
        let (selector, required) = class.map_or_else(
            |_| (BTreeMap::new(), nowhere()),
            |class| (class.shape.node_selector, class.shape.required_affinity),
        );
        let node_name = spec.rest.get("nodeName").and_then(Value::as_str).filter(|name| !name.is_empty());
        Self { node_name: node_name.map(SmolStr::from), selector, required, spec }
    }

    /// May this node have the pod?
    pub(super) fn fit(&self, node: &Object) -> Fit {
        let Some(body) = node.node() else { return Fit { should_run: false, may_stay: false } };
        let labels = &*node.meta.labels;
        let is_meant = self.node_name.as_ref().is_none_or(|name| *name == node.key.name)
            && self.selector.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.required.as_ref().is_none_or(|terms| terms.iter().any(|term| term.matches(&node.key.name, labels)));
        let bears = |effects: &[TaintEffect]| {
            let mut taints = body.spec.taints.iter().filter(|taint| effects.contains(&taint.effect));
            taints.all(|taint| self.spec.tolerations.iter().any(|toleration| toleration.tolerates(taint)))
        };
        Fit {
            should_run: is_meant && bears(&[TaintEffect::NoExecute, TaintEffect::NoSchedule]),
            may_stay: is_meant && bears(&[TaintEffect::NoExecute]),
        }
    }

    /// The spec of the pod for one node.
    pub(super) fn spec_for(&self, node: &str) -> Arc<PodSpec> {
        let mut spec = self.spec.clone();
        let mut affinity = spec.affinity.take().filter(Value::is_object).unwrap_or_else(|| json!({}));
        affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] =
            json!([{"matchFields": [{"key": NAME_FIELD, "operator": "In", "values": [node]}]}]);
        spec.affinity = Some(affinity);
        Arc::new(spec)
    }
}

/// The node a pod is on, or is pinned to (`GetTargetNodeName`).
pub(super) fn target(pod: &Object) -> Option<SmolStr> {
    let pod = pod.pod()?;
    if let Some(node) = &pod.node_name {
        return Some(node.clone());
    }
    let terms = pod.spec.affinity.as_ref()?.pointer(NODE_AFFINITY)?.as_array()?;
    let fields = terms.iter().filter_map(|term| term.get("matchFields")?.as_array()).flatten();
    let mut names = fields.filter(|field| field["key"] == NAME_FIELD && field["operator"] == "In");
    match names.next()?.get("values")?.as_array()?.as_slice() {
        [name] => name.as_str().map(SmolStr::from),
        _ => None,
    }
}

/// Daemon pods stay on nodes in trouble (`AddOrUpdateDaemonPodTolerations`).
fn add_tolerations(spec: &mut PodSpec) {
    use TaintEffect::{NoExecute, NoSchedule};
    let is_on_host = spec.rest.get("hostNetwork").and_then(Value::as_bool).unwrap_or(false);
    let all = [
        ("node.kubernetes.io/not-ready", NoExecute),
        ("node.kubernetes.io/unreachable", NoExecute),
        ("node.kubernetes.io/disk-pressure", NoSchedule),
        ("node.kubernetes.io/memory-pressure", NoSchedule),
        ("node.kubernetes.io/pid-pressure", NoSchedule),
        ("node.kubernetes.io/unschedulable", NoSchedule),
    ];
    let network = is_on_host.then_some(("node.kubernetes.io/network-unavailable", NoSchedule));
    for (key, effect) in all.into_iter().chain(network) {
        let wanted = Toleration::exists(key, effect, None);
        let is_same = |known: &Toleration| {
            let seconds = known.toleration_seconds;
            Toleration { toleration_seconds: seconds, ..wanted.clone() } == *known
        };
        match spec.tolerations.iter_mut().find(|known| is_same(known)) {
            Some(known) => *known = wanted,
            None => spec.tolerations.push(wanted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(spec: &Value) -> Placement {
        let set = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "namespace": "n"},
            "spec": {"template": {"spec": spec}},
        });
        let object = Object::from_json(set).unwrap();
        Placement::of(&object.daemon_set().unwrap().spec)
    }

    fn node(name: &str, labels: &Value, taints: &Value) -> Object {
        let metadata = json!({"name": name, "labels": labels});
        let json = json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": taints}});
        Object::from_json(json).unwrap()
    }

    fn fit(spec: &Value, node: &Object) -> (bool, bool) {
        let fit = placement(spec).fit(node);
        (fit.should_run, fit.may_stay)
    }

    #[test]
    fn a_node_has_the_pod_if_selector_affinity_and_name_match() {
        let plain = node("a", &json!({"disk": "ssd"}), &json!([]));
        assert_eq!(fit(&json!({"containers": []}), &plain), (true, true));
        assert_eq!(fit(&json!({"containers": [], "nodeSelector": {"disk": "hdd"}}), &plain), (false, false));
        assert_eq!(fit(&json!({"containers": [], "nodeName": "b"}), &plain), (false, false));
        let affinity = |value: &str| {
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "disk", "operator": "In", "values": [value]}]},
            ]}}})
        };
        assert_eq!(fit(&json!({"containers": [], "affinity": affinity("ssd")}), &plain), (true, true));
        assert_eq!(fit(&json!({"containers": [], "affinity": affinity("hdd")}), &plain), (false, false));
    }

    #[test]
    fn a_taint_keeps_new_pods_away_and_only_no_execute_drives_old_ones_off() {
        let tainted = |key: &str, effect: &str| node("a", &json!({}), &json!([{"key": key, "effect": effect}]));
        let any = || json!({"containers": []});
        assert_eq!(fit(&any(), &tainted("dedicated", "NoSchedule")), (false, true));
        assert_eq!(fit(&any(), &tainted("dedicated", "NoExecute")), (false, false));
        assert_eq!(fit(&any(), &tainted("dedicated", "PreferNoSchedule")), (true, true));
        assert_eq!(fit(&any(), &tainted("node.kubernetes.io/unschedulable", "NoSchedule")), (true, true), "cordoned");
        assert_eq!(fit(&any(), &tainted("node.kubernetes.io/not-ready", "NoExecute")), (true, true));
        assert_eq!(fit(&any(), &tainted("node.kubernetes.io/network-unavailable", "NoSchedule")), (false, true));
        let host = json!({"containers": [], "hostNetwork": true});
        assert_eq!(fit(&host, &tainted("node.kubernetes.io/network-unavailable", "NoSchedule")), (true, true));
    }

    #[test]
    fn a_pod_is_pinned_to_its_node_and_found_there_before_it_is_bound() {
        let preferred = json!([{"weight": 1, "preference": {}}]);
        let affinity = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}});
        let spec = placement(&json!({"containers": [], "affinity": affinity})).spec_for("b");
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": *spec});
        assert_eq!(target(&Object::from_json(pod).unwrap()).as_deref(), Some("b"));
        let kept = &spec.affinity.as_ref().unwrap()["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
        assert_eq!(*kept, preferred, "what the template prefers stays");
    }
}
