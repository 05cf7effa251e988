//! Which group grows, by how many nodes, for which pods; and if none grows, why (`core/scaleup/orchestrator`).
//!
//! Decides only: the result is a plan. Every loop packs the pods that fit on existing and upcoming nodes again, in any
//! order, so pods of different sizes may need one node more than the estimate said.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sk_core::rng::Stream;
use sk_core::{ObjectKey, SimDuration, SimTime, SmolStr};
use sk_scheduler::{ClassId, NodeId};

use super::cluster_state::ClusterState;
use super::decisions::{Because, Choice, Resize, Told};
use super::estimator::{Alike, Turn, estimate, share};
use super::expander::{self, Offer};
use super::flags::{Autoscaler, Expander};
use super::groups::Group;
use super::hopeless::Tries;
use super::price::Prices;
use super::refusals::{Answer, Refusals};
use super::rules::Rule;
use super::template::{Template, TemplateNode};
use super::view::{Amount, Likeness, PodView, View};
use super::{drain, filters, price, similar};

/// While all pods without a place are younger than this, more may come (`unschedulablePodTimeBuffer`).
const YOUNG: SimDuration = SimDuration::from_secs(2);
/// While all that ask for GPUs are younger than this, more may come: such nodes are dear
/// (`unschedulablePodWithGpuTimeBuffer`).
const YOUNG_WITH_GPU: SimDuration = SimDuration::from_secs(30);
/// A pod's own `new-pod-scale-up-delay`.
const POD_DELAY: &str = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay";
const GIB: i64 = 1 << 30;

/// What a loop does about pods without a place.
#[derive(Clone, Debug, Default)]
pub(super) struct ScaleUp {
    /// The groups that grow, once per round.
    pub(super) rounds: Vec<Round>,
    /// Pods for which no group grows, and why.
    pub(super) refused: Vec<Refused>,
    /// All are so new that the loop waits for more.
    pub(super) waits: bool,
    /// `max-nodes-total` is reached.
    pub(super) full: bool,
    /// A pod had a place, or a group was an option: had lots fallen otherwise, so might the outcome.
    pub(super) chance: bool,
}

/// Pods that are alike and for which no group grows.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    /// Those that have not been told before.
    pub(super) pods: Vec<PodView>,
    pub(super) why: Arc<WhyNot>,
}

/// Why no group grows.
#[derive(Clone, Debug, Default)]
pub(super) struct WhyNot {
    /// The count of groups per reason.
    pub(super) reason: String,
    /// The reason of each group.
    pub(super) groups: Vec<(SmolStr, String)>,
}

/// One choice of a group.
#[derive(Clone, Debug)]
pub(super) struct Round {
    pub(super) options: Vec<Choice>,
    pub(super) because: Because,
    /// The groups that are no option for the pods, and why.
    pub(super) refused: Vec<(SmolStr, String)>,
    /// The groups by index, and the plan for each.
    pub(super) plan: Vec<(usize, Resize)>,
    pub(super) pods: Vec<PodView>,
}

/// What is looked at while a scale-up is decided.
pub(super) struct Search<'a> {
    pub(super) view: &'a mut View,
    pub(super) groups: &'a [Group],
    pub(super) flags: &'a Autoscaler,
    pub(super) now: SimTime,
    pub(super) choice: &'a mut Stream,
    pub(super) turn: &'a mut Turn,
    templates: Vec<Template>,
    /// How many nodes each group has or is getting.
    sizes: Vec<usize>,
    upcoming: Vec<TemplateNode>,
    /// Nodes that were asked for and have not been seen yet, with their groups.
    asked: &'a BTreeMap<SmolStr, usize>,
    /// Groups that are left alone because they failed.
    backed_off: BTreeSet<usize>,
    /// Groups of which too many nodes are not ready.
    sick: BTreeSet<usize>,
    told: &'a Told,
    /// See [`ScaleUp::chance`].
    chance: bool,
}

