//! The fields of a pod spec in Kubernetes 1.30.
//!
//! SimKube 2 computed pod hashes from specs that had passed through the types of Kubernetes 1.30, so later fields did
//! not take part. This table lists the fields of those types. It is frozen: a newer Kubernetes must not change the
//! hash of an old trace. Types with the same fields share an entry.

use serde_json::Value;

/// The fields of one type, sorted, each with the type of its value if that has fields too. A list counts as its
/// elements; the keys of a map (labels, limits) are data and not fields.
struct Type(&'static [(&'static str, Option<&'static Type>)]);

impl Type {
    fn field(&self, name: &str) -> Option<Option<&'static Type>> {
        self.0.binary_search_by_key(&name, |(field, _)| field).ok().map(|at| self.0[at].1)
    }

    /// Drops what this type does not have, and null, which its absence equals.
    fn prune(&self, value: &mut Value) {
        match value {
            Value::Array(elements) => elements.iter_mut().for_each(|element| self.prune(element)),
            Value::Object(fields) => fields.retain(|name, value| match self.field(name) {
                Some(field) if !value.is_null() => {
                    if let Some(of) = field {
                        of.prune(value);
                    }
                    true
                }
                _ => false,
            }),
            _ => {}
        }
    }
}

/// Drops every field of a pod spec that Kubernetes 1.30 did not know.
pub(super) fn drop_unknown(pod_spec: &mut Value) {
    POD_SPEC.prune(pod_spec);
}

macro_rules! types {
    ($($name:ident { $($field:ident $(: $of:ident)?),* $(,)? })*) => {
        $(static $name: Type = Type(&[$((stringify!($field), types!(@of $($of)?))),*]);)*
        #[cfg(test)]
        static ALL: &[(&str, &Type)] = &[$((stringify!($name), &$name)),*];
    };
    (@of) => { None };
    (@of $of:ident) => { Some(&$of) };
}

