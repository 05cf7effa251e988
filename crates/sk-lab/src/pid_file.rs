//! Pid files, and whether they still name the process that wrote them.
//!
//! After a crash and a reboot, the same pid can belong to another program. So a pid file also holds the start time of
//! the process, and a process is killed only if both agree. Nothing is ever killed by its name.

use std::fs;
use std::io;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

/// A process that was there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Its number.
    pub pid: i32,
    /// When it began, in the kernel's own words.
    pub began: String,
    /// The program that it is, for people.
    pub program: String,
}

impl Named {
    /// This process, which is or will be that program.
    pub fn this(program: &str) -> io::Result<Self> {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let began = began(pid)?.ok_or_else(|| io::Error::other("this process has no beginning"))?;
        Ok(Self { pid, began, program: program.to_owned() })
    }

    /// Reads a file; `None` if there is none.
    pub fn read(file: &Path) -> io::Result<Option<Self>> {
        match fs::read(file) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a file that is there whole or not at all.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let new = file.with_extension("new");
        fs::write(&new, serde_json::to_vec(self)?)?;
        fs::rename(&new, file)
    }

    /// Is that very process still there?
    pub fn is_alive(&self) -> bool {
        began(self.pid).is_ok_and(|now| now.as_deref() == Some(self.began.as_str()))
    }

    /// Sends it a signal, if it is still that process.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match Pid::from_raw(self.pid).filter(|_| self.is_alive()) {
            Some(pid) => Ok(kill_process(pid, signal)?),
            None => Ok(()),
        }
    }
}

/// Leaves the terminal's session, so that its end is not ours.
pub fn leave_session() -> io::Result<()> {
    Ok(rustix::process::setsid().map(drop)?)
}

/// When the process of this number began; `None` if there is none, or only what is left of one that has ended.
#[cfg(target_os = "linux")]
fn began(pid: i32) -> io::Result<Option<String>> {
    let text = match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // After the name, which may hold spaces and brackets: the state, and 19 fields on the ticks since boot (proc(5)).
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    match (fields.first(), fields.get(19)) {
        (Some(&"Z" | &"X"), _) => Ok(None),
        (Some(_), Some(ticks)) => Ok(Some((*ticks).to_owned())),
        _ => Err(io::Error::other(format!("/proc/{pid}/stat is of a form that this program does not know"))),
    }
}

/// When the process of this number began; `None` if there is none.
#[cfg(not(target_os = "linux"))]
fn began(pid: i32) -> io::Result<Option<String>> {
    let asked = std::process::Command::new("ps").args(["-o", "lstart=", "-p", &pid.to_string()]).output()?;
    let said = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
    Ok((!said.is_empty()).then_some(said))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_known_again_and_another_one_of_its_number_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("this.json");
        assert_eq!(Named::read(&file).unwrap(), None);
        let this = Named::this("test").unwrap();
        this.write(&file).unwrap();
        let read = Named::read(&file).unwrap().unwrap();
        assert_eq!(read, this);
        assert!(read.is_alive());
        let other = Named { began: "0".to_owned(), ..read };
        assert!(!other.is_alive(), "the number is taken, but by a later process");
        other.signal(Signal::KILL).unwrap();
    }

    #[test]
    fn one_that_has_ended_is_gone_even_before_somebody_has_asked_how() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let named = Named { pid, began: began(pid).unwrap().unwrap(), program: "sleep".to_owned() };
        assert!(named.is_alive());
        named.signal(Signal::KILL).unwrap();
        let start = std::time::Instant::now();
        while named.is_alive() {
            assert!(start.elapsed().as_secs() < 10, "it does not end");
        }
        child.wait().unwrap();
        assert!(!named.is_alive());
    }
}
