//! Evaluates, stores and prints the runs of a command. Each run is evaluated as soon as the run that it is compared with is
//! done; all are printed in the order of the plan.

use std::fs;
use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};
use sk_record::Staged;
use sk_replay::plan::Window;
use sk_report::baseline::{compared, mean};
use sk_report::fidelity::Recording;
use sk_report::figure::{Figure, ToFigure};
use sk_report::junit::{self, Suite};
use sk_report::side_by_side::{self, Across, Beside};
use sk_report::verdict::Judged;
use sk_report::{Analysis, Evaluated, Exit, Mark, Verdict};

use super::baseline::Baseline;
use super::conclude::{self, Concluded, Judge};
use super::planned::{Planned, PlannedRun, PlannedVariant};
use super::simulate::Ended;
use crate::cli::{RunArgs, TableFormat};
use crate::confined::assertions::Checked;
use crate::failure::{Outcome, each_once};
use crate::{output, progress};

/// The results so far.
pub(super) struct Results<'a> {
    planned: &'a Planned,
    /// The run that all are compared with, if one was named.
    named: Option<Baseline>,
    /// The runs of the first variant, by repetition: those of the others are compared with them.
    of_first: Vec<Option<Baseline>>,
    /// Ended before what they are compared with.
    waiting: Vec<Ended>,
    /// What was recorded, by inputs and window; most commands have one.
    recordings: Vec<(usize, Window, Option<Recording>)>,
    finished: Vec<Option<Finished>>,
    failures: Vec<anyhow::Error>,
}

/// A run that is judged and published.
struct Finished {
    beside: Beside,
    suite: Suite,
    outcome: Outcome,
    /// summary.json
    summary: String,
    /// What `for: any` gave in this run.
    any: Vec<Verdict>,
    /// For `for: mean`; kept only where that is asked.
    figures: Option<Figure>,
    /// The whole of it, where it is the only one.
    whole: Option<(Concluded, Duration)>,
}

impl<'a> Results<'a> {
    /// Of what is planned; `named` is the run to compare with that was typed.
    pub(super) fn new(planned: &'a Planned, named: Option<Baseline>) -> Self {
        let repetitions = planned.runs.iter().filter(|run| run.variant == 0).count();
        let finished = planned.runs.iter().map(|_| None).collect();
        let of_first = vec![None; repetitions];
        Self { planned, named, of_first, waiting: Vec::new(), recordings: Vec::new(), finished, failures: Vec::new() }
    }

    /// Takes in a run that has ended.
    pub(super) fn take(&mut self, ended: Ended) -> Result<()> {
        let run = &self.planned.runs[ended.number];
        let is_first = run.variant == 0;
        let has_to_wait = self.named.is_none() && !is_first && self.first_of(run).is_none();
        if has_to_wait && ended.staged.is_ok() {
            self.waiting.push(ended);
            return Ok(());
        }
        let repetition = run.repetition;
        self.judge(ended)?;
        if is_first {
            let (ready, waiting) = std::mem::take(&mut self.waiting)
                .into_iter()
                .partition(|ended| self.planned.runs[ended.number].repetition == repetition);
            self.waiting = waiting;
            let ready: Vec<Ended> = ready;
            ready.into_iter().try_for_each(|ended| self.judge(ended))?;
        }
        Ok(())
    }

    fn first_of(&self, run: &PlannedRun) -> Option<&Baseline> {
        self.of_first.get(run.repetition as usize)?.as_ref()
    }

    fn judge(&mut self, Ended { number, staged, wall }: Ended) -> Result<()> {
        let planned = self.planned;
        let run = &planned.runs[number];
        let variant = &planned.variants[run.variant];
        let staged = match staged {
            Ok(staged) => staged,
            Err(error) => {
                self.failures.push(error);
                return Ok(());
            }
        };
        let analysis = self.analysed(run, &staged)?;
        if run.variant == 0 {
            self.of_first[run.repetition as usize] = Some(Baseline::of(&analysis));
        }
        let is_compared = self.named.is_some() || self.planned.variants.len() > 1;
        let baseline = self.named.as_ref().or_else(|| self.first_of(run)).filter(|_| is_compared);
        let judge = Judge { checked: &variant.checked, terms: &variant.terms, baseline };
        let any = variant.any.judge(&judge.figures(&analysis))?;
        let figures = (!variant.mean.is_empty()).then(|| analysis.summary.figure());
        let concluded = conclude::publish_analysed(staged, analysis, judge, &run.text)?;
        let is_only = self.planned.runs.len() == 1;
        self.finished[number] = Some(Finished {
            beside: beside(run, &concluded),
            suite: junit::suite(&concluded.analysis, &concluded.judgement).labelled(&run.label),
            outcome: conclude::outcome(&concluded),
            summary: sk_report::json::render(&concluded.analysis, &concluded.judgement)?,
            any,
            figures,
            whole: is_only.then_some((concluded, wall)),
        });
        Ok(())
    }

