//! The folder of a lab: its files, its live processes, and its removal.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use sk_lab::pid_file::Named;

/// The file that marks a folder as a lab's; without it nothing in the folder is removed.
const MARK: &str = "simkube-lab";
const MARK_TEXT: &str = "This folder belongs to `skctl lab`. `skctl lab down` ends what runs from it and removes it.\n";
/// The pid file of the supervisor.
const SUPERVISOR: &str = "lab";
/// How long the supervisor may take to end everything: five components, of which the API server takes up to 20 s.
const END_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// A lab's folder.
#[derive(Clone, Debug)]
pub(crate) struct Place(PathBuf);

/// What is known of a lab that is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ready {
    /// The kubeconfig of who may do everything.
    pub(crate) kubeconfig: PathBuf,
    /// Which Kubernetes it is.
    pub(crate) kubernetes: String,
}

/// One of a lab's processes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Process {
    /// The component that it runs.
    pub(crate) name: String,
    /// Its process id.
    pub(crate) pid: i32,
    /// Is it there?
    pub(crate) is_alive: bool,
    #[serde(skip)]
    named: Named,
}

impl Place {
    /// The folder that was named, or the one that is this user's own.
    pub(crate) fn new(named: Option<&Path>) -> Result<Self> {
        if let Some(folder) = named {
            return Ok(Self(std::path::absolute(folder)?));
        }
        let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let state = from("XDG_STATE_HOME").or_else(|| from("HOME").map(|home| home.join(".local/state")));
        let state = state.context("there is no home folder to keep a lab in: set HOME, or name a folder with --dir")?;
        Ok(Self(state.join("simkube/lab")))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    /// Where the control plane's own files are.
    pub(crate) fn plane(&self) -> PathBuf {
        self.0.join("plane")
    }

    /// Where pid files are.
    pub(crate) fn pids(&self) -> PathBuf {
        self.0.join("pids")
    }

    /// Where the volumes of pods are.
    pub(crate) fn claims(&self) -> PathBuf {
        self.0.join("claims")
    }

    /// The supervisor's log.
    pub(crate) fn log(&self) -> PathBuf {
        self.0.join("lab.log")
    }

    /// The supervisor's last error, which names the component and ends with the end of that component's log.
    pub(crate) fn why_it_ended(&self) -> String {
        let said = fs::read(self.log()).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        // Of whole lines only: what components said is indented, and speaks of errors too.
        let error = format!("\n{said}").rsplit_once("\nerror: ").map(|(_, error)| error.trim().to_owned());
        error.unwrap_or_else(|| said.trim().to_owned())
    }

    pub(crate) fn supervisor_file(&self) -> PathBuf {
        self.pids().join(format!("{SUPERVISOR}.json"))
    }

    fn ready_file(&self) -> PathBuf {
        self.0.join("ready.json")
    }

    /// Makes the folder. What is there and is no lab's is left alone.
    pub(crate) fn make(&self) -> Result<()> {
        let is_empty = match fs::read_dir(&self.0) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(error).with_context(|| format!("cannot look into {}", self.0.display())),
        };
        if !is_empty {
            bail!("{} is not empty; name another folder with --dir, or empty this one", self.0.display());
        }
        let made = fs::create_dir_all(self.pids())
            .and_then(|()| fs::create_dir_all(self.plane()))
            .and_then(|()| fs::create_dir_all(self.claims()))
            .and_then(|()| fs::set_permissions(&self.0, std::os::unix::fs::PermissionsExt::from_mode(0o700)))
            .and_then(|()| fs::write(self.0.join(MARK), MARK_TEXT));
        made.with_context(|| format!("cannot make {}", self.0.display()))
    }

    /// Is there a lab, or what is left of one?
    pub(crate) fn is_lab(&self) -> bool {
        self.0.join(MARK).is_file()
    }

    /// The supervisor, if it is alive.
    pub(crate) fn supervisor(&self) -> Result<Option<Named>> {
        Ok(Named::read(&self.supervisor_file()).context("the supervisor's pid file")?.filter(Named::is_alive))
    }

    /// Records that everything is ready.
    pub(crate) fn announce(&self, ready: &Ready) -> Result<()> {
        let new = self.0.join("ready.new");
        fs::write(&new, serde_json::to_vec_pretty(ready)?)?;
        Ok(fs::rename(&new, self.ready_file())?)
    }

