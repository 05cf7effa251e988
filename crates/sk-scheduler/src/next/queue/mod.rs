//! Which pod is next.

mod event;

pub(crate) use event::HintCx;
pub use event::{Event, Hint, NodeAction, PodAction};

/// The queue.
#[derive(Clone, Debug, Default)]
pub struct Queue;
