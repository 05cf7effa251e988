//! As much of an API server as a tracer needs to watch one kind: discovery, empty lists, a prepared watch of Deployments,
//! and watches of everything else that say nothing. Plain HTTP on loopback.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A watch that says nothing stays open for so long.
const SILENCE: Duration = Duration::from_secs(3_600);

/// The server, and who tells when the stream was taken.
pub(crate) struct Server {
    address: SocketAddr,
    served: Receiver<Served>,
}

/// The stream was taken.
pub(crate) struct Served {
    /// From the request to the last byte.
    pub(crate) took: Duration,
}

impl Server {
    pub(crate) fn start(stream: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (told, served) = channel();
        let stream = stream.to_owned();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (stream, told) = (stream.clone(), told.clone());
                thread::spawn(move || serve(connection, &stream, &told));
            }
        });
        Self { address, served }
    }

    /// Waits until the stream was taken.
    pub(crate) fn wait(&self, limit: Duration) -> Option<Served> {
        self.served.recv_timeout(limit).ok()
    }

    pub(crate) fn kubeconfig(&self) -> String {
        let server = format!("http://{}", self.address);
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "bench",
            "clusters": [{"name": "bench", "cluster": {"server": server}}],
            "users": [{"name": "bench", "user": {}}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        })
        .to_string()
    }
}

/// Answers the requests of one connection until the other end has enough.
fn serve(connection: TcpStream, stream: &Path, told: &Sender<Served>) {
    let mut requests = BufReader::new(connection.try_clone().unwrap());
    let mut out = BufWriter::with_capacity(1 << 16, connection);
    while let Some(target) = next_request(&mut requests) {
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let watches = query.split('&').any(|part| matches!(part, "watch=1" | "watch=true"));
        let done = match (watches, path) {
            (true, "/apis/apps/v1/deployments") => watch(&mut out, stream, told),
            (true, _) => silence(&mut out),
            (false, path) => answer(&mut out, path),
        };
        if done.is_err() {
            return;
        }
    }
}

/// The target of the next request; its headers, and its body if it should have one, are of no interest.
fn next_request(requests: &mut impl BufRead) -> Option<String> {
    let mut first = String::new();
    requests.read_line(&mut first).ok().filter(|read| *read > 0)?;
    loop {
        let mut header = String::new();
        requests.read_line(&mut header).ok().filter(|read| *read > 0)?;
        if header.trim().is_empty() {
            return first.split_whitespace().nth(1).map(str::to_owned);
        }
    }
}

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

fn watch(out: &mut impl Write, stream: &Path, told: &Sender<Served>) -> std::io::Result<()> {
    let begin = Instant::now();
    out.write_all(CHUNKED)?;
    for line in BufReader::new(File::open(stream)?).split(b'\n') {
        let line = line?;
        write!(out, "{:x}\r\n", line.len() + 1)?;
        out.write_all(&line)?;
        out.write_all(b"\n\r\n")?;
    }
    out.flush()?;
    // Nobody listens any more if this is a second watch.
    let _ = told.send(Served { took: begin.elapsed() });
    thread::sleep(SILENCE);
    Ok(())
}

fn silence(out: &mut impl Write) -> std::io::Result<()> {
    out.write_all(CHUNKED)?;
    out.flush()?;
    thread::sleep(SILENCE);
    Ok(())
}

fn answer(out: &mut impl Write, path: &str) -> std::io::Result<()> {
    let (status, body) = content(path).map_or_else(not_found, |body| ("200 OK", body));
    let body = body.to_string();
    let length = body.len();
    write!(out, "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")?;
    out.flush()
}

fn not_found() -> (&'static str, Value) {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404});
    ("404 Not Found", status)
}

/// Discovery, and lists without items.
fn content(path: &str) -> Option<Value> {
    let resources = |group_version: &str, all: &[(&str, &str, bool)]| {
        let resource = |(name, kind, namespaced): &(&str, &str, bool)| {
            json!({"name": name, "kind": kind, "namespaced": namespaced, "singularName": "",
                "verbs": ["get", "list", "watch"]})
        };
        let resources: Vec<_> = all.iter().map(resource).collect();
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources})
    };
    let group = |name: &str| {
        let version = json!({"groupVersion": format!("{name}/v1"), "version": "v1"});
        json!({"name": name, "versions": [version], "preferredVersion": version})
    };
    let list = |api_version: &str, kind: &str| json!({"kind": kind, "apiVersion": api_version, "metadata": {"resourceVersion": "1"}, "items": []});
    Some(match path {
        "/version" => json!({"major": "1", "minor": "36", "gitVersion": "v1.36.4", "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}),
        "/api" => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        "/apis" => json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group("apps"), group("batch")]}),
        "/apis/apps" => group("apps"),
        "/apis/batch" => group("batch"),
        "/api/v1" => resources("v1", &[("pods", "Pod", true), ("nodes", "Node", false)]),
        "/apis/apps/v1" => {
            resources("apps/v1", &[("deployments", "Deployment", true), ("replicasets", "ReplicaSet", true)])
        }
        "/apis/batch/v1" => resources("batch/v1", &[("jobs", "Job", true)]),
        "/api/v1/pods" => list("v1", "PodList"),
        "/api/v1/nodes" => list("v1", "NodeList"),
        "/apis/apps/v1/deployments" => list("apps/v1", "DeploymentList"),
        "/apis/apps/v1/replicasets" => list("apps/v1", "ReplicaSetList"),
        "/apis/batch/v1/jobs" => list("batch/v1", "JobList"),
        _ => return None,
    })
}
