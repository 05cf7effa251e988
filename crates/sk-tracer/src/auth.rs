//! Who may export: whoever the API server says may `create` `exports` in the group `simkube.io`.
//!
//! The tracer keeps no users. A caller shows a short-lived token that was made for this audience (`kubectl create token
//! simkube-exporter --audience simkube-tracer`); a TokenReview says whose it is, a SubjectAccessReview whether that user
//! has the right. `exports` is no resource that is served; RBAC does not mind, and a Role can name it like any other.
//!
//! Answers are believed for [`BELIEF`], so that a row of exports costs two requests and not two each; a right that
//! is taken away is gone after that long. Failures of the API server are not remembered, and are no permission.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderMap;
use http::header::AUTHORIZATION;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::{Api, ObjectMeta, PostParams};
use lru::LruCache;
use sha2::{Digest, Sha256};

use crate::access::Access;

/// Whom tokens must be made for.
pub const AUDIENCE: &str = "simkube-tracer";
/// The API group of the right to export.
pub const GROUP: &str = "simkube.io";
/// The resource of that right.
pub const RESOURCE: &str = "exports";
/// The verb of that right.
pub const VERB: &str = "create";

/// How long an answer is believed.
const BELIEF: Duration = Duration::from_secs(30);
/// Answers that are remembered: 1,024 of about 200 bytes are 200 KB. Beyond that the API server is asked again.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).expect("the number is not zero");
/// A token is a few kilobytes at most; headers are bounded by the server already.
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller(pub(crate) String);

/// Why somebody is sent away.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// No token, or one that says nothing.
    #[error(
        "say who you are: send `Authorization: Bearer TOKEN` with a token for the audience {AUDIENCE} \
         (kubectl create token simkube-exporter --audience {AUDIENCE})"
    )]
    NoToken,
    /// A token that the API server does not accept.
    #[error("the token is not accepted: {0}; it must be fresh and made for the audience {AUDIENCE}")]
    BadToken(String),
    /// Somebody who may not.
    #[error("{0} may not {VERB} {RESOURCE}.{GROUP}; bind the ClusterRole simkube-trace-exporter to it")]
    Forbidden(String),
    /// Nobody knows.
    #[error("the API server cannot say whether you may: {0}; try again")]
    Unavailable(String),
}

type Verdict = Result<Caller, Refusal>;

/// Asks the API server and remembers the answers for a while.
pub(crate) struct Reviewer {
    access: Access,
    answers: Mutex<LruCache<[u8; 32], (Instant, Verdict)>>,
}

impl Reviewer {
    /// One that has asked nothing yet.
    pub(crate) fn new(access: Access) -> Self {
        Self { access, answers: Mutex::new(LruCache::new(REMEMBERED)) }
    }

    /// May the sender of these headers export?
    pub(crate) async fn check(&self, headers: &HeaderMap) -> Verdict {
        let token = bearer(headers).ok_or(Refusal::NoToken)?;
        // A token is not kept in memory for longer than its request.
        let key: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(verdict) = self.remembered(&key) {
            return verdict;
        }
        let verdict = self.ask(token).await;
        if !matches!(verdict, Err(Refusal::Unavailable(_))) {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers.put(key, (Instant::now(), verdict.clone()));
        }
        verdict
    }

    fn remembered(&self, key: &[u8; 32]) -> Option<Verdict> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let (asked, verdict) = answers.get(key)?;
        (asked.elapsed() < BELIEF).then(|| verdict.clone())
    }

    async fn ask(&self, token: &str) -> Verdict {
        let user = self.whose(token).await?;
        let name = user.username.clone().unwrap_or_default();
        if self.allowed(user).await? { Ok(Caller(name)) } else { Err(Refusal::Forbidden(name)) }
    }

    async fn whose(&self, token: &str) -> Result<UserInfo, Refusal> {
        let spec = TokenReviewSpec { audiences: Some(vec![AUDIENCE.to_owned()]), token: token.to_owned() };
        let review = TokenReview { metadata: ObjectMeta::default(), spec, status: None };
        let api: Api<TokenReview> = Api::all(self.access.client());
        let answer = api.create(&PostParams::default(), &review).await.map_err(unavailable)?;
        let status = answer.status.unwrap_or_default();
        // An API server that knows nothing of audiences answers without them; its word is not enough.
        let meant = status.audiences.iter().flatten().any(|audience| audience == AUDIENCE);
        match status.user {
            Some(user) if status.authenticated == Some(true) && meant => Ok(user),
            _ => Err(Refusal::BadToken(status.error.unwrap_or_else(|| "nobody knows it".to_owned()))),
        }
    }

    async fn allowed(&self, user: UserInfo) -> Result<bool, Refusal> {
        let wanted = ResourceAttributes {
            group: Some(GROUP.to_owned()),
            resource: Some(RESOURCE.to_owned()),
            verb: Some(VERB.to_owned()),
            ..Default::default()
        };
        let spec = SubjectAccessReviewSpec {
            user: user.username,
            groups: user.groups,
            uid: user.uid,
            extra: user.extra,
            resource_attributes: Some(wanted),
            ..Default::default()
        };
        let review = SubjectAccessReview { metadata: ObjectMeta::default(), spec, status: None };
        let api: Api<SubjectAccessReview> = Api::all(self.access.client());
        let answer = api.create(&PostParams::default(), &review).await.map_err(unavailable)?;
        Ok(answer.status.is_some_and(|status| status.allowed && status.denied != Some(true)))
    }
}

fn unavailable(error: kube::Error) -> Refusal {
    tracing::warn!(%error, "the API server did not answer a review");
    match error {
        // Its own words would tell a stranger about the tracer's rights.
        kube::Error::Api(status) => Refusal::Unavailable(format!("it answered {}", status.code)),
        _ => Refusal::Unavailable("it does not answer".to_owned()),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= MAX_TOKEN_BYTES).then_some(token)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_a_bearer_token_says_who_somebody_is() {
        let token = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(token("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(token("bearer  abc ").as_deref(), Some("abc"));
        for wrong in ["abc", "Basic abc", "Bearer ", "Bearer"] {
            assert_eq!(token(wrong), None, "{wrong}");
        }
        assert_eq!(token(&format!("Bearer {}", "x".repeat(MAX_TOKEN_BYTES + 1))), None);
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}
