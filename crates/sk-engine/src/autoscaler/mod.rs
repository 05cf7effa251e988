//! The cluster autoscaler: adds nodes for unschedulable pods and removes nodes that are little used.
//!
//! Follows cluster-autoscaler 1.36.1 as it was observed, decision by decision (docs/fidelity.md lists the scenarios).
//!
//! | file | what it owns |
//! |---|---|
//! | this one | the component: reads the cluster, runs loops, sends requests |
//! | `schedule`, `quiet` | when a loop runs, and when it cannot find anything new |
//! | `view`, `listers` | the autoscaler's snapshot of the cluster, updated change by change |
//! | `hopeless` | pod classes that fit on no node, from loop to loop |
//! | `template`, `filters`, `estimator`, `expander`, `price`, `similar`, `refusals`, `scale_up` | which group grows and by how much: pure |
//! | `utilization`, `drain`, `scale_down` | which nodes are unneeded and which to remove now: pure |
//! | `removal` | the steps of removing a node |
//! | `cluster_state` | groups that fail to create nodes, and their backoff |
//! | `flags`, `rules`, `decisions` | flags, observed rules by name, recorded decisions |
//!
//! Not modelled: the grpc expander, provisioning requests, and what `sk_api` lists as such.

mod cluster_state;
mod decisions;
mod drain;
mod estimator;
mod expander;
mod filters;
mod flags;
mod groups;
mod hopeless;
mod listers;
mod price;
mod quiet;
mod refusals;
mod removal;
mod rules;
mod scale_down;
mod scale_up;
mod schedule;
mod similar;
mod template;
mod utilization;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use sk_apiserver::kinds::NODE;
use sk_apiserver::{Answer, Change, DeleteOptions, KindTag, Reason, Request, WatchEvent};
use sk_core::rng::Stream;
use sk_core::{ObjectKey, ObjectRef, SimDuration, SimTime, SmolStr};

use crate::component::{Component, Context, Timers};
use crate::process::Process;
use crate::settings::Settings;

pub use decisions::{Because, Choice, Decision, Resize, Trigger, Verdict};
pub use flags::{Autoscaler, Expander, Informers, Limits};
pub(crate) use groups::first_nodes;
pub use groups::new_node;
pub use rules::Rule;
pub use utilization::Utilization;

use cluster_state::ClusterState;
use decisions::Decisions;
use estimator::Turn;
use groups::Group;
use quiet::Quiet;
use removal::{EVICTION_RETRY, EVICTION_TIME, Mark, Next, Removals};
use scale_down::{Look, Planner};
use scale_up::{Refused, ScaleUp, Search};
use schedule::Schedule;
use view::View;

/// The mark of a node about to be removed: nothing new goes there.
const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";
/// The mark of a node that could go: pods are better put elsewhere.
const SOFT_TAINT: &str = "DeletionCandidateOfClusterAutoscaler";
/// `scale-down-delay-after-failure`, which failed drains were seen not to start: only a test lets it count.
const DELAY_AFTER_FAILURE: SimDuration = SimDuration::from_mins(3);
/// Nodes, pods and what [`listers`] reads; budgets are among the others.
const WATCHED: &[KindTag] = &[
    KindTag::Node,
    KindTag::Pod,
    KindTag::Namespace,
    KindTag::DaemonSet,
    KindTag::ReplicaSet,
    KindTag::StatefulSet,
    KindTag::ReplicationController,
    KindTag::Other,
];
/// After a conflict the node is read and written again.
const RETRY: SimDuration = SimDuration::from_millis(10);

pub(crate) fn process(settings: Settings) -> Process {
    let latency = settings.timing.watch_latency;
    let autoscaler = ClusterAutoscaler {
        view: View::new(&settings.groups, &settings.autoscaler),
        groups: settings.groups.into_iter().map(|group| Group::new(group, settings.seed)).collect(),
        choice: Stream::new(settings.seed, "expander"),
        order: Stream::new(settings.seed, "removal-order"),
        race: Stream::new(settings.seed, "list-lag"),
        behind: SimDuration::ZERO,
        unseen: settings.autoscaler.informers().unseen_nodes,
        schedule: Schedule::new(&settings.autoscaler, settings.timing.autoscaler_loop),
        flags: settings.autoscaler,
        turn: Turn::default(),
        planner: Planner::default(),
        removals: Removals::default(),
        cluster_state: ClusterState::default(),
        asked: BTreeMap::new(),
        last_added: BTreeMap::new(),
        last_deleted: BTreeMap::new(),
        last_failed: None,
        quiet: None,
        decisions: Decisions::default(),
        alarms: Timers::new(),
        sent: BTreeMap::new(),
        requests: 0,
    };
    Process::new(latency).with(autoscaler, None)
}

