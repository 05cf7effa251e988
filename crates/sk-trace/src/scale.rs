//! Scales a trace: multiplies replicas, copies workloads or leaves some out.
//!
//! Which workloads are copied depends on the seed and their names only, so changes, deletions and lifecycles of one
//! workload are treated alike. A copy is named `name-x2` and has the label `simkube.io/copy`, also in its selector and
//! templates, so that it does not compete with the original for pods. Copies appear at the same times as their
//! originals. Objects that they refer to (ConfigMaps, Services) are shared.

use std::io::Write;

use serde::Serialize;
use serde_json::{Map, Value};
use sk_core::rng::Stream;
use sk_core::{ObjectRef, SmolStr};
use sk_store::trace::{Change, Deletion, Format, Object, OwnerLives, Row, Trace};

use crate::names::number;
use crate::rewrite::{SECTIONS, Sink};
use crate::templates::ChangedTemplates;
use crate::{EditError, TraceOutput};

/// The label that tells a copy from its original.
pub const COPY_LABEL: &str = "simkube.io/copy";

/// The largest factor. A thousand copies of each object of 4 MiB pass one after another, not at once.
const MAX_FACTOR: f64 = 1_000.0;

/// The longest name that every kind accepts: a CronJob's, whose Jobs add eleven characters to it.
const MAX_NAME: usize = 52;

/// Fields that count replicas.
const REPLICAS: [&str; 3] = ["/spec/replicas", "/spec/minReplicas", "/spec/maxReplicas"];

/// How much more or less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Every count of replicas times this, rounded; what has replicas keeps at least one, what has none has none.
    pub replicas: f64,
    /// So many workloads for each; 0.5 leaves out half of them, 2.5 copies each once and half of them twice.
    pub arrivals: f64,
    /// Which workloads are left out or copied once more.
    pub seed: u64,
}

impl Default for Scale {
    fn default() -> Self {
        Self { replicas: 1.0, arrivals: 1.0, seed: 1 }
    }
}

/// What was scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scaled {
    /// Versions of objects whose replicas changed.
    pub rescaled: u64,
    /// Events of copies that were added.
    pub added: u64,
    /// Events of workloads that were left out.
    pub left_out: u64,
    /// Templates of copies that did not fit into memory: their lives are replayed in the order of their starts.
    pub forgotten_templates: u64,
}

/// Writes the trace to `out`, scaled.
pub fn scale<W: Write>(trace: &Trace, by: Scale, format: Format, out: W) -> Result<TraceOutput<W, Scaled>, EditError> {
    for (what, factor) in [("replicas", by.replicas), ("arrivals", by.arrivals)] {
        if !(0.0..=MAX_FACTOR).contains(&factor) {
            let what = format!("{what} cannot be scaled by {factor}");
            return Err(EditError::Refused { what, advice: "use a factor from 0 to 1000" });
        }
    }
    let mut scaler = Scaler { trace, by, scaled: Scaled::default(), templates: ChangedTemplates::default() };
    let mut sink = Sink::like(trace, format, out)?;
    for record in trace.records()? {
        let record = record?;
        for change in scaler.changes(record.change)? {
            sink.record(record.at, change)?;
        }
    }
    for section in SECTIONS {
        for row in trace.rows(section)? {
            for row in scaler.rows(row?) {
                sink.row(&row)?;
            }
        }
    }
    scaler.scaled.forgotten_templates = scaler.templates.overflow();
    sink.finish(scaler.scaled)
}

struct Scaler<'a> {
    trace: &'a Trace,
    by: Scale,
    scaled: Scaled,
    templates: ChangedTemplates,
}

