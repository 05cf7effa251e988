//! Node groups that fail to create nodes, and their backoff (`clusterstate/clusterstate.go`,
//! `utils/backoff/exponential_backoff.go`).
//!
//! A group fails when the cloud has no capacity for it ([`ClusterState::stock_out`]), when its node cannot be created, and
//! when nodes are still missing after `max-node-provision-time`. It then backs off for
//! `initial-node-group-backoff-duration`, doubling with each further failure up to `max-node-group-backoff-duration`.
//! A successful scale-up, or `node-group-backoff-reset-timeout` without a failure, resets it. None of this was
//! recorded from the real autoscaler, whose KWOK provider never fails.

use std::collections::{BTreeMap, BTreeSet};

use sk_core::{SimDuration, SimTime, SmolStr};

use super::flags::Autoscaler;

/// What is known of each group, by index.
#[derive(Clone, Debug, Default)]
pub(super) struct ClusterState {
    /// Until when the cloud has no nodes of a group.
    stock_outs: BTreeMap<usize, SimTime>,
    /// Failures that the next loop will notice.
    unnoticed: Vec<Failure>,
    /// Scale-ups whose nodes are awaited.
    requests: BTreeMap<usize, Request>,
    backed_off: BTreeMap<usize, BackOff>,
}

/// Nodes that were asked of a group.
#[derive(Clone, Copy, Debug)]
struct Request {
    at: SimTime,
    nodes: usize,
}

/// A group that is left alone.
#[derive(Clone, Copy, Debug)]
struct BackOff {
    length: SimDuration,
    until: SimTime,
    failed: SimTime,
}

/// A scale-up that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) group: usize,
    pub(super) why: Why,
}

/// Why a scale-up failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The cloud has none of these nodes now.
    StockOut { nodes: usize },
    /// The node was refused.
    Refused(String),
    /// Nodes are awaited for too long.
    TimedOut(SimDuration),
}

impl Why {
    /// The event that cluster-autoscaler writes: its reason and its message.
    pub(super) fn event(&self, group: &SmolStr) -> (&'static str, String) {
        match self {
            Self::StockOut { nodes } => {
                let message = format!(
                    "Failed adding {nodes} nodes to group {group} due to OutOfResource.stockout; source errors: the cloud has \
                     no more nodes of this group"
                );
                ("ScaleUpFailed", message)
            }
            Self::Refused(error) => ("FailedToScaleUpGroup", format!("Scale-up failed for group {group}: {error}")),
            Self::TimedOut(waited) => {
                ("ScaleUpTimedOut", format!("Nodes added to group {group} failed to register within {waited}"))
            }
        }
    }
}

impl ClusterState {
    /// The cloud has no nodes of the group until then. A later word replaces an earlier one.
    pub(super) fn stock_out(&mut self, group: usize, until: SimTime) {
        self.stock_outs.insert(group, until);
    }

    /// Nodes are asked of a group. `false`: the cloud has none, which the next loop will notice.
    pub(super) fn ask(&mut self, group: usize, nodes: usize, now: SimTime) -> bool {
        if self.stock_outs.get(&group).is_some_and(|until| now < *until) {
            self.unnoticed.push(Failure { group, why: Why::StockOut { nodes } });
            return false;
        }
        let awaited = self.requests.get(&group).map_or(0, |request| request.nodes);
        self.requests.insert(group, Request { at: now, nodes: awaited + nodes });
        true
    }

    /// A node of the group could not be made.
    pub(super) fn refused(&mut self, group: usize, error: String) {
        self.unnoticed.push(Failure { group, why: Why::Refused(error) });
    }

    /// A loop begins: what failed since the last, with the groups that are left alone from now on. `awaits` says whether a
    /// group's nodes are still on their way.
    pub(super) fn notice(&mut self, awaits: impl Fn(usize) -> bool, flags: &Autoscaler, now: SimTime) -> Vec<Failure> {
        self.backed_off.retain(|_, back_off| now.since(back_off.failed) <= flags.node_group_backoff_reset_timeout);
        let mut failures = std::mem::take(&mut self.unnoticed);
        let mut ended = Vec::new();
        for (group, request) in &self.requests {
            let waited = now.since(request.at);
            if !awaits(*group) {
                self.backed_off.remove(group);
                ended.push(*group);
            } else if waited > flags.max_node_provision_time {
                failures.push(Failure { group: *group, why: Why::TimedOut(waited) });
                ended.push(*group);
            }
        }
        self.requests.retain(|group, _| !ended.contains(group));
        failures.iter().for_each(|failure| self.back_off(failure.group, flags, now));
        failures
    }

