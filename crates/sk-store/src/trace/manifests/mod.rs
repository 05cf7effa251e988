//! Plain Kubernetes manifests as a trace: everything is created at time 0, in the order of the files.
//!
//! YAML or JSON, one document or many, a file or a folder; what `helm template` and `kubectl get -o yaml` print. Nothing
//! is defaulted but the namespace, as `kubectl apply` would. Read at once, because a stream of YAML cannot be read
//! twice; kept as the lines of JSON Lines.

mod folder;
mod scope;
mod yaml;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use sk_core::SimTime;

use super::config::TracerConfig;
use super::error::{Flaw, OpenError, Place, TraceError};
use super::header::Header;
use super::jsonl::{self, JsonLines};
use super::record::{Change, Object, Record};
use super::source::Source;
use super::write::WriteError;

pub(crate) use folder::read as read_folder;
use scope::Scopes;
use yaml::Document;

/// The most bytes of manifests, in one file or in a folder: a cluster of 100,000 objects at 2.5 KB each.
pub(crate) const MAX_BYTES: u64 = 256 << 20;

/// The most bytes of JSON that they may become; aliases in YAML multiply.
const MAX_JSON_BYTES: usize = 512 << 20;

/// The error for input of more than [`MAX_BYTES`].
pub(crate) fn too_long(name: &str) -> OpenError {
    let advice = "split the manifests, convert each part and put them together (`skctl trace merge`)";
    OpenError::TooLong { name: name.into(), limit: MAX_BYTES, advice }
}

/// One file of manifests.
pub(crate) struct ManifestFile {
    pub(crate) name: Arc<str>,
    pub(crate) text: Bytes,
}

/// Reads files of manifests as one trace called `name`.
pub(crate) fn open(name: &str, files: &[ManifestFile]) -> Result<JsonLines, OpenError> {
    let mut documents = Vec::new();
    for file in files {
        yaml::read(file, &mut documents)?;
    }
    let objects = name_objects(documents)?;
    let kinds = objects.iter().map(|object| &object.reference().gvk);
    let header = Header { config: TracerConfig::of_kinds(kinds), origin: None };
    let lines = lines(&header, objects).map_err(|error| match error {
        WriteError::Read(error) => error,
        error => TraceError::new(&name.into(), Place::default(), Flaw::Content(error.to_string())),
    })?;
    JsonLines::open(&Source::memory(name, lines.into()))
}

/// Checks each document and gives it a namespace if its kind needs one.
fn name_objects(documents: Vec<Document>) -> Result<Vec<Object>, TraceError> {
    let scopes = Scopes::of(documents.iter().map(|document| &document.value));
    let mut objects = Vec::with_capacity(documents.len());
    for Document { mut value, file, place } in documents {
        scopes.give_namespace(&mut value);
        let object = Object::new(value).map_err(|error| TraceError::new(&file, place, error))?;
        objects.push(object);
    }
    Ok(objects)
}

fn lines(header: &Header, objects: Vec<Object>) -> Result<Vec<u8>, WriteError> {
    let mut writer = jsonl::Writer::new(Limited(Vec::new()), header)?;
    for (seq, object) in objects.into_iter().enumerate() {
        writer.record(&Record { at: SimTime::EPOCH, seq: seq as u64, change: Change::Apply(object) })?;
    }
    Ok(writer.finish()?.0)
}

/// Memory that refuses to grow over [`MAX_JSON_BYTES`].
struct Limited(Vec<u8>);

impl std::io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_JSON_BYTES {
            return Err(std::io::Error::other(format!("the manifests are more than {MAX_JSON_BYTES} bytes of JSON")));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A list of objects, or one object, as objects.
fn expand(value: Value) -> Vec<Value> {
    let is_list = value["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) && value["items"].is_array();
    if !is_list {
        return vec![value];
    }
    let item_kind = value["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).unwrap_or_default().to_owned();
    let api_version = value["apiVersion"].clone();
    let Value::Object(mut list) = value else { return Vec::new() };
    let Some(Value::Array(items)) = list.remove("items") else { return Vec::new() };
    let mut expanded = Vec::with_capacity(items.len());
    for mut item in items {
        // The items of a DeploymentList and its like do not repeat what they are.
        if let Value::Object(fields) = &mut item
            && !item_kind.is_empty()
        {
            fields.entry("apiVersion").or_insert_with(|| api_version.clone());
            fields.entry("kind").or_insert_with(|| item_kind.clone().into());
        }
        expanded.push(item);
    }
    expanded
}
