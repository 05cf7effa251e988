//! The first two things anyone reads: how it went, and how far to trust that.

use sk_record::WarningKind;

use crate::analysis::Analysis;
use crate::assertion::Verdict;
use crate::words;

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Every assertion held.
    Pass,
    /// An assertion did not hold.
    Fail,
    /// Nothing was asserted.
    Done,
}

impl Mark {
    /// Of these verdicts.
    pub fn of(verdicts: &[Verdict]) -> Self {
        match verdicts {
            [] => Self::Done,
            all if all.iter().all(|verdict| verdict.passed) => Self::Pass,
            _ => Self::Fail,
        }
    }

    /// The word printed for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Done => "DONE",
        }
    }
}

/// One sentence after the word: `2 of 2 assertions · 10 pods created, 10 ran`.
pub(crate) fn sentence(analysis: &Analysis, verdicts: &[Verdict]) -> String {
    let summary = &analysis.summary;
    let (created, ran) = (summary.pods.created, summary.pods.ran);
    if verdicts.is_empty() {
        let ran = format!("{} of {} ran", words::grouped(ran), words::plural(created, "pod"));
        return match summary.pending.pods {
            0 => format!("{ran}; none had to wait for a node"),
            _ => format!("{ran}; the longest wait was {}", summary.pending.longest),
        };
    }
    let failed = verdicts.iter().filter(|verdict| !verdict.passed).count();
    let assertions = words::plural(verdicts.len() as i64, "assertion");
    let judged = match failed {
        0 => format!("{} of {assertions}", verdicts.len()),
        _ => format!("{failed} of {assertions} failed"),
    };
    format!("{judged} · {} created, {} ran", words::plural(created, "pod"), words::grouped(ran))
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
        warnings.sort_by_key(|warning| warning.kind);
        pieces.extend(warnings.iter().map(|warning| warning.message.clone()));
        pieces.push(match (meta.trace.recorded, meta.trace.name.starts_with("example:")) {
            (true, _) => "recorded trace, not yet compared with this run".to_owned(),
            (false, true) => "example trace, nothing recorded to compare with".to_owned(),
            (false, false) => "nothing recorded to compare with".to_owned(),
        });
        if !warnings.iter().any(|warning| warning.kind == WarningKind::Unmodelled) {
            pieces.push("all of it is modelled".to_owned());
        }
        let amber = meta.partial || warnings.iter().any(|warning| warning.kind != WarningKind::Note);
        Self { amber, pieces }
    }
}
