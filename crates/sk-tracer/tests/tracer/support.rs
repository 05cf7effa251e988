//! What the tests of a recording have in common: configurations, the log read back, the tracer as a process.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use sk_api::tracer::Config;
use sk_core::{Gvk, SimTime};
use sk_store::log::{Applied, Entry, Fact, Item, Log, Reader};
use sk_store::trace::{self, Change, Format, Gap, Trace};
use sk_testkit::control_plane::{ControlPlane, eventually};
use sk_tracer::{Options, Tracer};

/// The tracer's program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_sk-tracer");
/// How long anything may take on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

/// A configuration of these lines of YAML.
pub(crate) fn config(text: &str) -> Config {
    Config::parse("test", text).expect("the test's configuration is right")
}

/// A tracer in this process, ready.
pub(crate) async fn record(cluster: &ControlPlane, config: Config, data: &Path) -> Tracer {
    let options = Options { data_dir: Some(data.to_owned()), ..Options::default() };
    let tracer = Tracer::start(cluster.client(), config, options).await.expect("the tracer starts");
    tokio::time::timeout(LIMIT, tracer.ready()).await.unwrap_or_else(|_| panic!("{}", tracer.readiness()));
    tracer
}

/// Now, as the tracer's clock shows it.
pub(crate) fn now() -> SimTime {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("it is after 1970");
    SimTime::from_micros(i64::try_from(since.as_micros()).expect("it is before the year 200,000"))
}

/// The API of a kind by its plural, without asking for it.
pub(crate) fn api(client: Client, kind: &str, plural: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let gvk: Gvk = kind.parse().expect("the test names a kind");
    let resource =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind), plural);
    match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    }
}

/// Applies an object as JSON, however often it takes.
pub(crate) async fn apply(client: &Client, plural: &str, object: Value) -> DynamicObject {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let named = |pointer: &str| text(pointer).expect("the test's objects have kinds and names");
    let kind = Gvk::from_api_version(named("/apiVersion"), named("/kind")).expect("a kind").to_string();
    let name = named("/metadata/name").to_owned();
    let api = api(client.clone(), &kind, plural, text("/metadata/namespace"));
    let params = PatchParams::apply("test").force();
    eventually(&format!("{kind} {name} to be applied"), LIMIT, || async {
        api.patch(&name, &params, &Patch::Apply(&object)).await.map(Some)
    })
    .await
    .expect("the API server takes it")
}

/// Defines a kind of the group `example.com`, and waits until it can be found and used.
pub(crate) async fn define(client: &Client, kind: &str, plural: &str, scope: &str) {
    apply(client, "customresourcedefinitions", crd(kind, plural, scope)).await;
    let wanted = GroupVersionKind::gvk("example.com", "v1", kind);
    eventually(&format!("{kind} to be served"), LIMIT, || async {
        let (resource, _) = kube::discovery::pinned_kind(client, &wanted).await?;
        Api::<DynamicObject>::all_with(client.clone(), &resource).list(&ListParams::default()).await.map(Some)
    })
    .await
    .expect("the API server takes the definition");
}

