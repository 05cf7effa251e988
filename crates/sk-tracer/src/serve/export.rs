//! `POST /export`: authenticate, check the request, export, respond. Every request writes one audit line.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use futures::stream;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sk_api::tracer::ExportRequest;
use sk_serve::body::{self, BodyError};
use sk_serve::{ConnectionHandle, Work};
use sk_store::Location;
use sk_store::location::shown;
use sk_store::log::ExportError as LogExportError;
use sk_store::trace::WriteError;

use super::destination::Destination;
use super::{ErrorResponse, Served, export_request};
use crate::auth;
use crate::export::{ExportError, Spooled};

/// How much of a trace is in memory at a time while it is sent.
const CHUNK_BYTES: usize = 64 << 10;

/// An export request is a few hundred bytes; with a thousand label selectors it is a hundred thousand.
const MAX_BODY_BYTES: usize = 256 << 10;

pub(super) async fn export(
    State(served): State<Arc<Served>>,
    Extension(connection): Extension<ConnectionHandle>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let body = body::read(body, MAX_BODY_BYTES).await;
    // In a task of its own, so that a caller who goes away leaves an audit line too, and does not free a place among the
    // exports that is still taken.
    match tokio::spawn(audited(served, connection, headers, body)).await {
        Ok(response) => response,
        Err(_) => ErrorResponse::new(StatusCode::INTERNAL_SERVER_ERROR, "the export ended unexpectedly".to_owned())
            .into_response(),
    }
}

async fn audited(
    served: Arc<Served>,
    connection: ConnectionHandle,
    headers: HeaderMap,
    body: Result<Bytes, BodyError>,
) -> Response {
    let began = Instant::now();
    let mut audit = Audit::default();
    let done = answer(&served, &connection, &headers, body, &mut audit).await;
    let status = done.as_ref().map_or_else(|answer| answer.status, Response::status);
    served.metrics.exported(status.as_u16());
    served.metrics.export_seconds.observe(began.elapsed().as_secs_f64());
    audit.write(status, done.as_ref().err().map(|answer| answer.error.as_str()));
    done.unwrap_or_else(ErrorResponse::into_response)
}

async fn answer(
    served: &Served,
    connection: &ConnectionHandle,
    headers: &HeaderMap,
    body: Result<Bytes, BodyError>,
    audit: &mut Audit,
) -> Result<Response, ErrorResponse> {
    let bad = |error: String| ErrorResponse::new(StatusCode::BAD_REQUEST, error);
    // What is asked is read before it is known who asks: a refusal, too, says in its audit line what was refused.
    let request = read(body, audit);
    let work = admit(served, connection, headers, audit).await?;
    let request = request?;
    let (query, format) =
        export_request::parse(&request, served.exporter.now()).map_err(|error| bad(error.to_string()))?;
    let destination =
        Destination::read(&request.export_path, &served.export_to).map_err(|error| bad(error.to_string()))?;
    let spooled = served.exporter.export(query, format).await.map_err(|error| refusal(&error))?;
    audit.bytes = spooled.bytes;
    served.metrics.export_bytes.inc_by(spooled.bytes);
    match destination {
        Destination::Caller => Ok(work.until_sent(trace(spooled))),
        Destination::Store(place) => upload(spooled, place).await,
    }
}

/// Parses the request, and notes as much of it as may be logged.
fn read(body: Result<Bytes, BodyError>, audit: &mut Audit) -> Result<ExportRequest, ErrorResponse> {
    let body = body.map_err(|error| {
        audit.asked = match &error {
            BodyError::TooLarge { limit } => format!("more than {limit} bytes"),
            BodyError::TooSlow | BodyError::BrokenOff(_) => "an incomplete body".to_owned(),
        };
        let status = match error {
            BodyError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            BodyError::TooSlow => StatusCode::REQUEST_TIMEOUT,
            BodyError::BrokenOff(_) => StatusCode::BAD_REQUEST,
        };
        ErrorResponse::new(status, format!("{error}; an export request is a few hundred bytes of JSON"))
    })?;
    audit.asked = format!("{} bytes that are not an export request", body.len());
    let request: ExportRequest = serde_json::from_slice(&body).map_err(|error| {
        ErrorResponse::new(StatusCode::BAD_REQUEST, format!("the body is not an export request: {error}"))
    })?;
    audit.asked = asked(&request);
    audit.is_read = true;
    Ok(request)
}

