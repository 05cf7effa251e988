//! Validation of Jobs, with the API server's messages (`pkg/apis/batch/validation`, 1.36).
//!
//! These are the rules that bound what the Job controller has to do. They report the first error only; a real server
//! lists all.

use sk_core::selector::LabelSelector;

use super::{Indexes, JobSpec, PodFailureAction, PodFailurePolicy, SuccessPolicy};
use crate::error::Invalid;

/// `maxParallelismForIndexedJob`
const MAX_INDEXED_PARALLELISM: i32 = 100_000;
/// `completionsSoftLimit`: beyond so many completions with a limit per index …
const COMPLETIONS_SOFT_LIMIT: i32 = 100_000;
/// … so many pods at a time,
const MAX_PARALLELISM_ABOVE: i32 = 10_000;
/// … and so many failed indexes.
const MAX_FAILED_INDEXES_ABOVE: i32 = 10_000;
/// `maxFailedIndexesForIndexedJob`
const MAX_FAILED_INDEXES: i32 = 100_000;
/// `maxPodFailurePolicyRules` and `maxJobSuccessPolicyRules`
const MAX_RULES: usize = 20;

type Checked = Result<(), Invalid>;

/// What is wrong with the spec of a Job.
pub(crate) fn invalid_job(spec: &JobSpec) -> Option<Invalid> {
    validate(spec, "spec").err()
}

/// The spec of a Job, or of a CronJob's template; `at` is the path of the field.
pub(super) fn validate(spec: &JobSpec, at: &str) -> Checked {
    let numbers = [
        ("parallelism", spec.parallelism.map(i64::from)),
        ("completions", spec.completions.map(i64::from)),
        ("activeDeadlineSeconds", spec.active_deadline_seconds),
        ("backoffLimit", spec.backoff_limit.map(i64::from)),
        ("ttlSecondsAfterFinished", spec.ttl_seconds_after_finished.map(i64::from)),
        ("backoffLimitPerIndex", spec.backoff_limit_per_index.map(i64::from)),
        ("maxFailedIndexes", spec.max_failed_indexes.map(i64::from)),
    ];
    for (field, number) in numbers {
        if let Some(number) = number.filter(|number| *number < 0) {
            return refuse(at, field, format!("Invalid value: {number}: must be greater than or equal to 0"));
        }
    }
    if spec.max_failed_indexes.is_some() && spec.backoff_limit_per_index.is_none() {
        return refuse(at, "backoffLimitPerIndex", "Required value: when maxFailedIndexes is specified");
    }
    if spec.is_indexed() {
        validate_indexed(spec, at)?;
    } else {
        validate_not_indexed(spec, at)?;
    }
    if let Some(policy) = &spec.pod_failure_policy {
        validate_failure_policy(policy, spec.backoff_limit_per_index.is_some(), at)?;
    }
    spec.template.spec.validate(&format!("{at}.template.spec"))?;
    validate_restart_policy(spec, at)
}

fn validate_indexed(spec: &JobSpec, at: &str) -> Checked {
    let Some(completions) = spec.completions else {
        return refuse(at, "completions", "Required value: when completion mode is Indexed");
    };
    let parallelism = spec.parallelism();
    if parallelism > MAX_INDEXED_PARALLELISM {
        let most = MAX_INDEXED_PARALLELISM;
        let why = format!(
            "Invalid value: {parallelism}: must be less than or equal to {most} when completion mode is Indexed"
        );
        return refuse(at, "parallelism", why);
    }
    let failed = spec.max_failed_indexes;
    if let Some(failed) = failed.filter(|failed| *failed > completions) {
        return refuse(
            at,
            "maxFailedIndexes",
            format!("Invalid value: {failed}: must be less than or equal to completions"),
        );
    }
    if let Some(failed) = failed.filter(|failed| *failed > MAX_FAILED_INDEXES) {
        let why = format!("Invalid value: {failed}: must be less than or equal to {MAX_FAILED_INDEXES}");
        return refuse(at, "maxFailedIndexes", why);
    }
    if completions > COMPLETIONS_SOFT_LIMIT && spec.backoff_limit_per_index.is_some() {
        validate_many_completions(spec, at)?;
    }
    spec.success_policy.as_ref().map_or(Ok(()), |policy| validate_success_policy(policy, completions, at))
}

fn validate_many_completions(spec: &JobSpec, at: &str) -> Checked {
    let Some(failed) = spec.max_failed_indexes else {
        let why = format!("Required value: must be specified when completions is above {COMPLETIONS_SOFT_LIMIT}");
        return refuse(at, "maxFailedIndexes", why);
    };
    let bounds = [
        ("parallelism", spec.parallelism(), MAX_PARALLELISM_ABOVE),
        ("maxFailedIndexes", failed, MAX_FAILED_INDEXES_ABOVE),
    ];
    match bounds.into_iter().find(|(_, value, most)| value > most) {
        None => Ok(()),
        Some((field, value, most)) => refuse(
            at,
            field,
            format!(
                "Invalid value: {value}: must be less than or equal to {most} when completions are above \
                 {COMPLETIONS_SOFT_LIMIT} and used with backoff limit per index"
            ),
        ),
    }
}

fn validate_not_indexed(spec: &JobSpec, at: &str) -> Checked {
    if let Some(limit) = spec.backoff_limit_per_index {
        return refuse(at, "backoffLimitPerIndex", format!("Invalid value: {limit}: requires indexed completion mode"));
    }
    if let Some(policy) = &spec.success_policy {
        let rules = policy.rules.iter().map(|rule| {
            serde_json::json!({"SucceededIndexes": rule.succeeded_indexes, "SucceededCount": rule.succeeded_count})
        });
        // A server prints its own type, by Go's names.
        let shown = serde_json::json!({"Rules": rules.collect::<Vec<_>>()});
        return refuse(at, "successPolicy", format!("Invalid value: {shown}: requires indexed completion mode"));
    }
    Ok(())
}