/// A group that could grow.
struct ExpansionOption {
    group: usize,
    similar: Vec<usize>,
    nodes: usize,
    pods: Vec<PodView>,
    waste: i64,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        (view, groups): (&'a mut View, &'a [Group]),
        (flags, now): (&'a Autoscaler, SimTime),
        (choice, turn): (&'a mut Stream, &'a mut Turn),
        (asked, state, told): (&'a BTreeMap<SmolStr, usize>, &ClusterState, &'a Told),
    ) -> Self {
        let mut sizes = view.sizes();
        asked.values().for_each(|group| sizes[*group] += 1);
        let backed_off = state.backed_off(now);
        let sick = sick(view, &sizes, state, flags);
        let (templates, upcoming) = (Vec::new(), Vec::new());
        let chance = false;
        Self {
            view,
            groups,
            flags,
            now,
            choice,
            turn,
            templates,
            sizes,
            upcoming,
            asked,
            backed_off,
            sick,
            told,
            chance,
        }
    }

    /// Decides. Pods that will have a place stay there in the scheduler that is asked, until [`Self::leave`].
    pub(super) fn run(&mut self, draining: &BTreeSet<&str>, listed_until: SimTime) -> ScaleUp {
        let found = self.search(draining, listed_until);
        ScaleUp { chance: self.chance, ..found }
    }

    fn search(&mut self, draining: &BTreeSet<&str>, listed_until: SimTime) -> ScaleUp {
        let waiting = self.waiting(draining, listed_until);
        if waiting.is_empty() {
            return ScaleUp::default();
        }
        for (index, group) in self.groups.iter().enumerate() {
            self.templates.push(Template::of(index, group, self.view, self.flags, self.now));
        }
        self.put_upcoming();
        let flags = self.flags;
        let follows = |rule: Rule| flags.follows(rule);
        let takes_room = |pod: &PodView| follows(Rule::NewPodsTakeRoom) || !self.is_too_new(pod);
        let left = self.pack(waiting.into_iter().filter(takes_room).collect());
        let mut helpless: Vec<PodView> = left.into_iter().filter(|pod| !self.is_too_new(pod)).collect();
        let there =
            self.view.nodes.values().filter(|node| node.ready.is_some() || !follows(Rule::ReadyNodesFillTheCluster));
        let there = there.count();
        if !follows(Rule::OldPodsBringYoung) {
            helpless.retain(|pod| !self.is_young(pod));
        }
        if helpless.is_empty() {
            ScaleUp::default()
        } else if self.flags.max_nodes_total > 0 && there >= self.flags.max_nodes_total {
            let reason = "max total nodes in cluster reached".to_owned();
            let refused = vec![Refused { pods: helpless, why: Arc::new(WhyNot { reason, groups: Vec::new() }) }];
            ScaleUp { full: true, refused, ..ScaleUp::default() }
        } else if follows(Rule::YoungPodsWait) && self.are_new(&helpless) {
            ScaleUp { waits: true, ..ScaleUp::default() }
        } else {
            self.rounds(&mut helpless)
        }
    }

    /// The nodes that [`Self::run`] put in: the caller takes them out when the pods on them are rolled back.
    pub(super) fn leave(self) -> Vec<TemplateNode> {
        self.upcoming
    }

    /// The pods to find a place for: those that the scheduler found none for, and those on nodes that are being emptied.
    fn waiting(&mut self, draining: &BTreeSet<&str>, listed_until: SimTime) -> Vec<PodView> {
        let mut waiting = Vec::new();
        let is_listed = |pod: &&PodView| pod.refused().is_none_or(|since| since <= listed_until);
        let counts = |pod: &&PodView| !pod.expendable && !drain::is_daemon(&pod.object);
        for pod in self.view.pending.values().filter(is_listed).filter(counts) {
            let nominated = pod.nominated().filter(|_| self.flags.follows(Rule::NominatedPodsWait));
            match nominated.and_then(|name| self.view.nodes.get(name)) {
                Some(node) => {
                    self.view.what_if.cluster.add_pod(pod.id, node.id);
                    self.chance = true;
                }
                None => waiting.push(pod.clone()),
            }
        }
        let drained = draining.iter().filter_map(|name| self.view.nodes.get(*name));
        for pod in drained.flat_map(super::view::NodeView::pods) {
            let comes_again = pod.object.controller().is_some() && !drain::belongs_to_the_node(&pod.object);
            if comes_again && !pod.object.is_deleting() && !pod.expendable {
                self.view.what_if.cluster.remove_pod(pod.id);
                self.chance = true;
                waiting.push(pod.clone());
            }
        }
        waiting
    }

