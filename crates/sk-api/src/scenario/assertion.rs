//! Assertions: CEL expressions that must hold after a run. Here they are text; sk-report evaluates them.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sk_core::SmolStr;

use super::error::shown;
use super::schema::either;
use super::suggest::did_you_mean;
use super::text_or::TextOr;

/// An assertion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "TextOr<Written>", into = "TextOr<Written>")]
pub struct Assertion {
    /// Its name in results. Default: the expression itself.
    pub name: Option<String>,
    /// A CEL expression over the run's figures.
    pub that: String,
    /// The runs in which it must hold. Default: every run.
    pub holds: Holds,
}

/// The runs in which an assertion must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Holds {
    /// `every`: in every run.
    #[default]
    Every,
    /// `any`: in at least one repetition.
    Any,
    /// `mean`: for the mean of all repetitions.
    Mean,
    /// `[as-is]`: in every run of these variants.
    Variants(Vec<SmolStr>),
}

impl Holds {
    fn is_default(&self) -> bool {
        *self == Self::Every
    }
}

// The long form of an `Assertion`. The doc comments here are the schema's descriptions.
/// An assertion.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an assertion: a CEL expression, or {name: …, that: …, for: …}")]
#[schemars(rename = "Assertion")]
struct Written {
    /// Its name in results. Default: the expression itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// A CEL expression over the run's figures.
    that: String,
    /// In which runs it must hold: `every`, `any` or the `mean` of all repetitions, or a list of variants. Default:
    /// `every`.
    #[schemars(schema_with = "holds_schema")]
    #[serde(rename = "for", default, skip_serializing_if = "Holds::is_default")]
    holds: Holds,
}

impl From<TextOr<Written>> for Assertion {
    fn from(written: TextOr<Written>) -> Self {
        match written {
            TextOr::Text(that) => Self { name: None, that, holds: Holds::Every },
            TextOr::Long(Written { name, that, holds }) => Self { name, that, holds },
        }
    }
}

impl From<Assertion> for TextOr<Written> {
    fn from(assertion: Assertion) -> Self {
        match assertion {
            Assertion { name: None, that, holds: Holds::Every } => Self::Text(that),
            Assertion { name, that, holds } => Self::Long(Written { name, that, holds }),
        }
    }
}

impl Serialize for Holds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Every => serializer.serialize_str("every"),
            Self::Any => serializer.serialize_str("any"),
            Self::Mean => serializer.serialize_str("mean"),
            Self::Variants(variants) => variants.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Holds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HoldsVisitor)
    }
}

struct HoldsVisitor;

impl<'de> Visitor<'de> for HoldsVisitor {
    type Value = Holds;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`every`, `any`, `mean` or a list of variants like [as-is]")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Holds, E> {
        match text {
            "every" => Ok(Holds::Every),
            "any" => Ok(Holds::Any),
            "mean" => Ok(Holds::Mean),
            _ => Err(E::custom(format_args!(
                "`{}` is neither `every`, `any`, `mean` nor a list of variants like [as-is]{}",
                shown(text),
                did_you_mean(text, ["every", "any", "mean"])
            ))),
        }
    }

    /// `for:` without a value.
    fn visit_unit<E>(self) -> Result<Holds, E> {
        Ok(Holds::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Holds, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Holds::Variants)
    }
}

pub(crate) fn schema(generator: &mut SchemaGenerator) -> Schema {
    let assertion = either(&json_schema!({ "type": ["string", "boolean"] }), &generator.subschema_for::<Written>());
    json_schema!({ "type": "array", "items": assertion })
}

fn holds_schema(_: &mut SchemaGenerator) -> Schema {
    let variants = json_schema!({ "type": "array", "items": { "type": "string" } });
    either(&json_schema!({ "enum": ["every", "any", "mean"] }), &variants)
}