#[derive(Clone)]
struct ClusterAutoscaler {
    view: View,
    groups: Vec<Group>,
    flags: Autoscaler,
    choice: Stream,
    order: Stream,
    race: Stream,
    /// How far the list that the next loop reads is behind the pod that starts it.
    behind: SimDuration,
    /// How many new nodes the loop after the next scale-up does not see.
    unseen: usize,
    schedule: Schedule,
    turn: Turn,
    planner: Planner,
    removals: Removals,
    cluster_state: ClusterState,
    /// Nodes that were asked for and have not been seen yet, with their groups.
    asked: BTreeMap<SmolStr, usize>,
    /// When each group was last enlarged.
    last_added: BTreeMap<usize, SimTime>,
    /// When the last removal of a node of each group began.
    last_deleted: BTreeMap<usize, SimTime>,
    /// When a drain last failed, where a test wants that to matter.
    last_failed: Option<SimTime>,
    /// What the next loop does, if the last one found nothing that it would not find again.
    quiet: Option<Quiet>,
    decisions: Decisions,
    alarms: Timers<Alarm>,
    /// Requests without an answer.
    sent: BTreeMap<u64, Sent>,
    requests: u64,
}

/// What the autoscaler is woken for.
#[derive(Clone, Debug)]
enum Alarm {
    /// The loop of that number.
    Loop(u64),
    /// The next step of a node's removal.
    Removal(SmolStr),
    /// A mark that met a conflict.
    Mark(SmolStr, Mark),
    /// An eviction that was refused, until when.
    Evict(ObjectKey, Option<i64>, SimTime),
}

/// What a request was for.
#[derive(Clone, Debug)]
enum Sent {
    Node(SmolStr),
    Mark(SmolStr, Mark),
    Eviction { pod: ObjectKey, grace: Option<i64>, until: SimTime },
}

impl Component for ClusterAutoscaler {
    fn start(&mut self, ctx: &mut Context<'_>) {
        if !self.groups.is_empty() {
            let first = self.schedule.first(ctx.now);
            self.set_loop(first, ctx);
        }
    }

