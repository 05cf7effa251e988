//! Extracts a part of a trace: by time, namespace, kind or label.
//!
//! A slice starts with the state at its start time, as every trace does: the newest version of each object and node
//! that exists then. A first pass over the heads finds it, so memory holds a number for each object. Lifecycles and
//! observations that overlap the slice are kept whole.

use std::collections::HashMap;
use std::io::Write;

use serde::Serialize;
use sk_core::{Gvk, LabelSelector, ObjectRef, SimTime, SmolStr};
use sk_store::trace::{
    Change, Deletion, Format, Labels, Mark, Object, Observation, OwnerLives, Row, Section, Selection, Trace, What,
};

use crate::names::{Names, number};
use crate::rewrite::{SECTIONS, Sink};
use crate::{EditError, TraceOutput};

/// How many objects or nodes may exist at the slice's start: 2^21 at about 36 bytes are 72 MiB.
const MAX_STATE: usize = 1 << 21;

/// Which part. The default is all of it.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// From here on.
    pub start: Option<SimTime>,
    /// Up to here, itself not included.
    pub end: Option<SimTime>,
    /// Only these namespaces, if any are named. Objects without a namespace stay.
    pub namespaces: Vec<SmolStr>,
    /// Not these namespaces.
    pub excluded_namespaces: Vec<SmolStr>,
    /// Only these kinds, if any are named: `Deployment`, or `apps/v1.Deployment`.
    pub kinds: Vec<String>,
    /// Only what has these labels. An object that loses them is deleted at that moment, as in a watch.
    pub labels: LabelSelector,
}

/// What was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sliced {
    /// Objects that the slice begins with, from before its start.
    pub state: u64,
    /// Events in its time that were kept.
    pub kept: u64,
    /// Events in its time that were left out.
    pub left_out: u64,
}

/// Writes that part of the trace to `out`.
pub fn slice<W: Write>(
    trace: &Trace,
    part: &Slice,
    format: Format,
    out: W,
) -> Result<TraceOutput<W, Sliced>, EditError> {
    if let (Some(start), Some(end)) = (part.start, part.end)
        && start >= end
    {
        let what = format!("a slice from {start} to {end} has no time in it");
        return Err(EditError::Refused { what, advice: "let it end after its start" });
    }
    let sink = Sink::like(trace, format, out)?;
    let mut cut = Cut { trace, part, sink, alive: Names::default(), ever: Names::default(), sliced: Sliced::default() };
    cut.state()?;
    cut.window()?;
    cut.rows()?;
    if cut.alive.overflow() + cut.ever.overflow() > 0 {
        let what = "the slice holds more objects than can be told apart".to_owned();
        return Err(EditError::Refused { what, advice: "slice fewer namespaces or kinds at a time" });
    }
    cut.sink.finish(cut.sliced)
}

impl Slice {
    fn takes_name(&self, object: &ObjectRef) -> bool {
        let namespace = object.key.namespace.as_ref();
        self.takes_kind(&object.gvk) && namespace.is_none_or(|namespace| self.takes_namespace(namespace))
    }

    fn takes_namespace(&self, namespace: &SmolStr) -> bool {
        (self.namespaces.is_empty() || self.namespaces.contains(namespace))
            && !self.excluded_namespaces.contains(namespace)
    }

    fn takes_kind(&self, gvk: &Gvk) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|kind| gvk.kind == *kind || gvk.to_string() == *kind)
    }

    fn takes_object(&self, object: &Object) -> bool {
        self.takes_name(object.reference()) && self.labels.matches(&object.value()["metadata"]["labels"])
    }

    fn takes_head(&self, object: &ObjectRef, labels: &Labels) -> bool {
        self.takes_name(object) && self.labels.matches(&**labels)
    }

    /// Does something that lasts so long reach into the slice?
    fn reaches(&self, from: SimTime, to: Option<SimTime>) -> bool {
        self.end.is_none_or(|end| from < end) && self.start.is_none_or(|start| to.is_none_or(|to| to >= start))
    }
}

struct Cut<'a, W: Write> {
    trace: &'a Trace,
    part: &'a Slice,
    sink: Sink<W>,
    /// Objects that exist in the slice now, and that ever did.
    alive: Names,
    ever: Names,
    sliced: Sliced,
}

