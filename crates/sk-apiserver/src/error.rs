//! What the API server says when it refuses: the parts of Kubernetes' `Status` that clients act on.

use serde_json::{Value, json};
use sk_core::{ObjectKey, SmolStr};

use crate::kinds::Resource;

/// Why a request was refused, by Kubernetes' own names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// 404
    NotFound,
    /// 409, on create
    AlreadyExists,
    /// 409, on a stale resource version or uid
    Conflict,
    /// 422
    Invalid,
    /// 400
    BadRequest,
    /// 403
    Forbidden,
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

impl Reason {
    /// The HTTP status code.
    pub fn code(self) -> u16 {
        match self {
            Self::NotFound => 404,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Invalid => 422,
            Self::BadRequest => 400,
            Self::Forbidden => 403,
        }
    }
}

impl ApiError {
    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        Self { reason: Reason::NotFound, message: format!("{resource} \"{name}\" not found") }
    }

    pub(crate) fn already_exists(resource: &Resource, name: &str) -> Self {
        Self { reason: Reason::AlreadyExists, message: format!("{resource} \"{name}\" already exists") }
    }

    pub(crate) fn conflict(resource: &Resource, name: &str, what: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} \"{name}\": {what}");
        Self { reason: Reason::Conflict, message }
    }

    pub(crate) fn stale(resource: &Resource, name: &str) -> Self {
        let what = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, what)
    }

    pub(crate) fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        Self { reason: Reason::Forbidden, message: format!("{resource} \"{name}\" is forbidden: {why}") }
    }

    pub(crate) fn invalid(resource: &Resource, key: &ObjectKey, field: &str, why: &str) -> Self {
        let group = if resource.gvk.group.is_empty() { String::new() } else { format!(".{}", resource.gvk.group) };
        let message = format!("{}{group} \"{}\" is invalid: {field}: {why}", resource.gvk.kind, key.name);
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
            "reason": SmolStr::from(format!("{:?}", self.reason)),
            "code": self.reason.code(),
        })
    }
}
