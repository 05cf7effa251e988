//! Type table: the core group without pods and volumes (`k8s.io/api/core/v1`, 1.36).

use super::meta::{CONDITION, OBJECT_META};
use super::pod::{POD_SPEC, POD_STATUS};
use super::volume::{LOCAL_OBJECT_REFERENCE, OBJECT_REFERENCE, PERSISTENT_VOLUME_CLAIM_SPEC, PERSISTENT_VOLUME_SPEC};
use super::{Struct, Type as T, always, nullable, omitted, pointer};

#[rustfmt::skip]
pub(super) static ATTACHED_VOLUME: Struct = Struct::new("AttachedVolume", &[
    always("name", T::String), always("devicePath", T::String),
]);

#[rustfmt::skip]
pub(super) static BINDING: Struct = Struct::new("Binding", &[
    always("metadata", T::Struct(&OBJECT_META)), always("target", T::Struct(&OBJECT_REFERENCE)),
]);

#[rustfmt::skip]
pub(super) static CLIENT_IP_CONFIG: Struct = Struct::new("ClientIPConfig", &[
    pointer("timeoutSeconds", T::Int32),
]);

#[rustfmt::skip]
pub(super) static CONFIG_MAP: Struct = Struct::new("ConfigMap", &[
    always("metadata", T::Struct(&OBJECT_META)), pointer("immutable", T::Bool),
    omitted("data", T::Map(&T::String)), omitted("binaryData", T::Map(&T::Bytes)),
]);

#[rustfmt::skip]
pub(super) static CONFIG_MAP_NODE_CONFIG_SOURCE: Struct = Struct::new("ConfigMapNodeConfigSource", &[
    always("namespace", T::String), always("name", T::String), omitted("uid", T::String),
    omitted("resourceVersion", T::String), always("kubeletConfigKey", T::String),
]);

#[rustfmt::skip]
pub(super) static CONTAINER_IMAGE: Struct = Struct::new("ContainerImage", &[
    always("names", T::List(&T::String)), omitted("sizeBytes", T::Int64),
]);

#[rustfmt::skip]
pub(super) static DAEMON_ENDPOINT: Struct = Struct::new("DaemonEndpoint", &[
    always("Port", T::Int32),
]);

#[rustfmt::skip]
pub(super) static LIMIT_RANGE: Struct = Struct::new("LimitRange", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&LIMIT_RANGE_SPEC)),
]);

#[rustfmt::skip]
pub(super) static LIMIT_RANGE_ITEM: Struct = Struct::new("LimitRangeItem", &[
    always("type", T::String), omitted("max", T::Map(&T::Quantity)),
    omitted("min", T::Map(&T::Quantity)), omitted("default", T::Map(&T::Quantity)),
    omitted("defaultRequest", T::Map(&T::Quantity)),
    omitted("maxLimitRequestRatio", T::Map(&T::Quantity)),
]);

#[rustfmt::skip]
pub(super) static LIMIT_RANGE_SPEC: Struct = Struct::new("LimitRangeSpec", &[
    always("limits", T::List(&T::Struct(&LIMIT_RANGE_ITEM))),
]);

#[rustfmt::skip]
pub(super) static LOAD_BALANCER_INGRESS: Struct = Struct::new("LoadBalancerIngress", &[
    omitted("ip", T::String), omitted("hostname", T::String), pointer("ipMode", T::String),
    omitted("ports", T::List(&T::Struct(&PORT_STATUS))),
]);

#[rustfmt::skip]
pub(super) static LOAD_BALANCER_STATUS: Struct = Struct::new("LoadBalancerStatus", &[
    omitted("ingress", T::List(&T::Struct(&LOAD_BALANCER_INGRESS))),
]);

#[rustfmt::skip]
pub(super) static MODIFY_VOLUME_STATUS: Struct = Struct::new("ModifyVolumeStatus", &[
    omitted("targetVolumeAttributesClassName", T::String), always("status", T::String),
]);

#[rustfmt::skip]
pub(super) static NAMESPACE: Struct = Struct::new("Namespace", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&NAMESPACE_SPEC)),
    always("status", T::Struct(&NAMESPACE_STATUS)),
]);

#[rustfmt::skip]
pub(super) static NAMESPACE_CONDITION: Struct = Struct::new("NamespaceCondition", &[
    always("type", T::String), always("status", T::String), nullable("lastTransitionTime", T::Time),
    omitted("reason", T::String), omitted("message", T::String),
]);

#[rustfmt::skip]
pub(super) static NAMESPACE_SPEC: Struct = Struct::new("NamespaceSpec", &[
    omitted("finalizers", T::List(&T::String)),
]);

