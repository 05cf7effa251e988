//! A record written, read back, damaged, replaced and found again.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use sk_core::SimTime;
use sk_record::*;

fn meta(run_id: &str) -> RunMeta {
    let time = SimTime::from_secs(1_700_000_000);
    RunMeta {
        run_id: run_id.into(),
        name: "nginx".into(),
        version: "0.1.0".into(),
        engine: Engine::Embedded,
        kubernetes: "1.36".into(),
        seed: 1,
        trace: Trace {
            name: "example:nginx".into(),
            digest: "00ff".into(),
            format: "v2".into(),
            start: time,
            end: SimTime::from_secs(1_700_002_400),
            recorded: false,
        },
        start: time,
        end: SimTime::from_secs(1_700_002_400),
        scenario_digest: "abcd".into(),
        currency: "USD".into(),
        groups: vec![],
        autoscaler: None,
        warnings: vec![],
        missing: vec![],
        timeline: vec![],
        partial: false,
    }
}

fn pod(number: i64) -> PodRow {
    let created = SimTime::from_micros(1_700_000_000_000_001 + number);
    PodRow {
        namespace: "default".into(),
        name: format!("nginx-{number}"),
        uid: format!("uid-{number}"),
        owner: "default/Deployment/nginx".into(),
        created,
        scheduled: (number % 2 == 0).then_some(created),
        started: None,
        finished: None,
        deleted: Some(SimTime::from_secs(1_700_000_100)),
        node: (number % 2 == 0).then(|| "node-1".into()),
        group: None,
        cpu_m: 1000,
        memory_bytes: 1 << 30,
        phase: "Pending".into(),
        waited_for: (number % 2 == 1).then(|| "0/1 nodes are available: 1 Insufficient cpu.".into()),
        ended_by: Some(EndedBy::NodeLost),
    }
}

fn node() -> NodeRow {
    NodeRow {
        name: "node-1".into(),
        group: Some("small".into()),
        created: SimTime::EPOCH,
        ready: Some(SimTime::from_secs(60)),
        deleted: None,
        cpu_m: 1000,
        memory_bytes: 4 << 30,
        pods: 110,
        price_per_hour: Some(0.05),
    }
}

fn series() -> SeriesRow {
    SeriesRow {
        time: SimTime::EPOCH,
        series: SeriesRow::REPLICAS.into(),
        key: "default/Deployment/nginx".into(),
        value: None,
    }
}

fn decision() -> DecisionRow {
    DecisionRow {
        time: SimTime::EPOCH,
        namespace: "default".into(),
        pod: "nginx-1".into(),
        owner: "default/Deployment/nginx".into(),
        outcome: Outcome::Unschedulable,
        node: None,
        message: Some("0/1 nodes are available: 1 Insufficient cpu.".into()),
        explained: Explained {
            evaluated: None,
            feasible: Some(3),
            scores: None,
            victims: Some("default/low-1, default/low-2".into()),
        },
    }
}

fn autoscaler() -> AutoscalerRow {
    AutoscalerRow {
        time: SimTime::from_secs(10),
        loop_number: 1,
        trigger: Trigger::AfterScaleUp,
        decision: Decided::ScaleUp,
        namespace: Some("default".into()),
        pod: Some("nginx-1".into()),
        owner: Some("default/Deployment/nginx".into()),
        node: None,
        group: Some("small".into()),
        nodes_before: Some(0),
        nodes_after: Some(2),
        pods: Some(3),
        options: Some("small: 2 nodes for 3 pods, waste 0.25".into()),
        event: Some("TriggeredScaleUp".into()),
        message: Some("pod triggered scale-up: [{small 0->2 (max: 10)}]".into()),
    }
}

fn event() -> EventRow {
    EventRow {
        time: SimTime::from_secs(11),
        is_warning: true,
        reason: "FailedScheduling".into(),
        kind: "Pod".into(),
        namespace: Some("default".into()),
        name: "nginx-1".into(),
        owner: Some("default/Deployment/nginx".into()),
        source: "default-scheduler".into(),
        message: "0/1 nodes are available: 1 Insufficient cpu.".into(),
    }
}

