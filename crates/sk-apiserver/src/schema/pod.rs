//! Type table: pods (`k8s.io/api/core/v1`, 1.36).

use super::meta::LABEL_SELECTOR;
use super::volume::{
    LOCAL_OBJECT_REFERENCE, NODE_SELECTOR, NODE_SELECTOR_TERM, OBJECT_FIELD_SELECTOR, RESOURCE_FIELD_SELECTOR, VOLUME,
};
use super::{Struct, Type as T, always, nullable, omitted, pointer};

#[rustfmt::skip]
pub(super) static AFFINITY: Struct = Struct::new("Affinity", &[
    pointer("nodeAffinity", T::Struct(&NODE_AFFINITY)), pointer("podAffinity", T::Struct(&POD_AFFINITY)),
    pointer("podAntiAffinity", T::Struct(&POD_ANTI_AFFINITY)),
]);

#[rustfmt::skip]
pub(super) static APP_ARMOR_PROFILE: Struct = Struct::new("AppArmorProfile", &[
    always("type", T::String), pointer("localhostProfile", T::String),
]);

#[rustfmt::skip]
pub(super) static CAPABILITIES: Struct = Struct::new("Capabilities", &[
    omitted("add", T::List(&T::String)), omitted("drop", T::List(&T::String)),
]);

#[rustfmt::skip]
pub(super) static CONFIG_MAP_ENV_SOURCE: Struct = Struct::new("ConfigMapEnvSource", &[
    omitted("name", T::String), pointer("optional", T::Bool),
]);

#[rustfmt::skip]
pub(super) static CONFIG_MAP_KEY_SELECTOR: Struct = Struct::atomic("ConfigMapKeySelector", &[
    omitted("name", T::String), always("key", T::String), pointer("optional", T::Bool),
]);

#[rustfmt::skip]
pub(super) static CONTAINER: Struct = Struct::new("Container", &[
    always("name", T::String), omitted("image", T::String), omitted("command", T::List(&T::String)),
    omitted("args", T::List(&T::String)), omitted("workingDir", T::String),
    omitted("ports", T::List(&T::Struct(&CONTAINER_PORT))).merge("containerPort").keyed(&["containerPort", "protocol"]),
    omitted("envFrom", T::List(&T::Struct(&ENV_FROM_SOURCE))),
    omitted("env", T::List(&T::Struct(&ENV_VAR))).merge("name"),
    always("resources", T::Struct(&RESOURCE_REQUIREMENTS)),
    omitted("resizePolicy", T::List(&T::Struct(&CONTAINER_RESIZE_POLICY))),
    pointer("restartPolicy", T::String),
    omitted("restartPolicyRules", T::List(&T::Struct(&CONTAINER_RESTART_RULE))),
    omitted("volumeMounts", T::List(&T::Struct(&VOLUME_MOUNT))).merge("mountPath"),
    omitted("volumeDevices", T::List(&T::Struct(&VOLUME_DEVICE))).merge("devicePath"),
    pointer("livenessProbe", T::Struct(&PROBE)), pointer("readinessProbe", T::Struct(&PROBE)),
    pointer("startupProbe", T::Struct(&PROBE)), pointer("lifecycle", T::Struct(&LIFECYCLE)),
    omitted("terminationMessagePath", T::String), omitted("terminationMessagePolicy", T::String),
    omitted("imagePullPolicy", T::String), pointer("securityContext", T::Struct(&SECURITY_CONTEXT)),
    omitted("stdin", T::Bool), omitted("stdinOnce", T::Bool), omitted("tty", T::Bool),
]);

#[rustfmt::skip]
pub(super) static CONTAINER_EXTENDED_RESOURCE_REQUEST: Struct = Struct::new("ContainerExtendedResourceRequest", &[
    always("containerName", T::String), always("resourceName", T::String), always("requestName", T::String),
]);

#[rustfmt::skip]
pub(super) static CONTAINER_PORT: Struct = Struct::new("ContainerPort", &[
    omitted("name", T::String), omitted("hostPort", T::Int32), always("containerPort", T::Int32),
    omitted("protocol", T::String), omitted("hostIP", T::String),
]);

#[rustfmt::skip]
pub(super) static CONTAINER_RESIZE_POLICY: Struct = Struct::new("ContainerResizePolicy", &[
    always("resourceName", T::String), always("restartPolicy", T::String),
]);