#[rustfmt::skip]
pub(super) static NAMESPACE_STATUS: Struct = Struct::new("NamespaceStatus", &[
    omitted("phase", T::String),
    omitted("conditions", T::List(&T::Struct(&NAMESPACE_CONDITION))).merge("type"),
]);

#[rustfmt::skip]
pub(super) static NODE: Struct = Struct::new("Node", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&NODE_SPEC)),
    always("status", T::Struct(&NODE_STATUS)),
]);

#[rustfmt::skip]
pub(super) static NODE_ADDRESS: Struct = Struct::new("NodeAddress", &[
    always("type", T::String), always("address", T::String),
]);

#[rustfmt::skip]
pub(super) static NODE_CONDITION: Struct = Struct::new("NodeCondition", &[
    always("type", T::String), always("status", T::String), nullable("lastHeartbeatTime", T::Time),
    nullable("lastTransitionTime", T::Time), omitted("reason", T::String), omitted("message", T::String),
]);

#[rustfmt::skip]
pub(super) static NODE_CONFIG_SOURCE: Struct = Struct::new("NodeConfigSource", &[
    pointer("configMap", T::Struct(&CONFIG_MAP_NODE_CONFIG_SOURCE)),
]);

#[rustfmt::skip]
pub(super) static NODE_CONFIG_STATUS: Struct = Struct::new("NodeConfigStatus", &[
    pointer("assigned", T::Struct(&NODE_CONFIG_SOURCE)), pointer("active", T::Struct(&NODE_CONFIG_SOURCE)),
    pointer("lastKnownGood", T::Struct(&NODE_CONFIG_SOURCE)), omitted("error", T::String),
]);

#[rustfmt::skip]
pub(super) static NODE_DAEMON_ENDPOINTS: Struct = Struct::new("NodeDaemonEndpoints", &[
    always("kubeletEndpoint", T::Struct(&DAEMON_ENDPOINT)),
]);

#[rustfmt::skip]
pub(super) static NODE_FEATURES: Struct = Struct::new("NodeFeatures", &[
    pointer("supplementalGroupsPolicy", T::Bool),
]);

#[rustfmt::skip]
pub(super) static NODE_RUNTIME_HANDLER: Struct = Struct::new("NodeRuntimeHandler", &[
    always("name", T::String), pointer("features", T::Struct(&NODE_RUNTIME_HANDLER_FEATURES)),
]);

#[rustfmt::skip]
pub(super) static NODE_RUNTIME_HANDLER_FEATURES: Struct = Struct::new("NodeRuntimeHandlerFeatures", &[
    pointer("recursiveReadOnlyMounts", T::Bool), pointer("userNamespaces", T::Bool),
]);

#[rustfmt::skip]
pub(super) static NODE_SPEC: Struct = Struct::new("NodeSpec", &[
    omitted("podCIDR", T::String), omitted("podCIDRs", T::List(&T::String)).merge(""),
    omitted("providerID", T::String), omitted("unschedulable", T::Bool),
    omitted("taints", T::List(&T::Struct(&TAINT))), pointer("configSource", T::Struct(&NODE_CONFIG_SOURCE)),
    omitted("externalID", T::String),
]);

#[rustfmt::skip]
pub(super) static NODE_STATUS: Struct = Struct::new("NodeStatus", &[
    omitted("capacity", T::Map(&T::Quantity)), omitted("allocatable", T::Map(&T::Quantity)),
    omitted("phase", T::String), omitted("conditions", T::List(&T::Struct(&NODE_CONDITION))).merge("type"),
    omitted("addresses", T::List(&T::Struct(&NODE_ADDRESS))).merge("type"),
    always("daemonEndpoints", T::Struct(&NODE_DAEMON_ENDPOINTS)),
    always("nodeInfo", T::Struct(&NODE_SYSTEM_INFO)),
    omitted("images", T::List(&T::Struct(&CONTAINER_IMAGE))),
    omitted("volumesInUse", T::List(&T::String)),
    omitted("volumesAttached", T::List(&T::Struct(&ATTACHED_VOLUME))),
    pointer("config", T::Struct(&NODE_CONFIG_STATUS)),
    omitted("runtimeHandlers", T::List(&T::Struct(&NODE_RUNTIME_HANDLER))),
    pointer("features", T::Struct(&NODE_FEATURES)), omitted("declaredFeatures", T::List(&T::String)),
]);

#[rustfmt::skip]
pub(super) static NODE_SWAP_STATUS: Struct = Struct::new("NodeSwapStatus", &[
    pointer("capacity", T::Int64),
]);

#[rustfmt::skip]
pub(super) static NODE_SYSTEM_INFO: Struct = Struct::new("NodeSystemInfo", &[
    always("machineID", T::String), always("systemUUID", T::String), always("bootID", T::String),
    always("kernelVersion", T::String), always("osImage", T::String),
    always("containerRuntimeVersion", T::String), always("kubeletVersion", T::String),
    always("kubeProxyVersion", T::String), always("operatingSystem", T::String),
    always("architecture", T::String), pointer("swap", T::Struct(&NODE_SWAP_STATUS)),
]);

