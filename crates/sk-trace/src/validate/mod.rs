//! Checks whether a trace can be replayed: one pass with codes for what is wrong, and a second one that fixes it.
//!
//! Start with [`validate`]; [`all`] and [`explain`] describe the codes; [`fix()`] writes the fixed trace. Input that is
//! no trace at all (a truncated file, an object without a name) is an error of the reader and not a finding. Whether
//! pods fit a cluster depends on the scenario, and is not checked here.

mod codes;
mod findings;
mod fix;
mod object;
mod pods;
mod references;

use std::collections::HashMap;

use sk_core::limits::MAX_WINDOW;
use sk_core::{Gvk, ObjectRef, Pointer, PointerPattern, SimTime};
use sk_store::TraceError;
use sk_store::trace::{Change, Deletion, Mark, Object, OwnerLives, Record, Trace};

use crate::names::{Names, number};

pub use codes::{Code, Rule, Severity, all, explain};
pub use findings::{Finding, MAX_KEPT_PER_RULE, Place, Report};
pub use fix::{Fixed, fix};
use references::References;

/// The result of a validation.
#[derive(Debug)]
pub struct Validation {
    /// What was found.
    pub report: Report,
    /// What is referred to and never there, for [`fix()`].
    missing: Names,
    /// What is ever there, for [`fix()`].
    known: Names,
}

/// Looks at all of a trace.
pub fn validate(trace: &Trace) -> Result<Validation, TraceError> {
    let mut pass = Pass::new(trace);
    for record in trace.records()? {
        pass.record(&record?);
    }
    for lives in trace.lives()? {
        pass.lives(&lives?);
    }
    for gap in trace.gaps()? {
        let gap = gap?;
        let detail = format!("nothing was seen from {} to {}: {}", gap.from, gap.to, gap.reason);
        pass.report.add(Finding { code: Rule::RecordingGap, place: None, object: None, pointer: None, detail });
    }
    Ok(pass.finish())
}

/// The pass over the records.
struct Pass<'a> {
    trace: &'a Trace,
    report: Report,
    references: References,
    /// Where each kind keeps its templates.
    templates: HashMap<Gvk, Vec<PointerPattern>>,
    /// What exists now, what ever existed, what was applied at this moment.
    alive: Names,
    known: Names,
    applied_now: Names,
    now: Option<SimTime>,
    v2_events: u64,
    events: u64,
    applied: u64,
}

impl<'a> Pass<'a> {
    fn new(trace: &'a Trace) -> Self {
        let mut pass = Self {
            trace,
            report: Report::default(),
            references: References::default(),
            templates: HashMap::new(),
            alive: Names::default(),
            known: Names::default(),
            applied_now: Names::default(),
            now: None,
            v2_events: 0,
            events: 0,
            applied: 0,
        };
        pass.check_config();
        pass
    }

    /// Template paths that are no pointers find nothing in any object; they are named once.
    fn check_config(&mut self) {
        for (gvk, tracked) in self.trace.config().tracked() {
            for path in tracked.pod_spec_template_paths.iter().flatten() {
                if let Err(error) = path.parse::<PointerPattern>() {
                    let detail = format!("the configuration of {gvk}: {error}");
                    let code = Rule::TemplateNotFound;
                    self.report.add(Finding { code, place: None, object: None, pointer: None, detail });
                }
            }
        }
    }

    fn place(&self, at: SimTime) -> Place {
        // Every entry of a v2 trace's `events` begins with a mark.
        Place { event: self.events, v2_event: self.v2_events.checked_sub(1), at }
    }

    fn record(&mut self, record: &Record) {
        if let Change::Mark(Mark::V2Event { .. }) = &record.change {
            self.v2_events += 1;
            self.applied_now.clear();
        }
        let place = self.place(record.at);
        if let Some(now) = self.now.filter(|now| record.at < *now) {
            let detail = format!("it is {} earlier than the event before it", now.since(record.at));
            let object = record.change.object().cloned();
            let place = Some(place.clone());
            self.report.add(Finding { code: Rule::OutOfOrder, place, object, pointer: None, detail });
        }
        if self.now != Some(record.at) {
            self.applied_now.clear();
        }
        self.now = Some(record.at);
        match &record.change {
            Change::Apply(object) => self.apply(object, &place),
            Change::Delete(deletion) => self.delete(deletion, &place),
            Change::Mark(_) => return,
        }
        self.events += 1;
    }