#[rustfmt::skip]
pub(super) static CONTAINER_RESTART_RULE: Struct = Struct::new("ContainerRestartRule", &[
    omitted("action", T::String), pointer("exitCodes", T::Struct(&CONTAINER_RESTART_RULE_ON_EXIT_CODES)),
]);

#[rustfmt::skip]
pub(super) static CONTAINER_RESTART_RULE_ON_EXIT_CODES: Struct = Struct::new("ContainerRestartRuleOnExitCodes", &[
    omitted("operator", T::String), omitted("values", T::List(&T::Int32)).set(),
]);

#[rustfmt::skip]
pub(super) static CONTAINER_STATE: Struct = Struct::new("ContainerState", &[
    pointer("waiting", T::Struct(&CONTAINER_STATE_WAITING)),
    pointer("running", T::Struct(&CONTAINER_STATE_RUNNING)),
    pointer("terminated", T::Struct(&CONTAINER_STATE_TERMINATED)),
]);

#[rustfmt::skip]
pub(super) static CONTAINER_STATE_RUNNING: Struct = Struct::new("ContainerStateRunning", &[
    nullable("startedAt", T::Time),
]);

#[rustfmt::skip]
pub(super) static CONTAINER_STATE_TERMINATED: Struct = Struct::new("ContainerStateTerminated", &[
    always("exitCode", T::Int32), omitted("signal", T::Int32), omitted("reason", T::String),
    omitted("message", T::String), nullable("startedAt", T::Time), nullable("finishedAt", T::Time),
    omitted("containerID", T::String),
]);

#[rustfmt::skip]
pub(super) static CONTAINER_STATE_WAITING: Struct = Struct::new("ContainerStateWaiting", &[
    omitted("reason", T::String), omitted("message", T::String),
]);

#[rustfmt::skip]
pub(super) static CONTAINER_STATUS: Struct = Struct::new("ContainerStatus", &[
    always("name", T::String), always("state", T::Struct(&CONTAINER_STATE)),
    always("lastState", T::Struct(&CONTAINER_STATE)), always("ready", T::Bool),
    always("restartCount", T::Int32), always("image", T::String), always("imageID", T::String),
    omitted("containerID", T::String), pointer("started", T::Bool),
    omitted("allocatedResources", T::Map(&T::Quantity)),
    pointer("resources", T::Struct(&RESOURCE_REQUIREMENTS)),
    omitted("volumeMounts", T::List(&T::Struct(&VOLUME_MOUNT_STATUS))).merge("mountPath"),
    pointer("user", T::Struct(&CONTAINER_USER)),
    omitted("allocatedResourcesStatus", T::List(&T::Struct(&RESOURCE_STATUS))).merge("name"),
    pointer("stopSignal", T::String),
]);

#[rustfmt::skip]
pub(super) static CONTAINER_USER: Struct = Struct::new("ContainerUser", &[
    pointer("linux", T::Struct(&LINUX_CONTAINER_USER)),
]);

#[rustfmt::skip]
pub(super) static ENV_FROM_SOURCE: Struct = Struct::new("EnvFromSource", &[
    omitted("prefix", T::String), pointer("configMapRef", T::Struct(&CONFIG_MAP_ENV_SOURCE)),
    pointer("secretRef", T::Struct(&SECRET_ENV_SOURCE)),
]);

#[rustfmt::skip]
pub(super) static ENV_VAR: Struct = Struct::new("EnvVar", &[
    always("name", T::String), omitted("value", T::String), pointer("valueFrom", T::Struct(&ENV_VAR_SOURCE)),
]);

#[rustfmt::skip]
pub(super) static ENV_VAR_SOURCE: Struct = Struct::new("EnvVarSource", &[
    pointer("fieldRef", T::Struct(&OBJECT_FIELD_SELECTOR)),
    pointer("resourceFieldRef", T::Struct(&RESOURCE_FIELD_SELECTOR)),
    pointer("configMapKeyRef", T::Struct(&CONFIG_MAP_KEY_SELECTOR)),
    pointer("secretKeyRef", T::Struct(&SECRET_KEY_SELECTOR)),
    pointer("fileKeyRef", T::Struct(&FILE_KEY_SELECTOR)),
]);