    fn watches(&self) -> &'static [KindTag] {
        WATCHED
    }

    fn observe(&mut self, seen: &WatchEvent, ctx: &mut Context<'_>) {
        if self.groups.is_empty() {
            return;
        }
        self.view.learn(seen, ctx.view);
        let name = &seen.object.key.name;
        if seen.object.node().is_some() {
            self.asked.remove(name);
            if seen.change == Change::Deleted {
                let group = self.removals.end(name).filter(|_| !self.flags.follows(Rule::DelayFromTaint));
                self.last_deleted.extend(group.map(|group| (group, ctx.now)));
                self.planner.forget(name);
                self.decisions.forget_node(name);
            }
        } else if seen.object.pod().is_some_and(|pod| seen.change == Change::Deleted || pod.node_name.is_some()) {
            self.decisions.forget_pod(seen.id);
        }
        let next = match view::starts_loop(seen, ctx.now) {
            true => self.pod_appeared(ctx.now),
            false => self.schedule.changed(ctx.now),
        };
        self.set_loop(next, ctx);
    }

    fn wake(&mut self, tag: u64, ctx: &mut Context<'_>) {
        let Some(alarm) = self.alarms.take(tag) else { return };
        self.view.catch_up(ctx.view);
        match alarm {
            Alarm::Loop(number) => {
                if let Some(trigger) = self.schedule.begin(number, ctx.now) {
                    self.run(trigger, ctx);
                }
            }
            Alarm::Removal(node) => self.remove(&node, ctx),
            Alarm::Mark(node, mark) => self.mark(&node, mark, ctx),
            Alarm::Evict(pod, grace, until) => self.evict(pod, grace, until, ctx),
        }
    }

    fn answered(&mut self, tag: u64, answer: Answer, ctx: &mut Context<'_>) {
        self.quiet = None;
        match (self.sent.remove(&tag), answer) {
            (Some(Sent::Node(name)), Err(error)) => {
                if let Some(group) = self.asked.remove(&name) {
                    self.cluster_state.refused(group, error.to_string());
                }
            }
            (Some(Sent::Mark(node, mark)), Err(error)) if error.reason == Reason::Conflict => {
                self.alarms.set(ctx, ctx.now + RETRY, Alarm::Mark(node, mark));
            }
            (Some(Sent::Eviction { pod, grace: Some(grace), .. }), Ok(_)) => {
                let options = DeleteOptions { grace_secs: Some(grace), ..DeleteOptions::default() };
                let target = ObjectRef::new(sk_apiserver::kinds::POD.clone(), pod);
                self.send(None, Request::Delete { target, options }, ctx);
            }
            (Some(Sent::Eviction { pod, grace, until }), Err(error)) if error.reason == Reason::TooManyRequests => {
                self.alarms.set(ctx, ctx.now + EVICTION_RETRY, Alarm::Evict(pod, grace, until));
            }
            (Some(_) | None, _) => {}
        }
    }

    fn stock_out(&mut self, group: &str, until: SimTime) {
        if let Some(group) = self.groups.iter().position(|known| known.settings.name == group) {
            self.cluster_state.stock_out(group, until);
            self.quiet = None;
        }
    }

    /// Flags and groups are others from now on; what it knows of the cluster stays.
    fn reconfigured(&mut self, settings: &Settings, ctx: &mut Context<'_>) {
        if self.groups.is_empty() {
            return;
        }
        for (group, settings) in self.groups.iter_mut().zip(&settings.groups) {
            group.settings = settings.clone();
        }
        let cutoff = |flags: &Autoscaler| flags.expendable_pods_priority_cutoff;
        if cutoff(&self.flags) != cutoff(&settings.autoscaler) {
            self.view = self.view.again(&settings.groups, &settings.autoscaler, ctx.view);
        }
        self.flags = settings.autoscaler.clone();
        self.quiet = None;
        self.schedule.set_interval(&self.flags, settings.timing.autoscaler_loop);
        let next = self.schedule.changed(ctx.now);
        self.set_loop(next, ctx);
    }

    fn take_decisions(&mut self) -> Vec<Decision> {
        self.decisions.take()
    }

    fn dropped_decisions(&self) -> u64 {
        self.decisions.dropped()
    }

    fn fits_asked(&self) -> u64 {
        self.view.what_if.looks()
    }

    fn strays(&self, view: sk_apiserver::View<'_>) -> Option<String> {
        let mut kept = self.view.clone();
        kept.catch_up(view);
        if self.groups.is_empty() { None } else { kept.differs(view) }
    }
}

impl ClusterAutoscaler {
    /// One loop.
    fn run(&mut self, trigger: Trigger, ctx: &mut Context<'_>) {
        debug_assert_eq!(self.view.differs(ctx.view), None, "changes lead to what looking at everything gives");
        let done = match self.still_quiet(trigger, ctx.now) {
            Some(quiet) => {
                debug_assert!(self.would_repeat(quiet, trigger, ctx), "a whole loop would do something else");
                self.repeat(quiet, ctx.now);
                Done::default()
            }
            None => self.look(trigger, ctx),
        };
        let next = self.next_loop(&done, ctx.now);
        self.set_loop(next, ctx);
    }

    /// A whole loop.
    fn look(&mut self, trigger: Trigger, ctx: &mut Context<'_>) -> Done {
        let before = (self.choice.drawn(), self.requests);
        self.decisions.next_loop();
        self.notice_failures(trigger, ctx.now);
        let done = if self.is_healthy(trigger, ctx.now) { self.decide(trigger, ctx) } else { Done::default() };
        self.quiet = if done.is_settled { self.quiet_after(before, ctx.now) } else { None };
        done
    }

