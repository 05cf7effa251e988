//! Records sent as archives: they arrive as they were, and what is no record does not arrive at all.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use sk_core::SimTime;
use sk_record::*;

fn record_in(dir: &Path) {
    let time = SimTime::from_secs(1_700_000_000);
    let mut writer = Writer::create(dir, "nginx-00ff00").unwrap();
    writer.add_file("simulation.yaml", b"kind: Simulation\n").unwrap();
    let row = SeriesRow { time, series: "replicas".into(), key: "default/Deployment/nginx".into(), value: Some(2.0) };
    writer.push_series(&row).unwrap();
    let meta = RunMeta {
        run_id: "nginx-00ff00".into(),
        name: "nginx".into(),
        version: "0.1.0".into(),
        engine: Engine::Cluster,
        kubernetes: "1.36".into(),
        seed: 0,
        trace: Trace {
            name: "nginx".into(),
            digest: "00".into(),
            format: "native".into(),
            start: time,
            end: time,
            recorded: true,
        },
        start: time,
        end: time,
        scenario_digest: "ab".into(),
        currency: "USD".into(),
        groups: vec![],
        autoscaler: None,
        warnings: vec![],
        missing: vec![],
        timeline: vec![],
        partial: true,
    };
    writer.finish(&meta).unwrap().publish().unwrap();
}

fn archive_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_old();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(content.len() as u64);
        header.set_entry_type(tar::EntryType::Regular);
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn a_record_arrives_as_it_was_and_is_always_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("a"), folder.path().join("b"));
    record_in(&from);
    let bytes = archive::pack(&from, Vec::new()).unwrap();
    assert_eq!(bytes, archive::pack(&from, Vec::new()).unwrap());
    archive::unpack(&bytes[..], &to).unwrap();
    assert_eq!(archive::pack(&to, Vec::new()).unwrap(), bytes);
    let run = Run::open(&to).unwrap();
    assert!(run.meta().partial);
    assert_eq!(run.file("simulation.yaml").unwrap().unwrap(), b"kind: Simulation\n");
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["../x", "/tmp/x", "a/b", ".hidden", ".."] {
        let target = folder.path().join("inner").join("run");
        let error = archive::unpack(&archive_of(&[(name, b"x")])[..], &target).unwrap_err();
        assert!(matches!(error, Error::Unpack { .. }), "{name}: {error}");
        assert!(!target.exists());
    }
    assert!(!folder.path().join("inner/x").exists() && !folder.path().join("x").exists());
}

#[test]
fn an_archive_without_a_whole_record_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("run");
    record_in(&folder.path().join("good"));
    let good = archive::pack(&folder.path().join("good"), Vec::new()).unwrap();
    let many: Vec<_> = (0..70).map(|number| format!("f{number}")).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|name| (name.as_str(), &b""[..])).collect();
    for bytes in [archive_of(&[("run.json", b"{}")]), good[..good.len() / 2].to_vec(), archive_of(&many), Vec::new()] {
        archive::unpack(&bytes[..], &target).unwrap_err();
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["good"]);
    }
}
