//! `skctl trace slice IN -O OUT`: extracts a part of a trace, starting with the state at that time.

use anyhow::{Result, bail};
use indicatif::HumanCount;
use sk_core::{SimTime, SmolStr};
use sk_trace::slice::{Slice, slice};

use crate::cli::{Global, SliceArgs};
use crate::outputs::Destination;
use crate::times::{Asked, Clock};
use crate::traces;

pub(crate) fn run(args: &SliceArgs, global: &Global) -> Result<()> {
    if let Some(namespace) = &global.namespace {
        bail!("--namespace is where the tracer runs; you want --include-namespaces {namespace}");
    }
    let destination = Destination::new(&args.to.out, args.to.to)?;
    let asked = Asked::new(&args.part)?;
    let trace = traces::open(&args.input, global)?;
    let first = trace.span().map_or(SimTime::EPOCH, |(first, _)| first);
    let (start, end) = asked.moments(first, &Clock::of(global))?;
    let names = |names: &[String]| names.iter().map(SmolStr::from).collect();
    let part = Slice {
        start,
        end,
        namespaces: names(&args.include_namespaces),
        excluded_namespaces: names(&args.excluded_namespaces),
        kinds: args.kind.clone(),
        labels: args.selector.clone(),
    };
    let sliced = destination.write(global, |format, out| slice(&trace, &part, format, out))?;
    if !global.quiet {
        let [state, kept, left_out] = [sliced.state, sliced.kept, sliced.left_out].map(HumanCount);
        anstream::eprintln!("{state} objects at its start, then {kept} events; {left_out} events were left out");
    }
    Ok(())
}