#[rustfmt::skip]
pub(super) static EPHEMERAL_CONTAINER: Struct = Struct::new("EphemeralContainer", &[
    always("name", T::String), omitted("image", T::String), omitted("command", T::List(&T::String)),
    omitted("args", T::List(&T::String)), omitted("workingDir", T::String),
    omitted("ports", T::List(&T::Struct(&CONTAINER_PORT))).merge("containerPort").keyed(&["containerPort", "protocol"]),
    omitted("envFrom", T::List(&T::Struct(&ENV_FROM_SOURCE))),
    omitted("env", T::List(&T::Struct(&ENV_VAR))).merge("name"),
    always("resources", T::Struct(&RESOURCE_REQUIREMENTS)),
    omitted("resizePolicy", T::List(&T::Struct(&CONTAINER_RESIZE_POLICY))),
    pointer("restartPolicy", T::String),
    omitted("restartPolicyRules", T::List(&T::Struct(&CONTAINER_RESTART_RULE))),
    omitted("volumeMounts", T::List(&T::Struct(&VOLUME_MOUNT))).merge("mountPath"),
    omitted("volumeDevices", T::List(&T::Struct(&VOLUME_DEVICE))).merge("devicePath"),
    pointer("livenessProbe", T::Struct(&PROBE)), pointer("readinessProbe", T::Struct(&PROBE)),
    pointer("startupProbe", T::Struct(&PROBE)), pointer("lifecycle", T::Struct(&LIFECYCLE)),
    omitted("terminationMessagePath", T::String), omitted("terminationMessagePolicy", T::String),
    omitted("imagePullPolicy", T::String), pointer("securityContext", T::Struct(&SECURITY_CONTEXT)),
    omitted("stdin", T::Bool), omitted("stdinOnce", T::Bool), omitted("tty", T::Bool),
    omitted("targetContainerName", T::String),
]);

#[rustfmt::skip]
pub(super) static EXEC_ACTION: Struct = Struct::new("ExecAction", &[
    omitted("command", T::List(&T::String)),
]);

#[rustfmt::skip]
pub(super) static FILE_KEY_SELECTOR: Struct = Struct::atomic("FileKeySelector", &[
    always("volumeName", T::String), always("path", T::String), always("key", T::String),
    pointer("optional", T::Bool),
]);

#[rustfmt::skip]
pub(super) static GRPC_ACTION: Struct = Struct::new("GRPCAction", &[
    always("port", T::Int32), nullable("service", T::String),
]);

#[rustfmt::skip]
pub(super) static HOST_ALIAS: Struct = Struct::new("HostAlias", &[
    always("ip", T::String), omitted("hostnames", T::List(&T::String)),
]);

#[rustfmt::skip]
pub(super) static HOST_IP: Struct = Struct::new("HostIP", &[
    always("ip", T::String),
]);

#[rustfmt::skip]
pub(super) static HTTP_GET_ACTION: Struct = Struct::new("HTTPGetAction", &[
    omitted("path", T::String), always("port", T::IntOrString), omitted("host", T::String),
    omitted("scheme", T::String), omitted("httpHeaders", T::List(&T::Struct(&HTTP_HEADER))),
]);

#[rustfmt::skip]
pub(super) static HTTP_HEADER: Struct = Struct::new("HTTPHeader", &[
    always("name", T::String), always("value", T::String),
]);

#[rustfmt::skip]
pub(super) static IMAGE_VOLUME_STATUS: Struct = Struct::new("ImageVolumeStatus", &[
    omitted("imageRef", T::String),
]);

#[rustfmt::skip]
pub(super) static LIFECYCLE: Struct = Struct::new("Lifecycle", &[
    pointer("postStart", T::Struct(&LIFECYCLE_HANDLER)), pointer("preStop", T::Struct(&LIFECYCLE_HANDLER)),
    pointer("stopSignal", T::String),
]);

#[rustfmt::skip]
pub(super) static LIFECYCLE_HANDLER: Struct = Struct::new("LifecycleHandler", &[
    pointer("exec", T::Struct(&EXEC_ACTION)), pointer("httpGet", T::Struct(&HTTP_GET_ACTION)),
    pointer("tcpSocket", T::Struct(&TCP_SOCKET_ACTION)), pointer("sleep", T::Struct(&SLEEP_ACTION)),
]);

#[rustfmt::skip]
pub(super) static LINUX_CONTAINER_USER: Struct = Struct::new("LinuxContainerUser", &[
    always("uid", T::Int64), always("gid", T::Int64), omitted("supplementalGroups", T::List(&T::Int64)),
]);

