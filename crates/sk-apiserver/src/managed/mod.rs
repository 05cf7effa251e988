//! Field managers: who owns which field of an object, and server-side apply.
//!
//! An object that clients write through [`crate::rest`] lists in `metadata.managedFields` who wrote which field. Apply
//! merges the manager's fields (`walk::merge`), removes fields that the manager dropped and nobody else owns, and
//! returns a conflict when another manager owns a field with a different value, unless the request forces it. Requests
//! from the engine's own components have no field manager: they cost nothing here, and their objects have no
//! `managedFields`. Follows `apimachinery/pkg/util/managedfields` and `structured-merge-diff`, as of 1.36.

mod fields;
mod kind;
mod server;
mod shape;
mod walk;

use serde_json::{Map, Value};
use sk_core::{SimTime, SmolStr};

use crate::error::{About, Cause, FIELD_MANAGER_CONFLICT};
use crate::request::Subresource;
use crate::{ApiError, Reason};
use fields::{Fields, Step};
pub(crate) use kind::Kind;
use walk::Difference;

/// The field of metadata that says who manages what.
pub(crate) const MANAGED_FIELDS: &str = "managedFields";
/// The manager of fields that were written before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// Who wrote what the oldest of too many writers wrote.
const ANCIENT_CHANGES: &str = "ancient-changes";
/// How many update managers are kept (`DefaultMaxUpdateManagers`); the oldest are merged.
const MAX_WRITERS: usize = 10;
/// Metadata without managers (`stripSet`).
const UNMANAGED: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    MANAGED_FIELDS,
    "resourceVersion",
];

/// Who writes, where, and when.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Writer {
    pub(crate) name: SmolStr,
    pub(crate) below: Option<Subresource>,
    pub(crate) at: SimTime,
}

/// How the managers of an object that is being written are known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Writing {
    /// From what the writer changes.
    By(Writer),
    /// Already: the object was applied.
    Applied(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    Apply,
    Update,
}

#[derive(Clone, Debug, PartialEq)]
struct Manager {
    operation: Operation,
    name: SmolStr,
    api_version: SmolStr,
    subresource: SmolStr,
    time: SmolStr,
    fields: Fields,
}

/// The managers of an object after `writer` has made `new` of it; `live` is what it was, `None` if it is new.
pub(crate) fn updated(kind: &Kind<'_>, live: Option<&Value>, new: &Value, writer: &Writer) -> Value {
    let mut managers = read(live);
    record_update(&mut managers, kind, live, new, writer);
    write(&managers)
}

fn record_update(managers: &mut Vec<Manager>, kind: &Kind<'_>, live: Option<&Value>, new: &Value, writer: &Writer) {
    let nothing = kind.nothing();
    let found = walk::compare(&kind.plain(live.unwrap_or(&nothing)), &kind.plain(new), kind.shape());
    let found = kind.relevant(found, writer.below);
    take_away(managers, &found);
    let own = Manager {
        operation: Operation::Update,
        name: writer.name.clone(),
        api_version: kind.gvk.api_version().into(),
        subresource: subresource(writer.below),
        time: if kind.is_timed(writer.below) { writer.at.to_rfc3339_secs().into() } else { SmolStr::default() },
        fields: without_unmanaged(&found.written),
    };
    if own.fields.is_empty() {
        return;
    }
    match managers.iter_mut().find(|known| known.is_same(&own)) {
        Some(known) => (known.fields, known.time) = (known.fields.union(&own.fields), own.time),
        None => managers.push(own),
    }
    merge_oldest(managers);
}

