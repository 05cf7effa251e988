//! JSON patches (RFC 6902), with the error messages of the library that the API server uses (`evanphx/json-patch`, as
//! of 1.36).

use serde_json::Value;

use crate::error::{ApiError, Reason};

/// How many operations a patch may have (`maxJSONPatchOperations`).
const MAX_OPERATIONS: usize = 10_000;

/// Applies all operations, or none.
pub(super) fn apply(mut target: Value, operations: &Value) -> Result<Value, ApiError> {
    let Value::Array(operations) = operations else {
        let what = crate::error::json_type(operations);
        let message = format!("json: cannot unmarshal {what} into Go value of type []handlers.jsonPatchOp");
        let message = format!("error decoding patch: {message}");
        return Err(ApiError::bad_request(message));
    };
    if operations.len() > MAX_OPERATIONS {
        let message =
            format!("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}", operations.len());
        return Err(ApiError::new(Reason::RequestEntityTooLarge, message));
    }
    for operation in operations {
        step(&mut target, operation).map_err(|_| ApiError::new(Reason::Invalid, REFUSED))?;
    }
    Ok(target)
}

/// A server does not say which operation failed.
const REFUSED: &str = "the server rejected our request due to an error in our request";

fn step(target: &mut Value, operation: &Value) -> Result<(), String> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str).ok_or_else(|| format!("missing {name}"));
    let value = || operation.get("value").cloned().ok_or_else(|| "missing value".to_owned());
    let path = text("path")?;
    match text("op")? {
        "add" => add(target, path, value()?),
        "remove" => remove(target, path).map(drop),
        "replace" => {
            // A field that is not there is added, as the library does; an element that is not there is refused.
            match container(target, "replace", path) {
                Ok((Value::Object(fields), name)) => drop(fields.insert(name, value()?)),
                _ => *target.pointer_mut(path).ok_or_else(|| missing("replace", path))? = value()?,
            }
            Ok(())
        }
        "move" => {
            let moved = remove(target, text("from")?)?;
            add(target, path, moved)
        }
        "copy" => {
            let copied = target.pointer(text("from")?).cloned().ok_or_else(|| missing("copy", path))?;
            add(target, path, copied)
        }
        "test" => match target.pointer(path) {
            Some(found) if *found == value()? => Ok(()),
            Some(_) => Err(format!("testing path {path} failed")),
            None if operation.get("value").is_none_or(Value::is_null) => Ok(()),
            None => Err(missing("test", path)),
        },
        other => Err(format!("unexpected kind: {other}")),
    }
}

fn missing(op: &str, path: &str) -> String {
    format!("{op} operation does not apply: doc is missing path: {path}")
}

/// The container that a path ends in, and the last part of the path.
fn container<'v>(target: &'v mut Value, op: &str, path: &str) -> Result<(&'v mut Value, String), String> {
    let (parent, last) = path.rsplit_once('/').ok_or_else(|| missing(op, path))?;
    let place = target.pointer_mut(parent).ok_or_else(|| missing(op, path))?;
    Ok((place, last.replace("~1", "/").replace("~0", "~")))
}

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        *target = value;
        return Ok(());
    }
    match container(target, "add", path)? {
        (Value::Object(fields), name) => drop(fields.insert(name, value)),
        (Value::Array(items), index) => {
            let index = if index == "-" { Some(items.len()) } else { index.parse().ok() };
            let index = index.filter(|index| *index <= items.len()).ok_or_else(|| missing("add", path))?;
            items.insert(index, value);
        }
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => return Err(missing("add", path)),
    }
    Ok(())
}

fn remove(target: &mut Value, path: &str) -> Result<Value, String> {
    let removed = match container(target, "remove", path)? {
        (Value::Object(fields), name) => fields.remove(&name),
        (Value::Array(items), index) => {
            let index = index.parse().ok().filter(|index: &usize| *index < items.len());
            index.map(|index| items.remove(index))
        }
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => None,
    };
    removed.ok_or_else(|| missing("remove", path))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_change_what_they_name_and_nothing_else() {
        let original = json!({"a": [1, 2], "b": {"c/d": "x"}});
        let operations = json!([
            {"op": "test", "path": "/b/c~1d", "value": "x"},
            {"op": "add", "path": "/a/1", "value": 9},
            {"op": "add", "path": "/a/-", "value": 3},
            {"op": "remove", "path": "/a/0"},
            {"op": "move", "from": "/b/c~1d", "path": "/e"},
            {"op": "copy", "from": "/e", "path": "/f"},
            {"op": "replace", "path": "/e", "value": null},
        ]);
        assert_eq!(apply(original, &operations).unwrap(), json!({"a": [9, 2, 3], "b": {}, "e": null, "f": "x"}));
    }

    #[test]
    fn what_is_not_there_is_neither_replaced_nor_removed() {
        for operation in [
            json!({"op": "remove", "path": "/x"}),
            json!({"op": "replace", "path": "/a/3", "value": 1}),
            json!({"op": "add", "path": "/a/7", "value": 1}),
            json!({"op": "test", "path": "/a", "value": 1}),
            json!({"op": "sing", "path": "/a"}),
            json!({"path": "/a"}),
        ] {
            assert!(apply(json!({"a": []}), &json!([operation])).is_err(), "{operation}");
        }
    }
}
