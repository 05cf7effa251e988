//! What a scenario may say and this version does not carry out yet.
//!
//! It is read and checked like everything else, and named here, so that a run can refuse it by name instead of leaving
//! it out without a word.

use std::fmt;

use sk_core::SimDuration;

use super::Scenario;
use super::cluster::Nodes;
use super::error::Place;
use super::group::Ready;
use super::path::Path;
use super::timing::Profile;
use super::trace::Placement;

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
    let Scenario { trace, begin, cluster, .. } = scenario;
    if_used(!trace.overlay.is_empty(), Path::of(["trace", "overlay"]), OVERLAY);
    if_used(trace.transform.is_some(), Path::of(["trace", "transform"]), TRANSFORM);
    if_used(begin.placement == Placement::Recorded, Path::of(["begin", "placement"]), PLACEMENT);
    if_used(begin.warmup > SimDuration::ZERO, Path::of(["begin", "warmup"]), WARMUP);
    if_used(cluster.nodes != Nodes::Groups, Path::of(["cluster", "nodes"]), NODES);
    if_used(cluster.reserved.is_some(), Path::of(["cluster", "reserved"]), RESERVED);
    for (name, group) in &cluster.groups {
        let at = Path::of(["cluster", "groups", name]);
        if_used(!group.matches.is_empty(), at.field("match"), MATCH);
        if_used(matches!(group.ready, Ready::Spread { .. }), at.field("ready"), SPREAD);
    }
    if_used(matches!(scenario.timing.profile, Profile::Custom(_)), Path::of(["timing", "profile"]), PROFILE);
    if_used(!scenario.timeline.is_empty(), top("timeline"), TIMELINE);
    if_used(!scenario.variants.is_empty(), top("variants"), VARIANTS);
    if_used(scenario.repetitions > 1, top("repetitions"), REPETITIONS);
    found
}

const OVERLAY: &str = "manifests are not laid over a trace yet: remove it, or change the trace itself";
const TRANSFORM: &str = "traces are not transformed on the way yet: remove it, or transform the trace beforehand";
const PLACEMENT: &str = "recorded placements are not taken over yet: write `schedule` or remove it";
const WARMUP: &str = "no part of a run is left out of its figures yet: write 0s or remove it";
const NODES: &str = "nodes come from `groups` only, so far: write `groups` or remove it";
const RESERVED: &str = "nothing is reserved on nodes yet: remove it, and write what is left for pods as `allocatable`";
const MATCH: &str = "groups are not made from recorded nodes yet: remove it and write the group's cpu and memory";
const SPREAD: &str = "a spread of delays is not drawn from yet: write one duration, such as the p50";
const PROFILE: &str = "only `ideal` and `real-like` are carried out so far: write one of them";
const TIMELINE: &str = "faults and changes during a run are not carried out yet: remove them";
const VARIANTS: &str = "one run carries out one scenario, so far: remove them and run once with --set for each";
const REPETITIONS: &str = "a run is not repeated yet: write 1, and run once with --seed for each";
