//! Figures as a tree: the one shape behind summary.json, the assertions' variables and docs/figures.md.
//!
//! The typed figures in [`crate::figures`] turn into this tree, and only the tree is written as JSON or handed to CEL,
//! so a key in summary.json cannot differ from the variable of the same name. Time is a type of its own here: seconds
//! in JSON, a duration in CEL.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use sk_core::SimDuration;

/// One figure, or figures by name.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// How many: a whole number.
    Count(i64),
    /// Money, a share, a mean: always a double, because CEL multiplies no int with a double.
    Number(f64),
    /// How long: seconds in JSON, a duration in CEL.
    Time(SimDuration),
    /// Named figures, in the order a reader wants them.
    Fields(Vec<(Cow<'static, str>, Figure)>),
    /// Figures of each group, namespace or owner.
    Entries(BTreeMap<String, Figure>),
    /// There is no such figure in this run, e.g. no cost without prices. Left out everywhere.
    Absent,
}

impl Figure {
    /// The figure at a field or entry of that name.
    pub fn get(&self, name: &str) -> Option<&Self> {
        let found = match self {
            Self::Fields(fields) => fields.iter().find(|(field, _)| *field == name).map(|(_, figure)| figure),
            Self::Entries(entries) => entries.get(name),
            _ => None,
        };
        found.filter(|figure| **figure != Self::Absent)
    }

    /// The names of its fields or entries.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Fields(fields) => {
                fields.iter().filter(|(_, figure)| *figure != Self::Absent).map(|(name, _)| name.as_ref()).collect()
            }
            Self::Entries(entries) => entries.keys().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => serializer.serialize_i64(*count),
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Time(time) => serializer.serialize_f64(time.as_secs_f64()),
            Self::Fields(fields) => {
                let mut map = serializer.serialize_map(None)?;
                for (name, figure) in fields.iter().filter(|(_, figure)| *figure != Self::Absent) {
                    map.serialize_entry(name, figure)?;
                }
                map.end()
            }
            Self::Entries(entries) => entries.serialize(serializer),
            Self::Absent => serializer.serialize_unit(),
        }
    }
}

/// The tree with its types, for another process: JSON tells neither a duration from a number nor an int from a double.
#[derive(Clone, Debug, PartialEq, serde::Serialize, Deserialize)]
pub enum Typed {
    /// How many.
    Count(i64),
    /// Money, a share, a mean.
    Number(f64),
    /// How long, in microseconds.
    Time(i64),
    /// Named figures, in order.
    Fields(Vec<(String, Typed)>),
    /// Figures of each group, namespace or owner.
    Entries(BTreeMap<String, Typed>),
    /// No such figure.
    Absent,
}

impl From<&Figure> for Typed {
    fn from(figure: &Figure) -> Self {
        match figure {
            Figure::Count(count) => Self::Count(*count),
            Figure::Number(number) => Self::Number(*number),
            Figure::Time(time) => Self::Time(time.as_micros()),
            Figure::Fields(fields) => {
                Self::Fields(fields.iter().map(|(name, figure)| (name.clone().into_owned(), figure.into())).collect())
            }
            Figure::Entries(entries) => {
                Self::Entries(entries.iter().map(|(name, figure)| (name.clone(), figure.into())).collect())
            }
            Figure::Absent => Self::Absent,
        }
    }
}

impl From<Typed> for Figure {
    fn from(typed: Typed) -> Self {
        match typed {
            Typed::Count(count) => Self::Count(count),
            Typed::Number(number) => Self::Number(number),
            Typed::Time(micros) => Self::Time(SimDuration::from_micros(micros)),
            Typed::Fields(fields) => {
                Self::Fields(fields.into_iter().map(|(name, figure)| (name.into(), figure.into())).collect())
            }
            Typed::Entries(entries) => {
                Self::Entries(entries.into_iter().map(|(name, figure)| (name, figure.into())).collect())
            }
            Typed::Absent => Self::Absent,
        }
    }
}

/// A value in the tree.
pub trait ToFigure {
    /// As a part of the tree.
    fn figure(&self) -> Figure;
    /// Back from summary.json; nothing if it is not there, so that figures of another version are not taken for zero.
    fn from_json(value: Option<&Value>) -> Option<Self>
    where
        Self: Sized;
    /// Lists every figure below `path` with its meaning.
    fn describe(path: &str, meaning: &str, lines: &mut Vec<Described>);
}

