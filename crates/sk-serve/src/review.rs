//! Authentication by TokenReview and authorisation by SubjectAccessReview.
//!
//! Everybody can send an invented token, and every unknown token is a request to the API server. So answers are cached,
//! refusals too, and reviews of unknown tokens are rate-limited: see [`REVIEWS`] and [`REVIEWS_OF_ONE`]. Callers with a
//! cached token do not wait for these.
//!
//! A revoked permission ends after [`CACHE_TTL`]; a granted one counts after [`REFUSAL_CACHE_TTL`]. Failures of the API
//! server are not cached, and never grant anything.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderMap;
use http::header::AUTHORIZATION;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use lru::LruCache;
use sha2::{Digest, Sha256};

use crate::budget::{Budget, Rate};

/// TTL of cached reviews: the user of a token, and permissions.
const CACHE_TTL: Duration = Duration::from_secs(30);
/// TTL of cached refusals: short, because a new RoleBinding becomes effective a moment later.
const REFUSAL_CACHE_TTL: Duration = Duration::from_secs(5);
/// Entries of each cache: 1,024 of about 500 bytes are 500 KB.
const CACHE_ENTRIES: NonZeroUsize = NonZeroUsize::new(1_024).expect("the number is not zero");
/// A token is a few kilobytes at most.
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// TokenReviews of unknown tokens: twenty a second, client-go's usual limit for a controller; forty at once.
const REVIEWS: Rate = Rate { burst: 40.0, per_second: 20.0 };
/// The share of one address, so that it takes four addresses to use up the whole.
const REVIEWS_OF_ONE: Rate = Rate { burst: 20.0, per_second: 5.0 };

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No token, or an empty one.
    NoToken,
    /// The API server rejects the token, for this reason.
    BadToken(String),
    /// This user lacks the permission.
    Forbidden(String),
    /// The rate limit of reviews is exceeded.
    TooManyUnknown,
    /// The API server did not answer.
    Unavailable {
        /// The user of the token, if known.
        user: Option<String>,
        /// Why not.
        reason: String,
    },
}

impl Refusal {
    /// The user, if the API server has named one.
    pub fn user(&self) -> Option<&str> {
        match self {
            Self::Forbidden(user) => Some(user),
            Self::Unavailable { user, .. } => user.as_deref(),
            Self::NoToken | Self::BadToken(_) | Self::TooManyUnknown => None,
        }
    }
}

/// A token, or a token and a right, hashed: no token is in memory for longer than its request.
type Key = [u8; 32];

/// Reviews tokens and permissions with the API server, with a cache and a rate limit.
pub struct Reviewer {
    audience: &'static str,
    memory: Mutex<Memory>,
}

struct Memory {
    users: LruCache<Key, (Instant, UserInfo)>,
    /// Rejected tokens; a cache of their own, so that they do not evict known users.
    rejected: LruCache<Key, (Instant, String)>,
    rights: LruCache<Key, (Instant, bool)>,
    budget: Budget,
}

impl std::fmt::Debug for Reviewer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reviewer").field("audience", &self.audience).finish_non_exhaustive()
    }
}

impl Reviewer {
    /// A reviewer of tokens for this audience, with empty caches.
    pub fn new(audience: &'static str) -> Self {
        let memory = Memory {
            users: LruCache::new(CACHE_ENTRIES),
            rejected: LruCache::new(CACHE_ENTRIES),
            rights: LruCache::new(CACHE_ENTRIES),
            budget: Budget::new(REVIEWS, REVIEWS_OF_ONE, Instant::now()),
        };
        Self { audience, memory: Mutex::new(memory) }
    }

