//! Values of flags that are more than a number, a switch or a time.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use sk_core::SmolStr;

use crate::scenario::spelling::Flag;

/// Which group grows when several would help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expander {
    /// Any of them, by the run's seed.
    Random,
    /// The one that is left with the least unused.
    LeastWaste,
    /// The one that takes the most pods.
    MostPods,
    /// The one that needs the fewest nodes.
    LeastNodes,
    /// The one with the highest of the `priorities`.
    Priority,
    /// The one whose price buys most room for pods.
    Price,
}

/// How each is written.
const NAMES: [(Expander, &str); 6] = [
    (Expander::Random, "random"),
    (Expander::LeastWaste, "least-waste"),
    (Expander::MostPods, "most-pods"),
    (Expander::LeastNodes, "least-nodes"),
    (Expander::Priority, "priority"),
    (Expander::Price, "price"),
];

/// Expanders, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expanders(pub Vec<Expander>);

impl FromStr for Expanders {
    type Err = fmt::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = |name: &str| NAMES.iter().find(|(_, known)| *known == name.trim()).map(|(expander, _)| *expander);
        text.split(',').map(|name| named(name).ok_or(fmt::Error)).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Expanders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |expander: &Expander| NAMES.iter().find(|(known, _)| known == expander).map_or("", |(_, name)| name);
        f.write_str(&self.0.iter().map(name).collect::<Vec<_>>().join(","))
    }
}

impl Flag for Expanders {
    const WHAT: &'static str =
        "one of random, least-waste, most-pods, least-nodes, priority and price, or several of them with commas";
}

/// A least and a most, written `MIN:MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Not less.
    pub least: u32,
    /// Not more.
    pub most: u32,
}

impl FromStr for Range {
    type Err = fmt::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (least, most) = text.split_once(':').ok_or(fmt::Error)?;
        let number = |text: &str| text.parse::<u32>().map_err(|_| fmt::Error);
        let range = Self { least: number(least)?, most: number(most)? };
        if range.least <= range.most { Ok(range) } else { Err(fmt::Error) }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.least, self.most)
    }
}

impl Flag for Range {
    const WHAT: &'static str = "a least and a most such as 0:320000";
}

/// Names with commas between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(pub Vec<SmolStr>);

impl FromStr for Names {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(SmolStr::from).collect()))
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

impl Flag for Names {
    const WHAT: &'static str = "names with commas between them";
}

macro_rules! written_as_text {
    ($($name:ident),+) => {
        $(impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        })+
    };
}

written_as_text!(Expanders, Range, Names);
