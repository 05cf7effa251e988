//! Pods, and the templates that pods are made from.

use serde_json::Value;
use sk_core::{LabelSelector, Quantity};

use super::{
    Errors, duplicate, fields, forbidden, invalid, items, not_negative, not_supported, one_of, required, text, text_of,
};
use crate::error::Invalid;

const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
/// What containers may ask for without a domain in front (`IsStandardContainerResourceName`).
const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// The seconds and numbers of the largest 32-bit number.
const MAX_SECONDS: i64 = i32::MAX as i64;

/// The sources of a volume, in the order in which a server looks for them (`validateVolumeSource`).
const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

/// A pod's spec, standing at `at`.
pub(super) fn spec(spec: &Value, at: &str, errors: &mut Errors) {
    let volumes = volumes(&spec["volumes"], &spec["serviceAccountName"], &format!("{at}.volumes"), errors);
    containers(spec, at, &volumes, errors);
    init_containers(spec, at, &volumes, errors);
    one_of(spec, "restartPolicy", at, &["Always", "OnFailure", "Never"], errors);
    one_of(spec, "dnsPolicy", at, &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], errors);
    for (key, value) in fields(&spec["nodeSelector"]) {
        text::label_key(key, &format!("{at}.nodeSelector"), errors);
        text::label_value(text_of(value), &format!("{at}.nodeSelector"), errors);
    }
    affinity(&spec["affinity"], &format!("{at}.affinity"), errors);
    gates(&spec["schedulingGates"], &format!("{at}.schedulingGates"), errors);
    spread(&spec["topologySpreadConstraints"], &format!("{at}.topologySpreadConstraints"), errors);
    for name in ["serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"] {
        if !text_of(&spec[name]).is_empty() {
            text::dns_subdomain(text_of(&spec[name]), &format!("{at}.{name}"), errors);
        }
    }
    if let Some(seconds) = spec["activeDeadlineSeconds"].as_i64().filter(|seconds| !(1..=MAX_SECONDS).contains(seconds))
    {
        let why = format!("must be between 1 and {MAX_SECONDS}, inclusive");
        errors.push(invalid(format!("{at}.activeDeadlineSeconds"), &seconds.into(), &why));
    }
    for name in ["hostname", "subdomain"] {
        if !text_of(&spec[name]).is_empty() {
            text::dns_label(text_of(&spec[name]), &format!("{at}.{name}"), errors);
        }
    }
    tolerations(&spec["tolerations"], &format!("{at}.tolerations"), errors);
    if let Some(os) = spec["os"]["name"].as_str().filter(|os| !["linux", "windows"].contains(os)) {
        errors.push(not_supported(format!("{at}.os"), &Value::from(os), &["linux", "windows"]));
    }
    ids(&spec["securityContext"], &format!("{at}.securityContext"), errors);
    if spec["hostNetwork"] == true {
        for name in ["containers", "initContainers"] {
            ports_of_host(&spec[name], &format!("{at}.{name}"), errors);
        }
    }
    one_of(spec, "preemptionPolicy", at, &["PreemptLowerPriority", "Never"], errors);
    for (name, amount) in fields(&spec["overhead"]) {
        amount_of(name, amount, &format!("{at}.overhead"), errors);
    }
}

/// Users and groups that processes run as.
fn ids(context: &Value, at: &str, errors: &mut Errors) {
    for name in ["runAsUser", "runAsGroup", "fsGroup"] {
        if let Some(id) = context[name].as_i64().filter(|id| !(0..=MAX_SECONDS).contains(id)) {
            let why = format!("must be between 0 and {MAX_SECONDS}, inclusive");
            errors.push(invalid(format!("{at}.{name}"), &id.into(), &why));
        }
    }
}

/// On the network of its node a container has no ports but those of the node.
fn ports_of_host(containers: &Value, at: &str, errors: &mut Errors) {
    for (index, container) in items(containers) {
        for (place, port) in items(&container["ports"]).filter(|(_, port)| !port["hostPort"].is_null()) {
            if port["hostPort"] != port["containerPort"] {
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.push(invalid(format!("{at}[{index}].ports[{place}].hostPort"), &port["hostPort"], why));
            }
        }
    }
}

