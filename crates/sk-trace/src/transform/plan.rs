//! The effect of a program on a trace: which objects it removes, renames and changes. Nothing is written.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use sk_core::{Gvk, ObjectRef, SimTime};
use sk_store::trace::{Change, Object, Trace};

use super::TransformError;
use super::diff::ObjectDiff;
use super::program::{Evaluate, Outcome};
use crate::names::{Names, number};

pub(super) const POD: Gvk = Gvk::new_static("", "v1", "Pod");

/// How many objects may be dropped or renamed: 2^20 at about 200 bytes are 200 MiB.
const MAX_MOVED: usize = 1 << 20;

/// How many objects' new names are checked against each other: 2^21 at about 36 bytes are 72 MiB.
const MAX_CHECKED: usize = 1 << 21;

/// What a program does to the objects of one kind. Objects are counted once, however many versions they have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KindSummary {
    /// Objects of which a version changed, those that are renamed included.
    pub changed: u64,
    /// Objects that are gone.
    pub dropped: u64,
    /// Objects that are called otherwise.
    pub renamed: u64,
}

/// What a program does to a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// By kind; kinds that stay as they are are not here.
    pub kinds: BTreeMap<Gvk, KindSummary>,
    /// Versions of objects that the program was run on.
    pub versions: u64,
    /// Versions that it changed.
    pub changed_versions: u64,
    /// Objects whose names did not fit into memory: they are counted more than once, and two of them may have been
    /// given one name.
    pub uncounted: u64,
    /// Changed templates that did not fit into memory: their lives are replayed in the order of their starts.
    pub forgotten_templates: u64,
}

/// What a program would do to a trace.
#[derive(Debug, Default)]
pub struct Plan {
    /// In figures.
    pub summary: Summary,
    /// In detail: the first changes.
    pub diffs: Vec<ObjectDiff>,
    dropped: HashSet<ObjectRef>,
    renamed: HashMap<ObjectRef, ObjectRef>,
}

/// Runs the program over the trace, keeping the first `max_diffs` changes.
pub fn plan(trace: &Trace, program: &dyn Evaluate, max_diffs: usize) -> Result<Plan, TransformError> {
    let mut planner = Planner { max_diffs, ..Planner::default() };
    for (event, record) in (0..).zip(trace.records()?) {
        let record = record?;
        if let Change::Apply(object) = &record.change {
            planner.version(program, event, record.at, object)?;
        }
    }
    Ok(planner.finish())
}

/// Runs the program on one version of an object.
pub(super) fn run(
    program: &dyn Evaluate,
    event: u64,
    at: SimTime,
    object: &Object,
) -> Result<Option<Object>, TransformError> {
    let refuse = |message| TransformError::Program { event, at, object: Box::new(object.reference().clone()), message };
    match program.run(object.value(), object.reference(), at).map_err(refuse)? {
        Outcome::Dropped => Ok(None),
        Outcome::Object(value) => {
            let made = Object::new(value).map_err(|error| refuse(format!("the output is not an object: {error}")))?;
            Ok(Some(made))
        }
    }
}

#[derive(Default)]
struct Planner {
    plan: Plan,
    max_diffs: usize,
    changed: Names,
    /// Which object got which name, both as numbers.
    names: HashMap<u64, u64>,
}

impl Planner {
    fn version(
        &mut self,
        program: &dyn Evaluate,
        event: u64,
        at: SimTime,
        object: &Object,
    ) -> Result<(), TransformError> {
        let reference = object.reference();
        self.plan.summary.versions += 1;
        let Some(after) = run(program, event, at, object)? else {
            if self.plan.dropped.insert(reference.clone()) {
                self.kind(reference).dropped += 1;
                self.diff(|| ObjectDiff::dropped(at, reference));
            }
            return self.check_limit();
        };
        self.check_name(event, at, reference, after.reference())?;
        if after.value() != object.value() {
            self.plan.summary.changed_versions += 1;
            if self.changed.insert(number(reference)) {
                self.kind(reference).changed += 1;
            }
            self.diff(|| ObjectDiff::between(at, reference, object.value(), after.value()));
        }
        self.check_limit()
    }

    /// All versions of an object have one name, and no two objects the same.
    fn check_name(&mut self, event: u64, at: SimTime, old: &ObjectRef, new: &ObjectRef) -> Result<(), TransformError> {
        let refuse = |message| Err(TransformError::Program { event, at, object: Box::new(old.clone()), message });
        let numbers = (number(new), number(old));
        match self.names.get(&numbers.0) {
            Some(source) if *source != numbers.1 => return refuse(format!("another object is {new} already")),
            Some(_) => {}
            None if self.names.len() >= MAX_CHECKED => self.plan.summary.uncounted += 1,
            None => drop(self.names.insert(numbers.0, numbers.1)),
        }
        let kept_its_name = self.names.get(&numbers.1) == Some(&numbers.1);
        match self.plan.renamed.get(old) {
            Some(earlier) if earlier != new => refuse(format!("it was renamed to {earlier} before, and is {new} now")),
            None if old != new && kept_its_name => {
                refuse(format!("an earlier version of it kept its name, and this one is {new}"))
            }
            None if old != new => {
                self.plan.renamed.insert(old.clone(), new.clone());
                self.kind(old).renamed += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn kind(&mut self, object: &ObjectRef) -> &mut KindSummary {
        self.plan.summary.kinds.entry(object.gvk.clone()).or_default()
    }

    fn diff(&mut self, make: impl FnOnce() -> ObjectDiff) {
        if self.plan.diffs.len() < self.max_diffs {
            self.plan.diffs.push(make());
        }
    }

    fn check_limit(&self) -> Result<(), TransformError> {
        match self.plan.dropped.len() + self.plan.renamed.len() > MAX_MOVED {
            true => Err(TransformError::TooMany(MAX_MOVED)),
            false => Ok(()),
        }
    }

    fn finish(mut self) -> Plan {
        self.plan.summary.uncounted += self.changed.overflow();
        self.plan
    }
}

impl Plan {
    /// Is this object gone?
    pub fn drops(&self, object: &ObjectRef) -> bool {
        self.dropped.contains(object)
    }

    /// What this object is called in the end.
    pub fn name_of<'a>(&'a self, object: &'a ObjectRef) -> &'a ObjectRef {
        self.renamed.get(object).unwrap_or(object)
    }
}