#[rustfmt::skip]
pub(super) static NODE_AFFINITY: Struct = Struct::new("NodeAffinity", &[
    pointer("requiredDuringSchedulingIgnoredDuringExecution", T::Struct(&NODE_SELECTOR)),
    omitted("preferredDuringSchedulingIgnoredDuringExecution", T::List(&T::Struct(&PREFERRED_SCHEDULING_TERM))),
]);

#[rustfmt::skip]
pub(super) static NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS: Struct = Struct::new("NodeAllocatableResourceClaimStatus", &[
    always("resourceClaimName", T::String), omitted("containers", T::List(&T::String)).set(),
    always("resources", T::Map(&T::Quantity)),
]);

#[rustfmt::skip]
pub(super) static POD_AFFINITY: Struct = Struct::new("PodAffinity", &[
    omitted("requiredDuringSchedulingIgnoredDuringExecution", T::List(&T::Struct(&POD_AFFINITY_TERM))),
    omitted("preferredDuringSchedulingIgnoredDuringExecution", T::List(&T::Struct(&WEIGHTED_POD_AFFINITY_TERM))),
]);

#[rustfmt::skip]
pub(super) static POD_AFFINITY_TERM: Struct = Struct::new("PodAffinityTerm", &[
    pointer("labelSelector", T::Struct(&LABEL_SELECTOR)), omitted("namespaces", T::List(&T::String)),
    always("topologyKey", T::String), pointer("namespaceSelector", T::Struct(&LABEL_SELECTOR)),
    omitted("matchLabelKeys", T::List(&T::String)), omitted("mismatchLabelKeys", T::List(&T::String)),
]);

#[rustfmt::skip]
pub(super) static POD_ANTI_AFFINITY: Struct = Struct::new("PodAntiAffinity", &[
    omitted("requiredDuringSchedulingIgnoredDuringExecution", T::List(&T::Struct(&POD_AFFINITY_TERM))),
    omitted("preferredDuringSchedulingIgnoredDuringExecution", T::List(&T::Struct(&WEIGHTED_POD_AFFINITY_TERM))),
]);

#[rustfmt::skip]
pub(super) static POD_CONDITION: Struct = Struct::new("PodCondition", &[
    always("type", T::String), omitted("observedGeneration", T::Int64), always("status", T::String),
    nullable("lastProbeTime", T::Time), nullable("lastTransitionTime", T::Time),
    omitted("reason", T::String), omitted("message", T::String),
]);

#[rustfmt::skip]
pub(super) static POD_DNS_CONFIG: Struct = Struct::new("PodDNSConfig", &[
    omitted("nameservers", T::List(&T::String)), omitted("searches", T::List(&T::String)),
    omitted("options", T::List(&T::Struct(&POD_DNS_CONFIG_OPTION))),
]);

#[rustfmt::skip]
pub(super) static POD_DNS_CONFIG_OPTION: Struct = Struct::new("PodDNSConfigOption", &[
    omitted("name", T::String), pointer("value", T::String),
]);

#[rustfmt::skip]
pub(super) static POD_EXTENDED_RESOURCE_CLAIM_STATUS: Struct = Struct::new("PodExtendedResourceClaimStatus", &[
    always("requestMappings", T::List(&T::Struct(&CONTAINER_EXTENDED_RESOURCE_REQUEST))),
    always("resourceClaimName", T::String),
]);

#[rustfmt::skip]
pub(super) static POD_IP: Struct = Struct::new("PodIP", &[
    always("ip", T::String),
]);

#[rustfmt::skip]
pub(super) static POD_OS: Struct = Struct::new("PodOS", &[
    always("name", T::String),
]);

#[rustfmt::skip]
pub(super) static POD_READINESS_GATE: Struct = Struct::new("PodReadinessGate", &[
    always("conditionType", T::String),
]);

#[rustfmt::skip]
pub(super) static POD_RESOURCE_CLAIM: Struct = Struct::new("PodResourceClaim", &[
    always("name", T::String), pointer("resourceClaimName", T::String),
    pointer("resourceClaimTemplateName", T::String),
]);

#[rustfmt::skip]
pub(super) static POD_RESOURCE_CLAIM_STATUS: Struct = Struct::new("PodResourceClaimStatus", &[
    always("name", T::String), pointer("resourceClaimName", T::String),
]);

