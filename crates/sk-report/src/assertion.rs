//! Assertions: CEL expressions over the figures, checked before a run and evaluated after it.
//!
//! The `cel` crate checks no types, and evaluation stops at the first `||` that is true, so a misspelt figure could
//! pass for years. Therefore every path in an expression is looked up in the tree of figures, and every comparison is
//! evaluated by itself on an example summary, before the simulation starts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use cel::extractors::This;
use cel::objects::{Key, Map};
use cel::{Context, ExecutionError, Program, Value};
use serde::{Deserialize, Serialize};
use sk_core::SimDuration;
use sk_record::Group;

use crate::assertion_syntax::in_words;
use crate::baseline::{COMPARED, Scope, compared, mean};
use crate::figure::{Figure, ToFigure};
use crate::figures::{Cost, Deviation, Fidelity, GroupFigures, PodFigures, Summary};
use crate::path::{Path, Step, comparisons, paths};

/// The longest expression: far above what a person writes, far below what could exhaust the parser's stack.
pub const TEXT_MAX_BYTES: usize = 2_048;

/// The name that needs a recording to compare with.
const FIDELITY: &str = "fidelity";

/// One claim about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assertion {
    /// What a person calls it.
    pub name: Option<String>,
    /// The CEL expression.
    pub text: String,
}

/// Why an assertion cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("assertion `{text}`: {problem}")]
pub struct AssertionError {
    /// The expression.
    pub text: String,
    /// Where in the expression, counted in characters from 1, if known.
    pub column: Option<usize>,
    /// What is wrong and what to write instead.
    pub problem: String,
}

/// Assertions that are well-formed and name only figures that exist.
#[derive(Debug)]
pub struct Checked(Vec<(Assertion, Program)>);

/// The result of one assertion, regardless of the rest of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// What a person calls it.
    pub name: Option<String>,
    /// The CEL expression.
    pub text: String,
    /// What evaluating it gave.
    pub result: Evaluated,
    /// The figures it is about, and what they were: to be printed beside the limit.
    pub values: Vec<(String, String)>,
}

/// What evaluating an assertion gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Evaluated {
    /// It holds for what was simulated.
    Held,
    /// It does not.
    Failed,
    /// Unknown, and why: it names what the run does not have, or evaluating it exceeded a limit.
    Unknown(String),
}

impl Verdict {
    /// Did it fail? What could not be evaluated did not.
    pub fn is_failed(&self) -> bool {
        self.result == Evaluated::Failed
    }

    /// `nodes.max <= 36   (nodes.max = 38)`: value beside limit.
    pub fn with_values(&self) -> String {
        let values: Vec<String> = self.values.iter().map(|(path, value)| format!("{path} = {value}")).collect();
        if values.is_empty() { self.text.clone() } else { format!("{}   ({})", self.text, values.join(", ")) }
    }
}

/// Checks assertions before a run: syntax, names, types. `groups` are the scenario's, `scope` says what else there is.
pub fn check(assertions: &[Assertion], groups: &[Group], scope: Scope) -> Result<Checked, AssertionError> {
    let mut checked = Vec::with_capacity(assertions.len());
    for assertion in assertions {
        let program = compile(&assertion.text)?;
        check_names(&assertion.text, &program, groups, scope)?;
        check_types(&assertion.text, &program, groups, scope)?;
        checked.push((assertion.clone(), program));
    }
    Ok(Checked(checked))
}

/// One assertion, compiled and not checked again: it was before the run.
pub(crate) fn compiled(assertion: Assertion) -> Result<Checked, AssertionError> {
    let program = compile(&assertion.text)?;
    Ok(Checked(vec![(assertion, program)]))
}

impl Checked {
    /// Judges a run. What names a group, namespace or owner that the run does not have cannot be judged.
    pub fn judge(&self, figures: &Figure) -> Vec<Verdict> {
        self.0.iter().map(|(assertion, program)| judge(assertion, program, figures)).collect()
    }