/// What applying `config` makes of an object, with its new managers; `live` is what it is, `None` if there is none.
pub(crate) fn apply(
    kind: &Kind<'_>,
    live: Option<&Value>,
    config: &Value,
    writer: &Writer,
    is_forced: bool,
) -> Result<(Value, Value), ApiError> {
    let shape = kind.shape();
    refuse_unreadable(kind, config)?;
    let mut managers = read(live);
    if let (true, Some(live)) = (managers.is_empty(), live) {
        let before = Writer { name: SmolStr::new_static(BEFORE_FIRST_APPLY), below: None, at: writer.at };
        record_update(&mut managers, kind, None, live, &before);
    }
    let live = kind.plain(live.unwrap_or(&kind.nothing()));
    let merged = walk::merge(Some(&live), Some(config), shape);
    let wanted = kind.relevant_fields(walk::fields_of(config, shape), writer.below);
    let mut own = Manager {
        operation: Operation::Apply,
        name: writer.name.clone(),
        api_version: kind.gvk.api_version().into(),
        subresource: subresource(writer.below),
        time: writer.at.to_rfc3339_secs().into(),
        fields: without_unmanaged(&wanted),
    };
    let last = managers.iter().position(|known| known.is_same(&own)).map(|at| managers.remove(at));
    let owned = managers.iter().fold(wanted, |all, known| all.union(&known.fields));
    let made = match &last {
        Some(last) => {
            let gone = walk::with_parents(&last.fields, shape).without(&walk::with_parents(&owned, shape));
            walk::remove(&merged, &gone, shape)
        }
        None => merged,
    };
    let found = kind.relevant(walk::compare(&live, &made, shape), writer.below);
    if !is_forced {
        refuse_conflicts(&managers, &found)?;
    }
    take_away(&mut managers, &found);
    if made == live {
        // Nothing was written: a manager that is new has no time yet.
        own.time = last.map(|last| last.time).unwrap_or_default();
    }
    if !own.fields.is_empty() {
        managers.push(own);
    }
    Ok((made, write(&managers)))
}

impl Manager {
    /// Apply managers are one for all API versions; update managers are separate per version.
    fn is_same(&self, other: &Self) -> bool {
        let is_same_version = self.operation == Operation::Apply || self.api_version == other.api_version;
        self.operation == other.operation
            && self.name == other.name
            && self.subresource == other.subresource
            && is_same_version
    }

    /// As a conflict names it.
    fn shown(&self) -> String {
        let mut shown = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            shown.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.operation == Operation::Update {
            shown.push_str(&format!(" using {}", self.api_version));
        }
        shown
    }
}

/// Takes fields that were written or removed away from all other managers.
fn take_away(managers: &mut Vec<Manager>, found: &Difference) {
    for known in managers.iter_mut() {
        known.fields = known.fields.without(&found.written).without(&found.removed);
    }
    managers.retain(|known| !known.fields.is_empty());
}

fn refuse_conflicts(managers: &[Manager], found: &Difference) -> Result<(), ApiError> {
    let disputed = managers.iter().map(|known| (known, known.fields.common(&found.written).paths()));
    let mut disputed: Vec<_> = disputed.filter(|(_, paths)| !paths.is_empty()).collect();
    disputed.sort_by(|(one, _), (two, _)| (&one.name, one.operation).cmp(&(&two.name, two.operation)));
    let cause = |known: &Manager, field: &String| Cause {
        reason: FIELD_MANAGER_CONFLICT,
        message: format!("conflict with {}", known.shown()),
        field: field.clone(),
    };
    let causes: Vec<Cause> =
        disputed.iter().flat_map(|(known, paths)| paths.iter().map(|path| cause(known, path))).collect();
    let message = match (disputed.as_slice(), causes.as_slice()) {
        (_, []) => return Ok(()),
        ([(known, _)], [one]) => {
            format!("Apply failed with 1 conflict: conflict with {}: {}", known.shown(), one.field)
        }
        (disputed, causes) => {
            let mut lines = Vec::new();
            for (known, paths) in disputed {
                lines.push(format!("conflicts with {}:", known.shown()));
                lines.extend(paths.iter().map(|path| format!("- {path}")));
            }
            format!("Apply failed with {} conflicts: {}", causes.len(), lines.join("\n"))
        }
    };
    let about = About { causes, ..About::default() };
    Err(ApiError { reason: Reason::Conflict, message, about: Some(Box::new(about)) })
}

