//! The scenario file's JSON schema, for editors: completion, descriptions, and red lines while typing.
//!
//! It is generated from the types and their doc comments, so no field is missing. It describes each field; rules over
//! several fields are checked only when the file is read. Below are the text formats that Rust's types do not show.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::Scenario;

/// The schema of a scenario file: JSON schema, draft 2020-12.
pub fn scenario_schema() -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Scenario>();
    schema.insert("title".to_owned(), "SimKube scenario".into());
    schema.to_value()
}

/// A quantity such as `500m`, or a number.
pub(crate) fn amount(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["string", "number"],
        "pattern": r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?$",
    })
}

/// Quantities by resource.
pub(crate) fn amounts(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": amount(generator) })
}

/// A duration such as `1h30m`.
pub(crate) fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["string", "integer"],
        "pattern": r"^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d))+)$",
        "maximum": 0,
        "minimum": 0,
    })
}

/// A moment in the grammar of all flags.
pub(crate) fn moment(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": r"^(now|[+-]([0-9.]+[a-zµμ]+)+|[+-]0|[+-]?[0-9]{4,6}-[0-9]{2}-[0-9]{2}.*)$",
    })
}

/// The name of a group, a variant or a scenario.
pub(crate) fn name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$" })
}

/// `true`, or `"true"` as flags are pasted.
pub(crate) fn flag_switch(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": [true, false, "true", "false"] })
}

/// `10`, or `"10"` as flags are pasted.
pub(crate) fn flag_number(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["number", "string"], "minimum": 0, "pattern": r"^[0-9]+(\.[0-9]*)?$" })
}

/// `-10`, or `"-10"` as flags are pasted.
pub(crate) fn flag_integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["integer", "string"], "pattern": "^-?[0-9]+$" })
}

/// `0:320000`.
pub(crate) fn flag_range(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[0-9]+:[0-9]+$" })
}

/// Names with commas.
pub(crate) fn flag_text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string" })
}

/// Expanders with commas.
pub(crate) fn flag_expanders(_: &mut SchemaGenerator) -> Schema {
    let one = "(random|least-waste|most-pods|least-nodes|priority)";
    json_schema!({ "type": "string", "pattern": format!("^{one}(, *{one})*$") })
}

/// The short form of something, or its long one.
pub(crate) fn either(short: &Schema, long: &Schema) -> Schema {
    json_schema!({ "anyOf": [short, long] })
}
