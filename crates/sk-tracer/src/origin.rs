//! Checks that the data folder belongs to this cluster. Otherwise two clusters would share one history, in which the
//! first list of the second cluster deletes all objects of the first.
//!
//! The uid of the namespace kube-system identifies a cluster: every cluster has it and it cannot be deleted. Nothing is
//! watched before the check. If the tracer may not read the namespace, or the API server has none, or the folder cannot
//! be written, the tracer logs that, records anyway, and asks again for a while.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::access::Access;
use crate::folder::{DataFolder, FolderError};
use crate::health::Health;
use crate::troubles::Cause;

/// The namespace that a cluster is known by.
pub(crate) const NAMESPACE: &str = "kube-system";
/// The purpose of the request, for the log.
const WHAT: &str = "which cluster this is";
/// How long a start waits for the answer. Afterwards the tracer serves, and watches when the answer has come.
const LIMIT: Duration = Duration::from_secs(5);
/// Between two attempts, if the API server cannot be asked.
const PAUSE: Duration = Duration::from_secs(1);
/// Between two attempts, if it refuses to answer, or the answer cannot be written down: the right may come a moment after
/// the tracer, and room on the disk when somebody makes it.
const LONG_PAUSE: Duration = Duration::from_secs(10);
/// How long it is asked again although it refuses. The next start asks again.
const ASK_FOR: Duration = Duration::from_secs(600);

/// An answer that may still be to come.
pub(crate) struct Origin {
    settled: watch::Receiver<bool>,
    /// Somebody who is still asking.
    asking: Option<JoinHandle<Result<(), FolderError>>>,
}

impl Origin {
    /// Asks, and refuses a folder of another cluster.
    pub(crate) async fn ask(access: &Access, folder: &Arc<DataFolder>) -> Result<Self, FolderError> {
        let (sender, mut settled) = watch::channel(folder.is_temporary());
        if folder.is_temporary() {
            return Ok(Self { settled, asking: None });
        }
        let asking = tokio::spawn(confirm(access.clone(), Arc::clone(folder), sender));
        let settling = async { settled.wait_for(|settled| *settled).await.is_ok() };
        let unsettled_for_good = tokio::time::timeout(LIMIT, settling).await == Ok(false);
        if !unsettled_for_good {
            return Ok(Self { settled, asking: Some(asking) });
        }
        match asking.await {
            Ok(confirmed) => confirmed.map(|()| Self { settled, asking: None }),
            // A task that panicked has settled nothing, and so nothing is watched; there is no panic in it.
            Err(_) => Ok(Self { settled, asking: None }),
        }
    }

    /// Goes on asking in the background, if need be. It is the end of the tracer if the folder is another cluster's.
    pub(crate) fn settle(&mut self, tasks: &mut JoinSet<()>, health: &Arc<Health>) {
        let Some(asking) = self.asking.take() else { return };
        let health = Arc::clone(health);
        tasks.spawn(async move {
            match asking.await {
                Ok(Ok(())) => {}
                Ok(Err(problem)) => {
                    tracing::error!(%problem, "nothing is recorded");
                    health.fail();
                }
                Err(_) => health.fail(),
            }
        });
    }

    /// Waits until it is settled that this is the right cluster; `false` if it is not.
    pub(crate) fn settled(&self) -> impl Future<Output = bool> + Send + use<> {
        let mut settled = self.settled.clone();
        async move { settled.wait_for(|settled| *settled).await.is_ok() }
    }
}

/// Compares, when there is an answer, and says when nobody has to wait for it any more.
async fn confirm(access: Access, folder: Arc<DataFolder>, settled: watch::Sender<bool>) -> Result<(), FolderError> {
    let began = Instant::now();
    loop {
        let problem = match uid(&access).await {
            Ok(Some(uid)) => match folder.belong_to(&uid) {
                // It is no other cluster's, and a disk that is full is no reason not to record.
                Err(FolderError::Write(problem)) => problem.to_string(),
                Ok(()) => {
                    settled.send_replace(true);
                    return Ok(());
                }
                Err(another) => return Err(another),
            },
            Ok(None) => "it has no uid".to_owned(),
            Err(problem) => problem.to_string(),
        };
        if !settled.send_replace(true) {
            warn(&problem);
        }
        if began.elapsed() >= ASK_FOR {
            return Ok(());
        }
        tokio::time::sleep(LONG_PAUSE).await;
    }
}

/// Asks until there is an answer, or none is to be expected.
async fn uid(access: &Access) -> Result<Option<String>, kube::Error> {
    loop {
        match Api::<Namespace>::all(access.client()).get_metadata(NAMESPACE).await {
            Err(problem) if is_passing(&problem) => {
                access.troubles().note(WHAT, Cause::of(&problem), &problem);
                if matches!(&problem, kube::Error::Api(status) if status.code == 401) {
                    access.renew().await;
                }
                tokio::time::sleep(PAUSE).await;
            }
            answer => {
                access.troubles().overcome(WHAT);
                return answer.map(|namespace| namespace.metadata.uid);
            }
        }
    }
}

fn warn(problem: &str) {
    let kind = "v1.Namespace";
    tracing::warn!(kind, name = NAMESPACE, problem, "it cannot be checked whether the data folder is of this cluster");
}

/// May asking again help?
fn is_passing(problem: &kube::Error) -> bool {
    match problem {
        kube::Error::Api(status) => matches!(status.code, 401 | 429 | 500..),
        kube::Error::SerdeError(_) => false,
        _ => true,
    }
}