    fn back_off(&mut self, group: usize, flags: &Autoscaler, now: SimTime) {
        let first = flags.initial_node_group_backoff_duration;
        let length = match self.backed_off.get(&group) {
            // Several failures at once are one.
            Some(known) if known.until < now => {
                (known.length + known.length).min(flags.max_node_group_backoff_duration)
            }
            Some(_) | None => first,
        };
        self.backed_off.insert(group, BackOff { length, until: now + length, failed: now });
    }

    /// The groups that are left alone.
    pub(super) fn backed_off(&self, now: SimTime) -> BTreeSet<usize> {
        self.backed_off.iter().filter(|(_, back_off)| back_off.until > now).map(|(group, _)| *group).collect()
    }

    /// When a group is no longer left alone, or a scale-up has failed: what a loop finds is otherwise from then on.
    pub(super) fn next_change(&self, flags: &Autoscaler, now: SimTime) -> Option<SimTime> {
        let reset = flags.node_group_backoff_reset_timeout + SimDuration::from_micros(1);
        let ends = self.backed_off.values().flat_map(|back_off| [back_off.until, back_off.failed + reset]);
        ends.filter(|at| *at > now).chain(self.next_interest(flags, now)).min()
    }

    /// How many nodes of the group's last scale-up are awaited: it is no fault of the group's that they are not there.
    pub(super) fn awaited(&self, group: usize) -> usize {
        self.requests.get(&group).map_or(0, |request| request.nodes)
    }

    /// When a loop has to look, whatever else happens.
    pub(super) fn next_interest(&self, flags: &Autoscaler, now: SimTime) -> Option<SimTime> {
        let late = flags.max_node_provision_time + SimDuration::from_micros(1);
        let requests = self.requests.values().map(|request| request.at + late);
        let noticed = (!self.unnoticed.is_empty()).then_some(now + SimDuration::from_micros(1));
        requests.filter(|at| *at > now).chain(noticed).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mins: i64) -> SimTime {
        SimTime::EPOCH + SimDuration::from_mins(mins)
    }

    #[test]
    fn each_failure_doubles_the_wait_up_to_the_most_and_success_ends_it() {
        let flags = Autoscaler::default();
        let mut state = ClusterState::default();
        state.stock_out(0, at(1_000));
        let mut waits = Vec::new();
        let mut now = 0;
        for _ in 0..5 {
            assert!(!state.ask(0, 3, at(now)));
            assert_eq!(state.notice(|_| false, &flags, at(now)).len(), 1);
            let end = (now..).find(|later| state.backed_off(at(*later)).is_empty()).unwrap();
            waits.push(end - now);
            now = end + 1;
        }
        assert_eq!(waits, [5, 10, 20, 30, 30]);
        state.stock_out(0, at(now));
        assert!(state.ask(0, 1, at(now)), "there are nodes again");
        assert!(state.notice(|_| false, &flags, at(now + 1)).is_empty());
        state.refused(0, "no".to_owned());
        state.notice(|_| false, &flags, at(now + 2));
        assert!(state.backed_off(at(now + 7)).is_empty(), "the first wait again");
    }

    #[test]
    fn nodes_that_are_awaited_for_too_long_are_a_failure() {
        let flags = Autoscaler::default();
        let mut state = ClusterState::default();
        assert!(state.ask(2, 3, at(0)));
        assert_eq!(state.awaited(2), 3);
        assert!(state.notice(|_| true, &flags, at(15)).is_empty());
        let waited = SimDuration::from_mins(16);
        assert_eq!(state.notice(|_| true, &flags, at(16)), [Failure { group: 2, why: Why::TimedOut(waited) }]);
        assert_eq!(state.awaited(2), 0);
        assert_eq!(state.backed_off(at(17)), BTreeSet::from([2]));
    }

    #[test]
    fn old_failures_are_forgotten() {
        let flags = Autoscaler::default();
        let mut state = ClusterState::default();
        for (minute, wait) in [(0, 5), (6, 10), (400, 5)] {
            state.refused(0, "no".to_owned());
            state.notice(|_| false, &flags, at(minute));
            assert!(!state.backed_off(at(minute + wait - 1)).is_empty(), "{minute}");
            assert!(state.backed_off(at(minute + wait)).is_empty(), "{minute}");
        }
    }
}
