//! Where the real autoscaler was random or its rig shows, and what is therefore allowed; and what is known to differ.
//!
//! Both lists may only shrink. Each entry names the sentence of the recordings' README that allows it.

use crate::player::Rig;

/// What may differ in one scenario.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowed {
    pub(crate) why: &'static str,
    /// The seed that gives what was seen; 0: chance has no part in it.
    pub(crate) seed: u64,
    /// The latencies of the rig that give what was seen.
    pub(crate) rig: Rig,
    /// Groups that are a tie: compared together.
    ties: Vec<&'static str>,
    /// Compared until then.
    pub(crate) until: Option<f64>,
    /// The scale-ups may be others, as long as the sizes are right.
    pub(crate) any_plans: bool,
    /// Times may differ by so many seconds, and not by the usual scan interval.
    pub(crate) within: Option<f64>,
    /// Compared more closely than must be.
    pub(crate) tight: bool,
    /// Counts of nodes may differ by so many.
    nodes: i64,
}

impl Allowed {
    /// Lots were drawn: some seed must give what was seen.
    fn drawn(why: &'static str, seed: u64) -> Self {
        Self { why, seed, ..Self::default() }
    }

    /// Groups that are a tie in every decision.
    fn tie(why: &'static str, groups: &[&'static str]) -> Self {
        Self { why, ties: groups.to_vec(), ..Self::default() }
    }

    /// Some nodes were late.
    fn with_late_nodes(mut self) -> Self {
        self.rig.ready_ms = 500;
        self
    }

    /// Only what happened before that is compared.
    pub(crate) fn until(mut self, secs: f64) -> Self {
        self.until = Some(secs);
        self
    }

    /// The autoscaler's list of pods was so far behind the watch that starts its loops at most, or so much ahead.
    fn with_list_lag(mut self, millis: i64) -> Self {
        self.rig.list_ms = millis;
        self
    }

    /// The same sizes may come about in other steps, at most so many seconds earlier or later.
    fn in_other_steps(mut self, within: Option<f64>) -> Self {
        (self.any_plans, self.within) = (true, within);
        self
    }

    /// So many nodes more or fewer.
    fn nodes(mut self, slack: i64) -> Self {
        self.nodes = slack;
        self
    }

    /// The same, compared more closely.
    pub(crate) fn tightly(&self) -> Self {
        Self { tight: true, ..self.clone() }
    }

    /// What a group is compared as.
    pub(crate) fn name_of(&self, group: &str) -> String {
        if self.ties.contains(&group) { self.ties.join(" or ") } else { group.to_owned() }
    }

    /// A plan to compare: of groups that are a tie only by how many nodes they grow.
    pub(crate) fn plan(&self, plan: &[(String, usize, usize)]) -> Vec<(String, usize, usize)> {
        let tied = |group: &str| self.ties.contains(&group);
        let shape = |(group, from, to): &(String, usize, usize)| match tied(group) {
            true => (self.name_of(group), 0, to - from),
            false => (group.clone(), *from, *to),
        };
        let mut plan: Vec<_> = plan.iter().map(shape).collect();
        plan.sort();
        plan
    }

    /// Does an event say a plan, or that a node goes, which need not be the same?
    pub(crate) fn is_any(&self, reason: &str) -> bool {
        let grows = ["TriggeredScaleUp", "ScaledUpGroup"].contains(&reason);
        let shrinks = ["ScaleDown", "ScaleDownEmpty"].contains(&reason);
        (grows && (self.any_plans || !self.ties.is_empty())) || (shrinks && self.nodes > 0)
    }

    pub(crate) fn slack(&self, what: &str) -> i64 {
        if ["nodes", "ready", "soft-tainted", "to be deleted", "cordoned"].contains(&what) { self.nodes } else { 0 }
    }
}

