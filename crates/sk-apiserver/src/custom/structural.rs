//! Pruning and defaulting by a structural schema (`apiextensions-apiserver/pkg/apiserver/schema/{pruning,defaulting}`, 1.36).

use serde_json::{Map, Value};

use super::MAX_DEPTH;

/// The fields that every object has besides those of its schema.
const OF_ROOT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Takes out of an object what its schema does not know.
pub(super) fn prune_object(object: &mut Value, schema: &Value) {
    let Value::Object(fields) = object else { return };
    let kept: Vec<(String, Value)> =
        OF_ROOT.iter().filter_map(|name| fields.remove(*name).map(|value| ((*name).to_owned(), value))).collect();
    prune(object, schema, 0);
    if let Value::Object(fields) = object {
        fields.extend(kept);
    }
}

fn preserves(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
}

fn prune(value: &mut Value, schema: &Value, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(fields) => prune_fields(fields, schema, depth),
        Value::Array(items) => {
            let of = schema.get("items").unwrap_or(&Value::Null);
            items.iter_mut().for_each(|item| prune(item, of, depth + 1));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn prune_fields(fields: &mut Map<String, Value>, schema: &Value, depth: usize) {
    let is_embedded = schema["x-kubernetes-embedded-resource"] == true;
    let (properties, additional) = (&schema["properties"], &schema["additionalProperties"]);
    let is_known = |name: &str| {
        properties.get(name).is_some()
            || additional.is_object()
            || *additional == true
            || (is_embedded && OF_ROOT.contains(&name))
    };
    if !preserves(schema) {
        fields.retain(|name, _| is_known(name));
    }
    for (name, value) in fields {
        let of = properties.get(name).unwrap_or(additional);
        let is_kept = (is_embedded && OF_ROOT.contains(&name.as_str())) || (of.is_null() && preserves(schema));
        if !is_kept {
            prune(value, of, depth + 1);
        }
    }
}

/// Writes defaults into missing fields. Where `null` is not allowed, it counts as missing.
pub(super) fn default(value: &mut Value, schema: &Value, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(fields) => default_fields(fields, schema, depth),
        Value::Array(items) => {
            let of = schema.get("items").unwrap_or(&Value::Null);
            for item in items {
                replace_null(item, of);
                default(item, of, depth + 1);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn default_fields(fields: &mut Map<String, Value>, schema: &Value, depth: usize) {
    let (properties, additional) = (schema["properties"].as_object(), &schema["additionalProperties"]);
    for (name, of) in properties.into_iter().flatten() {
        if let Some(default) = of.get("default").filter(|_| !fields.contains_key(name)) {
            fields.insert(name.clone(), default.clone());
        }
    }
    for (name, value) in fields.iter_mut() {
        let of = properties.and_then(|properties| properties.get(name)).unwrap_or(additional);
        replace_null(value, of);
        default(value, of, depth + 1);
    }
}

/// Removes `null` where it is not allowed and has no default (`PruneNonNullableNullsWithoutDefaults`). A server does so
/// with what it reads, and not with what it applies.
pub(super) fn drop_nulls(value: &mut Value, schema: &Value, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(fields) => {
            let (properties, additional) = (schema["properties"].as_object(), &schema["additionalProperties"]);
            let of = |name: &str| properties.and_then(|properties| properties.get(name)).unwrap_or(additional);
            fields.retain(|name, value| !value.is_null() || !of(name).is_object() || of(name)["nullable"] == true);
            fields.iter_mut().for_each(|(name, value)| drop_nulls(value, of(name), depth + 1));
        }
        Value::Array(items) => {
            let of = schema.get("items").unwrap_or(&Value::Null);
            items.iter_mut().for_each(|item| drop_nulls(item, of, depth + 1));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn replace_null(value: &mut Value, schema: &Value) {
    if let Some(default) = schema.get("default").filter(|_| value.is_null() && schema["nullable"] != true) {
        *value = default.clone();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_schema_does_not_know_goes_unless_it_preserves_it() {
        let schema = json!({"properties": {
            "spec": {"properties": {
                "a": {"type": "integer"},
                "free": {"x-kubernetes-preserve-unknown-fields": true, "properties": {"inner": {"properties": {}}}},
                "map": {"additionalProperties": {"properties": {"k": {}}}},
                "list": {"items": {"properties": {"k": {}}}},
            }},
        }});
        let mut object = json!({
            "apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "other": 1,
            "spec": {
                "a": 1, "b": 2, "free": {"any": {"thing": 1}, "inner": {"gone": 1}}, "map": {"one": {"k": 1, "l": 2}},
                "list": [{"k": 1, "l": 2}],
            },
        });
        prune_object(&mut object, &schema);
        assert_eq!(
            object["spec"],
            json!({
                "a": 1, "free": {"any": {"thing": 1}, "inner": {}}, "map": {"one": {"k": 1}}, "list": [{"k": 1}],
            })
        );
        assert!(object.get("other").is_none() && object["metadata"]["name"] == "x");
    }

    #[test]
    fn defaults_are_written_where_nothing_is_said_and_into_what_was_defaulted() {
        let schema = json!({"properties": {"spec": {"default": {}, "properties": {
            "size": {"type": "integer", "default": 3},
            "name": {"type": "string", "nullable": true, "default": "x"},
            "note": {"type": "string"},
        }}}});
        for (given, expected) in [
            (json!({}), json!({"size": 3, "name": "x"})),
            (json!({"spec": {"size": 5, "name": null}}), json!({"size": 5, "name": null})),
            (json!({"spec": {"size": null, "note": null}}), json!({"size": 3, "name": "x"})),
        ] {
            let mut object = given;
            default(&mut object, &schema, 0);
            drop_nulls(&mut object, &schema, 0);
            assert_eq!(object["spec"], expected);
        }
    }
}