/// The names of the volumes.
fn volumes(volumes: &Value, account: &Value, at: &str, errors: &mut Errors) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (index, volume) in items(volumes) {
        let (at, name) = (format!("{at}[{index}]"), text_of(&volume["name"]));
        if name.is_empty() {
            errors.push(required(format!("{at}.name"), ""));
        } else {
            text::dns_label(name, &format!("{at}.name"), errors);
        }
        if names.iter().any(|known| known == name) {
            errors.push(duplicate(format!("{at}.name"), &volume["name"]));
        }
        let sources: Vec<&str> = SOURCES.into_iter().filter(|source| !volume[*source].is_null()).collect();
        if sources.is_empty() {
            errors.push(required(&at, "must specify a volume type"));
        }
        for extra in sources.iter().skip(1) {
            errors.push(forbidden(format!("{at}.{extra}"), "may not specify more than 1 volume type"));
        }
        let needed = [
            ("persistentVolumeClaim", "claimName"),
            ("configMap", "name"),
            ("secret", "secretName"),
            ("hostPath", "path"),
            ("nfs", "server"),
            ("nfs", "path"),
        ];
        for (source, field) in needed.into_iter().filter(|(source, _)| volume[*source].is_object()) {
            if text_of(&volume[source][field]).is_empty() {
                errors.push(required(format!("{at}.{source}.{field}"), ""));
            }
        }
        let account = text_of(account).is_empty();
        for (place, source) in items(&volume["projected"]["sources"]) {
            if account && source["serviceAccountToken"].is_object() {
                let field = format!("{at}.projected.sources[{place}].serviceAccountToken");
                errors.push(forbidden(field, "must not be specified when serviceAccountName is not set"));
            }
        }
        names.push(name.to_owned());
    }
    names
}

fn containers(spec: &Value, at: &str, volumes: &[String], errors: &mut Errors) {
    let at = format!("{at}.containers");
    if spec["containers"].as_array().is_none_or(Vec::is_empty) {
        errors.push(required(at, ""));
        return;
    }
    let mut names: Vec<&str> = Vec::new();
    for (index, container) in items(&spec["containers"]) {
        let at = format!("{at}[{index}]");
        common(container, &at, volumes, errors);
        let name = text_of(&container["name"]);
        if names.contains(&name) {
            errors.push(duplicate(format!("{at}.name"), &container["name"]));
        }
        names.push(name);
        probes(container, &at, errors);
    }
    host_ports(&spec["containers"], &at, errors);
}

/// Two containers cannot have one port of their node.
fn host_ports(containers: &Value, at: &str, errors: &mut Errors) {
    let mut taken: Vec<String> = Vec::new();
    for (index, container) in items(containers) {
        for (place, port) in items(&container["ports"]) {
            let Some(number) = port["hostPort"].as_i64().filter(|number| *number != 0) else { continue };
            let key = format!("{}/{}/{number}", text_of(&port["protocol"]), text_of(&port["hostIP"]));
            if taken.contains(&key) {
                let field = format!("{at}[{index}].ports[{place}].hostPort");
                errors.push(duplicate(field, &Value::from(key.clone())));
            }
            taken.push(key);
        }
    }
}

fn init_containers(spec: &Value, at: &str, volumes: &[String], errors: &mut Errors) {
    let at = format!("{at}.initContainers");
    let mut names: Vec<&str> = items(&spec["containers"]).map(|(_, container)| text_of(&container["name"])).collect();
    for (index, container) in items(&spec["initContainers"]) {
        let at = format!("{at}[{index}]");
        common(container, &at, volumes, errors);
        let name = text_of(&container["name"]);
        if !name.is_empty() && names.contains(&name) {
            errors.push(duplicate(format!("{at}.name"), &container["name"]));
        }
        names.push(name);
        one_of(container, "restartPolicy", &at, &["Always", "Never", "OnFailure"], errors);
        if container["restartPolicy"] == "Always" {
            probes(container, &at, errors);
            continue;
        }
        if container["lifecycle"].is_object() {
            errors.push(forbidden(
                format!("{at}.lifecycle"),
                "may not be set for init containers without restartPolicy=Always",
            ));
        }
        for probe in PROBES.into_iter().filter(|probe| container[*probe].is_object()) {
            let why = "may not be set for init containers without restartPolicy=Always";
            errors.push(forbidden(format!("{at}.{probe}"), why));
        }
    }
}

