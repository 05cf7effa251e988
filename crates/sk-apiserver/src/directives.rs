//! The annotations with which the driver controls virtual nodes. The names are SimKube's own; on a real cluster KWOK's
//! stages read them. The embedded engine stores them as numbers ([`Directives`]) and serves them as annotations.

use std::collections::BTreeMap;

use sk_core::{SimDuration, SmolStr};

use crate::Object;
use crate::kinds::{Directives, JOB};

/// On a pod: from being bound until its image is there, `<n>ms`.
pub const CREATE_DELAY: SmolStr = SmolStr::new_static("simkube.io/kwok-stage-create-delay");
/// On a pod: from its image being there until it runs and is ready, `<n>ms`.
pub const READY_DELAY: SmolStr = SmolStr::new_static("simkube.io/kwok-stage-ready-delay");
/// On a pod: how long it runs before it ends well, `<n>us` or any other of Go's durations; without it, until it is deleted.
pub const LIFETIME: SmolStr = SmolStr::new_static("static.simkube.io/lifetime");
/// On a pod: what its containers end with after that; without it, 0.
pub const EXIT_CODE: SmolStr = SmolStr::new_static("static.simkube.io/exit-code");
/// On a pod: its number among the pods that were given one of its owner's recorded lives.
pub const SEQUENCE: SmolStr = SmolStr::new_static("static.simkube.io/pod-sequence-number");
/// On a node: from being created until it is ready, `<n>ms`.
pub const NODE_READY_DELAY: SmolStr = SmolStr::new_static("simkube.io/node-ready-delay");
/// On a node: `true` if its kubelet has stopped reporting.
pub const NODE_SILENT: SmolStr = SmolStr::new_static("simkube.io/node-silent");
/// Label on a node: the group it belongs to.
pub const NODE_GROUP: SmolStr = SmolStr::new_static("simkube.io/node-group");

/// The annotations that say so, the same on both engines.
pub fn annotations(directives: &Directives) -> impl Iterator<Item = (SmolStr, SmolStr)> {
    let delays = [(CREATE_DELAY, millis(directives.create_delay)), (READY_DELAY, millis(directives.ready_delay))];
    let number = directives.sequence.map(|number| (SEQUENCE, number.to_string().into()));
    let lifetime = directives.lifetime.map(|lifetime| (LIFETIME, micros(lifetime)));
    let exit_code = directives.exit_code.map(|code| (EXIT_CODE, code.to_string().into()));
    delays.into_iter().chain(number).chain(lifetime).chain(exit_code)
}

/// The directives in a pod's annotations, which a manifest may have too, unless the driver decided otherwise.
pub fn read(annotations: &BTreeMap<SmolStr, SmolStr>) -> Directives {
    let span = |name: &SmolStr| read_span(annotations, name);
    Directives {
        create_delay: span(&CREATE_DELAY).unwrap_or_default(),
        ready_delay: span(&READY_DELAY).unwrap_or_default(),
        lifetime: lifetime(annotations),
        exit_code: exit_code(annotations),
        sequence: annotations.get(&SEQUENCE).and_then(|text| text.parse().ok()),
    }
}

/// How long a pod's containers run, if its annotations say.
pub fn lifetime(annotations: &BTreeMap<SmolStr, SmolStr>) -> Option<SimDuration> {
    read_span(annotations, &LIFETIME)
}

/// What a pod's containers end with, if its annotations say: a number that a process can end with.
pub fn exit_code(annotations: &BTreeMap<SmolStr, SmolStr>) -> Option<u8> {
    annotations.get(&EXIT_CODE).and_then(|text| text.parse().ok())
}

/// Is the lifetime of this Job's pod unknown? Neither a recorded life nor an annotation has it, and a Job's pod that
/// never ends would be no Job's pod. A recorded life without an end says that it runs until it is deleted.
pub fn is_assumed(pod: &Object, directives: &Directives) -> bool {
    let of_job = pod.controller().is_some_and(|owner| owner.gvk == JOB);
    of_job && directives.lifetime.is_none() && directives.sequence.is_none()
}

/// Writes a span as `<n>ms`, rounded up to whole milliseconds.
pub fn millis(span: SimDuration) -> SmolStr {
    format!("{}ms", span.as_micros().max(0).saturating_add(999) / 1000).into()
}

/// Rounds a span up to whole milliseconds: as long as the annotation would say.
pub fn in_millis(span: SimDuration) -> SimDuration {
    SimDuration::from_millis(span.as_micros().max(0).saturating_add(999) / 1000)
}

/// Writes a span as `<n>us`.
pub fn micros(span: SimDuration) -> SmolStr {
    format!("{}us", span.as_micros().max(0)).into()
}

/// Reads a span as KWOK reads it: one of Go's durations, `90s` or `1h30m`, which know no days. `None` when it is not
/// there, negative or not a span.
pub fn read_span(annotations: &BTreeMap<SmolStr, SmolStr>, name: &SmolStr) -> Option<SimDuration> {
    let text = annotations.get(name).filter(|text| !text.contains('d'))?;
    text.parse().ok().filter(|span| *span >= SimDuration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_come_back_as_they_were_written() {
        let span = SimDuration::from_micros(1_500_001);
        let annotations = BTreeMap::from([(LIFETIME, micros(span)), (READY_DELAY, millis(span))]);
        assert_eq!(read_span(&annotations, &LIFETIME), Some(span));
        assert_eq!(read_span(&annotations, &READY_DELAY), Some(in_millis(span)));
        assert_eq!(read_span(&annotations, &CREATE_DELAY), None);
        for (text, secs) in [("40s", 40), ("1h30m", 5400), ("1.5m", 90)] {
            let read = read_span(&BTreeMap::from([(LIFETIME, text.into())]), &LIFETIME);
            assert_eq!(read, Some(SimDuration::from_secs(secs)), "{text}");
        }
        for text in ["", "ms", "1d", "-5ms", "5", "99999999999999999999ms"] {
            assert_eq!(read_span(&BTreeMap::from([(LIFETIME, text.into())]), &LIFETIME), None, "{text}");
        }
    }

    #[test]
    fn directives_come_back_from_the_annotations_they_are_shown_as() {
        let directives = Directives {
            create_delay: SimDuration::from_millis(1500),
            ready_delay: SimDuration::ZERO,
            lifetime: Some(SimDuration::from_micros(7)),
            exit_code: Some(3),
            sequence: Some(3),
        };
        assert_eq!(read(&annotations(&directives).collect()), directives);
    }
}
