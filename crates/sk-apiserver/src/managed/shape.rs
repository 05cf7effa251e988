//! What a value is to field managers: atomic, a struct or map with fields of its own, or a list whose items have keys
//! or count by value.
//!
//! Built-in kinds take this from the type table (`schema`). Custom resources take it from their schema, read as
//! `kube-openapi/pkg/schemaconv` reads it (1.36): a list is atomic unless the schema says otherwise, and no manager
//! owns a field that the schema does not have.

use serde_json::{Map, Value};

use super::fields::Step;
use crate::schema::{CUSTOM, Field, Lists, Struct, Type};

/// What a value is to field managers.
#[derive(Clone, Copy)]
pub(super) enum Shape<'s> {
    /// Atomic: one field, whatever is in it.
    Leaf,
    /// Fields of its own, those that the struct declares.
    Struct(&'static Struct),
    /// Fields of its own, by any name.
    Map(&'static Type),
    /// A list whose items are known by these keys.
    Keyed(&'static [&'static str], &'static Type),
    /// A list of values, each once.
    Set,
    /// Nothing is declared: an object has fields of its own, everything else is one.
    Undeclared,
    /// What the definition of a custom kind says.
    Custom(Part<'s>),
}

/// A part of the schema of a custom kind.
#[derive(Clone, Copy)]
pub(super) struct Part<'s> {
    schema: &'s Value,
    /// May it have fields that it does not declare?
    keeps_unknown: bool,
    /// Is it an object with metadata of its own?
    is_object: bool,
}

/// What of a value is walked into.
#[derive(Clone, Copy)]
pub(super) enum Form<'v> {
    /// It is one field.
    Leaf,
    /// There is nothing to walk into.
    Empty,
    /// Field by field.
    Fields(&'v Map<String, Value>),
    /// Item by item.
    Items(&'v [Value]),
}

/// The value of a key that an item need not say (`ContainerPort` and `ServicePort`, core/v1).
const DEFAULT_PROTOCOL: (&str, &str) = ("protocol", "TCP");

impl<'s> Shape<'s> {
    /// The objects of a custom kind whose definition has this schema.
    pub(super) fn of_custom(schema: &'s Value) -> Self {
        Self::Custom(Part { is_object: true, ..Part::of(schema, false) })
    }

    fn of(of: &'static Type) -> Self {
        match of {
            Type::Struct(of) if of.is_atomic => Self::Leaf,
            Type::Struct(of) => Self::Struct(of),
            Type::Map(of) => Self::Map(of),
            Type::Any => Self::Undeclared,
            Type::List(_)
            | Type::Bool
            | Type::Int32
            | Type::Int64
            | Type::String
            | Type::Bytes
            | Type::Quantity
            | Type::IntOrString
            | Type::Time => Self::Leaf,
        }
    }

    fn of_field(field: &'static Field) -> Self {
        match (field.lists(), &field.of) {
            (Lists::Keyed(keys), Type::List(item)) => Self::Keyed(keys, item),
            (Lists::Set, Type::List(_)) => Self::Set,
            (Lists::Granular, Type::Struct(of)) => Self::Struct(of),
            (Lists::Atomic, Type::Struct(_) | Type::Map(_) | Type::List(_)) => Self::Leaf,
            (Lists::Keyed(_) | Lists::Set | Lists::Granular | Lists::Atomic | Lists::Default, of) => Self::of(of),
        }
    }

    /// What is inside the field of this name, and is it declared?
    pub(super) fn field(self, name: &str) -> (Self, bool) {
        match self {
            Self::Struct(of) => of.field(name).map_or((Self::Undeclared, false), |field| (Self::of_field(field), true)),
            Self::Map(of) => (Self::of(of), false),
            Self::Undeclared => (Self::Undeclared, false),
            Self::Custom(part) => part.field(name),
            Self::Leaf | Self::Keyed(..) | Self::Set => (Self::Leaf, false),
        }
    }

    /// May a value of this shape have a field of this name?
    pub(super) fn takes(self, name: &str) -> bool {
        match self {
            Self::Struct(of) => of.field(name).is_some(),
            Self::Custom(part) => part.field(name).1 || part.additional().is_some(),
            Self::Map(_) | Self::Undeclared | Self::Leaf | Self::Keyed(..) | Self::Set => true,
        }
    }

    /// What a value of this shape holds that has fields of its own.
    pub(super) fn form<'v>(self, value: Option<&'v Value>) -> Form<'v> {
        match (self, value) {
            (Self::Leaf, _) => Form::Leaf,
            (Self::Custom(part), value) => part.form(value),
            (Self::Struct(_) | Self::Map(_) | Self::Undeclared, Some(Value::Object(fields))) => Form::Fields(fields),
            (Self::Keyed(..) | Self::Set, Some(Value::Array(items))) => Form::Items(items),
            (Self::Undeclared, Some(Value::Null) | None) => Form::Empty,
            (Self::Undeclared, _) => Form::Leaf,
            (Self::Struct(_) | Self::Map(_) | Self::Keyed(..) | Self::Set, _) => Form::Empty,
        }
    }

    /// The step to an item of a list; `None`: it is nothing that such a list may hold.
    pub(super) fn step(self, item: &Value) -> Option<Step> {
        match self {
            Self::Keyed(keys, of) => item.is_object().then(|| {
                let found = keys.iter().map(|key| (*key, item.get(key).cloned().unwrap_or_else(|| unsaid(key, of))));
                step_by(found)
            }),
            Self::Custom(part) if part.is_keyed() => part.step(item),
            _ => {
                let is_plain = !item.is_null() && !item.is_array() && !item.is_object();
                is_plain.then(|| Step::Item(item.to_string().into()))
            }
        }
    }

    pub(super) fn item(self) -> Self {
        match self {
            Self::Keyed(_, of) => Self::of(of),
            Self::Custom(part) => Self::Custom(part.inner(&part.schema["items"])),
            _ => Self::Leaf,
        }
    }
}

