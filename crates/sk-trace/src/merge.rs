//! Merges several traces into one, in order of time.
//!
//! For traces of several clusters, and for consecutive slices of one cluster. Nothing is renamed: if two traces have
//! the same object, the merge is refused, or the two histories become one, as the caller chooses. The boundaries of v2
//! events are not kept, because those of several traces would overlap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::Write;

use serde::Serialize;
use serde_json::{Map, Value};
use sk_core::{ObjectRef, SimTime};
use sk_store::trace::{Change, Format, Header, Mark, Record, Row, Trace, TracerConfig};

use crate::names::number;
use crate::rewrite::{SECTIONS, Sink};
use crate::{EditError, TraceOutput};

/// How many traces are merged at once; each is an open file.
const MAX_TRACES: usize = 64;

/// The most objects: 2^21 at about 36 bytes are 72 MiB.
const MAX_OBJECTS: usize = 1 << 21;

/// What to do about an object that is in more than one trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// Refuse to merge.
    #[default]
    Refuse,
    /// Tell both stories as one: right for parts of one recording.
    Join,
}

/// What was merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Merged {
    /// Traces.
    pub traces: u64,
    /// Objects applied or deleted.
    pub events: u64,
}

/// Writes the traces to `out` as one.
pub fn merge<W: Write>(
    traces: &[&Trace],
    overlap: Overlap,
    format: Format,
    out: W,
) -> Result<TraceOutput<W, Merged>, EditError> {
    if traces.len() > MAX_TRACES {
        let what = format!("{} traces are too many at once", traces.len());
        return Err(EditError::Refused { what, advice: "merge at most 64, then the results" });
    }
    let header = Header { config: merged_config(traces)?, origin: None };
    let mut sink = Sink::new(&header, format, out)?;
    let mut merged = Merged { traces: traces.len() as u64, events: 0 };
    let starts = traces.iter().filter_map(|trace| trace.span());
    let span = starts.reduce(|whole, part| (whole.0.min(part.0), whole.1.max(part.1)));
    let Some((start, end)) = span else { return sink.finish(merged) };
    sink.record(start, Change::Mark(Mark::Moment))?;
    let mut sources = ObjectSources { traces, overlap, sources: HashMap::new() };
    for_each_in_order(traces, |place, record| {
        if let Some(object) = record.change.object() {
            sources.check(place, object)?;
            merged.events += 1;
            sink.record(record.at, record.change)?;
        }
        Ok(())
    })?;
    sink.record(end, Change::Mark(Mark::Moment))?;
    rows(traces, &mut sink)?;
    sink.finish(merged)
}

/// Everything else. The latest trace comes first, because what it saw of a pod that an earlier one saw too is more.
fn rows<W: Write>(traces: &[&Trace], sink: &mut Sink<W>) -> Result<(), EditError> {
    let mut latest_first = traces.to_vec();
    latest_first.sort_by_key(|trace| Reverse(trace.span()));
    for section in SECTIONS {
        let mut carried = Carried::default();
        for trace in &latest_first {
            let start = trace.span().map_or(SimTime::MAX, |(start, _)| start);
            let mut reaching = Vec::new();
            for row in trace.rows(section)? {
                if let Some(row) = carried.without(row?, start, &mut reaching) {
                    sink.row(&row)?;
                }
            }
            carried.add(reaching, start)?;
        }
    }
    Ok(())
}

/// Pods that a later trace tells of although they began before it: parts of one recording both have them.
#[derive(Default)]
struct Carried(HashMap<u64, SimTime>);

