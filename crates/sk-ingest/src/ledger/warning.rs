//! Warnings for the tracer's log.

use std::fmt;

use sk_core::ObjectRef;

/// How many warnings are held until somebody takes them; the rest of a flood is only counted.
const MAX_HELD: usize = 256;

/// Something about one object that is not as it should be. The recording goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The object.
    pub object: ObjectRef,
    /// What about it.
    pub trouble: Trouble,
}

/// What is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// An observation contradicts the known life of a pod, which stays as it is.
    LifeRefused,
    /// A pod has waited for so many reasons that the oldest was dropped.
    WaitDropped,
    /// A pod's owners, or the template it was made from, were never seen. It is recorded without them.
    OwnerUnseen,
    /// So many warnings came at once that this many others are not shown.
    More(u64),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { object, trouble } = self;
        match trouble {
            Trouble::LifeRefused => write!(f, "{object}: its life would move backward; it stays as it was"),
            Trouble::WaitDropped => write!(f, "{object}: waited for too many reasons; the oldest is dropped"),
            Trouble::OwnerUnseen => write!(f, "{object}: its owner's template was not seen; it has no template"),
            Trouble::More(others) => write!(f, "{object}: and {others} warnings that are not shown"),
        }
    }
}

/// Warnings that were not taken yet.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    held: Vec<Warning>,
    more: u64,
}

impl Warnings {
    pub(super) fn add(&mut self, object: ObjectRef, trouble: Trouble) {
        if self.held.len() < MAX_HELD {
            self.held.push(Warning { object, trouble });
        } else {
            self.more += 1;
        }
    }

    pub(super) fn take(&mut self) -> Vec<Warning> {
        let more = std::mem::take(&mut self.more);
        if let Some(last) = self.held.last().filter(|_| more > 0) {
            let object = last.object.clone();
            self.held.push(Warning { object, trouble: Trouble::More(more) });
        }
        std::mem::take(&mut self.held)
    }
}