    /// Puts in the nodes that are on their way, as they will be.
    fn put_upcoming(&mut self) {
        let flags = self.flags;
        let comes = |created: SimTime| {
            !flags.follows(Rule::StartupTime) || self.now.since(created) < flags.max_node_startup_time
        };
        let nodes = self.view.nodes.values().filter(|node| node.ready.is_none() && !node.is_going());
        let mut coming: Vec<usize> = nodes.filter(|node| comes(node.created)).filter_map(|node| node.group).collect();
        coming.extend(self.asked.values());
        for group in coming.into_iter().filter(|_| flags.follows(Rule::UpcomingNodes)) {
            let name = format!("{}-upcoming-{}", self.templates[group].spec().name, self.upcoming.len());
            self.upcoming.push(self.templates[group].put(name.into(), self.view));
        }
    }

    /// Packs pods onto the nodes that are there or on their way, by priority and otherwise in any order; those left over.
    fn pack(&mut self, mut waiting: Vec<PodView>) -> Vec<PodView> {
        if self.flags.follows(Rule::PackedInAnyOrder) {
            self.choice.shuffle(&mut waiting);
        } else {
            waiting.sort_by_key(|pod| std::cmp::Reverse((pod.requests.cpu_milli, pod.requests.memory)));
        }
        waiting.sort_by_key(|pod| std::cmp::Reverse(pod.priority));
        let mut nodes: Vec<NodeId> = self.view.open().map(|node| node.id).collect();
        nodes.extend(self.upcoming.iter().map(|copy| copy.node));
        let mut tries = Tries::new(!self.chance && self.upcoming.is_empty());
        let mut left = Vec::new();
        for pod in waiting {
            if tries.is_hopeless(&pod, self.view) {
                left.push(pod);
                continue;
            }
            match self.turn.first_fit(&pod, &nodes, self.view) {
                Some(node) => {
                    self.view.what_if.cluster.add_pod(pod.id, node);
                    tries.placed += 1;
                }
                None => {
                    tries.failed(&pod, self.view);
                    left.push(pod);
                }
            }
        }
        self.chance |= tries.placed > 0;
        left
    }

    fn age(&self, pod: &PodView) -> SimDuration {
        // Kubernetes keeps the time of creation in whole seconds.
        self.now.since(pod.object.created.whole_secs())
    }

    fn is_young(&self, pod: &PodView) -> bool {
        self.age(pod) < YOUNG
    }

    /// May more pods come that would better be helped together with these (`allPodsAreNew`)?
    fn are_new(&self, pods: &[PodView]) -> bool {
        let cluster = &self.view.what_if.cluster;
        let mut accelerated = pods.iter().filter(|pod| price::asks_for_gpus(cluster.class(pod.class))).peekable();
        let has_gpus = accelerated.peek().is_some();
        pods.iter().all(|pod| self.is_young(pod)) || (has_gpus && accelerated.all(|pod| self.age(pod) < YOUNG_WITH_GPU))
    }

    fn is_too_new(&self, pod: &PodView) -> bool {
        self.age(pod) < delay(pod, self.flags)
    }

    /// Chooses a group, with salvo until nobody is left or nothing helps.
    fn rounds(&mut self, helpless: &mut Vec<PodView>) -> ScaleUp {
        let mut outcome = ScaleUp::default();
        loop {
            let mut refusals = Refusals::default();
            let options = self.options(helpless, &mut refusals);
            let Some(mut round) = self.choose(options) else {
                if outcome.rounds.is_empty() {
                    outcome.refused = self.refused(helpless, &refusals);
                }
                return outcome;
            };
            round.refused = self.no_option(&round, helpless, &refusals);
            round.plan.iter().for_each(|(group, resize)| self.sizes[*group] = resize.to);
            let helped: BTreeSet<ObjectKey> = round.pods.iter().map(|pod| pod.key().clone()).collect();
            helpless.retain(|pod| !helped.contains(pod.key()));
            outcome.rounds.push(round);
            if !self.flags.salvo_scale_up || helpless.is_empty() {
                return outcome;
            }
        }
    }

