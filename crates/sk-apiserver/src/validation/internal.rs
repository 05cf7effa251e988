//! Prints pod specs as the API server prints them in an error: with the Go names of the internal types and all unset
//! fields, and two specs as a diff.
//!
//! The internal types follow the type table, except for the order of a pod spec's fields and for `hostNetwork`,
//! `hostPID` and the like, which the internal types keep in the security context (`pkg/apis/core/types.go`, 1.36).

use serde_json::{Map, Value};

use crate::schema::{self, Struct, Type, Written};

/// The fields of a pod spec, in the order of the internal type.
const POD_SPEC: [&str; 36] = [
    "volumes",
    "initContainers",
    "containers",
    "ephemeralContainers",
    "restartPolicy",
    "terminationGracePeriodSeconds",
    "activeDeadlineSeconds",
    "dnsPolicy",
    "nodeSelector",
    "serviceAccountName",
    "automountServiceAccountToken",
    "nodeName",
    "securityContext",
    "imagePullSecrets",
    "hostname",
    "subdomain",
    "setHostnameAsFQDN",
    "affinity",
    "schedulerName",
    "tolerations",
    "hostAliases",
    "priorityClassName",
    "priority",
    "preemptionPolicy",
    "dnsConfig",
    "readinessGates",
    "runtimeClassName",
    "overhead",
    "enableServiceLinks",
    "topologySpreadConstraints",
    "os",
    "schedulingGates",
    "resourceClaims",
    "resources",
    "hostnameOverride",
    "schedulingGroup",
];
/// What the internal security context of a pod begins with.
const OF_HOST: [&str; 5] = ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"];
/// Names that are not their JSON name with a capital.
const NAMES: [(&str, &str); 26] = [
    ("dnsPolicy", "DNSPolicy"),
    ("dnsConfig", "DNSConfig"),
    ("tty", "TTY"),
    ("os", "OS"),
    ("seLinuxOptions", "SELinuxOptions"),
    ("seLinuxChangePolicy", "SELinuxChangePolicy"),
    ("fsGroup", "FSGroup"),
    ("fsGroupChangePolicy", "FSGroupChangePolicy"),
    ("httpGet", "HTTPGet"),
    ("httpHeaders", "HTTPHeaders"),
    ("tcpSocket", "TCPSocket"),
    ("grpc", "GRPC"),
    ("nfs", "NFS"),
    ("iscsi", "ISCSI"),
    ("rbd", "RBD"),
    ("cephfs", "CephFS"),
    ("fc", "FC"),
    ("csi", "CSI"),
    ("awsElasticBlockStore", "AWSElasticBlockStore"),
    ("gcePersistentDisk", "GCEPersistentDisk"),
    ("storageos", "StorageOS"),
    ("volumeID", "VolumeID"),
    ("fsType", "FSType"),
    ("pdName", "PDName"),
    ("targetPortal", "TargetPortal"),
    ("iqn", "IQN"),
];
/// Lines of context around a difference.
const CONTEXT: usize = 3;
/// A difference of more lines than this is cut: a message is no place for it.
const MAX_DIFFERENCE: usize = 400;

/// The spec of a claim.
pub(super) fn claim_spec(spec: &Value) -> Value {
    let or_null = |name: &str| spec[name].clone();
    serde_json::json!({
        "AccessModes": spec["accessModes"],
        "Selector": spec["selector"],
        "Resources": {"Limits": spec["resources"]["limits"], "Requests": spec["resources"]["requests"]},
        "VolumeName": spec["volumeName"].as_str().unwrap_or_default(),
        "StorageClassName": or_null("storageClassName"),
        "VolumeMode": or_null("volumeMode"),
        "DataSource": or_null("dataSource"),
        "DataSourceRef": or_null("dataSourceRef"),
        "VolumeAttributesClassName": or_null("volumeAttributesClassName"),
    })
}

/// A pod template.
pub(super) fn template(template: &Value) -> Value {
    // Its metadata is embedded in the type and has the names of the API.
    let mut fields = template["metadata"].as_object().cloned().unwrap_or_default();
    fields.insert("Spec".to_owned(), pod_spec(&template["spec"]));
    Value::Object(fields)
}

