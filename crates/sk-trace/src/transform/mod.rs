//! Edits a trace with a jq program, one object at a time.
//!
//! Start with [`transform`]; [`plan`] does the same without writing. The program gets each version of each object, with
//! `$time`, `$kind`, `$namespace` and `$name`. Its output replaces the object. If it has no output for one version, the
//! object is removed with all its versions, deletions and lifecycles. A new name applies to deletions, lifecycles and
//! observations too, and must be the same for all versions. Because the last version can decide, the trace is read
//! twice.

mod confined;
mod diff;
mod plan;
mod program;

use std::io::Write;

use sk_core::{ObjectRef, SimTime};
use sk_store::TraceError;
use sk_store::trace::{Change, Deletion, Format, Object, Observation, Row, Trace, WriteError};

use crate::rewrite::{SECTIONS, Sink};
use crate::templates::ChangedTemplates;
use crate::{EditError, TraceOutput};

pub use confined::{Evaluator, Name, Request, Response, decode, encode};
pub use diff::{DiffLine, ObjectDiff};
pub use plan::{KindSummary, Plan, Summary, plan};
pub use program::{Evaluate, Outcome, Program, ProgramError};

/// Why a trace could not be transformed.
#[derive(Debug, thiserror::Error)]
pub enum TransformError {
    /// The program failed on an object.
    #[error("event {event}, {at}, {object}: {message}; change the program, for instance with `select` or `try`")]
    Program {
        /// How many records lie before it.
        event: u64,
        /// When.
        at: SimTime,
        /// Which object.
        object: Box<ObjectRef>,
        /// What jq said, or what is wrong with the output.
        message: String,
    },
    /// More dropped or renamed objects than are kept in memory.
    #[error("the program drops or renames more than {0} objects; slice the trace first")]
    TooMany(usize),
    /// The trace could not be read or written.
    #[error(transparent)]
    Edit(#[from] EditError),
}

impl From<TraceError> for TransformError {
    fn from(error: TraceError) -> Self {
        Self::Edit(error.into())
    }
}

impl From<WriteError> for TransformError {
    fn from(error: WriteError) -> Self {
        Self::Edit(error.into())
    }
}

/// Writes the trace to `out` as the program makes it.
pub fn transform<W: Write>(
    trace: &Trace,
    program: &dyn Evaluate,
    format: Format,
    out: W,
) -> Result<TraceOutput<W, Summary>, TransformError> {
    let plan = plan(trace, program, 0)?;
    let mut sink = Sink::like(trace, format, out)?;
    let mut templates = ChangedTemplates::default();
    for (event, record) in (0..).zip(trace.records()?) {
        let record = record?;
        let change = match record.change {
            Change::Apply(object) if plan.drops(object.reference()) => continue,
            Change::Apply(object) => {
                let after = plan::run(program, event, record.at, &object)?;
                let Some(after) = after else { continue };
                templates.note(trace.config(), object.reference(), object.value(), after.value());
                Change::Apply(after)
            }
            Change::Delete(deletion) if plan.drops(&deletion.object) => continue,
            Change::Delete(deletion) => Change::Delete(delete(program, &plan, event, record.at, deletion)?),
            mark @ Change::Mark(_) => mark,
        };
        sink.record(record.at, change)?;
    }
    rows(trace, &plan, &templates, &mut sink)?;
    let summary = Summary { forgotten_templates: templates.overflow(), ..plan.summary };
    Ok(sink.finish(summary)?)
}

/// A delete follows its object's name. An object that stands in it (older v2 traces) goes through the program too, and
/// only its names stay if the program has another name or nothing for it.
fn delete(
    program: &dyn Evaluate,
    plan: &Plan,
    event: u64,
    at: SimTime,
    deletion: Deletion,
) -> Result<Deletion, TransformError> {
    let name = plan.name_of(&deletion.object).clone();
    let last = match deletion.last.and_then(|last| Object::new(last).ok()) {
        Some(last) => plan::run(program, event, at, &last)?.filter(|after| *after.reference() == name),
        None => None,
    };
    Ok(Deletion { object: name, last: last.map(Object::into_value) })
}

/// Lives and observations follow the objects; everything else stays.
fn rows<W: Write>(
    trace: &Trace,
    plan: &Plan,
    templates: &ChangedTemplates,
    sink: &mut Sink<W>,
) -> Result<(), TransformError> {
    for section in SECTIONS {
        for row in trace.rows(section)? {
            let row = match row? {
                Row::Lives(lives) if plan.drops(&lives.owner) => continue,
                Row::Lives(mut lives) => {
                    templates.follow(&mut lives);
                    lives.owner = plan.name_of(&lives.owner).clone();
                    Row::Lives(lives)
                }
                Row::Observation(observation) => match follow(plan, observation) {
                    Some(observation) => Row::Observation(observation),
                    None => continue,
                },
                row => row,
            };
            sink.row(&row)?;
        }
    }
    Ok(())
}

/// A pod's observation under its owner's new name; `None` if the owner is dropped.
fn follow(plan: &Plan, mut observation: Observation) -> Option<Observation> {
    if let Some(owner) = &observation.owner {
        if plan.drops(owner) {
            return None;
        }
        observation.owner = Some(plan.name_of(owner).clone());
        return Some(observation);
    }
    // A bare pod is its own owner.
    let pod = ObjectRef::new(plan::POD, observation.pod.clone());
    if plan.drops(&pod) {
        return None;
    }
    observation.pod = plan.name_of(&pod).key.clone();
    Some(observation)
}
