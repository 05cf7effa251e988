//! Parses times and durations in files that people write: `5m`, `2026-01-05T00:00:00Z`.

/// A span, as `5m` or `1h30m`.
pub(crate) mod span {
    use serde::{Deserialize, Deserializer, Serializer, de};
    use sk_core::SimDuration;

    pub(crate) fn serialize<S: Serializer>(span: &SimDuration, serializer: S) -> Result<S::Ok, S::Error> {
        // `Display` rounds to two units; a file keeps all of it.
        match (span.as_micros() / 1_000_000, span.as_micros() % 1_000_000) {
            (secs, 0) => serializer.collect_str(&format_args!("{secs}s")),
            _ => serializer.collect_str(&format_args!("{}us", span.as_micros())),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SimDuration, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// A moment, as RFC 3339.
pub(crate) mod moment {
    use serde::{Deserialize, Deserializer, Serializer, de};
    use sk_core::SimTime;

    pub(crate) fn serialize<S: Serializer>(time: &SimTime, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(time)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SimTime, D::Error> {
        SimTime::parse_rfc3339(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}
