//! `skctl trace shift IN -O OUT`: shifts a trace in time.

use anyhow::{Result, bail};
use sk_core::SimDuration;
use sk_store::Trace;
use sk_trace::shift::shift;

use crate::cli::{Global, ShiftArgs};
use crate::outputs::Destination;
use crate::times::Clock;
use crate::traces;

pub(crate) fn run(args: &ShiftArgs, global: &Global) -> Result<()> {
    let destination = Destination::new(&args.to.out, args.to.to)?;
    let trace = traces::open(&args.input, global)?;
    let by = distance(args, &trace, global)?;
    destination.write(global, |format, out| shift(&trace, by, format, out))?;
    if !global.quiet {
        let (by, direction) = if by.is_negative() { (by * -1, "earlier") } else { (by, "later") };
        anstream::eprintln!("everything is {by} {direction}");
    }
    Ok(())
}

fn distance(args: &ShiftArgs, trace: &Trace, global: &Global) -> Result<SimDuration> {
    let Some((first, _)) = trace.span() else { bail!("{} is empty: there is nothing to move", trace.name()) };
    match (args.by, &args.start) {
        (Some(by), _) => Ok(by),
        (None, Some(start)) => Ok(Clock::of(global).moment(start, first)?.since(first)),
        (None, None) => Ok(SimDuration::ZERO),
    }
}
