//! Counts pods per topology domain, updated by deltas.
//!
//! Topology spread and pod affinity both need sums over all pods on all nodes. A [`Counter`] keeps one such sum per
//! domain (a zone, a host) or per node. It reads the cluster's log from where it stopped, so a placed pod costs one
//! addition in each counter that matches it, when the counter is next read. A pod's weight in a counter depends on its
//! class alone and is computed once per class. A counter that was not read for long reads only the changes of the
//! classes that it matches: among a thousand Deployments those of one. A selector on a label value finds these classes
//! without visiting the others.
//!
//! Bounded: above [`MAX_BYTES`] the least recently read counter is dropped and rebuilt when it is read again. When
//! classes are freed, so are the counters that count nothing without them ([`Counters::forget`]).

mod weigh;

use sk_core::SmolStr;
use sk_core::lookup::{Lookup, hash_of};

pub(crate) use self::weigh::{What, is_matched_by, matches_other, weigh};
use super::Cluster;
use super::cluster::Freed;
use super::cluster::log::Change;
use super::cluster::topology::NO_VALUE;
use super::ids::{ClassId, KeyId, NodeId};

/// 64 MiB: 1,600 counters of 5,000 hosts at 8 bytes each.
const MAX_BYTES: usize = 64 << 20;
/// The class has not been weighed yet.
const UNKNOWN: i32 = i32::MIN;

/// What is counted, and by which label; `None`: per node.
type Key = (What, Option<KeyId>);

/// Where a counter stands among the others. Good for the cycle: the counters asked for last are the last to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CounterId(usize);

#[derive(Clone, Debug)]
struct Counter {
    key: Key,
    counts: Vec<i64>,
    /// The sum of all counts.
    total: i64,
    /// The highest that any count was since all were counted.
    highest: i64,
    cursor: u64,
    topology_version: u64,
    namespaces_version: u64,
    /// The places of the classes that are worth something, among the first [`Self::sorted`] of all, in order, and how much.
    cares: Vec<(u32, i32)>,
    /// So many classes are known to be in [`Self::cares`] or not to be.
    sorted: usize,
    /// What the classes after those are worth, where that was asked.
    weights: Vec<i32>,
    asked: u64,
}

/// All counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    counters: Vec<Counter>,
    ids: Lookup<u32>,
    asked: u64,
    bytes: usize,
}

impl Counters {
    /// The counter of `what` by `key`, up to date.
    pub(crate) fn ask(&mut self, cluster: &Cluster, what: &What, key: Option<KeyId>) -> CounterId {
        self.asked += 1;
        let (hash, counters) = (hash_of(&(what, key)), &self.counters);
        let is_it = |id: &u32| counters[*id as usize].key.0 == *what && counters[*id as usize].key.1 == key;
        let id = match self.ids.find(hash, is_it) {
            Some(id) => *id as usize,
            None => self.add((what.clone(), key)),
        };
        let counter = &mut self.counters[id];
        counter.asked = self.asked;
        self.bytes -= counter.bytes();
        counter.catch_up(cluster);
        self.bytes += counter.bytes();
        CounterId(id)
    }

    fn add(&mut self, key: Key) -> usize {
        let hash = hash_of(&key);
        let counter = Counter {
            key,
            counts: Vec::new(),
            total: 0,
            highest: 0,
            cursor: u64::MAX,
            topology_version: 0,
            namespaces_version: 0,
            cares: Vec::new(),
            sorted: 0,
            weights: Vec::new(),
            asked: self.asked,
        };
        let id = if self.bytes > MAX_BYTES {
            let oldest = self.counters.iter().enumerate().min_by_key(|(_, counter)| counter.asked);
            let (id, old) = oldest.expect("counters that take room exist");
            self.bytes -= old.bytes();
            self.ids.remove(hash_of(&old.key), |known| *known as usize == id);
            self.counters[id] = counter;
            id
        } else {
            self.counters.push(counter);
            self.counters.len() - 1
        };
        let (place, counters) = (u32::try_from(id).expect("each takes some of MAX_BYTES"), &self.counters);
        self.ids.insert(hash, place, |id| hash_of(&counters[*id as usize].key));
        id
    }

    /// Reads what is still to be read of changes of these classes, which are about to be freed, and drops the counters
    /// that would be counted anew in any case, that are about one of them, or that count nobody.
    pub(crate) fn forget(&mut self, cluster: &Cluster, freed: &Freed) {
        self.counters.retain_mut(|counter| {
            let stays = counter.key.0.class().is_none_or(|class| !freed.contains(class)) && counter.is_good(cluster);
            if stays {
                counter.catch_up(cluster);
                counter.renumber(freed);
            }
            stays && !(counter.key.0.counts_live_only() && counter.total == 0)
        });
        self.ids.clear();
        let counters = &self.counters;
        for id in 0..counters.len() {
            let place = u32::try_from(id).expect("there were as many before");
            self.ids.insert(hash_of(&counters[id].key), place, |id| hash_of(&counters[*id as usize].key));
        }
        self.bytes = self.counters.iter().map(Counter::bytes).sum();
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.counters.len()
    }

