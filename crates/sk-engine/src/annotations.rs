//! The labels and annotations by which the driver tells virtual nodes what to do: SimKube's own names, which KWOK's
//! stages read on a real cluster.

use std::collections::BTreeMap;

use sk_core::{SimDuration, SmolStr};

/// On a pod: from being bound until its image is there, `<n>ms`.
pub const CREATE_DELAY: SmolStr = SmolStr::new_static("simkube.io/kwok-stage-create-delay");
/// On a pod: from its image being there until it runs and is ready, `<n>ms`.
pub const READY_DELAY: SmolStr = SmolStr::new_static("simkube.io/kwok-stage-ready-delay");
/// On a pod: how long it runs before it ends well, `<n>us`; without it, until it is deleted.
pub const LIFETIME: SmolStr = SmolStr::new_static("static.simkube.io/lifetime");
/// On a node: from being created until it is ready, `<n>ms`.
pub const NODE_READY_DELAY: SmolStr = SmolStr::new_static("simkube.io/node-ready-delay");
/// Label on a node: the group it belongs to.
pub const NODE_GROUP: SmolStr = SmolStr::new_static("simkube.io/node-group");

/// Writes a span as `<n>ms`, rounded up to whole milliseconds.
pub fn millis(span: SimDuration) -> SmolStr {
    format!("{}ms", span.as_micros().max(0).saturating_add(999) / 1000).into()
}

/// Writes a span as `<n>us`.
pub fn micros(span: SimDuration) -> SmolStr {
    format!("{}us", span.as_micros().max(0)).into()
}

/// Reads a span; `None` when it is not there or not a span.
pub(crate) fn read(annotations: &BTreeMap<SmolStr, SmolStr>, name: &SmolStr) -> Option<SimDuration> {
    let text = annotations.get(name)?;
    let (digits, unit): (_, fn(i64) -> SimDuration) = match text.strip_suffix("us") {
        Some(digits) => (digits, SimDuration::from_micros),
        None => (text.strip_suffix("ms")?, SimDuration::from_millis),
    };
    digits.parse().ok().filter(|number| *number >= 0).map(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_come_back_as_they_were_written() {
        let span = SimDuration::from_micros(1_500_001);
        let annotations = BTreeMap::from([(LIFETIME, micros(span)), (READY_DELAY, millis(span))]);
        assert_eq!(read(&annotations, &LIFETIME), Some(span));
        assert_eq!(read(&annotations, &READY_DELAY), Some(SimDuration::from_millis(1_501)));
        assert_eq!(read(&annotations, &CREATE_DELAY), None);
        for text in ["", "ms", "-5ms", "5", "99999999999999999999ms"] {
            assert_eq!(read(&BTreeMap::from([(LIFETIME, text.into())]), &LIFETIME), None, "{text}");
        }
    }
}
