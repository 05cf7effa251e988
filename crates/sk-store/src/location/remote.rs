//! Object stores: download one object into a file, upload one file as an object.
//!
//! Everything runs on its own thread with its own runtime, so it can be called inside and outside of another runtime.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use futures::TryStreamExt as _;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt as _, PutPayload};

use super::StoreSettings;

/// How much is sent at once. Stores accept at most 10,000 parts, so that an object may be 160 GB.
const PART_BYTES: u64 = 16 << 20;

/// Why an object was not fetched or sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteError {
    #[error("it is not a URL of an object store: {0}")]
    Url(#[from] url::ParseError),
    #[error("{0}; check the address, the credentials in the environment, and what they may do")]
    Store(#[from] object_store::Error),
    #[error("the temporary file failed: {0}; check that there is room in the folder for temporary files (TMPDIR)")]
    File(#[from] std::io::Error),
    #[error("its thread broke off")]
    Thread,
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