fn write(dir: &Path, pods: i64) {
    let mut writer = Writer::create(dir, "nginx-3fa91c").unwrap();
    for number in 0..pods {
        writer.push_pod(&pod(number)).unwrap();
    }
    writer.push_node(&node()).unwrap();
    writer.push_series(&series()).unwrap();
    writer.push_decision(&decision()).unwrap();
    writer.push_autoscaler(&autoscaler()).unwrap();
    writer.push_event(&event()).unwrap();
    writer.add_file("scenario.yaml", b"kind: Scenario\n").unwrap();
    let mut staged = writer.finish(&meta("nginx-3fa91c")).unwrap();
    assert_eq!(staged.run().unwrap().pods().unwrap().count() as i64, pods);
    staged.add_file("summary.json", b"{}\n").unwrap();
    assert_eq!(staged.publish().unwrap(), dir);
}

#[test]
fn what_was_written_is_read_back_across_row_groups() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("nginx-3fa91c");
    let count = 70_000;
    write(&dir, count);

    let run = Run::open(&dir).unwrap();
    assert_eq!(run.meta(), &meta("nginx-3fa91c"));
    let mut pods = run.pods().unwrap();
    for number in 0..count {
        assert_eq!(pods.next().unwrap().unwrap(), pod(number));
    }
    assert!(pods.next().is_none());
    assert_eq!(run.nodes().unwrap().collect::<Result<Vec<_>, _>>().unwrap(), [node()]);
    assert_eq!(run.series().unwrap().collect::<Result<Vec<_>, _>>().unwrap(), [series()]);
    assert_eq!(run.decisions().unwrap().collect::<Result<Vec<_>, _>>().unwrap(), [decision()]);
    assert_eq!(run.autoscaler().unwrap().collect::<Result<Vec<_>, _>>().unwrap(), [autoscaler()]);
    assert_eq!(run.events().unwrap().collect::<Result<Vec<_>, _>>().unwrap(), [event()]);
    assert_eq!(run.file("scenario.yaml").unwrap().unwrap(), b"kind: Scenario\n");
    assert_eq!(run.file("junit.xml").unwrap(), None);
}

#[test]
fn a_fork_begins_with_all_rows_and_then_has_its_own() {
    let temp = tempfile::tempdir().unwrap();
    let (one, fork, whole) = (temp.path().join("one"), temp.path().join("fork"), temp.path().join("whole"));
    let begun = 40_000;
    let mut writer = Writer::create(&one, "a-1").unwrap();
    (0..begun).for_each(|number| writer.push_pod(&pod(number)).unwrap());
    writer.add_file("scenario.yaml", b"kind: Scenario\n").unwrap();
    let mut forked = writer.fork(&fork, "b-2").unwrap();
    writer.push_pod(&pod(-1)).unwrap();
    (begun..begun + 5).for_each(|number| forked.push_pod(&pod(number)).unwrap());
    writer.finish(&meta("a-1")).unwrap().publish().unwrap();
    forked.finish(&meta("b-2")).unwrap().publish().unwrap();

    let read = |dir: &Path| Run::open(dir).unwrap().pods().unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!(read(&one).len() as i64, begun + 1);
    assert!(read(&fork).into_iter().eq((0..begun + 5).map(pod)));
    let mut unforked = Writer::create(&whole, "b-2").unwrap();
    (0..begun + 5).for_each(|number| unforked.push_pod(&pod(number)).unwrap());
    unforked.add_file("scenario.yaml", b"kind: Scenario\n").unwrap();
    unforked.finish(&meta("b-2")).unwrap().publish().unwrap();
    for file in ["pods.parquet", "run.json", "scenario.yaml"] {
        let bytes = |dir: &Path| std::fs::read(dir.join(file)).unwrap();
        assert!(bytes(&fork) == bytes(&whole), "{file} is as if nobody had forked");
    }
}

#[test]
fn the_same_run_twice_gives_the_same_bytes() {
    let temp = tempfile::tempdir().unwrap();
    let (one, two) = (temp.path().join("one"), temp.path().join("two"));
    write(&one, 1_000);
    write(&two, 1_000);
    let mut files = 0;
    for entry in fs::read_dir(&one).unwrap() {
        let name = entry.unwrap().file_name();
        assert_eq!(fs::read(one.join(&name)).unwrap(), fs::read(two.join(&name)).unwrap(), "{name:?}");
        files += 1;
    }
    assert_eq!(files, 9);
}

