//! Liveness, readiness and metrics endpoints.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};

use super::{ErrorResponse, Served};

/// As Prometheus asks for it.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) async fn healthz(State(served): State<Arc<Served>>) -> Result<&'static str, ErrorResponse> {
    if served.health.is_alive() {
        Ok("ok\n")
    } else {
        Err(ErrorResponse::new(StatusCode::INTERNAL_SERVER_ERROR, "the store task has ended; restart the tracer"))
    }
}

pub(super) async fn readyz(State(served): State<Arc<Served>>) -> Result<String, ErrorResponse> {
    let report = served.health.report();
    if report.is_ready() {
        Ok(report.to_string())
    } else {
        Err(ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, report.to_string()))
    }
}

pub(super) async fn metrics(State(served): State<Arc<Served>>) -> Response {
    ([(header::CONTENT_TYPE, OPEN_METRICS)], served.metrics.text()).into_response()
}
