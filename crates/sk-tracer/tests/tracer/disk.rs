//! A full disk: recording stops with an alarm, what is on disk stays whole, and when there is room again it goes on with
//! the right state and a gap.
//!
//! The disk is made small by a limit on the size of a file, which the kernel enforces as it would a full disk; a new
//! segment is a new file, and so there is room again as soon as the log begins one.

use std::process::Command;
use std::time::Instant;

use serde_json::json;
use sk_testkit::Options;
use sk_testkit::control_plane::{ControlPlane, eventually};

use crate::support::{self, LIMIT, Process, apply, ask, live, now, recorded, until_ready, until_recorded};

const CONFIG: &str = "trackedObjects: {v1.ConfigMap: {}}\nprivacy: full\nnamespaces: {include: [default]}\n";
/// The largest file, in blocks of 512 bytes as the shell counts them, or of 1,024: 100 to 200 KB.
const FILE_BLOCKS: u32 = 200;
/// Values that no compression makes smaller, so that some hundred writes are more than that.
const VALUE_DIGITS: usize = 4_000;
/// Names that the values go to by turns.
const OBJECTS: u32 = 10;

/// The tracer's program under a limit on the size of files. It is told by an error, not by a signal.
fn limited() -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("trap '' XFSZ; ulimit -f {FILE_BLOCKS}; exec \"$0\" \"$@\"")).arg(support::PROGRAM);
    shell
}

/// Digits without a pattern.
fn noise(seed: u32) -> String {
    use std::fmt::Write;
    let mut state = u64::from(seed) | 1;
    let mut text = String::new();
    while text.len() < VALUE_DIGITS {
        // Marsaglia's xorshift: enough for a compressor.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        write!(text, "{:016x}", state.wrapping_mul(0x2545_F491_4F6C_DD1D)).expect("a string takes everything");
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_an_alarm_and_a_gap_and_never_a_broken_log() {
    let cluster = ControlPlane::start(Options::api_only()).await.expect("a control plane starts");
    let client = cluster.client();
    let folder = tempfile::tempdir().unwrap();
    let (config, data) = (folder.path().join("config.yaml"), folder.path().join("data"));
    std::fs::write(&config, CONFIG).unwrap();
    let tracer = Process::start_with(limited(), &config, &data, &cluster.kubeconfig(), &["--insecure"]);
    until_ready(&tracer).await;

    let (mut writes, began) = (0, Instant::now());
    while !tracer.words().contains("cannot write the log") {
        let metadata = json!({"name": format!("noise-{}", writes % OBJECTS), "namespace": "default"});
        let data = json!({"value": noise(writes)});
        apply(
            &client,
            "configmaps",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}),
        )
        .await;
        writes += 1;
        assert!(began.elapsed() < LIMIT, "the limit on files is not enforced in {writes} writes:\n{}", tracer.words());
    }
    eventually("recording to go on", LIMIT, || async {
        Ok(tracer.words().contains("recording continues").then_some(()))
    })
    .await
    .unwrap();
    let since = now();
    let metadata = json!({"name": "afterwards", "namespace": "default"});
    apply(&client, "configmaps", json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).await;
    let port = tracer.port().await;
    eventually("the tracer to be well again", LIMIT, || async {
        let metrics = ask(port, "/metrics").await.map(|(_, text)| text).unwrap_or_default();
        let ready = ask(port, "/readyz").await.is_some_and(|(status, _)| status == 200);
        Ok((ready && metrics.contains("simkube_tracer_recording 1\n")).then_some(()))
    })
    .await
    .unwrap();
    let expected = live(&client, "v1.ConfigMap", "configmaps").await;
    let expected = || expected.iter().filter(|(name, _)| name.starts_with("default/")).collect::<Vec<_>>();
    until_recorded(&tracer, since, "+ ConfigMap default/afterwards").await;
    assert!(tracer.stop().success());

    let log = support::open(&data);
    assert_eq!(recorded(&log, "v1.ConfigMap").iter().collect::<Vec<_>>(), expected());
    let gaps = log.state().gaps();
    assert!(gaps.iter().any(|gap| gap.kind.is_none() && gap.from <= gap.to), "{gaps:?}");
    let mut items = log.reader().items();
    assert!(items.by_ref().count() > 0 && items.damages().is_empty(), "{:?}", items.damages());
}
