//! JSON merge patches (RFC 7386): the difference between two JSON values, and its application.
//!
//! Fixtures keep an object's first state whole and each later one as its difference, which is a tenth of the size and
//! reads as "what changed". Values must hold no nulls, because a null in a merge patch means "remove"; canonical
//! states hold none.

use serde_json::{Map, Value};

/// The merge patch that turns `from` into `to`.
pub fn diff(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return to.clone() };
    let mut patch = Map::new();
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, new) in to {
        match from.get(key) {
            Some(old) if old == new => {}
            Some(old @ Value::Object(_)) if new.is_object() => {
                patch.insert(key.clone(), diff(old, new));
            }
            _ => {
                patch.insert(key.clone(), new.clone());
            }
        }
    }
    Value::Object(patch)
}

/// Applies a merge patch in place.
pub fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
        } else {
            apply(fields.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn applying_a_difference_gives_the_second_value() {
        let values = [
            json!({}),
            json!({"a": 1, "b": {"c": [1, 2], "d": "x"}}),
            json!({"a": {"e": 2}, "b": {"c": [2], "f": {}}}),
            json!({"b": {"d": "x"}, "g": [{"h": 1}]}),
            json!([1, 2]),
            json!("text"),
        ];
        for from in &values {
            for to in &values {
                let mut patched = from.clone();
                apply(&mut patched, &diff(from, to));
                assert_eq!(&patched, to, "from {from}");
            }
        }
    }

    #[test]
    fn a_difference_names_only_what_changed() {
        let (from, to) = (json!({"a": 1, "b": {"c": 2, "d": 3}}), json!({"a": 1, "b": {"c": 4}}));
        assert_eq!(diff(&from, &to), json!({"b": {"d": null, "c": 4}}));
        assert_eq!(diff(&from, &from), json!({}));
    }
}