    /// Is there nothing to judge?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn judge(assertion: &Assertion, program: &Program, figures: &Figure) -> Verdict {
    let paths = paths(program.expression());
    let result = match program.execute(&context(figures, &paths)) {
        Ok(Value::Bool(true)) => Evaluated::Held,
        Ok(Value::Bool(false)) => Evaluated::Failed,
        Ok(other) => Evaluated::Unknown(not_boolean(&assertion.text, &other).problem),
        Err(error) => {
            let missing = paths.iter().find_map(|path| missing_entry(path, figures));
            Evaluated::Unknown(missing.unwrap_or_else(|| execution_problem(&error)))
        }
    };
    let values = paths.iter().filter_map(|path| Some((path.to_string(), path.value_in(figures)?))).collect();
    Verdict { name: assertion.name.clone(), text: assertion.text.clone(), result, values }
}

fn compile(text: &str) -> Result<Program, AssertionError> {
    if text.len() > TEXT_MAX_BYTES {
        let problem = format!("it is longer than {TEXT_MAX_BYTES} bytes: split it into several");
        return Err(AssertionError { text: text.chars().take(80).chain(['…']).collect(), column: None, problem });
    }
    Program::compile(text).map_err(|errors| {
        let first = errors.errors.first();
        let column = first.and_then(|error| usize::try_from(error.pos.1).ok());
        let message = first.map_or_else(|| "it cannot be read".to_owned(), |error| in_words(&error.msg));
        let advice = spelt_duration(text)
            .or_else(|| reserved_word(text))
            .map(|advice| format!("; {advice}"))
            .unwrap_or_default();
        refuse(text, column, format!("invalid CEL: {message}{advice}"))
    })
}

/// `5m` is no CEL: what to write instead, if the text has such a thing outside of quotes.
fn spelt_duration(text: &str) -> Option<String> {
    let outside: String = text.split(['"', '\'']).step_by(2).collect::<Vec<_>>().join(" ");
    let words = outside.split(|char: char| !char.is_ascii_alphanumeric() && char != '.' && char != '_');
    let is_duration = |word: &&str| {
        let digits = word.trim_end_matches(|char: char| char.is_ascii_alphabetic());
        let unit = &word[digits.len()..];
        digits.parse::<f64>().is_ok() && ["ns", "us", "ms", "s", "m", "h", "d"].contains(&unit)
    };
    let word = words.into_iter().find(is_duration)?;
    Some(match word.strip_suffix('d').map(str::parse::<f64>) {
        Some(Ok(days)) => format!("write duration(\"{}h\") instead of {word}", days * 24.0),
        _ => format!("write duration(\"{word}\") instead of {word}"),
    })
}

/// `namespace` cannot be a name in CEL: what to write instead, if the text has it outside of quotes.
fn reserved_word(text: &str) -> Option<String> {
    let mut words =
        text.split(['"', '\'']).step_by(2).flat_map(|part| part.split(|char: char| !char.is_alphanumeric()));
    words.any(|word| word == "namespace").then(|| "write namespaces[\"NAME\"] instead of namespace".to_owned())
}

/// Looks up every path of the expression in a tree that has every figure.
fn check_names(text: &str, program: &Program, groups: &[Group], scope: Scope) -> Result<(), AssertionError> {
    // The groups of another run are unknown until it is read.
    let tree = if scope.compared { compared(every_figure(groups), &every_figure(&[])) } else { every_figure(groups) };
    for path in paths(program.expression()) {
        let column = program.source_info().offset_for(path.id).map(|(start, _)| start as usize + 1);
        let root = path.root.as_str();
        if root == FIDELITY && !scope.recorded {
            let problem = format!(
                "`{root}` needs a recording to compare with, and the trace holds no observations; \
                 record one with `skctl record` or `export`"
            );
            return Err(refuse(text, column, problem));
        }
        if COMPARED.contains(&root) && !scope.compared {
            let problem =
                format!("`{root}` needs a run to compare with: name one with --baseline RUN, or run variants");
            return Err(refuse(text, column, problem));
        }
        if let Some(problem) = unknown_name(&path, &tree) {
            return Err(refuse(text, column, problem));
        }
    }
    Ok(())
}

