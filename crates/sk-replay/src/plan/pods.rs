//! Pods on their way into the engine: those that are alike are read once, and equal specs are one.
//!
//! What the engine derives from a spec (what it is admitted as, how it is scheduled) it remembers by the spec's address.
//! So it matters that a hundred thousand pods of twenty templates hold twenty specs, also where each pod has labels of
//! its own.

use std::sync::Arc;

use serde_json::Value;
use sk_core::lookup::{Lookup, hash_of};
use sk_core::memo::Memo;
use sk_core::{ObjectKey, SmolStr};
use sk_engine::api::Object;
use sk_engine::kinds::PodSpec;
use sk_store::trace::Shape;

use super::Content;
use super::demand::Demand;

/// How many shapes are remembered; a trace's reader keeps no more at a time.
const MAX_ALIKE: usize = 1 << 10;
/// How many specs are remembered, by their JSON. Both are 1 to 3 KB, so at most 4,096 x 5 KB = 20 MB.
const MAX_SPECS: usize = 1 << 12;

/// Pods that were made ready.
pub(super) struct Pods {
    alike: Memo<Shape, Option<Arc<Alike>>>,
    specs: Specs,
}

/// Specs by their JSON.
#[derive(Clone, Default)]
struct Specs {
    known: Vec<(Box<[u8]>, Arc<PodSpec>)>,
    places: Lookup<u32>,
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
}
