//! Which verb a call means, and what is answered.

use serde_json::{Value, json};
use sk_core::registry::Scope;
use sk_core::selector::SelectorError;
use sk_core::{FieldSelector, LabelSelector, SimTime};

use super::path::{Place, Query};
use super::{Call, Method, Reply, body_of, refuse_large};
use crate::read::ListOptions;
use crate::request::Subresource;
use crate::server::ApiServer;
use crate::{ApiError, DeleteOptions, Object, Patch, Propagation, Reason, Request, schema};

type Answered = Result<Reply, ApiError>;

impl ApiServer {
    pub(super) fn answer(&mut self, now: SimTime, call: &Call, place: &Place, query: &Query) -> Answered {
        if place.scope == Scope::Namespaced && place.namespace.is_none() && place.name.is_some() {
            return Ok(Reply::not_served());
        }
        match (place.name.is_some(), place.subresource.as_deref(), call.method) {
            (false, _, Method::Get) => self.read_many(place, query),
            (false, _, Method::Post) if place.scope == Scope::Cluster || place.namespace.is_some() => {
                self.post(now, call, place)
            }
            (false, _, Method::Delete) => self.delete_many(now, call, place, query),
            (false, _, Method::Post | Method::Put | Method::Patch) => Err(not_allowed()),
            (true, None, Method::Get) => self.get(&target(place)?).map(|object| Reply::object(200, &object)),
            (true, None, Method::Put) => self.put(now, call, place),
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
                let object = self.decoded(call, place)?;
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
                let name = place.name.clone().unwrap_or_default();
                let object = self.handle(now, Request::FinalizeNamespace { name })?;
                Ok(Reply::object(200, &object))
            }
            _ => Err(not_allowed()),
        }
    }

    /// The object in the body, of the kind and in the place that the path names.
    fn decoded(&self, call: &Call, place: &Place) -> Result<Object, ApiError> {
        let mut value = match body_of(call) {
            Ok(Value::Null) => return Err(unrecognized(call, place, "unexpected end of JSON input")),
            Err(error) if error.reason == Reason::BadRequest => return Err(unrecognized(call, place, &error.message)),
            other => other?,
        };
        let Some(fields) = value.as_object_mut() else {
            let what = crate::error::json_type(&value);
            let why = format!(
                "json: cannot unmarshal {what} into Go value of type struct {{ APIVersion string \
                 \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
            );
            return Err(unrecognized(call, place, &why));
        };
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
            let message = format!(
                "{kind} in version \"{version}\" cannot be handled as a {expected}: converting ({version}.{kind}) to \
                 ({group}.{expected}): unknown conversion"
            );
            return Err(ApiError::bad_request(message));
        }
        if let Some((_, version)) = self.admission.definitions.find(&place.gvk) {
            version.decode(&place.gvk, &mut value).map_err(|why| ApiError::in_kind(&place.gvk, &why))?;
        }
        self.placed(Object::read(value, place.namespace.as_ref())?, place)
    }

    /// The path and the object must agree on where it is.
    fn placed(&self, object: Object, place: &Place) -> Result<Object, ApiError> {
        if let Some(name) = place.name.as_ref().filter(|name| **name != object.key.name) {
            let message = match object.key.name.is_empty() {
                true => {
                    format!("the name of the object ({name} based on URL) was undeterminable: name must be provided")
                }
                false => {
                    format!("the name of the object ({}) does not match the name on the URL ({name})", object.key.name)
                }
            };
            return Err(ApiError::bad_request(message));
        }
        if place.scope == Scope::Namespaced && object.key.namespace != place.namespace {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(ApiError::bad_request(message));
        }
        Ok(object)
    }

    fn post(&mut self, now: SimTime, call: &Call, place: &Place) -> Answered {
        let object = self.decoded(call, place)?;
        if object.resource_version != 0 {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(ApiError::new(Reason::Unknown, message));
        }
        self.handle(now, Request::create(object)).map(|object| Reply::object(201, &object))
    }

    fn put(&mut self, now: SimTime, call: &Call, place: &Place) -> Answered {
        let object = self.decoded(call, place)?;
        self.refuse_unconditional(place, &object)?;
        self.handle(now, Request::update(object)).map(|object| Reply::object(200, &object))
    }

    /// Whoever replaces an object of a custom kind must say which version of it (`AllowUnconditionalUpdate`).
    fn refuse_unconditional(&self, place: &Place, object: &Object) -> Result<(), ApiError> {
        let is_custom = sk_core::registry::find(&place.gvk).is_none();
        if !is_custom || object.resource_version != 0 || self.store().get(&object.gvk, &object.key).is_none() {
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
        let patch = read(body_of(call).map_err(unreadable)?);
        let object = self.handle(now, Request::Patch { target: target(place)?, below, patch: Box::new(patch) })?;
        match below {
            Some(Subresource::Scale) => Ok(Reply { code: 200, body: self.scale_of(&object) }),
            Some(Subresource::Status) | None => Ok(Reply::object(200, &object)),
        }
    }

    fn rescale(&mut self, now: SimTime, call: &Call, place: &Place) -> Answered {
        let scale = schema::decode_part(schema::SCALE, body_of(call)?, "").map_err(ApiError::bad_request)?;
        let object = self.handle(now, Request::Scale { target: target(place)?, scale: Box::new(scale) })?;
        Ok(Reply { code: 200, body: self.scale_of(&object) })
    }

    fn bind_to(&mut self, now: SimTime, call: &Call, place: &Place) -> Answered {
        let binding = schema::decode_part(schema::BINDING, body_of(call)?, "").map_err(ApiError::bad_request)?;
        let pod = target(place)?;
        let node = binding.pointer("/target/name").and_then(Value::as_str).unwrap_or_default();
        if node.is_empty() {
            return Err(ApiError::new(Reason::Unknown, "target.name: Required value"));
        }
        let stored = self.get(&pod)?;
        self.handle(now, Request::Bind { pod: pod.key, uid: stored.uid, node: node.into() })?;
        Ok(Reply::success(201, None))
    }

    fn evict_one(&mut self, now: SimTime, call: &Call, place: &Place) -> Answered {
        schema::decode_part(schema::EVICTION, body_of(call)?, "").map_err(ApiError::bad_request)?;
        self.handle(now, Request::Evict { pod: target(place)?.key })?;
        Ok(Reply::success(201, None))
    }

    fn delete_one(&mut self, now: SimTime, call: &Call, place: &Place, query: &Query) -> Answered {
        let (target, options) = (target(place)?, delete_options(call, query)?);
        let object = self.handle(now, Request::Delete { target: target.clone(), options })?;
        let is_gone = self.store().get(&target.gvk, &target.key).is_none();
        if !is_gone || returns_deleted(&place.gvk.kind) {
            return Ok(Reply::object(200, &object));
        }
        let mut details =
            json!({"name": object.key.name.as_str(), "kind": place.plural.as_str(), "uid": object.uid.to_string()});
        if !place.gvk.group.is_empty() {
            details["group"] = place.gvk.group.as_str().into();
        }
        Ok(Reply::success(200, Some(details)))
    }

    fn delete_many(&mut self, now: SimTime, call: &Call, place: &Place, query: &Query) -> Answered {
        let options = delete_options(call, query)?;
        let page = self.delete_collection(now, &place.gvk, &list_options(place, query)?, options)?;
        Ok(self.page(place, &page))
    }

    /// A list is called as the definition of its kind says.
    fn page(&self, place: &Place, page: &crate::read::Page) -> Reply {
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
        let options = list_options(place, query)?;
        if !query.is_true("watch") {
            let mut page = self.list(&place.gvk, &options)?;
            page.remaining = page.remaining.filter(|_| page.next.is_some());
            return Ok(self.page(place, &page));
        }
        let version = match query.get("resourceVersion") {
            None => 0,
            Some(version) => version.parse().map_err(|_| {
                let why = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
                ApiError::new(Reason::Unknown, format!("resourceVersion: Invalid value: {version:?}: {why}"))
            })?,
        };
        // Version 0 is "whatever there is": what is there comes first, as if it were new.
        let events = if version == 0 {
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
        let marked = query.is_true("allowWatchBookmarks");
        Ok(if marked { reply.bookmark(place, self.store().resource_version()) } else { reply })
    }
}

fn target(place: &Place) -> Result<sk_core::ObjectRef, ApiError> {
    place.target().ok_or_else(not_allowed)
}

/// A body that is no object at all: the parser's words, and the beginning of the body.
fn unrecognized(call: &Call, place: &Place, why: &str) -> ApiError {
    unrecognized_object(call, place, &format!("couldn't get version/kind; json parse error: {why}"))
}

fn unrecognized_object(call: &Call, place: &Place, why: &str) -> ApiError {
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
    let kind = &place.gvk.kind;
    let message = format!("the object provided is unrecognized (must be of type {kind}): {why} ({body})");
    ApiError::bad_request(message)
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
        Err(unrecognized_object(call, place, &format!("Object '{what}' is missing in '{body}'")))
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

fn not_allowed() -> ApiError {
    ApiError::new(Reason::MethodNotAllowed, "the server does not allow this method on the requested resource")
}

/// Kinds whose deletion answers with what was deleted (`ReturnDeletedObject`, 1.36); the others answer `Success`.
fn returns_deleted(kind: &str) -> bool {
    ["Pod", "PersistentVolume", "PersistentVolumeClaim", "PodTemplate", "ResourceQuota", "Service", "ServiceAccount"]
        .contains(&kind)
}

fn list_options(place: &Place, query: &Query) -> Result<ListOptions, ApiError> {
    let labels = match query.get("labelSelector") {
        None => LabelSelector::everything(),
        Some(text) => text.parse().map_err(|error| unreadable_selector(&error))?,
    };
    let fields: FieldSelector = match query.get("fieldSelector") {
        None => FieldSelector::default(),
        Some(text) => {
            let unreadable =
                |_| ApiError::bad_request(format!("invalid selector: '{text}'; can't understand '{text}'"));
            text.parse().map_err(unreadable)?
        }
    };
    let limit = query.get("limit").map(|limit| {
        limit.parse::<usize>().map_err(|_| ApiError::bad_request(format!("limit: {limit:?} is no number")))
    });
    Ok(ListOptions {
        namespace: place.namespace.clone(),
        labels,
        fields,
        limit: limit.transpose()?,
        token: query.get("continue").map(str::to_owned),
    })
}

/// What a server says of a label selector that it cannot read (`labels.Parse`).
fn unreadable_selector(error: &SelectorError) -> ApiError {
    let SelectorError::Syntax { found, expected, .. } = error else {
        return ApiError::bad_request(format!("unable to parse requirement: {error}"));
    };
    let found = if found == "the end" { "" } else { found };
    let of_requirement = match *expected {
        "one of = == != > < in notin" => "in, notin, =, ==, !=, gt, lt",
        "a value" => "identifier",
        "a value, `,` or `)`" => "',', ')' or identifier",
        "`(`" => return ApiError::bad_request(format!("unable to parse requirement: found '{found}' expected: '('")),
        "`,` or the end" => return ApiError::bad_request(format!("found '{found}', expected: ',' or 'end of string'")),
        _ => return ApiError::bad_request(format!("found '{found}', expected: !, identifier, or 'end of string'")),
    };
    ApiError::bad_request(format!("unable to parse requirement: found '{found}', expected: {of_requirement}"))
}

fn delete_options(call: &Call, query: &Query) -> Result<DeleteOptions, ApiError> {
    let body = body_of(call)?;
    let body = if body.is_null() { json!({}) } else { body };
    let read = schema::decode_part(schema::DELETE_OPTIONS, body, "").map_err(ApiError::bad_request)?;
    let text = |pointer: &str, name: &str| {
        read.pointer(pointer).and_then(Value::as_str).or_else(|| query.get(name)).map(str::to_owned)
    };
    let grace_secs = read.get("gracePeriodSeconds").and_then(Value::as_i64);
    let grace_secs = grace_secs.or_else(|| query.get("gracePeriodSeconds").and_then(|text| text.parse().ok()));
    let policy = text("/propagationPolicy", "propagationPolicy");
    let propagation = match policy.as_deref() {
        None => match read.get("orphanDependents").and_then(Value::as_bool) {
            Some(true) => Propagation::Orphan,
            Some(false) | None => Propagation::Background,
        },
        Some("Background") => Propagation::Background,
        Some("Foreground") => Propagation::Foreground,
        Some("Orphan") => Propagation::Orphan,
        Some(other) => {
            let why = format!(
                "Unsupported value: \"{other}\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
            );
            let invalid = [crate::error::Invalid::new("propagationPolicy", why)];
            let kind = sk_core::Gvk::new_static("meta.k8s.io", "v1", "DeleteOptions");
            return Err(ApiError::invalid(&kind, "", &invalid));
        }
    };
    let uid = text("/preconditions/uid", "").map(|uid| uid.parse()).transpose();
    let version = text("/preconditions/resourceVersion", "").map(|version| version.parse()).transpose();
    Ok(DeleteOptions {
        uid: uid.map_err(|error: crate::object::ParseUidError| ApiError::bad_request(error.to_string()))?,
        resource_version: version.map_err(|_| ApiError::bad_request("resourceVersion is no number"))?,
        grace_secs,
        propagation,
    })
}
