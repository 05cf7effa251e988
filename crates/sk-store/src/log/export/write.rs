//! The second pass: the trace itself. Bodies that make up the state at the start wait in a spool, because the log has
//! them in the order in which they came and a trace begins with them in the order of their names.

use std::collections::BTreeMap;
use std::io::Write as Output;

use serde_json::{Value, json};
use sk_core::{ObjectRef, SimTime, SmolStr};

use super::query::{ExportError, Exported, Query};
use super::rows;
use super::survey::{self, Survey, Verdicts};
use crate::log::catalog::Listed;
use crate::log::error::Damage;
use crate::log::fact::Fact;
use crate::log::timeline::{Item, Items};
use crate::msgpack::MAX_OBJECT_BYTES;
use crate::trace::spool::Spool;
use crate::trace::{Change, Deletion, Format, Gap, Header, Mark, NodeEvent, Object, Record, Row, WriteError, Writer};

/// What the first pass has found.
pub(super) struct Material<'a> {
    pub(super) survey: &'a Survey,
    pub(super) verdicts: &'a Verdicts,
    pub(super) gaps: &'a [Gap],
    pub(super) damages: &'a [Damage],
    pub(super) segments: Vec<Listed>,
}

/// Writes the trace.
pub(super) fn write<W: Output>(
    query: &Query,
    format: Format,
    out: W,
    material: &Material<'_>,
) -> Result<Exported, ExportError> {
    // v2 carries the index that it is given only if it is told that the index comes from such a recording.
    let header = Header { config: query.config.clone(), origin: (format == Format::V2).then_some(2) };
    let writer = Writer::new(format, out, &header)?;
    let mut pass =
        Pass { query, format, material, writer, next_seq: 0, start: Start::default(), done: Exported::default() };
    pass.records()?;
    pass.rows()?;
    let Pass { writer, mut done, .. } = pass;
    let (_, losses) = writer.finish()?;
    done.losses = losses;
    done.objects = material.verdicts.exported_count();
    done.damages = material.damages.to_vec();
    Ok(done)
}

struct Pass<'a, W: Output> {
    query: &'a Query,
    format: Format,
    material: &'a Material<'a>,
    writer: Writer<W>,
    next_seq: u64,
    start: Start,
    done: Exported,
}

/// The state at the start, while it is being collected.
struct Start {
    bodies: Spool,
    /// Where each object's body lies: what others may need first comes first.
    objects: BTreeMap<(u8, ObjectRef), (u64, u64)>,
    nodes: BTreeMap<SmolStr, (u64, u64)>,
}

impl Default for Start {
    fn default() -> Self {
        Self { bodies: Spool::new(), objects: BTreeMap::new(), nodes: BTreeMap::new() }
    }
}

impl Start {
    fn keep(&mut self, body: &[u8]) -> Result<(u64, u64), WriteError> {
        let offset = self.bodies.len();
        self.bodies.append(body)?;
        Ok((offset, body.len() as u64))
    }

    fn body(&mut self, (offset, len): (u64, u64)) -> Result<Vec<u8>, WriteError> {
        let mut body = Vec::new();
        self.bodies.copy(offset, len, &mut body)?;
        Ok(body)
    }
}

/// Namespaces before everything, then what is in no namespace, then the rest.
fn rank(object: &ObjectRef) -> u8 {
    match (&object.key.namespace, object.gvk.kind.as_str()) {
        (None, "Namespace") => 0,
        (None, _) => 1,
        (Some(_), _) => 2,
    }
}

