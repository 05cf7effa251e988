//! The objects that an API server requires when a pod is created: its ServiceAccount and its PriorityClass.
//!
//! A workload from plain manifests that lacks one is stored, but a real server refuses each of its pods. The figures
//! would not show that, so this file finds it from the manifests alone, for a run and for `validate`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sk_core::pointer::PointerPattern;
use sk_core::{Gvk, ObjectKey, ObjectRef};

static SERVICE_ACCOUNT: Gvk = Gvk::new_static("", "v1", "ServiceAccount");
static PRIORITY_CLASS: Gvk = Gvk::new_static("scheduling.k8s.io", "v1", "PriorityClass");
/// What every cluster has by itself: an account in each namespace, and two classes.
const BUILT_IN: [&str; 4] = ["", "default", "system-cluster-critical", "system-node-critical"];

/// What workloads need, and what there is.
#[derive(Clone, Debug, Default)]
pub(super) struct Prerequisites {
    needed: BTreeMap<ObjectRef, BTreeSet<ObjectRef>>,
    there: BTreeSet<ObjectRef>,
}

impl Prerequisites {
    /// Looks at the newest version of an object.
    pub(super) fn look_at(&mut self, object: &ObjectRef, value: &Value, templates: &[PointerPattern]) {
        if object.gvk == SERVICE_ACCOUNT || object.gvk == PRIORITY_CLASS {
            self.there.insert(object.clone());
        }
        // A bare pod that lacks something is refused itself.
        if object.gvk.kind == "Pod" {
            return;
        }
        let specs = templates.iter().flat_map(|pattern| pattern.find(value)).map(|(_, template)| &template["spec"]);
        let needed: BTreeSet<ObjectRef> = specs.flat_map(|spec| of_pod(object, spec)).collect();
        if !needed.is_empty() {
            self.needed.insert(object.clone(), needed);
        }
    }

    /// Workloads whose pods lack a prerequisite, each with the message with which a server refuses its pods.
    pub(super) fn lacking(&self) -> impl Iterator<Item = (&ObjectRef, String)> {
        self.needed.iter().filter_map(|(object, needed)| {
            let missing = needed.iter().find(|one| !self.there.contains(*one))?;
            let ObjectKey { namespace, name } = &missing.key;
            let why = match namespace {
                Some(namespace) => {
                    format!("error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found")
                }
                None => format!("no PriorityClass with name {name} was found"),
            };
            Some((object, why))
        })
    }
}

/// What one pod of a template needs.
fn of_pod<'a>(object: &'a ObjectRef, spec: &'a Value) -> impl Iterator<Item = ObjectRef> + 'a {
    let named = |field: &str| spec[field].as_str().filter(|name| !BUILT_IN.contains(name));
    let account = named("serviceAccountName").zip(object.key.namespace.clone());
    let account = account.map(|(name, namespace)| ObjectRef {
        gvk: SERVICE_ACCOUNT.clone(),
        key: ObjectKey::namespaced(namespace, name),
    });
    let class = named("priorityClassName");
    let class = class.map(|name| ObjectRef { gvk: PRIORITY_CLASS.clone(), key: ObjectKey::cluster(name) });
    account.into_iter().chain(class)
}
