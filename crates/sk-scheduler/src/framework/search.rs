//! Finds feasible nodes and selects one (`findNodesThatPassFilters`, `prioritizeNodes`).
//!
//! A search visits nodes in order from where the last search ended, until it has found one more than it needs. It
//! works in one of two ways: over a cached column alone, where only local plugins matter to the pod; or node by node,
//! with the other filters and with scores normalised over the feasible nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::alike::Grouping;
use super::column::{Column, count};
use super::local::{Local, Plain};
use super::pick::{Window, nodes_to_find, nth_feasible, winner, winner_in_window};
use super::plugin::{Plugin, PluginId, PluginSet, Rejection};
use super::profile::Compiled;
use super::scheduler::{Attempt, Scheduler};
use crate::cluster::columns::Numbers;
use crate::ids::{NodeId, ShapeId};
use crate::plugins::normalize;

/// What a search works on; kept so that a cycle allocates nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    pub(super) feasible: Vec<NodeId>,
    /// Weighted scores of the feasible nodes.
    pub(super) totals: Vec<i64>,
    disliked: Vec<i64>,
    preferences: Vec<i64>,
    scores: Vec<i64>,
    pub(super) grouping: Grouping,
    /// The other nodes that were looked at.
    pub(super) rejected: Vec<(NodeId, Rejection)>,
    /// Nodes that other pods are nominated for, and their results.
    rivals: Vec<(NodeId, Rejection)>,
    /// How many nodes were looked at one by one.
    pub(super) looks: u64,
}

/// How far a search goes.
pub(super) struct Reach {
    pub(super) window: Window,
    /// So many nodes in it are feasible: one at least.
    pub(super) feasible: usize,
}

/// What the scores of a cycle look at besides the node itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ComparedWith {
    Nothing,
    /// Soft topology spread alone.
    Alike,
    Pods,
}

/// How a search ended.
pub(super) enum Found {
    Node {
        node: NodeId,
        feasible: usize,
        evaluated: usize,
    },
    /// The nodes that were looked at are listed as rejected.
    Nothing,
    /// A kept column rules out every node, so many for what; none was looked at.
    Nowhere(BTreeMap<Rejection, usize>),
}

impl Search {
    fn clear(&mut self) {
        self.feasible.clear();
        self.totals.clear();
        self.disliked.clear();
        self.preferences.clear();
        self.rejected.clear();
        self.rivals.clear();
    }

    /// Takes a feasible node in with what is known of its score.
    fn take(&mut self, local: &Local<'_>, column: Option<&Column>, place: usize, node: NodeId) {
        self.feasible.push(node);
        let at = node.index();
        // A rival's verdict can differ from the column's, which then has no score.
        let column = column.filter(|column| column.scores[place] >= 0);
        self.totals.push(column.map_or_else(|| local.score(at), |column| column.scores[place].into()));
        if local.scores_taints {
            let disliked = column.map_or_else(|| local.disliked(at), |column| column.disliked[place]);
            self.disliked.push(disliked.into());
        }
        if local.scores_affinity {
            let preference = column.map_or_else(|| local.preference(at), |column| column.preferences[place].into());
            self.preferences.push(preference);
        }
    }

    /// The search of a plain pod whose shape is not kept: a loop over numbers.
    fn look_plainly(
        &mut self,
        local: &Local<'_>,
        plain: Plain,
        walk: [&[NodeId]; 2],
        wanted: usize,
        numbers: &[Numbers],
    ) {
        for node in walk.into_iter().flatten().copied() {
            match plain.score(&numbers[node.index()]) {
                None => self.rejected.push((node, local.filter(node.index()))),
                Some(_) if self.feasible.len() == wanted => return,
                Some(total) => {
                    self.feasible.push(node);
                    self.totals.push(total);
                }
            }
        }
    }

    /// The node that the pod was nominated for was looked at first, and counts once.
    fn count_nominated(&mut self, nominated: Option<(NodeId, Rejection)>) {
        let is_known = |node: NodeId| self.rejected.iter().any(|(known, _)| *known == node);
        if let Some((node, rejection)) = nominated.filter(|(node, _)| !is_known(*node)) {
            self.rejected.push((node, rejection));
        }
    }
}

/// Filters beside the local ones that have something to say in this cycle.
fn active_filters(profile: &Compiled, skipped: PluginSet) -> Vec<PluginId> {
    profile.other_filters.iter().copied().filter(|plugin| !skipped.contains(*plugin)).collect()
}