fn common(container: &Value, at: &str, volumes: &[String], errors: &mut Errors) {
    match text_of(&container["name"]) {
        "" => errors.push(required(format!("{at}.name"), "")),
        name => text::dns_label(name, &format!("{at}.name"), errors),
    }
    if text_of(&container["image"]).is_empty() {
        errors.push(required(format!("{at}.image"), ""));
    }
    one_of(container, "terminationMessagePolicy", at, &["File", "FallbackToLogsOnError"], errors);
    ports(&container["ports"], &format!("{at}.ports"), errors);
    env(&container["env"], &format!("{at}.env"), errors);
    mounts(&container["volumeMounts"], volumes, &format!("{at}.volumeMounts"), errors);
    one_of(container, "imagePullPolicy", at, &["Always", "IfNotPresent", "Never"], errors);
    resources(&container["resources"], &format!("{at}.resources"), errors);
    ids(&container["securityContext"], &format!("{at}.securityContext"), errors);
}

fn ports(ports: &Value, at: &str, errors: &mut Errors) {
    let mut names: Vec<&str> = Vec::new();
    for (index, port) in items(ports) {
        let at = format!("{at}[{index}]");
        let name = text_of(&port["name"]);
        if !name.is_empty() {
            let before = errors.len();
            port_name(name, &format!("{at}.name"), errors);
            if errors.len() == before && names.contains(&name) {
                errors.push(duplicate(format!("{at}.name"), &port["name"]));
            }
            names.push(name);
        }
        match port["containerPort"].as_i64().unwrap_or(0) {
            0 => errors.push(required(format!("{at}.containerPort"), "")),
            1..=65535 => {}
            number => errors.push(invalid(format!("{at}.containerPort"), &number.into(), PORT_RANGE)),
        }
        if let Some(number) = port["hostPort"].as_i64().filter(|number| !(0..=65535).contains(number)) {
            errors.push(invalid(format!("{at}.hostPort"), &number.into(), PORT_RANGE));
        }
        one_of(port, "protocol", &at, &["SCTP", "TCP", "UDP"], errors);
    }
}

/// `IsValidPortName`
pub(super) fn port_name(name: &str, field: &str, errors: &mut Errors) {
    let value = Value::from(name);
    let mut refuse = |why: &str| errors.push(invalid(field, &value, why));
    if name.len() > 15 {
        refuse("must be no more than 15 characters");
    }
    if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
        refuse("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        refuse("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        refuse("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        refuse("must not begin or end with a hyphen");
    }
}

fn env(env: &Value, at: &str, errors: &mut Errors) {
    for (index, variable) in items(env) {
        let at = format!("{at}[{index}]");
        let name = text_of(&variable["name"]);
        if name.is_empty() {
            errors.push(required(format!("{at}.name"), ""));
        } else if !name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
            let why =
                "a valid environment variable name must consist only of printable ASCII characters other than '='";
            errors.push(invalid(format!("{at}.name"), &variable["name"], why));
        }
        field_path(&variable["valueFrom"]["fieldRef"], &format!("{at}.valueFrom.fieldRef"), errors);
        if variable["valueFrom"].is_object() && !text_of(&variable["value"]).is_empty() {
            errors.push(invalid(
                format!("{at}.valueFrom"),
                &Value::from(""),
                "may not be specified when `value` is not empty",
            ));
        }
    }
}

/// What of its pod a variable may be (`validateObjectFieldSelector`).
fn field_path(of: &Value, at: &str, errors: &mut Errors) {
    const ALLOWED: [&str; 9] = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    /// These can be read, but are no variables.
    const READ: [&str; 5] =
        ["metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName", "status.phase"];
    let path = text_of(&of["fieldPath"]);
    if !of.is_object() || ALLOWED.contains(&path) || (path.ends_with("']") && path.contains("['")) {
        return;
    }
    let at = format!("{at}.fieldPath");
    if path.is_empty() {
        errors.push(required(at, ""));
    } else if READ.contains(&path) {
        errors.push(not_supported(at, &of["fieldPath"], &ALLOWED));
    } else {
        let why = format!("error converting fieldPath: field label not supported: {path}");
        errors.push(invalid(at, &of["fieldPath"], &why));
    }
}

