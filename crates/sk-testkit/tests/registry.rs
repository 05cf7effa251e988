//! The registry of kinds against what a real API server says it serves.

use std::collections::BTreeSet;

use sk_core::Gvk;
use sk_core::registry::{self, KINDS, Scope};
use sk_testkit::fixture::{Discovery, ServedKind};

fn gvk(served: &ServedKind) -> Gvk {
    let api_version = format!("{}/{}", served.group, served.versions[0]);
    Gvk::from_api_version(api_version.trim_start_matches('/'), &served.kind)
        .expect("a server tells groups and kinds that can be read")
}

fn sorted(names: &[impl AsRef<str>]) -> Vec<&str> {
    let mut names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    names.sort_unstable();
    names
}

#[test]
fn every_kind_that_a_real_api_server_serves_is_in_the_registry_as_it_is_served() {
    for served in Discovery::recorded().unwrap().kinds {
        let known = registry::find(&gvk(&served)).unwrap_or_else(|| panic!("{} is not known", served.kind));
        let scope = if known.scope == Scope::Cluster { "Cluster" } else { "Namespaced" };
        assert_eq!((known.plural, scope), (served.plural.as_str(), served.scope.as_str()), "{}", served.kind);
        assert_eq!(sorted(known.short_names), sorted(&served.short_names), "{}", served.kind);
        assert_eq!(sorted(known.subresources), sorted(&served.subresources), "{}", served.kind);
        assert_eq!(known.versions.first().copied(), Some(served.versions[0].as_str()), "{} prefers it", served.kind);
        let unknown: Vec<_> =
            served.versions.iter().filter(|version| !known.versions.contains(&version.as_str())).collect();
        assert!(unknown.is_empty(), "{} is also served as {unknown:?}", served.kind);
    }
}

#[test]
fn a_kind_that_is_not_served_by_default_is_none_that_has_become_stable() {
    let served: BTreeSet<(String, String)> =
        Discovery::recorded().unwrap().kinds.into_iter().map(|served| (served.group, served.kind)).collect();
    for known in KINDS.iter().filter(|known| !served.contains(&(known.group.to_owned(), known.kind.to_owned()))) {
        let behind_a_gate = known.versions.iter().all(|version| version.contains("alpha") || version.contains("beta"));
        assert!(behind_a_gate, "{} {:?} is not served: is it spelt right?", known.kind, known.versions);
    }
}
