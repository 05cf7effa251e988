//! `skctl validate TRACE`: checks whether a trace can be replayed, and fixes it. It refuses what a run would refuse.

use std::fmt::Write as _;

use anyhow::{Result, anyhow, bail};
use indicatif::HumanCount;
use serde_json::{Value, json};
use sk_replay::Refusals;
use sk_store::Trace;
use sk_trace::validate::{self, Code, Fixed, Severity, Validation};

use crate::cli::{
    Global, ObjectFormat, PrintArgs, RunArgs, RunRequestArgs, TableFormat, ValidateArgs, ValidateCommand,
};
use crate::commands::run::dry_run::{self, Expected};
use crate::failure::Outcome;
use crate::outputs::Destination;
use crate::progress::Bar;
use crate::{output, traces};

pub(crate) fn run(args: &ValidateArgs, global: &Global) -> Result<Outcome> {
    match &args.command {
        Some(ValidateCommand::Check(args)) if args.generate_skel => bail!(
            "SKEL is not supported: `skctl validate {} --fix -O OUT` writes the fixed trace; docs/from-simkube.md has jq for more",
            output::line(&args.trace)
        ),
        Some(ValidateCommand::Check(args)) => judge(&args.into(), global),
        Some(ValidateCommand::Explain(args)) => explain(&args.code),
        Some(ValidateCommand::Print(args)) => print(args),
        None => judge(args, global),
    }
}

fn judge(args: &ValidateArgs, global: &Global) -> Result<Outcome> {
    let typed = args.trace.as_deref().ok_or_else(|| anyhow!("no trace given: `skctl validate TRACE`"))?;
    let to = args.out.as_deref().map(|out| Destination::beside_an_answer(out, args.to)).transpose()?;
    let trace = traces::open(typed, global)?;
    let found = look_at(&trace, global)?;
    let mended = to.map(|to| mend(&trace, &found, &to, global)).transpose()?;
    let expected = expected(args, typed, global)?;
    match args.output {
        TableFormat::Table => {
            let expected = expected.as_ref().map(Expected::text).unwrap_or_default();
            output::print(&(text(&trace, &found, mended.as_ref(), args.strict) + &expected))?;
        }
        TableFormat::Json => {
            let mut value = for_programs(&trace, &found, mended.as_ref(), args.strict)?;
            if let Some(expected) = &expected {
                value["scenario"] = expected.for_programs();
            }
            output::print_json(&value)?;
        }
    }
    let judged = mended.as_ref().map_or(&found, |mended| &mended.left);
    let is_good = judged.is_good(args.strict) && expected.is_none_or(|expected| expected.is_good(args.strict));
    Ok(if is_good { Outcome::Good } else { Outcome::Bad })
}

/// What a run with the scenario would not place, model or simulate.
fn expected(args: &ValidateArgs, trace: &str, global: &Global) -> Result<Option<Expected>> {
    let Some(scenario) = &args.scenario else { return Ok(None) };
    let (trace, scenario) = (Some(trace.to_owned()), Some(scenario.clone()));
    let request = RunRequestArgs { trace, scenario, ..RunRequestArgs::default() };
    dry_run::of_scenario(&RunArgs { request, ..RunArgs::default() }, global).map(Some)
}

/// What `skctl validate` says of an open trace, and whether it is good.
pub(crate) fn examine(trace: &Trace, strict: bool, global: &Global) -> Result<(String, bool)> {
    let found = look_at(trace, global)?;
    Ok((text(trace, &found, None, strict), found.is_good(strict)))
}

/// What is wrong with a trace: what looking at it finds, and what a run's API server would refuse.
struct Found {
    validation: Validation,
    refused: Refusals,
}

impl Found {
    fn is_good(&self, strict: bool) -> bool {
        let report = &self.validation.report;
        self.refused.is_empty() && if strict { report.is_clean() } else { report.is_valid() }
    }

    fn errors(&self) -> u64 {
        self.validation.report.count(Severity::Error) + self.refused.count()
    }
}

fn look_at(trace: &Trace, global: &Global) -> Result<Found> {
    let _bar = Bar::of_unknown_length(format!("reading {}", trace.name()), global.quiet);
    Ok(Found { validation: validate::validate(trace)?, refused: sk_replay::refusals(trace)? })
}

/// What came of mending.
struct Mended {
    place: String,
    fixed: Fixed,
    /// What is still wrong with the mended trace.
    left: Found,
}

fn mend(trace: &Trace, found: &Found, to: &Destination, global: &Global) -> Result<Mended> {
    let fixed = to.write(global, |format, out| validate::fix(trace, &found.validation, format, out))?;
    // Mending one thing may bring out another, so the file itself is asked, not what was done to it.
    let left = look_at(&to.open()?, global)?;
    Ok(Mended { place: to.to_string(), fixed, left })
}