    /// The count of each domain, or of each node.
    pub(crate) fn counts(&self, id: CounterId) -> &[i64] {
        &self.counters[id.0].counts
    }

    /// No count is higher; it may once have been as high.
    pub(crate) fn highest(&self, id: CounterId) -> i64 {
        self.counters[id.0].highest
    }

    /// The sum over all domains.
    pub(crate) fn total(&self, id: CounterId) -> i64 {
        self.counters[id.0].total
    }
}

impl Counter {
    fn bytes(&self) -> usize {
        8 * self.counts.len() + 4 * self.weights.len() + 8 * self.cares.len()
    }

    fn catch_up(&mut self, cluster: &Cluster) {
        let same_namespaces = self.namespaces_version == cluster.objects.namespaces_version;
        if !same_namespaces && self.key.0.looks_at_namespaces() {
            self.weights.clear();
            self.cares.clear();
            self.sorted = 0;
            self.cursor = u64::MAX;
        }
        self.namespaces_version = cluster.objects.namespaces_version;
        self.counts.resize(self.width(cluster), 0);
        if self.key.0.is_by_label() {
            self.sort_classes(cluster);
        }
        match cluster.log.since(self.cursor) {
            Some(changes) if self.topology_version == cluster.topology.version => {
                let unsorted = cluster.classes.len() - self.sorted;
                if changes.len() > 2 * unsorted + self.cares.len() {
                    self.read_classes(cluster);
                } else {
                    changes.iter().for_each(|change| self.take(cluster, *change));
                }
            }
            _ => self.count_anew(cluster),
        }
        self.cursor = cluster.log.end();
    }

    /// Does it go on from where it stopped, rather than count everything anew?
    fn is_good(&self, cluster: &Cluster) -> bool {
        let same_namespaces = self.namespaces_version == cluster.objects.namespaces_version;
        (same_namespaces || !self.key.0.looks_at_namespaces())
            && self.topology_version == cluster.topology.version
            && cluster.log.since(self.cursor).is_some()
    }

    /// Classes are freed, and those that stay get other places.
    fn renumber(&mut self, freed: &Freed) {
        let weights = std::mem::take(&mut self.weights).into_iter().zip(self.sorted..);
        self.weights = weights.filter(|(_, place)| freed.place(*place).is_some()).map(|(weight, _)| weight).collect();
        self.sorted = (0..self.sorted).filter(|place| freed.place(*place).is_some()).count();
        self.cares =
            self.cares.iter().filter_map(|(place, worth)| Some((freed.place(*place as usize)?, *worth))).collect();
    }

    /// Finds out which classes it cares about.
    fn sort_classes(&mut self, cluster: &Cluster) {
        if self.sorted == cluster.classes.len() {
            return;
        }
        let found = match self.key.0.labelled(cluster, self.sorted) {
            Some(classes) => self.worth_something(cluster, classes.into_iter()),
            None => {
                self.worth_something(cluster, (self.sorted..cluster.classes.len()).map(|at| cluster.classes.at(at)))
            }
        };
        self.cares.extend(found);
        self.sorted = cluster.classes.len();
        self.weights = Vec::new();
    }

    fn worth_something(&mut self, cluster: &Cluster, classes: impl Iterator<Item = ClassId>) -> Vec<(u32, i32)> {
        let place = |class: ClassId| cluster.classes.place(class) as u32;
        classes.map(|class| (place(class), self.weight(cluster, class))).filter(|(_, weight)| *weight != 0).collect()
    }

    /// Reads the changes of the classes that it cares about.
    fn read_classes(&mut self, cluster: &Cluster) {
        self.sort_classes(cluster);
        for at in 0..self.cares.len() {
            let class = cluster.classes.at(self.cares[at].0 as usize);
            for change in cluster.log.of_class(class, self.cursor) {
                self.take(cluster, change);
            }
        }
    }

    fn take(&mut self, cluster: &Cluster, change: Change) {
        let Change::Pod { node, class, by, live } = change else { return };
        let by = if self.key.0.counts_live_only() { live } else { by };
        self.add(cluster, node, class, by.into());
    }

    fn width(&self, cluster: &Cluster) -> usize {
        self.key.1.map_or(cluster.columns.len(), |key| cluster.topology.domains(key).len())
    }

