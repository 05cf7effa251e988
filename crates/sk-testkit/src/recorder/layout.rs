//! Formats fixtures: broken into lines down to some depth, one line each below.
//!
//! One line per state of an object, or per answer of an oracle, makes a diff readable.

use serde_json::Value;

/// JSON text in which values deeper than `depth` stand on one line.
pub(super) fn lines(value: &Value, depth: usize) -> String {
    let mut text = String::new();
    put(value, depth, 0, &mut text);
    text.push('\n');
    text
}

fn put(value: &Value, depth: usize, indent: usize, text: &mut String) {
    match value {
        Value::Array(list) if depth > 0 && !list.is_empty() => {
            text.push('[');
            for (index, element) in list.iter().enumerate() {
                begin_line(index, indent, text);
                put(element, depth - 1, indent + 1, text);
            }
            end_lines(indent, ']', text);
        }
        Value::Object(fields) if depth > 0 && !fields.is_empty() => {
            text.push('{');
            for (index, (key, field)) in fields.iter().enumerate() {
                begin_line(index, indent, text);
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push_str(": ");
                put(field, depth - 1, indent + 1, text);
            }
            end_lines(indent, '}', text);
        }
        short => text.push_str(&short.to_string()),
    }
}

fn begin_line(index: usize, indent: usize, text: &mut String) {
    text.push_str(if index == 0 { "\n" } else { ",\n" });
    text.push_str(&" ".repeat(indent + 1));
}

fn end_lines(indent: usize, bracket: char, text: &mut String) {
    text.push('\n');
    text.push_str(&" ".repeat(indent));
    text.push(bracket);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_break_down_to_the_depth_and_no_further() {
        let value = json!({"a": [{"b": 1, "c": [1, 2]}, {}], "d": "x\"y"});
        assert_eq!(lines(&value, 2), "{\n \"a\": [\n  {\"b\":1,\"c\":[1,2]},\n  {}\n ],\n \"d\": \"x\\\"y\"\n}\n");
        assert_eq!(serde_json::from_str::<Value>(&lines(&value, 5)).unwrap(), value);
    }
}
