//! Parses a request path into the kind and the object that it names.

use sk_core::registry::{KINDS, Scope};
use sk_core::{Gvk, ObjectKey, ObjectRef, SmolStr};

use crate::server::ApiServer;

/// What a path names.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) gvk: Gvk,
    pub(super) plural: SmolStr,
    pub(super) scope: Scope,
    pub(super) namespace: Option<SmolStr>,
    pub(super) name: Option<SmolStr>,
    pub(super) subresource: Option<SmolStr>,
}

impl Place {
    /// The object that is named, if one is.
    pub(super) fn target(&self) -> Option<ObjectRef> {
        let name = self.name.clone()?;
        Some(ObjectRef::new(self.gvk.clone(), ObjectKey { namespace: self.namespace.clone(), name }))
    }
}

/// Parses paths such as `/api/v1/namespaces/shop/pods/a/status`; `None` if nothing is served there.
pub(super) fn find(server: &ApiServer, path: &str) -> Option<Place> {
    let parts: Vec<SmolStr> = path.split('/').filter(|part| !part.is_empty()).map(decoded).collect();
    let (group, version, rest) = match parts.as_slice() {
        [api, version, rest @ ..] if api == "api" => ("", version, rest),
        [apis, group, version, rest @ ..] if apis == "apis" => (group.as_str(), version, rest),
        _ => return None,
    };
    let (namespace, rest) = match rest {
        [word, namespace, resource, rest @ ..] if word == "namespaces" && !is_of_namespace(resource) => {
            let mut all = vec![resource.clone()];
            all.extend(rest.iter().cloned());
            (Some(namespace.clone()), all)
        }
        rest => (None, rest.to_vec()),
    };
    let (plural, name, subresource) = match rest.as_slice() {
        [plural] => (plural, None, None),
        [plural, name] => (plural, Some(name.clone()), None),
        [plural, name, sub] => (plural, Some(name.clone()), Some(sub.clone())),
        _ => return None,
    };
    let (gvk, scope) = kind_of(server, group, version, plural)?;
    if namespace.is_some() && scope == Scope::Cluster {
        return None;
    }
    Some(Place { gvk, plural: plural.clone(), scope, namespace, name, subresource })
}

/// Is it below a group of Kubernetes' own? Then a server knows how to say that the rest is not served.
pub(super) fn is_group(path: &str) -> bool {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    match parts.next() {
        Some("api") => true,
        Some("apis") => parts.next().is_some_and(|group| KINDS.iter().any(|info| info.group == group)),
        _ => false,
    }
}

/// `/api/v1/namespaces/shop/status` is about the namespace itself.
fn is_of_namespace(resource: &str) -> bool {
    ["status", "finalize"].contains(&resource)
}

fn kind_of(server: &ApiServer, group: &str, version: &str, plural: &str) -> Option<(Gvk, Scope)> {
    let built_in = KINDS.iter().find(|info| info.group == group && info.plural == plural);
    if let Some(info) = built_in {
        let version = info.versions.iter().find(|known| **known == version)?;
        return Some((Gvk::new_static(info.group, version, info.kind), info.scope));
    }
    server.admission.definitions.served(group, version, plural)
}

/// The part after the question mark.
pub(super) struct Query(Vec<(SmolStr, SmolStr)>);

impl Query {
    pub(super) fn read(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(k, v)| (decoded(k), decoded(v)))
                .collect(),
        )
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Every value that is given.
    pub(super) fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str()).collect()
    }

    /// Any word but `false` and `0` means yes.
    pub(super) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !value.eq_ignore_ascii_case("false") && value != "0")
    }
}

/// `%2C` is a comma; what is no such thing stays.
fn decoded(text: &str) -> SmolStr {
    if !text.contains(['%', '+']) {
        return text.into();
    }
    let bytes = text.as_bytes();
    let (mut decoded, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let code = text.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (bytes[at], code) {
            (b'%', Some(code)) => {
                decoded.push(code);
                at += 3;
            }
            (b'+', _) => {
                decoded.push(b' ');
                at += 1;
            }
            (byte, _) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into()
}
