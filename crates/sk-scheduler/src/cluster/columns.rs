//! Per-node numbers, indexed by [`NodeId`].
//!
//! The numbers that every filter and score reads lie side by side; those that only some pods need (ports, extended
//! resources) have columns of their own that stay empty until a pod needs them.

use std::sync::Arc;

use crate::class::{HostPort, Requests};
use crate::ids::{NodeId, ResourceId};
use crate::node::NodeSpec;
use crate::plugins::node_resources_balanced_allocation::balance;

/// The node has an object.
pub(crate) const LIVE: u8 = 1;
/// It is cordoned.
pub(crate) const UNSCHEDULABLE: u8 = 2;
/// It has a taint that keeps pods off.
pub(crate) const HARD_TAINT: u8 = 4;
/// It has a taint that pods would rather avoid.
pub(crate) const SOFT_TAINT: u8 = 8;

/// An extended resource: how much there is and how much is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scalar {
    pub(crate) total: Vec<i64>,
    pub(crate) used: Vec<i64>,
}

/// The numbers of one node that every pod is compared with, side by side: one bounds check and two cache lines per node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) cpu: i64,
    pub(crate) memory: i64,
    pub(crate) ephemeral: i64,
    pub(crate) allowed_pods: i64,
    pub(crate) used_cpu: i64,
    pub(crate) used_memory: i64,
    pub(crate) used_ephemeral: i64,
    pub(crate) nonzero_cpu: i64,
    pub(crate) nonzero_memory: i64,
    pub(crate) pods: i64,
    /// How evenly CPU and memory are used as things are (`balancedResourceScore`), which every pod's score starts from.
    pub(crate) balance: i64,
}

/// The columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns {
    pub(crate) flags: Vec<u8>,
    pub(crate) numbers: Vec<Numbers>,
    pub(crate) scalars: Vec<Scalar>,
    pub(crate) ports: Vec<Vec<HostPort>>,
    pub(crate) specs: Vec<Arc<NodeSpec>>,
}

impl Columns {
    pub(crate) fn len(&self) -> usize {
        self.flags.len()
    }

    /// One more slot without a node.
    pub(crate) fn push(&mut self, spec: Arc<NodeSpec>) -> NodeId {
        let id = NodeId::from_index(self.len());
        self.flags.push(0);
        self.numbers.push(Numbers::default());
        for scalar in &mut self.scalars {
            scalar.total.push(0);
            scalar.used.push(0);
        }
        self.ports.push(Vec::new());
        self.specs.push(spec);
        id
    }

    /// Makes room for resources numbered below `count`.
    pub(crate) fn grow_scalars(&mut self, count: usize) {
        let nodes = self.len();
        while self.scalars.len() < count {
            self.scalars.push(Scalar { total: vec![0; nodes], used: vec![0; nodes] });
        }
    }

    /// The node's object came or changed.
    pub(crate) fn set_spec(&mut self, node: NodeId, spec: Arc<NodeSpec>, scalars: &[(ResourceId, i64)]) {
        let n = node.index();
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        self.flags[n] = LIVE
            | flag(spec.unschedulable, UNSCHEDULABLE)
            | flag(spec.has_hard_taint(), HARD_TAINT)
            | flag(spec.has_soft_taint(), SOFT_TAINT);
        let numbers = &mut self.numbers[n];
        (numbers.cpu, numbers.memory, numbers.ephemeral) = (spec.cpu, spec.memory, spec.ephemeral);
        numbers.allowed_pods = spec.pods;
        numbers.balance = balance(numbers, 0, 0);
        for scalar in &mut self.scalars {
            scalar.total[n] = 0;
        }
        for (resource, total) in scalars {
            self.scalars[resource.index()].total[n] = *total;
        }
        self.specs[n] = spec;
    }

    /// The node's object is gone; what pods asked for stays counted until they go too.
    pub(crate) fn clear_spec(&mut self, node: NodeId) {
        self.flags[node.index()] = 0;
    }

    /// Counts a pod in (`by` 1) or out (`by` −1): `NodeInfo.update` (`framework/types.go`).
    pub(crate) fn count(
        &mut self,
        node: NodeId,
        asked: &Requests,
        scalars: &[(ResourceId, i64)],
        ports: &[HostPort],
        by: i64,
    ) {
        let n = node.index();
        let add = |sum: &mut i64, amount: i64| *sum = sum.saturating_add(by * amount);
        let numbers = &mut self.numbers[n];
        add(&mut numbers.used_cpu, asked.cpu);
        add(&mut numbers.used_memory, asked.memory);
        add(&mut numbers.used_ephemeral, asked.ephemeral);
        add(&mut numbers.nonzero_cpu, asked.nonzero_cpu);
        add(&mut numbers.nonzero_memory, asked.nonzero_memory);
        add(&mut numbers.pods, 1);
        numbers.balance = balance(numbers, 0, 0);
        for (resource, amount) in scalars {
            add(&mut self.scalars[resource.index()].used[n], *amount);
        }
        for port in ports {
            // `HostPortInfo` is a set: a port that two pods took is free when the first of them goes. Kubernetes' own
            // filter keeps two pods off one port, so this is seen only for pods that were bound by others.
            match by {
                1 if !self.ports[n].contains(port) => self.ports[n].push(port.clone()),
                1 => {}
                _ => self.ports[n].retain(|taken| taken != port),
            }
        }
    }
}
