//! Type table: volumes, PersistentVolumes, PersistentVolumeClaims and their sources (`k8s.io/api/core/v1`, 1.36).

use super::meta::{LABEL_SELECTOR, OBJECT_META};
use super::{Struct, Type as T, always, nullable, omitted, pointer};

#[rustfmt::skip]
pub(super) static AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE: Struct = Struct::new("AWSElasticBlockStoreVolumeSource", &[
    always("volumeID", T::String), omitted("fsType", T::String), omitted("partition", T::Int32),
    omitted("readOnly", T::Bool),
]);

#[rustfmt::skip]
pub(super) static AZURE_DISK_VOLUME_SOURCE: Struct = Struct::new("AzureDiskVolumeSource", &[
    always("diskName", T::String), always("diskURI", T::String), pointer("cachingMode", T::String),
    pointer("fsType", T::String), pointer("readOnly", T::Bool), pointer("kind", T::String),
]);

#[rustfmt::skip]
pub(super) static AZURE_FILE_PERSISTENT_VOLUME_SOURCE: Struct = Struct::new("AzureFilePersistentVolumeSource", &[
    always("secretName", T::String), always("shareName", T::String), omitted("readOnly", T::Bool),
    nullable("secretNamespace", T::String),
]);

#[rustfmt::skip]
pub(super) static AZURE_FILE_VOLUME_SOURCE: Struct = Struct::new("AzureFileVolumeSource", &[
    always("secretName", T::String), always("shareName", T::String), omitted("readOnly", T::Bool),
]);

#[rustfmt::skip]
pub(super) static CEPH_FS_PERSISTENT_VOLUME_SOURCE: Struct = Struct::new("CephFSPersistentVolumeSource", &[
    always("monitors", T::List(&T::String)), omitted("path", T::String), omitted("user", T::String),
    omitted("secretFile", T::String), pointer("secretRef", T::Struct(&SECRET_REFERENCE)),
    omitted("readOnly", T::Bool),
]);

#[rustfmt::skip]
pub(super) static CEPH_FS_VOLUME_SOURCE: Struct = Struct::new("CephFSVolumeSource", &[
    always("monitors", T::List(&T::String)), omitted("path", T::String), omitted("user", T::String),
    omitted("secretFile", T::String), pointer("secretRef", T::Struct(&LOCAL_OBJECT_REFERENCE)),
    omitted("readOnly", T::Bool),
]);

#[rustfmt::skip]
pub(super) static CINDER_PERSISTENT_VOLUME_SOURCE: Struct = Struct::new("CinderPersistentVolumeSource", &[
    always("volumeID", T::String), omitted("fsType", T::String), omitted("readOnly", T::Bool),
    pointer("secretRef", T::Struct(&SECRET_REFERENCE)),
]);

#[rustfmt::skip]
pub(super) static CINDER_VOLUME_SOURCE: Struct = Struct::new("CinderVolumeSource", &[
    always("volumeID", T::String), omitted("fsType", T::String), omitted("readOnly", T::Bool),
    pointer("secretRef", T::Struct(&LOCAL_OBJECT_REFERENCE)),
]);

#[rustfmt::skip]
pub(super) static CLUSTER_TRUST_BUNDLE_PROJECTION: Struct = Struct::new("ClusterTrustBundleProjection", &[
    pointer("name", T::String), pointer("signerName", T::String),
    pointer("labelSelector", T::Struct(&LABEL_SELECTOR)), pointer("optional", T::Bool),
    always("path", T::String),
]);

#[rustfmt::skip]
pub(super) static CONFIG_MAP_PROJECTION: Struct = Struct::new("ConfigMapProjection", &[
    omitted("name", T::String), omitted("items", T::List(&T::Struct(&KEY_TO_PATH))),
    pointer("optional", T::Bool),
]);

#[rustfmt::skip]
pub(super) static CONFIG_MAP_VOLUME_SOURCE: Struct = Struct::new("ConfigMapVolumeSource", &[
    omitted("name", T::String), omitted("items", T::List(&T::Struct(&KEY_TO_PATH))),
    pointer("defaultMode", T::Int32), pointer("optional", T::Bool),
]);

