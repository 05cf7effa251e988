//! What node groups say to pods that need a node: which they would not take, and why.

use std::collections::BTreeMap;

use sk_scheduler::ClassId;

/// Which groups do not take which pods. What a group says depends on a pod's class alone.
#[derive(Default)]
pub(super) struct Refusals {
    pub(super) groups: Vec<Answer>,
}

/// What a group says to pods that need a node.
pub(super) enum Answer {
    /// It is not even asked.
    Skipped(String),
    /// It takes all but these, for these reasons.
    Asked { refused: BTreeMap<ClassId, Vec<String>> },
}

impl Answer {
    pub(super) fn takes(&self, class: ClassId) -> bool {
        match self {
            Self::Skipped(_) => false,
            Self::Asked { refused } => !refused.contains_key(&class),
        }
    }

    fn reasons(&self, class: ClassId) -> &[String] {
        match self {
            Self::Skipped(reason) => std::slice::from_ref(reason),
            Self::Asked { refused } => refused.get(&class).map_or(&[], Vec::as_slice),
        }
    }
}

impl Refusals {
    /// Does some group take pods of the class?
    pub(super) fn is_taken(&self, class: ClassId) -> bool {
        self.groups.iter().any(|group| group.takes(class))
    }

    /// The reasons of each group that does not take pods of the class.
    pub(super) fn of(&self, class: ClassId) -> impl Iterator<Item = (usize, &str)> {
        let groups = self.groups.iter().enumerate();
        groups.flat_map(move |(group, answer)| answer.reasons(class).iter().map(move |reason| (group, reason.as_str())))
    }
}