/// The step to the item with these keys.
fn step_by<'k>(keys: impl Iterator<Item = (&'k str, Value)>) -> Step {
    let mut keys: Vec<(&str, Value)> = keys.collect();
    keys.sort_unstable_by_key(|(key, _)| *key);
    let keys: Map<String, Value> = keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    Step::Key(Value::Object(keys).to_string().into())
}

/// The value of a key that an item does not have: its default, or nothing of its type.
fn unsaid(key: &str, of: &Type) -> Value {
    let declared = if let Type::Struct(of) = of { of.field(key).map(|field| &field.of) } else { None };
    match declared {
        Some(Type::Int32 | Type::Int64) => Value::from(0),
        _ if key == DEFAULT_PROTOCOL.0 => Value::from(DEFAULT_PROTOCOL.1),
        _ => Value::from(""),
    }
}

/// What a schema, and where it has no type the value, says that a value is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Scalar,
    List,
    Map,
}

impl<'s> Part<'s> {
    fn of(schema: &'s Value, keeps_unknown: bool) -> Self {
        Self {
            schema,
            keeps_unknown: keeps_unknown || schema["x-kubernetes-preserve-unknown-fields"] == true,
            is_object: schema["x-kubernetes-embedded-resource"] == true,
        }
    }

    /// What is inside may have unknown fields where this may.
    fn inner(self, schema: &'s Value) -> Self {
        Self::of(schema, self.keeps_unknown)
    }

    fn field(self, name: &str) -> (Shape<'s>, bool) {
        if self.is_object {
            match name {
                "metadata" => return Shape::Struct(CUSTOM).field(name),
                "apiVersion" | "kind" => return (Shape::Leaf, true),
                _ => {}
            }
        }
        match self.schema["properties"].get(name) {
            Some(of) => (Shape::Custom(self.inner(of)), true),
            None => (self.additional().unwrap_or(Shape::Undeclared), false),
        }
    }

    /// What fields are that are not declared; `None`: there may be none.
    fn additional(self) -> Option<Shape<'s>> {
        let has_fields = self.schema["properties"].as_object().is_some_and(|fields| !fields.is_empty());
        match &self.schema["additionalProperties"] {
            of @ Value::Object(_) => Some(Shape::Custom(self.inner(of))),
            Value::Bool(true) => Some(Shape::Undeclared),
            Value::Bool(false) => None,
            _ => (self.keeps_unknown || !(has_fields || self.is_object)).then_some(Shape::Undeclared),
        }
    }

    fn sort(self, value: Option<&Value>) -> Sort {
        match self.schema["type"].as_str() {
            Some("object") => Sort::Map,
            Some("array") => Sort::List,
            Some(_) => Sort::Scalar,
            None => match value {
                Some(Value::Object(_) | Value::Null) | None => Sort::Map,
                Some(Value::Array(_)) => Sort::List,
                Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => Sort::Scalar,
            },
        }
    }

    fn form<'v>(self, value: Option<&'v Value>) -> Form<'v> {
        let is_one_list = !["set", "map"].contains(&self.schema["x-kubernetes-list-type"].as_str().unwrap_or_default());
        match (self.sort(value), value) {
            (Sort::Scalar, _) => Form::Leaf,
            (Sort::Map, _) if self.schema["x-kubernetes-map-type"] == "atomic" => Form::Leaf,
            (Sort::List, _) if is_one_list => Form::Leaf,
            (Sort::Map, Some(Value::Object(fields))) => Form::Fields(fields),
            (Sort::List, Some(Value::Array(items))) => Form::Items(items),
            (Sort::Map | Sort::List, _) => Form::Empty,
        }
    }

    fn is_keyed(self) -> bool {
        self.schema["x-kubernetes-list-type"] == "map"
    }

    fn keys(self) -> impl Iterator<Item = &'s str> {
        self.schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().filter_map(Value::as_str)
    }

    /// A key that an item does not have has its default; without one it is left out.
    fn step(self, item: &Value) -> Option<Step> {
        let default = |key: &str| self.schema["items"]["properties"][key].get("default").cloned();
        let value = |key: &str| item.get(key).cloned().or_else(|| default(key));
        let found: Vec<(&str, Value)> = self.keys().filter_map(|key| Some((key, value(key)?))).collect();
        (item.is_object() && !found.is_empty()).then(|| step_by(found.into_iter()))
    }

    /// Why a value is not what the schema says (`validateScalar`, `mapValue`, `listValue`).
    pub(super) fn unfit(self, value: &Value) -> Option<String> {
        let wanted = match (self.sort(Some(value)), value) {
            (_, Value::Null) | (Sort::Map, Value::Object(_)) | (Sort::List, Value::Array(_)) => return None,
            (Sort::Map, _) => "map",
            (Sort::List, _) => "list",
            (Sort::Scalar, _) => return self.unfit_scalar(value),
        };
        Some(format!("expected {wanted}, got &{{{}}}", crate::custom::in_go(value)))
    }

    fn unfit_scalar(self, value: &Value) -> Option<String> {
        let of_format = self.schema["format"].as_str().is_some_and(|format| !["", "byte"].contains(&format));
        match (self.schema["type"].as_str(), value) {
            (Some("integer" | "number"), Value::Number(_)) | (Some("boolean"), Value::Bool(_)) => None,
            (Some("integer" | "number"), _) => {
                Some(format!("expected numeric (int or float), got {}", crate::custom::go_type(value)))
            }
            (Some("boolean"), _) => Some(format!("expected boolean, got &{{{}}}", crate::custom::in_go(value))),
            (Some("string"), Value::String(_)) => None,
            (Some("string"), _) if !of_format => {
                Some(format!("expected string, got &value.valueUnstructured{{Value:{value}}}"))
            }
            (_, Value::Array(_) | Value::Object(_)) => {
                Some(format!("expected any scalar, got &{{{}}}", crate::custom::in_go(value)))
            }
            _ => None,
        }
    }
}

