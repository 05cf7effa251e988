//! Assertions: checked before a run and evaluated after it, in a child process, each within its own limits.
//!
//! [`sk_report::confined`] defines the messages and evaluates them; this module starts the process and asks it. Programs that
//! judge runs call [`serve`] at the start of `main`.

use std::process::ExitCode;
use std::time::Duration;

use sk_record::Group;
use sk_report::confined::{Evaluator, Request, Response, decode, encode};
use sk_report::figure::{Figure, Typed};
use sk_report::{Assertion, AssertionError, Evaluated, Scope, Verdict};

use crate::{Limits, Stopped, Worker, child};

/// The role of a child that evaluates assertions.
const ROLE: &str = "assertions";

/// For one assertion: evaluating one of 2 KiB over the figures of a hundred thousand owners takes a second.
const TIME: Duration = Duration::from_secs(10);
/// The program itself and what evaluating needs, without the figures.
const MEMORY_BYTES: u64 = 512 << 20;
/// Figures take about so many times their bytes: once as they came, once as a tree, once as CEL's own maps.
const MEMORY_PER_FIGURES_BYTE: u64 = 40;
/// The parser and the interpreter call themselves about once per bracket, of which 2 KiB of text hold a thousand.
const STACK_BYTES: usize = 64 << 20;

/// Why assertions could not be checked or evaluated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller does not want the answer any more.
    #[error("interrupted")]
    Interrupted,
    /// One of them is malformed, names a figure that does not exist, or takes too much to evaluate.
    #[error(transparent)]
    Assertion(#[from] AssertionError),
    /// The figures of the run did not reach the child.
    #[error("the figures cannot be judged: {0}")]
    Figures(String),
    /// The child could not be started.
    #[error(transparent)]
    Worker(Stopped),
    /// The child answered something else.
    #[error("the response to an assertion is {0}; please report this")]
    Unexpected(String),
}

impl Error {
    fn of_start(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Interrupted => Self::Interrupted,
            stopped => Self::Worker(stopped),
        }
    }
}

/// Evaluates assertions if this process was started for that; nothing for every other process.
pub fn serve() -> Option<ExitCode> {
    (child::role()? == ROLE).then(|| {
        let mut evaluator = Evaluator::default();
        child::serve(move |request| evaluator.answer(request))
    })
}

/// Assertions that are well-formed and name only figures that exist.
#[derive(Clone, Debug, Default)]
pub struct Checked(Vec<Assertion>);

/// Checks assertions before a run: syntax, names, types. `groups` are the scenario's, `scope` says what else can be named.
pub fn check(
    assertions: Vec<Assertion>,
    groups: &[Group],
    scope: Scope,
    is_interrupted: impl Fn() -> bool + Send + 'static,
) -> Result<Checked, Error> {
    if assertions.is_empty() {
        return Ok(Checked::default());
    }
    let mut worker = start(0, is_interrupted)?;
    for assertion in &assertions {
        let request = Request::Check(assertion.clone(), groups.to_owned(), scope);
        match ask(&mut worker, &request) {
            Ok(Response::Checked(checked)) => checked?,
            Ok(other) => return Err(Error::Unexpected(format!("{other:?}"))),
            Err(stopped) => return Err(refused(assertion, stopped)),
        }
    }
    Ok(Checked(assertions))
}

impl Checked {
    /// Does any of them name the run that this one is compared with? Told by its words, because only the process with
    /// limits reads expressions; one that has such a word in a text is taken for one that does, which costs a file.
    pub fn name_baseline(&self) -> bool {
        let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let names = |text: &str| text.split(|char| !is_word(char)).any(|word| ["baseline", "ratio"].contains(&word));
        self.0.iter().any(|assertion| names(&assertion.text))
    }

    /// Is there nothing to judge?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Judges a run. An assertion that takes too much is not judged, and those after it are.
    pub fn judge(
        &self,
        figures: &Figure,
        is_interrupted: impl Fn() -> bool + Clone + Send + 'static,
    ) -> Result<Vec<Verdict>, Error> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let figures = encode(&Request::Figures(Typed::from(figures))).map_err(Error::Figures)?;
        let mut judge: Option<Worker> = None;
        let mut verdicts = Vec::with_capacity(self.0.len());
        for assertion in &self.0 {
            let mut worker = match judge.take() {
                Some(worker) => worker,
                None => with_figures(&figures, is_interrupted.clone())?,
            };
            match ask(&mut worker, &Request::Judge(assertion.clone())) {
                Ok(Response::Judged(verdict)) => {
                    judge = Some(worker);
                    verdicts.push(verdict);
                }
                Ok(other) => return Err(Error::Unexpected(format!("{other:?}"))),
                // The run is there, and is kept: what is left of the assertions is not judged.
                Err(Stopped::Interrupted) => break,
                Err(stopped) => verdicts.push(unjudged(assertion, &stopped)),
            }
        }
        verdicts.extend(self.0[verdicts.len()..].iter().map(|assertion| unjudged(assertion, &Stopped::Interrupted)));
        Ok(verdicts)
    }
}

fn start(figures_bytes: usize, is_interrupted: impl Fn() -> bool + Send + 'static) -> Result<Worker, Error> {
    let memory_bytes = MEMORY_BYTES.saturating_add(MEMORY_PER_FIGURES_BYTE.saturating_mul(figures_bytes as u64));
    let limits = Limits { time: TIME, memory_bytes, stack_bytes: STACK_BYTES };
    Worker::start(ROLE, limits, is_interrupted).map_err(Error::of_start)
}

/// A process that has the figures.
fn with_figures(figures: &[u8], is_interrupted: impl Fn() -> bool + Send + 'static) -> Result<Worker, Error> {
    let mut worker = start(figures.len(), is_interrupted)?;
    match worker.ask(figures) {
        Ok(_) => Ok(worker),
        Err(Stopped::Interrupted) => Err(Error::Interrupted),
        Err(stopped) => Err(Error::Figures(stopped.to_string())),
    }
}

fn ask(worker: &mut Worker, request: &Request) -> Result<Response, Stopped> {
    let broke = |error: String| Stopped::Broke(error);
    let response = worker.ask(&encode(request).map_err(broke)?)?;
    decode(&response).map_err(broke)
}

fn refused(assertion: &Assertion, stopped: Stopped) -> Error {
    match stopped {
        Stopped::Interrupted => Error::Interrupted,
        stopped => {
            let problem = format!("{stopped}; write it in fewer steps");
            AssertionError { text: assertion.text.clone(), column: None, problem }.into()
        }
    }
}

fn unjudged(assertion: &Assertion, stopped: &Stopped) -> Verdict {
    let Assertion { name, text } = assertion.clone();
    Verdict { name, text, result: Evaluated::Unknown(stopped.to_string()), values: Vec::new() }
}
