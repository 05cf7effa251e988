//! The request and the result of an export, and the reasons for which it is refused.

use sk_core::{Gvk, LabelSelector, ObjectRef, SimTime, SmolStr};

use super::judge::Asked;
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
    /// Only objects that in some version match all of these; empty means all. Whether their owners do does not matter. Labels of pods are not in the log, so
    /// where labels are asked for, or not wanted, only the pods of exported objects are in the trace.
    pub included_labels: Vec<LabelSelector>,
    /// No object that in any version matches one of these, nor anything that belongs to it.
    pub excluded_labels: Vec<LabelSelector>,
    /// What is not seen even now, for reasons that the log does not know: a watch that is refused, a list that is not
    /// done. Each is in the trace from its beginning to the end of the window, whatever it says of its own end.
    pub open_gaps: Vec<Gap>,
    /// The tracer configuration, which the trace carries.
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
    /// Objects that were left out because what the log has of them is not a Kubernetes object.
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
    #[error("nothing is recorded yet; try again after the first objects have been listed")]
    Empty,
    /// The window begins before what is kept of a longer history, or ends before it.
    #[error("history is kept from {kept_from} to {kept_to}; begin the window within it")]
    OutsideRetention {
        /// The first moment that can be exported.
        kept_from: SimTime,
        /// The moment of the newest entry.
        kept_to: SimTime,
    },
    /// The window has more than can be exported beside a recording.
    #[error(
        "the window has more than {limit} {what} ({count} until {until}); ask for a shorter one, ending there or earlier"
    )]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there are up to `until`.
        count: usize,
        /// How many there may be.
        limit: usize,
        /// The moment at which it was too much.
        until: SimTime,
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

    /// The part of the window that can be answered, and what is missing before it: a recording that has given nothing up
    /// yet simply begins later than was asked for.
    pub(super) fn within(&self, contents: &Contents) -> Result<(Self, Option<Gap>), ExportError> {
        if self.start >= self.end {
            return Err(ExportError::Window { start: self.start, end: self.end });
        }
        let kept_from = contents.kept_from().ok_or(ExportError::Empty)?;
        let kept_to = contents.newest.map_or(kept_from, |(_, at)| at);
        if self.start >= kept_from {
            return Ok((self.clone(), None));
        }
        if self.end <= kept_from || !contents.is_whole() {
            return Err(ExportError::OutsideRetention { kept_from, kept_to });
        }
        let reason = "the tracer was not there yet".to_owned();
        let before = Gap { from: self.start, to: kept_from, kind: None, reason };
        Ok((Self { start: kept_from, ..self.clone() }, Some(before)))
    }

    /// Do labels decide what is exported?
    pub(super) fn asks_for_labels(&self) -> bool {
        !self.included_labels.is_empty() || !self.excluded_labels.is_empty()
    }

    /// What the filters say of the namespace that an object is in.
    pub(super) fn asks_for_namespace_of(&self, object: &ObjectRef) -> Asked {
        // A Namespace stands for itself; other things without a namespace are everybody's.
        let is_namespace = object.gvk == Gvk::new_static("", "v1", "Namespace");
        let namespace = if is_namespace { Some(&object.key.name) } else { object.key.namespace.as_ref() };
        let Some(namespace) = namespace else { return Asked::For };
        if self.excluded_namespaces.contains(namespace) {
            return Asked::Without;
        }
        let included = self.included_namespaces.is_empty() || self.included_namespaces.contains(namespace);
        if included { Asked::For } else { Asked::NotFor }
    }

    /// The gaps that reach into the window, those that damage made and those that have not ended included.
    pub(super) fn gaps_of(&self, contents: &Contents, damages: &[Damage]) -> Vec<Gap> {
        let of_damage = |damage: &Damage| {
            let file = damage.file.file_name().unwrap_or_default().to_string_lossy();
            let reason = format!("the tracer's log is damaged: {file}: {}", damage.reason);
            Gap { from: damage.from, to: damage.to.unwrap_or(self.end), kind: None, reason }
        };
        let ended = contents.gaps.iter().cloned().chain(damages.iter().map(of_damage));
        let gaps = ended.chain(self.open_gaps_of(contents));
        let mut gaps: Vec<_> = gaps.filter(|gap| gap.from < self.end && gap.to >= self.start).collect();
        gaps.sort();
        gaps
    }

    /// What is not seen even now, up to the end of the window. What is asked for says it better than the log can.
    fn open_gaps_of(&self, contents: &Contents) -> Vec<Gap> {
        let open = |from, kind, reason: &str| Gap { from, to: self.end, kind, reason: reason.to_owned() };
        let mut gaps: Vec<_> = self.open_gaps.iter().map(|gap| Gap { to: self.end, ..gap.clone() }).collect();
        for (gvk, since) in &contents.lost {
            let told = gaps.iter().any(|gap| gap.kind.as_ref() == Some(gvk) && gap.from <= *since);
            if !told {
                gaps.push(open(
                    *since,
                    Some(gvk.clone()),
                    "the watch lost its place, and the kind has not been listed since",
                ));
            }
        }
        gaps.extend(
            contents
                .stopped
                .map(|since| open(since, None, "the log cannot be written, perhaps for lack of disk space")),
        );
        gaps
    }
}
