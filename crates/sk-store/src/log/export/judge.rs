//! Decides which objects are exported. Pure, over everything that existed in the window.
//!
//! An object is left out if one of its ancestors is exported, because replaying the ancestor creates it again. If a filter
//! removes an owner, it removes its descendants too; but an owner that a label selector does not match keeps none of its
//! children out, because a user who selects children by label wants them without it. Objects of a DaemonSet are left out,
//! because their number follows the nodes and not the trace. An object whose owner is unknown is kept.

use std::collections::{HashMap, HashSet};

use sk_core::{ObjectRef, OwnerReference};

/// How many ancestors of one object are followed. Real chains have three or four; a knot of mutual owners ends here.
const MAX_ANCESTORS: usize = 256;

/// Something that was there in the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thing<'a> {
    pub(super) object: &'a ObjectRef,
    pub(super) uid: &'a str,
    /// Everybody it belonged to at any time in the window.
    pub(super) owners: &'a [OwnerReference],
    /// Is its kind recorded? Otherwise it only links other objects to their owners.
    pub(super) tracked: bool,
    pub(super) asked: Asked,
}

/// What the filters say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The request selects it.
    For,
    /// Others are asked for.
    NotFor,
    /// The request excludes it, with everything that it owns.
    Without,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is exported.
    Exported,
    /// An ancestor is in the trace.
    Below,
    /// A filter removes it or an ancestor, or does not ask for it.
    Filtered,
    /// It or an ancestor belongs to a DaemonSet.
    OfDaemonSet,
    /// Its kind is not recorded, and neither is any ancestor.
    Untracked,
}

/// The things, to be found by uid and by name. They may come in any order.
pub(super) struct Family<'a> {
    things: Vec<Thing<'a>>,
    by_uid: HashMap<&'a str, usize>,
    by_name: HashMap<(&'a str, &'a str, Option<&'a str>, &'a str), usize>,
}

impl<'a> Family<'a> {
    pub(super) fn new(things: Vec<Thing<'a>>) -> Self {
        let (mut by_uid, mut by_name) = (HashMap::new(), HashMap::new());
        // A pod that is itself recorded may be there twice; the recorded one is to be found.
        for tracked in [false, true] {
            for (place, thing) in things.iter().enumerate().filter(|(_, thing)| thing.tracked == tracked) {
                let (gvk, key) = (&thing.object.gvk, &thing.object.key);
                if !thing.uid.is_empty() {
                    by_uid.insert(thing.uid, place);
                }
                let name = (gvk.group.as_str(), gvk.kind.as_str(), key.namespace.as_deref(), key.name.as_str());
                by_name.insert(name, place);
            }
        }
        Self { things, by_uid, by_name }
    }

    /// Decides for all things.
    pub(super) fn judge(&self) -> impl Iterator<Item = (&Thing<'a>, Verdict)> {
        let fates: Vec<_> = self.things.iter().map(|thing| self.fate(thing)).collect();
        self.things.iter().enumerate().map(move |(place, thing)| match fates[place] {
            Some(fate) => (thing, fate),
            None if self.is_below_exported(place, &fates) => (thing, Verdict::Below),
            None if thing.tracked => (thing, Verdict::Exported),
            None => (thing, Verdict::Untracked),
        })
    }

    /// The owner that a reference in `thing` means: by uid, else by name beside it, else by name in no namespace.
    fn find(&self, thing: &Thing<'_>, owner: &OwnerReference) -> Option<usize> {
        let named = |namespace| {
            let name = (owner.gvk.group.as_str(), owner.gvk.kind.as_str(), namespace, owner.name.as_str());
            self.by_name.get(&name)
        };
        let by_uid = self.by_uid.get(owner.uid.as_str());
        by_uid.or_else(|| named(thing.object.key.namespace.as_deref())).or_else(|| named(None)).copied()
    }

    /// Everything that is above a thing, each once, nearest first; itself only if it is its own ancestor.
    fn ancestors(&self, thing: &Thing<'_>) -> Vec<usize> {
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        let mut next = thing;
        let mut followed = 0;
        loop {
            for owner in next.owners.iter().filter_map(|owner| self.find(next, owner)) {
                if found.len() < MAX_ANCESTORS && seen.insert(owner) {
                    found.push(owner);
                }
            }
            match found.get(followed) {
                Some(place) => next = &self.things[*place],
                None => return found,
            }
            followed += 1;
        }
    }

    /// What becomes of a thing, in the family or not, whatever else is exported.
    pub(super) fn fate(&self, thing: &Thing<'_>) -> Option<Verdict> {
        let ancestors = self.ancestors(thing);
        let any = |is: &dyn Fn(&Thing<'_>) -> bool| is(thing) || ancestors.iter().any(|place| is(&self.things[*place]));
        if thing.asked == Asked::NotFor || any(&|thing| thing.asked == Asked::Without) {
            return Some(Verdict::Filtered);
        }
        any(&|thing| thing.owners.iter().any(is_daemon_set)).then_some(Verdict::OfDaemonSet)
    }

    /// Is there something above it that is exported? Of things that own each other the first by name is above.
    fn is_below_exported(&self, place: usize, fates: &[Option<Verdict>]) -> bool {
        let name = |place: usize| (self.things[place].object, self.things[place].uid);
        self.ancestors(&self.things[place]).into_iter().filter(|above| *above != place).any(|above| {
            let stands = self.things[above].tracked && fates[above].is_none();
            stands && (name(above) < name(place) || !self.ancestors(&self.things[above]).contains(&place))
        })
    }
}

fn is_daemon_set(owner: &OwnerReference) -> bool {
    owner.gvk.group == "apps" && owner.gvk.kind == "DaemonSet"
}

#[cfg(test)]
mod tests;
