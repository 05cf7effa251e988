//! Requests to an API server, and the recorded responses of a real one.
//!
//! A family (`scenarios/api/NAME.yaml`) is a list of requests about one subject, sent one after the other into a
//! namespace of its own. Tables write many requests at once: each entry of `with` is a merge patch of a named object.
//!
//! ```yaml
//! about: Deployments, what is refused.
//! objects:
//!   deployment: {apiVersion: apps/v1, kind: Deployment, spec: {...}}
//! requests:
//!   - creates: {of: deployment, with: {negative: {spec: {replicas: -1}}}}   # a create each; the key is the name
//!   - replaces: {of: deployment, with: {selector: {spec: {selector: {...}}}}} # a create and a replace each
//!   - patches: {of: deployment, type: merge, with: {scaled: {spec: {replicas: 2}}}}
//!   - applies: {to: /apis/apps/v1/namespaces/{ns}/deployments/web, of: {...}, with: [{name: scaled, by: alice, spec: {replicas: 2}}]}
//!   - call: {name: gone, method: GET, path: /api/v1/namespaces/{ns}/pods/gone}
//! ```
//!
//! Both arms send the same [`Call`]s: the recorder to a real server, sk-apiserver's own test to sk-apiserver.

mod play;
mod scrub;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sk_core::{Gvk, registry};

pub use play::{Answered, Player};
pub use scrub::scrub;

use crate::fixture::{self, FixtureError};
use crate::merge;
use crate::scenario::ScenarioError;

/// Requests about one thing, from one file.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Its name, which is also the name of its files.
    pub name: String,
    /// What it shows, for people.
    pub about: String,
    /// Are the answers compared with who manages which fields?
    pub managers: bool,
    /// So long whoever records must wait before each request, for what a real server does behind an answer: its quotas
    /// are read from a cache.
    pub pause_ms: u64,
    /// The requests, in order.
    pub calls: Vec<Call>,
    /// The file as plain JSON; a fixture keeps it as the question that was answered.
    pub source: Value,
}

/// One HTTP request.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its name, unique within the family.
    pub name: String,
    /// `GET` and the like.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The type of the body.
    pub content_type: String,
    /// The body; a text is sent as it is.
    pub body: Value,
}

/// A family and a real server's answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The API server's version, such as `v1.36.4`.
    pub kubernetes: String,
    /// The day, in UTC.
    pub recorded: String,
    /// The family, whole, as it was when it was recorded.
    pub family: Value,
    /// The answers, by request.
    pub answers: Vec<Answer>,
}

/// What was answered to one request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The request.
    pub name: String,
    /// The HTTP status code.
    pub code: u16,
    /// The body, without what no two servers have in common.
    pub body: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFamily {
    about: String,
    #[serde(default)]
    managers: bool,
    #[serde(default)]
    pause_ms: u64,
    #[serde(default)]
    objects: Map<String, Value>,
    requests: Vec<RawRequest>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum RawRequest {
    Creates(Table),
    Replaces(Table),
    Patches(Patches),
    Applies(Applies),
    Call(RawCall),
    Calls(Vec<RawCall>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    of: String,
    with: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Patches {
    of: String,
    r#type: String,
    #[serde(default)]
    below: String,
    with: Map<String, Value>,
}

/// Server-side applies of one object, one after the other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Applies {
    to: String,
    of: Map<String, Value>,
    with: Vec<Apply>,
}

/// One of them: by whom, and the fields that the object has beside those of `of`, as they are: `null` is applied.
#[derive(Deserialize)]
struct Apply {
    name: String,
    by: String,
    #[serde(default)]
    force: bool,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCall {
    name: String,
    method: String,
    path: String,
    #[serde(default = "plain_json")]
    content: String,
    #[serde(default)]
    body: Value,
}

fn plain_json() -> String {
    "application/json".to_owned()
}

impl Family {
    /// Reads one from YAML text.
    pub fn from_yaml(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let refuse = |reason: String| ScenarioError::Parse { name: name.to_owned(), reason };
        let options = serde_saphyr::options! { strict_booleans: true };
        let source: Value =
            serde_saphyr::from_str_with_options(text, options).map_err(|error| refuse(error.to_string()))?;
        let raw: RawFamily = serde_json::from_value(source.clone()).map_err(|error| refuse(error.to_string()))?;
        let namespace = format!("api-{name}");
        let mut calls = vec![Call {
            name: "the namespace".to_owned(),
            method: "POST".to_owned(),
            path: "/api/v1/namespaces".to_owned(),
            content_type: plain_json(),
            body: json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        }];
        for request in raw.requests {
            calls.extend(request.calls(&raw.objects, &namespace).map_err(refuse)?);
        }
        let mut names: Vec<_> = calls.iter().map(|call| &call.name).collect();
        names.sort();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(refuse(format!("two requests are called {}", twice[0])));
        }
        Ok(Self {
            name: name.to_owned(),
            about: raw.about,
            managers: raw.managers,
            pause_ms: raw.pause_ms,
            calls,
            source,
        })
    }

    /// All families of the testkit, by name.
    pub fn all() -> Result<Vec<Self>, ScenarioError> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/api");
        let unreadable = |source| ScenarioError::Read { path: folder.clone(), source };
        let entries: Result<Vec<_>, _> = std::fs::read_dir(&folder).map_err(unreadable)?.collect();
        let mut paths: Vec<_> = entries.map_err(unreadable)?.iter().map(std::fs::DirEntry::path).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Result<Self, ScenarioError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| ScenarioError::Read { path: path.to_owned(), source })?;
        Self::from_yaml(&path.file_stem().unwrap_or_default().to_string_lossy(), &text)
    }
}

