//! The verbs of the REST API and their responses.

use serde::Deserialize;
use serde_json::Value;
use sk_core::SimTime;
use sk_core::registry::Scope;

use super::options::{list_options, watch_version};
use super::path::{Place, Query};
use super::{Call, Method, Reply, body_of, refuse_large, strict};
use crate::binding::Binding;
use crate::request::Subresource;
use crate::server::ApiServer;
use crate::{ApiError, Labels, Object, Patch, Reason, Request, schema};

pub(super) type Answered = Result<Reply, ApiError>;

/// Kinds, besides custom resources, whose updates must name a resource version (`AllowUnconditionalUpdate`, 1.36).
const CONDITIONAL: [&str; 17] = [
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "ClusterTrustBundle",
    "CustomResourceDefinition",
    "Lease",
    "LeaseCandidate",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "PodCertificateRequest",
    "PodDisruptionBudget",
    "RuntimeClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "VolumeAttachment",
];

impl ApiServer {
    pub(super) fn answer(&mut self, now: SimTime, call: &Call, place: &Place, query: &Query) -> Answered {
        if place.scope == Scope::Namespaced && place.namespace.is_none() && place.name.is_some() {
            return Ok(Reply::not_served());
        }
        match (place.name.is_some(), place.subresource.as_deref(), call.method) {
            (false, _, Method::Get) => self.read_many(place, query),
            (false, _, Method::Post) if place.scope == Scope::Cluster || place.namespace.is_some() => {
                self.post(now, call, (place, query))
            }
            (false, _, Method::Delete) => self.delete_many(now, call, place, query),
            (false, _, Method::Post | Method::Put | Method::Patch) => Err(not_allowed()),
            (true, None, Method::Get) => self.get(&target(place)?).map(|object| Reply::object(200, &object)),
            (true, None, Method::Put) => self.put(now, call, (place, query)),
            (true, None, Method::Patch) => self.patched(now, call, (place, query), None),
            (true, None, Method::Delete) => self.delete_one(now, call, place, query),
            (true, Some(sub), method) => self.below(now, call, (place, query), (sub, method)),
            (true, None, Method::Post) => Err(not_allowed()),
        }
    }

    fn below(
        &mut self,
        now: SimTime,
        call: &Call,
        (place, query): (&Place, &Query),
        (sub, method): (&str, Method),
    ) -> Answered {
        let is_custom = sk_core::registry::find(&place.gvk).is_none();
        let is_served = match sk_core::registry::find(&place.gvk) {
            Some(info) => info.has_subresource(sub),
            None => self.admission.definitions.find(&place.gvk).is_none_or(|(_, version)| match sub {
                "status" => version.has_status,
                "scale" => version.scale.is_some(),
                _ => false,
            }),
        };
        match (sub, method) {
            _ if !is_served && is_custom => {
                Err(ApiError::not_found(&place.gvk, place.name.as_deref().unwrap_or_default()))
            }
            _ if !is_served => Ok(Reply::not_served()),
            ("status", Method::Get) => self.get(&target(place)?).map(|object| Reply::object(200, &object)),
            ("status", Method::Put) => {
                let object = self.decoded_status(call, place, query)?;
                self.refuse_unconditional(place, &object)?;
                let object = self.handle(now, Request::update_status(object))?;
                Ok(Reply::object(200, &object))
            }
            ("status", Method::Patch) => self.patched(now, call, (place, query), Some(Subresource::Status)),
            ("scale", Method::Get) => {
                let object = self.get(&target(place)?)?;
                Ok(Reply { code: 200, body: self.scale_of(&object) })
            }
            ("scale", Method::Put) => self.rescale(now, call, place),
            ("scale", Method::Patch) => self.patched(now, call, (place, query), Some(Subresource::Scale)),
            ("binding", Method::Post) if !is_custom => self.bind_to(now, call, place),
            ("eviction", Method::Post) if !is_custom => self.evict_one(now, call, place),
            ("finalize", Method::Put) => {
                let object = self.decoded(call, place, query)?;
                self.finalize(now, object).map(|object| Reply::object(200, &object))
            }
            _ => Err(not_allowed()),
        }
    }

