//! The LimitRanger admission plugin: default requests and limits of containers, pods and claims, and their minimum and
//! maximum (`plugin/pkg/admission/limitranger`, 1.36).
//!
//! Pods of one template in one namespace get the same spec, so the plugin caches what a spec becomes until a
//! LimitRange changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use sk_core::memo::Memo;
use sk_core::resources::Amounts;
use sk_core::{Gvk, ObjectKey, Quantity, SmolStr};

use crate::kinds::{Body, Container, PodSpec};
use crate::{ApiError, Object};

/// `v1.LimitRange`
pub(crate) static LIMIT_RANGE: Gvk = Gvk::new_static("", "v1", "LimitRange");
/// Where a pod says what was written into it.
const ANNOTATION: SmolStr = SmolStr::new_static("kubernetes.io/limit-ranger");
/// How many specs are remembered per namespace, as admission does: 4,096 x 2 KB are 8 MB.
const SPEC_MEMORY: usize = 4096;
/// Above this, Kubernetes compares whole units instead of thousandths (`MaxMilliValue`).
const MAX_MILLI_VALUE: i64 = i64::MAX / 1000;

/// The limit ranges of all namespaces.
#[derive(Clone, Default)]
pub(crate) struct LimitRanges {
    namespaces: BTreeMap<SmolStr, Ranges>,
}

/// The limit ranges of one namespace, by name.
#[derive(Clone)]
struct Ranges {
    ranges: BTreeMap<SmolStr, Vec<Limit>>,
    specs: Memo<PodSpec, Limited>,
}

/// What became of a spec.
#[derive(Clone)]
struct Limited {
    spec: Arc<PodSpec>,
    /// What was written into it, if anything was.
    note: Option<SmolStr>,
    /// Why it is refused, if it is.
    wrong: Option<Arc<str>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Limit {
    r#type: SmolStr,
    default: Amounts,
    default_request: Amounts,
    max: Amounts,
    min: Amounts,
    max_limit_request_ratio: Amounts,
}

impl Limit {
    /// With its own defaults: a container's limit defaults to its maximum, its request to the limit or the
    /// minimum (`SetDefaults_LimitRangeItem`).
    fn completed(mut self) -> Self {
        let fill = |amounts: &mut Amounts, from: &Amounts| {
            for (name, amount) in from {
                amounts.entry(name.clone()).or_insert(*amount);
            }
        };
        if self.r#type == "Container" {
            fill(&mut self.default, &self.max);
            fill(&mut self.default_request, &self.default);
            fill(&mut self.default_request, &self.min);
        }
        self
    }
}

impl LimitRanges {
    /// A limit range is there, or has changed.
    pub(crate) fn seen(&mut self, object: &Object) {
        let Body::Other(other) = &object.body else { return };
        let limits = other.fields.get("spec").and_then(|spec| spec.get("limits")).and_then(Value::as_array);
        let read = |limit: &Value| serde_json::from_value(limit.clone()).ok().map(Limit::completed);
        let limits = limits.into_iter().flatten().filter_map(read).collect();
        let namespace = object.key.namespace.clone().unwrap_or_default();
        let empty = || Ranges { ranges: BTreeMap::new(), specs: Memo::new(SPEC_MEMORY) };
        let of = self.namespaces.entry(namespace).or_insert_with(empty);
        of.ranges.insert(object.key.name.clone(), limits);
        of.specs.clear();
    }

    /// A LimitRange was deleted.
    pub(crate) fn gone(&mut self, key: &ObjectKey) {
        let namespace = key.namespace.clone().unwrap_or_default();
        let Some(of) = self.namespaces.get_mut(&namespace) else { return };
        of.ranges.remove(&key.name);
        of.specs.clear();
        if of.ranges.is_empty() {
            self.namespaces.remove(&namespace);
        }
    }

