//! Nodes: emits a fact when one is added, changed or deleted.

use bytes::Bytes;
use sk_core::{Gvk, SmolStr};
use sk_store::log::Fact;

use super::{Epoch, Ledger, Place};
use crate::rules::body_hash;
use crate::uid::Uid;

/// What nodes are.
const NODE: Gvk = Gvk::new_static("", "v1", "Node");

/// A node that lives.
#[derive(Debug)]
pub(super) struct Node {
    /// Not known of a node that was read back from the log, until it is seen again.
    uid: Option<Uid>,
    record_hash: u128,
    seen: Epoch,
}

/// Is it the kind of nodes?
pub(super) fn is_node(kind: &Gvk) -> bool {
    *kind == NODE
}

impl Ledger {
    pub(super) fn node_applied(&mut self, name: &SmolStr, uid: &str, record: Bytes, out: &mut Vec<Fact>) {
        let id = self.kinds.id(&NODE);
        let (uid, record_hash, seen) = (Uid::new(uid), body_hash(&record), self.kinds.epoch(id));
        let known = self.nodes.insert(name.clone(), Node { uid: Some(uid.clone()), record_hash, seen });
        match known {
            // A node recreated under its name is another one, even if it looks the same.
            Some(Node { uid: Some(other), .. }) if other != uid => {
                self.by_uid.remove(&other);
                out.extend([Fact::Node(name.clone(), None), Fact::Node(name.clone(), Some(record))]);
            }
            Some(known) if known.record_hash == record_hash => {}
            _ => out.push(Fact::Node(name.clone(), Some(record))),
        }
        self.by_uid.entry(uid).or_insert(Place::Node);
    }

    pub(super) fn node_deleted(&mut self, name: &SmolStr, uid: &Uid, out: &mut Vec<Fact>) {
        let is_meant = |node: &Node| node.uid.as_ref().is_none_or(|known| known == uid);
        if self.nodes.get(name).is_some_and(is_meant) {
            self.node_goes(name, out);
        }
    }

    fn node_goes(&mut self, name: &SmolStr, out: &mut Vec<Fact>) {
        if let Some(uid) = self.nodes.remove(name).and_then(|node| node.uid) {
            self.by_uid.remove(&uid);
        }
        out.push(Fact::Node(name.clone(), None));
    }

    pub(super) fn unseen_nodes_vanish(&mut self, epoch: Epoch, out: &mut Vec<Fact>) {
        let unseen = self.nodes.iter().filter(|(_, node)| node.seen != epoch);
        let unseen: Vec<_> = unseen.map(|(name, _)| name.clone()).collect();
        unseen.iter().for_each(|name| self.node_goes(name, out));
    }

    /// Takes in a node that the log knows. Its uid is not in the log, and is learnt when the node is seen again.
    pub(super) fn restore_node(&mut self, name: SmolStr, record: &[u8]) {
        self.nodes.insert(name, Node { uid: None, record_hash: body_hash(record), seen: 0 });
    }
}
