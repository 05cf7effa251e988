//! Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs (`pkg/apis/{apps,batch}/validation`, 1.36).

use serde_json::{Value, json};
use sk_core::LabelSelector;

use super::placement::label_selector;
use super::pod::{selects, template};
use super::{Errors, forbidden, internal, invalid, items, not_negative, not_supported, required, text, text_of};
use crate::kinds::{self, CronJobSpec, JobSpec};

pub(super) fn deployment(spec: &Value, old: Option<&Value>, errors: &mut Errors) {
    not_negative(spec, "replicas", "spec", errors);
    selector(spec, "empty selector is invalid for deployment", "invalid label selector", errors);
    replicated_template(spec, "ReplicaSet", errors);
    let strategy = &spec["strategy"];
    match text_of(&strategy["type"]) {
        "Recreate" if strategy["rollingUpdate"].is_object() => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(forbidden("spec.strategy.rollingUpdate", why));
        }
        "Recreate" => {}
        "RollingUpdate" => steps(&strategy["rollingUpdate"], "spec.strategy.rollingUpdate", errors),
        _ => errors.push(not_supported("spec.strategy", &in_go(strategy), &["Recreate", "RollingUpdate"])),
    }
    not_negative(spec, "minReadySeconds", "spec", errors);
    not_negative(spec, "revisionHistoryLimit", "spec", errors);
    not_negative(spec, "progressDeadlineSeconds", "spec", errors);
    let seconds = |name: &str| spec[name].as_i64();
    if let Some(deadline) = seconds("progressDeadlineSeconds")
        && deadline <= seconds("minReadySeconds").unwrap_or(0)
    {
        let field = "spec.progressDeadlineSeconds";
        errors.push(invalid(field, &deadline.into(), "must be greater than minReadySeconds"));
    }
    immutable_selector(spec, old, errors);
}

/// A strategy as Go's own names print it.
fn in_go(strategy: &Value) -> Value {
    json!({"Type": strategy["type"], "RollingUpdate": strategy["rollingUpdate"]})
}

fn steps(rolling: &Value, at: &str, errors: &mut Errors) {
    count_or_share(&rolling["maxUnavailable"], &format!("{at}.maxUnavailable"), errors);
    count_or_share(&rolling["maxSurge"], &format!("{at}.maxSurge"), errors);
    if number_of(&rolling["maxUnavailable"]) == 0 && number_of(&rolling["maxSurge"]) == 0 {
        let field = format!("{at}.maxUnavailable");
        errors.push(invalid(field, &rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0"));
    }
    at_most_all(&rolling["maxUnavailable"], &format!("{at}.maxUnavailable"), errors);
}

/// `ValidatePositiveIntOrPercent`
pub(super) fn count_or_share(value: &Value, field: &str, errors: &mut Errors) {
    match value {
        Value::String(share) => {
            let digits = share.strip_suffix('%').unwrap_or_default();
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or \
                           '93%', regex used for validation is '[0-9]+%')";
                errors.push(invalid(field, value, why));
            }
        }
        Value::Number(number) if number.as_i64().is_some_and(|number| number < 0) => {
            errors.push(invalid(field, value, "must be greater than or equal to 0"));
        }
        _ => {}
    }
}

/// `IsNotMoreThan100Percent`
pub(super) fn at_most_all(value: &Value, field: &str, errors: &mut Errors) {
    let share = text_of(value).strip_suffix('%').and_then(|digits| digits.parse::<i64>().ok());
    if share.is_some_and(|share| share > 100) {
        errors.push(invalid(field, value, "must not be greater than 100%"));
    }
}

fn number_of(value: &Value) -> i64 {
    let text = text_of(value);
    let digits = text.strip_suffix('%').unwrap_or(text);
    value.as_i64().or_else(|| digits.parse().ok()).unwrap_or(0)
}

pub(super) fn replica_set(spec: &Value, old: Option<&Value>, errors: &mut Errors) {
    not_negative(spec, "replicas", "spec", errors);
    not_negative(spec, "minReadySeconds", "spec", errors);
    selector(spec, "empty selector is invalid for deployment", "invalid label selector", errors);
    replicated_template(spec, "ReplicaSet", errors);
    immutable_selector(spec, old, errors);
}