/// A CustomResourceDefinition without a schema.
fn crd(kind: &str, plural: &str, scope: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com",
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

/// Everything in a log, in order.
pub(crate) fn entries(reader: &Reader) -> Vec<Entry> {
    let entry = |item| match item {
        Item::Entry(entry) => Some(entry),
        _ => None,
    };
    reader.items().filter_map(entry).collect()
}

/// The bodies of all versions of objects of one kind, in order.
pub(crate) fn applied(reader: &Reader, kind: &str) -> Vec<(SimTime, Applied)> {
    let of_kind = |entry: Entry| match entry.fact {
        Fact::Applied(applied) if applied.object.gvk.to_string() == kind => Some((entry.at, applied)),
        _ => None,
    };
    entries(reader).into_iter().filter_map(of_kind).collect()
}

/// The gaps in a log.
pub(crate) fn gaps(reader: &Reader) -> Vec<Gap> {
    let gap = |entry: Entry| match entry.fact {
        Fact::Gap(gap) => Some(gap),
        _ => None,
    };
    entries(reader).into_iter().filter_map(gap).collect()
}

/// Opens the log of a tracer that has ended.
pub(crate) fn open(data: &Path) -> Log {
    Log::open(&data.join("events"), sk_store::log::Options::default()).expect("the log opens").0
}

/// The names and uids of live objects of a kind, as the API server has them.
pub(crate) async fn live(client: &Client, kind: &str, plural: &str) -> BTreeMap<String, String> {
    let api = api(client.clone(), kind, plural, None);
    let listed = eventually("a list", LIMIT, || async { api.list(&ListParams::default()).await.map(Some) });
    let name = |object: DynamicObject| {
        let namespace = object.metadata.namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default();
        (namespace + &object.metadata.name.unwrap_or_default(), object.metadata.uid.unwrap_or_default())
    };
    listed.await.expect("the API server lists").items.into_iter().map(name).collect()
}

/// The names and uids of live objects of a kind, as the log has them.
pub(crate) fn recorded(log: &Log, kind: &str) -> BTreeMap<String, String> {
    let of_kind = log.state().objects().filter(|(object, _)| object.gvk.to_string() == kind);
    of_kind.map(|(object, live)| (object.key.to_string(), live.uid.to_string())).collect()
}

/// What a tracer has recorded from a moment until now, as a trace. A busy server may not have said in time how far it is;
/// then the export says so, and is made once more.
pub(crate) async fn export(tracer: &Tracer, from: SimTime) -> Trace {
    let query = || sk_store::log::Query::window(from, SimTime::MAX);
    let exported = eventually("an export for which every watch has caught up", LIMIT, || async {
        let spooled = tracer.export(query(), Format::Native).await.expect("the export succeeds");
        Ok(spooled.behind.is_empty().then_some(spooled))
    });
    read_trace(exported.await.expect("the API server says how far it is").file)
}

/// A trace in a file without a name.
pub(crate) fn read_trace(mut file: File) -> Trace {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).expect("the file is there");
    trace::from_bytes("exported", bytes).expect("it is a trace")
}

/// What happens in a trace: `+` or `-`, kind and name, in order.
pub(crate) fn story(trace: &Trace) -> Vec<String> {
    let line = |record: Result<trace::Record, _>| match record.expect("the trace reads").change {
        Change::Apply(object) => Some(format!("+ {}", object.reference())),
        Change::Delete(deletion) => Some(format!("- {}", deletion.object)),
        Change::Mark(_) => None,
    };
    trace.records().expect("the trace reads").filter_map(line).collect()
}

/// The tracer's program, killed when dropped.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
    /// How long its log was when it started.
    earlier: usize,
}

impl Process {
    /// Starts it with these arguments besides configuration and folder, on any free port. Its words are appended to `<data>.log`.
    pub(crate) fn start(config: &Path, data: &Path, kubeconfig: &Path, more: &[&str]) -> Self {
        Self::start_with(Command::new(PROGRAM), config, data, kubeconfig, more)
    }