impl Scaler<'_> {
    /// How many of this object there are to be. What is not a workload stays one.
    fn copies(&self, object: &ObjectRef) -> u64 {
        if self.trace.config().template_paths(&object.gvk).is_empty() {
            return 1;
        }
        let name = format!("copies of {} {}", object.gvk, object.key);
        let share = Stream::new(self.by.seed, &name).below(1 << 32) as f64 / (1_u64 << 32) as f64;
        let whole = self.by.arrivals.floor();
        whole as u64 + u64::from(share < self.by.arrivals - whole)
    }

    fn count(&mut self, copies: u64) {
        self.scaled.left_out += u64::from(copies == 0);
        self.scaled.added += copies.saturating_sub(1);
    }

    fn changes(&mut self, change: Change) -> Result<Vec<Change>, EditError> {
        match change {
            mark @ Change::Mark(_) => Ok(vec![mark]),
            Change::Delete(deletion) => {
                let copies = self.copies(&deletion.object);
                self.count(copies);
                let names = (2..=copies).map(|copy| Deletion { object: copy_of(&deletion.object, copy), last: None });
                let names: Vec<Deletion> = names.collect();
                let original = (copies > 0).then_some(deletion);
                Ok(original.into_iter().chain(names).map(Change::Delete).collect())
            }
            Change::Apply(object) => {
                let copies = self.copies(object.reference());
                self.count(copies);
                let reference = object.reference().clone();
                let mut value = object.into_value();
                self.scaled.rescaled += u64::from(rescale(&mut value, self.by.replicas));
                (1..=copies).map(|copy| self.copy(&reference, &value, copy).map(Change::Apply)).collect()
            }
        }
    }

    fn copy(&mut self, reference: &ObjectRef, value: &Value, copy: u64) -> Result<Object, EditError> {
        let mut made = value.clone();
        if copy > 1 {
            let name = copy_of(reference, copy);
            made["metadata"]["name"] = name.key.name.as_str().into();
            label(&mut made["metadata"], "labels", copy);
            if made["spec"]["selector"]["matchLabels"].is_object() {
                label(&mut made["spec"]["selector"], "matchLabels", copy);
            }
            for path in self.trace.config().template_paths(&reference.gvk) {
                path.change_each(&mut made, |_, template| label(&mut template["metadata"], "labels", copy));
            }
            self.templates.note(self.trace.config(), &name, value, &made);
        }
        Object::new(made).map_err(|error| EditError::Refused {
            what: format!("the copy of {reference} is not an object: {error}"),
            advice: "report this as a bug",
        })
    }

    fn rows(&mut self, row: Row) -> Vec<Row> {
        match row {
            Row::Lives(lives) => {
                let copies = self.copies(&lives.owner);
                (1..=copies).map(|copy| Row::Lives(self.lives_of(&lives, copy))).collect()
            }
            // What really happened happened once; only what is left out is gone.
            Row::Observation(pod) if pod.owner.as_ref().is_some_and(|owner| self.copies(owner) == 0) => Vec::new(),
            row => vec![row],
        }
    }

    fn lives_of(&self, lives: &OwnerLives, copy: u64) -> OwnerLives {
        let mut made = lives.clone();
        if copy > 1 {
            made.owner = copy_of(&lives.owner, copy);
            self.templates.follow(&mut made);
        }
        made
    }
}

/// The name of a copy. A long name is cut and gets a number.
fn copy_of(object: &ObjectRef, copy: u64) -> ObjectRef {
    let (name, suffix) = (&object.key.name, format!("-x{copy}"));
    let mut copied = object.clone();
    copied.key.name = if name.len() + suffix.len() <= MAX_NAME {
        format!("{name}{suffix}").into()
    } else {
        let kept: String = name.chars().take(MAX_NAME - suffix.len() - 9).collect();
        let kept = kept.trim_end_matches(['-', '.']);
        SmolStr::from(format!("{kept}-{:08x}{suffix}", number(object) as u32))
    };
    copied
}

/// Labels a copy in `holder[field]`; a place that is no map of labels stays as it is.
fn label(holder: &mut Value, field: &str, copy: u64) {
    if holder.is_null() {
        *holder = Value::Object(Map::new());
    }
    let Some(holder) = holder.as_object_mut() else { return };
    let labels = holder.entry(field).or_insert_with(|| Value::Object(Map::new()));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(COPY_LABEL.to_owned(), copy.to_string().into());
    }
}

/// Scales every count of replicas; says whether one changed.
fn rescale(value: &mut Value, factor: f64) -> bool {
    let mut changed = false;
    for pointer in REPLICAS {
        if let Some(count) = value.pointer_mut(pointer)
            && let Some(now) = count.as_u64()
        {
            let wanted = scaled(now, factor);
            changed |= wanted != now;
            *count = wanted.into();
        }
    }
    changed
}

fn scaled(count: u64, factor: f64) -> u64 {
    let most = u64::from(i32::MAX.unsigned_abs());
    match count {
        0 => 0,
        // `as` saturates.
        count => ((count as f64 * factor).round() as u64).clamp(1, most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_rounded_and_never_scaled_to_nothing() {
        assert_eq!([0, 1, 3, 10].map(|count| scaled(count, 0.25)), [0, 1, 1, 3]);
        assert_eq!([0, 1, 3, 10].map(|count| scaled(count, 1.5)), [0, 2, 5, 15]);
        assert_eq!(scaled(u64::MAX, 1_000.0), i32::MAX as u64);
        assert_eq!(scaled(5, 0.0), 1);
    }

    #[test]
    fn copies_of_long_names_stay_names_and_stay_apart() {
        let of = |name: &str, copy| {
            copy_of(&ObjectRef::new("batch/v1.Job".parse().unwrap(), format!("a/{name}").parse().unwrap()), copy)
        };
        assert_eq!(of("web", 2).key.name, "web-x2");
        let (long, longer) = ("a".repeat(60), "a".repeat(61));
        assert_ne!(of(&long, 2), of(&longer, 2));
        assert_ne!(of(&long, 2), of(&long, 3));
        assert!(of(&long, 1_000).key.name.len() <= MAX_NAME);
    }
}
