//! How long pods lived, by the object that owned them and by the template they came from.

use sk_core::{ObjectRef, SimTime};

/// One pod's life: from its first container's start to its last one's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Life {
    /// When it began to run.
    pub start: SimTime,
    /// When it had finished; `None` if it ran until it was deleted or the recording ended.
    pub end: Option<SimTime>,
}

/// Which of an owner's pods the lives belong to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LivesOf {
    /// Pods whose admitted spec has this stable hash: all that a v2 trace knows.
    PodHash(u64),
}

/// The lives of one owner's pods of one template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateLives {
    /// Which of the owner's pods.
    pub of: LivesOf,
    /// Their lives, in the order of the trace.
    pub lives: Vec<Life>,
}

/// The lives of one owner's pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerLives {
    /// The object that the pods belonged to in the end: their CronJob, not its Job. A bare pod owns itself.
    pub owner: ObjectRef,
    /// By template.
    pub templates: Vec<TemplateLives>,
}
