//! Allocates a Service's cluster IP and node ports.
//!
//! An address is derived from the Service's name, so that every run allocates the same ones. Two Services could get
//! the same address; no packet is ever sent to either.

use serde_json::{Value, json};
use sk_core::lookup::hash_of;

/// Where the ports of nodes begin, and how many there are.
const NODE_PORTS: (u64, u64) = (30_000, 2_768);

/// Gives a Service what it has not, or what it had before.
pub(crate) fn allot(service: &mut Value, before: Option<&Value>) {
    let kind = service["spec"]["type"].as_str().unwrap_or_default().to_owned();
    if kind == "ExternalName" {
        return;
    }
    let hash = hash_of(&(service["metadata"]["namespace"].as_str(), service["metadata"]["name"].as_str()));
    let [_, a, b, c, ..] = hash.to_be_bytes();
    let address = format!("10.{a}.{b}.{c}");
    let spec = &mut service["spec"];
    if let Some(before) = before.map(|before| &before["spec"]) {
        drop_dependent(spec, before);
        for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            keep(spec, name, &before[name]);
        }
    }
    keep(spec, "clusterIP", &json!(address));
    let is_headless = spec["clusterIP"] == "None";
    let is_dual = is_headless && spec["selector"].as_object().is_none_or(serde_json::Map::is_empty);
    let clusters = json!([spec["clusterIP"]]);
    keep(spec, "clusterIPs", &clusters);
    keep(spec, "ipFamilies", &if is_dual { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) });
    keep(spec, "ipFamilyPolicy", &json!(if is_dual { "RequireDualStack" } else { "SingleStack" }));
    if kind == "NodePort" || kind == "LoadBalancer" {
        let (first, count) = NODE_PORTS;
        for (index, port) in spec["ports"].as_array_mut().into_iter().flatten().enumerate() {
            keep(port, "nodePort", &json!(first + (hash.wrapping_add(index as u64)) % count));
        }
    }
}

fn keep(parent: &mut Value, name: &str, value: &Value) {
    let Some(fields) = parent.as_object_mut() else { return };
    let known = fields.entry(name).or_insert(Value::Null);
    if (known.is_null() || *known == "" || *known == 0) && !value.is_null() {
        *known = value.clone();
    }
    if known.is_null() {
        fields.remove(name);
    }
}

/// Drops fields that only the former type needs, unless they changed with the type (`dropTypeDependentFields`).
fn drop_dependent(spec: &mut Value, before: &Value) {
    let needs_ports = |spec: &Value| ["NodePort", "LoadBalancer"].contains(&spec["type"].as_str().unwrap_or_default());
    let mut gone: Vec<&str> = Vec::new();
    if needs_ports(before) && !needs_ports(spec) {
        gone.extend(["externalTrafficPolicy", "healthCheckNodePort"]);
        for (port, known) in
            spec["ports"].as_array_mut().into_iter().flatten().zip(before["ports"].as_array().into_iter().flatten())
        {
            if port["nodePort"] == known["nodePort"]
                && let Some(port) = port.as_object_mut()
            {
                port.remove("nodePort");
            }
        }
    }
    if before["type"] == "LoadBalancer" && spec["type"] != "LoadBalancer" {
        gone.extend(["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    for name in gone.into_iter().filter(|name| spec[*name] == before[*name]).collect::<Vec<_>>() {
        spec.as_object_mut().map(|fields| fields.remove(name));
    }
}
