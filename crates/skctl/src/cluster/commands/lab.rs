//! `skctl lab up|down|status`: a throw-away cluster on this machine.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::Parser;
use serde_json::json;

use crate::cli::{Global, LabCommand, LabStatusArgs, TableFormat};
use crate::cluster::lab::place::{Process, Ready};
use crate::cluster::lab::{Place, serve};
use crate::failure::Outcome;
use crate::output;
use crate::progress::Progress;

/// How long a lab may take to be ready: seconds on an idle machine, minutes on a busy one. What fails says so itself.
const START_LIMIT: Duration = Duration::from_secs(900);
const POLL: Duration = Duration::from_millis(100);
/// The components that a lab is not whole without.
const COMPONENTS: [&str; 5] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"];

pub(crate) fn run(command: &LabCommand, global: &Global) -> Result<Outcome> {
    match command {
        LabCommand::Up(args) => up(&Place::new(args.dir.as_deref())?, global),
        LabCommand::Down(args) => down(&Place::new(args.dir.as_deref())?, global),
        LabCommand::Status(args) => status(&Place::new(args.place.dir.as_deref())?, args),
        LabCommand::Serve(args) => serve::serve(&Place::new(args.dir.as_deref())?, global),
        LabCommand::Exec(words) => exec(&words.words),
        LabCommand::Ctrl(_) | LabCommand::Driver(_) => {
            bail!("internal error: sk-ctrl and sk-driver are started by `program`")
        }
    }
}

/// The controller or a driver, if this process is to be one: they have their own flags, logs and exit codes.
pub(crate) fn program(command: &LabCommand) -> Option<ExitCode> {
    let named = |name: &str, words: &[OsString]| -> Vec<OsString> {
        std::iter::once(name.into()).chain(words.iter().cloned()).collect()
    };
    match command {
        LabCommand::Ctrl(words) => Some(controller(named("sk-ctrl", &words.words))),
        LabCommand::Driver(words) => Some(sk_driver::cli::start(named("sk-driver", &words.words))),
        _ => None,
    }
}

fn controller(words: Vec<OsString>) -> ExitCode {
    let arguments = sk_ctrl::cli::Arguments::parse_from(words);
    let runtime = tokio::runtime::Runtime::new().context("cannot start the controller's threads");
    match runtime.and_then(|runtime| runtime.block_on(sk_ctrl::cli::run(arguments))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error:?}");
            ExitCode::FAILURE
        }
    }
}

/// Becomes one of a lab's programs.
fn exec(words: &[OsString]) -> Result<Outcome> {
    let [pid_file, parent, command @ ..] = words else { bail!("a pid file, a parent and a program are needed") };
    let parent = parent.to_string_lossy().parse().context("the parent's number")?;
    Err(anyhow!(sk_lab::child_process::become_program(Path::new(pid_file), parent, command))
        .context("cannot start the program"))
}

fn up(place: &Place, global: &Global) -> Result<Outcome> {
    if place.supervisor()?.is_some() {
        if let Some(ready) = place.ready()? {
            output::say(global, "the lab is already up");
            output::print(&how_to_use(&ready))?;
            return Ok(Outcome::Good);
        }
        bail!("a lab in {} is starting; wait for it, or stop it with `skctl lab down`", place.folder().display());
    }
    if place.is_lab() {
        let forced = place.end()?;
        output::say(global, &format!("removed what was left of an earlier lab, and killed {forced} processes"));
    }
    serve::check_programs()?;
    place.make()?;
    let progress =
        Progress::of_unknown_length("starting a control plane, KWOK and the controller".to_owned(), global.quiet)?;
    let began = Instant::now();
    let mut supervisor = start_supervisor(place)?;
    let ready = loop {
        if let Some(ready) = place.ready()? {
            break ready;
        }
        if let Some(status) = supervisor.try_wait()? {
            let words = place.why_it_ended();
            let _ = place.end();
            bail!("the lab did not start ({status}): {words}");
        }
        if progress.at(0, String::new).is_break() {
            place.end()?;
            return Ok(Outcome::Interrupted);
        }
        if began.elapsed() > START_LIMIT {
            bail!("the lab is not ready after {START_LIMIT:?}; its logs are in {}", place.folder().display());
        }
        std::thread::sleep(POLL);
    };
    drop(progress);
    output::say(
        global,
        &format!("ready after {:.0} s; logs in {}", began.elapsed().as_secs_f64(), place.folder().display()),
    );
    output::print(&how_to_use(&ready))?;
    Ok(Outcome::Good)
}

fn start_supervisor(place: &Place) -> Result<Child> {
    let log = OpenOptions::new().create(true).append(true).open(place.log()).context("cannot write the lab's log")?;
    Command::new(std::env::current_exe()?)
        .args(["lab", "serve", "--dir"])
        .arg(place.folder())
        .current_dir(place.folder())
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("cannot start the lab's supervisor")
}

fn how_to_use(ready: &Ready) -> String {
    let Ready { kubeconfig, kubernetes } = ready;
    format!(
        "Kubernetes {kubernetes} with KWOK and the controller, context {}\n\
         export KUBECONFIG={}\n\n\
         try  skctl nodes apply -f example:nginx --set cluster.groups.small.min=10\n     \
         skctl run example:nginx --cluster --speed 60\n     \
         skctl lab down\n",
        serve::NAME,
        kubeconfig.display()
    )
}

fn down(place: &Place, global: &Global) -> Result<Outcome> {
    if !place.is_lab() {
        output::say(global, &format!("there is no lab in {}", place.folder().display()));
        return Ok(Outcome::Good);
    }
    let forced = place.end()?;
    let note = match forced {
        0 => String::new(),
        some => format!("; killed {some} processes that had no supervisor"),
    };
    output::print(&format!("stopped the lab and deleted {}{note}\n", place.folder().display()))?;
    Ok(Outcome::Good)
}

fn status(place: &Place, args: &LabStatusArgs) -> Result<Outcome> {
    let (ready, processes) = (place.ready()?, place.processes()?);
    let is_up = ready.is_some() && is_whole(&processes);
    match args.output {
        TableFormat::Json => output::print_json(&json!({
            "up": is_up, "folder": place.folder(), "ready": ready, "processes": processes,
        }))?,
        TableFormat::Table => output::print(&table(place, ready.as_ref(), is_up, &processes))?,
    }
    Ok(if is_up { Outcome::Good } else { Outcome::Bad })
}

/// Are the supervisor and all components alive?
fn is_whole(processes: &[Process]) -> bool {
    let lives = |name: &str| processes.iter().any(|process| process.name == name && process.is_alive);
    lives("lab") && COMPONENTS.iter().all(|name| lives(name))
}

fn table(place: &Place, ready: Option<&Ready>, is_up: bool, processes: &[Process]) -> String {
    let folder = place.folder().display();
    let head = match (is_up, ready) {
        (true, Some(ready)) => format!("up: Kubernetes {}, {}\n", ready.kubernetes, ready.kubeconfig.display()),
        _ if processes.is_empty() => return format!("there is no lab in {folder}; skctl lab up starts one\n"),
        (_, None) => format!("not ready yet, or its start failed; {} says more\n", place.log().display()),
        _ => format!("broken: some of it has ended; logs are in {folder}; skctl lab down removes the rest\n"),
    };
    let lines = processes.iter().map(|process| {
        let state = if process.is_alive { "running" } else { "ended" };
        format!("{state:<8} {:<8} {}\n", process.pid, process.name)
    });
    std::iter::once(head).chain(lines).collect()
}