    /// The object in the body, of the kind and in the place that the path names.
    fn decoded(&self, call: &Call, place: &Place, query: &Query) -> Result<Object, ApiError> {
        let mut value = match body_of(call) {
            Ok(Value::Null) => return Err(unrecognized(call, place, "unexpected end of JSON input")),
            Err(error) if error.reason == Reason::BadRequest => return Err(unrecognized(call, place, &error.message)),
            other => other?,
        };
        if let Some(why) = no_kind(&value) {
            return Err(unrecognized(call, place, &why));
        }
        let original = value.clone();
        let Some(fields) = value.as_object_mut() else { return Err(unrecognized(call, place, "")) };
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if sk_core::registry::find(&place.gvk).is_none() {
            refuse_other_kind(call, place, (&api_version, &kind), &text_of_name(fields))?;
        }
        if kind.is_empty() {
            fields.insert("kind".to_owned(), place.gvk.kind.as_str().into());
        }
        if api_version.is_empty() {
            fields.insert("apiVersion".to_owned(), place.gvk.api_version().into());
        }
        let is_other = (!kind.is_empty() && kind != place.gvk.kind.as_str())
            || (!api_version.is_empty() && api_version != place.gvk.api_version());
        if is_other {
            let version = api_version.rsplit('/').next().unwrap_or_default();
            let expected = &place.gvk.kind;
            let group =
                if place.gvk.group.is_empty() { "core" } else { place.gvk.group.split('.').next().unwrap_or_default() };
            let why = match is_known(&api_version, &kind) {
                true => format!("converting ({version}.{kind}) to ({group}.{expected}): unknown conversion"),
                false => unknown_kind(&kind, &api_version),
            };
            let message = format!("{kind} in version \"{version}\" cannot be handled as a {expected}: {why}");
            return Err(ApiError::bad_request(message));
        }
        if let Some((_, version)) = self.admission.definitions.find(&place.gvk) {
            version.decode(&place.gvk, &mut value).map_err(|why| ApiError::in_kind(&place.gvk, &why))?;
        }
        if query.get("fieldValidation") == Some("Strict") {
            let of = schema::find(&place.gvk);
            let kept = self.admission.definitions.find(&place.gvk).map(|_| &value);
            if let Some(why) = strict::decoding_error(&call.body, &original, of, kept) {
                return Err(ApiError::in_kind(&place.gvk, &why));
            }
        }
        self.placed(Object::read(value, place.namespace.as_ref())?, place)
    }

    /// The object in the body of a status update; only its status counts.
    fn decoded_status(&self, call: &Call, place: &Place, query: &Query) -> Result<Object, ApiError> {
        let Ok(stored) = self.get(&target(place)?) else { return self.decoded(call, place, query) };
        let (Ok(Value::Object(mut fields)), Some(of)) = (body_of(call), schema::find(&place.gvk)) else {
            return self.decoded(call, place, query);
        };
        schema::decode(&place.gvk, of, Value::Object(fields.clone()))
            .map_err(|why| ApiError::in_kind(&place.gvk, &why))?;
        fields.insert("spec".to_owned(), stored.to_json()["spec"].clone());
        let body = Value::Object(fields).to_string().into_bytes();
        self.decoded(&Call { body, ..call.clone() }, place, query)
    }

    /// The path and the object must agree on where it is.
    fn placed(&self, object: Object, place: &Place) -> Result<Object, ApiError> {
        if let Some(name) = place.name.as_ref().filter(|name| **name != object.key.name) {
            let message = match object.key.name.is_empty() {
                true => {
                    format!("the name of the object ({name} based on URL) was undeterminable: name must be provided")
                }
                false => return Err(other_name(&object.key.name, name)),
            };
            return Err(ApiError::bad_request(message));
        }
        if place.scope == Scope::Namespaced && object.key.namespace != place.namespace {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(ApiError::bad_request(message));
        }
        Ok(object)
    }

    fn post(&mut self, now: SimTime, call: &Call, (place, query): (&Place, &Query)) -> Answered {
        if place.gvk.kind == "Binding" && place.gvk.group.is_empty() {
            return self.bind_by_name(now, call, place);
        }
        let object = self.decoded(call, place, query)?;
        if object.resource_version != 0 {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(ApiError::new(Reason::Unknown, message));
        }
        self.handle(now, Request::create(object)).map(|object| Reply::object(201, &object))
    }

    fn put(&mut self, now: SimTime, call: &Call, (place, query): (&Place, &Query)) -> Answered {
        let object = self.decoded(call, place, query).map_err(|error| judged_twice(error, place))?;
        self.refuse_unconditional(place, &object)?;
        self.handle(now, Request::update(object)).map(|object| Reply::object(200, &object))
    }