#[rustfmt::skip]
pub(super) static POD_SCHEDULING_GATE: Struct = Struct::new("PodSchedulingGate", &[
    always("name", T::String),
]);

#[rustfmt::skip]
pub(super) static POD_SCHEDULING_GROUP: Struct = Struct::new("PodSchedulingGroup", &[
    pointer("podGroupName", T::String),
]);

#[rustfmt::skip]
pub(super) static POD_SECURITY_CONTEXT: Struct = Struct::new("PodSecurityContext", &[
    pointer("seLinuxOptions", T::Struct(&SE_LINUX_OPTIONS)),
    pointer("windowsOptions", T::Struct(&WINDOWS_SECURITY_CONTEXT_OPTIONS)), pointer("runAsUser", T::Int64),
    pointer("runAsGroup", T::Int64), pointer("runAsNonRoot", T::Bool),
    omitted("supplementalGroups", T::List(&T::Int64)), pointer("supplementalGroupsPolicy", T::String),
    pointer("fsGroup", T::Int64), omitted("sysctls", T::List(&T::Struct(&SYSCTL))),
    pointer("fsGroupChangePolicy", T::String), pointer("seccompProfile", T::Struct(&SECCOMP_PROFILE)),
    pointer("appArmorProfile", T::Struct(&APP_ARMOR_PROFILE)), pointer("seLinuxChangePolicy", T::String),
]);

#[rustfmt::skip]
pub(super) static POD_SPEC: Struct = Struct::new("PodSpec", &[
    omitted("volumes", T::List(&T::Struct(&VOLUME))).merge("name").retain_keys(),
    omitted("initContainers", T::List(&T::Struct(&CONTAINER))).merge("name"),
    always("containers", T::List(&T::Struct(&CONTAINER))).merge("name"),
    omitted("ephemeralContainers", T::List(&T::Struct(&EPHEMERAL_CONTAINER))).merge("name"),
    omitted("restartPolicy", T::String), pointer("terminationGracePeriodSeconds", T::Int64),
    pointer("activeDeadlineSeconds", T::Int64), omitted("dnsPolicy", T::String),
    omitted("nodeSelector", T::Map(&T::String)).atomic(), omitted("serviceAccountName", T::String),
    omitted("serviceAccount", T::String), pointer("automountServiceAccountToken", T::Bool),
    omitted("nodeName", T::String), omitted("hostNetwork", T::Bool), omitted("hostPID", T::Bool),
    omitted("hostIPC", T::Bool), pointer("shareProcessNamespace", T::Bool),
    pointer("securityContext", T::Struct(&POD_SECURITY_CONTEXT)),
    omitted("imagePullSecrets", T::List(&T::Struct(&LOCAL_OBJECT_REFERENCE))).merge("name"),
    omitted("hostname", T::String), omitted("subdomain", T::String),
    pointer("affinity", T::Struct(&AFFINITY)), omitted("schedulerName", T::String),
    omitted("tolerations", T::List(&T::Struct(&TOLERATION))),
    omitted("hostAliases", T::List(&T::Struct(&HOST_ALIAS))).merge("ip"),
    omitted("priorityClassName", T::String), pointer("priority", T::Int32),
    pointer("dnsConfig", T::Struct(&POD_DNS_CONFIG)),
    omitted("readinessGates", T::List(&T::Struct(&POD_READINESS_GATE))),
    pointer("runtimeClassName", T::String), pointer("enableServiceLinks", T::Bool),
    pointer("preemptionPolicy", T::String), omitted("overhead", T::Map(&T::Quantity)),
    omitted("topologySpreadConstraints", T::List(&T::Struct(&TOPOLOGY_SPREAD_CONSTRAINT)))
        .merge("topologyKey").keyed(&["topologyKey", "whenUnsatisfiable"]),
    pointer("setHostnameAsFQDN", T::Bool), pointer("os", T::Struct(&POD_OS)), pointer("hostUsers", T::Bool),
    omitted("schedulingGates", T::List(&T::Struct(&POD_SCHEDULING_GATE))).merge("name"),
    omitted("resourceClaims", T::List(&T::Struct(&POD_RESOURCE_CLAIM))).merge("name").retain_keys(),
    pointer("resources", T::Struct(&RESOURCE_REQUIREMENTS)), pointer("hostnameOverride", T::String),
    pointer("schedulingGroup", T::Struct(&POD_SCHEDULING_GROUP)),
]);

