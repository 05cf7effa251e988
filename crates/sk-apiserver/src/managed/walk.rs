//! Set operations on objects, as field managers need them: the fields of an object, the difference of two objects, the
//! merge of an applied configuration, and an object without some of its fields. `shape` says which values are atomic.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::fields::{Fields, Step};
use super::shape::{Form, Shape};
use crate::schema::Type;

/// The fields that a value has (`TypedValue.ToFieldSet`).
pub(super) fn fields_of(value: &Value, shape: Shape<'_>) -> Fields {
    let mut fields = Fields::default();
    collect(value, shape, &mut fields);
    fields
}

fn collect(value: &Value, shape: Shape<'_>, at: &mut Fields) {
    match shape.form(Some(value)) {
        Form::Leaf => at.is_member = true,
        Form::Empty => {}
        Form::Fields(fields) => {
            for (name, value) in fields {
                let (inner, is_declared) = shape.field(name);
                let child = at.child(Step::Field(name.as_str().into()));
                collect(value, inner, child);
                let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                child.is_member |= is_empty || !is_declared;
            }
        }
        Form::Items(items) => {
            for (step, item) in items.iter().filter_map(|item| Some((shape.step(item)?, item))) {
                let child = at.child(step);
                collect(item, shape.item(), child);
                child.is_member = true;
            }
        }
    }
}

/// Where two values differ.
#[derive(Clone, Debug, Default)]
pub(super) struct Difference {
    pub(super) removed: Fields,
    /// Added or changed.
    pub(super) written: Fields,
}

/// How `new` differs from `old` (`TypedValue.Compare`).
pub(super) fn compare(old: &Value, new: &Value, shape: Shape<'_>) -> Difference {
    let mut found = Difference::default();
    compare_at(Some(old), Some(new), shape, &mut Vec::new(), &mut found);
    found
}

fn compare_at<'v>(
    old: Option<&'v Value>,
    new: Option<&'v Value>,
    shape: Shape<'_>,
    path: &mut Vec<Step>,
    found: &mut Difference,
) {
    match (shape.form(old), shape.form(new)) {
        (Form::Fields(_), Form::Fields(_) | Form::Empty) | (Form::Empty, Form::Fields(_)) => {
            let fields_in = |value: Option<&'v Value>| value.and_then(Value::as_object);
            let (olds, news) = (fields_in(old), fields_in(new));
            let names: BTreeSet<&String> = [olds, news].into_iter().flatten().flat_map(Map::keys).collect();
            if names.is_empty() {
                return compare_leaf(old, new, path, found);
            }
            for name in names {
                let [old, new] = [olds, news].map(|fields| fields.and_then(|fields| fields.get(name)));
                path.push(Step::Field(name.as_str().into()));
                compare_at(old, new, shape.field(name).0, path, found);
                path.pop();
            }
        }
        (Form::Items(_), Form::Items(_) | Form::Empty) | (Form::Empty, Form::Items(_)) => {
            let items_in = |value: Option<&'v Value>| value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let (olds, news) = (items_in(old), items_in(new));
            if olds.is_empty() && news.is_empty() {
                return compare_leaf(old, new, path, found);
            }
            let (olds, news) = (by_step(olds, shape), by_step(news, shape));
            let steps: BTreeSet<&Step> = olds.keys().chain(news.keys()).collect();
            for step in steps {
                path.push(step.clone());
                compare_at(olds.get(step).copied(), news.get(step).copied(), shape.item(), path, found);
                path.pop();
            }
        }
        (Form::Leaf | Form::Empty, _)
        | (_, Form::Leaf)
        | (Form::Fields(_), Form::Items(_))
        | (Form::Items(_), Form::Fields(_)) => {
            return compare_leaf(old, new, path, found);
        }
    }
    if old.is_none() {
        found.written.insert(path);
    } else if new.is_none() {
        found.removed.insert(path);
    }
}

/// The items of a list by the step to each; of those with the same step the first.
fn by_step<'v>(items: &'v [Value], shape: Shape<'_>) -> BTreeMap<Step, &'v Value> {
    items.iter().rev().filter_map(|item| Some((shape.step(item)?, item))).collect()
}

fn compare_leaf(old: Option<&Value>, new: Option<&Value>, path: &[Step], found: &mut Difference) {
    match (old, new) {
        (Some(_), None) => found.removed.insert(path),
        (old, new) if old != new => found.written.insert(path),
        (Some(_) | None, _) => {}
    }
}