    /// What is known of it, if it has become ready.
    pub(crate) fn ready(&self) -> Result<Option<Ready>> {
        match fs::read(self.ready_file()) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Every process that has left its name here, the supervisor first.
    pub(crate) fn processes(&self) -> Result<Vec<Process>> {
        let entries = match fs::read_dir(self.pids()) {
            Ok(entries) => entries.collect::<Result<Vec<_>, _>>()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let mut processes = Vec::new();
        for file in
            entries.iter().map(fs::DirEntry::path).filter(|file| file.extension().is_some_and(|it| it == "json"))
        {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            // Gone since the folder was read: it has ended by itself.
            let Some(named) = Named::read(&file).with_context(|| file.display().to_string())? else { continue };
            processes.push(Process { name, pid: named.pid, is_alive: named.is_alive(), named });
        }
        processes.sort_by_key(|process| (process.name != SUPERVISOR, process.name.clone()));
        Ok(processes)
    }

    /// Ends everything that lives and removes the folder; how many processes had to be ended by force.
    pub(crate) fn end(&self) -> Result<usize> {
        if let Some(supervisor) = self.supervisor()? {
            supervisor.signal(Signal::TERM).context("cannot stop the lab's supervisor")?;
            wait_for_end(&supervisor);
        }
        // A killed supervisor leaves processes behind. Each is killed by its pid file, and only if the process with that pid is
        // the one that wrote it.
        let mut forced = 0;
        for process in self.processes()?.into_iter().filter(|process| process.is_alive) {
            process.named.signal(Signal::KILL).with_context(|| format!("cannot end {}", process.name))?;
            wait_for_end(&process.named);
            forced += 1;
        }
        fs::remove_dir_all(&self.0).with_context(|| format!("cannot remove {}", self.0.display()))?;
        Ok(forced)
    }
}

fn wait_for_end(process: &Named) {
    let began = Instant::now();
    while process.is_alive() && began.elapsed() < END_LIMIT {
        std::thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn lab() -> (tempfile::TempDir, Place) {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(Some(&folder.path().join("lab"))).unwrap();
        place.make().unwrap();
        (folder, place)
    }

    /// A process that has left its name, as a component of a lab does.
    fn component(place: &Place, name: &str) -> Child {
        let file = place.pids().join(format!("{name}.json"));
        let mut child = Command::new("sh").args(["-c", "exec sleep 60"]).spawn().unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let began = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().to_owned();
        let named = Named { pid: i32::try_from(child.id()).unwrap(), began, program: name.to_owned() };
        named.write(&file).unwrap();
        assert!(child.try_wait().unwrap().is_none());
        child
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_a_killed_supervisor_has_left_is_ended_and_a_number_that_is_somebody_elses_is_not() {
        let (_folder, place) = lab();
        let mut left = component(&place, "etcd");
        let mut stranger = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(stranger.id()).unwrap();
        let stale = Named { pid, began: "1".to_owned(), program: "kube-apiserver".to_owned() };
        stale.write(&place.pids().join("kube-apiserver.json")).unwrap();
        let reaper = std::thread::spawn(move || left.wait().unwrap());
        assert_eq!(place.end().unwrap(), 1);
        assert!(!reaper.join().unwrap().success(), "it was killed");
        assert!(stranger.try_wait().unwrap().is_none(), "the stranger lives");
        assert!(!place.folder().exists());
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }

    #[test]
    fn a_supervisor_that_failed_is_quoted_from_its_error_on() {
        let (_folder, place) = lab();
        fs::write(place.log(), "starting\nerror: kube-apiserver ended at once\n  its log: error: x\n").unwrap();
        assert_eq!(place.why_it_ended(), "kube-apiserver ended at once\n  its log: error: x");
    }

    #[test]
    fn a_folder_that_is_somebody_elses_is_neither_used_nor_taken_for_a_lab() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.tex"), "years of work").unwrap();
        let place = Place::new(Some(folder.path())).unwrap();
        assert!(place.make().unwrap_err().to_string().contains("is not empty"));
        assert!(!place.is_lab());
    }

    #[test]
    fn a_lab_is_ready_when_its_supervisor_has_said_so() {
        let (_folder, place) = lab();
        assert_eq!(place.ready().unwrap(), None);
        let ready = Ready { kubeconfig: place.plane().join("admin.kubeconfig"), kubernetes: "v1.36.4".to_owned() };
        place.announce(&ready).unwrap();
        assert_eq!(place.ready().unwrap(), Some(ready));
        assert!(place.supervisor().unwrap().is_none());
    }
}
