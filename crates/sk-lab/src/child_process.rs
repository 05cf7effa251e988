//! A child process that dies with its parent, however the parent ends.
//!
//! There are two ways. In tests, `guard` (tools/control-plane/cmd/guard) runs every process; it reads commands from a
//! pipe and kills the program when the pipe closes, also when the test was killed with SIGKILL. `skctl lab` has no such
//! program, and starts itself instead ([`become_program`]): it writes a pid file, asks the kernel for a signal when its
//! parent dies (Linux), and executes the program. On other systems the pid file tells `skctl lab down` what is left.
//! `unsafe` code and `pre_exec` are forbidden here.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getppid, kill_process};

use crate::pid_file::Named;

/// How long guard may take to end itself and its program after its pipe closes: SIGKILL is quick, two busy cores not.
const END_LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// How a child process is kept from outliving us.
#[derive(Clone, Debug)]
pub enum Supervision {
    /// By the guard program at this path.
    Guard(PathBuf),
    /// By a program of ours that calls [`become_program`].
    PidFile {
        /// The program and its first words; `PID-FILE PARENT PROGRAM [ARGUMENT…]` follow.
        launcher: Vec<OsString>,
        /// Where pid files go.
        folder: PathBuf,
    },
}

/// The program to run.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) supervision: Supervision,
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
    /// Environment variables besides ours.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Its working directory; by default ours.
    pub(crate) folder: Option<PathBuf>,
    /// Where its output is appended; the file's name is the process's too.
    pub(crate) log: PathBuf,
    /// How long it may take to end when it is asked to.
    pub(crate) grace: Duration,
}

/// A running child process.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    process: Child,
    hold: Hold,
    grace: Duration,
    /// When one that was asked to end is killed.
    deadline: Option<Instant>,
}

#[derive(Debug)]
enum Hold {
    /// The pipe to guard; `None` once it is closed.
    Pipe(Option<ChildStdin>),
    /// We are the parent ourselves.
    Parent { pid_file: PathBuf },
}

impl Program {
    pub(crate) fn start(&self) -> io::Result<ChildProcess> {
        let log = open_log(&self.log)?;
        let (mut command, stdin, pid_file) = match &self.supervision {
            Supervision::Guard(guard) => {
                let mut command = Command::new(guard);
                command.args(["-grace", &format!("{}ms", self.grace.as_millis())]);
                (command, Stdio::piped(), None)
            }
            Supervision::PidFile { launcher, folder } => {
                let name = self.log.file_stem().unwrap_or_else(|| OsStr::new("program")).to_string_lossy();
                let pid_file = folder.join(format!("{name}.json"));
                let (program, words) = launcher.split_first().ok_or_else(|| io::Error::other("no launcher"))?;
                let mut command = Command::new(program);
                command.args(words).arg(&pid_file).arg(std::process::id().to_string());
                // A group of its own: Ctrl-C is for whoever holds the terminal.
                command.process_group(0);
                (command, Stdio::null(), Some(pid_file))
            }
        };
        command.args(&self.command).envs(self.env.iter().cloned()).stdin(stdin).stdout(log.try_clone()?).stderr(log);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        let mut process = command.spawn()?;
        let hold = match pid_file {
            Some(pid_file) => Hold::Parent { pid_file },
            None => Hold::Pipe(process.stdin.take()),
        };
        Ok(ChildProcess { process, hold, grace: self.grace, deadline: None })
    }
}

impl ChildProcess {
    /// Its exit status, if it has ended. Kills it if its grace period is over.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.process.try_wait().expect("it is our child, and nobody else waits for it");
        if status.is_none() && self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            self.kill();
        }
        status
    }

    /// Waits until it ends.
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
        match &mut self.hold {
            Hold::Pipe(pipe) => order(pipe.as_mut(), "stop"),
            Hold::Parent { .. } => {
                self.deadline = Some(Instant::now() + self.grace);
                // It is not reaped, so that its number is nobody else's; one that has ended takes no signal.
                if let Some(pid) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw) {
                    let _ = kill_process(pid, Signal::TERM);
                }
            }
        }
    }

    /// Kills it (SIGKILL).
    pub(crate) fn kill(&mut self) {
        match &mut self.hold {
            Hold::Pipe(pipe) => order(pipe.as_mut(), "kill"),
            // What has ended cannot be killed, and need not be.
            Hold::Parent { .. } => drop(self.process.kill()),
        }
    }
}

/// Writes a command to guard. A pipe that cannot be written to has no process at its end any more.
fn order(pipe: Option<&mut ChildStdin>, order: &str) {
    if let Some(pipe) = pipe {
        let _ = writeln!(pipe, "{order}");
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        match &mut self.hold {
            Hold::Pipe(pipe) => *pipe = None,
            Hold::Parent { .. } => drop(self.process.kill()),
        }
        let cut = Instant::now();
        while self.process.try_wait().is_ok_and(|status| status.is_none()) {
            if cut.elapsed() > END_LIMIT {
                // Guard does not answer. Its own death makes the kernel kill the program.
                let _ = self.process.kill();
                let _ = self.process.wait();
                break;
            }
            std::thread::sleep(POLL);
        }
        if let Hold::Parent { pid_file } = &self.hold {
            let _ = std::fs::remove_file(pid_file);
        }
    }
}

/// Turns this process into a program: writes the pid file, and from then on it ends with its parent, where the kernel sees
/// to that. Returns only if that fails.
pub fn become_program(pid_file: &Path, parent: i32, command: &[OsString]) -> io::Error {
    let Some((program, arguments)) = command.split_first() else { return io::Error::other("there is no program") };
    match leave_name(pid_file, parent, program) {
        Ok(()) => Command::new(program).args(arguments).exec(),
        Err(error) => error,
    }
}

fn leave_name(pid_file: &Path, parent: i32, program: &OsStr) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // Asked only now: a parent that died before the line above would not be noticed by the kernel.
    if getppid().is_none_or(|now| now.as_raw_nonzero().get() != parent) {
        return Err(io::Error::other("the parent of this process has ended"));
    }
    Named::this(&program.to_string_lossy())?.write(pid_file)
}

fn open_log(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}