    /// What each group could do. Pods that no group takes are noted with every group's reasons.
    fn options(&mut self, helpless: &[PodView], refusals: &mut Refusals) -> Vec<ExpansionOption> {
        let classes: BTreeMap<ClassId, &PodView> = helpless.iter().map(|pod| (pod.class, pod)).collect();
        refusals.groups = (0..self.groups.len()).map(|group| self.ask(group, &classes)).collect();
        let mut options = Vec::new();
        if classes.keys().all(|class| !refusals.is_taken(*class)) {
            return options;
        }
        self.chance = true;
        let alike = alike(helpless);
        let takes = |answer: &Answer| {
            alike.iter().enumerate().filter(|(_, pods)| pods.is_taken(answer)).map(|(place, _)| place).collect()
        };
        let takes: Vec<BTreeSet<usize>> = refusals.groups.iter().map(takes).collect();
        for group in 0..self.groups.len() {
            let pods: Vec<&Alike> = takes[group].iter().map(|place| &alike[*place]).collect();
            if pods.is_empty() || self.skips(group).is_some() {
                continue;
            }
            let similar = self.similar(group, &takes);
            let rooms = similar.iter().chain([&group]).map(|group| self.room(*group));
            let limit = rooms.fold(0, usize::saturating_add).min(self.most_per_scale_up()).min(self.total_room());
            let template = self.templates[group].clone();
            let found = estimate(&template, &pods, limit, (self.turn, self.flags), self.view);
            if found.nodes > 0 {
                let waste = waste(&found.pods, found.nodes, &template, self.flags);
                options.push(ExpansionOption { group, similar, nodes: found.nodes, pods: found.pods, waste });
            }
        }
        options
    }

    /// Which of the pods a new node of the group would take.
    fn ask(&mut self, group: usize, classes: &BTreeMap<ClassId, &PodView>) -> Answer {
        if let Some(reason) = self.skips(group) {
            return Answer::Skipped(reason);
        }
        let name = self.templates[group].spec().name.clone();
        let template = self.templates[group].clone();
        let before = self.view.what_if.cluster.checkpoint();
        let copy = template.put(name, self.view);
        let mut refused = BTreeMap::new();
        for (class, sample) in classes {
            if let Err(reasons) = filters::check(sample, copy.node, self.view, self.flags) {
                refused.insert(*class, reasons);
            }
        }
        self.view.what_if.cluster.rollback(before);
        copy.take_out(self.view);
        Answer::Asked { refused }
    }

    /// The groups that are no option for the pods of a round, each with all of its reasons.
    fn no_option(&self, round: &Round, helpless: &[PodView], refusals: &Refusals) -> Vec<(SmolStr, String)> {
        let helped: BTreeSet<Likeness> = round.pods.iter().map(|pod| pod.likeness).collect();
        let classes: BTreeSet<ClassId> =
            helpless.iter().filter(|pod| helped.contains(&pod.likeness)).map(|pod| pod.class).collect();
        let mut reasons: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
        for (group, reason) in classes.iter().flat_map(|class| refusals.of(*class)) {
            reasons.entry(group).or_default().insert(reason);
        }
        let name = |group: usize| self.groups[group].settings.name.clone();
        let named = reasons.into_iter().map(|(group, reasons)| (name(group), Vec::from_iter(reasons).join(", ")));
        named.filter(|(group, _)| round.options.iter().all(|option| option.group != *group)).collect()
    }

    /// The pods that no group would take, as far as they have not been told. They are told in the order in which the first
    /// pod comes that is like them, be it one that has been told.
    fn refused(&self, helpless: &[PodView], refusals: &Refusals) -> Vec<Refused> {
        let mut places = BTreeMap::new();
        let mut why = BTreeMap::new();
        let mut refused: Vec<Refused> = Vec::new();
        for pod in helpless.iter().filter(|pod| !refusals.is_taken(pod.class)) {
            let is_told = self.told.is_refused(pod, self.flags);
            if is_told && matches!(pod.likeness, Likeness::Alone(_)) {
                continue;
            }
            let place = *places.entry(pod.likeness).or_insert(refused.len());
            if place == refused.len() {
                let why = why.entry(pod.class).or_insert_with(|| Arc::new(self.why_not(pod.class, refusals)));
                refused.push(Refused { pods: Vec::new(), why: Arc::clone(why) });
            }
            if !is_told {
                refused[place].pods.push(pod.clone());
            }
        }
        refused
    }

    fn why_not(&self, class: ClassId, refusals: &Refusals) -> WhyNot {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut groups: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for (group, reason) in refusals.of(class) {
            *counts.entry(reason).or_insert(0) += 1;
            groups.entry(group).or_default().push(reason);
        }
        let counts: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        let name = |group: usize| self.groups[group].settings.name.clone();
        let groups = groups.into_iter().map(|(group, reasons)| (name(group), reasons.join(", "))).collect();
        WhyNot { reason: counts.join(", "), groups }
    }

