//! The verdict: how the run went, and how far to trust that.
//!
//! [`Judgement`] is computed once. The headline of the terminal, the page, Markdown, summary.json, JUnit and the exit
//! code all come from it, so that none of them can be green where another is not. What was not simulated is never
//! green: a run is PASS only for what it simulated, and not even that unless its scenario accepts the rest by name.

use std::cmp::Reverse;

use sk_record::{Missing, WarningKind};

use crate::analysis::Analysis;
use crate::assertion::{Evaluated, Verdict};
use crate::gaps::{self, Gap, Size};
use crate::words;

/// The verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Every assertion held, and nothing but what the scenario accepts was left out.
    Pass,
    /// An assertion did not hold, or a warning counts under `--strict`.
    Fail,
    /// Nothing was asserted.
    Done,
    /// Something of the trace was not simulated, so what holds was not judged.
    Incomplete,
    /// It was stopped before its end, so what holds was not judged.
    Partial,
}

impl Mark {
    /// The word printed for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Done => "DONE",
            Self::Incomplete => "INCOMPLETE",
            Self::Partial => "PARTIAL",
        }
    }

    /// The word with what separates it from the sentence behind it: `PASS   `, `INCOMPLETE: `.
    pub(crate) const fn lead(self) -> &'static str {
        match self {
            Self::Pass => "PASS   ",
            Self::Fail => "FAIL   ",
            Self::Done => "DONE   ",
            Self::Incomplete => "INCOMPLETE: ",
            Self::Partial => "PARTIAL: ",
        }
    }
}

/// What a program that asked gets back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Success: 0.
    Good,
    /// It was judged, and it is bad: 1.
    Bad,
    /// It could not be judged: 2.
    Unjudged,
}

/// On which terms a run is judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// What may be missing all the same, as the scenario's `accept` names it.
    pub accept: Vec<String>,
    /// Do warnings, and runs that are not whole, count as bad?
    pub strict: bool,
}

/// The outcome of one assertion in this run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It holds.
    Pass,
    /// It does not.
    Fail,
    /// It holds for what was simulated, which is not all: why that is not a pass.
    Skipped(String),
    /// It could not be evaluated, and why.
    Error(String),
}

impl Judged {
    /// The word printed for it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Skipped(_) => "SKIPPED",
            Self::Error(_) => "ERROR",
        }
    }
}

/// The judgement of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// In a word.
    pub mark: Mark,
    /// What evaluating each assertion gave.
    pub verdicts: Vec<Verdict>,
    /// What was not simulated and is not accepted, by kind, worst first.
    pub gaps: Vec<Gap>,
    /// What was not simulated and is accepted.
    pub accepted: Vec<Gap>,
    /// Warnings that count under `--strict`.
    pub doubts: usize,
    /// Was it judged under `--strict`?
    pub strict: bool,
    /// Did no scheduler try any pod?
    pub is_empty: bool,
    /// Was it stopped before its end?
    pub partial: bool,
}

impl Judgement {
    /// Judges a run on these terms.
    pub fn of(analysis: &Analysis, verdicts: Vec<Verdict>, terms: &Terms) -> Self {
        let (accepted, open): (Vec<&Missing>, Vec<&Missing>) =
            analysis.missing.iter().partition(|missing| gaps::is_accepted(missing, &terms.accept));
        let counts =
            |warning: &&sk_record::Warning| warning.kind != WarningKind::Note && !terms.accept.contains(&warning.code);
        let mut judgement = Self {
            mark: Mark::Done,
            verdicts,
            gaps: gaps::by_kind(open),
            accepted: gaps::by_kind(accepted),
            doubts: analysis.meta.warnings.iter().filter(counts).count(),
            strict: terms.strict,
            is_empty: analysis.simulated_pods == 0,
            partial: analysis.meta.partial,
        };
        judgement.mark = judgement.decide();
        judgement
    }

    fn decide(&self) -> Mark {
        if self.verdicts.iter().any(Verdict::is_failed) {
            Mark::Fail
        } else if self.partial {
            Mark::Partial
        } else if self.is_empty || !self.gaps.is_empty() || self.unknown() > 0 {
            Mark::Incomplete
        } else if self.strict && self.doubts > 0 {
            Mark::Fail
        } else if self.verdicts.is_empty() {
            Mark::Done
        } else {
            Mark::Pass
        }
    }

    /// What the exit code says.
    pub fn exit(&self) -> Exit {
        match self.mark {
            Mark::Pass | Mark::Done => Exit::Good,
            Mark::Fail => Exit::Bad,
            Mark::Incomplete | Mark::Partial if self.is_empty || !self.verdicts.is_empty() => Exit::Unjudged,
            Mark::Incomplete | Mark::Partial if self.strict => Exit::Bad,
            Mark::Incomplete | Mark::Partial => Exit::Good,
        }
    }

    /// The outcome of one of its assertions.
    pub fn judged(&self, verdict: &Verdict) -> Judged {
        match &verdict.result {
            Evaluated::Failed => Judged::Fail,
            Evaluated::Unknown(why) => Judged::Error(why.clone()),
            Evaluated::Held => match self.why_not_whole() {
                Some(why) => Judged::Skipped(format!("it holds for what was simulated, but {why}")),
                None => Judged::Pass,
            },
        }
    }

