//! Everything that `skctl` does with a real cluster, below the commands.
//!
//! Commands that need no cluster never come here, so they start no runtime and read no kubeconfig. Each step that can
//! fail has an error of its own that names the step, the cluster and what to do next. Nothing here prints, and nothing
//! ever writes a token anywhere.
//!
//! | module | what it owns |
//! |---|---|
//! | [`connect`] | from `--context` and `--kubeconfig` to a client that knows which cluster it talks to |
//! | [`token`] | short-lived tokens of a ServiceAccount, for one audience |
//! | [`trust`] | whose certificate a server of ours may show |
//! | [`channel`] | HTTPS to a pod through the API server, or to an address |
//! | [`service`] | the tracer and the controller: where they are, how to talk to them |
//! | [`simulations`] | the Simulations of a cluster |
//! | [`apply`] | server-side apply, and what it changed |
//! | [`rights`] | may I? |

pub(crate) mod apply;
pub(crate) mod channel;
pub(crate) mod connect;
pub(crate) mod rights;
pub(crate) mod service;
pub(crate) mod simulations;
pub(crate) mod token;
pub(crate) mod trust;

use std::future::Future;

use anyhow::{Context, Result};

pub(crate) use connect::Cluster;

/// Runs work that talks to a cluster to its end.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.context("cannot start the threads that talk to the cluster")?.block_on(work)
}

/// What a server said, without the envelope that it came in.
pub(crate) fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    }
}
