//! One pass over the pod table: figures, curves, causes and incidents, collected pod by pod.

use std::collections::BTreeMap;

use sk_core::SimDuration;
use sk_core::lookup::{Lookup, hash_of};
use sk_record::{EndedBy, Error, PodRow};

use crate::causes::{PendingCause, PendingCauses, Wait};
use crate::events::Events;
use crate::figures::{Churn, PodFigures, Summary};
use crate::fleet::Fleet;
use crate::incidents::{Incident, Incidents};
use crate::source::Source;
use crate::step::{Changes, Step, Window};
use crate::tally::{Tally, end_of, is_left_waiting, percentile, wait_end};

/// What the bare pods of a namespace are called among the owners, behind the namespace: one entry for all, because a
/// hundred thousand owners of one pod each are figures that no user reads.
pub(crate) const BARE_PODS: &str = "Pod/*";

/// What the pod table tells.
pub(crate) struct Pods {
    /// The figures about pods; those about nodes are still zero.
    pub(crate) figures: Summary,
    pub(crate) running: Step,
    pub(crate) pending: Step,
    pub(crate) causes: Vec<PendingCause>,
    /// The longest, and how many there were.
    pub(crate) incidents: (Vec<Incident>, usize),
    /// What happened to them, one by one as far as a page can hold it.
    pub(crate) events: Events,
    pub(crate) latency_percentiles: Vec<SimDuration>,
    /// Pods that the scheduler tried: what was simulated.
    pub(crate) simulated: i64,
    /// Pods that were on their way to run when the window ended.
    pub(crate) starting: i64,
}

impl Pods {
    /// Reads all pods and tells the fleet where they stayed.
    pub(crate) fn read(source: &impl Source, fleet: &mut Fleet, window: Window) -> Result<Self, Error> {
        let mut gathered = Gathered::default();
        source.each_pod(|pod| {
            fleet.add(pod);
            gathered.add(pod, fleet, window);
        })?;
        fleet.settle();
        Ok(gathered.finish(window))
    }
}

/// Everything about pods in the making.
#[derive(Default)]
struct Gathered {
    total: Tally,
    namespaces: Tallies,
    owners: Tallies,
    /// The bare pods of each namespace, which own themselves.
    bare: Tallies,
    running: Changes,
    pending: Changes,
    causes: PendingCauses,
    incidents: Incidents,
    events: Events,
    lost_their_node: i64,
    simulated: i64,
    starting: i64,
}

impl Gathered {
    fn add(&mut self, pod: &PodRow<&str>, fleet: &Fleet, window: Window) {
        self.simulated += i64::from(pod.scheduled.is_some() || pod.waited_for.is_some());
        if let Some(started) = pod.started {
            self.running.add(started, end_of(pod), 1);
        }
        self.pending.add(pod.created, wait_end(pod), 1);
        self.events.see(pod, window);
        if !window.contains(pod.created) {
            return self.add_earlier(pod, fleet, window);
        }
        self.starting += i64::from(is_starting(pod));
        self.total.add(pod, window);
        self.namespaces.named(pod.namespace).add(pod, window);
        if owns_itself(pod) {
            self.bare.named(pod.namespace).add(pod, window);
        } else {
            self.owners.named(pod.owner).add(pod, window);
        }
        self.lost_their_node += i64::from(pod.ended_by == Some(EndedBy::NodeLost));
        if pod.waited_for.is_some() {
            let wait = Wait::of(pod, fleet, window);
            self.causes.add(&wait);
            self.incidents.add(wait);
        }
    }

