//! Custom resources as their CustomResourceDefinition declares them: scope, subresources, defaults, pruning and
//! validation (`apiextensions-apiserver/pkg`, 1.36).
//!
//! The server reads a definition once, when it stores it. It keeps objects of a kind without a definition unchanged.
//! Not modelled: conversion between versions, and CEL rules (`x-kubernetes-validations`).

mod formats;
mod structural;
mod validate;

use std::collections::BTreeMap;
use std::sync::Arc;

use regex_lite::Regex;
use serde_json::{Value, json};
use sk_core::registry::Scope;
use sk_core::{Gvk, ObjectKey, SmolStr};

use crate::error::Invalid;
use crate::kinds::Body;
#[cfg(feature = "rest")]
use crate::managed::Kind;
use crate::{Object, schema};

/// `apiextensions.k8s.io/v1.CustomResourceDefinition`
pub(crate) static DEFINITION: Gvk = Gvk::new_static("apiextensions.k8s.io", "v1", "CustomResourceDefinition");

/// How deep schemas are followed: deeper than a body can be.
const MAX_DEPTH: usize = 128;

/// The definitions there are, by group and kind.
#[derive(Clone, Default)]
pub(crate) struct Definitions(BTreeMap<(SmolStr, SmolStr), Arc<Definition>>);

/// A custom kind.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) plural: SmolStr,
    pub(crate) list_kind: SmolStr,
    pub(crate) scope: Scope,
    kind: SmolStr,
    versions: Vec<Version>,
}

/// One of its versions.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    name: SmolStr,
    is_served: bool,
    pub(crate) has_status: bool,
    pub(crate) scale: Option<ScalePaths>,
    schema: Value,
    /// What the schema's patterns are, compiled; one that our library cannot read matches everything.
    patterns: BTreeMap<String, Option<Regex>>,
}

/// Where an object says how many it is, as JSON pointers.
#[derive(Clone, Debug)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) selector: Option<String>,
}

impl Definitions {
    /// A definition is new or has changed.
    pub(crate) fn seen(&mut self, object: &Object) {
        if let Some((group, definition)) = read(object) {
            self.0.insert((group, definition.kind.clone()), Arc::new(definition));
        }
    }

    /// A definition was deleted.
    pub(crate) fn gone(&mut self, object: &Object) {
        if let Some((group, definition)) = read(object) {
            self.0.remove(&(group, definition.kind));
        }
    }

    /// The definition of a kind, and of the version that is asked for.
    pub(crate) fn find(&self, gvk: &Gvk) -> Option<(&Definition, &Version)> {
        if self.0.is_empty() {
            return None;
        }
        let definition = self.0.get(&(gvk.group.clone(), gvk.kind.clone()))?;
        let version = definition.versions.iter().find(|version| version.name == gvk.version)?;
        Some((definition, version))
    }

    /// A kind as field managers see it.
    #[cfg(feature = "rest")]
    pub(crate) fn managed<'s>(&'s self, gvk: &'s Gvk) -> Kind<'s> {
        Kind::new(gvk, self.find(gvk).map(|(_, version)| version))
    }

    /// The kind that is served under a plural.
    pub(crate) fn served(&self, group: &str, version: &str, plural: &str) -> Option<(Gvk, Scope)> {
        let of_group = self.0.iter().filter(|((known, _), _)| known == group);
        let (_, definition) = of_group.into_iter().find(|(_, definition)| definition.plural == plural)?;
        definition.versions.iter().find(|known| known.is_served && known.name == version)?;
        let gvk = Gvk { group: group.into(), version: version.into(), kind: definition.kind.clone() };
        Some((gvk, definition.scope))
    }

    /// Puts an object where its kind lives: into a namespace, or into none.
    pub(crate) fn place(&self, object: &mut Object) {
        if self.0.is_empty() || object.body.is_typed() {
            return;
        }
        let Some((definition, _)) = self.find(&object.gvk) else { return };
        let namespace = match (definition.scope, &object.key.namespace) {
            (Scope::Namespaced, None) => Some(SmolStr::new_static("default")),
            (Scope::Cluster, Some(_)) => None,
            (Scope::Namespaced, Some(_)) | (Scope::Cluster, None) => return,
        };
        let name = object.key.name.clone();
        object.identity_mut().key = ObjectKey { namespace, name };
    }
}

impl Version {
    /// What its objects look like.
    pub(crate) fn schema(&self) -> &Value {
        &self.schema
    }

    /// Takes out what the schema does not know.
    pub(crate) fn prune(&self, object: &mut Value) {
        if self.schema.is_object() {
            structural::prune_object(object, &self.schema);
        }
    }

    /// Writes the schema's defaults.
    pub(crate) fn default(&self, object: &mut Value) {
        structural::default(object, &self.schema, 0);
    }

    /// Removes `null` where it is not allowed.
    pub(crate) fn drop_nulls(&self, object: &mut Value) {
        structural::drop_nulls(object, &self.schema, 0);
    }

    /// What is wrong with an object.
    pub(crate) fn check(&self, object: &Value) -> Vec<Invalid> {
        let mut errors = validate::check(object, &self.schema, &self.patterns);
        for path in self.scale.iter().flat_map(|scale| [&scale.spec_replicas, &scale.status_replicas]) {
            errors.extend(size_at(object, path));
        }
        errors
    }

