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
//! | [`kinds`] | how the cluster serves a kind |
//! | [`apply`] | server-side apply, and what it changed |
//! | [`rights`] | may I? |

pub(crate) mod apply;
pub(crate) mod channel;
pub(crate) mod connect;
pub(crate) mod kinds;
pub(crate) mod rights;
pub(crate) mod service;
pub(crate) mod simulations;
pub(crate) mod token;
pub(crate) mod trust;

use std::future::Future;

use anyhow::{Context, Result};

pub(crate) use connect::Cluster;

use crate::failure;

/// Runs work that talks to a cluster to its end.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.context("cannot start the threads that talk to the cluster")?.block_on(work)
}

/// What a server said, without the envelope that it came in, and what to do where it said nothing of use.
pub(crate) fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 401 => format!(
            "it does not know who you are ({}): the credentials of this context have expired or were never good; log in \
             again, or choose another --context or --kubeconfig",
            if status.message.is_empty() { "Unauthorized" } else { &status.message },
        ),
        kube::Error::Api(status) => status.message.clone(),
        kube::Error::Auth(error) => {
            format!("the kubeconfig's credentials cannot be had: {error}; log in again, or choose another --context")
        }
        kube::Error::HyperError(_) | kube::Error::Service(_) => {
            format!("{}; is the server up, and the right one? --context chooses another", causes(error))
        }
        error => causes(error),
    }
}

fn causes(error: &kube::Error) -> String {
    let first: &(dyn std::error::Error + 'static) = error;
    failure::each_once(std::iter::successors(Some(first), |error| error.source()))
}
