//! What can be typed: `sk-driver run`, in a cluster by the controller or anywhere by a person.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use jiff::tz::TimeZone;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use sk_api::simulation::{Simulation, names};
use sk_core::duration::TimeSpec;
use sk_core::{Gvk, SimDuration, SimTime};
use sk_store::Location;
use sk_store::location::shown;
use sk_store::trace::{OpenError, Trace};
use tokio::signal::unix::{SignalKind, signal};

use crate::cluster::controller::ControllerError;
use crate::cluster::request::{Patience, patiently};
use crate::cluster::tally::Tally;
use crate::cluster::{self, Controller, Destination, Options, Outcome, Stop, Turn, Webhook};
use crate::log::LastLines;
use sk_replay::plan::Window;

/// Exit codes: judged and bad, could not judge, interrupted.
const BAD: u8 = 1;
const FAILED: u8 = 2;
const INTERRUPTED: u8 = 130;
/// Where Kubernetes looks for a container's last words, of which it reads 4 KiB.
const TERMINATION_LOG: &str = "/dev/termination-log";
const TERMINATION_BYTES: usize = 4096;
/// In the driver's environment: `true` if the installation lets Simulations run hooks.
const ALLOW_HOOKS: &str = "SIMKUBE_ALLOW_HOOKS";
/// A Simulation is a few kilobytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// How many seconds it may take until the API server reaches the webhook: a new Service and its endpoints take a few.
const WEBHOOK_WITHIN: u64 = 60;
/// How often what is new in the log goes to the controller, so that it is there even if the driver is killed.
const LOG_EVERY: Duration = Duration::from_secs(10);
/// After a stop, the log may take so much longer than everything else.
const LOG_GRACE: Duration = Duration::from_secs(5);

/// Replays a trace on a real cluster with virtual nodes.
#[derive(Debug, Parser)]
#[command(name = "sk-driver", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Replay a Simulation's trace and leave a run record
    ///
    /// In a cluster with SimKube installed, the controller runs this. Without one:
    /// sk-driver run -f simulation.yaml --kubeconfig ~/.kube/config --out runs/mine
    Run(Box<RunArgs>),
}

#[derive(Debug, Args)]
struct RunArgs {
    /// The Simulation in the cluster to run
    #[arg(long, value_name = "NAME", env = names::ENV_SIMULATION, conflicts_with = "file")]
    simulation: Option<String>,
    /// A file with the Simulation to run; nothing needs to be installed in the cluster but KWOK and its stages
    #[arg(short, long, value_name = "FILE", required_unless_present = "simulation")]
    file: Option<PathBuf>,
    /// The kubeconfig of the cluster to run on
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The trace, instead of the Simulation's tracePath
    #[arg(long, value_name = "PATH|URL")]
    trace: Option<String>,
    /// The folder for the record, instead of spec.record.path
    #[arg(short = 'O', long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replay from here on, e.g. +30m or a moment; what was before makes up the state at the start
    #[arg(short, long, value_name = "TIME")]
    start: Option<String>,
    /// Replay up to here
    #[arg(short = 't', long, value_name = "TIME")]
    end: Option<String>,
    /// Only this repetition, from 0
    #[arg(long, value_name = "N", env = "JOB_COMPLETION_INDEX")]
    repetition: Option<u32>,
    /// Where all randomness comes from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop at the first object that the API server refuses
    #[arg(long)]
    stop_on_refusal: bool,
    /// Also replay objects of this kind, which change the cluster itself, e.g. rbac.authorization.k8s.io/v1.Role
    #[arg(long, value_name = "GROUP/VERSION.KIND")]
    also: Vec<Gvk>,
    /// Where the API server reaches the driver, where no controller has seen to it [default: this host's address]
    #[arg(long, value_name = "https://HOST[:PORT]")]
    webhook_url: Option<String>,
    /// Where to listen for the API server [default: all addresses; the Simulation's port, or a free one with -f]
    #[arg(long, value_name = "ADDRESS:PORT")]
    bind: Option<SocketAddr>,
    /// How long to wait until the API server reaches the driver, before its controller is told that it cannot
    #[arg(long, value_name = "SECONDS", default_value_t = WEBHOOK_WITHIN, value_parser = clap::value_parser!(u64).range(1..))]
    webhook_within: u64,
    /// Let a Simulation of the cluster run its preRun and postRun hooks here; with -f they are your own and always run
    #[arg(long, env = ALLOW_HOOKS)]
    allow_hooks: bool,
    /// How long to take at most when asked to stop: what is under way, the record, and the clean-up have to fit
    #[arg(long, value_name = "SECONDS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    stop_within: u64,
    /// error, warn, info, debug or trace
    #[arg(short, long, value_name = "LEVEL", default_value = "info")]
    verbosity: String,
}

