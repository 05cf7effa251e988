//! Decodes JSON as Go decodes it into a struct, and encodes it as Go encodes the struct.
//!
//! Decoding drops unknown fields, as a server without strict validation does; it treats `null` as absent, writes
//! quantities in canonical form, and keeps or drops empty fields as `omitempty` says. A value of the wrong type is
//! refused with Go's message.

use serde_json::{Map, Value};
use sk_core::{Gvk, SimTime, quantity};

use super::{Field, Struct, Type, Written};
use crate::base64;

/// How deep values may be nested: the decoder of a server stops at 10,000; ours stays far from the end of a stack.
const MAX_DEPTH: usize = 128;

/// Reads an object of a kind: the sentence of a server about what does not fit, without its beginning.
pub(crate) fn decode(gvk: &Gvk, of: &'static Struct, value: Value) -> Result<Value, String> {
    let Value::Object(fields) = value else {
        return Err(unfit(&value, "Go value", &format!("{}.{}", gvk.version, of.name)));
    };
    read_object(gvk, of, fields, false)
}

/// Writes an object of a kind as it comes out of a server's store, which does not tell an empty list from none.
pub(crate) fn written(gvk: &Gvk, of: &'static Struct, value: Value) -> Result<Value, String> {
    match value {
        Value::Object(fields) => read_object(gvk, of, fields, true),
        other => decode(gvk, of, other),
    }
}

fn read_object(
    gvk: &Gvk,
    of: &'static Struct,
    mut fields: Map<String, Value>,
    is_stored: bool,
) -> Result<Value, String> {
    let (api_version, kind) = (fields.remove("apiVersion"), fields.remove("kind"));
    let mut reader = Reader { version: gvk.version.as_str(), path: Vec::new(), is_stored };
    let mut decoded = reader.structure(of, fields)?;
    for (name, value) in [("apiVersion", api_version), ("kind", kind)] {
        if let Some(value) = value {
            decoded.insert(name.to_owned(), value);
        }
    }
    Ok(Value::Object(decoded))
}

/// Reads a part of an object: a spec, a template.
pub(crate) fn decode_part(of: &'static Struct, value: Value, at: &'static str) -> Result<Value, String> {
    let path = if at.is_empty() { Vec::new() } else { vec![at] };
    let mut reader = Reader { version: "v1", path, is_stored: false };
    reader.value(Type::Struct(of), value, of.name)
}

/// The same values in the order in which the type declares its fields; what it does not have is left out.
pub(crate) fn in_order(of: &'static Struct, value: &Value) -> Value {
    let Value::Object(fields) = value else { return value.clone() };
    let mut ordered = Map::new();
    for name in ["kind", "apiVersion"] {
        ordered.extend(fields.get_key_value(name).map(|(name, value)| (name.clone(), value.clone())));
    }
    ordered.extend(ordered_fields(of, fields));
    Value::Object(ordered)
}

fn ordered_fields(of: &'static Struct, fields: &Map<String, Value>) -> Map<String, Value> {
    let known = of.fields.iter().filter_map(|field| Some((field, fields.get(field.name)?)));
    known.map(|(field, value)| (field.name.to_owned(), ordered_value(field.of, value))).collect()
}

fn ordered_value(of: Type, value: &Value) -> Value {
    match (of, value) {
        (Type::Struct(of), Value::Object(fields)) => Value::Object(ordered_fields(of, fields)),
        (Type::List(of), Value::Array(items)) => items.iter().map(|item| ordered_value(*of, item)).collect(),
        (Type::Map(of), Value::Object(fields)) => {
            let mut fields: Vec<_> =
                fields.iter().map(|(name, value)| (name.clone(), ordered_value(*of, value))).collect();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(fields.into_iter().collect())
        }
        (_, value) => value.clone(),
    }
}

struct Reader<'a> {
    version: &'a str,
    /// The names of the fields down to here.
    path: Vec<&'static str>,
    /// Does it come out of a store?
    is_stored: bool,
}

