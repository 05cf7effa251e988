//! Request options from the query: dry run, field manager, field validation, and the resource version of a list.
//!
//! The server validates options before it reads the body (`ValidateCreateOptions`, `ValidateListOptions` and others in
//! `apimachinery/pkg/apis/meta`, 1.36).

use sk_core::Gvk;
use sk_core::selector::SelectorError;
use sk_core::{FieldSelector, LabelSelector};

use super::path::{Place, Query};
use super::{Call, Method};
use crate::error::Invalid;
use crate::read::ListOptions;
use crate::{ApiError, Reason};

/// `FieldManagerMaxLength`
const MAX_MANAGER_BYTES: usize = 128;

/// What is wrong with options of this kind.
pub(super) fn refuse(kind: &'static str, wrong: &[Invalid]) -> Result<(), ApiError> {
    let kind = Gvk::new_static("meta.k8s.io", "v1", kind);
    if wrong.is_empty() { Ok(()) } else { Err(ApiError::invalid(&kind, "", wrong)) }
}

/// Is it only to be tried? `given` is what the options say.
pub(super) fn is_trial(kind: &'static str, given: &[&str]) -> Result<bool, ApiError> {
    if given.iter().any(|word| *word != "All") {
        let why = format!("Unsupported value: {}: supported values: \"All\"", serde_json::json!(given));
        refuse(kind, &[Invalid::new("dryRun", why)])?;
    }
    Ok(!given.is_empty())
}