/// Runs the program.
pub async fn main() -> ExitCode {
    let Command::Run(args) = Cli::parse().command;
    // TLS needs one provider of cryptography for the whole process; whoever came first may have chosen another.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let lines = match LastLines::start(&args.verbosity) {
        Ok(lines) => lines,
        Err(problem) => {
            eprintln!("sk-driver: {problem}");
            return ExitCode::from(FAILED);
        }
    };
    let stop = Stop::default();
    stop_on_signals(&stop);
    let sending = tokio::spawn(send_log_again_and_again(args.simulation.clone(), lines.clone()));
    let ended = run(&args, &stop).await;
    sending.abort();
    let (code, words) = verdict(ended, stop.reason().as_deref());
    if let Some(words) = &words {
        tracing::error!("{words}");
        leave_last_words(words);
    }
    let grace = Duration::from_secs(args.stop_within) + LOG_GRACE;
    send_log(&args, &lines, &Patience::new(&Tally::default(), &stop, grace)).await;
    ExitCode::from(code)
}

/// Why a run that was told to stop by a signal stopped.
const SIGNALLED: &str = "the driver was asked to stop; the record is partial";

/// The exit code and the last words.
fn verdict(ended: Result<Option<String>>, stopped: Option<&str>) -> (u8, Option<String>) {
    let was_signalled = stopped == Some(SIGNALLED);
    match ended {
        Ok(None) => (0, None),
        Ok(Some(why)) if was_signalled => (INTERRUPTED, Some(format!("Interrupted: {why}"))),
        Ok(Some(why)) => (BAD, Some(format!("Stopped: {why}"))),
        // What a stopped run could not do any more is no failure of its own.
        Err(error) if was_signalled => (INTERRUPTED, Some(format!("Interrupted: {SIGNALLED}; {error:#}"))),
        Err(error) => (FAILED, Some(format!("{}: {error:#}", reason(&error)))),
    }
}

/// The word before the driver's last words, which the controller takes for the Simulation's reason.
fn reason(error: &anyhow::Error) -> &'static str {
    if let Some(error) = error.downcast_ref::<cluster::RunError>() {
        return error.reason();
    }
    if let Some(error) = error.downcast_ref::<ControllerError>() {
        return error.reason();
    }
    match error.downcast_ref::<OpenError>() {
        Some(OpenError::Io { .. }) => "TraceMissing",
        Some(_) => "TraceUnreadable",
        None if error.is::<kube::Error>() => "ClusterUnreachable",
        None => "DriverFailed",
    }
}

fn stop_on_signals(stop: &Stop) {
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        let stop = stop.clone();
        match signal(kind) {
            Ok(mut signals) => drop(tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    stop.insist(SIGNALLED);
                }
            })),
            Err(error) => tracing::warn!("cannot listen for signals: {error}"),
        }
    }
}

