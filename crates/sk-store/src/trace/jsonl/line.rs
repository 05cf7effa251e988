//! The lines of the format: records, rows, the header and the end.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sk_core::SimTime;

use crate::trace::config::{ConfigError, TracerConfig};
use crate::trace::header::Header;
use crate::trace::lives::OwnerLives;
use crate::trace::record::{Change, Deletion, Mark, NotAnObject, Object, Record};
use crate::trace::rows::{Gap, IndexPart, NodeEvent, Observation, Reserved, Row};
use crate::trace::text;

/// The version of this form.
pub(super) const VERSION: u64 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct HeaderLine {
    /// `trace`: what the file is.
    pub(super) simkube: String,
    pub(super) version: u64,
    pub(super) config: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) origin: Option<u64>,
    /// A promise that the last line is an `end`, so that a file cut between two lines is noticed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) has_end: bool,
}

impl HeaderLine {
    pub(super) fn of(header: &Header, has_end: bool) -> Self {
        let config = header.config.as_written().clone();
        Self { simkube: "trace".into(), version: VERSION, config, origin: header.origin, has_end }
    }

    pub(super) fn header(self) -> Result<Header, LineError> {
        Ok(Header { config: TracerConfig::from_value(self.config)?, origin: self.origin })
    }
}

/// Every line but the first: a record (`at` with `apply`, `delete` or `mark`), a row, or the end. One flat struct,
/// not an enum, so that an error says which field is wrong and in which column.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Line {
    #[serde(with = "text::maybe_time", skip_serializing_if = "Option::is_none")]
    at: Option<SimTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    apply: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delete: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<MarkText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lives: Option<OwnerLives>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observation: Option<Observation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<NodeEvent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reserved: Option<Reserved>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gap: Option<Gap>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<IndexPart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<Counts>,
}

/// A mark, as text.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
enum MarkText {
    Moment,
    V2Event {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        delete_order: Vec<u32>,
    },
}

/// How many lines came before the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counts {
    pub(crate) records: u64,
    pub(crate) rows: u64,
}

/// Writes a line of one field.
fn write_field(out: &mut Vec<u8>, name: &str, value: &impl Serialize) -> Result<(), serde_json::Error> {
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    serde_json::to_writer(&mut *out, value)?;
    out.push(b'}');
    Ok(())
}

/// What a line says.
#[derive(Debug)]
pub(crate) enum Said {
    /// Something happened. By hand the sequence number may be left out.
    Record { at: SimTime, seq: Option<u64>, change: Change },
    /// Something else is known.
    Row(Row),
    /// This was all.
    End(Counts),
}

/// Why a line says nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    #[error("it is not a line of a trace: {0}")]
    Json(#[from] serde_json::Error),
    #[error("it holds something that is not a Kubernetes object: {0}")]
    Object(#[from] NotAnObject),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("it has no `at`, the time when it happened")]
    NoTime,
    #[error("it must hold exactly one of apply, delete, mark, lives, observation, node, reserved, gap, index, end")]
    NotOneThing,
}

impl Line {
    /// A record as a line.
    pub(crate) fn of_record(record: &Record) -> Self {
        let line = Self { at: Some(record.at), seq: Some(record.seq), ..Self::default() };
        match &record.change {
            Change::Apply(object) => Self { apply: Some(object.value().clone()), ..line },
            Change::Delete(deletion) => Self { delete: Some(deletion.to_value()), ..line },
            Change::Mark(Mark::Moment) => Self { mark: Some(MarkText::Moment), ..line },
            Change::Mark(Mark::V2Event { delete_order }) => {
                Self { mark: Some(MarkText::V2Event { delete_order: delete_order.clone() }), ..line }
            }
        }
    }

    /// Writes a row as the line that [`Self::parse`] reads, without a copy of it: there are millions of them.
    pub(crate) fn write_row(row: &Row, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        match row {
            Row::Lives(lives) => write_field(out, "lives", lives),
            Row::Observation(observation) => write_field(out, "observation", observation),
            Row::Node(node) => write_field(out, "node", node),
            Row::Reserved(reserved) => write_field(out, "reserved", reserved),
            Row::Gap(gap) => write_field(out, "gap", gap),
            Row::Index(index) => write_field(out, "index", index),
        }
    }

    /// The last line.
    pub(crate) fn of_end(counts: Counts) -> Self {
        Self { end: Some(counts), ..Self::default() }
    }

    /// Reads a line.
    pub(crate) fn parse(text: &[u8]) -> Result<Said, LineError> {
        serde_json::from_slice::<Self>(text)?.said()
    }

    fn said(self) -> Result<Said, LineError> {
        let changes = [
            self.apply.map(Object::new).transpose()?.map(Change::Apply),
            self.delete.map(Deletion::from_value).transpose()?.map(Change::Delete),
            self.mark.map(MarkText::mark).map(Change::Mark),
        ];
        let rows = [
            self.lives.map(Row::Lives),
            self.observation.map(Row::Observation),
            self.node.map(Row::Node),
            self.reserved.map(Row::Reserved),
            self.gap.map(Row::Gap),
            self.index.map(Row::Index),
        ];
        let mut things = (changes.into_iter().flatten().map(Thing::Change))
            .chain(rows.into_iter().flatten().map(Thing::Row))
            .chain(self.end.map(Thing::End));
        match (things.next(), things.next()) {
            (Some(Thing::Change(change)), None) => {
                Ok(Said::Record { at: self.at.ok_or(LineError::NoTime)?, seq: self.seq, change })
            }
            (Some(Thing::Row(row)), None) => Ok(Said::Row(row)),
            (Some(Thing::End(counts)), None) => Ok(Said::End(counts)),
            _ => Err(LineError::NotOneThing),
        }
    }
}

/// One of the things a line may hold.
enum Thing {
    Change(Change),
    Row(Row),
    End(Counts),
}

impl MarkText {
    fn mark(self) -> Mark {
        match self {
            Self::Moment => Mark::Moment,
            Self::V2Event { delete_order } => Mark::V2Event { delete_order },
        }
    }
}
