//! The folder of a record: written under a temporary name and renamed.
//!
//! A record replaces an older record and nothing else. `run.json` lists the files of its record. A folder with any
//! other file, another folder or a `run.json` that is not ours is refused by that name, and files are removed one by
//! one: a recursive deletion can never hit notes that a user keeps beside a run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::error::Error;
use crate::reader::{TABLES, read_manifest, table_file};
use crate::stale::{self, Held};

pub(crate) const META_FILE: &str = "run.json";

/// What records held before `run.json` listed their files.
const ALWAYS_OURS: [&str; 6] =
    ["cluster.json", "junit.xml", "report.html", "scenario.yaml", "simulation.json", "summary.json"];

/// So many runs may write one record at the same time, of which the last is kept. Far more than containers share a volume.
const MAX_SIBLINGS: u64 = 1_000;

/// The folder a record is written in and the one it shall become. Removed when dropped unpublished.
#[derive(Debug)]
pub(crate) struct Folder {
    staging: PathBuf,
    target: PathBuf,
    published: bool,
    /// Keeps other runs from taking it for a leftover.
    _held: Held,
}

impl Folder {
    pub(crate) fn create(target: &Path) -> Result<Self, Error> {
        check_replaceable(target)?;
        stale::remove(target);
        let (staging, held) = hold_new(target)?;
        Ok(Self { staging, target: target.to_owned(), published: false, _held: held })
    }

    /// Where the record is before it is published.
    pub(crate) fn staging(&self) -> &Path {
        &self.staging
    }

    pub(crate) fn add_file(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        let plain = Path::new(name).file_name().is_some_and(|file| file == name);
        let taken = name == META_FILE || TABLES.iter().any(|table| table_file(table) == name);
        if !plain || taken || name.starts_with('.') {
            return Err(Error::FileName { name: name.to_owned() });
        }
        write_file(&self.staging.join(name), content)
    }

    /// Copies the files besides the tables into another folder.
    pub(crate) fn copy_files_to(&self, other: &Self) -> Result<(), Error> {
        for name in entries(&self.staging)? {
            if !TABLES.iter().any(|table| table_file(table) == name) {
                let path = self.staging.join(&name);
                let content = fs::read(&path).map_err(|source| Error::Read { path, source })?;
                write_file(&other.staging.join(name), &content)?;
            }
        }
        Ok(())
    }

    /// Two renames: between them, for a moment, there is no record of that name, but never a half-made one.
    pub(crate) fn publish(mut self) -> Result<PathBuf, Error> {
        check_replaceable(&self.target)?;
        list_files(&self.staging)?;
        let old = siblings(&self.target, "old")?.find(|old| !old.exists()).ok_or_else(|| too_many(&self.target))?;
        let replaces = self.target.exists();
        let _held = Held::existing(&self.target);
        if replaces {
            rename(&self.target, &old)?;
        }
        if let Err(error) = rename(&self.staging, &self.target) {
            if replaces {
                rename(&old, &self.target)?;
            }
            return Err(error);
        }
        self.published = true;
        if replaces {
            remove_record(&old)?;
        }
        Ok(self.target.clone())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.published {
            // There is no one to tell, and a leftover does no harm: its name starts with a dot.
            let _ = fs::remove_dir_all(&self.staging);
        }
    }
}

