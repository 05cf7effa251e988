//! A kind as field managers see it: the shape of its objects, and which fields a request to each subresource can
//! change.

use serde_json::{Value, json};
use sk_core::{Gvk, SmolStr, registry};

use super::MANAGED_FIELDS;
use super::fields::{Fields, Step};
use super::shape::Shape;
use super::walk::Difference;
use crate::custom::{DEFINITION, Version};
use crate::request::Subresource;
use crate::schema::{self, CUSTOM, Struct};

/// A kind, by the type table or, if it is a custom one, by its definition.
#[derive(Clone, Copy)]
pub(crate) struct Kind<'s> {
    pub(super) gvk: &'s Gvk,
    version: Option<&'s Version>,
}

impl<'s> Kind<'s> {
    /// A kind, and what its definition says if it has one.
    pub(crate) fn new(gvk: &'s Gvk, version: Option<&'s Version>) -> Self {
        Self { gvk, version }
    }

    fn table(&self) -> Option<&'static Struct> {
        if *self.gvk == DEFINITION { Some(schema::CUSTOM_RESOURCE_DEFINITION) } else { schema::find(self.gvk) }
    }

    /// Is there a schema for it?
    pub(super) fn is_declared(&self) -> bool {
        self.version.is_some() || schema::find(self.gvk).is_some()
    }

    /// Does a write to this subresource record a time? Scaling a custom resource does not.
    pub(super) fn is_timed(&self, below: Option<Subresource>) -> bool {
        self.version.is_none() || below != Some(Subresource::Scale)
    }

    pub(super) fn shape(&self) -> Shape<'s> {
        match self.version {
            Some(version) => Shape::of_custom(version.schema()),
            None => Shape::Struct(self.table().unwrap_or(CUSTOM)),
        }
    }

    /// An empty object of the kind.
    pub(super) fn nothing(&self) -> Value {
        json!({"apiVersion": self.gvk.api_version(), "kind": self.gvk.kind.as_str()})
    }

    /// An object as its type writes it, without its managers.
    pub(super) fn plain(&self, object: &Value) -> Value {
        let mut object = match self.table() {
            Some(of) => schema::decode(self.gvk, of, object.clone()).unwrap_or_else(|_| object.clone()),
            None => object.clone(),
        };
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove(MANAGED_FIELDS);
        }
        object
    }

    /// Only the fields that a request to this subresource can change; it ignores the others (`GetResetFields`).
    pub(super) fn relevant(&self, found: Difference, below: Option<Subresource>) -> Difference {
        Difference {
            removed: self.relevant_fields(found.removed, below),
            written: self.relevant_fields(found.written, below),
        }
    }

    pub(super) fn relevant_fields(&self, mut fields: Fields, below: Option<Subresource>) -> Fields {
        let step = |name| Step::Field(SmolStr::new_static(name));
        let has_status = match self.version {
            Some(version) => version.has_status,
            None => registry::find(self.gvk).is_none_or(|info| info.has_subresource("status")),
        };
        match below {
            Some(Subresource::Status) if self.version.is_some() => {
                fields.inside.retain(|known, _| ![step("metadata"), step("spec")].contains(known));
            }
            Some(Subresource::Status) => fields.inside.retain(|known, _| *known == step("status")),
            None | Some(Subresource::Scale) if has_status => drop(fields.inside.remove(&step("status"))),
            None | Some(Subresource::Scale) => {}
        }
        fields
    }
}
