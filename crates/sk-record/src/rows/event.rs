//! One row per Kubernetes Event of the controllers, the scheduler and the cluster autoscaler.
//!
//! There are a few for every pod, so the rows are generic over their strings, as those of pods and decisions are.

use sk_core::SimTime;

use crate::column::{Column, Kind, Malformed, Row, RowReader, RowWriter};

/// A Kubernetes Event, as `kubectl describe` shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventRow<Text = String> {
    /// When.
    pub time: SimTime,
    /// Does it ask for attention?
    pub is_warning: bool,
    /// The machine's word, such as `FailedScheduling`.
    pub reason: Text,
    /// About an object of which kind.
    pub kind: Text,
    /// Its namespace; nothing for a node.
    pub namespace: Option<Text>,
    /// Its name.
    pub name: Text,
    /// Its top-most owner, as in [`super::PodRow::owner`]; nothing for objects without an owner and for deleted objects.
    pub owner: Option<Text>,
    /// Who says it, such as `replicaset-controller`.
    pub source: Text,
    /// The sentence.
    pub message: Text,
}

const NORMAL: &str = "Normal";
const WARNING: &str = "Warning";

impl<Text: AsRef<str>> EventRow<Text> {
    /// The same row, with borrowed strings.
    pub fn borrowed(&self) -> EventRow<&str> {
        EventRow {
            time: self.time,
            is_warning: self.is_warning,
            reason: self.reason.as_ref(),
            kind: self.kind.as_ref(),
            namespace: self.namespace.as_ref().map(AsRef::as_ref),
            name: self.name.as_ref(),
            owner: self.owner.as_ref().map(AsRef::as_ref),
            source: self.source.as_ref(),
            message: self.message.as_ref(),
        }
    }
}

impl Row for EventRow {
    type Borrowed<'a> = EventRow<&'a str>;

    const TABLE: &'static str = "events";
    const COLUMNS: &'static [Column] = &[
        Column::required("time", Kind::Time),
        Column::required("type", Kind::Text).words(),
        Column::required("reason", Kind::Text).words(),
        Column::required("kind", Kind::Text).words(),
        Column::optional("namespace", Kind::Text).words(),
        Column::required("name", Kind::Text).distinct(),
        Column::optional("owner", Kind::Text),
        Column::required("source", Kind::Text).words(),
        Column::required("message", Kind::Text).distinct(),
    ];

    fn write(event: &EventRow<&str>, row: &mut RowWriter<'_>) {
        row.time(event.time).text(if event.is_warning { WARNING } else { NORMAL }).text(event.reason).text(event.kind);
        row.opt_text(event.namespace).text(event.name).opt_text(event.owner).text(event.source).text(event.message);
    }

    fn own(event: EventRow<&str>) -> Self {
        Self {
            time: event.time,
            is_warning: event.is_warning,
            reason: event.reason.to_owned(),
            kind: event.kind.to_owned(),
            namespace: event.namespace.map(ToOwned::to_owned),
            name: event.name.to_owned(),
            owner: event.owner.map(ToOwned::to_owned),
            source: event.source.to_owned(),
            message: event.message.to_owned(),
        }
    }

    fn read<'a>(row: &mut RowReader<'a>) -> Result<EventRow<&'a str>, Malformed> {
        Ok(EventRow {
            time: row.time()?,
            is_warning: row.word(&[false, true], |warning| if warning { WARNING } else { NORMAL })?,
            reason: row.text()?,
            kind: row.text()?,
            namespace: row.opt_text()?,
            name: row.text()?,
            owner: row.opt_text()?,
            source: row.text()?,
            message: row.text()?,
        })
    }
}
