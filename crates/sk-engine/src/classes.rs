//! Converts API objects to the scheduler library's types.

use std::sync::Arc;

use serde_json::{Value, json};
use sk_apiserver::kinds::{Pod, PodSpec};
use sk_apiserver::{Labels, Object, OwnerRef};
use sk_core::SmolStr;
use sk_core::lookup::{Lookup, hash_of};
use sk_scheduler::class::ClassError;
use sk_scheduler::{ClassId, Cluster, NodeSpec, PodClass, Scheduler};

/// How many classes are remembered by the addresses of what they are made of, at least: one per pod template in use, and
/// one per pod that is alone with its labels. Beyond that, and beyond twice as many as there are pods, all are forgotten and
/// found again by content: 160 KB at 160 bytes each, with the labels that they hold about 1 MB. Debug builds forget nearly
/// at once, so that every test tests it.
const MIN_MEMORY: usize = if cfg!(debug_assertions) { 8 } else { 1_024 };

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

    /// Frees classes that no pod has any more, if there may be many. For a moment at which nobody holds others than pods
    /// have and those that `others` names.
    pub(crate) fn free_unused<I: Iterator<Item = ClassId>>(
        &mut self,
        library: &mut Scheduler,
        others: impl FnOnce() -> I,
    ) {
        if !library.has_many_classes() {
            return;
        }
        let freed = library.free_classes(others());
        self.known.retain(|known| known.class.as_ref().is_ok_and(|class| !freed.contains(*class)));
        self.places.clear();
        let known = &self.known;
        for (place, entry) in known.iter().enumerate() {
            let place = u32::try_from(place).expect("there were as many before");
            self.places.insert(entry.hash(), place, |place| known[*place as usize].hash());
        }
    }

    /// The class of a pod.
    pub(crate) fn of(&mut self, object: &Object, pod: &Pod, cluster: &mut Cluster) -> Result<ClassId, ClassError> {
        let hash = hash(&pod.spec, &object.meta.labels, object.controller());
        let known = &self.known;
        if let Some(place) = self.places.find(hash, |place| known[*place as usize].is_of(object, pod)) {
            return known[*place as usize].class.clone();
        }
        if self.known.len() >= MIN_MEMORY.max(2 * cluster.pod_count()) {
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
        let place = u32::try_from(self.known.len()).expect("there are at most twice as many as pods");
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// As many as a release build holds without asking who uses them, and some.
    const MOST_HELD: usize = 1_024 + 64;

    fn pod(number: usize, labels: &Value) -> Object {
        let object = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": format!("p{number}"), "namespace": "ns", "labels": labels},
            "spec": {"containers": [{"name": "main", "image": "app:1"}]},
        });
        Object::from_json(object).expect("it is a pod")
    }

    /// Pods come, and each goes when twenty others have come; the first one stays.
    fn churn(labels: impl Fn(usize) -> Value) {
        let (mut classes, mut library) = (Classes::default(), Scheduler::default());
        let mut living = VecDeque::new();
        let mut first = None;
        for number in 0..4_000 {
            classes.free_unused(&mut library, std::iter::empty);
            let object = pod(number, &labels(number));
            let spec = object.pod().expect("it is a pod");
            let class = classes.of(&object, spec, &mut library.cluster).expect("it has a class");
            assert_eq!(library.cluster.class(class).labels, *object.meta.labels, "the class is the pod's own");
            let id = library.cluster.new_pod(class, object.key.name.clone());
            match first {
                None => first = Some((object, class)),
                Some(_) => living.push_back(id),
            }
            if living.len() > 20 {
                living.pop_front().into_iter().for_each(|gone| library.cluster.drop_pod(gone));
            }
            assert!(library.kept().classes <= MOST_HELD, "{:?} after {number}", library.kept());
            assert!(classes.known.len() <= MOST_HELD, "{} are remembered after {number}", classes.known.len());
            assert_eq!(classes.known.len(), classes.places.len());
        }
        let (object, class) = first.expect("there was one");
        let again = classes.of(&object, object.pod().expect("it is a pod"), &mut library.cluster);
        assert_eq!(again.ok(), Some(class), "a class that a pod has keeps its id");
    }

    #[test]
    fn pods_with_labels_of_their_own_leave_nothing_behind() {
        churn(|number| json!({"app": "x", "id": format!("v{number}")}));
    }

    #[test]
    fn pods_that_are_alike_leave_nothing_behind() {
        churn(|_| json!({"app": "x"}));
    }
}