/// Its selector is a plain map and may change.
pub(super) fn replication_controller(spec: &Value, errors: &mut Errors) {
    not_negative(spec, "minReadySeconds", "spec", errors);
    let selector = &spec["selector"];
    let is_empty = selector.as_object().is_none_or(serde_json::Map::is_empty);
    if is_empty {
        errors.push(required("spec.selector", ""));
    }
    not_negative(spec, "replicas", "spec", errors);
    // A typed body does not tell an empty template from none.
    let template = &spec["template"];
    if template["metadata"]["labels"].is_null() && items(&template["spec"]["containers"]).next().is_none() {
        errors.push(required("spec.template", ""));
        return;
    }
    let selected = is_empty || selects(&json!({"matchLabels": selector}), template).unwrap_or(true);
    replicated_pods(spec, selected, "ReplicationController", errors);
}

fn immutable_selector(spec: &Value, old: Option<&Value>, errors: &mut Errors) {
    if old.is_some_and(|old| old["selector"] != spec["selector"]) {
        errors.push(invalid("spec.selector", &spec["selector"], "field is immutable"));
    }
}

fn selector(spec: &Value, empty: &str, unreadable: &str, errors: &mut Errors) {
    let selector = &spec["selector"];
    if selector.is_null() {
        errors.push(required("spec.selector", ""));
        return;
    }
    label_selector(selector, "spec.selector", errors);
    let count = |name: &str| {
        let entries = selector[name].as_object().map(serde_json::Map::len);
        entries.or_else(|| selector[name].as_array().map(Vec::len))
    };
    if count("matchLabels").unwrap_or(0) + count("matchExpressions").unwrap_or(0) == 0 {
        errors.push(invalid("spec.selector", selector, empty));
    }
    if selects(selector, &spec["template"]).is_err() {
        errors.push(invalid("spec.selector", selector, unreadable));
    }
}

/// A template whose labels the selector selects, and whose pods start again for ever.
fn replicated_template(spec: &Value, kind: &str, errors: &mut Errors) {
    let selected = match &spec["selector"] {
        Value::Null => Ok(false),
        selector => selects(selector, &spec["template"]),
    };
    if let Ok(selected) = selected {
        replicated_pods(spec, selected, kind, errors);
    }
}

fn replicated_pods(spec: &Value, selected: bool, kind: &str, errors: &mut Errors) {
    if !selected {
        let labels = match &spec["template"]["metadata"]["labels"] {
            Value::Null => json!(null),
            labels => labels.clone(),
        };
        errors.push(invalid("spec.template.metadata.labels", &labels, "`selector` does not match template `labels`"));
    }
    template(&spec["template"], "spec.template", errors);
    always_restarted(spec, kind, errors);
}

fn always_restarted(spec: &Value, kind: &str, errors: &mut Errors) {
    let pod = &spec["template"]["spec"];
    if pod["restartPolicy"] != "Always" {
        errors.push(not_supported("spec.template.spec.restartPolicy", &pod["restartPolicy"], &["Always"]));
    }
    if pod["activeDeadlineSeconds"].is_i64() {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(forbidden("spec.template.spec.activeDeadlineSeconds", &why));
    }
}

