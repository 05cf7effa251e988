//! Server-side apply: a `PATCH` with the fields that one manager wants.
//!
//! The body must be JSON, which clients send; the server refuses other YAML.

use serde_json::{Value, json};
use sk_core::{Gvk, SimTime, SmolStr};

use super::path::{Place, Query};
use super::{Call, Reply, body_of};
use crate::error::Invalid;
use crate::managed::{self, Writer, Writing};
use crate::request::Subresource;
use crate::server::ApiServer;
use crate::{ApiError, Object, Request};

/// The default field manager (`managerOrUserAgent` without a user agent).
const UNKNOWN_MANAGER: &str = "unknown";

/// The client of a call, as the manager of what it writes.
pub(super) fn writer(now: SimTime, place: &Place, query: &Query) -> Writer {
    let below = match place.subresource.as_deref() {
        Some("status") => Some(Subresource::Status),
        Some("scale") => Some(Subresource::Scale),
        _ => None,
    };
    let name = query.get("fieldManager").map_or(SmolStr::new_static(UNKNOWN_MANAGER), SmolStr::from);
    Writer { name, below, at: now }
}

impl ApiServer {
    /// Applies the configuration in the body: creates the object, or changes what the manager wants of it.
    pub(super) fn applied(
        &mut self,
        now: SimTime,
        call: &Call,
        (place, query): (&Place, &Query),
        below: Option<Subresource>,
    ) -> Result<Reply, ApiError> {
        if query.get("fieldManager").is_none() {
            let kind = Gvk::new_static("meta.k8s.io", "v1", "PatchOptions");
            let missing = [Invalid::new("fieldManager", "Required value: is required for apply patch")];
            return Err(ApiError::invalid(&kind, "", &missing));
        }
        let config = configuration(call, place)?;
        let Some(target) = place.target() else { return Ok(Reply::not_served()) };
        let live = self.store().get(&target.gvk, &target.key).map(|object| object.to_json());
        let writer = writer(now, place, query);
        let is_new = live.is_none();
        if is_new && below.is_some() {
            return Err(ApiError::not_found(&target.gvk, &target.key.name));
        }
        let kind = self.admission.definitions.managed(&place.gvk);
        let (mut made, managers) = managed::apply(&kind, live.as_ref(), &config, &writer, query.is_true("force"))?;
        if !made["metadata"].is_object() {
            made["metadata"] = json!({});
        }
        made["metadata"]["name"] = named(&config, &target.key.name)?.into();
        self.writing = Some(Box::new(Writing::Applied(managers)));
        let object = Object::read(made, place.namespace.as_ref())?;
        let request = match (is_new, below) {
            (true, _) => Request::create(object),
            (false, Some(Subresource::Status)) => Request::update_status(object),
            (false, Some(Subresource::Scale) | None) => Request::update(object),
        };
        let object = self.handle(now, request)?;
        Ok(Reply::object(if is_new { 201 } else { 200 }, &object))
    }
}

/// The name that the configuration gives, which must be the one of the path.
fn named(config: &Value, name: &SmolStr) -> Result<String, ApiError> {
    let given = config.pointer("/metadata/name").and_then(Value::as_str).unwrap_or(name.as_str());
    if given == name.as_str() {
        return Ok(given.to_owned());
    }
    let message = format!("the name of the object ({given}) does not match the name on the URL ({name})");
    Err(ApiError::bad_request(message))
}

/// The body, an object of the kind and version that the path names.
fn configuration(call: &Call, place: &Place) -> Result<Value, ApiError> {
    let body = match body_of(call)? {
        Value::Null => json!({}),
        body => body,
    };
    if !body.is_object() {
        let what = crate::error::json_type(&body);
        let why = format!("json: cannot unmarshal {what} into Go value of type map[string]interface {{}}");
        return Err(ApiError::bad_request(format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}"
        )));
    }
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version != place.gvk.api_version() || kind != place.gvk.kind.as_str() {
        let version = if api_version.is_empty() { "/" } else { api_version };
        return Err(ApiError::bad_request(format!("invalid object type: {version}, Kind={kind}")));
    }
    if body.pointer("/metadata/managedFields").is_some_and(|managers| !managers.is_null()) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    Ok(body)
}