#[rustfmt::skip]
pub(super) static PERSISTENT_VOLUME: Struct = Struct::new("PersistentVolume", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&PERSISTENT_VOLUME_SPEC)),
    always("status", T::Struct(&PERSISTENT_VOLUME_STATUS)),
]);

#[rustfmt::skip]
pub(super) static PERSISTENT_VOLUME_CLAIM: Struct = Struct::new("PersistentVolumeClaim", &[
    // Within a StatefulSet it says what it is.
    omitted("kind", T::String), omitted("apiVersion", T::String),
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&PERSISTENT_VOLUME_CLAIM_SPEC)),
    always("status", T::Struct(&PERSISTENT_VOLUME_CLAIM_STATUS)),
]);

#[rustfmt::skip]
pub(super) static PERSISTENT_VOLUME_CLAIM_CONDITION: Struct = Struct::new("PersistentVolumeClaimCondition", &[
    always("type", T::String), always("status", T::String), nullable("lastProbeTime", T::Time),
    nullable("lastTransitionTime", T::Time), omitted("reason", T::String), omitted("message", T::String),
]);

#[rustfmt::skip]
pub(super) static PERSISTENT_VOLUME_CLAIM_STATUS: Struct = Struct::new("PersistentVolumeClaimStatus", &[
    omitted("phase", T::String), omitted("accessModes", T::List(&T::String)),
    omitted("capacity", T::Map(&T::Quantity)),
    omitted("conditions", T::List(&T::Struct(&PERSISTENT_VOLUME_CLAIM_CONDITION))).merge("type"),
    omitted("allocatedResources", T::Map(&T::Quantity)),
    omitted("allocatedResourceStatuses", T::Map(&T::String)),
    pointer("currentVolumeAttributesClassName", T::String),
    pointer("modifyVolumeStatus", T::Struct(&MODIFY_VOLUME_STATUS)),
]);

#[rustfmt::skip]
pub(super) static PERSISTENT_VOLUME_STATUS: Struct = Struct::new("PersistentVolumeStatus", &[
    omitted("phase", T::String), omitted("message", T::String), omitted("reason", T::String),
    pointer("lastPhaseTransitionTime", T::Time),
]);

#[rustfmt::skip]
pub(super) static POD: Struct = Struct::new("Pod", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&POD_SPEC)),
    always("status", T::Struct(&POD_STATUS)),
]);

#[rustfmt::skip]
pub(super) static POD_TEMPLATE: Struct = Struct::new("PodTemplate", &[
    always("metadata", T::Struct(&OBJECT_META)), always("template", T::Struct(&POD_TEMPLATE_SPEC)),
]);

#[rustfmt::skip]
pub(super) static POD_TEMPLATE_SPEC: Struct = Struct::new("PodTemplateSpec", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&POD_SPEC)),
]);

#[rustfmt::skip]
pub(super) static PORT_STATUS: Struct = Struct::new("PortStatus", &[
    always("port", T::Int32), always("protocol", T::String), pointer("error", T::String),
]);

#[rustfmt::skip]
pub(super) static REPLICATION_CONTROLLER: Struct = Struct::new("ReplicationController", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&REPLICATION_CONTROLLER_SPEC)),
    always("status", T::Struct(&REPLICATION_CONTROLLER_STATUS)),
]);

#[rustfmt::skip]
pub(super) static REPLICATION_CONTROLLER_CONDITION: Struct = Struct::new("ReplicationControllerCondition", &[
    always("type", T::String), always("status", T::String), nullable("lastTransitionTime", T::Time),
    omitted("reason", T::String), omitted("message", T::String),
]);

#[rustfmt::skip]
pub(super) static REPLICATION_CONTROLLER_SPEC: Struct = Struct::new("ReplicationControllerSpec", &[
    pointer("replicas", T::Int32), omitted("minReadySeconds", T::Int32),
    omitted("selector", T::Map(&T::String)).atomic(), pointer("template", T::Struct(&POD_TEMPLATE_SPEC)),
]);

#[rustfmt::skip]
pub(super) static REPLICATION_CONTROLLER_STATUS: Struct = Struct::new("ReplicationControllerStatus", &[
    always("replicas", T::Int32), omitted("fullyLabeledReplicas", T::Int32),
    omitted("readyReplicas", T::Int32), omitted("availableReplicas", T::Int32),
    omitted("observedGeneration", T::Int64),
    omitted("conditions", T::List(&T::Struct(&REPLICATION_CONTROLLER_CONDITION))).merge("type"),
]);

