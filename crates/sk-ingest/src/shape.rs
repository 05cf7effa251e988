//! An allow-list of the fields of each kind that stay readable.
//!
//! A [`Shape`] lists the fields of one type. Fields under `keep` stay with everything in them; fields under `inside`
//! have their own rule; every other string is hashed (`rest`), so a field that is new in Kubernetes is private until
//! the list names it. Numbers, booleans, nulls and keys of maps always stay. A list is treated as its elements.
//!
//! | what | where |
//! |---|---|
//! | pods and pod templates | [`pods`] |
//! | every kind that has a shape | [`kinds`] |
//! | annotations whose values are kept or dropped | [`annotations`] |
//!
//! Kinds without a shape (custom resources) keep their metadata and the pod templates that the configuration names; all
//! other strings are hashed. If the schema of a custom resource has an enum, an API server will refuse the hash: name
//! such fields under `keep`. The same holds for Secrets of types that hold JSON, and for volume sources that validate
//! their fields (iSCSI, RBD).

pub(crate) mod annotations;
pub(crate) mod kinds;
pub(crate) mod pods;

use crate::privacy::Spelling;

/// The treatment of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// The field stays, with everything in it.
    Keep,
    /// The field is dropped.
    Drop,
    /// Every text in it is hidden, unless the configuration keeps everything.
    Hide(Spelling),
    /// Every text in it is hidden, also if the configuration keeps everything else.
    Seal(Spelling),
    /// The field is a map of annotations; the key decides what happens to a value.
    Annotations,
    /// The field is an object whose fields have rules of their own.
    Of(&'static Shape),
    /// As `rest` of a shape: the field is as it is in another shape.
    Like(&'static Shape),
}

/// The fields of one type.
#[derive(Debug)]
pub(crate) struct Shape {
    /// These stay, with everything in them.
    pub(crate) keep: &'static [&'static str],
    /// These have a rule of their own.
    pub(crate) inside: &'static [(&'static str, Rule)],
    /// The treatment of all other fields.
    pub(crate) rest: Rule,
}

/// The treatment of a string without a rule.
pub(crate) const HIDE: Rule = Rule::Hide(Spelling::Text);

impl Rule {
    /// The rule for a field of the map that this rule is for.
    pub(crate) fn field(self, key: &str) -> Self {
        match self {
            Self::Of(shape) | Self::Like(shape) => shape.field(key),
            Self::Annotations => annotations::rule(key),
            other => other,
        }
    }
}

impl Shape {
    fn field(&self, key: &str) -> Rule {
        match self.inside.iter().find(|(name, _)| *name == key) {
            Some((_, rule)) => *rule,
            None if self.keep.contains(&key) => Rule::Keep,
            None => match self.rest {
                Rule::Like(other) => other.field(key),
                rest => rest,
            },
        }
    }
}