    /// Why what holds cannot be called a pass: `35 pods, 31 CPU were not simulated`.
    pub fn why_not_whole(&self) -> Option<String> {
        let missing = (!self.gaps.is_empty()).then(|| format!("{} not simulated", self.not_simulated().in_words()));
        if self.is_empty {
            Some("no pod was simulated".to_owned())
        } else if self.partial {
            Some("the run was stopped before its end".to_owned())
        } else {
            missing
        }
    }

    /// How much was not simulated and is not accepted.
    pub fn not_simulated(&self) -> Size {
        Size::of(self.gaps.iter().flat_map(|gap| &gap.objects))
    }

    fn unknown(&self) -> usize {
        self.verdicts.iter().filter(|verdict| matches!(verdict.result, Evaluated::Unknown(_))).count()
    }

    /// The sentence after the word: `2 of 2 assertions · 10 pods created, 10 ran`. The worst comes first.
    pub fn sentence(&self, analysis: &Analysis) -> String {
        let mut pieces: Vec<String> = Vec::new();
        let failed = self.verdicts.iter().filter(|verdict| verdict.is_failed()).count();
        let assertions = words::plural(self.verdicts.len() as i64, "assertion");
        match self.mark {
            Mark::Pass => pieces.push(format!("{} of {assertions}", self.verdicts.len())),
            Mark::Fail if failed > 0 => pieces.push(format!("{failed} of {assertions} failed")),
            Mark::Fail => pieces.push(format!("--strict and {}", words::plural(self.doubts as i64, "warning"))),
            Mark::Done | Mark::Incomplete | Mark::Partial => {}
        }
        if self.partial {
            pieces.push("stopped before its end".to_owned());
        }
        if self.is_empty {
            pieces.push("no pod was simulated".to_owned());
        }
        if !self.gaps.is_empty() {
            pieces.push(format!("{} not simulated", self.not_simulated().in_words()));
        }
        if matches!(self.mark, Mark::Incomplete | Mark::Partial) && !self.verdicts.is_empty() {
            pieces.push(format!("{assertions} not judged"));
        }
        if !self.accepted.is_empty() {
            let size = Size::of(self.accepted.iter().flat_map(|gap| &gap.objects));
            pieces.push(format!("accepted: {} not simulated", size.in_words()));
        }
        pieces.push(self.pods(analysis));
        pieces.join(" · ")
    }

    /// The outcome for the simulated pods.
    fn pods(&self, analysis: &Analysis) -> String {
        let summary = &analysis.summary;
        let (created, ran) = (summary.pods.created, words::grouped(summary.pods.ran));
        if self.mark != Mark::Done {
            return format!("{} created, {ran} ran{}", words::plural(created, "pod"), starting(analysis));
        }
        let ran = format!("{ran} of {} ran{}", words::plural(created, "pod"), starting(analysis));
        match summary.pending.pods {
            0 => format!("{ran}; none had to wait for a node"),
            _ => format!("{ran}; the longest wait was {}", summary.pending.longest),
        }
    }
}

/// Pods that were created too late to run are expected.
fn starting(analysis: &Analysis) -> String {
    match analysis.starting_pods {
        0 => String::new(),
        pods => format!(", {} starting at the end", words::grouped(pods)),
    }
}

/// How far the figures can be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// Something was assumed, is missing or is not modelled: the band is amber and says what.
    pub amber: bool,
    /// What to know, most important first.
    pub pieces: Vec<String>,
}

impl Trust {
    /// Of a run.
    pub fn of(analysis: &Analysis) -> Self {
        let meta = &analysis.meta;
        let mut pieces = Vec::new();
        if meta.partial {
            pieces.push("stopped before its end".to_owned());
        }
        let mut warnings: Vec<_> = meta.warnings.iter().collect();
        // Of one sort, what concerns most objects comes first.
        warnings.sort_by_key(|warning| (warning.kind, Reverse(warning.count)));
        pieces.extend(warnings.iter().map(|warning| warning.message.clone()));
        let is_example = meta.trace.name.starts_with("example:");
        pieces.push(match (&analysis.summary.fidelity, meta.trace.recorded) {
            (Some(fidelity), _) => format!("vs recorded: {}", crate::fidelity::sentence(fidelity)),
            (None, true) => "recorded trace, not yet compared with this run".to_owned(),
            (None, false) if is_example => "example trace, nothing recorded to compare with".to_owned(),
            (None, false) => "nothing recorded to compare with".to_owned(),
        });
        let is_modelled = !warnings.iter().any(|warning| warning.kind == WarningKind::Unmodelled);
        if is_modelled && analysis.missing.is_empty() {
            pieces.push("all of it is modelled".to_owned());
        }
        let doubted = warnings.iter().any(|warning| warning.kind != WarningKind::Note);
        Self { amber: meta.partial || doubted || !analysis.missing.is_empty(), pieces }
    }
}