    /// Groups whose scale-up failed, or takes too long, are left alone from now on.
    fn notice_failures(&mut self, trigger: Trigger, now: SimTime) {
        let comes = |created: SimTime| now.since(created) < self.flags.max_node_startup_time;
        let starting = self.view.nodes.values().filter(|node| node.ready.is_none() && comes(node.created));
        let awaited: BTreeSet<usize> =
            starting.filter_map(|node| node.group).chain(self.asked.values().copied()).collect();
        for failure in self.cluster_state.notice(|group| awaited.contains(&group), &self.flags, now) {
            let group = self.groups[failure.group].settings.name.clone();
            let event = failure.why.event(&group);
            self.decisions.push(now, trigger, Verdict::ScaleUpFailed { group, event });
        }
    }

    /// Too many nodes that are not ready, and not because they are new, stop everything.
    fn is_healthy(&mut self, trigger: Trigger, now: SimTime) -> bool {
        let is_late = |created: SimTime| now.since(created) >= self.flags.max_node_startup_time;
        let nodes = self.view.nodes.values();
        let unready = nodes.filter(|node| node.ready.is_none() && is_late(node.created)).count();
        let percent = unready * 100 > self.view.nodes.len() * self.flags.max_total_unready_percentage;
        let sick = unready > self.flags.ok_total_unready_count && percent && self.flags.follows(Rule::ClusterHealth);
        if self.decisions.sickness_begins(sick) {
            self.decisions.push(now, trigger, Verdict::Unhealthy { unready });
        }
        !sick
    }

    fn decide(&mut self, trigger: Trigger, ctx: &mut Context<'_>) -> Done {
        let draining: Vec<SmolStr> = self.removals.draining().cloned().collect();
        let draining: BTreeSet<&str> = draining.iter().map(SmolStr::as_str).collect();
        let listed_until = self.listed_until(trigger, ctx.now);
        let unseen = self.hide_unseen(trigger);
        let before = self.view.what_if.cluster.checkpoint();
        let mut search = Search::new(
            (&mut self.view, &self.groups),
            (&self.flags, ctx.now),
            (&mut self.choice, &mut self.turn),
            (&self.asked, &self.cluster_state, &self.decisions.told),
        );
        let mut found = search.run(&draining, listed_until);
        if found.rounds.is_empty() && self.flags.enforce_node_group_min_size {
            let plan = search.to_minimum();
            let (options, because, refused, pods) = (Vec::new(), Because::Minimum, Vec::new(), Vec::new());
            let to_minimum = scale_up::Round { options, because, refused, plan, pods };
            found.rounds.extend(Some(to_minimum).filter(|round| !round.plan.is_empty()));
        }
        let upcoming = search.leave();
        self.asked.extend(unseen);
        let grew = !found.rounds.is_empty();
        self.report(&found, trigger, ctx.now);
        for (group, resize) in found.rounds.iter().flat_map(|round| &round.plan) {
            self.grow(*group, resize, ctx);
        }
        let shrank = !grew && self.flags.scale_down_enabled && self.scale_down(found.waits, trigger, ctx);
        self.view.what_if.cluster.rollback(before);
        upcoming.into_iter().for_each(|copy| copy.take_out(&mut self.view));
        let is_settled = !grew && !shrank && !found.chance && !found.waits && listed_until == ctx.now;
        Done { grew, shrank, is_settled }
    }

    /// Starts a loop, before or after the list of pods has caught up with the watch that saw this one.
    fn pod_appeared(&mut self, now: SimTime) -> Option<(u64, SimTime)> {
        let most = self.flags.informers().pod_race.as_micros();
        let ahead = match u64::try_from(most) {
            Ok(most @ 1..) => self.race.below(2 * most) as i64 - most as i64,
            _ => 0,
        };
        let next = self.schedule.pod_appeared(now, SimDuration::from_micros(ahead.max(0)), &self.flags);
        if next.is_some() {
            self.behind = SimDuration::from_micros(-ahead.min(0));
        }
        next
    }

    /// Pods that were found to be unschedulable after that are not seen by this loop.
    fn listed_until(&self, trigger: Trigger, now: SimTime) -> SimTime {
        if trigger == Trigger::Pod { now - self.behind } else { now }
    }

    /// Takes out the nodes that the provider does not see yet.
    fn hide_unseen(&mut self, trigger: Trigger) -> BTreeMap<SmolStr, usize> {
        let hidden = if trigger == Trigger::AfterScaleUp { std::mem::take(&mut self.unseen) } else { 0 };
        (0..hidden).filter_map(|_| self.asked.pop_last()).collect()
    }