impl Carried {
    /// The row without the pods that a later trace tells of. Pods that began before `start` are added to `reaching`.
    fn without(&self, row: Row, start: SimTime, reaching: &mut Vec<u64>) -> Option<Row> {
        let mut keep = |pod: u64, from: SimTime, to: Option<SimTime>| {
            if from < start {
                reaching.push(pod);
            }
            // What ended before the later trace began is another pod with the same beginning.
            self.0.get(&pod).is_none_or(|later| to.is_some_and(|to| to < *later))
        };
        match row {
            Row::Lives(mut lives) => {
                let owner = &lives.owner;
                for template in &mut lives.templates {
                    let (id, hash) = (&template.template, template.pod_hash);
                    template.lives.retain(|life| keep(number(&(owner, id, hash, life.start)), life.start, life.end));
                }
                lives.templates.retain(|template| !template.lives.is_empty());
                (!lives.templates.is_empty()).then_some(Row::Lives(lives))
            }
            Row::Observation(pod) => {
                let to = pod.deleted.or(pod.finished);
                keep(number(&(&pod.pod, pod.created)), pod.created, to).then_some(Row::Observation(pod))
            }
            row => Some(row),
        }
    }

    fn add(&mut self, reaching: Vec<u64>, start: SimTime) -> Result<(), EditError> {
        if self.0.len() + reaching.len() > MAX_OBJECTS {
            let what = format!("more than {MAX_OBJECTS} pods reach from one trace into the next");
            return Err(EditError::Refused { what, advice: "merge fewer traces, or slice them first" });
        }
        self.0.extend(reaching.into_iter().map(|pod| (pod, start)));
        Ok(())
    }
}

/// Every record of every trace by time; at the same time, in the order of the traces.
fn for_each_in_order(
    traces: &[&Trace],
    mut each: impl FnMut(usize, Record) -> Result<(), EditError>,
) -> Result<(), EditError> {
    let mut streams = traces.iter().map(|trace| trace.records()).collect::<Result<Vec<_>, _>>()?;
    let mut waiting: Vec<Option<Record>> = Vec::new();
    let mut next = BinaryHeap::new();
    for (place, stream) in streams.iter_mut().enumerate() {
        let record = stream.next().transpose()?;
        next.extend(record.as_ref().map(|record| Reverse((record.at, place))));
        waiting.push(record);
    }
    while let Some(Reverse((_, place))) = next.pop() {
        let following = streams[place].next().transpose()?;
        next.extend(following.as_ref().map(|record| Reverse((record.at, place))));
        if let Some(record) = std::mem::replace(&mut waiting[place], following) {
            each(place, record)?;
        }
    }
    Ok(())
}

/// The trace in which each object was seen first.
struct ObjectSources<'a> {
    traces: &'a [&'a Trace],
    overlap: Overlap,
    sources: HashMap<u64, usize>,
}

impl ObjectSources<'_> {
    fn check(&mut self, place: usize, object: &ObjectRef) -> Result<(), EditError> {
        if self.overlap == Overlap::Join {
            return Ok(());
        }
        if self.sources.len() >= MAX_OBJECTS {
            let what = format!("the traces hold more than {MAX_OBJECTS} objects, too many to tell apart");
            return Err(EditError::Refused { what, advice: "slice them first, or join what overlaps" });
        }
        let source = *self.sources.entry(number(object)).or_insert(place);
        if source == place {
            return Ok(());
        }
        let what = format!("{object} is both in {} and in {}", self.traces[source].name(), self.traces[place].name());
        let advice = "rename it in one of them (trace transform), or join them if they are parts of one recording";
        Err(EditError::Refused { what, advice })
    }
}

/// What all of them track. Two that track a kind otherwise cannot be merged.
fn merged_config(traces: &[&Trace]) -> Result<TracerConfig, EditError> {
    let mut tracked = Map::new();
    for trace in traces {
        let settings = &trace.config().as_written()["trackedObjects"];
        for (kind, settings) in settings.as_object().into_iter().flatten() {
            if let Some(other) = tracked.insert(kind.clone(), settings.clone()).filter(|other| other != settings) {
                let what = format!("{} tracks {kind} with {settings}, another trace with {other}", trace.name());
                return Err(EditError::Refused { what, advice: "make the configurations agree and export again" });
            }
        }
    }
    let written = Value::Object(Map::from_iter([("trackedObjects".to_owned(), Value::Object(tracked))]));
    TracerConfig::from_value(written).map_err(|error| {
        let what = format!("the merged configuration is wrong: {error}");
        EditError::Refused { what, advice: "make the configurations agree and export again" }
    })
}
