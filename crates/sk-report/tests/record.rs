//! From rows to a record on disk and back: the report of a published record is the report of its rows.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod story;

use sk_record::{Run, Writer};
use sk_report::figure::ToFigure;
use sk_report::{Analysis, Judgement, Tables, Terms, html, json};

fn record(tables: &Tables, dir: &std::path::Path) {
    let mut writer = Writer::create(dir, &tables.meta.run_id).unwrap();
    tables.pods.iter().for_each(|row| writer.push_pod(row).unwrap());
    tables.nodes.iter().for_each(|row| writer.push_node(row).unwrap());
    tables.series.iter().for_each(|row| writer.push_series(row).unwrap());
    tables.decisions.iter().for_each(|row| writer.push_decision(row).unwrap());
    let mut staged = writer.finish(&tables.meta).unwrap();
    let analysis = Analysis::of(&staged.run().unwrap()).unwrap();
    let judgement = Judgement::of(&analysis, Vec::new(), &Terms::default());
    staged.add_file("summary.json", json::render(&analysis, &judgement).unwrap().as_bytes()).unwrap();
    staged.add_file("report.html", html::render(&analysis, &judgement, None).unwrap().as_bytes()).unwrap();
    staged.publish().unwrap();
}

#[test]
fn a_record_on_disk_gives_the_same_report_as_its_rows() {
    let temp = tempfile::tempdir().unwrap();
    for (name, tables) in [("nginx", story::nginx()), ("week", story::week(300))] {
        let dir = temp.path().join(name);
        record(&tables, &dir);
        let (of_disk, of_rows) = (Analysis::of(&Run::open(&dir).unwrap()).unwrap(), Analysis::of(&tables).unwrap());
        assert_eq!(of_disk.summary.figure(), of_rows.summary.figure());
        let page = std::fs::read_to_string(dir.join("report.html")).unwrap();
        let judgement = Judgement::of(&of_rows, Vec::new(), &Terms::default());
        assert_eq!(page, html::render(&of_rows, &judgement, None).unwrap());
    }
}
