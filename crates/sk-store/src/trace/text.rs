//! The JSON spelling of times, hashes and maps: readable for people and `jq`, and lossless.

/// A time as RFC 3339 text, or as microseconds where the calendar ends. Both are read.
pub(crate) mod time {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
    use sk_core::SimTime;

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Spelling {
        Micros(i64),
        Text(String),
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
    pub(crate) fn serialize<S: Serializer>(time: &SimTime, serializer: S) -> Result<S::Ok, S::Error> {
        let text = time.to_string();
        match SimTime::parse_rfc3339(&text) {
            Ok(back) if back == *time => serializer.serialize_str(&text),
            _ => time.as_micros().serialize(serializer),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SimTime, D::Error> {
        match Spelling::deserialize(deserializer)? {
            Spelling::Micros(micros) => Ok(SimTime::from_micros(micros)),
            Spelling::Text(text) => SimTime::parse_rfc3339(&text).map_err(|_| {
                let shown: String = text.chars().take(60).collect();
                de::Error::custom(format!("`{shown}` is not a time: write it like 2026-01-05T09:00:00Z"))
            }),
        }
    }
}

/// A time that may be absent, spelt as [`time`] does.
pub(crate) mod maybe_time {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use sk_core::SimTime;

    #[derive(Serialize, Deserialize)]
    struct Spelt(#[serde(with = "super::time")] SimTime);

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(crate) fn serialize<S: Serializer>(time: &Option<SimTime>, serializer: S) -> Result<S::Ok, S::Error> {
        time.map(Spelt).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SimTime>, D::Error> {
        Ok(Option::<Spelt>::deserialize(deserializer)?.map(|spelt| spelt.0))
    }
}

/// A 64-bit hash as text, because most JSON programs keep only 53 bits of a number.
pub(crate) mod maybe_hash {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
    use sk_core::StableHash;

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(crate) fn serialize<S: Serializer>(hash: &Option<StableHash>, serializer: S) -> Result<S::Ok, S::Error> {
        hash.map(|hash| hash.to_string()).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<StableHash>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map(StableHash::new).map_err(de::Error::custom)).transpose()
    }
}

/// Names with their hashes as a JSON map, in the order they have.
pub(crate) mod hashes {
    use std::fmt;

    use serde::de::{Deserializer, MapAccess, Visitor};
    use serde::ser::{SerializeMap, Serializer};
    use serde::{Deserialize, Serialize};
    use sk_core::StableHash;

    #[derive(Serialize, Deserialize)]
    struct Spelt(#[serde(with = "super::maybe_hash")] Option<StableHash>);

    type Pairs = Vec<(String, Option<StableHash>)>;

    pub(crate) fn serialize<S: Serializer>(pairs: &Pairs, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(pairs.len()))?;
        for (name, hash) in pairs {
            map.serialize_entry(name, &Spelt(*hash))?;
        }
        map.end()
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Pairs, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map from name to hash")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some((name, Spelt(hash))) = map.next_entry()? {
                    pairs.push((name, hash));
                }
                Ok(pairs)
            }
        }
        deserializer.deserialize_map(Collect)
    }
}
