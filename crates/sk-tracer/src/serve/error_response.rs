//! Error responses: a status code and a JSON object with the reason.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

/// Why a request was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ErrorResponse {
    pub(crate) status: StatusCode,
    pub(crate) error: String,
}

impl ErrorResponse {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, error: error.into() }
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({"error": self.error}))).into_response();
        let header = match self.status {
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, "5")),
            _ => None,
        };
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

pub(super) async fn not_found() -> ErrorResponse {
    ErrorResponse::new(StatusCode::NOT_FOUND, "not found; the paths are /export, /healthz, /readyz and /metrics")
}

pub(super) async fn wrong_method() -> ErrorResponse {
    ErrorResponse::new(StatusCode::METHOD_NOT_ALLOWED, "/export is POST, the others are GET")
}