    fn report(&mut self, found: &ScaleUp, trigger: Trigger, now: SimTime) {
        if self.decisions.fullness_begins(found.full) {
            let most = self.flags.max_nodes_total;
            self.decisions.push(now, trigger, Verdict::MaxNodesTotal { most });
        }
        if found.waits {
            self.decisions.push(now, trigger, Verdict::WaitsForMorePods);
        }
        for round in &found.rounds {
            let told = self.decisions.news(&round.pods, true, &self.flags);
            let (pods, more_pods) = decisions::named(&round.pods, &told);
            let plan = round.plan.iter().map(|(_, resize)| resize.clone()).collect();
            let (options, because, refused) = (round.options.clone(), round.because.clone(), round.refused.clone());
            let verdict = Verdict::ScaleUp { options, because, refused, plan, pods, more_pods, told };
            self.decisions.push(now, trigger, verdict);
        }
        for Refused { pods, why } in &found.refused {
            let pods = self.decisions.news(pods, false, &self.flags);
            if !pods.is_empty() {
                let (reason, groups) = (why.reason.clone(), why.groups.clone());
                self.decisions.push(now, trigger, Verdict::NoScaleUp { pods, reason, groups });
            }
        }
    }

    fn grow(&mut self, group: usize, resize: &Resize, ctx: &mut Context<'_>) {
        self.last_added.insert(group, ctx.now);
        if !self.cluster_state.ask(group, resize.to - resize.from, ctx.now) {
            return;
        }
        for _ in resize.from..resize.to {
            let node = self.groups[group].make_node(ctx.now);
            let name = node.key.name.clone();
            self.asked.insert(name.clone(), group);
            self.send(Some(Sent::Node(name)), Request::create(node), ctx);
        }
    }

    /// Looks for nodes that could go, and lets some go; `true` if it did.
    fn scale_down(&mut self, forbidden: bool, trigger: Trigger, ctx: &mut Context<'_>) -> bool {
        let (view, groups, flags) = (&mut self.view, &self.groups[..], &self.flags);
        let (choice, order) = (&mut self.choice, &mut self.order);
        let mut look = Look { view, groups, flags, now: ctx.now, choice, order };
        let known: BTreeSet<SmolStr> = self.planner.unneeded().keys().cloned().collect();
        let mut reasons = self.planner.update(&mut look);
        let last_added = last_added(&self.last_added, look.view, flags, ctx.now);
        let held = held(flags, (&last_added, &self.last_deleted), groups.len(), ctx.now);
        let all_held = !groups.is_empty() && held.len() == groups.len() && !flags.scale_down_delay_type_local;
        let after_failure = self.last_failed.is_some_and(|last| ctx.now.since(last) < DELAY_AFTER_FAILURE);
        let cooling = forbidden || all_held || after_failure;
        let due = match cooling {
            true => Vec::new(),
            false => self.planner.due(&mut look, &self.removals.in_flight(), &held, &mut reasons),
        };
        let runs_on = !cooling || self.flags.follows(Rule::TimeRunsInCooldown);
        let runs_on = runs_on && (due.is_empty() || self.flags.follows(Rule::TimeRunsDuringRemovals));
        if !runs_on {
            self.planner.begin_again(ctx.now);
        }
        for (node, reason) in reasons {
            self.decisions.unremovable(ctx.now, trigger, &node, reason);
        }
        let new = self.planner.unneeded().keys().filter(|node| !known.contains(*node));
        for node in new.cloned().collect::<Vec<_>>() {
            self.decisions.forget_node(&node);
            self.decisions.push(ctx.now, trigger, Verdict::Unneeded { node });
        }
        if self.decisions.cooldown_begins(cooling && !self.planner.unneeded().is_empty()) {
            self.decisions.push(ctx.now, trigger, Verdict::Cooldown);
        }
        due.iter().for_each(|node| self.begin_removal(node, trigger, ctx));
        if due.is_empty() {
            self.soft_taints(ctx);
        }
        !due.is_empty()
    }

