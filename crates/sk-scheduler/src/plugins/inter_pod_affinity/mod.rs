//! InterPodAffinity: affinity and anti-affinity between pods, in both directions (`interpodaffinity/`).
//!
//! Every sum that Kubernetes computes over all pods is a counter per topology key ([`crate::counters`]). The keys that
//! matter to a class are kept between cycles: those of its own terms, and those of other pods' terms that match it.

mod hints;

use std::collections::BTreeMap;

use crate::class::{PodAffinityTerm, PodClass};
use crate::cluster::topology::NO_VALUE;
use crate::counters::{CounterId, What, is_matched_by, matches_other, weigh};
use crate::framework::cycle_state::{Caches, Cx, CycleState};
use crate::framework::plugin::{Plugin, PluginId, PreFilter, Rejection};
use crate::ids::{ClassId, KeyId, NodeId};
use crate::plugins::MAX_NODE_SCORE;
use crate::queue::{Event, Hint, HintCx};

pub(crate) struct InterPodAffinity;

const AFFINITY: u32 = 1;
const ANTI_AFFINITY: u32 = 2;
const EXISTING_ANTI_AFFINITY: u32 = 4;

/// Counts by one key in one cycle.
#[derive(Clone, Copy, Debug)]
struct ByKey {
    key: KeyId,
    /// `None`: nothing is counted, but a dry run adds to it.
    counter: Option<CounterId>,
}

/// One of the three sums that filter.
#[derive(Clone, Debug)]
struct Sum {
    what: What,
    by_key: Vec<ByKey>,
    /// As if so many more were in this domain of the key at this place in `by_key`.
    moved: Vec<(usize, u32, i64)>,
}

/// What the cycle knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    affinity: Option<Sum>,
    anti_affinity: Option<Sum>,
    existing: Option<Sum>,
    /// The pod matches its own required terms, so the first of its kind may go anywhere.
    matches_itself: bool,
    scores: Vec<ByKey>,
}

/// Which keys matter to which class.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    keys: BTreeMap<ClassId, Keys>,
}

#[derive(Clone, Debug, Default)]
struct Keys {
    /// How many of the classes with terms have been looked at.
    seen: usize,
    namespaces_version: u64,
    affinity: Vec<KeyId>,
    anti_affinity: Vec<KeyId>,
    existing: Vec<KeyId>,
    scores: Vec<KeyId>,
}

/// Classes that are kept: at about 200 bytes each, 1 MB.
const MAX_KEPT: usize = 4_096;

fn insert(keys: &mut Vec<KeyId>, key: KeyId) {
    if !keys.contains(&key) {
        keys.push(key);
    }
}

impl Memory {
    /// Classes were freed. The others have counted how many classes with terms there were, and begin again.
    pub(crate) fn forget(&mut self) {
        self.keys.clear();
    }

    /// How many classes are kept.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    fn of(&mut self, cx: &Cx<'_>) -> &Keys {
        if self.keys.len() >= MAX_KEPT && !self.keys.contains_key(&cx.class_id) {
            self.keys.clear();
        }
        let version = cx.cluster.objects.namespaces_version;
        let keys = self.keys.entry(cx.class_id).or_default();
        if keys.namespaces_version != version || keys.seen == 0 {
            *keys = Keys { namespaces_version: version, ..Keys::own(cx) };
        }
        for class in &cx.cluster.pods.term_classes[keys.seen..] {
            keys.learn(cx, cx.cluster.class(*class));
        }
        keys.seen = cx.cluster.pods.term_classes.len();
        keys
    }
}

impl Keys {
    fn own(cx: &Cx<'_>) -> Self {
        let mut keys = Self::default();
        let id = |term: &PodAffinityTerm| cx.cluster.topology.id(&term.key).expect("a class's keys are learnt first");
        let own = &cx.class.affinity;
        own.required.iter().for_each(|term| insert(&mut keys.affinity, id(term)));
        own.required_anti.iter().for_each(|term| insert(&mut keys.anti_affinity, id(term)));
        own.preferred.iter().chain(&own.preferred_anti).for_each(|(_, term)| insert(&mut keys.scores, id(term)));
        keys
    }