impl Scheduler {
    pub(super) fn find(&mut self, attempt: &mut Attempt, nominated: Option<(NodeId, Rejection)>) -> Found {
        self.search.clear();
        let others = active_filters(&attempt.profile, attempt.state.skipped);
        let shape = self.cluster.classes.shape_of(attempt.class_id);
        let failed = self.failures.knows(attempt.class_id);
        let keep = attempt.only.is_none()
            && self.columns.is_worth_keeping(shape)
            && (failed || self.is_worth_catching_up(attempt, shape));
        if keep
            && failed
            && nominated.is_none()
            && let Some(found) = self.rule_out(attempt, shape)
        {
            return found;
        }
        let alone = keep && others.is_empty() && nominated.is_none() && self.cluster.nominations.by_node.is_empty();
        if alone {
            let found = match self.compared(attempt) {
                ComparedWith::Nothing => self.find_in_column(attempt, shape),
                ComparedWith::Alike => self.find_alike(attempt, shape),
                ComparedWith::Pods => None,
            };
            if let Some(found) = found {
                return found;
            }
        }
        self.look(attempt, &others, keep.then_some(shape));
        self.search.count_nominated(nominated);
        let (feasible, rejected) = (self.search.feasible.len(), self.search.rejected.len());
        self.search.looks += (feasible + rejected) as u64;
        self.advance(feasible + rejected);
        let node = match self.search.feasible.as_slice() {
            [] => return Found::Nothing,
            [only] => *only,
            _ => {
                self.score(attempt);
                let at = winner(&self.search.totals).expect("there are several feasible nodes");
                self.search.feasible[at]
            }
        };
        Found::Node { node, feasible, evaluated: feasible + rejected }
    }

    /// The same search without kept columns, for an explanation: it leaves all feasible nodes behind.
    pub(super) fn search_slowly(&mut self, attempt: &mut Attempt) {
        self.search.clear();
        let others = active_filters(&attempt.profile, attempt.state.skipped);
        self.look(attempt, &others, None);
    }

    pub(super) fn advance(&mut self, processed: usize) {
        self.next_start = (self.next_start + processed) % self.cluster.order.walk().len();
    }

    /// Is it cheaper to bring the column up to date than to evaluate the nodes that the search will look at?
    fn is_worth_catching_up(&mut self, attempt: &Attempt, shape: ShapeId) -> bool {
        let wanted = wanted(&attempt.profile, self.cluster.order.walk().len()) as u64;
        self.columns.is_worth_using(&self.cluster, shape, attempt.profile.number, wanted)
    }

    /// Does a score depend on other pods?
    fn compared(&mut self, attempt: &mut Attempt) -> ComparedWith {
        let profile = Arc::clone(&attempt.profile);
        let (cx, state) = attempt.parts(&self.cluster);
        let own = &cx.class.affinity;
        let affinity = profile.weight(PluginId::InterPodAffinity) != 0
            && !(own.preferred.is_empty() && own.preferred_anti.is_empty() && cx.cluster.pods.term_classes.is_empty());
        if affinity {
            return ComparedWith::Pods;
        }
        let spreads = profile.weight(PluginId::PodTopologySpread) != 0
            && !state.spread.constraints(&cx, &mut self.caches).soft.is_empty();
        if spreads { ComparedWith::Alike } else { ComparedWith::Nothing }
    }

    /// How far a search over a kept column goes; `None`: nothing is feasible, or taints and preferences count.
    pub(super) fn reach(&mut self, attempt: &Attempt, shape: ShapeId) -> Option<Reach> {
        let profile = &attempt.profile;
        let local = Local::new(&self.cluster, profile, &attempt.shape);
        let column = self.columns.get(&self.cluster, shape, profile.number, &local);
        if !column.is_even() || column.feasible_count == 0 {
            return None;
        }
        let nodes = self.cluster.order.walk().len();
        let (wanted, start) = (wanted(profile, nodes), self.next_start % nodes);
        let length = match column.feasible_count <= wanted {
            true => nodes,
            false => nth_feasible(&column.feasible, nodes, start, wanted).unwrap_or(nodes),
        };
        let window = Window { start, length, ring: nodes };
        Some(Reach { window, feasible: column.feasible_count.min(wanted) })
    }

    /// The search over a kept column alone; `None` if that cannot answer.
    fn find_in_column(&mut self, attempt: &Attempt, shape: ShapeId) -> Option<Found> {
        let reach = self.reach(attempt, shape);
        let column = self.columns.kept(shape, attempt.profile.number)?;
        let walk = Arc::clone(self.cluster.order.walk());
        let Some(Reach { window, feasible }) = reach else {
            if column.feasible_count > 0 {
                return None;
            }
            let tally = column.tally.clone();
            self.advance(walk.len());
            return Some(Found::Nowhere(tally));
        };
        let place = winner_in_window(&column.feasible, &column.scores, window)?;
        self.advance(window.length);
        Some(Found::Node { node: walk[place], feasible, evaluated: window.length })
    }

    /// The answer where the local filters rule out every node: the others are not asked then. Nodes that pods are nominated
    /// for have an answer of their own. The search goes full circle, so the next one starts where this one did.
    fn rule_out(&mut self, attempt: &mut Attempt, shape: ShapeId) -> Option<Found> {
        let local = Local::new(&self.cluster, &attempt.profile, &attempt.shape);
        let column = self.columns.get(&self.cluster, shape, attempt.profile.number, &local);
        if column.feasible_count > 0 {
            return None;
        }
        let mut tally = column.tally.clone();
        let rivals = self.judge_rivals(attempt);
        let column = self.columns.kept(shape, attempt.profile.number)?;
        for (node, rejection) in &rivals {
            if let Some(place) = self.cluster.order.position(*node) {
                count(&mut tally, column.rejections[place], *rejection);
            }
        }
        self.search.rivals = rivals;
        self.advance(self.cluster.order.walk().len());
        Some(Found::Nowhere(tally))
    }

