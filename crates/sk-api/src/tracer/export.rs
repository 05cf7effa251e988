//! The export request: the body of `POST /export`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A window of the history, the destination, and filters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportRequest {
    /// The first moment: seconds since the epoch, perhaps with decimals.
    pub start_ts: f64,
    /// The moment after the last.
    pub end_ts: f64,
    /// Extend the window beyond `end_ts` to the moment of the export, so that the trace has everything that the API
    /// server had at the time of the request. SimKube 2 ignores this and ends at `end_ts`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub until_now: bool,
    /// The destination. For a path, `file://` and `http(s)://` the response is the trace, and the caller stores it; to
    /// `s3://`, `gs://` and `azure://` the tracer writes itself, if its configuration allows the URL.
    #[serde(default)]
    pub export_path: String,
    /// What is left out.
    #[serde(default)]
    pub filters: Filters,
    /// `native` or `v2`. Default: v2, which is what SimKube 2 expects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

/// What an export leaves out, and to what it is limited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Filters {
    /// Nothing of these namespaces.
    pub excluded_namespaces: Vec<String>,
    /// Nothing that one of these label selectors matches.
    pub excluded_labels: Vec<Value>,
    /// Only these namespaces; empty means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub included_namespaces: Vec<String>,
    /// Only what all of these label selectors match; empty means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub included_labels: Vec<Value>,
}
