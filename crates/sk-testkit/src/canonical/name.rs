//! Names that two clusters agree on: owner and ordinal instead of hash and suffix.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use sk_core::Gvk;

/// Owners of owners that are followed. Kubernetes' own chains have three links (CronJob, Job, Pod); a longer one than
/// this is a cycle, which a server does not forbid.
const MAX_OWNERS: usize = 16;

/// A canonical name; sorts by namespace, then owner before owned, then ordinal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    namespace: Option<String>,
    path: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Segment {
    kind: String,
    label: Label,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    /// A name that a person chose, and which of the objects that have borne it: `a`, `a@2`.
    Chosen(String, u32),
    /// The n-th of its owner, or of its generateName prefix: `#3`, `job-#3`.
    Numbered(String, u32),
}

/// The canonical names of all objects, by uid.
pub(super) struct Names {
    by_uid: BTreeMap<String, (Name, Gvk)>,
    uids: BTreeMap<Name, String>,
}

/// What the first sight of an object says about its name.
struct Sighting<'a> {
    uid: &'a str,
    gvk: Gvk,
    metadata: &'a Value,
    owner: Option<&'a str>,
}

impl Names {
    /// Names all objects; only the first sight of each uid counts, because owners and labels may change later.
    pub(super) fn of<'a>(objects: impl Iterator<Item = &'a Value>) -> Self {
        let sightings = first_sightings(objects);
        let labels = labels(&sightings);
        let by_uid: BTreeMap<_, _> = sightings
            .iter()
            .map(|sighting| {
                let name = Name { namespace: text(sighting.metadata, "namespace"), path: path(sighting, &labels) };
                (sighting.uid.to_owned(), (name, sighting.gvk.clone()))
            })
            .collect();
        let uids = by_uid.iter().map(|(uid, (name, _))| (name.clone(), uid.clone())).collect();
        Self { by_uid, uids }
    }

    /// The name and kind of the object with this uid.
    pub(super) fn get(&self, uid: &str) -> Option<&(Name, Gvk)> {
        self.by_uid.get(uid)
    }

    /// The uid of the object with this name.
    pub(super) fn uid(&self, name: &Name) -> Option<&str> {
        self.uids.get(name).map(String::as_str)
    }
}

impl Name {
    /// Was the object's own name made up by the cluster?
    pub(super) fn is_numbered(&self) -> bool {
        matches!(self.path.last(), Some(Segment { label: Label::Numbered(..), .. }))
    }
}

/// The first sight of each uid, in the order of creation.
fn first_sightings<'a>(objects: impl Iterator<Item = &'a Value>) -> Vec<Sighting<'a>> {
    let mut seen: BTreeMap<&str, (u64, usize, Sighting<'a>)> = BTreeMap::new();
    for (index, object) in objects.enumerate() {
        let field = |name: &str| object[name].as_str().unwrap_or_default();
        let Ok(gvk) = Gvk::from_api_version(field("apiVersion"), field("kind")) else { continue };
        let metadata = &object["metadata"];
        let Some(uid) = metadata["uid"].as_str() else { continue };
        // Versions come from one counter, so they order the creations of all kinds.
        let version = metadata["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
        seen.entry(uid).or_insert_with(|| (version, index, Sighting { uid, gvk, metadata, owner: owner(metadata) }));
    }
    let mut ordered: Vec<_> = seen.into_values().collect();
    ordered.sort_by_key(|(version, index, _)| (*version, *index));
    ordered.into_iter().map(|(_, _, sighting)| sighting).collect()
}

/// The uid of the controlling owner, or of the first one.
fn owner(metadata: &Value) -> Option<&str> {
    let owners = metadata["ownerReferences"].as_array()?;
    let controller = owners.iter().find(|owner| owner["controller"] == true);
    controller.or_else(|| owners.first())?["uid"].as_str()
}

/// The last segment of every object's path, and its owner if that was seen too.
type Labels<'a> = BTreeMap<&'a str, (Segment, Option<&'a str>)>;

fn labels<'a>(sightings: &[Sighting<'a>]) -> Labels<'a> {
    let kinds: BTreeMap<&str, &str> =
        sightings.iter().map(|sighting| (sighting.uid, sighting.gvk.kind.as_str())).collect();
    let mut counts: BTreeMap<(String, String, String), u32> = BTreeMap::new();
    let mut labels = Labels::new();
    for sighting in sightings {
        let owner = sighting.owner.filter(|uid| kinds.contains_key(uid));
        let owner_kind = owner.and_then(|uid| kinds.get(uid)).copied();
        let prefix = text(sighting.metadata, "generateName").filter(|_| owner.is_none());
        // A StatefulSet's pods bear names that mean something, and bear them again; its revisions' names are hashes.
        let is_revision = sighting.gvk.kind == "ControllerRevision";
        let is_chosen = owner_kind.map_or(prefix.is_none(), |kind| kind == "StatefulSet" && !is_revision);
        let chosen = text(sighting.metadata, "name").filter(|_| is_chosen);
        let family = owner.map(str::to_owned).or_else(|| text(sighting.metadata, "namespace")).unwrap_or_default();
        let base = chosen.clone().or_else(|| prefix.clone()).unwrap_or_default();
        let count = counts.entry((family, sighting.gvk.to_string(), base)).or_default();
        *count += 1;
        let label = match chosen {
            Some(name) => Label::Chosen(name, *count),
            None => Label::Numbered(prefix.unwrap_or_default(), *count),
        };
        labels.insert(sighting.uid, (Segment { kind: sighting.gvk.kind.to_string(), label }, owner));
    }
    labels
}