fn unknown_name(path: &Path, tree: &Figure) -> Option<String> {
    let Some(mut at) = tree.get(&path.root) else { return Some(no_figure(&path.root, &tree.names())) };
    let mut so_far = path.root.clone();
    for step in &path.steps {
        (at, so_far) = match take_step(at, step, &so_far) {
            Ok(next) => next,
            Err(problem) => return Some(problem),
        };
    }
    None
}

fn take_step<'a>(at: &'a Figure, step: &Step, so_far: &str) -> Result<(&'a Figure, String), String> {
    match (step, at) {
        (Step::Field(name), Figure::Fields(_)) => {
            let path = format!("{so_far}.{name}");
            let known: Vec<String> = at.names().iter().map(|known| format!("{so_far}.{known}")).collect();
            at.get(name).map(|next| (next, path.clone())).ok_or_else(|| no_figure(&path, &known))
        }
        (Step::Key(name), Figure::Entries(entries)) => {
            let known: Vec<&str> = entries.keys().map(String::as_str).filter(|known| *known != ANY).collect();
            // Groups are known before the run; namespaces and owners come from the trace.
            let any = entries.get(ANY).filter(|_| known.is_empty());
            let next = entries.get(name).or(any);
            let next =
                next.ok_or_else(|| format!("the scenario has no group `{name}`; it has {}", known.join(", ")))?;
            Ok((next, format!("{so_far}[\"{name}\"]")))
        }
        (Step::Any, Figure::Entries(entries)) => match entries.get(ANY) {
            Some(next) => Ok((next, format!("{so_far}[…]"))),
            None => Err(format!("nothing is known of {so_far}")),
        },
        (Step::Field(name), Figure::Entries(_)) => {
            Err(format!("write {so_far}[\"{name}\"] instead of {so_far}.{name}"))
        }
        _ => Err(format!("{so_far} is a figure: nothing can be taken from it")),
    }
}

fn no_figure(path: &str, known: &[impl AsRef<str>]) -> String {
    match nearest(path, known) {
        Some(near) => format!("there is no figure {path}; did you mean {near}?"),
        None => {
            let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
            format!("there is no figure {path}; there are {}", known.join(", "))
        }
    }
}

/// The entry that represents any: present in every map of the tree that names are checked against.
const ANY: &str = "any";

/// A tree with every figure there can be.
fn every_figure(groups: &[Group]) -> Figure {
    let mut summary = Summary::zero(groups);
    summary.cost = Some(Cost::default());
    summary.fidelity = Some(every_fidelity());
    for figures in summary.groups.values_mut() {
        figures.cost = Some(Cost::default());
    }
    summary.groups.insert(ANY.into(), priced_group());
    summary.namespaces.insert(ANY.into(), PodFigures::default());
    summary.owners.insert(ANY.into(), PodFigures::default());
    summary.figure()
}

fn every_fidelity() -> Fidelity {
    Fidelity { node_hours: Some(Deviation::default()), ..Fidelity::default() }
}

fn priced_group() -> GroupFigures {
    GroupFigures { cost: Some(Cost::default()), ..GroupFigures::default() }
}

