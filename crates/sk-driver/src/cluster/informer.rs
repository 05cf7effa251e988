//! Translates watch events of the cluster for the recorder and the driver. Pure.
//!
//! Objects arrive with the run's names and wall-clock times. They leave with the trace's names, at the time on the
//! trace's clock at which the driver saw them: Kubernetes' own timestamps are whole seconds, which is most of a minute
//! at fifty times the recorded speed, while a watch is only milliseconds late. An interrupted watch lists everything
//! again, so an object that is missing then was deleted, and a pod with the same name and another uid is another pod.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use sk_api::simulation::names;
use sk_core::template::TEMPLATE_ANNOTATION;
use sk_core::{ObjectKey, SimDuration, SimTime, SmolStr};
use sk_engine::api::directives::{CREATE_DELAY, LIFETIME, NODE_GROUP};
use sk_engine::api::{ApiError, Body, Change, Object};
use sk_engine::kinds::PodPhase;

use super::virtualise::Virtualiser;
use sk_replay::plan::{OWNER_ANNOTATION, parse_owner};
use sk_replay::record::Seen;

/// Labels by which other makers of KWOK nodes say which group a node is of: cluster-autoscaler's and Karpenter's.
const OTHER_GROUP_LABELS: [&str; 2] = ["kwok-nodegroup", "karpenter.sh/nodepool"];

/// What a sight of a pod or node leads to.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// Sends to the recorder.
    Record(Seen),
    /// The pod was made without the webhook: it is given its delays and its life now.
    Admit(Pod, Stamp),
    /// The pod runs, and is to end after so long.
    End(Pod, SimDuration),
    /// A pod without an owner went before its end.
    Interrupted(ObjectKey),
}

/// A pod as the cluster calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pod {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// What the plan has stamped on a pod's template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) owner: Option<SmolStr>,
    pub(crate) template: Option<SmolStr>,
}

/// The pods or the nodes of a run, as its watch has them.
pub(crate) struct Informer {
    virtualiser: Virtualiser,
    /// The last state of each that is there, without its spec: that is what a deletion is told with. About 600 bytes
    /// each, 90 MB for the 150,000 pods that Kubernetes allows.
    known: BTreeMap<ObjectKey, Known>,
    /// What was listed since the watch began anew.
    listed: Option<BTreeSet<ObjectKey>>,
}

struct Known {
    object: Arc<Object>,
    /// Its end was asked for.
    has_end: bool,
}

impl Informer {
    pub(crate) fn new(virtualiser: Virtualiser) -> Self {
        Self { virtualiser, known: BTreeMap::new(), listed: None }
    }

    /// The watch begins anew; everything that is there follows.
    pub(crate) fn begin_list(&mut self) {
        self.listed = Some(BTreeSet::new());
    }

    /// Everything that is there has been seen: the rest is gone.
    pub(crate) fn end_list(&mut self, at: SimTime) -> Vec<Effect> {
        let Some(listed) = self.listed.take() else { return Vec::new() };
        let gone: Vec<_> = self.known.keys().filter(|key| !listed.contains(*key)).cloned().collect();
        gone.iter().flat_map(|key| self.forget(key, at)).collect()
    }

    /// An object is there, new or changed.
    pub(crate) fn see(&mut self, value: Value, at: SimTime) -> Result<Vec<Effect>, ApiError> {
        let (object, pod) = self.read(value, at)?;
        if pod.as_ref().is_some_and(|pod| !self.is_ours(pod)) {
            return Ok(Vec::new());
        }
        if let Some(listed) = &mut self.listed {
            listed.insert(object.key.clone());
        }
        let mut effects = Vec::new();
        if self.known.get(&object.key).is_some_and(|known| known.object.uid != object.uid) {
            effects.extend(self.forget(&object.key, at));
        }
        let before = self.known.get(&object.key);
        let (is_new, mut has_end) = (before.is_none(), before.is_some_and(|known| known.has_end));
        if let Some(pod) = pod {
            effects.extend(wants(&object, pod, is_new, &mut has_end));
        }
        self.known.insert(object.key.clone(), Known { object: Arc::new(slim(&object)), has_end });
        let change = if is_new { Change::Added } else { Change::Modified };
        effects.push(Effect::Record(Seen { at, change, object: Arc::new(object) }));
        Ok(effects)
    }

