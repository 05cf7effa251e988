//! Reads the state of the cluster around one Simulation from the API server.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod, Secret};
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams};
use sk_api::simulation::{Simulation, names};
use sk_cluster::certificate;

use crate::cluster::{Cluster, ClusterError, parse, recognise};
use crate::driver::{self, Driver};
use crate::observed::{Left, Observed, Offer, Offers, Part, SecretRefusal, Seen, Turn, turn};
use crate::parts::{NOT_AFTER_ANNOTATION, Plan};
use crate::records::Store;
use crate::settings::Settings;

/// Events that are asked for to find out why a driver does not start. The newest few are enough for a sentence.
const MAX_EVENTS: u32 = 50;

/// Reads everything that a decision about this Simulation needs. `None` if it is gone.
pub(crate) async fn observe(
    cluster: &Cluster,
    settings: &Settings,
    store: &Store,
    name: &str,
) -> Result<Option<Observed>, ClusterError> {
    let step = || ClusterError::request(format!("get Simulation {name}"));
    let Some(simulation) = cluster.simulations().get_opt(name).await.map_err(step())? else { return Ok(None) };
    let root_uid = root_uid(cluster, &simulation, settings).await?;
    let plan = Plan { simulation: &simulation, settings, root_uid: &root_uid };
    let offers = Observer { cluster, settings, plan, offers: Offers::default() }.look_for_offers().await?;
    let observer = Observer { cluster, settings, plan, offers };
    let observed = Observed {
        now: Timestamp::now(),
        turn: observer.turn().await?,
        other_driver: cluster.other_driver(&settings.namespace).await?,
        parts: observer.parts().await?,
        driver: observer.driver().await?,
        refused_secrets: observer.refused_secrets().await?,
        offers,
        left: observer.left().await?,
        kept: store.holds(name).await?,
        recorded: !store.repetitions(name).await?.is_empty(),
        simulation: simulation.clone(),
    };
    Ok(Some(observed))
}

/// The uid of the run's root; one that nothing has, as long as there is no root.
pub(crate) async fn root_uid(
    cluster: &Cluster,
    simulation: &Simulation,
    settings: &Settings,
) -> Result<String, ClusterError> {
    let plan = Plan { simulation, settings, root_uid: "" };
    let root = cluster.find(&plan.place(Part::Root)).await?;
    Ok(root.and_then(|root| root.uid()).unwrap_or_else(|| "there is no root".to_owned()))
}

struct Observer<'a> {
    cluster: &'a Cluster,
    settings: &'a Settings,
    plan: Plan<'a>,
    offers: Offers,
}

