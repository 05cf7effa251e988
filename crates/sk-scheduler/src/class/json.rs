//! Reads a pod class from a pod's JSON.
//!
//! Reading is strict where a wrong guess would place the pod elsewhere (a quantity or a selector that does not parse),
//! and bounded: a pod with more than [`MAX_TERMS`] terms is refused, because every term is compared with every other
//! pod.

use std::collections::BTreeMap;

use serde_json::Value;
use sk_core::resources::Amounts;
use sk_core::selector::{Operator, Requirement, SelectorError};
use sk_core::{LabelSelector, Quantity, SmolStr, Toleration};

use super::requests::Asked;
use super::{
    Claim, DEFAULT_SCHEDULER, HostPort, NodeSelectorTerm, Owner, OwnerKind, PassedThrough, PodAffinity,
    PodAffinityTerm, PodClass, Requests, Shape, SpreadConstraint,
};

/// Terms of affinity, constraints of spreading, tolerations, ports: at most this many of each. An API server takes
/// objects of 1.5 MB at most; the shortest affinity term is about 100 bytes, so 15,000 is the most a real pod can have,
/// and real ones have fewer than ten.
pub const MAX_TERMS: usize = 1_000;
/// Extended resources of one pod: one bit of a rejection is kept for each (26 bits less the four for the others).
pub const MAX_EXTENDED_RESOURCES: usize = 22;

/// Why a pod cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassError {
    /// A field of another type, or with a value that Kubernetes would refuse.
    #[error("pod's `{field}`: {problem}")]
    Field {
        /// Which field, from the pod's `spec` on.
        field: String,
        /// What is wrong and what belongs there.
        problem: String,
    },
    /// A list that is too long.
    #[error("pod's `{field}` has {found} entries; at most {most} are read. Make fewer, larger ones")]
    TooMany {
        /// Which list.
        field: &'static str,
        /// How many there are.
        found: usize,
        /// How many are read.
        most: usize,
    },
}

type Read<T> = Result<T, ClassError>;

fn wrong(field: impl Into<String>, problem: impl std::fmt::Display) -> ClassError {
    ClassError::Field { field: field.into(), problem: format!("{problem}") }
}

/// The entries of a list; none when it is absent.
fn list<'a>(of: &'a Value, field: &'static str) -> Read<&'a [Value]> {
    match of.get(field) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(entries)) => bounded(field, entries.len()).map(|()| entries.as_slice()),
        Some(_) => Err(wrong(field, "must be a list")),
    }
}

fn text<'a>(of: &'a Value, field: &str) -> Option<&'a str> {
    of.get(field).and_then(Value::as_str)
}

fn whole(of: &Value, field: &str) -> Option<i32> {
    of.get(field).and_then(Value::as_i64).map(|number| number.clamp(i32::MIN.into(), i32::MAX.into()) as i32)
}

/// The weight of a preferred term. With Kubernetes' own bound, sums of [`MAX_TERMS`] of them over any number of pods stay
/// far below what a score is kept in.
fn weight(of: &Value) -> Read<i32> {
    match whole(of, "weight").unwrap_or(0) {
        weight @ 0..=100 => Ok(weight),
        _ => Err(wrong("preferredDuringSchedulingIgnoredDuringExecution.weight", "must be from 1 to 100")),
    }
}

/// A map of texts, such as labels; none when it is absent.
pub(crate) fn texts(of: Option<&Value>, field: &str) -> Read<BTreeMap<SmolStr, SmolStr>> {
    let Some(fields) = of.filter(|value| !value.is_null()) else { return Ok(BTreeMap::new()) };
    let fields = fields.as_object().ok_or_else(|| wrong(field, "must be a map of texts"))?;
    let entry = |(key, value): (&String, &Value)| {
        let value = value.as_str().ok_or_else(|| wrong(format!("{field}.{key}"), "must be a text"))?;
        Ok((SmolStr::from(key), SmolStr::from(value)))
    };
    fields.iter().map(entry).collect()
}