/// What applying `config` to `live` makes (`TypedValue.Merge`): where both say something, `config` does.
pub(super) fn merge(live: Option<&Value>, config: Option<&Value>, shape: Shape<'_>) -> Value {
    match (shape.form(live), shape.form(config)) {
        (Form::Fields(lives), Form::Fields(configs)) => {
            let mut merged = lives.clone();
            for (name, config) in configs {
                let made = merge(lives.get(name), Some(config), shape.field(name).0);
                merged.insert(name.clone(), made);
            }
            Value::Object(merged)
        }
        (Form::Items(lives), Form::Items(configs)) => Value::Array(merge_items(lives, configs, shape)),
        (Form::Fields(_) | Form::Items(_), Form::Empty) => live.cloned().unwrap_or_default(),
        (_, _) => config.or(live).cloned().unwrap_or_default(),
    }
}

/// The first position of each path element.
fn places(steps: &[Option<Step>]) -> BTreeMap<&Option<Step>, usize> {
    steps.iter().enumerate().rev().map(|(place, step)| (step, place)).collect()
}

/// Items of `live` that are not in `config` keep their place among the others, which come in the order of `config`.
fn merge_items(lives: &[Value], configs: &[Value], shape: Shape<'_>) -> Vec<Value> {
    let steps_of = |items: &[Value]| -> Vec<_> { items.iter().map(|item| shape.step(item)).collect() };
    let (live_steps, config_steps) = (steps_of(lives), steps_of(configs));
    let (place_in_live, place_in_config) = (places(&live_steps), places(&config_steps));
    // From each place of the configuration on, the first item that is in both.
    let mut next_shared: Vec<Option<usize>> = vec![None; configs.len() + 1];
    for at in (0..configs.len()).rev() {
        next_shared[at] = if place_in_live.contains_key(&config_steps[at]) { Some(at) } else { next_shared[at + 1] };
    }
    let mut merged = Vec::with_capacity(lives.len().max(configs.len()));
    let (mut live, mut config) = (0, 0);
    let mut done: Vec<bool> = vec![false; lives.len()];
    while live < lives.len() || config < configs.len() {
        if live < lives.len() {
            match place_in_config.get(&live_steps[live]).copied() {
                None => {
                    merged.push(lives[live].clone());
                    live += 1;
                    continue;
                }
                Some(_) if done[live] => {
                    live += 1;
                    continue;
                }
                // It is in both, but another one comes first in the order of the configuration.
                Some(place) if place != config && next_shared[config] != Some(place) => {
                    live += 1;
                    continue;
                }
                Some(_) => {}
            }
        }
        if config < configs.len() {
            let place = place_in_live.get(&config_steps[config]).copied();
            if let Some(place) = place {
                done[place] = true;
            }
            merged.push(merge(place.map(|place| &lives[place]), Some(&configs[config]), shape.item()));
            config += 1;
        }
    }
    merged
}

