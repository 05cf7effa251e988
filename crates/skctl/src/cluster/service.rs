//! Finds the tracer and the controller in a cluster and connects to them.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, ListParams};

use super::channel::{Authority, Channel, ChannelError};
use super::token::{Token, TokenError};
use super::{Cluster, words};

/// Pods of one Deployment that are looked at; there is one, or two while it is replaced.
const MAX_PODS: u32 = 50;

/// A server of ours, as its installation makes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Service {
    /// For messages: `tracer`.
    pub(crate) what: &'static str,
    /// What `skctl install` calls it.
    pub(crate) part: &'static str,
    /// Which pods are its.
    pub(crate) selector: &'static str,
    /// The name in its certificate; `{namespace}` stands for its namespace.
    pub(crate) server_name: &'static str,
    pub(crate) port: u16,
    /// The ServiceAccount whose tokens it accepts, and their audience.
    pub(crate) account: &'static str,
    pub(crate) audience: &'static str,
    /// The ConfigMap and its key that hold the authority behind its certificate.
    pub(crate) authority: (&'static str, &'static str),
}

/// Why a server of ours cannot be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServiceError {
    #[error(
        "there is no {what} in namespace {namespace} of {cluster}; `skctl install {part}` installs one, -n looks \
         elsewhere"
    )]
    NotInstalled { what: &'static str, part: &'static str, namespace: String, cluster: String },
    #[error("the {what} in namespace {namespace} is not ready: {why}; `skctl doctor {part}` says more")]
    NotReady { what: &'static str, part: &'static str, namespace: String, why: String },
    #[error("cannot look for the {what} in namespace {namespace} of {cluster}: {reason}")]
    Find { what: &'static str, namespace: String, cluster: String, reason: String },
    #[error(
        "the {what} has published no certificate: ConfigMap {namespace}/{name} has no {key}; look at its logs, it \
         writes it when it starts"
    )]
    NoAuthority { what: &'static str, namespace: String, name: &'static str, key: &'static str },
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    Channel(#[from] ChannelError),
}

impl Service {
    /// A connection with a token, to the pod that is ready.
    pub(crate) async fn open(&self, cluster: &Cluster) -> Result<Channel, ServiceError> {
        let pod = self.ready_pod(cluster).await?;
        let authority = self.published_authority(cluster).await?;
        let token = Token::request(cluster, self.account, self.audience).await?;
        Ok(Channel::to_pod(cluster, &pod, self.port, &authority, Some(token)).await?)
    }

    /// A connection to an address: with a token if it is `https://`, and then whoever published the certificate in the
    /// cluster vouches for it; without anything if it is `http://`.
    pub(crate) async fn open_at(&self, address: &str, cluster: Option<&Cluster>) -> Result<Channel, ServiceError> {
        let Some(cluster) = cluster else { return Ok(Channel::to_address(address, None, None).await?) };
        let authority = self.published_authority(cluster).await?;
        let token = Token::request(cluster, self.account, self.audience).await?;
        Ok(Channel::to_address(address, Some(&authority), Some(token)).await?)
    }

    /// Its pods, whatever state they are in.
    pub(crate) async fn pods(&self, cluster: &Cluster) -> Result<Vec<Pod>, ServiceError> {
        let api: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
        let params = ListParams::default().labels(self.selector).limit(MAX_PODS);
        let listed = api.list(&params).await.map_err(|error| self.cannot_find(cluster, &error))?;
        Ok(listed.items)
    }

    async fn ready_pod(&self, cluster: &Cluster) -> Result<String, ServiceError> {
        let pods = self.pods(cluster).await?;
        if let Some(name) = pods.iter().find(|pod| unready(pod).is_none()).and_then(|pod| pod.metadata.name.clone()) {
            return Ok(name);
        }
        let (what, part, namespace) = (self.what, self.part, cluster.namespace.clone());
        match pods.first().and_then(unready) {
            Some(why) => Err(ServiceError::NotReady { what, part, namespace, why }),
            None => Err(ServiceError::NotInstalled { what, part, namespace, cluster: cluster.to_string() }),
        }
    }

    /// The certificates to trust.
    pub(crate) async fn published_authority(&self, cluster: &Cluster) -> Result<Authority, ServiceError> {
        let (name, key) = self.authority;
        let namespace = cluster.namespace.clone();
        let api: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &namespace);
        let found = api.get_opt(name).await.map_err(|error| self.cannot_find(cluster, &error))?;
        let pem = found.and_then(|map| map.data?.remove(key));
        let pem =
            pem.ok_or_else(|| ServiceError::NoAuthority { what: self.what, namespace: namespace.clone(), name, key })?;
        Ok(Authority {
            pem: pem.into_bytes(),
            place: format!("ConfigMap {namespace}/{name}"),
            name: self.server_name.replace("{namespace}", &namespace),
        })
    }

    fn cannot_find(&self, cluster: &Cluster, error: &kube::Error) -> ServiceError {
        ServiceError::Find {
            what: self.what,
            namespace: cluster.namespace.clone(),
            cluster: cluster.to_string(),
            reason: words(error),
        }
    }
}

/// Why a pod is not ready; `None` if it is.
pub(crate) fn unready(pod: &Pod) -> Option<String> {
    if pod.metadata.deletion_timestamp.is_some() {
        return Some("its pod is being deleted".to_owned());
    }
    let status = pod.status.as_ref()?;
    let ready = status.conditions.iter().flatten().find(|condition| condition.type_ == "Ready");
    if ready.is_some_and(|condition| condition.status == "True") {
        return None;
    }
    let containers = status.container_statuses.iter().flatten();
    let waiting = containers.filter_map(|container| container.state.as_ref()?.waiting.as_ref());
    let reasons = waiting.filter_map(|waiting| waiting.message.clone().or_else(|| waiting.reason.clone()));
    let unscheduled = status.conditions.iter().flatten().find(|condition| condition.status == "False");
    let why = reasons.into_iter().next().or_else(|| unscheduled.and_then(|condition| condition.message.clone()));
    let phase = status.phase.as_deref().unwrap_or("Pending");
    Some(match why {
        Some(why) => format!("its pod is {phase}: {why}"),
        None => format!("its pod is {phase} and not ready"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(status: &serde_json::Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "a"}, "status": status})).unwrap()
    }

    #[test]
    fn a_pod_that_is_not_ready_says_why() {
        let ready = pod(&json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}));
        assert_eq!(unready(&ready), None);
        let pulling = pod(&json!({
            "phase": "Pending",
            "containerStatuses": [{
                "name": "a", "image": "a", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"waiting": {"reason": "ImagePullBackOff"}},
            }],
        }));
        assert_eq!(unready(&pulling).unwrap(), "its pod is Pending: ImagePullBackOff");
        let nowhere = pod(&json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"},
        ]}));
        assert_eq!(unready(&nowhere).unwrap(), "its pod is Pending: 0/3 nodes are available");
    }
}