/// A map of quantities; none when it is absent.
pub(crate) fn amounts(of: Option<&Value>, field: &str) -> Read<Amounts> {
    let Some(fields) = of.filter(|value| !value.is_null()) else { return Ok(Amounts::new()) };
    let fields = fields.as_object().ok_or_else(|| wrong(field, "must be a map of quantities"))?;
    let entry = |(key, value): (&String, &Value)| {
        let amount: Quantity =
            serde_json::from_value(value.clone()).map_err(|error| wrong(format!("{field}.{key}"), error))?;
        Ok((SmolStr::from(key), amount))
    };
    fields.iter().map(entry).collect()
}

fn selector(of: Option<&Value>, field: &'static str) -> Read<LabelSelector> {
    let read = LabelSelector::from_json(of.unwrap_or(&Value::Null)).map_err(|error| wrong(field, error))?;
    bounded(field, read.requirements().len())?;
    Ok(read)
}

/// What every node or every other pod is compared with has a bound, however it is written.
fn bounded(field: &'static str, found: usize) -> Read<()> {
    if found > MAX_TERMS { Err(ClassError::TooMany { field, found, most: MAX_TERMS }) } else { Ok(()) }
}

impl PodClass {
    /// From a pod's namespace and the JSON of its `metadata` and `spec`.
    pub fn from_json(namespace: &str, metadata: &Value, spec: &Value) -> Result<Self, ClassError> {
        let labels = texts(metadata.get("labels"), "metadata.labels")?;
        let shape = shape(spec)?;
        if shape.requests.scalars.len() > MAX_EXTENDED_RESOURCES {
            let found = shape.requests.scalars.len();
            return Err(ClassError::TooMany { field: "resources.requests", found, most: MAX_EXTENDED_RESOURCES });
        }
        Ok(Self {
            namespace: namespace.into(),
            scheduler_name: text(spec, "schedulerName").unwrap_or(DEFAULT_SCHEDULER).into(),
            priority: whole(spec, "priority").unwrap_or(0),
            never_preempts: text(spec, "preemptionPolicy") == Some("Never"),
            gates: list(spec, "schedulingGates")?
                .iter()
                .filter_map(|gate| text(gate, "name"))
                .map(SmolStr::from)
                .collect(),
            spread: spread(spec, &labels)?,
            affinity: pod_affinity(spec, namespace, &labels)?,
            owner: owner(metadata)?,
            claims: claims(spec)?,
            passed_through: PassedThrough::of(spec),
            labels,
            shape,
        })
    }

    /// From a whole pod.
    pub fn from_pod(pod: &Value) -> Result<Self, ClassError> {
        let metadata = &pod["metadata"];
        Self::from_json(text(metadata, "namespace").unwrap_or("default"), metadata, &pod["spec"])
    }
}

fn shape(spec: &Value) -> Read<Shape> {
    let (containers, init) = (list(spec, "containers")?, list(spec, "initContainers")?);
    let node_affinity = spec.pointer("/affinity/nodeAffinity").unwrap_or(&Value::Null);
    let node_selector = texts(spec.get("nodeSelector"), "nodeSelector")?;
    bounded("nodeSelector", node_selector.len())?;
    let tolerations = |toleration: &Value| {
        serde_json::from_value::<Toleration>(toleration.clone()).map_err(|error| wrong("tolerations", error))
    };
    Ok(Shape {
        requests: Requests::of(&asked(spec, containers, init)?),
        node_name: text(spec, "nodeName").filter(|name| !name.is_empty()).map(SmolStr::from),
        node_selector,
        required_affinity: required_node_affinity(node_affinity)?,
        preferred_affinity: preferred_node_affinity(node_affinity)?,
        tolerations: list(spec, "tolerations")?.iter().map(tolerations).collect::<Read<_>>()?,
        ports: ports(init, containers)?,
        images: images(spec, init, containers)?,
        containers: u32::try_from(containers.len() + init.len()).unwrap_or(u32::MAX),
    })
}

fn is_sidecar(container: &Value) -> bool {
    text(container, "restartPolicy") == Some("Always")
}

