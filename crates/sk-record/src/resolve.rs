//! Resolves a RUN argument: a folder, a name under the runs folder, `@` for the newest run, `@2` for the one before.
//!
//! "Newest" is the modification time of `run.json`: records themselves hold no wall time, so this is the only place
//! that asks the file system for one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::Error;
use crate::meta::RunMeta;
use crate::reader::read_manifest;

/// How many names an error offers to choose from.
const NAMES_SHOWN: usize = 5;

/// The folder that `text` means: itself a record, or one under `runs_dir`. The record is not opened.
pub fn resolve(text: &str, runs_dir: &Path) -> Result<PathBuf, Error> {
    if let Some(place) = back_reference(text) {
        let runs = newest_first(runs_dir)?;
        if runs.is_empty() {
            return Err(Error::NoRuns { dir: runs_dir.to_owned() });
        }
        let count = runs.len();
        let too_far = || Error::TooFarBack { text: text.to_owned(), count, dir: runs_dir.to_owned() };
        return runs.into_iter().nth(place - 1).ok_or_else(too_far);
    }
    for folder in [PathBuf::from(text), runs_dir.join(text)] {
        if is_record(&folder) {
            return Ok(folder);
        }
    }
    let runs = newest_first(runs_dir)?;
    if let Some(found) = runs.iter().find(|run| base_name(&folder_name(run)) == Some(text)) {
        return Ok(found.clone());
    }
    let near = runs.iter().take(NAMES_SHOWN).map(|run| folder_name(run)).collect();
    Err(Error::Unknown { text: text.to_owned(), dir: runs_dir.to_owned(), near })
}

/// The readable records under `runs_dir` that `name` is the name of, newest first; none if it means a single folder.
pub fn runs_of_name(name: &str, runs_dir: &Path) -> Result<Vec<(PathBuf, RunMeta)>, Error> {
    if [PathBuf::from(name), runs_dir.join(name)].iter().any(|folder| is_record(folder)) {
        return Ok(Vec::new());
    }
    let runs = find_runs(runs_dir)?;
    Ok(runs.into_iter().filter(|(run, _)| base_name(&folder_name(run)) == Some(name)).collect())
}

/// All readable records under `runs_dir`, newest first; a folder whose `run.json` is not ours is passed over.
pub fn find_runs(runs_dir: &Path) -> Result<Vec<(PathBuf, RunMeta)>, Error> {
    let runs = newest_first(runs_dir)?;
    Ok(runs.into_iter().filter_map(|run| read_manifest(&run).ok().map(|manifest| (run, manifest.meta))).collect())
}

/// `@` is 1, `@2` is 2; `@0` and anything else is not a reference.
fn back_reference(text: &str) -> Option<usize> {
    match text.strip_prefix('@')? {
        "" => Some(1),
        number => number.parse().ok().filter(|place| *place > 0),
    }
}

/// The records in `runs_dir`, and those in a folder of it that holds several runs of one command (variants, repetitions).
fn newest_first(runs_dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let folders = folders_in(runs_dir)?;
    let (records, others): (Vec<PathBuf>, Vec<PathBuf>) = folders.into_iter().partition(|folder| is_record(folder));
    // An unreadable folder of another user holds none of our runs.
    let nested = others.iter().flat_map(|folder| folders_in(folder).unwrap_or_default()).filter(|path| is_record(path));
    let mut runs: Vec<(SystemTime, PathBuf)> = records
        .into_iter()
        .chain(nested)
        .filter_map(|path| Some((fs::metadata(path.join("run.json")).ok()?.modified().ok()?, path)))
        .collect();
    runs.sort_by(|(time_a, path_a), (time_b, path_b)| time_b.cmp(time_a).then_with(|| path_a.cmp(path_b)));
    Ok(runs.into_iter().map(|(_, path)| path).collect())
}

/// The folders in a folder, without hidden ones: those are of runs that are being written.
fn folders_in(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::Read { path: folder.to_owned(), source }),
    };
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    Ok(paths.filter(|path| path.is_dir() && !folder_name(path).starts_with('.')).collect())
}

fn is_record(folder: &Path) -> bool {
    folder.join("run.json").is_file()
}

fn folder_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// `pack-36` of `pack-36-8c01fe`, and `week` of `week.2`, which is a repetition on a cluster.
fn base_name(folder: &str) -> Option<&str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    if let Some((name, _)) = folder.rsplit_once('.').filter(|(_, repetition)| is_number(repetition)) {
        return Some(name);
    }
    let (name, digits) = folder.rsplit_once('-')?;
    let is_id = digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_id.then_some(name)
}
