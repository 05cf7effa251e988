//! Sends a family's calls to either server: fills in versions and uids of earlier responses, and keeps the responses.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Answer, Call, Family, scrub};

/// A response.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The HTTP status code.
    pub code: u16,
    /// The body; of a watch, a list of events.
    pub body: Value,
}

/// Which call is next, and what was answered so far.
///
/// In a body and in a path `<version of pods/a>` stands for the last seen version of that object, `<uid of pods/a>` for
/// its uid, `<continue>` for the last list's token and `<version>` for the last list's version; `<x times 3>` stands
/// for `xxx`.
pub struct Player<'f> {
    family: &'f Family,
    next: usize,
    seen: BTreeMap<String, (String, String)>,
    list: (String, String),
    answers: Vec<Answer>,
}

impl<'f> Player<'f> {
    /// At the first call.
    pub fn new(family: &'f Family) -> Self {
        Self { family, next: 0, seen: BTreeMap::new(), list: Default::default(), answers: Vec::new() }
    }

    /// The next call, filled in; `None` at the end.
    pub fn next_call(&self) -> Option<Call> {
        let mut call = self.family.calls.get(self.next)?.clone();
        call.path = self.filled(&call.path);
        fill(&mut call.body, &|text| self.filled(text));
        Some(call)
    }

    /// The answer to it.
    pub fn answered(&mut self, call: &Call, answered: Answered) {
        self.remember(call, &answered.body);
        self.answers.push(Answer {
            name: call.name.clone(),
            code: answered.code,
            body: scrub(answered.body, self.family.managers),
        });
        self.next += 1;
    }

    /// All answers.
    pub fn into_answers(self) -> Vec<Answer> {
        self.answers
    }

    fn remember(&mut self, call: &Call, body: &Value) {
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (version, name) = (text("/metadata/resourceVersion"), text("/metadata/name"));
        if body["items"].is_array() {
            self.list = (text("/metadata/continue"), version);
        } else if !name.is_empty() {
            let path = call.path.split('?').next().unwrap_or_default();
            let parts: Vec<&str> = path.split('/').collect();
            let is_plural = |part: &&&str| part.ends_with('s') && **part != "status";
            let plural = if call.method == "POST" { parts.last() } else { parts.iter().rev().find(is_plural) };
            let key = format!("{}/{name}", plural.copied().unwrap_or_default());
            self.seen.insert(key, (version, text("/metadata/uid")));
        }
    }

    fn filled(&self, text: &str) -> String {
        let mut filled = text.replace("<continue>", &self.list.0).replace("<version>", &self.list.1);
        for (key, (version, uid)) in &self.seen {
            filled = filled.replace(&format!("<version of {key}>"), version).replace(&format!("<uid of {key}>"), uid);
        }
        repeated(&filled)
    }
}

/// `<x times 3>` is `xxx`: a request that is too large stands in a small file.
fn repeated(text: &str) -> String {
    const TIMES: &str = " times ";
    let Some((begin, rest)) = text.split_once(TIMES) else { return text.to_owned() };
    let (Some(open), Some(close)) = (begin.rfind('<'), rest.find('>')) else { return text.to_owned() };
    let Ok(count) = rest[..close].parse::<usize>() else { return text.to_owned() };
    format!("{}{}{}", &begin[..open], begin[open + 1..].repeat(count), repeated(&rest[close + 1..]))
}

fn fill(value: &mut Value, filled: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) if text.contains('<') => *text = filled(text),
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, filled)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill(field, filled)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
