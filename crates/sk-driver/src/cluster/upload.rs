//! Writes the record of a run to its destination: a folder, an object store, or the controller.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sk_record::{Staged, archive};
use sk_store::Location;
use sk_store::location::{ParseLocationError, SaveError, send_files, shown};

use super::controller::{Controller, ControllerError};
use super::request::RetryPolicy;

/// The destination of a record.
#[derive(Clone, Debug)]
pub enum Destination {
    /// A folder on this machine.
    Folder(PathBuf),
    /// A folder in an object store; each file is an object.
    Store(String),
    /// The controller keeps it.
    Controller(Controller),
}

/// Why a record could not be uploaded.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The record could not be written to its destination.
    #[error(transparent)]
    Record(#[from] sk_record::Error),
    /// An invalid location.
    #[error("spec.record.path: {0}")]
    Place(#[from] ParseLocationError),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] SaveError),
    /// A file of the record could not be read.
    #[error("cannot read the record: {0}")]
    Read(#[from] io::Error),
    /// The record is too large to be unpacked by whoever fetches it.
    #[error("the record has {bytes} bytes, and a packed one has at most {}; set spec.record.path", archive::MAX_BYTES)]
    TooLarge {
        /// How large it is.
        bytes: u64,
    },
    /// The controller refused it.
    #[error(transparent)]
    Controller(#[from] ControllerError),
    /// The run was asked to stop, and the store took longer than there was time.
    #[error("the record was not sent within the grace period of a stopped run")]
    NoTime,
    /// The upload panicked.
    #[error("the thread that sends the record panicked; please report this")]
    Broken,
}

impl Destination {
    /// Where `spec.record.path` says, for one of several repetitions.
    pub fn at(path: &str, repetition: Option<u32>) -> Result<Self, UploadError> {
        let path = match repetition {
            Some(repetition) => format!("{}/{repetition}", path.trim_end_matches('/')),
            None => path.trim_end_matches('/').to_owned(),
        };
        Ok(match path.parse()? {
            Location::File(folder) => Self::Folder(folder),
            Location::Remote(_) => Self::Store(path),
            Location::StandardInput => return Err(SaveError::StandardInput.into()),
        })
    }

    /// The folder beside which the record is written before it is delivered; `scratch` for what goes elsewhere.
    pub(crate) fn folder(&self, scratch: &Path) -> PathBuf {
        match self {
            Self::Folder(folder) => folder.clone(),
            Self::Store(_) | Self::Controller(_) => scratch.join("run"),
        }
    }

    /// Uploads a record and returns its location.
    pub(crate) async fn upload(
        &self,
        staged: Staged,
        simulation: &str,
        repetition: u32,
        retry: &RetryPolicy,
    ) -> Result<String, UploadError> {
        let folder = staged.publish()?;
        match self {
            Self::Folder(_) => Ok(folder.display().to_string()),
            Self::Store(place) => {
                let (to, from) = (place.clone(), folder);
                // `run.json` goes last: whoever finds it finds a whole record.
                let sending = tokio::task::spawn_blocking(move || send_files(&from, &to, "run.json"));
                let sent = tokio::select! {
                    sent = sending => sent.map_err(|_| UploadError::Broken)?.map_err(UploadError::Store),
                    () = retry.over() => Err(UploadError::NoTime),
                };
                sent.map(|()| shown(place))
            }
            Self::Controller(controller) => {
                let path = format!("/records/{simulation}/{repetition}");
                controller.send_record(&path, &folder, size(&folder)?, retry).await?;
                Ok(path)
            }
        }
    }
}

/// The bytes of a record's files.
fn size(folder: &Path) -> Result<u64, UploadError> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    if bytes > archive::MAX_BYTES { Err(UploadError::TooLarge { bytes }) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::cluster::controller::tests::{FakeController, listening, retry};

    #[test]
    fn a_place_is_a_folder_here_or_in_a_store_and_each_repetition_has_its_own() {
        let at = |path: &str, repetition| Destination::at(path, repetition);
        assert!(matches!(at("/runs/a/", None).unwrap(), Destination::Folder(folder) if folder == Path::new("/runs/a")));
        assert!(matches!(at("s3://b/runs", Some(2)).unwrap(), Destination::Store(place) if place == "s3://b/runs/2"));
        assert!(at("ftp://x/y", None).is_err() && at("-", None).is_err());
    }

    /// More than waits in memory, so that it goes in pieces; the first try is refused.
    #[tokio::test]
    async fn a_record_is_packed_while_it_is_sent_and_begins_anew_when_a_try_fails() {
        let folder = tempfile::tempdir().unwrap();
        let fake = FakeController { refusals: Arc::new(Mutex::new(1)), ..FakeController::default() };
        let controller = listening(folder.path(), fake.clone()).await;
        let mut writer = sk_record::Writer::create(&folder.path().join("scratch/run"), "s-1").unwrap();
        let large = vec![7; 5_000_000];
        writer.add_file("large.bin", &large).unwrap();
        let staged = writer.finish(&meta()).unwrap();
        let place = Destination::Controller(controller).upload(staged, "s", 3, &retry()).await.unwrap();
        assert_eq!(place, "/records/s/3");
        let paths: Vec<_> = fake.heard.lock().unwrap().iter().map(|(path, ..)| path.clone()).collect();
        assert_eq!(paths, ["PUT /records/s/3", "PUT /records/s/3"]);
        let bodies = fake.bodies.lock().unwrap();
        assert_eq!(bodies[0], bodies[1]);
        archive::unpack(&bodies[1][..], &folder.path().join("there")).unwrap();
        let there = sk_record::Run::open(&folder.path().join("there")).unwrap();
        assert_eq!(there.file("large.bin").unwrap().unwrap(), large);
    }

    fn meta() -> sk_record::RunMeta {
        let at = sk_core::SimTime::EPOCH;
        sk_record::RunMeta {
            run_id: "s-1".into(),
            name: "s".into(),
            version: "0".into(),
            engine: sk_record::Engine::Cluster,
            kubernetes: "1.36".into(),
            seed: 1,
            trace: sk_record::Trace {
                name: "t".into(),
                digest: "d".into(),
                format: "jsonl".into(),
                start: at,
                end: at,
                recorded: false,
            },
            start: at,
            end: at,
            scenario_digest: "x".into(),
            currency: "USD".into(),
            groups: Vec::new(),
            autoscaler: None,
            warnings: Vec::new(),
            missing: Vec::new(),
            timeline: Vec::new(),
            partial: false,
        }
    }
}
