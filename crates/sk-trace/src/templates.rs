//! Maps old pod templates to new ones when objects are edited, so that recorded lifecycles follow their templates.

use std::collections::HashMap;

use serde_json::Value;
use sk_core::{Gvk, ObjectRef, PointerPattern, StableHash, TemplateId};
use sk_store::trace::{OwnerLives, TracerConfig};

use crate::names::number;

/// How many changed templates are remembered: 2^20 at about 40 bytes are 40 MiB. The lives of further ones are replayed
/// in the order of their starts, as those of v2 traces are.
const MAX_CHANGED: usize = 1 << 20;

/// Templates that were changed, by the owner's old name and the old template.
#[derive(Debug, Default)]
pub(crate) struct ChangedTemplates {
    hashes: HashMap<u64, StableHash>,
    paths: HashMap<Gvk, Vec<PointerPattern>>,
    overflow: u64,
}

impl ChangedTemplates {
    /// The object called `reference` was `before` and is `after`. A template that moved within it is forgotten.
    pub(crate) fn note(&mut self, config: &TracerConfig, reference: &ObjectRef, before: &Value, after: &Value) {
        let gvk = &reference.gvk;
        let paths = self.paths.entry(gvk.clone()).or_insert_with(|| config.template_paths(gvk));
        for (at, old) in paths.iter().flat_map(|path| path.find(before)) {
            let Some(new) = at.get(after).filter(|new| *new != old) else { continue };
            let (old, new) = (TemplateId::of(at.clone(), old), TemplateId::of(at, new));
            if old == new {
                continue;
            }
            if self.hashes.len() >= MAX_CHANGED {
                self.overflow += 1;
                continue;
            }
            self.hashes.insert(number(&(reference, &old)), new.hash);
        }
    }

    /// Points lives at what their templates have become. The owner must still have its old name.
    pub(crate) fn follow(&self, lives: &mut OwnerLives) {
        let owner = lives.owner.clone();
        for template in lives.templates.iter_mut().filter_map(|template| template.template.as_mut()) {
            if let Some(hash) = self.hashes.get(&number(&(&owner, &*template))) {
                template.hash = *hash;
            }
        }
    }

    /// Templates that were not remembered.
    pub(crate) fn overflow(&self) -> u64 {
        self.overflow
    }
}
