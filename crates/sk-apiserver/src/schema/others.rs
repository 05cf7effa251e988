//! Type table: autoscalers, priority classes, RBAC and webhooks (`k8s.io/api`, 1.36).

use super::meta::{LABEL_SELECTOR, OBJECT_META};
use super::{Struct, Type as T, always, nullable, omitted, pointer};

#[rustfmt::skip]
pub(super) static AGGREGATION_RULE: Struct = Struct::new("AggregationRule", &[
    omitted("clusterRoleSelectors", T::List(&T::Struct(&LABEL_SELECTOR))),
]);

#[rustfmt::skip]
pub(super) static CLUSTER_ROLE: Struct = Struct::new("ClusterRole", &[
    always("metadata", T::Struct(&OBJECT_META)), always("rules", T::List(&T::Struct(&POLICY_RULE))),
    pointer("aggregationRule", T::Struct(&AGGREGATION_RULE)),
]);

#[rustfmt::skip]
pub(super) static CONTAINER_RESOURCE_METRIC_SOURCE: Struct = Struct::new("ContainerResourceMetricSource", &[
    always("name", T::String), always("target", T::Struct(&METRIC_TARGET)), always("container", T::String),
]);

#[rustfmt::skip]
pub(super) static CONTAINER_RESOURCE_METRIC_STATUS: Struct = Struct::new("ContainerResourceMetricStatus", &[
    always("name", T::String), always("current", T::Struct(&METRIC_VALUE_STATUS)),
    always("container", T::String),
]);

#[rustfmt::skip]
pub(super) static CROSS_VERSION_OBJECT_REFERENCE: Struct = Struct::new("CrossVersionObjectReference", &[
    always("kind", T::String), always("name", T::String), omitted("apiVersion", T::String),
]);

#[rustfmt::skip]
pub(super) static EXTERNAL_METRIC_SOURCE: Struct = Struct::new("ExternalMetricSource", &[
    always("metric", T::Struct(&METRIC_IDENTIFIER)), always("target", T::Struct(&METRIC_TARGET)),
]);

#[rustfmt::skip]
pub(super) static EXTERNAL_METRIC_STATUS: Struct = Struct::new("ExternalMetricStatus", &[
    always("metric", T::Struct(&METRIC_IDENTIFIER)), always("current", T::Struct(&METRIC_VALUE_STATUS)),
]);

#[rustfmt::skip]
pub(super) static HORIZONTAL_POD_AUTOSCALER: Struct = Struct::new("HorizontalPodAutoscaler", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&HORIZONTAL_POD_AUTOSCALER_SPEC)),
    always("status", T::Struct(&HORIZONTAL_POD_AUTOSCALER_STATUS)),
]);

#[rustfmt::skip]
pub(super) static HORIZONTAL_POD_AUTOSCALER_BEHAVIOR: Struct = Struct::new("HorizontalPodAutoscalerBehavior", &[
    pointer("scaleUp", T::Struct(&HPA_SCALING_RULES)), pointer("scaleDown", T::Struct(&HPA_SCALING_RULES)),
]);

#[rustfmt::skip]
pub(super) static HORIZONTAL_POD_AUTOSCALER_CONDITION: Struct = Struct::new("HorizontalPodAutoscalerCondition", &[
    always("type", T::String), always("status", T::String), nullable("lastTransitionTime", T::Time),
    omitted("reason", T::String), omitted("message", T::String),
]);

#[rustfmt::skip]
pub(super) static HORIZONTAL_POD_AUTOSCALER_SPEC: Struct = Struct::new("HorizontalPodAutoscalerSpec", &[
    always("scaleTargetRef", T::Struct(&CROSS_VERSION_OBJECT_REFERENCE)), pointer("minReplicas", T::Int32),
    always("maxReplicas", T::Int32), omitted("metrics", T::List(&T::Struct(&METRIC_SPEC))),
    pointer("behavior", T::Struct(&HORIZONTAL_POD_AUTOSCALER_BEHAVIOR)),
]);

#[rustfmt::skip]
pub(super) static HORIZONTAL_POD_AUTOSCALER_STATUS: Struct = Struct::new("HorizontalPodAutoscalerStatus", &[
    pointer("observedGeneration", T::Int64), pointer("lastScaleTime", T::Time),
    omitted("currentReplicas", T::Int32), always("desiredReplicas", T::Int32),
    always("currentMetrics", T::List(&T::Struct(&METRIC_STATUS))),
    omitted("conditions", T::List(&T::Struct(&HORIZONTAL_POD_AUTOSCALER_CONDITION))).merge("type"),
]);

