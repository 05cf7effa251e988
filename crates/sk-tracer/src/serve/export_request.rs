//! Parses and checks an export request: window, filters, format. Pure.

use sk_api::tracer::{ExportRequest, Filters};
use sk_core::selector::SelectorError;
use sk_core::{LabelSelector, SimTime};
use sk_store::log::Query;
use sk_store::trace::Format;

/// The last second that a double holds to the microsecond: 2⁵³ µs after 1970, the year 2255.
const LAST_SECOND: f64 = (1u64 << 53) as f64 / 1e6;
/// Filters of one request: each is evaluated for every object.
const MAX_FILTERS: usize = 1_000;

/// Why an export request is refused.
#[derive(Debug, thiserror::Error)]
pub enum ExportRequestError {
    /// Not a time.
    #[error("{field} {value} is not a time; give seconds since 1970")]
    Time {
        /// Which.
        field: &'static str,
        /// What it was.
        value: f64,
    },
    /// The window is empty.
    #[error("end_ts {end} (now at the latest) must be after start_ts {start}")]
    EmptyWindow {
        /// The start.
        start: SimTime,
        /// The end.
        end: SimTime,
    },
    /// An invalid label selector.
    #[error("filters.{field}[{index}]: {source}")]
    Selector {
        /// In which list.
        field: &'static str,
        /// Where in it.
        index: usize,
        /// What is wrong.
        source: SelectorError,
    },
    /// An invalid namespace name.
    #[error("filters.{field}[{index}] `{value}` is not the name of a namespace")]
    Namespace {
        /// In which list.
        field: &'static str,
        /// Where in it.
        index: usize,
        /// What it was.
        value: String,
    },
    /// Too many filters.
    #[error("at most {MAX_FILTERS} filters")]
    TooMany,
    /// An unknown format.
    #[error("unknown format `{0}`; use native or v2")]
    Format(String),
}

/// Parses a request. An end in the future means now; the export decides when that is, because it first waits for
/// everything that happened before the request.
pub(crate) fn parse(request: &ExportRequest, now: SimTime) -> Result<(Query, Format), ExportRequestError> {
    let format = match request.format.as_deref() {
        None | Some("v2") => Format::V2,
        Some("native") => Format::Native,
        Some(other) => return Err(ExportRequestError::Format(other.chars().take(40).collect())),
    };
    let start = moment("start_ts", request.start_ts)?;
    let end = if request.until_now { SimTime::MAX } else { moment("end_ts", request.end_ts)? };
    if start >= end.min(now) {
        return Err(ExportRequestError::EmptyWindow { start, end: end.min(now) });
    }
    let filters = &request.filters;
    let count = filters.excluded_namespaces.len() + filters.included_namespaces.len();
    if count + filters.excluded_labels.len() + filters.included_labels.len() > MAX_FILTERS {
        return Err(ExportRequestError::TooMany);
    }
    Ok((query(start, end, filters)?, format))
}

fn query(start: SimTime, end: SimTime, filters: &Filters) -> Result<Query, ExportRequestError> {
    Ok(Query {
        start,
        end,
        included_namespaces: namespaces("included_namespaces", &filters.included_namespaces)?,
        excluded_namespaces: namespaces("excluded_namespaces", &filters.excluded_namespaces)?,
        included_labels: selectors("included_labels", &filters.included_labels)?,
        excluded_labels: selectors("excluded_labels", &filters.excluded_labels)?,
        ..Query::default()
    })
}

fn moment(field: &'static str, value: f64) -> Result<SimTime, ExportRequestError> {
    if !(0.0..=LAST_SECOND).contains(&value) {
        return Err(ExportRequestError::Time { field, value });
    }
    Ok(SimTime::from_micros((value * 1e6).round() as i64))
}

fn namespaces<C: FromIterator<sk_core::SmolStr>>(
    field: &'static str,
    names: &[String],
) -> Result<C, ExportRequestError> {
    let check = |(index, name): (usize, &String)| match is_namespace(name) {
        true => Ok(name.into()),
        false => Err(ExportRequestError::Namespace { field, index, value: name.chars().take(80).collect() }),
    };
    names.iter().enumerate().map(check).collect()
}

/// RFC 1123: small letters, digits and dashes, at most 63, not beginning or ending with a dash.
fn is_namespace(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=63).contains(&name.len()) && name.chars().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

fn selectors(field: &'static str, selectors: &[serde_json::Value]) -> Result<Vec<LabelSelector>, ExportRequestError> {
    let read = |(index, selector)| {
        LabelSelector::from_json(selector).map_err(|source| ExportRequestError::Selector { field, index, source })
    };
    selectors.iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(request: serde_json::Value) -> Result<(Query, Format), String> {
        let request: ExportRequest = serde_json::from_value(request).map_err(|error| error.to_string())?;
        parse(&request, SimTime::from_secs(1_000)).map_err(|error| error.to_string())
    }

    #[test]
    fn an_old_request_asks_for_v2() {
        let (query, format) = read(json!({
            "start_ts": 10, "end_ts": 20, "export_path": "file:///x",
            "filters": {"excluded_namespaces": ["kube-system"], "excluded_labels": [{"matchLabels": {"a": "b"}}]},
        }))
        .unwrap();
        assert_eq!((query.start, query.end), (SimTime::from_secs(10), SimTime::from_secs(20)));
        assert_eq!(format, Format::V2);
        assert_eq!((query.excluded_namespaces.len(), query.excluded_labels.len()), (1, 1));
    }

    #[test]
    fn a_window_may_have_decimals_and_end_whenever_now_is() {
        let (query, _) = read(json!({"start_ts": 10.000_001, "end_ts": 20, "format": "native"})).unwrap();
        assert_eq!((query.start, query.end), (SimTime::from_micros(10_000_001), SimTime::from_secs(20)));
        for until_now in
            [json!({"start_ts": 10, "end_ts": 5_000}), json!({"start_ts": 10, "end_ts": 20, "until_now": true})]
        {
            assert!(read(until_now).unwrap().0.end > SimTime::from_secs(1_000));
        }
        assert!(read(json!({"start_ts": 2_000, "end_ts": 5_000})).is_err(), "nothing has happened yet");
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_reason() {
        let refused = [
            (json!({"start_ts": 20, "end_ts": 10}), "after start_ts"),
            (json!({"start_ts": -1, "end_ts": 10}), "start_ts -1"),
            (json!({"start_ts": 0, "end_ts": 1e300}), "end_ts"),
            (json!({"start_ts": 0, "end_ts": 1, "format": "xml"}), "native or v2"),
            (json!({"start_ts": 0, "end_ts": 1, "filters": {"excluded_labels": [7]}}), "excluded_labels[0]"),
            (json!({"start_ts": 0, "end_ts": 1, "filters": {"excluded_namespaces": ["a/b"]}}), "a/b"),
            (json!({"start_ts": 0, "end_ts": 1, "filter": {}}), "filter"),
            (json!({"start_ts": 0}), "end_ts"),
        ];
        for (request, reason) in refused {
            let error = read(request).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
