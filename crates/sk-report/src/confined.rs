//! Assertions as requests and responses in bytes, for a process with limits.
//!
//! This module does not start the process: it defines the messages and evaluates them, so sk-report stays pure. An
//! [`Evaluator`] keeps the figures it received, because several assertions use the same ones.

use serde::{Deserialize, Serialize};
use sk_record::Group;

use crate::assertion::{Assertion, AssertionError, Evaluated, Verdict, check, compiled};
use crate::baseline::Scope;
use crate::figure::{Figure, Typed};

/// A request about assertions.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// Is this assertion well-formed, and does it name only figures that exist? The groups are the scenario's.
    Check(Assertion, Vec<Group>, Scope),
    /// The figures of the run that the next assertions are evaluated for.
    Figures(Typed),
    /// Does this assertion hold for these figures?
    Judge(Assertion),
}

/// The response to a [`Request`].
#[derive(Debug, Serialize, Deserialize)]
pub enum Response {
    /// Whether the assertion is well-formed.
    Checked(Result<(), AssertionError>),
    /// The figures were received.
    Kept,
    /// The verdict of an assertion.
    Judged(Verdict),
    /// The request could not be decoded.
    NotUnderstood(String),
}

/// Answers one request after the other.
#[derive(Debug, Default)]
pub struct Evaluator {
    figures: Option<Figure>,
}

impl Evaluator {
    /// Answers a request; both are bytes.
    pub fn answer(&mut self, request: &[u8]) -> Vec<u8> {
        let response = match decode(request) {
            Ok(request) => self.reply(request),
            Err(error) => Response::NotUnderstood(error),
        };
        // A response is strings, numbers and lists, which always encode; the caller cannot decode an empty one.
        encode(&response).unwrap_or_default()
    }

    fn reply(&mut self, request: Request) -> Response {
        match request {
            Request::Check(assertion, groups, scope) => {
                Response::Checked(check(&[assertion], &groups, scope).map(drop))
            }
            Request::Figures(figures) => {
                self.figures = Some(figures.into());
                Response::Kept
            }
            Request::Judge(assertion) => Response::Judged(self.judge(&assertion)),
        }
    }

    fn judge(&self, assertion: &Assertion) -> Verdict {
        let unknown = |why: String| {
            let Assertion { name, text } = assertion.clone();
            Verdict { name, text, result: Evaluated::Unknown(why), values: Vec::new() }
        };
        let Some(figures) = &self.figures else { return unknown("there are no figures to evaluate".to_owned()) };
        match compiled(assertion.clone()) {
            Ok(checked) => {
                let verdict = checked.judge(figures).pop();
                verdict.unwrap_or_else(|| unknown("it was not judged".to_owned()))
            }
            Err(error) => unknown(error.problem),
        }
    }
}

/// Encodes a request or a response.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, String> {
    rmp_serde::to_vec(message).map_err(|error| error.to_string())
}

/// Decodes a request or a response.
pub fn decode<'a, M: Deserialize<'a>>(bytes: &'a [u8]) -> Result<M, String> {
    rmp_serde::from_slice(bytes).map_err(|error| error.to_string())
}
