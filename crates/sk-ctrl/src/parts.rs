//! The objects of a run, one function each. Pure: the same Simulation, settings and root uid give the same bytes.
//!
//! All of them carry the Simulation's label and have its root as owner. A [`Place`] addresses each, so reading,
//! creating and renewing share the same code.

use std::fmt;

use k8s_openapi::ByteString;
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use sk_api::simulation::{Simulation, names};

use crate::job;
use crate::observed::Part;
use crate::settings::Settings;

/// Until when the certificate in a Secret is good, RFC 3339.
pub const NOT_AFTER_ANNOTATION: &str = "simkube.io/not-after";
/// How long the API server waits for the webhook: the driver answers in a millisecond, and a busy API server is slow to
/// connect. More than this would hold up controllers that make pods.
const WEBHOOK_TIMEOUT_SECS: u32 = 10;

/// What the objects of a run are made from.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// The Simulation.
    pub simulation: &'a Simulation,
    /// The controller's settings.
    pub settings: &'a Settings,
    /// The uid of its root; nothing but the root is made before there is one.
    pub root_uid: &'a str,
}

/// Where an object is: its kind, its name and its namespace, if the kind has such.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its kind.
    pub resource: ApiResource,
    /// Its namespace.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespace = self.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        write!(f, "{} {namespace}{}", self.resource.kind, self.name)
    }
}

/// A kind of the API.
pub(crate) fn resource(group: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", kind), plural)
}

