//! The autoscaler's decisions, small enough for a page: one row per decision and owner, node or group.

use sk_core::SimTime;
use sk_record::{AutoscalerRow, Decided, Error};

use super::Names;
use crate::source::Source;
use crate::step::Window;

/// What the rows may take in the page.
const ROWS_MAX_BYTES: usize = 500_000;
/// What a row takes: four numbers and a word.
const ROW_BYTES: usize = 45;
/// The bytes that names and messages of the rows may take, each.
const TEXTS_MAX_BYTES: usize = 250_000;

/// One decision about one owner, node or group, or about the whole cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaling {
    /// When.
    pub at: SimTime,
    /// What was decided.
    pub decision: Decided,
    /// About whom, among [`Scalings::subjects`]; nothing if it is about the whole cluster.
    pub about: Option<u32>,
    /// How many pods of that owner it is about.
    pub pods: i64,
    /// The autoscaler's message, an index into [`Scalings::texts`].
    pub text: Option<u32>,
}

/// What a page tells of the autoscaler.
#[derive(Clone, Debug)]
pub struct Scalings {
    /// Owners, nodes and groups.
    pub subjects: Names,
    /// The autoscaler's messages.
    pub texts: Names,
    /// Its decisions, in order of time.
    pub rows: Vec<Scaling>,
    /// Decisions that are left out.
    pub left_out: u64,
}

impl Scalings {
    /// Reads the decisions of a run. Pods of one owner with the same decision in one loop are one row.
    pub(crate) fn read(source: &impl Source, window: Window) -> Result<Self, Error> {
        let mut scalings = Self {
            subjects: Names::of_at_most(TEXTS_MAX_BYTES),
            texts: Names::of_at_most(TEXTS_MAX_BYTES),
            rows: Vec::new(),
            left_out: 0,
        };
        for row in source.autoscaler()? {
            let row = row?;
            if window.contains(row.time) {
                scalings.add(&row);
            }
        }
        Ok(scalings)
    }

    fn add(&mut self, row: &AutoscalerRow) {
        let about = row.owner.as_deref().or(row.node.as_deref()).or(row.group.as_deref());
        let new = Scaling {
            at: row.time,
            decision: row.decision,
            about: about.map(|about| self.subjects.place(about)),
            pods: i64::from(row.pod.is_some()),
            text: words(row).map(|words| self.texts.place(&words)),
        };
        // The rows of one decision follow each other, and so do the pods of one owner, except where owners alternate.
        let same = self
            .rows
            .iter_mut()
            .rev()
            .take_while(|old| old.at == new.at)
            .find(|old| new.pods > 0 && (old.decision, old.about, old.text) == (new.decision, new.about, new.text));
        if let Some(same) = same {
            same.pods += new.pods;
        } else if (self.rows.len() + 1) * ROW_BYTES <= ROWS_MAX_BYTES {
            self.rows.push(new);
        } else {
            self.left_out += 1;
        }
    }
}

/// The message, or how far the group grows; and which groups were considered.
fn words(row: &AutoscalerRow) -> Option<String> {
    let grows = || Some(format!("from {} to {} nodes", row.nodes_before?, row.nodes_after?));
    let said = row.message.clone().or_else(grows)?;
    // Pods that are helped have the options of their group's row.
    let options = row.options.as_deref().filter(|_| row.decision != Decided::ScaleUp || row.pod.is_none());
    Some(options.map_or(said.clone(), |options| format!("{said}; considered: {options}")))
}
