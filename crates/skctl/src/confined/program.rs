//! A jq program that runs on one object at a time, in a process with limits.

use std::cell::RefCell;
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde_json::Value;
use sk_core::{ObjectRef, SimTime};
use sk_sandbox::{Limits, Stopped, Worker};
use sk_trace::transform::{Evaluate, Name, Outcome, Request, Response, decode, encode};

use super::PROGRAM;
use crate::failure::Interrupted;
use crate::progress;

/// For one object: a thousand times what a program that touches every field of a large one takes.
const TIME: Duration = Duration::from_secs(10);
/// An object of 1 MiB is about 30 MiB as values of jq; this is room for a few dozen copies of it.
const MEMORY_BYTES: u64 = 1 << 30;
/// Recursion that is no tail call: ten thousand levels of a few hundred bytes each are well within.
const STACK_BYTES: usize = 64 << 20;

/// A compiled program, elsewhere.
pub(crate) struct Confined(RefCell<Worker>);

impl Confined {
    /// Compiles a program.
    pub(crate) fn compile(code: &str) -> Result<Self> {
        let limits = Limits { time: TIME, memory_bytes: MEMORY_BYTES, stack_bytes: STACK_BYTES };
        let program = Self(RefCell::new(Worker::start(PROGRAM, limits, progress::is_interrupted)?));
        match program.ask(&Request::Compile(code.to_owned())) {
            Ok(Response::Compiled(compiled)) => {
                compiled?;
                Ok(program)
            }
            Ok(other) => Err(anyhow!("a jq program was compiled and the answer is {other:?}; please report this")),
            Err(Stopped::Interrupted) => Err(std::io::Error::other(Interrupted).into()),
            Err(stopped) => Err(anyhow!("the jq program: {stopped}")),
        }
    }

    fn ask(&self, request: &Request) -> Result<Response, Stopped> {
        let request = encode(request).map_err(Stopped::Broke)?;
        let answer = self.0.borrow_mut().ask(&request)?;
        decode(&answer).map_err(Stopped::Broke)
    }
}

impl Evaluate for Confined {
    fn run(&self, object: &Value, reference: &ObjectRef, at: SimTime) -> Result<Outcome, String> {
        match self.ask(&Request::Run(object.clone(), Name::from(reference), at.as_micros())) {
            Ok(Response::Ran(outcome)) => outcome,
            Ok(Response::NotUnderstood(why)) => Err(why),
            Ok(Response::Compiled(_)) => Err("the response is to another request; please report this".to_owned()),
            Err(stopped) => Err(stopped.to_string()),
        }
    }
}
