//! Reads pods for the engine: equal pods are decoded once, and equal specs and equal labels are shared.
//!
//! The engine caches what it derives from a spec (admission, scheduling class) by the addresses of spec and labels. So
//! a hundred thousand pods of twenty templates must hold twenty specs, also where each pod has labels of its own, and
//! as few label maps as there are different ones.

use std::sync::Arc;

use serde_json::Value;
use sk_core::lookup::{Lookup, hash_of};
use sk_core::memo::Memo;
use sk_core::{ObjectKey, SmolStr};
use sk_engine::api::{Labels, Object};
use sk_engine::kinds::PodSpec;
use sk_store::trace::Shape;

use super::Content;
use super::demand::Demand;

/// How many shapes are remembered; a trace's reader keeps no more at a time.
const MAX_ALIKE: usize = 1 << 10;
/// How many specs are remembered, by their JSON. Both are 1 to 3 KB, so at most 4,096 x 5 KB = 20 MB.
const MAX_SPECS: usize = 1 << 12;
/// How many maps of labels are remembered: 4,096 x 1 KB = 4 MB.
const MAX_LABELS: usize = 1 << 12;

/// Pods that were made ready.
pub(super) struct Pods {
    alike: Memo<Shape, Option<Arc<Alike>>>,
    specs: Specs,
}

/// Specs by their JSON, and labels.
#[derive(Clone, Default)]
struct Specs {
    known: Vec<(Box<[u8]>, Arc<PodSpec>)>,
    places: Lookup<u32>,
    labels: Vec<Labels>,
    label_places: Lookup<u32>,
}

/// A pod ready to be applied, but for its name.
pub(super) struct Alike {
    object: Object,
    pub(super) demand: Demand,
}

impl Alike {
    /// The pod of this name.
    pub(super) fn named(&self, name: &SmolStr) -> Object {
        let namespace = self.object.key.namespace.clone();
        self.object.clone().with_key(ObjectKey { namespace, name: name.clone() })
    }
}

impl Clone for Pods {
    /// For a plan with a reader of its own, which makes shapes of its own: only the specs are known there.
    fn clone(&self) -> Self {
        Self { specs: self.specs.clone(), ..Self::default() }
    }
}

impl Default for Pods {
    fn default() -> Self {
        Self { alike: Memo::new(MAX_ALIKE), specs: Specs::default() }
    }
}

impl Pods {
    /// What pods of this shape are. `prepare` makes one ready and says what it asks for; nothing if each must be looked at
    /// by itself.
    pub(super) fn alike(
        &mut self,
        shape: &Arc<Shape>,
        prepare: impl FnOnce(&Value) -> Option<(Value, Demand)>,
    ) -> Option<Arc<Alike>> {
        let Self { alike, specs } = self;
        alike.get_or_insert_with(shape, |shape| {
            let (value, demand) = prepare(shape.example())?;
            match specs.read(value) {
                Content::Read(object) => Some(Arc::new(Alike { object: *object, demand })),
                Content::Json(_) => None,
            }
        })
    }

    /// The pod as the engine holds it; as JSON if it cannot be read, so that the server says why.
    pub(super) fn read(&mut self, value: Value) -> Content {
        self.specs.read(value)
    }
}

impl Specs {
    fn read(&mut self, value: Value) -> Content {
        let spec = value.get("spec").map(Value::to_string).unwrap_or_default();
        match Object::from_json(value.clone()) {
            Ok(mut object) => {
                if let Some(pod) = object.pod_mut() {
                    pod.spec = self.interned(spec.as_bytes(), &pod.spec);
                }
                object.meta.labels = self.interned_labels(&object.meta.labels);
                Content::Read(Box::new(object))
            }
            Err(_) => Content::Json(value),
        }
    }

    fn interned(&mut self, json: &[u8], spec: &Arc<PodSpec>) -> Arc<PodSpec> {
        let (hash, known) = (hash_of(json), &self.known);
        if let Some(place) = self.places.find(hash, |place| *known[*place as usize].0 == *json) {
            return known[*place as usize].1.clone();
        }
        if self.known.len() >= MAX_SPECS {
            self.known.clear();
            self.places.clear();
        }
        let place = u32::try_from(self.known.len()).expect("there are at most MAX_SPECS");
        self.known.push((json.into(), spec.clone()));
        let known = &self.known;
        self.places.insert(hash, place, |place| hash_of(&*known[*place as usize].0));
        spec.clone()
    }

    fn interned_labels(&mut self, labels: &Labels) -> Labels {
        let (hash, known) = (hash_of(&**labels), &self.labels);
        if let Some(place) = self.label_places.find(hash, |place| known[*place as usize] == *labels) {
            return known[*place as usize].clone();
        }
        if self.labels.len() >= MAX_LABELS {
            self.labels.clear();
            self.label_places.clear();
        }
        let place = u32::try_from(self.labels.len()).expect("there are at most MAX_LABELS");
        self.labels.push(labels.clone());
        let known = &self.labels;
        self.label_places.insert(hash, place, |place| hash_of(&*known[*place as usize]));
        labels.clone()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(pods: &mut Pods, name: &str, app: &str) -> Object {
        let metadata = json!({"name": name, "namespace": "n", "labels": {"app": app}});
        let spec = json!({"containers": [{"name": "main", "image": "i"}]});
        match pods.read(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})) {
            Content::Read(object) => *object,
            Content::Json(value) => panic!("{value} is a pod"),
        }
    }

    #[test]
    fn pods_that_are_written_out_each_share_equal_specs_and_equal_labels() {
        let mut pods = Pods::default();
        let [one, same, other] =
            [("a", "web"), ("b", "web"), ("c", "api")].map(|(name, app)| read(&mut pods, name, app));
        assert!(one.meta.labels.is_same(&same.meta.labels));
        assert!(!one.meta.labels.is_same(&other.meta.labels));
        assert_eq!(other.meta.labels.get("app").map(SmolStr::as_str), Some("api"));
        let spec = |object: &Object| object.pod().map(|pod| Arc::as_ptr(&pod.spec));
        assert!(spec(&one).is_some() && spec(&one) == spec(&same) && spec(&one) == spec(&other));
    }
}
