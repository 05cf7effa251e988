//! Which objects are exported: a pure decision over everything that was there in the window.
//!
//! An object is left out when an ancestor of it is itself exported, because replaying the ancestor makes it again. An
//! owner that a filter removes takes its descendants with it. What a DaemonSet owns is made by the nodes' number, not by
//! the trace. An object whose owner is unknown is kept.

use std::collections::{HashMap, HashSet};

use sk_core::{ObjectRef, OwnerReference, SmolStr};

/// How many ancestors of one object are followed. Real chains have three or four; a knot of mutual owners ends here.
const MAX_ANCESTORS: usize = 256;

/// Something that was there in the window.
#[derive(Clone, Debug)]
pub(super) struct Thing {
    pub(super) object: ObjectRef,
    pub(super) uid: SmolStr,
    /// Everybody it belonged to at any time in the window.
    pub(super) owners: Vec<OwnerReference>,
    /// Is its kind recorded? Else it only stands between others.
    pub(super) tracked: bool,
    /// Does a filter remove it?
    pub(super) filtered: bool,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is in the trace.
    Exported,
    /// An ancestor is in the trace.
    Below,
    /// It or an ancestor is removed by a filter.
    Filtered,
    /// It or an ancestor belongs to a DaemonSet.
    OfDaemonSet,
    /// Its kind is not recorded, and neither is any ancestor.
    Untracked,
}

/// Decides for all things; they may come in any order.
pub(super) fn judge(things: &[Thing]) -> Vec<Verdict> {
    let family = Family::new(things);
    let fates: Vec<_> = (0..things.len()).map(|place| family.fate(place)).collect();
    let verdict = |place: usize| match fates[place] {
        Some(fate) => fate,
        None if family.is_below_exported(place, &fates) => Verdict::Below,
        None if things[place].tracked => Verdict::Exported,
        None => Verdict::Untracked,
    };
    (0..things.len()).map(verdict).collect()
}

/// The things, to be found by uid and by name.
struct Family<'a> {
    things: &'a [Thing],
    by_uid: HashMap<&'a str, usize>,
    by_name: HashMap<(&'a str, &'a str, Option<&'a str>, &'a str), usize>,
}

impl<'a> Family<'a> {
    fn new(things: &'a [Thing]) -> Self {
        let mut family = Self { things, by_uid: HashMap::new(), by_name: HashMap::new() };
        // A pod that is itself recorded is there twice; the recorded one is to be found.
        for tracked in [false, true] {
            for (place, thing) in things.iter().enumerate().filter(|(_, thing)| thing.tracked == tracked) {
                let (gvk, key) = (&thing.object.gvk, &thing.object.key);
                if !thing.uid.is_empty() {
                    family.by_uid.insert(&thing.uid, place);
                }
                family.by_name.insert((&gvk.group, &gvk.kind, key.namespace.as_deref(), &key.name), place);
            }
        }
        family
    }

    /// The owner that a reference in `thing` means: by uid, else by name beside it, else by name in no namespace.
    fn find(&self, thing: &Thing, owner: &OwnerReference) -> Option<usize> {
        let named = |namespace| self.by_name.get(&(owner.gvk.group.as_str(), &owner.gvk.kind, namespace, &owner.name));
        let by_uid = self.by_uid.get(owner.uid.as_str());
        by_uid.or_else(|| named(thing.object.key.namespace.as_deref())).or_else(|| named(None)).copied()
    }

    /// Everything that is above a thing, each once, nearest first.
    fn ancestors(&self, place: usize) -> Vec<usize> {
        let (mut found, mut seen) = (Vec::new(), HashSet::from([place]));
        let mut next = place;
        let mut followed = 0;
        loop {
            let thing = &self.things[next];
            for owner in thing.owners.iter().filter_map(|owner| self.find(thing, owner)) {
                if found.len() < MAX_ANCESTORS && seen.insert(owner) {
                    found.push(owner);
                }
            }
            match found.get(followed) {
                Some(place) => next = *place,
                None => return found,
            }
            followed += 1;
        }
    }

    /// What becomes of a thing whatever else is exported.
    fn fate(&self, place: usize) -> Option<Verdict> {
        let line: Vec<_> =
            std::iter::once(place).chain(self.ancestors(place)).map(|place| &self.things[place]).collect();
        if line.iter().any(|thing| thing.filtered) {
            return Some(Verdict::Filtered);
        }
        line.iter().any(|thing| thing.owners.iter().any(is_daemon_set)).then_some(Verdict::OfDaemonSet)
    }

    /// Is there something above it that is exported? Of things that own each other the first by name is above.
    fn is_below_exported(&self, place: usize, fates: &[Option<Verdict>]) -> bool {
        let name = |place: usize| (&self.things[place].object, &self.things[place].uid);
        self.ancestors(place).into_iter().any(|above| {
            let stands = self.things[above].tracked && fates[above].is_none();
            stands && (name(above) < name(place) || !self.ancestors(above).contains(&place))
        })
    }
}

fn is_daemon_set(owner: &OwnerReference) -> bool {
    owner.gvk.group == "apps" && owner.gvk.kind == "DaemonSet"
}

#[cfg(test)]
mod tests;
