//! The waiting pods by id: four bytes for every pod, and an [`Entry`] for those that wait.

use super::entry::Entry;
use crate::ids::{ClassId, PodId};

/// No entry.
const NONE: u32 = u32::MAX;

/// All entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    /// By pod: where its entry is.
    places: Vec<u32>,
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
}

impl Entries {
    fn place(&self, pod: PodId) -> Option<usize> {
        self.places.get(pod.index()).filter(|place| **place != NONE).map(|place| *place as usize)
    }

    pub(super) fn classes(&self) -> impl Iterator<Item = ClassId> {
        self.entries.iter().flatten().map(|entry| entry.class)
    }

    pub(super) fn contains(&self, pod: PodId) -> bool {
        self.place(pod).is_some()
    }

    pub(super) fn get(&self, pod: PodId) -> Option<&Entry> {
        self.entries[self.place(pod)?].as_ref()
    }

    pub(super) fn get_mut(&mut self, pod: PodId) -> Option<&mut Entry> {
        let place = self.place(pod)?;
        self.entries[place].as_mut()
    }

    pub(super) fn insert(&mut self, pod: PodId, entry: Entry) {
        let place = match self.place(pod).or_else(|| self.free.pop().map(|place| place as usize)) {
            Some(place) => place,
            None => {
                self.entries.push(None);
                self.entries.len() - 1
            }
        };
        self.entries[place] = Some(entry);
        if self.places.len() <= pod.index() {
            self.places.resize(pod.index() + 1, NONE);
        }
        self.places[pod.index()] = u32::try_from(place).expect("there are fewer pods than that");
    }

    pub(super) fn remove(&mut self, pod: PodId) {
        if let Some(place) = self.place(pod) {
            self.entries[place] = None;
            self.places[pod.index()] = NONE;
            self.free.push(place as u32);
        }
    }
}
