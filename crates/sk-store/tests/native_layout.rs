//! Native files whose directory or index lies: each is refused with a sentence, and none is read for ever.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "support/fuzz_inputs.rs"]
#[allow(dead_code, reason = "only its files made by hand are used here")]
mod inputs;

use std::iter::repeat_n;

use inputs::native_file::{Chunk, NativeFile, put, put_signed};
use sk_core::SimTime;
use sk_store::trace::from_bytes;

/// The heads of so many moments, a second apart, from `first` on. They have no bodies.
fn moments(count: u64, first: u64) -> Vec<u8> {
    let mut heads = Vec::new();
    put(&mut heads, count);
    heads.extend_from_slice(&[0, 0, 0]);
    heads.extend(repeat_n(0, usize::try_from(count).unwrap()));
    put_signed(&mut heads, first.cast_signed() * 1_000_000);
    put(&mut heads, 1_000_000);
    (1..count).for_each(|_| put_signed(&mut heads, 1));
    put(&mut heads, first);
    (1..count).for_each(|_| put(&mut heads, 1));
    heads
}

const NO_BODIES: &[u8] = &[0];
const NO_OBJECTS: &[u8] = &[0, 0];

/// A file of two chunks with three moments each; `lie` changes what its index says of them.
fn two_chunks(lie: impl FnOnce(&mut Vec<Chunk>)) -> Vec<u8> {
    let mut file = NativeFile::new();
    let mut chunks = vec![file.chunk(&moments(3, 0), NO_BODIES), file.chunk(&moments(3, 3), NO_BODIES)];
    lie(&mut chunks);
    file.index(&chunks, NO_OBJECTS);
    file.finish(chunks.iter().map(|chunk| chunk.records).sum(), Some((0, 5_000_000)))
}

/// What reading all of it says, at opening or later.
fn refusal(bytes: Vec<u8>) -> String {
    let trace = match from_bytes("given.sktrace", bytes) {
        Ok(trace) => trace,
        Err(error) => return error.to_string(),
    };
    let heads = trace.heads().unwrap().find_map(Result::err).expect("a lie is found without reading objects");
    let records = trace.records().unwrap().find_map(Result::err).expect("a lie is found when objects are read");
    assert_eq!(heads.to_string(), records.to_string());
    records.to_string()
}

#[test]
fn an_honest_file_is_read() {
    let trace = from_bytes("honest", two_chunks(|_| {})).unwrap();
    let seqs: Vec<_> = trace.records().unwrap().map(|record| record.unwrap().seq).collect();
    assert_eq!(seqs, [0, 1, 2, 3, 4, 5]);
    assert_eq!(trace.span(), Some((SimTime::EPOCH, SimTime::from_secs(5))));
}

#[test]
fn a_small_file_whose_index_names_a_chunk_again_and_again_is_refused_at_once() {
    let bytes = two_chunks(|chunks| {
        let chunk = chunks[0];
        *chunks = repeat_n(chunk, 1_000_000).collect();
    });
    assert!(bytes.len() < 4096, "{} bytes", bytes.len());
    let error = from_bytes("given.sktrace", bytes).unwrap_err().to_string();
    assert!(error.contains("given.sktrace, an index") && error.contains("names a chunk twice"), "{error}");
    assert!(error.contains("export it again"), "{error}");
}

#[test]
fn a_directory_that_lists_a_block_again_and_again_is_refused_at_once() {
    for kind in ["index", "rows"] {
        let mut file = NativeFile::new();
        let chunk = file.chunk(&moments(3, 0), NO_BODIES);
        file.index(&[chunk], NO_OBJECTS);
        file.listed(20, 1, b"");
        let again = if kind == "index" { file.listed[0] } else { file.listed[1] };
        file.listed.extend(repeat_n(again, 1_000_000));
        let error = from_bytes("given.sktrace", file.finish(3, Some(chunk.span))).unwrap_err().to_string();
        assert!(error.contains("the directory lists it twice"), "{kind}: {error}");
    }
}

#[test]
fn what_an_index_says_of_a_chunk_must_be_true_of_it() {
    type Damage = fn(&mut Vec<Chunk>);
    let cases: [(&str, Damage); 9] = [
        ("not in the order of the file", |chunks| chunks.reverse()),
        ("does not lie before it", |chunks| chunks[1].len += 1_000_000),
        ("names a chunk twice", |chunks| chunks[0].len += 1),
        ("do not rise from chunk to chunk", |chunks| chunks[0].seqs = (0, 3)),
        ("fewer sequence numbers than records", |chunks| chunks[1].seqs = (5, 4)),
        ("fewer sequence numbers than records", |chunks| chunks[0].records = 4),
        ("as many records as the index says", |chunks| chunks[0].records = 2),
        ("not those that the index says", |chunks| chunks[0].span = (0, 1_000_000)),
        ("not those that the index says", |chunks| chunks[1].seqs = (3, 6)),
    ];
    for (expected, lie) in cases {
        let error = refusal(two_chunks(lie));
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn a_chunk_is_as_long_as_its_index_says() {
    let mut file = NativeFile::new();
    let mut chunk = file.chunk(&moments(3, 0), NO_BODIES);
    file.listed(20, 1, b"");
    chunk.len += 1;
    file.index(&[chunk], NO_OBJECTS);
    let trace = from_bytes("given.sktrace", file.finish(3, Some(chunk.span))).unwrap();
    let error = trace.records().unwrap().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("not as long as the index says"), "{error}");
}

#[test]
fn a_trace_cannot_claim_a_span_or_records_that_it_does_not_have() {
    let claim = |records, span| {
        let mut file = NativeFile::new();
        let chunk = file.chunk(&moments(3, 0), NO_BODIES);
        file.index(&[chunk], NO_OBJECTS);
        from_bytes("given.sktrace", file.finish(records, span)).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(claim(3, Some((0, 2_000_000))), Ok(()));
    let error = claim(3, Some((i64::MIN, i64::MAX))).unwrap_err();
    assert!(error.contains("first and last times"), "{error}");
    let error = claim(u64::MAX, Some((0, 2_000_000))).unwrap_err();
    assert!(error.contains("as many records as its chunks"), "{error}");
}
