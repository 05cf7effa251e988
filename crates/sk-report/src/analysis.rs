//! From rows to everything a report shows: read the record once or twice, keep what the pictures need, bounded.

use std::collections::BTreeMap;

use sk_core::{SimDuration, SimTime};
use sk_record::{DecisionRow, EndedBy, Error, NodeRow, RunMeta, SeriesRow, WarningKind};

use crate::causes::{EmptyCause, PendingCause, PendingCauses, Wait, empty_causes};
use crate::figures::{Churn, Summary, Warnings};
use crate::fleet::Fleet;
use crate::source::Source;
use crate::step::{Changes, Step, Window, hours};
use crate::tally::{Tally, end_of, percentile, wait_end};

/// Waits kept by name, the longest; the rest only count. 200 × about 500 bytes of text is 100 KB in a report.
pub const WAITS_MAX: usize = 200;
/// Decisions kept for the pods of those waits: 10 per wait on average, about 600 bytes each, is 1.2 MB.
pub const DECISIONS_MAX: usize = 2_000;
/// Nodes shown one by one: 200 rows of [`LOADS`] shares are 77 KB.
pub const NODES_MAX: usize = 200;
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
    /// Why pods waited, most pods first.
    pub pending_causes: Vec<PendingCause>,
    /// Why nodes stood empty, most hours first.
    pub empty_causes: Vec<EmptyCause>,
    /// The longest waits, longest first; at most [`WAITS_MAX`].
    pub waits: Vec<Wait>,
    /// What the scheduler said to the pods of those waits, in order of time; at most [`DECISIONS_MAX`].
    pub decisions: Vec<DecisionRow>,
    /// The nodes that stood empty longest, in order of creation; at most [`NODES_MAX`].
    pub nodes: Vec<NodeStory>,
    /// How many nodes there were to choose from.
    pub nodes_total: usize,
    /// The time to start that p % of pods did not exceed, for p = 0 … 100; empty if none started.
    pub latency_percentiles: Vec<SimDuration>,
}

/// What ran, waited and stood when.
#[derive(Debug)]
pub struct Curves {
    /// Running pods.
    pub running: Step,
    /// Pods without a node.
    pub pending: Step,
    /// Nodes.
    pub nodes: Step,
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
    /// Hours it stood empty.
    pub empty_hours: f64,
    /// Mean share of its CPU asked for, in each of [`LOADS`] parts of the window; nothing while it was not ready.
    pub loads: Vec<Option<f64>>,
}

impl Analysis {
    /// Reads a run.
    pub fn of(source: &impl Source) -> Result<Self, Error> {
        let meta = source.meta().clone();
        let window = Window::new(meta.start, meta.end);
        let mut fleet = Fleet::new(source.nodes()?.collect::<Result<_, _>>()?, window);
        let pods = PodsRead::read(source, &mut fleet, window)?;
        let decisions = decisions_of(source, &pods.waits)?;
        let (nodes, nodes_total) = node_stories(&fleet);
        Ok(Self {
            marks: marks(source, window)?,
            empty_causes: empty_causes(&fleet, &meta, window),
            latency_percentiles: pods.latency_percentiles,
            summary: summary(&meta, &fleet, pods.figures),
            curves: Curves {
                running: pods.running,
                pending: pods.pending,
                nodes: fleet.curve(None),
                groups: group_names(&meta, &fleet).map(|name| (name.clone(), fleet.curve(Some(&name)))).collect(),
            },
            pending_causes: pods.causes,
            waits: pods.waits,
            decisions,
            nodes,
            nodes_total,
            window,
            meta,
        })
    }
}

/// What one reading of the pod table gives.
struct PodsRead {
    figures: Summary,
    running: Step,
    pending: Step,
    causes: Vec<PendingCause>,
    waits: Vec<Wait>,
    latency_percentiles: Vec<SimDuration>,
}

