//! Fixes a trace: a second pass that changes what the first one found.
//!
//! Only what [`Code::fix`](super::Code) describes is changed. Everything else stays, so a fixed trace can still be
//! invalid: validate it again.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;
use serde_json::Value;
use sk_core::registry::{self, Scope};
use sk_core::{ObjectRef, Pointer};
use sk_store::trace::{Change, Deletion, Format, Object, OwnerLives, Row, Trace};

use super::Validation;
use super::codes::Rule;
use super::references::{beside, of_template, target};
use crate::names::{Names, number};
use crate::rewrite::{SECTIONS, Sink};
use crate::templates::ChangedTemplates;
use crate::{EditError, TraceOutput};

/// What was mended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fixed {
    /// How often something was changed, by rule; each version of an object counts.
    pub changes: BTreeMap<Rule, u64>,
    /// Changed templates that did not fit into memory: their lives are replayed in the order of their starts.
    pub forgotten_templates: u64,
}

/// Writes the trace to `out`, mended after what `validation` found in it.
pub fn fix<W: Write>(
    trace: &Trace,
    validation: &Validation,
    format: Format,
    out: W,
) -> Result<TraceOutput<W, Fixed>, EditError> {
    let mut sink = Sink::like(trace, format, out)?;
    let mut fixer = Fixer::new(trace, validation);
    for record in trace.records()? {
        let record = record?;
        let at = record.at;
        let change = match record.change {
            Change::Apply(object) => Some(Change::Apply(fixer.object(object)?)),
            Change::Delete(deletion) => fixer.deletion(&deletion)?.map(Change::Delete),
            mark @ Change::Mark(_) => Some(mark),
        };
        if let Some(change) = change {
            sink.record(at, change)?;
        }
    }
    for section in SECTIONS {
        for row in trace.rows(section)? {
            match row? {
                Row::Lives(lives) => {
                    if let Some(lives) = fixer.lives(lives) {
                        sink.row(&Row::Lives(lives))?;
                    }
                }
                row => sink.row(&row)?,
            }
        }
    }
    fixer.fixed.forgotten_templates = fixer.templates.overflow();
    sink.finish(fixer.fixed)
}

struct Fixer<'a> {
    trace: &'a Trace,
    validation: &'a Validation,
    alive: Names,
    templates: ChangedTemplates,
    fixed: Fixed,
}

impl<'a> Fixer<'a> {
    fn new(trace: &'a Trace, validation: &'a Validation) -> Self {
        let templates = ChangedTemplates::default();
        Self { trace, validation, alive: Names::default(), templates, fixed: Fixed::default() }
    }

    fn count(&mut self, rule: Rule) {
        *self.fixed.changes.entry(rule).or_default() += 1;
    }

    fn object(&mut self, object: Object) -> Result<Object, EditError> {
        let reference = object.reference().clone();
        self.alive.insert(number(&reference));
        let mut value = object.into_value();
        if value
            .get("status")
            .is_some_and(|status| !status.is_null() && *status != Value::Object(serde_json::Map::new()))
        {
            if let Some(fields) = value.as_object_mut() {
                fields.shift_remove("status");
            }
            self.count(Rule::StatusPopulated);
        }
        self.references(&reference, &mut value);
        self.namespace(&reference, &mut value);
        named(value)
    }

    /// Gives every reference to something missing its remedy.
    fn references(&mut self, reference: &ObjectRef, value: &mut Value) {
        let paths = self.trace.config().template_paths(&reference.gvk);
        let mut before = None;
        for at in paths.iter().flat_map(|path| path.resolve(value)).collect::<Vec<_>>() {
            let missing = self.missing_in(reference, value, &at);
            if !missing.is_empty() {
                before.get_or_insert_with(|| value.clone());
            }
            for (rule, place) in missing {
                if let Some(template) = at.get_mut(value) {
                    mend(template, rule, &place);
                    self.count(rule);
                }
            }
        }
        if let Some(before) = before {
            self.templates.note(self.trace.config(), reference, &before, value);
        }
    }

    fn missing_in(&self, reference: &ObjectRef, value: &Value, at: &Pointer) -> Vec<(Rule, Pointer)> {
        let Some(template) = at.get(value) else { return Vec::new() };
        let is_missing =
            |kind: &str, name: &str| self.validation.missing.contains(target(kind, &beside(reference, name)));
        let references = of_template(template).into_iter();
        references.filter(|found| is_missing(found.kind, found.name)).map(|found| (found.rule, found.at)).collect()
    }

    fn namespace(&mut self, reference: &ObjectRef, value: &mut Value) {
        let Some(metadata) = value["metadata"].as_object_mut() else { return };
        match (registry::scope(&reference.gvk), &reference.key.namespace) {
            (Some(Scope::Namespaced), None) => {
                metadata.insert("namespace".into(), "default".into());
                self.count(Rule::NamespaceMissing);
            }
            (Some(Scope::Cluster), Some(_)) => {
                metadata.shift_remove("namespace");
                self.count(Rule::NamespaceUnexpected);
            }
            _ => {}
        }
    }

    fn deletion(&mut self, deletion: &Deletion) -> Result<Option<Deletion>, EditError> {
        if !self.alive.remove(number(&deletion.object)) && self.alive.overflow() == 0 {
            self.count(Rule::DeleteOfUnknown);
            return Ok(None);
        }
        let mut value = deletion.to_value();
        self.namespace(&deletion.object, &mut value);
        Deletion::from_value(value).map(Some).map_err(|error| unnamed(&error))
    }

    fn lives(&mut self, mut lives: OwnerLives) -> Option<OwnerLives> {
        if !self.validation.known.contains(number(&lives.owner)) && self.validation.known.overflow() == 0 {
            self.count(Rule::LivesOfUnknownOwner);
            return None;
        }
        self.templates.follow(&mut lives);
        for template in &mut lives.templates {
            let before = template.lives.len();
            template.lives.retain(|life| life.end.is_none_or(|end| end >= life.start));
            (template.lives.len()..before).for_each(|_| self.count(Rule::LifeEndsBeforeStart));
        }
        match (registry::scope(&lives.owner.gvk), &lives.owner.key.namespace) {
            (Some(Scope::Namespaced), None) => lives.owner.key.namespace = Some("default".into()),
            (Some(Scope::Cluster), Some(_)) => lives.owner.key.namespace = None,
            _ => {}
        }
        Some(lives)
    }
}

/// Mends one reference of a template.
fn mend(template: &mut Value, rule: Rule, place: &Pointer) {
    if rule == Rule::ServiceAccountMissing {
        if let Some(spec) = template["spec"].as_object_mut() {
            spec.shift_remove("serviceAccount");
            spec.shift_remove("serviceAccountName");
        }
    } else if let Some(source) = place.get_mut(template).and_then(Value::as_object_mut) {
        source.insert("optional".into(), true.into());
    }
}

fn named(value: Value) -> Result<Object, EditError> {
    Object::new(value).map_err(|error| unnamed(&error))
}

fn unnamed(error: &sk_store::trace::NotAnObject) -> EditError {
    EditError::Refused { what: format!("a fixed object is not valid: {error}"), advice: "report this as a bug" }
}