pub(super) fn stateful_set(spec: &Value, old: Option<&Value>, errors: &mut Errors) {
    let policy = &spec["podManagementPolicy"];
    if !["OrderedReady", "Parallel"].contains(&text_of(policy)) {
        errors.push(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"));
    }
    let strategy = &spec["updateStrategy"];
    match text_of(&strategy["type"]) {
        "OnDelete" if strategy["rollingUpdate"].is_object() => {
            let why = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(invalid("spec.updateStrategy.rollingUpdate", &strategy["rollingUpdate"], why));
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            not_negative(&strategy["rollingUpdate"], "partition", "spec.updateStrategy.rollingUpdate", errors);
        }
        _ => errors.push(invalid("spec.updateStrategy", &in_go(strategy), "must be 'RollingUpdate' or 'OnDelete'")),
    }
    let retention = &spec["persistentVolumeClaimRetentionPolicy"];
    for name in ["whenDeleted", "whenScaled"] {
        let field = format!("spec.persistentVolumeClaimRetentionPolicy.{name}");
        if retention.is_object() && !["Retain", "Delete"].contains(&text_of(&retention[name])) {
            errors.push(not_supported(field, &retention[name], &["Retain", "Delete"]));
        }
    }
    not_negative(spec, "replicas", "spec", errors);
    not_negative(spec, "minReadySeconds", "spec", errors);
    if let Some(start) = spec["ordinals"]["start"].as_i64().filter(|start| *start < 0) {
        errors.push(invalid("spec.ordinals.start", &start.into(), "must be greater than or equal to 0"));
    }
    if old.is_none() && !text_of(&spec["serviceName"]).is_empty() {
        text::dns_label(text_of(&spec["serviceName"]), "spec.serviceName", errors);
    }
    selector(spec, "empty selector is invalid for statefulset", "", errors);
    let mut checked = spec.clone();
    // The controller writes host names and volumes of claims itself.
    for (_, claim) in items(&spec["volumeClaimTemplates"]) {
        let volume = json!({"name": claim["metadata"]["name"], "persistentVolumeClaim": {"claimName": "x"}});
        let volumes = &mut checked["template"]["spec"]["volumes"];
        match volumes.as_array_mut() {
            Some(volumes) => volumes.push(volume),
            None => *volumes = json!([volume]),
        }
    }
    replicated_template(&checked, "StatefulSet", errors);
    if let Some(old) = old {
        only_some_may_change(spec, old, errors);
    }
}

/// `ValidateStatefulSetUpdate`
fn only_some_may_change(spec: &Value, old: &Value, errors: &mut Errors) {
    const MAY: [&str; 7] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let fixed = |spec: &Value| {
        let mut fixed = spec.as_object().cloned().unwrap_or_default();
        fixed.retain(|name, value| !MAY.contains(&name.as_str()) && !value.is_null());
        fixed
    };
    if fixed(spec) != fixed(old) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                   'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                   'minReadySeconds' are forbidden";
        errors.push(forbidden("spec", why));
    }
}

