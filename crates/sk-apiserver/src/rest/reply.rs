//! HTTP responses: status code and JSON body.

use serde_json::{Map, Value, json};

use super::path::Place;
use crate::error::FIELD_MANAGER_CONFLICT;
use crate::read::{Page, Watched};
use crate::schema::written_object;
use crate::store::Change;
use crate::{ApiError, Object, Reason};

/// A status code and a body.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The HTTP status code.
    pub code: u16,
    /// The body: an object, a list, a `Status`; of a watch, a list of events.
    pub body: Value,
}

impl Reply {
    pub(super) fn object(code: u16, object: &Object) -> Self {
        Self { code, body: written_object(object) }
    }

    /// Nothing is served at the path: a server answers with a plain page.
    pub(super) fn no_such_page() -> Self {
        Self { code: 404, body: Value::from("404 page not found\n") }
    }

    /// The group is served, and this is not.
    pub(super) fn not_served() -> Self {
        let error = ApiError::new(Reason::NotFound, "the server could not find the requested resource");
        let mut body = error.to_json();
        body["details"] = json!({});
        Self { code: 404, body }
    }

    pub(super) fn refused(error: &ApiError, place: &Place) -> Self {
        let mut body = error.to_json();
        if let (Some(details), Some(fields)) = (details(error, place), body.as_object_mut()) {
            fields.insert("details".to_owned(), details);
        }
        Self { code: error.reason.code(), body }
    }

    /// `Success`, where a server returns no object.
    pub(super) fn success(code: u16, details: Option<Value>) -> Self {
        let mut body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
        match details {
            Some(details) => body["details"] = details,
            None => body["code"] = code.into(),
        }
        Self { code, body }
    }

    pub(super) fn page(place: &Place, page: &Page) -> Self {
        let mut metadata = Map::from_iter([("resourceVersion".to_owned(), page.resource_version.to_string().into())]);
        if let Some(next) = &page.next {
            metadata.insert("continue".to_owned(), next.as_str().into());
        }
        if let Some(remaining) = page.remaining {
            metadata.insert("remainingItemCount".to_owned(), remaining.into());
        }
        // The items of a list do not say again what they are.
        let item = |object: &Object| {
            let mut json = written_object(object);
            if let Some(fields) = json.as_object_mut().filter(|_| sk_core::registry::find(&place.gvk).is_some()) {
                fields.retain(|name, _| name != "apiVersion" && name != "kind");
            }
            json
        };
        let items: Vec<Value> = page.items.iter().map(|object| item(object)).collect();
        let kind = format!("{}List", place.gvk.kind);
        let body = json!({
            "kind": kind, "apiVersion": place.gvk.api_version(), "metadata": metadata, "items": items,
        });
        Self { code: 200, body }
    }

    pub(super) fn events(events: &[Watched]) -> Self {
        let event = |event: &Watched| {
            let change = match event.change {
                Change::Added => "ADDED",
                Change::Modified => "MODIFIED",
                Change::Deleted => "DELETED",
            };
            json!({"type": change, "object": written_object(&event.object)})
        };
        Self { code: 200, body: events.iter().map(event).collect() }
    }

    /// A watch that cannot continue is accepted, and its only event is the error.
    pub(super) fn expired(error: &ApiError) -> Self {
        Self { code: 200, body: json!([{"type": "ERROR", "object": error.to_json()}]) }
    }

    /// A bookmark: the resource version that a watcher has reached, or the end of its initial events.
    pub(super) fn bookmark(mut self, place: &Place, version: u64, is_initial: bool) -> Self {
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if is_initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let mut object = json!({"kind": place.gvk.kind, "apiVersion": place.gvk.api_version(), "metadata": metadata});
        // It is an object of the kind with nothing but a resource version.
        if let Some(of) = crate::schema::find(&place.gvk) {
            object = crate::schema::decode(&place.gvk, of, object.clone()).unwrap_or(object);
        }
        if let Value::Array(events) = &mut self.body {
            events.push(json!({"type": "BOOKMARK", "object": object}));
        }
        self
    }
}

/// Which object, and of an invalid one, which fields.
fn details(error: &ApiError, place: &Place) -> Option<Value> {
    let mut details = Map::new();
    match error.reason {
        Reason::BadRequest
        | Reason::Expired
        | Reason::RequestEntityTooLarge
        | Reason::InternalError
        | Reason::Unknown => return None,
        // Custom resources refuse a strategic merge patch with their own message.
        Reason::UnsupportedMediaType if sk_core::registry::find(&place.gvk).is_none() => return None,
        Reason::MethodNotAllowed | Reason::UnsupportedMediaType => return Some(json!({})),
        Reason::Forbidden
        | Reason::NotFound
        | Reason::AlreadyExists
        | Reason::Conflict
        | Reason::Invalid
        | Reason::TooManyRequests
        | Reason::Timeout => {}
    }
    let about = error.about.as_deref();
    if about.is_none() {
        return Some(json!({}));
    }
    let causes = about.map_or(&[][..], |about| &about.causes);
    let causes_json = || causes.iter().map(crate::error::Cause::to_json).collect::<Value>();
    let is_about_fields = causes.iter().any(|cause| cause.reason == FIELD_MANAGER_CONFLICT);
    let is_about_nothing = about.is_some_and(|about| about.called.as_deref() == Some(""));
    if is_about_fields || is_about_nothing || matches!(error.reason, Reason::TooManyRequests | Reason::Timeout) {
        let mut details = json!({"causes": causes_json()});
        if let Some(seconds) = about.and_then(|about| about.retry_after_secs) {
            details["retryAfterSeconds"] = seconds.into();
        }
        return Some(details);
    }
    if let Some(about) = about.filter(|about| !about.name.is_empty()) {
        details.insert("name".to_owned(), about.name.as_str().into());
    }
    let of = about.and_then(|about| about.of.as_ref()).filter(|of| **of != place.gvk);
    let group = of.unwrap_or(&place.gvk).group.as_str();
    if !group.is_empty() {
        details.insert("group".to_owned(), group.into());
    }
    let called = about.and_then(|about| about.called.clone());
    let kind = match (error.reason, of) {
        _ if called.is_some() => called.unwrap_or_default(),
        (Reason::Invalid, of) => of.unwrap_or(&place.gvk).kind.to_string(),
        (_, Some(of)) => sk_core::registry::plural(of).into_owned(),
        (_, None) => place.plural.to_string(),
    };
    details.insert("kind".to_owned(), kind.into());
    if !causes.is_empty() {
        details.insert("causes".to_owned(), causes_json());
    }
    Some(Value::Object(details))
}
