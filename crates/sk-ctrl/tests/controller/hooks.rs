//! Hooks: run once, in order, fed with the Simulation, and a failure is a failure unless it is ignored.

use std::fs;

use serde_json::{Value, json};
use sk_api::simulation::State;
use sk_ctrl::install::Options;

use crate::lab::Lab;
use crate::operators;

#[tokio::test(flavor = "multi_thread")]
async fn hooks_run_once_and_their_failure_counts_unless_it_is_ignored() {
    let installed = Options { allow_hooks: true, cert_manager: true, metrics: true, ..Options::default() };
    let lab = Lab::start(installed).await;
    // Long before they are needed: the garbage collector looks for new kinds every half minute.
    operators::install(&lab).await;
    let controller = lab.controller().await;
    let before = lab.settled().await;
    let notes = lab.folder.path().join("notes");
    let note = |word: &str, then: &str| -> Value {
        let script = format!("echo {word} >> {}; {then}", notes.display());
        json!({"cmd": "sh", "args": ["-c", script]})
    };
    let noted = || fs::read_to_string(&notes).unwrap_or_default();

    // All is well: once each, before and after.
    let hooks = json!({"preStartHooks": [note("a", ":"), note("b", ":")], "postStopHooks": [note("z", ":")]});
    lab.simulate("well", "driver:quick", &json!({"hooks": hooks, "repetitions": 2})).await;
    assert_eq!(lab.ends("well").await.state, Some(State::Finished));
    assert_eq!(noted(), "a\nb\nz\n");

    // The first fails: nothing else of the start is run, no driver is made, but the end has its hooks.
    fs::remove_file(&notes).expect("notes");
    let hooks = json!({
        "preStartHooks": [note("a", "echo no luck >&2; exit 7"), note("b", ":")], "postStopHooks": [note("z", ":")],
    });
    lab.simulate("unlucky", "driver:quick", &json!({"hooks": hooks})).await;
    let status = lab.ends("unlucky").await;
    assert_eq!((status.state, status.reason.as_deref()), (Some(State::Failed), Some("HookFailed")));
    assert_eq!(status.message.as_deref(), Some("hook `sh`: exit status: 7: no luck"));
    assert_eq!((noted().as_str(), status.completed_runs), ("a\nz\n", None));

    // The same, ignored; and a failure after the end is one of the simulation's.
    fs::remove_file(&notes).expect("notes");
    let mut ignored = note("a", "exit 7");
    ignored["ignoreFailure"] = json!(true);
    let hooks = json!({"preStartHooks": [ignored, note("b", ":")], "postStopHooks": [note("z", "exit 8")]});
    lab.simulate("careless", "driver:quick", &json!({"hooks": hooks})).await;
    let status = lab.ends("careless").await;
    assert_eq!((status.state, status.message.as_deref()), (Some(State::Failed), Some("hook `sh`: exit status: 8")));
    assert_eq!((noted().as_str(), status.completed_runs), ("a\nb\nz\n", Some(1)));

    // Killed while a hook runs: whether it did its work is not known, and it is not run again.
    fs::remove_file(&notes).expect("notes");
    let hooks = json!({"preStartHooks": [note("a", "sleep 600")]});
    lab.simulate("cut-short", "driver:quick", &json!({"hooks": hooks})).await;
    let begun =
        |status: &sk_api::simulation::SimulationStatus| status.hooks.as_ref().is_some_and(|h| h.pre_start_started == 1);
    lab.until("cut-short", "its hook", begun).await;
    controller.kill().await;
    let _controller = lab.controller().await;
    let status = lab.ends("cut-short").await;
    assert_eq!(status.reason.as_deref(), Some("HookFailed"));
    assert!(status.message.is_some_and(|words| words.contains("the controller was restarted while it ran")));
    assert!(["", "a\n"].contains(&noted().as_str()), "never twice: {:?}", noted());

    operators::a_run_may_have_a_certificate_of_cert_manager_and_a_prometheus(&lab).await;
    lab.assert_nothing_left(&before).await;
    lab.assert_nothing_was_forbidden();
}
