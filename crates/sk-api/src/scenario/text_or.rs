//! A short form and a long one: `ready: 60s` or `ready: {p50: 55s, p99: 140s}`.
//!
//! serde's untagged enums lose the position and the reason of an error; this does not.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Text, or a mapping that is a `T`.
pub(crate) enum TextOr<T> {
    /// Any scalar, by its text.
    Text(String),
    /// The long form.
    Long(T),
}

impl<T: Serialize> Serialize for TextOr<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(serializer),
            Self::Long(long) => long.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrVisitor(PhantomData))
    }
}

struct TextOrVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for TextOrVisitor<T> {
    type Value = TextOr<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a mapping")
    }

    fn visit_str<E>(self, text: &str) -> Result<TextOr<T>, E> {
        Ok(TextOr::Text(text.to_owned()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<TextOr<T>, E> {
        Ok(TextOr::Text(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<TextOr<T>, E> {
        Ok(TextOr::Text(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<TextOr<T>, E> {
        Ok(TextOr::Text(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<TextOr<T>, E> {
        Ok(TextOr::Text(value.to_string()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TextOr<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(TextOr::Long)
    }
}