/// Authorises the caller, and notes the user.
async fn admit(
    served: &Served,
    connection: &ConnectionHandle,
    headers: &HeaderMap,
    audit: &mut Audit,
) -> Result<Work, ErrorResponse> {
    if let Some(gate) = &served.gate {
        let checked = gate.check(connection.from(), headers).await;
        audit.caller = match &checked {
            Ok(user) => Some(user.clone()),
            Err(refusal) => refusal.user().map(str::to_owned),
        };
        checked.map_err(|refusal| {
            let (status, error) = auth::answer(&refusal);
            ErrorResponse::new(status, error)
        })?;
    }
    connection.work().map_err(|busy| ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, busy.to_string()))
}

fn refusal(error: &ExportError) -> ErrorResponse {
    let status = match error {
        ExportError::Busy => StatusCode::TOO_MANY_REQUESTS,
        ExportError::Log(LogExportError::OutsideRetention { .. }) => StatusCode::RANGE_NOT_SATISFIABLE,
        ExportError::Log(LogExportError::Window { .. }) => StatusCode::BAD_REQUEST,
        ExportError::Log(LogExportError::TooMany { .. }) => StatusCode::PAYLOAD_TOO_LARGE,
        ExportError::Log(LogExportError::Empty) | ExportError::Flush(_) => StatusCode::SERVICE_UNAVAILABLE,
        ExportError::NoRoom(_) => StatusCode::INSUFFICIENT_STORAGE,
        ExportError::Spool(problem)
        | ExportError::Log(LogExportError::Write(WriteError::Output(problem) | WriteError::Spool(problem)))
            if problem.kind() == io::ErrorKind::StorageFull =>
        {
            StatusCode::INSUFFICIENT_STORAGE
        }
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    ErrorResponse::new(status, error.to_string())
}

/// The trace as an answer of known length. Its place among the exports is free again when the last byte is sent.
fn trace(spooled: Spooled) -> Response {
    let (bytes, doubts) = (spooled.bytes, doubts(&spooled));
    let chunks = stream::try_unfold(spooled, |mut spooled| async move {
        let read = tokio::task::spawn_blocking(move || {
            let mut chunk = vec![0; CHUNK_BYTES];
            let length = spooled.file.read(&mut chunk)?;
            chunk.truncate(length);
            Ok::<_, io::Error>((chunk, spooled))
        });
        let (chunk, spooled) = read.await.map_err(io::Error::other)??;
        Ok::<_, io::Error>((!chunk.is_empty()).then(|| (Bytes::from(chunk), spooled)))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
    headers.extend(doubts);
    response
}

/// Response headers that limit the trust in a trace: watches that had not caught up, gaps, losses.
fn doubts(spooled: &Spooled) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let kinds = spooled.behind.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if let Some(kinds) = HeaderValue::from_str(&kinds).ok().filter(|kinds| !kinds.is_empty()) {
        headers.insert("x-simkube-behind", kinds);
    }
    if spooled.exported.gaps > 0 {
        headers.insert("x-simkube-gaps", HeaderValue::from(spooled.exported.gaps));
    }
    let losses = spooled.exported.losses;
    if let Some(losses) = HeaderValue::from_str(&losses.to_string()).ok().filter(|_| !losses.is_none()) {
        headers.insert("x-simkube-losses", losses);
    }
    headers
}

/// Puts the trace into an object store.
async fn upload(spooled: Spooled, place: Location) -> Result<Response, ErrorResponse> {
    let failed =
        |error: String| ErrorResponse::new(StatusCode::BAD_GATEWAY, format!("write the trace to {place}: {error}"));
    let (target, doubts) = (place.clone(), doubts(&spooled));
    let written = tokio::task::spawn_blocking(move || -> Result<(), String> {
        let mut spooled = spooled;
        let mut out = target.create().map_err(|error| error.to_string())?;
        io::copy(&mut spooled.file, &mut out).map_err(|error| error.to_string())?;
        out.commit().map_err(|error| error.to_string())
    });
    written.await.map_err(|error| failed(error.to_string()))?.map_err(failed)?;
    Ok((StatusCode::OK, doubts).into_response())
}

/// How much of a request is written into the audit line: a window, a place and a dozen filters.
const MAX_AUDITED_CHARS: usize = 2 << 10;

/// A request as the audit line has it: what was understood of it, and the place without what lets one in there.
fn asked(request: &ExportRequest) -> String {
    let request = ExportRequest { export_path: shown(&request.export_path), ..request.clone() };
    let text = serde_json::to_string(&request).unwrap_or_default();
    text.chars().take(MAX_AUDITED_CHARS).collect()
}

/// The audit line of an export: user, request, outcome. Never a token, and nothing of a body that could not be parsed: it
/// may contain anything.
#[derive(Default)]
struct Audit {
    /// The user of the token, allowed or not. None with `--insecure`, or if the API server knows none.
    caller: Option<String>,
    asked: String,
    /// Was the request parsed? Otherwise the error is not logged either, because it quotes the body.
    is_read: bool,
    bytes: u64,
}

impl Audit {
    fn write(&self, status: StatusCode, error: Option<&str>) {
        let error = error.filter(|_| self.is_read || status != StatusCode::BAD_REQUEST);
        tracing::info!(
            target: "sk_tracer::audit",
            authenticated = self.caller.is_some(),
            caller = %self.caller.as_deref().unwrap_or_default().escape_debug(),
            asked = %self.asked.escape_debug(),
            bytes = self.bytes,
            status = status.as_u16(),
            error = error.unwrap_or_default(),
            "export"
        );
    }
}

#[cfg(test)]
mod tests {
    use sk_store::disk_space::NoRoom;

    use super::*;

    #[test]
    fn the_audit_line_has_the_window_and_the_filters_and_no_secret_of_the_place() {
        let request: ExportRequest = serde_json::from_str(
            r#"{"start_ts": 10.5, "end_ts": 20, "export_path": "https://key:hidden@host/x?X-Amz-Signature=hidden",
                "filters": {"excluded_namespaces": ["kube-system"], "excluded_labels": [{"matchLabels": {"a": "b"}}]}}"#,
        )
        .unwrap();
        let asked = asked(&request);
        for part in ["10.5", "20", "https://host/x", "kube-system", "matchLabels"] {
            assert!(asked.contains(part), "{part} is not in {asked}");
        }
        assert!(!asked.contains("hidden") && !asked.contains("key:"), "{asked}");
        let long = ExportRequest { export_path: "x".repeat(MAX_AUDITED_CHARS), ..request };
        assert_eq!(super::asked(&long).len(), MAX_AUDITED_CHARS, "and it is not longer than a line should be");
    }

    #[test]
    fn want_of_room_is_507_whenever_it_is_noticed() {
        let no_room = NoRoom { free: 1, floor: 2 };
        let while_written = || io::Error::from(no_room);
        for error in [
            ExportError::NoRoom(no_room),
            ExportError::Spool(while_written()),
            ExportError::Log(LogExportError::Write(WriteError::Output(while_written()))),
            ExportError::Log(LogExportError::Write(WriteError::Spool(while_written()))),
        ] {
            let answer = refusal(&error);
            assert_eq!(answer.status, StatusCode::INSUFFICIENT_STORAGE, "{error:?}");
            assert!(answer.error.contains("a shorter window"), "{}", answer.error);
        }
    }
}
