//! Pod classes and shapes, each stored once, for as long as anything uses them.
//!
//! Pods come and go, and many have a class of their own: a Job's pods have its uid in their labels. So classes that nothing
//! uses any more are freed, in batches ([`Scheduler::free_classes`](crate::Scheduler::free_classes)), and their ids are
//! given to others. What a batch costs (a look at every pod and every class) is shared by the at least as many classes
//! that came since the batch before, so no pod pays for counting who uses what.

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

/// Until so many are held, nobody asks who uses them: 2 MB at about 2 KB for a class, its labels and its shape. In debug
/// builds that is nearly at once, so that every test of decisions is a test of freeing too.
const MIN_HELD: usize = if cfg!(debug_assertions) { 8 } else { 1_024 };

/// A class and where it stands.
#[derive(Clone, Debug)]
struct Held {
    class: Arc<PodClass>,
    shape: ShapeId,
    /// Its place in [`Classes::order`].
    place: u32,
}

/// All that are held.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes {
    /// By hash; more than one class per hash is possible, if unlikely.
    ids: BTreeMap<u64, Vec<ClassId>>,
    /// By id.
    classes: Vec<Option<Held>>,
    free: Vec<ClassId>,
    /// In the order in which they came. An id may be an old one, so whoever wants to know what came since counts by this.
    order: Vec<ClassId>,
    /// The classes with a label, in order, by the hash of namespace, key and value; others of the same hash are among them.
    labelled: BTreeMap<u64, Vec<ClassId>>,
    shape_ids: BTreeMap<u64, Vec<ShapeId>>,
    shapes: Vec<Option<Arc<ShapeEntry>>>,
    free_shapes: Vec<ShapeId>,
    pub(crate) resources: Interner,
    /// How many were in use when that was last asked.
    were_used: usize,
}

/// What a batch freed.
#[derive(Debug)]
pub struct Freed {
    /// By id.
    classes: Vec<bool>,
    shapes: Vec<bool>,
    /// By place before: the place now; `None`: it was freed.
    places: Vec<Option<u32>>,
}

impl Freed {
    /// Was the class freed? Then its id means nothing any more, and soon another class.
    pub fn contains(&self, class: ClassId) -> bool {
        self.classes.get(class.index()).is_some_and(|freed| *freed)
    }

    pub(crate) fn has_shape(&self, shape: ShapeId) -> bool {
        self.shapes.get(shape.index()).is_some_and(|freed| *freed)
    }

    /// Where the class that had this place stands now.
    pub(crate) fn place(&self, before: usize) -> Option<u32> {
        self.places[before]
    }
}

impl Classes {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// How many shapes there are.
    pub(crate) fn shapes(&self) -> usize {
        self.shapes.len() - self.free_shapes.len()
    }

    fn held(&self, id: ClassId) -> &Held {
        self.classes[id.index()].as_ref().expect("a ClassId is used only while its class is held")
    }

    pub(crate) fn get(&self, id: ClassId) -> &Arc<PodClass> {
        &self.held(id).class
    }

    pub(crate) fn shape_of(&self, id: ClassId) -> ShapeId {
        self.held(id).shape
    }

    pub(crate) fn shape(&self, id: ShapeId) -> &Arc<ShapeEntry> {
        self.shapes[id.index()].as_ref().expect("a class that is held has its shape")
    }

    /// Its place among all, in the order in which they came.
    pub(crate) fn place(&self, id: ClassId) -> usize {
        self.held(id).place as usize
    }

    /// The class at a place.
    pub(crate) fn at(&self, place: usize) -> ClassId {
        self.order[place]
    }

