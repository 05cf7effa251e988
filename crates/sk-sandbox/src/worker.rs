//! The parent's side: starts the child, sends it requests, and kills it when it takes too long or the command is
//! interrupted.

use std::io::{self, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::child::ARGUMENT;
use crate::{Limits, frame};

/// How often the parent checks the clock and for an interruption.
const LOOK: Duration = Duration::from_millis(20);
/// Of what a child says when it ends, so much is read: a panic with its place.
const MAX_LAST_WORDS: u64 = 4 << 10;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// It took too long.
    #[error("evaluating it takes more than {} s", .0.as_secs_f64())]
    Time(Duration),
    /// It asked for too much memory.
    #[error("evaluating it takes more than {} MiB of memory", .0 >> 20)]
    Memory(u64),
    /// It called itself too often.
    #[error("evaluating it takes more than {} MiB of stack: it calls itself too often", .0 >> 20)]
    Stack(usize),
    /// The caller does not want the answer any more.
    #[error("interrupted")]
    Interrupted,
    /// The interpreter crashed: a bug, which ended only the child.
    #[error("evaluating it broke off: {0}; please report this")]
    Broke(String),
    /// The child could not be started or talked to.
    #[error("cannot evaluate it in a process of its own: {0}")]
    Io(#[from] io::Error),
}

/// A child that evaluates one thing after the other.
pub struct Worker {
    limits: Limits,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    last_words: ChildStderr,
    watched: Arc<Mutex<Watched>>,
    watcher: Option<JoinHandle<()>>,
}

/// What the watchdog thread reads.
struct Watched {
    child: Child,
    deadline: Option<Instant>,
    /// Why it was killed, if it was.
    killed: Option<Killed>,
    done: bool,
}

#[derive(Clone, Copy)]
enum Killed {
    Late,
    Interrupted,
}

impl Worker {
    /// Starts this program again in a role. `is_interrupted` is asked now and then while an answer is awaited.
    pub fn start(
        role: &str,
        limits: Limits,
        is_interrupted: impl Fn() -> bool + Send + 'static,
    ) -> Result<Self, Stopped> {
        let mut child = Command::new(this_program()?)
            .args([ARGUMENT, role, &limits.memory_bytes.to_string(), &limits.stack_bytes.to_string()])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(to), Some(from), Some(last_words)) = pipes else {
            return Err(io::Error::other("the child has no pipes").into());
        };
        let watched = Arc::new(Mutex::new(Watched { child, deadline: None, killed: None, done: false }));
        let watcher = thread::Builder::new().spawn({
            let watched = watched.clone();
            move || watch(&watched, is_interrupted)
        })?;
        Ok(Self { limits, to, from: BufReader::new(from), last_words, watched, watcher: Some(watcher) })
    }

    /// Sends a request and returns the response. After an error the child has ended.
    pub fn ask(&mut self, request: &[u8]) -> Result<Vec<u8>, Stopped> {
        lock(&self.watched).deadline = Some(Instant::now() + self.limits.time);
        // A child that ends while it is asked breaks the pipe; why it ended is the better answer.
        let asked = frame::write(&mut self.to, request);
        let answer = asked.and_then(|()| frame::read(&mut self.from));
        lock(&self.watched).deadline = None;
        match answer {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(self.why_it_ended()?),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(self.why_it_ended()?),
            Err(error) => Err(error.into()),
        }
    }

    fn why_it_ended(&mut self) -> io::Result<Stopped> {
        let mut said = Vec::new();
        (&mut self.last_words).take(MAX_LAST_WORDS).read_to_end(&mut said)?;
        let said = String::from_utf8_lossy(&said);
        let mut watched = lock(&self.watched);
        let status = watched.child.wait()?;
        Ok(match watched.killed {
            Some(Killed::Late) => Stopped::Time(self.limits.time),
            Some(Killed::Interrupted) => Stopped::Interrupted,
            None if said.contains("overflowed its stack") => Stopped::Stack(self.limits.stack_bytes),
            None if said.contains("memory allocation") => Stopped::Memory(self.limits.memory_bytes),
            None if is_interrupted(status) => Stopped::Interrupted,
            None => Stopped::Broke(said.lines().next().map_or_else(|| status.to_string(), str::to_owned)),
        })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let mut watched = lock(&self.watched);
        watched.done = true;
        // It may have ended by itself; then there is nothing to kill and only its status to be taken.
        let _ = watched.child.kill();
        let _ = watched.child.wait();
        drop(watched);
        if let Some(watcher) = self.watcher.take() {
            watcher.thread().unpark();
            let _ = watcher.join();
        }
    }
}

fn watch(watched: &Mutex<Watched>, is_interrupted: impl Fn() -> bool) {
    loop {
        thread::park_timeout(LOOK);
        let mut watched = lock(watched);
        if watched.done {
            return;
        }
        let late = watched.deadline.is_some_and(|deadline| Instant::now() > deadline);
        let reason = if late { Some(Killed::Late) } else { is_interrupted().then_some(Killed::Interrupted) };
        if let Some(reason) = reason.filter(|_| watched.killed.is_none()) {
            watched.killed = Some(reason);
            // It fails only for a child that has ended already.
            let _ = watched.child.kill();
        }
    }
}

fn lock(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The running program's own file, also if its path has been replaced since.
fn this_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

/// Ctrl-C in a terminal also reaches the child.
#[cfg(unix)]
fn is_interrupted(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    const INTERRUPT: i32 = 2;
    const TERMINATE: i32 = 15;
    matches!(status.signal(), Some(INTERRUPT | TERMINATE))
}

#[cfg(not(unix))]
fn is_interrupted(_status: ExitStatus) -> bool {
    false
}
