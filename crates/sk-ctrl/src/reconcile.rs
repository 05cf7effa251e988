//! Reconciles every Simulation: observe, decide, execute, until nothing is left but to wait.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use kube::runtime::controller::{self, Controller};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Resource, ResourceExt};
use sk_api::simulation::{Simulation, SimulationRoot, names};
use tracing::{debug, info, warn};

use crate::cluster::ClusterError;
use crate::decide::{Step, decide};
use crate::execute::Executor;
use crate::observe::observe;

/// Steps in a row for one Simulation. The longest way, from claim to Job with every part and 32 hooks, has about 50;
/// more than this is a decision that changes nothing, and must not keep the API server busy.
const MAX_STEPS: usize = 100;
/// Simulations that are worked on at a time. One runs; the others wait, are deleted, or run their hooks.
const CONCURRENCY: u16 = 8;
/// After a step that failed because the API server did not answer.
const RETRY: Duration = Duration::from_secs(2);

/// Follows all Simulations until `stop`.
pub(crate) async fn run(executor: Arc<Executor>, stop: impl Future<Output = ()> + Send + Sync + 'static) {
    let client = executor.cluster.client();
    let ours = watcher::Config::default().labels(names::SIMULATION_LABEL);
    let controller = Controller::new(Api::<Simulation>::all(client.clone()), watcher::Config::default())
        .with_config(controller::Config::default().concurrency(CONCURRENCY));
    let store = controller.store();
    let everyone = move |_: Lease| -> Vec<_> {
        store.state().iter().map(|simulation| ObjectRef::from_obj(&**simulation)).collect()
    };
    let settings = &executor.settings;
    let (jobs, pods): (Api<Job>, Api<Pod>) = if settings.any_namespace {
        (Api::all(client.clone()), Api::all(client.clone()))
    } else {
        (Api::namespaced(client.clone(), &settings.namespace), Api::namespaced(client.clone(), &settings.namespace))
    };
    let lease = watcher::Config::default().fields(&format!("metadata.name={}", names::LEASE));
    let driver_pods =
        ours.clone().labels(&format!("{},{}={}", names::SIMULATION_LABEL, names::COMPONENT_LABEL, names::DRIVER));
    controller
        .watches(Api::<Lease>::namespaced(client.clone(), &settings.namespace), lease, everyone)
        .watches(jobs, ours.clone(), |job| labelled(&job))
        .watches(pods, driver_pods, |pod| labelled(&pod))
        .watches(Api::<SimulationRoot>::all(client), ours, |root| labelled(&root))
        .graceful_shutdown_on(stop)
        .run(reconcile, again, executor)
        .for_each(|result| async move {
            match result {
                Ok((simulation, _)) => debug!(simulation = simulation.name, "seen to"),
                Err(error) => debug!(%error, "not seen to"),
            }
        })
        .await;
    info!("stopped");
}

/// The Simulation that an object belongs to, by its label.
fn labelled(object: &impl Resource) -> Option<ObjectRef<Simulation>> {
    object.labels().get(names::SIMULATION_LABEL).map(|name| ObjectRef::new(name))
}

async fn reconcile(simulation: Arc<Simulation>, executor: Arc<Executor>) -> Result<controller::Action, ClusterError> {
    let name = simulation.name_any();
    for _ in 0..MAX_STEPS {
        let Some(observed) = observe(&executor.cluster, &executor.settings, &executor.store, &name).await? else {
            return Ok(controller::Action::await_change());
        };
        match decide(&observed, &executor.settings) {
            Step::Do(action) => {
                debug!(simulation = name, ?action, "next");
                executor.execute(&observed, &action).await?;
            }
            Step::Wait(duration) => return Ok(controller::Action::requeue(duration)),
            Step::Rest => return Ok(controller::Action::await_change()),
        }
    }
    warn!(simulation = name, "{MAX_STEPS} steps and no end: looking again in a while");
    Ok(controller::Action::requeue(RETRY))
}

#[expect(clippy::needless_pass_by_value, reason = "the controller hands both over")]
fn again(simulation: Arc<Simulation>, error: &ClusterError, _: Arc<Executor>) -> controller::Action {
    warn!(simulation = simulation.name_any(), %error, "a step failed; retrying");
    controller::Action::requeue(RETRY)
}
