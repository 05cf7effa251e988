//! Group, version and kind, in SimKube's notation: `apps/v1.Deployment`, `v1.Pod`.
//!
//! Cheap to clone (the parts are inline or shared strings), ordered, and usable in `const` tables.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smol_str::SmolStr;

/// Identifies a type of object. The core group is the empty string.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gvk {
    /// API group, `""` for the core group.
    pub group: SmolStr,
    /// API version, e.g. `v1`.
    pub version: SmolStr,
    /// Kind in CamelCase, e.g. `Deployment`.
    pub kind: SmolStr,
}

/// Why a text is not a group-version-kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a group/version.Kind: write it like `apps/v1.Deployment` or `v1.Pod`")]
pub struct ParseGvkError(String);

impl Gvk {
    /// A kind known at compile time.
    pub const fn new_static(group: &'static str, version: &'static str, kind: &'static str) -> Self {
        Self {
            group: SmolStr::new_static(group),
            version: SmolStr::new_static(version),
            kind: SmolStr::new_static(kind),
        }
    }

    /// From an object's `apiVersion` (`apps/v1`, `v1`) and `kind` fields.
    pub fn from_api_version(api_version: &str, kind: &str) -> Result<Self, ParseGvkError> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if version.is_empty() || kind.is_empty() || version.contains(['/', '.']) {
            return Err(ParseGvkError(format!("{api_version}.{kind}")));
        }
        Ok(Self { group: group.into(), version: version.into(), kind: kind.into() })
    }

    /// The object's `apiVersion` field: `apps/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_string() } else { format!("{}/{}", self.group, self.version) }
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        write!(f, "{}.{}", self.version, self.kind)
    }
}

impl FromStr for Gvk {
    type Err = ParseGvkError;

    /// Accepts `group/version.Kind`, `version.Kind` and `/version.Kind`. Groups contain dots, versions and kinds do
    /// not.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ParseGvkError(text.chars().take(200).collect());
        let (api_version, kind) = text.rsplit_once('.').ok_or_else(refuse)?;
        Self::from_api_version(api_version, kind).map_err(|_| refuse())
    }
}

impl Serialize for Gvk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Gvk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_print_as_they_are_read() {
        for text in ["apps/v1.Deployment", "v1.Pod", "argoproj.io/v1alpha1.Rollout"] {
            assert_eq!(text.parse::<Gvk>().unwrap().to_string(), text);
        }
        assert_eq!("/v1.Pod".parse::<Gvk>().unwrap(), Gvk::new_static("", "v1", "Pod"));
    }

    #[test]
    fn a_kind_without_version_is_refused_with_an_example() {
        for text in ["", "Pod", ".Pod", "v1.", "a/b/v1.Pod", "apps/.Deployment"] {
            let error = text.parse::<Gvk>().unwrap_err();
            assert!(error.to_string().contains("apps/v1.Deployment"), "{text}: {error}");
        }
    }
}
