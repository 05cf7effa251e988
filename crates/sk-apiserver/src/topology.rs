//! The PodTopologyLabels admission plugin: copies zone and region labels of its node onto a pod at binding
//! (`plugin/pkg/admission/podtopologylabels`, 1.36).
//!
//! Pods of one template share their labels, and so do those of them that are bound in one zone.

use sk_core::lookup::Keyed;
use sk_core::{ObjectKey, SmolStr};

use crate::kinds;
use crate::store::Store;
use crate::{Labels, Object};

/// The labels of a node that its pods get.
static COPIED: [SmolStr; 2] =
    [SmolStr::new_static("topology.kubernetes.io/region"), SmolStr::new_static("topology.kubernetes.io/zone")];
/// How many labelled maps are remembered: one per template and zone in use. Two of 500 bytes each, so at most 4 MB.
const MEMORY: usize = 4096;
/// Of how many nodes it is remembered where they are: 40 bytes each, so at most 2.6 MB.
const NODE_MEMORY: usize = 1 << 16;

/// Where a node is: its region and its zone.
type Place = [Option<SmolStr>; 2];

/// The labels that pods get where they run, remembered by the address of their own and the place. The sources are kept, so their
/// addresses cannot come to mean others.
#[derive(Clone, Default)]
pub(crate) struct Topology {
    /// Every place that was seen, and its number: there are as many as zones.
    places: Vec<Place>,
    numbers: Keyed<Place, usize>,
    /// Which place the labels of a node say, by their address.
    place_of: Keyed<usize, (Labels, usize)>,
    /// A pod's own labels, and what they become there.
    labelled: Keyed<(usize, usize), (Labels, Labels)>,
}

impl Topology {
    /// Writes onto a pod where its node is, in place of what it says itself. A node that is not there says nothing.
    pub(crate) fn label(&mut self, pod: &mut Object, node: &str, store: &Store) {
        let Some(node) = store.get(&kinds::NODE, &ObjectKey::cluster(node)) else { return };
        let place = self.place(&node.meta.labels);
        let key = (pod.meta.labels.address(), place);
        if let Some((_, labelled)) = self.labelled.get(&key) {
            pod.meta.labels = labelled.clone();
            return;
        }
        let (source, mut labelled) = (pod.meta.labels.clone(), pod.meta.labels.clone());
        for (name, value) in COPIED.iter().zip(&self.places[place]) {
            let says_so = labelled.get(name) == value.as_ref();
            if let Some(value) = value.as_ref().filter(|_| !says_so) {
                labelled.make_mut().insert(name.clone(), value.clone());
            }
        }
        if self.labelled.len() >= MEMORY {
            self.labelled.clear();
        }
        pod.meta.labels = labelled.clone();
        self.labelled.insert(key, (source, labelled));
    }

    /// The place that a node's labels say.
    fn place(&mut self, labels: &Labels) -> usize {
        if let Some((_, place)) = self.place_of.get(&labels.address()) {
            return *place;
        }
        let says: Place = COPIED.each_ref().map(|name| labels.get(name).cloned());
        let place = *self.numbers.or_insert_with(&says, || self.places.len());
        if place == self.places.len() {
            self.places.push(says);
        }
        if self.place_of.len() >= NODE_MEMORY {
            self.place_of.clear();
        }
        self.place_of.insert(labels.address(), (labels.clone(), place));
        place
    }
}
