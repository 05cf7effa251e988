//! The plugin interface: an id, a rejection that fits into a register, and the trait with its extension points.
//!
//! Plugins are stateless statics; the [`Profile`](super::Profile) has the user's configuration, the [`CycleState`] the
//! state of one cycle. A cycle state can be changed as if a pod were (not) on a node ([`Plugin::pod_changed`]), so
//! preemption and what-if questions run the same filters.

use super::cycle_state::{Caches, Cx, CycleState};
use crate::class::PodClass;
use crate::ids::{ClassId, NodeId};
use crate::plugins;
use crate::queue::{Event, Hint, HintCx};

macro_rules! plugin_ids {
    ($($name:ident = $number:literal),* $(,)?) => {
        /// The plugins that are built in.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "the names are Kubernetes' own")]
        pub enum PluginId { $($name = $number),* }

        impl PluginId {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// As configurations and messages spell it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }
        }
    };
}

plugin_ids!(
    SchedulingGates = 1,
    PrioritySort = 2,
    NodeUnschedulable = 3,
    NodeName = 4,
    TaintToleration = 5,
    NodeAffinity = 6,
    NodePorts = 7,
    NodeResourcesFit = 8,
    VolumeRestrictions = 9,
    NodeVolumeLimits = 10,
    VolumeBinding = 11,
    VolumeZone = 12,
    PodTopologySpread = 13,
    InterPodAffinity = 14,
    DynamicResources = 15,
    DefaultPreemption = 16,
    NodeResourcesBalancedAllocation = 17,
    ImageLocality = 18,
    DefaultBinder = 19,
    NodeDeclaredFeatures = 20,
);

impl PluginId {
    /// By its name in a configuration.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|plugin| plugin.name() == name)
    }

    /// Is it asked for scores? VolumeBinding is only with a feature gate that is off; DynamicResources is, and gives a pod
    /// without claims nothing.
    pub(crate) fn scores(self) -> bool {
        matches!(
            self,
            Self::TaintToleration
                | Self::NodeAffinity
                | Self::NodeResourcesFit
                | Self::PodTopologySpread
                | Self::InterPodAffinity
                | Self::DynamicResources
                | Self::NodeResourcesBalancedAllocation
                | Self::ImageLocality
        )
    }

    pub(crate) fn plugin(self) -> &'static dyn Plugin {
        plugins::get(self)
    }

    fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
    }
}

/// A set of plugins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginSet(u32);

impl PluginSet {
    /// None.
    pub const EMPTY: Self = Self(0);

    /// Adds one.
    pub fn insert(&mut self, plugin: PluginId) {
        self.0 |= 1 << plugin as u32;
    }

    /// Adds one, if there is one.
    pub fn extend_with(&mut self, plugin: Option<PluginId>) {
        plugin.into_iter().for_each(|plugin| self.insert(plugin));
    }

    /// Is it in?
    pub const fn contains(self, plugin: PluginId) -> bool {
        self.0 & (1 << plugin as u32) != 0
    }

    /// Is there none?
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Is anything in both?
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// These.
    pub const fn of(plugins: &[PluginId]) -> Self {
        let (mut set, mut at) = (0, 0);
        while at < plugins.len() {
            set |= 1 << plugins[at] as u32;
            at += 1;
        }
        Self(set)
    }

    /// Everything in either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Each, in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = PluginId> {
        PluginId::ALL.iter().copied().filter(move |plugin| self.contains(*plugin))
    }
}

impl FromIterator<PluginId> for PluginSet {
    fn from_iter<I: IntoIterator<Item = PluginId>>(plugins: I) -> Self {
        let mut set = Self::EMPTY;
        plugins.into_iter().for_each(|plugin| set.insert(plugin));
        set
    }
}

/// Why a node is out: a plugin, a bit per reason of its own, and whether preemption could change that. Zero: it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rejection(pub(crate) u32);

impl Rejection {
    /// The node passes.
    pub const NONE: Self = Self(0);
    const UNRESOLVABLE: u32 = 1 << 26;
    const REASONS: u32 = Self::UNRESOLVABLE - 1;

    /// `Unschedulable`: other pods are in the way.
    pub const fn resolvable(by: PluginId, reasons: u32) -> Self {
        Self((by as u32) << 27 | (reasons & Self::REASONS))
    }

    /// `UnschedulableAndUnresolvable`: no pod's going would help.
    pub const fn unresolvable(by: PluginId, reasons: u32) -> Self {
        Self(Self::resolvable(by, reasons).0 | Self::UNRESOLVABLE)
    }

    /// Does the node pass?
    pub const fn passes(self) -> bool {
        self.0 == 0
    }

    /// Could preemption help?
    pub const fn is_resolvable(self) -> bool {
        self.0 != 0 && self.0 & Self::UNRESOLVABLE == 0
    }

    /// Who keeps the pod off.
    pub fn plugin(self) -> Option<PluginId> {
        PluginId::from_number(self.0 >> 27)
    }

    /// The plugin's own bits.
    pub const fn reasons(self) -> u32 {
        self.0 & Self::REASONS
    }
}

/// What PreFilter says of the pod as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PreFilter {
    /// Ask the filter about every node.
    Run,
    /// The filter has nothing to say in this cycle.
    Skip,
    /// Only these nodes, sorted by name, are worth asking about.
    Only(Vec<NodeId>),
    /// No node fits, with this message.
    Reject(String),
}

/// A plugin's extension points. What it does not implement passes.
pub(crate) trait Plugin: Sync {
    /// Looks at the pod once, before any node.
    fn pre_filter(&self, _cx: &Cx<'_>, _caches: &mut Caches, _state: &mut CycleState) -> PreFilter {
        PreFilter::Run
    }

    /// May the pod go onto this node?
    fn filter(&self, _cx: &Cx<'_>, _caches: &Caches, _state: &CycleState, _node: NodeId) -> Rejection {
        Rejection::NONE
    }

    /// As if `by` more pods of this class were on the node. The caller has counted them on the node already.
    fn pod_changed(&self, _cx: &Cx<'_>, _state: &mut CycleState, _class: ClassId, _node: NodeId, _by: i64) {}

    /// Prepares scoring these nodes; `false`: nothing to score.
    fn pre_score(&self, _cx: &Cx<'_>, _caches: &mut Caches, _state: &mut CycleState, _nodes: &[NodeId]) -> bool {
        true
    }

    /// Scores the nodes, normalised to 0…100.
    fn score(&self, _cx: &Cx<'_>, _caches: &Caches, _state: &CycleState, _nodes: &[NodeId], _scores: &mut [i64]) {}

    /// What an event is worth to a pod that this plugin rejected.
    fn hint(&self, _cx: &HintCx<'_>, _event: &Event) -> Hint {
        Hint::Skip
    }

    /// Its reasons, with kube-scheduler's messages.
    fn describe(&self, _class: &PodClass, _reasons: u32, _say: &mut dyn FnMut(&str)) {}
}