#[rustfmt::skip]
pub(super) static POD_STATUS: Struct = Struct::new("PodStatus", &[
    omitted("observedGeneration", T::Int64), omitted("phase", T::String),
    omitted("conditions", T::List(&T::Struct(&POD_CONDITION))).merge("type"), omitted("message", T::String),
    omitted("reason", T::String), omitted("nominatedNodeName", T::String), omitted("hostIP", T::String),
    omitted("hostIPs", T::List(&T::Struct(&HOST_IP))).merge("ip").atomic(), omitted("podIP", T::String),
    omitted("podIPs", T::List(&T::Struct(&POD_IP))).merge("ip"), pointer("startTime", T::Time),
    omitted("initContainerStatuses", T::List(&T::Struct(&CONTAINER_STATUS))),
    omitted("containerStatuses", T::List(&T::Struct(&CONTAINER_STATUS))), omitted("qosClass", T::String),
    omitted("ephemeralContainerStatuses", T::List(&T::Struct(&CONTAINER_STATUS))),
    omitted("resize", T::String),
    omitted("resourceClaimStatuses", T::List(&T::Struct(&POD_RESOURCE_CLAIM_STATUS))).merge("name").retain_keys(),
    pointer("extendedResourceClaimStatus", T::Struct(&POD_EXTENDED_RESOURCE_CLAIM_STATUS)),
    omitted("allocatedResources", T::Map(&T::Quantity)),
    pointer("resources", T::Struct(&RESOURCE_REQUIREMENTS)),
    omitted("nodeAllocatableResourceClaimStatuses", T::List(&T::Struct(&NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS))),
]);

#[rustfmt::skip]
pub(super) static PREFERRED_SCHEDULING_TERM: Struct = Struct::new("PreferredSchedulingTerm", &[
    always("weight", T::Int32), always("preference", T::Struct(&NODE_SELECTOR_TERM)),
]);

#[rustfmt::skip]
pub(super) static PROBE: Struct = Struct::new("Probe", &[
    pointer("exec", T::Struct(&EXEC_ACTION)), pointer("httpGet", T::Struct(&HTTP_GET_ACTION)),
    pointer("tcpSocket", T::Struct(&TCP_SOCKET_ACTION)), pointer("grpc", T::Struct(&GRPC_ACTION)),
    omitted("initialDelaySeconds", T::Int32), omitted("timeoutSeconds", T::Int32),
    omitted("periodSeconds", T::Int32), omitted("successThreshold", T::Int32),
    omitted("failureThreshold", T::Int32), pointer("terminationGracePeriodSeconds", T::Int64),
]);

#[rustfmt::skip]
pub(super) static RESOURCE_CLAIM: Struct = Struct::new("ResourceClaim", &[
    always("name", T::String), omitted("request", T::String),
]);

#[rustfmt::skip]
pub(super) static RESOURCE_HEALTH: Struct = Struct::new("ResourceHealth", &[
    always("resourceID", T::String), omitted("health", T::String), pointer("message", T::String),
]);

#[rustfmt::skip]
pub(super) static RESOURCE_REQUIREMENTS: Struct = Struct::new("ResourceRequirements", &[
    omitted("limits", T::Map(&T::Quantity)), omitted("requests", T::Map(&T::Quantity)),
    omitted("claims", T::List(&T::Struct(&RESOURCE_CLAIM))).keyed(&["name"]),
]);

#[rustfmt::skip]
pub(super) static RESOURCE_STATUS: Struct = Struct::new("ResourceStatus", &[
    always("name", T::String), omitted("resources", T::List(&T::Struct(&RESOURCE_HEALTH))).keyed(&["resourceID"]),
]);

#[rustfmt::skip]
pub(super) static SECCOMP_PROFILE: Struct = Struct::new("SeccompProfile", &[
    always("type", T::String), pointer("localhostProfile", T::String),
]);

#[rustfmt::skip]
pub(super) static SECRET_ENV_SOURCE: Struct = Struct::new("SecretEnvSource", &[
    omitted("name", T::String), pointer("optional", T::Bool),
]);

#[rustfmt::skip]
pub(super) static SECRET_KEY_SELECTOR: Struct = Struct::atomic("SecretKeySelector", &[
    omitted("name", T::String), always("key", T::String), pointer("optional", T::Bool),
]);

