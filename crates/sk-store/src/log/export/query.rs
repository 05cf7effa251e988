//! What is asked of an export, what it answers, and why it may refuse.

use sk_core::{Gvk, LabelSelector, ObjectRef, SimTime, SmolStr};

use crate::log::catalog::Contents;
use crate::log::error::Damage;
use crate::trace::{Gap, Losses, TracerConfig, WriteError};

/// Which part of the history is exported.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The first moment.
    pub start: SimTime,
    /// The moment after the last.
    pub end: SimTime,
    /// Only these namespaces; empty means all. What belongs to no namespace is always there.
    pub included_namespaces: Vec<SmolStr>,
    /// Nothing of these namespaces, nor they themselves.
    pub excluded_namespaces: Vec<SmolStr>,
    /// Only objects that in some version match all of these; empty means all.
    pub included_labels: Vec<LabelSelector>,
    /// No object that in any version matches one of these.
    pub excluded_labels: Vec<LabelSelector>,
    /// What the tracer was told to record, which the trace carries.
    pub config: TracerConfig,
}

/// What was exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Records, the two marks at the window's edges included.
    pub records: u64,
    /// Distinct objects.
    pub objects: u64,
    /// Pods of which lives are in the trace.
    pub lives: u64,
    /// Pods that were observed.
    pub observations: u64,
    /// Times within the window that the recording did not see.
    pub gaps: u64,
    /// Objects that were left out because what the log has of them is no Kubernetes object.
    pub unreadable: u64,
    /// Parts of the log that cannot be read; they are among the gaps too.
    pub damages: Vec<Damage>,
    /// What the format could not hold.
    pub losses: Losses,
}

/// Why nothing was exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The window is empty or upside down.
    #[error("the window ends ({end}) before it begins ({start}); give an end after the start")]
    Window {
        /// Its start.
        start: SimTime,
        /// Its end.
        end: SimTime,
    },
    /// Nothing is recorded yet.
    #[error("nothing is recorded yet; try again when the first objects have been seen")]
    Empty,
    /// The window begins before what is kept.
    #[error("history is kept from {kept_from} to {kept_to}; begin the window within it")]
    OutsideRetention {
        /// The first moment that can be exported.
        kept_from: SimTime,
        /// The moment of the newest entry.
        kept_to: SimTime,
    },
    /// The trace could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Query {
    /// The window `[start, end)`, with nothing left out.
    pub fn window(start: SimTime, end: SimTime) -> Self {
        Self { start, end, ..Self::default() }
    }

    /// Can it be answered?
    pub(super) fn check(&self, contents: &Contents) -> Result<(), ExportError> {
        if self.start >= self.end {
            return Err(ExportError::Window { start: self.start, end: self.end });
        }
        let kept_from = contents.kept_from().ok_or(ExportError::Empty)?;
        let kept_to = contents.newest.map_or(kept_from, |(_, at)| at);
        if self.start < kept_from { Err(ExportError::OutsideRetention { kept_from, kept_to }) } else { Ok(()) }
    }

    /// Is the object in a namespace that is asked for?
    pub(super) fn admits_namespace_of(&self, object: &ObjectRef) -> bool {
        // A Namespace stands for itself; other things without a namespace are everybody's.
        let is_namespace = object.gvk == Gvk::new_static("", "v1", "Namespace");
        let namespace = if is_namespace { Some(&object.key.name) } else { object.key.namespace.as_ref() };
        let Some(namespace) = namespace else { return true };
        let included = self.included_namespaces.is_empty() || self.included_namespaces.contains(namespace);
        included && !self.excluded_namespaces.contains(namespace)
    }

    /// The gaps that reach into the window, those that damage made included.
    pub(super) fn gaps_of(&self, recorded: &[Gap], damages: &[Damage]) -> Vec<Gap> {
        let of_damage = |damage: &Damage| {
            let file = damage.file.file_name().unwrap_or_default().to_string_lossy();
            let reason = format!("the tracer's log is damaged: {file}: {}", damage.reason);
            Gap { from: damage.from, to: damage.to.unwrap_or(self.end), kind: None, reason }
        };
        let gaps = recorded.iter().cloned().chain(damages.iter().map(of_damage));
        let mut gaps: Vec<_> = gaps.filter(|gap| gap.from < self.end && gap.to >= self.start).collect();
        gaps.sort_by(|a, b| (a.from, a.to, &a.kind, &a.reason).cmp(&(b.from, b.to, &b.kind, &b.reason)));
        gaps
    }
}