#[rustfmt::skip]
pub(super) static CSI_PERSISTENT_VOLUME_SOURCE: Struct = Struct::new("CSIPersistentVolumeSource", &[
    always("driver", T::String), always("volumeHandle", T::String), omitted("readOnly", T::Bool),
    omitted("fsType", T::String), omitted("volumeAttributes", T::Map(&T::String)),
    pointer("controllerPublishSecretRef", T::Struct(&SECRET_REFERENCE)),
    pointer("nodeStageSecretRef", T::Struct(&SECRET_REFERENCE)),
    pointer("nodePublishSecretRef", T::Struct(&SECRET_REFERENCE)),
    pointer("controllerExpandSecretRef", T::Struct(&SECRET_REFERENCE)),
    pointer("nodeExpandSecretRef", T::Struct(&SECRET_REFERENCE)),
]);

#[rustfmt::skip]
pub(super) static CSI_VOLUME_SOURCE: Struct = Struct::new("CSIVolumeSource", &[
    always("driver", T::String), pointer("readOnly", T::Bool), pointer("fsType", T::String),
    omitted("volumeAttributes", T::Map(&T::String)),
    pointer("nodePublishSecretRef", T::Struct(&LOCAL_OBJECT_REFERENCE)),
]);

#[rustfmt::skip]
pub(super) static DOWNWARD_API_PROJECTION: Struct = Struct::new("DownwardAPIProjection", &[
    omitted("items", T::List(&T::Struct(&DOWNWARD_API_VOLUME_FILE))),
]);

#[rustfmt::skip]
pub(super) static DOWNWARD_API_VOLUME_FILE: Struct = Struct::new("DownwardAPIVolumeFile", &[
    always("path", T::String), pointer("fieldRef", T::Struct(&OBJECT_FIELD_SELECTOR)),
    pointer("resourceFieldRef", T::Struct(&RESOURCE_FIELD_SELECTOR)), pointer("mode", T::Int32),
]);

#[rustfmt::skip]
pub(super) static DOWNWARD_API_VOLUME_SOURCE: Struct = Struct::new("DownwardAPIVolumeSource", &[
    omitted("items", T::List(&T::Struct(&DOWNWARD_API_VOLUME_FILE))), pointer("defaultMode", T::Int32),
]);

#[rustfmt::skip]
pub(super) static EMPTY_DIR_VOLUME_SOURCE: Struct = Struct::new("EmptyDirVolumeSource", &[
    omitted("medium", T::String), pointer("sizeLimit", T::Quantity),
]);

#[rustfmt::skip]
pub(super) static EPHEMERAL_VOLUME_SOURCE: Struct = Struct::new("EphemeralVolumeSource", &[
    pointer("volumeClaimTemplate", T::Struct(&PERSISTENT_VOLUME_CLAIM_TEMPLATE)),
]);

#[rustfmt::skip]
pub(super) static FC_VOLUME_SOURCE: Struct = Struct::new("FCVolumeSource", &[
    omitted("targetWWNs", T::List(&T::String)), pointer("lun", T::Int32), omitted("fsType", T::String),
    omitted("readOnly", T::Bool), omitted("wwids", T::List(&T::String)),
]);

#[rustfmt::skip]
pub(super) static FLEX_PERSISTENT_VOLUME_SOURCE: Struct = Struct::new("FlexPersistentVolumeSource", &[
    always("driver", T::String), omitted("fsType", T::String),
    pointer("secretRef", T::Struct(&SECRET_REFERENCE)), omitted("readOnly", T::Bool),
    omitted("options", T::Map(&T::String)),
]);

#[rustfmt::skip]
pub(super) static FLEX_VOLUME_SOURCE: Struct = Struct::new("FlexVolumeSource", &[
    always("driver", T::String), omitted("fsType", T::String),
    pointer("secretRef", T::Struct(&LOCAL_OBJECT_REFERENCE)), omitted("readOnly", T::Bool),
    omitted("options", T::Map(&T::String)),
]);

#[rustfmt::skip]
pub(super) static FLOCKER_VOLUME_SOURCE: Struct = Struct::new("FlockerVolumeSource", &[
    omitted("datasetName", T::String), omitted("datasetUUID", T::String),
]);

