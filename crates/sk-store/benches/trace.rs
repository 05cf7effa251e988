//! How large the native format is and how fast it is read, against the plain way: the whole v2 file, by rmp-serde,
//! into JSON values. Both sides in one run, on the same trace: versions of many Deployments.
//!
//! `cargo bench -p sk-store [-- EVENTS DEPLOYMENTS]`. Prints a table; judges nothing, because figures depend on the
//! machine. Peak memory is measured by `--peak plain|heads|records FILE` in a process of its own.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sk_core::SimTime;
use sk_store::trace::{Change, Format, Header, Mark, Object, Record, Selection, What, Writer, open};

/// A small seeded generator: figures must not depend on luck.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, limit: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[usize::try_from(self.below(words.len() as u64)).unwrap()]
    }

    fn hex(&mut self, digits: usize) -> String {
        (0..digits).map(|_| char::from_digit(u32::try_from(self.below(16)).unwrap(), 16).unwrap()).collect()
    }
}

const TEAMS: &[&str] =
    &["payments", "search", "checkout", "identity", "media", "ads", "ledger", "growth", "core", "ml"];
const PARTS: &[&str] =
    &["api", "worker", "indexer", "gateway", "sync", "cache", "cron", "web", "feed", "router", "batch"];
const CPUS: &[&str] = &["50m", "100m", "250m", "500m", "1", "2", "4"];
const MEMORY: &[&str] = &["64Mi", "128Mi", "256Mi", "512Mi", "1Gi", "2Gi", "4Gi"];

/// A Deployment as production clusters have them: probes, environment, volumes, affinity.
fn deployment(random: &mut Seeded, number: u64) -> Value {
    let team = random.pick(TEAMS);
    let name = format!("{team}-{}-{number}", random.pick(PARTS));
    let image = format!("images.example/{team}/{name}:{}", random.hex(10));
    let env: Vec<_> = (0..random.below(12))
        .map(|n| json!({"name": format!("SETTING_{n}"), "value": random.hex(12)}))
        .chain([
            json!({"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}),
        ])
        .collect();
    let port = 8000 + random.below(1000);
    let probe = json!({"failureThreshold": 3, "httpGet": {"path": "/healthz", "port": port, "scheme": "HTTP"},
        "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1});
    let container = json!({"env": env, "image": image, "imagePullPolicy": "IfNotPresent", "livenessProbe": probe, "name": "main",
        "ports": [{"containerPort": port, "name": "http", "protocol": "TCP"}], "readinessProbe": probe,
        "resources": {"limits": {"memory": random.pick(MEMORY)}, "requests": {"cpu": random.pick(CPUS), "memory": random.pick(MEMORY)}},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "volumeMounts": [{"mountPath": "/etc/config", "name": "config"}]});
    let labels =
        json!({"app.kubernetes.io/name": name, "app.kubernetes.io/instance": format!("{name}-prod"), "team": team});
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"annotations": {"team.example/owner": format!("{team}@example.com")}, "labels": labels, "name": name,
            "namespace": format!("{team}-{}", random.pick(&["prod", "stage"]))},
        "spec": {"progressDeadlineSeconds": 600, "replicas": 1 + random.below(20), "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app.kubernetes.io/name": name}},
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}, "type": "RollingUpdate"},
            "template": {"metadata": {"labels": labels, "annotations": {"config/checksum": random.hex(64)}}, "spec": {
                "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100,
                    "podAffinityTerm": {"labelSelector": {"matchLabels": {"app.kubernetes.io/name": name}},
                        "topologyKey": "topology.kubernetes.io/zone"}}]}},
                "containers": [container], "dnsPolicy": "ClusterFirst", "restartPolicy": "Always",
                "schedulerName": "default-scheduler", "securityContext": {}, "terminationGracePeriodSeconds": 30,
                "volumes": [{"configMap": {"defaultMode": 420, "name": format!("{name}-config")}, "name": "config"}]}}}})
}

/// A day of changes: mostly scaling, some rollouts. Times are whole seconds, as v2 has them, so that both forms hold
/// the same.
fn records(events: u64, deployments: u64) -> impl Iterator<Item = Record> {
    let mut random = Seeded(1);
    let mut objects: Vec<Value> = (0..deployments).map(|number| deployment(&mut random, number)).collect();
    let start = 1_767_603_600;
    let mut secs = start;
    let mut seq = 0;
    (0..events).flat_map(move |event| {
        let number = if event < deployments { event } else { random.below(deployments) };
        let object = &mut objects[usize::try_from(number).unwrap()];
        if event >= deployments {
            secs += i64::try_from(random.below(3)).unwrap();
            if random.below(4) == 0 {
                let image = object.pointer_mut("/spec/template/spec/containers/0/image").unwrap();
                let name = image.as_str().unwrap().split(':').next().unwrap().to_owned();
                *image = format!("{name}:{}", random.hex(10)).into();
                object["spec"]["template"]["metadata"]["annotations"]["config/checksum"] = random.hex(64).into();
            } else {
                object["spec"]["replicas"] = (1 + random.below(20)).into();
            }
        }
        let at = SimTime::from_secs(secs);
        seq += 2;
        let mark = Change::Mark(Mark::V2Event { delete_order: Vec::new() });
        let apply = Change::Apply(Object::new(object.clone()).unwrap());
        [Record { at, seq, change: mark }, Record { at, seq: seq + 1, change: apply }]
    })
}

