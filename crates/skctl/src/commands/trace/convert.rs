//! `skctl trace convert IN OUT`: converts a trace to another format.

use anyhow::Result;
use sk_store::trace::{WriteError, convert};
use sk_trace::TraceOutput;

use crate::cli::{ConvertArgs, Global};
use crate::outputs::Destination;
use crate::traces;

pub(crate) fn run(args: &ConvertArgs, global: &Global) -> Result<()> {
    let destination = Destination::new(&args.out, args.to)?;
    let trace = traces::open(&args.input, global)?;
    destination.write(global, |format, out| {
        let (out, losses) = convert(&trace, format, out)?;
        Ok::<_, WriteError>(TraceOutput { out, losses, summary: () })
    })
}