#[rustfmt::skip]
pub(super) static GCE_PERSISTENT_DISK_VOLUME_SOURCE: Struct = Struct::new("GCEPersistentDiskVolumeSource", &[
    always("pdName", T::String), omitted("fsType", T::String), omitted("partition", T::Int32),
    omitted("readOnly", T::Bool),
]);

#[rustfmt::skip]
pub(super) static GIT_REPO_VOLUME_SOURCE: Struct = Struct::new("GitRepoVolumeSource", &[
    always("repository", T::String), omitted("revision", T::String), omitted("directory", T::String),
]);

#[rustfmt::skip]
pub(super) static GLUSTERFS_PERSISTENT_VOLUME_SOURCE: Struct = Struct::new("GlusterfsPersistentVolumeSource", &[
    always("endpoints", T::String), always("path", T::String), omitted("readOnly", T::Bool),
    pointer("endpointsNamespace", T::String),
]);

#[rustfmt::skip]
pub(super) static GLUSTERFS_VOLUME_SOURCE: Struct = Struct::new("GlusterfsVolumeSource", &[
    always("endpoints", T::String), always("path", T::String), omitted("readOnly", T::Bool),
]);

#[rustfmt::skip]
pub(super) static HOST_PATH_VOLUME_SOURCE: Struct = Struct::new("HostPathVolumeSource", &[
    always("path", T::String), pointer("type", T::String),
]);

#[rustfmt::skip]
pub(super) static IMAGE_VOLUME_SOURCE: Struct = Struct::new("ImageVolumeSource", &[
    omitted("reference", T::String), omitted("pullPolicy", T::String),
]);

#[rustfmt::skip]
pub(super) static ISCSI_PERSISTENT_VOLUME_SOURCE: Struct = Struct::new("ISCSIPersistentVolumeSource", &[
    always("targetPortal", T::String), always("iqn", T::String), always("lun", T::Int32),
    omitted("iscsiInterface", T::String), omitted("fsType", T::String), omitted("readOnly", T::Bool),
    omitted("portals", T::List(&T::String)), omitted("chapAuthDiscovery", T::Bool),
    omitted("chapAuthSession", T::Bool), pointer("secretRef", T::Struct(&SECRET_REFERENCE)),
    pointer("initiatorName", T::String),
]);

#[rustfmt::skip]
pub(super) static ISCSI_VOLUME_SOURCE: Struct = Struct::new("ISCSIVolumeSource", &[
    always("targetPortal", T::String), always("iqn", T::String), always("lun", T::Int32),
    omitted("iscsiInterface", T::String), omitted("fsType", T::String), omitted("readOnly", T::Bool),
    omitted("portals", T::List(&T::String)), omitted("chapAuthDiscovery", T::Bool),
    omitted("chapAuthSession", T::Bool), pointer("secretRef", T::Struct(&LOCAL_OBJECT_REFERENCE)),
    pointer("initiatorName", T::String),
]);

#[rustfmt::skip]
pub(super) static KEY_TO_PATH: Struct = Struct::new("KeyToPath", &[
    always("key", T::String), always("path", T::String), pointer("mode", T::Int32),
]);

#[rustfmt::skip]
pub(super) static LOCAL_OBJECT_REFERENCE: Struct = Struct::atomic("LocalObjectReference", &[
    omitted("name", T::String),
]);

#[rustfmt::skip]
pub(super) static LOCAL_VOLUME_SOURCE: Struct = Struct::new("LocalVolumeSource", &[
    always("path", T::String), pointer("fsType", T::String),
]);

#[rustfmt::skip]
pub(super) static NFS_VOLUME_SOURCE: Struct = Struct::new("NFSVolumeSource", &[
    always("server", T::String), always("path", T::String), omitted("readOnly", T::Bool),
]);

#[rustfmt::skip]
pub(super) static NODE_SELECTOR: Struct = Struct::atomic("NodeSelector", &[
    always("nodeSelectorTerms", T::List(&T::Struct(&NODE_SELECTOR_TERM))),
]);