impl<W: Output> Pass<'_, W> {
    fn records(&mut self) -> Result<(), ExportError> {
        self.record(self.query.start, Change::Mark(Mark::Moment))?;
        let mut started = false;
        for (place, item) in (0..).zip(Items::new(self.material.segments.clone())) {
            let at = survey::moment_of(&item, self.query.start);
            if at >= self.query.end {
                break;
            }
            let before = survey::is_before(&item, self.query.start);
            let (Item::State(fact) | Item::Healed(_, fact) | Item::Entry(crate::log::Entry { fact, .. })) = item else {
                continue;
            };
            if before {
                self.collect(place, fact)?;
                continue;
            }
            if !started {
                self.begin()?;
                started = true;
            }
            self.event(at, fact)?;
        }
        if !started {
            self.begin()?;
        }
        self.record(self.query.end, Change::Mark(Mark::Moment))
    }

    /// Keeps what is part of the state at the start.
    fn collect(&mut self, place: u64, fact: Fact) -> Result<(), ExportError> {
        let Material { survey, verdicts, .. } = self.material;
        match fact {
            Fact::Applied(applied)
                if survey.is_at_start(&applied.object, place) && verdicts.exports(&applied.object, &applied.uid) =>
            {
                let kept = self.start.keep(&applied.body)?;
                self.start.objects.insert((rank(&applied.object), applied.object), kept);
            }
            Fact::Node(node, Some(body)) if survey.is_node_at_start(&node, place) => {
                let kept = self.start.keep(&body)?;
                self.start.nodes.insert(node, kept);
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes the state at the start.
    fn begin(&mut self) -> Result<(), ExportError> {
        let mut start = std::mem::take(&mut self.start);
        for ((_, object), kept) in std::mem::take(&mut start.objects) {
            let body = start.body(kept)?;
            self.apply(self.query.start, &object, &body)?;
        }
        for (node, kept) in std::mem::take(&mut start.nodes) {
            let body = start.body(kept)?;
            self.node(self.query.start, node, Some(&body))?;
        }
        Ok(())
    }

    fn event(&mut self, at: SimTime, fact: Fact) -> Result<(), ExportError> {
        let verdicts = self.material.verdicts;
        match fact {
            Fact::Applied(applied) if verdicts.exports(&applied.object, &applied.uid) => {
                self.apply(at, &applied.object, &applied.body)
            }
            Fact::Deleted(deleted) if verdicts.exports(&deleted.object, &deleted.uid) => {
                self.record(at, Change::Delete(Deletion { object: deleted.object, last: None }))
            }
            Fact::Node(node, body) => self.node(at, node, body.as_deref()),
            _ => Ok(()),
        }
    }

    fn apply(&mut self, at: SimTime, object: &ObjectRef, body: &[u8]) -> Result<(), ExportError> {
        let read = (body.len() <= MAX_OBJECT_BYTES).then(|| serde_json::from_slice::<Value>(body).ok()).flatten();
        let mut value = read.unwrap_or_default();
        if self.format == Format::V2 {
            add_annotations(&mut value);
        }
        match Object::known(object, value) {
            Ok(object) => self.record(at, Change::Apply(object)),
            Err(_) => {
                self.done.unreadable += 1;
                Ok(())
            }
        }
    }

    fn node(&mut self, at: SimTime, node: SmolStr, body: Option<&[u8]>) -> Result<(), ExportError> {
        let object = match body.map(serde_json::from_slice) {
            None => None,
            Some(Ok(object)) => Some(object),
            Some(Err(_)) => {
                self.done.unreadable += 1;
                return Ok(());
            }
        };
        Ok(self.writer.row(&Row::Node(NodeEvent { at, node, object }))?)
    }

    fn record(&mut self, at: SimTime, change: Change) -> Result<(), ExportError> {
        self.writer.record(&Record { at, seq: self.next_seq, change })?;
        self.next_seq += 1;
        self.done.records += 1;
        Ok(())
    }

    fn rows(&mut self) -> Result<(), ExportError> {
        let (query, Material { survey, verdicts, gaps, .. }) = (self.query, self.material);
        let is_v2 = self.format == Format::V2;
        for row in rows::lives(query, survey, verdicts, is_v2) {
            self.done.lives += row.templates.iter().map(|template| template.lives.len() as u64).sum::<u64>();
            self.writer.row(&Row::Lives(row))?;
        }
        for row in rows::observations(query, survey, verdicts) {
            self.done.observations += 1;
            self.writer.row(&Row::Observation(row))?;
        }
        for row in rows::reserved(query, survey, verdicts) {
            self.writer.row(&Row::Reserved(row))?;
        }
        for gap in *gaps {
            self.done.gaps += 1;
            self.writer.row(&Row::Gap(gap.clone()))?;
        }
        if is_v2 {
            for part in rows::index(survey, verdicts) {
                self.writer.row(&Row::Index(part))?;
            }
        }
        Ok(())
    }
}

/// SimKube 2 expects every object to have annotations, if only none.
fn add_annotations(value: &mut Value) {
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.entry("annotations").or_insert_with(|| json!({}));
    }
}
