//! Reads a user's KubeSchedulerConfiguration (`kubescheduler.config.k8s.io/v1`).
//!
//! It takes over everything that changes a decision: profiles, plugins enabled and disabled at every extension point,
//! weights, arguments, `percentageOfNodesToScore`, backoffs, the client's rate. [`Configuration::ignored`] lists what
//! has no meaning here (leader election, profiling, `parallelism`). What would change decisions and is not built in
//! (extenders, other plugins) is refused by name, with path, line and column.

mod args;
mod plugins;
mod reader;
mod yaml;

use serde_json::Value;
use sk_core::SimDuration;

use self::reader::{At, Read};
pub use self::reader::{Path, Step};
use super::framework::Profile;
use super::queue::QueueSettings;

const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";
const KIND: &str = "KubeSchedulerConfiguration";
/// Profiles that one configuration may have: each keeps columns of its own.
const MAX_PROFILES: usize = 32;
/// The longest backoff that may be asked for, in seconds: a day.
const MAX_BACKOFF_SECS: i64 = 86_400;

/// A configuration, read and checked.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// At least one.
    pub profiles: Vec<Profile>,
    /// Backoffs.
    pub queue: QueueSettings,
    /// How fast the scheduler's client may send, where `clientConnection` says so.
    pub client: Option<ClientRate>,
    /// Settings that have no meaning here.
    pub ignored: Vec<String>,
}

/// `clientConnection`, as far as it has a meaning here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientRate {
    /// Requests per second in the long run; below 0: no limit.
    pub qps: f64,
    /// How many it sends at once before that counts.
    pub burst: i64,
}

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}`{path}`: {problem}", self.shown_place())]
pub struct ConfigError {
    /// Where.
    pub path: Path,
    /// What is wrong, and what to do.
    pub problem: String,
    /// Line and column, if it was read from text.
    pub place: Option<(u64, u64)>,
}

impl ConfigError {
    fn shown_place(&self) -> String {
        self.place.map_or_else(String::new, |(line, column)| format!("line {line}, column {column}: "))
    }
}

impl Default for Configuration {
    fn default() -> Self {
        Self { profiles: vec![Profile::default()], queue: QueueSettings::default(), client: None, ignored: Vec::new() }
    }
}

impl Configuration {
    /// YAML text as a tree, for [`Self::from_value`] to read.
    pub fn tree(text: &str) -> Result<Value, ConfigError> {
        yaml::read(text)
    }

    /// From YAML text; errors name line and column.
    pub fn from_yaml(text: &str) -> Result<Self, ConfigError> {
        let value = Self::tree(text)?;
        Self::from_value(&value).map_err(|error| ConfigError { place: yaml::place(text, &error.path), ..error })
    }

    /// From a tree; errors name the path.
    pub fn from_value(value: &Value) -> Result<Self, ConfigError> {
        let at = At::root(value);
        at.only(&[
            "apiVersion",
            "kind",
            "parallelism",
            "leaderElection",
            "clientConnection",
            "enableProfiling",
            "enableContentionProfiling",
            "percentageOfNodesToScore",
            "podInitialBackoffSeconds",
            "podMaxBackoffSeconds",
            "profiles",
            "extenders",
            "delayCacheUntilActive",
        ])?;
        for (field, expected) in [("apiVersion", API_VERSION), ("kind", KIND)] {
            if let Some(found) = at.get(field)?.filter(|found| found.value != expected) {
                return found.wrong(format!("must be {expected}"));
            }
        }
        if let Some(extender) = at.list("extenders")?.first() {
            return extender.wrong("extenders are HTTP services that a simulation cannot ask: remove them");
        }
        let mut read = Self { queue: queue(&at)?, ..Self::default() };
        read.ignored = ignored(&at)?;
        read.client = rate(&at)?;
        let percentage = at.number("percentageOfNodesToScore", 0, 0..=100)?;
        read.profiles = profiles(&at, percentage, &mut read.ignored)?;
        Ok(read)
    }
}