/// Runs all repetitions that were asked for; why the last one was stopped, if it was.
async fn run(args: &RunArgs, stop: &Stop) -> Result<Option<String>> {
    let client = connect(args).await?;
    let grace = Duration::from_secs(args.stop_within) / 10;
    let patience = Patience::new(&Tally::default(), stop, grace).in_need();
    let simulation = match (&args.file, &args.simulation) {
        (Some(file), _) => read_simulation(file)?,
        (None, Some(name)) => {
            let api: Api<Simulation> = Api::all(client.clone());
            let read = patiently(&patience, || api.get(name)).await;
            read.with_context(|| format!("cannot read the Simulation {name}"))?
        }
        (None, None) => bail!("say which Simulation: --simulation NAME or -f FILE"),
    };
    let trace = Arc::new(trace(args, &simulation, &patience).await?);
    let window = window(args, &simulation, &trace)?;
    let repetitions = match (args.repetition, args.file.is_some()) {
        (Some(repetition), _) => repetition..repetition + 1,
        (None, true) => 0..simulation.spec.repetitions,
        (None, false) => 0..1,
    };
    let options = |repetition| options(args, &simulation, window, repetition);
    let turn = Turn::take(client, &simulation, &options(repetitions.start)?, stop.clone()).await?;
    let last = repeat(&turn, &trace, repetitions.map(options)).await;
    let left = turn.end().await;
    let Outcome { stopped, record, .. } = last?;
    left.map_err(|error| cluster::RunError::LeftBehind { record, error: Box::new(error) })?;
    Ok(stopped)
}

/// Runs one repetition after the other, until one is stopped. What the last of them came to.
async fn repeat(
    turn: &Turn<'_>,
    trace: &Arc<Trace>,
    repetitions: impl Iterator<Item = Result<Options>>,
) -> Result<Outcome> {
    let mut last = None;
    for options in repetitions {
        let outcome = turn.repeat(trace.clone(), &options?).await?;
        summarise(&outcome);
        let is_stopped = outcome.stopped.is_some();
        last = Some(outcome);
        if is_stopped {
            break;
        }
    }
    last.context("the simulation has no repetitions")
}

/// Opens the trace, wherever it is.
async fn trace(args: &RunArgs, simulation: &Simulation, patience: &Patience) -> Result<Trace> {
    let place = args.trace.as_deref().unwrap_or(&simulation.spec.driver.trace_path);
    if let Some(hash) = names::uploaded_trace(place) {
        let Some(controller) = controller() else {
            bail!(
                "{place} is a trace that was uploaded to a controller, and no controller started this driver; give --trace"
            )
        };
        let typed = simulation.metadata.annotations.as_ref().and_then(|all| all.get(names::TRACE_NAME_ANNOTATION));
        let name = typed.map_or(place, String::as_str);
        let fetched = controller.fetch_trace(hash, name, patience).await;
        return fetched.with_context(|| format!("cannot get the trace {name}"));
    }
    let location: Location = place.parse().context("the trace")?;
    let opening = tokio::task::spawn_blocking(move || location.open());
    let opened = tokio::select! {
        opened = opening => opened.context("reading the trace broke off")?,
        () = patience.over() => bail!("the trace {} was not there in time", shown(place)),
    };
    opened.with_context(|| format!("cannot read the trace {}", shown(place)))
}

fn summarise(outcome: &Outcome) {
    let Outcome { totals, record, .. } = outcome;
    let lateness = &totals.lateness;
    println!(
        "{} operations, {} pods, {} refused, {} left alone; lateness p50 {:.0} ms, p99 {:.0} ms, max {:.0} ms; record {record}",
        totals.operations,
        totals.pods,
        totals.refused,
        totals.left_alone,
        lateness.p50_ms,
        lateness.p99_ms,
        lateness.max_ms,
    );
}

async fn connect(args: &RunArgs) -> Result<Client> {
    let options = KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
    let config = match &args.kubeconfig {
        Some(file) => {
            let read = Kubeconfig::read_from(file).with_context(|| format!("cannot read {}", file.display()))?;
            Config::from_custom_kubeconfig(read, &options).await?
        }
        None if args.context.is_some() => Config::from_kubeconfig(&options).await?,
        None => Config::infer().await.context("no cluster: neither in one nor with a kubeconfig; give --kubeconfig")?,
    };
    tracing::info!(server = %config.cluster_url, "connecting");
    Ok(Client::try_from(config)?)
}

