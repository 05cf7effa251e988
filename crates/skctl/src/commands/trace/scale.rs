//! `skctl trace scale IN -O OUT`: multiplies replicas or workloads.

use anyhow::Result;
use indicatif::HumanCount;
use sk_trace::scale::{Scale, scale};

use crate::cli::{Global, ScaleArgs};
use crate::outputs::Destination;
use crate::traces;

pub(crate) fn run(args: &ScaleArgs, global: &Global) -> Result<()> {
    let destination = Destination::new(&args.to.out, args.to.to)?;
    let trace = traces::open(&args.input, global)?;
    let by = Scale { replicas: args.replicas.unwrap_or(1.0), arrivals: args.arrivals.unwrap_or(1.0), seed: args.seed };
    let scaled = destination.write(global, |format, out| scale(&trace, by, format, out))?;
    if !global.quiet {
        let [rescaled, added, left_out] = [scaled.rescaled, scaled.added, scaled.left_out].map(HumanCount);
        anstream::eprintln!("{rescaled} versions have other replicas; {added} events added, {left_out} left out");
        if scaled.forgotten_templates > 0 {
            let forgotten = HumanCount(scaled.forgotten_templates);
            anstream::eprintln!(
                "{forgotten} templates did not fit into memory; their lives follow in the order of start"
            );
        }
    }
    Ok(())
}
