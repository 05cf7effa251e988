//! Authentication and authorisation of the records endpoint, by the API server; see [`sk_serve::review`].

use std::fmt;
use std::net::IpAddr;

use http::{HeaderMap, StatusCode};
use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::Client;
use sk_api::simulation::names;
use sk_serve::{Refusal, Reviewer};

/// The permission that a request needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Right<'a> {
    /// Its verb.
    pub(super) verb: &'static str,
    /// To which subresource of Simulations.
    pub(super) subresource: &'static str,
    /// Of which Simulation, where it is one's.
    pub(super) simulation: Option<&'a str>,
}

impl fmt::Display for Right<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} simulations/{}", self.verb, self.subresource)?;
        self.simulation.map_or(Ok(()), |simulation| write!(f, " of {simulation}"))
    }
}

/// Asks the API server.
pub(super) struct Guard {
    client: Client,
    reviewer: Reviewer,
}

impl Guard {
    pub(super) fn new(client: Client) -> Self {
        Self { client, reviewer: Reviewer::new(names::CONTROLLER_AUDIENCE) }
    }

    /// Authorises the sender of these headers. Returns the user.
    pub(super) async fn check(&self, from: IpAddr, headers: &HeaderMap, right: Right<'_>) -> Result<String, Refusal> {
        let attributes = ResourceAttributes {
            group: Some(names::GROUP.to_owned()),
            version: Some("v1".to_owned()),
            resource: Some("simulations".to_owned()),
            subresource: Some(right.subresource.to_owned()),
            name: right.simulation.map(str::to_owned),
            verb: Some(right.verb.to_owned()),
            ..ResourceAttributes::default()
        };
        self.reviewer.check(&self.client, from, headers, &attributes).await
    }
}

/// A refusal as it is answered: a status, and what to do about it.
pub(super) fn words(refusal: &Refusal, right: Right<'_>) -> (StatusCode, String) {
    let token = format!("send a token for the audience {} as `Authorization: Bearer`", names::CONTROLLER_AUDIENCE);
    match refusal {
        Refusal::NoToken => (StatusCode::UNAUTHORIZED, format!("there is no token: {token}")),
        Refusal::BadToken(reason) => {
            (StatusCode::UNAUTHORIZED, format!("the token is not good here ({reason}): {token}"))
        }
        Refusal::Forbidden(user) => (StatusCode::FORBIDDEN, format!("{user} may not {right}")),
        Refusal::TooManyUnknown => {
            (StatusCode::TOO_MANY_REQUESTS, "too many unknown tokens; try again in a few seconds".to_owned())
        }
        Refusal::Unavailable { reason, .. } => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("the API server could not be asked who this is: {reason}; try again"),
        ),
    }
}