#[test]
fn a_record_of_an_earlier_version_has_neither_decisions_of_the_autoscaler_nor_events() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("nginx");
    write(&dir, 3);
    for table in ["autoscaler", "events"] {
        fs::remove_file(dir.join(format!("{table}.parquet"))).unwrap();
        let error = Run::open(&dir).unwrap_err().to_string();
        assert!(error.contains(table), "this version's record has one: {error}");
        let path = dir.join("run.json");
        let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        json["tables"].as_object_mut().unwrap().remove(table);
        fs::write(&path, json.to_string()).unwrap();
    }
    let run = Run::open(&dir).unwrap();
    assert_eq!(run.autoscaler().unwrap().count(), 0);
    assert_eq!(run.events().unwrap().count(), 0);
    assert_eq!(run.pods().unwrap().count(), 3);
}

#[test]
fn an_empty_run_is_a_record_too() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("empty");
    let writer = Writer::create(&dir, "nginx-3fa91c").unwrap();
    writer.finish(&meta("nginx-3fa91c")).unwrap().publish().unwrap();
    let run = Run::open(&dir).unwrap();
    assert_eq!(run.pods().unwrap().count() + run.decisions().unwrap().count(), 0);
}

#[test]
fn nothing_is_left_behind_when_a_run_is_given_up() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("nginx");
    let mut writer = Writer::create(&dir, "nginx").unwrap();
    writer.push_pod(&pod(1)).unwrap();
    drop(writer);
    drop(Writer::create(&dir, "nginx").unwrap().finish(&meta("nginx")).unwrap());
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
}

#[test]
fn a_record_replaces_its_predecessor_but_never_a_folder_of_another_kind() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("nginx");
    write(&dir, 3);
    write(&dir, 5);
    assert_eq!(Run::open(&dir).unwrap().pods().unwrap().count(), 5);
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);

    let precious = temp.path().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("thesis.txt"), "years of work").unwrap();
    let error = Writer::create(&precious, "nginx").unwrap_err();
    assert!(matches!(error, Error::Occupied { .. }), "{error}");
    assert!(precious.join("thesis.txt").exists());
}

#[test]
fn a_record_with_somebodys_notes_beside_it_is_not_replaced() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("nginx");
    write(&dir, 3);
    for (name, make) in [("notes.md", fs::write as fn(_, _) -> _), ("thesis", |path, _: &str| fs::create_dir(path))] {
        make(dir.join(name), "years of work").unwrap();
        let error = Writer::create(&dir, "nginx-3fa91c").unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        assert!(dir.join(name).exists() && Run::open(&dir).is_ok());
        fs::rename(dir.join(name), temp.path().join(name)).unwrap();
    }
    write(&dir, 5);
    assert_eq!(Run::open(&dir).unwrap().pods().unwrap().count(), 5);
}

/// A record may come from somebody else, and its run.json says which files are its own.
#[test]
fn a_run_json_that_names_files_elsewhere_has_none_of_them_removed() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("nginx");
    write(&dir, 3);
    let (beside, far) = (temp.path().join("thesis.txt"), temp.path().join("far.parquet"));
    fs::write(&beside, "years of work").unwrap();
    fs::write(&far, "years of work").unwrap();
    let path = dir.join("run.json");
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    json["files"].as_array_mut().unwrap().extend(["../thesis.txt".into(), beside.to_str().unwrap().into()]);
    let table = json["tables"]["pods"].clone();
    json["tables"]["../far"] = table;
    fs::write(&path, json.to_string()).unwrap();
    write(&dir, 5);
    assert_eq!(Run::open(&dir).unwrap().pods().unwrap().count(), 5);
    assert!(beside.exists() && far.exists(), "only files of the folder itself are removed");
}

#[test]
fn notes_that_come_while_a_run_goes_on_are_left_alone_too() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("nginx");
    write(&dir, 3);
    let staged = Writer::create(&dir, "nginx-3fa91c").unwrap().finish(&meta("nginx-3fa91c")).unwrap();
    fs::write(dir.join("notes.md"), "years of work").unwrap();
    let error = staged.publish().unwrap_err();
    assert!(matches!(error, Error::SomebodyElses { .. }), "{error}");
    assert_eq!(fs::read(dir.join("notes.md")).unwrap(), b"years of work");
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1, "nothing else is left");
}

