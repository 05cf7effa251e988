//! The options of a log: retention and the size of segments.

use sk_core::SimDuration;

/// How long history is kept, by default: a month and a day.
const DEFAULT_AGE: SimDuration = SimDuration::from_secs(32 * 86_400);

/// How many bytes of history are kept, by default. 55 million events, which is 20 a second for [`DEFAULT_AGE`], take
/// 6.6 GB at 120 bytes each; three times that is room for bursts.
const DEFAULT_BYTES: u64 = 20 << 30;

/// A segment's entries, before compression. Reaching a moment means reading at most one segment: 256 MiB are read in
/// about half a second. Compressed they are some 5 MiB.
const DEFAULT_SEGMENT_BYTES: u64 = 256 << 20;

/// A segment lasts no longer than this, so that a quiet cluster's history is given up by the day.
const DEFAULT_SEGMENT_AGE: SimDuration = SimDuration::from_secs(86_400);

/// How much larger than its state a segment gets at least, where the state is large: a fifth of the disk at most goes
/// for states.
pub(super) const ENTRIES_PER_STATE: u64 = 4;

/// Retention gives up whole segments, so one is at most this part of what is kept, by bytes and by age.
pub(super) const SEGMENTS_KEPT: u64 = 16;

/// How a log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// History older than this is given up.
    pub age: SimDuration,
    /// The oldest history is given up when all of it takes more than this on disk.
    pub bytes: u64,
    /// A new segment is begun when the entries of one reach this, before compression.
    pub segment_bytes: u64,
    /// A new segment is begun when one is as old as this, or as a sixteenth of [`age`](Self::age) if that is less.
    pub segment_age: SimDuration,
}

impl Options {
    /// How long a segment lasts at most.
    pub(super) fn longest_segment(&self) -> SimDuration {
        let share = self.age.as_micros() / SEGMENTS_KEPT.cast_signed();
        self.segment_age.min(SimDuration::from_micros(share))
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            age: DEFAULT_AGE,
            bytes: DEFAULT_BYTES,
            segment_bytes: DEFAULT_SEGMENT_BYTES,
            segment_age: DEFAULT_SEGMENT_AGE,
        }
    }
}
