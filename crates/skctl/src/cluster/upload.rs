//! Uploads a local trace to the controller.
//!
//! The trace is read completely before anything is sent, so invalid input is refused here, with the message of an
//! embedded run, and not by a driver in the cluster minutes later. A file is sent as it is; a folder or standard input
//! is written into one file first. The controller stores it by the hash of its bytes, so the same trace is not sent
//! twice.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use futures::stream;
use http::StatusCode;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use indicatif::{DecimalBytes, ProgressBar};
use sha2::{Digest, Sha256};
use sk_store::Location;
use sk_store::trace::{Format, Trace, convert};
use tokio::io::AsyncReadExt;

use crate::cli::Global;
use crate::cluster::Cluster;
use crate::cluster::channel::{ChannelError, Content};
use crate::cluster::installation::CONTROLLER;
use crate::progress::Progress;
use crate::{examples, output};

/// What is read of a file at a time; one such piece is in memory.
const CHUNK_BYTES: usize = 256 << 10;

/// A trace as one file, as the controller stores it.
#[derive(Debug)]
pub(crate) struct TraceFile {
    file: File,
    length: u64,
    /// The hash of its bytes in lower-case hex: its name at the controller.
    pub(crate) sha256: String,
}

impl TraceFile {
    /// Reads all of an open trace and makes it one file. `typed` is what it was opened from.
    pub(crate) fn pack(typed: &str, trace: &Trace) -> Result<Self> {
        let mut file = match whole_file(typed)? {
            Some(file) => {
                for head in trace.heads()? {
                    head?;
                }
                file
            }
            None => convert(trace, Format::Native, temporary()?)?.0,
        };
        let cannot = || format!("cannot read {typed}");
        file.rewind().with_context(cannot)?;
        let (length, sha256) = measure(&mut file).with_context(cannot)?;
        file.rewind().with_context(cannot)?;
        Ok(Self { file, length, sha256 })
    }

    /// Uploads it, unless the controller already has it.
    pub(crate) async fn send(self, cluster: &Cluster, name: &str, global: &Global) -> Result<()> {
        let path = format!("/traces/{}", self.sha256);
        let mut controller = CONTROLLER.open(cluster).await?;
        let size = DecimalBytes(self.length);
        if controller.has(&path).await.map_err(refused)? {
            output::say(global, &format!("the controller already has {name} ({size})"));
            return Ok(());
        }
        let progress = Progress::of_bytes(Some(self.length), format!("sending {name}"), global.quiet)?;
        let length = self.length;
        let content = content(self.file, progress.meter());
        match progress.waiting(controller.put(&path, length, content)).await? {
            Ok(()) => output::say(global, &format!("sent {name} ({size}) to the controller")),
            Err(ChannelError::Refused { status: StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED, .. }) => {
                bail!(
                    "the controller in {cluster} is older than this skctl and does not accept traces; `skctl install sim`"
                )
            }
            // A server that refuses a body may close the connection before its message arrives.
            Err(error @ ChannelError::Send { .. }) => bail!(
                "cannot send {name} to the controller: it closed the connection ({error}); its log says why: the trace ({size}) may be \
                 larger than its --max-trace-bytes, or its volume full"
            ),
            Err(error) => return Err(refused(error).context(format!("cannot send {name} to the controller"))),
        }
        Ok(())
    }
}

/// Explains a refusal: the installation's account may lack the permission. The response to a HEAD request has no message.
fn refused(error: ChannelError) -> anyhow::Error {
    let account = CONTROLLER.account;
    match error {
        ChannelError::Refused { status: StatusCode::FORBIDDEN, .. } => {
            anyhow!("ServiceAccount {account} may not send traces; `skctl doctor sim` says what its role lacks")
        }
        ChannelError::Refused { peer, status: StatusCode::UNAUTHORIZED, .. } => {
            anyhow!("{peer} rejects the token of ServiceAccount {account}; its log says why")
        }
        error => error.into(),
    }
}

/// The file that holds the trace byte for byte, if there is one.
fn whole_file(typed: &str) -> Result<Option<File>> {
    if let Some(name) = typed.strip_prefix(examples::PREFIX) {
        let mut file = temporary()?;
        file.write_all(examples::find(name)?.trace).context("cannot write the example to the temporary folder")?;
        return Ok(Some(file));
    }
    match typed.parse()? {
        Location::File(path) if path.is_file() => {
            let opened = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok(Some(opened))
        }
        _ => Ok(None),
    }
}

/// An unnamed file: it disappears with the process.
fn temporary() -> Result<File> {
    tempfile::tempfile().context("cannot make a temporary file for the trace")
}

/// How long a file is, and its hash.
fn measure(file: &mut File) -> io::Result<(u64, String)> {
    let (mut hash, mut length) = (Sha256::new(), 0);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk)? {
            0 => break,
            read => {
                hash.update(&chunk[..read]);
                length += read as u64;
            }
        }
    }
    let hex = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((length, hex))
}

/// The file, piece by piece; the meter says how much of it has gone.
fn content(file: File, meter: ProgressBar) -> Content {
    let begin = (tokio::fs::File::from_std(file), meter);
    let pieces = stream::try_unfold(begin, |(mut file, meter)| async move {
        let mut chunk = vec![0; CHUNK_BYTES];
        let read = file.read(&mut chunk).await?;
        meter.inc(read as u64);
        chunk.truncate(read);
        Ok::<_, io::Error>((read > 0).then(|| (Frame::data(Bytes::from(chunk)), (file, meter))))
    });
    StreamBody::new(pieces).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_goes_as_it_is_and_a_folder_becomes_one() {
        let example = examples::find("nginx").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nginx.sktrace");
        std::fs::write(&path, example.trace).unwrap();
        let pack = |typed: &str| {
            let trace = match typed.strip_prefix(examples::PREFIX) {
                Some(_) => sk_store::trace::from_bytes(typed, example.trace).unwrap(),
                None => typed.parse::<Location>().unwrap().open().unwrap(),
            };
            TraceFile::pack(typed, &trace).unwrap()
        };
        let (file, bundled) = (pack(path.to_str().unwrap()), pack("example:nginx"));
        assert_eq!(file.length, example.trace.len() as u64);
        assert_eq!(file.sha256, bundled.sha256);
        assert_eq!(file.sha256.len(), 64);

        let manifests = dir.path().join("manifests");
        std::fs::create_dir(&manifests).unwrap();
        let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\nspec: {containers: [{name: c}]}\n";
        std::fs::write(manifests.join("a.yaml"), pod).unwrap();
        let mut folder = pack(manifests.to_str().unwrap());
        let mut bytes = Vec::new();
        folder.file.read_to_end(&mut bytes).unwrap();
        let again = sk_store::trace::from_bytes("again", bytes).unwrap();
        assert_eq!(again.format(), Format::Native);
        assert_eq!(again.records().unwrap().count(), 1);
    }
}
