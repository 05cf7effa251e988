//! Strict decoding (`fieldValidation=Strict`): reports unknown fields and duplicate fields.
//!
//! Without it the server drops unknown fields, takes the last of duplicate fields, and warns in a header that this
//! server does not send.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::schema::{Struct, Type};

/// The error of strict decoding, which lists every unknown and duplicate field; `None` if there is none.
pub(super) fn decoding_error(
    body: &[u8],
    value: &Value,
    of: Option<&'static Struct>,
    kept: Option<&Value>,
) -> Option<String> {
    let mut found = twice(body);
    match (of, kept) {
        (Some(of), _) => unknown(value, of, &mut found),
        (None, Some(kept)) => lost(value, kept, "", &mut found),
        (None, None) => {}
    }
    (!found.is_empty()).then(|| format!("strict decoding error: {}", found.join(", ")))
}

/// The fields of an object that its type does not have.
pub(super) fn unknown(value: &Value, of: &'static Struct, found: &mut Vec<String>) {
    let Value::Object(fields) = value else { return };
    for (name, value) in fields.iter().filter(|(name, _)| !["apiVersion", "kind"].contains(&name.as_str())) {
        match of.field(name) {
            Some(field) => within(value, field.of, name, found),
            None => found.push(format!("unknown field {name:?}")),
        }
    }
}

fn within(value: &Value, of: Type, path: &str, found: &mut Vec<String>) {
    match (of, value) {
        (Type::Struct(of), Value::Object(fields)) => {
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                match of.field(name) {
                    Some(field) => within(value, field.of, &path, found),
                    None => found.push(format!("unknown field {path:?}")),
                }
            }
        }
        (Type::List(of), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                within(item, *of, &format!("{path}[{index}]"), found);
            }
        }
        (Type::Map(of), Value::Object(fields)) => {
            fields.iter().for_each(|(name, value)| within(value, *of, &format!("{path}.{name}"), found));
        }
        _ => {}
    }
}

/// The fields of a custom object that its schema does not keep.
fn lost(value: &Value, kept: &Value, path: &str, found: &mut Vec<String>) {
    match (value, kept) {
        (Value::Object(fields), Value::Object(known)) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match known.get(name) {
                    Some(kept) => lost(value, kept, &path, found),
                    None if value.is_null() => {}
                    None => found.push(format!("unknown field {path:?}")),
                }
            }
        }
        (Value::Array(items), Value::Array(known)) => {
            for (index, (item, kept)) in items.iter().zip(known).enumerate() {
                lost(item, kept, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}

/// Duplicate fields in the body.
fn twice(body: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(body);
    // What is no JSON was refused before.
    let _ = Fields { path: String::new(), found: &mut found }.deserialize(&mut reader);
    found
}

struct Fields<'f> {
    path: String,
    found: &'f mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen: Vec<String> = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let path = if self.path.is_empty() { name.clone() } else { format!("{}.{name}", self.path) };
            if seen.contains(&name) {
                self.found.push(format!("duplicate field {path:?}"));
            }
            seen.push(name);
            map.next_value_seed(Fields { path, found: self.found })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        while items.next_element_seed(Fields { path: format!("{}[{index}]", self.path), found: self.found })?.is_some()
        {
            index += 1;
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::twice;

    #[test]
    fn a_field_that_stands_twice_is_named_with_its_path() {
        let body = br#"{"a": {"b": 1, "b": 2}, "c": [{"d": null, "d": 1.5}], "a": true}"#;
        let found = ["duplicate field \"a.b\"", "duplicate field \"c[0].d\"", "duplicate field \"a\""];
        assert_eq!(twice(body), found);
    }
}