fn read_simulation(file: &Path) -> Result<Simulation> {
    let shown = file.display();
    let size = std::fs::metadata(file).with_context(|| format!("cannot read {shown}"))?.len();
    if size > MAX_FILE_BYTES {
        bail!("{shown} has {size} bytes, and a Simulation has at most {MAX_FILE_BYTES}");
    }
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
    let simulation: Simulation = serde_saphyr::from_str(&text).with_context(|| format!("{shown} is no Simulation"))?;
    let speed = simulation.spec.speed;
    if !(speed.is_finite() && speed > 0.0) {
        bail!("{shown}: the speed {speed} is none; it is a number above 0");
    }
    Ok(simulation)
}

/// The part of the trace to replay.
fn window(args: &RunArgs, simulation: &Simulation, trace: &Trace) -> Result<Window> {
    let Some((first, last)) = trace.span() else { bail!("the trace {} is empty", trace.name()) };
    let now = SimTime::from_micros(jiff::Timestamp::now().as_microsecond());
    let moment = |text: &Option<String>| -> Result<Option<SimTime>> {
        let resolve = |text: &String| anyhow::Ok(TimeSpec::parse(text)?.resolve(now, first, &TimeZone::UTC)?);
        text.as_ref().map(resolve).transpose()
    };
    let start = moment(&args.start).context("--start")?.unwrap_or(first);
    let duration: Option<SimDuration> =
        simulation.spec.duration.as_deref().map(|text| text.parse().context("spec.duration")).transpose()?;
    let asked = moment(&args.end).context("--end")?.or(duration.map(|duration| start + duration));
    let end = asked.unwrap_or(last);
    if start < first || end < start || (asked.is_some() && end == start) {
        bail!("the part to replay is empty or outside: it is from {start} to {end}, the trace from {first} to {last}");
    }
    Ok(Window { start, end, includes_end: asked.is_none() })
}

fn options(args: &RunArgs, simulation: &Simulation, window: Window, repetition: u32) -> Result<Options> {
    Ok(Options {
        repetition,
        window,
        seed: args.seed,
        stop_on_refusal: args.stop_on_refusal,
        listed: args.also.iter().cloned().collect::<BTreeSet<_>>(),
        webhook: webhook(args, simulation)?,
        destination: destination(args, simulation, repetition)?,
        in_cluster: args.file.is_none(),
        allow_hooks: args.file.is_some() || args.allow_hooks,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        stop_within: Duration::from_secs(args.stop_within),
    })
}

fn webhook(args: &RunArgs, simulation: &Simulation) -> Result<Webhook> {
    let all = |port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    if let Some(folder) = std::env::var_os(names::ENV_CERT_DIR) {
        let bind = args.bind.unwrap_or(all(simulation.spec.driver.port));
        return Ok(Webhook::Installed {
            certificate: folder.into(),
            bind,
            patience: Duration::from_secs(args.webhook_within),
        });
    }
    let url = match &args.webhook_url {
        Some(url) => url.clone(),
        None => match own_address().context("this host has no address; give --webhook-url")? {
            IpAddr::V4(address) => format!("https://{address}"),
            IpAddr::V6(address) => format!("https://[{address}]"),
        },
    };
    let port = url::Url::parse(&url).ok().and_then(|url| url.port()).unwrap_or(0);
    Ok(Webhook::Own { bind: args.bind.unwrap_or(all(port)), url })
}

/// The address from which this host would speak to others. Connecting a UDP socket sends nothing; the address is one
/// that is only for documentation (RFC 5737).
fn own_address() -> std::io::Result<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
    Ok(socket.local_addr()?.ip())
}

