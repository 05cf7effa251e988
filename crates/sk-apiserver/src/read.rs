//! The read verbs: get, list with pages, and watch, with label and field selectors.
//!
//! A list shows one resource version, also over several pages: the continue token holds the version and the last key,
//! and each page reads the log's view of that version. If the log no longer reaches back that far, the server returns
//! 410 Gone and the client lists again, as with a real server.

use std::sync::Arc;

use serde_json::json;
use sk_core::{FieldSelector, Gvk, LabelSelector, ObjectRef, SmolStr};

use crate::base64;
use crate::request::Answer;
use crate::server::ApiServer;
use crate::store::Change;
use crate::{ApiError, Object, Reason, syntax};

/// Which objects of a kind, and how many at a time.
#[derive(Clone, Debug)]
pub struct ListOptions {
    /// Only of this namespace; `None`: of all.
    pub namespace: Option<SmolStr>,
    /// Only with these labels.
    pub labels: LabelSelector,
    /// Only with these fields.
    pub fields: FieldSelector,
    /// At most so many; `None`: all.
    pub limit: Option<usize>,
    /// Where the page before this one ended ([`Page::next`]).
    pub token: Option<String>,
    /// As of this version.
    pub exactly: Option<u64>,
    /// Not older than this version.
    pub at_least: Option<u64>,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self {
            namespace: None,
            labels: LabelSelector::everything(),
            fields: FieldSelector::default(),
            limit: None,
            token: None,
            exactly: None,
            at_least: None,
        }
    }
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct Page {
    /// The objects, by namespace and name.
    pub items: Vec<Arc<Object>>,
    /// The version that the list is of.
    pub resource_version: u64,
    /// How to ask for the next page, if there is one.
    pub next: Option<String>,
    /// How many objects are left, if there is another page and no selector.
    pub remaining: Option<usize>,
}

/// A watch event.
#[derive(Clone, Debug)]
pub struct Watched {
    /// What happened, as the watcher's selectors see it: an object that comes to be selected is added.
    pub change: Change,
    /// The object after it; for a deletion, its last state that was selected.
    pub object: Arc<Object>,
    /// The version of the change.
    pub resource_version: u64,
}

impl ApiServer {
    /// One object.
    pub fn get(&self, target: &ObjectRef) -> Answer {
        self.find(&target.gvk, &target.key).map(|(_, object)| object.clone())
    }

    /// Objects of a kind, a page at a time.
    pub fn list(&self, gvk: &Gvk, options: &ListOptions) -> Result<Page, ApiError> {
        check_fields(gvk, &options.fields)?;
        let newest = self.store().resource_version();
        if let Some(asked) = options.at_least.filter(|asked| *asked > newest) {
            return Err(ApiError::too_new(asked, newest));
        }
        let (version, after) = match &options.token {
            None => (options.exactly.unwrap_or(newest), None),
            Some(token) => {
                let (version, after) = read_token(token)?;
                (version, Some(after))
            }
        };
        if version < self.store().oldest() {
            return Err(ApiError::new(Reason::Expired, CONTINUE_EXPIRED));
        }
        let seen = self.store().view(version).everything().map(|(_, object)| object);
        let mut items: Vec<Arc<Object>> = seen.filter(|object| is_of(gvk, object)).cloned().collect();
        items.retain(|object| is_selected(options, object));
        items.sort_by(|one, other| one.key.cmp(&other.key));
        if let Some(after) = after {
            items.retain(|object| place_of(object) > after);
        }
        let limit = options.limit.filter(|limit| *limit > 0 && *limit < items.len());
        let mut page = Page { items, resource_version: version, next: None, remaining: None };
        if let Some(limit) = limit {
            let is_whole = options.labels.is_everything() && options.fields.is_everything();
            page.remaining = is_whole.then_some(page.items.len() - limit);
            page.items.truncate(limit);
            page.next = page.items.last().map(|last| write_token(version, &place_of(last)));
        }
        Ok(page)
    }

    /// What happened to objects of a kind after version `since`, oldest first; 410 if the log does not reach back.
    pub fn watch(&self, gvk: &Gvk, options: &ListOptions, since: u64) -> Result<Vec<Watched>, ApiError> {
        check_fields(gvk, &options.fields)?;
        let expired = |error: crate::Expired| ApiError::new(Reason::Expired, error.to_string());
        let events = self.store().watch(since).map_err(expired)?.filter(|event| is_of(gvk, &event.object));
        Ok(events.filter_map(|event| seen_by(options, event)).collect())
    }
}

/// An event through selectors: who was not selected before and is now, is new to the watcher.
fn seen_by(options: &ListOptions, event: &crate::WatchEvent) -> Option<Watched> {
    let before = event.before.as_ref().filter(|before| is_selected(options, before));
    let is_gone = event.change == Change::Deleted;
    let after = Some(&event.object).filter(|object| !is_gone && is_selected(options, object));
    let (change, object) = match (before, after) {
        (None, None) => return None,
        (None, Some(after)) => (Change::Added, after.clone()),
        (Some(_), Some(after)) => (Change::Modified, after.clone()),
        (Some(_), None) if is_gone => (Change::Deleted, event.object.clone()),
        (Some(before), None) => {
            let mut left = Object::clone(before);
            left.resource_version = event.object.resource_version;
            (Change::Deleted, Arc::new(left))
        }
    };
    Some(Watched { change, object, resource_version: event.object.resource_version })
}

