//! Evaluates a Job's pod failure policy and success policy (`pod_failure_policy.go`, `success_policy.go`, 1.36).

use sk_apiserver::Object;
use sk_apiserver::kinds::{
    ExitCodeOperator, Indexes, JobSpec, OnExitCodes, OnPodCondition, PodFailureAction, PodFailureRule, SuccessPolicy,
};

/// What a failed pod means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// Does it count against the limits?
    pub(super) counts: bool,
    /// Does its index fail for good?
    pub(super) fails_index: bool,
    /// Why the whole Job fails, if it does.
    pub(super) fails_job: Option<String>,
}

/// What a failed pod means: the first rule that matches decides; without one the failure counts.
pub(super) fn judge(pod: &Object, spec: &JobSpec) -> Failure {
    let counted = Failure { counts: true, fails_index: false, fails_job: None };
    let rules = spec.pod_failure_policy.iter().flat_map(|policy| &policy.rules).enumerate();
    let mut matches = rules.filter_map(|(place, rule)| Some((place, rule, matched(pod, rule)?)));
    let Some((place, rule, cause)) = matches.next() else { return counted };
    match rule.action {
        PodFailureAction::Ignore => Failure { counts: false, ..counted },
        PodFailureAction::FailIndex => Failure { fails_index: true, ..counted },
        PodFailureAction::Count => counted,
        PodFailureAction::FailJob => {
            let message = format!("{cause} matching FailJob rule at index {place}");
            Failure { fails_job: Some(message), ..counted }
        }
    }
}

/// What of the pod a rule matches, in the beginning of the sentence that the Job will say.
fn matched(pod: &Object, rule: &PodFailureRule) -> Option<String> {
    match (&rule.on_exit_codes, &rule.on_pod_conditions) {
        (Some(codes), _) => exit_code(pod, codes),
        (None, Some(conditions)) => condition(pod, conditions),
        (None, None) => None,
    }
}

fn exit_code(pod: &Object, wanted: &OnExitCodes) -> Option<String> {
    let is_meant = |name: &str| wanted.container_name.as_ref().is_none_or(|wanted| wanted == name);
    let fits = |code: i32| match wanted.operator {
        ExitCodeOperator::In => wanted.values.contains(&code),
        ExitCodeOperator::NotIn => !wanted.values.contains(&code),
    };
    let mut ended = pod.pod()?.exit_codes();
    let (name, code) = ended.find(|(name, code)| is_meant(name) && *code != 0 && fits(*code))?;
    Some(format!("Container {name} for pod {} failed with exit code {code}", pod.key))
}

fn condition(pod: &Object, wanted: &[OnPodCondition]) -> Option<String> {
    let is_wanted = |kind: &str, status| wanted.iter().any(|pattern| pattern.kind == kind && pattern.status == status);
    let conditions = &pod.pod()?.status.conditions;
    let found = conditions.iter().find(|condition| is_wanted(condition.kind(), condition.status))?;
    Some(format!("Pod {} has condition {}", pod.key, found.kind()))
}

/// Which rule of a success policy is met, as the Job says it.
pub(super) fn success(policy: Option<&SuccessPolicy>, completions: u32, succeeded: &Indexes) -> Option<String> {
    if succeeded.is_empty() {
        return None;
    }
    let enough = |count: Option<i32>, have: u64| count.is_some_and(|count| have >= u64::from(count.unsigned_abs()));
    let rules = &policy?.rules;
    let met = rules.iter().position(|rule| match &rule.succeeded_indexes {
        None => enough(rule.succeeded_count, succeeded.total()),
        Some(indexes) => {
            let wanted = Indexes::parse(indexes, completions);
            let have = wanted.overlap(succeeded);
            !wanted.is_empty() && (have == wanted.total() || enough(rule.succeeded_count, have))
        }
    })?;
    Some(format!("Matched rules at index {met}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(code: i32) -> Object {
        Object::from_json(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a"},
            "spec": {"containers": [{"name": "main"}]},
            "status": {
                "phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True"}],
                "containerStatuses": [{"name": "main", "state": {"terminated": {
                    "exitCode": code, "startedAt": "2026-01-05T09:00:00Z", "finishedAt": "2026-01-05T09:00:01Z",
                }}}],
            },
        }))
        .unwrap()
    }

    fn spec(rules: &Value) -> JobSpec {
        serde_json::from_value(json!({"podFailurePolicy": {"rules": rules}})).unwrap()
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let rules = json!([
            {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}},
            {"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [1, 2]}},
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
        ]);
        let judged = |code| judge(&pod(code), &spec(&rules));
        let words = "Container main for pod a/p failed with exit code 42 matching FailJob rule at index 0";
        assert_eq!(judged(42).fails_job.as_deref(), Some(words));
        assert!(judged(7).fails_index);
        assert!(!judged(1).counts);
        assert_eq!(judge(&pod(1), &spec(&json!([]))), Failure { counts: true, fails_index: false, fails_job: None });
        let disrupted =
            json!([{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]);
        let words = "Pod a/p has condition DisruptionTarget matching FailJob rule at index 0";
        assert_eq!(judge(&pod(1), &spec(&disrupted)).fails_job.as_deref(), Some(words));
    }

    #[test]
    fn a_success_policy_is_met_by_enough_of_the_right_indexes() {
        let policy: SuccessPolicy = serde_json::from_value(json!({"rules": [
            {"succeededIndexes": "0,2-3"}, {"succeededIndexes": "5-9", "succeededCount": 2}, {"succeededCount": 6},
        ]}))
        .unwrap();
        let met = |indexes: &[u32]| success(Some(&policy), 10, &indexes.iter().copied().collect());
        assert_eq!(met(&[]), None);
        assert_eq!(met(&[0, 2]), None);
        assert_eq!(met(&[0, 2, 3]).as_deref(), Some("Matched rules at index 0"));
        assert_eq!(met(&[5, 9]).as_deref(), Some("Matched rules at index 1"));
        assert_eq!(met(&[0, 1, 2, 4, 5]), None);
        assert_eq!(success(None, 10, &[1].into_iter().collect()), None);
    }
}
