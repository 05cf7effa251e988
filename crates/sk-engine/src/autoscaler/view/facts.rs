//! Whether the view that is kept change by change is the one that looking at everything gives.

use std::collections::BTreeMap;

use sk_apiserver as api;
use sk_core::{ObjectKey, SimTime, SmolStr};
use sk_scheduler::{NodeSpec, PodClass};

use super::{Amount, Listers, Taints, View};

impl View {
    /// Does a picture made anew say the same? It must, whatever changes led here. If not: what is said now, and anew.
    pub(in crate::autoscaler) fn differs(&self, view: api::View<'_>) -> Option<String> {
        let (groups, with_ended) = (self.groups.clone(), self.with_ended);
        let mut anew = Self { groups, with_ended, ..Self::empty(&[], self.cutoff) };
        anew.look_at_all(view);
        let (anew, now) = (anew.facts(), self.facts());
        let first = now.iter().zip(&anew).find(|(now, anew)| now != anew);
        match first {
            Some((now, anew)) => Some(format!("{now:?} is anew {anew:?}")),
            None if now.len() != anew.len() => Some(format!("{} facts are anew {}", now.len(), anew.len())),
            None => None,
        }
    }

    /// All that decisions are made of. Which removals are under way the objects do not say.
    fn facts(&self) -> Vec<Fact<'_>> {
        let nodes = self.nodes.values().map(|node| {
            let spec = self.what_if.cluster.node(node.id);
            let of_node =
                (node.group, node.ready, node.created, node.is_deleting, node.taints, node.stays, node.allocatable);
            Fact::Node(&node.name, of_node, spec, self.what_if.cluster.pods_on(node.id).len())
        });
        let on_nodes = self.nodes.values().flat_map(|node| node.pods.values().map(|pod| (Some(&node.name), pod)));
        let pods = on_nodes.chain(self.pending.values().map(|pod| (None, pod))).map(|(node, pod)| {
            let counted = self.what_if.cluster.pod(pod.id).node().map(|node| &self.what_if.cluster.node(node).name);
            let class = self.what_if.cluster.class(pod.class);
            let of_pod = (pod.object.resource_version, pod.requests, pod.priority, pod.expendable);
            Fact::Pod(pod.key(), node, counted, class, of_pod)
        });
        let namespaces = self.what_if.cluster.objects.namespaces();
        nodes.chain(pods).chain([Fact::Namespaces(namespaces), Fact::Listers(&self.listers)]).collect()
    }
}

/// Something that decisions are made of.
#[derive(Debug, PartialEq)]
enum Fact<'a> {
    /// With what the scheduler that is asked knows of it, and how many pods it counts there.
    Node(&'a SmolStr, OfNode, &'a NodeSpec, usize),
    /// On which node it is, and on which it is counted.
    Pod(&'a ObjectKey, Option<&'a SmolStr>, Option<&'a SmolStr>, &'a PodClass, OfPod),
    Namespaces(&'a BTreeMap<SmolStr, BTreeMap<SmolStr, SmolStr>>),
    Listers(&'a Listers),
}

/// Group, readiness, creation, deletion, marks, whether it stays, and what is left for pods.
type OfNode = (Option<usize>, Option<SimTime>, SimTime, bool, Taints, bool, Amount);
/// Version, requests, priority, and whether it is expendable.
type OfPod = (u64, Amount, i32, bool);
