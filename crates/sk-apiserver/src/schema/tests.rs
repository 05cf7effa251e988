//! The type table against the types that a real API server serves (`sk-testkit/fixtures/openapi.json`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sk_core::Gvk;
use sk_testkit::fixture::OpenApi;

use super::{Field, Lists, Merge, Struct, Type, find};

/// The types that OpenAPI shows as one value although Go has a struct for them, or the other way round.
fn is_plain(name: &str) -> Option<&'static str> {
    let plain = [
        ("io.k8s.apimachinery.pkg.api.resource.Quantity", "quantity"),
        ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", "int-or-string"),
        ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", "time"),
        ("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", "time"),
        ("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", "any"),
        ("io.k8s.apimachinery.pkg.runtime.RawExtension", "any"),
    ];
    plain.into_iter().find(|(known, _)| *known == name).map(|(_, plain)| plain)
}

/// The type of a field as both can say it; structs by the last part of their name.
fn served_type(field: &Value) -> String {
    fn named(text: &str) -> String {
        if let Some(inner) = text.strip_prefix("[]") {
            return format!("[]{}", named(inner));
        }
        if let Some(inner) = text.strip_prefix("map[string]") {
            return format!("map[string]{}", named(inner));
        }
        match text {
            "integer:int64" => "int64".to_owned(),
            "integer" | "integer:int32" => "int32".to_owned(),
            "string:byte" => "bytes".to_owned(),
            "string:date-time" => "time".to_owned(),
            "object" => "any".to_owned(),
            _ => is_plain(text).map_or_else(|| text.rsplit('.').next().unwrap_or(text).to_owned(), str::to_owned),
        }
    }
    named(field["type"].as_str().unwrap_or_default())
}

fn own_type(of: Type) -> String {
    match of {
        Type::Bool => "boolean".to_owned(),
        Type::Int32 => "int32".to_owned(),
        Type::Int64 => "int64".to_owned(),
        Type::String => "string".to_owned(),
        Type::Bytes => "bytes".to_owned(),
        Type::Quantity => "quantity".to_owned(),
        Type::IntOrString => "int-or-string".to_owned(),
        Type::Time => "time".to_owned(),
        Type::Any => "any".to_owned(),
        Type::Struct(of) => of.name.to_owned(),
        Type::List(of) => format!("[]{}", own_type(*of)),
        Type::Map(of) => format!("map[string]{}", own_type(*of)),
    }
}

/// The strategies and the key for strategic merge patches.
fn served_merge(field: &Value) -> (BTreeSet<String>, String) {
    let strategy = field["x-kubernetes-patch-strategy"].as_str().unwrap_or_default();
    let key = field["x-kubernetes-patch-merge-key"].as_str().unwrap_or_default();
    (strategy.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect(), key.to_owned())
}

fn own_merge(field: &Field) -> (BTreeSet<String>, String) {
    let (words, key): (&[&str], &str) = match field.merge {
        Merge::Default => (&[], ""),
        Merge::By(key) => (&["merge"], key),
        Merge::Replace => (&["replace"], ""),
        Merge::RetainKeys => (&["retainKeys"], ""),
        Merge::ByRetainingKeys(key) => (&["merge", "retainKeys"], key),
    };
    (words.iter().map(|word| (*word).to_owned()).collect(), key.to_owned())
}

/// How field managers share a list: `set`, `map by a,b`, or as one.
fn served_list(field: &Value) -> String {
    let keys = field["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().filter_map(Value::as_str);
    match field["x-kubernetes-list-type"].as_str() {
        Some("map") => format!("map by {}", keys.collect::<Vec<_>>().join(",")),
        Some(other) => other.to_owned(),
        None => "atomic".to_owned(),
    }
}

fn own_list(field: &'static Field) -> String {
    match field.lists() {
        Lists::Keyed(keys) => format!("map by {}", keys.join(",")),
        Lists::Set => "set".to_owned(),
        Lists::Default | Lists::Atomic => "atomic".to_owned(),
        Lists::Granular => "granular".to_owned(),
    }
}

struct Comparison<'t> {
    types: &'t BTreeMap<String, Value>,
    seen: BTreeSet<String>,
    wrong: Vec<String>,
}

impl Comparison<'_> {
    fn structure(&mut self, of: &'static Struct, name: &str) {
        let Some(served) = self.types.get(name).filter(|_| self.seen.insert(name.to_owned())) else { return };
        let is_atomic = served["x-kubernetes-map-type"] == "atomic";
        if is_atomic != of.is_atomic {
            self.wrong.push(format!("{name}: atomic is {is_atomic}"));
        }
        let fields = served["fields"].as_object().cloned().unwrap_or_default();
        let own: BTreeSet<&str> = of.fields.iter().map(|field| field.name).collect();
        for missing in fields.keys().filter(|field| !own.contains(field.as_str())) {
            if !["apiVersion", "kind"].contains(&missing.as_str()) {
                self.wrong.push(format!("{name}.{missing} is not in the table"));
            }
        }
        for field in of.fields {
            match fields.get(field.name) {
                None => self.wrong.push(format!("{name}.{} is not served", field.name)),
                Some(served) => self.field(field, served, &format!("{name}.{}", field.name)),
            }
        }
    }

    fn field(&mut self, field: &'static Field, served: &Value, at: &str) {
        let mut compare = |what: &str, ours: String, theirs: String| {
            if ours != theirs {
                self.wrong.push(format!("{at}: {what} is {theirs}, not {ours}"));
            }
        };
        compare("the type", own_type(field.of), served_type(served));
        compare("the patch", format!("{:?}", own_merge(field)), format!("{:?}", served_merge(served)));
        if matches!(field.of, Type::List(_)) {
            compare("the list", own_list(field), served_list(served));
        }
        if matches!(field.of, Type::Map(_)) {
            let theirs = served["x-kubernetes-map-type"] == "atomic";
            compare("the map's atomicity", (field.lists() == Lists::Atomic).to_string(), theirs.to_string());
        }
        let mut of = field.of;
        while let Type::List(inner) | Type::Map(inner) = of {
            of = *inner;
        }
        let name = served["type"].as_str().unwrap_or_default();
        let name = name.trim_start_matches("[]").trim_start_matches("map[string]").trim_start_matches("[]").to_owned();
        if let Type::Struct(of) = of {
            self.structure(of, &name);
        }
    }
}

#[test]
fn every_type_in_the_table_is_the_one_that_a_real_api_server_serves() {
    let recorded = OpenApi::recorded().expect("the types are recorded");
    let mut comparison = Comparison { types: &recorded.types, seen: BTreeSet::new(), wrong: Vec::new() };
    for (kind, name) in &recorded.kinds {
        let mut parts = kind.split('/');
        let mut part = || parts.next().unwrap_or_default();
        let gvk = Gvk { group: part().into(), version: part().into(), kind: part().into() };
        let of = if gvk.kind == "Scale" { Some(super::SCALE) } else { find(&gvk) };
        comparison.structure(of.unwrap_or_else(|| panic!("{kind} is not in the table")), name);
    }
    assert!(comparison.seen.len() > 200, "only {} types were compared", comparison.seen.len());
    assert!(comparison.wrong.is_empty(), "{} differ:\n{}", comparison.wrong.len(), comparison.wrong.join("\n"));
}

#[test]
fn every_typed_kind_is_in_the_table() {
    // Without its types an object is stored as it came, without defaults and rules.
    let missing: Vec<_> = crate::kinds::TYPED.iter().filter(|gvk| find(gvk).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
