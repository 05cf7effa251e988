//! The paths that a configuration names: pod templates, and fields to keep.
//!
//! The JSON pointers, with `*`, become one tree of keys that is walked beside the object. At a list element, a pointer
//! with an index wins over one with `*`.

use sk_api::tracer::Keep;
use sk_core::{Pointer, PointerPattern, SmolStr};

/// The configured rules for one path and the paths below it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlay {
    inside: Vec<(SmolStr, Overlay)>,
    /// Everything here is kept.
    pub(crate) keep: bool,
    /// Exactly this place is named for exactly this kind, so that not even a seal holds.
    pub(crate) unsealed: bool,
    /// A pod template stands here.
    pub(crate) template: bool,
}

/// One step of the way to a place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<'a> {
    /// A field of a map.
    Key(&'a str),
    /// An element of a list.
    Index(usize),
}

impl Overlay {
    /// Of these templates and kept places.
    pub(crate) fn new<'k>(templates: &[PointerPattern], keep: impl Iterator<Item = &'k Keep>) -> Self {
        let mut overlay = Self::default();
        templates.iter().for_each(|pattern| overlay.at(pattern).template = true);
        for Keep { kind, place } in keep {
            let place = overlay.at(place);
            place.keep = true;
            place.unsealed |= kind.is_some();
        }
        overlay
    }

    /// The place that a pattern names, made if it is not there.
    fn at(&mut self, pattern: &PointerPattern) -> &mut Self {
        let pointer: Pointer = pattern.as_str().parse().expect("a pattern is spelt as a pointer");
        let mut place = self;
        for key in pointer.keys() {
            let known = place.inside.iter().position(|(name, _)| *name == key);
            let at = known.unwrap_or_else(|| {
                place.inside.push((key.into(), Self::default()));
                place.inside.len() - 1
            });
            place = &mut place.inside[at].1;
        }
        place
    }

    /// The rules for the path one step further down.
    pub(crate) fn step(&self, step: Step<'_>) -> Option<&Self> {
        if self.inside.is_empty() {
            return None;
        }
        let find = |key: &str| self.inside.iter().find(|(name, _)| *name == key).map(|(_, inside)| inside);
        match step {
            Step::Key(key) => find(key),
            Step::Index(index) => find(&index.to_string()).or_else(|| find("*")),
        }
    }
}

/// The place that these steps lead to.
pub(crate) fn pointer(steps: &[Step<'_>]) -> Pointer {
    steps.iter().fold(Pointer::default(), |at, step| match step {
        Step::Key(key) => at.child(key),
        Step::Index(index) => at.child(&index.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_by_key_index_and_star() {
        let templates = ["/spec/groups/*/template".parse().unwrap()];
        let keep: Keep = "/spec/groups/0/name".parse().unwrap();
        let overlay = Overlay::new(&templates, std::iter::once(&keep));
        let groups = overlay.step(Step::Key("spec")).and_then(|spec| spec.step(Step::Key("groups"))).unwrap();
        assert!(groups.step(Step::Index(7)).unwrap().step(Step::Key("template")).unwrap().template);
        assert!(groups.step(Step::Index(0)).unwrap().step(Step::Key("name")).unwrap().keep);
        assert!(groups.step(Step::Key("0")).is_some(), "an index is a key where there is a map");
        assert!(overlay.step(Step::Key("status")).is_none());
    }

    #[test]
    fn the_way_to_a_place_is_a_pointer() {
        let steps = [Step::Key("a/b"), Step::Index(3)];
        assert_eq!(pointer(&steps).as_str(), "/a~1b/3");
    }
}
