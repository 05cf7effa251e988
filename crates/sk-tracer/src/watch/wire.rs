//! Parses the envelope of API responses: one event of a watch, one page of a list. The objects inside stay bytes.

use serde::Deserialize;
use serde_json::value::RawValue;
use sk_core::SmolStr;

/// One line of a watch.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// ADDED or MODIFIED.
    Applied(&'a [u8]),
    /// DELETED, with the last state.
    Deleted(&'a [u8]),
    /// BOOKMARK: everything up to this resource version has been sent.
    Bookmark(SmolStr),
    /// ERROR: the server ends this watch.
    Failed(Failure),
}

/// The Status of an ERROR event.
#[derive(Debug, Deserialize)]
pub(crate) struct Failure {
    /// As HTTP has them; 410 when the version that was asked for is forgotten.
    #[serde(default)]
    pub(crate) code: u16,
    /// The server's message.
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
    ///
    /// An event as an API server writes it is peeled without being read: whoever reads the object finds out whether it is
    /// whole. Written otherwise, it is read as any JSON.
    pub(crate) fn read(line: &'a [u8]) -> Result<Option<Self>, serde_json::Error> {
        if let Some(event) = Self::peel(line) {
            return Ok(Some(event));
        }
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

impl<'a> Event<'a> {
    /// The object of an event that brings one, if the line is written as an API server does it.
    fn peel(line: &'a [u8]) -> Option<Self> {
        let rest = line.strip_prefix(b"{\"type\":\"")?.strip_suffix(b"}")?;
        let (is_deleted, rest) = match rest.first()? {
            b'A' => (false, rest.strip_prefix(b"ADDED")?),
            b'M' => (false, rest.strip_prefix(b"MODIFIED")?),
            b'D' => (true, rest.strip_prefix(b"DELETED")?),
            _ => return None,
        };
        let object = rest.strip_prefix(b"\",\"object\":")?;
        let is_object = object.starts_with(b"{") && object.ends_with(b"}");
        is_object.then_some(if is_deleted { Self::Deleted(object) } else { Self::Applied(object) })
    }
}

/// An object's resource version.
pub(crate) fn version_of(object: &[u8]) -> Result<SmolStr, serde_json::Error> {
    serde_json::from_slice::<Versioned>(object).map(|object| object.metadata.resource_version)
}

/// One page of a list.
#[derive(Debug, Deserialize)]
pub(crate) struct Page<'a> {
    /// The metadata of the list.
    pub(crate) metadata: PageMetadata,
    /// The objects.
    #[serde(borrow, default)]
    pub(crate) items: Option<Vec<&'a RawValue>>,
}

/// The metadata of a list.
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
    fn an_event_is_the_same_however_it_is_written() {
        let object = r#"{"kind":"Pod","metadata":{"resourceVersion":"7"}}"#;
        for (line, applied) in [
            (format!(r#"{{"type":"ADDED","object":{object}}}"#), true),
            (format!(r#"{{"type":"DELETED","object":{object}}}"#), false),
            (format!(r#"{{ "type": "MODIFIED", "object": {object} }}"#), true),
            (format!(r#"{{"object":{object},"type":"DELETED"}}"#), false),
        ] {
            let (read, is_applied) = match Event::read(line.as_bytes()).unwrap() {
                Some(Event::Applied(read)) => (read, true),
                Some(Event::Deleted(read)) => (read, false),
                other => panic!("{line}: {other:?}"),
            };
            assert_eq!((read, is_applied), (object.as_bytes(), applied), "{line}");
        }
    }

    #[test]
    fn what_is_cut_off_is_found_out_by_whoever_reads_the_object() {
        let line = br#"{"type":"ADDED","object":{"metadata":{"name":"x"}}"#;
        if let Ok(Some(Event::Applied(object))) = Event::read(line) {
            assert!(version_of(object).is_err());
        }
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
