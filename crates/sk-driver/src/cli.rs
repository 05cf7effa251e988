//! The commands of `sk-driver`: `sk-driver run`, in a cluster by the controller, or anywhere by a person.

mod arguments;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use jiff::tz::TimeZone;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use sk_api::simulation::{Simulation, names};
use sk_core::duration::TimeSpec;
use sk_core::{SimDuration, SimTime};
use sk_report::terminal::Occasion;
use sk_report::verdict::Exit;
use sk_store::Location;
use sk_store::location::shown;
use sk_store::trace::{OpenError, Trace};
use tokio::signal::unix::{SignalKind, signal};

use self::arguments::{Cli, Command, RunArgs};
use crate::cluster::controller::ControllerError;
use crate::cluster::counters::Counters;
use crate::cluster::request::{RetryPolicy, with_retries};
use crate::cluster::{self, Controller, Destination, Judge, Judged, Options, Outcome, Repetitions, Stop, Webhook};
use crate::log::LastLines;
use sk_replay::plan::Window;

/// Exit codes: judged and bad, could not judge, interrupted.
const BAD: u8 = 1;
const FAILED: u8 = 2;
const INTERRUPTED: u8 = 130;
/// The termination message path of a container; Kubernetes reads 4 KiB of it.
const TERMINATION_LOG: &str = "/dev/termination-log";
const TERMINATION_BYTES: usize = 4096;
/// A Simulation is a few kilobytes, and so is a scenario.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// How often the log is sent to the controller, so that it survives a killed driver.
const LOG_EVERY: Duration = Duration::from_secs(10);
/// After a stop, the log may take so much longer than everything else.
const LOG_GRACE: Duration = Duration::from_secs(5);