impl Recorded {
    /// The recording of the family with this name.
    pub fn named(name: &str) -> Result<Self, FixtureError> {
        fixture::read(&path_of(name))
    }
}

/// Where the recording of a family lies.
pub fn path_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/api").join(format!("{name}.json"))
}

impl RawRequest {
    fn calls(self, objects: &Map<String, Value>, namespace: &str) -> Result<Vec<Call>, String> {
        let find = |name: &str| objects.get(name).ok_or_else(|| format!("`objects` has no `{name}`"));
        let mut calls = Vec::new();
        match self {
            Self::Creates(table) => {
                for (name, with) in &table.with {
                    let object = made(find(&table.of)?, name, with);
                    calls.push(create(&format!("{}/{name}", table.of), object, namespace)?);
                }
            }
            Self::Replaces(table) => {
                for (name, with) in &table.with {
                    let base = made(find(&table.of)?, name, &Value::Null);
                    let object = made(find(&table.of)?, name, with);
                    calls.push(create(&format!("{}/{name} first", table.of), base, namespace)?);
                    let path = format!("{}/{name}", collection(&object, namespace)?);
                    calls.push(call(&format!("{}/{name} replaced", table.of), "PUT", path, object));
                }
            }
            Self::Patches(table) => {
                for (name, patch) in &table.with {
                    let base = made(find(&table.of)?, name, &Value::Null);
                    calls.push(create(&format!("{}/{name} first", table.of), base.clone(), namespace)?);
                    let below = if table.below.is_empty() { String::new() } else { format!("/{}", table.below) };
                    let path = format!("{}/{name}{below}", collection(&base, namespace)?);
                    let mut patched = call(&format!("{}/{name} patched", table.of), "PATCH", path, patch.clone());
                    patched.content_type = match table.r#type.as_str() {
                        "json" => "application/json-patch+json".to_owned(),
                        "merge" => "application/merge-patch+json".to_owned(),
                        "strategic" => "application/strategic-merge-patch+json".to_owned(),
                        other => other.to_owned(),
                    };
                    calls.push(patched);
                }
            }
            Self::Applies(table) => calls.extend(table.with.iter().map(|one| one.call(&table, namespace))),
            Self::Call(raw) => calls.push(raw.call(namespace)),
            Self::Calls(raw) => calls.extend(raw.into_iter().map(|raw| raw.call(namespace))),
        }
        Ok(calls)
    }
}

impl Apply {
    fn call(&self, table: &Applies, namespace: &str) -> Call {
        let force = if self.force { "&force=true" } else { "" };
        let path = format!("{}?fieldManager={}{force}", table.to.replace("{ns}", namespace), self.by);
        let mut body = table.of.clone();
        body.extend(self.fields.clone());
        let content_type = "application/apply-patch+yaml".to_owned();
        Call { content_type, ..call(&self.name, "PATCH", path, Value::Object(body)) }
    }
}

impl RawCall {
    fn call(self, namespace: &str) -> Call {
        let path = self.path.replace("{ns}", namespace);
        Call { name: self.name, method: self.method, path, content_type: self.content, body: self.body }
    }
}

/// The named object with another name and what the table says.
fn made(base: &Value, name: &str, with: &Value) -> Value {
    let mut object = base.clone();
    merge::apply(&mut object, &json!({"metadata": {"name": name}}));
    if with.is_object() {
        merge::apply(&mut object, with);
    }
    object
}

fn call(name: &str, method: &str, path: String, body: Value) -> Call {
    Call { name: name.to_owned(), method: method.to_owned(), path, content_type: plain_json(), body }
}

fn create(name: &str, object: Value, namespace: &str) -> Result<Call, String> {
    let path = collection(&object, namespace)?;
    Ok(call(name, "POST", path, object))
}

/// The path of the objects beside this one.
fn collection(object: &Value, namespace: &str) -> Result<String, String> {
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    let gvk = Gvk::from_api_version(text("apiVersion"), text("kind")).map_err(|error| error.to_string())?;
    let group = if gvk.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", gvk.group) };
    let plural = registry::plural(&gvk);
    Ok(match registry::scope(&gvk) {
        Some(registry::Scope::Cluster) => format!("{group}/{}/{plural}", gvk.version),
        Some(registry::Scope::Namespaced) | None => format!("{group}/{}/namespaces/{namespace}/{plural}", gvk.version),
    })
}