    /// The metadata of an object by its type, and the rest as the schema has it.
    pub(crate) fn decode(&self, gvk: &Gvk, object: &mut Value) -> Result<(), String> {
        let metadata = object.get_mut("metadata").map(Value::take).filter(|metadata| !metadata.is_null());
        let read = schema::decode(gvk, schema::CUSTOM, json!({"metadata": metadata.unwrap_or_else(|| json!({}))}))?;
        object["metadata"] = read["metadata"].clone();
        self.prune(object);
        self.default(object);
        self.drop_nulls(object);
        Ok(())
    }
}

/// Validates the replicas at a JSON pointer (`ValidateScaleSpec`).
fn size_at(object: &Value, pointer: &str) -> Option<Invalid> {
    let field = pointer.replace('/', ".");
    let mut at = object;
    for step in pointer.split('/').skip(1) {
        let Some(fields) = at.as_object() else {
            let why = format!("{} is of the type {}, expected map[string]interface{{}}", in_go(at), go_type(at));
            return Some(Invalid::new(&field, format!("Invalid value: 0: {field} accessor error: {why}")));
        };
        at = fields.get(step)?;
    }
    let why = match at.as_i64() {
        None => format!("0: {field} accessor error: {} is of the type {}, expected int64", in_go(at), go_type(at)),
        Some(count) if count < 0 => format!("{count}: should be a non-negative integer"),
        Some(count) if count > i64::from(i32::MAX) => format!("{count}: should be less than or equal to {}", i32::MAX),
        Some(_) => return None,
    };
    Some(Invalid::new(field, format!("Invalid value: {why}")))
}

/// The type that Go's parser reads a value into.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go prints it.
pub(crate) fn in_go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => {
            number.as_i64().map_or_else(|| number.as_f64().unwrap_or(0.0).to_string(), |n| n.to_string())
        }
        Value::Array(items) => format!("[{}]", items.iter().map(in_go).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let mut shown: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}:{}", in_go(value))).collect();
            shown.sort();
            format!("map[{}]", shown.join(" "))
        }
        Value::Bool(value) => value.to_string(),
    }
}

fn read(object: &Object) -> Option<(SmolStr, Definition)> {
    let Body::Other(other) = &object.body else { return None };
    let spec = other.fields.get("spec")?;
    let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str).map(SmolStr::from);
    let kind = text("/names/kind")?;
    let versions = spec.get("versions")?.as_array()?.iter().map(read_version);
    let definition = Definition {
        plural: text("/names/plural")?,
        list_kind: text("/names/listKind").unwrap_or_else(|| format!("{kind}List").into()),
        scope: if spec.get("scope")? == "Cluster" { Scope::Cluster } else { Scope::Namespaced },
        versions: versions.collect(),
        kind,
    };
    Some((text("/group")?, definition))
}

fn read_version(version: &Value) -> Version {
    let pointer = |name: &str| {
        let path = version.pointer(&format!("/subresources/scale/{name}")).and_then(Value::as_str);
        path.map(|path| path.replace('.', "/"))
    };
    let scale =
        pointer("specReplicasPath").zip(pointer("statusReplicasPath")).map(|(spec_replicas, status_replicas)| {
            ScalePaths { spec_replicas, status_replicas, selector: pointer("labelSelectorPath") }
        });
    let schema = version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_default();
    let mut patterns = BTreeMap::new();
    validate::collect_patterns(&schema, &mut patterns, 0);
    Version {
        name: version["name"].as_str().unwrap_or_default().into(),
        is_served: version["served"] == true,
        has_status: version.pointer("/subresources/status").is_some_and(Value::is_object),
        scale,
        schema,
        patterns,
    }
}

/// Writes the defaults of a definition itself (`SetDefaults_CustomResourceDefinitionSpec`), and the status that it
/// begins with.
pub(crate) fn complete(definition: &mut Value) {
    let kind = definition.pointer("/spec/names/kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let fill = |parent: &mut Value, name: &str, value: Value| {
        if parent.is_object() && parent[name].as_str().is_none_or(str::is_empty) && !parent[name].is_object() {
            parent[name] = value;
        }
    };
    if let Some(names) = definition.pointer_mut("/spec/names") {
        fill(names, "singular", kind.to_lowercase().into());
        fill(names, "listKind", format!("{kind}List").into());
    }
    fill(&mut definition["spec"], "conversion", json!({"strategy": "None"}));
}

/// The status of a new definition.
pub(crate) fn first_status(definition: &Value) -> Value {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let stored: Vec<&Value> =
        versions.filter(|version| version["storage"] == true).map(|version| &version["name"]).collect();
    json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored})
}

/// Has a definition rules in CEL anywhere?
pub(crate) fn has_rules(definition: &Value) -> bool {
    fn within(schema: &Value, depth: usize) -> bool {
        match schema {
            Value::Object(fields) => {
                let is_said = fields.get("x-kubernetes-validations").is_some_and(Value::is_array);
                is_said || (depth <= MAX_DEPTH && fields.values().any(|inner| within(inner, depth + 1)))
            }
            Value::Array(items) => depth <= MAX_DEPTH && items.iter().any(|inner| within(inner, depth + 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }
    within(&definition["spec"]["versions"], 0)
}

/// What is wrong with a definition: whether its name is the one that its plural and its group make.
pub(crate) fn check(definition: &Value) -> Option<Invalid> {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (name, plural, group) = (text("/metadata/name"), text("/spec/names/plural"), text("/spec/group"));
    let why = format!("Invalid value: {name:?}: must be spec.names.plural+\".\"+spec.group");
    (name != format!("{plural}.{group}")).then(|| Invalid::new("metadata.name", why))
}
