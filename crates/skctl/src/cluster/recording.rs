//! A tracer inside this process, for `record` and `snapshot`.

use std::io;

use anyhow::{Context, Result};
use indicatif::HumanCount;
use sk_trace::TraceOutput;
use sk_tracer::access::Place;
use sk_tracer::{Access, Spooled};

use crate::cli::Global;
use crate::output;
use crate::outputs::Destination;

/// The way to the cluster, for a tracer that reads its credentials again when they expire.
pub(crate) async fn access(global: &Global) -> Result<Access> {
    let place = Place { kubeconfig: global.kubeconfig.clone(), context: global.context.clone() };
    Ok(Access::to(place).await?.0)
}

/// Moves a finished trace to its destination, and prints its contents.
pub(crate) fn save(trace: Spooled, destination: &Destination, global: &Global) -> Result<()> {
    let Spooled { mut file, exported, behind, .. } = trace;
    destination.write(global, |_, mut out| {
        io::copy(&mut file, &mut out).context("cannot copy the trace")?;
        Ok::<_, anyhow::Error>(TraceOutput { out, losses: exported.losses, summary: () })
    })?;
    let [objects, records, observed] = [exported.objects, exported.records, exported.observations].map(HumanCount);
    output::say(global, &format!("{objects} objects in {records} records, {observed} pods observed"));
    if exported.gaps > 0 {
        output::say(global, &format!("{} gaps in the recording; `skctl trace show` lists them", exported.gaps));
    }
    if !behind.is_empty() {
        let kinds: Vec<String> = behind.iter().map(ToString::to_string).collect();
        output::say(global, &format!("the last changes of these kinds may be missing: {}", kinds.join(", ")));
    }
    Ok(())
}