fn validate_failure_policy(policy: &PodFailurePolicy, per_index: bool, at: &str) -> Checked {
    if policy.rules.len() > MAX_RULES {
        return refuse(
            at,
            "podFailurePolicy.rules",
            format!("Too many: {}: must have at most {MAX_RULES} items", policy.rules.len()),
        );
    }
    for (index, rule) in policy.rules.iter().enumerate() {
        let field = format!("podFailurePolicy.rules[{index}]");
        if rule.action == PodFailureAction::FailIndex && !per_index {
            let why = "Invalid value: \"FailIndex\": requires the backoffLimitPerIndex to be set";
            return refuse(at, &format!("{field}.action"), why);
        }
        let has_conditions = rule.on_pod_conditions.as_ref().is_some_and(|conditions| !conditions.is_empty());
        match (rule.on_exit_codes.is_some(), has_conditions) {
            (true, true) => {
                let why = "Invalid value: specifying both OnExitCodes and OnPodConditions is not supported";
                return refuse(at, &field, why);
            }
            (false, false) => {
                let why = "Invalid value: specifying one of OnExitCodes and OnPodConditions is required";
                return refuse(at, &field, why);
            }
            (true, false) | (false, true) => {}
        }
    }
    Ok(())
}

fn validate_success_policy(policy: &SuccessPolicy, completions: i32, at: &str) -> Checked {
    if policy.rules.is_empty() {
        return refuse(
            at,
            "successPolicy.rules",
            "Required value: at least one rules must be specified when the successPolicy is specified",
        );
    }
    if policy.rules.len() > MAX_RULES {
        return refuse(
            at,
            "successPolicy.rules",
            format!("Too many: {}: must have at most {MAX_RULES} items", policy.rules.len()),
        );
    }
    for (index, rule) in policy.rules.iter().enumerate() {
        let field = format!("successPolicy.rules[{index}]");
        if rule.succeeded_count.is_none() && rule.succeeded_indexes.is_none() {
            return refuse(
                at,
                &field,
                "Required value: at least one of succeededCount or succeededIndexes must be specified",
            );
        }
        let Some(count) = rule.succeeded_count else { continue };
        let of_rule =
            rule.succeeded_indexes.as_ref().map(|text| Indexes::parse(text, completions.unsigned_abs()).total());
        let why = if count < 0 {
            "must be greater than or equal to 0".to_owned()
        } else if count > completions {
            format!("must be less than or equal to {completions} (the number of specified completions)")
        } else if let Some(total) = of_rule.filter(|total| u64::from(count.unsigned_abs()) > *total) {
            format!(
                "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            )
        } else {
            continue;
        };
        return refuse(at, &format!("{field}.succeededCount"), format!("Invalid value: {count}: {why}"));
    }
    Ok(())
}

/// A container of a Job that always starts again would never end.
fn validate_restart_policy(spec: &JobSpec, at: &str) -> Checked {
    let field = "template.spec.restartPolicy";
    match spec.template.spec.restart_policy.as_str() {
        "OnFailure" if spec.pod_failure_policy.is_some() => refuse(
            at,
            field,
            "Invalid value: \"OnFailure\": only \"Never\" is supported when podFailurePolicy is specified",
        ),
        "OnFailure" | "Never" => Ok(()),
        "" | "Always" => refuse(at, field, "Required value: valid values: \"OnFailure\", \"Never\""),
        other => refuse(at, field, format!("Unsupported value: {other:?}: supported values: \"OnFailure\", \"Never\"")),
    }
}

/// Whether generated or written by hand, the selector must match the pods that the Job makes. Before it is generated
/// there is none, which is fine.
pub(super) fn validate_selector(spec: &JobSpec) -> Checked {
    if spec.selector.is_null() {
        return if spec.manual_selector == Some(true) { refuse("spec", "selector", "Required value") } else { Ok(()) };
    }
    match LabelSelector::from_json(&spec.selector) {
        Err(error) => refuse("spec", "selector", format!("Invalid value: {error}")),
        Ok(selector) if !selector.matches(&*spec.template.metadata.labels) => {
            refuse("spec", "template.metadata.labels", "Invalid value: `selector` does not match template `labels`")
        }
        Ok(_) => Ok(()),
    }
}

/// What may not change once a Job is there.
pub(super) fn validate_update(spec: &JobSpec, stored: &JobSpec) -> Checked {
    let elastic = spec.is_indexed() && spec.completions == spec.parallelism && spec.completions.is_some();
    let same = [
        ("completions", spec.completions == stored.completions || elastic),
        ("selector", spec.selector == stored.selector),
        ("template", spec.template == stored.template || stored.is_suspended()),
        ("completionMode", spec.completion_mode == stored.completion_mode),
        ("podFailurePolicy", spec.pod_failure_policy == stored.pod_failure_policy),
        ("backoffLimitPerIndex", spec.backoff_limit_per_index == stored.backoff_limit_per_index),
        ("managedBy", spec.managed_by == stored.managed_by),
        ("successPolicy", spec.success_policy == stored.success_policy),
    ];
    match same.into_iter().find(|(_, same)| !same) {
        Some((field, _)) => refuse("spec", field, "Invalid value: field is immutable"),
        None => Ok(()),
    }
}

fn refuse(at: &str, field: &str, why: impl Into<String>) -> Checked {
    Err(Invalid::new(format!("{at}.{field}"), why))
}
