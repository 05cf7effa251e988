//! Properties of random traces: every form gives them back, and no byte of any input makes a reader panic.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use sk_core::SimTime;
use sk_store::trace::{
    Change, Deletion, Format, Gap, Head, Header, Mark, Object, Record, Row, Section, Selection, Trace, Writer, convert,
    from_bytes,
};

/// JSON as Kubernetes objects have it: numbers of every kind, odd texts, some depth.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |n| n.is_finite()).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(".{0,6}", inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Few names, so that objects have versions.
fn object() -> impl Strategy<Value = Value> {
    let kinds = prop_oneof![Just(("v1", "Pod")), Just(("apps/v1", "Deployment")), Just(("example.com/v1", "Thing"))];
    let namespace = proptest::option::of(prop_oneof![Just("a"), Just("b")]);
    (kinds, namespace, 0..3_u8, btree_map("[a-c]", "[x-z]{0,2}", 0..3), json_value()).prop_map(
        |((api_version, kind), namespace, name, labels, spec)| {
            let mut value = json!({"apiVersion": api_version, "kind": kind,
                "metadata": {"name": format!("n{name}"), "labels": labels}, "spec": spec});
            if let Some(namespace) = namespace {
                value["metadata"]["namespace"] = json!(namespace);
            }
            value
        },
    )
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => object().prop_map(|value| Change::Apply(Object::new(value).unwrap())),
        2 => object().prop_map(|value| Change::Delete(Deletion::from_value(value).unwrap())),
        1 => object().prop_map(|value| {
            let object = Object::new(value).unwrap().reference().clone();
            Change::Delete(Deletion { object, last: None })
        }),
        1 => Just(Change::Mark(Mark::Moment)),
        1 => vec(any::<u32>(), 0..3).prop_map(|delete_order| Change::Mark(Mark::V2Event { delete_order })),
    ]
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    vec((any::<i64>(), 1..1000_u64, change()), 0..40).prop_map(|drafts| {
        let mut seq = 0;
        let numbered = drafts.into_iter().map(|(micros, step, change)| {
            seq += step;
            Record { at: SimTime::from_micros(micros), seq, change }
        });
        numbered.collect()
    })
}

fn written(format: Format, records: &[Record], rows: &[Row]) -> Vec<u8> {
    let mut writer = Writer::new(format, Vec::new(), &Header::default()).unwrap();
    records.iter().for_each(|record| writer.record(record).unwrap());
    rows.iter().for_each(|row| writer.row(row).unwrap());
    writer.finish().unwrap().0
}

/// Reads all that there is, whatever it is.
fn read_through(trace: &Trace) {
    let _ = trace.records().map(|records| records.filter(Result::is_err).count());
    let _ = trace.heads().map(|heads| heads.filter(Result::is_err).count());
    for section in Section::ALL {
        let _ = trace.rows(section).map(|rows| rows.filter(Result::is_err).count());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_form_gives_records_and_rows_back(records in records(), gaps in vec((any::<i64>(), any::<i64>(), ".{0,9}"), 0..4)) {
        let time = SimTime::from_micros;
        let rows: Vec<_> =
            gaps.into_iter().map(|(from, to, reason)| Row::Gap(Gap { from: time(from), to: time(to), kind: None, reason })).collect();
        for format in [Format::Native, Format::JsonLines] {
            let bytes = written(format, &records, &rows);
            let trace = support::open(bytes.clone());
            prop_assert!(trace.records().unwrap().map(Result::unwrap).eq(records.iter().cloned()));
            prop_assert!(trace.heads().unwrap().map(Result::unwrap).eq(records.iter().map(Head::of)));
            prop_assert!(trace.rows(Section::Gaps).unwrap().map(Result::unwrap).eq(rows.iter().cloned()));
            prop_assert!(convert(&trace, format, Vec::new()).unwrap().0 == bytes, "the same input gives the same bytes");
        }
    }

    #[test]
    fn selecting_is_reading_and_filtering(records in records(), from in any::<i64>(), until in any::<i64>()) {
        let (from, until) = (SimTime::from_micros(from), SimTime::from_micros(until));
        let wanted = Selection::all().from(from).until(until);
        let trace = support::open(written(Format::Native, &records, &[]));
        let found: Vec<_> = trace.select(&wanted).unwrap().map(Result::unwrap).collect();
        let expected: Vec<_> = records.iter().filter(|record| record.at >= from && record.at < until).cloned().collect();
        prop_assert_eq!(found, expected);
        if let Some(object) = records.iter().find_map(|record| record.change.object()) {
            let found = trace.select(&Selection::all().of(object.clone())).unwrap().map(Result::unwrap);
            let expected = records.iter().filter(|record| record.change.object() == Some(object)).cloned();
            prop_assert!(found.eq(expected));
        }
    }

    #[test]
    fn what_v2_gives_back_means_the_same(records in records()) {
        // Seconds are all that v2 has, and a mark of an event that never was is not one.
        let seconds: Vec<_> = records.into_iter().filter(|record| !matches!(record.change, Change::Mark(_)))
            .map(|record| Record { at: SimTime::from_secs(record.at.as_secs().rem_euclid(5)), ..record }).collect();
        let trace = support::open(written(Format::V2, &seconds, &[]));
        let of_object = |record: &Record| (record.at, record.change.clone());
        let back: Vec<_> = trace.records().unwrap().map(Result::unwrap)
            .filter(|record| !matches!(record.change, Change::Mark(_))).collect();
        // Within a second different objects may change places; what happens to one object may not.
        for object in seconds.iter().filter_map(|record| record.change.object()) {
            let mine = |record: &&Record| record.change.object() == Some(object);
            prop_assert!(seconds.iter().filter(mine).map(of_object).eq(back.iter().filter(mine).map(of_object)));
        }
        prop_assert!(convert(&trace, Format::V2, Vec::new()).unwrap().0 == written(Format::V2, &seconds, &[]) || seconds.is_empty());
    }

    #[test]
    fn damage_never_panics(records in records(), format in prop_oneof![Just(Format::Native), Just(Format::V2), Just(Format::JsonLines)],
                           at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = written(format, &records, &[]);
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        if let Ok(trace) = from_bytes("damaged", bytes) {
            read_through(&trace);
        }
    }

    #[test]
    fn noise_never_panics(bytes in vec(any::<u8>(), 0..600), beginning in prop_oneof![
        Just(&b""[..]), Just(&b"SKTRACE\0\x01\0\0\0\0\0\0\0"[..]), Just(&b"{\"simkube\":"[..]), Just(&b"\x85\xa7version\x02"[..])]) {
        if let Ok(trace) = from_bytes("noise", [beginning, &bytes].concat()) {
            read_through(&trace);
        }
    }
}