/// Evaluates each comparison by itself, and then the whole, on a made-up summary: ones rather than zeros, because a
/// share of two figures is a fair question and 0 / 0 would be no number.
fn check_types(text: &str, program: &Program, groups: &[Group], scope: Scope) -> Result<(), AssertionError> {
    let mut summary = Summary { fidelity: scope.recorded.then(every_fidelity), ..Summary::zero(groups) };
    // What a comprehension says about each entry is only evaluated if there is one.
    summary.namespaces.insert(ANY.into(), PodFigures::default());
    summary.owners.insert(ANY.into(), PodFigures::default());
    if groups.is_empty() {
        summary.groups.insert(ANY.into(), GroupFigures::default());
    }
    for path in paths(program.expression()) {
        let Some((of, key)) = path.entry() else { continue };
        match of {
            "namespaces" => drop(summary.namespaces.insert(key.to_owned(), PodFigures::default())),
            "owners" => drop(summary.owners.insert(key.to_owned(), PodFigures::default())),
            _ if groups.is_empty() => drop(summary.groups.insert(key.to_owned(), GroupFigures::default())),
            // A group that only the other run may have.
            _ => drop(summary.groups.entry(key.to_owned()).or_insert_with(priced_group)),
        }
    }
    let figures = summary.figure();
    let figures = if scope.mean { mean(&[figures]) } else { figures };
    let figures = ones(if scope.compared { compared(figures.clone(), &figures) } else { figures });
    let context = context(&figures, &paths(program.expression()));
    for comparison in comparisons(program.expression()) {
        let column = program.source_info().offset_for(comparison.id).map(|(start, _)| start as usize + 1);
        Value::resolve(comparison, &context).map_err(|error| refuse(text, column, trial_problem(&error)))?;
    }
    match program.execute(&context) {
        Ok(Value::Bool(_)) => Ok(()),
        Ok(other) => Err(not_boolean(text, &other)),
        Err(error) => Err(refuse(text, None, trial_problem(&error))),
    }
}

fn ones(figure: Figure) -> Figure {
    match figure {
        Figure::Count(_) => Figure::Count(1),
        Figure::Number(_) => Figure::Number(1.0),
        Figure::Time(_) => Figure::Time(SimDuration::from_secs(1)),
        Figure::Fields(fields) => Figure::Fields(fields.into_iter().map(|(name, field)| (name, ones(field))).collect()),
        Figure::Entries(entries) => {
            Figure::Entries(entries.into_iter().map(|(name, entry)| (name, ones(entry))).collect())
        }
        Figure::Absent => Figure::Absent,
    }
}

/// Names were checked before: what is missing now is missing because a price is missing.
fn trial_problem(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(name) | ExecutionError::UndeclaredReference(name) if name.as_str() == "cost" => {
            "there is no cost, because a node group has no price: give each one a price (cluster.groups.NAME.price)"
                .into()
        }
        other => execution_problem(other),
    }
}

fn execution_problem(error: &ExecutionError) -> String {
    const ADVICE: &str = "write times as duration(\"30s\"), shares and money as 1.5; docs/figures.md has the types";
    match error {
        ExecutionError::NoSuchOverload(overload) => {
            let operator = overload.function().trim_matches(['_', '@']);
            match overload.argument_types() {
                [left, right] if left == "double" && left == right => {
                    format!("`{operator}` was asked about 0 / 0, which is not a number: ask whether there is any first")
                }
                types => format!("`{operator}` does not go with {}: {ADVICE}", types.join(" and ")),
            }
        }
        ExecutionError::UnsupportedBinaryOperator(operator, left, right) => {
            format!("`{operator}` does not go with {:?} and {:?}: {ADVICE}", left.type_of(), right.type_of())
        }
        ExecutionError::UndeclaredReference(name) => format!("there is no function or figure `{name}`"),
        ExecutionError::NoSuchKey(name) => format!("this run has no `{name}`"),
        ExecutionError::FunctionError { function, .. } if function == "duration" => {
            "duration() takes h, m, s, ms, us and ns, such as duration(\"1h30m\"), and no days: write duration(\"24h\")"
                .to_owned()
        }
        other => other.to_string(),
    }
}

/// A group, namespace or owner that is named in the path and not in the run.
fn missing_entry(path: &Path, figures: &Figure) -> Option<String> {
    let (mut at, mut so_far) = (figures.get(&path.root)?, path.root.clone());
    for step in &path.steps {
        let (name, next) = match step {
            Step::Field(name) => (name, format!("{so_far}.{name}")),
            Step::Key(name) => (name, format!("{so_far}[\"{name}\"]")),
            Step::Any => return None,
        };
        match at.get(name) {
            Some(found) => (at, so_far) = (found, next),
            None => {
                let near = nearest(name, &at.names()).map(|near| format!("; did you mean `{near}`?"));
                return Some(format!("the run has nothing under {next}{}", near.unwrap_or_default()));
            }
        }
    }
    None
}