    /// An update of a custom resource must name a resource version (`AllowUnconditionalUpdate`).
    fn refuse_unconditional(&self, place: &Place, object: &Object) -> Result<(), ApiError> {
        let needs_version =
            sk_core::registry::find(&place.gvk).is_none() || CONDITIONAL.contains(&place.gvk.kind.as_str());
        if !needs_version || object.resource_version != 0 || self.store().get(&object.gvk, &object.key).is_none() {
            return Ok(());
        }
        let why = "Invalid value: 0: must be specified for an update";
        let wrong = [crate::error::Invalid::new("metadata.resourceVersion", why)];
        let called = sk_core::Gvk { kind: place.plural.clone(), ..place.gvk.clone() };
        Err(ApiError::invalid(&called, &object.key.name, &wrong))
    }

    fn patched(
        &mut self,
        now: SimTime,
        call: &Call,
        (place, query): (&Place, &Query),
        below: Option<Subresource>,
    ) -> Answered {
        let read: fn(Value) -> Patch = match call.content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Patch::Json,
            "application/merge-patch+json" => Patch::Merge,
            "application/strategic-merge-patch+json" => Patch::Strategic,
            "application/apply-patch+yaml" => return self.applied(now, call, (place, query), below),
            _ => {
                return Err(ApiError::new(Reason::UnsupportedMediaType, "415: Unsupported Media Type"));
            }
        };
        // A server looks for the object before it reads what is to be changed.
        refuse_large(call)?;
        self.get(&target(place)?)?;
        let unreadable = |error: ApiError| match error.reason {
            Reason::BadRequest => ApiError::bad_request(format!("error decoding patch: {}", error.message)),
            _ => error,
        };
        let body = match body_of(call).map_err(unreadable)? {
            Value::Null if call.body.is_empty() => {
                return Err(ApiError::bad_request("error decoding patch: unexpected end of JSON input"));
            }
            body => body,
        };
        let patch = read(body);
        if query.get("fieldValidation") == Some("Strict") && below.is_none() {
            self.refuse_unknown(&target(place)?, &patch)?;
        }
        let object = self.handle(now, Request::Patch { target: target(place)?, below, patch: Box::new(patch) })?;
        match below {
            Some(Subresource::Scale) => Ok(Reply { code: 200, body: self.scale_of(&object) }),
            Some(Subresource::Status) | None => Ok(Reply::object(200, &object)),
        }
    }

    /// Refuses a patch by which an object would get fields that its type does not have.
    fn refuse_unknown(&self, target: &sk_core::ObjectRef, patch: &Patch) -> Result<(), ApiError> {
        let Some(of) = schema::find(&target.gvk) else { return Ok(()) };
        let stored = self.get(target)?;
        let patched = patch.apply(&target.gvk, schema::written_object(&stored))?;
        let mut found = Vec::new();
        strict::unknown(&patched, of, &mut found);
        if found.is_empty() {
            return Ok(());
        }
        let why = format!("strict decoding error: {}", found.join(", "));
        Err(ApiError::unreadable_patch(&patch.shown(of, &patched), &why))
    }

    fn rescale(&mut self, now: SimTime, call: &Call, place: &Place) -> Answered {
        let (target, scale) = (target(place)?, self.part(call, "Scale", schema::SCALE)?);
        let name = scale.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        if !name.is_empty() && name != target.key.name.as_str() {
            return Err(other_name(name, &target.key.name));
        }
        let object = self.handle(now, Request::Scale { target, scale: Box::new(scale) })?;
        Ok(Reply { code: 200, body: self.scale_of(&object) })
    }

    /// A body that is no object of the store: a scale, a binding, an eviction.
    pub(super) fn part(
        &self,
        call: &Call,
        expected: &'static str,
        of: &'static schema::Struct,
    ) -> Result<Value, ApiError> {
        let group = match expected {
            "Scale" => "autoscaling",
            "Eviction" => "policy",
            _ => "",
        };
        let gvk = sk_core::Gvk::new_static(group, "v1", expected);
        let value = match body_of(call) {
            Ok(Value::Null) => return Err(unrecognized_kind(call, expected, "unexpected end of JSON input")),
            Err(error) if error.reason == Reason::BadRequest => {
                return Err(unrecognized_kind(call, expected, &error.message));
            }
            other => other?,
        };
        if let Some(why) = no_kind(&value) {
            return Err(unrecognized_kind(call, expected, &why));
        }
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if !kind.is_empty() && kind != expected {
            let version = api_version.rsplit('/').next().unwrap_or_default();
            let group = if group.is_empty() { "core" } else { group };
            let why = match is_known(&api_version, &kind) {
                true => format!("converting ({version}.{kind}) to ({group}.{expected}): unknown conversion"),
                false => unknown_kind(&kind, &api_version),
            };
            let message = format!("{kind} in version \"{version}\" cannot be handled as a {expected}: {why}");
            return Err(ApiError::bad_request(message));
        }
        schema::decode_part(of, value, "").map_err(|why| ApiError::in_kind(&gvk, &why))
    }

    /// A binding that says itself which pod it is about.
    fn bind_by_name(&mut self, now: SimTime, call: &Call, place: &Place) -> Answered {
        let body = self.part(call, "Binding", schema::BINDING)?;
        let name = body.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let gvk = crate::kinds::POD.clone();
        let pod = Place { gvk, plural: "pods".into(), name: Some(name.into()), ..place.clone() };
        self.bind_to(now, call, &pod)
    }

    fn bind_to(&mut self, now: SimTime, call: &Call, place: &Place) -> Answered {
        let body = self.part(call, "Binding", schema::BINDING)?;
        let (pod, text) = (target(place)?, |pointer: &str| body.pointer(pointer).and_then(Value::as_str));
        refuse_misnamed(&body, &pod, "Binding")?;
        let kind = text("/target/kind").unwrap_or_default();
        if !["", "Node"].contains(&kind) {
            let why = format!("target.kind: Unsupported value: {kind:?}: supported values: \"Node\", \"<empty>\"");
            return Err(ApiError::new(Reason::Unknown, why));
        }
        let node = text("/target/name").filter(|node| !node.is_empty());
        let node = node.ok_or_else(|| ApiError::new(Reason::Unknown, "target.name: Required value"))?;
        let labels =
            |pointer: &str| Labels::deserialize(body.pointer(pointer).unwrap_or(&Value::Null)).unwrap_or_default();
        let binding = Binding {
            uid: text("/metadata/uid").and_then(|uid| uid.parse().ok()),
            node: node.into(),
            labels: labels("/metadata/labels"),
            annotations: labels("/metadata/annotations"),
        };
        self.bind(now, &pod.key, &binding)?;
        Ok(Reply::success(201, None))
    }

    /// A list is called as the definition of its kind says.
    pub(super) fn page(&self, place: &Place, page: &crate::read::Page) -> Reply {
        let mut reply = Reply::page(place, page);
        if let Some((definition, _)) = self.admission.definitions.find(&place.gvk) {
            reply.body["kind"] = definition.list_kind.as_str().into();
            // Lists of custom objects have a token also where there is nothing to go on with.
            if reply.body["metadata"]["continue"].is_null() {
                reply.body["metadata"]["continue"] = "".into();
            }
        }
        reply
    }

    fn read_many(&mut self, place: &Place, query: &Query) -> Answered {
        let is_watch = query.is_true("watch");
        let options = list_options(place, query, is_watch)?;
        if !is_watch {
            let mut page = self.list(&place.gvk, &options)?;
            page.remaining = page.remaining.filter(|_| page.next.is_some());
            return Ok(self.page(place, &page));
        }
        let (version, is_initial) = (watch_version(query)?, query.is_true("sendInitialEvents"));
        // Version 0 means any version: existing objects come first, as ADDED.
        let events = if version == 0 || is_initial {
            let page = self.list(&place.gvk, &options)?;
            let new = |object: &std::sync::Arc<Object>| crate::read::Watched {
                change: crate::Change::Added,
                resource_version: object.resource_version,
                object: object.clone(),
            };
            page.items.iter().map(new).collect()
        } else {
            match self.watch(&place.gvk, &options, version) {
                Err(error) if error.reason == Reason::Expired => return Ok(Reply::expired(&error)),
                events => events?,
            }
        };
        let reply = Reply::events(&events);
        let is_marked = query.is_true("allowWatchBookmarks");
        Ok(if is_marked { reply.bookmark(place, self.store().resource_version(), is_initial) } else { reply })
    }
}

