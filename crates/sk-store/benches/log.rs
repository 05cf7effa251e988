//! What the event log costs: `cargo bench -p sk-store --bench log`.
//!
//! The workload is 1,000 Deployments of about 2.4 KB, each changed 50 times in turn, so that two versions of one object
//! lie 1,000 events apart; synced every 2,000 events, which at 20,000 events a second is the tracer's 100 ms. Bodies look
//! like objects that were made private: much of them is hashes, which do not compress.
//!
//! Then 500,000 pods that live for a second each, exported in one window: what an export takes for each.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use sk_core::rng::Stream;
use sk_core::{Gvk, ObjectKey, ObjectRef, OwnerReference, SimDuration, SimTime, StableHash};
use sk_store::log::{Applied, Attribution, Fact, Log, Options, PodFacts, Query};
use sk_store::trace::Format;

const OBJECTS: usize = 1_000;
const VERSIONS: usize = 50;
const EVENTS_PER_SYNC: usize = 2_000;
const PODS: i64 = 500_000;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Reading is done in a process of its own, so that its memory is its own.
const READ: &str = "SK_STORE_LOG_BENCH_READ";
const READ_PODS: &str = "SK_STORE_LOG_BENCH_READ_PODS";

fn main() -> Outcome {
    if let Some(folder) = std::env::var_os(READ) {
        return read(Path::new(&folder));
    }
    if let Some(folder) = std::env::var_os(READ_PODS) {
        return read_pods(Path::new(&folder));
    }
    let versions = (0..VERSIONS).flat_map(|version| (0..OBJECTS).map(move |object| fact(object, version)));
    let facts: Vec<Fact> = versions.collect();
    let json: usize = facts.iter().map(json_len).sum();
    let folder = tempfile::tempdir()?;
    println!("{} events, {} bytes of JSON each", facts.len(), json / facts.len());
    append(folder.path(), facts, json)?;
    in_another_process(READ, folder.path())?;
    let folder = tempfile::tempdir()?;
    append_pods(folder.path())?;
    in_another_process(READ_PODS, folder.path())
}

fn in_another_process(task: &str, folder: &Path) -> Outcome {
    let status = Command::new(std::env::current_exe()?).env(task, folder).status()?;
    if status.success() { Ok(()) } else { Err("reading failed".into()) }
}

/// A pod each second, which lives for one.
fn append_pods(folder: &Path) -> Outcome {
    let (mut log, _) = Log::open(folder, Options::default())?;
    log.append(start(), fact(0, 0))?;
    for n in 0..PODS {
        let (pod, end) = (pod(n), start() + SimDuration::from_secs(n + 1));
        let gone = PodFacts { finished: Some(end), deleted: Some(end), ..pod.clone() };
        log.append(pod.created, Fact::Pod(Box::new(pod)))?;
        log.append(end, Fact::Pod(Box::new(gone)))?;
    }
    Ok(log.sync()?)
}

fn read_pods(folder: &Path) -> Outcome {
    let (log, _) = Log::open(folder, Options::default())?;
    let before = resident("VmRSS");
    let query = Query::window(start(), start() + SimDuration::from_secs(PODS + 1));
    let started = Instant::now();
    let exported = log.reader().export(&query, Format::Native, std::io::sink())?;
    let took = started.elapsed().as_secs_f64();
    println!("export of pods    {took:>9.3} s, {} pods", exported.observations);
    let taken = (resident("VmHWM") - before) * 1024.0 * 1024.0;
    println!("memory            {:>9.1} bytes/pod, all of the export's counted", taken / PODS as f64);
    Ok(())
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
        body: body.into(),
    })
}

/// A pod of the first Deployment with names as long as real ones; every other one belongs to nothing that is recorded.
fn pod(n: i64) -> PodFacts {
    let mut numbers = Stream::new(n.unsigned_abs(), "pod");
    let uid = format!("{:08x}-1111-4222-8333-{:012x}", numbers.next_u64() >> 32, numbers.next_u64() >> 16);
    let created = start() + SimDuration::from_secs(n);
    let Fact::Applied(Applied { object: owner, uid: owner_uid, .. }) = fact(0, 0) else {
        unreachable!("it makes nothing else")
    };
    let reference = OwnerReference {
        gvk: owner.gvk.clone(),
        name: owner.key.name.clone(),
        uid: owner_uid.clone(),
        controller: true,
        block_owner_deletion: true,
    };
    let template = "/spec/template@0123456789abcdef".parse().ok();
    let attribution = Attribution { owner, uid: owner_uid, template, track_lifecycle: true };
    PodFacts {
        uid: uid.into(),
        pod: ObjectKey::namespaced("team-0", format!("app-0-5f7c9d8b6-{n:05x}")),
        owners: vec![reference],
        attributions: if n % 2 == 0 { vec![attribution] } else { Vec::new() },
        pod_hash: Some(StableHash::new(7)),
        created,
        scheduled: Some(created),
        started: Some(created),
        finished: None,
        deleted: None,
        guessed: false,
        exit_code: None,
        node: Some(format!("node-{}", n % 100).into()),
        waits: Vec::new(),
        requests: [("cpu".into(), "250m".to_owned()), ("memory".into(), "64Mi".to_owned())].into(),
    }
}