#[test]
fn a_folder_with_somebody_elses_run_json_is_not_replaced() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("marathon");
    fs::create_dir(&dir).unwrap();
    for text in ["{\"distance_km\": 42}", "not even JSON", "{\"record\": 1}"] {
        fs::write(dir.join("run.json"), text).unwrap();
        let error = Writer::create(&dir, "nginx").unwrap_err();
        assert!(matches!(error, Error::Occupied { .. }), "{error}");
        assert_eq!(fs::read_to_string(dir.join("run.json")).unwrap(), text);
    }
}

#[test]
fn what_a_run_added_to_its_record_is_replaced_with_it() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("nginx");
    for _ in 0..2 {
        let mut writer = Writer::create(&dir, "nginx-3fa91c").unwrap();
        writer.add_file("hooks.log", b"done\n").unwrap();
        writer.finish(&meta("nginx-3fa91c")).unwrap().publish().unwrap();
    }
    write(&dir, 1);
    assert!(!dir.join("hooks.log").exists());
}

#[test]
fn extra_files_stay_inside_the_record_and_leave_its_own_files_alone() {
    let temp = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(&temp.path().join("nginx"), "nginx").unwrap();
    for name in ["../escape", "a/b", "/etc/passwd", "", "..", ".hidden", "run.json", "pods.parquet"] {
        assert!(matches!(writer.add_file(name, b""), Err(Error::FileName { .. })), "{name}");
    }
}

#[test]
fn a_record_is_finished_under_the_id_it_was_begun_with() {
    let temp = tempfile::tempdir().unwrap();
    let writer = Writer::create(&temp.path().join("nginx"), "nginx-1").unwrap();
    assert!(matches!(writer.finish(&meta("nginx-2")), Err(Error::OtherRun { .. })));
}

#[test]
fn missing_truncated_and_edited_tables_are_told_by_name() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("nginx");
    let pods = dir.join("pods.parquet");
    let refused = |expected: &str| {
        let error = Run::open(&dir).unwrap_err().to_string();
        assert!(error.contains("pods.parquet") && error.contains(expected), "{error}");
    };
    write(&dir, 10);
    let bytes = fs::read(&pods).unwrap();
    fs::write(&pods, &bytes[..bytes.len() / 2]).unwrap();
    refused("bytes, not");
    let mut edited = bytes.clone();
    edited[bytes.len() / 2] ^= 1;
    fs::write(&pods, &edited).unwrap();
    refused("content changed");
    fs::remove_file(&pods).unwrap();
    refused("missing");
}

#[test]
fn folders_and_files_of_other_kinds_are_refused_with_advice() {
    let temp = tempfile::tempdir().unwrap();
    let error = Run::open(temp.path()).unwrap_err().to_string();
    assert!(error.contains("no run.json") && error.contains("skctl run"), "{error}");

    let file = temp.path().join("run.json");
    let cases =
        [("", "line 1"), ("[1]", "line 1"), ("{\"record\": 1}", "missing field"), ("{\"record\": 99}", "newer skctl")];
    for (content, expected) in cases {
        fs::write(&file, content).unwrap();
        let error = Run::open(temp.path()).unwrap_err().to_string();
        assert!(error.contains(expected), "{content}: {error}");
    }
}

#[test]
fn long_text_is_cut_visibly_and_between_characters() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("nginx");
    let mut writer = Writer::create(&dir, "nginx").unwrap();
    writer.push_pod(&PodRow { waited_for: Some("ü".repeat(5_000)), ..pod(1) }).unwrap();
    writer.finish(&meta("nginx")).unwrap().publish().unwrap();
    let row = Run::open(&dir).unwrap().pods().unwrap().next().unwrap().unwrap();
    let text = row.waited_for.unwrap();
    assert!(text.len() <= TEXT_MAX_BYTES && text.ends_with("ü…"), "{} bytes", text.len());
}