    fn count_anew(&mut self, cluster: &Cluster) {
        self.topology_version = cluster.topology.version;
        self.counts.fill(0);
        (self.total, self.highest) = (0, 0);
        // The first pod of a new Deployment: there are no others yet.
        if cluster.classes.len() - self.sorted <= cluster.pods.on_nodes {
            self.sort_classes(cluster);
            let class = |place: u32| cluster.classes.at(place as usize);
            if self.cares.iter().all(|(place, _)| cluster.pods.of_class(class(*place)) == 0) {
                return;
            }
        }
        for node in cluster.order.walk().iter() {
            for pod in cluster.pods_on(*node) {
                let pod = cluster.pod(*pod);
                if !(pod.deleting && self.key.0.counts_live_only()) {
                    self.add(cluster, *node, pod.class, 1);
                }
            }
        }
    }

    fn add(&mut self, cluster: &Cluster, node: NodeId, class: ClassId, by: i64) {
        let weight = self.weight(cluster, class);
        if weight == 0 || by == 0 {
            return;
        }
        let place = match self.key.1 {
            None => node.0,
            Some(key) => cluster.topology.domains(key).of[node.index()],
        };
        if place != NO_VALUE {
            let count = &mut self.counts[place as usize];
            *count += by * i64::from(weight);
            self.highest = self.highest.max(*count);
            self.total += by * i64::from(weight);
        }
    }

    fn weight(&mut self, cluster: &Cluster, class: ClassId) -> i32 {
        let place = cluster.classes.place(class);
        let Some(place) = place.checked_sub(self.sorted) else {
            let found = self.cares.binary_search_by_key(&place, |(place, _)| *place as usize);
            return found.map_or(0, |at| self.cares[at].1);
        };
        if self.weights.len() <= place {
            self.weights.resize(place + 1, UNKNOWN);
        }
        if self.weights[place] == UNKNOWN {
            let key = self.key.1.map(|key| cluster.topology.name(key));
            self.weights[place] = weigh(cluster, &self.key.0, key.map(SmolStr::as_str), class);
        }
        self.weights[place]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use sk_core::LabelSelector;

    use super::*;
    use crate::ids::PodId;
    use crate::{NodeSpec, PodClass};

    /// A cluster of eight nodes, and classes of six applications.
    fn cluster() -> (Cluster, Vec<ClassId>) {
        let mut cluster = Cluster::default();
        for node in 0..8 {
            cluster.set_node(NodeSpec::new(format!("n{node}"), 64_000, 1 << 40, 1_000));
        }
        let class = |app: i32| {
            let metadata = json!({"labels": {"app": app.to_string()}});
            PodClass::from_json("default", &metadata, &json!({"containers": [{"name": "c"}]})).unwrap()
        };
        let classes = (0..6).map(|app| cluster.intern(class(app))).collect();
        cluster.take_snapshot();
        (cluster, classes)
    }

    proptest! {
        /// However long a counter was not asked, it says what one says that counts everything now.
        #[test]
        fn a_counter_that_was_not_asked_for_long_is_as_right_as_a_new_one(
            steps in prop::collection::vec((0_usize..6, 0_usize..8, 0_u8..40), 1..600),
        ) {
            let (mut cluster, classes) = cluster();
            let selector = |text: &str| text.parse::<LabelSelector>().unwrap();
            let wanted: Vec<What> = ["app=1", "app in (2,3)", "app", "app!=4", "app>2,app in (1,4,5)"]
                .map(|text| What::selected("default".into(), selector(text)))
                .to_vec();
            let mut counters = Counters::default();
            let mut there: Vec<PodId> = Vec::new();
            for (number, (class, node, what)) in steps.into_iter().enumerate() {
                match what {
                    0..20 => {
                        let pod = cluster.new_pod(classes[class], format!("p{number}"));
                        cluster.add_pod(pod, NodeId(node as u32));
                        there.push(pod);
                    }
                    20..30 if !there.is_empty() => {
                        let pod = there.swap_remove(node % there.len());
                        cluster.remove_pod(pod);
                    }
                    30..38 if !there.is_empty() => {
                        let pod = there[node % there.len()];
                        cluster.update_pod(pod, |pod| pod.deleting = true);
                    }
                    _ => {
                        let what = &wanted[class % wanted.len()];
                        let mut anew = Counters::default();
                        let (kept, fresh) = (counters.ask(&cluster, what, None), anew.ask(&cluster, what, None));
                        prop_assert_eq!(counters.counts(kept), anew.counts(fresh));
                        prop_assert_eq!(counters.total(kept), anew.total(fresh));
                        prop_assert!(counters.counts(kept).iter().all(|count| *count <= counters.highest(kept)));
                    }
                }
            }
        }
    }
}
