//! `skctl run --dry-run` and `skctl validate TRACE -f SCENARIO`: all checks that need no simulation.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::{Value, json};
use sk_replay::forecast::{Forecast, forecast};

use super::planned::{self, Planned};
use crate::cli::{Global, RunArgs};
use crate::commands::validate;
use crate::failure::Outcome;
use crate::progress::Bar;
use crate::{output, scenarios};

/// Says which runs there would be, whether their traces can be replayed, and what will not fit. Scenario and assertions were
/// checked before.
pub(super) fn run(args: &RunArgs, planned: &Planned, global: &Global) -> Result<Outcome> {
    let mut text = String::new();
    let mut examined = Vec::new();
    let mut is_good = true;
    for run in &planned.runs {
        if !examined.contains(&run.inputs) {
            examined.push(run.inputs);
            let (found, good) = validate::examine(&planned.inputs.get(run.inputs).trace, args.request.strict, global)?;
            text += &found;
            is_good &= good;
        }
    }
    let expected = expect(planned, global)?;
    text += &expected.text();
    for run in &planned.runs {
        let label = if run.label.is_empty() { String::new() } else { format!("{}: ", output::line(&run.label)) };
        let (start, length) = (run.window.start, run.window.end.since(run.window.start));
        let seed = run.setup.settings.seed;
        let _ = writeln!(text, "would run  {label}{length} from {start}, seed {seed}, into {}", run.dir.display());
    }
    output::print(&text)?;
    Ok(if is_good && expected.is_good(args.request.strict) { Outcome::Good } else { Outcome::Bad })
}

/// What is expected of each variant of a scenario.
pub(crate) struct Expected(Vec<(String, Forecast)>);

/// The same for `skctl validate`.
pub(crate) fn of_scenario(args: &RunArgs, global: &Global) -> Result<Expected> {
    let resolved = scenarios::resolve(args)?;
    expect(&planned::plan(args, &resolved, true, global)?, global)
}

fn expect(planned: &Planned, global: &Global) -> Result<Expected> {
    let _bar = Bar::of_unknown_length("trying each pod on each kind of node".to_owned(), global.quiet);
    let mut all = Vec::new();
    for run in planned.runs.iter().filter(|run| run.repetition == 0) {
        let found = forecast(&run.request(planned.inputs.get(run.inputs)))?;
        all.push((planned.variants[run.variant].label.clone(), found));
    }
    Ok(Expected(all))
}

impl Expected {
    /// Does every pod fit somewhere? With `strict` also: is everything modelled and simulated?
    pub(crate) fn is_good(&self, strict: bool) -> bool {
        let whole = |found: &Forecast| found.unmodelled.is_empty() && found.missing.is_empty();
        self.0.iter().all(|(_, found)| found.misfits.is_empty() && (!strict || whole(found)))
    }

    /// A line for each thing, worst first.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (label, found) in &self.0 {
            let label = if label.is_empty() { String::new() } else { format!("{}: ", output::line(label)) };
            for (object, words) in &found.misfits {
                let _ = writeln!(text, "fits nowhere  {label}{}", output::line(&format!("{object}: {words}")));
            }
            for missing in &found.missing {
                let plural = |pods: i64| if pods == 1 { "" } else { "s" };
                let size = missing.pods.map_or_else(String::new, |pods| format!(", {pods} pod{}", plural(pods)));
                let _ = writeln!(text, "not simulated  {label}{}{size}", output::line(&missing.object));
            }
            for warning in &found.unmodelled {
                let _ = writeln!(
                    text,
                    "not modelled  {label}{} ({} objects)",
                    output::line(&warning.message),
                    warning.count
                );
            }
            if found.untried > 0 {
                let _ = writeln!(text, "not tried  {label}{} pod templates: there are too many", found.untried);
            }
        }
        text
    }

    /// For programs.
    pub(crate) fn for_programs(&self) -> Value {
        let one = |(label, found): &(String, Forecast)| {
            let misfits: Vec<Value> = found
                .misfits
                .iter()
                .map(|(object, words)| json!({"object": object.to_string(), "message": words}))
                .collect();
            json!({
                "variant": label, "fits_nowhere": misfits, "not_simulated": found.missing,
                "not_modelled": found.unmodelled, "not_tried": found.untried,
            })
        };
        self.0.iter().map(one).collect()
    }
}