#[rustfmt::skip]
pub(super) static NODE_SELECTOR_REQUIREMENT: Struct = Struct::new("NodeSelectorRequirement", &[
    always("key", T::String), always("operator", T::String), omitted("values", T::List(&T::String)),
]);

#[rustfmt::skip]
pub(super) static NODE_SELECTOR_TERM: Struct = Struct::atomic("NodeSelectorTerm", &[
    omitted("matchExpressions", T::List(&T::Struct(&NODE_SELECTOR_REQUIREMENT))),
    omitted("matchFields", T::List(&T::Struct(&NODE_SELECTOR_REQUIREMENT))),
]);

#[rustfmt::skip]
pub(super) static OBJECT_FIELD_SELECTOR: Struct = Struct::atomic("ObjectFieldSelector", &[
    omitted("apiVersion", T::String), always("fieldPath", T::String),
]);

#[rustfmt::skip]
pub(super) static OBJECT_REFERENCE: Struct = Struct::atomic("ObjectReference", &[
    omitted("kind", T::String), omitted("namespace", T::String), omitted("name", T::String),
    omitted("uid", T::String), omitted("apiVersion", T::String), omitted("resourceVersion", T::String),
    omitted("fieldPath", T::String),
]);

#[rustfmt::skip]
pub(super) static PERSISTENT_VOLUME_CLAIM_SPEC: Struct = Struct::new("PersistentVolumeClaimSpec", &[
    omitted("accessModes", T::List(&T::String)), pointer("selector", T::Struct(&LABEL_SELECTOR)),
    always("resources", T::Struct(&VOLUME_RESOURCE_REQUIREMENTS)), omitted("volumeName", T::String),
    pointer("storageClassName", T::String), pointer("volumeMode", T::String),
    pointer("dataSource", T::Struct(&TYPED_LOCAL_OBJECT_REFERENCE)),
    pointer("dataSourceRef", T::Struct(&TYPED_OBJECT_REFERENCE)),
    pointer("volumeAttributesClassName", T::String),
]);

#[rustfmt::skip]
pub(super) static PERSISTENT_VOLUME_CLAIM_TEMPLATE: Struct = Struct::new("PersistentVolumeClaimTemplate", &[
    always("metadata", T::Struct(&OBJECT_META)), always("spec", T::Struct(&PERSISTENT_VOLUME_CLAIM_SPEC)),
]);

#[rustfmt::skip]
pub(super) static PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE: Struct = Struct::new("PersistentVolumeClaimVolumeSource", &[
    always("claimName", T::String), omitted("readOnly", T::Bool),
]);

#[rustfmt::skip]
pub(super) static PERSISTENT_VOLUME_SPEC: Struct = Struct::new("PersistentVolumeSpec", &[
    omitted("capacity", T::Map(&T::Quantity)),
    pointer("gcePersistentDisk", T::Struct(&GCE_PERSISTENT_DISK_VOLUME_SOURCE)),
    pointer("awsElasticBlockStore", T::Struct(&AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE)),
    pointer("hostPath", T::Struct(&HOST_PATH_VOLUME_SOURCE)),
    pointer("glusterfs", T::Struct(&GLUSTERFS_PERSISTENT_VOLUME_SOURCE)),
    pointer("nfs", T::Struct(&NFS_VOLUME_SOURCE)), pointer("rbd", T::Struct(&RBD_PERSISTENT_VOLUME_SOURCE)),
    pointer("iscsi", T::Struct(&ISCSI_PERSISTENT_VOLUME_SOURCE)),
    pointer("cinder", T::Struct(&CINDER_PERSISTENT_VOLUME_SOURCE)),
    pointer("cephfs", T::Struct(&CEPH_FS_PERSISTENT_VOLUME_SOURCE)),
    pointer("fc", T::Struct(&FC_VOLUME_SOURCE)), pointer("flocker", T::Struct(&FLOCKER_VOLUME_SOURCE)),
    pointer("flexVolume", T::Struct(&FLEX_PERSISTENT_VOLUME_SOURCE)),
    pointer("azureFile", T::Struct(&AZURE_FILE_PERSISTENT_VOLUME_SOURCE)),
    pointer("vsphereVolume", T::Struct(&VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE)),
    pointer("quobyte", T::Struct(&QUOBYTE_VOLUME_SOURCE)),
    pointer("azureDisk", T::Struct(&AZURE_DISK_VOLUME_SOURCE)),
    pointer("photonPersistentDisk", T::Struct(&PHOTON_PERSISTENT_DISK_VOLUME_SOURCE)),
    pointer("portworxVolume", T::Struct(&PORTWORX_VOLUME_SOURCE)),
    pointer("scaleIO", T::Struct(&SCALE_IO_PERSISTENT_VOLUME_SOURCE)),
    pointer("local", T::Struct(&LOCAL_VOLUME_SOURCE)),
    pointer("storageos", T::Struct(&STORAGE_OS_PERSISTENT_VOLUME_SOURCE)),
    pointer("csi", T::Struct(&CSI_PERSISTENT_VOLUME_SOURCE)), omitted("accessModes", T::List(&T::String)),
    pointer("claimRef", T::Struct(&OBJECT_REFERENCE)).granular(), omitted("persistentVolumeReclaimPolicy", T::String),
    omitted("storageClassName", T::String), omitted("mountOptions", T::List(&T::String)),
    pointer("volumeMode", T::String), pointer("nodeAffinity", T::Struct(&VOLUME_NODE_AFFINITY)),
    pointer("volumeAttributesClassName", T::String),
]);

