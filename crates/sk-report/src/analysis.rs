//! Rows → everything a report shows: reads the record once or twice and keeps what the charts need, bounded.

use std::collections::BTreeMap;

use sk_core::{SimDuration, SimTime};
use sk_record::{Error, Missing, NodeRow, RunMeta, SeriesRow, WarningKind};

use crate::causes::{EmptyCause, PendingCause, empty_causes};
use crate::changes::{self, Change};
use crate::events::{Events, Scalings};
use crate::fidelity::RecordedCurves;
use crate::figures::{Churn, Summary, Warnings};
use crate::fleet::{Fleet, Node};
use crate::gaps;
use crate::incidents::Incident;
use crate::pods::Pods;
use crate::source::Source;
use crate::step::{Step, Window, hours};

/// Nodes whose load is shown: 200 rows of [`LOADS`] shares are 77 KB.
pub const NODES_MAX: usize = 200;
/// Nodes that are listed one by one: 20,000 × 60 bytes are 1.2 MB.
pub const NODES_TOLD_MAX: usize = 20_000;
/// Parts of the window in which a node's load is shown.
pub const LOADS: usize = 96;
/// Changes of the marked owner that are kept.
pub const MARKS_MAX: usize = 200;

/// Everything a report shows of one run.
#[derive(Debug)]
pub struct Analysis {
    /// What was asked.
    pub meta: RunMeta,
    /// What the figures are about.
    pub window: Window,
    /// The figures.
    pub summary: Summary,
    /// The pictures.
    pub curves: Curves,
    /// What was done to the owner that changed most.
    pub marks: Option<Marks>,
    /// What was done to workloads, where it is large enough to explain the curves.
    pub changes: Vec<Change>,
    /// Why pods waited, most pods first.
    pub pending_causes: Vec<PendingCause>,
    /// Why nodes were empty, most hours first.
    pub empty_causes: Vec<EmptyCause>,
    /// The longest waits, longest first; at most [`crate::incidents::INCIDENTS_MAX`].
    pub incidents: Vec<Incident>,
    /// How many incidents there were to choose from.
    pub incidents_total: usize,
    /// What happened to pods, and the scheduler's messages, as far as a page can hold them.
    pub events: Events,
    /// What the autoscaler decided, as far as a page can hold it.
    pub scalings: Scalings,
    /// The nodes that were empty longest, in order of creation; at most [`NODES_TOLD_MAX`].
    pub nodes: Vec<NodeStory>,
    /// How many nodes there were to choose from.
    pub nodes_total: usize,
    /// What of the trace was not simulated, worst first.
    pub missing: Vec<Missing>,
    /// What was recorded meanwhile, if the trace holds observations.
    pub recorded: Option<RecordedCurves>,
    /// Pods that the scheduler tried. A run without any is not a simulation.
    pub simulated_pods: i64,
    /// How many pods had not run yet when the run ended, though nothing held them up.
    pub starting_pods: i64,
    /// The time to start that p % of pods did not exceed, for p = 0 … 100; empty if none started.
    pub latency_percentiles: Vec<SimDuration>,
}

/// Running pods, waiting pods and nodes over time.
#[derive(Debug)]
pub struct Curves {
    /// Running pods.
    pub running: Step,
    /// Pods without a node.
    pub pending: Step,
    /// Nodes.
    pub nodes: Step,
    /// Of those, ready with nothing to do.
    pub empty: Step,
    /// Nodes of each group.
    pub groups: BTreeMap<String, Step>,
}

/// What was done to one owner: the changes of its desired replicas.
#[derive(Clone, Debug, PartialEq)]
pub struct Marks {
    /// `ns/Kind/name`.
    pub owner: String,
    /// When, and how many from then on; nothing when it was deleted.
    pub changes: Vec<(SimTime, Option<f64>)>,
}

/// One node's life and load.
#[derive(Clone, Debug)]
pub struct NodeStory {
    /// Its row.
    pub row: NodeRow,
    /// Hours it was empty.
    pub empty_hours: f64,
    /// Mean share of its CPU asked for, in each of [`LOADS`] parts of the window; nothing while it was not ready. Empty
    /// for all but [`NODES_MAX`] nodes.
    pub loads: Vec<Option<f64>>,
}

impl Analysis {
    /// Reads a run.
    pub fn of(source: &impl Source) -> Result<Self, Error> {
        let meta = source.meta().clone();
        let window = Window::new(meta.start, meta.end);
        let mut fleet = Fleet::new(source.nodes()?.collect::<Result<_, _>>()?, window);
        let pods = Pods::read(source, &mut fleet, window)?;
        let (incidents, incidents_total) = pods.incidents;
        let (nodes, nodes_total) = node_stories(&fleet);
        let missing = gaps::of(&meta);
        let mut events = pods.events;
        events.read_answers(source)?;
        Ok(Self {
            marks: marks(source, window)?,
            changes: changes::of(source, window, pods.figures.pods.running_max)?,
            empty_causes: empty_causes(&fleet, &meta, window),
            latency_percentiles: pods.latency_percentiles,
            simulated_pods: pods.simulated,
            starting_pods: pods.starting,
            summary: summary(&meta, &fleet, pods.figures, &missing),
            missing,
            recorded: None,
            curves: Curves {
                running: pods.running,
                pending: pods.pending,
                nodes: fleet.curve(None),
                empty: fleet.empty_curve(),
                groups: group_names(&meta, &fleet).map(|name| (name.clone(), fleet.curve(Some(&name)))).collect(),
            },
            pending_causes: pods.causes,
            scalings: Scalings::read(source, window)?,
            events,
            incidents,
            incidents_total,
            nodes,
            nodes_total,
            window,
            meta,
        })
    }
}