#[rustfmt::skip]
pub(super) static SECURITY_CONTEXT: Struct = Struct::new("SecurityContext", &[
    pointer("capabilities", T::Struct(&CAPABILITIES)), pointer("privileged", T::Bool),
    pointer("seLinuxOptions", T::Struct(&SE_LINUX_OPTIONS)),
    pointer("windowsOptions", T::Struct(&WINDOWS_SECURITY_CONTEXT_OPTIONS)), pointer("runAsUser", T::Int64),
    pointer("runAsGroup", T::Int64), pointer("runAsNonRoot", T::Bool),
    pointer("readOnlyRootFilesystem", T::Bool), pointer("allowPrivilegeEscalation", T::Bool),
    pointer("procMount", T::String), pointer("seccompProfile", T::Struct(&SECCOMP_PROFILE)),
    pointer("appArmorProfile", T::Struct(&APP_ARMOR_PROFILE)),
]);

#[rustfmt::skip]
pub(super) static SE_LINUX_OPTIONS: Struct = Struct::new("SELinuxOptions", &[
    omitted("user", T::String), omitted("role", T::String), omitted("type", T::String),
    omitted("level", T::String),
]);

#[rustfmt::skip]
pub(super) static SLEEP_ACTION: Struct = Struct::new("SleepAction", &[
    always("seconds", T::Int64),
]);

#[rustfmt::skip]
pub(super) static SYSCTL: Struct = Struct::new("Sysctl", &[
    always("name", T::String), always("value", T::String),
]);

#[rustfmt::skip]
pub(super) static TCP_SOCKET_ACTION: Struct = Struct::new("TCPSocketAction", &[
    always("port", T::IntOrString), omitted("host", T::String),
]);

#[rustfmt::skip]
pub(super) static TOLERATION: Struct = Struct::new("Toleration", &[
    omitted("key", T::String), omitted("operator", T::String), omitted("value", T::String),
    omitted("effect", T::String), pointer("tolerationSeconds", T::Int64),
]);

#[rustfmt::skip]
pub(super) static TOPOLOGY_SPREAD_CONSTRAINT: Struct = Struct::new("TopologySpreadConstraint", &[
    always("maxSkew", T::Int32), always("topologyKey", T::String), always("whenUnsatisfiable", T::String),
    pointer("labelSelector", T::Struct(&LABEL_SELECTOR)), pointer("minDomains", T::Int32),
    pointer("nodeAffinityPolicy", T::String), pointer("nodeTaintsPolicy", T::String),
    omitted("matchLabelKeys", T::List(&T::String)),
]);

#[rustfmt::skip]
pub(super) static VOLUME_DEVICE: Struct = Struct::new("VolumeDevice", &[
    always("name", T::String), always("devicePath", T::String),
]);

#[rustfmt::skip]
pub(super) static VOLUME_MOUNT: Struct = Struct::new("VolumeMount", &[
    always("name", T::String), omitted("readOnly", T::Bool), pointer("recursiveReadOnly", T::String),
    always("mountPath", T::String), omitted("subPath", T::String), pointer("mountPropagation", T::String),
    omitted("subPathExpr", T::String),
]);

#[rustfmt::skip]
pub(super) static VOLUME_MOUNT_STATUS: Struct = Struct::new("VolumeMountStatus", &[
    always("name", T::String), always("mountPath", T::String), omitted("readOnly", T::Bool),
    pointer("recursiveReadOnly", T::String), pointer("volumeStatus", T::Struct(&VOLUME_STATUS)),
]);

#[rustfmt::skip]
pub(super) static VOLUME_STATUS: Struct = Struct::new("VolumeStatus", &[
    pointer("image", T::Struct(&IMAGE_VOLUME_STATUS)),
]);

#[rustfmt::skip]
pub(super) static WEIGHTED_POD_AFFINITY_TERM: Struct = Struct::new("WeightedPodAffinityTerm", &[
    always("weight", T::Int32), always("podAffinityTerm", T::Struct(&POD_AFFINITY_TERM)),
]);

#[rustfmt::skip]
pub(super) static WINDOWS_SECURITY_CONTEXT_OPTIONS: Struct = Struct::new("WindowsSecurityContextOptions", &[
    pointer("gmsaCredentialSpecName", T::String), pointer("gmsaCredentialSpec", T::String),
    pointer("runAsUserName", T::String), pointer("hostProcess", T::Bool),
]);
