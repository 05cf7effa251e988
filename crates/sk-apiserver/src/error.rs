//! The API server's errors: the parts of Kubernetes' `Status` that clients act on.

use serde_json::{Value, json};
use sk_core::Gvk;
use sk_core::registry::GroupResource;

/// Why a request was refused, by Kubernetes' own names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// 400
    BadRequest,
    /// 403
    Forbidden,
    /// 404
    NotFound,
    /// 405
    MethodNotAllowed,
    /// 409, on create
    AlreadyExists,
    /// 409, on a stale resource version or uid
    Conflict,
    /// 410: a watch or a list wants to go on from where the log no longer reaches back to
    Expired,
    /// 413
    RequestEntityTooLarge,
    /// 415: a patch of a type that the kind does not take
    UnsupportedMediaType,
    /// 422
    Invalid,
    /// 429: not now, such as an eviction that a disruption budget forbids
    TooManyRequests,
    /// 504: a list wants a version that is not there yet
    Timeout,
    /// 500
    InternalError,
    /// 500, of an error that has no name
    Unknown,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The machine-readable reason.
    pub reason: Reason,
    /// Kubernetes' message.
    pub message: String,
    /// Which object it is about, and which of its fields.
    pub about: Option<Box<About>>,
}

/// What a refusal is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The kind, where it may be another than that of the request's path.
    pub of: Option<Gvk>,
    /// The object's name.
    pub name: String,
    /// Its fields that are not valid.
    pub causes: Vec<Cause>,
    /// What the details call its kind, where that is not the plural of the path: `pods/binding`, a kind.
    pub called: Option<String>,
    /// In so many seconds it may be asked again.
    pub retry_after_secs: Option<u32>,
}

/// Why one field is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// By Kubernetes' own names, `FieldValueInvalid` and the like.
    pub reason: &'static str,
    /// The sentence.
    pub message: String,
    /// The field.
    pub field: String,
}

/// The cause that a server names where a namespace is going (`NamespaceTerminatingCause`).
const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// The cause that a server names where it has not come so far (`CauseTypeResourceVersionTooLarge`).
const RESOURCE_VERSION_TOO_LARGE: &str = "ResourceVersionTooLarge";

/// The cause that a server names where a disruption budget holds back (`DisruptionBudgetCause`).
const DISRUPTION_BUDGET: &str = "DisruptionBudget";

/// One field of an object that is not valid, and why: `Required value`, `Invalid value: "x": must be ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invalid {
    field: String,
    why: String,
    is_of_type: bool,
}

/// The cause when another manager owns a field (`CauseTypeFieldManagerConflict`).
pub(crate) const FIELD_MANAGER_CONFLICT: &str = "FieldManagerConflict";

/// How reasons begin, and what a cause calls them (`apimachinery/pkg/util/validation/field/errors.go`, 1.36).
const CAUSES: [(&str, &str); 9] = [
    ("Required value", "FieldValueRequired"),
    ("Invalid value", "FieldValueInvalid"),
    ("Unsupported value", "FieldValueNotSupported"),
    ("Duplicate value", "FieldValueDuplicate"),
    ("Forbidden", "FieldValueForbidden"),
    ("Too long", "FieldValueTooLong"),
    ("Too many", "FieldValueTooMany"),
    ("Not found", "FieldValueNotFound"),
    ("Internal error", "InternalError"),
];

impl Invalid {
    pub(crate) fn new(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self { field: field.into(), why: why.into(), is_of_type: false }
    }

    /// A value of another type than its schema says: an invalid value with a name of its own.
    pub(crate) fn of_type(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self { is_of_type: true, ..Self::new(field, why) }
    }

    /// Which field.
    pub(crate) fn field(&self) -> &str {
        &self.field
    }

    fn cause(&self) -> Cause {
        let named = CAUSES.iter().find(|(begin, _)| self.why.starts_with(begin));
        let reason = match named {
            _ if self.is_of_type => "FieldValueTypeInvalid",
            Some((_, reason)) => reason,
            None => "FieldValueInvalid",
        };
        Cause { reason, message: self.why.clone(), field: self.field.clone() }
    }
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.why)
    }
}

impl Cause {
    /// As the API server would send it.
    pub fn to_json(&self) -> Value {
        let mut cause = json!({"reason": self.reason, "message": self.message});
        if !self.field.is_empty() {
            cause["field"] = self.field.as_str().into();
        }
        cause
    }
}

/// What Go's decoder calls a JSON value.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

impl Reason {
    /// The HTTP status code.
    pub fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Expired => 410,
            Self::RequestEntityTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::TooManyRequests => 429,
            Self::Timeout => 504,
            Self::InternalError | Self::Unknown => 500,
        }
    }

    /// The word in a `Status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "BadRequest",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::AlreadyExists => "AlreadyExists",
            Self::Conflict => "Conflict",
            Self::Expired => "Expired",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::Invalid => "Invalid",
            Self::TooManyRequests => "TooManyRequests",
            Self::Timeout => "Timeout",
            Self::InternalError => "InternalError",
            Self::Unknown => "",
        }
    }
}

