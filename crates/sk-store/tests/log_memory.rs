//! An export runs beside the recording, in the same process and under the same limit of memory. So what it takes for each
//! of a window's pods, of which there may be very many, is measured: in child processes that are this program again, one
//! with few pods and one with many.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "support/facts.rs"]
mod facts;

use std::path::Path;
use std::process::Command;

use facts::{apply, at, attribution, link, open, pod};
use sk_core::rng::Stream;
use sk_store::log::{Fact, Log, Options, PodFacts, Query};
use sk_store::trace::Format;

/// What an export may take for a pod.
const BYTES_PER_POD: u64 = 300;

/// How many pods the two windows have; one is there for a second and there is one each second.
const FEW: i64 = 20_000;
const MANY: i64 = 120_000;

/// Where the child finds the log, and how many pods it is to export.
const FOLDER: &str = "SK_STORE_LOG_FOLDER";
const PODS: &str = "SK_STORE_LOG_PODS";

const WEB: &str = "apps/v1.Deployment default/web";
const WEB_X: &str = "apps/v1.ReplicaSet default/web-x";

/// A pod with names as long as real ones; every other one belongs to nothing that is recorded.
fn short_pod(n: i64) -> PodFacts {
    let mut numbers = Stream::new(n.unsigned_abs(), "pod");
    let uid = format!("{:08x}-1111-4222-8333-{:012x}", numbers.next_u64() >> 32, numbers.next_u64() >> 16);
    let mut pod = pod(&format!("web-5f7c9d8b6-{n:05x}"), Some(WEB_X), at(n), Some("node-1"));
    pod.uid = uid.into();
    if n % 2 == 0 {
        pod.attributions = vec![attribution(WEB)];
    }
    pod
}

fn write(folder: &Path) {
    let mut log = open(folder);
    log.append(at(0), apply(WEB, 1)).unwrap();
    log.append(at(0), link(WEB_X, WEB)).unwrap();
    for n in 0..MANY {
        let pod = short_pod(n);
        let gone = PodFacts { finished: Some(at(n + 1)), deleted: Some(at(n + 1)), ..pod.clone() };
        log.append(at(n), Fact::Pod(Box::new(pod))).unwrap();
        log.append(at(n + 1), Fact::Pod(Box::new(gone))).unwrap();
    }
}

/// Not a test of its own: what the other test runs in a process of its own. Without a folder there is nothing to do.
#[test]
fn as_child() {
    let (Ok(folder), Ok(pods)) = (std::env::var(FOLDER), std::env::var(PODS)) else { return };
    let pods: i64 = pods.parse().unwrap();
    let (log, _) = Log::open(Path::new(&folder), Options::default()).unwrap();
    let exported = log.reader().export(&Query::window(at(0), at(pods)), Format::Native, std::io::sink()).unwrap();
    assert_eq!((exported.observations, exported.lives), (pods.unsigned_abs(), pods.unsigned_abs() / 2));
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    println!("peak {}", peak.trim().trim_end_matches(" kB"));
}

/// The most memory that exporting so many pods took, in bytes.
fn peak(folder: &Path, pods: i64) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["as_child", "--exact", "--nocapture"]).env(FOLDER, folder).env(PODS, pods.to_string());
    let output = child.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8(output.stdout).unwrap();
    let kib = told.lines().find_map(|line| line.split_once("peak ")).unwrap().1;
    kib.parse::<u64>().unwrap() * 1024
}

#[test]
fn an_export_takes_little_memory_for_each_pod_of_its_window() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let (few, many) = (peak(folder.path(), FEW), peak(folder.path(), MANY));
    let per_pod = many.saturating_sub(few) / (MANY - FEW).unsigned_abs();
    println!("{few} bytes for {FEW} pods, {many} for {MANY}: {per_pod} bytes more for each more");
    assert!(per_pod > 0 && per_pod <= BYTES_PER_POD, "{per_pod} bytes for each pod");
}
