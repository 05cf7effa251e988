//! Strategic merge patch: lists merge by the merge key in the type table, and directives remove or replace
//! (`apimachinery/pkg/util/strategicpatch`, 1.36).
//!
//! The directives are `$patch` (replace, delete), `$retainKeys`, `$deleteFromPrimitiveList/<list>` and
//! `$setElementOrder/<list>`. A merged list follows the patch's order where the patch gives one, else the order of the
//! stored list; where neither decides, Kubernetes puts new items first.

use serde_json::{Map, Value};

use crate::schema::{Merge, Struct, Type};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList/";
const ORDER_PREFIX: &str = "$setElementOrder/";

type Fields = Map<String, Value>;
type Merged<T> = Result<T, String>;

/// The object that the patch makes of `original`.
pub(super) fn apply(original: Value, patch: &Value, of: &'static Struct) -> Merged<Value> {
    let (Value::Object(original), Value::Object(patch)) = (original, patch) else {
        return Err("invalid JSON document".to_owned());
    };
    merge_map(original, patch.clone(), Some(of)).map(Value::Object)
}

fn merge_map(mut original: Fields, mut patch: Fields, of: Option<&'static Struct>) -> Merged<Fields> {
    if let Some(directive) = patch.remove(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => Ok(patch),
            Some("delete") => Ok(Fields::new()),
            _ => {
                patch.insert(DIRECTIVE.to_owned(), directive.clone());
                Err(format!("unknown patch type: {} in map: {}", shown(&directive), shown(&Value::Object(patch))))
            }
        };
    }
    retain_keys(&mut original, &mut patch)?;
    set_element_orders(&mut original, &mut patch, of)?;
    for (key, change) in patch {
        let (name, is_delete_list) = match key.strip_prefix(DELETE_PREFIX) {
            Some(name) => (name.to_owned(), true),
            None => (key, false),
        };
        if change.is_null() {
            original.remove(&name);
            continue;
        }
        let merged = match (original.remove(&name), change) {
            (Some(kept), _) if is_delete_list && !kept.is_array() => Some(kept),
            (None, _) if is_delete_list => None,
            (Some(Value::Object(kept)), Value::Object(change)) => {
                let (inner, merge) = inside_struct(of, &name)?;
                let replaced = merge == Merge::Replace;
                let merged = if replaced { change } else { merge_map(kept, change, inner)? };
                Some(Value::Object(merged))
            }
            (Some(Value::Array(kept)), Value::Array(change)) => {
                let (inner, merge) = inside_list(of, &name)?;
                Some(Value::Array(merge_list_field(kept, change, inner, merge, is_delete_list)?))
            }
            (_, change) => without_directives(without_nulls(change)),
        };
        merged.into_iter().for_each(|merged| drop(original.insert(name.clone(), merged)));
    }
    Ok(original)
}

/// The type inside a field that holds a struct or a map. Of what has no type, nothing is known and nothing refused.
fn inside_struct(of: Option<&'static Struct>, name: &str) -> Merged<(Option<&'static Struct>, Merge)> {
    let Some(of) = of else { return Ok((None, Merge::Default)) };
    let field = of.field(name).ok_or_else(|| unknown(of, name))?;
    Ok(match field.of {
        Type::Struct(inner) => (Some(inner), field.merge),
        _ => (None, field.merge),
    })
}

fn inside_list(of: Option<&'static Struct>, name: &str) -> Merged<(Option<&'static Struct>, Merge)> {
    let Some(of) = of else { return Ok((None, Merge::Default)) };
    let field = of.field(name).ok_or_else(|| unknown(of, name))?;
    Ok(match field.of {
        Type::List(Type::Struct(inner)) => (Some(inner), field.merge),
        _ => (None, field.merge),
    })
}

fn unknown(of: &Struct, name: &str) -> String {
    format!("unable to find api field in struct {} for the json field \"{name}\"", of.name)
}

fn key_of(merge: Merge) -> Option<&'static str> {
    match merge {
        Merge::By(key) | Merge::ByRetainingKeys(key) => Some(key),
        Merge::Default | Merge::Replace | Merge::RetainKeys => None,
    }
}

