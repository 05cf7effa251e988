//! The figures of a run with those of a baseline, and the mean of several runs: the trees that `baseline`, `ratio` and
//! `for: mean` read.
//!
//! Everything here works on the tree of figures, so a new figure is compared without further code.

use serde::{Deserialize, Serialize};
use sk_core::SimDuration;

use crate::figure::Figure;

/// What an assertion can name beside the figures of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// There is a run to compare with: `baseline` is its figures, `ratio` this run's divided by them.
    pub compared: bool,
    /// The figures are means over several runs, so that counts are no whole numbers.
    pub mean: bool,
    /// The trace holds observations: `fidelity` is how close the run comes to them.
    pub recorded: bool,
}

/// The names that need a run to compare with.
pub(crate) const COMPARED: [&str; 2] = ["baseline", "ratio"];

/// The figures with those of the run that they are compared with.
pub fn compared(figures: Figure, baseline: &Figure) -> Figure {
    let ratio = ratio(&figures, baseline);
    let Figure::Fields(mut fields) = figures else { return figures };
    fields.push(("baseline".into(), baseline.clone()));
    fields.push(("ratio".into(), ratio));
    Figure::Fields(fields)
}

/// Each figure divided by the baseline's. 0 / 0 is 1: nothing has changed. What only one of them has is left out.
fn ratio(figures: &Figure, baseline: &Figure) -> Figure {
    let divide = |a: f64, b: f64| Figure::Number(if a == b { 1.0 } else { a / b });
    match (figures, baseline) {
        (Figure::Count(a), Figure::Count(b)) => divide(*a as f64, *b as f64),
        (Figure::Number(a), Figure::Number(b)) => divide(*a, *b),
        (Figure::Time(a), Figure::Time(b)) => divide(a.as_secs_f64(), b.as_secs_f64()),
        (Figure::Fields(fields), _) => {
            let each = fields.iter().map(|(name, figure)| {
                let divided = baseline.get(name).map_or(Figure::Absent, |other| ratio(figure, other));
                (name.clone(), divided)
            });
            Figure::Fields(each.collect())
        }
        (Figure::Entries(entries), _) => {
            let both = entries.iter().filter_map(|(name, figure)| Some((name, figure, baseline.get(name)?)));
            Figure::Entries(both.map(|(name, figure, other)| (name.clone(), ratio(figure, other))).collect())
        }
        (Figure::Count(_) | Figure::Number(_) | Figure::Time(_) | Figure::Absent, _) => Figure::Absent,
    }
}

/// The mean of each figure over several runs. What one of them does not have is left out, because a mean over some of
/// the runs is none over all.
pub fn mean(runs: &[Figure]) -> Figure {
    let Some(first) = runs.first() else { return Figure::Absent };
    let average = |sum: f64| sum / runs.len() as f64;
    let all = |name: &str| runs.iter().map(|run| run.get(name).cloned()).collect::<Option<Vec<Figure>>>();
    match first {
        Figure::Count(_) | Figure::Number(_) => Figure::Number(average(runs.iter().map(number).sum())),
        Figure::Time(_) => {
            Figure::Time(SimDuration::from_micros(average(runs.iter().map(micros).sum()).round() as i64))
        }
        Figure::Fields(fields) => {
            let each = fields.iter().map(|(name, _)| {
                let averaged = all(name).map_or(Figure::Absent, |figures| mean(&figures));
                (name.clone(), averaged)
            });
            Figure::Fields(each.collect())
        }
        Figure::Entries(entries) => {
            let common = entries.keys().filter_map(|name| Some((name.clone(), mean(&all(name)?))));
            Figure::Entries(common.collect())
        }
        Figure::Absent => Figure::Absent,
    }
}

fn number(figure: &Figure) -> f64 {
    match figure {
        Figure::Count(count) => *count as f64,
        Figure::Number(number) => *number,
        Figure::Time(_) | Figure::Fields(_) | Figure::Entries(_) | Figure::Absent => 0.0,
    }
}

fn micros(figure: &Figure) -> f64 {
    match figure {
        Figure::Time(time) => time.as_micros() as f64,
        Figure::Count(_) | Figure::Number(_) | Figure::Fields(_) | Figure::Entries(_) | Figure::Absent => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use crate::figure::ToFigure;
    use crate::figures::{PodFigures, Summary};

    use super::*;

    fn summary(nodes: i64, longest_s: i64, namespaces: &[&str]) -> Figure {
        let mut summary = Summary::default();
        summary.nodes.max = nodes;
        summary.pending.longest = SimDuration::from_secs(longest_s);
        summary.namespaces = namespaces.iter().map(|name| ((*name).to_owned(), PodFigures::default())).collect();
        summary.figure()
    }

    fn at<'a>(figure: &'a Figure, path: &[&str]) -> Option<&'a Figure> {
        path.iter().try_fold(figure, |at, name| at.get(name))
    }

    #[test]
    fn a_ratio_is_this_run_divided_by_the_other_and_nothing_by_nothing_is_one() {
        let both = compared(summary(6, 30, &["a", "b"]), &summary(4, 60, &["a"]));
        assert_eq!(at(&both, &["ratio", "nodes", "max"]), Some(&Figure::Number(1.5)));
        assert_eq!(at(&both, &["ratio", "pending", "longest"]), Some(&Figure::Number(0.5)));
        assert_eq!(at(&both, &["ratio", "evicted", "pods"]), Some(&Figure::Number(1.0)));
        assert_eq!(at(&both, &["baseline", "nodes", "max"]), Some(&Figure::Count(4)));
        assert!(at(&both, &["ratio", "namespaces", "a"]).is_some());
        assert_eq!(at(&both, &["ratio", "namespaces", "b"]), None, "the other run has no such namespace");
        assert_eq!(at(&both, &["ratio", "cost"]), None);
    }

    #[test]
    fn a_mean_of_counts_is_no_count() {
        let both = mean(&[summary(3, 10, &["a", "b"]), summary(4, 20, &["b"])]);
        assert_eq!(at(&both, &["nodes", "max"]), Some(&Figure::Number(3.5)));
        assert_eq!(at(&both, &["pending", "longest"]), Some(&Figure::Time(SimDuration::from_secs(15))));
        assert!(at(&both, &["namespaces", "a"]).is_none() && at(&both, &["namespaces", "b"]).is_some());
    }
}
