//! Converts API objects to the scheduler library's types.

use std::sync::Arc;

use serde_json::{Value, json};
use sk_apiserver::kinds::{Pod, PodSpec};
use sk_apiserver::{Labels, Object, OwnerRef};
use sk_core::SmolStr;
use sk_core::lookup::{Lookup, hash_of};
use sk_scheduler::class::ClassError;
use sk_scheduler::{ClassId, Cluster, NodeSpec, PodClass};

/// How many classes are remembered by the addresses of what they are made of; one per pod template in use. An entry is
/// about 100 bytes, so at most 7 MB. Beyond that all are forgotten and found again by content.
const CLASS_MEMORY: usize = 1 << 16;

/// The classes of pods, each derived once per spec, labels and owner.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes {
    keeps_claims: bool,
    known: Vec<Known>,
    places: Lookup<u32>,
}

/// What a class was made from. Held, so that an address cannot come to mean something else.
#[derive(Clone, Debug)]
struct Known {
    spec: Arc<PodSpec>,
    labels: Labels,
    namespace: SmolStr,
    owner: Option<OwnerRef>,
    class: Result<ClassId, ClassError>,
}

impl Known {
    fn is_of(&self, object: &Object, pod: &Pod) -> bool {
        Arc::ptr_eq(&self.spec, &pod.spec)
            && self.labels.is_same(&object.meta.labels)
            && self.namespace == object.key.namespace_or_empty()
            && self.owner.as_ref() == object.controller()
    }

    fn hash(&self) -> u64 {
        hash(&self.spec, &self.labels, self.owner.as_ref())
    }
}

/// By address, which only ever decides whether two are the same and never orders anything.
fn hash(spec: &Arc<PodSpec>, labels: &Labels, owner: Option<&OwnerRef>) -> u64 {
    hash_of(&(Arc::as_ptr(spec).addr(), labels.address(), owner.map(|owner| owner.uid)))
}

impl Classes {
    /// Classes with the claims that their pods name, for whoever knows how these stand.
    pub(crate) fn with_claims() -> Self {
        Self { keeps_claims: true, ..Self::default() }
    }

    /// The class of a pod.
    pub(crate) fn of(&mut self, object: &Object, pod: &Pod, cluster: &mut Cluster) -> Result<ClassId, ClassError> {
        let hash = hash(&pod.spec, &object.meta.labels, object.controller());
        let known = &self.known;
        if let Some(place) = self.places.find(hash, |place| known[*place as usize].is_of(object, pod)) {
            return known[*place as usize].class.clone();
        }
        if self.known.len() >= CLASS_MEMORY {
            self.known.clear();
            self.places.clear();
        }
        let class = class(object, pod, self.keeps_claims).map(|class| cluster.intern(class));
        let entry = Known {
            spec: pod.spec.clone(),
            labels: object.meta.labels.clone(),
            namespace: object.key.namespace_or_empty().into(),
            owner: object.controller().cloned(),
            class: class.clone(),
        };
        let place = u32::try_from(self.known.len()).expect("there are at most CLASS_MEMORY");
        self.known.push(entry);
        let known = &self.known;
        self.places.insert(hash, place, |place| known[*place as usize].hash());
        class
    }
}

fn class(object: &Object, pod: &Pod, keeps_claims: bool) -> Result<PodClass, ClassError> {
    let owner = |owner: &OwnerRef| json!([{"apiVersion": owner.gvk.api_version(), "kind": owner.gvk.kind, "name": owner.name, "uid": owner.uid.to_string(), "controller": true}]);
    let metadata = json!({"labels": object.meta.labels, "ownerReferences": object.controller().map(owner)});
    let mut class = PodClass::from_json(object.key.namespace_or_empty(), &metadata, &json!(*pod.spec))?;
    // An ephemeral volume's claim is made for the pod, and its volume where the pod goes.
    class.claims.retain(|claim| keeps_claims && !claim.ephemeral);
    Ok(class)
}

/// A node without its pods; `None` for other objects.
pub(crate) fn node(object: &Object) -> Option<NodeSpec> {
    let node = object.node()?;
    let mut spec = NodeSpec {
        name: object.key.name.clone(),
        labels: (*object.meta.labels).clone(),
        taints: node.spec.taints.clone(),
        unschedulable: node.spec.unschedulable,
        images: images(node.status.rest.get("images")),
        ..NodeSpec::default()
    };
    spec.set_allocatable(&node.status.allocatable);
    Some(spec)
}

fn images(list: Option<&Value>) -> Vec<(i64, Vec<SmolStr>)> {
    let image = |image: &Value| {
        let names = image.get("names").and_then(Value::as_array).into_iter().flatten();
        let names = names.filter_map(|name| name.as_str().map(SmolStr::from)).collect();
        (image.get("sizeBytes").and_then(Value::as_i64).unwrap_or(0), names)
    };
    list.and_then(Value::as_array).into_iter().flatten().map(image).collect()
}