#[rustfmt::skip]
pub(super) static HPA_SCALING_POLICY: Struct = Struct::new("HPAScalingPolicy", &[
    always("type", T::String), always("value", T::Int32), always("periodSeconds", T::Int32),
]);

#[rustfmt::skip]
pub(super) static HPA_SCALING_RULES: Struct = Struct::new("HPAScalingRules", &[
    pointer("stabilizationWindowSeconds", T::Int32), pointer("selectPolicy", T::String),
    pointer("policies", T::List(&T::Struct(&HPA_SCALING_POLICY))), pointer("tolerance", T::Quantity),
]);

#[rustfmt::skip]
pub(super) static MATCH_CONDITION: Struct = Struct::new("MatchCondition", &[
    always("name", T::String), always("expression", T::String),
]);

#[rustfmt::skip]
pub(super) static METRIC_IDENTIFIER: Struct = Struct::new("MetricIdentifier", &[
    always("name", T::String), pointer("selector", T::Struct(&LABEL_SELECTOR)),
]);

#[rustfmt::skip]
pub(super) static METRIC_SPEC: Struct = Struct::new("MetricSpec", &[
    always("type", T::String), pointer("object", T::Struct(&OBJECT_METRIC_SOURCE)),
    pointer("pods", T::Struct(&PODS_METRIC_SOURCE)), pointer("resource", T::Struct(&RESOURCE_METRIC_SOURCE)),
    pointer("containerResource", T::Struct(&CONTAINER_RESOURCE_METRIC_SOURCE)),
    pointer("external", T::Struct(&EXTERNAL_METRIC_SOURCE)),
]);

#[rustfmt::skip]
pub(super) static METRIC_STATUS: Struct = Struct::new("MetricStatus", &[
    always("type", T::String), pointer("object", T::Struct(&OBJECT_METRIC_STATUS)),
    pointer("pods", T::Struct(&PODS_METRIC_STATUS)), pointer("resource", T::Struct(&RESOURCE_METRIC_STATUS)),
    pointer("containerResource", T::Struct(&CONTAINER_RESOURCE_METRIC_STATUS)),
    pointer("external", T::Struct(&EXTERNAL_METRIC_STATUS)),
]);

#[rustfmt::skip]
pub(super) static METRIC_TARGET: Struct = Struct::new("MetricTarget", &[
    always("type", T::String), pointer("value", T::Quantity), pointer("averageValue", T::Quantity),
    pointer("averageUtilization", T::Int32),
]);

#[rustfmt::skip]
pub(super) static METRIC_VALUE_STATUS: Struct = Struct::new("MetricValueStatus", &[
    pointer("value", T::Quantity), pointer("averageValue", T::Quantity),
    pointer("averageUtilization", T::Int32),
]);

#[rustfmt::skip]
pub(super) static MUTATING_WEBHOOK: Struct = Struct::new("MutatingWebhook", &[
    always("name", T::String), always("clientConfig", T::Struct(&WEBHOOK_CLIENT_CONFIG)),
    omitted("rules", T::List(&T::Struct(&RULE_WITH_OPERATIONS))), pointer("failurePolicy", T::String),
    pointer("matchPolicy", T::String), pointer("namespaceSelector", T::Struct(&LABEL_SELECTOR)),
    pointer("objectSelector", T::Struct(&LABEL_SELECTOR)), nullable("sideEffects", T::String),
    pointer("timeoutSeconds", T::Int32), always("admissionReviewVersions", T::List(&T::String)),
    pointer("reinvocationPolicy", T::String),
    omitted("matchConditions", T::List(&T::Struct(&MATCH_CONDITION))).merge("name"),
]);

#[rustfmt::skip]
pub(super) static MUTATING_WEBHOOK_CONFIGURATION: Struct = Struct::new("MutatingWebhookConfiguration", &[
    always("metadata", T::Struct(&OBJECT_META)),
    omitted("webhooks", T::List(&T::Struct(&MUTATING_WEBHOOK))).merge("name"),
]);

#[rustfmt::skip]
pub(super) static OBJECT_METRIC_SOURCE: Struct = Struct::new("ObjectMetricSource", &[
    always("describedObject", T::Struct(&CROSS_VERSION_OBJECT_REFERENCE)),
    always("target", T::Struct(&METRIC_TARGET)), always("metric", T::Struct(&METRIC_IDENTIFIER)),
]);

#[rustfmt::skip]
pub(super) static OBJECT_METRIC_STATUS: Struct = Struct::new("ObjectMetricStatus", &[
    always("metric", T::Struct(&METRIC_IDENTIFIER)), always("current", T::Struct(&METRIC_VALUE_STATUS)),
    always("describedObject", T::Struct(&CROSS_VERSION_OBJECT_REFERENCE)),
]);