    fn begin_removal(&mut self, name: &SmolStr, trigger: Trigger, ctx: &mut Context<'_>) {
        let Some(unneeded) = self.planner.unneeded().get(name).cloned() else { return };
        self.planner.forget(name);
        self.last_deleted.insert(unneeded.group, ctx.now);
        self.view.set_leaving(name, true);
        let is_drain = !unneeded.pods.is_empty();
        let at = self.removals.begin(name, unneeded.group, is_drain, &self.flags, ctx.now);
        self.mark(name, Mark::ToBeDeleted, ctx);
        self.alarms.set(ctx, at, Alarm::Removal(name.clone()));
        let (pods, utilization) = (unneeded.pods, unneeded.utilization);
        self.decisions.push(ctx.now, trigger, Verdict::ScaleDown { node: name.clone(), pods, utilization });
    }

    /// Marks nodes that could go, and takes the mark from those that are needed again; so many of each per loop.
    fn soft_taints(&mut self, ctx: &mut Context<'_>) {
        let most = match self.flags.follows(Rule::SoftTaintsInBulk) {
            true => self.flags.max_bulk_soft_taint_count,
            false => usize::MAX,
        };
        let ours = || self.view.nodes.values().filter(|node| node.group.is_some() && !node.is_going());
        let could_go = |name: &SmolStr| self.planner.unneeded().contains_key(name);
        let soft = ours().filter(|node| !node.taints.soft && could_go(&node.name)).take(most);
        let takes_back = self.flags.follows(Rule::SoftTaintsTakenBack);
        let needed = ours().filter(|node| takes_back && node.taints.soft && !could_go(&node.name)).take(most);
        let marks = soft.map(|node| (node.name.clone(), Mark::Soft));
        let marks: Vec<_> = marks.chain(needed.map(|node| (node.name.clone(), Mark::Needed))).collect();
        for (node, mark) in marks {
            self.mark(&node, mark, ctx);
        }
    }

    fn mark(&mut self, name: &SmolStr, mark: Mark, ctx: &mut Context<'_>) {
        let Some((_, node)) = ctx.view.find(&NODE, &ObjectKey::cluster(name.clone())) else { return };
        if let Some(request) = removal::mark(node, mark, self.flags.cordon_node_before_terminating) {
            self.send(Some(Sent::Mark(name.clone(), mark)), request, ctx);
        }
    }

    /// The next step of a node's removal.
    fn remove(&mut self, name: &SmolStr, ctx: &mut Context<'_>) {
        match self.removals.step(name, &self.view, &self.flags, ctx.now) {
            Next::Evict(pods, next) => {
                let told = pods.iter().map(|(pod, _)| pod.clone()).collect();
                self.decisions.push(ctx.now, Trigger::Timer, Verdict::Evicts { node: name.clone(), pods: told });
                for (pod, grace) in pods {
                    self.evict(pod, grace, ctx.now + EVICTION_TIME, ctx);
                }
                self.alarms.set(ctx, next, Alarm::Removal(name.clone()));
            }
            Next::Wait(next) => self.alarms.set(ctx, next, Alarm::Removal(name.clone())),
            Next::Delete { is_drained } => {
                self.decisions.push(ctx.now, Trigger::Timer, Verdict::Removed { node: name.clone(), is_drained });
                self.send(None, removal::delete(name), ctx);
            }
            Next::GiveUp => {
                let reason = format!("Failed to drain node /{name}: pods remaining after timeout");
                self.decisions.push(ctx.now, Trigger::Timer, Verdict::ScaleDownFailed { node: name.clone(), reason });
                self.last_failed = (!self.flags.follows(Rule::FailureHoldsNothingBack)).then_some(ctx.now);
                if !self.flags.follows(Rule::FailedDrainStartsAnew) {
                    self.planner.resume(name, ctx.now - self.flags.scale_down_unneeded_time);
                }
                self.spare(name, ctx);
            }
            Next::NotEmpty => self.spare(name, ctx),
            Next::Nothing => {}
        }
    }

    fn spare(&mut self, name: &SmolStr, ctx: &mut Context<'_>) {
        self.removals.end(name);
        self.view.set_leaving(name, false);
        self.mark(name, Mark::Spared, ctx);
    }