pub(super) fn target(place: &Place) -> Result<sk_core::ObjectRef, ApiError> {
    place.target().ok_or_else(not_allowed)
}

/// A server judges what replaces a node twice, and names each time what it finds.
fn judged_twice(mut error: ApiError, place: &Place) -> ApiError {
    if let Some(about) = error.about.as_mut().filter(|_| place.gvk == crate::kinds::NODE) {
        about.causes.extend(about.causes.clone());
    }
    error
}

fn other_name(given: &str, name: &str) -> ApiError {
    ApiError::bad_request(format!("the name of the object ({given}) does not match the name on the URL ({name})"))
}

/// A body that is not an object: the parser's message, and the start of the body.
fn unrecognized(call: &Call, place: &Place, why: &str) -> ApiError {
    unrecognized_kind(call, &place.gvk.kind, why)
}

fn unrecognized_kind(call: &Call, kind: &str, why: &str) -> ApiError {
    unrecognized_object(call, kind, &format!("couldn't get version/kind; json parse error: {why}"))
}

fn unrecognized_object(call: &Call, kind: &str, why: &str) -> ApiError {
    const SHOWN: usize = 30;
    let begin = &call.body[..call.body.len().min(SHOWN)];
    let mut body = match call.body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(begin).into_owned(),
        Some(_) => begin.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if call.body.len() > SHOWN {
        body.push_str(" ...");
    }
    let message = format!("the object provided is unrecognized (must be of type {kind}): {why} ({body})");
    ApiError::bad_request(message)
}

