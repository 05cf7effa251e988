//! Names that many pods share, each kept once: those of owners and of node groups.

use std::num::NonZeroU32;

use sk_core::SmolStr;
use sk_core::lookup::{Lookup, hash_of};

/// A name that many pods share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NameId(NonZeroU32);

/// Names, each once; there are as many as owners and node groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts {
    texts: Vec<SmolStr>,
    places: Lookup<NameId>,
}

impl Texts {
    pub(super) fn intern(&mut self, text: &str) -> NameId {
        let texts = &self.texts;
        if let Some(known) = self.places.find(hash_of(text), |known| texts[known.place()] == *text) {
            return *known;
        }
        self.texts.push(text.into());
        let count = u32::try_from(self.texts.len()).ok().and_then(NonZeroU32::new);
        let new = NameId(count.expect("a run has fewer owners than there are numbers"));
        let texts = &self.texts;
        self.places.insert(hash_of(text), new, |known| hash_of(texts[known.place()].as_str()));
        new
    }

    pub(super) fn get(&self, name: NameId) -> &SmolStr {
        &self.texts[name.place()]
    }
}

impl NameId {
    fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}
