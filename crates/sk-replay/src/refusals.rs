//! Which objects of a trace the API server would refuse, for `validate`, so that it and a run refuse the same objects.
//!
//! Every operation of the plan goes to an API server alone, without controllers and without time. Refusals that depend
//! on time (a terminating namespace) are not found here.

use std::collections::BTreeMap;

use sk_core::{ObjectRef, SimTime};
use sk_engine::api::{ApiServer, DeleteOptions, Propagation, Request, Rules};
use sk_engine::kinds::NAMESPACE;
use sk_engine::new_namespace;
use sk_store::trace::{Format, Trace, TraceError};

use crate::plan::{Action, Operation, Plan, Window};

/// How many refused objects are named; the rest is counted. 1,000 × 1 KiB of words are 1 MiB.
const MAX_NAMED: usize = 1_000;
/// Any seed does: nothing reads the uids and names.
const SEED: u64 = 1;

/// Objects that would be refused, each with the server's message about its first refused version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// By object.
    pub objects: BTreeMap<ObjectRef, String>,
    /// Objects that are not named.
    pub others: u64,
}

/// By which rules the objects of a trace are judged: what people wrote by all that a server has, what was recorded by those
/// that a recording can keep.
pub(crate) fn rules_of(trace: &Trace) -> Rules {
    match trace.format() {
        Format::Manifests => Rules::Written,
        Format::V2 | Format::V3 | Format::Native | Format::JsonLines => Rules::Recorded,
    }
}

/// Asks an API server about every object of the trace.
pub fn refusals(trace: &Trace) -> Result<Refusals, TraceError> {
    let (start, end) = trace.span().unwrap_or((SimTime::EPOCH, SimTime::EPOCH));
    let window = Window { start, end, includes_end: true };
    let mut server = ApiServer::new(SEED);
    for name in crate::plan::BUILT_IN_NAMESPACES {
        server.handle(start, Request::create(new_namespace(name))).expect("an empty server takes its first namespaces");
    }
    server.set_rules(rules_of(trace));
    let mut found = Refusals::default();
    let mut plan = Plan::new(trace.records()?, trace.config(), window).judged_by(rules_of(trace)).for_engine();
    for operation in plan.by_ref() {
        let Operation { at, action, .. } = operation?;
        // Nothing reads the log here.
        server.reclaim(server.store().resource_version());
        match action {
            Action::Apply { object: target, content } => {
                let answer = content.into_object().map(Request::apply).and_then(|request| {
                    server.judge(&request)?;
                    server.handle(at, request)
                });
                if let Err(error) = answer {
                    found.add(target, error.to_string());
                }
            }
            // A namespace ends when its controller has emptied it, and there is no controller here.
            Action::Delete(target) if target.gvk == NAMESPACE => {}
            Action::Delete(target) => {
                let options =
                    DeleteOptions { grace_secs: Some(0), propagation: Propagation::Orphan, ..DeleteOptions::default() };
                // What is deleted and was never there, or was refused before, is not an object that is refused.
                let _ = server.handle(at, Request::Delete { target, options });
            }
        }
    }
    for (object, words) in plan.into_gaps().lacking() {
        found.add(object.clone(), words);
    }
    Ok(found)
}

impl Refusals {
    fn add(&mut self, object: ObjectRef, words: String) {
        if self.objects.len() < MAX_NAMED || self.objects.contains_key(&object) {
            self.objects.entry(object).or_insert(words);
        } else {
            self.others += 1;
        }
    }

    /// Are there any?
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// How many there are; objects that are not named count once per version.
    pub fn count(&self) -> u64 {
        self.objects.len() as u64 + self.others
    }
}