fn destination(args: &RunArgs, simulation: &Simulation, repetition: u32) -> Result<Destination> {
    let one_of_many = (simulation.spec.repetitions > 1).then_some(repetition);
    let in_folder = |folder: &Path| match one_of_many {
        Some(repetition) => Destination::Folder(folder.join(repetition.to_string())),
        None => Destination::Folder(folder.to_owned()),
    };
    if let Some(folder) = &args.out {
        return Ok(in_folder(folder));
    }
    if let Some(path) = &simulation.spec.record.path {
        return Ok(Destination::at(path, one_of_many)?);
    }
    match controller() {
        Some(controller) => Ok(Destination::Controller(controller)),
        None => Ok(in_folder(&Path::new("runs").join(simulation.metadata.name.as_deref().unwrap_or("run")))),
    }
}

/// The controller, if it started this driver.
fn controller() -> Option<Controller> {
    let file = |name: &str| std::env::var_os(name).map(PathBuf::from);
    Some(Controller {
        url: std::env::var(names::ENV_RECORDS_URL).ok()?,
        ca: file(names::ENV_RECORDS_CA)?,
        token: file(names::ENV_RECORDS_TOKEN)?,
    })
}

/// Sends the end of the log to the controller whenever there is something new, until it is dropped.
async fn send_log_again_and_again(simulation: Option<String>, lines: LastLines) {
    let (Some(controller), Some(name)) = (controller(), simulation) else { return };
    let mut sent = 0;
    loop {
        tokio::time::sleep(LOG_EVERY).await;
        let written = lines.written();
        if written == sent {
            continue;
        }
        match controller.send_log_once(&name, lines.text()).await {
            Ok(()) => sent = written,
            // The next one brings it along; a line in the log each time would be what is new in it.
            Err(problem) => tracing::debug!("the log was not sent: {problem}"),
        }
    }
}

/// Sends the end of the log to the controller. There is nobody to tell if that fails but the log itself.
async fn send_log(args: &RunArgs, lines: &LastLines, patience: &Patience) {
    let (Some(controller), Some(name)) = (controller(), &args.simulation) else { return };
    if let Err(error) = controller.send_log(name, lines.text(), patience).await {
        tracing::warn!("{error}");
    }
}