#[rustfmt::skip]
pub(super) static PHOTON_PERSISTENT_DISK_VOLUME_SOURCE: Struct = Struct::new("PhotonPersistentDiskVolumeSource", &[
    always("pdID", T::String), omitted("fsType", T::String),
]);

#[rustfmt::skip]
pub(super) static POD_CERTIFICATE_PROJECTION: Struct = Struct::new("PodCertificateProjection", &[
    omitted("signerName", T::String), omitted("keyType", T::String),
    pointer("maxExpirationSeconds", T::Int32), omitted("credentialBundlePath", T::String),
    omitted("keyPath", T::String), omitted("certificateChainPath", T::String),
    omitted("userAnnotations", T::Map(&T::String)),
]);

#[rustfmt::skip]
pub(super) static PORTWORX_VOLUME_SOURCE: Struct = Struct::new("PortworxVolumeSource", &[
    always("volumeID", T::String), omitted("fsType", T::String), omitted("readOnly", T::Bool),
]);

#[rustfmt::skip]
pub(super) static PROJECTED_VOLUME_SOURCE: Struct = Struct::new("ProjectedVolumeSource", &[
    always("sources", T::List(&T::Struct(&VOLUME_PROJECTION))), pointer("defaultMode", T::Int32),
]);

#[rustfmt::skip]
pub(super) static QUOBYTE_VOLUME_SOURCE: Struct = Struct::new("QuobyteVolumeSource", &[
    always("registry", T::String), always("volume", T::String), omitted("readOnly", T::Bool),
    omitted("user", T::String), omitted("group", T::String), omitted("tenant", T::String),
]);

#[rustfmt::skip]
pub(super) static RBD_PERSISTENT_VOLUME_SOURCE: Struct = Struct::new("RBDPersistentVolumeSource", &[
    always("monitors", T::List(&T::String)), always("image", T::String), omitted("fsType", T::String),
    omitted("pool", T::String), omitted("user", T::String), omitted("keyring", T::String),
    pointer("secretRef", T::Struct(&SECRET_REFERENCE)), omitted("readOnly", T::Bool),
]);

#[rustfmt::skip]
pub(super) static RBD_VOLUME_SOURCE: Struct = Struct::new("RBDVolumeSource", &[
    always("monitors", T::List(&T::String)), always("image", T::String), omitted("fsType", T::String),
    omitted("pool", T::String), omitted("user", T::String), omitted("keyring", T::String),
    pointer("secretRef", T::Struct(&LOCAL_OBJECT_REFERENCE)), omitted("readOnly", T::Bool),
]);

#[rustfmt::skip]
pub(super) static RESOURCE_FIELD_SELECTOR: Struct = Struct::atomic("ResourceFieldSelector", &[
    omitted("containerName", T::String), always("resource", T::String), always("divisor", T::Quantity),
]);

