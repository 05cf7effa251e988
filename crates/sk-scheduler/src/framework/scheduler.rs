//! The scheduler's state between pods, and one decision.

use std::collections::BTreeMap;
use std::sync::Arc;

use sk_core::SmolStr;

use super::column::Columns;
use super::cycle_state::{Caches, Cx, CycleState};
use super::diagnosis::{Diagnosis, PostFilter};
use super::failures::{Failures, has_victims};
use super::plugin::{PluginId, PreFilter, Rejection};
use super::preemption::Preemption;
use super::profile::{Compiled, Profile};
use super::search::{Found, Search};
use crate::Cluster;
use crate::class::PodClass;
use crate::cluster::classes::ShapeEntry;
use crate::ids::{ClassId, NodeId, PodId};

/// What one cycle decided.
#[derive(Clone, Debug)]
pub enum Decision {
    /// The pod goes to this node.
    Placed {
        /// Which node.
        node: NodeId,
        /// How many nodes it could have gone to, among those looked at.
        feasible: usize,
        /// How many were looked at.
        evaluated: usize,
    },
    /// No node has room now; these pods are to go, and the pod is to be nominated for their node.
    Nominated {
        /// Which node.
        node: NodeId,
        /// Who has to go, the most important first.
        victims: Vec<PodId>,
        /// Why no node has room.
        diagnosis: Box<Diagnosis>,
    },
    /// No node fits. Pods that fail with the same message share it.
    Unschedulable(Arc<Diagnosis>),
    /// No profile has the pod's `schedulerName`.
    NoProfile,
}

/// The cluster, the profiles, and where the last search ended.
#[derive(Clone, Debug)]
pub struct Scheduler {
    /// What is scheduled onto. The caller keeps it up to date.
    pub cluster: Cluster,
    pub(super) profiles: Vec<Arc<Compiled>>,
    by_name: BTreeMap<SmolStr, usize>,
    pub(super) next_start: usize,
    pub(super) columns: Columns,
    pub(super) caches: Caches,
    pub(super) search: Search,
    pub(super) failures: Failures,
    /// By class: its keys have been learnt.
    pub(super) keyed: Vec<bool>,
}

/// A pod on its way through a cycle.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) pod: PodId,
    pub(super) class_id: ClassId,
    pub(super) class: Arc<PodClass>,
    pub(super) shape: Arc<ShapeEntry>,
    pub(super) profile: Arc<Compiled>,
    pub(super) state: CycleState,
    /// The only nodes to consider, and the plugin that said so.
    pub(super) only: Option<Vec<NodeId>>,
}

impl Attempt {
    pub(super) fn cx<'a>(&'a self, cluster: &'a Cluster) -> Cx<'a> {
        Cx {
            cluster,
            profile: &self.profile,
            pod: self.pod,
            class_id: self.class_id,
            class: &self.class,
            shape: &self.shape,
        }
    }

    /// The pod, and what the cycle knows of it to be changed.
    pub(super) fn parts<'a>(&'a mut self, cluster: &'a Cluster) -> (Cx<'a>, &'a mut CycleState) {
        let Self { pod, class_id, class, shape, profile, state, only: _ } = self;
        (Cx { cluster, profile, pod: *pod, class_id: *class_id, class, shape }, state)
    }
}

impl Default for Scheduler {
    fn default() -> Self {
        Self::new(Cluster::default(), vec![Profile::default()])
    }
}

impl Scheduler {
    /// A scheduler with these profiles; of two with one name the last counts.
    pub fn new(mut cluster: Cluster, profiles: Vec<Profile>) -> Self {
        let compile = |(number, profile)| Arc::new(Compiled::new(profile, number, &mut cluster));
        let profiles: Vec<Arc<Compiled>> = profiles.into_iter().enumerate().map(compile).collect();
        let names = profiles.iter().enumerate().map(|(at, one)| (one.profile.scheduler_name.clone(), at));
        Self {
            by_name: names.collect(),
            cluster,
            profiles,
            next_start: 0,
            columns: Columns::default(),
            caches: Caches::default(),
            search: Search::default(),
            failures: Failures::default(),
            keyed: Vec::new(),
        }
    }

