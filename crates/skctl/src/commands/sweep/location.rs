//! The location of a sweep's records: a local folder or a folder in an object store, with one subfolder per run id.
//!
//! A record is complete if its `run.json` exists, because that is written last: a local folder is renamed when it is
//! complete, and to an object store `run.json` is uploaded last. If a run could not be made, the reason is stored beside the
//! records as `RUN.failed.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Seek, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use sk_record::{Run, Staged};
use sk_store::Location;
use sk_store::location::{RemoteUrl, send_files, shown};

use crate::records;

const MARK: &str = "run.json";
const FAILED: &str = ".failed.json";
/// The longest reason that is read.
const MAX_REASON_BYTES: u64 = 64 << 10;

/// A place for records.
#[derive(Clone, Debug)]
pub(super) enum RecordLocation {
    Folder(PathBuf),
    Store(String, RemoteUrl),
}

/// What lies in a place, by run id.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// When each whole record was written.
    pub(super) done: BTreeMap<String, SystemTime>,
    /// Runs that could not be made.
    pub(super) failed: BTreeSet<String>,
}

/// Why a run could not be made.
#[derive(Debug, Serialize, Deserialize)]
struct Failure {
    run: String,
    reason: String,
}

impl RecordLocation {
    /// From what was typed.
    pub(super) fn new(text: &str) -> Result<Self> {
        let place = text.trim_end_matches('/');
        Ok(match place.parse().with_context(|| format!("--to {}", shown(text)))? {
            Location::File(folder) => Self::Folder(folder),
            Location::Remote(url) => Self::Store(place.to_owned(), url),
            Location::StandardInput => bail!("--to: `-` is not a folder"),
        })
    }

    /// What is there.
    pub(super) fn contents(&self) -> Result<Contents> {
        match self {
            Self::Folder(folder) => of_folder(folder),
            Self::Store(place, url) => {
                let listed = url.list().with_context(|| format!("cannot list the records in {}", shown(place)))?;
                let mut contents = Contents::default();
                for object in listed {
                    match object.name.split_once('/') {
                        Some((run, MARK)) => drop(contents.done.insert(run.to_owned(), object.modified)),
                        None => contents.failed.extend(object.name.strip_suffix(FAILED).map(str::to_owned)),
                        Some(_) => {}
                    }
                }
                Ok(contents)
            }
        }
    }

    /// Is the record of this run there?
    pub(super) fn holds(&self, run_id: &str) -> Result<bool> {
        match self {
            Self::Folder(folder) => Ok(is_whole(&folder.join(run_id), run_id)),
            Self::Store(place, _) => {
                let Location::Remote(record) = format!("{place}/{run_id}").parse()? else { return Ok(false) };
                let listed = record.list().with_context(|| format!("cannot list the records in {}", shown(place)))?;
                Ok(listed.iter().any(|object| object.name == MARK))
            }
        }
    }

    /// The folder that a run is written to; `scratch` for what goes elsewhere from there.
    pub(super) fn folder_of(&self, run_id: &str, scratch: &Path) -> PathBuf {
        match self {
            Self::Folder(folder) => folder.join(run_id),
            Self::Store(..) => scratch.join(run_id),
        }
    }

    /// Takes in a run that was published in its folder.
    pub(super) fn take(&self, dir: &Path, run_id: &str) -> Result<()> {
        match self {
            // It is where it belongs. What is said of an earlier try is no longer true.
            Self::Folder(folder) => drop(fs::remove_file(folder.join(format!("{run_id}{FAILED}")))),
            Self::Store(place, _) => {
                send_files(dir, &format!("{place}/{run_id}"), MARK)?;
                fs::remove_dir_all(dir).with_context(|| format!("cannot remove {}", dir.display()))?;
            }
        }
        Ok(())
    }

    /// Writes down why a run could not be made.
    pub(super) fn note_failure(&self, run_id: &str, reason: &str) -> Result<()> {
        let text = serde_json::to_vec_pretty(&Failure { run: run_id.to_owned(), reason: reason.to_owned() })?;
        if let Self::Folder(folder) = self {
            fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        }
        let mut output = self.file(&format!("{run_id}{FAILED}"))?.create()?;
        output.write_all(&text)?;
        Ok(output.commit()?)
    }