/// Leaves the reason of a failure where Kubernetes looks for it.
fn leave_last_words(words: &str) {
    let named = std::env::var_os(names::ENV_TERMINATION_LOG).map(PathBuf::from);
    let file = named.or_else(|| Some(PathBuf::from(TERMINATION_LOG)).filter(|file| file.exists()));
    let Some(file) = file else { return };
    let cut = (0..=TERMINATION_BYTES.min(words.len())).rev().find(|end| words.is_char_boundary(*end)).unwrap_or(0);
    if let Err(error) = std::fs::write(&file, &words[..cut]) {
        tracing::warn!("cannot write {}: {error}", file.display());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(words: &[&str]) -> RunArgs {
        let Command::Run(args) = Cli::try_parse_from(["sk-driver", "run"].iter().chain(words)).unwrap().command;
        *args
    }

    fn simulation(spec: &serde_json::Value) -> Simulation {
        let mut json = json!({
            "apiVersion": "simkube.io/v1", "kind": "Simulation", "metadata": {"name": "s"},
            "spec": {"driver": {"tracePath": "/t"}},
        });
        json["spec"].as_object_mut().unwrap().extend(spec.as_object().cloned().unwrap());
        serde_json::from_value(json).unwrap()
    }

    /// An hour from 09:00.
    fn trace() -> Trace {
        let text = "{\"simkube\":\"trace\",\"version\":1,\"config\":{\"trackedObjects\":{}}}\n\
                    {\"at\":\"2026-01-05T09:00:00Z\",\"mark\":\"moment\"}\n{\"at\":\"2026-01-05T10:00:00Z\",\"mark\":\"moment\"}\n";
        sk_store::trace::from_bytes("test", text.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn the_part_to_replay_is_the_whole_trace_unless_told() {
        let of = |words: &[&str], spec| {
            let words: Vec<_> = ["-f", "x"].iter().chain(words).copied().collect();
            window(&parse(&words), &simulation(&spec), &trace()).map(|window| {
                let Window { start, end, includes_end } = window;
                format!("{} {} {includes_end}", &start.to_rfc3339_secs()[11..16], &end.to_rfc3339_secs()[11..16])
            })
        };
        assert_eq!(of(&[], json!({})).unwrap(), "09:00 10:00 true");
        assert_eq!(of(&["-s", "+30m"], json!({"duration": "10m"})).unwrap(), "09:30 09:40 false");
        assert_eq!(of(&["--end", "+30m"], json!({"duration": "10m"})).unwrap(), "09:00 09:30 false");
        for (words, duration) in [(["-s", "2026-01-05T08:00:00Z"], "1h"), (["-t", "2026-01-05T08:00:00Z"], "1h")] {
            let error = of(&words, json!({"duration": duration})).unwrap_err().to_string();
            assert!(error.contains("empty or outside"), "{error}");
        }
    }

    #[test]
    fn the_record_goes_where_it_was_asked_to_and_each_repetition_has_its_own_place() {
        let to = |words: &[&str], spec| {
            let words: Vec<_> = ["-f", "x"].iter().chain(words).copied().collect();
            match destination(&parse(&words), &simulation(&spec), 1).unwrap() {
                Destination::Folder(folder) => folder.display().to_string(),
                Destination::Store(place) => place,
                Destination::Controller(controller) => controller.url,
            }
        };
        assert_eq!(to(&["--out", "o"], json!({"record": {"path": "/p"}})), "o");
        assert_eq!(to(&[], json!({"record": {"path": "s3://b/p"}, "repetitions": 2})), "s3://b/p/1");
        assert_eq!(to(&[], json!({"repetitions": 2})), "runs/s/1");
    }

    #[test]
    fn a_simulation_comes_from_the_cluster_or_from_a_file_and_not_from_both() {
        for words in [&["run", "-f", "x", "--simulation", "y"][..], &["run"], &["run", "-f", "x", "--also", "Role"]] {
            assert!(Cli::try_parse_from(["sk-driver"].iter().chain(words)).is_err(), "{words:?}");
        }
        let missing = read_simulation(Path::new("no-such.yaml")).unwrap_err();
        assert!(format!("{missing:#}").contains("no-such.yaml"));
    }

    #[test]
    fn hooks_of_a_file_are_the_users_own_and_those_of_a_cluster_need_leave() {
        let allowed = |words: &[&str]| {
            let words: Vec<_> = words.iter().chain(&["--webhook-url", "https://h"]).copied().collect();
            let (start, end) = trace().span().unwrap();
            let window = Window { start, end, includes_end: true };
            options(&parse(&words), &simulation(&json!({})), window, 0).unwrap().allow_hooks
        };
        assert!(allowed(&["-f", "x"]));
        assert!(!allowed(&["--simulation", "s"]));
        assert!(allowed(&["--simulation", "s", "--allow-hooks"]));
    }

    #[tokio::test]
    async fn the_last_words_begin_with_a_reason() {
        let opened = |place: &str| {
            let location: Location = place.parse().unwrap();
            anyhow::Error::from(location.open().unwrap_err()).context("cannot read the trace")
        };
        assert_eq!(reason(&opened("no-such.sktrace")), "TraceMissing");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.sktrace");
        std::fs::write(&file, "").unwrap();
        assert_eq!(reason(&opened(&file.display().to_string())), "TraceUnreadable");
        assert_eq!(reason(&cluster::RunError::HooksNotAllowed.into()), "HooksNotAllowed");
        assert_eq!(reason(&anyhow::anyhow!("something else")), "DriverFailed");
    }

    #[test]
    fn a_simulation_that_stands_still_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.yaml");
        for (speed, fits) in [("2.5", true), ("0", false), ("-1", false), (".inf", false)] {
            let text = format!(
                "apiVersion: simkube.io/v1\nkind: Simulation\nmetadata: {{name: s}}\nspec: {{driver: {{tracePath: /t}}, speed: {speed}}}\n"
            );
            std::fs::write(&file, text).unwrap();
            assert_eq!(read_simulation(&file).is_ok(), fits, "{speed}");
        }
    }
}
