//! `skctl validate TRACE`: can it be replayed, and can it be mended?

use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use indicatif::HumanCount;
use serde_json::{Value, json};
use sk_store::Trace;
use sk_trace::validate::{self, Code, Fixed, Report, Severity, Validation};

use crate::cli::{Global, PrintArgs, TableFormat, ValidateArgs, ValidateCommand};
use crate::failure::Outcome;
use crate::outputs::Destination;
use crate::progress::Bar;
use crate::{output, traces};

pub(crate) fn run(args: &ValidateArgs, global: &Global) -> Result<Outcome> {
    match &args.command {
        Some(ValidateCommand::Explain(args)) => explain(&args.code),
        Some(ValidateCommand::Print(args)) => print(args),
        None => judge(args, global),
    }
}

fn judge(args: &ValidateArgs, global: &Global) -> Result<Outcome> {
    let typed = args.trace.as_deref().ok_or_else(|| anyhow!("which trace? `skctl validate TRACE`"))?;
    let to = args.out.as_deref().map(|out| Destination::beside_an_answer(out, args.to)).transpose()?;
    let trace = traces::open(typed, global)?;
    let found = look_at(&trace, global)?;
    let mended = to.map(|to| mend(&trace, &found, &to, global)).transpose()?;
    match args.output {
        TableFormat::Table => output::print(&text(&trace, &found.report, mended.as_ref(), args.strict))?,
        TableFormat::Json => output::print_json(&for_programs(&trace, &found.report, mended.as_ref(), args.strict)?)?,
    }
    let judged = mended.as_ref().map_or(&found.report, |mended| &mended.left);
    Ok(if is_good(judged, args.strict) { Outcome::Good } else { Outcome::Bad })
}

fn look_at(trace: &Trace, global: &Global) -> Result<Validation> {
    let _bar = Bar::of_unknown_length(format!("reading {}", trace.name()), global.quiet);
    Ok(validate::validate(trace)?)
}

/// What came of mending.
struct Mended {
    place: String,
    fixed: Fixed,
    /// What is still wrong with the mended trace.
    left: Report,
}

fn mend(trace: &Trace, found: &Validation, to: &Destination, global: &Global) -> Result<Mended> {
    let fixed = to.write(global, |format, out| validate::fix(trace, found, format, out))?;
    // Mending one thing may bring out another, so the file itself is asked, not what was done to it.
    let left = look_at(&to.open()?, global)?.report;
    Ok(Mended { place: to.to_string(), fixed, left })
}

fn is_good(report: &Report, strict: bool) -> bool {
    if strict { report.is_clean() } else { report.is_valid() }
}

fn text(trace: &Trace, found: &Report, mended: Option<&Mended>, strict: bool) -> String {
    let mut text = findings(found);
    text += &verdict(trace.name(), found, strict);
    if let Some(Mended { place, fixed, left }) = mended {
        for (rule, count) in &fixed.changes {
            let code = rule.code();
            let _ = writeln!(text, "fixed  {} {count} times: {}", code.code, code.fix.unwrap_or("mended"));
        }
        text += &findings(left);
        text += &verdict(place, left, strict);
    }
    text
}

/// The findings, a line each, and how many of each code are not shown.
fn findings(report: &Report) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let _ = writeln!(text, "{finding}");
    }
    for (rule, count) in &report.counts {
        let shown = report.findings.iter().filter(|finding| finding.code == *rule).count() as u64;
        if *count > shown {
            let _ = writeln!(text, "{} and {} more like it", rule.code().code, HumanCount(count - shown));
        }
    }
    text
}

fn verdict(name: &str, report: &Report, strict: bool) -> String {
    let word = if is_good(report, strict) { "VALID" } else { "INVALID" };
    let [errors, warnings] = [Severity::Error, Severity::Warning].map(|severity| report.count(severity));
    let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
    let events = counted(report.events, "event");
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

fn for_programs(trace: &Trace, found: &Report, mended: Option<&Mended>, strict: bool) -> Result<Value> {
    let judged = |name: &str, report: &Report| -> Result<Value> {
        let mut value = serde_json::to_value(report)?;
        value["trace"] = name.into();
        value["valid"] = is_good(report, strict).into();
        value["errors"] = report.count(Severity::Error).into();
        value["warnings"] = report.count(Severity::Warning).into();
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
    let fix = code.fix.unwrap_or("cannot mend this");
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
        TableFormat::Json => output::print_json(&json!(validate::all()))?,
        TableFormat::Table => {
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
