//! The PodTopologyLabels admission plugin: copies zone and region labels of its node onto a pod at binding
//! (`plugin/pkg/admission/podtopologylabels`, 1.36).
//!
//! Pods of one template share their labels, and so do those of them that are bound in one zone.

use std::collections::BTreeMap;

use sk_core::{ObjectKey, SmolStr};

use crate::kinds;
use crate::store::Store;
use crate::{Labels, Object};

/// The labels of a node that its pods get.
static COPIED: [SmolStr; 2] =
    [SmolStr::new_static("topology.kubernetes.io/region"), SmolStr::new_static("topology.kubernetes.io/zone")];
/// How many labelled maps are remembered: one per template and zone in use. Two of 500 bytes each, so at most 4 MB.
const MEMORY: usize = 4096;

/// Where a node is: its region and its zone.
type Place = [Option<SmolStr>; 2];

/// The labels that pods get where they run, remembered by the address of their own and the place. The source is kept,
/// so its address cannot come to mean another.
#[derive(Clone, Default)]
pub(crate) struct Topology(BTreeMap<(usize, Place), (Labels, Labels)>);

impl Topology {
    /// Writes onto a pod where its node is, in place of what it says itself. A node that is not there says nothing.
    pub(crate) fn label(&mut self, pod: &mut Object, node: &str, store: &Store) {
        let Some(node) = store.get(&kinds::NODE, &ObjectKey::cluster(node)) else { return };
        let place: Place = COPIED.each_ref().map(|name| node.meta.labels.get(name).cloned());
        let own = &pod.meta.labels;
        let says = |(name, value): (&SmolStr, &Option<SmolStr>)| value.is_none() || own.get(name) == value.as_ref();
        if COPIED.iter().zip(&place).all(says) {
            return;
        }
        let key = (own.address(), place);
        if let Some((_, labelled)) = self.0.get(&key) {
            pod.meta.labels = labelled.clone();
            return;
        }
        let (source, mut labelled) = (own.clone(), own.clone());
        for (name, value) in COPIED.iter().zip(&key.1) {
            labelled.make_mut().extend(value.clone().map(|value| (name.clone(), value)));
        }
        if self.0.len() >= MEMORY {
            self.0.clear();
        }
        pod.meta.labels = labelled.clone();
        self.0.insert(key, (source, labelled));
    }
}