    fn evict(&mut self, pod: ObjectKey, grace: Option<i64>, until: SimTime, ctx: &mut Context<'_>) {
        if ctx.now <= until {
            let sent = Sent::Eviction { pod: pod.clone(), grace, until };
            self.send(Some(sent), Request::Evict { pod }, ctx);
        }
    }

    /// When the next loop runs. While nobody waits and nothing changes, loops that could not decide anything are skipped.
    fn next_loop(&mut self, done: &Done, now: SimTime) -> Option<(u64, SimTime)> {
        let follows = self.flags.frequent_loops_enabled;
        if done.grew && follows && self.flags.follows(Rule::LoopFollowsScaleUp) {
            return self.schedule.at_once(now, Trigger::AfterScaleUp);
        }
        if done.shrank && follows && self.flags.follows(Rule::LoopFollowsScaleDown) {
            return self.schedule.at_once(now, Trigger::AfterScaleDown);
        }
        let busy = !self.view.pending.is_empty() || !self.removals.is_empty() || self.planner.has_more || done.grew;
        if busy {
            return self.schedule.by_timer(now, Some(now));
        }
        let (last_added, last_deleted) = (self.last_added.values().max(), self.last_deleted.values().max());
        let after = |last: Option<&SimTime>, delay: SimDuration| last.map(|last| *last + delay);
        let cooldowns = [
            after(last_added, self.flags.scale_down_delay_after_add),
            after(last_deleted, self.flags.scale_down_delay_after_delete),
        ];
        let late = self.view.nodes.values().filter(|node| node.ready.is_none());
        let late = late.map(|node| node.created + self.flags.max_node_startup_time).min();
        let failing = self.cluster_state.next_interest(&self.flags, now);
        let moments = cooldowns.into_iter().flatten().chain(late).chain(failing).filter(|at| *at > now);
        let quiet_until = moments.chain(self.planner.next_interest(&self.flags, now)).min();
        self.schedule.by_timer(now, quiet_until)
    }

    fn set_loop(&mut self, next: Option<(u64, SimTime)>, ctx: &mut Context<'_>) {
        if let Some((number, at)) = next {
            self.alarms.set(ctx, at, Alarm::Loop(number));
        }
    }

    fn send(&mut self, what: Option<Sent>, request: Request, ctx: &mut Context<'_>) {
        self.requests += 1;
        if let Some(what) = what {
            self.sent.insert(self.requests, what);
        }
        ctx.send(self.requests, request);
    }
}

/// What a loop did.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    grew: bool,
    shrank: bool,
    /// It did nothing, and lots had no part in that.
    is_settled: bool,
}

/// When each group last grew: when that was decided, or where a test leaves that rule out when its nodes were ready.
fn last_added(
    decided: &BTreeMap<usize, SimTime>,
    view: &View,
    flags: &Autoscaler,
    now: SimTime,
) -> BTreeMap<usize, SimTime> {
    let mut last = decided.clone();
    if !flags.follows(Rule::DelayFromDecision) {
        for node in view.nodes.values() {
            let added = node.group.and_then(|group| last.get_mut(&group));
            let ready = node.ready.unwrap_or(now);
            added.into_iter().for_each(|added| *added = ready.max(*added));
        }
    }
    last
}

/// The groups that must not shrink now, because one has just grown or shrunk: all of them, or with
/// `scale-down-delay-type-local` that one.
fn held(
    flags: &Autoscaler,
    (added, deleted): (&BTreeMap<usize, SimTime>, &BTreeMap<usize, SimTime>),
    groups: usize,
    now: SimTime,
) -> Vec<usize> {
    let delay_after_add =
        if flags.follows(Rule::DelayAfterAdd) { flags.scale_down_delay_after_add } else { SimDuration::ZERO };
    let is_recent = |last: &SimTime, delay: SimDuration| now.since(*last) < delay;
    let grown = added.iter().filter(|(_, last)| is_recent(last, delay_after_add));
    let shrunk = deleted.iter().filter(|(_, last)| is_recent(last, flags.scale_down_delay_after_delete));
    let held: BTreeSet<usize> = grown.chain(shrunk).map(|(group, _)| *group).collect();
    match flags.scale_down_delay_type_local || held.is_empty() {
        true => held.into_iter().collect(),
        false => (0..groups).collect(),
    }
}