    pub(crate) fn intern(&mut self, class: PodClass, images: &mut Images) -> ClassId {
        let hash = hash(&class);
        let known = self.ids.get(&hash).into_iter().flatten();
        if let Some(id) = known.into_iter().find(|id| **self.get(**id) == class) {
            return *id;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.classes.push(None);
            ClassId::from_index(self.classes.len() - 1)
        });
        let shape = self.intern_shape(&class.shape, images);
        self.ids.entry(hash).or_default().push(id);
        for (key, value) in &class.labels {
            self.labelled.entry(label_hash(&class.namespace, key, value)).or_default().push(id);
        }
        let place = u32::try_from(self.order.len()).expect("an id has as many bits");
        self.order.push(id);
        self.classes[id.index()] = Some(Held { class: Arc::new(class), shape, place });
        id
    }

    /// The classes from the place `first` on that have a label, in order, and perhaps a few that do not.
    pub(crate) fn labelled(&self, namespace: &str, key: &str, value: &str, first: usize) -> &[ClassId] {
        let all = self.labelled.get(&label_hash(namespace, key, value)).map_or(&[][..], Vec::as_slice);
        &all[all.partition_point(|class| self.place(*class) < first)..]
    }

    /// Are there so many that it pays to ask who uses them? Half of them came since that was last asked.
    pub(crate) fn are_many(&self) -> bool {
        self.len() > MIN_HELD.max(2 * self.were_used)
    }

    /// Which of them are not used. Nothing is freed yet: whoever derived something of them can still look at them.
    pub(crate) fn unused(&self, used: impl Iterator<Item = ClassId>) -> Freed {
        let mut classes: Vec<bool> = self.classes.iter().map(Option::is_some).collect();
        used.for_each(|class| classes[class.index()] = false);
        let mut shapes: Vec<bool> = self.shapes.iter().map(Option::is_some).collect();
        let (mut places, mut kept) = (Vec::with_capacity(self.len()), 0);
        for id in &self.order {
            let is_used = !classes[id.index()];
            if is_used {
                shapes[self.shape_of(*id).index()] = false;
            }
            places.push(is_used.then_some(kept));
            kept += u32::from(is_used);
        }
        Freed { classes, shapes, places }
    }

    /// Frees them.
    pub(crate) fn free(&mut self, freed: &Freed) {
        for id in std::mem::take(&mut self.order) {
            let slot = &mut self.classes[id.index()];
            match slot.as_mut().map(|held| (freed.place(held.place as usize), held)) {
                Some((Some(place), held)) => {
                    held.place = place;
                    self.order.push(id);
                }
                Some((None, _)) | None => {
                    *slot = None;
                    self.free.push(id);
                }
            }
        }
        for shape in (0..self.shapes.len()).map(ShapeId::from_index).filter(|shape| freed.has_shape(*shape)) {
            self.shapes[shape.index()] = None;
            self.free_shapes.push(shape);
        }
        for lists in [&mut self.ids, &mut self.labelled] {
            retain(lists, |class| !freed.contains(*class));
        }
        retain(&mut self.shape_ids, |shape| !freed.has_shape(*shape));
        self.were_used = self.len();
    }

    fn intern_shape(&mut self, shape: &Shape, images: &mut Images) -> ShapeId {
        let hash = hash(shape);
        let known = self.shape_ids.get(&hash).into_iter().flatten();
        if let Some(id) = known.into_iter().find(|id| *self.shape(**id).shape == *shape) {
            return *id;
        }
        let id = self.free_shapes.pop().unwrap_or_else(|| {
            self.shapes.push(None);
            ShapeId::from_index(self.shapes.len() - 1)
        });
        let scalars = shape.requests.scalars.iter();
        let entry = ShapeEntry {
            scalars: scalars.map(|(name, amount)| (ResourceId(self.resources.intern(name)), *amount)).collect(),
            images: shape.images.iter().map(|name| images.intern(name)).collect(),
            shape: Arc::new(shape.clone()),
        };
        self.shape_ids.entry(hash).or_default().push(id);
        self.shapes[id.index()] = Some(Arc::new(entry));
        id
    }
}

fn retain<T>(lists: &mut BTreeMap<u64, Vec<T>>, is_kept: impl Fn(&T) -> bool) {
    lists.retain(|_, list| {
        list.retain(&is_kept);
        list.shrink_to_fit();
        !list.is_empty()
    });
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
