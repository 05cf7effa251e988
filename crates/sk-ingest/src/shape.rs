//! What may stay as it is: an allow-list of the fields of each kind, and what becomes of everything else.
//!
//! A [`Shape`] lists the fields of one type. Those under `keep` stay with everything in them; those under `inside` have
//! a rule of their own; every other text is hidden (`rest`), so a field born tomorrow is private until somebody allows
//! it. Numbers, booleans, nulls and the keys of maps always stay: they are what an object looks like, not what it says.
//! A list counts as its elements.
//!
//! | what | where |
//! |---|---|
//! | pods and pod templates | [`pods`] |
//! | every kind that has a shape | [`kinds`] |
//! | annotations whose values are kept or dropped | [`annotations`] |
//!
//! Kinds without a shape (custom resources) keep their metadata and the pod templates that the configuration names; all
//! other texts in them are hidden. A custom resource whose schema wants one of a few words will then be refused by an
//! API server: name such places under `keep`. So will these of Kubernetes' own: Secrets of the types that hold JSON, and
//! sources of volumes that check their spelling (iSCSI, RBD).

pub(crate) mod annotations;
pub(crate) mod kinds;
pub(crate) mod pods;

use crate::privacy::Spelling;

/// What becomes of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// It stays, with everything in it.
    Keep,
    /// It goes.
    Drop,
    /// Every text in it is hidden, unless the configuration keeps everything.
    Hide(Spelling),
    /// Every text in it is hidden, also if the configuration keeps everything else.
    Seal(Spelling),
    /// It is a map of annotations: what becomes of a value depends on its key.
    Annotations,
    /// It has fields, each with its own rule.
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
    /// What becomes of all others.
    pub(crate) rest: Rule,
}

/// What becomes of a text that nothing is said about.
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
