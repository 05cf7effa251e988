//! The second pass of an export: writes the trace. The bodies of the state at the start wait in a temporary file, because
//! the log has them in order of arrival and a trace starts with them in order of their names.

use std::collections::BTreeMap;
use std::io::Write as Output;

use serde_json::{Value, json};
use sk_core::{ObjectRef, SimTime, SmolStr, StableHash};

use super::query::{ExportError, Exported, Query};
use super::rows::{self, Pods};
use super::survey::{self, Survey, Verdicts};
use crate::log::catalog::Listed;
use crate::log::error::Damage;
use crate::log::fact::{Fact, PodFacts};
use crate::log::timeline::Items;
use crate::msgpack::MAX_OBJECT_BYTES;
use crate::trace::spool::{Spool, SpoolFolder};
use crate::trace::{Change, Deletion, Format, Gap, Header, Mark, NodeEvent, Object, Record, Row, WriteError, Writer};

/// What the first pass has found.
pub(super) struct Material<'a> {
    pub(super) survey: &'a Survey,
    pub(super) verdicts: &'a Verdicts<'a>,
    pub(super) gaps: &'a [Gap],
    pub(super) damages: &'a [Damage],
    pub(super) segments: Vec<Listed>,
    pub(super) folder: SpoolFolder,
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
    let writer = Writer::spooling_in(&material.folder, format, out, &header)?;
    let is_v2 = format == Format::V2;
    let mut pass = Pass {
        query,
        format,
        material,
        writer,
        next_seq: 0,
        start: Start::new(&material.folder),
        pods: Pods::new(query, material.survey, material.verdicts, is_v2, &material.folder),
        spec_hashes: BTreeMap::new(),
        done: Exported::default(),
    };
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
    pods: Pods<'a>,
    /// Of the newest version of each object, for v2's index.
    spec_hashes: BTreeMap<ObjectRef, StableHash>,
    done: Exported,
}

/// The state at the start, while it is being collected.
struct Start {
    bodies: Spool,
    /// Where each object's body lies: what others may need first comes first.
    objects: BTreeMap<(u8, ObjectRef), (u64, u64)>,
    nodes: BTreeMap<SmolStr, (u64, u64)>,
}

impl Start {
    fn new(folder: &SpoolFolder) -> Self {
        Self { bodies: Spool::new(folder), objects: BTreeMap::new(), nodes: BTreeMap::new() }
    }

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
            match survey::fact_of(item) {
                None => {}
                Some(Fact::Pod(pod)) => self.pod(place, *pod)?,
                Some(fact) if before => self.collect(place, fact)?,
                Some(fact) => {
                    if !std::mem::replace(&mut started, true) {
                        self.begin()?;
                    }
                    self.event(at, fact)?;
                }
            }
        }
        if !started {
            self.begin()?;
        }
        self.record(self.query.end, Change::Mark(Mark::Moment))
    }

    /// Adds a pod, if this is its last entry.
    fn pod(&mut self, place: u64, mut pod: PodFacts) -> Result<(), ExportError> {
        if let Some(ending) = self.material.survey.last_of(place, &pod) {
            ending.put_on(&mut pod);
            self.pods.take(pod)?;
        }
        Ok(())
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
        let mut start = std::mem::replace(&mut self.start, Start::new(&self.material.folder));
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
        let mut spec_hash = None;
        if self.format == Format::V2 {
            spec_hash = Some(StableHash::of(value.get("spec").unwrap_or(&Value::Null)));
            add_annotations(&mut value);
        }
        match Object::known(object, value) {
            Ok(known) => {
                self.spec_hashes.extend(spec_hash.map(|hash| (object.clone(), hash)));
                self.record(at, Change::Apply(known))
            }
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
        let Self { material: Material { gaps, .. }, pods, writer, done, .. } = self;
        pods.lives(|row| {
            done.lives += row.templates.iter().map(|template| template.lives.len() as u64).sum::<u64>();
            writer.row(&Row::Lives(row))
        })?;
        pods.observations(|row| {
            done.observations += 1;
            writer.row(&Row::Observation(row))
        })?;
        pods.reserved(|row| writer.row(&Row::Reserved(row)))?;
        for gap in *gaps {
            done.gaps += 1;
            writer.row(&Row::Gap(gap.clone()))?;
        }
        for part in rows::index(&self.spec_hashes) {
            writer.row(&Row::Index(part))?;
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