fn mounts(mounts: &Value, volumes: &[String], at: &str, errors: &mut Errors) {
    let mut paths: Vec<&str> = Vec::new();
    for (index, mount) in items(mounts) {
        let at = format!("{at}[{index}]");
        let name = text_of(&mount["name"]);
        if name.is_empty() {
            errors.push(required(format!("{at}.name"), ""));
        } else if !volumes.iter().any(|known| known == name) {
            errors.push(Invalid::new(format!("{at}.name"), format!("Not found: {name:?}")));
        }
        let path = text_of(&mount["mountPath"]);
        if path.is_empty() {
            errors.push(required(format!("{at}.mountPath"), ""));
        }
        if paths.contains(&path) {
            errors.push(invalid(format!("{at}.mountPath"), &mount["mountPath"], "must be unique"));
        }
        paths.push(path);
    }
}

/// Requests and limits of a container.
pub(super) fn resources(resources: &Value, at: &str, errors: &mut Errors) {
    let quantity = |value: &Value| text_of(value).parse::<Quantity>().ok();
    let requests = &resources["requests"];
    for (name, limit) in fields(&resources["limits"]) {
        resource_name(name, &format!("{at}.limits"), errors);
        amount_of(name, limit, &format!("{at}.limits"), errors);
        let is_exact = name.starts_with("hugepages-") || name.contains('/');
        match (quantity(&requests[name.as_str()]), quantity(limit)) {
            (Some(request), Some(limit)) if request > limit => {
                let why = format!("must be less than or equal to {name} limit of {limit}");
                errors.push(invalid(format!("{at}.requests"), &Value::from(request.to_string()), &why));
            }
            (Some(request), Some(limit)) if is_exact && request != limit => {
                let why = format!("must be equal to {name} limit of {limit}");
                errors.push(invalid(format!("{at}.requests"), &Value::from(request.to_string()), &why));
            }
            _ => {}
        }
    }
    huge_pages(resources, at, errors);
    for (name, request) in fields(requests) {
        resource_name(name, &format!("{at}.requests"), errors);
        amount_of(name, request, &format!("{at}.requests"), errors);
        let is_exact = name.starts_with("hugepages-") || name.contains('/');
        if is_exact && resources["limits"][name.as_str()].is_null() {
            errors.push(required(format!("{at}.limits"), "Limit must be set for non overcommitable resources"));
        }
    }
}

/// Large pages are memory that something must use.
fn huge_pages(resources: &Value, at: &str, errors: &mut Errors) {
    let names = ["requests", "limits"].into_iter().flat_map(|section| fields(&resources[section]));
    let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
    let is_used = names.iter().any(|name| ["cpu", "memory"].contains(name));
    if names.iter().any(|name| name.starts_with("hugepages-")) && !is_used {
        errors.push(forbidden(at, "HugePages require cpu or memory"));
    }
}

pub(super) fn resource_name(name: &str, at: &str, errors: &mut Errors) {
    let (field, value) = (format!("{at}[{name}]"), Value::from(name));
    let before = errors.len();
    text::label_key(name, &field, errors);
    let is_standard = STANDARD.contains(&name) || name.starts_with("hugepages-");
    if !name.contains('/') {
        if errors.len() == before && !is_standard {
            errors.push(invalid(field.clone(), &value, "must be a standard resource type or fully qualified"));
        }
        if !is_standard {
            errors.push(invalid(field, &value, "must be a standard resource for containers"));
        }
    } else if !name.contains("kubernetes.io/") {
        // A quota must be able to name it.
        let mut of_quota = Errors::new();
        text::label_key(&format!("requests.{name}"), &field, &mut of_quota);
        if name.starts_with("requests.") || !of_quota.is_empty() {
            errors.push(invalid(field, &value, "doesn't follow extended resource name standard"));
        }
    }
}

