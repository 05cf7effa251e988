//! Containers and init containers: names, images, ports, variables, mounts, resources, probes (`validateContainers`,
//! `validateInitContainers`, 1.36).

use serde_json::Value;
use sk_core::Quantity;

use super::{
    Errors, duplicate, fields, forbidden, invalid, items, not_negative, not_supported, one_of, required, text, text_of,
};
use crate::error::Invalid;

const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
/// Resources that a container may request without a domain prefix (`IsStandardContainerResourceName`).
const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// The largest user or group id (`IsValidUserID`).
const MAX_ID: i64 = i32::MAX as i64;

pub(super) fn containers(spec: &Value, at: &str, volumes: &[String], errors: &mut Errors) {
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

/// Two containers of a pod cannot use one `hostPort` (`checkHostPortConflicts`).
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

pub(super) fn init_containers(spec: &Value, at: &str, volumes: &[String], errors: &mut Errors) {
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

/// The fields of its pod that a variable may be set from (`validateObjectFieldSelector`).
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
    /// Field labels that the API server knows but does not allow in a variable.
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

/// A container with huge pages also requests CPU or memory.
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

pub(super) fn amount_of(name: &str, amount: &Value, at: &str, errors: &mut Errors) {
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

/// The user and group ids of a security context.
pub(super) fn ids(context: &Value, at: &str, errors: &mut Errors) {
    for name in ["runAsUser", "runAsGroup", "fsGroup"] {
        if let Some(id) = context[name].as_i64().filter(|id| !(0..=MAX_ID).contains(id)) {
            let why = format!("must be between 0 and {MAX_ID}, inclusive");
            errors.push(invalid(format!("{at}.{name}"), &id.into(), &why));
        }
    }
}

/// With `hostNetwork`, `hostPort` equals `containerPort`.
pub(super) fn ports_of_host(containers: &Value, at: &str, errors: &mut Errors) {
    for (index, container) in items(containers) {
        for (place, port) in items(&container["ports"]).filter(|(_, port)| !port["hostPort"].is_null()) {
            if port["hostPort"] != port["containerPort"] {
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.push(invalid(format!("{at}[{index}].ports[{place}].hostPort"), &port["hostPort"], why));
            }
        }
    }
}