    /// Why a run could not be made.
    pub(super) fn failure(&self, run_id: &str) -> Result<String> {
        let mut text = String::new();
        let file = match self.file(&format!("{run_id}{FAILED}"))? {
            Location::Remote(url) => {
                let mut file = tempfile::tempfile()?;
                url.fetch(&mut file)?;
                file.rewind()?;
                file
            }
            Location::File(path) => fs::File::open(path)?,
            Location::StandardInput => bail!("standard input is not a folder"),
        };
        file.take(MAX_REASON_BYTES).read_to_string(&mut text)?;
        Ok(serde_json::from_str::<Failure>(&text)?.reason)
    }

    /// Copies the record of a run into a folder, to be published there. Of a folder nothing needs to be copied.
    pub(super) fn fetch(&self, run_id: &str, dir: &Path) -> Result<Option<Staged>> {
        let Self::Store(place, _) = self else { return Ok(None) };
        let place = format!("{place}/{run_id}");
        let Location::Remote(url) = place.parse()? else { return Ok(None) };
        let listed = url.list().with_context(|| format!("cannot list {}", shown(&place)))?;
        let names: Vec<String> =
            listed.into_iter().map(|object| object.name).filter(|name| !name.contains('/')).collect();
        Ok(Some(records::from_store(&place, &names, dir)?))
    }

    fn file(&self, name: &str) -> Result<Location> {
        Ok(match self {
            Self::Folder(folder) => Location::File(folder.join(name)),
            Self::Store(place, _) => format!("{place}/{name}").parse()?,
        })
    }
}

/// Is there a complete record of this run? A stopped run is incomplete, and a folder may have been renamed.
fn is_whole(dir: &Path, run_id: &str) -> bool {
    Run::open(dir).is_ok_and(|run| !run.meta().partial && run.meta().run_id == run_id)
}

fn of_folder(folder: &Path) -> Result<Contents> {
    let mut contents = Contents::default();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(contents),
        Err(error) => return Err(error).with_context(|| format!("cannot read the folder {}", folder.display())),
    };
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read the folder {}", folder.display()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(run) = name.strip_suffix(FAILED) {
            contents.failed.insert(run.to_owned());
        } else if is_whole(&entry.path(), &name) {
            let modified = fs::metadata(entry.path().join(MARK)).and_then(|file| file.modified());
            contents.done.insert(name, modified.unwrap_or(SystemTime::UNIX_EPOCH));
        }
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_kept_beside_the_records_and_a_folder_that_is_missing_holds_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let place = RecordLocation::new(&dir.path().join("runs").display().to_string()).unwrap();
        assert_eq!(place.contents().unwrap(), Contents::default());
        place.note_failure("pack-1", "no node fits").unwrap();
        assert_eq!(place.contents().unwrap().failed, BTreeSet::from(["pack-1".to_owned()]));
        assert_eq!(place.failure("pack-1").unwrap(), "no node fits");
        place.take(&dir.path().join("runs/pack-1"), "pack-1").unwrap();
        assert_eq!(place.contents().unwrap(), Contents::default());
    }

    #[test]
    fn a_place_is_a_folder_or_a_folder_in_a_store() {
        assert!(
            matches!(RecordLocation::new("runs/").unwrap(), RecordLocation::Folder(folder) if folder == Path::new("runs"))
        );
        assert!(
            matches!(RecordLocation::new("s3://b/x/").unwrap(), RecordLocation::Store(place, _) if place == "s3://b/x")
        );
        for (text, words) in
            [("s3://bucket", "names no object"), ("ftp://x/y", "not a known location"), ("-", "not a folder")]
        {
            let refused = format!("{:#}", RecordLocation::new(text).unwrap_err());
            assert!(refused.contains(words), "{text}: {refused}");
        }
    }
}
