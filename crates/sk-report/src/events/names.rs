//! Interns repeated strings, and bounds how many a page holds.

use sk_core::lookup::{Lookup, hash_of};

use crate::escape::embedded_bytes;

/// Texts with their places, in the order in which they came.
#[derive(Clone, Debug)]
pub struct Names {
    texts: Vec<String>,
    places: Lookup<u32>,
    bytes: usize,
    bytes_max: usize,
}

impl Names {
    /// Replaces a string for which there was no room.
    pub const OTHER: u32 = u32::MAX;

    pub(super) fn of_at_most(bytes_max: usize) -> Self {
        Self { texts: Vec::new(), places: Lookup::default(), bytes: 0, bytes_max }
    }

    /// The place of a text, which is new or known; [`Names::OTHER`] where there is no room for it.
    pub(super) fn place(&mut self, text: &str) -> u32 {
        let Self { texts, places, .. } = self;
        let hash = hash_of(text);
        if let Some(place) = places.find(hash, |place| texts[*place as usize] == text) {
            return *place;
        }
        let bytes = embedded_bytes(text) + 3;
        if self.bytes + bytes > self.bytes_max {
            return Self::OTHER;
        }
        self.bytes += bytes;
        let place = texts.len() as u32;
        texts.push(text.to_owned());
        places.insert(hash, place, |place| hash_of(texts[*place as usize].as_str()));
        place
    }

    /// All of them, by place.
    pub fn in_order(&self) -> Vec<&str> {
        self.texts.iter().map(String::as_str).collect()
    }
}