fn summary(meta: &RunMeta, fleet: &Fleet, pods: Summary, missing: &[Missing]) -> Summary {
    let priced = |name: &str| {
        let group = meta.groups.iter().find(|group| group.name == name);
        group.is_none_or(|group| group.price_per_hour.is_some())
    };
    let has_nodes = fleet.nodes().next().is_some() || !meta.groups.is_empty();
    let all_priced = has_nodes && meta.groups.iter().all(|group| group.price_per_hour.is_some());
    let all = fleet.figures(None, all_priced);
    let groups = group_names(meta, fleet).map(|name| {
        let figures = fleet.figures(Some(&name), priced(&name));
        (name, figures)
    });
    Summary {
        groups: groups.collect(),
        churn: Churn { nodes: all.nodes.created + all.nodes.removed, pods: pods.churn.pods },
        nodes: all.nodes,
        node_hours: all.node_hours,
        cost: all.cost,
        requested: all.requested,
        missing: gaps::figures(missing),
        warnings: warnings(meta),
        ..pods
    }
}

fn warnings(meta: &RunMeta) -> Warnings {
    let of = |kind| meta.warnings.iter().filter(|warning| warning.kind == kind).count() as i64;
    Warnings {
        total: meta.warnings.len() as i64,
        assumed: of(WarningKind::Assumed),
        gaps: of(WarningKind::Gap),
        unmodelled: of(WarningKind::Unmodelled),
    }
}

/// The groups of the scenario and those that nodes name.
fn group_names(meta: &RunMeta, fleet: &Fleet) -> impl Iterator<Item = String> {
    let of_meta = meta.groups.iter().map(|group| group.name.clone());
    let of_nodes = fleet.nodes().map(|node| node.group().to_owned());
    of_meta.chain(of_nodes).collect::<std::collections::BTreeSet<_>>().into_iter()
}

/// The changes of desired replicas of the owner that changed most often; of equals the one that moved most, then the
/// first by name.
fn marks(source: &impl Source, window: Window) -> Result<Option<Marks>, Error> {
    let is_change = |row: &SeriesRow| row.series == SeriesRow::REPLICAS && window.contains(row.time);
    let mut owners: BTreeMap<String, (i64, f64, Option<Option<f64>>)> = BTreeMap::new();
    for row in source.series()? {
        let row = row?;
        if !is_change(&row) {
            continue;
        }
        let (changes, moved, last) = owners.entry(row.key).or_default();
        if *last != Some(row.value) {
            *changes += 1;
            *moved += (row.value.unwrap_or(0.0) - last.flatten().unwrap_or(0.0)).abs();
            *last = Some(row.value);
        }
    }
    // `min_by` takes the first of equals, and a BTreeMap gives names in order.
    let most = owners.into_iter().min_by(|(_, a), (_, b)| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
    let Some((owner, _)) = most else { return Ok(None) };
    let mut changes: Vec<(SimTime, Option<f64>)> = Vec::new();
    for row in source.series()? {
        let row = row?;
        let is_new = changes.last().is_none_or(|last| last.1 != row.value);
        if is_change(&row) && row.key == owner && is_new && changes.len() < MARKS_MAX {
            changes.push((row.time, row.value));
        }
    }
    Ok(Some(Marks { owner, changes }))
}

fn node_stories(fleet: &Fleet) -> (Vec<NodeStory>, usize) {
    let mut nodes: Vec<_> = fleet.nodes().map(|node| (node.idle_micros(), node)).collect();
    let total = nodes.len();
    nodes.sort_by_key(|(idle, _)| std::cmp::Reverse(*idle));
    nodes.truncate(NODES_TOLD_MAX);
    let story = |(place, (idle, node)): (usize, (i128, &Node))| NodeStory {
        empty_hours: hours(idle),
        loads: if place < NODES_MAX { fleet.loads(node, LOADS) } else { Vec::new() },
        row: node.row.clone(),
    };
    let mut stories: Vec<NodeStory> = nodes.into_iter().enumerate().map(story).collect();
    // Shorter names first, so that node-2 comes before node-10.
    let order = |row: &NodeRow| (row.created, row.name.len(), row.name.clone());
    stories.sort_by_cached_key(|story| order(&story.row));
    (stories, total)
}