/// What a server says of JSON that is no object, or whose kind is no text.
fn no_kind(value: &Value) -> Option<String> {
    let Some(fields) = value.as_object() else {
        let what = crate::error::json_type(value);
        return Some(format!(
            "json: cannot unmarshal {what} into Go value of type struct {{ APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
        ));
    };
    let is_other = |name: &&str| fields.get(*name).is_some_and(|value| !value.is_string() && !value.is_null());
    let name = ["apiVersion", "kind"].into_iter().find(is_other)?;
    let what = crate::error::json_type(&fields[name]);
    Some(format!("json: cannot unmarshal {what} into Go struct field .{name} of type string"))
}

/// The same of options.
pub(super) fn no_object(value: &Value) -> String {
    format!("couldn't get version/kind; json parse error: {}", no_kind(value).unwrap_or_default())
}

/// What a server says of a kind that it does not have.
pub(super) fn unknown_kind(kind: &str, api_version: &str) -> String {
    format!("no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\"")
}

fn is_known(api_version: &str, kind: &str) -> bool {
    let gvk = sk_core::Gvk::from_api_version(api_version, kind);
    gvk.is_ok_and(|gvk| {
        let is_served = |info: &&sk_core::registry::KindInfo| info.versions.contains(&gvk.version.as_str());
        sk_core::registry::find(&gvk).filter(is_served).is_some()
    })
}

fn text_of_name(fields: &serde_json::Map<String, Value>) -> String {
    let metadata = fields.get("metadata").unwrap_or(&Value::Null);
    metadata["name"].as_str().unwrap_or_default().to_owned()
}

/// A custom object must say what it is.
fn refuse_other_kind(
    call: &Call,
    place: &Place,
    (api_version, kind): (&str, &str),
    name: &str,
) -> Result<(), ApiError> {
    let missing = |what: &str| {
        let body = String::from_utf8_lossy(&call.body);
        Err(unrecognized_object(call, &place.gvk.kind, &format!("Object '{what}' is missing in '{body}'")))
    };
    let expected = place.gvk.api_version();
    if kind.is_empty() {
        return missing("Kind");
    }
    if api_version.is_empty() {
        return missing("apiVersion");
    }
    if api_version != expected {
        let message =
            format!("the API version in the data ({api_version}) does not match the expected API version ({expected})");
        return Err(ApiError::bad_request(message));
    }
    if kind != place.gvk.kind.as_str() {
        let why = format!("Invalid value: {kind:?}: must be {}", place.gvk.kind);
        let given = sk_core::Gvk { kind: kind.into(), ..place.gvk.clone() };
        return Err(ApiError::invalid(&given, name, &[crate::error::Invalid::new("kind", why)]));
    }
    Ok(())
}

/// What is done to an object must speak of the object of the path.
pub(super) fn refuse_misnamed(body: &Value, target: &sk_core::ObjectRef, what: &str) -> Result<(), ApiError> {
    let name = body.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if name == target.key.name.as_str() {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("name in URL does not match name in {what} object")))
}

pub(super) fn not_allowed() -> ApiError {
    ApiError::new(Reason::MethodNotAllowed, "the server does not allow this method on the requested resource")
}
