//! Cached results of the local filters and scores for every node, for shapes that recur.
//!
//! A column is indexed by the node's position in the search order and recomputed only for nodes that changed. A shape
//! gets a column when it is seen for the second time; before that, a search evaluates the nodes that it visits. So a
//! workload of one-off pods pays for no columns, and one of Deployments pays for each node once per change.
//!
//! A column also counts its rejections, so the reason why a pod fits nowhere is known without visiting the nodes.
//!
//! Bounded by [`MAX_BYTES`]; the least recently used column is dropped first.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::local::{Local, Plain};
use super::plugin::Rejection;
use crate::Cluster;
use crate::cluster::Freed;
use crate::ids::{NodeId, ShapeId};

/// 64 MiB: 900 shapes on 5,000 nodes at [`BYTES_PER_NODE`].
const MAX_BYTES: usize = 64 << 20;
/// A rejection, a score, taints, a preference and a bit.
const BYTES_PER_NODE: usize = 4 + 4 + 2 + 4 + 1;

/// What is kept of one shape under one profile.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    walk: Arc<Vec<NodeId>>,
    version: u64,
    cursor: u64,
    used: u64,
    /// How many nodes were looked at one by one since it was last up to date, because it was too far behind.
    forgone: u64,
    /// Why a node is out.
    pub(crate) rejections: Vec<Rejection>,
    /// The weighted local scores; −1 where the node is out.
    pub(crate) scores: Vec<i32>,
    /// Soft taints that are not tolerated.
    pub(crate) disliked: Vec<u16>,
    /// Weights of preferred node affinity.
    pub(crate) preferences: Vec<i32>,
    /// A bit per node that is not out.
    pub(crate) feasible: Vec<u64>,
    /// How many are not.
    pub(crate) feasible_count: usize,
    /// How many nodes have a soft taint or a preference: if none has, nothing needs to be normalised.
    uneven: usize,
    /// How many nodes are out for what.
    pub(crate) tally: BTreeMap<Rejection, usize>,
    verdicts: Verdicts,
}

/// Changes whenever a column comes to say something else of a node than before (scores apart).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdicts {
    /// Which column: one that was given up and made again is another.
    column: u64,
    changes: u64,
}

/// All columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns {
    kept: BTreeMap<(ShapeId, usize), Column>,
    seen: Vec<bool>,
    used: u64,
    /// How many nodes were looked at to make and renew columns.
    pub(crate) looks: u64,
}

impl Columns {
    /// Has the shape been seen before? Then it is worth a column.
    pub(crate) fn is_worth_keeping(&mut self, shape: ShapeId) -> bool {
        if self.seen.len() <= shape.index() {
            self.seen.resize(shape.index() + 1, false);
        }
        std::mem::replace(&mut self.seen[shape.index()], true)
    }

    /// Is it time to use the column of a shape, rather than to look at about `wanted` nodes? One that is far behind is left
    /// there until looking at nodes has cost as much as bringing it up to date would have: a shape that comes once in a while
    /// then never costs more than twice the cheaper way, and a Deployment that comes after many others has its column
    /// after a few pods.
    pub(crate) fn is_worth_using(&mut self, cluster: &Cluster, shape: ShapeId, profile: usize, wanted: u64) -> bool {
        let Some(column) = self.kept.get_mut(&(shape, profile)) else { return true };
        let lag = (cluster.log.end() - column.cursor).min(cluster.order.walk().len() as u64);
        column.forgone += wanted;
        lag <= column.forgone
    }

    /// The column of a shape, up to date.
    pub(crate) fn get(&mut self, cluster: &Cluster, shape: ShapeId, profile: usize, local: &Local<'_>) -> &Column {
        self.used += 1;
        let key = (shape, profile);
        if !self.kept.contains_key(&key) {
            self.make_room(cluster.order.walk().len());
        }
        let column = self.kept.entry(key).or_insert_with(|| Column::new(self.used));
        column.used = self.used;
        self.looks += column.catch_up(cluster, local) as u64;
        column
    }

