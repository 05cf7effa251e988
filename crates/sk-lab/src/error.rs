//! Errors of a control plane: the step that failed and what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use crate::logs;
use crate::options::Component;
use crate::programs::MissingProgram;

/// Why a control plane, or a component of it, did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A program is missing.
    #[error(transparent)]
    Program(#[from] MissingProgram),
    /// The programs cannot be located.
    #[error("{0}")]
    NoPrograms(String),
    /// The temporary folder cannot be written.
    #[error("write {}: {source}; free some disk, or set TMPDIR to a folder on another one", path.display())]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Certificates cannot be made.
    #[error("make certificates for the control plane: {0}")]
    Certificates(#[from] rcgen::Error),
    /// The machine has no port left.
    #[error("find a free port on 127.0.0.1: {0}; stop other programs")]
    Ports(#[source] io::Error),
    /// The operating system would not run a binary.
    #[error("run {}: {source}; is it a program for this machine? Put another one there", program.display())]
    Spawn {
        /// The binary.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Somebody took a port between finding it free and using it, again and again.
    #[error(
        "the port of {component} was in use in each of {starts} starts; stop other programs that bind ports on 127.0.0.1\n{tail}"
    )]
    PortTaken {
        /// The component.
        component: Component,
        /// How many starts were tried.
        starts: usize,
        /// The end of its log.
        tail: String,
    },
    /// A component ended instead of becoming ready.
    #[error("{component} ended at once with {status}; the end of its log:\n{tail}")]
    Exited {
        /// The component.
        component: Component,
        /// How it ended.
        status: String,
        /// The end of its log.
        tail: String,
    },
    /// A component runs but does not become ready.
    #[error("{component} was not ready after {} s ({last}); the end of its log:\n{tail}", waited.as_secs())]
    NotReady {
        /// The component.
        component: Component,
        /// How long it was waited for.
        waited: Duration,
        /// What it answered last.
        last: String,
        /// The end of its log.
        tail: String,
    },
    /// Kinds that have to be there before the controllers start are not.
    #[error(
        "install CustomResourceDefinitions: {0}; correct Options::kinds, or put Karpenter's definitions beside its program"
    )]
    Kinds(String),
    /// A client for the new control plane cannot be made.
    #[error("make a client for the control plane: {0}")]
    Client(String),
}

impl StartError {
    /// The error of a component that has ended, with the end of its log.
    pub(crate) fn of_ended(component: Component, status: ExitStatus, log: &Path) -> Self {
        let tail = logs::tail(log);
        if tail.contains("address already in use") {
            return Self::PortTaken { component, starts: 1, tail };
        }
        Self::Exited { component, status: status.to_string(), tail }
    }
}

/// Why something could not be done with a running control plane.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// A component did not come back.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A component that is not running cannot be stopped.
    #[error("{0} is not running: start it with `restart`, or do not leave it out of the options")]
    NotRunning(Component),
    /// A component does not end.
    #[error("{component} still runs {} s after it was asked to stop; see its log in the logs folder", waited.as_secs())]
    DoesNotEnd {
        /// The component.
        component: Component,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The API server, or etcd, refused a request.
    #[error("{step}: {source}")]
    Request {
        /// What was being done.
        step: String,
        /// The refusal.
        source: Box<kube::Error>,
    },
    /// A kind is not served.
    #[error(
        "the API server does not serve {0}: check its group and version, or create its CustomResourceDefinition first"
    )]
    UnknownKind(sk_core::Gvk),
    /// An object cannot be sent.
    #[error("{0} is not an object to create: it needs apiVersion, kind and metadata.name")]
    NoObject(String),
    /// Something did not become true in time.
    #[error("timed out after {} s waiting for {what}{}", waited.as_secs(), last.as_ref().map(|last| format!("; it was {last}")).unwrap_or_default())]
    TimedOut {
        /// What was waited for.
        what: String,
        /// How long.
        waited: Duration,
        /// What was seen last.
        last: Option<String>,
    },
    /// A folder for processes cannot be made.
    #[error("make a folder for the process runner: {0}; free some disk, or set TMPDIR to a folder on another one")]
    Folder(#[source] io::Error),
    /// The machine cannot be reached from its own API server.
    #[error(
        "this machine has no address besides loopback, which Kubernetes refuses as an endpoint: connect it to a network ({0})"
    )]
    NoAddress(io::Error),
}

impl ControlError {
    /// A request that was refused while this was being done.
    pub fn request(step: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let step = step.into();
        move |source| Self::Request { step, source: Box::new(source) }
    }
}