fn write(path: &Path, format: Format, events: u64, deployments: u64) -> Duration {
    let begin = Instant::now();
    let file = std::io::BufWriter::new(fs::File::create(path).unwrap());
    let mut writer = Writer::new(format, file, &Header::default()).unwrap();
    records(events, deployments).for_each(|record| writer.record(&record).unwrap());
    writer.finish().unwrap();
    begin.elapsed()
}

/// The plain way: the file in memory, all of it decoded, then looked at. (Lives are mapped by arrays, which JSON cannot
/// have; the benchmark's trace has none, so that one read of everything is enough.)
fn plain(path: &Path) -> usize {
    let trace: BTreeMap<String, Value> = rmp_serde::from_slice(&fs::read(path).unwrap()).unwrap();
    black_box(&trace).len()
}

fn heads(path: &Path) -> usize {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for head in open(path).unwrap().heads().unwrap() {
        if let What::Apply(object, labels) = &head.unwrap().what {
            let team = labels.iter().find(|(key, _)| key == "team").map_or("", |(_, value)| value.as_str());
            match kinds.get_mut(team) {
                Some(count) => *count += object.gvk.kind.len(),
                None => {
                    kinds.insert(team.to_owned(), 1);
                }
            }
        }
    }
    black_box(kinds).len()
}

fn whole(path: &Path) -> usize {
    let mut count = 0;
    for record in open(path).unwrap().records().unwrap() {
        black_box(record.unwrap());
        count += 1;
    }
    count
}

/// The best of three.
fn time(run: impl Fn() -> usize) -> Duration {
    let once = || {
        let begin = Instant::now();
        assert!(run() > 0);
        begin.elapsed()
    };
    (0..3).map(|_| once()).min().unwrap()
}

/// The high-water mark of a process that does one pass, in MiB.
fn peak(what: &str, path: &Path) -> u64 {
    let output = Command::new(std::env::current_exe().unwrap()).args(["--peak", what]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

fn own_peak_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("0");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [flag, what, path] = arguments.as_slice()
        && flag == "--peak"
    {
        let path = PathBuf::from(path);
        match what.as_str() {
            "plain" => plain(&path),
            "heads" => heads(&path),
            _ => whole(&path),
        };
        println!("{}", own_peak_mib());
        return;
    }
    let number = |place: usize, usual| arguments.get(place).and_then(|text| text.parse().ok()).unwrap_or(usual);
    let (events, deployments) = (number(0, 100_000), number(1, 2_000));
    let folder = tempfile::tempdir().unwrap();
    let (v2, native) = (folder.path().join("v2.sktrace"), folder.path().join("native.sktrace"));
    let v2_time = write(&v2, Format::V2, events, deployments);
    let native_time = write(&native, Format::Native, events, deployments);
    let v2_bytes = fs::read(&v2).unwrap();
    let zstd3 = zstd::stream::encode_all(&v2_bytes[..], 3).unwrap().len();
    let native_len = fs::metadata(&native).unwrap().len();
    let size = native_len as f64 / zstd3 as f64;
    println!("{events} events over {deployments} Deployments");
    println!("v2 {} bytes, its zstd -3 {zstd3} bytes, written in {v2_time:.2?}", v2_bytes.len());
    println!("native {native_len} bytes ({size:.2} x zstd -3), written in {native_time:.2?}");
    drop(v2_bytes);
    let plain_time = time(|| plain(&v2));
    println!("plain pass {plain_time:.3?}");
    let passes = [("native heads", time(|| heads(&native))), ("native objects", time(|| whole(&native)))];
    for (what, took) in passes.into_iter().chain([("v2 objects", time(|| whole(&v2)))]) {
        println!("{what} {took:.3?} ({:.1} x as fast)", plain_time.as_secs_f64() / took.as_secs_f64());
    }
    let span = open(&native).unwrap().span().unwrap();
    let middle = SimTime::from_micros(i64::midpoint(span.0.as_micros(), span.1.as_micros()));
    let reach = time(|| open(&native).unwrap().select(&Selection::all().from(middle)).unwrap().take(1).count());
    println!("the first record of the second half in {reach:.3?}");
    for (what, path) in [("plain", &v2), ("heads", &native), ("records", &native)] {
        println!("peak memory, {what}: {} MiB", peak(what, path));
    }
    let long = folder.path().join("long.sktrace");
    write(&long, Format::Native, 10 * events, deployments);
    for what in ["heads", "records"] {
        println!("peak memory, {what}, ten times longer: {} MiB", peak(what, &long));
    }
}
