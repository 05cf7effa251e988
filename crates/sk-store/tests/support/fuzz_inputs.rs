//! What each fuzz target does with its bytes. Also run over the kept corpus by an ordinary test.

pub(crate) mod native_file;

use native_file::NativeFile;
use sk_core::SimTime;
use sk_store::log::{Item, Log, Options, Query};
use sk_store::trace::{Format, Section, Trace, from_bytes};

/// Reads all that there is, whatever it is. What it says does not matter; that it returns does.
fn read_through(bytes: Vec<u8>) {
    let Ok(trace) = from_bytes("fuzz", bytes) else { return };
    let trace: &Trace = &trace;
    let _ = trace.records().map(|records| records.filter(Result::is_err).count());
    let _ = trace.heads().map(|heads| heads.filter(Result::is_err).count());
    for section in Section::ALL {
        let _ = trace.rows(section).map(|rows| rows.filter(Result::is_err).count());
    }
}

/// A v2 trace: a map of five, beginning with its version, so that the fuzzer starts inside.
pub(crate) fn v2(data: &[u8]) {
    read_through([b"\x85\xa7version\x02", data].concat());
}

/// A native file as it is. Checksums keep most changes outside; see [`native_blocks`] for the inside.
pub(crate) fn native(data: &[u8]) {
    read_through([b"SKTRACE\0", data].concat());
}

/// The insides of native blocks, with right checksums around them. The first three bytes share the rest out to heads,
/// bodies and index.
pub(crate) fn native_blocks(data: &[u8]) {
    if let Some(file) = native_file(data) {
        read_through(file);
    }
}

/// The file that [`native_blocks`] reads.
pub(crate) fn native_file(data: &[u8]) -> Option<Vec<u8>> {
    let (shares, rest) = data.split_first_chunk::<3>()?;
    let share = |place: usize| rest.len() * usize::from(shares[place]) / 256;
    let mut cuts = [share(0), share(1), share(2)];
    cuts.sort_unstable();
    let (heads, bodies, rows) = (&rest[..cuts[0]], &rest[cuts[0]..cuts[1]], &rest[cuts[1]..cuts[2]]);
    Some(assemble(heads, bodies, rows, &rest[cuts[2]..]))
}

/// JSON Lines after a right header.
pub(crate) fn jsonl(data: &[u8]) {
    let header = b"{\"simkube\":\"trace\",\"version\":1,\"config\":{\"trackedObjects\":{}}}\n";
    read_through([&header[..], data].concat());
}

/// Manifests.
pub(crate) fn manifests(data: &[u8]) {
    read_through([b"# manifests\n", data].concat());
}

/// A native file whose one chunk, rows of gaps, and index tail are what is given; the rest is right.
fn assemble(heads: &[u8], bodies: &[u8], rows: &[u8], index_tail: &[u8]) -> Vec<u8> {
    let mut file = NativeFile::new();
    let chunk = file.chunk(heads, bodies);
    file.index(&[chunk], if index_tail.is_empty() { &[0, 0] } else { index_tail });
    file.listed(20, 1, rows);
    file.finish(chunk.records, Some(chunk.span))
}

/// A segment of an event log, opened, read and exported.
pub(crate) fn log_segment(data: &[u8]) {
    let Some((_folder, log)) = log_of(data) else { return };
    let _ = log.reader().items().count();
    for start in [1_000_000, 1_000_005] {
        let query = Query::window(SimTime::from_micros(start), SimTime::MAX);
        for format in [Format::Native, Format::V2] {
            let _ = log.reader().export(&query, format, std::io::sink());
        }
    }
}

/// How many facts the state and the entries of such a segment have.
pub(crate) fn facts_in(data: &[u8]) -> (usize, usize) {
    let Some((_folder, log)) = log_of(data) else { return (0, 0) };
    log.reader().items().fold((0, 0), |(state, entries), item| match item {
        Item::State(_) => (state + 1, entries),
        _ => (state, entries + 1),
    })
}

/// A log of one segment: a right header, and behind it the bytes as they are (if the first is odd), or a state and
/// entries made of the rest, the second byte's share and what is left, in right blocks. The first byte's next bit says
/// whether the segment is of version 1 or 3.
fn log_of(data: &[u8]) -> Option<(tempfile::TempDir, Log)> {
    let (chosen, rest) = data.split_first_chunk::<2>()?;
    let mut segment = b"SKLOG\0\0\0".to_vec();
    for number in [1 + u64::from(chosen[0] & 2), 1, 0, 1_000_000] {
        segment.extend_from_slice(&number.to_le_bytes());
    }
    let sum = xxhash_rust::xxh3::xxh3_64(&segment);
    segment.extend_from_slice(&sum.to_le_bytes());
    if chosen[0] % 2 == 1 {
        segment.extend_from_slice(rest);
    } else {
        let (state, entries) = rest.split_at(rest.len() * usize::from(chosen[1]) / 256);
        put_log_blocks(&mut segment, &[(2, state), (3, entries)]);
    }
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::write(folder.path().join("0000000001.sklog"), segment).expect("a small file can be written");
    let (log, _) = Log::open(folder.path(), Options::default()).ok()?;
    Some((folder, log))
}

/// Blocks of a segment, whose compressed bytes are one stream.
fn put_log_blocks(segment: &mut Vec<u8>, blocks: &[(u8, &[u8])]) {
    let mut stream = zstd::stream::write::Encoder::new(Vec::new(), 1).expect("memory can be compressed");
    for (kind, raw) in blocks {
        std::io::Write::write_all(&mut stream, raw).expect("memory takes all");
        std::io::Write::flush(&mut stream).expect("memory takes all");
        let stored = std::mem::take(stream.get_mut());
        let len = |bytes: &[u8]| u32::try_from(bytes.len()).expect("fuzz inputs are small").to_le_bytes();
        let header = [&[*kind, 0, 0, 0][..], &len(&stored), &len(raw)].concat();
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        hasher.update(&header);
        hasher.update(&stored);
        segment.extend_from_slice(&header);
        segment.extend_from_slice(&hasher.digest().to_le_bytes());
        segment.extend_from_slice(&stored);
    }
}
