//! Validates a custom resource against its schema, with the messages of `kube-openapi/pkg/validation` (1.36).
//!
//! A real API server reports the errors of an object's properties in random order; this code reports them in schema
//! order.

use std::collections::BTreeMap;

use regex_lite::Regex;
use serde_json::{Value, json};

use super::{MAX_DEPTH, formats};
use crate::error::Invalid;

type Errors = Vec<Invalid>;
type Patterns = BTreeMap<String, Option<Regex>>;

/// All that is wrong.
pub(super) fn check(object: &Value, schema: &Value, patterns: &Patterns) -> Errors {
    let mut checker = Checker { patterns, errors: Errors::new() };
    checker.value(object, schema, "", 0);
    let mut errors = checker.errors;
    unique_lists(object, schema, "", &mut errors, 0);
    errors
}

/// Compiles all patterns of a schema.
pub(super) fn collect_patterns(schema: &Value, patterns: &mut Patterns, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        patterns.entry(pattern.to_owned()).or_insert_with(|| Regex::new(pattern).ok());
    }
    match schema {
        Value::Object(fields) => fields.values().for_each(|inner| collect_patterns(inner, patterns, depth + 1)),
        Value::Array(items) => items.iter().for_each(|inner| collect_patterns(inner, patterns, depth + 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

struct Checker<'s> {
    patterns: &'s Patterns,
    errors: Errors,
}

impl Checker<'_> {
    fn value(&mut self, value: &Value, schema: &Value, path: &str, depth: usize) {
        if depth > MAX_DEPTH || !schema.is_object() {
            return;
        }
        self.type_of(value, schema, path);
        self.combinations(value, schema, path, depth);
        match value {
            Value::String(text) => self.text(text, schema, path),
            Value::Number(_) => self.number(value, schema, path),
            Value::Array(items) => self.list(items, schema, path, depth),
            Value::Object(fields) => self.fields(fields, schema, path, depth),
            Value::Null | Value::Bool(_) => {}
        }
        if let Some(words) = schema["enum"].as_array().filter(|words| !words.is_empty() && !words.contains(value)) {
            let word = |word: &Value| {
                word.as_str().map_or_else(|| format!("{:?}", word.to_string()), |text| format!("{text:?}"))
            };
            let words: Vec<String> = words.iter().map(word).collect();
            let why = format!("Unsupported value: {value}: supported values: {}", words.join(", "));
            self.errors.push(Invalid::new(named(path), why));
        }
    }

    fn type_of(&mut self, value: &Value, schema: &Value, path: &str) {
        if let Some(format) = format_of(schema) {
            let is_text =
                value.is_string() && !["integer", "number"].contains(&schema["type"].as_str().unwrap_or_default());
            if is_text || self.refuse_by_format(value, schema, format, path) {
                return;
            }
        }
        let wanted: Vec<&str> = match schema["type"].as_str() {
            _ if schema["x-kubernetes-int-or-string"] == true => vec!["integer", "string"],
            Some(wanted) => vec![wanted],
            None => return,
        };
        let found = type_name(value);
        let fits = wanted.contains(&found)
            || (found == "integer" && wanted.contains(&"number"))
            || (found == "number" && wanted.contains(&"integer") && value.as_f64().is_some_and(|n| n.fract() == 0.0))
            || (found == "null" && schema["nullable"] == true);
        if !fits {
            let why = format!("{} must be of type {}: {found:?}", in_body(path), wanted.join(","));
            self.errors.push(Invalid::of_type(named(path), format!("Invalid value: {found:?}: {why}")));
        }
    }

    /// A value with the wrong type and the wrong format gets the error of the format.
    fn refuse_by_format(&mut self, value: &Value, schema: &Value, format: &str, path: &str) -> bool {
        let (found, of_type) = (type_name(value), schema["type"].as_str().unwrap_or_default());
        let found_format = match value {
            Value::Number(number) if number.is_f64() || number.as_i64().is_none() => "float64",
            Value::Number(_) => "int64",
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => "",
        };
        let is_whole = found_format == "float64" && of_type == "integer" && value.as_f64().is_some_and(is_safe_integer);
        let fits = (found == of_type && !(found == "integer" && found_format == "float64"))
            || found_format == format
            || is_whole
            || (found == "integer" && of_type == "number")
            || (found == "null" && schema["nullable"] == true)
            || matches!(value, Value::String(_) | Value::Array(_));
        if !fits {
            let why = format!("{} must be of type {format}: {found_format:?}", in_body(path));
            self.errors.push(Invalid::of_type(named(path), format!("Invalid value: {found_format:?}: {why}")));
        }
        !fits
    }

    fn text(&mut self, text: &str, schema: &Value, path: &str) {
        if let Some(format) = format_of(schema).filter(|format| formats::is_valid(format, text) == Some(false)) {
            let why = format!("{} must be of type {format}: {text:?}", in_body(path));
            self.errors.push(Invalid::of_type(named(path), format!("Invalid value: {text:?}: {why}")));
        }
        let length = text.chars().count() as u64;
        if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
            self.errors.push(Invalid::new(named(path), format!("Too long: may not be more than {most} bytes")));
        }
        if let Some(least) = schema["minLength"].as_u64().filter(|least| length < *least) {
            let why = format!("{} should be at least {least} chars long", in_body(path));
            self.refuse(&json!(text), path, &why);
        }
        if let Some(pattern) = schema["pattern"].as_str() {
            let is_matched =
                self.patterns.get(pattern).and_then(Option::as_ref).is_none_or(|known| known.is_match(text));
            if !is_matched {
                self.refuse(&json!(text), path, &format!("{} should match '{pattern}'", in_body(path)));
            }
        }
    }

    fn number(&mut self, value: &Value, schema: &Value, path: &str) {
        let Some(number) = value.as_f64() else { return };
        let format = format_of(schema);
        let is_in_range = match (schema["type"].as_str(), format) {
            (Some("integer"), Some("int32")) => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
            (Some("integer"), _) => number.fract() == 0.0 && (value.as_i64().is_some() || number.abs() < MAX_INT64),
            (Some("number"), Some("float")) => number.abs() <= f64::from(f32::MAX),
            _ => true,
        };
        if !is_in_range {
            let of_type = schema["type"].as_str().unwrap_or_default();
            let format = format.map_or("(default format)".to_owned(), |format| format!("with format {format}"));
            let why = format!("Invalid value: \"\": Checked value must be of type {of_type} {format} in {path}");
            self.errors.push(Invalid::new("<nil>", why));
        }
        let bound = |name: &str| schema[name].as_f64().map(|bound| (bound, &schema[name]));
        if let Some((factor, shown)) = bound("multipleOf").filter(|(factor, _)| *factor > 0.0)
            && (number / factor).fract() != 0.0
        {
            self.refuse(value, path, &format!("{} should be a multiple of {shown}", in_body(path)));
        }
        if let Some((most, shown)) = bound("maximum") {
            let is_exclusive = schema["exclusiveMaximum"] == true;
            if number > most || (is_exclusive && number == most) {
                let less = if is_exclusive { "less than" } else { "less than or equal to" };
                self.refuse(value, path, &format!("{} should be {less} {shown}", in_body(path)));
            }
        }
        if let Some((least, shown)) = bound("minimum") {
            let is_exclusive = schema["exclusiveMinimum"] == true;
            if number < least || (is_exclusive && number == least) {
                let greater = if is_exclusive { "greater than" } else { "greater than or equal to" };
                self.refuse(value, path, &format!("{} should be {greater} {shown}", in_body(path)));
            }
        }
    }

    fn list(&mut self, items: &[Value], schema: &Value, path: &str, depth: usize) {
        for (index, item) in items.iter().enumerate() {
            self.value(item, &schema["items"], &format!("{path}[{index}]"), depth + 1);
        }
        let count = items.len() as u64;
        if let Some(least) = schema["minItems"].as_u64().filter(|least| count < *least) {
            let why = format!("{} should have at least {least} items", in_body(path));
            self.refuse(&json!(count), path, &why);
        }
        if let Some(most) = schema["maxItems"].as_u64().filter(|most| count > *most) {
            self.too_many(count, most, path);
        }
    }

    fn fields(&mut self, fields: &serde_json::Map<String, Value>, schema: &Value, path: &str, depth: usize) {
        let count = fields.len() as u64;
        if let Some(least) = schema["minProperties"].as_u64().filter(|least| count < *least) {
            let why = format!("{} should have at least {least} properties", in_body(path));
            return self.refuse(&json!(count), path, &why);
        }
        if let Some(most) = schema["maxProperties"].as_u64().filter(|most| count > *most) {
            return self.too_many(count, most, path);
        }
        let (properties, additional) = (&schema["properties"], &schema["additionalProperties"]);
        let inner = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        for (name, value) in fields.iter().filter(|(name, _)| properties.get(name).is_none()) {
            self.value(value, additional, &inner(name), depth + 1);
        }
        for (name, of) in properties.as_object().into_iter().flatten() {
            if let Some(value) = fields.get(name) {
                self.value(value, of, &inner(name), depth + 1);
            }
        }
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains_key(name) {
                self.errors.push(Invalid::new(inner(name), "Required value"));
            }
        }
    }

    /// `allOf`, `anyOf`, `oneOf` and `not`. Their errors name no field.
    fn combinations(&mut self, value: &Value, schema: &Value, path: &str, depth: usize) {
        let schemas = |name: &str| schema[name].as_array().map_or(&[][..], Vec::as_slice);
        let found = |of: &Value| {
            let mut inner = Checker { patterns: self.patterns, errors: Errors::new() };
            inner.value(value, of, path, depth + 1);
            inner.errors
        };
        let said = |what: &str| Invalid::new("<nil>", format!("Invalid value: \"\": {path:?} {what}"));
        let fails = |of: &[Errors]| !of.is_empty() && of.iter().all(|errors| !errors.is_empty());
        let mut wrong = Errors::new();
        let any: Vec<Errors> = schemas("anyOf").iter().map(&found).collect();
        if fails(&any) {
            wrong.push(said("must validate at least one schema (anyOf)"));
            wrong.extend(any.into_iter().next().unwrap_or_default());
        }
        let one: Vec<Errors> = schemas("oneOf").iter().map(&found).collect();
        match one.iter().filter(|errors| errors.is_empty()).count() {
            0 if !one.is_empty() => {
                wrong.push(said("must validate one and only one schema (oneOf). Found none valid"));
                wrong.extend(one.into_iter().next().unwrap_or_default());
            }
            0 | 1 => {}
            valid => {
                let what = format!("must validate one and only one schema (oneOf). Found {valid} valid alternatives");
                wrong.push(said(&what));
            }
        }
        let all: Vec<Errors> = schemas("allOf").iter().map(&found).collect();
        if all.iter().any(|errors| !errors.is_empty()) {
            let none = if fails(&all) { ". None validated" } else { "" };
            wrong.extend(all.concat());
            wrong.push(said(&format!("must validate all the schemas (allOf){none}")));
        }
        if schema.get("not").is_some_and(|not| not.is_object() && found(not).is_empty()) {
            wrong.push(said("must not validate the schema (not)"));
        }
        self.errors.extend(wrong);
    }

    fn refuse(&mut self, value: &Value, path: &str, why: &str) {
        self.errors.push(Invalid::new(named(path), format!("Invalid value: {value}: {why}")));
    }

    fn too_many(&mut self, count: u64, most: u64, path: &str) {
        let items = if most == 1 { "item" } else { "items" };
        self.errors.push(Invalid::new(named(path), format!("Too many: {count}: must have at most {most} {items}")));
    }
}