    /// The run's figures, beside what was recorded where the trace says what that was.
    fn analysed(&mut self, run: &PlannedRun, staged: &Staged) -> Result<Analysis> {
        let source = staged.run()?;
        let mut analysis = Analysis::of(&source)?;
        let window = Window { start: analysis.window.start, end: analysis.window.end, includes_end: true };
        let is_known = |(inputs, of, _): &&(usize, Window, _)| *inputs == run.inputs && *of == window;
        if !self.recordings.iter().any(|known| is_known(&known)) {
            let recording = self.planned.inputs.get(run.inputs).recording(window)?;
            self.recordings.push((run.inputs, window, recording));
        }
        if let Some((_, _, Some(recording))) = self.recordings.iter().find(is_known) {
            recording.beside(&mut analysis, &source)?;
        }
        Ok(analysis)
    }

    /// Prints everything; what the caller gets back.
    pub(super) fn conclude(mut self, args: &RunArgs, trace: &str) -> Result<Outcome> {
        // What the first variant would have been compared with has failed, or was never begun.
        for ended in std::mem::take(&mut self.waiting) {
            self.judge(ended)?;
        }
        let across = self.across()?;
        if let Some(path) = &args.junit {
            let suites: Vec<Suite> = self.all().map(|run| run.suite.clone()).chain(suite_across(&across)).collect();
            fs::write(path, junit::document(&suites)).with_context(|| format!("cannot write {}", path.display()))?;
        }
        match args.output {
            TableFormat::Json => self.print_json(&across)?,
            TableFormat::Table => self.print_table(args, trace, &across)?,
        }
        self.outcome(&across)
    }

    fn all(&self) -> impl Iterator<Item = &Finished> {
        self.finished.iter().flatten()
    }

    fn print_table(&self, args: &RunArgs, trace: &str, across: &[Across]) -> Result<()> {
        let only = self.all().find_map(|run| run.whole.as_ref());
        if let Some((concluded, wall)) = only {
            return conclude::print(args, trace, concluded, wall.as_secs_f64());
        }
        let runs: Vec<Beside> = self.all().map(|run| run.beside.clone()).collect();
        if !runs.is_empty() {
            write!(anstream::stdout(), "{}", side_by_side::render(&runs, across, output::columns()))?;
        }
        for label in self.not_begun() {
            writeln!(anstream::stdout(), "not begun  {}", output::line(label))?;
        }
        Ok(())
    }

    /// One run is its summary.json; several are a list of them.
    fn print_json(&self, across: &[Across]) -> Result<()> {
        if let Some(only) = self.all().find(|run| run.whole.is_some()) {
            return Ok(write!(anstream::stdout(), "{}", only.summary)?);
        }
        let mut runs = Vec::new();
        for (run, finished) in self.planned.runs.iter().zip(&self.finished) {
            let Some(finished) = finished else { continue };
            let variant = &self.planned.variants[run.variant].label;
            let summary: Value = serde_json::from_str(&finished.summary)?;
            runs.push(json!({
                "label": run.label, "variant": variant, "repetition": run.repetition,
                "seed": run.setup.settings.seed, "dir": run.dir, "summary": summary,
            }));
        }
        let across: Vec<Value> = across.iter().map(|across| {
            json!({"variant": across.label, "for": across.how, "assertion": across.verdict.text, "result": across.verdict.result})
        }).collect();
        let not_begun: Vec<&str> = self.not_begun().collect();
        output::print_json(&json!({"runs": runs, "across": across, "not_begun": not_begun}))
    }

    /// The runs without a record, because the user pressed Ctrl-C before.
    fn not_begun(&self) -> impl Iterator<Item = &str> {
        let is_stopped = progress::is_interrupted() && self.failures.is_empty();
        let missing = self.planned.runs.iter().zip(&self.finished).filter(move |(_, run)| is_stopped && run.is_none());
        missing.map(|(run, _)| run.label.as_str())
    }

    /// The assertions about all repetitions of a variant.
    fn across(&self) -> Result<Vec<Across>> {
        let mut across = Vec::new();
        for (number, variant) in self.planned.variants.iter().enumerate() {
            let of_variant = |(run, _): &(&PlannedRun, &Option<Finished>)| run.variant == number;
            let runs: Vec<&Finished> = self
                .planned
                .runs
                .iter()
                .zip(&self.finished)
                .filter(of_variant)
                .filter_map(|(_, run)| run.as_ref())
                .collect();
            let is_whole = runs.len() == self.of_first.len()
                && runs.iter().all(|run| !matches!(run.beside.mark, Mark::Incomplete | Mark::Partial));
            let any = in_any(&runs).into_iter().map(|verdict| ("any", verdict));
            let mean = self.of_mean(variant, &runs)?.into_iter().map(|verdict| ("mean", verdict));
            across.extend(any.chain(mean).map(|(how, verdict)| {
                let verdict = if is_whole { verdict } else { not_whole(verdict) };
                Across { label: variant.label.clone(), how, verdict }
            }));
        }
        Ok(across)
    }