    /// Why a group is not even asked.
    fn skips(&self, group: usize) -> Option<String> {
        if self.sick.contains(&group) {
            return Some("not ready for scale-up".to_owned());
        }
        if self.backed_off.contains(&group) {
            return Some("in backoff after failed scale-up".to_owned());
        }
        if self.room(group) == 0 {
            return Some("max node group size reached".to_owned());
        }
        let exceeded = self.exceeded(group, 1);
        (!exceeded.is_empty()).then(|| format!("exceeded quota: \"cluster-wide\", resources: {}", exceeded.join(", ")))
    }

    fn room(&self, group: usize) -> usize {
        self.max(group).saturating_sub(self.sizes[group])
    }

    fn max(&self, group: usize) -> usize {
        if self.flags.follows(Rule::GroupMaximum) { self.groups[group].max() } else { usize::MAX / 2 }
    }

    fn most_per_scale_up(&self) -> usize {
        match self.flags.max_nodes_per_scaleup {
            0 => usize::MAX,
            most => most,
        }
    }

    fn total_room(&self) -> usize {
        match self.flags.max_nodes_total {
            0 => usize::MAX,
            most => most.saturating_sub(self.sizes.iter().sum::<usize>() + self.nodes_of_nobody()),
        }
    }

    fn nodes_of_nobody(&self) -> usize {
        self.view.nodes.values().filter(|node| node.group.is_none()).count()
    }

    /// The resources of which `nodes` more of the group would be too much for the cluster.
    fn exceeded(&self, group: usize, nodes: usize) -> Vec<&'static str> {
        let sum = Amount::sum(self.view.nodes.values().map(|node| node.allocatable));
        let growing = self.sizes.iter().zip(self.view.sizes()).zip(&self.templates);
        let coming = growing.map(|((after, before), template)| (template.total, (after - before) as i64));
        let sum = coming.fold(sum, |sum, (total, more)| sum.plus(total, more));
        let after = sum.plus(self.templates[group].total, nodes as i64);
        let (cores, memory) = (self.flags.cores_total.most, self.flags.memory_total_gib.most);
        let too_much = [
            ("cpu", after.cpu_milli > cores.saturating_mul(1000)),
            ("memory", after.memory > memory.saturating_mul(GIB)),
        ];
        too_much.into_iter().filter(|(_, exceeded)| *exceeded).map(|(name, _)| name).collect()
    }

    /// The groups among which the nodes of this one can be spread: alike, with room, and fit for the same pods.
    fn similar(&self, group: usize, takes: &[BTreeSet<usize>]) -> Vec<usize> {
        if !self.flags.balance_similar_node_groups {
            return Vec::new();
        }
        let ignored = &self.flags.balancing_ignore_label;
        let any_pods = !self.flags.follows(Rule::SimilarGroupsTakeThePods);
        let is_similar = |other: &usize| {
            *other != group
                && self.skips(*other).is_none()
                && (any_pods || takes[group].is_subset(&takes[*other]))
                && similar::are_similar(&self.templates[group], &self.templates[*other], ignored)
        };
        (0..self.groups.len()).filter(is_similar).collect()
    }

    /// The expander's choice, within the limits of the cluster.
    fn choose(&mut self, mut options: Vec<ExpansionOption>) -> Option<Round> {
        let wants_price = self.flags.expander.contains(&Expander::Price);
        let prices = wants_price.then(|| Prices::of(self.groups, self.view.nodes.len()));
        let offer = |option: &ExpansionOption| Offer {
            name: self.groups[option.group].settings.name.clone(),
            nodes: option.nodes,
            pods: option.pods.len(),
            waste: option.waste,
            price: prices.and_then(|prices| self.price(option, &prices)),
        };
        let offers: Vec<Offer> = options.iter().map(offer).collect();
        let (place, because) = expander::choose(&offers, self.flags, self.choice)?;
        let option = options.swap_remove(place);
        let nodes = (0..=option.nodes).rev().find(|nodes| self.exceeded(option.group, *nodes).is_empty())?;
        let plan = self.split(&option, nodes);
        let choice = |Offer { name, nodes, pods, waste, price }| Choice { group: name, nodes, pods, waste, price };
        let options = offers.into_iter().map(choice).collect();
        (!plan.is_empty()).then_some(Round { options, because, refused: Vec::new(), plan, pods: option.pods })
    }

    fn price(&self, option: &ExpansionOption, prices: &Prices) -> Option<f64> {
        let price = self.groups[option.group].settings.price_per_hour?;
        let template = &self.templates[option.group];
        let pods = Amount::sum(option.pods.iter().map(|pod| pod.requests));
        Some(prices.score(price, option.nodes, template.spec(), template.total, pods))
    }

    fn split(&self, option: &ExpansionOption, nodes: usize) -> Vec<(usize, Resize)> {
        let mut groups: Vec<usize> = [option.group].into_iter().chain(option.similar.iter().copied()).collect();
        if !self.flags.follows(Rule::ChosenGroupGetsTheRest) {
            groups.sort_unstable();
        }
        let sizes: Vec<usize> = groups.iter().map(|group| self.sizes[*group]).collect();
        let most: Vec<usize> = groups.iter().map(|group| self.max(*group)).collect();
        let after = similar::spread(nodes, &sizes, &most);
        let grown = groups.iter().zip(sizes).zip(after).filter(|((_, from), to)| to > from);
        grown.map(|((group, from), to)| (*group, self.resize(*group, from, to))).collect()
    }

    fn resize(&self, group: usize, from: usize, to: usize) -> Resize {
        Resize { group: self.groups[group].settings.name.clone(), from, to, max: self.groups[group].max() }
    }

    /// The groups that have fewer nodes than their minimum, grown to it.
    pub(super) fn to_minimum(&self) -> Vec<(usize, Resize)> {
        let below = (0..self.groups.len()).filter(|group| self.sizes[*group] < self.groups[*group].min());
        below.map(|group| (group, self.resize(group, self.sizes[group], self.groups[group].min()))).collect()
    }
}

