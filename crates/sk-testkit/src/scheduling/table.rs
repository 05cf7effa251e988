//! One scenario for many values: `each` is a table, `${column}` a value of its row.
//!
//! A string that is nothing but `${column}` becomes the value itself, whatever its type; within a longer string the
//! value is inserted as text. A column that no row has is refused: it is a misspelling.

use serde_json::{Map, Value};

/// The scenario once per row of its `each`, or the scenario itself if it has none.
pub fn expand(mut scenario: Value) -> Result<Vec<Value>, String> {
    let Some(rows) = scenario.as_object_mut().and_then(|fields| fields.shift_remove("each")) else {
        return Ok(vec![scenario]);
    };
    let rows: Vec<Map<String, Value>> = serde_json::from_value(rows)
        .map_err(|error| format!("`each` is a list of rows such as {{op: In}}: {error}"))?;
    rows.iter().map(|row| fill(&scenario, row)).collect()
}

fn fill(value: &Value, row: &Map<String, Value>) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => fill_text(text, row)?,
        Value::Array(list) => Value::Array(list.iter().map(|element| fill(element, row)).collect::<Result<_, _>>()?),
        Value::Object(fields) => {
            let filled = fields.iter().map(|(key, field)| {
                let key = fill_text(key, row)?;
                Ok((key.as_str().map_or_else(|| key.to_string(), str::to_owned), fill(field, row)?))
            });
            Value::Object(filled.collect::<Result<_, String>>()?)
        }
        plain => plain.clone(),
    })
}

fn fill_text(text: &str, row: &Map<String, Value>) -> Result<Value, String> {
    let column = |name: &str| {
        row.get(name).ok_or_else(|| format!("`${{{name}}}` is no column of the row {}", Value::Object(row.clone())))
    };
    if let Some(name) = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'))
        && !name.contains('}')
    {
        return column(name).cloned();
    }
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}').ok_or_else(|| format!("`{text}` has a `${{` without its `}}`"))?;
        filled.push_str(before);
        match column(name)? {
            Value::String(value) => filled.push_str(value),
            value => filled.push_str(&value.to_string()),
        }
        rest = after;
    }
    filled.push_str(rest);
    Ok(Value::String(filled))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_row_makes_a_scenario_with_its_values_in_their_own_types() {
        let made = expand(json!({
            "name": "op-${op}", "each": [{"op": "In", "values": ["a"]}, {"op": "Exists", "values": []}],
            "steps": [{"op": "${op}", "values": "${values}", "${op}": 1}],
        }))
        .unwrap();
        assert_eq!(made[0], json!({"name": "op-In", "steps": [{"op": "In", "values": ["a"], "In": 1}]}));
        assert_eq!(made[1]["steps"][0]["values"], json!([]));
    }

    #[test]
    fn a_column_that_no_row_has_is_named() {
        let error = expand(json!({"name": "${opp}", "each": [{"op": 1}]})).unwrap_err();
        assert!(error.contains("${opp}"), "{error}");
    }
}
