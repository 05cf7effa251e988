//! Classes and shapes, each once.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::images::Images;
use crate::next::class::{PodClass, Shape};
use crate::next::ids::{ClassId, ResourceId, ShapeId};
use crate::next::intern::Interner;

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
    ids: BTreeMap<Arc<PodClass>, ClassId>,
    classes: Vec<(Arc<PodClass>, ShapeId)>,
    shape_ids: BTreeMap<Arc<Shape>, ShapeId>,
    shapes: Vec<Arc<ShapeEntry>>,
    pub(crate) resources: Interner,
}

impl Classes {
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
        if let Some(id) = self.ids.get(&class) {
            return *id;
        }
        let id = ClassId::from_index(self.classes.len());
        let shape = self.intern_shape(&class.shape, images);
        let class = Arc::new(class);
        self.ids.insert(Arc::clone(&class), id);
        self.classes.push((class, shape));
        id
    }

    fn intern_shape(&mut self, shape: &Shape, images: &mut Images) -> ShapeId {
        if let Some(id) = self.shape_ids.get(shape) {
            return *id;
        }
        let id = ShapeId::from_index(self.shapes.len());
        let scalars = shape.requests.scalars.iter();
        let entry = ShapeEntry {
            scalars: scalars.map(|(name, amount)| (ResourceId(self.resources.intern(name)), *amount)).collect(),
            images: shape.images.iter().map(|name| images.intern(name)).collect(),
            shape: Arc::new(shape.clone()),
        };
        self.shape_ids.insert(Arc::clone(&entry.shape), id);
        self.shapes.push(Arc::new(entry));
        id
    }
}
