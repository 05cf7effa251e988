//! Pod classes and shapes, each stored once.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use sk_core::lookup::hash_of;

use super::images::Images;
use crate::class::{PodClass, Shape};
use crate::ids::{ClassId, ResourceId, ShapeId};
use crate::intern::Interner;

/// A shape with its names resolved.
#[derive(Clone, Debug)]
pub(crate) struct ShapeEntry {
    pub(crate) shape: Arc<Shape>,
    pub(crate) scalars: Vec<(ResourceId, i64)>,
    pub(crate) images: Vec<u32>,
}

/// Everything ever interned. A class is kept for good: its id may stand in logs and records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes {
    /// By hash; more than one class per hash is possible, if unlikely.
    ids: BTreeMap<u64, Vec<ClassId>>,
    classes: Vec<(Arc<PodClass>, ShapeId)>,
    /// The classes with a label, in order, by the hash of namespace, key and value; others of the same hash are among them.
    labelled: BTreeMap<u64, Vec<ClassId>>,
    shape_ids: BTreeMap<u64, Vec<ShapeId>>,
    shapes: Vec<Arc<ShapeEntry>>,
    pub(crate) resources: Interner,
}

impl Classes {
    pub(crate) fn len(&self) -> usize {
        self.classes.len()
    }

    pub(crate) fn get(&self, id: ClassId) -> &Arc<PodClass> {
        &self.classes[id.index()].0
    }

    pub(crate) fn shape_of(&self, id: ClassId) -> ShapeId {
        self.classes[id.index()].1
    }

    pub(crate) fn shape(&self, id: ShapeId) -> &Arc<ShapeEntry> {
        &self.shapes[id.index()]
    }

    pub(crate) fn intern(&mut self, class: PodClass, images: &mut Images) -> ClassId {
        let hash = hash(&class);
        let known = self.ids.get(&hash).into_iter().flatten();
        if let Some(id) = known.into_iter().find(|id| *self.classes[id.index()].0 == class) {
            return *id;
        }
        let id = ClassId::from_index(self.classes.len());
        let shape = self.intern_shape(&class.shape, images);
        self.ids.entry(hash).or_default().push(id);
        for (key, value) in &class.labels {
            self.labelled.entry(label_hash(&class.namespace, key, value)).or_default().push(id);
        }
        self.classes.push((Arc::new(class), shape));
        id
    }

    /// The classes from `first` on that have a label, in order, and perhaps a few that do not.
    pub(crate) fn labelled(&self, namespace: &str, key: &str, value: &str, first: usize) -> &[ClassId] {
        let all = self.labelled.get(&label_hash(namespace, key, value)).map_or(&[][..], Vec::as_slice);
        &all[all.partition_point(|class| class.index() < first)..]
    }

    fn intern_shape(&mut self, shape: &Shape, images: &mut Images) -> ShapeId {
        let hash = hash(shape);
        let known = self.shape_ids.get(&hash).into_iter().flatten();
        if let Some(id) = known.into_iter().find(|id| *self.shapes[id.index()].shape == *shape) {
            return *id;
        }
        let id = ShapeId::from_index(self.shapes.len());
        let scalars = shape.requests.scalars.iter();
        let entry = ShapeEntry {
            scalars: scalars.map(|(name, amount)| (ResourceId(self.resources.intern(name)), *amount)).collect(),
            images: shape.images.iter().map(|name| images.intern(name)).collect(),
            shape: Arc::new(shape.clone()),
        };
        self.shape_ids.entry(hash).or_default().push(id);
        self.shapes.push(Arc::new(entry));
        id
    }
}

fn label_hash(namespace: &str, key: &str, value: &str) -> u64 {
    hash_of(&(namespace, key, value))
}

/// `DefaultHasher::new` has fixed keys, so this is the same in every run; and nobody iterates over it.
fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