/// What each container asks for; a limit without a request is one (pkg/apis/core/v1/defaults.go, `SetDefaults_Pod`).
fn asked(spec: &Value, containers: &[Value], init: &[Value]) -> Read<Asked> {
    let of = |container: &Value| {
        let resources = container.get("resources");
        let mut requests = amounts(resources.and_then(|found| found.get("requests")), "resources.requests")?;
        for (name, limit) in amounts(resources.and_then(|found| found.get("limits")), "resources.limits")? {
            requests.entry(name).or_insert(limit);
        }
        Ok(requests)
    };
    let pod_level = amounts(spec.pointer("/resources/requests"), "resources.requests")?;
    let supported = |name: &SmolStr| name == "cpu" || name == "memory" || name.starts_with("hugepages-");
    Ok(Asked {
        containers: containers.iter().map(of).collect::<Read<_>>()?,
        init: init.iter().map(|one| Ok((of(one)?, is_sidecar(one)))).collect::<Read<_>>()?,
        pod_level: pod_level.into_iter().filter(|(name, _)| supported(name)).collect(),
        overhead: amounts(spec.get("overhead"), "overhead")?,
    })
}

/// `GetHostPorts` (`util/utils.go`): of sidecars and containers.
fn ports(init: &[Value], containers: &[Value]) -> Read<Vec<HostPort>> {
    let mut ports = Vec::new();
    for container in init.iter().filter(|one| is_sidecar(one)).chain(containers) {
        for port in list(container, "ports")? {
            let Some(number) = whole(port, "hostPort").filter(|number| *number > 0) else { continue };
            let given =
                |field, default: &str| SmolStr::from(text(port, field).filter(|s| !s.is_empty()).unwrap_or(default));
            ports.push(HostPort { ip: given("hostIP", "0.0.0.0"), protocol: given("protocol", "TCP"), port: number });
        }
    }
    bounded("ports", ports.len())?;
    Ok(ports)
}

fn images(spec: &Value, init: &[Value], containers: &[Value]) -> Read<Vec<SmolStr>> {
    let of_containers = init.iter().chain(containers).map(|container| text(container, "image").unwrap_or_default());
    let volumes = list(spec, "volumes")?.iter();
    let of_volumes =
        volumes.filter_map(|volume| volume.get("image")).map(|image| text(image, "reference").unwrap_or_default());
    Ok(of_containers.chain(of_volumes).map(normalized_image).collect())
}

/// `normalizedImageName` (`imagelocality/image_locality.go`): a name without a tag has the tag `latest`.
pub(crate) fn normalized_image(name: &str) -> SmolStr {
    if name.rfind(':').map_or(-1, |at| at as i64) <= name.rfind('/').map_or(-1, |at| at as i64) {
        return [name, ":latest"].concat().into();
    }
    name.into()
}

fn required_node_affinity(affinity: &Value) -> Read<Option<Vec<NodeSelectorTerm>>> {
    match affinity.get("requiredDuringSchedulingIgnoredDuringExecution").filter(|value| !value.is_null()) {
        None => Ok(None),
        Some(required) => {
            let terms = list(required, "nodeSelectorTerms")?;
            terms.iter().try_for_each(bounded_term)?;
            Ok(Some(terms.iter().map(node_selector_term).collect()))
        }
    }
}

fn preferred_node_affinity(affinity: &Value) -> Read<Vec<(i32, NodeSelectorTerm)>> {
    let preferred = list(affinity, "preferredDuringSchedulingIgnoredDuringExecution")?;
    preferred.iter().try_for_each(|term| bounded_term(&term["preference"]))?;
    let terms =
        preferred.iter().map(|term| (whole(term, "weight").unwrap_or(0), node_selector_term(&term["preference"])));
    // `NewPreferredSchedulingTerms` leaves out what can add nothing.
    Ok(terms.filter(|(weight, term)| *weight != 0 && !term.matches_nothing).collect())
}

/// A term that asks for too much is an error: without it the pod would fit nowhere, without a reason.
fn bounded_term(term: &Value) -> Read<()> {
    let length = |field: &str| term.get(field).and_then(Value::as_array).map_or(0, Vec::len);
    bounded("matchExpressions", length("matchExpressions"))?;
    bounded("matchFields", length("matchFields"))
}