fn merge_list_field(
    original: Vec<Value>,
    patch: Vec<Value>,
    of: Option<&'static Struct>,
    merge: Merge,
    is_delete_list: bool,
) -> Merged<Vec<Value>> {
    match key_of(merge) {
        None if is_delete_list => Ok(original.into_iter().filter(|item| !patch.contains(item)).collect()),
        None => Ok(patch),
        Some(key) => merge_list(original, patch, of, key, is_delete_list),
    }
}

fn merge_list(
    original: Vec<Value>,
    patch: Vec<Value>,
    of: Option<&'static Struct>,
    key: &str,
    is_delete_list: bool,
) -> Merged<Vec<Value>> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    if !are_maps(&original, &patch)? {
        if is_delete_list {
            return Ok(original.into_iter().filter(|item| !patch.contains(item)).collect());
        }
        let mut merged: Vec<Value> = Vec::new();
        original.iter().chain(&patch).for_each(|item| {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        });
        let (named, others) = merged.into_iter().partition(|item| patch.contains(item));
        return Ok(in_order(named, others, &patch, &original, ""));
    }
    let (original, patch) = take_special(original, patch, key)?;
    let order = original.clone();
    let mut merged = original;
    for change in patch.clone() {
        let Value::Object(change) = change else { return Err(not_a_map(&change)) };
        let value = change.get(key).ok_or_else(|| no_key(&change, key))?;
        let found = merged.iter().position(|item| item.get(key) == Some(value));
        match found {
            Some(place) => {
                let kept = std::mem::take(merged[place].as_object_mut().ok_or_else(|| not_a_map(&Value::Null))?);
                merged[place] = Value::Object(merge_map(kept, change, of)?);
            }
            None => merged.push(Value::Object(change)),
        }
    }
    let order = if order.is_empty() { merged.clone() } else { order };
    let is_named = |item: &Value| patch.iter().any(|change| change.get(key) == item.get(key));
    let (named, others) = merged.into_iter().partition(is_named);
    Ok(in_order(named, others, &patch, &order, key))
}

/// Are the elements maps? They must be alike.
fn are_maps(original: &[Value], patch: &[Value]) -> Merged<bool> {
    let mut all = original.iter().chain(patch);
    let Some(first) = all.next() else { return Ok(false) };
    if first.is_array() {
        return Err("lists of lists are not supported".to_owned());
    }
    let same = |item: &Value| std::mem::discriminant(item) == std::mem::discriminant(first);
    if all.all(same) { Ok(first.is_object()) } else { Err("list element types are not identical".to_owned()) }
}

/// Carries out the directives among the elements: what is left of both lists.
fn take_special(mut original: Vec<Value>, patch: Vec<Value>, key: &str) -> Merged<(Vec<Value>, Vec<Value>)> {
    let (mut rest, mut replace) = (Vec::new(), false);
    for change in patch {
        let Value::Object(fields) = &change else { return Err(not_a_map(&change)) };
        match fields.get(DIRECTIVE) {
            None => rest.push(change),
            Some(directive) => match directive.as_str() {
                Some("delete") => {
                    let value = fields.get(key).ok_or_else(|| no_key(fields, key))?;
                    original.retain(|item| item.get(key) != Some(value));
                }
                Some("replace") => replace = true,
                Some("merge") => return Err("merging lists cannot yet be specified in the patch".to_owned()),
                _ => return Err(format!("unknown patch type: {} in map: {}", shown(directive), shown(&change))),
            },
        }
    }
    Ok(if replace { (rest, Vec::new()) } else { (original, rest) })
}

/// Elements that the patch names go by the patch's order, the others by the original's, and both are woven together.
fn in_order(
    mut named: Vec<Value>,
    mut others: Vec<Value>,
    patch: &[Value],
    original: &[Value],
    key: &str,
) -> Vec<Value> {
    let place = |list: &[Value], item: &Value| {
        list.iter().position(|known| match key {
            "" => known == item,
            key => known.get(key) == item.get(key),
        })
    };
    named.sort_by_key(|item| place(patch, item));
    others.sort_by_key(|item| place(original, item));
    let mut woven = Vec::with_capacity(named.len() + others.len());
    let (mut others, mut named) = (others.into_iter().peekable(), named.into_iter().peekable());
    loop {
        let next = match (others.peek(), named.peek()) {
            (None, None) => return woven,
            (Some(_), None) => others.next(),
            (None, Some(_)) => named.next(),
            (Some(other), Some(one)) => match (place(original, other), place(original, one)) {
                (Some(before), Some(after)) if before < after => others.next(),
                _ => named.next(),
            },
        };
        woven.extend(next);
    }
}

