//! Several traces as one, each at its own times.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::{Map, Value};

use super::Output;
use crate::trace::config::TracerConfig;
use crate::trace::error::{Flaw, Place, TraceError};
use crate::trace::header::Header;
use crate::trace::record::{Change, Mark, Record};
use crate::trace::rows::Section;
use crate::trace::write::{Losses, WriteError};
use crate::trace::{Format, Records, Trace};

/// Writes all traces as one, in the order of time; what happens at the same time comes in the order of the traces.
///
/// An object of the same kind and name in two traces is one object with the versions of both, as when parts of one
/// cluster's recording are put together again. Traces of different clusters must not share namespaces.
pub fn merge<W: Write>(traces: &[Trace], format: Format, out: W) -> Result<(W, Losses), WriteError> {
    let header = Header { config: merged_config(traces)?, origin: None };
    let mut output = Output::new(format, out, &header)?;
    let mut inputs = traces.iter().map(Input::new).collect::<Result<Vec<_>, _>>()?;
    while let Some(record) = next(&mut inputs)? {
        let change = match record.change {
            // Records of other traces come between those of one event; it is no longer what it was.
            Change::Mark(_) => Change::Mark(Mark::Moment),
            change => change,
        };
        output.put(record.at, change)?;
    }
    for section in Section::ALL.into_iter().filter(|section| *section != Section::Index) {
        for trace in traces {
            for row in trace.rows(section)? {
                output.row(&row?)?;
            }
        }
    }
    output.finish()
}

/// A trace and its next record.
struct Input<'a> {
    records: Records<'a>,
    next: Option<Record>,
}

impl<'a> Input<'a> {
    fn new(trace: &'a Trace) -> Result<Self, TraceError> {
        let mut records = trace.records()?;
        let next = records.next().transpose()?;
        Ok(Self { records, next })
    }
}

/// The earliest of all next records.
fn next(inputs: &mut [Input<'_>]) -> Result<Option<Record>, TraceError> {
    let earliest = inputs
        .iter_mut()
        .filter(|input| input.next.is_some())
        .min_by_key(|input| input.next.as_ref().map(|record| record.at));
    let Some(input) = earliest else { return Ok(None) };
    let following = input.records.next().transpose()?;
    Ok(std::mem::replace(&mut input.next, following))
}

/// All kinds that any of the traces tracked. Two traces may not disagree on how a kind was tracked, because then there
/// is no one configuration that tells how the merged trace came to be.
fn merged_config(traces: &[Trace]) -> Result<TracerConfig, TraceError> {
    let mut kinds: BTreeMap<String, (Value, &Trace)> = BTreeMap::new();
    for trace in traces {
        let written = trace.config().as_written()["trackedObjects"].as_object();
        for (kind, settings) in written.into_iter().flatten() {
            let (known, from) = kinds.entry(kind.clone()).or_insert_with(|| (settings.clone(), trace));
            if known != settings {
                let what = format!("{kind} is tracked otherwise in {}", from.name());
                let place = Place { part: Some("config".into()), offset: None };
                return Err(TraceError::new(&trace.name().into(), place, Flaw::Content(what)));
            }
        }
    }
    let tracked: Map<String, Value> = kinds.into_iter().map(|(kind, (settings, _))| (kind, settings)).collect();
    let mut written = Map::new();
    written.insert("trackedObjects".into(), tracked.into());
    TracerConfig::from_value(written.into()).map_err(|error| {
        let name = traces.first().map_or("", Trace::name);
        TraceError::new(&name.into(), Place { part: Some("config".into()), offset: None }, error)
    })
}