/// What is left of a value without these fields (`TypedValue.RemoveItems`).
pub(super) fn remove(value: &Value, fields: &Fields, shape: Shape<'_>) -> Value {
    match shape.form(Some(value)) {
        Form::Leaf | Form::Empty => value.clone(),
        Form::Fields(known) => {
            let kept = known.iter().filter_map(|(name, value)| {
                let below = fields.inside.get(&Step::Field(name.as_str().into()));
                match below {
                    Some(below) if below.is_member => None,
                    Some(below) => Some((name.clone(), remove(value, below, shape.field(name).0))),
                    None => Some((name.clone(), value.clone())),
                }
            });
            let kept: Map<String, Value> = kept.collect();
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        Form::Items(items) => {
            let kept = items.iter().filter_map(|item| {
                let below = shape.step(item).and_then(|step| fields.inside.get(&step));
                match below {
                    Some(below) if below.is_member => None,
                    Some(below) => Some(remove(item, below, shape.item())),
                    None => Some(item.clone()),
                }
            });
            let kept: Vec<Value> = kept.collect();
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
    }
}

/// The same fields, and those declared ones that others are inside of (`EnsureNamedFieldsAreMembers`).
pub(super) fn with_parents(fields: &Fields, shape: Shape<'_>) -> Fields {
    let mut all = Fields { is_member: fields.is_member, ..Fields::default() };
    for (step, below) in &fields.inside {
        let (inner, is_declared) = match step {
            Step::Field(name) => shape.field(name),
            Step::Key(_) | Step::Item(_) => (shape.item(), false),
        };
        let mut below = with_parents(below, inner);
        below.is_member |= is_declared && !below.inside.is_empty();
        all.inside.insert(step.clone(), below);
    }
    all
}

/// The errors of an applied configuration against its type, with the server's messages.
pub(super) fn unreadable(value: &Value, shape: Shape<'_>, path: &str) -> Vec<String> {
    let why = match shape {
        Shape::Custom(part) => part.unfit(value),
        Shape::Struct(_) | Shape::Map(_) if !value.is_object() => not_a("map", value),
        Shape::Keyed(..) | Shape::Set if !value.is_array() => not_a("list", value),
        Shape::Struct(_) | Shape::Map(_) | Shape::Keyed(..) | Shape::Set | Shape::Leaf | Shape::Undeclared => None,
    };
    if let Some(why) = why {
        return vec![format!("{path}: {why}")];
    }
    match shape.form(Some(value)) {
        Form::Leaf | Form::Empty => Vec::new(),
        Form::Fields(fields) => {
            fields.iter().flat_map(|(name, value)| unreadable_field(name, value, shape, path)).collect()
        }
        Form::Items(items) => unreadable_items(items, shape, path),
    }
}

fn unreadable_items(items: &[Value], shape: Shape<'_>, path: &str) -> Vec<String> {
    let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
    for (index, item) in items.iter().enumerate() {
        // A server does not look past an item that is not allowed.
        let Some(step) = shape.step(item) else {
            all.extend(shape.misfit(item).map(|why| format!("{path}: element {index}: {why}")));
            return all;
        };
        all.extend(unreadable(item, shape.item(), &format!("{path}{step}")));
        if !seen.insert(step.clone()) {
            all.push(format!("{path}: duplicate entries for key {step}"));
        }
    }
    all
}

fn unreadable_field(name: &str, value: &Value, within: Shape<'_>, path: &str) -> Vec<String> {
    let (inner, path) = (within.field(name).0, format!("{path}.{name}"));
    if !within.takes(name) {
        return vec![format!("{path}: field not declared in schema")];
    }
    let of = match within {
        Shape::Struct(of) => of.field(name).map(|field| &field.of),
        Shape::Map(of) => Some(of),
        _ => None,
    };
    match of.and_then(|of| unfit(of, value)) {
        Some(why) => vec![format!("{path}: {why}")],
        None => unreadable(value, inner, &path),
    }
}

/// `null` is a list and a map that is not there.
fn not_a(wanted: &str, value: &Value) -> Option<String> {
    (!value.is_null()).then(|| format!("expected {wanted}, got &{{{}}}", crate::custom::in_go(value)))
}

/// Why a plain value is none of its type (`validateScalar`).
fn unfit(of: &Type, value: &Value) -> Option<String> {
    let shown = || format!("&value.valueUnstructured{{Value:{value}}}");
    match (of, value) {
        (_, Value::Null) => None,
        (Type::Int32 | Type::Int64, Value::String(_)) => Some("expected numeric (int or float), got string".to_owned()),
        (Type::String | Type::Time, Value::Number(_) | Value::Bool(_)) => {
            Some(format!("expected string, got {}", shown()))
        }
        (Type::List(_), value) if !value.is_array() => not_a("list", value),
        (Type::Struct(_) | Type::Map(_), value) if !value.is_object() => not_a("map", value),
        (Type::Bool, Value::String(_) | Value::Number(_)) => Some(format!("expected boolean, got {}", shown())),
        (_, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PORTS: Shape<'_> = Shape::Keyed(&["port"], &Type::Any);

    #[test]
    fn an_item_that_stands_twice_in_a_list_is_taken_once_when_it_is_applied() {
        let live = json!([{"port": 1, "name": "a"}, {"port": 2}, {"port": 1, "name": "b"}]);
        let merged = merge(Some(&live), Some(&json!([{"port": 1, "name": "c"}])), PORTS);
        assert_eq!(merged, json!([{"port": 1, "name": "c"}, {"port": 2}]));
    }

    #[test]
    fn long_lists_are_compared_and_merged_item_by_item() {
        let ports = |from: u32| Value::Array((from..from + 20_000).map(|port| json!({"port": port})).collect());
        let (old, new) = (ports(0), ports(10_000));
        let found = compare(&old, &new, PORTS);
        assert_eq!((found.removed.inside.len(), found.written.inside.len()), (10_000, 10_000));
        let merged = merge(Some(&old), Some(&new), PORTS);
        assert_eq!(merged.as_array().map(Vec::len), Some(30_000));
    }
}
