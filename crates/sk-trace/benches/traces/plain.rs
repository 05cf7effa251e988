//! The plain way to read a v2 trace: the file in memory, all of it decoded, every object a JSON value.
//!
//! Only the frame has types, because lives are mapped by arrays and by numbers, which JSON cannot have. That is quicker
//! and smaller than values throughout, so it is the harder side to beat.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::steps::weight;

/// A v2 trace as it stands in the file.
#[derive(Serialize, Deserialize)]
#[allow(dead_code, reason = "whatever is in the file is read, also what nobody asks for here")]
pub(crate) struct Plain {
    version: u32,
    config: Value,
    events: Vec<Event>,
    index: Value,
    pod_lifecycles: BTreeMap<(String, String), BTreeMap<u64, Vec<Value>>>,
}

#[derive(Serialize, Deserialize)]
struct Event {
    ts: i64,
    applied_objs: Vec<Value>,
    deleted_objs: Vec<Value>,
}

impl Plain {
    pub(crate) fn read(path: &Path) -> Self {
        rmp_serde::from_slice(&fs::read(path).unwrap()).unwrap()
    }

    /// Writes all of it, and lets go of what was written; how many objects it has.
    pub(crate) fn write(&self) -> u64 {
        rmp_serde::encode::write_named(&mut std::io::sink(), self).unwrap();
        self.events.iter().map(|event| (event.applied_objs.len() + event.deleted_objs.len()) as u64).sum()
    }

    /// The weight of everything that happened.
    pub(crate) fn weight(&self) -> u64 {
        let of_event = |event: &Event| -> u64 {
            event.applied_objs.iter().chain(&event.deleted_objs).map(|object| weight_of(event.ts, object)).sum()
        };
        self.events.iter().map(of_event).sum()
    }
}

fn weight_of(secs: i64, object: &Value) -> u64 {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let labels = labels.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
    weight(secs, [text("/kind"), text("/metadata/namespace"), text("/metadata/name")], labels)
}