    /// An object is gone; this was its last state.
    pub(crate) fn lose(&mut self, value: Value, at: SimTime) -> Result<Vec<Effect>, ApiError> {
        let (object, _) = self.read(value, at)?;
        match self.known.get_mut(&object.key) {
            // A later one of the same name is not the one that went.
            Some(known) if known.object.uid == object.uid => {
                known.object = Arc::new(slim(&object));
                Ok(self.forget(&object.key, at))
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Does the pod stand in a namespace of the run? Labels alone can be on anybody's pod.
    fn is_ours(&self, pod: &Pod) -> bool {
        self.virtualiser.original_namespace(&pod.namespace).is_some()
    }

    fn forget(&mut self, key: &ObjectKey, at: SimTime) -> Vec<Effect> {
        let Some(Known { object, .. }) = self.known.remove(key) else { return Vec::new() };
        let mut effects = Vec::new();
        if is_interrupted(&object) {
            let namespace = object.key.namespace.as_ref().map(|namespace| self.virtualiser.namespace(namespace));
            effects.push(Effect::Interrupted(ObjectKey { namespace, name: key.name.clone() }));
        }
        effects.push(Effect::Record(Seen { at, change: Change::Deleted, object }));
        effects
    }

    /// The object with the trace's names and times, and what the cluster calls it if it is a pod.
    fn read(&self, value: Value, at: SimTime) -> Result<(Object, Option<Pod>), ApiError> {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let pod =
            Pod { namespace: text("/metadata/namespace"), name: text("/metadata/name"), uid: text("/metadata/uid") };
        let mut object = Object::from_json(value)?;
        let namespace = object.key.namespace.as_deref();
        let original = namespace.and_then(|namespace| self.virtualiser.original_namespace(namespace));
        if let Some(original) = original.map(SmolStr::from) {
            let key = ObjectKey::namespaced(original, object.key.name.clone());
            object = object.with_key(key);
        }
        match &mut object.body {
            Body::Pod(body) => {
                let status = &mut body.status;
                status.started = status.started.and(Some(at));
                status.finished = status.finished.and(Some(at));
                Ok((object, Some(pod)))
            }
            Body::Node(_) => {
                name_group(&mut object);
                Ok((object, None))
            }
            _ => Ok((object, None)),
        }
    }
}

/// What a pod needs from the driver.
fn wants(object: &Object, pod: Pod, is_new: bool, has_end: &mut bool) -> Vec<Effect> {
    let Body::Pod(body) = &object.body else { return Vec::new() };
    let annotations = &object.meta.annotations;
    if object.is_deleting() || body.status.phase.is_final() {
        return Vec::new();
    }
    if !annotations.contains_key(&CREATE_DELAY) {
        let stamped = |name: &str| annotations.get(name).cloned();
        let stamp = Stamp { owner: stamped(OWNER_ANNOTATION), template: stamped(TEMPLATE_ANNOTATION) };
        return if is_new { vec![Effect::Admit(pod, stamp)] } else { Vec::new() };
    }
    if body.status.phase != PodPhase::Running || *has_end {
        return Vec::new();
    }
    let Some(lifetime) = annotations.get(&LIFETIME).and_then(|text| read_micros(text)) else { return Vec::new() };
    *has_end = true;
    if object.meta.labels.contains_key(names::COMPLETE_LABEL) {
        return Vec::new();
    }
    vec![Effect::End(pod, lifetime)]
}

/// A pod that stood for itself and had not ended.
fn is_interrupted(object: &Object) -> bool {
    let Body::Pod(body) = &object.body else { return false };
    let owner = object.meta.annotations.get(OWNER_ANNOTATION).and_then(|text| parse_owner(text));
    !body.status.phase.is_final() && owner.is_some_and(|owner| owner.gvk.kind == "Pod")
}

/// `<n>us`, as [`sk_engine::api::directives::micros`] writes it.
fn read_micros(text: &str) -> Option<SimDuration> {
    text.strip_suffix("us")?.parse().ok().map(SimDuration::from_micros)
}

/// The object without what only its first sight is read for.
fn slim(object: &Object) -> Object {
    let mut slim = object.clone();
    if let Body::Pod(pod) = &mut slim.body {
        pod.spec = Arc::default();
    }
    slim.meta.annotations.make_mut().retain(|name, _| name == OWNER_ANNOTATION);
    slim
}

fn name_group(node: &mut Object) {
    if node.meta.labels.contains_key(&NODE_GROUP) {
        return;
    }
    let found = OTHER_GROUP_LABELS.iter().find_map(|label| node.meta.labels.get(*label)).cloned();
    if let Some(group) = found {
        node.meta.labels.make_mut().insert(NODE_GROUP, group);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const AT: SimTime = SimTime::from_secs(1_000);

    fn informer() -> Informer {
        Informer::new(Virtualiser::example())
    }

    fn pod(number: u128, phase: &str, annotations: &Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "p", "namespace": "virtual-shop", "uid": sk_engine::api::Uid(number).to_string(),
                "resourceVersion": "7", "annotations": annotations, "managedFields": [{"manager": "x"}],
            },
            "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"},
            "status": {"phase": phase, "containerStatuses": [{"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]},
        })
    }

    fn admitted() -> Value {
        json!({
            "simkube.io/kwok-stage-create-delay": "0ms", "static.simkube.io/lifetime": "5000000us",
            "static.simkube.io/owner": "v1.Pod:shop/p",
        })
    }

    fn names(effects: &[Effect]) -> Vec<String> {
        let name = |effect: &Effect| match effect {
            Effect::Record(event) => format!("{:?} {}", event.change, event.object.key),
            Effect::Admit(pod, _) => format!("admit {}/{}", pod.namespace, pod.name),
            Effect::End(pod, after) => format!("end {}/{} after {after}", pod.namespace, pod.name),
            Effect::Interrupted(key) => format!("interrupted {key}"),
        };
        effects.iter().map(name).collect()
    }

    #[test]
    fn a_pod_is_recorded_under_its_original_name_and_asked_to_end_once() {
        let mut informer = informer();
        let pending = informer.see(pod(1, "Pending", &admitted()), AT).unwrap();
        assert_eq!(names(&pending), ["Added shop/p"]);
        let Effect::Record(event) = &pending[0] else { panic!("{pending:?}") };
        assert_eq!(
            event.object.pod().unwrap().status.started,
            Some(AT),
            "seen then, whatever the cluster's clock says"
        );
        let running = informer.see(pod(1, "Running", &admitted()), AT).unwrap();
        assert_eq!(names(&running), ["end virtual-shop/p after 5s", "Modified shop/p"]);
        assert_eq!(names(&informer.see(pod(1, "Running", &admitted()), AT).unwrap()), ["Modified shop/p"]);
        assert_eq!(names(&informer.lose(pod(1, "Succeeded", &admitted()), AT).unwrap()), ["Deleted shop/p"]);
    }

    #[test]
    fn a_pod_that_the_webhook_did_not_see_is_admitted_once() {
        let mut informer = informer();
        let first = names(&informer.see(pod(1, "Pending", &json!({})), AT).unwrap());
        assert_eq!(first, ["admit virtual-shop/p", "Added shop/p"]);
        assert_eq!(names(&informer.see(pod(1, "Pending", &json!({})), AT).unwrap()), ["Modified shop/p"]);
    }

    #[test]
    fn a_pod_outside_the_runs_namespaces_is_neither_recorded_nor_patched() {
        let mut informer = informer();
        let mut driver = pod(1, "Running", &json!({}));
        driver["metadata"]["namespace"] = json!("simkube");
        assert_eq!(names(&informer.see(driver.clone(), AT).unwrap()), Vec::<String>::new());
        assert_eq!(names(&informer.lose(driver, AT).unwrap()), Vec::<String>::new());
    }

    #[test]
    fn what_a_new_list_does_not_have_is_gone_and_another_uid_is_another_pod() {
        let mut informer = informer();
        informer.see(pod(1, "Running", &json!({})), AT).unwrap();
        informer.begin_list();
        let other = names(&informer.see(pod(2, "Pending", &admitted()), AT).unwrap());
        assert_eq!(other, ["Deleted shop/p", "Added shop/p"]);
        assert_eq!(names(&informer.end_list(AT)), Vec::<String>::new());
        assert_eq!(names(&informer.lose(pod(1, "Running", &json!({})), AT).unwrap()), Vec::<String>::new());
        informer.begin_list();
        assert_eq!(names(&informer.end_list(AT)), ["interrupted virtual-shop/p", "Deleted shop/p"]);
    }

    #[test]
    fn a_node_of_another_maker_is_of_its_makers_group() {
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": "n", "uid": sk_engine::api::Uid(1).to_string(), "labels": {"karpenter.sh/nodepool": "spot"}},
        });
        let effects = informer().see(node, AT).unwrap();
        let Effect::Record(event) = &effects[0] else { panic!("{effects:?}") };
        assert_eq!(event.object.meta.labels.get(&NODE_GROUP).unwrap(), "spot");
    }
}