fn path(sighting: &Sighting<'_>, labels: &Labels<'_>) -> Vec<Segment> {
    let mut path: Vec<_> = std::iter::successors(labels.get(sighting.uid), |(_, owner)| labels.get((*owner)?))
        .take(MAX_OWNERS)
        .map(|(segment, _)| segment.clone())
        .collect();
    path.reverse();
    path
}

fn text(metadata: &Value, field: &str) -> Option<String> {
    metadata[field].as_str().map(str::to_owned)
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespace = self.namespace.iter().cloned();
        let parts: Vec<_> = namespace.chain(self.path.iter().map(Segment::to_string)).collect();
        f.write_str(&parts.join("/"))
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.label {
            Label::Chosen(name, 1) => write!(f, "{}/{name}", self.kind),
            Label::Chosen(name, incarnation) => write!(f, "{}/{name}@{incarnation}", self.kind),
            Label::Numbered(prefix, number) if prefix.is_empty() => write!(f, "{}#{number}", self.kind),
            Label::Numbered(prefix, number) => write!(f, "{}/{prefix}#{number}", self.kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, uid: &str, metadata: &Value) -> Value {
        let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": metadata});
        object["metadata"]["uid"] = uid.into();
        object
    }

    fn name_of(objects: &[Value], uid: &str) -> String {
        Names::of(objects.iter()).get(uid).unwrap().0.to_string()
    }

    #[test]
    fn a_made_up_name_without_a_known_owner_is_numbered_by_its_prefix() {
        let metadata = json!({"namespace": "d", "name": "web-x7k", "generateName": "web-",
                              "ownerReferences": [{"uid": "unseen"}]});
        assert_eq!(name_of(&[object("Pod", "u", &metadata)], "u"), "d/Pod/web-#1");
    }

    #[test]
    fn a_statefulsets_pods_keep_their_names() {
        let set = object("StatefulSet", "s", &json!({"namespace": "d", "name": "db"}));
        let pod = |uid: &str, version: &str| {
            let metadata = json!({"namespace": "d", "name": "db-0", "generateName": "db-", "resourceVersion": version,
                                  "ownerReferences": [{"uid": "s", "controller": true}]});
            object("Pod", uid, &metadata)
        };
        let objects = [set, pod("p1", "1"), pod("p2", "2")];
        assert_eq!(name_of(&objects, "p1"), "d/StatefulSet/db/Pod/db-0");
        assert_eq!(name_of(&objects, "p2"), "d/StatefulSet/db/Pod/db-0@2");
    }

    #[test]
    fn a_cluster_scoped_object_has_no_namespace() {
        assert_eq!(name_of(&[object("Node", "u", &json!({"name": "n"}))], "u"), "Node/n");
    }

    #[test]
    fn owners_in_a_circle_end() {
        let a = object("A", "a", &json!({"name": "a", "ownerReferences": [{"uid": "b"}]}));
        let b = object("B", "b", &json!({"name": "b", "ownerReferences": [{"uid": "a"}]}));
        assert_eq!(name_of(&[a, b], "a").split('/').count(), MAX_OWNERS);
    }

    #[test]
    fn the_tenth_sorts_after_the_second() {
        let pods: Vec<_> = (1..=10)
            .map(|n| object("Pod", &format!("u{n}"), &json!({"generateName": "p-", "resourceVersion": n.to_string()})))
            .collect();
        let names = Names::of(pods.iter());
        assert!(names.get("u10").unwrap().0 > names.get("u2").unwrap().0);
    }
}