/// `newNodeSelectorTerm`: what does not parse matches nothing.
pub(crate) fn node_selector_term(term: &Value) -> NodeSelectorTerm {
    let nothing = NodeSelectorTerm { matches_nothing: true, ..NodeSelectorTerm::default() };
    let entries = |field: &str| term.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let (expressions, fields) = (entries("matchExpressions"), entries("matchFields"));
    if (expressions.is_empty() && fields.is_empty()) || expressions.len() > MAX_TERMS || fields.len() > MAX_TERMS {
        return nothing;
    }
    let labels: Option<Vec<_>> = expressions.iter().map(node_requirement).collect();
    let names: Option<Vec<_>> = fields.iter().map(node_name_requirement).collect();
    match (labels, names) {
        (Some(labels), Some(names)) => NodeSelectorTerm { labels, names, matches_nothing: false },
        _ => nothing,
    }
}

fn values(of: &Value) -> impl Iterator<Item = &str> {
    of.get("values").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn node_requirement(of: &Value) -> Option<Requirement> {
    let operator = match text(of, "operator")? {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::GreaterThan,
        "Lt" => Operator::LessThan,
        _ => return None,
    };
    Requirement::new(text(of, "key")?, operator, values(of)).ok()
}

fn node_name_requirement(of: &Value) -> Option<(bool, SmolStr)> {
    let (mut values, equal) = (
        values(of),
        match text(of, "operator")? {
            "In" => true,
            "NotIn" => false,
            _ => return None,
        },
    );
    let (name, None) = (values.next()?, values.next()) else { return None };
    // A field that nodes do not have is never equal to anything.
    let known = text(of, "key") == Some("metadata.name");
    Some((equal, if known { name.into() } else { SmolStr::default() }))
}

fn spread(spec: &Value, labels: &BTreeMap<SmolStr, SmolStr>) -> Read<Vec<SpreadConstraint>> {
    list(spec, "topologySpreadConstraints")?.iter().map(|constraint| spread_constraint(constraint, labels)).collect()
}

/// `filterTopologySpreadConstraints` (`podtopologyspread/common.go`).
pub(crate) fn spread_constraint(of: &Value, labels: &BTreeMap<SmolStr, SmolStr>) -> Read<SpreadConstraint> {
    let mut selector = selector(of.get("labelSelector"), "topologySpreadConstraints.labelSelector")?;
    let keys: Vec<&str> = list(of, "matchLabelKeys")?.iter().filter_map(Value::as_str).collect();
    selector = with_keys(&selector, &keys, Operator::In, labels).map_err(|error| wrong("matchLabelKeys", error))?;
    let at_least_one = |field: &'static str| match whole(of, field) {
        Some(number) if number < 1 => Err(wrong(format!("topologySpreadConstraints.{field}"), "must be at least 1")),
        number => Ok(number.unwrap_or(1)),
    };
    Ok(SpreadConstraint {
        max_skew: at_least_one("maxSkew")?,
        key: text(of, "topologyKey").unwrap_or_default().into(),
        hard: text(of, "whenUnsatisfiable") != Some("ScheduleAnyway"),
        selector,
        min_domains: at_least_one("minDomains")?,
        honor_affinity: text(of, "nodeAffinityPolicy") != Some("Ignore"),
        honor_taints: text(of, "nodeTaintsPolicy") == Some("Honor"),
    })
}

/// The selector with one more requirement for each of these labels that the pod has.
fn with_keys(
    selector: &LabelSelector,
    keys: &[&str],
    operator: Operator,
    labels: &BTreeMap<SmolStr, SmolStr>,
) -> Result<LabelSelector, SelectorError> {
    if selector.is_nothing() {
        return Ok(selector.clone());
    }
    let mut requirements = selector.requirements().to_vec();
    for (key, value) in keys.iter().filter_map(|key| labels.get_key_value(*key)) {
        let requirement = Requirement::new(key, operator, [value.clone()])?;
        // An API server since 1.34 has written it into the selector already.
        if !requirements.contains(&requirement) {
            requirements.push(requirement);
        }
    }
    Ok(LabelSelector::all(requirements))
}

