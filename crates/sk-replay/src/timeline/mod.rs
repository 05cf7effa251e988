//! The timeline: faults and changes during a run, at times of the trace's clock, drawn from the seed.
//!
//! [`Timeline::of`] turns a scenario's `timeline` into a list of entries before the run, so that anything impossible
//! is refused before the simulation starts. `disruptions` then does to the engine what happens to a cluster from
//! outside: kubelets stop reporting, the cloud removes and adds nodes, an operator changes a flag. The engine's own
//! controllers do the rest: taints, evictions, new pods and nodes.

mod disruptions;
mod machines;

use sk_api::Scenario;
use sk_api::scenario::timeline::{Changes, Happening, LoseNodes, Reclaim};
use sk_api::scenario::{Nodes, ScenarioError};
use sk_core::{SimDuration, SimTime, SmolStr, TimeSpec};

use crate::plan::Window;
use crate::scheduler::{self, SchedulerError};
use crate::setup::Setup;

pub(crate) use disruptions::Disruptions;

/// The most moments of one run: every second of a day.
const MAX_MOMENTS: usize = 86_400;

/// Why a timeline cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum TimelineError {
    /// A time that depends on something unknown here.
    #[error("timeline[{0}].at: this is not a moment of the trace; write one such as +3d or 2026-11-10T14:00:00Z")]
    Moment(usize),
    /// `every` happens too often.
    #[error("timeline[{index}].every: that makes more than {MAX_MOMENTS} moments; write a longer interval")]
    TooMany {
        /// Which entry.
        index: usize,
    },
    /// What several `set` make together is not a scenario.
    #[error("timeline[{index}].set, with what was set before it: {source}")]
    Set {
        /// Which entry.
        index: usize,
        /// What is wrong with it.
        #[source]
        source: ScenarioError,
    },
    /// The scheduler's configuration that is set cannot be used.
    #[error("timeline[{index}].set: {source}")]
    Scheduler {
        /// Which entry.
        index: usize,
        /// What is wrong with it.
        #[source]
        source: SchedulerError,
    },
}

/// What happens when, in order.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    moments: Vec<Moment>,
    /// Entries whose moment lies outside of the run.
    outside: Vec<usize>,
}

/// One entry of the timeline at one time.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    pub(crate) at: SimTime,
    /// The number of its entry in the scenario.
    pub(crate) entry: usize,
    pub(crate) what: Action,
}

/// A fault or change.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// The cloud has no more nodes of a group.
    Stockout { group: SmolStr, length: SimDuration },
    /// The kubelets of a zone stop reporting.
    LoseZone { zone: SmolStr, length: SimDuration },
    /// The kubelets of nodes stop reporting, for a time or for good.
    LoseNodes(LoseNodes),
    /// Requests take longer.
    SlowApi { more: SimDuration, length: SimDuration },
    /// The cloud reclaims nodes.
    Reclaim(Reclaim),
    /// Fields change: what holds from now on.
    Set(Box<Change>),
}

/// A change to the configuration.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// Which fields, for the record.
    pub(crate) fields: Vec<String>,
    pub(crate) setup: Setup,
    /// kube-scheduler has to be restarted.
    pub(crate) is_of_scheduler: bool,
}

impl Timeline {
    /// Of a scenario whose groups are fitted, in a run of this part of the trace, which begins at `first`.
    pub fn of(scenario: &Scenario, window: Window, first: SimTime) -> Result<Self, TimelineError> {
        let mut timeline = Self::default();
        for (index, happening) in scenario.timeline.iter().enumerate() {
            let before = timeline.moments.len();
            for at in moments(happening, index, window, first)? {
                // A `set` is looked at below, when the order is known.
                let what = action(happening).unwrap_or_else(|| Action::Set(Box::new(Change::nothing(scenario))));
                timeline.moments.push(Moment { at, entry: index, what });
            }
            if timeline.moments.len() == before {
                timeline.outside.push(index);
            }
        }
        timeline.moments.sort_by_key(|moment| (moment.at, moment.entry));
        timeline.add_up(scenario)?;
        Ok(timeline)
    }

