//! The comparison for programs: every figure of every run under its own name, and the compared rows.

use serde_json::{Value, json};

use super::Comparison;
use super::judged::Asserted;
use super::rows::{Change, Judged};
use super::study::Study;
use super::study::parameters::{Effect, Parameter, Setting};
use super::study::tradeoff::{COST, Point, WAITING};
use crate::assertion::Evaluated;
use crate::escape::json_in_terminal;
use crate::figure::ToFigure;

/// The whole document.
pub fn render(comparison: &Comparison) -> Result<String, serde_json::Error> {
    let columns: Result<Vec<Value>, serde_json::Error> = comparison
        .columns
        .iter()
        .map(|column| {
            let runs: Result<Vec<Value>, serde_json::Error> = column
                .members
                .iter()
                .map(|member| {
                    let figures = serde_json::to_value(member.summary.figure())?;
                    let meta = &member.meta;
                    Ok(json!({
                        "run_id": meta.run_id, "seed": meta.seed, "trace": meta.trace.name, "version": meta.version,
                        "engine": meta.engine, "verdict": member.verdict, "partial": meta.partial,
                        "currency": meta.currency, "figures": figures,
                    }))
                })
                .collect();
            Ok(json!({"label": column.label, "runs": runs?}))
        })
        .collect();
    let rows: Vec<Value> = comparison
        .rows
        .iter()
        .map(|row| {
            let changes: Vec<Value> =
                row.changes.iter().map(|change| change.as_ref().map_or(Value::Null, told)).collect();
            json!({"label": row.label, "figure": row.path, "means": row.means, "changes": changes})
        })
        .collect();
    let differs: Vec<Vec<Value>> = comparison
        .differs
        .iter()
        .map(|all| all.iter().map(|one| json!({"path": one.path, "old": one.old, "new": one.new})).collect())
        .collect();
    let moved: Vec<Value> = comparison
        .moved
        .iter()
        .map(|one| json!({"sort": one.sort, "name": one.name, "figure": one.figure, "old": one.old, "new": one.new}))
        .collect();
    let fidelity: Result<Vec<Value>, serde_json::Error> = comparison
        .fidelity
        .iter()
        .map(|one| {
            let figures = serde_json::to_value(one.figures.figure())?;
            Ok(json!({"column": one.label, "figures": figures}))
        })
        .collect();
    let assertions: Vec<Value> = comparison.assertions.iter().map(asserted).collect();
    let document = json!({
        "fidelity": fidelity?, "assertions": assertions, "study": comparison.study.as_ref().map(study),
        "columns": columns?, "rows": rows, "differs": differs, "moved": moved, "cautions": comparison.cautions(),
    });
    Ok(json_in_terminal(&serde_json::to_string_pretty(&document)?).into_owned() + "\n")
}

/// Cost against waiting and the parameters, with columns by their numbers.
fn study(study: &Study) -> Value {
    let point = |point: &Point| {
        json!({
            "column": point.column, COST: point.cost, WAITING: point.waiting, "front": point.is_on_front(),
            "beaten_by": point.beaten_by, "within_noise": point.within_noise,
        })
    };
    let effect = |effect: &Effect| {
        json!({
            "figure": effect.shown.path, "means": effect.means, "spread": effect.spread, "noise": effect.noise,
            "real": effect.is_real(),
        })
    };
    let parameter = |parameter: &Parameter| {
        let setting = |setting: &Setting| json!({"values": setting.texts, "columns": setting.columns});
        json!({
            "paths": parameter.paths, "settings": parameter.values.iter().map(setting).collect::<Vec<_>>(),
            "balanced": parameter.is_balanced, "effects": parameter.effects.iter().map(effect).collect::<Vec<_>>(),
        })
    };
    json!({
        "points": study.points.iter().map(point).collect::<Vec<_>>(),
        "parameters": study.parameters.iter().map(parameter).collect::<Vec<_>>(),
    })
}

fn asserted(one: &Asserted) -> Value {
    let Asserted { label, verdict } = one;
    let values: serde_json::Map<String, Value> =
        verdict.values.iter().map(|(path, value)| (path.clone(), json!(value))).collect();
    json!({
        "run": label, "name": verdict.name, "assertion": verdict.text, "result": verdict.result,
        "passed": verdict.result == Evaluated::Held, "values": values,
    })
}

fn told(change: &Change) -> Value {
    let judged = match change.judged {
        Judged::Same => "same",
        Judged::Noise => "noise",
        Judged::Better => "better",
        Judged::Worse => "worse",
        Judged::Changed => "changed",
    };
    json!({"difference": change.difference, "relative": change.relative, "noise": change.noise, "judged": judged})
}
