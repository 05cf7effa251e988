//! A part of a trace: a time, some namespaces, some kinds, some labels.
//!
//! A part that begins later than its trace starts with the state at that moment, so that it can be replayed by
//! itself. Finding that state takes one pass over heads, which remembers for each object where its newest version is.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;

use sk_core::{Gvk, LabelSelector, ObjectRef, SimTime, SmolStr};

use super::{Output, changed_header};
use crate::trace::error::TraceError;
use crate::trace::head::{Head, Labels, What};
use crate::trace::record::{Change, Deletion, Mark, Record};
use crate::trace::rows::{Gap, NodeEvent, Observation, Reserved, Row, Section};
use crate::trace::selection::Selection;
use crate::trace::write::{Losses, WriteError};
use crate::trace::{Format, Trace};

/// Which part. The default is everything.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// Only what happened at this time or later, after the state at this time.
    pub start: Option<SimTime>,
    /// Only what happened before this time.
    pub end: Option<SimTime>,
    /// Only these namespaces; empty for all. Cluster-scoped objects stay, except Namespaces of other names.
    pub namespaces: Vec<SmolStr>,
    /// None of these namespaces.
    pub excluded_namespaces: Vec<SmolStr>,
    /// Only these kinds; empty for all.
    pub kinds: Vec<Gvk>,
    /// Only objects with such labels. An object that loses them is deleted in the part.
    pub labels: Option<LabelSelector>,
}

impl Slice {
    /// May this object be in the part, whatever its labels are?
    fn takes_name(&self, object: &ObjectRef) -> bool {
        let is_namespace = object.gvk.group.is_empty() && object.gvk.kind == "Namespace";
        let namespace = if is_namespace { Some(&object.key.name) } else { object.key.namespace.as_ref() };
        (self.kinds.is_empty() || self.kinds.contains(&object.gvk))
            && namespace.is_none_or(|namespace| {
                (self.namespaces.is_empty() || self.namespaces.contains(namespace))
                    && !self.excluded_namespaces.contains(namespace)
            })
    }

    fn takes_labels(&self, labels: &Labels) -> bool {
        self.labels.as_ref().is_none_or(|selector| selector.matches(labels.as_ref()))
    }

    /// Has the part begun, and not ended?
    fn takes_span(&self, from: SimTime, to: Option<SimTime>) -> bool {
        self.end.is_none_or(|end| from < end) && self.start.is_none_or(|start| to.is_none_or(|to| to >= start))
    }
}

/// Writes a part of `trace`.
pub fn slice<W: Write>(trace: &Trace, part: &Slice, format: Format, out: W) -> Result<(W, Losses), WriteError> {
    let mut output = Output::new(format, out, &changed_header(trace))?;
    let mut kept = Kept { part, live: HashSet::new(), ever: HashSet::new() };
    let mut wanted = Selection::all();
    if let Some(start) = part.start {
        output.put(start, Change::Mark(Mark::Moment))?;
        put_state(trace, start, &mut kept, &mut output)?;
        wanted = wanted.from(start);
    }
    if let Some(end) = part.end {
        wanted = wanted.until(end);
    }
    for record in trace.select(&wanted)? {
        let record = record?;
        let at = record.at;
        if let Some(change) = kept.change(record) {
            output.put(at, change)?;
        }
    }
    if let Some(end) = part.end {
        output.put(end, Change::Mark(Mark::Moment))?;
    }
    put_rows(trace, &kept, &mut output)?;
    output.finish()
}

/// The objects of the part.
struct Kept<'a> {
    part: &'a Slice,
    /// Those that exist now.
    live: HashSet<ObjectRef>,
    /// Those that ever did.
    ever: HashSet<ObjectRef>,
}

impl Kept<'_> {
    /// What a record is in the part; `None` if it is not in it.
    fn change(&mut self, record: Record) -> Option<Change> {
        let head = Head::of(&record);
        match (head.what, record.change) {
            (What::Mark, mark) => Some(mark),
            (What::Delete(object, _), delete) => self.live.remove(&*object).then_some(delete),
            (What::Apply(object, labels), apply) => {
                if self.part.takes_name(&object) && self.part.takes_labels(&labels) {
                    self.live.insert((*object).clone());
                    self.ever.insert((*object).clone());
                    return Some(apply);
                }
                let left = self.live.remove(&*object);
                left.then(|| Change::Delete(Deletion { object: (*object).clone(), last: None }))
            }
        }
    }
}