/// How old a pod must be to be helped.
fn delay(pod: &PodView, flags: &Autoscaler) -> SimDuration {
    let own = pod.object.meta.annotations.get(POD_DELAY).and_then(|text| text.parse().ok());
    own.unwrap_or(SimDuration::ZERO).max(flags.new_pod_scale_up_delay)
}

/// From when on the pod is seen, and from when on it is helped.
pub(super) fn moments(pod: &PodView, flags: &Autoscaler) -> impl Iterator<Item = SimTime> {
    let helped = pod.object.created.whole_secs() + delay(pod, flags);
    pod.refused().into_iter().chain([helped])
}

/// Groups of which too many nodes are not ready, and not because they are new (`IsNodeGroupHealthy`).
fn sick(view: &View, sizes: &[usize], state: &ClusterState, flags: &Autoscaler) -> BTreeSet<usize> {
    let mut ready = vec![0; sizes.len()];
    let nodes = view.nodes.values().filter(|node| node.ready.is_some());
    nodes.filter_map(|node| node.group).for_each(|group| ready[group] += 1);
    let is_sick = |group: &usize| {
        let missing = sizes[*group].saturating_sub(state.awaited(*group)).saturating_sub(ready[*group]);
        missing > flags.ok_total_unready_count && missing * 100 > flags.max_total_unready_percentage * sizes[*group]
    };
    (0..sizes.len()).filter(is_sick).collect()
}

/// Pods of one owner that scheduling cannot tell apart.
fn alike(pods: &[PodView]) -> Vec<Alike> {
    let mut places = BTreeMap::new();
    let mut alike: Vec<Alike> = Vec::new();
    for pod in pods {
        let place = *places.entry(pod.likeness).or_insert(alike.len());
        if place == alike.len() {
            alike.push(Alike { pods: Vec::new() });
        }
        alike[place].pods.push(pod.clone());
    }
    alike
}

impl Alike {
    fn is_taken(&self, answer: &Answer) -> bool {
        self.pods.first().is_some_and(|sample| answer.takes(sample.class))
    }
}

/// Unused share of CPU plus unused share of memory on the new nodes, in millionths.
fn waste(pods: &[PodView], nodes: usize, template: &Template, flags: &Autoscaler) -> i64 {
    let used = Amount::sum(pods.iter().map(|pod| pod.requests));
    let of_one = if flags.follows(Rule::ResidentsAreWaste) { template.total } else { Amount::of(template.spec()) };
    let total = Amount::default().plus(of_one, nodes as i64);
    let free = |used: i64, total: i64| 1_000_000 - share(used, total);
    let cpu = free(used.cpu_milli, total.cpu_milli);
    cpu + if flags.follows(Rule::BothWastesCount) { free(used.memory, total.memory) } else { cpu }
}
