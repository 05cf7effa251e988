//! Assertions about a comparison: which figures each run is evaluated with, and the result.
//!
//! Every run outside the first column is evaluated, with the run of the first column that has its seed, or the one in
//! the same position, as baseline. An assertion must hold in each of them. The caller evaluates: expressions may come
//! from a pull request and run in a process with limits.

use super::column::{Column, Member};
use super::{Comparison, fidelity};
use crate::assertion::{Evaluated, Verdict};
use crate::baseline::compared;
use crate::figure::{Figure, ToFigure};
use crate::verdict::Exit;

/// What one run is judged by.
#[derive(Debug)]
pub struct Asked {
    /// The column's label; of repetitions with the run's seed.
    pub label: String,
    /// The figures that assertions see.
    pub figures: Figure,
    /// Why what holds is not a pass: a run that is not whole, or one that is compared with such a run.
    pub caution: Option<String>,
}

/// The outcome of one assertion about one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asserted {
    /// Which run.
    pub label: String,
    /// Its outcome.
    pub verdict: Verdict,
}

impl Asked {
    /// The outcome of an assertion. What holds for a part of a run has not passed.
    pub fn asserted(&self, verdict: Verdict) -> Asserted {
        let result = match (verdict.result, &self.caution) {
            (Evaluated::Held, Some(caution)) => Evaluated::Unknown(format!("it holds, but {caution}")),
            (result, _) => result,
        };
        Asserted { label: self.label.clone(), verdict: Verdict { result, ..verdict } }
    }
}

impl Comparison {
    /// What each run is judged by.
    pub fn asked(&self) -> Vec<Asked> {
        let Some((first, others)) = self.columns.split_first() else { return Vec::new() };
        let recorded = self.columns.iter().find(|column| column.members[0].is_recording());
        let judged = others.iter().filter(|column| !column.members[0].is_recording());
        let of_column = |column: &Column| {
            let runs = column.members.iter().enumerate();
            let asked = runs.map(|(place, member)| asked(column, member, beside(first, member, place), recorded));
            asked.collect::<Vec<_>>()
        };
        judged.flat_map(of_column).collect()
    }

    /// Is there a recording among the runs?
    pub fn has_recording(&self) -> bool {
        self.columns.iter().any(|column| column.members[0].is_recording())
    }

    /// The exit code of what was asserted.
    pub fn exit(&self) -> Exit {
        let results = || self.assertions.iter().map(|asserted| &asserted.verdict.result);
        if results().any(|result| *result == Evaluated::Failed) {
            Exit::Bad
        } else if results().any(|result| matches!(result, Evaluated::Unknown(_))) {
            Exit::Unjudged
        } else {
            Exit::Good
        }
    }
}

/// The run of the baseline that this one is compared with.
fn beside<'a>(baseline: &'a Column, member: &Member, place: usize) -> &'a Member {
    let same_seed = baseline.members.iter().find(|other| other.meta.seed == member.meta.seed);
    same_seed.unwrap_or(&baseline.members[place % baseline.members.len()])
}

fn asked(column: &Column, member: &Member, baseline: &Member, recorded: Option<&Column>) -> Asked {
    let is_alone = column.members.len() == 1;
    let label = if is_alone { column.label.clone() } else { format!("{} seed {}", column.label, member.meta.seed) };
    let mut summary = member.summary.clone();
    if let Some(recorded) = recorded {
        summary.fidelity = fidelity::between(&recorded.members[0], member);
    }
    let figures = compared(known(summary.figure(), member), &known(baseline.summary.figure(), baseline));
    Asked { label, figures, caution: caution(member).or_else(|| caution(baseline)) }
}

fn caution(member: &Member) -> Option<String> {
    let is_open = |verdict: &&str| ["INCOMPLETE", "PARTIAL"].contains(verdict);
    let word = if member.meta.partial { Some("PARTIAL") } else { member.verdict.as_deref().filter(is_open) };
    word.map(|word| format!("{} is {word}", member.label))
}

/// Without the figures that are unknown for a run, so that no assertion reads a zero that was never measured.
fn known(figures: Figure, member: &Member) -> Figure {
    member.unknown.iter().fold(figures, |figures, path| without(figures, path))
}

fn without(figures: Figure, path: &str) -> Figure {
    let Figure::Fields(fields) = figures else { return figures };
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let field = |(known, figure): (_, Figure)| match rest {
        _ if known != name => (known, figure),
        Some(rest) => (known, without(figure, rest)),
        None => (known, Figure::Absent),
    };
    Figure::Fields(fields.into_iter().map(field).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Summary;

    #[test]
    fn what_nobody_measured_is_no_zero() {
        let figures = without(Summary::default().figure(), "evicted.pods");
        assert_eq!(figures.get("evicted").and_then(|evicted| evicted.get("pods")), None);
        assert!(figures.get("preempted").and_then(|preempted| preempted.get("pods")).is_some());
    }
}