#[rustfmt::skip]
pub(super) static RESOURCE_QUOTA: Struct = Struct::new("ResourceQuota", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&RESOURCE_QUOTA_SPEC)),
    always("status", T::Struct(&RESOURCE_QUOTA_STATUS)),
]);

#[rustfmt::skip]
pub(super) static RESOURCE_QUOTA_SPEC: Struct = Struct::new("ResourceQuotaSpec", &[
    omitted("hard", T::Map(&T::Quantity)), omitted("scopes", T::List(&T::String)),
    pointer("scopeSelector", T::Struct(&SCOPE_SELECTOR)),
]);

#[rustfmt::skip]
pub(super) static RESOURCE_QUOTA_STATUS: Struct = Struct::new("ResourceQuotaStatus", &[
    omitted("hard", T::Map(&T::Quantity)), omitted("used", T::Map(&T::Quantity)),
]);

#[rustfmt::skip]
pub(super) static SCOPED_RESOURCE_SELECTOR_REQUIREMENT: Struct = Struct::new("ScopedResourceSelectorRequirement", &[
    always("scopeName", T::String), always("operator", T::String), omitted("values", T::List(&T::String)),
]);

#[rustfmt::skip]
pub(super) static SCOPE_SELECTOR: Struct = Struct::atomic("ScopeSelector", &[
    omitted("matchExpressions", T::List(&T::Struct(&SCOPED_RESOURCE_SELECTOR_REQUIREMENT))),
]);

#[rustfmt::skip]
pub(super) static SECRET: Struct = Struct::new("Secret", &[
    always("metadata", T::Struct(&OBJECT_META)), pointer("immutable", T::Bool),
    omitted("data", T::Map(&T::Bytes)), omitted("stringData", T::Map(&T::String)),
    omitted("type", T::String),
]);

#[rustfmt::skip]
pub(super) static SERVICE: Struct = Struct::new("Service", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&SERVICE_SPEC)),
    always("status", T::Struct(&SERVICE_STATUS)),
]);

#[rustfmt::skip]
pub(super) static SERVICE_ACCOUNT: Struct = Struct::new("ServiceAccount", &[
    always("metadata", T::Struct(&OBJECT_META)),
    omitted("secrets", T::List(&T::Struct(&OBJECT_REFERENCE))).merge("name"),
    omitted("imagePullSecrets", T::List(&T::Struct(&LOCAL_OBJECT_REFERENCE))),
    pointer("automountServiceAccountToken", T::Bool),
]);

#[rustfmt::skip]
pub(super) static SERVICE_PORT: Struct = Struct::new("ServicePort", &[
    omitted("name", T::String), omitted("protocol", T::String), pointer("appProtocol", T::String),
    always("port", T::Int32), always("targetPort", T::IntOrString), omitted("nodePort", T::Int32),
]);

#[rustfmt::skip]
pub(super) static SERVICE_SPEC: Struct = Struct::new("ServiceSpec", &[
    omitted("ports", T::List(&T::Struct(&SERVICE_PORT))).merge("port").keyed(&["port", "protocol"]),
    omitted("selector", T::Map(&T::String)).atomic(), omitted("clusterIP", T::String),
    omitted("clusterIPs", T::List(&T::String)), omitted("type", T::String),
    omitted("externalIPs", T::List(&T::String)), omitted("sessionAffinity", T::String),
    omitted("loadBalancerIP", T::String), omitted("loadBalancerSourceRanges", T::List(&T::String)),
    omitted("externalName", T::String), omitted("externalTrafficPolicy", T::String),
    omitted("healthCheckNodePort", T::Int32), omitted("publishNotReadyAddresses", T::Bool),
    pointer("sessionAffinityConfig", T::Struct(&SESSION_AFFINITY_CONFIG)),
    omitted("ipFamilies", T::List(&T::String)), pointer("ipFamilyPolicy", T::String),
    pointer("allocateLoadBalancerNodePorts", T::Bool), pointer("loadBalancerClass", T::String),
    pointer("internalTrafficPolicy", T::String), pointer("trafficDistribution", T::String),
]);

#[rustfmt::skip]
pub(super) static SERVICE_STATUS: Struct = Struct::new("ServiceStatus", &[
    always("loadBalancer", T::Struct(&LOAD_BALANCER_STATUS)),
    omitted("conditions", T::List(&T::Struct(&CONDITION))).merge("type"),
]);

#[rustfmt::skip]
pub(super) static SESSION_AFFINITY_CONFIG: Struct = Struct::new("SessionAffinityConfig", &[
    pointer("clientIP", T::Struct(&CLIENT_IP_CONFIG)),
]);

#[rustfmt::skip]
pub(super) static TAINT: Struct = Struct::new("Taint", &[
    always("key", T::String), omitted("value", T::String), always("effect", T::String),
    pointer("timeAdded", T::Time),
]);
