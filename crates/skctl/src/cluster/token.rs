//! Short-lived tokens of a ServiceAccount for one audience.
//!
//! The user's own credentials are never sent to the tracer or the controller, where somebody could steal them. A token
//! from here is valid for one audience and ten minutes.

use std::fmt;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};

use super::{Cluster, words};

/// The shortest life that Kubernetes gives a token; an export of any length only needs it to begin.
const LIFETIME_SECS: i64 = 600;

/// A secret that its holder may show to one audience.
#[derive(Clone)]
pub(crate) struct Token(String);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error(
        "you may not get a token of ServiceAccount {namespace}/{account}: it takes `create` on serviceaccounts/token \
         there; ask for the role that `skctl manifests` makes for it ({message})"
    )]
    Forbidden { namespace: String, account: &'static str, message: String },
    #[error("there is no ServiceAccount {namespace}/{account}; `skctl install` creates it; -n chooses the namespace")]
    NoAccount { namespace: String, account: &'static str },
    #[error("cannot get a token of ServiceAccount {namespace}/{account}: {reason}")]
    Request { namespace: String, account: &'static str, reason: String },
    #[error("the server answered without a token for ServiceAccount {namespace}/{account}")]
    Empty { namespace: String, account: &'static str },
}

impl Token {
    /// A token of an account in the cluster's namespace, for this audience alone.
    pub(crate) async fn request(cluster: &Cluster, account: &'static str, audience: &str) -> Result<Self, TokenError> {
        let namespace = cluster.namespace.clone();
        let api: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), &namespace);
        let spec = TokenRequestSpec {
            audiences: Some(vec![audience.to_owned()]),
            expiration_seconds: Some(LIFETIME_SECS),
            ..TokenRequestSpec::default()
        };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let answer = match api.create_token_request(account, &PostParams::default(), &request).await {
            Ok(answer) => answer,
            Err(kube::Error::Api(status)) if status.code == 403 => {
                return Err(TokenError::Forbidden { namespace, account, message: status.message.clone() });
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {
                return Err(TokenError::NoAccount { namespace, account });
            }
            Err(error) => return Err(TokenError::Request { namespace, account, reason: words(&error) }),
        };
        let token = answer.status.and_then(|status| status.token).filter(|token| !token.is_empty());
        token.map(Self).ok_or(TokenError::Empty { namespace, account })
    }

    /// For the `Authorization` header.
    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl fmt::Debug for Token {
    /// Never the token itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}
