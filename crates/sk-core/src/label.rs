//! Labels: lookup, and which keys and values Kubernetes accepts.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A name is at most this long (apimachinery, pkg/api/validate/content/kube.go).
const MAX_NAME_BYTES: usize = 63;

/// A DNS subdomain is at most this long (apimachinery, pkg/api/validate/content/dns.go).
const MAX_SUBDOMAIN_BYTES: usize = 253;

/// Anything that holds labels: an object's JSON, a map, a compact form.
pub trait Labels {
    /// The value of one label, if it is set.
    fn label(&self, key: &str) -> Option<&str>;
}

impl<K: Borrow<str> + Ord, V: AsRef<str>> Labels for BTreeMap<K, V> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(AsRef::as_ref)
    }
}

impl<K: AsRef<str>, V: AsRef<str>> Labels for [(K, V)] {
    fn label(&self, key: &str) -> Option<&str> {
        self.iter().find(|(name, _)| name.as_ref() == key).map(|(_, value)| value.as_ref())
    }
}

impl Labels for Map<String, Value> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Value::as_str)
    }
}

impl Labels for Value {
    /// Of a `metadata.labels` field; anything but an object has no labels.
    fn label(&self, key: &str) -> Option<&str> {
        self.as_object().and_then(|labels| labels.label(key))
    }
}

/// Is this a label's key: a name, or a DNS subdomain, a slash and a name?
pub fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_name(name),
        None => is_name(key),
    }
}

/// Is this a label's value: empty, or a name?
pub fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_name(value)
}

/// Is this a lower-case DNS subdomain (RFC 1123)?
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= MAX_SUBDOMAIN_BYTES && text.split('.').all(is_dns_part)
}

fn is_dns_part(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    starts_and_ends(part, plain) && part.bytes().all(|byte| plain(byte) || byte == b'-')
}

fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric();
    name.len() <= MAX_NAME_BYTES
        && starts_and_ends(name, plain)
        && name.bytes().all(|byte| plain(byte) || matches!(byte, b'-' | b'_' | b'.'))
}

fn starts_and_ends(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|byte| allowed(*byte)) && bytes.last().is_some_and(|byte| allowed(*byte))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_and_values_are_accepted_as_kubernetes_accepts_them() {
        let (longest, too_long) = ("a".repeat(63), "a".repeat(64));
        for key in ["app", "App_1.x-Y", "app.kubernetes.io/name", "a/b", &longest] {
            assert!(is_label_key(key), "{key}");
        }
        for key in ["", "-a", "a-", "a b", "/a", "a/", "a/b/c", "A.io/name", "a..b/c", "ä", &too_long] {
            assert!(!is_label_key(key), "{key}");
        }
        for value in ["", "1", "v1.2_3-x", &longest] {
            assert!(is_label_value(value), "{value}");
        }
        for value in [" ", ".", "_a", "a/b", &too_long] {
            assert!(!is_label_value(value), "{value}");
        }
    }

    #[test]
    fn labels_are_found_wherever_they_are_kept() {
        let json = json!({"app": "web", "number": 1});
        assert_eq!((json.label("app"), json.label("number"), json.label("none")), (Some("web"), None, None));
        assert_eq!(Value::Null.label("app"), None);
        assert_eq!(BTreeMap::from([("app", "web")]).label("app"), Some("web"));
        assert_eq!([("app", "web")].label("app"), Some("web"));
    }
}