/// `$retainKeys`: removes keys that are not in the list; the patch may set no others.
fn retain_keys(original: &mut Fields, patch: &mut Fields) -> Merged<()> {
    const REFUSED: &str = "invalid patch format of retainKeys";
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(retained) = retained else { return Err(REFUSED.to_owned()) };
    let is_retained = |name: &str| retained.iter().any(|known| known.as_str() == Some(name));
    let is_directive = |name: &str| name.starts_with(DELETE_PREFIX) || name.starts_with(ORDER_PREFIX);
    let stray = patch.iter().any(|(name, change)| !change.is_null() && !is_directive(name) && !is_retained(name));
    if stray {
        return Err(REFUSED.to_owned());
    }
    original.retain(|name, _| is_retained(name));
    Ok(())
}

/// `$setElementOrder/<list>`: the list is merged here, and put in that order.
fn set_element_orders(original: &mut Fields, patch: &mut Fields, of: Option<&'static Struct>) -> Merged<()> {
    let directives: Vec<String> = patch.keys().filter(|key| key.starts_with(ORDER_PREFIX)).cloned().collect();
    for directive in directives {
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            other => return Err(not_a_list(&other.unwrap_or_default())),
        };
        let name = &directive[ORDER_PREFIX.len()..];
        let (inner, merge) = inside_list(of, name)?;
        let key = key_of(merge).unwrap_or_default();
        let change = match patch.remove(name) {
            None => None,
            Some(Value::Array(change)) => Some(change),
            Some(other) => {
                patch.insert(name.to_owned(), other);
                None
            }
        };
        check_order(change.as_deref().unwrap_or_default(), &order, key)?;
        let kept = original.get(name).and_then(Value::as_array).cloned();
        let merged = match (&kept, change.clone()) {
            (None, None) => continue,
            (Some(kept), None) => kept.clone(),
            (None, Some(change)) => match without_directives(Value::Array(change)) {
                Some(Value::Array(change)) => change,
                _ => continue,
            },
            (Some(kept), Some(change)) => merge_list_field(kept.clone(), change, inner, merge, false)?,
        };
        let in_list = |item: &Value| match key {
            "" => order.contains(item),
            key => order.iter().any(|known| known.get(key) == item.get(key)),
        };
        let (named, others) = merged.into_iter().partition(in_list);
        let woven = in_order(named, others, &order, kept.as_deref().unwrap_or_default(), key);
        original.insert(name.to_owned(), Value::Array(woven));
    }
    Ok(())
}

/// The items that the patch changes must be in `$setElementOrder`, in the same order.
fn check_order(change: &[Value], order: &[Value], key: &str) -> Merged<()> {
    if change.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut order_left = order.iter();
    for item in change.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let same = |known: &Value| match key {
            "" => known == item,
            key => known.get(key) == item.get(key),
        };
        if !order_left.any(same) {
            let list = |items: &[Value]| shown(&Value::Array(items.to_vec()));
            return Err(format!(
                "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                list(change),
                list(order)
            ));
        }
    }
    Ok(())
}

/// What is taken over from a patch as it is has no directives left in it; `None` where it is one itself.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => {
            let kept = fields.into_iter().filter_map(|(name, value)| Some((name, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        plain => Some(plain),
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name, without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        plain => plain,
    }
}

fn not_a_map(value: &Value) -> String {
    format!("expected a map[string]interface {{}}, but received a {}", crate::error::json_type(value))
}

fn not_a_list(value: &Value) -> String {
    format!("expected a []interface {{}}, but received a {}", crate::error::json_type(value))
}

fn no_key(fields: &Fields, key: &str) -> String {
    format!("map: {} does not contain declared merge key: {key}", shown(&Value::Object(fields.clone())))
}

/// A value as Go prints it.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let mut pairs: Vec<_> = fields.iter().map(|(name, value)| format!("{name}:{}", shown(value))).collect();
            pairs.sort();
            format!("map[{}]", pairs.join(" "))
        }
    }
}
