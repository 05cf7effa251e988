//! The entries of all segments of a log, in order, as one sequence.
//!
//! Each segment starts with the whole state. If it directly follows the segment before, that state is skipped. If
//! entries between them are lost (damage, or a full disk), the differences to the new state are emitted as changes at
//! that moment, with the damage, so a reader ends with the right state.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::vec;

use sk_core::{ObjectRef, SimTime, SmolStr};
use xxhash_rust::xxh3::xxh3_64;

use super::catalog::Listed;
use super::error::Damage;
use super::fact::{Deleted, Entry, Fact};
use super::segment::{Block, Blocks};
use crate::trace::Gap;

/// One thing in the log.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A part of the state at the beginning of what is read.
    State(Fact),
    /// An entry.
    Entry(Entry),
    /// What is different after entries that are lost, at the moment from which on it is known.
    Healed(SimTime, Fact),
    /// The pod of that uid went while entries are lost.
    Vanished(SimTime, SmolStr),
}

/// All items from a segment on.
pub struct Items {
    segments: vec::IntoIter<Listed>,
    current: Option<Current>,
    ready: VecDeque<Item>,
    known: Known,
    damages: Vec<Damage>,
    /// Number of the last entry that was read, and its moment.
    last: Option<(u64, SimTime)>,
}

/// The segment that is being read.
struct Current {
    listed: Listed,
    blocks: Blocks,
    beginning: Beginning,
    next_seq: u64,
}

/// How a segment's state relates to what was read before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beginning {
    /// There was nothing before it.
    First,
    /// It starts where the segment before it ended.
    Follows,
    /// Entries between are lost.
    Jumps,
}

impl Items {
    pub(super) fn new(segments: Vec<Listed>) -> Self {
        Self {
            segments: segments.into_iter(),
            current: None,
            ready: VecDeque::new(),
            known: Known::default(),
            damages: Vec::new(),
            last: None,
        }
    }

    /// What could not be read so far.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// Reads the next block, of whichever segment. `false` at the end of the log.
    fn read_on(&mut self) -> bool {
        let Some(mut current) = self.current.take() else { return self.open_next() };
        match current.blocks.next() {
            Ok(Some(block)) if block.are_entries => {
                self.take_entries(&mut current, block);
                self.current = Some(current);
            }
            Ok(Some(block)) => {
                self.take_state(&current, block);
                self.current = Some(current);
            }
            Ok(None) => {}
            Err(fault) => self.note_damage(&current.listed, fault.to_string()),
        }
        true
    }

    fn open_next(&mut self) -> bool {
        let Some(listed) = self.segments.next() else { return false };
        let blocks = match Blocks::open(&listed.file.path, listed.len) {
            Ok(blocks) => blocks,
            Err(fault) => {
                self.note_damage(&listed, fault.to_string());
                return true;
            }
        };
        let header = *blocks.header();
        let beginning = match self.last {
            None if self.damages.is_empty() => Beginning::First,
            Some((seq, _)) if seq == header.previous_seq && seq.saturating_add(1) == header.first_seq => {
                Beginning::Follows
            }
            _ => Beginning::Jumps,
        };
        // A jump that the header itself tells of is no damage: the gap is recorded as a fact.
        let missed = self.last.is_some_and(|(seq, _)| seq < header.previous_seq);
        if missed && self.damages.last().is_none_or(|damage| damage.to.is_some()) {
            self.note_damage(&listed, "entries before it are missing".to_owned());
        }
        for damage in self.damages.iter_mut().filter(|damage| damage.to.is_none()) {
            damage.to = Some(header.begins_at);
        }
        self.last = Some((header.first_seq.saturating_sub(1), header.begins_at));
        self.known.turn += 1;
        self.current = Some(Current { listed, blocks, beginning, next_seq: header.first_seq });
        true
    }

    fn note_damage(&mut self, listed: &Listed, reason: String) {
        let from = self.last.map_or(listed.file.header.begins_at, |(_, at)| at);
        self.damages.push(Damage { file: listed.file.path.clone(), reason, from, to: None });
    }