impl<'a> Plan<'a> {
    /// The Simulation's name.
    pub fn name(&self) -> &'a str {
        self.simulation.metadata.name.as_deref().unwrap_or_default()
    }

    /// The driver's namespace.
    pub fn namespace(&self) -> &'a str {
        &self.simulation.spec.driver.namespace
    }

    /// Where a part is.
    pub fn place(&self, part: Part) -> Place {
        let name = self.name();
        let here = |resource, name| Place { resource, namespace: Some(self.namespace().to_owned()), name };
        let everywhere = |resource, name| Place { resource, namespace: None, name };
        match part {
            Part::Root => {
                everywhere(resource(names::GROUP, "SimulationRoot", "simulationroots"), names::metaroot(name))
            }
            Part::Namespace => everywhere(resource("", "Namespace", "namespaces"), self.namespace().to_owned()),
            Part::Account => {
                here(resource("", "ServiceAccount", "serviceaccounts"), self.settings.driver_account.clone())
            }
            Part::Binding => everywhere(
                resource("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings"),
                names::driver_binding(name),
            ),
            Part::Trust => here(resource("", "ConfigMap", "configmaps"), names::driver_ca(name)),
            Part::Certificate if self.simulation.spec.driver.cert_manager_issuer.is_some() => {
                here(resource("cert-manager.io", "Certificate", "certificates"), names::driver_certificate(name))
            }
            Part::Certificate => self.secret(),
            Part::Service => here(resource("", "Service", "services"), names::driver_service(name)),
            Part::Webhook => everywhere(
                resource(
                    "admissionregistration.k8s.io",
                    "MutatingWebhookConfiguration",
                    "mutatingwebhookconfigurations",
                ),
                names::webhook(name),
            ),
            Part::Metrics => Place {
                resource: resource("monitoring.coreos.com", "Prometheus", "prometheuses"),
                namespace: self.simulation.spec.metrics.as_ref().map(|metrics| metrics.namespace.clone()),
                name: names::prometheus(name),
            },
            Part::Job => here(resource("batch", "Job", "jobs"), names::driver_job(name)),
        }
    }

    /// The Secret with the webhook's certificate, whoever makes it.
    pub fn secret(&self) -> Place {
        let name = names::driver_certificate(self.name());
        Place { resource: resource("", "Secret", "secrets"), namespace: Some(self.namespace().to_owned()), name }
    }

    /// The names by which the API server calls the webhook.
    pub fn webhook_names(&self) -> Vec<String> {
        vec![format!("{}.{}.svc", names::driver_service(self.name()), self.namespace())]
    }

    /// The root, which belongs to the Simulation itself: should the controller never come back, they go together.
    pub fn root(&self) -> Value {
        let owner = json!({
            "apiVersion": "simkube.io/v1", "kind": "Simulation", "name": self.name(),
            "uid": self.simulation.metadata.uid, "controller": true,
        });
        let place = self.place(Part::Root);
        let mut root = self.object(&place, &json!({"spec": {}}));
        root["metadata"]["ownerReferences"] = json!([owner]);
        root
    }

    /// The driver's namespace, where there was none.
    pub fn own_namespace(&self) -> Value {
        self.object(&self.place(Part::Namespace), &json!({}))
    }

    /// The driver's account, where there was none.
    pub fn account(&self) -> Value {
        self.object(&self.place(Part::Account), &json!({}))
    }

    /// What gives that account the driver's rights.
    pub fn binding(&self) -> Value {
        let rest = json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": names::DRIVER_ACCOUNT},
            "subjects": [{
                "kind": "ServiceAccount", "name": self.settings.driver_account, "namespace": self.namespace(),
            }],
        });
        self.object(&self.place(Part::Binding), &rest)
    }

    /// The certificate authority that the driver trusts when it uploads its record.
    pub fn trust(&self, authority: &str) -> Value {
        self.object(&self.place(Part::Trust), &json!({"data": {names::CA_KEY: authority}}))
    }

    /// A certificate that the controller has made itself. `authorities` are the new one, and after a renewal the one
    /// before, because a mounted Secret changes a minute later.
    pub fn own_certificate(&self, serving: &sk_cluster::certificate::Serving, authorities: &str) -> Value {
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        let rest = json!({
            "type": "kubernetes.io/tls",
            "data": {
                "tls.crt": bytes(&serving.certificate), "tls.key": bytes(&serving.key), names::CA_KEY: bytes(authorities),
            },
        });
        let mut secret = self.object(&self.secret(), &rest);
        secret["metadata"]["annotations"] = json!({NOT_AFTER_ANNOTATION: serving.not_after.to_string()});
        secret
    }

    /// A certificate that cert-manager is to make.
    pub fn ordered_certificate(&self, issuer: &str) -> Value {
        let rest = json!({"spec": {
            "secretName": names::driver_certificate(self.name()),
            "secretTemplate": {"labels": {names::SIMULATION_LABEL: self.name()}},
            "issuerRef": {"kind": "ClusterIssuer", "name": issuer},
            "dnsNames": self.webhook_names(),
        }});
        self.object(&self.place(Part::Certificate), &rest)
    }

    /// What leads to the webhook.
    pub fn service(&self) -> Value {
        let rest = json!({"spec": {
            "selector": {names::SIMULATION_LABEL: self.name(), names::COMPONENT_LABEL: names::DRIVER},
            "ports": [{"name": "https", "port": 443, "targetPort": self.simulation.spec.driver.port}],
        }});
        self.object(&self.place(Part::Service), &rest)
    }

    /// The webhook's configuration. Only namespaces that this simulation has made are ever asked about, so that nothing
    /// outside of them can be held up, whatever becomes of the driver. Inside, a pod that the driver has not seen would
    /// run for ever and spoil the record without a word, and a claim that an operator wrote would order a disk: there the
    /// answer is needed (`Fail`), and whoever makes them tries again.
    pub fn webhook(&self, authorities: &str) -> Value {
        let webhook = |name: &str, resource: &str| {
            json!({
                "name": name,
                "admissionReviewVersions": ["v1"],
                "sideEffects": "NoneOnDryRun",
                "failurePolicy": "Fail",
                "reinvocationPolicy": "Never",
                "timeoutSeconds": WEBHOOK_TIMEOUT_SECS,
                "namespaceSelector": {
                    "matchLabels": {names::VIRTUAL_LABEL: "true", names::SIMULATION_LABEL: self.name()},
                },
                "rules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "resources": [resource], "operations": ["CREATE"],
                    "scope": "Namespaced",
                }],
                "clientConfig": {
                    "service": {
                        "namespace": self.namespace(), "name": names::driver_service(self.name()), "path": "/",
                        "port": 443,
                    },
                    "caBundle": ByteString(authorities.as_bytes().to_vec()),
                },
            })
        };
        let rest = json!({"webhooks": [
            webhook("mutatepods.simkube.io", "pods"),
            // All of them: an operator may hand the run's label down to a claim of its own.
            webhook("claims.simkube.io", "persistentvolumeclaims"),
        ]});
        self.object(&self.place(Part::Webhook), &rest)
    }

    /// A Prometheus for the run; `None` if the Simulation asks for none.
    pub fn metrics(&self) -> Option<Value> {
        let metrics = self.simulation.spec.metrics.as_ref()?;
        let in_namespaces = |namespaces: &[String]| {
            let of = "kubernetes.io/metadata.name";
            (!namespaces.is_empty())
                .then(|| json!({"matchExpressions": [{"key": of, "operator": "In", "values": namespaces}]}))
        };
        let by_name = |names: &[String]| match names {
            [] => json!({}),
            names => json!({"matchExpressions": [
                {"key": "app.kubernetes.io/name", "operator": "In", "values": names},
            ]}),
        };
        let rest = json!({"spec": {
            "serviceAccountName": metrics.service_account,
            "shards": metrics.prometheus_shards,
            "externalLabels": {"simkube_simulation": self.name()},
            "podMonitorSelector": by_name(&metrics.pod_monitor_names),
            "podMonitorNamespaceSelector": in_namespaces(&metrics.pod_monitor_namespaces),
            "serviceMonitorSelector": by_name(&metrics.service_monitor_names),
            "serviceMonitorNamespaceSelector": in_namespaces(&metrics.service_monitor_namespaces),
            "remoteWrite": metrics.remote_write_configs,
        }});
        Some(self.object(&self.place(Part::Metrics), &without_nulls(rest)))
    }

    /// The driver's Job.
    pub fn job(&self) -> Value {
        self.object(&self.place(Part::Job), &json!({"spec": job::spec(self)}))
    }

    /// An object at a place, with the simulation's label and its root as owner.
    fn object(&self, place: &Place, rest: &Value) -> Value {
        let mut object = json!({
            "apiVersion": place.resource.api_version, "kind": place.resource.kind,
            "metadata": {
                "name": place.name, "namespace": place.namespace,
                "labels": {names::SIMULATION_LABEL: self.name()},
                "ownerReferences": [{
                    "apiVersion": "simkube.io/v1", "kind": "SimulationRoot", "name": names::metaroot(self.name()),
                    "uid": self.root_uid, "controller": true, "blockOwnerDeletion": true,
                }],
            },
        });
        if let (Some(object), Some(rest)) = (object.as_object_mut(), rest.as_object()) {
            object.extend(rest.clone());
        }
        object
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, without_nulls(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other,
    }
}
