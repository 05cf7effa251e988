//! Records and logs on disk: one folder per Simulation, one file per repetition, one log.
//!
//! The folder may be shared with others. A sub-folder belongs to a Simulation only if everything in it was written
//! here; every other one is left alone, whatever its name.

use std::path::{Path, PathBuf};

use futures::Stream;
use sk_api::simulation::names;
use tokio::fs::{self, File};

use super::disk::{self, Floor, INCOMING, StoreError, Terms, disk, list};

/// The largest record. A pod's row is about 100 bytes and 150,000 pods make 15 MB; a record of a thousand times that is
/// no record.
const MAX_RECORD_BYTES: u64 = 16 << 30;
/// The largest log: what a person reads of the end of a run.
const MAX_LOG_BYTES: u64 = 16 << 20;
const LOG: &str = "log.txt";

/// The folder that records are kept in.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Opens a folder, makes it if it is not there, and removes what an earlier controller was still writing.
    pub async fn open(folder: &Path) -> Result<Self, StoreError> {
        let store = Self { folder: folder.to_owned() };
        fs::create_dir_all(folder).await.map_err(disk("make", folder))?;
        for simulation in store.names().await? {
            let of_one = store.folder.join(&simulation);
            for file in list(&of_one).await?.into_iter().filter(|file| file.starts_with(INCOMING)) {
                disk::remove(&of_one.join(file)).await?;
            }
        }
        Ok(store)
    }

    /// The Simulations of which there is something.
    pub async fn names(&self) -> Result<Vec<String>, StoreError> {
        let mut names = Vec::new();
        for name in list(&self.folder).await?.into_iter().filter(|name| checked(name).is_ok()) {
            if self.holds(&name).await? {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Is there a folder of this Simulation?
    pub async fn holds(&self, simulation: &str) -> Result<bool, StoreError> {
        Ok(self.files(simulation).await?.is_some())
    }

    /// The files in the folder of a Simulation; `None` if there is none, or one that others have put things into.
    async fn files(&self, simulation: &str) -> Result<Option<Vec<String>>, StoreError> {
        let folder = self.folder.join(checked(simulation)?);
        if !folder.is_dir() {
            return Ok(None);
        }
        let files = list(&folder).await?;
        Ok(files.iter().all(|file| is_ours(file) && folder.join(file).is_file()).then_some(files))
    }

    /// The repetitions of which there is a record, in order.
    pub async fn repetitions(&self, simulation: &str) -> Result<Vec<u32>, StoreError> {
        let folder = self.folder.join(checked(simulation)?);
        if !folder.is_dir() {
            return Ok(Vec::new());
        }
        let mut found: Vec<u32> = list(&folder).await?.iter().filter_map(|file| repetition(file)).collect();
        found.sort_unstable();
        Ok(found)
    }

    /// Opens a record; `None` if there is none.
    pub async fn record(&self, simulation: &str, repetition: u32) -> Result<Option<File>, StoreError> {
        self.open_file(simulation, &record_file(repetition)).await
    }

    /// Opens a log; `None` if there is none.
    pub async fn log(&self, simulation: &str) -> Result<Option<File>, StoreError> {
        self.open_file(simulation, LOG).await
    }

    /// Keeps a record. Returns its size.
    pub async fn put_record<B, E>(
        &self,
        simulation: &str,
        repetition: u32,
        body: impl Stream<Item = Result<B, E>>,
    ) -> Result<u64, StoreError>
    where
        B: AsRef<[u8]>,
        E: std::fmt::Display,
    {
        let terms = terms("record", MAX_RECORD_BYTES);
        disk::put(&self.folder.join(checked(simulation)?), &record_file(repetition), body, terms).await
    }

    /// Keeps a log in place of the one before. Returns its size.
    pub async fn put_log<B, E>(
        &self,
        simulation: &str,
        body: impl Stream<Item = Result<B, E>>,
    ) -> Result<u64, StoreError>
    where
        B: AsRef<[u8]>,
        E: std::fmt::Display,
    {
        disk::put(&self.folder.join(checked(simulation)?), LOG, body, terms("log", MAX_LOG_BYTES)).await
    }

    /// Removes everything of a Simulation, file by file, so that nothing goes that has come in between.
    pub async fn remove(&self, simulation: &str) -> Result<(), StoreError> {
        let Some(files) = self.files(simulation).await? else { return Ok(()) };
        let folder = self.folder.join(checked(simulation)?);
        for file in files {
            disk::remove(&folder.join(file)).await?;
        }
        disk::unless_gone(fs::remove_dir(&folder).await).map_err(disk("remove", &folder))
    }

    async fn open_file(&self, simulation: &str, file: &str) -> Result<Option<File>, StoreError> {
        disk::open(&self.folder.join(checked(simulation)?).join(file)).await
    }
}

fn terms(what: &'static str, limit: u64) -> Terms<'static> {
    Terms { what, limit, advice: "", sha256: None, floor: Floor::LAST }
}

fn record_file(repetition: u32) -> String {
    format!("record-{repetition}.tar")
}

/// The repetition that a file is the record of.
fn repetition(file: &str) -> Option<u32> {
    file.strip_prefix("record-")?.strip_suffix(".tar")?.parse().ok()
}

/// Is a file called like one that is written here?
fn is_ours(file: &str) -> bool {
    file == LOG || file.starts_with(INCOMING) || repetition(file).is_some()
}

/// A name that is one folder and nothing else.
pub(super) fn checked(simulation: &str) -> Result<&str, StoreError> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let good =
        !simulation.is_empty() && simulation.len() <= names::MAX_SIMULATION_NAME && simulation.chars().all(allowed);
    good.then_some(simulation).ok_or_else(|| StoreError::Name(simulation.chars().take(100).collect()))
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use tokio::io::AsyncReadExt;

    use super::*;

    fn chunks(parts: &[Result<&'static str, &'static str>]) -> impl Stream<Item = Result<&'static str, &'static str>> {
        stream::iter(parts.to_vec())
    }

    async fn text(file: Option<File>) -> Option<String> {
        let mut text = String::new();
        file?.read_to_string(&mut text).await.unwrap();
        Some(text)
    }

    #[tokio::test]
    async fn a_record_is_whole_or_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).await.unwrap();
        assert_eq!(store.put_record("a", 0, chunks(&[Ok("ta"), Ok("r")])).await.unwrap(), 3);
        let broken = store.put_record("a", 0, chunks(&[Ok("other"), Err("connection reset")])).await.unwrap_err();
        assert_eq!(broken.to_string(), "the sender closed the connection: connection reset");
        assert_eq!(text(store.record("a", 0).await.unwrap()).await.as_deref(), Some("tar"));
        assert_eq!(list(&folder.path().join("a")).await.unwrap(), ["record-0.tar"], "nothing half-written stays");
        assert!(store.record("a", 1).await.unwrap().is_none());
        store.put_record("a", 10, chunks(&[])).await.unwrap();
        store.put_record("a", 2, chunks(&[])).await.unwrap();
        assert_eq!(store.repetitions("a").await.unwrap(), [0, 2, 10]);
    }

    #[tokio::test]
    async fn what_a_killed_controller_was_writing_is_gone_after_its_restart() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        std::fs::write(folder.path().join("a/.incoming-x"), "half").unwrap();
        let store = Store::open(folder.path()).await.unwrap();
        store.put_log("a", chunks(&[Ok("said")])).await.unwrap();
        assert_eq!(list(&folder.path().join("a")).await.unwrap(), ["log.txt"]);
        assert!(store.holds("a").await.unwrap());
        store.remove("a").await.unwrap();
        store.remove("a").await.unwrap();
        assert!(!store.holds("a").await.unwrap());
    }

    #[tokio::test]
    async fn a_folder_with_anything_else_in_it_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("backup/log.txt")).unwrap();
        for (place, file) in [("photos", "cat.jpg"), ("photos", "log.txt"), ("photos", ".incoming-x")] {
            std::fs::create_dir_all(folder.path().join(place)).unwrap();
            std::fs::write(folder.path().join(place).join(file), "theirs").unwrap();
        }
        let store = Store::open(folder.path()).await.unwrap();
        store.put_log("a", chunks(&[])).await.unwrap();
        store.put_record("b", 0, chunks(&[])).await.unwrap();
        assert_eq!(store.names().await.unwrap(), ["a", "b"]);
        for name in ["a", "b", "photos", "backup"] {
            store.remove(name).await.unwrap();
        }
        assert_eq!(list(folder.path()).await.unwrap(), ["backup", "photos"]);
        assert_eq!(list(&folder.path().join("photos")).await.unwrap(), [".incoming-x", "cat.jpg", "log.txt"]);
    }

    #[tokio::test]
    async fn a_name_never_leads_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).await.unwrap();
        for name in ["", "..", "a/b", "../a", "A", &"a".repeat(50)] {
            let refused = store.put_log(name, chunks(&[])).await;
            assert!(matches!(refused, Err(StoreError::Name(_))), "{name}: {refused:?}");
        }
    }
}
