//! How times, hashes and maps are written as JSON: readable for people and `jq`, and lossless.

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

    /// The time at which the year 9000 begins, in microseconds: well before the calendar ends.
    const YEAR_9000: i64 = 221_845_392_000_000_000;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
    pub(crate) fn serialize<S: Serializer>(time: &SimTime, serializer: S) -> Result<S::Ok, S::Error> {
        if (0..YEAR_9000).contains(&time.as_micros()) {
            let mut text = [0; LONGEST];
            return serializer.serialize_str(spell(time.as_micros().unsigned_abs(), &mut text));
        }
        let text = time.to_string();
        match SimTime::parse_rfc3339(&text) {
            Ok(back) if back == *time => serializer.serialize_str(&text),
            _ => time.as_micros().serialize(serializer),
        }
    }

    /// `2026-01-05T09:00:00.123456Z`.
    const LONGEST: usize = 27;

    /// A time of the years 1970 to 8999 as text, without the calendar's detours: traces hold millions of times.
    fn spell(micros: u64, text: &mut [u8; LONGEST]) -> &str {
        let (secs, fraction) = (micros / 1_000_000, (micros % 1_000_000) as u32);
        let (year, month, day) = civil(secs / 86_400);
        let (year, second) = (year as u32, (secs % 86_400) as u32);
        *text = *b"0000-00-00T00:00:00.000000Z";
        let pairs = [(0, year / 100), (2, year % 100), (5, month as u32), (8, day as u32)];
        let clock = [(11, second / 3_600), (14, second / 60 % 60), (17, second % 60)];
        let decimals = [(20, fraction / 10_000), (22, fraction / 100 % 100), (24, fraction % 100)];
        for (at, number) in pairs.into_iter().chain(clock).chain(decimals) {
            text[at] = b'0' + (number / 10) as u8;
            text[at + 1] = b'0' + (number % 10) as u8;
        }
        // As many decimals as it has.
        let mut end = LONGEST - 1;
        while text[end - 1] == b'0' && end > LONGEST - 7 {
            end -= 1;
        }
        if fraction == 0 {
            end = LONGEST - 8;
        }
        text[end] = b'Z';
        std::str::from_utf8(&text[..=end]).unwrap_or_default()
    }

    /// Year, month and day of a day since 1970. Years are counted from March on, so that the day that is now and then
    /// inserted is a year's last, and days from 0000-03-01 on, in cycles of 400 years.
    fn civil(days: u64) -> (u64, u64, u64) {
        const TO_MARCH_OF_YEAR_0: u64 = 719_468;
        const DAYS_OF_400_YEARS: u64 = 146_097;
        let days = days + TO_MARCH_OF_YEAR_0;
        let (cycle, day_of_cycle) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
        let leaps = day_of_cycle / 1_460 - day_of_cycle / 36_524 + day_of_cycle / 146_096;
        let year_of_cycle = (day_of_cycle - leaps) / 365;
        let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
        // From March on, months have 31, 30, 31, 30, 31 days, and so on: 153 in five.
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = cycle * 400 + year_of_cycle + u64::from(month <= 2);
        (year, month, day)
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

/// Tests of [`time`].
#[cfg(test)]
mod tests {
    use sk_core::SimTime;
    use sk_core::rng::Stream;

    #[test]
    fn a_time_is_spelt_as_it_is_shown() {
        let mut drawn = Stream::new(1, "times");
        let known = [0, 1, 10, 999_999, 1_000_000, 951_782_400_000_000, 951_868_799_999_999, 221_845_391_999_999_999];
        let random = (0..20_000).map(|_| drawn.below(221_845_392_000_000_000).cast_signed());
        for micros in known.into_iter().chain(random) {
            let time = SimTime::from_micros(micros);
            let mut text = Vec::new();
            super::time::serialize(&time, &mut serde_json::Serializer::new(&mut text)).unwrap();
            assert_eq!(String::from_utf8(text).unwrap(), format!("\"{time}\""));
        }
    }

    #[test]
    fn a_time_beyond_the_calendar_comes_back_all_the_same() {
        for micros in [i64::MIN, -1, 221_845_392_000_000_000, 253_402_300_800_000_000, i64::MAX] {
            let mut text = Vec::new();
            super::time::serialize(&SimTime::from_micros(micros), &mut serde_json::Serializer::new(&mut text)).unwrap();
            let back = super::time::deserialize(&mut serde_json::Deserializer::from_slice(&text)).unwrap();
            assert_eq!(back, SimTime::from_micros(micros));
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
