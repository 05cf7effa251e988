//! The tracer's configuration file.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sk_core::{Gvk, PointerPattern, Quantity, SimDuration, SmolStr};

use crate::scenario::yaml::Document;
use crate::scenario::{Fault, Path, ScenarioError, spelling};
use crate::tracer::Keep;

/// The default retention: a month and a day, so that "the last 30 days" can always be exported.
const DEFAULT_AGE: SimDuration = SimDuration::from_secs(32 * 86_400);

/// The default size of the history. A busy cluster of 5,000 nodes with 20 changes a second makes 55 million events
/// in [`DEFAULT_AGE`]; at 120 bytes each that is 6.6 GB, and three times that is room for bursts.
const DEFAULT_BYTES: &str = "20Gi";

/// What the tracer records, what it leaves out, and where it may write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", expecting = "a mapping with trackedObjects")]
pub struct Config {
    /// The kinds that are recorded.
    #[serde(with = "by_kind")]
    pub tracked_objects: BTreeMap<Gvk, TrackedObject>,
    /// The namespaces that are recorded. Default: all.
    #[serde(default, skip_serializing_if = "Namespaces::is_all")]
    pub namespaces: Namespaces,
    /// How much of each object is kept. Default: `minimal`.
    #[serde(default)]
    pub privacy: Privacy,
    /// Places in objects that are kept as they are under `privacy: minimal`: JSON pointers, `*` for every element. Each
    /// holds for all kinds (`/metadata/annotations/team`), or for one that is written before it
    /// (`apps/v1.Deployment:/spec/template/spec/containers/*/args`). The values of a Secret stay hidden, under
    /// `privacy: full` too, unless one is named with its kind: `v1.Secret:/data/region`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<Keep>,
    /// The only places that the tracer itself writes traces to: URLs that such a place must start with. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub export_to: Vec<String>,
    /// How much history is kept.
    #[serde(default)]
    pub retention: Retention,
}

/// What is recorded of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default, expecting = "a mapping of settings, {} for the usual")]
pub struct TrackedObject {
    /// Where the kind keeps its pod templates. Default: where Kubernetes' own kinds keep theirs, else nowhere.
    #[serde(skip_serializing_if = "Option::is_none", with = "some_pointers")]
    pub pod_spec_template_paths: Option<Vec<PointerPattern>>,
    /// SimKube's older name for one such place.
    #[serde(skip_serializing_if = "Option::is_none", with = "some_pointer")]
    pub pod_spec_template_path: Option<PointerPattern>,
    /// Are the lives of its pods recorded?
    #[serde(skip_serializing_if = "is_false")]
    pub track_lifecycle: bool,
    /// Are objects of the kind that have an owner left out altogether?
    #[serde(skip_serializing_if = "is_false")]
    pub skip_owned: bool,
}

impl TrackedObject {
    /// Where objects of this kind keep their pod templates.
    pub fn template_paths(&self, kind: &Gvk) -> Vec<PointerPattern> {
        match (&self.pod_spec_template_paths, &self.pod_spec_template_path) {
            (Some(paths), _) => paths.clone(),
            (None, Some(path)) => vec![path.clone()],
            (None, None) => sk_core::registry::template_path(kind).into_iter().collect(),
        }
    }
}

/// The namespaces that are recorded. `*` stands for any characters. Exclusion wins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a mapping such as {exclude: [hr]}")]
pub struct Namespaces {
    /// Only these; empty means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<SmolStr>,
    /// Never these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<SmolStr>,
}

impl Namespaces {
    /// Is nothing left out?
    pub fn is_all(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }

    /// Are objects of this namespace recorded? Those without a namespace always are.
    pub fn admit(&self, namespace: Option<&str>) -> bool {
        let Some(namespace) = namespace else { return true };
        let matches = |pattern: &SmolStr| glob(pattern, namespace);
        (self.include.is_empty() || self.include.iter().any(matches)) && !self.exclude.iter().any(matches)
    }
}

/// Does `pattern`, in which `*` stands for any characters, match the whole text?
fn glob(pattern: &str, text: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == text };
    let Some(rest) = text.strip_prefix(before) else { return false };
    (0..=rest.len()).filter(|at| rest.is_char_boundary(*at)).any(|at| glob(after, &rest[at..]))
}

/// How much of each object is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Privacy {
    /// What placement and lifecycles need; everything else becomes a keyed hash, so that equality survives.
    #[default]
    Minimal,
    /// Everything.
    Full,
}

/// How much history is kept; whichever is reached first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a mapping such as {age: 32d, bytes: 20Gi}")]
pub struct Retention {
    /// For how long. Default: `32d`.
    #[serde(with = "spelling::duration")]
    pub age: SimDuration,
    /// How many bytes on disk. Default: `20Gi`.
    pub bytes: Quantity,
}

impl Default for Retention {
    fn default() -> Self {
        Self { age: DEFAULT_AGE, bytes: DEFAULT_BYTES.parse().expect("the constant is a quantity") }
    }
}

