//! What the control plane reported since the recorder last read it: autoscaler decisions and Events, in order of time.

use std::iter::Peekable;
use std::slice::Iter;
use std::vec::IntoIter;

use sk_core::SimTime;
use sk_engine::{Decision, Engine, Event};
use sk_record::Error;

use crate::record::Recorder;

/// Decisions and Events that are not recorded yet.
pub(crate) struct ControlPlaneEvents<'a> {
    decisions: Peekable<IntoIter<Decision>>,
    events: Peekable<Iter<'a, Event>>,
}

impl<'a> ControlPlaneEvents<'a> {
    /// Takes all from the engine. `events` is a buffer that is reused.
    pub(crate) fn of(engine: &mut Engine, events: &'a mut Vec<Event>) -> Self {
        events.clear();
        engine.move_events_to(events);
        Self { decisions: engine.take_decisions().into_iter().peekable(), events: events.iter().peekable() }
    }

    /// Records everything before `until`, or all that is left. At the same time decisions come first.
    pub(crate) fn before(&mut self, until: Option<SimTime>, recorder: &mut Recorder) -> Result<(), Error> {
        let is_due = |at: SimTime| until.is_none_or(|until| at < until);
        loop {
            let said = self.events.peek().map(|event| event.at).filter(|at| is_due(*at));
            let is_first = |decision: &Decision| is_due(decision.at) && said.is_none_or(|at| decision.at <= at);
            if let Some(decision) = self.decisions.next_if(is_first) {
                recorder.decide(&decision)?;
            } else if let Some(event) = self.events.next_if(|event| is_due(event.at)) {
                recorder.tell(event)?;
            } else {
                return Ok(());
            }
        }
    }
}
