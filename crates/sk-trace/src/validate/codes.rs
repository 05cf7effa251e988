//! All validation codes: what each means, how to fix it, and whether `--fix` does.
//!
//! `W0000` and `E0001` to `E0005` are SimKube 2's and mean the same. `01xx` are ours: what would break a replay, or
//! make its result differ from what the user expects. `E` makes a trace invalid, `W` does not.

use serde::{Serialize, Serializer};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The trace cannot be replayed as it is, or not all of it.
    Error,
    /// It can be replayed; the result may surprise.
    Warning,
}

/// What may be wrong with a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// W0000
    StatusPopulated,
    /// E0001
    ServiceAccountMissing,
    /// E0002
    EnvSecretMissing,
    /// E0003
    EnvConfigMapMissing,
    /// E0004
    VolumeSecretMissing,
    /// E0005
    VolumeConfigMapMissing,
    /// E0101
    OutOfOrder,
    /// E0102
    NamespaceMissing,
    /// E0103
    NamespaceUnexpected,
    /// E0104
    TemplateNotFound,
    /// E0105
    ApiVersionRemoved,
    /// E0106
    NameInvalid,
    /// E0107
    SelectorMismatch,
    /// E0108
    QuantityInvalid,
    /// E0109
    RequestAboveLimit,
    /// E0110
    NoContainers,
    /// E0111
    ReplicasInvalid,
    /// E0112
    RestartPolicyInvalid,
    /// E0113
    ScheduleInvalid,
    /// E0114
    LifeEndsBeforeStart,
    /// E0115
    NothingToReplay,
    /// W0116
    DeleteOfUnknown,
    /// W0117
    AppliedTwiceAtOnce,
    /// W0118
    LivesOfUnknownOwner,
    /// W0119
    OwnedByTracked,
    /// W0120
    RecordingGap,
    /// E0121
    TooManyPods,
    /// W0122
    SpanTooLong,
}

/// A code as people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Code {
    /// `E0001`.
    pub code: &'static str,
    /// `service_account_missing`.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What it means.
    pub explanation: &'static str,
    /// How to mend it by hand.
    pub remedy: &'static str,
    /// What `--fix` does about it; `None` if nothing.
    pub fix: Option<&'static str>,
    /// Which rule it belongs to.
    #[serde(skip)]
    pub rule: Rule,
}

impl Rule {
    /// Its code.
    pub fn code(self) -> &'static Code {
        CODES.iter().find(|code| code.rule == self).expect("the table holds every rule, which a test checks")
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code().code)
    }
}

/// Every code, in order.
pub fn all() -> &'static [Code] {
    &CODES
}

/// The code that is written so (`E0001`, `e0001`), or has that name.
pub fn explain(text: &str) -> Option<&'static Code> {
    CODES.iter().find(|code| code.code.eq_ignore_ascii_case(text) || code.name == text)
}

const fn error(
    rule: Rule,
    code: &'static str,
    name: &'static str,
    explanation: &'static str,
    remedy: &'static str,
) -> Code {
    Code { code, name, severity: Severity::Error, explanation, remedy, fix: None, rule }
}

const fn warning(
    rule: Rule,
    code: &'static str,
    name: &'static str,
    explanation: &'static str,
    remedy: &'static str,
) -> Code {
    Code { code, name, severity: Severity::Warning, explanation, remedy, fix: None, rule }
}

impl Code {
    const fn fixed_by(self, fix: &'static str) -> Self {
        Self { fix: Some(fix), ..self }
    }
}

const MARK_OPTIONAL: &str = "marks the reference optional, so that pods start without it";

