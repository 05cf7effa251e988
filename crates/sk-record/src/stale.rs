//! Finds and removes the temporary folders of killed runs, and tells them from those of running ones.
//!
//! A record is written in `.NAME.new-PID`, and a record that is being replaced waits as `.NAME.old-PID`. A killed
//! process removes neither; the next run of that name does. A running process holds a lock on its folder, which the
//! system releases when the process ends, however it ends: a folder without a lock is stale. The process id does not
//! tell, because ids are reused, and containers that share a volume each count their own. Where folders cannot be
//! locked, nothing is removed.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// How often a folder is created again that another process removed before it was locked.
const ATTEMPTS: usize = 8;

/// A locked folder, which no other process removes.
#[derive(Debug)]
pub(crate) struct Held(#[expect(dead_code, reason = "closing the file releases the lock")] Option<File>);

impl Held {
    /// Makes `folder` and holds it; `None` if it is there already, which means that another run has it.
    pub(crate) fn create(folder: &Path) -> io::Result<Option<Self>> {
        if let Some(parent) = folder.parent() {
            fs::create_dir_all(parent)?;
        }
        for _ in 0..ATTEMPTS {
            match fs::create_dir(folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
                made => made?,
            }
            let held = Self::existing(folder);
            // Another run may have taken the new folder for a leftover until it was locked.
            if folder.is_dir() {
                return Ok(Some(held));
            }
        }
        Err(io::Error::other("another run removes it again and again"))
    }

    /// Holds a folder that is there, as far as its file system can.
    pub(crate) fn existing(folder: &Path) -> Self {
        Self(File::open(folder).ok().filter(|file| file.lock().is_ok()))
    }
}

/// Removes what killed runs left beside `target`. A leftover that cannot be removed is left for the next time: it does
/// no harm, and this run has something else to do.
pub(crate) fn remove(target: &Path) {
    let replaced = target.exists();
    for (folder, role) in leftovers(target) {
        // Without a record in its place, an old one is the only one there is.
        if role == "old" && !replaced {
            continue;
        }
        let Ok(file) = File::open(&folder) else { continue };
        match file.try_lock() {
            Ok(()) => drop(fs::remove_dir_all(&folder)),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        }
    }
}

/// The folders `.NAME.new-PID` and `.NAME.old-PID` beside `target`, each with its role.
fn leftovers(target: &Path) -> Vec<(PathBuf, &'static str)> {
    let Some(name) = target.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let prefix = format!(".{name}.");
    let role = |entry: &fs::DirEntry| {
        let entry = entry.file_name();
        let (role, process) = entry.to_str()?.strip_prefix(&prefix)?.split_once('-')?;
        let is_process = !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit());
        ["new", "old"].into_iter().find(|known| is_process && *known == role)
    };
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.filter_map(|entry| Some((entry.path(), role(&entry)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_nobody_holds_is_removed_and_nothing_else() {
        let runs = tempfile::tempdir().unwrap();
        let others = [".a.new-", ".a.new-x1", ".a.newer-1", ".b.new-1", "a.new-1", ".a.new-1-2"];
        for name in others.into_iter().chain([".a.new-1"]) {
            fs::create_dir_all(runs.path().join(name).join("inside")).unwrap();
        }
        fs::write(runs.path().join(".a.new-3"), "a file of somebody").unwrap();
        let held = Held::create(&runs.path().join(".a.new-2")).unwrap().expect("nobody has it");
        remove(&runs.path().join("a"));
        let mut kept: Vec<_> = others.into_iter().chain([".a.new-2", ".a.new-3"]).map(str::to_owned).collect();
        kept.sort();
        assert_eq!(names(runs.path()), kept);
        drop(held);
        remove(&runs.path().join("a"));
        assert!(!runs.path().join(".a.new-2").exists(), "its process is gone");
    }

    #[test]
    fn an_old_record_is_kept_until_there_is_another() {
        let runs = tempfile::tempdir().unwrap();
        let (target, old) = (runs.path().join("a"), runs.path().join(".a.old-1"));
        fs::create_dir(&old).unwrap();
        remove(&target);
        assert!(old.exists(), "it is the only one there is");
        fs::create_dir(&target).unwrap();
        remove(&target);
        assert_eq!(names(runs.path()), ["a"]);
    }
}
