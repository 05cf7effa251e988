//! How close each column comes to the recording, if one of the columns is a recording.

use super::column::{Column, Member};
use crate::fidelity;
use crate::figures::Fidelity as Figures;

/// One column against the recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Fidelity {
    /// The column's label.
    pub label: String,
    /// The recording's label.
    pub recorded: String,
    /// How close.
    pub figures: Figures,
}

impl Fidelity {
    /// `as-is vs recorded: start latency p99 +7.0%, node-hours -0.4%, 96% of 120 pods started within 5s of theirs, …`.
    pub fn sentence(&self) -> String {
        format!("{} vs {}: {}", self.label, self.recorded, fidelity::sentence(&self.figures))
    }
}

/// Every other column against the first one that is a recording; of repetitions the first run.
pub(super) fn of(columns: &[Column]) -> Vec<Fidelity> {
    let Some(recorded) = columns.iter().find(|column| column.members[0].is_recording()) else { return Vec::new() };
    let others = columns.iter().filter(|column| !column.members[0].is_recording());
    let one = |column: &Column| {
        let figures = between(&recorded.members[0], &column.members[0])?;
        Some(Fidelity { label: column.label.clone(), recorded: recorded.label.clone(), figures })
    };
    others.filter_map(one).collect()
}

/// One run against the recording.
pub(super) fn between(recorded: &Member, run: &Member) -> Option<Figures> {
    let (real, ours) = (recorded.lives.as_ref()?, run.lives.as_ref()?);
    Some(fidelity::between((&recorded.summary, real), (&run.summary, ours)))
}
