//! Why a pod cannot be scheduled, with kube-scheduler's messages (`framework/types.go`, `FitError.Error`).
//!
//! The cycle keeps codes and counts; the message is made when it is read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use super::plugin::{PluginId, PluginSet, Rejection};
use crate::class::PodClass;

/// Why no node will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// The pod's class.
    pub(crate) class: Arc<PodClass>,
    /// How many nodes there are; 0: the cycle ended before it looked at any.
    pub(crate) nodes: usize,
    /// How many nodes were rejected for what.
    pub(crate) rejections: BTreeMap<Rejection, usize>,
    /// PreFilter rejected all nodes.
    pub(crate) pre_filter: Option<String>,
    /// Nodes that were not looked at, because these plugins named the only ones worth it.
    pub(crate) named_by: PluginSet,
    /// Who rejected: what may help later.
    pub(crate) plugins: PluginSet,
    /// The messages of PostFilter plugins, in their order.
    pub(crate) post_filter: Vec<PostFilter>,
    sentence: Sentence,
}

/// The message, once it was read. It follows from the rest and plays no part in comparisons.
#[derive(Clone, Debug, Default)]
struct Sentence(OnceLock<Box<str>>);

impl PartialEq for Sentence {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Sentence {}

/// The message of a PostFilter plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PostFilter {
    /// DynamicResources, of a pod without claims.
    NoClaims,
    /// DynamicResources, of a pod that another plugin's PreFilter rejected before its own ran: it does not find its state,
    /// and that error ends PostFilter.
    NoState,
    /// DefaultPreemption: the pod may not preempt, for this reason.
    NotEligible(&'static str),
    /// DefaultPreemption: no node has victims that would help.
    NoVictims {
        nodes: usize,
        /// Nodes that were tried and what still kept the pod off; [`Rejection::NONE`]: there was no victim.
        tried: BTreeMap<Rejection, usize>,
    },
}

impl Diagnosis {
    pub(crate) fn new(class: Arc<PodClass>, nodes: usize) -> Self {
        Self {
            class,
            nodes,
            rejections: BTreeMap::new(),
            pre_filter: None,
            named_by: PluginSet::EMPTY,
            plugins: PluginSet::EMPTY,
            post_filter: Vec::new(),
            sentence: Sentence::default(),
        }
    }

    pub(crate) fn reject(&mut self, rejection: Rejection) {
        *self.rejections.entry(rejection).or_insert(0) += 1;
        if let Some(plugin) = rejection.plugin() {
            self.plugins.insert(plugin);
        }
    }

    /// Could preemption change anything about any node?
    pub(crate) fn is_resolvable(&self) -> bool {
        self.rejections.keys().any(|rejection| rejection.is_resolvable())
    }

    /// So many nodes were rejected for what.
    pub(crate) fn reject_all(&mut self, rejections: BTreeMap<Rejection, usize>) {
        rejections.keys().for_each(|rejection| self.plugins.extend_with(rejection.plugin()));
        self.rejections = rejections;
    }

    /// Who rejected the pod: an event is worth another try only if it helps one of these. Empty: any event is.
    pub fn plugins(&self) -> PluginSet {
        self.plugins
    }

    /// The message of the pod's `PodScheduled` condition, made when it is first asked for.
    pub fn message(&self) -> &str {
        self.sentence.0.get_or_init(|| self.to_string().into())
    }

    /// Does a nominated pod that failed so stay nominated? It does when DefaultPreemption had no say: the pod may not
    /// preempt, or PostFilter ended before (`schedule_one.go`, `NominatingInfo`).
    pub fn keeps_nomination(&self) -> bool {
        self.post_filter.iter().any(|said| matches!(said, PostFilter::NotEligible(_) | PostFilter::NoState))
    }

    /// How many nodes each plugin rejected, with its message.
    pub fn reasons(&self) -> Vec<(PluginId, String, usize)> {
        let mut reasons: BTreeMap<(PluginId, String), usize> = BTreeMap::new();
        for (rejection, count) in &self.rejections {
            let Some(plugin) = rejection.plugin() else { continue };
            plugin.plugin().describe(&self.class, rejection.reasons(), &mut |reason| {
                *reasons.entry((plugin, reason.to_owned())).or_insert(0) += count;
            });
        }
        reasons.into_iter().map(|((plugin, reason), count)| (plugin, reason, count)).collect()
    }

    fn histogram(&self, rejections: &BTreeMap<Rejection, usize>, absent: Option<(String, usize)>) -> String {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (rejection, count) in rejections {
            match rejection.plugin() {
                None => *counts.entry("No preemption victims found for incoming pod".to_owned()).or_insert(0) += count,
                Some(plugin) => plugin.plugin().describe(&self.class, rejection.reasons(), &mut |reason| {
                    *counts.entry(reason.to_owned()).or_insert(0) += count;
                }),
            }
        }
        if let Some((reason, count)) = absent.filter(|(_, count)| *count > 0) {
            *counts.entry(reason).or_insert(0) += count;
        }
        let mut parts: Vec<String> = counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        parts.sort_unstable();
        parts.join(", ")
    }
}

impl fmt::Display for PluginSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<&str> = self.iter().map(PluginId::name).collect();
        names.sort_unstable();
        write!(f, "[{}]", names.join(" "))
    }
}

impl fmt::Display for Diagnosis {
    /// The message of the pod's `PodScheduled` condition.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nodes == 0 {
            return f.write_str("no nodes available to schedule pods");
        }
        write!(f, "0/{} nodes are available:", self.nodes)?;
        match &self.pre_filter {
            Some(message) => write!(f, " {message}.")?,
            None => {
                let looked_at: usize = self.rejections.values().sum();
                let absent = (!self.named_by.is_empty())
                    .then(|| (format!("node(s) didn't satisfy plugin(s) {}", self.named_by), self.nodes - looked_at));
                let reasons = self.histogram(&self.rejections, absent);
                if !reasons.is_empty() {
                    write!(f, " {reasons}.")?;
                }
            }
        }
        for (at, said) in self.post_filter.iter().enumerate() {
            f.write_str(if at == 0 { " " } else { ", " })?;
            match said {
                PostFilter::NoClaims => f.write_str("no new claims to deallocate")?,
                PostFilter::NoState => f.write_str("not found")?,
                PostFilter::NotEligible(reason) => write!(f, "preemption: {reason}")?,
                PostFilter::NoVictims { nodes, tried } => {
                    let absent = nodes - tried.values().sum::<usize>();
                    let absent = Some(("Preemption is not helpful for scheduling".to_owned(), absent));
                    let reasons = self.histogram(tried, absent);
                    write!(f, "preemption: 0/{nodes} nodes are available: {reasons}.")?;
                }
            }
        }
        Ok(())
    }
}