    fn apply(&mut self, object: &Object, place: &Place) {
        let reference = object.reference();
        let name = number(reference);
        self.applied += 1;
        self.alive.insert(name);
        self.known.insert(name);
        let mut note = Note { report: &mut self.report, object: reference, place };
        if !self.applied_now.insert(name) {
            note.at("", Rule::AppliedTwiceAtOnce, "it was applied at this moment before".to_owned());
        }
        object::check(object, self.trace.config(), &mut note);
        self.references.provide(reference);
        let paths = self
            .templates
            .entry(reference.gvk.clone())
            .or_insert_with(|| self.trace.config().template_paths(&reference.gvk));
        for path in &*paths {
            let found = path.resolve(object.value());
            if found.is_empty() {
                note.at(path.as_str(), Rule::TemplateNotFound, format!("there is nothing at `{path}`"));
            }
            for at in found {
                pods::check(object, &at, &mut note);
                self.references.want(object, &at, place);
            }
        }
    }

    fn delete(&mut self, deletion: &Deletion, place: &Place) {
        if !self.alive.remove(number(&deletion.object)) && self.alive.overflow() == 0 {
            let mut note = Note { report: &mut self.report, object: &deletion.object, place };
            note.at("", Rule::DeleteOfUnknown, "it does not exist at this moment".to_owned());
        }
    }

    fn lives(&mut self, lives: &OwnerLives) {
        let object = Some(lives.owner.clone());
        let add = |report: &mut Report, code, detail| {
            report.add(Finding { code, place: None, object: object.clone(), pointer: None, detail });
        };
        if !self.known.contains(number(&lives.owner)) && self.known.overflow() == 0 {
            add(&mut self.report, Rule::LivesOfUnknownOwner, "it has lives and is never in the trace".to_owned());
        }
        for life in lives.templates.iter().flat_map(|template| &template.lives) {
            if let Some(end) = life.end.filter(|end| *end < life.start) {
                let detail = format!("a pod of it ended at {end} and started at {}", life.start);
                add(&mut self.report, Rule::LifeEndsBeforeStart, detail);
            }
        }
    }

    /// A trace that a run would not replay as a whole.
    fn check_span(&mut self) {
        let Some((first, last)) = self.trace.span().filter(|(first, last)| last.since(*first) > MAX_WINDOW) else {
            return;
        };
        let detail = format!("it is from {first} to {last}");
        let code = Rule::SpanTooLong;
        self.report.add(Finding { code, place: None, object: None, pointer: None, detail });
    }

    fn finish(mut self) -> Validation {
        if self.applied == 0 {
            let detail = "the trace applies no object".to_owned();
            let code = Rule::NothingToReplay;
            self.report.add(Finding { code, place: None, object: None, pointer: None, detail });
        }
        self.check_span();
        let missing = self.references.finish(&mut self.report);
        self.report.events = self.events;
        self.report.unjudged += self.alive.overflow() + self.known.overflow();
        self.report.finish();
        Validation { report: self.report, missing, known: self.known }
    }
}

/// Notes findings about one object.
struct Note<'a> {
    report: &'a mut Report,
    object: &'a ObjectRef,
    place: &'a Place,
}

impl Note<'_> {
    /// At `pointer` in the object; the empty one is the object as such.
    fn at(&mut self, pointer: &str, code: Rule, detail: String) {
        let pointer: Option<Pointer> = pointer.parse().ok().filter(|_| !pointer.is_empty());
        let (place, object) = (Some(self.place.clone()), Some(self.object.clone()));
        self.report.add(Finding { code, place, object, pointer, detail });
    }
}