    /// Checks the sender of these headers; returns the user name.
    pub async fn check(
        &self,
        client: &Client,
        from: IpAddr,
        headers: &HeaderMap,
        right: &ResourceAttributes,
    ) -> Result<String, Refusal> {
        let token = bearer(headers).ok_or(Refusal::NoToken)?;
        let key: Key = Sha256::digest(token.as_bytes()).into();
        let user = match self.cached_user(&key, from)? {
            Some(user) => user,
            None => self.review_token(client, token, key).await?,
        };
        let name = user.username.clone().unwrap_or_default();
        let right_key = right_key(&key, right);
        let allowed = match self.cached_right(&right_key) {
            Some(allowed) => allowed,
            None => self.review_access(client, user, right, right_key).await?,
        };
        if allowed { Ok(name) } else { Err(Refusal::Forbidden(name)) }
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The user of the token; `None` if a TokenReview is needed and this address may still request one.
    fn cached_user(&self, key: &Key, from: IpAddr) -> Result<Option<UserInfo>, Refusal> {
        let (mut memory, now) = (self.memory(), Instant::now());
        if let Some((_, user)) = memory.users.get(key).filter(|(asked, _)| asked.elapsed() < CACHE_TTL) {
            return Ok(Some(user.clone()));
        }
        if let Some((_, reason)) = memory.rejected.get(key).filter(|(asked, _)| asked.elapsed() < REFUSAL_CACHE_TTL) {
            return Err(Refusal::BadToken(reason.clone()));
        }
        if memory.budget.take(from, now) { Ok(None) } else { Err(Refusal::TooManyUnknown) }
    }

    async fn review_token(&self, client: &Client, token: &str, key: Key) -> Result<UserInfo, Refusal> {
        let spec = TokenReviewSpec { audiences: Some(vec![self.audience.to_owned()]), token: token.to_owned() };
        let review = TokenReview { metadata: ObjectMeta::default(), spec, status: None };
        let api: Api<TokenReview> = Api::all(client.clone());
        let answer = api.create(&PostParams::default(), &review).await.map_err(|error| unavailable(error, None))?;
        let status = answer.status.unwrap_or_default();
        // An API server that knows nothing of audiences answers without them; its word is not enough.
        let meant = status.audiences.iter().flatten().any(|audience| audience == self.audience);
        match status.user {
            Some(user) if status.authenticated == Some(true) && meant => {
                self.memory().users.put(key, (Instant::now(), user.clone()));
                Ok(user)
            }
            _ => {
                let reason = status.error.unwrap_or_else(|| "nobody knows it".to_owned());
                self.memory().rejected.put(key, (Instant::now(), reason.clone()));
                Err(Refusal::BadToken(reason))
            }
        }
    }

    fn cached_right(&self, key: &Key) -> Option<bool> {
        let mut memory = self.memory();
        let (asked, allowed) = memory.rights.get(key)?;
        let ttl = if *allowed { CACHE_TTL } else { REFUSAL_CACHE_TTL };
        (asked.elapsed() < ttl).then_some(*allowed)
    }

    async fn review_access(
        &self,
        client: &Client,
        user: UserInfo,
        right: &ResourceAttributes,
        key: Key,
    ) -> Result<bool, Refusal> {
        let name = user.username.clone();
        let spec = SubjectAccessReviewSpec {
            user: user.username,
            groups: user.groups,
            uid: user.uid,
            extra: user.extra,
            resource_attributes: Some(right.clone()),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { metadata: ObjectMeta::default(), spec, status: None };
        let api: Api<SubjectAccessReview> = Api::all(client.clone());
        let answer = api.create(&PostParams::default(), &review).await.map_err(|error| unavailable(error, name))?;
        let allowed = answer.status.is_some_and(|status| status.allowed && status.denied != Some(true));
        self.memory().rights.put(key, (Instant::now(), allowed));
        Ok(allowed)
    }
}

fn unavailable(error: kube::Error, user: Option<String>) -> Refusal {
    // Whoever asked is told; a line for each would let rejected fill the log.
    tracing::debug!(%error, "the API server did not answer a review");
    let reason = match error {
        // Its own words would tell a stranger about this program's rights.
        kube::Error::Api(status) => format!("it answered {}", status.code),
        _ => "it does not answer".to_owned(),
    };
    Refusal::Unavailable { user, reason }
}

/// A token and a right. Texts stand with their lengths, so that no two rights read alike.
fn right_key(token: &Key, right: &ResourceAttributes) -> Key {
    let mut hasher = Sha256::new();
    hasher.update(token);
    let parts =
        [&right.group, &right.version, &right.resource, &right.subresource, &right.namespace, &right.name, &right.verb];
    for part in parts {
        let text = part.as_deref().unwrap_or_default();
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().into()
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

    #[test]
    fn another_right_of_the_same_token_is_another_question() {
        let right = |verb: &str, name: &str| ResourceAttributes {
            verb: Some(verb.to_owned()),
            name: Some(name.to_owned()),
            ..ResourceAttributes::default()
        };
        let keys = [right("get", "a"), right("get", "b"), right("ge", "ta"), right("update", "a")];
        let keys: std::collections::BTreeSet<_> = keys.iter().map(|right| right_key(&[0; 32], right)).collect();
        assert_eq!(keys.len(), 4);
        assert_ne!(right_key(&[0; 32], &right("get", "a")), right_key(&[1; 32], &right("get", "a")));
    }
}