/// A figure's path, type and meaning, for docs/figures.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// As an assertion writes it.
    pub path: String,
    /// `int`, `double` or `duration`; empty for a heading.
    pub kind: &'static str,
    /// The doc comment.
    pub meaning: String,
}

impl Described {
    fn leaf(path: &str, kind: &'static str, meaning: &str, lines: &mut Vec<Self>) {
        lines.push(Self { path: path.to_owned(), kind, meaning: meaning.to_owned() });
    }
}

impl ToFigure for i64 {
    fn figure(&self) -> Figure {
        Figure::Count(*self)
    }
    fn from_json(value: Option<&Value>) -> Option<Self> {
        value?.as_i64()
    }
    fn describe(path: &str, meaning: &str, lines: &mut Vec<Described>) {
        Described::leaf(path, "int", meaning, lines);
    }
}

impl ToFigure for f64 {
    fn figure(&self) -> Figure {
        Figure::Number(*self)
    }
    fn from_json(value: Option<&Value>) -> Option<Self> {
        value?.as_f64()
    }
    fn describe(path: &str, meaning: &str, lines: &mut Vec<Described>) {
        Described::leaf(path, "double", meaning, lines);
    }
}

impl ToFigure for SimDuration {
    fn figure(&self) -> Figure {
        Figure::Time(*self)
    }
    fn from_json(value: Option<&Value>) -> Option<Self> {
        let micros = (value?.as_f64()? * 1e6).round();
        Some(Self::from_micros(micros as i64))
    }
    fn describe(path: &str, meaning: &str, lines: &mut Vec<Described>) {
        Described::leaf(path, "duration", meaning, lines);
    }
}

impl<T: ToFigure> ToFigure for Option<T> {
    fn figure(&self) -> Figure {
        self.as_ref().map_or(Figure::Absent, ToFigure::figure)
    }
    fn from_json(value: Option<&Value>) -> Option<Self> {
        match value {
            None => Some(None),
            there => T::from_json(there).map(Some),
        }
    }
    fn describe(path: &str, meaning: &str, lines: &mut Vec<Described>) {
        T::describe(path, meaning, lines);
    }
}

impl<T: ToFigure> ToFigure for BTreeMap<String, T> {
    fn figure(&self) -> Figure {
        Figure::Entries(self.iter().map(|(name, figures)| (name.clone(), figures.figure())).collect())
    }
    fn from_json(value: Option<&Value>) -> Option<Self> {
        let entries = value?.as_object()?.iter();
        entries.map(|(name, figures)| Some((name.clone(), T::from_json(Some(figures))?))).collect()
    }
    fn describe(path: &str, meaning: &str, lines: &mut Vec<Described>) {
        T::describe(&format!("{path}[name]"), meaning, lines);
    }
}

/// Defines a struct of figures once: the type, its part of the tree and its lines of documentation.
macro_rules! figures {
    ($(
        $(#[doc = $about:literal])+
        $name:ident { $( $(#[doc = $meaning:literal])+ $field:ident: $type:ty, )+ }
    )+) => { $(
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name { $( $(#[doc = $meaning])+ pub $field: $type, )+ }

        impl $crate::figure::ToFigure for $name {
            fn figure(&self) -> $crate::figure::Figure {
                $crate::figure::Figure::Fields(vec![ $( (stringify!($field).into(), self.$field.figure()), )+ ])
            }

            fn from_json(value: Option<&serde_json::Value>) -> Option<Self> {
                let fields = value?.as_object()?;
                Some(Self { $( $field: <$type>::from_json(fields.get(stringify!($field)))?, )+ })
            }

            fn describe(path: &str, meaning: &str, lines: &mut Vec<$crate::figure::Described>) {
                if !path.is_empty() {
                    let meaning = meaning.to_owned();
                    lines.push($crate::figure::Described { path: path.to_owned(), kind: "", meaning });
                }
                let dot = if path.is_empty() { "" } else { "." };
                $(
                    let meaning = [$($meaning),+].map(str::trim).join(" ");
                    <$type>::describe(&format!("{path}{dot}{}", stringify!($field)), &meaning, lines);
                )+
            }
        }
    )+ };
}
pub(crate) use figures;