pub(super) fn daemon_set(spec: &Value, old: Option<&Value>, errors: &mut Errors) {
    label_selector(&spec["selector"], "spec.selector", errors);
    let selected = match &spec["selector"] {
        // No selector selects nothing, so it does not select the template either.
        Value::Null => false,
        selector => selects(selector, &spec["template"]).unwrap_or(true),
    };
    if !selected {
        let labels = &spec["template"]["metadata"]["labels"];
        errors.push(invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"));
    }
    let is_empty = |name: &str| {
        spec["selector"][name].as_array().is_none_or(Vec::is_empty)
            && spec["selector"][name].as_object().is_none_or(serde_json::Map::is_empty)
    };
    if spec["selector"].is_object() && is_empty("matchLabels") && is_empty("matchExpressions") {
        errors.push(invalid("spec.selector", &spec["selector"], "empty selector is invalid for daemonset"));
    }
    template(&spec["template"], "spec.template", errors);
    always_restarted(spec, "DaemonSet", errors);
    not_negative(spec, "minReadySeconds", "spec", errors);
    let strategy = &spec["updateStrategy"];
    match text_of(&strategy["type"]) {
        "OnDelete" => {}
        "RollingUpdate" => daemon_steps(&strategy["rollingUpdate"], errors),
        _ => errors.push(not_supported("spec.updateStrategy", &in_go(strategy), &["RollingUpdate", "OnDelete"])),
    }
    not_negative(spec, "revisionHistoryLimit", "spec", errors);
    immutable_selector(spec, old, errors);
}

fn daemon_steps(rolling: &Value, errors: &mut Errors) {
    let at = "spec.updateStrategy.rollingUpdate";
    for name in ["maxUnavailable", "maxSurge"] {
        count_or_share(&rolling[name], &format!("{at}.{name}"), errors);
    }
    for name in ["maxUnavailable", "maxSurge"] {
        at_most_all(&rolling[name], &format!("{at}.{name}"), errors);
    }
    match (number_of(&rolling["maxUnavailable"]) != 0, number_of(&rolling["maxSurge"]) != 0) {
        (true, true) => {
            let why = "may not be set when maxUnavailable is non-zero";
            errors.push(invalid(format!("{at}.maxSurge"), &rolling["maxSurge"], why));
        }
        (false, false) => errors.push(required(format!("{at}.maxUnavailable"), "cannot be 0 when maxSurge is 0")),
        (true, false) | (false, true) => {}
    }
}

pub(super) fn job(job: &Value, before: Option<&Value>, errors: &mut Errors) {
    generated_selector(job, errors);
    let spec = &job["spec"];
    job_spec(spec, before.is_some(), errors);
    if let Some(before) = before {
        job_spec(spec, true, errors);
        fixed_fields_of_job(spec, &before["spec"], errors);
    }
}

/// `ValidateJobSpec`. A Job that is new and has no selector gets one.
fn job_spec(spec: &Value, has_selector: bool, errors: &mut Errors) {
    template(&spec["template"], "spec.template", errors);
    super::one_of(spec, "completionMode", "spec", &["NonIndexed", "Indexed"], errors);
    super::one_of(spec, "podReplacementPolicy", "spec", &["Failed", "TerminatingOrFailed"], errors);
    if let Ok(typed) = serde_json::from_value::<JobSpec>(spec.clone()) {
        errors.extend(kinds::invalid_job(&typed));
    }
    super::job::policies(spec, "spec", errors);
    let selector = &spec["selector"];
    if selector.is_null() && !has_selector && spec["manualSelector"] != true {
        return;
    }
    match selector.is_null() {
        true => errors.push(required("spec.selector", "")),
        false => label_selector(selector, "spec.selector", errors),
    }
    let labels = &spec["template"]["metadata"]["labels"];
    if LabelSelector::from_json(selector).is_ok_and(|selector| !selector.matches(labels)) {
        errors.push(invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"));
    }
}

/// Without `manualSelector` the selector is the generated one, and so are the labels that it selects
/// (`validateGeneratedSelector`).
fn generated_selector(job: &Value, errors: &mut Errors) {
    const UID_LABEL: &str = "batch.kubernetes.io/controller-uid";
    const NAME_LABEL: &str = "batch.kubernetes.io/job-name";
    let spec = &job["spec"];
    if spec["manualSelector"] == true || spec["selector"].is_null() {
        return;
    }
    let (uid, name) = (text_of(&job["metadata"]["uid"]), text_of(&job["metadata"]["name"]));
    let labels = &spec["template"]["metadata"]["labels"];
    for (label, expected) in [(UID_LABEL, uid), ("controller-uid", uid), (NAME_LABEL, name), ("job-name", name)] {
        let (field, why) = (format!("spec.template.metadata.labels[{label}]"), format!("must be '{expected}'"));
        match labels.get(label).and_then(Value::as_str) {
            None => errors.push(required(field, &why)),
            Some(label) if label != expected => errors.push(invalid(field, labels, &why)),
            Some(_) => {}
        }
    }
    if spec["selector"] != json!({"matchLabels": {UID_LABEL: uid}}) {
        errors.push(invalid("spec.selector", &sorted(&spec["selector"]), "`selector` not auto-generated"));
    }
}

/// What of a Job may not change (`ValidateJobSpecUpdate`).
fn fixed_fields_of_job(spec: &Value, old: &Value, errors: &mut Errors) {
    let is_elastic = spec["completionMode"] == "Indexed"
        && spec["completions"] == spec["parallelism"]
        && !spec["completions"].is_null();
    let fixed = [
        "completions",
        "selector",
        "template",
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ];
    for name in fixed.into_iter().filter(|name| spec[*name] != old[*name]) {
        let shown = match name {
            "completions" if is_elastic => continue,
            "template" if old["suspend"] == true => continue,
            "template" => internal::template(&spec["template"]),
            _ => spec[name].clone(),
        };
        errors.push(invalid(format!("spec.{name}"), &shown, "field is immutable"));
    }
}

/// Maps as Go writes them: by name.
fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    value.sort_all_objects();
    value
}

pub(super) fn cron_job(cron: &Value, before: Option<&Value>, errors: &mut Errors) {
    /// The controller appends eleven characters, and the names of Jobs have 63.
    const MAX_NAME: usize = 52;
    let spec = &cron["spec"];
    if let Ok(typed) = serde_json::from_value::<CronJobSpec>(spec.clone()) {
        errors.extend(kinds::invalid_cron_job(&typed));
    } else {
        super::one_of(spec, "concurrencyPolicy", "spec", &["Allow", "Forbid", "Replace"], errors);
    }
    template(&spec["jobTemplate"]["spec"]["template"], "spec.jobTemplate.spec.template", errors);
    if before.is_none() && text_of(&cron["metadata"]["name"]).len() > MAX_NAME {
        let why = format!("must be no more than {MAX_NAME} characters");
        errors.push(invalid("metadata.name", &cron["metadata"]["name"], &why));
    }
}
