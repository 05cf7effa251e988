//! The child process: sets its limits, then answers requests until the parent closes the pipe.

use std::io::{self, BufReader, Write};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use crate::frame;

/// The first argument of a program that was started to evaluate; its role, memory and stack follow. Users never type
/// it.
pub const ARGUMENT: &str = "__evaluate";

/// How often a child looks whether its parent is still there.
const LOOK: Duration = Duration::from_millis(200);

/// The role in which this process was started to evaluate something; nothing for every other process.
pub fn role() -> Option<String> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == ARGUMENT).then(|| arguments.next().unwrap_or_default().to_string_lossy().into_owned())
}

/// Answers requests until the parent closes the pipe, within the limits on the command line.
pub fn serve(answer: impl FnMut(&[u8]) -> Vec<u8> + Send + 'static) -> ExitCode {
    let number = |place: usize| std::env::args().nth(place).and_then(|text| text.parse::<u64>().ok());
    let (Some(memory), Some(stack)) = (number(3), number(4).and_then(|stack| usize::try_from(stack).ok())) else {
        return ExitCode::from(2);
    };
    if let Err(error) = limit_memory(memory) {
        return fail(&error);
    }
    let started = thread::Builder::new().spawn(end_with_the_parent).and_then(|_| {
        let answers = move || answer_all(answer);
        thread::Builder::new().stack_size(stack).spawn(answers)
    });
    match started.map(thread::JoinHandle::join) {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        Ok(Ok(Err(error))) | Err(error) => fail(&error),
        // The panic has written its message to standard error.
        Ok(Err(_)) => ExitCode::from(101),
    }
}

fn answer_all(mut answer: impl FnMut(&[u8]) -> Vec<u8>) -> io::Result<()> {
    let mut from = BufReader::new(io::stdin());
    let mut to = io::BufWriter::new(io::stdout());
    while let Some(request) = frame::read(&mut from)? {
        frame::write(&mut to, &answer(&request))?;
    }
    to.flush()
}

fn fail(error: &io::Error) -> ExitCode {
    eprintln!("{error}");
    ExitCode::from(2)
}

#[cfg(unix)]
fn limit_memory(bytes: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = |resource, most: u64| {
        let maximum = getrlimit(resource).maximum;
        let most = maximum.map_or(most, |maximum| most.min(maximum));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
    };
    limit(Resource::As, bytes)?;
    // What ends for want of memory or stack leaves no image of itself behind.
    Ok(limit(Resource::Core, 0)?)
}

#[cfg(not(unix))]
fn limit_memory(_bytes: u64) -> io::Result<()> {
    Ok(())
}

/// When its parent is killed, the child gets a new parent, and exits.
#[cfg(unix)]
fn end_with_the_parent() {
    let parent = rustix::process::getppid();
    while rustix::process::getppid() == parent {
        thread::sleep(LOOK);
    }
    std::process::exit(1);
}

#[cfg(not(unix))]
fn end_with_the_parent() {
    thread::sleep(LOOK);
}
