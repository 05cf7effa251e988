//! How a figure is shown: its label, its unit, and which direction is better.
//!
//! [`crate::figures::RUN_COLUMNS`] and the two lists of columns say once which figures are shown and in which order; the
//! comparison, Markdown, CSV and the page's tables all read them. A value is looked up in the tree of figures by its
//! path.

use sk_core::SimDuration;

use crate::analysis::Analysis;
use crate::figure::{Figure, ToFigure};
use crate::figures::RUN_COLUMNS;
use crate::words;

/// The shown figures that a run has, with their labels and values for people.
pub fn rows(analysis: &Analysis) -> impl Iterator<Item = (&'static Column, &'static str, String)> {
    let figures = analysis.summary.figure();
    let hours = analysis.window.length().as_secs_f64() / 3_600.0;
    let currency = &analysis.meta.currency;
    RUN_COLUMNS.iter().filter_map(move |column| {
        let value = column.value(&figures, hours)?;
        Some((column, column.label, column.unit.text(value, currency)))
    })
}

/// Which way a figure should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
    /// Neither: it is a fact, not a quality.
    Neither,
}

/// How a figure is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// Seconds.
    Time,
    /// A whole number.
    Count,
    /// Hours and the like.
    Number,
    /// In the scenario's currency.
    Money,
    /// Money over the run's window, shown for this many hours.
    MoneyPer(f64),
    /// Of a whole; 0.58 is 58 %.
    Share,
}

/// How one figure is shown.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its path in the tree.
    pub path: &'static str,
    /// Its label.
    pub label: &'static str,
    /// How it is written.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// A comparison leaves it out while it is the same everywhere.
    pub is_rare: bool,
}

impl Column {
    /// A figure of which less is better.
    pub(crate) const fn lower(path: &'static str, label: &'static str, unit: Unit) -> Self {
        Self { path, label, unit, better: Better::Lower, is_rare: false }
    }

    /// A figure of which more is better.
    pub(crate) const fn higher(path: &'static str, label: &'static str, unit: Unit) -> Self {
        Self { path, label, unit, better: Better::Higher, is_rare: false }
    }

    /// A figure that is a fact.
    pub(crate) const fn fact(path: &'static str, label: &'static str, unit: Unit) -> Self {
        Self { path, label, unit, better: Better::Neither, is_rare: false }
    }

    /// The same, of no interest while it does not differ.
    pub(crate) const fn rare(self) -> Self {
        Self { is_rare: true, ..self }
    }

    /// Its value in a tree of figures; nothing where the run does not have it. `hours`: how long the window is.
    pub fn value(&self, figures: &Figure, hours: f64) -> Option<f64> {
        let value = match self.path.split('.').try_fold(figures, |at, name| at.get(name))? {
            Figure::Count(count) => *count as f64,
            Figure::Number(number) => *number,
            Figure::Time(time) => time.as_secs_f64(),
            Figure::Fields(_) | Figure::Entries(_) | Figure::Absent => return None,
        };
        match self.unit {
            Unit::MoneyPer(of) => (hours > 0.0).then(|| value / hours * of),
            Unit::Time | Unit::Count | Unit::Number | Unit::Money | Unit::Share => Some(value),
        }
    }

    /// Its value for people; `–` where there is none.
    pub fn text(&self, figures: &Figure, hours: f64, currency: &str) -> String {
        self.value(figures, hours).map_or_else(|| "–".to_owned(), |value| self.unit.text(value, currency))
    }
}

impl Unit {
    /// A value for people.
    pub fn text(self, value: f64, currency: &str) -> String {
        match self {
            Self::Time => SimDuration::from_micros((value * 1e6).round() as i64).to_string(),
            Self::Count if value.fract() == 0.0 => words::grouped(value as i64),
            Self::Count | Self::Number => words::decimal(value),
            Self::Money | Self::MoneyPer(_) => words::money(value, currency),
            Self::Share => words::percent(value),
        }
    }

    /// A difference, or a bound of one, without its sign. Times and counts are shown as such, hours and money as shares
    /// of the baseline.
    pub(crate) fn size(self, size: f64, baseline: Option<f64>, currency: &str) -> String {
        match (self, baseline) {
            (Self::Number | Self::Money | Self::MoneyPer(_), Some(old)) if old != 0.0 => {
                format!("{:.1}%", 100.0 * size / old.abs())
            }
            (Self::Share, _) => format!("{:.1} points", 100.0 * size),
            (unit, _) => unit.text(size, currency),
        }
    }
}
