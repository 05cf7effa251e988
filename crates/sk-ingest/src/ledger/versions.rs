//! The pod templates that an owner has had, and which of them a pod was created from.
//!
//! Old versions are needed while pods of them can still appear: during a rolling update, when an old ReplicaSet is
//! scaled up again, and when a watch lags. Templates are compared after hashing private values, on both sides. The
//! identity is that of the template as it is in the trace, because that is what a replay sees.

use bytes::Bytes;
use serde_json::Value;
use sk_core::template::{has_containers_of, is_subset};
use sk_core::{Pointer, PointerPattern, SimDuration, SimTime, TemplateId};
use xxhash_rust::xxh3::xxh3_64;

use crate::rules::Rules;
use crate::sanitise::TemplatePlace;

/// How many distinct versions are kept per owner. A Deployment keeps 10 old ReplicaSets, by default; at 1.5 KB
/// a template this bounds an owner at 24 KB, of which the newest shares its bytes with the log.
const MAX_VERSIONS: usize = 16;

/// By how much the clocks of tracer and API server may differ, and a creation time is cut off (whole seconds).
const CLOCK_SLACK: SimDuration = SimDuration::from_secs(2);

/// The templates of one owner, oldest version first.
#[derive(Debug)]
pub(super) struct Versions(Vec<Version>);

impl Default for Versions {
    /// With room for one: most owners never have another.
    fn default() -> Self {
        Self(Vec::with_capacity(1))
    }
}

/// What an owner's templates were from some moment on.
#[derive(Debug)]
struct Version {
    since: SimTime,
    hash: u64,
    templates: Vec<Template>,
}

#[derive(Debug)]
struct Template {
    path: Pointer,
    /// As it stands in the owner's body, with which it shares its bytes while it is the newest.
    json: Bytes,
}

/// The template that a pod was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) id: TemplateId,
    /// Does the pod hold everything that the template says? Else only its containers are alike.
    pub(super) whole: bool,
}

impl Versions {
    /// The owner's body is now this one. Says whether its templates have changed.
    pub(super) fn see(&mut self, now: SimTime, body: &Bytes, places: &[TemplatePlace]) -> bool {
        let template =
            |place: &TemplatePlace| Template { path: place.path.clone(), json: body.slice(place.range.clone()) };
        self.push(now, places.iter().map(template).collect())
    }

    /// Of an owner whose body was this one when the log was last written.
    pub(super) fn restored(body: &[u8], paths: &[PointerPattern]) -> Self {
        let object: Value = serde_json::from_slice(body).unwrap_or_default();
        let found = paths.iter().flat_map(|path| path.find(&object));
        let template = |(path, template): (Pointer, &Value)| Template { path, json: template.to_string().into() };
        let mut versions = Self::default();
        versions.push(SimTime::EPOCH, found.map(template).collect());
        versions
    }

    fn push(&mut self, since: SimTime, templates: Vec<Template>) -> bool {
        let hash = templates.iter().fold(0, |sum, template| {
            xxh3_64(&template.json).wrapping_add(u64::rotate_left(sum, 5)) ^ xxh3_64(template.path.as_str().as_bytes())
        });
        if let Some(newest) = self.0.last_mut() {
            if newest.hash == hash {
                // Let the older body go.
                newest.templates = templates;
                return false;
            }
            newest.templates.iter_mut().for_each(|template| template.json = Bytes::copy_from_slice(&template.json));
        }
        self.0.retain(|version| version.hash != hash);
        self.0.push(Version { since, hash, templates });
        if self.0.len() > MAX_VERSIONS {
            self.0.remove(0);
        }
        true
    }

    /// The newest version that a pod created then was made from: one that the pod holds wholly, else one whose
    /// containers it has. Versions that came later than the pod are tried last, the nearest first.
    pub(super) fn origin(&self, rules: &Rules, pod: &Value, created: SimTime) -> Option<Found> {
        let split = self.0.partition_point(|version| version.since <= created + CLOCK_SLACK);
        let in_order = self.0[..split].iter().rev().chain(&self.0[split..]);
        let mut by_containers = None;
        for template in in_order.flat_map(|version| &version.templates) {
            let Some(comparable) = rules.comparable(&template.json) else { continue };
            if is_subset(&comparable, pod) {
                return template.found(true);
            }
            if by_containers.is_none() && has_containers_of(&comparable, pod) {
                by_containers = Some(template);
            }
        }
        by_containers.and_then(|template| template.found(false))
    }
}

impl Template {
    fn found(&self, whole: bool) -> Option<Found> {
        let template: Value = serde_json::from_slice(&self.json).ok()?;
        Some(Found { id: TemplateId::of(self.path.clone(), &template), whole })
    }
}