impl Config {
    /// Reads a configuration. Errors show `file` as its name.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        let document = Document::parse(file, text)?;
        let config = Self::deserialize(&document.root).map_err(|error| {
            let place = document.place(error.mark.unwrap_or(document.root.mark));
            ScenarioError::Shape(Fault { place, path: error.path(), problem: error.problem })
        })?;
        config.check(&document)?;
        Ok(config)
    }

    fn check(&self, document: &Document) -> Result<(), ScenarioError> {
        let fault = |path: &[&str], problem: &str| {
            let path = Path::of(path.iter().copied());
            Fault { place: document.place_of(&path), path, problem: problem.to_owned() }
        };
        let mut faults = Vec::new();
        if self.tracked_objects.is_empty() {
            let example = "name at least one kind, such as `apps/v1.Deployment: {}`";
            faults.push(fault(&["trackedObjects"], example));
        }
        if self.retention.age == SimDuration::ZERO {
            faults.push(fault(&["retention", "age"], "must be greater than 0"));
        }
        if self.retention.bytes.value() < 64 << 20 {
            faults.push(fault(&["retention", "bytes"], "less than 64Mi holds no useful history"));
        }
        if faults.is_empty() { Ok(()) } else { Err(ScenarioError::Meaning(faults)) }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// For `#[serde(with)]`: a map whose keys are kinds.
mod by_kind {
    use std::str::FromStr;

    use serde::de::Error;

    use super::*;

    pub(super) fn serialize<S: Serializer>(
        kinds: &BTreeMap<Gvk, TrackedObject>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(kinds.iter().map(|(kind, tracked)| (kind.to_string(), tracked)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<Gvk, TrackedObject>, D::Error> {
        let written = BTreeMap::<String, TrackedObject>::deserialize(deserializer)?;
        let read = |(kind, tracked): (String, TrackedObject)| Gvk::from_str(&kind).map(|kind| (kind, tracked));
        written.into_iter().map(read).collect::<Result<_, _>>().map_err(D::Error::custom)
    }
}

/// For `#[serde(with)]`: a list of JSON pointers with `*` that may be absent or null.
mod some_pointers {
    use serde::de::Error;

    use super::*;

    pub(super) fn serialize<S: Serializer>(paths: &Option<Vec<PointerPattern>>, out: S) -> Result<S::Ok, S::Error> {
        paths.as_ref().map(|paths| paths.iter().map(PointerPattern::as_str).collect::<Vec<_>>()).serialize(out)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<PointerPattern>>, D::Error> {
        let written = Option::<Vec<String>>::deserialize(from)?;
        let read = |paths: Vec<String>| paths.iter().map(|path| path.parse().map_err(D::Error::custom)).collect();
        written.map(read).transpose()
    }
}

/// For `#[serde(with)]`: one such place that may be absent or null.
mod some_pointer {
    use serde::de::Error;

    use super::*;

    pub(super) fn serialize<S: Serializer>(path: &Option<PointerPattern>, out: S) -> Result<S::Ok, S::Error> {
        path.as_ref().map(PointerPattern::as_str).serialize(out)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PointerPattern>, D::Error> {
        Option::<String>::deserialize(from)?.map(|path| path.parse().map_err(D::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REVIEWED: &str = "
trackedObjects:
  apps/v1.Deployment: {}
  batch/v1.CronJob: {trackLifecycle: true}
  example.com/v1.Thing: {podSpecTemplatePaths: [/spec/groups/*/template]}
  example.com/v1.Old: {podSpecTemplatePath: /spec/template}
namespaces: {exclude: [hr, \"secrets-*\"]}
keep: [/metadata/annotations/team, \"v1.Secret:/data/region\"]
exportTo: [s3://sim-traces/prod-eu1/]
retention: {age: 2d, bytes: 1Gi}
";

    #[test]
    fn a_configuration_reads_back_from_what_it_writes() {
        let config = Config::parse("tracer.yaml", REVIEWED).unwrap();
        assert_eq!(config.privacy, Privacy::Minimal);
        let thing: Gvk = "example.com/v1.Thing".parse().unwrap();
        assert_eq!(config.tracked_objects[&thing].template_paths(&thing)[0].as_str(), "/spec/groups/*/template");
        let deployment: Gvk = "apps/v1.Deployment".parse().unwrap();
        let paths = config.tracked_objects[&deployment].template_paths(&deployment);
        assert_eq!(paths[0].as_str(), "/spec/template");
        let written = serde_json::to_string(&config).unwrap();
        assert_eq!(Config::parse("again", &written).unwrap(), config);
    }

    #[test]
    fn a_namespace_is_left_out_by_name_or_pattern_and_exclusion_wins() {
        let namespaces =
            Namespaces { include: vec!["team-*".into(), "hr".into()], exclude: vec!["*-hr".into(), "hr".into()] };
        let admitted = ["team-a", "team-hr", "hr", "default"].map(|name| namespaces.admit(Some(name)));
        assert_eq!(admitted, [true, false, false, false]);
        assert!(namespaces.admit(None), "nodes and other objects without a namespace are recorded");
        assert!(Namespaces::default().admit(Some("anything")));
    }

    #[test]
    fn a_mistake_is_named_by_its_place() {
        let refuse = |text: &str| Config::parse("t.yaml", text).unwrap_err().to_string();
        let wrong = refuse("trackedObjects: {v1.Pod: {trackLifecycel: true}}\n");
        assert!(wrong.starts_with("t.yaml:1:") && wrong.contains("trackLifecycle"), "{wrong}");
        assert!(refuse("trackedObjects: {}\n").contains("apps/v1.Deployment"));
        assert!(refuse("trackedObjects: {Pod: {}}\n").contains("Pod"));
        assert!(refuse("trackedObjects: {v1.Pod: {}}\nretention: {bytes: 1Ki}\n").contains("64Mi"));
        assert!(refuse("trackedObjects: {v1.Pod: {}}\nkeep: [no-pointer]\n").contains("no-pointer"));
        assert!(refuse("trackedObjects: {v1.Pod: {}}\nkeep: [\"Secret:/data/x\"]\n").contains("Secret"));
    }
}