impl ApiError {
    /// A refusal that is about no object in particular.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), about: None }
    }

    pub(crate) fn named(reason: Reason, name: &str, message: String) -> Self {
        let about = About { name: name.to_owned(), ..About::default() };
        Self { reason, message, about: Some(Box::new(about)) }
    }

    pub(crate) fn not_found(gvk: &Gvk, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", GroupResource(gvk));
        let about = About { of: Some(gvk.clone()), name: name.to_owned(), ..About::default() };
        Self { reason: Reason::NotFound, message, about: Some(Box::new(about)) }
    }

    pub(crate) fn already_exists(gvk: &Gvk, name: &str) -> Self {
        Self::named(Reason::AlreadyExists, name, format!("{} \"{name}\" already exists", GroupResource(gvk)))
    }

    pub(crate) fn conflict(gvk: &Gvk, name: &str, what: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {what}", GroupResource(gvk));
        Self::named(Reason::Conflict, name, message)
    }

    /// A conflict about something that is not called by the plural of the path: a kind, a subresource.
    pub(crate) fn conflict_on(group: &str, called: &str, name: &str, what: &str) -> Self {
        let whole = if group.is_empty() { called.to_owned() } else { format!("{called}.{group}") };
        let message = format!("Operation cannot be fulfilled on {whole} \"{name}\": {what}");
        let about = About { name: name.to_owned(), called: Some(called.to_owned()), ..About::default() };
        Self { reason: Reason::Conflict, message, about: Some(Box::new(about)) }
    }

    /// A list wants a version that is not there yet.
    pub(crate) fn too_new(asked: u64, newest: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {newest}");
        let cause = Cause {
            reason: RESOURCE_VERSION_TOO_LARGE,
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        let about = About { causes: vec![cause], retry_after_secs: Some(1), ..About::default() };
        Self { reason: Reason::Timeout, message, about: Some(Box::new(about)) }
    }

    /// An eviction that the pod's budget does not allow now; `None` if it is unknown when it will.
    pub(crate) fn disruption_budget(why: String, retry_after_secs: Option<u32>) -> Self {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.".to_owned();
        let cause = Cause { reason: DISRUPTION_BUDGET, message: why, field: String::new() };
        let about = About { causes: vec![cause], retry_after_secs, ..About::default() };
        Self { reason: Reason::TooManyRequests, message, about: Some(Box::new(about)) }
    }

    pub(crate) fn stale(gvk: &Gvk, name: &str) -> Self {
        let what = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(gvk, name, what)
    }

    pub(crate) fn forbidden(gvk: &Gvk, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", GroupResource(gvk));
        Self::named(Reason::Forbidden, name, message)
    }

    pub(crate) fn namespace_terminating(gvk: &Gvk, name: &str, namespace: &str) -> Self {
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let cause = Cause {
            reason: NAMESPACE_TERMINATING,
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        };
        let about = About { name: name.to_owned(), causes: vec![cause], ..About::default() };
        Self { about: Some(Box::new(about)), ..Self::forbidden(gvk, name, &why) }
    }

    /// Was it refused because its namespace is terminating? Controllers ignore that error.
    pub fn is_namespace_terminating(&self) -> bool {
        self.about.iter().flat_map(|about| &about.causes).any(|cause| cause.reason == NAMESPACE_TERMINATING)
    }

    /// One field is named as it is, several in brackets (`NewInvalid`); duplicates are listed once.
    pub(crate) fn invalid(gvk: &Gvk, name: &str, invalid: &[Invalid]) -> Self {
        let mut said: Vec<String> = Vec::new();
        for one in invalid {
            let sentence = one.to_string();
            if !said.contains(&sentence) {
                said.push(sentence);
            }
        }
        let sentence = if said.len() == 1 { said.remove(0) } else { format!("[{}]", said.join(", ")) };
        let group = if gvk.group.is_empty() { String::new() } else { format!(".{}", gvk.group) };
        let message = format!("{}{group} \"{name}\" is invalid: {sentence}", gvk.kind);
        let causes = invalid.iter().map(Invalid::cause).collect();
        let about = About { of: Some(gvk.clone()), name: name.to_owned(), causes, ..About::default() };
        Self { reason: Reason::Invalid, message, about: Some(Box::new(about)) }
    }

    /// A value of the wrong type, with the decoder's message.
    pub(crate) fn in_kind(gvk: &Gvk, why: &str) -> Self {
        let (kind, version) = (&gvk.kind, &gvk.version);
        Self::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"))
    }

    /// What a patch has made of an object cannot be read: about no object in particular.
    pub(crate) fn unreadable_patch(text: &str, why: &str) -> Self {
        let quoted = Value::from(text);
        let cause = Invalid::new("patch", format!("Invalid value: {quoted}: {why}")).cause();
        let message = format!(" \"\" is invalid: patch: {}", cause.message);
        let about = About { causes: vec![cause], called: Some(String::new()), ..About::default() };
        Self { reason: Reason::Invalid, message, about: Some(Box::new(about)) }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message)
    }

    /// As the API server would send it.
    pub fn to_json(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.reason.code(),
        });
        if self.reason != Reason::Unknown {
            status["reason"] = self.reason.as_str().into();
        }
        status
    }
}
