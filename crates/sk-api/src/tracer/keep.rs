//! A place in objects that stays readable: a JSON pointer, for all kinds or for one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sk_core::{Gvk, PointerPattern};

/// A place in objects that is kept as it is. Written `/metadata/annotations/team`, or `v1.Secret:/data/region` for the
/// objects of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keep {
    /// In which kind; in all if there is none.
    pub kind: Option<Gvk>,
    /// Where.
    pub place: PointerPattern,
}

impl Keep {
    /// Does it say anything about objects of this kind?
    pub fn is_about(&self, kind: &Gvk) -> bool {
        self.kind.as_ref().is_none_or(|own| own == kind)
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kind) = &self.kind {
            write!(f, "{kind}:")?;
        }
        f.write_str(self.place.as_str())
    }
}

/// Why an entry of `keep` is invalid.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{text}` is not a place to keep ({problem}): write a JSON pointer, with a kind before it or not, as in `v1.Secret:/data/x`"
)]
pub struct ParseKeepError {
    text: String,
    problem: String,
}

impl FromStr for Keep {
    type Err = ParseKeepError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse =
            |problem: &dyn fmt::Display| ParseKeepError { text: text.to_owned(), problem: problem.to_string() };
        // A pointer may hold a colon; a kind does not start with a slash.
        let (kind, place) = match text.split_once(':').filter(|_| !text.starts_with('/')) {
            Some((kind, place)) => (Some(kind), place),
            None => (None, text),
        };
        let kind = kind.map(str::parse).transpose().map_err(|error: <Gvk as FromStr>::Err| refuse(&error))?;
        let place = place.parse().map_err(|error: <PointerPattern as FromStr>::Err| refuse(&error))?;
        Ok(Self { kind, place })
    }
}

impl Serialize for Keep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Keep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_written_as_it_was_read_with_its_kind_or_without() {
        let read = |text: &str| text.parse::<Keep>().unwrap();
        for text in ["/data/x", "/metadata/annotations/a:b", "v1.Secret:/data/x", "apps/v1.Deployment:/spec/a/*/b"] {
            assert_eq!(read(text).to_string(), text);
        }
        let secret: Gvk = "v1.Secret".parse().unwrap();
        let config_map: Gvk = "v1.ConfigMap".parse().unwrap();
        assert!(read("/data/x").is_about(&secret) && read("v1.Secret:/data/x").is_about(&secret));
        assert!(!read("v1.Secret:/data/x").is_about(&config_map));
        assert!("Secret:/data/x".parse::<Keep>().is_err() && "v1.Secret:data/x".parse::<Keep>().is_err());
    }
}