const CODES: [Code; 28] = [
    warning(
        Rule::StatusPopulated,
        "W0000",
        "status_field_populated",
        "The object has a status. A replay makes its own; a recorded one would be overwritten at once, or confuse a controller that reads it first.",
        "Remove the object's `status`.",
    )
    .fixed_by("removes the status"),
    error(
        Rule::ServiceAccountMissing,
        "E0001",
        "service_account_missing",
        "A pod template names a ServiceAccount that the trace never creates. A real API server refuses such pods.",
        "Record ServiceAccounts too, or remove `serviceAccount` and `serviceAccountName` from the template.",
    )
    .fixed_by("removes serviceAccount and serviceAccountName from the template; its pods then use `default`"),
    error(
        Rule::EnvSecretMissing,
        "E0002",
        "env_var_secret_missing",
        "An environment variable is taken from a Secret that the trace never creates. A real kubelet does not start such a container.",
        "Record Secrets too (their values are hashed), or mark the reference `optional: true`.",
    )
    .fixed_by(MARK_OPTIONAL),
    error(
        Rule::EnvConfigMapMissing,
        "E0003",
        "env_var_configmap_missing",
        "An environment variable is taken from a ConfigMap that the trace never creates. A real kubelet does not start such a container.",
        "Record ConfigMaps too, or mark the reference `optional: true`.",
    )
    .fixed_by(MARK_OPTIONAL),
    error(
        Rule::VolumeSecretMissing,
        "E0004",
        "volume_secret_missing",
        "A volume mounts a Secret that the trace never creates. A real kubelet does not start such a pod.",
        "Record Secrets too (their values are hashed), or mark the volume's source `optional: true`.",
    )
    .fixed_by(MARK_OPTIONAL),
    error(
        Rule::VolumeConfigMapMissing,
        "E0005",
        "volume_configmap_missing",
        "A volume mounts a ConfigMap that the trace never creates. A real kubelet does not start such a pod.",
        "Record ConfigMaps too, or mark the volume's source `optional: true`.",
    )
    .fixed_by(MARK_OPTIONAL),
    error(
        Rule::OutOfOrder,
        "E0101",
        "events_out_of_order",
        "An event is earlier than the one before it. A replay follows the file's order, so it would happen too late.",
        "Export the trace again; if it was put together by hand, sort its events by time.",
    ),
    error(
        Rule::NamespaceMissing,
        "E0102",
        "namespace_missing",
        "An object of a kind that lives in namespaces has none. No API server accepts it.",
        "Give the object a `metadata.namespace`.",
    )
    .fixed_by("puts the object, its deletes and its lives into namespace `default`"),
    error(
        Rule::NamespaceUnexpected,
        "E0103",
        "namespace_unexpected",
        "An object of a cluster-scoped kind has a namespace.",
        "Remove the object's `metadata.namespace`.",
    )
    .fixed_by("removes the namespace from the object, its deletes and its lives"),
    error(
        Rule::TemplateNotFound,
        "E0104",
        "template_not_found",
        "A `podSpecTemplatePaths` entry of the trace's configuration is not a JSON pointer or finds nothing in an object of its kind. Pods of the object have neither simulation settings nor recorded lives.",
        "Correct the path in the tracer's configuration (`*` stands for every element of a list) and export again.",
    ),
    error(
        Rule::ApiVersionRemoved,
        "E0105",
        "api_version_removed",
        "The object is of one of Kubernetes' own kinds, in an API version that no supported Kubernetes serves.",
        "Rewrite the object to a served version, for instance with `trace transform`.",
    ),
    error(
        Rule::NameInvalid,
        "E0106",
        "name_invalid",
        "The object's name or namespace is not a lower-case DNS name. No API server accepts it.",
        "Rename the object, for instance with `trace transform`.",
    ),
    error(
        Rule::SelectorMismatch,
        "E0107",
        "selector_mismatch",
        "A workload's selector is wrong, or does not select the labels of its own template. No API server accepts it; its controller would create pods without end.",
        "Make `spec.selector` and the template's labels agree.",
    ),
    error(
        Rule::QuantityInvalid,
        "E0108",
        "quantity_invalid",
        "A resource request or limit is not a quantity, or is negative.",
        "Write it as Kubernetes does: `500m`, `1.5`, `128Mi`.",
    ),
    error(
        Rule::RequestAboveLimit,
        "E0109",
        "request_above_limit",
        "A container requests more of a resource than its limit allows. No API server accepts it.",
        "Lower the request or raise the limit.",
    ),
    error(
        Rule::NoContainers,
        "E0110",
        "containers_invalid",
        "A pod template has no containers, or two of one name. No API server accepts it.",
        "Correct the template's `containers`.",
    ),
    error(
        Rule::ReplicasInvalid,
        "E0111",
        "replicas_invalid",
        "`replicas`, `parallelism` or `completions` is not a whole number of at least zero.",
        "Correct the number.",
    ),
    error(
        Rule::RestartPolicyInvalid,
        "E0112",
        "restart_policy_invalid",
        "A Job's template restarts its containers always, or a Deployment's does not. No API server accepts it.",
        "Use `Never` or `OnFailure` for Jobs and CronJobs, `Always` for long-running workloads.",
    ),
    error(
        Rule::ScheduleInvalid,
        "E0113",
        "schedule_invalid",
        "A CronJob's schedule does not have the five fields of one.",
        "Write it like `*/15 * * * *` or `@hourly`.",
    ),
    error(
        Rule::LifeEndsBeforeStart,
        "E0114",
        "life_ends_before_start",
        "A recorded pod ended before it started.",
        "Export the trace again; if the clocks of nodes differ, the life cannot be trusted.",
    )
    .fixed_by("removes the life"),
    error(
        Rule::NothingToReplay,
        "E0115",
        "nothing_to_replay",
        "Nothing is ever applied in the trace.",
        "Check the export's time window and filters, and that the tracer's configuration names the kinds you want.",
    ),
    warning(
        Rule::DeleteOfUnknown,
        "W0116",
        "delete_of_unknown",
        "An object is deleted that does not exist at that moment. A replay has nothing to delete.",
        "Remove the delete. If many are found, the trace may have lost its beginning.",
    )
    .fixed_by("removes the delete"),
    warning(
        Rule::AppliedTwiceAtOnce,
        "W0117",
        "applied_twice_at_once",
        "An object is applied twice at the same moment. The later one wins; the earlier one may never be seen.",
        "Remove the earlier one, unless the trace is a v2 one with whole seconds, where this is ordinary.",
    ),
    warning(
        Rule::LivesOfUnknownOwner,
        "W0118",
        "lives_of_unknown_owner",
        "Lives are recorded for the pods of an object that is never in the trace.",
        "Remove them, or record the owner's kind too.",
    )
    .fixed_by("removes the lives"),
    warning(
        Rule::OwnedByTracked,
        "W0119",
        "owned_by_tracked",
        "The object belongs to one of a kind that is tracked too. A replay may create it twice: once from the trace and once by its owner's controller.",
        "Set `skipOwned: true` for its kind in the tracer's configuration, or drop it with `trace transform`.",
    ),
    warning(
        Rule::RecordingGap,
        "W0120",
        "recording_gap",
        "The recording did not see everything: the tracer was down, or a watch had to start anew. What happened meanwhile appears at the end of the gap.",
        "Slice the trace to one side of the gap, or keep it in mind when reading results.",
    ),
    error(
        Rule::TooManyPods,
        "E0121",
        "too_many_pods",
        "The object asks for more pods than a simulated cluster can hold objects (1,048,576). A run refuses it.",
        "Lower the number, for instance with `trace transform`.",
    ),
    warning(
        Rule::SpanTooLong,
        "W0122",
        "span_too_long",
        "From its first record to its last the trace takes more than 400 days, which is more than a run replays. Often one record has a wrong time, or manifests without times (1970) were merged with a recording.",
        "Replay a part (`run --start`, `--duration`), cut it with `trace slice`, or move it with `trace shift`.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_in_order_and_say_what_they_are() {
        let numbers: Vec<_> = CODES.iter().map(|code| &code.code[1..]).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        for code in &CODES {
            let letter = if code.severity == Severity::Error { 'E' } else { 'W' };
            assert!(code.code.starts_with(letter) && code.code.len() == 5, "{}", code.code);
            assert_eq!(code.rule.code(), code);
            assert_eq!(explain(code.name), Some(code));
            assert_eq!(explain(&code.code.to_lowercase()), Some(code));
            assert!(code.explanation.ends_with('.') && code.remedy.ends_with('.'), "{}", code.code);
        }
        assert_eq!(explain("E9999"), None);
    }
}
