//! The JSON schema agrees with the reader: what the one takes the other takes, and editors can explain every field.

use std::path::Path;

use regex_lite::Regex;
use serde_json::{Map, Value};
use sk_api::Scenario;
use sk_api::scenario::scenario_schema;

use crate::cases::{EVERYTHING, refused};

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Judges by the keywords that our schema uses, and panics at any other, so that none can be forgotten here. Where an
/// instance is wrong it says so; `None` is good.
pub(crate) struct Validator {
    root: Value,
}

impl Validator {
    pub(crate) fn new() -> Self {
        Self { root: scenario_schema() }
    }

    pub(crate) fn judge(&self, text: &str) -> Option<String> {
        match serde_saphyr::from_str(text) {
            Ok(instance) => self.fault(&self.root, &instance, "").map(|fault| fault.trim_start().to_owned()),
            Err(error) => Some(error.to_string()),
        }
    }

    fn fault(&self, schema: &Value, instance: &Value, at: &str) -> Option<String> {
        let Some(keywords) = schema.as_object() else {
            return (schema == &Value::Bool(false)).then(|| format!("{at} may not be"));
        };
        keywords.iter().find_map(|(keyword, rule)| self.fault_by(keyword, rule, keywords, instance, at))
    }

    fn fault_by(
        &self,
        keyword: &str,
        rule: &Value,
        all: &Map<String, Value>,
        instance: &Value,
        at: &str,
    ) -> Option<String> {
        let unless = |good: bool| (!good).then(|| format!("{at} breaks {keyword} {rule}"));
        let number = |value: &Value| value.as_f64().unwrap_or_default();
        match keyword {
            "$schema" | "$defs" | "title" | "description" | "default" | "format" | "examples" => None,
            "type" => unless(types(rule).any(|name| is_a(instance, name))),
            "enum" => unless(rule.as_array().is_some_and(|values| values.contains(instance))),
            "const" => unless(rule == instance),
            "pattern" => unless(instance.as_str().is_none_or(|text| matches(rule, text))),
            "minimum" => unless(!instance.is_number() || number(instance) >= number(rule)),
            "maximum" => unless(!instance.is_number() || number(instance) <= number(rule)),
            "required" => {
                let has = |name: &Value| {
                    instance.as_object().is_none_or(|map| map.contains_key(name.as_str().unwrap_or_default()))
                };
                unless(list(rule).iter().all(has))
            }
            "items" => instance
                .as_array()?
                .iter()
                .enumerate()
                .find_map(|(n, item)| self.fault(rule, item, &format!("{at}[{n}]"))),
            "properties" => {
                let own = instance.as_object()?.iter();
                own.filter_map(|(key, value)| Some((key, value, rule.get(key)?)))
                    .find_map(|(key, value, schema)| self.fault(schema, value, &format!("{at} {key}")))
            }
            "additionalProperties" => {
                let known = all.get("properties").and_then(Value::as_object);
                let mut others =
                    instance.as_object()?.iter().filter(|(key, _)| known.is_none_or(|known| !known.contains_key(*key)));
                others.find_map(|(key, value)| self.fault(rule, value, &format!("{at} {key}")))
            }
            "anyOf" | "oneOf" => {
                let choices = list(rule).iter();
                unless(choices.filter(|schema| self.fault(schema, instance, at).is_none()).count() >= 1)
            }
            "$ref" => {
                let pointer = rule.as_str().unwrap_or_default().trim_start_matches('#');
                self.fault(self.root.pointer(pointer).expect("what is referred to is there"), instance, at)
            }
            other => panic!("the schema uses `{other}`, which this test does not know"),
        }
    }
}

fn list(rule: &Value) -> &[Value] {
    rule.as_array().expect("this keyword has a list")
}

fn matches(pattern: &Value, text: &str) -> bool {
    Regex::new(pattern.as_str().unwrap_or_default()).expect("the pattern is a regular expression").is_match(text)
}

fn types(rule: &Value) -> impl Iterator<Item = &str> {
    rule.as_array().map_or(std::slice::from_ref(rule), Vec::as_slice).iter().filter_map(Value::as_str)
}

fn is_a(instance: &Value, name: &str) -> bool {
    match name {
        "null" => instance.is_null(),
        "boolean" => instance.is_boolean(),
        "string" => instance.is_string(),
        "number" => instance.is_number(),
        "integer" => instance.is_i64() || instance.is_u64(),
        "array" => instance.is_array(),
        "object" => instance.is_object(),
        other => panic!("`{other}` is no type of JSON schema"),
    }
}

#[test]
fn what_the_reader_takes_the_schema_takes() {
    let validator = Validator::new();
    assert_eq!(validator.judge(EVERYTHING), None);
    assert_eq!(validator.judge(&Scenario::parse("x", EVERYTHING).unwrap().to_yaml()), None);
    let mut examples = 0;
    for entry in std::fs::read_dir(repository().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let scenario = Scenario::parse(&path.display().to_string(), &text).unwrap();
            for text in [text, scenario.to_yaml()] {
                assert_eq!(validator.judge(&text), None, "{}", path.display());
            }
            examples += 1;
        }
    }
    assert!(examples > 0, "no examples were found");
}

#[test]
fn a_field_that_cannot_be_read_is_refused_by_the_schema_too() {
    let validator = Validator::new();
    for case in refused() {
        let about_one_field = ["fields that there are not", "values of another kind"].contains(&case.section.as_str());
        if about_one_field {
            assert!(validator.judge(&case.text).is_some(), "{}", case.text);
        }
    }
}

#[test]
fn every_field_is_described() {
    fn check(schema: &Value, at: &str) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let description = field["description"].as_str().unwrap_or_default();
            assert!(description.ends_with('.'), "{at}.{name}: {description}");
            assert!(!description.contains("[`"), "{at}.{name} speaks of Rust: {description}");
        }
    }
    let schema = scenario_schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    check(&schema, "");
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        check(definition, name);
        assert!(!definition["description"].as_str().unwrap_or_default().contains("[`"), "{name} speaks of Rust");
    }
}
