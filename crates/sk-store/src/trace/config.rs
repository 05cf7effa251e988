//! The tracer configuration that a trace carries.
//!
//! The text is kept as it was written (older and newer spellings), because a converted trace must convert back
//! unchanged; the fields that other code needs are parsed once.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sk_core::registry::template_path;
use sk_core::{Gvk, PointerPattern};

/// The tracer's configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct TracerConfig {
    tracked: BTreeMap<Gvk, Tracked>,
    written: Value,
}

/// What is recorded of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tracked {
    /// Where the kind keeps its pod templates: JSON pointers, `*` for every element. `None` means the kind's own.
    pub pod_spec_template_paths: Option<Vec<String>>,
    /// Whether the lives of its pods are recorded.
    pub track_lifecycle: bool,
    /// Whether objects of the kind that have an owner are left out.
    pub skip_owned: bool,
}

/// Why a tracer configuration cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tracer configuration is wrong at `{path}`: {what}")]
pub struct ConfigError {
    path: String,
    what: String,
}

impl TracerConfig {
    /// From the configuration as JSON.
    pub fn from_value(written: Value) -> Result<Self, ConfigError> {
        let mut tracked = BTreeMap::new();
        if !written.is_object() {
            return Err(refuse("", "it must be a map with `trackedObjects`"));
        }
        match &written["trackedObjects"] {
            Value::Null => {}
            Value::Object(kinds) => {
                for (kind, settings) in kinds {
                    let path = format!("trackedObjects.{}", kind.chars().take(100).collect::<String>());
                    let gvk: Gvk = kind.parse().map_err(|error| refuse(&path, &format!("{error}")))?;
                    tracked.insert(gvk, Tracked::from_value(&path, settings)?);
                }
            }
            _ => return Err(refuse("trackedObjects", "it must be a map from kind to settings")),
        }
        Ok(Self { tracked, written })
    }

    /// What is recorded, by kind.
    pub fn tracked(&self) -> &BTreeMap<Gvk, Tracked> {
        &self.tracked
    }

    /// Where objects of a kind keep their pod templates: as the tracer was configured, else as Kubernetes' own kinds do; nothing
    /// for kinds without pods. A path that is not a JSON pointer finds nothing; validation names it.
    pub fn template_paths(&self, gvk: &Gvk) -> Vec<PointerPattern> {
        match self.tracked.get(gvk).and_then(|tracked| tracked.pod_spec_template_paths.as_ref()) {
            Some(paths) => paths.iter().filter_map(|path| path.parse().ok()).collect(),
            None => template_path(gvk).into_iter().collect(),
        }
    }

    /// The configuration as it was written.
    pub fn as_written(&self) -> &Value {
        &self.written
    }

    /// A configuration that tracks these kinds with their usual settings.
    pub fn of_kinds<'a>(kinds: impl IntoIterator<Item = &'a Gvk>) -> Self {
        let tracked: BTreeMap<_, _> = kinds.into_iter().map(|gvk| (gvk.clone(), Tracked::default())).collect();
        let written: serde_json::Map<_, _> = tracked.keys().map(|gvk| (gvk.to_string(), json!({}))).collect();
        Self { tracked, written: json!({ "trackedObjects": written }) }
    }
}

impl Default for TracerConfig {
    fn default() -> Self {
        Self::of_kinds([])
    }
}

impl Tracked {
    fn from_value(path: &str, settings: &Value) -> Result<Self, ConfigError> {
        if !settings.is_object() {
            return Err(refuse(path, "it must be a map of settings, `{}` for the usual ones"));
        }
        let flag = |name: &str| match &settings[name] {
            Value::Null => Ok(false),
            Value::Bool(flag) => Ok(*flag),
            _ => Err(refuse(&format!("{path}.{name}"), "it must be true or false")),
        };
        Ok(Self {
            pod_spec_template_paths: template_paths(path, settings)?,
            track_lifecycle: flag("trackLifecycle")?,
            skip_owned: flag("skipOwned")?,
        })
    }
}

/// `podSpecTemplatePaths`, or the one path of the older `podSpecTemplatePath`.
fn template_paths(path: &str, settings: &Value) -> Result<Option<Vec<String>>, ConfigError> {
    let wrong = |name: &str, what| Err(refuse(&format!("{path}.{name}"), what));
    match (&settings["podSpecTemplatePaths"], &settings["podSpecTemplatePath"]) {
        (Value::Null, Value::Null) => Ok(None),
        (Value::Null, Value::String(one)) => Ok(Some(vec![one.clone()])),
        (Value::Null, _) => wrong("podSpecTemplatePath", "it must be a JSON pointer"),
        (Value::Array(paths), _) => {
            let texts: Option<Vec<_>> = paths.iter().map(|path| path.as_str().map(str::to_owned)).collect();
            texts.map_or_else(|| wrong("podSpecTemplatePaths", "each must be a JSON pointer"), |paths| Ok(Some(paths)))
        }
        _ => wrong("podSpecTemplatePaths", "it must be a list of JSON pointers"),
    }
}

fn refuse(path: &str, what: &str) -> ConfigError {
    ConfigError { path: path.to_owned(), what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_and_newer_spellings_are_understood_and_kept() {
        let written = json!({"trackedObjects": {
            "/v1.Pod": {"podSpecTemplatePaths": [""], "trackLifecycle": true, "skipOwned": true},
            "apps/v1.Deployment": {"podSpecTemplatePaths": null},
            "example.com/v1.Old": {"podSpecTemplatePath": "/spec/template"},
        }, "else": 1});
        let config = TracerConfig::from_value(written.clone()).unwrap();
        let of = |kind: &str| config.tracked()[&kind.parse::<Gvk>().unwrap()].clone();
        assert_eq!(of("v1.Pod").pod_spec_template_paths, Some(vec![String::new()]));
        assert!(of("v1.Pod").track_lifecycle && of("v1.Pod").skip_owned);
        assert_eq!(of("apps/v1.Deployment"), Tracked::default());
        assert_eq!(of("example.com/v1.Old").pod_spec_template_paths, Some(vec!["/spec/template".to_owned()]));
        assert_eq!(config.as_written(), &written);
    }

    #[test]
    fn a_wrong_setting_is_refused_by_its_path() {
        let refuse = |value| TracerConfig::from_value(value).unwrap_err().to_string();
        assert!(refuse(json!([])).contains("trackedObjects"));
        assert!(refuse(json!({"trackedObjects": {"Pod": {}}})).contains("trackedObjects.Pod"));
        let wrong = json!({"trackedObjects": {"v1.Pod": {"skipOwned": "yes"}}});
        assert!(refuse(wrong).contains("trackedObjects.v1.Pod.skipOwned"));
        let wrong = json!({"trackedObjects": {"v1.Pod": {"podSpecTemplatePaths": [1]}}});
        assert!(refuse(wrong).contains("podSpecTemplatePaths"));
    }
}
