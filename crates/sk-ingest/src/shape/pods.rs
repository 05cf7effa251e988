//! Pods and pod templates: the fields that placement and lifecycles need are kept.
//!
//! Kept are names, images, quantities, ports, selectors, affinities, tolerations, priorities, references to other
//! objects and all enums. What a process receives (commands, arguments, environment, headers, paths) is hashed.

use super::{HIDE, Rule, Shape};
use crate::privacy::Spelling;

const NAME: Rule = Rule::Hide(Spelling::Name);
const PATH: Rule = Rule::Hide(Spelling::Path);
const ADDRESS: Rule = Rule::Hide(Spelling::Address);

const fn shape(keep: &'static [&'static str], inside: &'static [(&'static str, Rule)]) -> Shape {
    Shape { keep, inside, rest: HIDE }
}

pub(crate) static POD_TEMPLATE: Shape =
    shape(&[], &[("metadata", Rule::Of(&TEMPLATE_META)), ("spec", Rule::Of(&POD_SPEC))]);

pub(super) static TEMPLATE_META: Shape = shape(
    &["creationTimestamp", "finalizers", "generateName", "labels", "name", "namespace", "ownerReferences"],
    &[("annotations", Rule::Annotations)],
);

pub(super) static POD_SPEC: Shape = shape(
    &[
        "affinity",
        "dnsPolicy",
        "hostname",
        "imagePullSecrets",
        "nodeName",
        "nodeSelector",
        "os",
        "overhead",
        "preemptionPolicy",
        "priorityClassName",
        "readinessGates",
        "resourceClaims",
        "resources",
        "restartPolicy",
        "runtimeClassName",
        "schedulerName",
        "schedulingGates",
        "schedulingGroup",
        "serviceAccount",
        "serviceAccountName",
        "subdomain",
        "tolerations",
        "topologySpreadConstraints",
        "workloadRef",
    ],
    &[
        ("containers", Rule::Of(&CONTAINER)),
        ("dnsConfig", Rule::Of(&DNS_CONFIG)),
        ("ephemeralContainers", Rule::Of(&CONTAINER)),
        ("hostAliases", Rule::Of(&HOST_ALIAS)),
        ("hostnameOverride", NAME),
        ("initContainers", Rule::Of(&CONTAINER)),
        ("securityContext", Rule::Of(&SECURITY_CONTEXT)),
        ("volumes", Rule::Of(&VOLUME)),
    ],
);

/// A pod of its own: as a template, and without the node that the scheduler chose.
pub(super) static BARE_POD_SPEC: Shape =
    Shape { keep: &[], inside: &[("nodeName", Rule::Drop)], rest: Rule::Like(&POD_SPEC) };

static CONTAINER: Shape = shape(
    &[
        "envFrom",
        "image",
        "imagePullPolicy",
        "name",
        "resizePolicy",
        "resources",
        "restartPolicy",
        "restartPolicyRules",
        "targetContainerName",
        "terminationMessagePolicy",
    ],
    &[
        ("env", Rule::Of(&ENV)),
        ("lifecycle", Rule::Of(&LIFECYCLE)),
        ("livenessProbe", Rule::Of(&ACTION)),
        ("ports", Rule::Of(&PORT)),
        ("readinessProbe", Rule::Of(&ACTION)),
        ("securityContext", Rule::Of(&SECURITY_CONTEXT)),
        ("startupProbe", Rule::Of(&ACTION)),
        ("terminationMessagePath", PATH),
        ("volumeDevices", Rule::Of(&MOUNT)),
        ("volumeMounts", Rule::Of(&MOUNT)),
        ("workingDir", PATH),
    ],
);

static ENV: Shape = shape(&["name"], &[("valueFrom", Rule::Of(&ENV_SOURCE))]);
static ENV_SOURCE: Shape =
    shape(&["configMapKeyRef", "fieldRef", "resourceFieldRef", "secretKeyRef"], &[("fileKeyRef", Rule::Of(&FILE_KEY))]);
static FILE_KEY: Shape = shape(&["key", "volumeName"], &[("path", NAME)]);
static PORT: Shape = shape(&["name", "protocol"], &[("hostIP", ADDRESS)]);
static MOUNT: Shape = shape(
    &["mountPropagation", "name", "recursiveReadOnly"],
    &[("devicePath", PATH), ("mountPath", PATH), ("subPath", NAME), ("subPathExpr", NAME)],
);
static LIFECYCLE: Shape = shape(&["stopSignal"], &[("postStart", Rule::Of(&ACTION)), ("preStop", Rule::Of(&ACTION))]);

