//! Authorisation of exports: a caller needs `create` on `exports` in the group `simkube.io`.
//!
//! The tracer has no users of its own. A caller presents a short-lived token for the tracer's audience (`kubectl create
//! token simkube-exporter --audience simkube-tracer`). [`Reviewer`] sends a TokenReview and a SubjectAccessReview to
//! the API server. No API server serves a resource `exports`; RBAC does not require that, so a Role can name it.

use std::net::IpAddr;

use http::{HeaderMap, StatusCode};
use k8s_openapi::api::authorization::v1::ResourceAttributes;
use sk_serve::{Refusal, Reviewer};

use crate::access::Access;

/// The audience of tokens.
pub const AUDIENCE: &str = "simkube-tracer";
/// The API group of the right to export.
pub const GROUP: &str = "simkube.io";
/// The resource of that right.
pub const RESOURCE: &str = "exports";
/// The verb of that right.
pub const VERB: &str = "create";

/// Decides who may export.
#[derive(Debug)]
pub(crate) struct Gate {
    access: Access,
    reviewer: Reviewer,
}

impl Gate {
    /// A gate with an empty cache.
    pub(crate) fn new(access: Access) -> Self {
        Self { access, reviewer: Reviewer::new(AUDIENCE) }
    }

    /// May the sender of these headers export? Their name.
    pub(crate) async fn check(&self, from: IpAddr, headers: &HeaderMap) -> Result<String, Refusal> {
        let right = ResourceAttributes {
            group: Some(GROUP.to_owned()),
            resource: Some(RESOURCE.to_owned()),
            verb: Some(VERB.to_owned()),
            ..ResourceAttributes::default()
        };
        self.reviewer.check(&self.access.client(), from, headers, &right).await
    }
}

/// The HTTP response for a refusal: a status, and what to do about it.
pub(crate) fn answer(refusal: &Refusal) -> (StatusCode, String) {
    match refusal {
        Refusal::NoToken => (
            StatusCode::UNAUTHORIZED,
            format!(
                "say who you are: send `Authorization: Bearer TOKEN` with a token for the audience {AUDIENCE} \
                 (kubectl create token simkube-exporter --audience {AUDIENCE})"
            ),
        ),
        Refusal::BadToken(reason) => (
            StatusCode::UNAUTHORIZED,
            format!(
                "the API server rejects the token: {reason}; it must not be expired and must be for the audience {AUDIENCE}"
            ),
        ),
        Refusal::Forbidden(user) => (
            StatusCode::FORBIDDEN,
            format!("{user} may not {VERB} {RESOURCE}.{GROUP}; bind the ClusterRole simkube-trace-exporter to it"),
        ),
        Refusal::TooManyUnknown => {
            (StatusCode::TOO_MANY_REQUESTS, "too many unknown tokens; try again in a few seconds".to_owned())
        }
        Refusal::Unavailable { reason, .. } => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("the API server did not answer the access review: {reason}; try again"),
        ),
    }
}