    /// Lists what [`Found::Nowhere`] has counted, for preemption, which goes from node to node.
    pub(super) fn list_rejected(&mut self, attempt: &Attempt) {
        let shape = self.cluster.classes.shape_of(attempt.class_id);
        let Self { cluster, columns, search, .. } = self;
        let Some(column) = columns.kept(shape, attempt.profile.number) else { return };
        let walk = cluster.order.walk();
        search.rejected.extend(walk.iter().copied().zip(column.rejections.iter().copied()));
        for (node, rejection) in &search.rivals {
            if let Some(place) = cluster.order.position(*node) {
                search.rejected[place].1 = *rejection;
            }
        }
        search.looks += walk.len() as u64;
    }

    /// Looks at node after node. With a shape its column answers for the local plugins.
    fn look(&mut self, attempt: &mut Attempt, others: &[PluginId], shape: Option<ShapeId>) {
        let rivals = self.judge_rivals(attempt);
        let walk = match attempt.only.take() {
            Some(only) => Arc::new(only),
            None => Arc::clone(self.cluster.order.walk()),
        };
        let nodes = walk.len();
        if nodes == 0 {
            return;
        }
        let Self { cluster, columns, caches, search, .. } = self;
        let (profile, cx) = (&attempt.profile, attempt.cx(cluster));
        let local = Local::new(cluster, profile, &attempt.shape);
        let column = shape.map(|shape| columns.get(cluster, shape, profile.number, &local));
        let (wanted, start) = (wanted(profile, nodes), self.next_start % nodes);
        if let (None, true, true, Some(plain)) = (column, others.is_empty(), rivals.is_empty(), local.plain()) {
            return search.look_plainly(
                &local,
                plain,
                [&walk[start..], &walk[..start]],
                wanted,
                &cluster.columns.numbers,
            );
        }
        for place in (start..nodes).chain(0..start) {
            let node = walk[place];
            let known = rivals.iter().find(|(rival, _)| *rival == node).map(|(_, rejection)| *rejection);
            let rejection = known.unwrap_or_else(|| {
                let by_local = column.map_or_else(|| local.filter(node.index()), |column| column.rejections[place]);
                match by_local.passes() {
                    true => first_objection(others, |plugin| plugin.filter(&cx, caches, &attempt.state, node)),
                    false => by_local,
                }
            });
            if !rejection.passes() {
                search.rejected.push((node, rejection));
            } else if search.feasible.len() == wanted {
                // One too many: the search ends, and what was rejected before it counts as looked at.
                break;
            } else {
                search.take(&local, column, place, node);
            }
        }
    }

    /// Adds the scores that are normalised over the feasible nodes to the totals.
    fn score(&mut self, attempt: &mut Attempt) {
        let Self { cluster, caches, search, .. } = self;
        let profile = Arc::clone(&attempt.profile);
        let Search { feasible, totals, disliked, preferences, scores, .. } = search;
        for (raw, plugin, reverse) in
            [(disliked, PluginId::TaintToleration, true), (preferences, PluginId::NodeAffinity, false)]
        {
            // Where all are nothing all get the same.
            if raw.iter().any(|score| *score != 0) {
                normalize(raw, reverse);
                add(totals, raw, profile.weight(plugin));
            }
        }
        scores.resize(feasible.len(), 0);
        for plugin in [PluginId::PodTopologySpread, PluginId::InterPodAffinity] {
            let weight = profile.weight(plugin);
            let (cx, state) = attempt.parts(cluster);
            if weight != 0 && plugin.plugin().pre_score(&cx, caches, state, feasible) {
                plugin.plugin().score(&cx, caches, state, feasible, scores);
                add(totals, scores, weight);
            }
        }
    }
}

fn add(totals: &mut [i64], scores: &[i64], weight: i64) {
    totals.iter_mut().zip(scores).for_each(|(total, score)| *total += weight * score);
}

/// How many feasible nodes the search is for.
fn wanted(profile: &Compiled, nodes: usize) -> usize {
    match profile.profile.scores.is_empty() {
        true => 1,
        false => nodes_to_find(nodes, profile.profile.percentage_of_nodes_to_score),
    }
}

/// The first plugin that objects.
pub(super) fn first_objection(plugins: &[PluginId], filter: impl Fn(&dyn Plugin) -> Rejection) -> Rejection {
    let objections = plugins.iter().map(|plugin| filter(plugin.plugin()));
    objections.into_iter().find(|rejection| !rejection.passes()).unwrap_or(Rejection::NONE)
}
