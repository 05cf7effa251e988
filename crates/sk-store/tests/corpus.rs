//! Runs every kept fuzz input through the function that the fuzzer runs, in the ordinary test suite. An input that once
//! broke a reader is added to `fuzz/corpus/TARGET/` under a name that says what broke.

#[path = "support/fuzz_inputs.rs"]
mod inputs;

use std::fs;
use std::path::Path;

use proptest::prelude::*;

fn run(target: &str, input: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut count = 0;
    for entry in entries {
        let path = entry.expect("a folder can be listed").path();
        input(&fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())));
        count += 1;
    }
    assert!(count > 0, "there is no corpus for {target}");
}

#[test]
fn no_kept_input_breaks_the_v2_reader() {
    run("v2", inputs::v2);
}

#[test]
fn no_kept_input_breaks_the_native_reader() {
    run("native", inputs::native);
    run("native_blocks", inputs::native_blocks);
}

#[test]
fn a_file_made_after_the_document_alone_is_read() {
    let input = include_bytes!("../fuzz/corpus/native_blocks/one-apply");
    let file = inputs::native_file(input).expect("the input is long enough");
    let trace = sk_store::trace::from_bytes("by hand", file).expect("the document describes the format");
    let records: Vec<_> =
        trace.records().expect("it has records").map(|record| record.expect("whole").to_string()).collect();
    assert_eq!(records, ["1970-01-01T00:00:00Z apply Pod a/b"]);
}

#[test]
fn a_deletion_must_hold_the_object_that_it_names() {
    let input = include_bytes!("../fuzz/corpus/native_blocks/deletion-of-something-that-is-no-object");
    let file = inputs::native_file(input).expect("the input is long enough");
    let trace = sk_store::trace::from_bytes("by hand", file).expect("only the deletion is wrong");
    let error = trace.records().expect("it has records").find_map(Result::err).expect("one is wrong").to_string();
    assert!(error.contains("not a Kubernetes object"), "{error}");
}

#[test]
fn no_kept_input_breaks_the_reader_of_json_lines() {
    run("jsonl", inputs::jsonl);
}

#[test]
fn no_kept_input_breaks_the_reader_of_manifests() {
    run("manifests", inputs::manifests);
}

#[test]
fn no_kept_input_breaks_the_reader_of_logs() {
    run("log_segment", inputs::log_segment);
}

#[test]
fn the_kept_log_that_has_one_of_each_is_read_to_its_end() {
    let input = include_bytes!("../fuzz/corpus/log_segment/one-of-each");
    let (state, entries) = inputs::facts_in(input);
    assert_eq!((state, entries), (7, 5));
    let lost = include_bytes!("../fuzz/corpus/log_segment/lost-watch-of-version-2");
    assert_eq!(inputs::facts_in(lost), (1, 1));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_log_whose_facts_are_wrong_in_places_is_read_as_far_as_it_goes(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut input = include_bytes!("../fuzz/corpus/log_segment/one-of-each").to_vec();
        for (place, byte) in changes {
            let place = place.index(input.len());
            input[place] = byte;
        }
        inputs::log_segment(&input);
    }
}