#[rustfmt::skip]
pub(super) static SCALE_IO_PERSISTENT_VOLUME_SOURCE: Struct = Struct::new("ScaleIOPersistentVolumeSource", &[
    always("gateway", T::String), always("system", T::String),
    nullable("secretRef", T::Struct(&SECRET_REFERENCE)), omitted("sslEnabled", T::Bool),
    omitted("protectionDomain", T::String), omitted("storagePool", T::String),
    omitted("storageMode", T::String), omitted("volumeName", T::String), omitted("fsType", T::String),
    omitted("readOnly", T::Bool),
]);

#[rustfmt::skip]
pub(super) static SCALE_IO_VOLUME_SOURCE: Struct = Struct::new("ScaleIOVolumeSource", &[
    always("gateway", T::String), always("system", T::String),
    nullable("secretRef", T::Struct(&LOCAL_OBJECT_REFERENCE)), omitted("sslEnabled", T::Bool),
    omitted("protectionDomain", T::String), omitted("storagePool", T::String),
    omitted("storageMode", T::String), omitted("volumeName", T::String), omitted("fsType", T::String),
    omitted("readOnly", T::Bool),
]);

#[rustfmt::skip]
pub(super) static SECRET_PROJECTION: Struct = Struct::new("SecretProjection", &[
    omitted("name", T::String), omitted("items", T::List(&T::Struct(&KEY_TO_PATH))),
    pointer("optional", T::Bool),
]);

#[rustfmt::skip]
pub(super) static SECRET_REFERENCE: Struct = Struct::atomic("SecretReference", &[
    omitted("name", T::String), omitted("namespace", T::String),
]);

#[rustfmt::skip]
pub(super) static SECRET_VOLUME_SOURCE: Struct = Struct::new("SecretVolumeSource", &[
    omitted("secretName", T::String), omitted("items", T::List(&T::Struct(&KEY_TO_PATH))),
    pointer("defaultMode", T::Int32), pointer("optional", T::Bool),
]);

#[rustfmt::skip]
pub(super) static SERVICE_ACCOUNT_TOKEN_PROJECTION: Struct = Struct::new("ServiceAccountTokenProjection", &[
    omitted("audience", T::String), pointer("expirationSeconds", T::Int64), always("path", T::String),
]);

#[rustfmt::skip]
pub(super) static STORAGE_OS_PERSISTENT_VOLUME_SOURCE: Struct = Struct::new("StorageOSPersistentVolumeSource", &[
    omitted("volumeName", T::String), omitted("volumeNamespace", T::String), omitted("fsType", T::String),
    omitted("readOnly", T::Bool), pointer("secretRef", T::Struct(&OBJECT_REFERENCE)),
]);

#[rustfmt::skip]
pub(super) static STORAGE_OS_VOLUME_SOURCE: Struct = Struct::new("StorageOSVolumeSource", &[
    omitted("volumeName", T::String), omitted("volumeNamespace", T::String), omitted("fsType", T::String),
    omitted("readOnly", T::Bool), pointer("secretRef", T::Struct(&LOCAL_OBJECT_REFERENCE)),
]);

#[rustfmt::skip]
pub(super) static TYPED_LOCAL_OBJECT_REFERENCE: Struct = Struct::atomic("TypedLocalObjectReference", &[
    nullable("apiGroup", T::String), always("kind", T::String), always("name", T::String),
]);

#[rustfmt::skip]
pub(super) static TYPED_OBJECT_REFERENCE: Struct = Struct::new("TypedObjectReference", &[
    nullable("apiGroup", T::String), always("kind", T::String), always("name", T::String),
    pointer("namespace", T::String),
]);