impl<W: Write> Cut<'_, W> {
    /// Writes what exists at the slice's start.
    fn state(&mut self) -> Result<(), EditError> {
        let Some(start) = self.part.start else { return Ok(()) };
        let newest = self.newest_before(start)?;
        self.sink.record(start, Change::Mark(Mark::Moment))?;
        if newest.is_empty() {
            return Ok(());
        }
        for record in self.trace.select(&Selection::all().until(start))? {
            let record = record?;
            if let Change::Apply(object) = record.change {
                let name = number(object.reference());
                if newest.get(&name) == Some(&record.seq) {
                    self.alive.insert(name);
                    self.ever.insert(name);
                    self.sliced.state += 1;
                    self.sink.record(start, Change::Apply(object))?;
                }
            }
        }
        Ok(())
    }

    /// The record that holds each object's newest version before `start`.
    fn newest_before(&self, start: SimTime) -> Result<HashMap<u64, u64>, EditError> {
        let mut newest = HashMap::new();
        for head in self.trace.select_heads(&Selection::all().until(start))? {
            let head = head?;
            match &head.what {
                What::Apply(object, labels) if self.part.takes_head(object, labels) => {
                    newest.insert(number(&**object), head.seq);
                }
                What::Apply(object, _) | What::Delete(object, _) => drop(newest.remove(&number(&**object))),
                What::Mark => {}
            }
            check_limit(newest.len())?;
        }
        Ok(newest)
    }

    /// Writes what happens in the slice's time.
    fn window(&mut self) -> Result<(), EditError> {
        let mut selection = Selection::all();
        selection = self.part.start.map_or(selection.clone(), |start| selection.from(start));
        selection = self.part.end.map_or(selection.clone(), |end| selection.until(end));
        for record in self.trace.select(&selection)? {
            let record = record?;
            let is_mark = matches!(record.change, Change::Mark(_));
            match self.change(record.change) {
                Some(change) => {
                    self.sliced.kept += u64::from(!is_mark);
                    self.sink.record(record.at, change)?;
                }
                None => self.sliced.left_out += 1,
            }
        }
        if let Some(end) = self.part.end {
            self.sink.record(end, Change::Mark(Mark::Moment))?;
        }
        Ok(())
    }

    fn change(&mut self, change: Change) -> Option<Change> {
        match change {
            Change::Apply(object) if self.part.takes_object(&object) => {
                let name = number(object.reference());
                self.alive.insert(name);
                self.ever.insert(name);
                Some(Change::Apply(object))
            }
            Change::Apply(object) => {
                let left = self.alive.remove(number(object.reference()));
                left.then(|| Change::Delete(Deletion { object: object.reference().clone(), last: None }))
            }
            Change::Delete(deletion) => self.alive.remove(number(&deletion.object)).then_some(Change::Delete(deletion)),
            mark @ Change::Mark(_) => Some(mark),
        }
    }

    fn rows(&mut self) -> Result<(), EditError> {
        for section in SECTIONS {
            let newest = self.newest_of_nodes(section)?;
            for (place, row) in (0_u64..).zip(self.trace.rows(section)?) {
                if let Some(row) = self.row(row?, place, &newest) {
                    self.sink.row(&row)?;
                }
            }
        }
        Ok(())
    }

    /// Which row holds each node's newest state before the slice's start.
    fn newest_of_nodes(&self, section: Section) -> Result<HashMap<SmolStr, (SimTime, u64)>, EditError> {
        let mut newest: HashMap<SmolStr, (SimTime, u64)> = HashMap::new();
        let Some(start) = self.part.start.filter(|_| matches!(section, Section::Nodes | Section::Reserved)) else {
            return Ok(newest);
        };
        for (place, row) in (0..).zip(self.trace.rows(section)?) {
            let (node, at) = match row? {
                Row::Node(event) => (event.node, event.at),
                Row::Reserved(reserved) => (reserved.node, reserved.at),
                _ => continue,
            };
            if at < start && newest.get(&node).is_none_or(|(before, _)| at >= *before) {
                newest.insert(node, (at, place));
                check_limit(newest.len())?;
            }
        }
        Ok(newest)
    }

    fn row(&self, row: Row, place: u64, newest: &HashMap<SmolStr, (SimTime, u64)>) -> Option<Row> {
        let is_newest = |node: &SmolStr| newest.get(node).is_some_and(|(_, newest)| *newest == place);
        let start = self.part.start;
        match row {
            Row::Lives(lives) => self.lives(lives).map(Row::Lives),
            Row::Observation(pod) => self.observed(&pod).then_some(Row::Observation(pod)),
            Row::Node(mut event) => {
                let state = is_newest(&event.node) && event.object.is_some();
                event.at = if state { start.unwrap_or(event.at) } else { event.at };
                (state || self.part.reaches(event.at, Some(event.at))).then_some(Row::Node(event))
            }
            Row::Reserved(mut reserved) => {
                let state = is_newest(&reserved.node);
                reserved.at = if state { start.unwrap_or(reserved.at) } else { reserved.at };
                (state || self.part.reaches(reserved.at, Some(reserved.at))).then_some(Row::Reserved(reserved))
            }
            Row::Gap(mut gap) => {
                let reaches = self.part.reaches(gap.from, Some(gap.to));
                gap.from = start.map_or(gap.from, |start| gap.from.max(start));
                gap.to = self.part.end.map_or(gap.to, |end| gap.to.min(end));
                reaches.then_some(Row::Gap(gap))
            }
            Row::Index(_) => None,
        }
    }

    fn lives(&self, mut lives: OwnerLives) -> Option<OwnerLives> {
        if !self.ever.contains(number(&lives.owner)) {
            return None;
        }
        for template in &mut lives.templates {
            template.lives.retain(|life| self.part.reaches(life.start, life.end));
        }
        lives.templates.retain(|template| !template.lives.is_empty());
        (!lives.templates.is_empty()).then_some(lives)
    }

    fn observed(&self, pod: &Observation) -> bool {
        let bare = ObjectRef::new(Gvk::new_static("", "v1", "Pod"), pod.pod.clone());
        let owner = pod.owner.as_ref().unwrap_or(&bare);
        self.ever.contains(number(owner)) && self.part.reaches(pod.created, pod.deleted.or(pod.finished))
    }
}

fn check_limit(state: usize) -> Result<(), EditError> {
    if state <= MAX_STATE {
        return Ok(());
    }
    let what = format!("more than {MAX_STATE} objects exist at the slice's start");
    Err(EditError::Refused { what, advice: "slice fewer namespaces or kinds at a time" })
}