    fn take_entries(&mut self, current: &mut Current, block: Block) {
        for (at, fact) in block.facts {
            self.known.note(&fact);
            self.last = Some((current.next_seq, at));
            self.ready.push_back(Item::Entry(Entry { at, seq: current.next_seq, fact }));
            current.next_seq = current.next_seq.saturating_add(1);
        }
    }

    fn take_state(&mut self, current: &Current, block: Block) {
        let begins_at = current.blocks.header().begins_at;
        for (_, fact) in block.facts {
            let news = self.known.note(&fact);
            match current.beginning {
                Beginning::First => self.ready.push_back(Item::State(fact)),
                Beginning::Jumps if news => self.ready.push_back(Item::Healed(begins_at, fact)),
                Beginning::Jumps | Beginning::Follows => {}
            }
        }
        if current.beginning == Beginning::Jumps && current.blocks.has_state() {
            let gone = self.known.take_unseen(begins_at);
            self.ready.extend(gone);
        }
    }
}

impl Iterator for Items {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            if !self.read_on() {
                return None;
            }
        }
    }
}

/// What lives, as far as was read: enough to tell what a later state says differently.
#[derive(Default)]
struct Known {
    objects: BTreeMap<ObjectRef, (SmolStr, Seen)>,
    nodes: BTreeMap<SmolStr, Seen>,
    pods: BTreeMap<SmolStr, u32>,
    gaps: BTreeSet<Gap>,
    /// Counts segments.
    turn: u32,
}

/// The last segment with an entry of an object, and its state there.
#[derive(Clone, Copy)]
struct Seen {
    turn: u32,
    hash: u64,
}

impl Known {
    /// Takes a fact in. Does it say anything that was not known?
    fn note(&mut self, fact: &Fact) -> bool {
        let turn = self.turn;
        match fact {
            Fact::Applied(applied) => {
                let seen = Seen { turn, hash: xxh3_64(&applied.body) };
                let before = self.objects.insert(applied.object.clone(), (applied.uid.clone(), seen));
                before.is_none_or(|(uid, before)| uid != applied.uid || before.hash != seen.hash)
            }
            Fact::Deleted(deleted) => self.objects.remove(&deleted.object).is_some(),
            Fact::Node(node, Some(body)) => {
                let seen = Seen { turn, hash: xxh3_64(body) };
                self.nodes.insert(node.clone(), seen).is_none_or(|before| before.hash != seen.hash)
            }
            Fact::Node(node, None) => self.nodes.remove(node).is_some(),
            Fact::Pod(pod) if pod.deleted.is_some() => self.pods.remove(&pod.uid).is_some(),
            Fact::Pod(pod) => {
                self.pods.insert(pod.uid.clone(), turn);
                true
            }
            Fact::Gap(gap) => self.gaps.insert(gap.clone()),
            // Saying these again does no harm.
            Fact::Link(_) | Fact::Unlinked(_) | Fact::Watched(..) | Fact::Lost(_) => true,
        }
    }

    /// Takes out what the state of this segment did not have, as the changes that it means.
    fn take_unseen(&mut self, at: SimTime) -> Vec<Item> {
        let turn = self.turn;
        let mut gone = Vec::new();
        self.objects.retain(|object, (uid, seen)| {
            if seen.turn != turn {
                let deleted = Deleted { object: object.clone(), uid: uid.clone() };
                gone.push(Item::Healed(at, Fact::Deleted(deleted)));
            }
            seen.turn == turn
        });
        self.nodes.retain(|node, seen| {
            if seen.turn != turn {
                gone.push(Item::Healed(at, Fact::Node(node.clone(), None)));
            }
            seen.turn == turn
        });
        self.pods.retain(|uid, seen| {
            if *seen != turn {
                gone.push(Item::Vanished(at, uid.clone()));
            }
            *seen == turn
        });
        gone
    }
}