#[test]
fn runs_are_found_by_folder_name_short_name_and_age() {
    let temp = tempfile::tempdir().unwrap();
    let runs = temp.path().join("runs");
    assert!(matches!(resolve("@", &runs), Err(Error::NoRuns { .. })));
    for (age, name) in [(3, "pack-36-8c01fe"), (2, "pack-36-aaaaaa"), (1, "nginx-3fa91c")] {
        write(&runs.join(name), 1);
        let file = fs::File::options().append(true).open(runs.join(name).join("run.json")).unwrap();
        let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 - age);
        file.set_modified(time).unwrap();
    }
    fs::create_dir(runs.join("no-run")).unwrap();
    let found = |text: &str| resolve(text, &runs).unwrap().file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(found("@"), "nginx-3fa91c");
    assert_eq!(found("@1"), "nginx-3fa91c");
    assert_eq!(found("@3"), "pack-36-8c01fe");
    assert_eq!(found("pack-36-8c01fe"), "pack-36-8c01fe");
    assert_eq!(found("pack-36"), "pack-36-aaaaaa", "of two runs of one name the newer");
    assert_eq!(found(runs.join("pack-36-8c01fe").to_str().unwrap()), "pack-36-8c01fe");
    assert!(matches!(resolve("@4", &runs), Err(Error::TooFarBack { count: 3, .. })));
    for text in ["pack", "no-run", "@x", "@0", ""] {
        let error = resolve(text, &runs).unwrap_err().to_string();
        assert!(error.contains("the newest there: nginx-3fa91c, pack-36-aaaaaa"), "{text}: {error}");
    }
    assert_eq!(find_runs(&runs).unwrap().len(), 3);
}

#[test]
fn the_repetitions_of_a_cluster_run_have_one_name() {
    let temp = tempfile::tempdir().unwrap();
    for name in ["week.0", "week.1", "week.10", "week.old", "weekly.0"] {
        write(&temp.path().join(name), 1);
    }
    let mut named: Vec<_> = runs_of_name("week", temp.path()).unwrap().into_iter().map(|(dir, _)| dir).collect();
    named.sort();
    assert_eq!(named, ["week.0", "week.1", "week.10"].map(|name| temp.path().join(name)));
    assert!(named.contains(&resolve("week", temp.path()).unwrap()));
    assert!(runs_of_name("week.1", temp.path()).unwrap().is_empty(), "a folder is itself alone");
}

#[test]
fn runs_of_one_command_in_a_folder_under_the_runs_are_found_too() {
    let temp = tempfile::tempdir().unwrap();
    let runs = temp.path().join("runs");
    for (age, name) in [(3, "shop/spread"), (2, "alone"), (1, "shop/packed"), (0, "shop/deeper/still")] {
        write(&runs.join(name), 1);
        let file = fs::File::options().append(true).open(runs.join(name).join("run.json")).unwrap();
        let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 - age);
        file.set_modified(time).unwrap();
    }
    let found: Vec<_> = find_runs(&runs).unwrap().into_iter().map(|(dir, _)| dir).collect();
    assert_eq!(found, ["shop/packed", "alone", "shop/spread"].map(|name| runs.join(name)));
    for (text, name) in [("@", "shop/packed"), ("@3", "shop/spread"), ("shop/spread", "shop/spread")] {
        assert_eq!(resolve(text, &runs).unwrap(), runs.join(name), "{text}");
    }
}

#[cfg(unix)]
#[test]
fn the_next_run_removes_what_a_killed_one_left_and_leaves_a_running_one_alone() {
    let runs = tempfile::tempdir().unwrap();
    let target = runs.path().join("nginx");
    // No process has the number 4194305: Linux counts to 4194304.
    let left = runs.path().join(".nginx.new-4194305");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("pods.parquet"), "half a table").unwrap();
    let running = Writer::create(&target, "a").unwrap();
    assert!(!left.exists(), "the leftover of a killed run is gone");
    let staging: Vec<_> = fs::read_dir(runs.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let aside = runs.path().join(".nginx.new-4194305");
    fs::rename(&staging[0], &aside).unwrap();
    let next = Writer::create(&target, "b").unwrap();
    assert!(aside.exists(), "somebody still writes into it");
    drop((running, next));
}
