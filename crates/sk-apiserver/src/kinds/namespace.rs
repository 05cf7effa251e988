//! Namespaces: the fields that the namespace controller needs to empty and remove one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sk_core::SmolStr;

use super::{Kind, read};
use crate::error::Invalid;
use crate::object::Rest;

/// The finalizer of every namespace until its objects are deleted.
pub(crate) const KUBERNETES_FINALIZER: SmolStr = SmolStr::new_static("kubernetes");

/// A namespace's spec and status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Namespace {
    /// `spec.finalizers`; not the same list as `metadata.finalizers`.
    pub finalizers: Vec<SmolStr>,
    /// Its phase.
    pub phase: NamespacePhase,
    /// All other fields of the spec.
    pub spec_rest: Rest,
    /// All other fields of the status: conditions.
    pub status_rest: Rest,
}

/// In use, or going.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum NamespacePhase {
    /// In use.
    #[default]
    Active,
    /// Being emptied; takes no new objects.
    Terminating,
}

impl Kind for Namespace {
    fn read(fields: &mut Map<String, Value>) -> Result<Self, serde_json::Error> {
        let mut spec: Map<String, Value> = read(fields.remove("spec"))?;
        let mut status: Map<String, Value> = read(fields.remove("status"))?;
        let keep = |rest: Map<String, Value>| (!rest.is_empty()).then(|| Arc::new(rest));
        Ok(Self {
            finalizers: read(spec.remove("finalizers"))?,
            phase: read(status.remove("phase"))?,
            spec_rest: keep(spec),
            status_rest: keep(status),
        })
    }

    fn write(&self, fields: &mut Map<String, Value>) {
        let mut put = |name: &str, own: (&str, Value), rest: &Rest| {
            let mut section = Map::from_iter([(own.0.to_owned(), own.1)]);
            section.extend(rest.as_deref().cloned().unwrap_or_default());
            fields.insert(name.to_owned(), Value::Object(section));
        };
        put("spec", ("finalizers", json!(self.finalizers)), &self.spec_rest);
        put("status", ("phase", json!(self.phase)), &self.status_rest);
    }

    fn prepare_for_create(&mut self) {
        self.finalizers = vec![KUBERNETES_FINALIZER];
        self.phase = NamespacePhase::Active;
        self.status_rest = None;
    }

    fn set_status(&mut self, other: &Self) {
        self.phase = other.phase;
        self.status_rest.clone_from(&other.status_rest);
    }

    fn prepare_for_update(&mut self, stored: &Self) {
        self.set_status(stored);
        // Only finalising changes these.
        self.finalizers.clone_from(&stored.finalizers);
    }

    fn same_desire(&self, other: &Self) -> bool {
        self.finalizers == other.finalizers && self.spec_rest == other.spec_rest
    }

    fn validate(&self) -> Result<(), Invalid> {
        Ok(())
    }

    fn validate_update(&self, _stored: &Self) -> Result<(), Invalid> {
        Ok(())
    }
}
