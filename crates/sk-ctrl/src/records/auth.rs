//! Who asks, and may they? Both questions are the API server's to answer: TokenReview and SubjectAccessReview.

use std::fmt;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use sk_api::simulation::names;

/// Why a request is turned away.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// There is no token, or it is not for us.
    #[error("{0}: send a token for the audience {audience} as `Authorization: Bearer`", audience = names::CONTROLLER_AUDIENCE)]
    Unknown(String),
    /// They may not.
    #[error("{user} may not {right}")]
    Forbidden {
        /// Who.
        user: String,
        /// What.
        right: String,
    },
    /// The API server did not answer.
    #[error("the API server could not be asked who this is: {0}")]
    Unavailable(#[source] Box<kube::Error>),
}

/// What somebody wants to do.
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
#[derive(Clone)]
pub(super) struct Guard {
    client: Client,
}

impl Guard {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Lets whoever sent these headers do this, or says why not. Returns their name.
    pub(super) async fn admit(&self, headers: &HeaderMap, right: Right<'_>) -> Result<String, Refusal> {
        let token = bearer(headers).ok_or_else(|| Refusal::Unknown("there is no token".to_owned()))?;
        let user = self.who(token).await?;
        let name = user.username.clone().unwrap_or_default();
        if self.may(user, right).await? {
            return Ok(name);
        }
        Err(Refusal::Forbidden { user: name, right: right.to_string() })
    }

    async fn who(&self, token: &str) -> Result<UserInfo, Refusal> {
        let audience = names::CONTROLLER_AUDIENCE.to_owned();
        let review = TokenReview {
            metadata: ObjectMeta::default(),
            spec: TokenReviewSpec { token: token.to_owned(), audiences: Some(vec![audience.clone()]) },
            status: None,
        };
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let answer = api.create(&PostParams::default(), &review).await;
        let status = answer.map_err(|error| Refusal::Unavailable(Box::new(error)))?.status.unwrap_or_default();
        let for_us = status.audiences.unwrap_or_default().contains(&audience);
        match status.user {
            Some(user) if status.authenticated == Some(true) && for_us => Ok(user),
            _ => Err(Refusal::Unknown("the token is not good here".to_owned())),
        }
    }

    async fn may(&self, user: UserInfo, right: Right<'_>) -> Result<bool, Refusal> {
        let review = SubjectAccessReview {
            metadata: ObjectMeta::default(),
            spec: SubjectAccessReviewSpec {
                extra: user.extra,
                groups: user.groups,
                uid: user.uid,
                user: user.username,
                resource_attributes: Some(ResourceAttributes {
                    group: Some(names::GROUP.to_owned()),
                    version: Some("v1".to_owned()),
                    resource: Some("simulations".to_owned()),
                    subresource: Some(right.subresource.to_owned()),
                    name: right.simulation.map(str::to_owned),
                    verb: Some(right.verb.to_owned()),
                    ..ResourceAttributes::default()
                }),
                non_resource_attributes: None,
            },
            status: None,
        };
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = api.create(&PostParams::default(), &review).await;
        let answer = answer.map_err(|error| Refusal::Unavailable(Box::new(error)))?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty()).then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_from_its_header_and_from_nothing_else() {
        for (value, token) in [
            ("Bearer abc", Some("abc")),
            ("bearer  abc ", Some("abc")),
            ("Basic abc", None),
            ("Bearer ", None),
            ("abc", None),
        ] {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
            assert_eq!(bearer(&headers), token, "{value}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}
