//! Assertions: checked before a run and evaluated after it, each with its own limits.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use sk_record::Group;
use sk_report::confined::{Request, Response, decode, encode};
use sk_report::figure::{Figure, Typed};
use sk_report::{Assertion, AssertionError, Evaluated, Scope, Verdict};
use sk_sandbox::{Limits, Stopped, Worker};

use super::ASSERTIONS;
use crate::failure::Interrupted;
use crate::progress;

/// For one assertion: evaluating one of 2 KiB over the figures of a hundred thousand owners takes a second.
const TIME: Duration = Duration::from_secs(10);
/// The program itself and what evaluating needs, without the figures.
const MEMORY_BYTES: u64 = 512 << 20;
/// Figures take about so many times their bytes: once as they came, once as a tree, once as CEL's own maps.
const MEMORY_PER_FIGURES_BYTE: u64 = 40;
/// The parser and the interpreter call themselves about once per bracket, of which 2 KiB of text hold a thousand.
const STACK_BYTES: usize = 64 << 20;

/// Assertions that are well-formed and name only figures that exist.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checked(Vec<Assertion>);

/// Checks assertions before a run: syntax, names, types. `groups` are the scenario's, `scope` says what else can be
/// named.
pub(crate) fn check(assertions: Vec<Assertion>, groups: &[Group], scope: Scope) -> Result<Checked> {
    if assertions.is_empty() {
        return Ok(Checked::default());
    }
    let mut worker = start(0)?;
    for assertion in &assertions {
        let request = Request::Check(assertion.clone(), groups.to_owned(), scope);
        match ask(&mut worker, &request) {
            Ok(Response::Checked(checked)) => checked?,
            Ok(other) => bail!("an assertion was checked and the answer is {other:?}; please report this"),
            Err(stopped) => return Err(refused(assertion, stopped)),
        }
    }
    Ok(Checked(assertions))
}

impl Checked {
    /// Does any of them name the run that this one is compared with? Told by its words, because only the process with
    /// limits reads expressions; one that has such a word in a text is taken for one that does, which costs a file.
    pub(crate) fn name_baseline(&self) -> bool {
        let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let names = |text: &str| text.split(|char| !is_word(char)).any(|word| ["baseline", "ratio"].contains(&word));
        self.0.iter().any(|assertion| names(&assertion.text))
    }

    /// Is there nothing to judge?
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Judges a run. An assertion that takes too much is not judged, and those after it are.
    pub(crate) fn judge(&self, figures: &Figure) -> Result<Vec<Verdict>> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let figures = Request::Figures(Typed::from(figures));
        let figures = encode(&figures).map_err(|error| anyhow!("the figures cannot be judged: {error}"))?;
        let mut judge: Option<Worker> = None;
        let mut verdicts = Vec::with_capacity(self.0.len());
        for assertion in &self.0 {
            let mut worker = match judge.take() {
                Some(worker) => worker,
                None => told(&figures)?,
            };
            match ask(&mut worker, &Request::Judge(assertion.clone())) {
                Ok(Response::Judged(verdict)) => {
                    judge = Some(worker);
                    verdicts.push(verdict);
                }
                Ok(other) => bail!("an assertion was judged and the answer is {other:?}; please report this"),
                // The run is there, and is kept: what is left of the assertions is not judged.
                Err(Stopped::Interrupted) => break,
                Err(stopped) => verdicts.push(unjudged(assertion, &stopped)),
            }
        }
        verdicts.extend(self.0[verdicts.len()..].iter().map(|assertion| unjudged(assertion, &Stopped::Interrupted)));
        Ok(verdicts)
    }
}

fn start(figures_bytes: usize) -> Result<Worker> {
    let memory_bytes = MEMORY_BYTES.saturating_add(MEMORY_PER_FIGURES_BYTE.saturating_mul(figures_bytes as u64));
    let limits = Limits { time: TIME, memory_bytes, stack_bytes: STACK_BYTES };
    // Who has stopped a simulation wants to see what there is of it judged; a second Ctrl-C ends everything.
    let before = progress::is_interrupted();
    Ok(Worker::start(ASSERTIONS, limits, move || !before && progress::is_interrupted())?)
}

/// A process that knows the figures.
fn told(figures: &[u8]) -> Result<Worker> {
    let mut worker = start(figures.len())?;
    match worker.ask(figures) {
        Ok(_) => Ok(worker),
        Err(Stopped::Interrupted) => Err(interrupted()),
        Err(stopped) => Err(anyhow!("the figures cannot be judged: {stopped}")),
    }
}

fn ask(worker: &mut Worker, request: &Request) -> Result<Response, Stopped> {
    let broke = |error: String| Stopped::Broke(error);
    let response = worker.ask(&encode(request).map_err(broke)?)?;
    decode(&response).map_err(broke)
}

fn refused(assertion: &Assertion, stopped: Stopped) -> anyhow::Error {
    match stopped {
        Stopped::Interrupted => interrupted(),
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

fn interrupted() -> anyhow::Error {
    std::io::Error::other(Interrupted).into()
}
