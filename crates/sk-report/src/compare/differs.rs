//! How two columns differ: scenario, trace, seed, version.

use serde_json::Value;

use super::column::{Column, question};

/// How many differences of two scenarios are listed; an entirely different scenario is not listed field by field.
const MOST: usize = 50;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where: a path of the scenario, or `trace`, `seed`, `version`, `engine`, `window`.
    pub path: String,
    /// In the baseline.
    pub old: String,
    /// In the column.
    pub new: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} → {}", self.path, self.old, self.new)
    }
}

/// How the question of `column` differs from that of `baseline`; scenario paths first.
pub(super) fn between(baseline: &Column, column: &Column) -> Vec<Difference> {
    let (old, new) = (&baseline.members[0], &column.members[0]);
    let mut found = Vec::new();
    if let (Some(old), Some(new)) = (question(old), question(new)) {
        found = of_scenarios(&old, &new);
    }
    let seeds = |column: &Column| {
        let seeds: Vec<String> = column.seeds().iter().map(ToString::to_string).collect();
        seeds.join(",")
    };
    let window = |member: &super::Member| {
        format!("{} to {}", member.meta.start.to_rfc3339_secs(), member.meta.end.to_rfc3339_secs())
    };
    let trace = |member: &super::Member| {
        let digest: String = member.meta.trace.digest.chars().take(12).collect();
        format!("{} ({digest})", member.meta.trace.name)
    };
    let mut differ = |path: &str, old: String, new: String, is_same: bool| {
        if !is_same {
            found.push(Difference { path: path.to_owned(), old, new });
        }
    };
    let same_trace = old.meta.trace.digest == new.meta.trace.digest;
    differ("trace", trace(old), trace(new), same_trace);
    differ("seed", seeds(baseline), seeds(column), baseline.seeds() == column.seeds());
    differ("version", old.meta.version.clone(), new.meta.version.clone(), old.meta.version == new.meta.version);
    let engine = |member: &super::Member| format!("{:?}", member.meta.engine).to_lowercase();
    differ("engine", engine(old), engine(new), old.meta.engine == new.meta.engine);
    differ("window", window(old), window(new), window(old) == window(new));
    found
}

/// In which fields a scenario differs from another one, the name aside.
pub fn of_scenarios(old: &Value, new: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", old, new, &mut found);
    let more = found.len().saturating_sub(MOST);
    found.truncate(MOST);
    if more > 0 {
        found.push(Difference { path: format!("{more} more fields"), old: "…".into(), new: "…".into() });
    }
    found
}

fn compare(path: &str, old: &Value, new: &Value, found: &mut Vec<Difference>) {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
            names.sort();
            names.dedup();
            for name in names.into_iter().filter(|name| !(path.is_empty() && *name == "name")) {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                compare(&path, a.get(name).unwrap_or(&Value::Null), b.get(name).unwrap_or(&Value::Null), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (place, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{place}]"), a, b, found);
            }
        }
        // What only one side has is listed by its fields too: a whole scheduler configuration says nothing in a line.
        (Value::Null, Value::Object(b)) if !b.is_empty() => {
            compare(path, &Value::Object(serde_json::Map::new()), new, found);
        }
        (Value::Object(a), Value::Null) if !a.is_empty() => {
            compare(path, old, &Value::Object(serde_json::Map::new()), found);
        }
        (Value::Null, Value::Array(b)) if b.iter().any(Value::is_object) => {
            compare(path, &Value::Array(vec![Value::Null; b.len()]), new, found);
        }
        (Value::Array(a), Value::Null) if a.iter().any(Value::is_object) => {
            compare(path, old, &Value::Array(vec![Value::Null; a.len()]), found);
        }
        _ if old != new => found.push(Difference { path: path.to_owned(), old: shown(old), new: shown(new) }),
        _ => {}
    }
}

/// A value in short.
fn shown(value: &Value) -> String {
    const COLUMNS: usize = 40;
    let text = match value {
        Value::Null => "unset".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    crate::words::fit(&text, COLUMNS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_fields_that_differ_are_named() {
        let old = json!({"name": "a", "cluster": {"groups": {"small": {"max": 40, "cpu": 1}}}, "assert": ["x"]});
        let new = json!({"name": "b", "cluster": {"groups": {"small": {"max": 36, "cpu": 1}}}, "scheduler": "s.yaml",
                         "assert": ["x"]});
        let mut found = Vec::new();
        compare("", &old, &new, &mut found);
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["cluster.groups.small.max 40 → 36", "scheduler unset → s.yaml"]);
    }

    #[test]
    fn what_only_one_side_has_is_told_field_by_field() {
        let scheduler =
            json!({"profiles": [{"schedulerName": "s", "args": {"type": "MostAllocated"}}], "extenders": []});
        let texts = |old: &Value, new: &Value| -> Vec<String> {
            of_scenarios(old, new).iter().map(ToString::to_string).collect()
        };
        let (without, with) = (json!({}), json!({"scheduler": scheduler}));
        let told = ["args.type unset → MostAllocated", "schedulerName unset → s"];
        let told = told.map(|field| format!("scheduler.profiles[0].{field}"));
        assert_eq!(texts(&without, &with), ["scheduler.extenders unset → []", &told[0], &told[1]]);
        assert_eq!(texts(&with, &without).len(), 3);
    }
}