impl Shape<'_> {
    /// Why an item is not allowed in an associative list or a set.
    pub(super) fn misfit(self, item: &Value) -> Option<String> {
        let keys: Vec<&str> = match self {
            Self::Keyed(keys, _) => keys.to_vec(),
            Self::Custom(part) if part.is_keyed() => part.keys().collect(),
            _ => {
                return match item {
                    Value::Object(_) => {
                        Some("associative list without keys has an element that's a map type".to_owned())
                    }
                    Value::Array(_) => Some("not supported: associative list with lists as elements".to_owned()),
                    Value::Null => {
                        Some("associative list without keys has an element that's an explicit null".to_owned())
                    }
                    Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
                };
            }
        };
        match item {
            Value::Null => Some("associative list with keys may not have a null element".to_owned()),
            Value::Object(_) if self.step(item).is_none() => {
                let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
                let said = "associative list with keys has an element that omits all key fields";
                Some(format!("{said} [{}] (and doesn't have default values for any key fields)", keys.join(" ")))
            }
            Value::Object(_) => None,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Some("associative list with keys may not have non-map elements".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_says_what_is_one_field_and_what_has_fields_of_its_own() {
        let schema = json!({"type": "object", "properties": {
            "plain": {"type": "array", "items": {"type": "string"}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "one": {"type": "object", "x-kubernetes-map-type": "atomic"},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "object",
                "properties": {"b": {"type": "string"}}}}},
            "any": {"x-kubernetes-int-or-string": true},
        }});
        let root = Shape::of_custom(&schema);
        let form = |name: &str, value: &Value| match root.field(name).0.form(Some(value)) {
            Form::Leaf => "leaf",
            Form::Empty => "empty",
            Form::Fields(_) => "fields",
            Form::Items(_) => "items",
        };
        assert_eq!(form("plain", &json!(["a"])), "leaf");
        assert_eq!((form("set", &json!(["a"])), form("set", &json!(null))), ("items", "empty"));
        assert_eq!((form("one", &json!({"a": 1})), form("free", &json!({"a": 1}))), ("leaf", "fields"));
        assert_eq!((form("any", &json!(1)), form("any", &json!({}))), ("leaf", "fields"));
        assert!(!root.takes("other") && root.takes("metadata") && root.takes("set"));
        assert!(
            root.field("free").0.takes("x") && root.field("free").0.field("a").0.takes("x"),
            "what is inside keeps it"
        );
    }

    #[test]
    fn keys_that_an_item_does_not_have_are_their_defaults_or_left_out() {
        let schema = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "name"],
            "items": {"properties": {"name": {"default": "x"}}}});
        let shape = Shape::Custom(Part::of(&schema, false));
        let step = |item: Value| shape.step(&item).map(|step| step.to_string());
        assert_eq!(step(json!({"port": 1})).as_deref(), Some("[name=\"x\",port=1]"));
        assert_eq!(step(json!({})).as_deref(), Some("[name=\"x\"]"));
        assert_eq!(step(json!(5)), None);
    }
}
