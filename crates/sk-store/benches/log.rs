//! What the event log costs: `cargo bench -p sk-store --bench log`.
//!
//! The workload is 1,000 Deployments of about 2.4 KB, each changed 50 times in turn, so that two versions of one object
//! lie 1,000 events apart; synced every 2,000 events, which at 20,000 events a second is the tracer's 100 ms. Bodies look
//! like objects that were made private: much of them is hashes, which do not compress.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use sk_core::rng::Stream;
use sk_core::{Gvk, ObjectKey, ObjectRef, SimDuration, SimTime, StableHash};
use sk_store::log::{Applied, Fact, Log, Options, Query};
use sk_store::trace::Format;

const OBJECTS: usize = 1_000;
const VERSIONS: usize = 50;
const EVENTS_PER_SYNC: usize = 2_000;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Reading is done in a process of its own, so that its memory is its own.
const READ: &str = "SK_STORE_LOG_BENCH_READ";

fn main() -> Outcome {
    if let Some(folder) = std::env::var_os(READ) {
        return read(Path::new(&folder));
    }
    let versions = (0..VERSIONS).flat_map(|version| (0..OBJECTS).map(move |object| fact(object, version)));
    let facts: Vec<Fact> = versions.collect();
    let json: usize = facts.iter().map(json_len).sum();
    let folder = tempfile::tempdir()?;
    println!("{} events, {} bytes of JSON each", facts.len(), json / facts.len());
    append(folder.path(), facts, json)?;
    let status = Command::new(std::env::current_exe()?).env(READ, folder.path()).status()?;
    if status.success() { Ok(()) } else { Err("reading failed".into()) }
}

fn append(folder: &Path, facts: Vec<Fact>, json: usize) -> Outcome {
    let (mut log, _) = Log::open(folder, Options::default())?;
    let count = facts.len();
    let (started, cpu) = (Instant::now(), cpu_seconds());
    let mut now = start();
    for (place, fact) in facts.into_iter().enumerate() {
        now += SimDuration::from_micros(50);
        log.append(now, fact)?;
        if place % EVENTS_PER_SYNC == EVENTS_PER_SYNC - 1 {
            log.sync()?;
        }
    }
    log.sync()?;
    let (took, cpu) = (started.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let stats = log.stats();
    let rate = |seconds: f64| count as f64 / seconds;
    println!("append and sync   {:>9.0} events/s, {:.0} in a second of one core's time", rate(took), rate(cpu));
    println!(
        "on disk           {:>9.1} bytes/event, 1/{:.0} of the JSON, {} segments",
        stats.bytes as f64 / count as f64,
        json as f64 / stats.bytes as f64,
        stats.segments
    );
    Ok(())
}

fn read(folder: &Path) -> Outcome {
    let started = Instant::now();
    let (log, recovered) = Log::open(folder, Options::default())?;
    let newest = recovered.newest.map(|(seq, _)| seq);
    println!("open              {:>9.3} s, newest entry {newest:?}", started.elapsed().as_secs_f64());
    println!("memory, open      {:>9.1} MiB", resident("VmHWM"));
    let started = Instant::now();
    let count = log.reader().items().count();
    println!("read all          {:>9.3} s, {count} items", started.elapsed().as_secs_f64());
    let (kept_from, _) = log.reader().kept().ok_or("the log is empty")?;
    let query = Query::window(kept_from, start() + SimDuration::from_secs(3_600));
    for format in [Format::Native, Format::V2] {
        let started = Instant::now();
        let exported = log.reader().export(&query, format, std::io::sink())?;
        let took = started.elapsed().as_secs_f64();
        println!("export {:<10} {took:>9.3} s, {} records", format.name(), exported.records);
        println!("memory, at most   {:>9.1} MiB", resident("VmHWM"));
    }
    Ok(())
}

/// How long this thread has run, where the system tells; 0 elsewhere.
fn cpu_seconds() -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = told.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.unwrap_or_default() / 1e9
}

fn start() -> SimTime {
    SimTime::from_secs(1_767_603_600)
}

fn json_len(fact: &Fact) -> usize {
    match fact {
        Fact::Applied(applied) => applied.body.len(),
        _ => 0,
    }
}

/// A figure of this process in MiB, where the system tells; 0 elsewhere.
fn resident(figure: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.unwrap_or_default() / 1024.0
}

/// One version of one Deployment: another image, another number of replicas, another hashed annotation.
fn fact(object: usize, version: usize) -> Fact {
    let hash = |of: &str, seed: usize| {
        let mut numbers = Stream::new(seed as u64, of);
        format!("sk:{:016x}{:016x}", numbers.next_u64(), numbers.next_u64())
    };
    let env: Vec<_> =
        (0..15).map(|n| format!(r#"{{"name":"SETTING_{n}","value":"{}"}}"#, hash("env", object * 100 + n))).collect();
    let body = format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"app-{object}","namespace":"team-{team}","labels":{{"app":"app-{object}","tier":"backend","team":"team-{team}"}},"annotations":{{"owner":"{owner}","change":"{change}"}}}},"spec":{{"replicas":{replicas},"selector":{{"matchLabels":{{"app":"app-{object}"}}}},"strategy":{{"type":"RollingUpdate","rollingUpdate":{{"maxSurge":"25%","maxUnavailable":"25%"}}}},"revisionHistoryLimit":10,"progressDeadlineSeconds":600,"template":{{"metadata":{{"labels":{{"app":"app-{object}","tier":"backend","team":"team-{team}"}}}},"spec":{{"containers":[{{"name":"main","image":"registry.example/team-{team}/app-{object}:{version}","args":["{arg}"],"env":[{env}],"resources":{{"requests":{{"cpu":"250m","memory":"512Mi"}},"limits":{{"cpu":"1","memory":"1Gi"}}}},"ports":[{{"containerPort":8080,"protocol":"TCP"}}],"livenessProbe":{{"httpGet":{{"path":"sk:0","port":8080}},"initialDelaySeconds":10,"periodSeconds":10,"timeoutSeconds":1,"failureThreshold":3}},"readinessProbe":{{"httpGet":{{"path":"sk:1","port":8080}},"initialDelaySeconds":5,"periodSeconds":5,"timeoutSeconds":1}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"app-{object}","securityContext":{{}},"schedulerName":"default-scheduler"}}}}}}}}"#,
        team = object % 40,
        owner = hash("owner", object),
        change = hash("change", object * 1_000 + version),
        replicas = 1 + (object + version) % 7,
        arg = hash("arg", object),
        env = env.join(","),
    );
    let name = ObjectKey::namespaced(format!("team-{}", object % 40), format!("app-{object}"));
    Fact::Applied(Applied {
        object: ObjectRef::new(Gvk::new_static("apps", "v1", "Deployment"), name),
        uid: format!("{:032x}", Stream::new(object as u64, "uid").next_u128()).into(),
        owners: Vec::new(),
        spec_hash: StableHash::new(Stream::new(version as u64, "spec").next_u64()),
        body: body.into(),
    })
}