#[rustfmt::skip]
pub(super) static VOLUME: Struct = Struct::new("Volume", &[
    always("name", T::String), pointer("hostPath", T::Struct(&HOST_PATH_VOLUME_SOURCE)),
    pointer("emptyDir", T::Struct(&EMPTY_DIR_VOLUME_SOURCE)),
    pointer("gcePersistentDisk", T::Struct(&GCE_PERSISTENT_DISK_VOLUME_SOURCE)),
    pointer("awsElasticBlockStore", T::Struct(&AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE)),
    pointer("gitRepo", T::Struct(&GIT_REPO_VOLUME_SOURCE)), pointer("secret", T::Struct(&SECRET_VOLUME_SOURCE)),
    pointer("nfs", T::Struct(&NFS_VOLUME_SOURCE)), pointer("iscsi", T::Struct(&ISCSI_VOLUME_SOURCE)),
    pointer("glusterfs", T::Struct(&GLUSTERFS_VOLUME_SOURCE)),
    pointer("persistentVolumeClaim", T::Struct(&PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE)),
    pointer("rbd", T::Struct(&RBD_VOLUME_SOURCE)), pointer("flexVolume", T::Struct(&FLEX_VOLUME_SOURCE)),
    pointer("cinder", T::Struct(&CINDER_VOLUME_SOURCE)), pointer("cephfs", T::Struct(&CEPH_FS_VOLUME_SOURCE)),
    pointer("flocker", T::Struct(&FLOCKER_VOLUME_SOURCE)),
    pointer("downwardAPI", T::Struct(&DOWNWARD_API_VOLUME_SOURCE)), pointer("fc", T::Struct(&FC_VOLUME_SOURCE)),
    pointer("azureFile", T::Struct(&AZURE_FILE_VOLUME_SOURCE)),
    pointer("configMap", T::Struct(&CONFIG_MAP_VOLUME_SOURCE)),
    pointer("vsphereVolume", T::Struct(&VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE)),
    pointer("quobyte", T::Struct(&QUOBYTE_VOLUME_SOURCE)),
    pointer("azureDisk", T::Struct(&AZURE_DISK_VOLUME_SOURCE)),
    pointer("photonPersistentDisk", T::Struct(&PHOTON_PERSISTENT_DISK_VOLUME_SOURCE)),
    pointer("projected", T::Struct(&PROJECTED_VOLUME_SOURCE)),
    pointer("portworxVolume", T::Struct(&PORTWORX_VOLUME_SOURCE)),
    pointer("scaleIO", T::Struct(&SCALE_IO_VOLUME_SOURCE)),
    pointer("storageos", T::Struct(&STORAGE_OS_VOLUME_SOURCE)), pointer("csi", T::Struct(&CSI_VOLUME_SOURCE)),
    pointer("ephemeral", T::Struct(&EPHEMERAL_VOLUME_SOURCE)),
    pointer("image", T::Struct(&IMAGE_VOLUME_SOURCE)),
]);

#[rustfmt::skip]
pub(super) static VOLUME_NODE_AFFINITY: Struct = Struct::new("VolumeNodeAffinity", &[
    pointer("required", T::Struct(&NODE_SELECTOR)),
]);

#[rustfmt::skip]
pub(super) static VOLUME_PROJECTION: Struct = Struct::new("VolumeProjection", &[
    pointer("secret", T::Struct(&SECRET_PROJECTION)),
    pointer("downwardAPI", T::Struct(&DOWNWARD_API_PROJECTION)),
    pointer("configMap", T::Struct(&CONFIG_MAP_PROJECTION)),
    pointer("serviceAccountToken", T::Struct(&SERVICE_ACCOUNT_TOKEN_PROJECTION)),
    pointer("clusterTrustBundle", T::Struct(&CLUSTER_TRUST_BUNDLE_PROJECTION)),
    pointer("podCertificate", T::Struct(&POD_CERTIFICATE_PROJECTION)),
]);

#[rustfmt::skip]
pub(super) static VOLUME_RESOURCE_REQUIREMENTS: Struct = Struct::new("VolumeResourceRequirements", &[
    omitted("limits", T::Map(&T::Quantity)), omitted("requests", T::Map(&T::Quantity)),
]);

#[rustfmt::skip]
pub(super) static VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE: Struct = Struct::new("VsphereVirtualDiskVolumeSource", &[
    always("volumePath", T::String), omitted("fsType", T::String), omitted("storagePolicyName", T::String),
    omitted("storagePolicyID", T::String),
]);