    /// Gives a new pod what it does not say, and refuses what asks for too much or too little.
    pub(crate) fn admit_pod(&mut self, pod: &mut Object) -> Result<(), ApiError> {
        if self.namespaces.is_empty() {
            return Ok(());
        }
        let Some(of) = pod.key.namespace.as_ref().and_then(|namespace| self.namespaces.get_mut(namespace)) else {
            return Ok(());
        };
        let Some(body) = pod.pod() else { return Ok(()) };
        let Ranges { ranges, specs } = of;
        let limited = specs.get_or_insert_with(&body.spec, |spec| limited(ranges, spec));
        if let Some(why) = &limited.wrong {
            return Err(ApiError::forbidden(&pod.gvk, &pod.key.name, why));
        }
        if let Some(note) = &limited.note {
            pod.meta.annotations.make_mut().insert(ANNOTATION, note.clone());
        }
        if let Some(body) = pod.pod_mut() {
            body.spec = limited.spec;
        }
        Ok(())
    }

    /// Refuses a claim for too much or too little.
    pub(crate) fn check_claim(&self, claim: &Object) -> Result<(), ApiError> {
        let Some(of) = claim.key.namespace.as_ref().and_then(|namespace| self.namespaces.get(namespace)) else {
            return Ok(());
        };
        let Body::Other(other) = &claim.body else { return Ok(()) };
        let asked = other.fields.get("spec").and_then(|spec| spec.pointer("/resources/requests")).cloned();
        let asked: Amounts = serde_json::from_value(asked.unwrap_or_default()).unwrap_or_default();
        let limits = of.ranges.values().flatten().filter(|limit| limit.r#type == "PersistentVolumeClaim");
        for limit in limits {
            let asks = Asks { of: &limit.r#type, requests: &asked, limits: &Amounts::new() };
            let too_little = limit.min.iter().filter_map(|(name, least)| asks.below(name, *least));
            let too_much = limit.max.iter().filter_map(|(name, most)| asks.requests_above(name, *most));
            if let Some(why) = together(too_little.chain(too_much).collect()) {
                return Err(ApiError::forbidden(&claim.gvk, &claim.key.name, &why));
            }
        }
        Ok(())
    }
}

fn limited(ranges: &BTreeMap<SmolStr, Vec<Limit>>, source: &PodSpec) -> Limited {
    let mut spec = source.clone();
    let mut note = None;
    for limits in ranges.values() {
        let written = fill(limits, &mut spec);
        if !written.is_empty() {
            note = Some(SmolStr::from(format!("LimitRanger plugin set: {}", written.join("; "))));
        }
    }
    // The first range that is not kept is the one that is named.
    let wrong = ranges.values().find_map(|limits| together(wrongs(limits, &spec)));
    Limited { spec: Arc::new(spec), note, wrong: wrong.map(Arc::from) }
}

/// Writes a range's defaults into containers that do not say otherwise, and says what was written.
fn fill(limits: &[Limit], spec: &mut PodSpec) -> Vec<String> {
    let (mut requests, mut most) = (Amounts::new(), Amounts::new());
    for limit in limits.iter().filter(|limit| limit.r#type == "Container") {
        requests.extend(limit.default_request.clone());
        most.extend(limit.default.clone());
    }
    let mut written = Vec::new();
    let mut fill_in = |container: &mut Container, what: &str| {
        let missing = |known: &Amounts, wanted: &Amounts| -> Amounts {
            wanted
                .iter()
                .filter(|(name, _)| !known.contains_key(*name))
                .map(|(n, amount)| (n.clone(), *amount))
                .collect()
        };
        let resources = &mut container.resources;
        let (limits, requests) = (missing(&resources.limits, &most), missing(&resources.requests, &requests));
        for (added, section) in [(&requests, "request"), (&limits, "limit")] {
            if !added.is_empty() {
                let names: Vec<&str> = added.keys().map(SmolStr::as_str).collect();
                written.push(format!("{} {section} for {what} {}", names.join(", "), container.name));
            }
        }
        resources.limits.extend(limits);
        resources.requests.extend(requests);
    };
    spec.containers.iter_mut().for_each(|container| fill_in(container, "container"));
    spec.init_containers.iter_mut().for_each(|container| fill_in(container, "init container"));
    written
}

fn wrongs(limits: &[Limit], spec: &PodSpec) -> Vec<String> {
    let mut wrong = Vec::new();
    for limit in limits {
        match limit.r#type.as_str() {
            "Container" => {
                for container in spec.containers.iter().chain(&spec.init_containers) {
                    let resources = &container.resources;
                    let asks = Asks { of: &limit.r#type, requests: &resources.requests, limits: &resources.limits };
                    wrong.extend(asks.against(limit));
                }
            }
            "Pod" => {
                let (requests, limits) = (spec.total(|one| &one.requests), spec.total(|one| &one.limits));
                wrong.extend(Asks { of: &limit.r#type, requests: &requests, limits: &limits }.against(limit));
            }
            _ => {}
        }
    }
    wrong
}

/// One sentence as it is, several in brackets, none twice (`utilerrors.Aggregate`).
fn together(mut said: Vec<String>) -> Option<String> {
    let mut seen = Vec::new();
    said.retain(|one| {
        !seen.contains(one) && {
            seen.push(one.clone());
            true
        }
    });
    match said.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

/// What one container, pod or claim asks for.
struct Asks<'a> {
    of: &'a str,
    requests: &'a Amounts,
    limits: &'a Amounts,
}

impl Asks<'_> {
    fn against(&self, limit: &Limit) -> Vec<String> {
        let too_little = limit.min.iter().filter_map(|(name, least)| self.below(name, *least));
        let too_much = limit.max.iter().filter_map(|(name, most)| self.above(name, *most));
        let ratios = limit.max_limit_request_ratio.iter();
        let too_far = ratios.filter_map(|(name, most)| self.too_far_apart(name, *most));
        too_little.chain(too_much).chain(too_far).collect()
    }

    fn amounts(&self, name: &SmolStr) -> (Option<Quantity>, Option<Quantity>) {
        (self.requests.get(name).copied(), self.limits.get(name).copied())
    }

    fn below(&self, name: &SmolStr, least: Quantity) -> Option<String> {
        let rule = format!("minimum {name} usage per {} is {least}", self.of);
        match self.amounts(name) {
            (None, _) => Some(format!("{rule}.  No request is specified")),
            (Some(request), _) if request < least => Some(format!("{rule}, but request is {request}")),
            (_, Some(limit)) if limit < least => Some(format!("{rule}, but limit is {limit}")),
            _ => None,
        }
    }

    fn above(&self, name: &SmolStr, most: Quantity) -> Option<String> {
        let rule = format!("maximum {name} usage per {} is {most}", self.of);
        match self.amounts(name) {
            (_, None) => Some(format!("{rule}.  No limit is specified")),
            (_, Some(limit)) if limit > most => Some(format!("{rule}, but limit is {limit}")),
            (Some(request), _) if request > most => Some(format!("{rule}, but request is {request}")),
            _ => None,
        }
    }

    /// Of a claim, which has no limits.
    fn requests_above(&self, name: &SmolStr, most: Quantity) -> Option<String> {
        let rule = format!("maximum {name} usage per {} is {most}", self.of);
        match self.amounts(name).0 {
            None => Some(format!("{rule}.  No request is specified")),
            Some(request) if request > most => Some(format!("{rule}, but request is {request}")),
            Some(_) => None,
        }
    }

    fn too_far_apart(&self, name: &SmolStr, most: Quantity) -> Option<String> {
        let rule = format!("{name} max limit to request ratio per {} is {most}", self.of);
        let said = |amount: Option<Quantity>| amount.filter(|amount| !amount.is_zero());
        let (request, limit) = self.amounts(name);
        let Some(request) = said(request) else {
            return Some(format!("{rule}, but no request is specified or request is 0"));
        };
        let Some(limit) = said(limit) else {
            return Some(format!("{rule}, but no limit is specified or limit is 0"));
        };
        let exact =
            |amount: Quantity| if amount.value() <= MAX_MILLI_VALUE { amount.milli_value() } else { amount.value() };
        let ratio = exact(limit) as f64 / exact(request) as f64;
        (ratio * 1000.0 > most.milli_value() as f64).then(|| format!("{rule}, but provided ratio is {ratio:.6}"))
    }
}