/// Writes what existed at `start`, as it was then.
fn put_state<W: Write>(
    trace: &Trace,
    start: SimTime,
    kept: &mut Kept<'_>,
    output: &mut Output<W>,
) -> Result<(), WriteError> {
    let newest = newest_before(trace, start)?;
    for record in trace.select(&Selection::all().until(start))? {
        let record = record?;
        if newest.contains(&record.seq)
            && let Some(change) = kept.change(record)
        {
            output.put(start, change)?;
        }
    }
    Ok(())
}

/// The sequence numbers of the newest versions of what existed at `start`.
fn newest_before(trace: &Trace, start: SimTime) -> Result<HashSet<u64>, TraceError> {
    let mut newest = HashMap::new();
    for head in trace.select_heads(&Selection::all().until(start))? {
        let Head { seq, what, .. } = head?;
        match what {
            What::Apply(object, _) => {
                newest.insert(object, seq);
            }
            What::Delete(object, _) => {
                newest.remove(&object);
            }
            What::Mark => {}
        }
    }
    Ok(newest.into_values().collect())
}

fn put_rows<W: Write>(trace: &Trace, kept: &Kept<'_>, output: &mut Output<W>) -> Result<(), WriteError> {
    for lives in trace.lives()? {
        let mut lives = lives?;
        if !kept.ever.contains(&lives.owner) {
            continue;
        }
        for template in &mut lives.templates {
            template.lives.retain(|life| kept.part.takes_span(life.start, life.end));
        }
        lives.templates.retain(|template| !template.lives.is_empty());
        if !lives.templates.is_empty() {
            output.row(&Row::Lives(lives))?;
        }
    }
    for seen in trace.observations()? {
        let seen = seen?;
        if takes_observation(kept, &seen) {
            output.row(&Row::Observation(seen))?;
        }
    }
    put_from_start(trace, Section::Nodes, kept.part, output)?;
    put_from_start(trace, Section::Reserved, kept.part, output)?;
    for gap in trace.gaps()? {
        let Gap { from, to, reason } = gap?;
        if kept.part.takes_span(from, Some(to)) {
            let from = kept.part.start.map_or(from, |start| from.max(start));
            let to = kept.part.end.map_or(to, |end| to.min(end));
            output.row(&Row::Gap(Gap { from, to, reason }))?;
        }
    }
    Ok(())
}

fn takes_observation(kept: &Kept<'_>, seen: &Observation) -> bool {
    let gone = seen.deleted.or(seen.finished);
    let owner = match &seen.owner {
        Some(owner) => kept.ever.contains(owner),
        None => kept.ever.contains(&ObjectRef::new(Gvk::new_static("", "v1", "Pod"), seen.pod.clone())),
    };
    owner && kept.part.takes_span(seen.created, gone)
}

/// Writes the rows of a section that tell the state of a node from a time on: the newest before the start as of the
/// start, then those of the part. A node that was gone before the start is not mentioned.
fn put_from_start<W: Write>(
    trace: &Trace,
    section: Section,
    part: &Slice,
    output: &mut Output<W>,
) -> Result<(), WriteError> {
    let mut before: BTreeMap<SmolStr, Row> = BTreeMap::new();
    let mut begun = part.start.is_none();
    for row in trace.rows(section)? {
        let row = row?;
        let (Row::Node(NodeEvent { at, node, .. }) | Row::Reserved(Reserved { at, node, .. })) = &row else { continue };
        if part.start.is_some_and(|start| *at < start) {
            before.insert(node.clone(), row);
            continue;
        }
        if !begun {
            put_state_of_nodes(&mut before, part, output)?;
            begun = true;
        }
        if part.end.is_none_or(|end| *at < end) {
            output.row(&row)?;
        }
    }
    put_state_of_nodes(&mut before, part, output)
}

fn put_state_of_nodes<W: Write>(
    before: &mut BTreeMap<SmolStr, Row>,
    part: &Slice,
    output: &mut Output<W>,
) -> Result<(), WriteError> {
    let Some(start) = part.start else { return Ok(()) };
    for (_, row) in std::mem::take(before) {
        match row {
            Row::Node(NodeEvent { object: None, .. }) => {}
            Row::Node(event) => output.row(&Row::Node(NodeEvent { at: start, ..event }))?,
            Row::Reserved(reserved) => output.row(&Row::Reserved(Reserved { at: start, ..reserved }))?,
            _ => {}
        }
    }
    Ok(())
}
