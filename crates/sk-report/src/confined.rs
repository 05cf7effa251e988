//! Assertions evaluated at arm's length: questions and answers as bytes, for a process with limits.
//!
//! The process is not made here: this module only says what is asked and answers it, so sk-report stays pure. An
//! [`Evaluator`] keeps the figures that it was told, because several assertions are judged by the same ones.

use serde::{Deserialize, Serialize};
use sk_record::Group;

use crate::assertion::{Assertion, AssertionError, Evaluated, Verdict, check, compiled};
use crate::baseline::Scope;
use crate::figure::{Figure, Typed};

/// What is asked about assertions.
#[derive(Debug, Serialize, Deserialize)]
pub enum Question {
    /// Is this assertion well-formed, and does it name only figures that exist? The groups are the scenario's.
    Check(Assertion, Vec<Group>, Scope),
    /// These are the figures of the run that is judged next.
    Figures(Typed),
    /// Does this assertion hold for them?
    Judge(Assertion),
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    /// Whether it is well-formed.
    Checked(Result<(), AssertionError>),
    /// The figures are there.
    Kept,
    /// What became of it.
    Judged(Verdict),
    /// The question could not be read.
    NotUnderstood(String),
}

/// Answers one question after the other.
#[derive(Debug, Default)]
pub struct Evaluator {
    figures: Option<Figure>,
}

impl Evaluator {
    /// Answers a question, both as bytes.
    pub fn answer(&mut self, question: &[u8]) -> Vec<u8> {
        let answer = match decode(question) {
            Ok(question) => self.reply(question),
            Err(error) => Answer::NotUnderstood(error),
        };
        // An answer is texts, numbers and lists, which any encoding holds; an empty one is not understood by the asker.
        encode(&answer).unwrap_or_default()
    }

    fn reply(&mut self, question: Question) -> Answer {
        match question {
            Question::Check(assertion, groups, scope) => Answer::Checked(check(&[assertion], &groups, scope).map(drop)),
            Question::Figures(figures) => {
                self.figures = Some(figures.into());
                Answer::Kept
            }
            Question::Judge(assertion) => Answer::Judged(self.judge(&assertion)),
        }
    }

    fn judge(&self, assertion: &Assertion) -> Verdict {
        let unknown = |why: String| {
            let Assertion { name, text } = assertion.clone();
            Verdict { name, text, result: Evaluated::Unknown(why), values: Vec::new() }
        };
        let Some(figures) = &self.figures else { return unknown("there are no figures to judge by".to_owned()) };
        match compiled(assertion.clone()) {
            Ok(checked) => {
                let verdict = checked.judge(figures).pop();
                verdict.unwrap_or_else(|| unknown("it was not judged".to_owned()))
            }
            Err(error) => unknown(error.problem),
        }
    }
}

/// A question or an answer as bytes.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, String> {
    rmp_serde::to_vec(message).map_err(|error| error.to_string())
}

/// A question or an answer from bytes.
pub fn decode<'a, M: Deserialize<'a>>(bytes: &'a [u8]) -> Result<M, String> {
    rmp_serde::from_slice(bytes).map_err(|error| error.to_string())
}