fn not_boolean(text: &str, value: &Value) -> AssertionError {
    let problem = format!("it gives a {:?} and not true or false: compare it with something", value.type_of());
    refuse(text, None, problem.to_lowercase())
}

fn refuse(text: &str, column: Option<usize>, problem: String) -> AssertionError {
    AssertionError { text: text.to_owned(), column, problem }
}

/// The variables that an expression uses, and of a run's namespaces and owners only those that it names: a run may have
/// a hundred thousand.
fn context<'v>(figures: &Figure, paths: &[Path]) -> Context<'v, 'v> {
    let mut context = Context::default();
    // Without its feature `regex`, the `cel` crate has no function of that name.
    context.add_function("matches", matches).expect("no other function is called `matches`");
    let Figure::Fields(fields) = figures else { return context };
    for (name, figure) in fields.iter().filter(|(_, figure)| *figure != Figure::Absent) {
        let used: Vec<&Path> = paths.iter().filter(|path| path.root == name.as_ref()).collect();
        if !used.is_empty() {
            context.add_variable_from_value(name.as_ref(), to_cel(&named_entries(figure, &used)));
        }
    }
    context
}

/// CEL's `matches`. regex-lite has no Unicode classes such as `\p{L}`; the `cel` crate's own choice takes six times as
/// long to compile.
#[allow(clippy::needless_pass_by_value, reason = "a function of CEL takes its arguments by value")]
fn matches(This(text): This<Arc<String>>, pattern: Arc<String>) -> Result<bool, ExecutionError> {
    let pattern = regex_lite::Regex::new(&pattern)
        .map_err(|error| ExecutionError::function_error("matches", format!("{pattern:?} is not a pattern: {error}")))?;
    Ok(pattern.is_match(&text))
}

/// A figure with those entries alone that are named, unless a path may go to any of them.
fn named_entries<'f>(figure: &'f Figure, paths: &[&Path]) -> Cow<'f, Figure> {
    let keys: Option<Vec<&str>> = paths
        .iter()
        .map(|path| match path.steps.first() {
            Some(Step::Key(key)) => Some(key.as_str()),
            Some(Step::Field(_) | Step::Any) | None => None,
        })
        .collect();
    let (Figure::Entries(entries), Some(keys)) = (figure, keys) else { return Cow::Borrowed(figure) };
    let named = keys.into_iter().filter_map(|key| Some((key.to_owned(), entries.get(key)?.clone())));
    Cow::Owned(Figure::Entries(named.collect()))
}

fn to_cel(figure: &Figure) -> Value {
    let map = |entries: BTreeMap<&str, &Figure>| {
        let present = entries.into_iter().filter(|(_, figure)| **figure != Figure::Absent);
        let map = present.map(|(name, figure)| (Key::String(Arc::new(name.to_owned())), to_cel(figure))).collect();
        Value::Map(Map { map: Arc::new(map) })
    };
    match figure {
        Figure::Count(count) => Value::Int(*count),
        Figure::Number(number) => Value::Float(*number),
        Figure::Time(time) => Value::Duration(chrono::Duration::microseconds(time.as_micros())),
        Figure::Fields(fields) => map(fields.iter().map(|(name, figure)| (name.as_ref(), figure)).collect()),
        Figure::Entries(entries) => map(entries.iter().map(|(name, figure)| (name.as_str(), figure)).collect()),
        Figure::Absent => Value::Null,
    }
}

/// The known name that a typing error could have come from: at most a third of the letters apart.
fn nearest<'a>(wrong: &str, known: &'a [impl AsRef<str>]) -> Option<&'a str> {
    let distances = known.iter().map(|name| (distance(wrong, name.as_ref()), name.as_ref()));
    distances.filter(|(distance, name)| *distance <= name.len().div_ceil(3)).min().map(|(_, name)| name)
}

/// How many letters must be changed, added or taken away. Names are short: a full table is cheap.
fn distance(a: &str, b: &str) -> usize {
    const LETTERS_MAX: usize = 300;
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(LETTERS_MAX).collect(), b.chars().take(LETTERS_MAX).collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let changed = diagonal + usize::from(letter != other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