#[rustfmt::skip]
pub(super) static PODS_METRIC_SOURCE: Struct = Struct::new("PodsMetricSource", &[
    always("metric", T::Struct(&METRIC_IDENTIFIER)), always("target", T::Struct(&METRIC_TARGET)),
]);

#[rustfmt::skip]
pub(super) static PODS_METRIC_STATUS: Struct = Struct::new("PodsMetricStatus", &[
    always("metric", T::Struct(&METRIC_IDENTIFIER)), always("current", T::Struct(&METRIC_VALUE_STATUS)),
]);

#[rustfmt::skip]
pub(super) static POLICY_RULE: Struct = Struct::new("PolicyRule", &[
    always("verbs", T::List(&T::String)), omitted("apiGroups", T::List(&T::String)),
    omitted("resources", T::List(&T::String)), omitted("resourceNames", T::List(&T::String)),
    omitted("nonResourceURLs", T::List(&T::String)),
]);

#[rustfmt::skip]
pub(super) static PRIORITY_CLASS: Struct = Struct::new("PriorityClass", &[
    always("metadata", T::Struct(&OBJECT_META)), always("value", T::Int32),
    omitted("globalDefault", T::Bool), omitted("description", T::String),
    pointer("preemptionPolicy", T::String),
]);

#[rustfmt::skip]
pub(super) static RESOURCE_METRIC_SOURCE: Struct = Struct::new("ResourceMetricSource", &[
    always("name", T::String), always("target", T::Struct(&METRIC_TARGET)),
]);

#[rustfmt::skip]
pub(super) static RESOURCE_METRIC_STATUS: Struct = Struct::new("ResourceMetricStatus", &[
    always("name", T::String), always("current", T::Struct(&METRIC_VALUE_STATUS)),
]);

#[rustfmt::skip]
pub(super) static RULE_WITH_OPERATIONS: Struct = Struct::new("RuleWithOperations", &[
    omitted("operations", T::List(&T::String)), omitted("apiGroups", T::List(&T::String)),
    omitted("apiVersions", T::List(&T::String)), omitted("resources", T::List(&T::String)),
    pointer("scope", T::String),
]);

/// A definition as field managers see it: its versions are one field.
#[rustfmt::skip]
pub(super) static CUSTOM_RESOURCE_DEFINITION: Struct = Struct::new("CustomResourceDefinition", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&CUSTOM_RESOURCE_DEFINITION_SPEC)),
    omitted("status", T::Any),
]);

#[rustfmt::skip]
pub(super) static CUSTOM_RESOURCE_DEFINITION_SPEC: Struct = Struct::new("CustomResourceDefinitionSpec", &[
    always("group", T::String), always("names", T::Struct(&CUSTOM_RESOURCE_DEFINITION_NAMES)), always("scope", T::String),
    always("versions", T::List(&T::Any)), pointer("conversion", T::Struct(&CUSTOM_RESOURCE_CONVERSION)),
    omitted("preserveUnknownFields", T::Bool),
]);

#[rustfmt::skip]
pub(super) static CUSTOM_RESOURCE_DEFINITION_NAMES: Struct = Struct::new("CustomResourceDefinitionNames", &[
    always("plural", T::String), omitted("singular", T::String), omitted("shortNames", T::List(&T::String)),
    always("kind", T::String), omitted("listKind", T::String), omitted("categories", T::List(&T::String)),
]);

#[rustfmt::skip]
pub(super) static CUSTOM_RESOURCE_CONVERSION: Struct = Struct::new("CustomResourceConversion", &[
    always("strategy", T::String), pointer("webhook", T::Any),
]);

#[rustfmt::skip]
pub(super) static SCALE: Struct = Struct::new("Scale", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&SCALE_SPEC)),
    always("status", T::Struct(&SCALE_STATUS)),
]);

#[rustfmt::skip]
pub(super) static SCALE_SPEC: Struct = Struct::new("ScaleSpec", &[
    omitted("replicas", T::Int32),
]);

#[rustfmt::skip]
pub(super) static SCALE_STATUS: Struct = Struct::new("ScaleStatus", &[
    always("replicas", T::Int32), omitted("selector", T::String),
]);

#[rustfmt::skip]
pub(super) static SERVICE_REFERENCE: Struct = Struct::new("ServiceReference", &[
    always("namespace", T::String), always("name", T::String), pointer("path", T::String),
    pointer("port", T::Int32),
]);

#[rustfmt::skip]
pub(super) static WEBHOOK_CLIENT_CONFIG: Struct = Struct::new("WebhookClientConfig", &[
    pointer("url", T::String), pointer("service", T::Struct(&SERVICE_REFERENCE)),
    omitted("caBundle", T::Bytes),
]);