/// Runs the program with these words, of which the first is its name.
pub fn start(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    if let Some(evaluated) = sk_sandbox::assertions::serve() {
        return evaluated;
    }
    let cli = Cli::parse_from(words);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("sk-driver: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(main(cli));
    // A thread that still fetches or sends something is not waited for: the driver may have been asked to stop.
    runtime.shutdown_background();
    code
}

async fn main(cli: Cli) -> ExitCode {
    let Command::Run(args) = cli.command;
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
    send_log(&args, &lines, &RetryPolicy::new(&Counters::default(), &stop, grace)).await;
    ExitCode::from(code)
}

/// The reason of a run that was stopped by a signal.
const SIGNALLED: &str = "the driver was asked to stop; the record is partial";

/// How a run ended that did not fail.
#[derive(Debug, Default)]
struct Ended {
    /// Why it was stopped, if it was.
    stopped: Option<String>,
    /// The assertions that do not hold, with the figures that say so.
    broken: Vec<String>,
}

/// The exit code and the termination message.
fn verdict(ended: Result<Ended>, stopped: Option<&str>) -> (u8, Option<String>) {
    let was_signalled = stopped == Some(SIGNALLED);
    match ended {
        Ok(Ended { stopped: Some(why), .. }) if was_signalled => (INTERRUPTED, Some(format!("Interrupted: {why}"))),
        Ok(Ended { stopped: Some(why), .. }) => (BAD, Some(format!("Stopped: {why}"))),
        Ok(Ended { broken, .. }) if broken.is_empty() => (0, None),
        Ok(Ended { broken, .. }) => (BAD, Some(format!("AssertionFailed: {}", broken.join("; ")))),
        // What a stopped run could not do any more is no failure of its own.
        Err(error) if was_signalled => (INTERRUPTED, Some(format!("Interrupted: {SIGNALLED}; {error:#}"))),
        Err(error) => (FAILED, Some(format!("{}: {error:#}", reason(&error)))),
    }
}

/// The reason at the start of the termination message, which becomes the Simulation's reason.
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

/// Runs all repetitions that were asked for.
async fn run(args: &RunArgs, stop: &Stop) -> Result<Ended> {
    let client = connect(args).await?;
    let grace = Duration::from_secs(args.stop_within) / 10;
    let retry = RetryPolicy::new(&Counters::default(), stop, grace).in_need();
    let simulation = match (&args.file, &args.simulation) {
        (Some(file), _) => read_simulation(file)?,
        (None, Some(name)) => {
            let api: Api<Simulation> = Api::all(client.clone());
            let read = with_retries(&retry, || api.get(name)).await;
            read.with_context(|| format!("cannot read the Simulation {name}"))?
        }
        (None, None) => bail!("no Simulation given: use --simulation NAME or -f FILE"),
    };
    let trace = Arc::new(trace(args, &simulation, &retry).await?);
    let window = window(args, &simulation, &trace)?;
    let repetitions = match (args.repetition, args.file.is_some()) {
        (Some(repetition), _) => repetition..repetition + 1,
        (None, true) => 0..simulation.spec.repetitions,
        (None, false) => 0..1,
    };
    let judge = judge(args, &simulation, window, stop)?;
    let options = |repetition| options(args, &simulation, window, judge.clone(), repetition);
    let runs = Repetitions::take(client, &simulation, &options(repetitions.start)?, stop.clone()).await?;
    let last = repeat(&runs, &trace, repetitions.map(options)).await;
    let left = runs.end().await;
    let (ended, record) = last?;
    left.map_err(|error| cluster::RunError::LeftBehind { record, error: Box::new(error) })?;
    Ok(ended)
}

/// What the run is judged by: with a controller, whoever fetches the record judges it.
fn judge(args: &RunArgs, simulation: &Simulation, window: Window, stop: &Stop) -> Result<Option<Arc<Judge>>> {
    if args.file.is_none() {
        return Ok(None);
    }
    let file = args.scenario.as_deref().map(|file| anyhow::Ok((file.display().to_string(), read_text(file)?)));
    let file = file.transpose()?;
    let file = file.as_ref().map(|(name, text)| (name.as_str(), text.as_str()));
    let is_part = args.start.is_some() || args.end.is_some() || simulation.spec.duration.is_some();
    Ok(Some(Arc::new(Judge::new(simulation, file, is_part.then_some(window), stop)?)))
}

/// Runs one repetition after the other, until one is stopped. What they came to, and where the last one's record is.
async fn repeat(
    runs: &Repetitions<'_>,
    trace: &Arc<Trace>,
    repetitions: impl Iterator<Item = Result<Options>>,
) -> Result<(Ended, String)> {
    let (mut ended, mut last) = (Ended::default(), None);
    for options in repetitions {
        let outcome = runs.repeat(trace.clone(), &options?).await?;
        summarise(&outcome)?;
        if let Some(Judged { judgement, .. }) = &outcome.judged {
            let broken = judgement.verdicts.iter().filter(|verdict| verdict.is_failed());
            ended.broken.extend(broken.map(sk_report::Verdict::with_values));
            if judgement.exit() == Exit::Unjudged {
                let why = judgement.why_not_whole().unwrap_or_else(|| "an assertion cannot be evaluated".to_owned());
                bail!("the run cannot be judged: {why}; its record is {}", outcome.record);
            }
        }
        ended.stopped = outcome.stopped;
        last = Some(outcome.record);
        if ended.stopped.is_some() {
            break;
        }
    }
    Ok((ended, last.context("the simulation has no repetitions")?))
}

/// Opens the trace, wherever it is.
async fn trace(args: &RunArgs, simulation: &Simulation, retry: &RetryPolicy) -> Result<Trace> {
    let place = args.trace.as_deref().unwrap_or(&simulation.spec.driver.trace_path);
    if let Some(hash) = names::uploaded_trace(place) {
        let Some(controller) = controller() else {
            bail!(
                "{place} is a trace that was uploaded to a controller, and no controller started this driver; give --trace"
            )
        };
        let typed = simulation.metadata.annotations.as_ref().and_then(|all| all.get(names::TRACE_NAME_ANNOTATION));
        let name = typed.map_or(place, String::as_str);
        let fetched = controller.fetch_trace(hash, name, retry).await;
        return fetched.with_context(|| format!("cannot get the trace {name}"));
    }
    let location: Location = place.parse().context("the trace")?;
    let opening = tokio::task::spawn_blocking(move || location.open());
    let opened = tokio::select! {
        opened = opening => opened.context("the thread that reads the trace panicked")?,
        () = retry.over() => bail!("the trace {} was not read in time", shown(place)),
    };
    opened.with_context(|| format!("cannot read the trace {}", shown(place)))
}

/// Says what a repetition came to: how the replay went, and what the run is like if it was judged.
fn summarise(outcome: &Outcome) -> Result<()> {
    let Outcome { totals, record, judged, .. } = outcome;
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
    if let Some(Judged { analysis, judgement }) = judged {
        let report = format!("{record}/report.html");
        let occasion = Occasion { report: Some(&report), ..Occasion::default() };
        write!(anstream::stdout(), "\n{}", sk_report::terminal::render(analysis, judgement, &occasion))?;
    }
    Ok(())
}

async fn connect(args: &RunArgs) -> Result<Client> {
    let options = KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
    let config = match &args.kubeconfig {
        Some(file) => {
            let read = Kubeconfig::read_from(file).with_context(|| format!("cannot read {}", file.display()))?;
            Config::from_custom_kubeconfig(read, &options).await?
        }
        None if args.context.is_some() => Config::from_kubeconfig(&options).await?,
        None => Config::infer()
            .await
            .context("there is no cluster: this is not a pod, and there is no kubeconfig; give --kubeconfig")?,
    };
    tracing::info!(server = %config.cluster_url, "connecting");
    Ok(Client::try_from(config)?)
}

/// Reads a bounded text file.
fn read_text(file: &Path) -> Result<String> {
    let shown = file.display();
    let size = std::fs::metadata(file).with_context(|| format!("cannot read {shown}"))?.len();
    if size > MAX_FILE_BYTES {
        bail!("{shown} has {size} bytes, and such a file has at most {MAX_FILE_BYTES}");
    }
    std::fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))
}

fn read_simulation(file: &Path) -> Result<Simulation> {
    let (shown, text) = (file.display(), read_text(file)?);
    let simulation: Simulation =
        serde_saphyr::from_str(&text).with_context(|| format!("{shown} is not a Simulation"))?;
    let speed = simulation.spec.speed;
    if !(speed.is_finite() && speed > 0.0) {
        bail!("{shown}: the speed must be a number above 0, not {speed}");
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

fn options(
    args: &RunArgs,
    simulation: &Simulation,
    window: Window,
    judge: Option<Arc<Judge>>,
    repetition: u32,
) -> Result<Options> {
    Ok(Options {
        repetition,
        window,
        seed: args.seed,
        stop_on_refusal: args.stop_on_refusal,
        listed: args.also.iter().cloned().collect::<BTreeSet<_>>(),
        webhook: webhook(args, simulation)?,
        destination: destination(args, simulation, repetition)?,
        judge,
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
            retry: Duration::from_secs(args.webhook_within),
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
async fn send_log(args: &RunArgs, lines: &LastLines, retry: &RetryPolicy) {
    let (Some(controller), Some(name)) = (controller(), &args.simulation) else { return };
    if let Err(error) = controller.send_log(name, lines.text(), retry).await {
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
mod tests;