impl Observer<'_> {
    async fn turn(&self) -> Result<Turn, ClusterError> {
        let lease = self.cluster.lease(&self.settings.namespace).await?;
        let holder = lease.and_then(|lease| lease.spec?.holder_identity);
        if holder.as_deref() == Some(self.plan.name()) {
            return Ok(Turn::Mine);
        }
        let all = self.cluster.simulations().list(&ListParams::default()).await;
        let all = all.map_err(ClusterError::request("list Simulations"))?;
        Ok(turn(self.plan.name(), holder.as_deref(), &all.items))
    }

    async fn parts(&self) -> Result<BTreeMap<Part, Seen>, ClusterError> {
        let spec = &self.plan.simulation.spec;
        let elsewhere = spec.driver.namespace != self.settings.namespace;
        let mut parts = BTreeMap::new();
        // The root is looked at last: a part that is gone because its root was deleted is never seen without that.
        for part in Part::ALL.into_iter().rev() {
            let seen = match part {
                // Nothing of ours is where drivers may not run, and we may not even look.
                part if self.is_out_of_reach() && part != Part::Root => continue,
                Part::Account | Part::Binding if !elsewhere => continue,
                Part::Metrics if self.offers.prometheus != Offer::Open => continue,
                Part::Certificate => self.certificate().await?,
                Part::Webhook => self.webhook().await?,
                part => self.cluster.see(&self.plan, part).await?,
            };
            parts.insert(part, seen);
        }
        Ok(parts)
    }

    /// What carries the simulation's label, the driver's pods included.
    async fn left(&self) -> Result<Vec<Left>, ClusterError> {
        let mut left = self.cluster.left(self.plan.name()).await?;
        if !self.is_out_of_reach() {
            left.extend(self.cluster.driver_pods(self.plan.namespace(), self.plan.name()).await?);
        }
        Ok(left)
    }

    /// Is the driver to run where this installation may not have it?
    fn is_out_of_reach(&self) -> bool {
        !self.settings.any_namespace && self.plan.namespace() != self.settings.namespace
    }

    async fn look_for_offers(&self) -> Result<Offers, ClusterError> {
        let spec = &self.plan.simulation.spec;
        let mut offers = Offers::default();
        if spec.metrics.is_some() {
            offers.prometheus = self.cluster.offers(&self.plan, Part::Metrics).await?;
        }
        if spec.driver.cert_manager_issuer.is_some() {
            offers.cert_manager = self.cluster.offers(&self.plan, Part::Certificate).await?;
        }
        Ok(offers)
    }

    /// What is the matter with the Secrets that the driver is to be handed. Only their labels are read.
    async fn refused_secrets(&self) -> Result<BTreeMap<String, SecretRefusal>, ClusterError> {
        let mut refused = BTreeMap::new();
        if self.is_out_of_reach() {
            return Ok(refused);
        }
        let api: Api<Secret> = Api::namespaced(self.cluster.client(), self.plan.namespace());
        for name in &self.plan.simulation.spec.driver.secrets {
            let step = ClusterError::request(format!("get Secret {}/{name}", self.plan.namespace()));
            let found = api.get_metadata_opt(name).await.map_err(step)?;
            let refusal = match found.as_ref().map(|found| found.labels().get(names::DRIVER_SECRET_LABEL)) {
                None => SecretRefusal::Missing,
                Some(Some(label)) if label == "true" => continue,
                Some(_) => SecretRefusal::Unlabelled,
            };
            refused.insert(name.clone(), refusal);
        }
        Ok(refused)
    }

    /// The webhook's certificate: ours is stale a month before its end, cert-manager's is pending until it is there.
    async fn certificate(&self) -> Result<Seen, ClusterError> {
        let secret = secret(self.cluster, &self.plan).await?;
        if self.plan.simulation.spec.driver.cert_manager_issuer.is_some() {
            let place = self.plan.place(Part::Certificate);
            let order = match self.offers.cert_manager {
                Offer::Open => self.cluster.find(&place).await?,
                Offer::Absent | Offer::Forbidden => None,
            };
            let ordered = order.as_ref().map_or(Seen::Absent, |order| recognise(&self.plan, Part::Certificate, order));
            let since = order.and_then(|order| order.creation_timestamp()).map_or_else(Timestamp::now, |time| time.0);
            // After the run the order is gone with its root, and the Secret is what is left of it.
            let left = if secret.is_some() { Seen::Going } else { Seen::Absent };
            return Ok(match ordered {
                Seen::Ours if authorities(secret.as_ref()).is_none() => Seen::Pending { since },
                Seen::Absent if self.cluster.see(&self.plan, Part::Root).await? != Seen::Ours => left,
                ordered => ordered,
            });
        }
        let seen = self.cluster.see(&self.plan, Part::Certificate).await?;
        let not_after = secret.as_ref().and_then(|secret| secret.annotations().get(NOT_AFTER_ANNOTATION)?.parse().ok());
        let due = not_after.is_none_or(|not_after| certificate::is_due(not_after, Timestamp::now()));
        Ok(if seen == Seen::Ours && due { Seen::Stale } else { seen })
    }

    /// The webhook's configuration: stale if it trusts another certificate than the one that is served.
    async fn webhook(&self) -> Result<Seen, ClusterError> {
        let place = self.plan.place(Part::Webhook);
        let Some(object) = self.cluster.find(&place).await? else { return Ok(Seen::Absent) };
        let seen = recognise(&self.plan, Part::Webhook, &object);
        let configuration: MutatingWebhookConfiguration = typed(&place.to_string(), object)?;
        let trusted = configuration.webhooks.iter().flatten().find_map(|hook| hook.client_config.ca_bundle.clone());
        let wanted = authorities(secret(self.cluster, &self.plan).await?.as_ref());
        let agree = wanted.is_none() || trusted.map(|bytes| bytes.0) == wanted;
        Ok(if seen == Seen::Ours && !agree { Seen::Stale } else { seen })
    }

    async fn driver(&self) -> Result<Driver, ClusterError> {
        let place = self.plan.place(Part::Job);
        if self.is_out_of_reach() {
            return Ok(Driver::Absent);
        }
        let Some(object) = self.cluster.find(&place).await? else { return Ok(Driver::Absent) };
        if recognise(&self.plan, Part::Job, &object) == Seen::Foreign {
            return Ok(Driver::Absent);
        }
        let job: Job = typed(&place.to_string(), object)?;
        let pods: Api<Pod> = Api::namespaced(self.cluster.client(), self.plan.namespace());
        let selector = format!("batch.kubernetes.io/job-name={}", place.name);
        let pods = pods.list(&ListParams::default().labels(&selector)).await;
        let pods = pods.map_err(ClusterError::request("list the driver's pods"))?.items;
        let judge =
            |warnings: &[String]| driver::judge(&job, &pods, warnings, Timestamp::now(), self.settings.start_limit);
        match judge(&[]) {
            // Events are only asked for when there is nothing else to say.
            Driver::Ended { verdict, .. } if verdict.reason == "DriverNotStarted" => {
                Ok(judge(&self.warnings(&place.name).await))
            }
            other => Ok(other),
        }
    }

    /// What Kubernetes' events say about the Job and its pods, the newest first. They only make a sentence better, so that
    /// an installation which may not read them still gets its answer.
    async fn warnings(&self, job: &str) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.cluster.client(), self.plan.namespace());
        let parameters = ListParams::default().fields("type=Warning").limit(MAX_EVENTS);
        let Ok(listed) = events.list(&parameters).await else { return Vec::new() };
        let mut about: Vec<_> = listed
            .items
            .into_iter()
            .filter(|event| event.involved_object.name.as_deref().is_some_and(|name| name.starts_with(job)))
            .collect();
        about.sort_by_key(|event| std::cmp::Reverse(event.last_timestamp.as_ref().map(|time| time.0)));
        let text = |text: Option<String>| text.unwrap_or_default();
        about.into_iter().map(|event| format!("{}: {}", text(event.reason), text(event.message))).collect()
    }
}

/// The Secret with the webhook's certificate, if it is there.
pub(crate) async fn secret(cluster: &Cluster, plan: &Plan<'_>) -> Result<Option<Secret>, ClusterError> {
    let place = plan.secret();
    let found = cluster.find(&place).await?;
    found.map(|object| typed(&place.to_string(), object)).transpose()
}

/// The certificate authority in such a Secret.
pub(crate) fn authorities(secret: Option<&Secret>) -> Option<Vec<u8>> {
    secret?.data.as_ref()?.get(names::CA_KEY).map(|bytes| bytes.0.clone())
}

fn typed<T: serde::de::DeserializeOwned>(what: &str, object: DynamicObject) -> Result<T, ClusterError> {
    let step = format!("read {what}");
    let value = serde_json::to_value(object)
        .map_err(|error| ClusterError::Unexpected { step: step.clone(), what: error.to_string() })?;
    parse(&step, value)
}