const TIES: &str = "ties fall either way";
const PACKING: &str = "mixed sizes: the new packing differs from loop to loop";
const PACKING_AND_FAULT: &str = "mixed sizes: the new packing differs from loop to loop; compared until 47 s, because m-10 never became ready, a fault of the rig";
const ORDER: &str = "candidate order is not by utilisation nor age";
const WHO: &str = "pods are packed anew each time: which of equal ones is left over, and so told, is chance";
const TIES_AND_WHO: &str =
    "ties fall either way, and pods are packed anew each time: which of equal ones is told is chance";
const WHO_AND_FAULT: &str = "pods are packed anew each time: which of equal ones is told is chance; the machine was busy: the loop read the list of pods 15 ms \
     after the watch that started it; compared until 59 s, because m-7 never became ready, a fault of the rig";
const BUSY: &str = "the machine was busy: the list of pods that a loop read was up to 50 ms behind the watch that started it, so two loops a tenth of a \
     second apart helped one pod each";
const TRICKLE: &str = "a trickle is helped after 2-3 s, by whole seconds of a clock whose phase was not recorded, and packed anew each time: the same sizes \
     in other steps, within 1.5 s";

/// What is allowed in a scenario; `None`: nothing.
pub(crate) fn of(scenario: &str) -> Option<Allowed> {
    let allowed = match scenario {
        "b-least-waste-equal-groups" => Allowed::drawn(TIES, 409),
        "b-random-equal-groups" => Allowed::drawn(TIES, 106),
        "b-least-waste-small-capped" => Allowed::drawn(WHO, 2),
        "b-most-pods-small-big" => Allowed::drawn(TIES, 8),
        "c1-binpack-mixed" => Allowed::drawn(PACKING_AND_FAULT, 217).until(47.0),
        "c10-one-size-slow-nodes" => Allowed::drawn(WHO_AND_FAULT, 3).with_list_lag(-15).until(59.0),
        // Where the pods then went is the scheduler's: the further node, which was ready last, ended empty.
        "c11-mixed-from-zero-1" | "c11-mixed-from-zero-3" => Allowed::drawn(PACKING, 6).with_late_nodes(),
        "c5-two-groups-needed" => Allowed::drawn(TIES, 4),
        "c7-max-nodes-per-scaleup" => Allowed::drawn(WHO, 2),
        "c9-binpack-old-node" => Allowed::drawn(PACKING, 10).with_late_nodes(),
        "d3-order-drain1" => Allowed::drawn(ORDER, 5),
        "d4-drain3" => Allowed::drawn(ORDER, 14),
        "e1-blockers" => Allowed::drawn(ORDER, 3),
        "e2-blockers-skip-off" => Allowed::drawn(ORDER, 18),
        "f5-scan-20s" => Allowed::drawn(BUSY, 11).with_list_lag(50),
        "f7-trickle" => Allowed::drawn(TRICKLE, 3).in_other_steps(Some(1.5)),
        "g1-taints-labels" => Allowed::drawn(TIES, 5),
        "g2-spread-zones-balance-false" | "g2-spread-zones-balance-ignore-label" => Allowed::drawn(TIES, 8),
        "g2-spread-zones-balance-true" => {
            let why = "the provider's target size lags: 7 nodes instead of 6";
            Allowed::tie(why, &["za", "zb", "zc"]).in_other_steps(None).nodes(1)
        }
        "g3-nospread-balance-ignore-label" => Allowed::drawn(TIES, 3),
        "g3-nospread-balance-true" => Allowed::drawn(TIES, 4),
        "g6-spread-zones-one-each-balance-false" => Allowed::drawn(TIES_AND_WHO, 110),
        "g6-spread-zones-one-each-balance-ignore-label" => Allowed::drawn(TIES_AND_WHO, 20),
        "g6-spread-zones-one-each-balance-true" => Allowed::drawn(TIES_AND_WHO, 869),
        "k1-daemonset-in-template" => Allowed::drawn(PACKING, 3),
        _ => return None,
    };
    Some(allowed)
}

/// Scenarios that are known to differ, until when they do not, and why.
pub(crate) const DIFFERENT: &[(&str, f64, &str)] = &[];
