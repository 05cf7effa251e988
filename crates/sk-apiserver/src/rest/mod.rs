//! The API as HTTP clients see it: a method, a path and a body in, a status code and JSON out.
//!
//! There is no socket and no thread here: the caller has the connection, passes in the request and sends the response.
//! [`path`] parses paths and [`reply`] writes responses; this file maps a request to a verb. Every write goes through
//! [`ApiServer::handle`].

mod apply;
mod delete;
mod options;
mod path;
mod reply;
mod strict;
mod verbs;

use serde_json::Value;
use sk_core::SimTime;

pub use reply::Reply;

use crate::managed::Writing;
use crate::server::ApiServer;
use crate::{ApiError, syntax};

/// The largest body that is read: what a real server takes (3 MiB, `DefaultMaxRequestSizeBytes`).
pub const MAX_BODY_BYTES: usize = 3 << 20;

/// How deep a body may be nested. A real server reads 10,000 levels; this one stops where the parser of JSON does, far
/// from the end of a stack.
pub const MAX_DEPTH: usize = 127;

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
        match options::write_is_trial(call, &query) {
            // A dry run changes a copy, which is then dropped.
            Ok(true) => self.clone().serve_at(now, call, &place, &query),
            Ok(false) => self.serve_at(now, call, &place, &query),
            Err(error) => Reply::refused(&error, &place),
        }
    }

    fn serve_at(&mut self, now: SimTime, call: &Call, place: &path::Place, query: &path::Query) -> Reply {
        let writer = apply::writer(now, place, query);
        self.writing = Some(Box::new(Writing::By(writer)));
        let answered = self.answer(now, call, place, query);
        self.writing = None;
        answered.unwrap_or_else(|error| Reply::refused(&called_by_plural(error, place), place))
    }
}

/// The plural of a custom kind is guessed where only the kind is known; its definition knows better.
fn called_by_plural(mut error: ApiError, place: &path::Place) -> ApiError {
    let (guessed, group) = (sk_core::registry::plural(&place.gvk), &place.gvk.group);
    if place.plural != *guessed {
        let from = format!("{guessed}.{group}");
        error.message = error.message.replace(&from, &format!("{}.{group}", place.plural));
    }
    error
}

/// What Go's parser says of text that is no JSON. What is only too deep for ours is named as what is too deep for it.
fn parse_error(error: &serde_json::Error, body: &[u8]) -> String {
    if error.to_string().starts_with("recursion limit exceeded") {
        let opened = if body.get(error.column().saturating_sub(1)) == Some(&b'{') { '{' } else { '[' };
        return format!("invalid character '{opened}' exceeded max depth");
    }
    syntax::syntax_error(body).unwrap_or_else(|| error.to_string())
}

fn refuse_large(call: &Call) -> Result<(), ApiError> {
    if call.body.len() <= MAX_BODY_BYTES {
        return Ok(());
    }
    let message = format!("Request entity too large: limit is {MAX_BODY_BYTES}");
    Err(ApiError::new(crate::Reason::RequestEntityTooLarge, message))
}

/// The body as JSON; no body is `null`.
fn body_of(call: &Call) -> Result<Value, ApiError> {
    refuse_large(call)?;
    if call.body.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&call.body).map_err(|error| ApiError::bad_request(parse_error(&error, &call.body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> Result<Value, ApiError> {
        let body = ["[".repeat(depth), "]".repeat(depth)].concat().into_bytes();
        let content_type = "application/json".to_owned();
        body_of(&Call { method: Method::Post, path: "/api/v1/namespaces".to_owned(), content_type, body })
    }

    #[test]
    fn a_body_may_be_as_deep_as_the_bound_says_and_no_deeper() {
        assert!(nested(MAX_DEPTH).is_ok());
        assert_eq!(nested(MAX_DEPTH + 1).unwrap_err().message, "invalid character '[' exceeded max depth");
    }
}
