//! Uploaded traces, stored by their SHA-256, for drivers to download.
//!
//! A trace is kept while a Simulation refers to it, and for [`KEPT_UNNAMED`] after it was uploaded or asked for, which
//! leaves time to create the Simulation. Then it is deleted. Traces are in a sub-folder of the records whose name no
//! Simulation can have.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::Stream;
use sk_api::simulation::names;
use tokio::fs::{self, File};
use tokio::sync::Mutex;

use super::disk::{self, Floor, INCOMING, StoreError, Terms};

/// The largest trace, by default. A day of a large cluster is a few hundred megabytes; the volume has 20 GiB.
pub const DEFAULT_MAX_TRACE_BYTES: u64 = 4 << 30;
/// How long a trace stays that no Simulation names.
pub const KEPT_UNNAMED: Duration = Duration::from_secs(3600);
/// In the records' folder. Names of Simulations have no dots.
const FOLDER: &str = ".traces";

/// The folder that traces are kept in.
#[derive(Clone, Debug)]
pub struct Traces {
    folder: PathBuf,
    max_bytes: u64,
    /// Held while an age is looked at and acted on: who was told that a trace is there has the time that is promised.
    ages: Arc<Mutex<()>>,
}

impl Traces {
    /// Opens the folder beside the records, makes it if it is not there, and removes what was still being written.
    pub async fn open(records: &Path, max_bytes: u64) -> Result<Self, StoreError> {
        let folder = records.join(FOLDER);
        fs::create_dir_all(&folder).await.map_err(disk::disk("make", &folder))?;
        for file in disk::list(&folder).await?.into_iter().filter(|file| file.starts_with(INCOMING)) {
            disk::remove(&folder.join(file)).await?;
        }
        Ok(Self { folder, max_bytes, ages: Arc::default() })
    }

    /// Keeps a trace, if it has the hash that it is named by. Returns its size.
    pub async fn put<B, E>(&self, sha256: &str, body: impl Stream<Item = Result<B, E>>) -> Result<u64, StoreError>
    where
        B: AsRef<[u8]>,
        E: std::fmt::Display,
    {
        let terms = Terms {
            what: "trace",
            limit: self.max_bytes,
            advice: "; have the controller started with a larger --max-trace-bytes, or put the trace into a bucket and \
                     name its URL",
            sha256: Some(checked(sha256)?),
            floor: Floor::Records,
        };
        disk::put(&self.folder, sha256, body, terms).await
    }

    /// Is it there? Then it stays for [`KEPT_UNNAMED`] from now.
    pub async fn claim(&self, sha256: &str, now: SystemTime) -> Result<bool, StoreError> {
        let path = self.folder.join(checked(sha256)?);
        let _ages = self.ages.lock().await;
        if disk::open(&path).await?.is_none() {
            return Ok(false);
        }
        let touched = OpenOptions::new().append(true).open(&path).and_then(|file| file.set_modified(now));
        touched.map_err(disk::disk("touch", &path)).map(|()| true)
    }

    /// Opens a trace; `None` if it is not there.
    pub async fn get(&self, sha256: &str) -> Result<Option<File>, StoreError> {
        disk::open(&self.folder.join(checked(sha256)?)).await
    }

    /// Removes traces that no Simulation names and that were not used lately. Returns what was removed.
    pub async fn sweep(&self, named: &BTreeSet<String>, now: SystemTime) -> Result<Vec<String>, StoreError> {
        let mut gone = Vec::new();
        for file in disk::list(&self.folder).await?.into_iter().filter(|file| names::is_sha256(file)) {
            if !named.contains(&file) && self.drop_old(&file, now).await? {
                gone.push(file);
            }
        }
        Ok(gone)
    }

    async fn drop_old(&self, file: &str, now: SystemTime) -> Result<bool, StoreError> {
        let path = self.folder.join(file);
        let _ages = self.ages.lock().await;
        let modified = fs::metadata(&path).await.and_then(|metadata| metadata.modified());
        let modified = modified.map_err(disk::disk("ask for the age of", &path))?;
        if now.duration_since(modified).unwrap_or_default() < KEPT_UNNAMED {
            return Ok(false);
        }
        disk::remove(&path).await.map(|()| true)
    }
}

/// A name that is one file and nothing else.
fn checked(sha256: &str) -> Result<&str, StoreError> {
    let good = names::is_sha256(sha256).then_some(sha256);
    good.ok_or_else(|| StoreError::Hash(sha256.chars().take(100).collect()))
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use tokio::io::AsyncReadExt;

    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn body(text: &'static str) -> impl Stream<Item = Result<&'static str, String>> {
        stream::iter((!text.is_empty()).then_some(Ok(text)))
    }

    #[tokio::test]
    async fn a_trace_is_kept_under_its_own_hash_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let traces = Traces::open(folder.path(), 3).await.unwrap();
        assert_eq!(traces.put(ABC, body("abc")).await.unwrap(), 3);
        assert!(matches!(traces.put(EMPTY, body("abc")).await, Err(StoreError::OtherBytes { .. })));
        assert!(traces.get(EMPTY).await.unwrap().is_none());
        let mut text = String::new();
        traces.get(ABC).await.unwrap().unwrap().read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "abc");
        let refused = traces.put(ABC, body("abcd")).await.unwrap_err().to_string();
        assert!(
            refused.starts_with("more than 3 bytes: a trace") && refused.contains("--max-trace-bytes"),
            "{refused}"
        );
        for name in ["", "..", "../log.txt", &ABC.to_uppercase(), &ABC[1..]] {
            assert!(matches!(traces.get(name).await, Err(StoreError::Hash(_))), "{name}");
        }
    }

    #[tokio::test]
    async fn what_nobody_names_goes_an_hour_after_somebody_last_asked_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let traces = Traces::open(folder.path(), 3).await.unwrap();
        traces.put(ABC, body("abc")).await.unwrap();
        traces.put(EMPTY, body("")).await.unwrap();
        let (now, nobody) = (SystemTime::now(), BTreeSet::new());
        assert!(traces.sweep(&nobody, now).await.unwrap().is_empty(), "both are new");
        let later = now + 2 * KEPT_UNNAMED;
        assert!(traces.claim(ABC, later - KEPT_UNNAMED / 2).await.unwrap());
        assert!(traces.sweep(&BTreeSet::from([EMPTY.to_owned()]), later).await.unwrap().is_empty());
        assert_eq!(traces.sweep(&nobody, later).await.unwrap(), [EMPTY]);
        assert!(!traces.claim(EMPTY, later).await.unwrap());
        assert!(traces.claim(ABC, later).await.unwrap());
    }

    #[tokio::test]
    async fn traces_and_records_share_a_folder_and_not_their_names() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(FOLDER)).unwrap();
        std::fs::write(folder.path().join(FOLDER).join(".incoming-x"), "half").unwrap();
        let traces = Traces::open(folder.path(), 3).await.unwrap();
        traces.put(ABC, body("abc")).await.unwrap();
        let store = super::super::Store::open(folder.path()).await.unwrap();
        assert!(store.names().await.unwrap().is_empty());
        assert_eq!(disk::list(&folder.path().join(FOLDER)).await.unwrap(), [ABC]);
    }
}
