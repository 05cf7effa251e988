//! Images and the number of nodes that have them (`backend/cache/cache.go`, `addNodeImageStates`).
//!
//! A node keeps, for each of its images, the number of nodes that had the image when the node was last updated:
//! Kubernetes copies that number into the node's snapshot and refreshes it only when that node itself changes.

use crate::intern::Interner;
use crate::node::NodeSpec;

/// All images.
#[derive(Clone, Debug, Default)]
pub(crate) struct Images {
    names: Interner,
    /// By image: the size that the first node gave, and how many nodes have it.
    known: Vec<(i64, u32)>,
    /// By node: its images, sorted, each with the number of nodes as last looked at.
    on: Vec<Vec<(u32, u32)>>,
}

impl Images {
    pub(crate) fn intern(&mut self, name: &str) -> u32 {
        let image = self.names.intern(name);
        self.known.resize(self.names.len(), (0, 0));
        image
    }

    pub(crate) fn size(&self, image: u32) -> i64 {
        self.known[image as usize].0
    }

    /// Has any node reported an image?
    pub(crate) fn is_empty(&self) -> bool {
        self.on.is_empty()
    }

    /// The node's images with the number of nodes as last looked at.
    pub(crate) fn on(&self, node: usize) -> &[(u32, u32)] {
        self.on.get(node).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn remove(&mut self, node: usize) {
        let Some(images) = self.on.get_mut(node) else { return };
        for (image, _) in std::mem::take(images) {
            self.known[image as usize].1 -= 1;
        }
    }

    pub(crate) fn add(&mut self, node: usize, spec: &NodeSpec) {
        if spec.images.is_empty() {
            return;
        }
        let mut images = Vec::new();
        for (size, names) in &spec.images {
            for name in names {
                let image = self.intern(name);
                if images.iter().any(|(known, _)| *known == image) {
                    continue;
                }
                let known = &mut self.known[image as usize];
                if known.1 == 0 {
                    known.0 = *size;
                }
                known.1 += 1;
                images.push((image, 0));
            }
        }
        images.sort_unstable();
        if self.on.len() <= node {
            self.on.resize(node + 1, Vec::new());
        }
        self.on[node] = images;
    }

    /// Looks at the node afresh.
    pub(crate) fn renew(&mut self, node: usize) {
        let Some(images) = self.on.get_mut(node) else { return };
        for (image, nodes) in images {
            *nodes = self.known[*image as usize].1;
        }
    }
}