impl Reader<'_> {
    fn structure(&mut self, of: &'static Struct, mut fields: Map<String, Value>) -> Result<Map<String, Value>, String> {
        if self.path.len() > MAX_DEPTH {
            return Err("json: exceeded max depth".to_owned());
        }
        let mut written = Map::new();
        for field in of.fields {
            let value = fields.remove(field.name).filter(|value| !value.is_null());
            self.path.push(field.name);
            if let Some(value) = self.field(of, field, value)? {
                written.insert(field.name.to_owned(), value);
            }
            self.path.pop();
        }
        Ok(written)
    }

    /// What is written of a field, if it is.
    fn field(&mut self, of: &'static Struct, field: &Field, value: Option<Value>) -> Result<Option<Value>, String> {
        let Some(value) = value else {
            return match field.written {
                Written::Omitted | Written::Pointer => Ok(None),
                Written::Nullable => Ok(Some(Value::Null)),
                Written::Always => self.zero(field.of, of.name).map(Some),
            };
        };
        let value = self.value(field.of, value, of.name)?;
        if self.is_stored && field.written == Written::Always && matches!(field.of, Type::List(_)) && is_empty(&value) {
            return Ok(Some(Value::Null));
        }
        let is_left_out = field.written == Written::Omitted && is_empty(&value);
        Ok((!is_left_out).then_some(value))
    }

    fn zero(&mut self, of: Type, within: &str) -> Result<Value, String> {
        Ok(match of {
            Type::Bool => Value::Bool(false),
            Type::Int32 | Type::Int64 | Type::IntOrString => Value::from(0),
            Type::String => Value::from(""),
            Type::Quantity => Value::from("0"),
            Type::Struct(_) => self.value(of, Value::Object(Map::new()), within)?,
            Type::Bytes | Type::Time | Type::Any | Type::List(_) | Type::Map(_) => Value::Null,
        })
    }

    fn value(&mut self, of: Type, value: Value, within: &str) -> Result<Value, String> {
        match (of, value) {
            (Type::Any, value) => Ok(value),
            (_, Value::Null) => self.zero(of, within),
            (Type::Bool, value @ Value::Bool(_)) => Ok(value),
            (Type::String | Type::IntOrString, value @ Value::String(_)) => Ok(value),
            (Type::Bytes, Value::String(text)) => match base64::decode(&text) {
                Ok(_) => Ok(Value::String(text)),
                Err(at) => Err(format!("illegal base64 data at input byte {at}")),
            },
            (Type::Int32 | Type::IntOrString, Value::Number(number))
                if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) =>
            {
                Ok(Value::Number(number))
            }
            (Type::Int64, Value::Number(number)) if number.as_i64().is_some() => Ok(Value::Number(number)),
            (Type::Quantity, value) => quantity_of(&value),
            (Type::Time, Value::String(text)) => time_of(&text),
            (Type::Struct(of), Value::Object(fields)) => self.structure(of, fields).map(Value::Object),
            (Type::List(of), Value::Array(items)) => {
                items.into_iter().map(|item| self.value(*of, item, within)).collect::<Result<_, _>>().map(Value::Array)
            }
            (Type::Map(of), Value::Object(fields)) => {
                let read = |(name, value): (String, Value)| self.value(*of, value, within).map(|value| (name, value));
                fields.into_iter().map(read).collect::<Result<_, _>>().map(Value::Object)
            }
            (of, value) => {
                let place = format!("Go struct field {within}.{}", self.path.join("."));
                Err(unfit(&value, &place, &self.go_name(of)))
            }
        }
    }

    /// The type as Go prints it.
    fn go_name(&self, of: Type) -> String {
        match of {
            Type::Bool => "bool".to_owned(),
            Type::Int32 => "int32".to_owned(),
            Type::Int64 => "int64".to_owned(),
            Type::String | Type::Time => "string".to_owned(),
            Type::Bytes => "[]uint8".to_owned(),
            Type::Quantity => "resource.Quantity".to_owned(),
            Type::IntOrString => "intstr.IntOrString".to_owned(),
            Type::Any => "interface {}".to_owned(),
            Type::Struct(of) => format!("{}.{}", if of.is_meta() { "v1" } else { self.version }, of.name),
            Type::List(of) => format!("[]{}", self.go_name(*of)),
            Type::Map(of) => format!("map[string]{}", self.go_name(*of)),
        }
    }
}

impl Struct {
    fn is_meta(&self) -> bool {
        ["ObjectMeta", "LabelSelector", "LabelSelectorRequirement", "OwnerReference"].contains(&self.name)
    }
}

fn unfit(value: &Value, place: &str, name: &str) -> String {
    let what = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if name.starts_with("int") => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    };
    format!("json: cannot unmarshal {what} into {place} of type {name}")
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Quantities are read from texts and from plain numbers, and finer than a milli is rounded up.
fn quantity_of(value: &Value) -> Result<Value, String> {
    const REFUSED: &str = "quantities must match the regular expression \
                           '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return Err(REFUSED.to_owned()),
    };
    let answered = quantity::as_answered(&text).map_err(|_| REFUSED.to_owned())?;
    Ok(Value::from(answered.as_ref()))
}

/// Times come back as whole seconds.
fn time_of(text: &str) -> Result<Value, String> {
    let refused = || {
        let shown: String = text.chars().take(80).collect();
        format!("parsing time {shown:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {shown:?} as \"2006\"")
    };
    let time = SimTime::parse_rfc3339(text).map_err(|_| refused())?;
    Ok(Value::from(time.to_rfc3339_secs()))
}