impl PodsRead {
    fn read(source: &impl Source, fleet: &mut Fleet, window: Window) -> Result<Self, Error> {
        let (mut total, mut running, mut pending) = (Tally::default(), Changes::default(), Changes::default());
        let (mut namespaces, mut owners): (BTreeMap<_, Tally>, BTreeMap<_, Tally>) = Default::default();
        let (mut causes, mut waits, mut lost) = (PendingCauses::default(), LongestWaits::default(), 0);
        for pod in source.pods()? {
            let pod = pod?;
            fleet.add(&pod);
            if let Some(started) = pod.started {
                running.add(started, end_of(&pod), 1);
            }
            pending.add(pod.created, wait_end(&pod), 1);
            if !window.contains(pod.created) {
                continue;
            }
            total.add(&pod, window);
            namespaces.entry(pod.namespace.clone()).or_default().add(&pod, window);
            owners.entry(pod.owner.clone()).or_default().add(&pod, window);
            lost += i64::from(pod.ended_by == Some(EndedBy::NodeLost));
            if pod.waited_for.is_some() {
                let wait = Wait::of(&pod, fleet, window);
                causes.add(&wait);
                waits.add(wait);
            }
        }
        let (running, pending) = (running.into_step(window), pending.into_step(window));
        let latencies = total.sorted_latencies();
        let percents = if latencies.is_empty() { 0..0 } else { 0..101 };
        let latency_percentiles = percents.map(|percent| percentile(latencies, percent)).collect();
        let (pods, pended, of_all) = (total.pods(&running), total.pending(&pending), total.into_figures());
        let figures = Summary {
            pods,
            pending: pended,
            unschedulable: of_all.unschedulable,
            start_latency: of_all.start_latency,
            churn: Churn { nodes: 0, pods: of_all.evicted.pods + of_all.preempted.pods + lost },
            evicted: of_all.evicted,
            preempted: of_all.preempted,
            namespaces: namespaces.into_iter().map(|(name, tally)| (name, tally.into_figures())).collect(),
            owners: owners.into_iter().map(|(name, tally)| (name, tally.into_figures())).collect(),
            ..Summary::default()
        };
        let (causes, waits) = (causes.into_sorted(), waits.into_sorted());
        Ok(Self { figures, running, pending, causes, waits, latency_percentiles })
    }
}

/// Keeps the longest waits while reading; sorts only now and then.
#[derive(Default)]
struct LongestWaits(Vec<Wait>);

impl LongestWaits {
    fn add(&mut self, wait: Wait) {
        self.0.push(wait);
        if self.0.len() >= 2 * WAITS_MAX {
            self.keep_longest();
        }
    }

    fn keep_longest(&mut self) {
        // Stable, so waits of equal length stay in the order of the record.
        self.0.sort_by_key(|wait| std::cmp::Reverse(wait.length()));
        self.0.truncate(WAITS_MAX);
    }

    fn into_sorted(mut self) -> Vec<Wait> {
        self.keep_longest();
        self.0
    }
}

fn summary(meta: &RunMeta, fleet: &Fleet, pods: Summary) -> Summary {
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

fn decisions_of(source: &impl Source, waits: &[Wait]) -> Result<Vec<DecisionRow>, Error> {
    let pods: std::collections::BTreeSet<(&str, &str)> =
        waits.iter().map(|wait| (wait.namespace.as_str(), wait.pod.as_str())).collect();
    let mut kept = Vec::new();
    for row in source.decisions()? {
        let row = row?;
        if kept.len() == DECISIONS_MAX {
            break;
        }
        if pods.contains(&(row.namespace.as_str(), row.pod.as_str())) {
            kept.push(row);
        }
    }
    Ok(kept)
}

fn node_stories(fleet: &Fleet) -> (Vec<NodeStory>, usize) {
    let mut nodes: Vec<_> = fleet.nodes().map(|node| (fleet.idle_micros(node), node)).collect();
    let total = nodes.len();
    nodes.sort_by_key(|(idle, _)| std::cmp::Reverse(*idle));
    nodes.truncate(NODES_MAX);
    nodes.sort_by(|(_, a), (_, b)| (a.row.created, &a.row.name).cmp(&(b.row.created, &b.row.name)));
    let story = |(idle, node): (i128, _)| NodeStory {
        empty_hours: hours(idle),
        loads: fleet.loads(node, LOADS),
        row: node.row.clone(),
    };
    (nodes.into_iter().map(story).collect(), total)
}