fn is_of(gvk: &Gvk, object: &Object) -> bool {
    object.gvk.kind == gvk.kind && object.gvk.group == gvk.group
}

fn is_selected(options: &ListOptions, object: &Object) -> bool {
    options.namespace.as_ref().is_none_or(|namespace| object.key.namespace.as_ref() == Some(namespace))
        && options.labels.matches(&*object.meta.labels)
        && (options.fields.is_everything() || fields_match(&options.fields, object))
}

fn fields_match(fields: &FieldSelector, object: &Object) -> bool {
    let values: Vec<_> =
        fields.terms().iter().map(|term| (term.field.clone(), field_of(object, &term.field))).collect();
    fields.matches(|name| values.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str()))
}

/// The fields beside name and namespace that a kind can be selected by (`AddFieldLabelConversionFunc`, 1.36).
const SELECTABLE: &[(&str, &[&str])] = &[
    (
        "Pod",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
    ),
    ("Node", &["spec.unschedulable"]),
    ("Namespace", &["status.phase"]),
    ("ReplicationController", &["status.replicas"]),
    ("Job", &["status.successful"]),
    ("Secret", &["type"]),
    ("Service", &["spec.clusterIP", "spec.type"]),
    (
        "Event",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
    ),
];

fn check_fields(gvk: &Gvk, fields: &FieldSelector) -> Result<(), ApiError> {
    let own = SELECTABLE.iter().find(|(kind, _)| *kind == gvk.kind).map_or(&[][..], |(_, fields)| fields);
    let is_known = |field: &str| ["metadata.name", "metadata.namespace"].contains(&field) || own.contains(&field);
    match fields.terms().iter().find(|term| !is_known(&term.field)) {
        None => Ok(()),
        Some(term) => {
            let is_custom = sk_core::registry::find(gvk).is_none();
            let said = if own.is_empty() && !is_custom {
                format!(
                    "\"{}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                    term.field
                )
            } else {
                format!("field label not supported: {}", term.field)
            };
            Err(ApiError::bad_request(said))
        }
    }
}

fn field_of(object: &Object, field: &str) -> String {
    match field {
        "metadata.name" => object.key.name.to_string(),
        "metadata.namespace" => object.key.namespace.as_deref().unwrap_or_default().to_owned(),
        "spec.nodeName" => object.pod().and_then(|pod| pod.node_name.as_deref()).unwrap_or_default().to_owned(),
        "status.phase" if object.pod().is_some() => object.pod().map_or("", |pod| pod.status.phase.as_str()).to_owned(),
        "status.successful" => object.to_json().pointer("/status/succeeded").map_or("0".to_owned(), plain),
        "spec.unschedulable" | "spec.hostNetwork" => at(object, field, "false"),
        "status.replicas" => at(object, field, "0"),
        other => at(object, other, ""),
    }
}

fn at(object: &Object, field: &str, otherwise: &str) -> String {
    let pointer = format!("/{}", field.replace('.', "/"));
    object.to_json().pointer(&pointer).map_or(otherwise.to_owned(), plain)
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can \
                                start a new list without the continue parameter.";

/// Namespace and name in the order of a list.
fn place_of(object: &Object) -> String {
    format!("{}/{}", object.key.namespace.as_deref().unwrap_or_default(), object.key.name)
}

/// A continue token: Base64 of the version and the key after which the list continues (`storage/continue.go`, 1.36).
fn write_token(version: u64, after: &str) -> String {
    // A client may ask for what comes after the object: that begins with its name and a zero.
    let token = json!({"v": TOKEN_VERSION, "rv": version, "start": format!("{after}\u{0}")});
    base64::encode_url(token.to_string().as_bytes())
}

fn read_token(token: &str) -> Result<(u64, String), ApiError> {
    let refuse =
        |why: String| ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
    let bytes = base64::decode_url(token).map_err(|at| refuse(format!("illegal base64 data at input byte {at}")))?;
    let read: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|error| refuse(syntax::syntax_error(&bytes).unwrap_or_else(|| error.to_string())))?;
    let version = read["v"].as_str().unwrap_or_default();
    if version != TOKEN_VERSION {
        return Err(refuse(format!("server does not recognize this encoded version {version}")));
    }
    match (read["rv"].as_u64().unwrap_or(0), read["start"].as_str().unwrap_or_default()) {
        (0, _) => Err(refuse(format!("incorrect encoded start resourceVersion (version {TOKEN_VERSION})"))),
        (_, "") => Err(refuse(format!("encoded start key empty (version {TOKEN_VERSION})"))),
        (version, after) => Ok((version, after.trim_end_matches('\u{0}').to_owned())),
    }
}

/// The form of continue tokens.
const TOKEN_VERSION: &str = "meta.k8s.io/v1";
