//! Turns, repetitions, pauses, deletion: the ordinary life of Simulations.

use std::fs;

use serde_json::json;
use sk_api::simulation::State;
use sk_ctrl::install::Options;

use crate::lab::Lab;

#[tokio::test(flavor = "multi_thread")]
async fn simulations_run_one_after_the_other_can_be_paused_and_leave_nothing() {
    let lab = Lab::start(Options::default()).await;
    let mut controller = lab.controller().await;
    let before = lab.settled().await;

    // Two at once: the second waits for the first, and says so.
    let go = lab.folder.path().join("go");
    let waits = json!({"driver": {"args": [go.to_string_lossy()]}});
    lab.simulate("first", "driver:waits", &waits).await;
    lab.reaches("first", State::Running).await;
    lab.simulate("second", "driver:short", &json!({"repetitions": 2})).await;
    let blocked = lab.reaches("second", State::Blocked).await;
    assert_eq!(blocked.message.as_deref(), Some("simulation first is before this one; one runs at a time"));

    // A pause is seen, and so is its end.
    lab.change("first", &json!({"pausedTime": "2026-11-10T14:00:00Z"})).await;
    lab.reaches("first", State::Paused).await;
    lab.change("first", &json!({"pausedTime": null})).await;
    lab.reaches("first", State::Running).await;

    fs::write(&go, "").expect("a file");
    let first = lab.ends("first").await;
    assert_eq!((first.state, first.completed_runs), (Some(State::Finished), Some(1)));
    assert_eq!(first.message.as_deref(), Some("1 of 1 repetitions are done"));
    let second = lab.ends("second").await;
    assert_eq!((second.state, second.completed_runs), (Some(State::Finished), Some(2)));
    let (end, start) = (first.end_time.expect("an end"), second.start_time.expect("a start"));
    assert!(start.0 >= end.0, "the second began at {} before the first ended at {}", start.0, end.0);
    lab.assert_nothing_left(&before).await;

    // Deleted in the middle of its run, with another in line: everything goes, and the other gets its turn.
    fs::remove_file(&go).expect("a file");
    lab.simulate("third", "driver:waits", &waits).await;
    lab.reaches("third", State::Running).await;
    lab.simulate("fourth", "driver:waits", &waits).await;
    lab.simulate("fifth", "driver:quick", &json!({})).await;
    lab.reaches("fourth", State::Blocked).await;
    lab.reaches("fifth", State::Blocked).await;
    lab.delete("fourth").await;
    lab.delete("third").await;
    assert_eq!(lab.ends("fifth").await.state, Some(State::Finished));

    // One whose time is over goes by itself.
    lab.simulate("brief", "driver:quick", &json!({"record": {"ttlSecondsAfterFinished": 1}})).await;
    lab.gone("brief").await;
    lab.assert_nothing_left(&before).await;
    lab.assert_nothing_was_forbidden();
    controller.assert_alive();
}