    /// Another class with terms has come to be on some node.
    fn learn(&mut self, cx: &Cx<'_>, there: &PodClass) {
        let id = |term: &PodAffinityTerm| cx.cluster.topology.id(&term.key).expect("placed classes' keys are learnt");
        let matched = |term: &&PodAffinityTerm| is_matched_by(cx.cluster, term, cx.class);
        let theirs = &there.affinity;
        theirs.required_anti.iter().filter(matched).for_each(|term| insert(&mut self.existing, id(term)));
        let preferred = theirs.preferred.iter().chain(&theirs.preferred_anti).map(|(_, term)| term);
        let scored = theirs.required.iter().chain(preferred);
        scored.filter(matched).for_each(|term| insert(&mut self.scores, id(term)));
    }
}

fn sum(cx: &Cx<'_>, caches: &mut Caches, what: What, keys: &[KeyId]) -> Option<Sum> {
    if keys.is_empty() {
        return None;
    }
    let ask = |key: &KeyId| ByKey { key: *key, counter: Some(caches.counters.ask(cx.cluster, &what, Some(*key))) };
    let by_key = keys.iter().map(ask).collect();
    Some(Sum { what, by_key, moved: Vec::new() })
}

impl Sum {
    fn count(&self, caches: &Caches, at: usize, domain: u32) -> i64 {
        let kept = self.by_key[at].counter.map_or(0, |counter| caches.counters.counts(counter)[domain as usize]);
        let moved = self.moved.iter().filter(|(place, place_domain, _)| *place == at && *place_domain == domain);
        kept + moved.map(|(_, _, by)| by).sum::<i64>()
    }

    /// Is nothing counted anywhere?
    fn is_empty(&self, caches: &Caches) -> bool {
        let kept: i64 =
            self.by_key.iter().filter_map(|one| one.counter).map(|counter| caches.counters.total(counter)).sum();
        kept + self.moved.iter().map(|(_, _, by)| by).sum::<i64>() == 0
    }

    fn pod_changed(&mut self, cx: &Cx<'_>, class: ClassId, node: NodeId, by: i64) {
        for (at, one) in self.by_key.iter().enumerate() {
            let domain = cx.cluster.topology.domains(one.key).of[node.index()];
            let name = cx.cluster.topology.name(one.key);
            let weight = i64::from(weigh(cx.cluster, &self.what, Some(name), class));
            if domain == NO_VALUE || weight == 0 {
                continue;
            }
            match self.moved.iter_mut().find(|(place, place_domain, _)| *place == at && *place_domain == domain) {
                Some((_, _, moved)) => *moved += by * weight,
                None => self.moved.push((at, domain, by * weight)),
            }
        }
    }

    /// Is any of it in the node's domains?
    fn is_near(&self, cx: &Cx<'_>, caches: &Caches, node: NodeId) -> bool {
        self.by_key.iter().enumerate().any(|(at, one)| {
            let domain = cx.cluster.topology.domains(one.key).of[node.index()];
            domain != NO_VALUE && self.count(caches, at, domain) > 0
        })
    }
}

impl State {
    /// `satisfyPodAffinity`.
    fn allows(&self, cx: &Cx<'_>, caches: &Caches, node: NodeId) -> bool {
        let Some(sum) = &self.affinity else { return true };
        let mut near_all = true;
        for (at, one) in sum.by_key.iter().enumerate() {
            let domain = cx.cluster.topology.domains(one.key).of[node.index()];
            if domain == NO_VALUE {
                return false;
            }
            near_all &= sum.count(caches, at, domain) > 0;
        }
        near_all || (self.matches_itself && sum.is_empty(caches))
    }
}

impl Plugin for InterPodAffinity {
    fn pre_filter(&self, cx: &Cx<'_>, caches: &mut Caches, state: &mut CycleState) -> PreFilter {
        let has_own = !(cx.class.affinity.required.is_empty() && cx.class.affinity.required_anti.is_empty());
        if !has_own && cx.cluster.pods.term_classes.is_empty() {
            return PreFilter::Skip;
        }
        let keys = caches.affinity.of(cx).clone();
        let existing = sum(cx, caches, What::ExistingAntiAffinity(cx.class_id), &keys.existing);
        if !has_own && existing.as_ref().is_none_or(|sum| sum.is_empty(caches)) {
            return PreFilter::Skip;
        }
        let required = &cx.class.affinity.required;
        let own = &mut state.affinity;
        own.existing = existing;
        own.affinity = sum(cx, caches, What::Affinity(cx.class_id), &keys.affinity);
        own.anti_affinity = sum(cx, caches, What::AntiAffinity(cx.class_id), &keys.anti_affinity);
        own.matches_itself = required.iter().all(|term| matches_other(cx.cluster, term, cx.class));
        PreFilter::Run
    }

