//! Remembers pods that did not fit, so that the next pod of the class is not compared with every node.
//!
//! A waiting pod is retried whenever something may have helped it, and usually that helped another pod. A class's
//! failure stands until something changes that it was derived from: the order of nodes, nominations, namespace labels,
//! the local filters' results for each node (a cached [column](super::column)), and the pods that its own affinity and
//! hard spread constraints count or that repel it. Until then its next pod fails with the same message, and no node is
//! visited.
//!
//! Where only the local filters' results have changed and still reject every node, the column's tally is the new
//! diagnosis ([`Found::Nowhere`](super::search::Found::Nowhere)).
//!
//! Never remembered: failures of pods with claims, whose names come from the pod, and of nominated pods. A failure in
//! which preemption searched for victims stands only until the next change of any kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::column::Verdicts;
use super::diagnosis::Diagnosis;
use super::local::Local;
use super::scheduler::{Attempt, Scheduler};
use crate::Cluster;
use crate::class::PodClass;
use crate::cluster::Freed;
use crate::cluster::log::Change;
use crate::counters::{is_matched_by, matches_other};
use crate::ids::{ClassId, PodId};
use crate::plugins::pod_topology_spread::Constraints;

/// Classes that are kept: at about half a kilobyte each, 8 MB.
const MAX_KEPT: usize = 16_384;

/// The failures of classes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures {
    kept: BTreeMap<ClassId, Failure>,
}

/// How the last pod of a class failed, and what that came from.
#[derive(Clone, Debug)]
struct Failure {
    diagnosis: Arc<Diagnosis>,
    /// How far on the next search starts after it; `None`: PreFilter said no, and there was no search.
    advance: Option<usize>,
    /// Preemption looked for victims and found none that help.
    tried_victims: bool,
    /// How far the log of changes was read.
    cursor: u64,
    order: u64,
    nominations: u64,
    namespaces: u64,
    /// Of Services and controllers, which the constraints may come from.
    selectors: (u64, u64),
    constraints: Arc<Constraints>,
    /// `None`: no column is kept.
    verdicts: Option<Verdicts>,
}

impl Failures {
    /// Did the class's last pod fail?
    pub(super) fn knows(&self, class: ClassId) -> bool {
        self.kept.contains_key(&class)
    }

    /// Classes were freed.
    pub(super) fn forget_freed(&mut self, freed: &Freed) {
        self.kept.retain(|class, _| !freed.contains(*class));
    }

    /// How many are kept.
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// A pod of the class was placed, or may be.
    pub(super) fn forget(&mut self, class: ClassId) {
        if !self.kept.is_empty() {
            self.kept.remove(&class);
        }
    }
}

/// Is the failure about the pod itself rather than about its class?
fn is_its_own(cluster: &Cluster, attempt: &Attempt) -> bool {
    !attempt.class.claims.is_empty() || is_nominated(cluster, attempt.pod)
}

fn is_nominated(cluster: &Cluster, pod: PodId) -> bool {
    cluster.pod(pod).nominated.is_some() || cluster.nomination(pod).is_some()
}

/// How often Services and controllers changed.
fn selectors(cluster: &Cluster) -> (u64, u64) {
    (cluster.objects.services_version, cluster.objects.owners_version)
}

/// Does it matter to a pod of our class that one of another class comes or goes somewhere, apart from the room it takes?
fn matters(cluster: &Cluster, ours: &PodClass, constraints: &Constraints, other: &PodClass) -> bool {
    let own = ours.affinity.required.iter().chain(&ours.affinity.required_anti);
    let counted =
        |selector: &sk_core::LabelSelector| other.namespace == ours.namespace && selector.matches(&other.labels);
    constraints.hard.iter().any(|keyed| counted(&keyed.constraint.selector))
        || own.into_iter().any(|term| matches_other(cluster, term, other))
        || other.affinity.required_anti.iter().any(|term| is_matched_by(cluster, term, ours))
}

impl Failure {
    /// Is everything of the kind that it counts as it was?
    fn is_of(&self, cluster: &Cluster) -> bool {
        self.order == cluster.order.version()
            && self.nominations == cluster.nominations.version
            && self.namespaces == cluster.objects.namespaces_version
    }
}

impl Scheduler {
    /// How the pod fails, if a pod of its class failed and nothing at all was changed since: most tries of a crowd that waits
    /// come to this.
    pub(super) fn same_failure(&mut self, pod: PodId) -> Option<Arc<Diagnosis>> {
        let cluster = &self.cluster;
        let known = self.failures.kept.get(&cluster.pod(pod).class)?;
        let same = known.cursor == cluster.log.end() && known.is_of(cluster) && known.selectors == selectors(cluster);
        if !same || is_nominated(cluster, pod) {
            return None;
        }
        let (diagnosis, advance) = (Arc::clone(&known.diagnosis), known.advance);
        advance.into_iter().for_each(|nodes| self.advance(nodes));
        Some(diagnosis)
    }

