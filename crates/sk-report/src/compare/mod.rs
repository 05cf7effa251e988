//! Compares runs: what changed, by how much, and whether that is more than noise.
//!
//! The first run is the baseline. Runs of the same trace and scenario under different seeds (repetitions) are one
//! column with the mean of each figure. Everything here is made of summaries, so a comparison of many large runs stays
//! small; only the page also draws curves.
//!
//! | module | what it owns |
//! |---|---|
//! | [`column`] | one question and its runs |
//! | [`noise`] | how far two means may lie apart by chance |
//! | [`rows`] | which figures are compared, and which way is better |
//! | [`differs`] | how the inputs differ |
//! | [`fidelity`] | how close simulations come to a recording |
//! | [`judged`] | assertions about the runs beside the first one |
//! | [`moved`] | which owners, namespaces and groups moved most |
//! | [`study`] | three variants and more: cost against waiting, and which parameter moved what |
//! | [`table`], [`markdown`], [`json`], [`html`] | the comparison for people and programs |

pub mod column;
pub mod differs;
pub mod fidelity;
pub mod html;
pub mod json;
pub mod judged;
pub mod markdown;
pub mod moved;
pub mod noise;
pub mod rows;
pub mod study;
pub mod table;

pub use column::{Column, Member};

use differs::Difference;
use fidelity::Fidelity;
use judged::Asserted;
use moved::Moved;
use rows::Row;
use study::Study;

/// Runs side by side.
#[derive(Debug)]
pub struct Comparison {
    /// The columns; the first is the baseline.
    pub columns: Vec<Column>,
    /// The figures, in the order a reader wants them.
    pub rows: Vec<Row>,
    /// How the question of each column differs from the baseline's; one entry for each column but the first.
    pub differs: Vec<Vec<Difference>>,
    /// How close each column comes to the recording, where one of them is one.
    pub fidelity: Vec<Fidelity>,
    /// What moved most between the baseline and the last column.
    pub moved: Vec<Moved>,
    /// What many variants tell together; nothing if there are few.
    pub study: Option<Study>,
    /// What the caller has to say about its trust, e.g. that runs are missing.
    pub remarks: Vec<String>,
    /// The outcome of the assertions about them, where there are any.
    pub assertions: Vec<Asserted>,
}

impl Comparison {
    /// Compares runs in the order in which they were named.
    pub fn of(members: Vec<Member>) -> Self {
        let columns = column::grouped(members);
        let rows = rows::of(&columns);
        let differs: Vec<Vec<Difference>> =
            columns.iter().skip(1).map(|column| differs::between(&columns[0], column)).collect();
        let moved = match columns.as_slice() {
            [baseline, .., last] => moved::between(baseline, last),
            _ => Vec::new(),
        };
        let (fidelity, study) = (fidelity::of(&columns), Study::of(&columns, &differs));
        Self { columns, rows, differs, fidelity, moved, study, remarks: Vec::new(), assertions: Vec::new() }
    }

    /// What a reader has to know before trusting any of it.
    pub fn cautions(&self) -> Vec<String> {
        let mut cautions: Vec<String> = self.fidelity.iter().map(Fidelity::sentence).collect();
        cautions.extend(self.columns.iter().filter_map(Column::caution));
        cautions.extend(self.remarks.iter().cloned());
        if self.columns.iter().all(|column| column.members.len() == 1) {
            cautions.push("one run each, so noise is unknown: run with -N 5 to see it".to_owned());
        }
        let currencies = self.columns.iter().map(|column| column.members[0].meta.currency.as_str());
        let currencies: Vec<&str> = currencies.filter(|currency| !currency.is_empty()).collect();
        if currencies.iter().any(|currency| *currency != currencies[0]) {
            cautions.push(format!("prices are in different currencies: {}", currencies.join(", ")));
        }
        cautions
    }
}
