//! Texts that repeat, each kept once, and no more of them than a page can hold.

use std::collections::BTreeMap;

use crate::escape::embedded_bytes;

/// Texts with their places, in the order in which they came.
#[derive(Clone, Debug)]
pub struct Names {
    places: BTreeMap<String, u32>,
    bytes: usize,
    bytes_max: usize,
}

impl Names {
    /// Stands for a text for which there was no room.
    pub const OTHER: u32 = u32::MAX;

    pub(super) fn of_at_most(bytes_max: usize) -> Self {
        Self { places: BTreeMap::new(), bytes: 0, bytes_max }
    }

    /// The place of a text, which is new or known; [`Names::OTHER`] where there is no room for it.
    pub(super) fn place(&mut self, text: &str) -> u32 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let bytes = embedded_bytes(text) + 3;
        if self.bytes + bytes > self.bytes_max {
            return Self::OTHER;
        }
        self.bytes += bytes;
        let place = self.places.len() as u32;
        self.places.insert(text.to_owned(), place);
        place
    }

    /// All of them, by place.
    pub fn in_order(&self) -> Vec<&str> {
        let mut texts = vec![""; self.places.len()];
        for (text, place) in &self.places {
            texts[*place as usize] = text;
        }
        texts
    }
}
