//! Loops that find what the loop before them found.
//!
//! While a pod waits for which no group grows, a loop runs at every scan, and mostly nothing has changed since the last.
//! If that one put no pod anywhere, asked for nothing and knows of no node that could go, only two things come of
//! another: it is counted, and it draws lots for the order in which it would try pods. That is all that is done then,
//! until something changes, or until a time passes that makes a loop judge otherwise what is the same: a pod is old
//! enough, a node has been ready or not ready for long enough, a group's backoff ends, a node is tried again.
//!
//! Debug builds run the whole loop beside it and compare.

use sk_core::SimTime;

use super::decisions::Trigger;
use super::{ClusterAutoscaler, scale_up, template};
use crate::component::Context;

/// What the next loop does, if it finds the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quiet {
    /// What the view had counted ([`super::view::View::changes`]).
    changes: u64,
    /// How many lots a loop draws.
    draws: u64,
    /// From then on it may find something else.
    until: SimTime,
}

impl ClusterAutoscaler {
    /// After a loop that did nothing and owes nothing to chance: would another find the same? `before`: the lots that had
    /// been drawn and the requests that had been sent before it.
    pub(super) fn quiet_after(&self, (drawn, requests): (u64, u64), now: SimTime) -> Option<Quiet> {
        let is_under_way = !self.removals.is_empty() || !self.asked.is_empty() || self.requests != requests;
        if is_under_way || !self.flags.is_whole() {
            return None;
        }
        let tried_again = if self.flags.scale_down_enabled { self.planner.idle_until()? } else { SimTime::MAX };
        let nodes = self.view.nodes.values().map(|node| match node.ready {
            Some(since) => since + template::STABLE,
            None => node.created + self.flags.max_node_startup_time,
        });
        let pods = self.view.pending.values().flat_map(|pod| scale_up::moments(pod, &self.flags));
        let moments = nodes.chain(pods).filter(|at| *at > now).chain(self.cluster_state.next_change(&self.flags, now));
        let until = moments.chain([tried_again]).min().unwrap_or(SimTime::MAX);
        Some(Quiet { changes: self.view.changes(), draws: self.choice.drawn() - drawn, until })
    }

    /// Does a loop now find what the last one found?
    pub(super) fn still_quiet(&self, trigger: Trigger, now: SimTime) -> Option<Quiet> {
        let is_same = |quiet: &Quiet| quiet.changes == self.view.changes() && now < quiet.until;
        // What follows a scale-up or a removal, or sees an older list of pods, is no repetition.
        let may_repeat = match trigger {
            Trigger::Timer | Trigger::Pod => self.listed_until(trigger, now) == now,
            Trigger::AfterScaleUp | Trigger::AfterScaleDown => false,
        };
        self.quiet.filter(|quiet| may_repeat && is_same(quiet))
    }

    /// What is left of a loop that finds what the last one found.
    pub(super) fn repeat(&mut self, quiet: Quiet, now: SimTime) {
        self.decisions.next_loop();
        self.choice.skip(quiet.draws);
        if self.flags.scale_down_enabled {
            self.planner.looked(&self.flags, now);
        }
    }

    /// Would a whole loop leave everything as that does?
    pub(super) fn would_repeat(&self, quiet: Quiet, trigger: Trigger, ctx: &mut Context<'_>) -> bool {
        let (mut whole, mut short) = (self.clone(), self.clone());
        let done = whole.look(trigger, ctx);
        short.repeat(quiet, ctx.now);
        done.is_settled && whole.state() == short.state()
    }

    /// What later loops build on.
    fn state(&self) -> impl PartialEq + use<> {
        let planner = format!("{:?}", self.planner);
        let streams = (self.choice.clone(), self.order.clone());
        (self.decisions.said(), streams, self.turn.clone(), self.requests, planner)
    }
}
