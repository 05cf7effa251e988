//! A trace at another time.

use std::io::Write;

use sk_core::SimDuration;

use super::{Output, changed_header};
use crate::trace::lives::{Life, OwnerLives};
use crate::trace::rows::{Row, Section};
use crate::trace::write::{Losses, WriteError};
use crate::trace::{Format, Trace};

/// Writes `trace` with every time moved by `by`. What times stand inside of objects stays as it was recorded.
pub fn shift<W: Write>(trace: &Trace, by: SimDuration, format: Format, out: W) -> Result<(W, Losses), WriteError> {
    let mut output = Output::new(format, out, &changed_header(trace))?;
    for record in trace.records()? {
        let record = record?;
        output.put(record.at + by, record.change)?;
    }
    for section in Section::ALL.into_iter().filter(|section| *section != Section::Index) {
        for row in trace.rows(section)? {
            output.row(&shifted(row?, by))?;
        }
    }
    output.finish()
}

fn shifted(mut row: Row, by: SimDuration) -> Row {
    match &mut row {
        Row::Lives(lives) => shift_lives(lives, by),
        Row::Observation(seen) => {
            seen.created += by;
            let later = [&mut seen.scheduled, &mut seen.started, &mut seen.finished, &mut seen.deleted];
            later.into_iter().flatten().for_each(|time| *time += by);
            seen.waits.iter_mut().for_each(|wait| wait.at += by);
        }
        Row::Node(event) => event.at += by,
        Row::Reserved(reserved) => reserved.at += by,
        Row::Gap(gap) => {
            gap.from += by;
            gap.to += by;
        }
        Row::Index(_) => {}
    }
    row
}

fn shift_lives(lives: &mut OwnerLives, by: SimDuration) {
    for template in &mut lives.templates {
        for Life { start, end } in &mut template.lives {
            *start += by;
            *end = end.map(|end| end + by);
        }
    }
}
