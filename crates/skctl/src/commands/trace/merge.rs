//! `skctl trace merge IN IN… -O OUT`: merges several traces into one.

use anyhow::Result;
use indicatif::HumanCount;
use sk_store::Trace;
use sk_trace::merge::{Overlap, merge};

use crate::cli::{Global, MergeArgs};
use crate::outputs::Destination;
use crate::traces;

pub(crate) fn run(args: &MergeArgs, global: &Global) -> Result<()> {
    let destination = Destination::new(&args.to.out, args.to.to)?;
    let traces = args.inputs.iter().map(|input| traces::open(input, global)).collect::<Result<Vec<_>>>()?;
    let traces: Vec<&Trace> = traces.iter().collect();
    let overlap = if args.join { Overlap::Join } else { Overlap::Refuse };
    let merged = destination.write(global, |format, out| merge(&traces, overlap, format, out))?;
    if !global.quiet {
        anstream::eprintln!("{} events of {} traces", HumanCount(merged.events), merged.traces);
    }
    Ok(())
}