fn queue(at: &At<'_>) -> Read<QueueSettings> {
    let initial = at.number("podInitialBackoffSeconds", 1, 1..=MAX_BACKOFF_SECS)?;
    let longest = at.number("podMaxBackoffSeconds", 10.max(initial), initial..=MAX_BACKOFF_SECS)?;
    let defaults = QueueSettings::default();
    Ok(QueueSettings {
        initial_backoff: SimDuration::from_secs(initial),
        max_backoff: SimDuration::from_secs(longest),
        ..defaults
    })
}

fn ignored(at: &At<'_>) -> Read<Vec<String>> {
    const FIELDS: [(&str, &str); 5] = [
        ("parallelism", "decisions are those of `parallelism: 1`"),
        ("leaderElection", "there is one scheduler"),
        ("enableProfiling", "there is nothing to profile"),
        ("enableContentionProfiling", "there is nothing to profile"),
        ("delayCacheUntilActive", "there is one scheduler"),
    ];
    let mut ignored = Vec::new();
    for (field, why) in FIELDS {
        if at.get(field)?.is_some() {
            ignored.push(format!("{field}: {why}"));
        }
    }
    Ok(ignored)
}

/// What is not written, or is 0, is kube-scheduler's default (`apis/config/v1/defaults.go`).
fn rate(at: &At<'_>) -> Read<Option<ClientRate>> {
    let Some(client) = at.get("clientConnection")? else { return Ok(None) };
    client.only(&["kubeconfig", "acceptContentTypes", "contentType", "qps", "burst"])?;
    let qps = match client.get("qps")? {
        None => 50.0,
        Some(qps) => match qps.value.as_f64() {
            Some(number) if number.is_finite() && number != 0.0 => number,
            Some(_) => 50.0,
            None => return qps.wrong("must be a number"),
        },
    };
    let burst = match client.number("burst", 100, 0..=i64::from(i32::MAX))? {
        0 => 100,
        burst => burst,
    };
    Ok(Some(ClientRate { qps, burst }))
}

fn profiles(at: &At<'_>, percentage: i64, ignored: &mut Vec<String>) -> Read<Vec<Profile>> {
    let written = at.list("profiles")?;
    if written.is_empty() {
        let profile = Profile { percentage_of_nodes_to_score: small(percentage), ..Profile::default() };
        return Ok(vec![profile]);
    }
    if written.len() > MAX_PROFILES {
        return written[MAX_PROFILES].wrong(format!("at most {MAX_PROFILES} profiles are read"));
    }
    let only_one = written.len() == 1;
    let mut read: Vec<Profile> = Vec::new();
    for one in written {
        let made = profile(&one, percentage, only_one, ignored)?;
        if read.iter().any(|known| known.scheduler_name == made.scheduler_name) {
            return one.wrong(format!("another profile is called `{}` too: rename one", made.scheduler_name));
        }
        read.push(made);
    }
    Ok(read)
}

fn profile(at: &At<'_>, percentage: i64, only_one: bool, ignored: &mut Vec<String>) -> Read<Profile> {
    at.only(&["schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"])?;
    let mut made = Profile::default();
    match at.text_of("schedulerName")? {
        Some("") => return at.wrong("`schedulerName` is empty: give the profile a name"),
        Some(name) => made.scheduler_name = name.into(),
        None if only_one => {}
        None => return at.wrong("`schedulerName` is missing: with several profiles each needs one"),
    }
    made.percentage_of_nodes_to_score = small(at.number("percentageOfNodesToScore", percentage, 0..=100)?);
    plugins::read(at.get("plugins")?.as_ref(), &mut made, ignored)?;
    args::read(&at.list("pluginConfig")?, &mut made, ignored)?;
    Ok(made)
}

/// A number that was checked to be in a range.
fn small(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