    /// Starts it by a command that takes its arguments.
    pub(crate) fn start_with(
        mut command: Command,
        config: &Path,
        data: &Path,
        kubeconfig: &Path,
        more: &[&str],
    ) -> Self {
        let log = data.with_extension("log");
        let earlier = std::fs::read(&log).map_or(0, |words| words.len());
        let words = File::options().create(true).append(true).open(&log).expect("the log can be written");
        let child = command
            .arg("--config-file")
            .arg(config)
            .arg("--data-dir")
            .arg(data)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg("--server-port=0")
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(words)
            .spawn()
            .expect("the tracer's program starts");
        Self { child, log, earlier }
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// On which port it serves, once it says so.
    pub(crate) async fn port(&self) -> u16 {
        let port = || {
            let words = self.words();
            let address = words.get(self.earlier..)?.split_once("serving address=")?.1.lines().next()?.to_owned();
            address.trim().parse::<SocketAddr>().ok().map(|address| address.port())
        };
        let found = eventually("the tracer to serve", LIMIT, || std::future::ready(Ok(port()))).await;
        found.unwrap_or_else(|error| panic!("{error}\n{}", last(&self.words())))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has it ended by itself?
    pub(crate) fn ended(&mut self) -> bool {
        self.child.try_wait().expect("it is our child").is_some()
    }

    /// SIGTERM, and how it ends.
    pub(crate) fn stop(mut self) -> std::process::ExitStatus {
        let told = Command::new("kill").arg(self.child.id().to_string()).status().expect("there is a kill");
        assert!(told.success());
        self.child.wait().expect("it is our child")
    }

    /// What it has said.
    pub(crate) fn words(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
        if std::thread::panicking() {
            eprintln!("--- the last words of the tracer\n{}", last(&self.words()));
        }
    }
}

fn last(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

/// Asks a tracer that believes everybody.
pub(crate) async fn ask(port: u16, path: &str) -> Option<(u16, String)> {
    let client = Client::try_from(kube::Config::new(format!("http://127.0.0.1:{port}").parse().ok()?)).ok()?;
    let request = http::Request::get(path).body(kube::client::Body::empty()).ok()?;
    answered(client.send(request).await.ok()?).await
}

/// Asks a tracer that believes everybody for an export: status and body.
pub(crate) async fn post(port: u16, request: &Value) -> Option<(u16, Vec<u8>)> {
    let answer = export_answer(port, request).await?;
    let status = answer.status().as_u16();
    Some((status, answer.into_body().collect_bytes().await.ok()?.to_vec()))
}

/// The whole answer to such a request.
pub(crate) async fn export_answer(port: u16, request: &Value) -> Option<http::Response<kube::client::Body>> {
    let client = Client::try_from(kube::Config::new(format!("http://127.0.0.1:{port}").parse().ok()?)).ok()?;
    let body = kube::client::Body::from(request.to_string().into_bytes());
    client.send(http::Request::post("/export").body(body).ok()?).await.ok()
}

/// Status and body of an answer.
pub(crate) async fn answered(response: http::Response<kube::client::Body>) -> Option<(u16, String)> {
    let status = response.status().as_u16();
    let bytes = response.into_body().collect_bytes().await.ok()?;
    Some((status, String::from_utf8_lossy(&bytes).into_owned()))
}

/// Waits until a tracer's program says that it is ready.
pub(crate) async fn until_ready(process: &Process) {
    let (port, said) = (process.port().await, std::sync::Mutex::new(None));
    let ready = eventually("the tracer to be ready", LIMIT, || async {
        let answer = ask(port, "/readyz").await;
        said.lock().expect("nobody panicked").clone_from(&answer);
        Ok(answer.filter(|(status, _)| *status == 200))
    });
    let ready = ready.await;
    ready.unwrap_or_else(|error| panic!("{error}; it said {said:?}\n{}", last(&process.words())));
}

/// Waits until a line of the story since `from` is in what a tracer's program exports. An export waits for all watches, so
/// that everything that came before it is there too.
pub(crate) async fn until_recorded(process: &Process, from: SimTime, line: &str) {
    let request = json!({"start_ts": from.as_micros() as f64 / 1e6, "end_ts": 4e9, "format": "native"});
    let (port, what) = (process.port().await, format!("`{line}` to be recorded"));
    let found = eventually(&what, LIMIT, || async {
        let Some((200, bytes)) = post(port, &request).await else { return Ok(None) };
        let story = story(&trace::from_bytes("exported", bytes).expect("it is a trace"));
        Ok(story.iter().any(|told| told == line).then_some(()))
    });
    found.await.unwrap_or_else(|error| panic!("{error}\n{}", last(&process.words())));
}
