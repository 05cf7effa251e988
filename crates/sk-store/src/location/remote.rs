//! Object stores: download one object into a file, upload one file as an object, list the objects of a folder.
//!
//! Everything runs on its own thread with its own runtime, so it can be called inside and outside of another runtime.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use futures::TryStreamExt as _;
use object_store::client::{HttpError, HttpErrorKind};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt as _, PutPayload};

use super::{StoreSettings, StoredObject};

/// The most objects that are listed: 10,000 run records of ten files are 100,000.
const MAX_LISTED: usize = 1_000_000;

/// How much is sent at once. Stores accept at most 10,000 parts, so that an object may be 160 GB.
const PART_BYTES: u64 = 16 << 20;

/// Why an object was not fetched or sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteError {
    #[error("it is not a URL of an object store: {0}")]
    Url(#[from] url::ParseError),
    #[error("{0}; check the address, the credentials in the environment, and what they may do")]
    Store(object_store::Error),
    #[error(
        "there are no credentials: set those of the store in the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, \
         GOOGLE_SERVICE_ACCOUNT or AZURE_STORAGE_…); this machine has no role of its own either: {0}"
    )]
    NoCredentials(object_store::Error),
    #[error("the temporary file failed: {0}; check that there is disk space for temporary files (TMPDIR)")]
    File(#[from] std::io::Error),
    #[error("there are more than {MAX_LISTED} objects in this folder; use one that holds nothing else")]
    TooMany,
    #[error("its thread panicked")]
    Thread,
}

/// Where a machine in a cloud asks for its role: the last place in which stores look for credentials.
const MACHINE_ROLES: [&str; 2] = ["169.254.169.254", "metadata.google.internal"];

impl From<object_store::Error> for RemoteError {
    fn from(error: object_store::Error) -> Self {
        let said = error.to_string();
        if MACHINE_ROLES.iter().any(|host| said.contains(host)) {
            Self::NoCredentials(error)
        } else {
            Self::Store(error)
        }
    }
}

impl RemoteError {
    /// Did the store not answer, or say that it cannot now? Whoever waits may find it again.
    pub(crate) fn is_away(&self) -> bool {
        let Self::Store(error) = self else { return false };
        // The type that holds the status is private to the crate; its text is all there is.
        if error.to_string().contains("status code: 5") {
            return true;
        }
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<HttpError>() {
                return match error.kind() {
                    HttpErrorKind::Connect
                    | HttpErrorKind::Request
                    | HttpErrorKind::Timeout
                    | HttpErrorKind::Interrupted => true,
                    // Kinds to come are not taken for a store that is away.
                    _ => false,
                };
            }
            cause = error.source();
        }
        false
    }
}

/// Copies the object at `url` into `file`.
pub(crate) fn fetch(url: &str, settings: &StoreSettings, file: &mut File) -> Result<(), RemoteError> {
    run(async {
        let (store, path) = store(url, settings)?;
        let mut chunks = store.get(&path).await?.into_stream();
        while let Some(chunk) = chunks.try_next().await? {
            file.write_all(&chunk)?;
        }
        file.flush()?;
        Ok(())
    })
}

/// The objects below the folder at `url`.
pub(crate) fn list(url: &str, settings: &StoreSettings) -> Result<Vec<StoredObject>, RemoteError> {
    run(async {
        let (store, folder) = store(url, settings)?;
        let mut objects = store.list(Some(&folder));
        let mut listed = Vec::new();
        while let Some(object) = objects.try_next().await? {
            let Some(parts) = object.location.prefix_match(&folder) else { continue };
            let name = parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/");
            if listed.len() >= MAX_LISTED {
                return Err(RemoteError::TooMany);
            }
            listed.push(StoredObject { name, modified: object.last_modified.into() });
        }
        Ok(listed)
    })
}

/// Sends all of `file` as the object at `url`; the object is there whole or not at all.
pub(crate) fn send(url: &str, settings: &StoreSettings, mut file: &File) -> Result<(), RemoteError> {
    run(async {
        let (store, path) = store(url, settings)?;
        file.seek(SeekFrom::Start(0))?;
        let first = part(file)?;
        if (first.len() as u64) < PART_BYTES {
            store.put(&path, PutPayload::from(first)).await?;
            return Ok(());
        }
        let mut upload = store.put_multipart(&path).await?;
        let sent = send_parts(upload.as_mut(), first, file).await;
        if sent.is_err() {
            // What failed is what matters; parts that cannot be removed either are the store's to expire.
            let _ = upload.abort().await;
        }
        sent
    })
}

async fn send_parts(upload: &mut dyn MultipartUpload, first: Vec<u8>, file: &File) -> Result<(), RemoteError> {
    let mut next = first;
    while !next.is_empty() {
        upload.put_part(PutPayload::from(next)).await?;
        next = part(file)?;
    }
    upload.complete().await?;
    Ok(())
}

fn part(file: &File) -> Result<Vec<u8>, RemoteError> {
    let mut part = Vec::new();
    file.take(PART_BYTES).read_to_end(&mut part)?;
    Ok(part)
}

/// The store of a URL and the object's path in it.
fn store(url: &str, settings: &StoreSettings) -> Result<(Arc<dyn ObjectStore>, Path), RemoteError> {
    let url = url::Url::parse(url)?;
    // Whoever writes http:// means it; without this only https:// would be spoken.
    let plain = (url.scheme() == "http").then(|| ("allow_http".to_owned(), "true".to_owned()));
    let (store, path) = object_store::parse_url_opts(&url, settings.0.iter().cloned().chain(plain))?;
    Ok((store.into(), path))
}

fn run<T: Send>(work: impl Future<Output = Result<T, RemoteError>> + Send) -> Result<T, RemoteError> {
    // TLS needs one provider of cryptography for the whole process; whoever came first may have chosen another.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let on_thread = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(work)
    };
    std::thread::scope(|scope| scope.spawn(on_thread).join().unwrap_or(Err(RemoteError::Thread)))
}
