//! Kubernetes Events: what the control plane reports about objects, as `kubectl describe` shows it.
//!
//! [`crate::Engine::take_events`] returns them if [`crate::Settings::events`] is on. They are not objects in the
//! store: no component acts on Events, and a run with a million pods would store five million of them. An Event
//! follows from a request that succeeded or failed, so all reconcilers emit them in one place ([`crate::controller`]).

use std::sync::Arc;

use sk_apiserver::{Answer, Identity, Object, Verb, View};
use sk_core::{SimTime, SmolStr};

/// At most so many are kept until somebody takes them, which a run does every few thousand changes: some 30 MB.
const MAX_KEPT: usize = 100_000;

/// The Events that were not taken yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    events: Vec<Event>,
    dropped: u64,
}

impl Kept {
    pub(crate) fn push(&mut self, event: Event) {
        if self.events.len() < MAX_KEPT {
            self.events.push(event);
        } else {
            self.dropped += 1;
        }
    }

    /// Appends the Events to what is there.
    pub(crate) fn move_to(&mut self, events: &mut Vec<Event>) {
        events.append(&mut self.events);
    }

    /// How many did not fit.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// One Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: SimTime,
    /// About which object.
    pub about: Arc<Identity>,
    /// Does it ask for attention?
    pub is_warning: bool,
    /// The machine's word, such as `FailedScheduling`.
    pub reason: SmolStr,
    /// The sentence.
    pub message: String,
    /// Who says it, such as `replicaset-controller`.
    pub from: SmolStr,
}

impl Event {
    /// Something as it should be.
    pub(crate) fn normal(from: impl Into<SmolStr>, about: &Object, reason: &str, message: String) -> Self {
        let about = about.identity().clone();
        Self { at: SimTime::EPOCH, about, is_warning: false, reason: reason.into(), message, from: from.into() }
    }

    /// Something to look at.
    pub(crate) fn warning(from: impl Into<SmolStr>, about: &Object, reason: &str, message: String) -> Self {
        Self { is_warning: true, ..Self::normal(from, about, reason, message) }
    }
}

/// What a controller says when it made or deleted a pod, or could not (`RealPodControl`, `controller_utils.go`, 1.36). That
/// one was gone already is nothing to speak of.
pub(crate) fn of_pods(from: &'static str, owner: &Object, verb: Verb, answer: &Answer) -> Option<Event> {
    match (verb, answer) {
        (Verb::Create, Ok(made)) if made.pod().is_some() => {
            let message = ["Created pod: ", made.key.name.as_str()].concat();
            Some(Event::normal(from, owner, "SuccessfulCreate", message))
        }
        // In a namespace that goes nothing can be made any more, and everybody knows why.
        (Verb::Create, Err(error)) if !error.is_namespace_terminating() => {
            Some(Event::warning(from, owner, "FailedCreate", format!("Error creating: {error}")))
        }
        (Verb::Delete, Ok(gone)) if gone.pod().is_some() => {
            Some(Event::normal(from, owner, "SuccessfulDelete", format!("Deleted pod: {}", gone.key.name)))
        }
        _ => None,
    }
}

/// The version of an object that the speaker still sees: what it was before the request.
pub(crate) fn before<'a>(answer: &Object, view: View<'a>) -> Option<&'a Arc<Object>> {
    view.with_uid(answer.uid).map(|(_, object)| object)
}