/// Is a write only to be tried? Deletions say so themselves.
pub(super) fn write_is_trial(call: &Call, query: &Query) -> Result<bool, ApiError> {
    let kind = match call.method {
        Method::Post => "CreateOptions",
        Method::Put => "UpdateOptions",
        Method::Patch => "PatchOptions",
        Method::Get | Method::Delete => return Ok(false),
    };
    let mut wrong = Vec::new();
    if query.get("fieldManager").is_some_and(|name| name.len() > MAX_MANAGER_BYTES) {
        let why = format!("Too long: may not be more than {MAX_MANAGER_BYTES} bytes");
        wrong.push(Invalid::new("fieldManager", why));
    }
    if let Some(word) = query.get("fieldValidation").filter(|word| !["Ignore", "Strict", "Warn"].contains(word)) {
        let why = format!("Unsupported value: {word:?}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"");
        wrong.push(Invalid::new("fieldValidation", why));
    }
    let is_trial = is_trial(kind, &query.all("dryRun"));
    refuse(kind, &wrong)?;
    is_trial
}

/// A number in a query.
pub(super) fn number(query: &Query, name: &str) -> Result<Option<i64>, ApiError> {
    let unreadable = |text: &str| ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"));
    query.get(name).map(|text| text.parse().map_err(|_| unreadable(text))).transpose()
}

/// Which objects are listed or watched.
pub(super) fn list_options(place: &Place, query: &Query, is_watch: bool) -> Result<ListOptions, ApiError> {
    let labels = match query.get("labelSelector") {
        None => LabelSelector::everything(),
        Some(text) => text.parse().map_err(|error| unreadable_selector(text, &error))?,
    };
    let fields: FieldSelector = match query.get("fieldSelector") {
        None => FieldSelector::default(),
        Some(text) => {
            let unreadable =
                |_| ApiError::bad_request(format!("invalid selector: '{text}'; can't understand '{text}'"));
            text.parse().map_err(unreadable)?
        }
    };
    number(query, "timeoutSeconds")?;
    let limit = number(query, "limit")?.and_then(|limit| usize::try_from(limit).ok());
    let wrong = if is_watch { wrong_watch(query) } else { wrong_list(query) };
    refuse("ListOptions", &wrong)?;
    let exactly = query.get("resourceVersionMatch").filter(|_| !is_watch) == Some("Exact");
    let version = if is_watch { None } else { list_version(query)? };
    Ok(ListOptions {
        namespace: place.namespace.clone(),
        labels,
        fields,
        limit,
        token: query.get("continue").map(str::to_owned),
        exactly: version.filter(|_| exactly),
        at_least: version,
    })
}

fn wrong_list(query: &Query) -> Vec<Invalid> {
    let mut wrong = Vec::new();
    let mut forbid = |field: &str, why: &str| wrong.push(Invalid::new(field, format!("Forbidden: {why}")));
    const MATCH: &str = "resourceVersionMatch";
    if let Some(word) = query.get(MATCH) {
        if query.get("resourceVersion").is_none() {
            forbid(MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if query.get("continue").is_some() {
            forbid(MATCH, "resourceVersionMatch is forbidden when continue is provided");
        }
        if word == "Exact" && query.get("resourceVersion") == Some("0") {
            forbid(MATCH, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
        }
        if !["Exact", "NotOlderThan"].contains(&word) {
            let why = format!("Unsupported value: {word:?}: supported values: \"Exact\", \"NotOlderThan\", \"\"");
            wrong.push(Invalid::new(MATCH, why));
        }
    }
    if query.get("sendInitialEvents").is_some() {
        wrong.push(Invalid::new("sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list"));
    }
    wrong
}

fn wrong_watch(query: &Query) -> Vec<Invalid> {
    const MATCH: &str = "resourceVersionMatch";
    let (word, is_initial) = (query.get(MATCH), query.get("sendInitialEvents").is_some());
    let mut wrong = Vec::new();
    let mut forbid = |why: &str| wrong.push(Invalid::new(MATCH, format!("Forbidden: {why}")));
    if is_initial && word != Some("NotOlderThan") {
        forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    }
    if word.is_some() && !is_initial {
        forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    }
    if query.get("continue").is_some() {
        forbid("resourceVersionMatch is forbidden when continue is provided");
    }
    if let Some(word) = word.filter(|word| *word != "NotOlderThan") {
        let why = format!("Unsupported value: {word:?}: supported values: \"NotOlderThan\"");
        wrong.push(Invalid::new(MATCH, why));
    }
    wrong
}

/// The version that a list must be of, or not be older than.
fn list_version(query: &Query) -> Result<Option<u64>, ApiError> {
    let Some(text) = query.get("resourceVersion") else { return Ok(None) };
    let version: u64 = text.parse().map_err(|_| {
        let why = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
        ApiError::bad_request(format!("invalid resource version: resourceVersion: Invalid value: {text:?}: {why}"))
    })?;
    if version != 0 && query.get("continue").is_some() {
        return Err(ApiError::bad_request("specifying resource version is not allowed when using continue"));
    }
    Ok(Some(version).filter(|version| *version != 0))
}

/// The version from which a watch continues.
pub(super) fn watch_version(query: &Query) -> Result<u64, ApiError> {
    let Some(version) = query.get("resourceVersion") else { return Ok(0) };
    version.parse().map_err(|_| {
        let why = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
        ApiError::new(Reason::Unknown, format!("resourceVersion: Invalid value: {version:?}: {why}"))
    })
}

/// What a server says of a label selector that it cannot read (`labels.Parse`).
fn unreadable_selector(text: &str, error: &SelectorError) -> ApiError {
    let refuse = |why: String| ApiError::bad_request(format!("unable to parse requirement: {why}"));
    let SelectorError::Syntax { found, expected, .. } = error else {
        if let (SelectorError::Values { .. }, Some((_, value))) = (error, text.split_once(['<', '>'])) {
            let value = value.split(',').next().unwrap_or_default();
            let why = "for 'Gt', 'Lt' operators, the value must be an integer";
            return refuse(format!("values[0]: Invalid value: {value:?}: {why}"));
        }
        return refuse(crate::validation::selector_words(error).unwrap_or_else(|| error.to_string()));
    };
    let found = if found == "the end" { "" } else { found };
    let of_requirement = match *expected {
        "one of = == != > < in notin" => "in, notin, =, ==, !=, gt, lt",
        "a value" => "identifier",
        // Behind a value a list of values goes on or ends.
        "a value, `,` or `)`" if found.is_empty() => "',' or ')'",
        "a value, `,` or `)`" => "',', ')' or identifier",
        "`(`" => return refuse(format!("found '{found}' expected: '('")),
        "`,` or the end" => return ApiError::bad_request(format!("found '{found}', expected: ',' or 'end of string'")),
        _ => return ApiError::bad_request(format!("found '{found}', expected: !, identifier, or 'end of string'")),
    };
    refuse(format!("found '{found}', expected: {of_requirement}"))
}
