//! Removes from a response what differs from server to server: uids, versions, times, addresses, generated names.

use serde_json::Value;

/// Fields that go.
const GONE: [&str; 2] = ["resourceVersion", "selfLink"];
/// Goes, unless it is what is compared.
const MANAGERS: &str = "managedFields";
/// Fields whose value is another each time: an address, a port, a token.
const MADE_UP: [&str; 4] = ["clusterIP", "nodePort", "healthCheckNodePort", "continue"];

/// The answer without them, with or without managed fields. Those come in an order that does not depend on the second
/// in which they were written.
pub fn scrub(mut answer: Value, with_managers: bool) -> Value {
    clean(&mut answer, with_managers);
    answer
}

fn clean(value: &mut Value, with_managers: bool) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !GONE.contains(&name.as_str()) && (with_managers || name != MANAGERS));
            if let Some(Value::Array(entries)) = fields.get_mut(MANAGERS) {
                let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
                entries.sort_by_key(|entry| ["operation", "manager", "subresource"].map(|name| text(entry, name)));
            }
            // Conflicts with several managers come in any order.
            if let Some(Value::Array(causes)) = fields.get_mut("causes")
                && causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict")
            {
                causes.sort_by_key(|cause| cause["message"].as_str().unwrap_or_default().to_owned());
            }
            let prefix = fields.get("generateName").and_then(Value::as_str).map(str::to_owned);
            if let (Some(prefix), Some(name)) = (prefix, fields.get_mut("name")) {
                *name = format!("{prefix}<made up>").into();
            }
            for (name, field) in fields.iter_mut() {
                let is_given = *field == "None" || *field == "";
                let is_plain = !field.is_array() && !field.is_object();
                let is_made_up = MADE_UP.contains(&name.as_str()) && !is_given && is_plain;
                let is_address = name == "clusterIPs" && *field != serde_json::json!(["None"]);
                if is_made_up || is_address {
                    *field = "<made up>".into();
                } else {
                    clean(field, with_managers);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| clean(item, with_managers)),
        Value::String(text) => clean_text(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn clean_text(text: &mut String) {
    if text.parse::<jiff::Timestamp>().is_ok() {
        *text = "<time>".to_owned();
        return;
    }
    while let Some(at) = find_time(text) {
        text.replace_range(at..at + TIME_LEN, "<time>");
    }
    while let Some(at) = find_uid(text) {
        text.replace_range(at..at + UID_LEN, "<uid>");
    }
    for before in [
        "ResourceVersion in the precondition (",
        "ResourceVersion in record (",
        "too old resource version: ",
        "Too large resource version: 999999999, current: ",
        "resourceVersion\\\":\\\"",
    ] {
        if let Some((head, rest)) = text.clone().split_once(before) {
            let tail = rest.trim_start_matches("<version>").trim_start_matches(|digit: char| digit.is_ascii_digit());
            *text = format!("{head}{before}<version>{tail}");
        }
    }
}

/// `2026-01-05T09:00:00Z`
const TIME_LEN: usize = 20;

/// Where a time stands in a sentence: some quote a whole object.
fn find_time(text: &str) -> Option<usize> {
    let is_time = |part: &[u8]| std::str::from_utf8(part).is_ok_and(|part| part.parse::<jiff::Timestamp>().is_ok());
    let begins = |part: &[u8]| part[4] == b'-' && part[10] == b'T' && part[TIME_LEN - 1] == b'Z';
    text.as_bytes().windows(TIME_LEN).position(|part| begins(part) && is_time(part))
}

const UID_LEN: usize = 36;

fn find_uid(text: &str) -> Option<usize> {
    let is_uid = |part: &[u8]| {
        part.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase(),
        })
    };
    text.as_bytes().windows(UID_LEN).position(is_uid)
}