/// A pod spec.
pub(super) fn pod_spec(spec: &Value) -> Value {
    let of = schema::POD_SPEC;
    let mut fields = Map::new();
    for name in POD_SPEC {
        let Some(field) = of.field(name) else { continue };
        let value = match name {
            "securityContext" => security_context(spec, field.of),
            _ => field_of(field.of, field.written, &spec[name]),
        };
        fields.insert(go_name(name), value);
    }
    Value::Object(fields)
}

fn security_context(spec: &Value, of: Type) -> Value {
    let mut fields = Map::new();
    for name in OF_HOST {
        if let Some(field) = schema::POD_SPEC.field(name) {
            fields.insert(go_name(name), field_of(field.of, field.written, &spec[name]));
        }
    }
    let Value::Object(mut own) = value_of(of, &spec["securityContext"]) else { return Value::Object(fields) };
    // The internal type has this one a place earlier.
    let (earlier, place) = ("FSGroupChangePolicy", own.keys().position(|name| name == "Sysctls"));
    if let Some((place, policy)) = place.and_then(|place| Some((place, own.shift_remove(earlier)?))) {
        own.shift_insert(place, earlier.to_owned(), policy);
    }
    fields.extend(own);
    Value::Object(fields)
}

fn go_name(name: &str) -> String {
    if let Some((_, known)) = NAMES.iter().find(|(json, _)| *json == name) {
        return (*known).to_owned();
    }
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn field_of(of: Type, written: Written, value: &Value) -> Value {
    let is_pointer = matches!(written, Written::Pointer | Written::Nullable);
    if value.is_null() && is_pointer { Value::Null } else { value_of(of, value) }
}

fn value_of(of: Type, value: &Value) -> Value {
    match (of, value) {
        (Type::Struct(of), value) => structure(of, value),
        (Type::List(of), Value::Array(items)) => items.iter().map(|item| value_of(*of, item)).collect(),
        (Type::Bool, Value::Null) => false.into(),
        (Type::Int32 | Type::Int64, Value::Null) => 0.into(),
        (Type::String, Value::Null) => "".into(),
        (_, value) => value.clone(),
    }
}

fn structure(of: &'static Struct, value: &Value) -> Value {
    let field = |field: &schema::Field| (go_name(field.name), field_of(field.of, field.written, &value[field.name]));
    Value::Object(of.fields.iter().map(field).collect())
}

/// How one differs from the other, as lines of indented JSON.
pub(super) fn difference(old: &Value, new: &Value) -> String {
    let (old, new) = (lines(old), lines(new));
    let same = |pair: &(&String, &String)| pair.0 == pair.1;
    let before = old.iter().zip(&new).take_while(same).count();
    let shorter = old.len().min(new.len()) - before;
    let after = old.iter().rev().zip(new.iter().rev()).take(shorter).take_while(same).count();
    let first = before.saturating_sub(CONTEXT);
    let end = |lines: &[String]| (lines.len() - after + CONTEXT).min(lines.len());
    let (old_end, new_end) = (end(&old), end(&new));
    let mut text = format!("\n@@ -{0},{1} +{0},{2} @@\n", first + 1, old_end - first, new_end - first);
    let mut put = |sign: char, lines: &[String]| {
        lines
            .iter()
            .take(MAX_DIFFERENCE)
            .for_each(|line| text.extend([sign.to_string(), line.clone(), "\n".to_owned()]));
    };
    put(' ', &old[first..before]);
    put('-', &old[before..old.len() - after]);
    put('+', &new[before..new.len() - after]);
    put(' ', &old[old.len() - after..old_end]);
    text
}

/// Indented by one space a level, as `json.MarshalIndent` does it.
fn lines(value: &Value) -> Vec<String> {
    let mut text = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, format);
    // JSON is written to memory: that does not fail.
    let _ = serde::Serialize::serialize(value, &mut serializer);
    String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_names_the_lines_and_what_stands_around_them() {
        let (old, new) = (json!({"a": 1, "b": [1], "c": 2, "d": 3}), json!({"a": 1, "b": [1], "c": 5, "d": 3}));
        let expected = "\n@@ -3,6 +3,6 @@\n  \"b\": [\n   1\n  ],\n- \"c\": 2,\n+ \"c\": 5,\n  \"d\": 3\n }\n";
        assert_eq!(difference(&old, &new), expected);
        assert_eq!(difference(&json!([]), &json!([1])), "\n@@ -1,1 +1,3 @@\n-[]\n+[\n+ 1\n+]\n");
    }
}
