//! The API as HTTP clients see it: a method, a path and a body in, a status code and JSON out.
//!
//! No socket and no thread: whoever has a connection hands over what came and sends back what is answered. Paths are read
//! in [`path`], answers are written in [`reply`]; this file decides which verb a call means. Everything that changes
//! something goes through [`ApiServer::handle`].

mod path;
mod reply;
mod verbs;

use serde_json::Value;
use sk_core::SimTime;

pub use reply::Reply;

use crate::ApiError;
use crate::server::ApiServer;

/// The largest body that is read: what a real server takes (3 MiB, `DefaultMaxRequestSizeBytes`).
pub const MAX_BODY_BYTES: usize = 3 << 20;

/// What a client wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Creates.
    Post,
    /// Replaces.
    Put,
    /// Changes.
    Patch,
    /// Deletes.
    Delete,
}

/// One call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// What is wanted.
    pub method: Method,
    /// Path and query, as in the first line of an HTTP request.
    pub path: String,
    /// The type of the body; only patches look at it.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
}

impl ApiServer {
    /// Answers a call at the time `now`.
    pub fn serve(&mut self, now: SimTime, call: &Call) -> Reply {
        let (path, query) = call.path.split_once('?').unwrap_or((&call.path, ""));
        let Some(place) = path::find(self, path) else {
            return if path::is_group(path) { Reply::not_served() } else { Reply::no_such_page() };
        };
        let query = path::Query::read(query);
        self.answer(now, call, &place, &query).unwrap_or_else(|error| Reply::refused(&error, &place))
    }
}

/// What Go's parser says of JSON that ends too early, and what ours says of everything else.
fn parse_error(error: &serde_json::Error) -> String {
    if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() }
}

/// The body as JSON; no body is `null`.
fn body_of(call: &Call) -> Result<Value, ApiError> {
    if call.body.len() > MAX_BODY_BYTES {
        let message = format!("Request entity too large: limit is {MAX_BODY_BYTES}");
        return Err(ApiError::new(crate::Reason::RequestEntityTooLarge, message));
    }
    if call.body.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&call.body).map_err(|error| ApiError::bad_request(parse_error(&error)))
}
