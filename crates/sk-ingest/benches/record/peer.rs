//! Whole tracers against each other, where `SIMKUBE_PEER_TRACER` names another's program: both record the same stream from
//! a small API server of ours on loopback. `SIMKUBE_TRACER` names ours; unless told it is `sk-tracer` beside this program.
//!
//! A tracer is timed from its asking for the watch until it has taken the stream's last byte. What then still lies in
//! buffers is not counted: a few of 120 MB. Of each the best of several rounds counts, in turns. Ours is killed in the end,
//! and every event must be in its log.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::server::{Served, Server};
use crate::steps::{export, processor_time};
use crate::{ROUNDS, table};

/// A tracer that has not taken the stream by then is stopped.
const LIMIT: Duration = Duration::from_secs(300);

/// The port that each tracer serves on; they run one after the other.
const PORT: &str = "17777";

/// Prints how both do, if there is another.
pub(crate) fn compare(stream: &Path, events: u64, folder: &Path) {
    let ours = std::env::var_os("SIMKUBE_TRACER").map_or_else(beside, PathBuf::from);
    let peer = std::env::var_os("SIMKUBE_PEER_TRACER").map(PathBuf::from);
    if peer.is_none() || !ours.exists() {
        println!("\nSIMKUBE_PEER_TRACER names another tracer to compare with, SIMKUBE_TRACER ours");
    }
    let mut best = [None, None];
    for round in 0..ROUNDS {
        let data = folder.join(format!("tracer-data-{round}"));
        let own_flags = ["--insecure".into(), "--data-dir".into(), data.clone().into_os_string()];
        let programs = [(peer.as_deref(), &[][..]), (Some(ours.as_path()), &own_flags)];
        for ((program, flags), best) in programs.into_iter().zip(&mut best) {
            let Some(program) = program.filter(|program| program.exists()) else { continue };
            if let Some(cost) = run(program, flags, stream, folder) {
                cost.improve(best);
            }
        }
        if ours.exists() {
            assert_eq!(
                export(&data.join("events")).events,
                events,
                "every event is in the log of a tracer that was killed"
            );
        }
    }
    println!(
        "\n| tracer | events per second | per processor-second | peak memory |\n| ------ | ----------------: | -------------------: | ----------: |"
    );
    for (name, best) in ["another", "SimKube"].into_iter().zip(best) {
        let Some(Cost { took, processor, peak_kib }) = best else { continue };
        let rate = |time: Duration| events as f64 / time.as_secs_f64().max(0.01);
        let (wall, work) = (rate(took), rate(processor));
        println!("| {name} | {wall:.0} | {work:.0} | {} |", table::mebibytes(peak_kib));
    }
}

/// `target/release/sk-tracer`, seen from `target/release/deps`.
fn beside() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().and_then(Path::parent).unwrap().join("sk-tracer")
}

/// What a stream cost a tracer.
struct Cost {
    /// Until it had taken the last byte.
    took: Duration,
    /// Processor time of the whole process, its start and its rest afterwards included.
    processor: Duration,
    peak_kib: u64,
}

impl Cost {
    /// Keeps the better of two rounds, of each figure.
    fn improve(self, best: &mut Option<Self>) {
        let other = best.take();
        let better = |of: fn(&Self) -> Duration| other.as_ref().map_or(of(&self), |other| of(other).min(of(&self)));
        let (took, processor) = (better(|cost| cost.took), better(|cost| cost.processor));
        let peak_kib = other.as_ref().map_or(self.peak_kib, |other| other.peak_kib.min(self.peak_kib));
        *best = Some(Self { took, processor, peak_kib });
    }
}

/// Lets a tracer record the stream; nothing if it has not taken it in time.
fn run(program: &Path, flags: &[OsString], stream: &Path, folder: &Path) -> Option<Cost> {
    let server = Server::start(stream);
    let (kubeconfig, config) = (folder.join("kubeconfig"), folder.join("tracer.yaml"));
    fs::write(&kubeconfig, server.kubeconfig()).unwrap();
    fs::write(&config, "trackedObjects:\n  apps/v1.Deployment:\n    trackLifecycle: true\n").unwrap();
    let mut command = Command::new(program);
    command.arg("-c").arg(&config).args(["--server-port", PORT]).args(flags).env("KUBECONFIG", &kubeconfig);
    let tracer = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut tracer = Stopped(tracer);
    let Served { took } = server.wait(LIMIT)?;
    // It has the last bytes but may not have written them; its memory is looked at when it has come to rest.
    std::thread::sleep(Duration::from_secs(2));
    let (processor, peak_kib) = (processor_time(&tracer.0.id().to_string()), peak_kib(tracer.0.id()));
    assert!(tracer.0.try_wait().unwrap().is_none(), "the tracer has ended by itself");
    Some(Cost { took, processor, peak_kib })
}

fn peak_kib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("memory is asked of Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells the high-water mark");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A process that does not outlive its run.
struct Stopped(Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