fn text(trace: &Trace, found: &Found, mended: Option<&Mended>, strict: bool) -> String {
    let mut text = findings(found);
    text += &verdict(trace.name(), found, strict);
    if let Some(Mended { place, fixed, left }) = mended {
        for (rule, count) in &fixed.changes {
            let code = rule.code();
            let _ = writeln!(text, "fixed  {} {count} times: {}", code.code, code.fix.unwrap_or("fixed"));
        }
        text += &findings(left);
        text += &verdict(place, left, strict);
    }
    text
}

/// The findings, a line each, and how many of each code are not shown.
fn findings(found: &Found) -> String {
    let report = &found.validation.report;
    let mut text = String::new();
    for (object, words) in &found.refused.objects {
        let _ = writeln!(text, "refused  {}", output::line(&format!("{object}: {words}")));
    }
    if found.refused.others > 0 {
        let _ = writeln!(text, "refused  {} more versions of objects", HumanCount(found.refused.others));
    }
    for finding in &report.findings {
        let _ = writeln!(text, "{}", output::line(&finding.to_string()));
    }
    for (rule, count) in &report.counts {
        let shown = report.findings.iter().filter(|finding| finding.code == *rule).count() as u64;
        if *count > shown {
            let _ = writeln!(text, "{} and {} more like it", rule.code().code, HumanCount(count - shown));
        }
    }
    text
}

fn verdict(name: &str, found: &Found, strict: bool) -> String {
    let report = &found.validation.report;
    let word = if found.is_good(strict) { "VALID" } else { "INVALID" };
    let (name, events) = (output::line(name), counted(report.events, "event"));
    let (errors, warnings) = (counted(found.errors(), "error"), counted(report.count(Severity::Warning), "warning"));
    let mut text = format!("{word}  {name}: {errors}, {warnings} in {events}\n");
    if report.unjudged > 0 {
        let unjudged = HumanCount(report.unjudged);
        let _ = writeln!(text, "{unjudged} names did not fit into memory; what depends on them was not judged");
    }
    if let Some(rule) = report.counts.keys().next() {
        let _ = writeln!(text, "what a code means: skctl validate explain {}", rule.code().code);
    }
    text
}

/// `1 error`, `2 errors`.
fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", HumanCount(count), if count == 1 { "" } else { "s" })
}

fn for_programs(trace: &Trace, found: &Found, mended: Option<&Mended>, strict: bool) -> Result<Value> {
    let judged = |name: &str, found: &Found| -> Result<Value> {
        let report = &found.validation.report;
        let refused = found.refused.objects.iter();
        let mut value = serde_json::to_value(report)?;
        value["trace"] = name.into();
        value["valid"] = found.is_good(strict).into();
        value["errors"] = found.errors().into();
        value["warnings"] = report.count(Severity::Warning).into();
        value["refused"] = refused.map(|(object, words)| json!({"object": object, "message": words})).collect();
        Ok(value)
    };
    let mut value = judged(trace.name(), found)?;
    if let Some(mended) = mended {
        value["fixed"] = serde_json::to_value(&mended.fixed)?;
        value["mended"] = judged(&mended.place, &mended.left)?;
    }
    Ok(value)
}

fn explain(text: &str) -> Result<Outcome> {
    let code = validate::explain(text)
        .ok_or_else(|| anyhow!("there is no code `{text}`; `skctl validate print` lists all of them"))?;
    let fix = code.fix.unwrap_or("cannot fix this");
    output::print(&format!(
        "{} {} ({})\n\n{}\n\nremedy: {}\n--fix:  {fix}\n",
        code.code,
        code.name,
        severity(code),
        code.explanation,
        code.remedy
    ))?;
    Ok(Outcome::Good)
}

fn print(args: &PrintArgs) -> Result<Outcome> {
    match args.output {
        ObjectFormat::Json => output::print_json(&json!(validate::all()))?,
        ObjectFormat::Yaml => output::print_yaml(validate::all())?,
        ObjectFormat::Table => {
            let mut text = format!("{:<6} {:<8} {:<4} NAME\n", "CODE", "SEVERITY", "FIX");
            for code in validate::all() {
                let fix = if code.fix.is_some() { "yes" } else { "" };
                let _ = writeln!(text, "{:<6} {:<8} {fix:<4} {}", code.code, severity(code), code.name);
            }
            output::print(&text)?;
        }
    }
    Ok(Outcome::Good)
}

fn severity(code: &Code) -> &'static str {
    match code.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}
