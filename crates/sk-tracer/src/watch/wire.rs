//! What the API server writes, peeled as far as needed: one event of a watch, one page of a list. The objects inside
//! stay the bytes they are; only the sieve looks into them.

use serde::Deserialize;
use serde_json::value::RawValue;
use sk_core::SmolStr;

/// One line of a watch.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// An object came or changed.
    Applied(&'a [u8]),
    /// An object is gone; this is how it was last.
    Deleted(&'a [u8]),
    /// Everything up to this resource version has been sent.
    Bookmark(SmolStr),
    /// The server gives up on this watch.
    Failed(Failure),
}

/// What the server says when it gives up.
#[derive(Debug, Deserialize)]
pub(crate) struct Failure {
    /// As HTTP has them; 410 when the version that was asked for is forgotten.
    #[serde(default)]
    pub(crate) code: u16,
    /// In its own words.
    #[serde(default)]
    pub(crate) message: String,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: SmolStr,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Versioned {
    metadata: Version,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    resource_version: SmolStr,
}

impl<'a> Event<'a> {
    /// Reads a line. `None` for a type that this version of Kubernetes does not have.
    pub(crate) fn read(line: &'a [u8]) -> Result<Option<Self>, serde_json::Error> {
        let line: Line<'a> = serde_json::from_slice(line)?;
        let object = line.object.get().as_bytes();
        Ok(Some(match line.kind.as_str() {
            "ADDED" | "MODIFIED" => Self::Applied(object),
            "DELETED" => Self::Deleted(object),
            "BOOKMARK" => Self::Bookmark(version_of(object)?),
            "ERROR" => Self::Failed(serde_json::from_slice(object)?),
            _ => return Ok(None),
        }))
    }
}

/// An object's resource version.
pub(crate) fn version_of(object: &[u8]) -> Result<SmolStr, serde_json::Error> {
    serde_json::from_slice::<Versioned>(object).map(|object| object.metadata.resource_version)
}

/// One page of a list.
#[derive(Debug, Deserialize)]
pub(crate) struct Page<'a> {
    /// What is said of the whole list.
    pub(crate) metadata: PageMetadata,
    /// The objects.
    #[serde(borrow, default)]
    pub(crate) items: Option<Vec<&'a RawValue>>,
}

/// What is said of a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageMetadata {
    /// The version that the whole list shows, the same for all its pages.
    pub(crate) resource_version: SmolStr,
    /// How to ask for the next page; empty on the last.
    #[serde(default, rename = "continue")]
    pub(crate) next: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_peeled_and_its_object_left_as_it_came() {
        let line = br#"{"type":"MODIFIED","object":{"kind":"Pod", "x": 1.50}}"#;
        let Some(Event::Applied(object)) = Event::read(line).unwrap() else { panic!("an object changed") };
        assert_eq!(object, br#"{"kind":"Pod", "x": 1.50}"#);
        let line = br#"{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"77","uid":""}}}"#;
        assert!(matches!(Event::read(line).unwrap(), Some(Event::Bookmark(version)) if version == "77"));
        let line = br#"{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}"#;
        assert!(matches!(Event::read(line).unwrap(), Some(Event::Failed(failure)) if failure.code == 410));
        assert!(Event::read(br#"{"type":"NEW","object":{}}"#).unwrap().is_none());
    }

    #[test]
    fn what_is_no_event_is_an_error() {
        for line in ["", "{", "[]", "null", r#"{"type":"ADDED"}"#, r#"{"type":"BOOKMARK","object":{}}"#] {
            assert!(Event::read(line.as_bytes()).is_err(), "{line}");
        }
    }

    #[test]
    fn a_page_may_have_no_items_at_all() {
        let page: Page<'_> = serde_json::from_str(r#"{"metadata":{"resourceVersion":"5"},"items":null}"#).unwrap();
        assert!(page.items.unwrap_or_default().is_empty() && page.metadata.next.is_empty());
        let page: Page<'_> =
            serde_json::from_str(r#"{"metadata":{"resourceVersion":"5","continue":"a"},"items":[{"a":1},{}]}"#)
                .unwrap();
        assert_eq!((page.items.unwrap().len(), page.metadata.next.as_str()), (2, "a"));
    }
}