fn refuse_unreadable(kind: &Kind<'_>, config: &Value) -> Result<(), ApiError> {
    let gvk = kind.gvk;
    let mut checked = config.clone();
    if let Some(fields) = checked.as_object_mut() {
        fields.retain(|name, _| name != "apiVersion" && name != "kind");
    }
    let wrong = if kind.is_declared() { walk::unreadable(&checked, kind.shape(), "") } else { Vec::new() };
    if wrong.is_empty() {
        return Ok(());
    }
    let text = |pointer: &str| config.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let why = if wrong.len() == 1 { wrong.concat() } else { format!("errors:\n  {}", wrong.join("\n  ")) };
    let group = if gvk.group.is_empty() { "/".to_owned() } else { format!("{}/", gvk.group) };
    let message = format!(
        "failed to create typed patch object ({}/{}; {group}{}, Kind={}): {why}",
        text("/metadata/namespace"),
        text("/metadata/name"),
        gvk.version,
        gvk.kind
    );
    Err(ApiError::new(Reason::Unknown, message))
}

/// Too many writers: the oldest are one from here on.
fn merge_oldest(managers: &mut Vec<Manager>) {
    let writers = managers.iter().filter(|known| known.operation == Operation::Update).count();
    let Some(surplus) = writers.checked_sub(MAX_WRITERS).filter(|surplus| *surplus > 0) else { return };
    managers.sort_by(|one, two| one.time.cmp(&two.time));
    let (mut ancient, mut left) = (Vec::new(), Vec::new());
    for known in managers.drain(..) {
        let is_ancient = known.operation == Operation::Update && ancient.len() <= surplus;
        if is_ancient { ancient.push(known) } else { left.push(known) }
    }
    let merged = ancient.into_iter().reduce(|mut one, two| {
        one.fields = one.fields.union(&two.fields);
        one.time = two.time;
        one
    });
    left.extend(merged.map(|one| Manager { name: SmolStr::new_static(ANCIENT_CHANGES), ..one }));
    *managers = left;
}

fn subresource(below: Option<Subresource>) -> SmolStr {
    SmolStr::new_static(match below {
        None => "",
        Some(Subresource::Status) => "status",
        Some(Subresource::Scale) => "scale",
    })
}

fn without_unmanaged(fields: &Fields) -> Fields {
    let mut kept = fields.clone();
    for name in ["apiVersion", "kind"] {
        kept.inside.remove(&Step::Field(SmolStr::new_static(name)));
    }
    if let Some(metadata) = kept.inside.get_mut(&Step::Field(SmolStr::new_static("metadata"))) {
        metadata.is_member = false;
        for name in UNMANAGED {
            metadata.inside.remove(&Step::Field(SmolStr::new_static(name)));
        }
    }
    kept.without(&Fields::default())
}

fn read(live: Option<&Value>) -> Vec<Manager> {
    let entries = live.and_then(|live| live["metadata"][MANAGED_FIELDS].as_array());
    let read = |entry: &Value| {
        let text = |name: &str| SmolStr::from(entry[name].as_str().unwrap_or_default());
        Manager {
            operation: if entry["operation"] == "Apply" { Operation::Apply } else { Operation::Update },
            name: text("manager"),
            api_version: text("apiVersion"),
            subresource: text("subresource"),
            time: text("time"),
            fields: Fields::from_json(&entry["fieldsV1"]),
        }
    };
    entries.into_iter().flatten().map(read).collect()
}

/// Appliers first, then by time (`sortEncodedManagedFields`).
fn write(managers: &[Manager]) -> Value {
    let mut sorted: Vec<&Manager> = managers.iter().collect();
    let key = |known: &&Manager| {
        (known.operation, known.time.clone(), known.name.clone(), known.api_version.clone(), known.subresource.clone())
    };
    sorted.sort_by_key(key);
    let entry = |known: &Manager| {
        let operation = match known.operation {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        };
        let mut entry = Map::from_iter([
            ("manager".to_owned(), known.name.as_str().into()),
            ("operation".to_owned(), operation.into()),
            ("apiVersion".to_owned(), known.api_version.as_str().into()),
            ("fieldsType".to_owned(), "FieldsV1".into()),
            ("fieldsV1".to_owned(), known.fields.to_json()),
        ]);
        if !known.time.is_empty() {
            entry.insert("time".to_owned(), known.time.as_str().into());
        }
        if !known.subresource.is_empty() {
            entry.insert("subresource".to_owned(), known.subresource.as_str().into());
        }
        Value::Object(entry)
    };
    sorted.into_iter().map(entry).collect()
}
