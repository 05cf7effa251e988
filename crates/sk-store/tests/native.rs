//! The native format: what it holds, what random access gives, and that damage is found and named.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

use serde_json::json;
use sk_core::{SimTime, StableHash, TemplateId};
use sk_store::trace::{
    Change, Format, Gap, Head, Header, Life, Mark, NodeEvent, Object, Observation, OwnerLives, Record, Reserved, Row,
    Section, Selection, TemplateLives, Wait, Writer, convert, from_bytes,
};
use support::{deployment, event, names, v2};

fn native(records: &[Record], rows: &[Row]) -> Vec<u8> {
    let mut writer = Writer::new(Format::Native, Vec::new(), &Header::default()).unwrap();
    records.iter().for_each(|record| writer.record(record).unwrap());
    rows.iter().for_each(|row| writer.row(row).unwrap());
    writer.finish().unwrap().0
}

/// Enough records for many chunks: versions of a few objects, each with a large annotation.
fn many(count: u64) -> Vec<Record> {
    let ballast = "x".repeat(50_000);
    (0..count)
        .map(|seq| {
            let mut value = deployment(&format!("d{}", seq % 7), 1);
            value["spec"]["replicas"] = json!(seq);
            value["metadata"]["annotations"]["ballast"] = json!(ballast);
            let change = match seq % 10 {
                9 => Change::Mark(Mark::Moment),
                _ => Change::Apply(Object::new(value).unwrap()),
            };
            Record { at: SimTime::from_micros(i64::try_from(seq).unwrap() * 1_001), seq, change }
        })
        .collect()
}

fn rows() -> Vec<Row> {
    let template: TemplateId = "/spec/template@0123456789abcdef".parse().unwrap();
    let owner = Object::new(deployment("a", 1)).unwrap().reference().clone();
    let time = SimTime::from_micros;
    vec![
        Row::Lives(OwnerLives {
            owner: owner.clone(),
            templates: vec![TemplateLives {
                template: Some(template.clone()),
                pod_hash: None,
                lives: vec![
                    Life { start: time(5), end: None, guessed: false, exit_code: None },
                    Life { start: time(-5), end: Some(time(i64::MAX)), guessed: true, exit_code: Some(137) },
                ],
            }],
        }),
        Row::Observation(Observation {
            pod: "default/a-1".parse().unwrap(),
            owner: Some(owner),
            template: Some(template),
            created: time(1),
            scheduled: Some(time(2)),
            started: Some(time(3)),
            finished: None,
            deleted: Some(time(9)),
            guessed: true,
            node: Some("node-1".into()),
            waits: vec![Wait { at: time(1), reason: "Unschedulable".into(), message: "0/3 nodes".into() }],
        }),
        Row::Node(NodeEvent { at: time(0), node: "node-1".into(), object: Some(json!({"kind": "Node"})) }),
        Row::Node(NodeEvent { at: time(7), node: "node-1".into(), object: None }),
        Row::Reserved(Reserved {
            at: time(0),
            node: "node-1".into(),
            pods: 3,
            requests: [("cpu".into(), "300m".to_owned())].into(),
        }),
        Row::Gap(Gap { from: time(3), to: time(4), kind: None, reason: "the tracer was down".into() }),
    ]
}

#[test]
fn records_and_rows_come_back_over_many_chunks() {
    let (records, rows) = (many(400), rows());
    let trace = support::open(native(&records, &rows));
    assert_eq!(trace.record_count(), Some(400));
    assert_eq!(trace.span(), Some((SimTime::EPOCH, SimTime::from_micros(399 * 1001))));
    assert!(trace.records().unwrap().map(Result::unwrap).eq(records.iter().cloned()));
    assert!(trace.heads().unwrap().map(Result::unwrap).eq(records.iter().map(Head::of)));
    let back = Section::ALL.iter().flat_map(|section| trace.rows(*section).unwrap().map(Result::unwrap));
    assert!(back.eq(rows.iter().cloned()));
    assert_eq!(trace.gaps().unwrap().count(), 1);
    let (text, _) = convert(&trace, Format::JsonLines, Vec::new()).unwrap();
    let (again, _) = convert(&support::open(text), Format::Native, Vec::new()).unwrap();
    assert!(again == native(&records, &rows), "through text and back gives the same bytes");
    let (_, losses) = convert(&trace, Format::V2, std::io::sink()).unwrap();
    assert_eq!((losses.lives, losses.rows), (0, 5), "what v2 cannot hold is counted");
}

