//! The destination of an exported trace: the response, or an object store that the configuration allows.
//!
//! The tracer has credentials that its callers may not have, so it writes only below the prefixes in `exportTo`. URLs
//! are compared as they are written. Anything ambiguous is refused and not normalised: `..`, empty segments,
//! percent-encoding, backslashes, queries.

use std::str::FromStr;

use sk_store::Location;
use sk_store::location::shown;

/// Stores that the tracer writes to by itself.
const STORES: [&str; 3] = ["s3", "gs", "azure"];

/// The destination of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// The response; the caller stores it.
    Caller,
    /// Into an object store.
    Store(Location),
}

/// Why a destination is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DestinationError {
    #[error("export_path: {0}")]
    NoPlace(String),
    #[error("export_path `{0}` is ambiguous; write it without `..`, `//`, `%`, `\\`, blanks and `@`")]
    Ambiguous(String),
    #[error(
        "export_path `{place}` is not under exportTo in the tracer's configuration ({allowed}); \
         add it there, or leave export_path empty to get the trace as the answer"
    )]
    NotAllowed { place: String, allowed: String },
}

impl Destination {
    /// Reads a place. `allowed` are the prefixes under which the tracer itself may write.
    pub(crate) fn read(place: &str, allowed: &[String]) -> Result<Self, DestinationError> {
        let Some((scheme, rest)) = place.split_once("://") else { return Ok(Self::Caller) };
        if !STORES.contains(&scheme.to_ascii_lowercase().as_str()) {
            return Ok(Self::Caller);
        }
        let shown = || shown(place).chars().take(200).collect::<String>();
        if !is_plain(rest) {
            return Err(DestinationError::Ambiguous(shown()));
        }
        if !allowed.iter().any(|prefix| is_under(place, prefix)) {
            let allowed = if allowed.is_empty() { "nothing is allowed".to_owned() } else { allowed.join(", ") };
            return Err(DestinationError::NotAllowed { place: shown(), allowed });
        }
        Location::from_str(place).map(Self::Store).map_err(|error| DestinationError::NoPlace(error.to_string()))
    }
}

/// Are bucket and path unambiguous?
fn is_plain(rest: &str) -> bool {
    let strange = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '%' | '\\' | '@' | '?' | '#');
    !rest.contains(strange) && rest.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Is `place` in the folder `prefix`? `s3://a/b` holds `s3://a/b/c`, not `s3://a/bc`.
fn is_under(place: &str, prefix: &str) -> bool {
    let folder = prefix.trim_end_matches('/');
    place.strip_prefix(folder).is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(place: &str) -> Result<Destination, DestinationError> {
        Destination::read(place, &["s3://sim-traces/prod-eu1/".to_owned(), "gs://other".to_owned()])
    }

    #[test]
    fn what_is_no_object_store_comes_back_to_the_caller() {
        for place in ["", "week.sktrace", "/tmp/x", "file:///tmp/x", "https://example.com/x"] {
            assert_eq!(read(place), Ok(Destination::Caller), "{place}");
        }
    }

    #[test]
    fn the_tracer_writes_only_under_the_allowed_prefixes() {
        for place in ["s3://sim-traces/prod-eu1/w.sktrace", "s3://sim-traces/prod-eu1/a/b", "gs://other/x"] {
            assert!(matches!(read(place), Ok(Destination::Store(_))), "{place}");
        }
        let refused = [
            "s3://sim-traces/prod-eu1",
            "s3://sim-traces/prod-eu10/w",
            "s3://sim-traces/w",
            "s3://other/x",
            "gs://other2/x",
            "azure://other/x",
            "S3://sim-traces/prod-eu1/w",
        ];
        for place in refused {
            assert!(matches!(read(place), Err(DestinationError::NotAllowed { .. })), "{place}");
        }
        let none = Destination::read("s3://a/b", &[]).unwrap_err().to_string();
        assert!(none.contains("nothing is allowed"), "{none}");
    }

    #[test]
    fn a_place_that_can_be_read_in_two_ways_is_refused() {
        let refused = [
            "s3://sim-traces/prod-eu1/../secret",
            "s3://sim-traces/prod-eu1/./x",
            "s3://sim-traces/prod-eu1//x",
            "s3://sim-traces/prod-eu1/%2e%2e/secret",
            "s3://sim-traces/prod-eu1/..%2Fsecret",
            "s3://sim-traces/prod-eu1\\..\\secret",
            "s3://sim-traces/prod-eu1/x?versionId=1",
            "s3://sim-traces/prod-eu1/x\n",
            "s3://me@sim-traces/prod-eu1/x",
            "s3://sim-traces/prod-eu1/",
        ];
        for place in refused {
            assert!(matches!(read(place), Err(DestinationError::Ambiguous(_))), "{place:?}");
        }
    }

    #[test]
    fn a_refusal_does_not_repeat_what_lets_one_in() {
        for place in ["s3://key:hidden@sim-traces/prod-eu1/x", "s3://sim-traces/prod-eu1/x?X-Amz-Signature=hidden"] {
            let refusal = read(place).unwrap_err().to_string();
            assert!(refusal.contains("s3://sim-traces/prod-eu1/x") && !refusal.contains("hidden"), "{refusal}");
        }
    }
}
