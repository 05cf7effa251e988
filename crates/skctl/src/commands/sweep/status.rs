//! `skctl sweep status`: which runs of a plan are done, which failed and why, and when the rest will be done.
//!
//! It reads only the stored records, so it works wherever the runs are made.

use std::time::{Duration, SystemTime};

use anyhow::Result;
use serde_json::json;
use sk_core::SimDuration;
use sk_store::location::shown;

use super::file::{Line, Sweep};
use super::location::{Contents, RecordLocation};
use crate::cli::{SweepStatusArgs, TableFormat};
use crate::failure::Outcome;
use crate::output;

/// The state of a sweep.
struct Status<'a> {
    sweep: &'a Sweep,
    done: usize,
    /// With the reason of each.
    failed: Vec<(&'a Line, String)>,
    left: Option<Duration>,
}

pub(super) fn run(args: &SweepStatusArgs) -> Result<Outcome> {
    let sweep = Sweep::open(&args.plan)?;
    let place = RecordLocation::new(&sweep.plan.to)?;
    let contents = place.contents()?;
    let has_failed = |line: &&Line| contents.failed.contains(&line.run_id) && !contents.done.contains_key(&line.run_id);
    let why =
        |line: &Line| place.failure(&line.run_id).unwrap_or_else(|error| format!("the reason cannot be read: {error}"));
    let status = Status {
        sweep: &sweep,
        done: sweep.lines.iter().filter(|line| contents.done.contains_key(&line.run_id)).count(),
        failed: sweep.lines.iter().filter(has_failed).map(|line| (line, why(line))).collect(),
        left: time_left(&sweep, &contents, SystemTime::now()),
    };
    match args.output {
        TableFormat::Json => output::print_json(&status.for_programs())?,
        TableFormat::Table => output::print(&status.for_people())?,
    }
    Ok(if status.done == sweep.lines.len() { Outcome::Good } else { Outcome::Bad })
}

impl Status<'_> {
    fn missing(&self) -> usize {
        self.sweep.lines.len() - self.done - self.failed.len()
    }

    fn for_people(&self) -> String {
        let Self { sweep, done, failed, left } = self;
        let total = sweep.lines.len();
        let mut text = format!("{}: {done} of {total} runs done in {}", sweep.plan.name, shown(&sweep.plan.to));
        if !failed.is_empty() {
            text += &format!(", {} failed", failed.len());
        }
        if self.missing() > 0 {
            text += &format!(", {} missing", self.missing());
        }
        if let Some(left) = left {
            let secs = i64::try_from(left.as_secs()).unwrap_or(i64::MAX);
            text += &format!("; about {} left at the rate so far", SimDuration::from_secs(secs));
        }
        text.push('\n');
        for (line, reason) in failed {
            text += &format!("  {}: {}\n", output::line(&line.label()), output::line(reason));
        }
        text
    }

    fn for_programs(&self) -> serde_json::Value {
        let failed: Vec<_> = self
            .failed
            .iter()
            .map(|(line, reason)| json!({"index": line.index, "run": line.run_id, "variant": line.variant, "seed": line.seed, "reason": reason}))
            .collect();
        json!({
            "name": self.sweep.plan.name, "to": shown(&self.sweep.plan.to), "runs": self.sweep.lines.len(),
            "done": self.done, "missing": self.missing(), "failed": failed,
            "left_s": self.left.map(|left| left.as_secs()),
        })
    }
}

/// How long the rest takes if it goes on as it did from the first record to the last; nothing if too little is known, or
/// nothing has come for so long that nobody seems to be at work.
fn time_left(sweep: &Sweep, contents: &Contents, now: SystemTime) -> Option<Duration> {
    let mut times: Vec<SystemTime> =
        sweep.lines.iter().filter_map(|line| contents.done.get(&line.run_id)).copied().collect();
    times.sort();
    let (first, last) = (*times.first()?, *times.last()?);
    let missing = u32::try_from(sweep.lines.len() - times.len()).ok().filter(|missing| *missing > 0)?;
    let between = u32::try_from(times.len() - 1).ok().filter(|between| *between > 0)?;
    let each = last.duration_since(first).ok()? / between;
    let idle = now.duration_since(last).unwrap_or_default();
    (idle <= (each * 10).max(Duration::from_secs(10))).then(|| each * missing)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::file::Plan;
    use super::*;

    fn sweep(runs: usize) -> Sweep {
        let line = |index: usize| Line {
            index,
            variant: String::new(),
            folder: "v0".into(),
            seed: index as u64,
            name: "pack".into(),
            run_id: format!("pack-{index}"),
        };
        let plan = Plan::new("pack".into(), "example:nginx".into(), "runs".into(), false, Vec::new());
        Sweep { dir: Path::new("x").to_owned(), plan, lines: (0..runs).map(line).collect() }
    }

    #[test]
    fn the_rest_takes_as_long_as_what_is_done_did() {
        let at = |secs: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
        let done = |times: &[u64]| Contents {
            done: times.iter().enumerate().map(|(index, secs)| (format!("pack-{index}"), at(*secs))).collect(),
            failed: Default::default(),
        };
        let left = |times: &[u64], now: u64| time_left(&sweep(10), &done(times), at(now));
        assert_eq!(left(&[100, 110, 120], 125), Some(Duration::from_secs(70)));
        assert_eq!(left(&[100, 110, 120], 100_000), None, "nobody seems to be at work");
        assert_eq!(left(&[100], 101), None, "one record tells no rate");
        assert_eq!(left(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 11), None, "nothing is left");
    }
}
