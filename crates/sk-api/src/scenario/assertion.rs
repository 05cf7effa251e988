//! What must hold after a run. The expressions are CEL; here they are text, and are judged where results are.

use serde::{Deserialize, Serialize};
use sk_core::SmolStr;

use super::error::shown;
use super::suggest::did_you_mean;
use super::text_or::TextOr;

/// Something that must hold after a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "TextOr<Written>", into = "TextOr<Written>")]
pub struct Assertion {
    /// What results call it. Default: the expression itself.
    pub name: Option<String>,
    /// A CEL expression over the run's figures.
    pub that: String,
    /// In which runs it must hold. Default: in every one.
    pub holds: Holds,
}

/// In which runs an assertion must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "TextOr<Vec<SmolStr>>", into = "TextOr<Vec<SmolStr>>")]
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

/// The long form of an [`Assertion`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an assertion: a CEL expression, or {name: …, that: …, for: …}")]
struct Written {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    that: String,
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

impl TryFrom<TextOr<Vec<SmolStr>>> for Holds {
    type Error = String;

    fn try_from(written: TextOr<Vec<SmolStr>>) -> Result<Self, String> {
        match written {
            TextOr::Long(variants) => Ok(Self::Variants(variants)),
            TextOr::Text(text) => match text.as_str() {
                "every" => Ok(Self::Every),
                "any" => Ok(Self::Any),
                "mean" => Ok(Self::Mean),
                _ => {
                    let advice = did_you_mean(&text, ["every", "any", "mean"]);
                    let text = shown(&text);
                    Err(format!(
                        "`{text}` is neither `every`, `any`, `mean` nor a list of variants like [as-is]{advice}"
                    ))
                }
            },
        }
    }
}

impl From<Holds> for TextOr<Vec<SmolStr>> {
    fn from(holds: Holds) -> Self {
        match holds {
            Holds::Every => Self::Text("every".to_owned()),
            Holds::Any => Self::Text("any".to_owned()),
            Holds::Mean => Self::Text("mean".to_owned()),
            Holds::Variants(variants) => Self::Long(variants),
        }
    }
}
