//! The cluster autoscaler: more nodes when pods fit nowhere, fewer when nodes stand idle.
//!
//! Follows cluster-autoscaler's loop: every scan interval it looks at pods marked unschedulable, asks the scheduler
//! library which groups' nodes would take them, and adds nodes; in a scan that adds none it looks for nodes that have
//! been unneeded for long enough. `scale_up` and `scale_down` decide purely; this file carries their decisions out.
//!
//! Simplified: disruption budgets, node startup failures, balancing of similar groups, and the priority, price and grpc
//! expanders are not modelled.

mod groups;
mod scale_down;
mod scale_up;
mod view;

use std::collections::BTreeMap;

use sk_apiserver::kinds::NODE;
use sk_apiserver::{self as api, Change, DeleteOptions, KindTag, Object, Request, WatchEvent};
use sk_core::rng::Stream;
use sk_core::{ObjectKey, ObjectRef, SimTime, SmolStr, Taint, TaintEffect};

use crate::component::{Component, Context};
use crate::engine::Process;
use crate::settings::{Autoscaler, Settings};

use groups::Group;
pub(crate) use groups::first_nodes;
pub use groups::new_node;
use scale_down::Candidate;
use view::{Draining, View};

/// The mark of a node about to be removed: nothing new goes there.
const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";

pub(crate) fn process(settings: Settings) -> Process {
    let latency = settings.timing.watch_latency;
    let autoscaler = ClusterAutoscaler {
        view: View::new(&settings.groups),
        groups: settings.groups.into_iter().map(Group::new).collect(),
        choice: Stream::new(settings.seed, "expander"),
        settings: settings.autoscaler,
        unneeded: BTreeMap::new(),
        draining: BTreeMap::new(),
        last_scale_up: None,
        idle: None,
    };
    Process::new(latency).with(autoscaler, None)
}

#[derive(Clone)]
struct ClusterAutoscaler {
    view: View,
    groups: Vec<Group>,
    settings: Autoscaler,
    choice: Stream,
    /// Nodes that could go, and since when.
    unneeded: BTreeMap<SmolStr, SimTime>,
    /// Nodes that are going, by group.
    draining: Draining,
    last_scale_up: Option<SimTime>,
    /// What the last scan found, while nothing has changed since: most scans of a quiet cluster end here.
    idle: Option<Idle>,
}

/// A scan that found no pods to help: what is left is to wait for nodes to have been unneeded long enough.
#[derive(Clone)]
struct Idle {
    /// Nodes that could go.
    removable: Vec<Candidate>,
    /// How many nodes each group has.
    sizes: Vec<usize>,
}

impl Component for ClusterAutoscaler {
    fn start(&mut self, ctx: &mut Context<'_>) {
        if !self.groups.is_empty() {
            ctx.wake(0, ctx.now + self.settings.scan_interval);
        }
    }

    fn watches(&self) -> &'static [KindTag] {
        &[KindTag::Node, KindTag::Pod, KindTag::Namespace]
    }

    fn observe(&mut self, seen: &WatchEvent, ctx: &mut Context<'_>) {
        self.idle = None;
        self.view.learn(seen, ctx.view);
        if seen.object.node().is_some() && seen.change == Change::Deleted {
            self.draining.remove(&seen.object.key.name);
            self.unneeded.remove(&seen.object.key.name);
        }
        let node = seen.object.pod().and_then(|pod| pod.node_name.as_ref());
        if let Some(node) = node.filter(|node| self.draining.contains_key(*node)) {
            // A pod may have been bound while the node's mark was on its way.
            let came = seen.before.as_ref().is_none_or(|before| before.pod().is_none_or(|pod| pod.node_name.is_none()));
            if came && seen.change != Change::Deleted && scale_down::must_move(&seen.object) {
                ctx.send(0, Request::Evict { pod: seen.object.key.clone() });
            }
            self.remove_if_drained(node, ctx);
        }
    }

    fn wake(&mut self, _tag: u64, ctx: &mut Context<'_>) {
        self.scan(ctx);
        ctx.wake(0, ctx.now + self.settings.scan_interval);
    }
}

