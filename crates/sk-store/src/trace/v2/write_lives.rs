//! Writes the lifecycles of v2: a map of owners, each with a map from a pod's hash to the lifecycles of such pods.
//!
//! Other formats know lifecycles by template. If there is no hash of the pods, the hash of their [`TemplateId`] is written
//! instead, so that the lifecycles of one template stay together and none is lost. SimKube 2 compares the hash with that of
//! the pods that it creates and does not find it; SimKube reads such a file as any v2 trace. Several rows, or several
//! templates, can have one hash. It is written once, because a reader of a map keeps only the last of equal keys.

use std::collections::HashMap;
use std::io::Write;

use sk_core::{ObjectRef, StableHash};

use super::write::{Grouped, List, len32, v2_key};
use crate::msgpack::encode;
use crate::trace::lives::{Life, OwnerLives, TemplateLives};
use crate::trace::spool::SpoolFolder;
use crate::trace::write::WriteError;

/// Lives as they come, an owner's rows one after another.
pub(super) struct LivesWriter {
    done: Grouped<ObjectRef>,
    open: Option<Open>,
    folder: SpoolFolder,
}

/// The owner whose rows are coming: each hash with its lives, in the order in which the hashes came.
struct Open {
    owner: ObjectRef,
    places: HashMap<StableHash, usize>,
    groups: Vec<(StableHash, List)>,
}

impl LivesWriter {
    pub(super) fn new(folder: &SpoolFolder) -> Self {
        Self { done: Grouped::new(folder), open: None, folder: folder.clone() }
    }

    /// Adds a row. Answers how many of its lives v2 cannot hold, because nothing says which pods they are of.
    pub(super) fn row(&mut self, row: &OwnerLives) -> Result<u64, WriteError> {
        if self.open.as_ref().is_some_and(|open| open.owner != row.owner) {
            self.close()?;
        }
        let open = self.open.get_or_insert_with(|| Open {
            owner: row.owner.clone(),
            places: HashMap::new(),
            groups: Vec::new(),
        });
        let mut lost = 0;
        let mut bytes = Vec::new();
        for template in &row.templates {
            let Some(hash) = hash_of(template) else {
                lost += template.lives.len() as u64;
                continue;
            };
            let group = open.group(hash, &self.folder);
            for life in &template.lives {
                bytes.clear();
                encode_life(&mut bytes, life);
                group.push(&bytes)?;
            }
        }
        Ok(lost)
    }

    fn close(&mut self) -> Result<(), WriteError> {
        let Some(Open { owner, groups, .. }) = self.open.take() else { return Ok(()) };
        let map = self.done.group(owner, encode_owner)?;
        let mut head = Vec::new();
        for (hash, mut lives) in groups {
            head.clear();
            encode::unsigned(&mut head, hash.get());
            encode::array_len(&mut head, len32(lives.count, "lives of one owner")?);
            map.push(&head)?;
            lives.bytes.drain_into(&mut map.bytes)?;
        }
        Ok(())
    }

    /// Writes all of them under their top-level key.
    pub(super) fn drain(mut self, out: &mut impl Write) -> Result<(), WriteError> {
        self.close()?;
        self.done.drain("pod_lifecycles", out)
    }
}

impl Open {
    fn group(&mut self, hash: StableHash, folder: &SpoolFolder) -> &mut List {
        let place = *self.places.entry(hash).or_insert_with(|| {
            self.groups.push((hash, List::new(folder)));
            self.groups.len() - 1
        });
        &mut self.groups[place].1
    }
}

/// What these lives are filed under.
fn hash_of(template: &TemplateLives) -> Option<StableHash> {
    template.pod_hash.or_else(|| template.template.as_ref().map(|id| id.hash))
}

fn encode_owner(owner: &ObjectRef) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode::array_len(&mut bytes, 2);
    encode::text(&mut bytes, &owner.gvk.to_string());
    encode::text(&mut bytes, &v2_key(owner));
    bytes
}

fn encode_life(bytes: &mut Vec<u8>, life: &Life) {
    encode::map_len(bytes, 1);
    match life.end {
        None => {
            encode::text(bytes, "Running");
            encode::signed(bytes, life.start.as_secs());
        }
        Some(end) => {
            encode::text(bytes, "Finished");
            encode::array_len(bytes, 2);
            encode::signed(bytes, life.start.as_secs());
            encode::signed(bytes, end.as_secs());
        }
    }
}
