//! Taints of nodes and tolerations of pods, and which tolerates which.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaintEffect {
    /// New pods stay away.
    NoSchedule,
    /// New pods go elsewhere if they can.
    PreferNoSchedule,
    /// New pods stay away and running ones are evicted.
    NoExecute,
}

/// A mark on a node that repels pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Its key.
    pub key: SmolStr,
    /// Its value, often empty.
    #[serde(default, skip_serializing_if = "SmolStr::is_empty")]
    pub value: SmolStr,
    /// What it does.
    pub effect: TaintEffect,
    /// When it was added (`NoExecute` only); kept as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_added: Option<SmolStr>,
}

/// How a toleration compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TolerationOperator {
    /// Key and value are equal.
    #[default]
    Equal,
    /// The key is there, whatever its value.
    Exists,
    /// The taint's value is a number below the toleration's (feature gate, off by default).
    Lt,
    /// The taint's value is a number above the toleration's (feature gate, off by default).
    Gt,
}

/// A pod's leave to run in spite of a taint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// The taint's key; empty with `Exists` means every taint.
    #[serde(default, skip_serializing_if = "SmolStr::is_empty")]
    pub key: SmolStr,
    /// How it compares; `Equal` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<TolerationOperator>,
    /// The taint's value, for `Equal`.
    #[serde(default, skip_serializing_if = "SmolStr::is_empty")]
    pub value: SmolStr,
    /// The effect it is about; every effect when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
    /// How long a `NoExecute` taint is tolerated; for ever when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

impl Taint {
    /// A taint without a value.
    pub fn new(key: impl Into<SmolStr>, effect: TaintEffect) -> Self {
        Self { key: key.into(), value: SmolStr::default(), effect, time_added: None }
    }
}

impl Toleration {
    /// Tolerates `key` with `effect`, whatever its value, for `seconds` or for ever.
    pub fn exists(key: impl Into<SmolStr>, effect: TaintEffect, seconds: Option<i64>) -> Self {
        Self {
            key: key.into(),
            operator: Some(TolerationOperator::Exists),
            value: SmolStr::default(),
            effect: Some(effect),
            toleration_seconds: seconds,
        }
    }

    /// `Toleration.ToleratesTaint` of k8s.io/api 1.36, with its feature gate for `Lt` and `Gt` off.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        if self.effect.is_some_and(|effect| effect != taint.effect) {
            return false;
        }
        if !self.key.is_empty() && self.key != taint.key {
            return false;
        }
        match self.operator.unwrap_or_default() {
            TolerationOperator::Equal => self.value == taint.value,
            TolerationOperator::Exists => true,
            TolerationOperator::Lt | TolerationOperator::Gt => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(key: &str, value: &str) -> Taint {
        Taint { value: value.into(), ..Taint::new(key, TaintEffect::NoSchedule) }
    }

    #[test]
    fn tolerations_compare_as_kubernetes_does() {
        let parse = |json: &str| serde_json::from_str::<Toleration>(json).unwrap();
        let cases = [
            (r#"{"key":"spot","operator":"Exists"}"#, true),
            (r#"{"operator":"Exists"}"#, true),
            (r#"{"key":"spot","value":"true"}"#, true),
            (r#"{"key":"spot","value":"false"}"#, false),
            (r#"{"key":"spot","operator":"Exists","effect":"NoExecute"}"#, false),
            (r#"{"key":"other","operator":"Exists"}"#, false),
            (r#"{"key":"spot","operator":"Gt","value":"1"}"#, false),
        ];
        for (json, expected) in cases {
            assert_eq!(parse(json).tolerates(&taint("spot", "true")), expected, "{json}");
        }
    }
}