    /// Each `set` changes what those before it left.
    fn add_up(&mut self, scenario: &Scenario) -> Result<(), TimelineError> {
        let mut changes = Changes::new();
        for Moment { entry, what, .. } in &mut self.moments {
            let Action::Set(change) = what else { continue };
            let (index, set) = (*entry, &scenario.timeline[*entry].set);
            changes.extend(set.iter().map(|(path, value)| (path.clone(), value.clone())));
            let changed = scenario.changed(&changes).map_err(|source| TimelineError::Set { index, source })?;
            let scheduler = scheduler::of(&changed).map_err(|source| TimelineError::Scheduler { index, source })?;
            **change = Change {
                fields: set.iter().map(|(path, value)| format!("{path}={value}")).collect(),
                setup: Setup::new(&changed).with_scheduler(scheduler),
                is_of_scheduler: set.keys().any(|path| path.starts_with("scheduler")),
            };
        }
        Ok(())
    }

    /// Does nothing happen?
    pub fn is_empty(&self) -> bool {
        self.moments.is_empty() && self.outside.is_empty()
    }

    /// When pods take longer or shorter to start: from when on, and how long.
    pub(crate) fn delays(&self) -> impl Iterator<Item = (SimTime, crate::mutate::StartDelays)> {
        self.moments.iter().filter_map(|moment| match &moment.what {
            Action::Set(change) => Some((moment.at, change.setup.delays)),
            Action::Stockout { .. }
            | Action::LoseZone { .. }
            | Action::LoseNodes(_)
            | Action::SlowApi { .. }
            | Action::Reclaim(_) => None,
        })
    }
}

impl Change {
    fn nothing(scenario: &Scenario) -> Self {
        Self { fields: Vec::new(), setup: Setup::new(scenario), is_of_scheduler: false }
    }
}

/// When it happens, as far as that is within the run.
fn moments(happening: &Happening, index: usize, window: Window, first: SimTime) -> Result<Vec<SimTime>, TimelineError> {
    let within = |at: &SimTime| *at >= window.start && *at < window.end;
    if let Some(at) = happening.at {
        let at = match at {
            TimeSpec::At(at) => at,
            TimeSpec::AfterStart(after) => first + after,
            // Whoever knows what time it is has said so before.
            TimeSpec::Now | TimeSpec::BeforeNow(_) | TimeSpec::OnClocks(_) => return Err(TimelineError::Moment(index)),
        };
        return Ok(Some(at).filter(within).into_iter().collect());
    }
    let every = happening.every.unwrap_or(SimDuration::ZERO).max(SimDuration::from_secs(1));
    let mut all = Vec::new();
    let mut at = window.start + every;
    while within(&at) {
        if all.len() == MAX_MOMENTS {
            return Err(TimelineError::TooMany { index });
        }
        all.push(at);
        at += every;
    }
    Ok(all)
}

/// What it does; nothing for a `set`, which depends on those before it.
fn action(happening: &Happening) -> Option<Action> {
    let Happening { stockout, lose_zone, lose_nodes, slow_api, reclaim, .. } = happening;
    let stockout = stockout.as_ref().map(|what| Action::Stockout { group: what.group.clone(), length: what.length });
    let zone = lose_zone.as_ref().map(|what| Action::LoseZone { zone: what.zone.clone(), length: what.length });
    let nodes = lose_nodes.clone().map(Action::LoseNodes);
    let slow = slow_api.as_ref().map(|what| Action::SlowApi { more: what.latency, length: what.length });
    let reclaim = reclaim.clone().map(Action::Reclaim);
    stockout.or(zone).or(nodes).or(slow).or(reclaim)
}

/// Do groups make the nodes of this cluster?
pub(crate) fn has_groups(setup: &Setup) -> bool {
    setup.nodes == Nodes::Groups
}