impl ClusterAutoscaler {
    fn scan(&mut self, ctx: &mut Context<'_>) {
        debug_assert!(self.view.is_true(ctx.view), "changes lead to the picture that looking at everything gives");
        let idle = match self.idle.take() {
            Some(idle) => idle,
            None => {
                if self.scale_up(ctx) {
                    self.last_scale_up = Some(ctx.now);
                    return;
                }
                let removable = scale_down::removable(&mut self.view, &self.draining, &self.settings);
                self.remember_unneeded(&removable, ctx.now);
                Idle { removable, sizes: self.view.sizes(&self.draining) }
            }
        };
        if !self.settings.scale_down_enabled || !self.scale_down(&idle, ctx) {
            self.idle = Some(idle);
        }
    }

    /// Adds nodes for pods that fit nowhere; `true` if it did.
    fn scale_up(&mut self, ctx: &mut Context<'_>) -> bool {
        let helpless = self.view.pods_without_room(&self.draining);
        if helpless.is_empty() {
            return false;
        }
        let mut machines = self.view.sizes(&self.draining);
        self.draining.values().for_each(|group| machines[*group] += 1);
        let options = scale_up::options(&helpless, &self.groups, &machines, &mut self.view.what_if);
        let Some(option) = scale_up::choose(options, self.settings.expander, &mut self.choice) else { return false };
        let group = &mut self.groups[option.group];
        for _ in 0..option.nodes {
            let node = group.make_node(ctx.now);
            ctx.send(0, Request::create(node));
        }
        true
    }

    /// A node that could go keeps the time since when; one that is needed again begins anew.
    fn remember_unneeded(&mut self, removable: &[Candidate], now: SimTime) {
        let before = std::mem::take(&mut self.unneeded);
        let since = |node: &SmolStr| before.get(node).copied().unwrap_or(now);
        self.unneeded = removable.iter().map(|node| (node.name.clone(), since(&node.name))).collect();
    }

    /// Removes nodes that have been unneeded for long enough; `true` if it did.
    fn scale_down(&mut self, idle: &Idle, ctx: &mut Context<'_>) -> bool {
        let cooling = self.settings.scale_down_delay_after_add;
        if self.last_scale_up.is_some_and(|at| ctx.now.since(at) < cooling) {
            return false;
        }
        let chosen = scale_down::choose(idle, &self.groups, &self.settings, self.draining.len(), |node| {
            self.unneeded.get(node).is_some_and(|since| ctx.now.since(*since) >= self.settings.scale_down_unneeded_time)
        });
        for candidate in &chosen {
            self.unneeded.remove(&candidate.name);
            self.draining.insert(candidate.name.clone(), candidate.group);
            if let Some((_, node)) = ctx.view.find(&NODE, &ObjectKey::cluster(candidate.name.clone())) {
                ctx.send(0, Request::update(marked(node)));
            }
            for pod in &candidate.pods {
                ctx.send(0, Request::Evict { pod: pod.clone() });
            }
            self.remove_if_drained(&candidate.name, ctx);
        }
        !chosen.is_empty()
    }

    /// Removes a node once nothing is left on it that would have to move.
    fn remove_if_drained(&mut self, node: &SmolStr, ctx: &mut Context<'_>) {
        if !is_drained(ctx.view, node) {
            return;
        }
        let target = ObjectRef::new(NODE.clone(), ObjectKey::cluster(node.clone()));
        ctx.send(0, Request::Delete { target, options: DeleteOptions::default() });
    }
}

fn is_drained(view: api::View<'_>, node: &SmolStr) -> bool {
    !view.pods_on(node).any(|(_, pod)| scale_down::holds_its_node(pod))
}

fn marked(node: &Object) -> Object {
    let mut marked = node.clone();
    marked.resource_version = 0;
    if let Some(node) = marked.node_mut() {
        let taint = Taint::new(TO_BE_DELETED, TaintEffect::NoSchedule);
        std::sync::Arc::make_mut(&mut node.spec).taints.push(taint);
    }
    marked
}
