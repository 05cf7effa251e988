//! Where a run's record goes: a folder, an object store, or the controller.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use kube::Client;
use kube::config::{AuthInfo, Config};
use sk_record::{Staged, archive};
use sk_store::Location;
use sk_store::location::{ParseLocationError, SaveError};

use super::request::{Refusal, patiently};
use super::tally::Tally;

/// The largest record that is sent to the controller, which it is held in memory for: ten times what two million pods
/// need is not to be expected, and a record that large belongs into an object store.
const MAX_SENT_BYTES: u64 = 1 << 30;

/// Where the record goes.
#[derive(Clone, Debug)]
pub enum Destination {
    /// A folder on this machine.
    Folder(PathBuf),
    /// A folder in an object store; each file is an object.
    Store(String),
    /// The controller keeps it.
    Controller(Controller),
}

/// How the controller is reached.
#[derive(Clone, Debug)]
pub struct Controller {
    /// Its address, without a path.
    pub url: String,
    /// The file with the authority to trust.
    pub ca: PathBuf,
    /// The file with the token to show; it is renewed in place.
    pub token: PathBuf,
}

/// Why a record did not arrive.
#[derive(Debug, thiserror::Error)]
pub enum DeliverError {
    /// It could not be made or put in its place.
    #[error(transparent)]
    Record(#[from] sk_record::Error),
    /// The place is none.
    #[error("spec.record.path: {0}")]
    Place(#[from] ParseLocationError),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] SaveError),
    /// A file of the record could not be read.
    #[error("cannot read the record: {0}")]
    Read(#[from] io::Error),
    /// The record is too large for the controller.
    #[error("the record has {0} bytes, and the controller is sent at most {MAX_SENT_BYTES}; set spec.record.path")]
    TooLarge(u64),
    /// The controller's address or authority is none.
    #[error("the controller at {url} cannot be spoken to: {problem}")]
    Controller {
        /// Its address.
        url: String,
        /// What is wrong.
        problem: String,
    },
    /// The controller refused.
    #[error("the controller did not take {what}: {refusal}")]
    Refused {
        /// `the record` or `the log`.
        what: &'static str,
        /// What it said.
        refusal: Refusal,
    },
    /// The thread that was to do it broke off.
    #[error("sending the record broke off")]
    Broken,
}

impl Destination {
    /// Where `spec.record.path` says, for one of several repetitions.
    pub fn at(path: &str, repetition: Option<u32>) -> Result<Self, DeliverError> {
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

    /// Delivers a record, and says where it is now.
    pub(crate) async fn deliver(
        &self,
        staged: Staged,
        simulation: &str,
        repetition: u32,
        tally: &Tally,
    ) -> Result<String, DeliverError> {
        let folder = staged.publish()?;
        match self {
            Self::Folder(_) => Ok(folder.display().to_string()),
            Self::Store(place) => {
                let (to, from) = (place.clone(), folder);
                let sent = tokio::task::spawn_blocking(move || send_files(&from, &to)).await;
                sent.map_err(|_| DeliverError::Broken)??;
                Ok(place.clone())
            }
            Self::Controller(controller) => {
                let packed = tokio::task::spawn_blocking(move || pack(&folder)).await;
                let bytes = packed.map_err(|_| DeliverError::Broken)??;
                let path = format!("/records/{simulation}/{repetition}");
                controller.put("the record", &path, bytes, tally).await?;
                Ok(path)
            }
        }
    }
}

impl Controller {
    /// Sends the end of the driver's log.
    pub(crate) async fn send_log(&self, simulation: &str, log: String) -> Result<(), DeliverError> {
        self.put("the log", &format!("/logs/{simulation}"), log.into_bytes(), &Tally::default()).await
    }

    async fn put(&self, what: &'static str, path: &str, body: Vec<u8>, tally: &Tally) -> Result<(), DeliverError> {
        let wrong = |problem: String| DeliverError::Controller { url: self.url.clone(), problem };
        let client = self.client().map_err(&wrong)?;
        let url = format!("{}{path}", self.url.trim_end_matches('/'));
        let request = http::Request::put(url).header(http::header::CONTENT_TYPE, "application/octet-stream").body(body);
        let request = request.map_err(|error| wrong(error.to_string()))?;
        let sent = patiently(tally, || client.request_text(request.clone())).await;
        sent.map(drop).map_err(|refusal| DeliverError::Refused { what, refusal })
    }

    /// A client of Kubernetes serves: it verifies the authority and reads the token anew when it is renewed.
    fn client(&self) -> Result<Client, String> {
        let mut config = Config::new(self.url.parse().map_err(|error| format!("{error}"))?);
        config.root_cert_file = Some(self.ca.clone());
        config.auth_info = AuthInfo { token_file: Some(self.token.display().to_string()), ..AuthInfo::default() };
        Client::try_from(config).map_err(|error| error.to_string())
    }
}

fn pack(folder: &Path) -> Result<Vec<u8>, DeliverError> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    if bytes > MAX_SENT_BYTES {
        return Err(DeliverError::TooLarge(bytes));
    }
    Ok(archive::pack(folder, Vec::new())?)
}

/// Sends `run.json` last: whoever finds it finds a whole record.
fn send_files(folder: &Path, place: &str) -> Result<(), DeliverError> {
    let entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let mut names: Vec<_> = entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_by_key(|name| (name == "run.json", name.clone()));
    for name in names {
        let mut output = format!("{place}/{name}").parse::<Location>()?.create()?;
        io::copy(&mut File::open(folder.join(&name))?, &mut output)?;
        output.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_folder_here_or_in_a_store_and_each_repetition_has_its_own() {
        let at = |path: &str, repetition| Destination::at(path, repetition);
        assert!(matches!(at("/runs/a/", None).unwrap(), Destination::Folder(folder) if folder == Path::new("/runs/a")));
        assert!(matches!(at("s3://b/runs", Some(2)).unwrap(), Destination::Store(place) if place == "s3://b/runs/2"));
        assert!(at("ftp://x/y", None).is_err() && at("-", None).is_err());
    }
}
