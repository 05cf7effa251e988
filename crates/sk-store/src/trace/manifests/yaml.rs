//! Splits a YAML file into its documents, each with its first line, under a budget: YAML aliases can make a few lines
//! expand to gigabytes.

use std::io::Cursor;
use std::sync::Arc;

use serde_json::Value;
use serde_saphyr::{Options, Spanned};

use super::{ManifestFile, expand};
use crate::msgpack::MAX_DEPTH;
use crate::trace::error::{Flaw, Place, TraceError};
use crate::yaml::in_words;

/// The most values in one document: a List of 10,000 objects with 200 values each, at up to 80 bytes a value 160 MiB.
const MAX_DOCUMENT_NODES: usize = 1 << 21;

/// The most documents in one file.
const MAX_DOCUMENTS: usize = 1 << 20;

/// One object, and where it stands.
pub(super) struct Document {
    pub(super) value: Value,
    pub(super) file: Arc<str>,
    pub(super) place: Place,
}

/// Adds the documents of `file`, lists expanded. Empty documents are passed over.
pub(super) fn read(file: &ManifestFile, documents: &mut Vec<Document>) -> Result<(), TraceError> {
    let mut reader = Cursor::new(&file.text);
    let found = serde_saphyr::read_with_options::<_, Spanned<Value>>(&mut reader, options());
    for (number, document) in (1..).zip(found) {
        let error = |line: u64, what: String| {
            let place = Place { part: Some(format!("document {number}, line {line}")), offset: None };
            TraceError::new(&file.name, place, Flaw::Manifest(what))
        };
        let document = document
            .map_err(|failed| error(failed.location().map_or(0, |location| location.line()), in_words(&failed)))?;
        let line = document.referenced.line();
        for (item, value) in (0..).zip(expand(document.value)) {
            let item = if item == 0 { String::new() } else { format!(", item {item}") };
            let place = Place { part: Some(format!("document {number}, line {line}{item}")), offset: None };
            documents.push(Document { value, file: file.name.clone(), place });
        }
    }
    Ok(())
}

/// As Kubernetes reads YAML: `0644` is octal and `on` is true, as in YAML 1.1; a key may not come twice.
fn options() -> Options {
    let budget = serde_saphyr::budget! {
        max_reader_input_bytes: usize::try_from(super::MAX_BYTES).ok(),
        max_events: 4 * MAX_DOCUMENT_NODES,
        max_nodes: MAX_DOCUMENT_NODES,
        max_depth: MAX_DEPTH,
        max_documents: MAX_DOCUMENTS,
    };
    serde_saphyr::options! {
        budget: budget,
        legacy_octal_numbers: true,
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::Reject,
        with_snippet: false,
    }
}
