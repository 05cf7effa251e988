//! summary.json: the figures under their own names, and what became of the assertions.

use serde_json::{Map, Value, json};

use crate::analysis::Analysis;
use crate::assertion::Verdict;
use crate::figure::ToFigure;

/// The whole file. `run_id` and `assertions` come first; every other key is a figure.
pub fn render(analysis: &Analysis, verdicts: &[Verdict]) -> Result<String, serde_json::Error> {
    let mut summary = Map::new();
    summary.insert("run_id".into(), json!(analysis.meta.run_id));
    summary.insert("assertions".into(), verdicts.iter().map(judged).collect());
    if let Value::Object(figures) = serde_json::to_value(analysis.summary.figure())? {
        summary.extend(figures);
    }
    Ok(serde_json::to_string_pretty(&summary)? + "\n")
}

fn judged(verdict: &Verdict) -> Value {
    let values: Map<String, Value> = verdict.values.iter().map(|(path, value)| (path.clone(), json!(value))).collect();
    let mut judged = Map::new();
    if let Some(name) = &verdict.name {
        judged.insert("name".into(), json!(name));
    }
    judged.insert("assertion".into(), json!(verdict.text));
    judged.insert("passed".into(), json!(verdict.passed));
    judged.insert("values".into(), Value::Object(values));
    Value::Object(judged)
}