    /// Shapes were freed.
    pub(crate) fn forget(&mut self, freed: &Freed) {
        self.kept.retain(|(shape, _), _| !freed.has_shape(*shape));
        let seen = self.seen.iter_mut().enumerate();
        seen.filter(|(shape, _)| freed.has_shape(ShapeId::from_index(*shape))).for_each(|(_, seen)| *seen = false);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// What the column of a shape stands for, if there is one and it is up to date.
    pub(crate) fn verdicts(&self, cluster: &Cluster, shape: ShapeId, profile: usize) -> Option<Verdicts> {
        let column = self.kept(shape, profile)?;
        (column.cursor == cluster.log.end() && column.version == cluster.order.version()).then_some(column.verdicts)
    }

    /// The column of a shape as it was when last asked for.
    pub(crate) fn kept(&self, shape: ShapeId, profile: usize) -> Option<&Column> {
        self.kept.get(&(shape, profile))
    }

    fn make_room(&mut self, nodes: usize) {
        let most = (MAX_BYTES / (BYTES_PER_NODE * nodes.max(1))).max(1);
        while self.kept.len() >= most {
            let oldest = self.kept.iter().min_by_key(|(_, column)| column.used).map(|(key, _)| *key);
            oldest.map(|key| self.kept.remove(&key));
        }
    }
}

impl Column {
    fn new(number: u64) -> Self {
        Self {
            walk: Arc::default(),
            version: u64::MAX,
            cursor: 0,
            used: 0,
            forgone: 0,
            rejections: Vec::new(),
            scores: Vec::new(),
            disliked: Vec::new(),
            preferences: Vec::new(),
            feasible: Vec::new(),
            feasible_count: 0,
            uneven: 0,
            tally: BTreeMap::new(),
            verdicts: Verdicts { column: number, changes: 0 },
        }
    }

    /// Must taints or preferences be normalised over the feasible nodes?
    pub(crate) fn is_even(&self) -> bool {
        self.uneven == 0
    }

    /// What it stands for.
    pub(crate) fn verdicts(&self) -> Verdicts {
        self.verdicts
    }

    /// Makes it anew where nodes have changed; how many were looked at.
    fn catch_up(&mut self, cluster: &Cluster, local: &Local<'_>) -> usize {
        let order = &cluster.order;
        let mut looks = 0;
        if self.version != order.version() {
            // Scores of images depend on how many nodes there are.
            if self.version == u64::MAX || local.scores_images() {
                self.resize(order.walk().len());
                self.make_all(local, order.walk());
                self.cursor = cluster.log.end();
            } else {
                self.move_to(cluster, local);
            }
            looks += order.walk().len();
            (self.walk, self.version) = (Arc::clone(order.walk()), order.version());
        }
        let walk = Arc::clone(order.walk());
        match cluster.log.since(self.cursor) {
            Some(changes) if changes.len() <= walk.len() => {
                looks += changes.len();
                let plain = local.plain();
                for change in changes.iter().filter(|change| change.counts() || local.scores_images()) {
                    if let Some(place) = order.position(change.node()) {
                        self.make(local, plain, place, change.node());
                    }
                }
            }
            _ => {
                looks += walk.len();
                self.make_all(local, &walk);
            }
        }
        self.cursor = cluster.log.end();
        self.forgone = 0;
        looks
    }

    fn resize(&mut self, nodes: usize) {
        self.rejections = vec![Rejection::NONE; nodes];
        self.scores = vec![-1; nodes];
        self.disliked = vec![0; nodes];
        self.preferences = vec![0; nodes];
        self.feasible = vec![0; nodes.div_ceil(64)];
        (self.feasible_count, self.uneven) = (0, 0);
        self.tally.clear();
        self.verdicts.changes += 1;
    }

