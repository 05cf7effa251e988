//! The data folder: the log, the key of the hashes, the certificate, the configuration that the log was written with,
//! and the cluster that it belongs to.
//!
//! The key stays as long as the folder, so the same string has the same hash across restarts. The key never leaves the
//! folder: without it, nobody can find a hashed value by trying.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rcgen::KeyPair;
use sha2::{Digest, Sha256};
use sk_api::tracer::{Config, Retention};
use sk_ingest::PrivacyKey;
use tempfile::TempDir;

use crate::tls::{self, TlsError};

const KEY_FILE: &str = "privacy.key";
const CONFIG_FILE: &str = "recorded-with";
const CLUSTER_FILE: &str = "recorded-of";
const LOG_FOLDER: &str = "events";

/// Why the data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder cannot be created, read or written.
    #[error("use {} as the data folder: {source}; it must exist and be writable, or its parent must be", path.display())]
    Use {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file in it cannot be written.
    #[error(transparent)]
    Write(#[from] TlsError),
    /// The key file is damaged.
    #[error("{} is not a key; restore the right one, or delete it and the log beside it", .0.display())]
    Key(PathBuf),
    /// The folder belongs to another cluster.
    #[error(
        "{} holds what was recorded of another cluster (whose namespace kube-system has the uid {recorded}, and here it \
         has {found}); give each cluster a data folder of its own, or remove {} if this is the same cluster made anew",
        path.display(), path.join(CLUSTER_FILE).display()
    )]
    OtherCluster {
        /// Which.
        path: PathBuf,
        /// The cluster that it belongs to.
        recorded: String,
        /// The cluster that the tracer is connected to.
        found: String,
    },
    /// No random bytes are available.
    #[error("make a key: {0}")]
    Random(#[from] rcgen::Error),
}

/// An open data folder.
#[derive(Debug)]
pub(crate) struct DataFolder {
    path: PathBuf,
    /// Removes the folder in the end, if it is temporary.
    temporary: Option<TempDir>,
}

impl DataFolder {
    /// This folder, or a temporary one.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, FolderError> {
        let Some(path) = path else {
            let temporary = tempfile::Builder::new().prefix("sk-tracer-").tempdir();
            let temporary = temporary.map_err(|source| FolderError::Use { path: std::env::temp_dir(), source })?;
            return Ok(Self { path: temporary.path().to_owned(), temporary: Some(temporary) });
        };
        let mut folder = fs::DirBuilder::new();
        folder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
        folder.create(path).map_err(|source| FolderError::Use { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), temporary: None })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Is it removed when the tracer ends?
    pub(crate) fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// Claims the folder for this cluster, unless it belongs to another one.
    pub(crate) fn belong_to(&self, cluster: &str) -> Result<(), FolderError> {
        let path = self.path.join(CLUSTER_FILE);
        match fs::read_to_string(&path) {
            Ok(recorded) if recorded.trim() == cluster => Ok(()),
            Ok(recorded) => Err(FolderError::OtherCluster {
                path: self.path.clone(),
                recorded: recorded.trim().to_owned(),
                found: cluster.to_owned(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(tls::write_private(&path, cluster)?),
            Err(source) => Err(FolderError::Use { path, source }),
        }
    }

    /// Where the log is.
    pub(crate) fn log(&self) -> PathBuf {
        self.path.join(LOG_FOLDER)
    }

    /// The key under which private texts are hidden; it is made if it is not there.
    pub(crate) fn key(&self) -> Result<PrivacyKey, FolderError> {
        let path = self.path.join(KEY_FILE);
        match fs::read_to_string(&path) {
            Ok(text) => parse_key(text.trim()).map(PrivacyKey::new).ok_or(FolderError::Key(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = random_key()?;
                let text: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
                tls::write_private(&path, &text)?;
                Ok(PrivacyKey::new(key))
            }
            Err(source) => Err(FolderError::Use { path, source }),
        }
    }

    /// Was the log written with another configuration than this?
    ///
    /// What a watch has seen under other rules is no state to go on from: a kind may have been left out, or its values
    /// hidden. Retention and places for exports change nothing of what is seen.
    pub(crate) fn was_written_otherwise(&self, config: &Config) -> bool {
        let before = fs::read_to_string(self.path.join(CONFIG_FILE)).ok();
        before.is_some_and(|before| before.trim() != fingerprint(config))
    }

    /// Remembers that all of the log's state was seen under this configuration. To be called when that is so: whoever is
    /// killed before begins again with everything.
    pub(crate) fn remember(&self, config: &Config) -> Result<(), FolderError> {
        let (path, text) = (self.path.join(CONFIG_FILE), fingerprint(config));
        // A full disk is no reason not to start with what is already written.
        if fs::read_to_string(&path).is_ok_and(|before| before == text) {
            return Ok(());
        }
        Ok(tls::write_private(&path, &text)?)
    }
}

/// What of a configuration decides what is seen.
fn fingerprint(config: &Config) -> String {
    let seen = Config { export_to: Vec::new(), retention: Retention::default(), ..config.clone() };
    let text = serde_json::to_string(&seen).expect("a configuration is maps, lists and texts");
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 16 bytes that nobody can guess, out of a fresh signing key: the one source of real randomness at hand.
fn random_key() -> Result<[u8; 16], rcgen::Error> {
    let secret = Sha256::digest(KeyPair::generate()?.serialize_der());
    let mut key = [0; 16];
    key.copy_from_slice(&secret[..16]);
    Ok(key)
}

fn parse_key(text: &str) -> Option<[u8; 16]> {
    let mut key = [0; 16];
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    for (byte, digits) in key.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_kept_for_its_owner_alone_and_refused_when_it_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::open(Some(folder.path())).unwrap();
        data.key().unwrap();
        let path = folder.path().join(KEY_FILE);
        let text = fs::read_to_string(&path).unwrap();
        data.key().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert!(parse_key(&text).is_some());
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions()) & 0o77, 0);
        fs::write(&path, "zz").unwrap();
        assert!(matches!(data.key(), Err(FolderError::Key(_))));
    }

    #[test]
    fn a_folder_is_of_one_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::open(Some(folder.path())).unwrap();
        data.belong_to("one").unwrap();
        data.belong_to("one").unwrap();
        let refused = data.belong_to("two").unwrap_err().to_string();
        assert!(refused.contains("another cluster") && refused.contains(CLUSTER_FILE), "{refused}");
        fs::remove_file(folder.path().join(CLUSTER_FILE)).unwrap();
        data.belong_to("two").unwrap();
    }

    #[test]
    fn only_what_changes_what_is_seen_is_another_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::open(Some(folder.path())).unwrap();
        let changed = |text: &str| {
            let config = Config::parse("test", text).unwrap();
            let changed = data.was_written_otherwise(&config);
            assert_eq!(data.was_written_otherwise(&config), changed, "looking changes nothing");
            data.remember(&config).unwrap();
            changed
        };
        assert!(!changed("trackedObjects: {apps/v1.Deployment: {}}\n"), "a new folder has no other");
        assert!(!changed("trackedObjects: {apps/v1.Deployment: {}}\nretention: {age: 1d}\n"));
        assert!(changed("trackedObjects: {apps/v1.Deployment: {}}\nprivacy: full\n"));
        assert!(!changed("trackedObjects: {apps/v1.Deployment: {}}\nprivacy: full\n"));
    }
}
