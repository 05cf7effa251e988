//! A child process that ends when we do, however we end.
//!
//! Every process is run by `guard` (tools/control-plane/cmd/guard), which holds it on a leash: a pipe from us to
//! guard. When the pipe closes, because a test dropped the process, panicked, or was itself killed with SIGKILL, guard
//! kills the process. `unsafe` code and its `pre_exec` are forbidden here, and could not outlive SIGKILL as portably.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long guard may take to end itself and its program after the leash is cut: SIGKILL is quick, two busy cores not.
const END_LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// What is to be run.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The guard binary.
    pub(crate) guard: PathBuf,
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
    /// Environment variables besides ours.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Where it runs; here unless told.
    pub(crate) folder: Option<PathBuf>,
    /// Where its output is appended.
    pub(crate) log: PathBuf,
    /// How long it may take to end when it is asked to.
    pub(crate) grace: Duration,
}

/// A running program on its leash.
#[derive(Debug)]
pub(crate) struct Guarded {
    guard: Child,
    leash: Option<ChildStdin>,
}

impl Program {
    /// Starts it.
    pub(crate) fn start(&self) -> io::Result<Guarded> {
        let log = open_log(&self.log)?;
        let mut command = Command::new(&self.guard);
        command
            .args(["-grace", &format!("{}ms", self.grace.as_millis())])
            .args(&self.command)
            .envs(self.env.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        let mut guard = command.spawn()?;
        let leash = guard.stdin.take();
        Ok(Guarded { guard, leash })
    }
}

impl Guarded {
    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.guard.try_wait().expect("guard is our child, and nobody else waits for it")
    }

    /// Waits until it ends by itself or by what it was told.
    pub(crate) async fn wait(&mut self) -> ExitStatus {
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Asks it to end (SIGTERM); it is killed if it takes longer than its grace.
    pub(crate) fn ask_to_end(&mut self) {
        self.order("stop");
    }

    /// Kills it (SIGKILL).
    pub(crate) fn kill(&mut self) {
        self.order("kill");
    }

    fn order(&mut self, order: &str) {
        // A leash that cannot be written to has no program at its end any more.
        if let Some(leash) = &mut self.leash {
            let _ = writeln!(leash, "{order}");
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.leash = None;
        let cut = Instant::now();
        while self.ended().is_none() {
            if cut.elapsed() > END_LIMIT {
                // Guard does not answer. Its own death makes the kernel kill the program.
                let _ = self.guard.kill();
                let _ = self.guard.wait();
                return;
            }
            std::thread::sleep(POLL);
        }
    }
}

fn open_log(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}