    /// How the pod fails, if its class failed before and nothing that matters to it has changed since.
    pub(super) fn known_failure(&mut self, attempt: &Attempt) -> Option<Arc<Diagnosis>> {
        let known = self.failures.kept.get(&attempt.class_id)?;
        let cluster = &self.cluster;
        if !known.is_of(cluster) || is_its_own(cluster, attempt) || !self.stands(attempt) {
            return None;
        }
        let known = self.failures.kept.get_mut(&attempt.class_id)?;
        (known.cursor, known.selectors) = (self.cluster.log.end(), selectors(&self.cluster));
        let (diagnosis, advance) = (Arc::clone(&known.diagnosis), known.advance);
        advance.into_iter().for_each(|nodes| self.advance(nodes));
        Some(diagnosis)
    }

    /// Does the failure survive what was logged since, and what Services and controllers say of spreading?
    fn stands(&mut self, attempt: &Attempt) -> bool {
        let Self { cluster, columns, caches, failures, .. } = self;
        let Some(known) = failures.kept.get(&attempt.class_id) else { return false };
        let constraints = caches.spread.constraints(&attempt.cx(cluster));
        if !Arc::ptr_eq(&constraints, &known.constraints) && constraints.hard != known.constraints.hard {
            return false;
        }
        let Some(changes) = cluster.log.since(known.cursor) else { return false };
        if changes.is_empty() {
            return true;
        }
        if known.tried_victims || known.verdicts.is_none() || changes.len() > 2 * cluster.order.walk().len() {
            return false;
        }
        if known.diagnosis.is_resolvable() && has_victims(cluster, attempt) {
            return false;
        }
        let mut last = None;
        for change in changes {
            match change {
                Change::Node { .. } => return false,
                // Filters see a node together with the pods that are nominated for it.
                Change::Pod { node, .. } if cluster.nominations.by_node.contains_key(node) => return false,
                Change::Pod { class, .. } if last == Some(*class) => {}
                Change::Pod { class, .. } => {
                    if matters(cluster, &attempt.class, &constraints, cluster.class(*class)) {
                        return false;
                    }
                    last = Some(*class);
                }
            }
        }
        let shape = cluster.classes.shape_of(attempt.class_id);
        if columns.kept(shape, attempt.profile.number).is_none() {
            return false;
        }
        let local = Local::new(cluster, &attempt.profile, &attempt.shape);
        Some(columns.get(cluster, shape, attempt.profile.number, &local).verdicts()) == known.verdicts
    }

    /// Remembers how the pod failed, after a search that began at `start`. Words that are the same are kept once.
    pub(super) fn remember(&mut self, attempt: &Attempt, diagnosis: Diagnosis, start: usize) -> Arc<Diagnosis> {
        let Self { cluster, columns, caches, failures, .. } = self;
        if is_its_own(cluster, attempt) {
            return Arc::new(diagnosis);
        }
        let nodes = cluster.order.walk().len();
        let known = failures.kept.remove(&attempt.class_id).filter(|known| *known.diagnosis == diagnosis);
        let tried_victims = diagnosis.is_resolvable() && has_victims(cluster, attempt);
        let searched = diagnosis.pre_filter.is_none();
        let diagnosis = known.map_or_else(|| Arc::new(diagnosis), |known| known.diagnosis);
        if failures.kept.len() >= MAX_KEPT {
            failures.kept.clear();
        }
        let shape = cluster.classes.shape_of(attempt.class_id);
        let failure = Failure {
            diagnosis: Arc::clone(&diagnosis),
            advance: searched.then_some((self.next_start + nodes - start % nodes) % nodes),
            tried_victims,
            cursor: cluster.log.end(),
            order: cluster.order.version(),
            nominations: cluster.nominations.version,
            namespaces: cluster.objects.namespaces_version,
            selectors: selectors(cluster),
            constraints: caches.spread.constraints(&attempt.cx(cluster)),
            verdicts: columns.verdicts(cluster, shape, attempt.profile.number),
        };
        failures.kept.insert(attempt.class_id, failure);
        diagnosis
    }
}

/// Is there a pod on a node that this pod may preempt?
pub(super) fn has_victims(cluster: &Cluster, attempt: &Attempt) -> bool {
    let lower = cluster.pods.lowest_priority().is_some_and(|lowest| lowest < attempt.class.priority);
    lower && !attempt.class.never_preempts
}