#[test]
fn lives_go_into_v2_by_the_hash_of_their_pods_or_else_of_their_template_and_each_hash_stands_once() {
    let template: TemplateId = "/spec/template@00000000000000aa".parse().unwrap();
    let owner = Object::new(deployment("a", 1)).unwrap().reference().clone();
    let part = |template: Option<&TemplateId>, hash: Option<u64>, second: i64| TemplateLives {
        template: template.cloned(),
        pod_hash: hash.map(StableHash::new),
        lives: vec![Life { start: SimTime::from_secs(second), end: None, guessed: false, exit_code: None }],
    };
    let row = |templates| Row::Lives(OwnerLives { owner: owner.clone(), templates });
    // An owner of many lives has several rows; here each has a part of the same group.
    let rows =
        [row(vec![part(Some(&template), None, 1), part(None, Some(7), 2)]), row(vec![part(Some(&template), None, 3)])];
    let unknown = row(vec![part(None, None, 4)]);
    let (v2, losses) =
        convert(&support::open(native(&many(1), &[&rows[..], &[unknown]].concat())), Format::V2, Vec::new()).unwrap();
    assert_eq!(losses.lives, 1, "nothing says which pods lived the last");
    let owners: Vec<_> = support::open(v2).lives().unwrap().map(Result::unwrap).collect();
    let [OwnerLives { templates, .. }] = owners.as_slice() else { panic!("one owner: {owners:?}") };
    let groups: Vec<_> = templates
        .iter()
        .map(|group| (group.pod_hash.unwrap().get(), group.lives.iter().map(|life| life.start.as_secs()).collect()))
        .collect();
    assert_eq!(groups, [(0xaa, vec![1, 3]), (7, vec![2])]);
}

#[test]
fn a_part_is_found_by_time_and_by_object() {
    let records = many(400);
    let trace = support::open(native(&records, &[]));
    let (start, end) = (SimTime::from_micros(340 * 1001), SimTime::from_micros(350 * 1001));
    let part: Vec<_> =
        trace.select(&Selection::all().from(start).until(end)).unwrap().map(|record| record.unwrap().seq).collect();
    assert_eq!(part, (340..350).collect::<Vec<_>>(), "the end is not included");
    let object = Object::new(deployment("d3", 1)).unwrap().reference().clone();
    let of_it = Selection::all().of(object.clone());
    let found: Vec<_> = trace.select(&of_it).unwrap().map(Result::unwrap).collect();
    let expected: Vec<_> = records.iter().filter(|record| record.change.object() == Some(&object)).cloned().collect();
    assert_eq!(found, expected);
    assert_eq!(trace.select_heads(&of_it).unwrap().count(), expected.len());
}

#[test]
fn reaching_into_a_trace_reads_only_what_is_needed() {
    // A chunk in the middle is damaged; what lies in the first one is still read.
    let mut bytes = native(&many(900), &[]);
    let whole = support::open(bytes.clone());
    assert_eq!(whole.select(&Selection::all().until(SimTime::from_micros(5))).unwrap().count(), 1);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let damaged = support::open(bytes);
    assert_eq!(
        damaged.select(&Selection::all().until(SimTime::from_micros(5))).unwrap().map(Result::unwrap).count(),
        1
    );
    let error = damaged.records().unwrap().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("chunk") && error.contains("checksum"), "{error}");
}

#[test]
fn every_cut_is_noticed_and_says_how_much_is_whole() {
    let original = support::open(v2(&[event(1, &[deployment("a", 1)], &[]), event(2, &[], &[names("a")])]));
    let (whole, _) = convert(&original, Format::Native, Vec::new()).unwrap();
    for end in 8..whole.len() {
        let error = from_bytes("week.sktrace", whole[..end].to_vec()).unwrap_err().to_string();
        assert!(error.contains("week.sktrace") && error.contains("cut short"), "cut at {end}: {error}");
    }
    let error = from_bytes("x", whole[..whole.len() - 20].to_vec()).unwrap_err().to_string();
    assert!(error.contains("4 records") && error.contains("until 1970-01-01T00:00:02Z"), "{error}");
}

#[test]
fn every_flipped_bit_is_noticed() {
    let original = support::open(v2(&[event(1, &[deployment("a", 1)], &[]), event(2, &[], &[names("a")])]));
    let (whole, _) = convert(&original, Format::Native, Vec::new()).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let Ok(trace) = from_bytes("flipped", flipped) else { continue };
        let records = trace.records().unwrap().any(|record| record.is_err());
        let rows = Section::ALL.iter().any(|section| trace.rows(*section).unwrap().any(|row| row.is_err()));
        assert!(records || rows, "bit {bit}");
    }
}

#[test]
fn a_newer_version_is_refused() {
    let mut bytes = native(&[], &[]);
    assert_eq!(support::open(bytes.clone()).span(), None, "a trace may be empty");
    bytes[8] = 2;
    assert!(from_bytes("x", bytes).unwrap_err().to_string().contains("newer skctl"));
}

#[test]
fn the_order_of_records_is_kept_by_the_writer() {
    let mut writer = Writer::new(Format::Native, Vec::new(), &Header::default()).unwrap();
    let record = |seq| Record { at: SimTime::EPOCH, seq, change: Change::Mark(Mark::Moment) };
    writer.record(&record(5)).unwrap();
    let error = writer.record(&record(5)).unwrap_err().to_string();
    assert!(error.contains("must rise"), "{error}");
}
