//! Shifts all times of a trace by the same duration.
//!
//! Times inside objects (in annotations, for example) do not change. CronJobs follow the clock, so shift a trace with
//! CronJobs by whole days.

use std::io::Write;

use serde::Serialize;
use sk_core::{SimDuration, SimTime};
use sk_store::trace::{Format, Row, Trace};

use crate::rewrite::{SECTIONS, Sink};
use crate::{EditError, TraceOutput};

/// What was moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Shifted {
    /// Records, marks included.
    pub records: u64,
}

/// Writes the trace to `out` with everything `by` later, or earlier if `by` is negative.
pub fn shift<W: Write>(
    trace: &Trace,
    by: SimDuration,
    format: Format,
    out: W,
) -> Result<TraceOutput<W, Shifted>, EditError> {
    let mut sink = Sink::like(trace, format, out)?;
    let mut shifted = Shifted::default();
    for record in trace.records()? {
        let record = record?;
        shifted.records += 1;
        sink.record(record.at + by, record.change)?;
    }
    for section in SECTIONS {
        for row in trace.rows(section)? {
            let mut row = row?;
            each_time(&mut row, |time| *time += by);
            sink.row(&row)?;
        }
    }
    sink.finish(shifted)
}

/// Calls `change` for every moment in a row.
fn each_time(row: &mut Row, mut change: impl FnMut(&mut SimTime)) {
    match row {
        Row::Lives(lives) => {
            for life in lives.templates.iter_mut().flat_map(|template| &mut template.lives) {
                change(&mut life.start);
                life.end.iter_mut().for_each(&mut change);
            }
        }
        Row::Observation(pod) => {
            change(&mut pod.created);
            let maybe = [&mut pod.scheduled, &mut pod.started, &mut pod.finished, &mut pod.deleted];
            maybe.into_iter().flatten().for_each(&mut change);
            pod.waits.iter_mut().for_each(|wait| change(&mut wait.at));
        }
        Row::Node(event) => change(&mut event.at),
        Row::Reserved(reserved) => change(&mut reserved.at),
        Row::Gap(gap) => {
            change(&mut gap.from);
            change(&mut gap.to);
        }
        Row::Index(_) => {}
    }
}