/// Writes into `run.json` which files its record has. The text is changed and not the type behind it, so that a record
/// of a newer driver keeps what this version does not know.
fn list_files(staging: &Path) -> Result<(), Error> {
    let path = staging.join(META_FILE);
    let text = fs::read(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
    let mut manifest: Value = serde_json::from_slice(&text).map_err(|source| Error::EncodeMeta { source })?;
    let files: BTreeSet<String> = entries(staging)?.into_iter().collect();
    manifest["files"] = json!(files);
    let mut text = serde_json::to_vec_pretty(&manifest).map_err(|source| Error::EncodeMeta { source })?;
    text.push(b'\n');
    write_file(&path, &text)
}

/// A place is free, an empty folder, or an older record and nothing else.
fn check_replaceable(target: &Path) -> Result<(), Error> {
    if !target.exists() {
        return Ok(());
    }
    if !target.is_dir() {
        return Err(Error::Occupied { path: target.to_owned() });
    }
    let found = entries(target)?;
    if found.is_empty() {
        return Ok(());
    }
    let ours = made_by_a_run(target)?;
    match found.into_iter().find(|name| !ours.contains(name) || target.join(name).is_dir()) {
        Some(name) => Err(Error::SomebodyElses { path: target.to_owned(), name }),
        None => Ok(()),
    }
}

/// The names of a record's files; nothing if the folder is no record.
fn made_by_a_run(dir: &Path) -> Result<BTreeSet<String>, Error> {
    let manifest = match read_manifest(dir) {
        Ok(manifest) => manifest,
        Err(Error::NotARecord { .. } | Error::BadMeta { .. }) => {
            return Err(Error::Occupied { path: dir.to_owned() });
        }
        Err(other) => return Err(other),
    };
    let tables = manifest.tables.keys().map(|table| table_file(table));
    let always = ALWAYS_OURS.into_iter().chain([META_FILE]).map(str::to_owned);
    Ok(manifest.files.iter().cloned().chain(tables).chain(always).collect())
}

/// Removes a record file by file, and then its folder, which must be empty then.
fn remove_record(dir: &Path) -> Result<(), Error> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Write { path, source }
    };
    // A link in place of the folder: what it points to is not ours to empty.
    if dir.is_symlink() {
        return fs::remove_file(dir).map_err(failed(dir));
    }
    // Somebody else may have written run.json, and a name in it may be a path: only what is in the folder is removed.
    // An empty folder has no run.json and nothing to remove.
    let made = if dir.join(META_FILE).exists() { made_by_a_run(dir)? } else { BTreeSet::new() };
    let files = entries(dir)?.into_iter().filter(|name| made.contains(name));
    // run.json is removed last: as long as it is there, the rest can be told from a user's folder.
    let (last, first): (Vec<_>, Vec<_>) = files.partition(|name| name == META_FILE);
    for path in first.into_iter().chain(last).map(|name| dir.join(name)) {
        fs::remove_file(&path).map_err(failed(&path))?;
    }
    fs::remove_dir(dir).map_err(failed(dir))
}

fn entries(dir: &Path) -> Result<Vec<String>, Error> {
    let cannot = |source| Error::Read { path: dir.to_owned(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(cannot)? {
        names.push(entry.map_err(cannot)?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

/// Makes a folder beside `target` that no other run has, and holds it.
fn hold_new(target: &Path) -> Result<(PathBuf, Held), Error> {
    for staging in siblings(target, "new")? {
        let held = Held::create(&staging).map_err(|source| Error::Write { path: staging.clone(), source })?;
        if let Some(held) = held {
            return Ok((staging, held));
        }
    }
    Err(too_many(target))
}

/// The names that a folder beside `target` may have, best first. The process id keeps two runs of the same question apart;
/// containers that share a volume may have the same one, so the next numbers follow. The leading dot keeps all of them out of
/// `skctl list`.
fn siblings(target: &Path, role: &str) -> Result<impl Iterator<Item = PathBuf>, Error> {
    let refuse = || Error::NoFolder { path: target.to_owned() };
    let name = target.file_name().and_then(|name| name.to_str()).ok_or_else(refuse)?;
    let numbers = (0..MAX_SIBLINGS).map(|next| u64::from(std::process::id()) + next);
    Ok(numbers.map(move |number| target.with_file_name(format!(".{name}.{role}-{number}"))))
}

fn too_many(target: &Path) -> Error {
    let source = std::io::Error::other(format!("{MAX_SIBLINGS} runs write it at the same time"));
    Error::Write { path: target.to_owned(), source }
}

fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to).map_err(|source| Error::Write { path: to.to_owned(), source })
}

pub(crate) fn write_file(path: &Path, content: &[u8]) -> Result<(), Error> {
    fs::write(path, content).map_err(|source| Error::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_the_same_number_in_another_container_keeps_its_folder() {
        let runs = tempfile::tempdir().unwrap();
        let target = runs.path().join("a");
        let theirs = Folder::create(&target).unwrap();
        theirs.add_file("notes.txt", b"theirs").unwrap();
        let ours = Folder::create(&target).unwrap();
        assert_ne!(ours.staging(), theirs.staging());
        assert_eq!(fs::read(theirs.staging().join("notes.txt")).unwrap(), b"theirs");
    }
}
