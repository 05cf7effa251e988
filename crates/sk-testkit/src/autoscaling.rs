//! Recorded decisions of the real cluster-autoscaler, one scenario per file of `fixtures/autoscaler`.
//!
//! `tools/observations/autoscaler` makes these files from recordings. A test plays them on the engine in virtual time
//! and compares. The default flags, as the real autoscaler prints them, are in the same folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// Times are seconds since the autoscaler's first loop.
pub type Seconds = f64;

/// One scenario and what was seen.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// Its name, which is that of its file.
    pub scenario: String,
    /// What it is about.
    pub title: String,
    /// The day, in UTC.
    pub recorded: String,
    /// Which programs.
    pub versions: BTreeMap<String, String>,
    /// The autoscaler's flags.
    pub flags: BTreeMap<String, String>,
    /// The node groups.
    pub groups: Vec<GroupSpec>,
    /// What is there before the autoscaler starts.
    pub setup: Vec<Value>,
    /// Where the pods are when it starts.
    pub initial_pods: BTreeMap<String, String>,
    /// What is done when.
    pub steps: Vec<Value>,
    /// How long it was watched.
    pub ended: Seconds,
    /// Per group: nodes, ready ones, soft-tainted ones, those to be deleted, cordoned ones.
    pub nodes: BTreeMap<String, Vec<NodeCounts>>,
    /// Per workload: pods pending, running, terminating.
    pub pods: BTreeMap<String, Vec<(Seconds, i64, i64, i64)>>,
    /// The scale-ups: which groups grow from what to what.
    pub plans: Vec<(Seconds, Vec<Growth>)>,
    /// What each option would have wasted by least-waste's measure, in percent.
    pub wastes: Vec<(String, f64)>,
    /// Reason, workload or node, message, how many were told.
    pub events: Vec<(Seconds, String, String, String, usize)>,
    /// Group of a node, and why it could not go.
    pub unremovable: Vec<(String, String)>,
    /// How long the rig took from one thing to the next.
    pub took: Took,
}

/// Spans between two things that the recorder saw, each to the tenth of a second.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Took {
    /// From the creation of a pod to its place, where it had one within a second.
    pub created_to_bound: Vec<Seconds>,
    /// From a node's being ready to the places of pods that had waited.
    pub ready_to_bound: Vec<Seconds>,
}

/// From when on a group had how many nodes: all, ready, soft-tainted, to be deleted, cordoned.
pub type NodeCounts = (Seconds, i64, i64, i64, i64, i64);
/// A group that grows, from what to what.
pub type Growth = (String, usize, usize);

/// A node group.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    /// Its name.
    pub name: String,
    /// CPU of a node.
    pub cpu: String,
    /// Memory of a node.
    pub mem: String,
    /// The fewest nodes.
    pub min: u32,
    /// The most nodes.
    pub max: u32,
    /// How many there are at the start.
    pub init: u32,
    /// From a node's object to its being ready.
    #[serde(default)]
    pub ready: Option<String>,
    /// How many pods a node takes.
    #[serde(default)]
    pub pods: Option<u32>,
    /// Labels of its nodes.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Taints of its nodes.
    #[serde(default)]
    pub taints: Vec<Value>,
    /// The machine type, which is a label.
    #[serde(default, rename = "type")]
    pub machine: Option<String>,
    /// Annotations of single nodes, by number.
    #[serde(default, rename = "initann")]
    pub node_annotations: BTreeMap<String, BTreeMap<String, String>>,
    /// Labels of single nodes, by number.
    #[serde(default, rename = "initlab")]
    pub node_labels: BTreeMap<String, BTreeMap<String, String>>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/autoscaler")
}

const DEFAULTS: &str = "flag-defaults.json";

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("read the fixture {}: {error}", path.display()))
}

/// All scenarios, by name.
///
/// # Panics
///
/// If a file is missing or is none of `tools/observations/autoscaler`.
pub fn all() -> Vec<Observation> {
    let folder = folder();
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("read {}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    paths.retain(|path| path.file_name().is_some_and(|name| name != DEFAULTS));
    paths.sort();
    let parse = |path: &PathBuf| {
        serde_json::from_str(&read(path)).unwrap_or_else(|error| panic!("parse {}: {error}", path.display()))
    };
    paths.iter().map(parse).collect()
}

/// What whoever made the recordings wrote about them: the rules in words, what was random, and what is the rig's own.
///
/// # Panics
///
/// If the file is missing.
pub fn readme() -> String {
    read(&folder().join("README.md"))
}

/// The real one's flags with their defaults.
///
/// # Panics
///
/// If the file is missing or broken.
pub fn flag_defaults() -> BTreeMap<String, String> {
    let path = folder().join(DEFAULTS);
    serde_json::from_str(&read(&path)).unwrap_or_else(|error| panic!("parse {}: {error}", path.display()))
}

/// Writes a whole file of the docs, if `UPDATE_DOCS` is set; else says whether it is up to date.
///
/// # Panics
///
/// If it cannot be written.
pub fn docs_file(name: &str, text: &str) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if fs::read_to_string(&path).is_ok_and(|before| before == text) {
        return Ok(());
    }
    if std::env::var_os("UPDATE_DOCS").is_none() {
        return Err(format!("docs/{name} is not what the test found; run it with UPDATE_DOCS=1"));
    }
    fs::write(&path, text).unwrap_or_else(|error| panic!("write {}: {error}", path.display()));
    Ok(())
}

/// Writes a page of the docs between two marks, if `UPDATE_DOCS` is set; else says whether it is up to date.
///
/// # Panics
///
/// If the page is missing or has no such marks.
pub fn docs_section(page: &str, name: &str, text: &str) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let before = read(&path);
    let (open, close) = (format!("<!-- {name}: generated -->\n"), format!("<!-- {name}: end -->"));
    let start = before.find(&open).unwrap_or_else(|| panic!("{page} has no `{}`", open.trim())) + open.len();
    let end = before.find(&close).unwrap_or_else(|| panic!("{page} has no `{close}`"));
    if before[start..end] == *text {
        return Ok(());
    }
    if std::env::var_os("UPDATE_DOCS").is_none() {
        return Err(format!("docs/{page} does not say what the test found; run it with UPDATE_DOCS=1"));
    }
    let after = format!("{}{text}{}", &before[..start], &before[end..]);
    fs::write(&path, after).unwrap_or_else(|error| panic!("write {}: {error}", path.display()));
    Ok(())
}