fn pod_affinity(spec: &Value, namespace: &str, labels: &BTreeMap<SmolStr, SmolStr>) -> Read<PodAffinity> {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    let half = |name: &str| spec.pointer(name).filter(|half| !half.is_null());
    let (near, far) = (half("/affinity/podAffinity"), half("/affinity/podAntiAffinity"));
    let term = |term: &Value| pod_affinity_term(term, namespace, labels);
    let required = |half: Option<&Value>| match half {
        Some(half) => list(half, REQUIRED)?.iter().map(term).collect(),
        None => Ok(Vec::new()),
    };
    let weighted = |of: &Value| Ok((weight(of)?, term(&of["podAffinityTerm"])?));
    let preferred = |half: Option<&Value>| match half {
        Some(half) => list(half, PREFERRED)?.iter().map(weighted).collect(),
        None => Ok(Vec::new()),
    };
    Ok(PodAffinity {
        present: near.is_some() || far.is_some(),
        required: required(near)?,
        required_anti: required(far)?,
        preferred: preferred(near)?,
        preferred_anti: preferred(far)?,
    })
}

/// `newAffinityTerm` (kube-scheduler/framework/types.go); the API server merges the label keys into the selector.
fn pod_affinity_term(of: &Value, namespace: &str, labels: &BTreeMap<SmolStr, SmolStr>) -> Read<PodAffinityTerm> {
    let mut chosen = selector(of.get("labelSelector"), "affinity.labelSelector")?;
    for (field, operator) in [("matchLabelKeys", Operator::In), ("mismatchLabelKeys", Operator::NotIn)] {
        let keys: Vec<&str> = list(of, field)?.iter().filter_map(Value::as_str).collect();
        chosen = with_keys(&chosen, &keys, operator, labels).map_err(|error| wrong(field, error))?;
    }
    let mut namespaces: Vec<SmolStr> =
        list(of, "namespaces")?.iter().filter_map(Value::as_str).map(SmolStr::from).collect();
    let by_label = of.get("namespaceSelector").filter(|value| !value.is_null());
    if namespaces.is_empty() && by_label.is_none() {
        namespaces.push(namespace.into());
    }
    namespaces.sort_unstable();
    Ok(PodAffinityTerm {
        namespaces,
        namespace_selector: selector(by_label, "affinity.namespaceSelector")?,
        selector: chosen,
        key: text(of, "topologyKey").unwrap_or_default().into(),
    })
}

fn owner(metadata: &Value) -> Read<Option<Owner>> {
    let controls = |reference: &&Value| reference.get("controller").and_then(Value::as_bool) == Some(true);
    let Some(reference) = list(metadata, "ownerReferences")?.iter().find(controls) else { return Ok(None) };
    let kind = match (text(reference, "apiVersion"), text(reference, "kind")) {
        (Some("v1"), Some("ReplicationController")) => OwnerKind::ReplicationController,
        (Some("apps/v1"), Some("ReplicaSet")) => OwnerKind::ReplicaSet,
        (Some("apps/v1"), Some("StatefulSet")) => OwnerKind::StatefulSet,
        _ => return Ok(None),
    };
    Ok(Some(Owner { kind, name: text(reference, "name").unwrap_or_default().into() }))
}

fn claims(spec: &Value) -> Read<Vec<Claim>> {
    let claim = |volume: &Value| {
        if let Some(source) = volume.get("persistentVolumeClaim").filter(|source| !source.is_null()) {
            return Some(Claim { name: text(source, "claimName").unwrap_or_default().into(), ephemeral: false });
        }
        volume.get("ephemeral").filter(|source| !source.is_null())?;
        Some(Claim { name: format!("-{}", text(volume, "name").unwrap_or_default()).into(), ephemeral: true })
    };
    Ok(list(spec, "volumes")?.iter().filter_map(claim).collect())
}
