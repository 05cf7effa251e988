//! `skctl sweep fetch`: copies records from the object store into a folder, those that are not there yet.

use anyhow::{Context, Result, bail};

use super::file::Sweep;
use super::location::RecordLocation;
use crate::cli::{Global, SweepFetchArgs};
use crate::failure::Outcome;
use crate::output;
use crate::progress::Progress;
use crate::runs;

pub(super) fn run(args: &SweepFetchArgs, global: &Global) -> Result<Outcome> {
    let sweep = Sweep::open(&args.plan)?;
    let place = RecordLocation::new(&sweep.plan.to)?;
    if let RecordLocation::Folder(folder) = &place {
        bail!("the records are in {} already; there is nothing to fetch", folder.display());
    }
    let there = place.contents()?.done;
    let to = args.out.clone().unwrap_or_else(|| runs::RUNS.into());
    let here = RecordLocation::Folder(to.clone()).contents()?.done;
    let progress = Progress::of_unknown_length(format!("fetching the records of {}", sweep.plan.name), global.quiet)?;
    let mut fetched = 0;
    let wanted = sweep.lines.iter().filter(|line| there.contains_key(&line.run_id) && !here.contains_key(&line.run_id));
    for (number, line) in (0..).zip(wanted) {
        if progress.at(number, || format!("{}, {}", sweep.plan.name, line.label())).is_break() {
            return Ok(Outcome::Interrupted);
        }
        let staged = place.fetch(&line.run_id, &to.join(&line.run_id));
        let staged = staged.with_context(|| format!("run {}", line.label()))?;
        if let Some(staged) = staged {
            staged.publish()?;
            fetched += 1;
        }
    }
    let missing = sweep.lines.iter().filter(|line| !there.contains_key(&line.run_id)).count();
    let also =
        if missing > 0 { format!("; {missing} of {} are not done yet", sweep.lines.len()) } else { String::new() };
    output::print(&format!("{}: {fetched} records fetched into {}{also}\n", sweep.plan.name, to.display()))?;
    Ok(Outcome::Good)
}
