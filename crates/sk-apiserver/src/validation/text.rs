//! Names, label keys and label values: their syntax, with Kubernetes' messages.

use serde_json::Value;

use super::{Errors, invalid};
use crate::error::Invalid;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                     and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
                         must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation \
                         is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                           must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
                           regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const KEY: &str = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                   alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                   '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. \
                   'example.com/MyName')";

fn refuse(text: &str, field: &str, why: &str, errors: &mut Errors) {
    errors.push(invalid(field, &Value::from(text), why));
}

fn too_long(text: &str, field: &str, most: usize, unit: &str, errors: &mut Errors) {
    if text.len() > most {
        refuse(text, field, &format!("must be no more than {most} {unit}"), errors);
    }
}

fn is_part(text: &str, first: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool, last: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|byte| first(*byte))
        && bytes.last().is_some_and(|byte| last(*byte))
        && bytes.iter().all(|byte| inner(*byte))
}

fn is_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_part(text, plain, |byte| plain(byte) || byte == b'-', plain)
}

fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric();
    is_part(text, plain, |byte| plain(byte) || matches!(byte, b'-' | b'_' | b'.'), plain)
}

/// A name of up to 63 lower-case letters, digits and hyphens.
pub(super) fn dns_label(text: &str, field: &str, errors: &mut Errors) {
    too_long(text, field, 63, "characters", errors);
    if !is_label(text) {
        let is_subdomain = sk_core::label::is_dns_subdomain(text) && text.contains('.');
        let why = if is_subdomain { "must not contain dots" } else { LABEL };
        refuse(text, field, why, errors);
    }
}

/// Up to 253 bytes of such names with dots between.
pub(super) fn dns_subdomain(text: &str, field: &str, errors: &mut Errors) {
    too_long(text, field, 253, "characters", errors);
    if !text.split('.').all(is_label) {
        refuse(text, field, SUBDOMAIN, errors);
    }
}

/// The key of a label: a name with an optional prefix.
pub(super) fn label_key(key: &str, field: &str, errors: &mut Errors) {
    let (prefix, name) = match key.split_once('/') {
        None => (None, key),
        Some((_, name)) if name.contains('/') => return refuse(key, field, KEY, errors),
        Some((prefix, name)) => (Some(prefix), name),
    };
    match prefix {
        None => {}
        Some("") => refuse(key, field, "prefix part must be non-empty", errors),
        Some(prefix) => {
            if prefix.len() > 253 {
                refuse(key, field, "prefix part must be no more than 253 bytes", errors);
            }
            if !prefix.split('.').all(is_label) {
                refuse(key, field, &format!("prefix part {SUBDOMAIN}"), errors);
            }
        }
    }
    if name.is_empty() {
        refuse(key, field, "name part must be non-empty", errors);
    } else if name.len() > 63 {
        refuse(key, field, "name part must be no more than 63 bytes", errors);
    }
    if !is_name(name) {
        refuse(key, field, NAME_PART, errors);
    }
}

/// The value of a label.
pub(super) fn label_value(value: &str, field: &str, errors: &mut Errors) {
    too_long(value, field, 63, "bytes", errors);
    if !value.is_empty() && !is_name(value) {
        refuse(value, field, LABEL_VALUE, errors);
    }
}

/// A finalizer has a prefix, unless it is one of Kubernetes' own.
pub(super) fn finalizer(name: &str, field: &str, errors: &mut Errors) {
    let is_standard = ["orphan", "foregroundDeletion", "kubernetes"].contains(&name);
    if !name.contains('/') && !is_standard {
        let why =
            format!("Invalid value: {name:?}: name is neither a standard finalizer name nor is it fully qualified");
        errors.push(Invalid::new(field, why));
    }
}