    fn of_mean(&self, variant: &PlannedVariant, runs: &[&Finished]) -> Result<Vec<Verdict>> {
        let figures: Vec<Figure> = runs.iter().filter_map(|run| run.figures.clone()).collect();
        if variant.mean.is_empty() || figures.is_empty() {
            return Ok(Vec::new());
        }
        let firsts: Option<Vec<Figure>> =
            self.of_first.iter().map(|first| first.as_ref().map(|first| first.figures.clone())).collect();
        let baseline = match &self.named {
            Some(named) => Some(named.figures.clone()),
            None => firsts.filter(|_| self.planned.variants.len() > 1).map(|firsts| mean(&firsts)),
        };
        judge_mean(&variant.mean, mean(&figures), baseline.as_ref())
    }

    fn outcome(self, across: &[Across]) -> Result<Outcome> {
        if let Some(error) = self.failures.first() {
            let others = match self.failures.len() {
                1 => String::new(),
                count => format!(", and {} other runs failed too", count - 1),
            };
            return Err(anyhow!("{}{others}", each_once(error.chain())));
        }
        let exits = across.iter().map(|across| match across.verdict.result {
            Evaluated::Held => Exit::Good,
            Evaluated::Failed => Exit::Bad,
            Evaluated::Unknown(_) => Exit::Unjudged,
        });
        let outcomes: Vec<Outcome> = self.all().map(|run| run.outcome).chain(exits.map(Outcome::from)).collect();
        let is_stopped = progress::is_interrupted() && outcomes.len() < self.planned.runs.len();
        let worst =
            [Outcome::Interrupted, Outcome::Bad, Outcome::Unjudged].into_iter().find(|bad| outcomes.contains(bad));
        Ok(if is_stopped { Outcome::Interrupted } else { worst.unwrap_or(Outcome::Good) })
    }
}

fn beside(run: &PlannedRun, Concluded { analysis, judgement, dir }: &Concluded) -> Beside {
    let mut summary = analysis.summary.clone();
    // The table shows none of these, and there may be a hundred thousand owners in each of a thousand runs.
    summary.namespaces.clear();
    summary.owners.clear();
    let is_bad = |verdict: &&Verdict| verdict.result != Evaluated::Held;
    Beside {
        label: run.label.clone(),
        mark: judgement.mark,
        summary,
        currency: analysis.meta.currency.clone(),
        bad: judgement.verdicts.iter().filter(is_bad).cloned().collect(),
        dir: dir.display().to_string(),
    }
}

/// What holds in one of the runs holds; else the last run's word counts.
fn in_any(runs: &[&Finished]) -> Vec<Verdict> {
    let Some(last) = runs.last() else { return Vec::new() };
    let best = |place: usize| {
        let mut all = runs.iter().map(|run| &run.any[place]);
        all.clone().find(|verdict| verdict.result == Evaluated::Held).or_else(|| all.next_back()).cloned()
    };
    (0..last.any.len()).filter_map(best).collect()
}

fn judge_mean(checked: &Checked, figures: Figure, baseline: Option<&Figure>) -> Result<Vec<Verdict>> {
    checked.judge(&match baseline {
        Some(baseline) => compared(figures, baseline),
        None => figures,
    })
}

/// What holds for runs that are not whole is not judged.
fn not_whole(verdict: Verdict) -> Verdict {
    match verdict.result {
        Evaluated::Held => {
            let why = "it holds for what was simulated, which is not all of every run".to_owned();
            Verdict { result: Evaluated::Unknown(why), ..verdict }
        }
        Evaluated::Failed | Evaluated::Unknown(_) => verdict,
    }
}

fn suite_across(across: &[Across]) -> Option<Suite> {
    let case = |Across { label, how, verdict }: &Across| {
        let name = verdict.name.clone().unwrap_or_else(|| verdict.text.clone());
        let judged = match &verdict.result {
            Evaluated::Held => Judged::Pass,
            Evaluated::Failed => Judged::Fail,
            Evaluated::Unknown(why) => Judged::Error(why.clone()),
        };
        (format!("{label} {name} (for: {how})").trim_start().to_owned(), verdict.with_values(), judged)
    };
    let cases: Vec<_> = across.iter().map(case).collect();
    (!cases.is_empty()).then(|| Suite { name: "all repetitions".to_owned(), properties: Vec::new(), cases })
}
