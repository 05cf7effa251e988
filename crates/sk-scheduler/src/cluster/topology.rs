//! Topology domains: for each label key that some pod uses, the value of each node as a number.

use std::sync::Arc;

use sk_core::SmolStr;

use super::columns::{Columns, LIVE};
use crate::ids::{KeyId, NodeId};
use crate::intern::Interner;
use crate::node::NodeSpec;

/// The node has no such label.
pub(crate) const NO_VALUE: u32 = u32::MAX;

/// One key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Domains {
    values: Interner,
    /// By node: which domain. A node that goes keeps its value, because changes before that are still to be read.
    pub(crate) of: Vec<u32>,
    /// By domain: how many nodes are in it.
    pub(crate) nodes: Vec<u32>,
    /// Nodes without the label.
    pub(crate) without: u32,
}

impl Domains {
    /// How many values there are or were.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// `true`: the node had another value before. Changes of its pods that are still to be read may be from then.
    fn enter(&mut self, node: NodeId, value: Option<&str>) -> bool {
        let is_new = self.of.len() <= node.index();
        if is_new {
            self.of.resize(node.index() + 1, NO_VALUE);
        }
        let value = match value {
            None => {
                self.without += 1;
                NO_VALUE
            }
            Some(value) => {
                let value = self.values.intern(value);
                self.nodes.resize(self.values.len(), 0);
                self.nodes[value as usize] += 1;
                value
            }
        };
        std::mem::replace(&mut self.of[node.index()], value) != value && !is_new
    }

    fn leave(&mut self, node: NodeId) {
        match self.of.get(node.index()) {
            Some(&NO_VALUE) | None => self.without -= 1,
            Some(&value) => self.nodes[value as usize] -= 1,
        }
    }
}

/// All keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topology {
    keys: Interner,
    domains: Vec<Domains>,
    /// Counts changes of value of nodes that have or had pods: counts per domain must then be made anew.
    pub(crate) version: u64,
}

impl Topology {
    pub(crate) fn domains(&self, key: KeyId) -> &Domains {
        &self.domains[key.index()]
    }

    /// A key by name, if it was used before.
    pub(crate) fn id(&self, name: &str) -> Option<KeyId> {
        self.keys.get(name).map(KeyId)
    }

    pub(crate) fn name(&self, key: KeyId) -> &SmolStr {
        self.keys.name(key.0)
    }

    /// The number of a key, with its column filled in if it is new.
    pub(crate) fn key(&mut self, name: &str, columns: &Columns) -> KeyId {
        let id = KeyId(self.keys.intern(name));
        if id.index() == self.domains.len() {
            let mut domains = Domains { of: vec![NO_VALUE; columns.len()], ..Domains::default() };
            for (index, spec) in columns.specs.iter().enumerate().filter(|(index, _)| columns.flags[*index] & LIVE != 0)
            {
                domains.enter(NodeId::from_index(index), spec.labels.get(name).map(SmolStr::as_str));
            }
            self.domains.push(domains);
        }
        id
    }

    /// A node came (`before` is `None`), changed or went (`after` is `None`).
    pub(crate) fn change(
        &mut self,
        node: NodeId,
        before: Option<&Arc<NodeSpec>>,
        after: Option<&NodeSpec>,
        has_pods: bool,
    ) {
        let (mut moved, mut had_another) = (before.is_some() != after.is_some(), false);
        for (key, domains) in self.domains.iter_mut().enumerate() {
            let name = self.keys.name(key as u32);
            let value = |spec: &NodeSpec| spec.labels.get(name).cloned();
            let (old, new) = (before.map(|spec| value(spec)), after.map(value));
            if old == new {
                continue;
            }
            moved = true;
            if old.is_some() {
                domains.leave(node);
            }
            if let Some(new) = new {
                had_another |= domains.enter(node, new.as_deref());
            }
        }
        if had_another || (moved && has_pods) {
            self.version += 1;
        }
    }
}
