//! Interns names as small integers.

use sk_core::SmolStr;
use sk_core::lookup::Keyed;

/// Gives every distinct text a number, from 0 on in the order of first sight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interner {
    ids: Keyed<SmolStr, u32>,
    names: Vec<SmolStr>,
}

impl Interner {
    pub(crate) fn intern(&mut self, name: &str) -> u32 {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = u32::try_from(self.names.len()).expect("fewer than four billion names fit in memory");
        self.ids.insert(name.into(), id);
        self.names.push(name.into());
        id
    }

    pub(crate) fn get(&self, name: &str) -> Option<u32> {
        self.ids.get(name).copied()
    }

    pub(crate) fn name(&self, id: u32) -> &SmolStr {
        &self.names[id as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}
