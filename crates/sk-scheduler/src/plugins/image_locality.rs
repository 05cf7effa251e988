//! ImageLocality: prefers nodes that have the pod's images, less so for images that only few nodes have
//! (`imagelocality/image_locality.go`).

use super::MAX_NODE_SCORE;
use crate::Cluster;
use crate::cluster::classes::ShapeEntry;
use crate::framework::cycle_state::{Caches, Cx, CycleState};
use crate::framework::plugin::Plugin;
use crate::ids::NodeId;

pub(crate) struct ImageLocality;

const MIB: i64 = 1024 * 1024;
const MIN_THRESHOLD: i64 = 23 * MIB;
const MAX_CONTAINER_THRESHOLD: i64 = 1000 * MIB;

/// From 0 to 100.
pub(crate) fn score(cluster: &Cluster, entry: &ShapeEntry, node: usize) -> i64 {
    let on = cluster.images.on(node);
    if on.is_empty() {
        return 0;
    }
    let nodes = cluster.order.walk().len() as f64;
    let scaled = |image: &u32| {
        let at = on.binary_search_by_key(image, |(known, _)| *known).ok()?;
        let spread = f64::from(on[at].1) / nodes;
        Some((cluster.images.size(*image) as f64 * spread) as i64)
    };
    let sum: i64 = entry.images.iter().filter_map(scaled).sum();
    let most = MAX_CONTAINER_THRESHOLD * i64::from(entry.shape.containers);
    // Not `clamp`: a pod without containers has a most below the least.
    let sum = if sum < MIN_THRESHOLD { MIN_THRESHOLD } else { sum.min(most) };
    MAX_NODE_SCORE * (sum - MIN_THRESHOLD) / (most - MIN_THRESHOLD)
}

impl Plugin for ImageLocality {
    fn score(&self, cx: &Cx<'_>, _: &Caches, _: &CycleState, nodes: &[NodeId], scores: &mut [i64]) {
        for (result, node) in scores.iter_mut().zip(nodes) {
            *result = score(cx.cluster, cx.shape, node.index());
        }
    }
}