fn amount_of(name: &str, amount: &Value, at: &str, errors: &mut Errors) {
    let Ok(quantity) = text_of(amount).parse::<Quantity>() else { return };
    if quantity.is_negative() {
        errors.push(invalid(format!("{at}[{name}]"), amount, "must be greater than or equal to 0"));
    }
    let is_whole = name.contains('/');
    if is_whole && quantity.milli_value() % 1000 != 0 {
        errors.push(invalid(format!("{at}[{name}]"), amount, "must be an integer"));
    }
}

fn probes(container: &Value, at: &str, errors: &mut Errors) {
    for name in PROBES.into_iter().filter(|name| container[*name].is_object()) {
        let (probe, at) = (&container[name], format!("{at}.{name}"));
        let handlers: Vec<&str> = ["exec", "httpGet", "tcpSocket", "grpc"]
            .into_iter()
            .filter(|handler| probe[*handler].is_object())
            .collect();
        if handlers.is_empty() {
            errors.push(required(&at, "must specify a handler type"));
        }
        for extra in handlers.iter().skip(1) {
            errors.push(forbidden(format!("{at}.{extra}"), "may not specify more than 1 handler type"));
        }
        for number in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            not_negative(probe, number, &at, errors);
        }
        if name != "readinessProbe" && probe["successThreshold"].as_i64().is_some_and(|threshold| threshold != 1) {
            errors.push(invalid(format!("{at}.successThreshold"), &probe["successThreshold"], "must be 1"));
        }
    }
}

