//! What a scenario may say and this version does not carry out yet.
//!
//! It is read and checked like everything else, and named here, so that a run can refuse it by name instead of leaving
//! it out without a word.

use std::fmt;

use super::Scenario;
use super::error::Place;
use super::group::Ready;
use super::path::Path;
use super::timing::Profile;

/// Something that a scenario asks for and this version does not carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// What is asked for.
    pub path: Path,
    /// Where it is asked for; `None` for a scenario that was not read from text.
    pub place: Option<Place>,
    /// What to do instead.
    pub why: &'static str,
}

impl Unsupported {
    /// The line in the file, if it stands in the file.
    pub fn line(&self) -> Option<u64> {
        self.place.as_ref().and_then(Place::line)
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        write!(f, "{}: {}", self.path, self.why)
    }
}

/// Everything in `scenario` that is not carried out, in the order of the file's sections.
pub(crate) fn find(scenario: &Scenario) -> Vec<(Path, &'static str)> {
    let mut found = Vec::new();
    let mut if_used = |used: bool, path: Path, why| {
        if used {
            found.push((path, why));
        }
    };
    let top = |section: &str| Path::of([section]);
    let Scenario { cluster, .. } = scenario;
    for (name, group) in &cluster.groups {
        let at = Path::of(["cluster", "groups", name]);
        if_used(matches!(group.ready, Ready::Spread { .. }), at.field("ready"), SPREAD);
    }
    if_used(matches!(scenario.timing.profile, Profile::Custom(_)), Path::of(["timing", "profile"]), PROFILE);
    if_used(!scenario.timeline.is_empty(), top("timeline"), TIMELINE);
    found
}

const SPREAD: &str = "a spread of delays is not drawn from yet: write one duration, such as the p50";
const PROFILE: &str = "only `ideal` and `real-like` are carried out so far: write one of them";
const TIMELINE: &str = "faults and changes during a run are not carried out yet: remove them";
