//! Services (`ValidateService`, `pkg/apis/core/validation`, 1.36).

use serde_json::{Value, json};

use super::containers::port_name;
use super::{Errors, duplicate, fields, invalid, items, not_supported, one_of, required, text, text_of};

const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
const ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
/// `MaxClientIPServiceAffinitySeconds`
const MAX_AFFINITY_SECS: i64 = 86_400;

pub(super) fn service(spec: &Value, old: Option<&Value>, errors: &mut Errors) {
    let kind = text_of(&spec["type"]);
    let is_headless = spec["clusterIP"] == "None";
    ports(spec, errors);
    for (key, value) in fields(&spec["selector"]) {
        text::label_key(key, "spec.selector", errors);
        text::label_value(text_of(value), "spec.selector", errors);
    }
    one_of(spec, "sessionAffinity", "spec", &["ClientIP", "None"], errors);
    affinity(spec, errors);
    one_of(spec, "type", "spec", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], errors);
    families(spec, errors);
    if is_headless && ["NodePort", "LoadBalancer"].contains(&kind) {
        let why = format!("may not be set to 'None' for {kind} services");
        errors.push(invalid("spec.clusterIPs[0]", &json!("None"), &why));
    }
    addresses(spec, errors);
    if kind == "ExternalName" {
        match text_of(&spec["externalName"]).trim_end_matches('.') {
            "" => errors.push(required("spec.externalName", "")),
            name => text::dns_subdomain(name, "spec.externalName", errors),
        }
    }
    policies(spec, errors);
    let ip = |spec: &Value| text_of(&spec["clusterIP"]).to_owned();
    if old.is_some_and(|old| !ip(old).is_empty() && !ip(spec).is_empty() && ip(old) != ip(spec)) {
        errors.push(invalid("spec.clusterIPs[0]", &json!([spec["clusterIP"]]), "may not change once set"));
    }
}

fn ports(spec: &Value, errors: &mut Errors) {
    let count = spec["ports"].as_array().map_or(0, Vec::len);
    if count == 0 && spec["type"] != "ExternalName" && spec["clusterIP"] != "None" {
        errors.push(required("spec.ports", ""));
    }
    let mut names: Vec<&str> = Vec::new();
    for (index, port) in items(&spec["ports"]) {
        let (at, name) = (format!("spec.ports[{index}]"), text_of(&port["name"]));
        if count > 1 && name.is_empty() {
            errors.push(required(format!("{at}.name"), ""));
        } else if !name.is_empty() {
            text::dns_label(name, &format!("{at}.name"), errors);
            if names.contains(&name) {
                errors.push(duplicate(format!("{at}.name"), &port["name"]));
            }
            names.push(name);
        }
        let number = port["port"].as_i64().unwrap_or(0);
        if !(1..=65535).contains(&number) {
            errors.push(invalid(format!("{at}.port"), &number.into(), PORT_RANGE));
        }
        one_of(port, "protocol", &at, &["SCTP", "TCP", "UDP"], errors);
        match &port["targetPort"] {
            Value::Number(target) if !target.as_i64().is_some_and(|target| (1..=65535).contains(&target)) => {
                errors.push(invalid(format!("{at}.targetPort"), &port["targetPort"], PORT_RANGE));
            }
            Value::String(target) => port_name(target, &format!("{at}.targetPort"), errors),
            _ => {}
        }
    }
    same_ports(&spec["ports"], errors);
}

/// Each pair of port and protocol is unique.
fn same_ports(ports: &Value, errors: &mut Errors) {
    let mut seen: Vec<(&str, i64)> = Vec::new();
    for (index, port) in items(ports) {
        let key = (text_of(&port["protocol"]), port["port"].as_i64().unwrap_or(0));
        if seen.contains(&key) {
            let shown = json!({"Name": "", "Protocol": key.0, "AppProtocol": null, "Port": key.1, "TargetPort": 0, "NodePort": 0});
            errors.push(duplicate(format!("spec.ports[{index}]"), &shown));
        }
        seen.push(key);
    }
}

fn affinity(spec: &Value, errors: &mut Errors) {
    let seconds = &spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
    if spec["sessionAffinity"] == "ClientIP"
        && let Some(number) = seconds.as_i64().filter(|number| !(1..=MAX_AFFINITY_SECS).contains(number))
    {
        let why = format!("must be greater than 0 and less than {MAX_AFFINITY_SECS}");
        errors.push(invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", &number.into(), &why));
    }
}

fn families(spec: &Value, errors: &mut Errors) {
    for (index, family) in items(&spec["ipFamilies"]) {
        if !["IPv4", "IPv6"].contains(&text_of(family)) {
            errors.push(not_supported(format!("spec.ipFamilies[{index}]"), family, &["IPv4", "IPv6"]));
        }
    }
    let (policy, words) = (&spec["ipFamilyPolicy"], ["PreferDualStack", "RequireDualStack", "SingleStack"]);
    if !policy.is_null() && !words.contains(&text_of(policy)) {
        errors.push(not_supported("spec.ipFamilyPolicy", policy, &words));
    }
}

fn addresses(spec: &Value, errors: &mut Errors) {
    for (index, address) in items(&spec["clusterIPs"]).filter(|(_, address)| **address != "None") {
        if text_of(address).parse::<std::net::IpAddr>().is_err() {
            errors.push(invalid(format!("spec.clusterIPs[{index}]"), address, ADDRESS));
        }
    }
    for (index, address) in items(&spec["externalIPs"]) {
        if text_of(address).parse::<std::net::IpAddr>().is_err() {
            errors.push(invalid(format!("spec.externalIPs[{index}]"), address, ADDRESS));
        }
    }
}

fn policies(spec: &Value, errors: &mut Errors) {
    for name in ["externalTrafficPolicy", "internalTrafficPolicy"] {
        let policy = &spec[name];
        if !text_of(policy).is_empty() && !["Cluster", "Local"].contains(&text_of(policy)) {
            errors.push(not_supported(format!("spec.{name}"), policy, &["Cluster", "Local"]));
        }
    }
    let is_checked = spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local";
    let port = &spec["healthCheckNodePort"];
    if !is_checked && port.as_i64().is_some_and(|port| port != 0) {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(invalid("spec.healthCheckNodePort", port, why));
    }
}
