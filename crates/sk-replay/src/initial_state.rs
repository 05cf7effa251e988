//! The start of a run: the nodes that exist, the pods on them, and how long before the clock starts they are created.

use std::collections::BTreeMap;

use sk_api::scenario::{Nodes, Placement};
use sk_core::{ObjectKey, ObjectRef, SimDuration, SimTime, SmolStr};
use sk_engine::api::directives::NODE_GROUP;
use sk_engine::api::{DeleteOptions, Request};
use sk_engine::kinds::NODE;
use sk_engine::{Engine, Settings};
use sk_record::{Warning, WarningKind};
use sk_store::trace::{OwnerLives, Trace};

use crate::embedded::{RunError, RunRequest};
use crate::initial_pods::InitialPods;
use crate::mutate::Mutator;
use crate::nodes::{Inventory, ReservedBy};
use crate::plan::Start;

/// The state of a run before its clock starts.
pub(crate) struct InitialState {
    /// When the cluster starts; the clock of the run may start later.
    pub(crate) at: SimTime,
    pub(crate) nodes: Inventory,
    pods: Option<InitialPods>,
    pub(crate) warnings: Vec<Warning>,
}

impl InitialState {
    /// Of a run whose objects need `lead` before the clock begins.
    pub(crate) fn of(request: &RunRequest<'_>, start: &Start, lead: SimDuration) -> Result<Self, RunError> {
        let mut nodes = inventory(request)?;
        let placement = placement(request, lead)?;
        if placement == Placement::Schedule && request.setup.nodes == Nodes::Groups {
            nodes = Inventory::default();
        }
        let mut warnings = Vec::new();
        let pods = match placement {
            Placement::Schedule => None,
            Placement::Recorded => Some(InitialPods::of(request.trace, start.at, &nodes.names())?),
        };
        warnings.extend(pods.as_ref().and_then(placed_anew));
        Ok(Self { at: start.at - lead, nodes, pods, warnings })
    }

    /// The cluster, with its existing nodes. A group that has recorded nodes begins with as many fewer of its own.
    pub(crate) fn engine(&self, request: &RunRequest<'_>) -> Result<Engine, RunError> {
        let settings = Settings { rules: crate::refusals::rules_of(request.trace), ..request.setup.settings.clone() };
        let mut engine = Engine::new(&settings, self.at);
        let mut joined: BTreeMap<SmolStr, u32> = BTreeMap::new();
        for node in self.nodes.first() {
            if let Some(group) = node.meta.labels.get(&NODE_GROUP) {
                *joined.entry(group.clone()).or_default() += 1;
            }
        }
        for group in &request.setup.settings.groups {
            let spare = joined.get(&group.name).copied().unwrap_or(0).min(group.min);
            for number in group.min - spare + 1..=group.min {
                let key = ObjectKey::cluster(format!("{}-{number}", group.name));
                remove_node(&mut engine, key);
            }
        }
        for node in self.nodes.first() {
            let made = engine.handle(Request::create(node.clone()));
            made.map_err(|error| RunError::Node { node: node.key.name.to_string(), problem: error.to_string() })?;
        }
        Ok(engine)
    }

    /// What decides about new pods; those from before the clock take the places and lives of recorded ones.
    pub(crate) fn mutator(&mut self, request: &RunRequest<'_>, lives: Vec<OwnerLives>) -> Mutator {
        let setup = request.setup;
        let mutator = Mutator::new(setup.settings.seed, setup.delays, lives).changing(setup.timeline.delays());
        let clock = request.window.start;
        if self.at < clock { mutator.beginning_at(clock, self.pods.take()) } else { mutator }
    }
}

/// Takes back a node that the engine has just made; if it were not there, nothing would be lost.
fn remove_node(engine: &mut Engine, key: ObjectKey) {
    let options = DeleteOptions { grace_secs: Some(0), ..DeleteOptions::default() };
    let _ = engine.handle(Request::Delete { target: ObjectRef::new(NODE.clone(), key), options });
}

/// The nodes that no group makes. Under `groups`, recorded ones that a group's `match` takes.
fn inventory(request: &RunRequest<'_>) -> Result<Inventory, RunError> {
    let setup = request.setup;
    let span = (request.window.start, request.window.end);
    let reserved = match setup.reserved_is_recorded {
        true => ReservedBy::recorded(request.trace)?,
        false => ReservedBy::always(setup.reserved.clone()),
    };
    match &setup.nodes {
        Nodes::Groups if setup.matches.values().all(BTreeMap::is_empty) => Ok(Inventory::default()),
        Nodes::Groups => Ok(Inventory::recorded(request.trace, span, &setup.matches, &reserved)?.of_groups()),
        Nodes::Recorded => {
            let inventory = Inventory::recorded(request.trace, span, &setup.matches, &reserved)?;
            if inventory.is_empty() { Err(RunError::NoRecordedNodes) } else { Ok(inventory) }
        }
        Nodes::File(_) => Ok(Inventory::fixed(request.nodes, &setup.matches, &reserved.fixed)?),
    }
}

/// The placement of pods that exist when the clock starts: the scenario's; else the recorded one, if it is known.
fn placement(request: &RunRequest<'_>, lead: SimDuration) -> Result<Placement, RunError> {
    match request.setup.placement {
        Some(Placement::Recorded) if !knows_places(request.trace)? => Err(RunError::NoRecordedPlaces),
        Some(placement) => Ok(placement),
        None if lead > SimDuration::ZERO && knows_places(request.trace)? => Ok(Placement::Recorded),
        None => Ok(Placement::Schedule),
    }
}

fn knows_places(trace: &Trace) -> Result<bool, RunError> {
    for observation in trace.observations()? {
        if observation?.node.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn placed_anew(pods: &InitialPods) -> Option<Warning> {
    let count = pods.elsewhere;
    (count > 0).then(|| Warning {
        code: "placed-anew".to_owned(),
        kind: WarningKind::Note,
        message: format!("{count} pods ran on nodes that this cluster does not have, and were rescheduled"),
        count,
    })
}
