//! What the API server says when it refuses: the parts of Kubernetes' `Status` that clients act on.

use serde_json::{Value, json};
use sk_core::registry::GroupResource;
use sk_core::{Gvk, ObjectKey};

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
    /// 429: not now, as an eviction is told that a disruption budget holds back
    TooManyRequests,
    /// 500
    InternalError,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The machine-readable reason.
    pub reason: Reason,
    /// The sentence, in Kubernetes' words.
    pub message: String,
}

/// One field of an object that is not valid, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invalid {
    field: String,
    why: String,
}

impl Invalid {
    pub(crate) fn new(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self { field: field.into(), why: why.into() }
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
            Self::InternalError => 500,
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
            Self::InternalError => "InternalError",
        }
    }
}

impl ApiError {
    pub(crate) fn not_found(gvk: &Gvk, name: &str) -> Self {
        Self { reason: Reason::NotFound, message: format!("{} \"{name}\" not found", GroupResource(gvk)) }
    }

    pub(crate) fn already_exists(gvk: &Gvk, name: &str) -> Self {
        Self { reason: Reason::AlreadyExists, message: format!("{} \"{name}\" already exists", GroupResource(gvk)) }
    }

    pub(crate) fn conflict(gvk: &Gvk, name: &str, what: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {what}", GroupResource(gvk));
        Self { reason: Reason::Conflict, message }
    }

    pub(crate) fn stale(gvk: &Gvk, name: &str) -> Self {
        let what = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(gvk, name, what)
    }

    pub(crate) fn forbidden(gvk: &Gvk, name: &str, why: &str) -> Self {
        Self { reason: Reason::Forbidden, message: format!("{} \"{name}\" is forbidden: {why}", GroupResource(gvk)) }
    }

    pub(crate) fn invalid(gvk: &Gvk, key: &ObjectKey, invalid: &Invalid) -> Self {
        let group = if gvk.group.is_empty() { String::new() } else { format!(".{}", gvk.group) };
        let Invalid { field, why } = invalid;
        let message = format!("{}{group} \"{}\" is invalid: {field}: {why}", gvk.kind, key.name);
        Self { reason: Reason::Invalid, message }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self { reason: Reason::BadRequest, message: message.into() }
    }

    /// As the API server would send it.
    pub fn to_json(&self) -> Value {
        json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason.as_str(),
            "code": self.reason.code(),
        })
    }
}
