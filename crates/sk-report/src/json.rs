//! summary.json: the verdict, the figures under their own names, and what was not simulated.

use serde_json::{Map, Value, json};

use crate::analysis::Analysis;
use crate::assertion::Verdict;
use crate::escape::json_in_terminal;
use crate::figure::ToFigure;
use crate::gaps::Gap;
use crate::verdict::{Judged, Judgement};

/// The whole file. What `run_id`, `verdict`, `headline`, `strict`, `assertions` and `not_simulated` say stands first;
/// every other key is a figure.
pub fn render(analysis: &Analysis, judgement: &Judgement) -> Result<String, serde_json::Error> {
    let mut summary = Map::new();
    summary.insert("run_id".into(), json!(analysis.meta.run_id));
    summary.insert("verdict".into(), json!(judgement.mark.word()));
    summary.insert("headline".into(), json!(judgement.sentence(analysis)));
    summary.insert("strict".into(), json!(judgement.strict));
    let assertions = judgement.verdicts.iter().map(|verdict| assertion(verdict, &judgement.judged(verdict)));
    summary.insert("assertions".into(), assertions.collect());
    summary.insert("not_simulated".into(), not_simulated(judgement)?);
    if let Value::Object(figures) = serde_json::to_value(analysis.summary.figure())? {
        summary.extend(figures);
    }
    Ok(json_in_terminal(&serde_json::to_string_pretty(&summary)?).into_owned() + "\n")
}

fn assertion(verdict: &Verdict, judged: &Judged) -> Value {
    let values: Map<String, Value> = verdict.values.iter().map(|(path, value)| (path.clone(), json!(value))).collect();
    let mut fields = Map::new();
    if let Some(name) = &verdict.name {
        fields.insert("name".into(), json!(name));
    }
    fields.insert("assertion".into(), json!(verdict.text));
    fields.insert("result".into(), json!(judged.word().to_lowercase()));
    // For programs that look no further: what holds on a run that is not whole has not passed.
    fields.insert("passed".into(), json!(*judged == Judged::Pass));
    if let Judged::Skipped(why) | Judged::Error(why) = judged {
        fields.insert("why".into(), json!(why));
    }
    fields.insert("values".into(), Value::Object(values));
    Value::Object(fields)
}

/// Every object that was not simulated, worst first, and whether the scenario accepts that.
fn not_simulated(judgement: &Judgement) -> Result<Value, serde_json::Error> {
    let mut all = Vec::new();
    for (gaps, accepted) in [(&judgement.gaps, false), (&judgement.accepted, true)] {
        for missing in gaps.iter().flat_map(|gap: &Gap| &gap.objects) {
            let mut object = serde_json::to_value(missing)?;
            object["accepted"] = json!(accepted);
            all.push(object);
        }
    }
    Ok(Value::Array(all))
}