    /// The same scheduler with a cluster of its own and nothing kept: it decides alike, and what is done to it stays with
    /// it. For what-if questions that take more than [`Cluster::checkpoint`], such as nodes that do not exist.
    pub fn fork(&self) -> Self {
        Self {
            cluster: self.cluster.clone(),
            profiles: self.profiles.clone(),
            by_name: self.by_name.clone(),
            next_start: self.next_start,
            columns: Columns::default(),
            caches: Caches::default(),
            search: Search::default(),
            failures: Failures::default(),
            keyed: Vec::new(),
        }
    }

    /// How many comparisons of one pod with one node were made so far: what a decision costs, whatever the machine.
    pub fn looks(&self) -> u64 {
        self.search.looks + self.columns.looks
    }

    /// Is there a profile of this name?
    pub fn has_profile(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    pub(crate) fn profile(&self, name: &str) -> Option<&Arc<Compiled>> {
        self.by_name.get(name).map(|at| &self.profiles[*at])
    }

    /// Decides for one pod. The pod is not counted in: the caller does that when it carries the decision out.
    pub fn schedule(&mut self, pod: PodId) -> Decision {
        self.cluster.take_snapshot();
        if let Some(diagnosis) = self.same_failure(pod) {
            return Decision::Unschedulable(diagnosis);
        }
        let Some(mut attempt) = self.attempt(pod) else { return Decision::NoProfile };
        if let Some(diagnosis) = self.known_failure(&attempt) {
            return Decision::Unschedulable(diagnosis);
        }
        let nodes = self.cluster.order.walk().len();
        let mut diagnosis = Diagnosis::new(Arc::clone(&attempt.class), nodes);
        if nodes == 0 {
            return Decision::Unschedulable(Arc::new(diagnosis));
        }
        let start = self.next_start;
        if let Err((plugin, message)) = self.pre_filter(&mut attempt, &mut diagnosis) {
            diagnosis.pre_filter = Some(message);
            diagnosis.plugins.insert(plugin);
            return self.post_filter(&mut attempt, diagnosis, Some(plugin), start);
        }
        let nominated = match self.try_nominated(&mut attempt, &mut diagnosis) {
            Ok(node) => return Decision::Placed { node, feasible: 1, evaluated: 1 },
            Err(nominated) => nominated,
        };
        if attempt.only.is_some() {
            // The set of plugins that name nodes is the one to which rejections are added (`findNodesThatFitPod`), so it has the
            // plugin that rejected the nominated node too.
            diagnosis.named_by = diagnosis.plugins;
        }
        match self.find(&mut attempt, nominated) {
            Found::Node { node, feasible, evaluated } => {
                self.failures.forget(attempt.class_id);
                Decision::Placed { node, feasible, evaluated }
            }
            Found::Nothing => {
                self.search.rejected.iter().for_each(|(_, rejection)| diagnosis.reject(*rejection));
                self.post_filter(&mut attempt, diagnosis, None, start)
            }
            Found::Nowhere(rejections) => {
                diagnosis.reject_all(rejections);
                if diagnosis.is_resolvable() && has_victims(&self.cluster, &attempt) {
                    self.list_rejected(&attempt);
                }
                self.post_filter(&mut attempt, diagnosis, None, start)
            }
        }
    }

    /// May a pod go onto this node as things are? Other nodes are not looked at.
    pub fn check(&mut self, pod: PodId, node: NodeId) -> Result<(), Box<Diagnosis>> {
        self.cluster.take_snapshot();
        let Some(mut attempt) = self.attempt(pod) else { return Err(Box::new(self.no_profile(pod))) };
        let mut diagnosis = Diagnosis::new(Arc::clone(&attempt.class), 1);
        if let Err((plugin, message)) = self.pre_filter(&mut attempt, &mut diagnosis) {
            diagnosis.pre_filter = Some(message);
            diagnosis.plugins.insert(plugin);
            return Err(Box::new(diagnosis));
        }
        self.search.looks += 1;
        match self.filter_with_nominated(&mut attempt, node) {
            Rejection::NONE => Ok(()),
            rejection => {
                diagnosis.reject(rejection);
                Err(Box::new(diagnosis))
            }
        }
    }

    fn no_profile(&self, pod: PodId) -> Diagnosis {
        let class = Arc::clone(self.cluster.class_of(pod));
        let message = format!("no profile is called \"{}\"", class.scheduler_name);
        let mut diagnosis = Diagnosis::new(class, 1);
        diagnosis.pre_filter = Some(message);
        diagnosis
    }

    pub(super) fn attempt(&mut self, pod: PodId) -> Option<Attempt> {
        let class_id = self.cluster.pod(pod).class;
        if self.keyed.len() <= class_id.index() {
            self.keyed.resize(class_id.index() + 1, false);
        }
        if !std::mem::replace(&mut self.keyed[class_id.index()], true) {
            self.cluster.learn_keys(class_id);
        }
        let class = Arc::clone(self.cluster.class(class_id));
        let profile = Arc::clone(self.profile(&class.scheduler_name)?);
        let shape = Arc::clone(self.cluster.shape_entry(class_id));
        Some(Attempt { pod, class_id, class, shape, profile, state: CycleState::default(), only: None })
    }

    /// `RunPreFilterPlugins`; an error keeps the pod off every node.
    pub(super) fn pre_filter(
        &mut self,
        attempt: &mut Attempt,
        diagnosis: &mut Diagnosis,
    ) -> Result<(), (PluginId, String)> {
        let profile = Arc::clone(&attempt.profile);
        for plugin in profile.pre_filters.iter().copied() {
            let (cx, state) = attempt.parts(&self.cluster);
            let result = plugin.plugin().pre_filter(&cx, &mut self.caches, state);
            match result {
                PreFilter::Run => {}
                PreFilter::Skip => attempt.state.skipped.insert(plugin),
                PreFilter::Reject(message) => return Err((plugin, message)),
                PreFilter::Only(nodes) => {
                    diagnosis.named_by.insert(plugin);
                    diagnosis.plugins.insert(plugin);
                    attempt.only = Some(match attempt.only.take() {
                        None => nodes,
                        Some(known) => known.into_iter().filter(|node| nodes.contains(node)).collect(),
                    });
                }
            }
        }
        Ok(())
    }

    /// `evaluateNominatedNode`: a pod that was nominated goes to its node if it fits there now. Otherwise the node's
    /// rejection counts as looked at.
    fn try_nominated(
        &mut self,
        attempt: &mut Attempt,
        diagnosis: &mut Diagnosis,
    ) -> Result<NodeId, Option<(NodeId, Rejection)>> {
        let nominated = self.cluster.pod(attempt.pod).nominated;
        let Some(node) = nominated.filter(|node| self.cluster.order.position(*node).is_some()) else {
            return Err(None);
        };
        match self.filter_with_nominated(attempt, node) {
            Rejection::NONE => Ok(node),
            rejection => {
                diagnosis.plugins.extend_with(rejection.plugin());
                Err(Some((node, rejection)))
            }
        }
    }

    /// `RunPostFilterPlugins` after a search that began at `start`, perhaps after PreFilter ended with this plugin.
    fn post_filter(
        &mut self,
        attempt: &mut Attempt,
        mut diagnosis: Diagnosis,
        ended_with: Option<PluginId>,
        start: usize,
    ) -> Decision {
        let profile = Arc::clone(&attempt.profile);
        let place = |plugin: PluginId| profile.profile.pre_filters.iter().position(|known| *known == plugin);
        let ran =
            |plugin: PluginId| place(plugin).is_some_and(|at| ended_with.and_then(place).is_none_or(|end| at <= end));
        for plugin in &profile.profile.post_filters {
            match plugin {
                PluginId::DynamicResources if ran(PluginId::DynamicResources) => {
                    diagnosis.post_filter.push(PostFilter::NoClaims);
                }
                PluginId::DynamicResources => {
                    diagnosis.post_filter = vec![PostFilter::NoState];
                    break;
                }
                PluginId::DefaultPreemption => match self.preempt(attempt, &diagnosis) {
                    Preemption::Victims { node, victims } => {
                        diagnosis.post_filter.clear();
                        return Decision::Nominated { node, victims, diagnosis: Box::new(diagnosis) };
                    }
                    Preemption::Nothing(said) => diagnosis.post_filter.push(said),
                },
                _ => {}
            }
        }
        Decision::Unschedulable(self.remember(attempt, diagnosis, start))
    }
}