types! {
    POD_SPEC {
        activeDeadlineSeconds, affinity: AFFINITY, automountServiceAccountToken, containers: CONTAINER,
        dnsConfig: DNS_CONFIG, dnsPolicy, enableServiceLinks, ephemeralContainers: EPHEMERAL_CONTAINER,
        hostAliases: HOST_ALIAS, hostIPC, hostNetwork, hostPID, hostUsers, hostname, imagePullSecrets: NAME,
        initContainers: CONTAINER, nodeName, nodeSelector, os: NAME, overhead, preemptionPolicy, priority,
        priorityClassName, readinessGates: READINESS_GATE, resourceClaims: POD_RESOURCE_CLAIM, restartPolicy,
        runtimeClassName, schedulerName, schedulingGates: NAME, securityContext: POD_SECURITY_CONTEXT, serviceAccount,
        serviceAccountName, setHostnameAsFQDN, shareProcessNamespace, subdomain, terminationGracePeriodSeconds,
        tolerations: TOLERATION, topologySpreadConstraints: TOPOLOGY_SPREAD_CONSTRAINT, volumes: VOLUME,
    }
    DNS_CONFIG { nameservers, options: NAME_VALUE, searches }
    HOST_ALIAS { hostnames, ip }
    NAME { name }
    NAME_VALUE { name, value }
    POD_RESOURCE_CLAIM { name, source: CLAIM_SOURCE }
    CLAIM_SOURCE { resourceClaimName, resourceClaimTemplateName }
    READINESS_GATE { conditionType }
    TOLERATION { effect, key, operator, tolerationSeconds, value }

    POD_SECURITY_CONTEXT {
        appArmorProfile: PROFILE, fsGroup, fsGroupChangePolicy, runAsGroup, runAsNonRoot, runAsUser,
        seLinuxOptions: SE_LINUX_OPTIONS, seccompProfile: PROFILE, supplementalGroups, sysctls: NAME_VALUE,
        windowsOptions: WINDOWS_OPTIONS,
    }
    PROFILE { localhostProfile, type }
    SE_LINUX_OPTIONS { level, role, type, user }
    WINDOWS_OPTIONS { gmsaCredentialSpec, gmsaCredentialSpecName, hostProcess, runAsUserName }

    AFFINITY { nodeAffinity: NODE_AFFINITY, podAffinity: POD_AFFINITY, podAntiAffinity: POD_AFFINITY }
    NODE_AFFINITY {
        preferredDuringSchedulingIgnoredDuringExecution: PREFERRED_NODE_TERM,
        requiredDuringSchedulingIgnoredDuringExecution: NODE_SELECTOR,
    }
    PREFERRED_NODE_TERM { preference: NODE_SELECTOR_TERM, weight }
    NODE_SELECTOR { nodeSelectorTerms: NODE_SELECTOR_TERM }
    NODE_SELECTOR_TERM { matchExpressions: REQUIREMENT, matchFields: REQUIREMENT }
    POD_AFFINITY {
        preferredDuringSchedulingIgnoredDuringExecution: WEIGHTED_POD_TERM,
        requiredDuringSchedulingIgnoredDuringExecution: POD_TERM,
    }
    WEIGHTED_POD_TERM { podAffinityTerm: POD_TERM, weight }
    POD_TERM {
        labelSelector: LABEL_SELECTOR, matchLabelKeys, mismatchLabelKeys, namespaceSelector: LABEL_SELECTOR, namespaces,
        topologyKey,
    }
    LABEL_SELECTOR { matchExpressions: REQUIREMENT, matchLabels }
    REQUIREMENT { key, operator, values }
    TOPOLOGY_SPREAD_CONSTRAINT {
        labelSelector: LABEL_SELECTOR, matchLabelKeys, maxSkew, minDomains, nodeAffinityPolicy, nodeTaintsPolicy,
        topologyKey, whenUnsatisfiable,
    }

    CONTAINER {
        args, command, env: ENV_VAR, envFrom: ENV_FROM, image, imagePullPolicy, lifecycle: LIFECYCLE,
        livenessProbe: PROBE, name, ports: CONTAINER_PORT, readinessProbe: PROBE, resizePolicy: RESIZE_POLICY,
        resources: RESOURCES, restartPolicy, securityContext: SECURITY_CONTEXT, startupProbe: PROBE, stdin, stdinOnce,
        terminationMessagePath, terminationMessagePolicy, tty, volumeDevices: VOLUME_DEVICE,
        volumeMounts: VOLUME_MOUNT, workingDir,
    }
    EPHEMERAL_CONTAINER {
        args, command, env: ENV_VAR, envFrom: ENV_FROM, image, imagePullPolicy, lifecycle: LIFECYCLE,
        livenessProbe: PROBE, name, ports: CONTAINER_PORT, readinessProbe: PROBE, resizePolicy: RESIZE_POLICY,
        resources: RESOURCES, restartPolicy, securityContext: SECURITY_CONTEXT, startupProbe: PROBE, stdin, stdinOnce,
        targetContainerName, terminationMessagePath, terminationMessagePolicy, tty, volumeDevices: VOLUME_DEVICE,
        volumeMounts: VOLUME_MOUNT, workingDir,
    }
    ENV_VAR { name, value, valueFrom: ENV_VAR_SOURCE }
    ENV_VAR_SOURCE {
        configMapKeyRef: KEY_SELECTOR, fieldRef: FIELD_SELECTOR, resourceFieldRef: RESOURCE_FIELD_SELECTOR,
        secretKeyRef: KEY_SELECTOR,
    }
    KEY_SELECTOR { key, name, optional }
    FIELD_SELECTOR { apiVersion, fieldPath }
    RESOURCE_FIELD_SELECTOR { containerName, divisor, resource }
    ENV_FROM { configMapRef: NAME_OPTIONAL, prefix, secretRef: NAME_OPTIONAL }
    NAME_OPTIONAL { name, optional }
    LIFECYCLE { postStart: LIFECYCLE_HANDLER, preStop: LIFECYCLE_HANDLER }
    LIFECYCLE_HANDLER { exec: EXEC, httpGet: HTTP_GET, sleep: SLEEP, tcpSocket: TCP_SOCKET }
    EXEC { command }
    HTTP_GET { host, httpHeaders: NAME_VALUE, path, port, scheme }
    SLEEP { seconds }
    TCP_SOCKET { host, port }
    PROBE {
        exec: EXEC, failureThreshold, grpc: GRPC, httpGet: HTTP_GET, initialDelaySeconds, periodSeconds,
        successThreshold, tcpSocket: TCP_SOCKET, terminationGracePeriodSeconds, timeoutSeconds,
    }
    GRPC { port, service }
    CONTAINER_PORT { containerPort, hostIP, hostPort, name, protocol }
    RESIZE_POLICY { resourceName, restartPolicy }
    RESOURCES { claims: NAME, limits, requests }
    SECURITY_CONTEXT {
        allowPrivilegeEscalation, appArmorProfile: PROFILE, capabilities: CAPABILITIES, privileged, procMount,
        readOnlyRootFilesystem, runAsGroup, runAsNonRoot, runAsUser, seLinuxOptions: SE_LINUX_OPTIONS,
        seccompProfile: PROFILE, windowsOptions: WINDOWS_OPTIONS,
    }
    CAPABILITIES { add, drop }
    VOLUME_DEVICE { devicePath, name }
    VOLUME_MOUNT { mountPath, mountPropagation, name, readOnly, recursiveReadOnly, subPath, subPathExpr }

    VOLUME {
        awsElasticBlockStore: CLOUD_DISK, azureDisk: AZURE_DISK, azureFile: AZURE_FILE, cephfs: CEPHFS, cinder: CINDER,
        configMap: CONFIG_MAP_VOLUME, csi: CSI, downwardAPI: DOWNWARD_API_VOLUME, emptyDir: EMPTY_DIR,
        ephemeral: EPHEMERAL, fc: FC, flexVolume: FLEX, flocker: FLOCKER, gcePersistentDisk: GCE_DISK,
        gitRepo: GIT_REPO, glusterfs: GLUSTERFS, hostPath: HOST_PATH, iscsi: ISCSI, name, nfs: NFS,
        persistentVolumeClaim: CLAIM, photonPersistentDisk: PHOTON, portworxVolume: PORTWORX, projected: PROJECTED,
        quobyte: QUOBYTE, rbd: RBD, scaleIO: SCALE_IO, secret: SECRET_VOLUME, storageos: STORAGE_OS,
        vsphereVolume: VSPHERE,
    }
    CLOUD_DISK { fsType, partition, readOnly, volumeID }
    AZURE_DISK { cachingMode, diskName, diskURI, fsType, kind, readOnly }
    AZURE_FILE { readOnly, secretName, shareName }
    CEPHFS { monitors, path, readOnly, secretFile, secretRef: NAME, user }
    CINDER { fsType, readOnly, secretRef: NAME, volumeID }
    CONFIG_MAP_VOLUME { defaultMode, items: KEY_TO_PATH, name, optional }
    KEY_TO_PATH { key, mode, path }
    CSI { driver, fsType, nodePublishSecretRef: NAME, readOnly, volumeAttributes }
    DOWNWARD_API_VOLUME { defaultMode, items: DOWNWARD_API_FILE }
    DOWNWARD_API_FILE { fieldRef: FIELD_SELECTOR, mode, path, resourceFieldRef: RESOURCE_FIELD_SELECTOR }
    EMPTY_DIR { medium, sizeLimit }
    EPHEMERAL { volumeClaimTemplate: CLAIM_TEMPLATE }
    CLAIM_TEMPLATE { metadata: OBJECT_META, spec: CLAIM_SPEC }
    OBJECT_META {
        annotations, creationTimestamp, deletionGracePeriodSeconds, deletionTimestamp, finalizers, generateName,
        generation, labels, managedFields: MANAGED_FIELDS, name, namespace, ownerReferences: OWNER_REFERENCE,
        resourceVersion, selfLink, uid,
    }
    MANAGED_FIELDS { apiVersion, fieldsType, fieldsV1, manager, operation, subresource, time }
    OWNER_REFERENCE { apiVersion, blockOwnerDeletion, controller, kind, name, uid }
    CLAIM_SPEC {
        accessModes, dataSource: LOCAL_REFERENCE, dataSourceRef: REFERENCE, resources: CLAIM_RESOURCES,
        selector: LABEL_SELECTOR, storageClassName, volumeAttributesClassName, volumeMode, volumeName,
    }
    LOCAL_REFERENCE { apiGroup, kind, name }
    REFERENCE { apiGroup, kind, name, namespace }
    CLAIM_RESOURCES { limits, requests }
    FC { fsType, lun, readOnly, targetWWNs, wwids }
    FLEX { driver, fsType, options, readOnly, secretRef: NAME }
    FLOCKER { datasetName, datasetUUID }
    GCE_DISK { fsType, partition, pdName, readOnly }
    GIT_REPO { directory, repository, revision }
    GLUSTERFS { endpoints, path, readOnly }
    HOST_PATH { path, type }
    ISCSI {
        chapAuthDiscovery, chapAuthSession, fsType, initiatorName, iqn, iscsiInterface, lun, portals, readOnly,
        secretRef: NAME, targetPortal,
    }
    NFS { path, readOnly, server }
    CLAIM { claimName, readOnly }
    PHOTON { fsType, pdID }
    PORTWORX { fsType, readOnly, volumeID }
    PROJECTED { defaultMode, sources: PROJECTION }
    PROJECTION {
        clusterTrustBundle: TRUST_BUNDLE, configMap: ITEMS_PROJECTION, downwardAPI: DOWNWARD_API_PROJECTION,
        secret: ITEMS_PROJECTION, serviceAccountToken: TOKEN_PROJECTION,
    }
    TRUST_BUNDLE { labelSelector: LABEL_SELECTOR, name, optional, path, signerName }
    ITEMS_PROJECTION { items: KEY_TO_PATH, name, optional }
    DOWNWARD_API_PROJECTION { items: DOWNWARD_API_FILE }
    TOKEN_PROJECTION { audience, expirationSeconds, path }
    QUOBYTE { group, readOnly, registry, tenant, user, volume }
    RBD { fsType, image, keyring, monitors, pool, readOnly, secretRef: NAME, user }
    SCALE_IO {
        fsType, gateway, protectionDomain, readOnly, secretRef: NAME, sslEnabled, storageMode, storagePool, system,
        volumeName,
    }
    SECRET_VOLUME { defaultMode, items: KEY_TO_PATH, optional, secretName }
    STORAGE_OS { fsType, readOnly, secretRef: NAME, volumeName, volumeNamespace }
    VSPHERE { fsType, storagePolicyID, storagePolicyName, volumePath }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_type_lists_its_fields_sorted_and_once() {
        for (name, of) in ALL {
            assert!(of.0.is_sorted_by(|(a, _), (b, _)| a < b), "{name}");
        }
    }

    #[test]
    fn fields_born_after_1_30_are_dropped_at_any_depth_and_null_is_absence() {
        let mut spec = json!({
            "resources": {"limits": {"cpu": "1"}},
            "hostname": null,
            "containers": [{"name": "a", "resources": {"claims": [{"name": "gpu", "request": "one"}]}}],
            "volumes": [{"name": "code", "image": {"reference": "registry/code"}}],
            "nodeSelector": {"any": "label"},
        });
        drop_unknown(&mut spec);
        let known = json!({
            "containers": [{"name": "a", "resources": {"claims": [{"name": "gpu"}]}}],
            "volumes": [{"name": "code"}],
            "nodeSelector": {"any": "label"},
        });
        assert_eq!(spec, known);
    }
}