    fn filter(&self, cx: &Cx<'_>, caches: &Caches, state: &CycleState, node: NodeId) -> Rejection {
        let state = &state.affinity;
        if !state.allows(cx, caches, node) {
            return Rejection::unresolvable(PluginId::InterPodAffinity, AFFINITY);
        }
        if state.anti_affinity.as_ref().is_some_and(|sum| sum.is_near(cx, caches, node)) {
            return Rejection::resolvable(PluginId::InterPodAffinity, ANTI_AFFINITY);
        }
        if state.existing.as_ref().is_some_and(|sum| sum.is_near(cx, caches, node)) {
            return Rejection::resolvable(PluginId::InterPodAffinity, EXISTING_ANTI_AFFINITY);
        }
        Rejection::NONE
    }

    fn pod_changed(&self, cx: &Cx<'_>, state: &mut CycleState, class: ClassId, node: NodeId, by: i64) {
        let state = &mut state.affinity;
        for sum in [&mut state.affinity, &mut state.anti_affinity].into_iter().flatten() {
            sum.pod_changed(cx, class, node, by);
        }
        // A pod that is about to come may have terms by keys that nobody there has.
        let theirs = &cx.cluster.class(class).affinity.required_anti;
        if theirs.is_empty() {
            return;
        }
        let what = What::ExistingAntiAffinity(cx.class_id);
        let existing = state.existing.get_or_insert_with(|| Sum { what, by_key: Vec::new(), moved: Vec::new() });
        for key in theirs.iter().filter_map(|term| cx.cluster.topology.id(&term.key)) {
            if existing.by_key.iter().all(|known| known.key != key) {
                existing.by_key.push(ByKey { key, counter: None });
            }
        }
        existing.pod_changed(cx, class, node, by);
    }

    fn pre_score(&self, cx: &Cx<'_>, caches: &mut Caches, state: &mut CycleState, _: &[NodeId]) -> bool {
        let own = &cx.class.affinity;
        let has_own = !(own.preferred.is_empty() && own.preferred_anti.is_empty());
        let ignores = cx.profile.profile.ignore_preferred_terms_of_existing_pods;
        if !has_own && (ignores || cx.cluster.pods.term_classes.is_empty()) {
            return false;
        }
        let keys = caches.affinity.of(cx).scores.clone();
        let what = What::Preference { class: cx.class_id, hard_weight: cx.profile.profile.hard_pod_affinity_weight };
        let ask = |key: &KeyId| ByKey { key: *key, counter: Some(caches.counters.ask(cx.cluster, &what, Some(*key))) };
        state.affinity.scores = keys.iter().map(ask).collect();
        !state.affinity.scores.is_empty()
    }

    fn score(&self, cx: &Cx<'_>, caches: &Caches, state: &CycleState, nodes: &[NodeId], scores: &mut [i64]) {
        scores.fill(0);
        for one in &state.affinity.scores {
            let Some(counter) = one.counter else { continue };
            let (domains, counts) = (cx.cluster.topology.domains(one.key), caches.counters.counts(counter));
            for (score, node) in scores.iter_mut().zip(nodes) {
                let domain = domains.of[node.index()];
                if domain != NO_VALUE {
                    *score += counts[domain as usize];
                }
            }
        }
        let (least, most) = scores.iter().fold((i64::MAX, i64::MIN), |(least, most), s| (least.min(*s), most.max(*s)));
        let range = most.saturating_sub(least);
        for score in scores {
            *score = match range {
                ..=0 => 0,
                _ => (MAX_NODE_SCORE as f64 * ((*score - least) as f64 / range as f64)) as i64,
            };
        }
    }

    fn hint(&self, cx: &HintCx<'_>, event: &Event) -> Hint {
        hints::hint(cx, event)
    }

    fn describe(&self, _: &PodClass, reasons: u32, say: &mut dyn FnMut(&str)) {
        say(match reasons {
            AFFINITY => "node(s) didn't match pod affinity rules",
            ANTI_AFFINITY => "node(s) didn't match pod anti-affinity rules",
            _ => "node(s) didn't satisfy existing pods anti-affinity rules",
        });
    }
}