/// A probe or a lifecycle's hook: when and where, but not what.
static ACTION: Shape = shape(&[], &[("httpGet", Rule::Of(&HTTP_GET)), ("tcpSocket", Rule::Of(&TCP_SOCKET))]);
static HTTP_GET: Shape =
    shape(&["port", "scheme"], &[("httpHeaders", Rule::Of(&HTTP_HEADER)), ("path", PATH), ("host", NAME)]);
static HTTP_HEADER: Shape = shape(&[], &[("name", NAME)]);
static TCP_SOCKET: Shape = shape(&["port"], &[("host", NAME)]);

/// Of a pod or a container.
static SECURITY_CONTEXT: Shape = shape(
    &["capabilities", "fsGroupChangePolicy", "procMount", "seLinuxChangePolicy", "supplementalGroupsPolicy"],
    &[("appArmorProfile", Rule::Of(&PROFILE)), ("seccompProfile", Rule::Of(&PROFILE)), ("sysctls", Rule::Of(&NAMED))],
);
static PROFILE: Shape = shape(&["type"], &[("localhostProfile", NAME)]);
static NAMED: Shape = shape(&["name"], &[]);
static DNS_CONFIG: Shape = shape(&[], &[("nameservers", ADDRESS), ("options", Rule::Of(&NAMED)), ("searches", NAME)]);
static HOST_ALIAS: Shape = shape(&[], &[("hostnames", NAME), ("ip", ADDRESS)]);

static VOLUME: Shape = shape(
    &["emptyDir", "name", "persistentVolumeClaim"],
    &[
        ("configMap", Rule::Of(&FILES)),
        ("csi", Rule::Of(&CSI)),
        ("downwardAPI", Rule::Of(&FILES)),
        ("ephemeral", Rule::Of(&EPHEMERAL)),
        ("hostPath", Rule::Of(&HOST_PATH)),
        ("image", Rule::Of(&IMAGE)),
        ("nfs", Rule::Of(&NFS)),
        ("projected", Rule::Of(&PROJECTED)),
        ("secret", Rule::Of(&FILES)),
    ],
);

/// Files made of a ConfigMap, a Secret, the pod itself, a token or a bundle of certificates.
static FILES: Shape =
    shape(&["labelSelector", "name", "secretName", "signerName"], &[("items", Rule::Of(&FILE)), ("path", NAME)]);
static FILE: Shape = shape(&["fieldRef", "key", "resourceFieldRef"], &[("path", NAME)]);
static PROJECTED: Shape = shape(&[], &[("sources", Rule::Of(&PROJECTED_SOURCE))]);
static PROJECTED_SOURCE: Shape = shape(
    &[],
    &[
        ("clusterTrustBundle", Rule::Of(&FILES)),
        ("configMap", Rule::Of(&FILES)),
        ("downwardAPI", Rule::Of(&FILES)),
        ("secret", Rule::Of(&FILES)),
        ("serviceAccountToken", Rule::Of(&FILES)),
    ],
);
pub(super) static CSI: Shape = shape(&["driver", "fsType", "nodePublishSecretRef"], &[]);
static HOST_PATH: Shape = shape(&["type"], &[("path", PATH)]);
static IMAGE: Shape = shape(&["pullPolicy", "reference"], &[]);
static NFS: Shape = shape(&[], &[("path", PATH), ("server", NAME)]);
static EPHEMERAL: Shape = shape(&[], &[("volumeClaimTemplate", Rule::Of(&CLAIM))]);

/// A PersistentVolumeClaim inside another object.
pub(super) static CLAIM: Shape = shape(
    &["apiVersion", "kind", "status"],
    &[("metadata", Rule::Of(&TEMPLATE_META)), ("spec", Rule::Of(&CLAIM_SPEC))],
);
pub(super) static CLAIM_SPEC: Shape = shape(
    &[
        "accessModes",
        "dataSource",
        "dataSourceRef",
        "resources",
        "selector",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
        "volumeName",
    ],
    &[],
);