    /// Takes in a pod that was there before the window: what happened to it in the window.
    fn add_earlier(&mut self, pod: &PodRow<&str>, fleet: &Fleet, window: Window) {
        let is_forced = matches!(pod.ended_by, Some(EndedBy::Evicted | EndedBy::Preempted | EndedBy::NodeLost));
        let is_driven_out = is_forced && end_of(pod).is_some_and(|end| window.contains(end));
        if pod.created > window.end || !(is_driven_out || is_left_waiting(pod, window)) {
            return;
        }
        let whose = if owns_itself(pod) { self.bare.named(pod.namespace) } else { self.owners.named(pod.owner) };
        for tally in [&mut self.total, self.namespaces.named(pod.namespace), whose] {
            tally.add_earlier(pod, window);
        }
        self.lost_their_node += i64::from(is_driven_out && pod.ended_by == Some(EndedBy::NodeLost));
        if is_left_waiting(pod, window) {
            let wait = Wait { from: window.start, ..Wait::of(pod, fleet, window) };
            self.causes.add(&wait);
            self.incidents.add(wait);
        }
    }

    fn finish(mut self, window: Window) -> Pods {
        let (running, pending) = (self.running.into_step(window), self.pending.into_step(window));
        let (counts, waits) = (self.total.pods(&running), self.total.pending(&pending));
        let latency_percentiles = percentiles(self.total.sorted_latencies());
        let total = self.total.into_figures();
        let bare = self.bare.tallies.into_iter().map(|(namespace, tally)| (format!("{namespace}/{BARE_PODS}"), tally));
        let moved = total.evicted.pods + total.preempted.pods + self.lost_their_node;
        let figures = Summary {
            pods: counts,
            pending: waits,
            unschedulable: total.unschedulable,
            start_latency: total.start_latency,
            evicted: total.evicted,
            preempted: total.preempted,
            churn: Churn { nodes: 0, pods: moved },
            namespaces: figures_of(self.namespaces.tallies),
            owners: figures_of(self.owners.tallies.into_iter().chain(bare)),
            ..Summary::default()
        };
        let (causes, incidents) = (self.causes.into_sorted(), self.incidents.into_longest());
        self.events.end_pods();
        let (events, simulated, starting) = (self.events, self.simulated, self.starting);
        Pods { figures, running, pending, causes, incidents, events, latency_percentiles, simulated, starting }
    }
}

fn figures_of(tallies: impl IntoIterator<Item = (String, Tally)>) -> BTreeMap<String, PodFigures> {
    tallies.into_iter().map(|(name, tally)| (name, tally.into_figures())).collect()
}

/// Tallies by name.
#[derive(Default)]
struct Tallies {
    tallies: Vec<(String, Tally)>,
    places: Lookup<usize>,
    /// The one that was asked for last: pods of one owner come one after the other.
    last: usize,
}

impl Tallies {
    /// The tally of this name; the name is copied only when it is new.
    fn named(&mut self, name: &str) -> &mut Tally {
        if self.tallies.get(self.last).is_none_or(|(last, _)| last != name) {
            self.last = self.place(name);
        }
        &mut self.tallies[self.last].1
    }

    fn place(&mut self, name: &str) -> usize {
        let Self { tallies, places, .. } = self;
        if let Some(place) = places.find(hash_of(name), |place| tallies[*place].0 == name) {
            return *place;
        }
        let place = tallies.len();
        tallies.push((name.to_owned(), Tally::default()));
        places.insert(hash_of(name), place, |place| hash_of(tallies[*place].0.as_str()));
        place
    }
}

/// Nothing held it up, and it had not run yet when everything ended.
fn is_starting(pod: &PodRow<&str>) -> bool {
    let is_over = pod.started.is_some() || pod.finished.is_some() || pod.deleted.is_some();
    !is_over && (pod.scheduled.is_some() || pod.waited_for.is_none())
}

/// A bare pod: its owner is `ns/Pod/` and its own name.
pub(crate) fn owns_itself(pod: &PodRow<&str>) -> bool {
    let kind_and_name = pod.owner.strip_prefix(pod.namespace);
    kind_and_name.and_then(|rest| rest.strip_prefix("/Pod/")) == Some(pod.name)
}

fn percentiles(sorted: &[SimDuration]) -> Vec<SimDuration> {
    let percents = if sorted.is_empty() { 0..0 } else { 0..101 };
    percents.map(|percent| percentile(sorted, percent)).collect()
}
