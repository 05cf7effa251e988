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
use crate::error_reporter::Cause;
use crate::folder::{DataFolder, FolderError};
use crate::health::Health;

/// The namespace whose uid identifies a cluster.
pub(crate) const NAMESPACE: &str = "kube-system";
/// The purpose of the request, for the log.
const WHAT: &str = "the uid of kube-system";
/// How long a start waits for the answer. Afterwards the tracer serves, and watches when the answer has come.
const LIMIT: Duration = Duration::from_secs(5);
/// Between two attempts, if the API server cannot be asked.
const PAUSE: Duration = Duration::from_secs(1);
/// Between two attempts, if it refuses to answer, or the answer cannot be written down: the right may come a moment after
/// the tracer, and room on the disk when somebody makes it.
const LONG_PAUSE: Duration = Duration::from_secs(10);
/// How long it is asked again although it refuses. The next start asks again.
const ASK_FOR: Duration = Duration::from_secs(600);

/// The result of the check, or the check in progress.
pub(crate) struct ClusterIdentity {
    settled: watch::Receiver<bool>,
    /// The check, while it runs.
    asking: Option<JoinHandle<Result<(), FolderError>>>,
}

impl ClusterIdentity {
    /// Starts the check; refuses a folder that belongs to another cluster.
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

    /// Continues the check in the background if needed. The tracer fails if the folder belongs to another cluster.
    pub(crate) fn settle(&mut self, tasks: &mut JoinSet<()>, health: &Arc<Health>) {
        let Some(asking) = self.asking.take() else { return };
        let health = Arc::clone(health);
        tasks.spawn(async move {
            match asking.await {
                Ok(Ok(())) => {}
                Ok(Err(problem)) => {
                    tracing::error!(%problem, "the tracer stops recording");
                    health.fail();
                }
                Err(_) => health.fail(),
            }
        });
    }

    /// Waits for the result; `false` if the folder belongs to another cluster.
    pub(crate) fn settled(&self) -> impl Future<Output = bool> + Send + use<> {
        let mut settled = self.settled.clone();
        async move { settled.wait_for(|settled| *settled).await.is_ok() }
    }
}

/// Compares the uid with the folder's, and reports when watches need not wait any longer.
async fn confirm(access: Access, folder: Arc<DataFolder>, settled: watch::Sender<bool>) -> Result<(), FolderError> {
    let began = Instant::now();
    loop {
        let problem = match uid(&access).await {
            Ok(Some(uid)) => match folder.belong_to(&uid) {
                // It does not belong to another cluster, and a full disk is no reason not to record.
                Err(FolderError::Write(problem)) => problem.to_string(),
                Ok(()) => {
                    settled.send_replace(true);
                    return Ok(());
                }
                Err(another) => return Err(another),
            },
            Ok(None) => "the namespace has no uid".to_owned(),
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

/// Requests the uid; retries temporary failures.
async fn uid(access: &Access) -> Result<Option<String>, kube::Error> {
    loop {
        match Api::<Namespace>::all(access.client()).get_metadata(NAMESPACE).await {
            Err(problem) if is_passing(&problem) => {
                access.failures().note(WHAT, Cause::of(&problem), &problem);
                if matches!(&problem, kube::Error::Api(status) if status.code == 401) {
                    access.renew().await;
                }
                tokio::time::sleep(PAUSE).await;
            }
            answer => {
                access.failures().recovered(WHAT);
                return answer.map(|namespace| namespace.metadata.uid);
            }
        }
    }
}

fn warn(problem: &str) {
    let kind = "v1.Namespace";
    tracing::warn!(
        kind,
        name = NAMESPACE,
        problem,
        "cannot check whether the data folder belongs to this cluster; recording anyway"
    );
}

/// Is the failure temporary?
fn is_passing(problem: &kube::Error) -> bool {
    match problem {
        kube::Error::Api(status) => matches!(status.code, 401 | 429 | 500..),
        kube::Error::SerdeError(_) => false,
        _ => true,
    }
}