    /// Takes what is known of nodes over to a new order; nodes that are new to it are looked at.
    fn move_to(&mut self, cluster: &Cluster, local: &Local<'_>) {
        let verdicts = self.verdicts;
        let mut old = Self { walk: Arc::clone(&self.walk), verdicts, ..Self::new(0) };
        std::mem::swap(&mut old, self);
        let mut places = vec![u32::MAX; cluster.columns.len()];
        old.walk.iter().enumerate().for_each(|(place, node)| places[node.index()] = place as u32);
        self.resize(cluster.order.walk().len());
        (self.cursor, self.used) = (old.cursor, old.used);
        for (place, node) in cluster.order.walk().iter().enumerate() {
            match places[node.index()] {
                u32::MAX => self.make(local, None, place, *node),
                from => self.set(place, old.entry(from as usize)),
            }
        }
    }

    fn entry(&self, place: usize) -> Entry {
        Entry {
            rejection: self.rejections[place],
            score: self.scores[place],
            disliked: self.disliked[place],
            preference: self.preferences[place],
        }
    }

    fn make_all(&mut self, local: &Local<'_>, walk: &[NodeId]) {
        let plain = local.plain();
        walk.iter().enumerate().for_each(|(place, node)| self.make(local, plain, place, *node));
    }

    /// Looks at one node, for a plain pod by its numbers alone.
    #[inline]
    fn make(&mut self, local: &Local<'_>, plain: Option<Plain>, place: usize, node: NodeId) {
        match plain.and_then(|plain| plain.score(local.numbers(node))) {
            Some(score) => self.set_plain(place, score),
            None => self.make_fully(local, place, node),
        }
    }

    #[inline]
    fn set_plain(&mut self, place: usize, score: i64) {
        let score = i32::try_from(score).unwrap_or(i32::MAX);
        if self.uneven == 0 && self.scores[place] >= 0 {
            self.scores[place] = score;
            return;
        }
        self.set(place, Entry { rejection: Rejection::NONE, score, disliked: 0, preference: 0 });
    }

    fn make_fully(&mut self, local: &Local<'_>, place: usize, node: NodeId) {
        let rejection = local.filter(node.index());
        let narrow = |wide: i64| i32::try_from(wide).unwrap_or(i32::MAX);
        let score = if rejection.passes() { narrow(local.score(node.index())) } else { -1 };
        let disliked = if local.scores_taints { local.disliked(node.index()) } else { 0 };
        let preference = if local.scores_affinity { narrow(local.preference(node.index())) } else { 0 };
        self.set(place, Entry { rejection, score, disliked, preference });
    }

    fn set(&mut self, place: usize, entry: Entry) {
        let (word, bit) = (place / 64, 1 << (place % 64));
        self.feasible_count -= usize::from(self.feasible[word] & bit != 0);
        self.uneven -= usize::from(self.disliked[place] != 0 || self.preferences[place] != 0);
        self.feasible[word] &= !bit;
        if entry.rejection.passes() {
            self.feasible[word] |= bit;
            self.feasible_count += 1;
        }
        self.uneven += usize::from(entry.disliked != 0 || entry.preference != 0);
        let before = std::mem::replace(&mut self.rejections[place], entry.rejection);
        if before != entry.rejection {
            self.verdicts.changes += 1;
            count(&mut self.tally, before, entry.rejection);
        }
        self.scores[place] = entry.score;
        self.disliked[place] = entry.disliked;
        self.preferences[place] = entry.preference;
    }
}

/// One node is no longer out for one reason but for another; [`Rejection::NONE`]: it is not out.
pub(super) fn count(tally: &mut BTreeMap<Rejection, usize>, before: Rejection, after: Rejection) {
    if !before.passes()
        && let Some(count) = tally.get_mut(&before)
    {
        *count -= 1;
        if *count == 0 {
            tally.remove(&before);
        }
    }
    if !after.passes() {
        *tally.entry(after).or_insert(0) += 1;
    }
}

#[derive(Clone, Copy)]
struct Entry {
    rejection: Rejection,
    score: i32,
    disliked: u16,
    preference: i32,
}
