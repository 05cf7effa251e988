//! What a comparison of many variants adds: the variants that are worth a choice, and the effect of each parameter.
//!
//! It is made of the columns of the comparison, so a sweep of hundreds of runs and three variants typed by hand look
//! the same. Recordings are left out: nobody can choose them, and they have no prices.
//!
//! | module | what it owns |
//! |---|---|
//! | [`tradeoff`] | cost against waiting, and its Pareto front |
//! | [`parameters`] | the mean of each figure for each value of a field that varies |
//! | [`text`] | both on a terminal and in Markdown |
//! | [`page`] | both in the page, with a picture of the front |

pub mod page;
pub mod parameters;
pub mod text;
pub mod tradeoff;

use super::column::Column;
use super::differs::Difference;
use parameters::Parameter;
use tradeoff::Point;

/// Fewer simulated variants than this have nothing to choose among: two are compared figure by figure.
const FEWEST: usize = 3;

/// Many variants, seen together.
#[derive(Debug)]
pub struct Study {
    /// Cost and waiting of each variant; empty without prices.
    pub points: Vec<Point>,
    /// The fields that vary, in the order in which they differ first.
    pub parameters: Vec<Parameter>,
}

impl Study {
    /// The study of these columns, if there are enough of them. `differs` has how each but the first differs from the
    /// first.
    pub(super) fn of(columns: &[Column], differs: &[Vec<Difference>]) -> Option<Self> {
        let simulated: Vec<usize> =
            (0..columns.len()).filter(|column| !columns[*column].members[0].is_recording()).collect();
        if simulated.len() < FEWEST {
            return None;
        }
        let points = tradeoff::of(columns, &simulated);
        Some(Self { points, parameters: parameters::of(columns, differs, &simulated) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sk_core::SimDuration;

    use super::super::column::Member;
    use super::*;
    use crate::figures::{Cost, Summary};

    const START: &str = "2026-01-01T00:00:00Z";
    const END: &str = "2026-01-01T01:00:00Z";

    /// A cost and the longest wait in seconds.
    pub(super) type Outcome = (Option<f64>, i64);

    pub(super) fn priced(cost: f64, waiting: i64) -> Outcome {
        (Some(cost), waiting)
    }

    /// A column of runs that came out so, with the seeds 1, 2, ….
    pub(super) fn column(label: &str, runs: &[Outcome]) -> Column {
        let member = |(seed, (cost, waiting)): (u64, &Outcome)| {
            let mut summary =
                Summary { cost: cost.map(|total| Cost { total, ..Cost::default() }), ..Summary::default() };
            summary.pending.p99 = SimDuration::from_secs(*waiting);
            summary.pending.longest = SimDuration::from_secs(*waiting);
            let meta = json!({
                "run_id": format!("{label}-{seed}"), "name": label, "version": "0", "engine": "embedded", "kubernetes": "1.36",
                "seed": seed, "trace": {"name": "t", "digest": "d", "format": "native", "start": START, "end": END, "recorded": false},
                "start": START, "end": END, "scenario_digest": "", "currency": "USD", "groups": [], "autoscaler": null,
                "warnings": [], "partial": false,
            });
            let meta = serde_json::from_value(meta).expect("a run.json");
            Member {
                label: label.to_owned(),
                meta,
                scenario: None,
                verdict: None,
                summary,
                unknown: &[],
                lives: None,
                curves: None,
            }
        };
        Column { label: label.to_owned(), members: (1..).zip(runs).map(member).collect() }
    }
}