/// Sets hold each value once, and keyed lists each key (`x-kubernetes-list-type`).
fn unique_lists(value: &Value, schema: &Value, path: &str, errors: &mut Errors, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                let of = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                unique_lists(inner, of, &path, errors, depth + 1);
            }
        }
        Value::Array(items) => {
            let keys: Vec<Option<Value>> = items.iter().map(|item| key_of(item, schema)).collect();
            let mut seen: BTreeMap<String, usize> = BTreeMap::new();
            for (index, key) in keys.iter().enumerate().filter_map(|(index, key)| Some((index, key.as_ref()?))) {
                let times = seen.entry(key.to_string()).or_default();
                *times += 1;
                // What is there three times is named once.
                if *times == 2 {
                    errors.push(Invalid::new(format!("{path}[{index}]"), format!("Duplicate value: {key}")));
                }
            }
            for (index, item) in items.iter().enumerate() {
                unique_lists(item, &schema["items"], &format!("{path}[{index}]"), errors, depth + 1);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn key_of(item: &Value, schema: &Value) -> Option<Value> {
    match schema["x-kubernetes-list-type"].as_str()? {
        "set" => Some(item.clone()),
        "map" => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array()?;
            let pair = |key: &Value| Some((key.as_str()?.to_owned(), item.get(key.as_str()?)?.clone()));
            let mut pairs: Vec<(String, Value)> = keys.iter().filter_map(pair).collect();
            pairs.sort_by(|one, other| one.0.cmp(&other.0));
            Some(Value::Object(pairs.into_iter().collect()))
        }
        _ => None,
    }
}

/// From here on whole numbers have more than 63 bits.
const MAX_INT64: f64 = 9_223_372_036_854_775_808.0;

/// Is it a whole number that a float holds exactly (`IsFloat64AJSONInteger`)?
fn is_safe_integer(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_991.0
}

/// The format of a value, if the server checks it for the value's type.
fn format_of(schema: &Value) -> Option<&str> {
    let format = schema["format"].as_str().filter(|format| !format.is_empty())?;
    let is_known = match schema["type"].as_str() {
        None | Some("string") => KNOWN_FORMATS.contains(&format.replace('-', "").as_str()),
        Some("integer") => ["int32", "int64"].contains(&format),
        Some("number") => ["float", "double"].contains(&format),
        Some(_) => false,
    };
    is_known.then_some(format)
}

/// `supportedVersionedFormats` (apiextensions, 1.36), without dashes.
const KNOWN_FORMATS: [&str; 26] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

/// The name of a JSON type as schemas have it.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The whole object has no name.
fn named(path: &str) -> String {
    if path.is_empty() { "<nil>".to_owned() } else { path.to_owned() }
}

fn in_body(path: &str) -> String {
    format!("{path} in body")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(value: &Value, schema: &Value) -> Vec<String> {
        let mut patterns = Patterns::new();
        collect_patterns(schema, &mut patterns, 0);
        check(value, schema, &patterns).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_rule_has_the_servers_words() {
        for (schema, value, expected) in [
            (
                json!({"type": "integer"}),
                json!("x"),
                "s: Invalid value: \"string\": s in body must be of type integer: \"string\"",
            ),
            (
                json!({"type": "integer", "minimum": 1}),
                json!(0),
                "s: Invalid value: 0: s in body should be greater than or equal to 1",
            ),
            (
                json!({"maximum": 5, "exclusiveMaximum": true}),
                json!(5),
                "s: Invalid value: 5: s in body should be less than 5",
            ),
            (json!({"enum": ["a", "b"]}), json!("c"), "s: Unsupported value: \"c\": supported values: \"a\", \"b\""),
            (json!({"pattern": "^[a-z]+$"}), json!("A"), "s: Invalid value: \"A\": s in body should match '^[a-z]+$'"),
            (json!({"maxLength": 1}), json!("ab"), "s: Too long: may not be more than 1 bytes"),
            (json!({"maxItems": 1}), json!([1, 2]), "s: Too many: 2: must have at most 1 item"),
            (json!({"required": ["a"]}), json!({}), "s.a: Required value"),
            (json!({"x-kubernetes-list-type": "set"}), json!([1, 1]), "s[1]: Duplicate value: 1"),
            (
                json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]}),
                json!([{"n": 1}, {"n": 1, "m": 2}]),
                "s[1]: Duplicate value: {\"n\":1}",
            ),
            (
                json!({"x-kubernetes-int-or-string": true}),
                json!(true),
                "s: Invalid value: \"boolean\": s in body must be of type integer,string: \"boolean\"",
            ),
        ] {
            let schema = json!({"properties": {"s": schema}});
            assert_eq!(wrong(&json!({"s": value}), &schema), [expected]);
        }
    }

    #[test]
    fn schemas_within_a_schema_are_asked_and_named_by_no_field() {
        let either = json!({"properties": {"s": {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}}});
        let none = wrong(&json!({"s": {}}), &either);
        let said = "<nil>: Invalid value: \"\": \"s\" must validate one and only one schema (oneOf). Found none valid";
        assert_eq!(none, [said, "s.a: Required value"]);
        let both = wrong(&json!({"s": {"a": 1, "b": 1}}), &either);
        assert!(both[0].ends_with("(oneOf). Found 2 valid alternatives"), "{both:?}");
        assert!(wrong(&json!({"s": {"b": 1}}), &either).is_empty());
        for (of, said) in [
            (json!({"anyOf": [{"type": "string"}]}), "at least one schema (anyOf)"),
            (json!({"allOf": [{"type": "string"}, {}]}), "all the schemas (allOf)"),
            (json!({"not": {"type": "integer"}}), "must not validate the schema (not)"),
        ] {
            let found = wrong(&json!({"s": 1}), &json!({"properties": {"s": of}}));
            assert!(found.iter().any(|one| one.ends_with(said)), "{found:?}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_read_refuses_nothing() {
        let schema = json!({"properties": {"s": {"pattern": "(?<=x)y"}}});
        assert!(wrong(&json!({"s": "anything"}), &schema).is_empty());
    }
}