/// Tolerations of a pod.
pub(super) fn tolerations(tolerations: &Value, at: &str, errors: &mut Errors) {
    for (index, toleration) in items(tolerations) {
        let at = format!("{at}[{index}]");
        let (key, value) = (text_of(&toleration["key"]), text_of(&toleration["value"]));
        let (operator, effect) = (text_of(&toleration["operator"]), text_of(&toleration["effect"]));
        let said = |name: &str| Value::from(text_of(&toleration[name]));
        if !key.is_empty() {
            text::label_key(key, &format!("{at}.key"), errors);
        }
        if key.is_empty() && operator != "Exists" {
            let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(invalid(format!("{at}.operator"), &said("operator"), why));
        }
        if toleration["tolerationSeconds"].is_i64() && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(invalid(format!("{at}.effect"), &said("effect"), why));
        }
        match operator {
            "" | "Equal" => text::label_value(value, &format!("{at}.operator"), errors),
            "Exists" if !value.is_empty() => {
                let why = "value must be empty when `operator` is 'Exists'";
                errors.push(invalid(format!("{at}.operator"), &said("value"), why));
            }
            "Exists" => {}
            "Lt" | "Gt" => {
                let words = ["Equal", "Exists", "Lt", "Gt"];
                errors.push(not_supported(format!("{at}.operator"), &said("operator"), &words));
            }
            _ => errors.push(not_supported(format!("{at}.operator"), &said("operator"), &["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            one_of(toleration, "effect", &at, &["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
        }
    }
}

fn gates(gates: &Value, at: &str, errors: &mut Errors) {
    let mut names: Vec<&str> = Vec::new();
    for (index, gate) in items(gates) {
        let (field, name) = (format!("{at}[{index}]"), text_of(&gate["name"]));
        text::label_key(name, &format!("{field}.name"), errors);
        if names.contains(&name) {
            errors.push(duplicate(field, &gate["name"]));
        }
        names.push(name);
    }
}

fn spread(constraints: &Value, at: &str, errors: &mut Errors) {
    let later = |constraints: &Value, index: usize| {
        let pairs: Vec<String> = items(constraints).skip(index + 1).map(|(_, one)| spread_pair(one)).collect();
        pairs.into_iter()
    };
    for (index, constraint) in items(constraints) {
        let at = format!("{at}[{index}]");
        if let Some(skew) = constraint["maxSkew"].as_i64().filter(|skew| *skew <= 0) {
            errors.push(invalid(format!("{at}.maxSkew"), &skew.into(), "must be greater than zero"));
        }
        if text_of(&constraint["topologyKey"]).is_empty() {
            errors.push(required(format!("{at}.topologyKey"), "can not be empty"));
        } else {
            text::label_key(text_of(&constraint["topologyKey"]), &format!("{at}.topologyKey"), errors);
        }
        let action = &constraint["whenUnsatisfiable"];
        if !["DoNotSchedule", "ScheduleAnyway"].contains(&text_of(action)) {
            let words = ["DoNotSchedule", "ScheduleAnyway"];
            errors.push(not_supported(format!("{at}.whenUnsatisfiable"), &Value::from(text_of(action)), &words));
        }
        let pair = spread_pair(constraint);
        if later(constraints, index).any(|known| known == pair) {
            errors.push(duplicate(format!("{at}.{{topologyKey, whenUnsatisfiable}}"), &Value::from(pair)));
        }
        if let Some(domains) = constraint["minDomains"].as_i64() {
            if domains <= 0 {
                errors.push(invalid(format!("{at}.minDomains"), &domains.into(), "must be greater than zero"));
            }
            if text_of(action) == "ScheduleAnyway" {
                let why = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway";
                errors.push(invalid(format!("{at}.minDomains"), &domains.into(), why));
            }
        }
        for name in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            one_of(constraint, name, &at, &["Honor", "Ignore"], errors);
        }
        let has_keys = constraint["matchLabelKeys"].as_array().is_some_and(|keys| !keys.is_empty());
        if has_keys && constraint["labelSelector"].is_null() {
            let why = "must not be specified when labelSelector is not set";
            errors.push(forbidden(format!("{at}.matchLabelKeys"), why));
        }
        label_selector(&constraint["labelSelector"], &format!("{at}.labelSelector"), errors);
    }
}

fn spread_pair(constraint: &Value) -> String {
    format!("{{{}, {}}}", text_of(&constraint["topologyKey"]), text_of(&constraint["whenUnsatisfiable"]))
}

fn affinity(affinity: &Value, at: &str, errors: &mut Errors) {
    let node = &affinity["nodeAffinity"];
    let required_terms = &node["requiredDuringSchedulingIgnoredDuringExecution"];
    if required_terms.is_object() {
        let at = format!("{at}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
        if required_terms["nodeSelectorTerms"].as_array().is_none_or(Vec::is_empty) {
            errors.push(required(&at, "must have at least one node selector term"));
        }
        for (index, term) in items(&required_terms["nodeSelectorTerms"]) {
            node_term(term, &format!("{at}[{index}]"), errors);
        }
    }
    for (index, preferred) in items(&node["preferredDuringSchedulingIgnoredDuringExecution"]) {
        let at = format!("{at}.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[{index}]");
        weight(preferred, &at, errors);
        node_term(&preferred["preference"], &format!("{at}.preference"), errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let required_at = format!("{at}.{kind}.requiredDuringSchedulingIgnoredDuringExecution");
        for (index, term) in items(&affinity[kind]["requiredDuringSchedulingIgnoredDuringExecution"]) {
            pod_term(term, &format!("{required_at}[{index}]"), errors);
        }
        let preferred_at = format!("{at}.{kind}.preferredDuringSchedulingIgnoredDuringExecution");
        for (index, preferred) in items(&affinity[kind]["preferredDuringSchedulingIgnoredDuringExecution"]) {
            let at = format!("{preferred_at}[{index}]");
            weight(preferred, &at, errors);
            pod_term(&preferred["podAffinityTerm"], &format!("{at}.podAffinityTerm"), errors);
        }
    }
}

fn weight(preferred: &Value, at: &str, errors: &mut Errors) {
    if let Some(weight) = preferred["weight"].as_i64().filter(|weight| !(1..=100).contains(weight)) {
        errors.push(invalid(format!("{at}.weight"), &weight.into(), "must be in the range 1-100"));
    }
}

fn node_term(term: &Value, at: &str, errors: &mut Errors) {
    for (index, expression) in items(&term["matchExpressions"]) {
        let at = format!("{at}.matchExpressions[{index}]");
        let values = expression["values"].as_array().map_or(0, Vec::len);
        match text_of(&expression["operator"]) {
            "In" | "NotIn" if values == 0 => {
                errors.push(required(format!("{at}.values"), "must be specified when `operator` is 'In' or 'NotIn'"));
            }
            "Exists" | "DoesNotExist" if values > 0 => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(forbidden(format!("{at}.values"), why));
            }
            "Gt" | "Lt" if values != 1 => {
                errors.push(required(
                    format!("{at}.values"),
                    "must be specified single value when `operator` is 'Lt' or 'Gt'",
                ));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            _ => {
                errors.push(invalid(
                    format!("{at}.operator"),
                    &expression["operator"],
                    "not a valid selector operator",
                ));
            }
        }
        text::label_key(text_of(&expression["key"]), &format!("{at}.key"), errors);
    }
    for (index, expression) in items(&term["matchFields"]) {
        node_field(expression, &format!("{at}.matchFields[{index}]"), errors);
    }
}

/// A node is chosen by its name alone (`ValidateNodeFieldSelectorRequirement`).
fn node_field(expression: &Value, at: &str, errors: &mut Errors) {
    match text_of(&expression["operator"]) {
        "In" | "NotIn" => {
            if expression["values"].as_array().map_or(0, Vec::len) != 1 {
                let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.push(required(format!("{at}.values"), why));
            }
        }
        _ => errors.push(invalid(format!("{at}.operator"), &expression["operator"], "not a valid selector operator")),
    }
    if expression["key"] == "metadata.name" {
        for (index, name) in items(&expression["values"]) {
            text::dns_subdomain(text_of(name), &format!("{at}.values[{index}]"), errors);
        }
    } else {
        errors.push(invalid(format!("{at}.key"), &expression["key"], "not a valid field selector key"));
    }
}

fn pod_term(term: &Value, at: &str, errors: &mut Errors) {
    label_selector(&term["labelSelector"], &format!("{at}.labelSelector"), errors);
    for (_, namespace) in items(&term["namespaces"]) {
        text::dns_label(text_of(namespace), &format!("{at}.namespace"), errors);
    }
    if text_of(&term["topologyKey"]).is_empty() {
        errors.push(required(format!("{at}.topologyKey"), "can not be empty"));
    }
    text::label_key(text_of(&term["topologyKey"]), &format!("{at}.topologyKey"), errors);
}

/// A label selector, as `ValidateLabelSelector` does.
pub(super) fn label_selector(selector: &Value, at: &str, errors: &mut Errors) {
    for (key, value) in fields(&selector["matchLabels"]) {
        text::label_key(key, &format!("{at}.matchLabels"), errors);
        text::label_value(text_of(value), &format!("{at}.matchLabels"), errors);
    }
    for (index, expression) in items(&selector["matchExpressions"]) {
        let at = format!("{at}.matchExpressions[{index}]");
        let values = expression["values"].as_array().map_or(0, Vec::len);
        match text_of(&expression["operator"]) {
            "In" | "NotIn" if values == 0 => {
                errors.push(required(format!("{at}.values"), "must be specified when `operator` is 'In' or 'NotIn'"));
            }
            "Exists" | "DoesNotExist" if values > 0 => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(forbidden(format!("{at}.values"), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => {
                errors.push(invalid(
                    format!("{at}.operator"),
                    &expression["operator"],
                    "not a valid selector operator",
                ));
            }
        }
        text::label_key(text_of(&expression["key"]), &format!("{at}.key"), errors);
        for (place, value) in items(&expression["values"]) {
            text::label_value(text_of(value), &format!("{at}.values[{place}]"), errors);
        }
    }
}

/// A pod template: its labels and its spec.
pub(super) fn template(template: &Value, at: &str, errors: &mut Errors) {
    for (key, value) in fields(&template["metadata"]["labels"]) {
        text::label_key(key, &format!("{at}.labels"), errors);
        text::label_value(text_of(value), &format!("{at}.labels"), errors);
    }
    for (key, _) in fields(&template["metadata"]["annotations"]) {
        text::label_key(&key.to_lowercase(), &format!("{at}.annotations"), errors);
    }
    spec(&template["spec"], &format!("{at}.spec"), errors);
}

/// Does the selector match the template's labels?
pub(super) fn selects(selector: &Value, template: &Value) -> Result<bool, ()> {
    let selector = LabelSelector::from_json(selector).map_err(drop)?;
    Ok(selector.is_nothing() || selector.is_everything() || selector.matches(&template["metadata"]["labels"]))
}
