//! Rules about pod templates: containers, resources, restart policies.

use std::collections::BTreeSet;

use serde_json::Value;
use sk_core::{Pointer, Quantity};
use sk_store::trace::Object;

use super::Note;
use super::codes::Rule;
use super::findings::shown;

/// Checks the template of `object` at `at`. A pod is its own template.
pub(super) fn check(object: &Object, at: &Pointer, note: &mut Note<'_>) {
    let Some(template) = at.get(object.value()) else { return };
    let spec = at.child("spec");
    check_containers(&template["spec"], &spec, note);
    for list in ["containers", "initContainers"] {
        for (index, container) in template["spec"][list].as_array().into_iter().flatten().enumerate() {
            check_sizes(&container["resources"], &spec.child(list).child(&index.to_string()).child("resources"), note);
        }
    }
    check_restarts(object, &template["spec"]["restartPolicy"], &spec, note);
}

fn check_containers(pod: &Value, spec: &Pointer, note: &mut Note<'_>) {
    let mut wrong = |detail| note.at(spec.child("containers").as_str(), Rule::NoContainers, detail);
    let Some(containers) = pod["containers"].as_array().filter(|containers| !containers.is_empty()) else {
        return wrong("there are no containers".to_owned());
    };
    let mut names = BTreeSet::new();
    for container in containers {
        match container["name"].as_str() {
            None => wrong("a container has no name".to_owned()),
            Some(name) if !names.insert(name) => wrong(format!("two containers are called `{}`", shown(&name))),
            Some(_) => {}
        }
    }
}

fn check_sizes(resources: &Value, at: &Pointer, note: &mut Note<'_>) {
    for list in ["requests", "limits"] {
        for (resource, amount) in resources[list].as_object().into_iter().flatten() {
            match quantity(amount) {
                Ok(amount) if !amount.is_negative() => {}
                problem => {
                    let detail = match problem {
                        Ok(amount) => format!("`{amount}` is negative"),
                        Err(error) => error,
                    };
                    note.at(at.child(list).child(resource).as_str(), Rule::QuantityInvalid, detail);
                }
            }
        }
    }
    for (resource, limit) in resources["limits"].as_object().into_iter().flatten() {
        let request = &resources["requests"][resource];
        if let (Ok(request), Ok(limit)) = (quantity(request), quantity(limit))
            && request > limit
        {
            let detail = format!("{request} are requested and {limit} allowed");
            note.at(at.child("requests").child(resource).as_str(), Rule::RequestAboveLimit, detail);
        }
    }
}

/// An amount as JSON has it: a text, or a plain number.
fn quantity(amount: &Value) -> Result<Quantity, String> {
    match amount {
        Value::String(text) => text.parse().map_err(|error| format!("{error}")),
        Value::Number(number) => number.to_string().parse().map_err(|error| format!("{error}")),
        other => Err(format!("`{}` is not a quantity", shown(other))),
    }
}

fn check_restarts(object: &Object, policy: &Value, spec: &Pointer, note: &mut Note<'_>) {
    let gvk = &object.reference().gvk;
    // Left out, it is `Always`.
    let policy = policy.as_str().unwrap_or("Always");
    let allowed: &[&str] = match gvk.group.as_str() {
        "batch" => &["Never", "OnFailure"],
        "apps" => &["Always"],
        _ => return,
    };
    if !allowed.contains(&policy) {
        let detail = format!("a {}'s pods cannot have restart policy `{}`", gvk.kind, shown(&policy));
        note.at(spec.child("restartPolicy").as_str(), Rule::RestartPolicyInvalid, detail);
    }
}
