//! The supervisor process of a lab: starts everything, installs the simulator, runs pods, and stops everything on
//! request.
//!
//! The simulator is installed as in any cluster, with the same ServiceAccounts and RBAC. Three things differ: the
//! controller listens on an address that drivers on this machine can reach, because nothing routes Services here; its
//! volume is a folder; and there is one image, skctl itself.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use sk_api::simulation::{crds, names};
use sk_lab::access::eventually;
use sk_lab::pid_file::{Named, leave_session};
use sk_lab::{Component, ControlPlane, Options, ProcessRunner, Programs, RunnerOptions, Supervision};
use tokio::signal::unix::{SignalKind, signal};

use super::place::{Place, Ready};
use super::words;
use crate::cli::{Global, SimArgs};
use crate::cluster::Cluster;
use crate::cluster::apply::{Applier, Manner};
use crate::cluster::installation::{self, CONTROLLER};
use crate::failure::Outcome;

/// What the cluster and its context are called.
pub(crate) const NAME: &str = "simkube-lab";
/// The node whose pods are processes.
const NODE: &str = "lab";
/// How long the controller may take until it answers: it is a process of this machine.
const CONTROLLER_LIMIT: Duration = Duration::from_secs(180);
/// How long each component may take to be ready. An idle machine needs a few seconds; two cores with a load of 30 needed 95
/// for the API server, and whoever waits has Ctrl-C.
const READY_WITHIN_SECS: u64 = 300;
/// How often an object of the installation is tried, and what is between two tries.
const APPLY_TRIES: u32 = 5;
const APPLY_PAUSE: Duration = Duration::from_secs(2);
/// Longer answers than this are no readiness.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// What to do about a component's program that is nowhere.
const ADVICE: &str = "put them into a folder that KUBEBUILDER_ASSETS names, or on the PATH; docs/cluster.md says where they \
                      come from";

/// Supervises the lab until SIGTERM.
pub(crate) fn serve(place: &Place, global: &Global) -> Result<Outcome> {
    // The terminal may go, and Ctrl-C there is not for us.
    let _ = leave_session();
    Named::this("skctl lab")?.write(&place.supervisor_file())?;
    // One thread: the kernel ties the life of each component to the thread that started it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let kept = runtime.block_on(keep(place, global));
    let _ = std::fs::remove_file(place.supervisor_file());
    kept.map(|()| Outcome::Good)
}

async fn keep(place: &Place, global: &Global) -> Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let lab = tokio::select! {
        started = start(place, global) => started?,
        _ = terminate.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
    };
    println!("ready after {:.1} s", lab.plane.took().as_secs_f64());
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    // Pods first: they need everything else.
    drop(lab.runner);
    lab.plane.shut_down().await;
    Ok(())
}

struct Lab {
    plane: ControlPlane,
    runner: ProcessRunner,
}

async fn start(place: &Place, global: &Global) -> Result<Lab> {
    let controller_port = free_port().context("there is no free port for the controller")?;
    let supervision = Supervision::PidFile { launcher: words("exec")?, folder: place.pids() };
    let plane =
        ControlPlane::start(&programs(), &supervision, &options(controller_port)?, Some(&place.plane())).await?;
    let runner = ProcessRunner::start(&plane, pods(place, plane.kubelet_port())?).await?;
    let global = Global { kubeconfig: Some(plane.kubeconfig()), context: None, namespace: None, ..global.clone() };
    let cluster = Cluster::connect(&global).await?;
    install(&cluster, place, controller_port).await?;
    until_the_controller_answers(&cluster).await?;
    let version = cluster.client.apiserver_version().await.context("ask the API server for its version")?;
    place.announce(&Ready { kubeconfig: plane.kubeconfig(), kubernetes: version.git_version })?;
    Ok(Lab { plane, runner })
}

/// Programs that are there already: nothing is fetched or built.
fn programs() -> Programs {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty()).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    Programs::in_folders(assets.into_iter().chain(std::env::split_paths(&path)), ADVICE)
}

/// Refuses to begin where a program is missing, and names all that are.
pub(crate) fn check_programs() -> Result<()> {
    let (programs, options) = (programs(), Options::default());
    let wanted = Component::ALL.into_iter().filter(|component| options.runs(*component));
    let missing: Vec<_> =
        wanted.filter(|component| programs.component(*component).is_err()).map(Component::name).collect();
    if !missing.is_empty() {
        bail!("not in $KUBEBUILDER_ASSETS, nor on the PATH: {}; {ADVICE}", missing.join(", "));
    }
    Ok(())
}

fn options(controller_port: u16) -> Result<Options> {
    // SimKube's kinds come first: the garbage collector looks for new ones only every 30 s.
    let ours = crds().into_iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
    Ok(Options::default()
        .name(NAME)
        .stages(&stages(controller_port))
        .kinds(ours.into_iter().chain([kind_of_stages()]))
        .ready_within_secs(READY_WITHIN_SECS)
        .webhook_routing()
        .service_account_admission())
}

/// KWOK plays virtual pods and nodes by SimKube's stages, and forwards the controller's port to its process.
fn stages(controller_port: u16) -> String {
    let forward = json!({
        "apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "ClusterPortForward", "metadata": {"name": "simkube"},
        "spec": {
            "selector": {"matchNamespaces": [names::NAMESPACE]},
            "forwards": [{
                "ports": [sk_ctrl::install::PORT],
                "target": {"port": controller_port, "address": Ipv4Addr::LOCALHOST},
            }],
        },
    });
    format!("{}\n---\n{forward}\n", sk_driver::stages_yaml())
}

/// KWOK's kind, without its schema: here it reads its stages from a file, and the objects are for people.
fn kind_of_stages() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "stages.kwok.x-k8s.io"},
        "spec": {
            "group": "kwok.x-k8s.io", "scope": "Cluster",
            "names": {"kind": "Stage", "plural": "stages", "singular": "stage", "listKind": "StageList"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// The pods of the controller and of drivers are processes; nothing else is.
fn pods(place: &Place, kubelet_port: u16) -> Result<RunnerOptions> {
    let installed = sk_ctrl::install::Options::default();
    let mut options = RunnerOptions::for_pods(names::COMPONENT_LABEL)
        .words(&installed.image, words("ctrl")?)
        .words(&installed.driver_image, words("driver")?);
    options.node = NODE.to_owned();
    options.claims = Some(place.claims());
    options.kubelet_port = Some(kubelet_port);
    Ok(options)
}

async fn install(cluster: &Cluster, place: &Place, controller_port: u16) -> Result<()> {
    // Drivers are processes of whoever started the lab, who may read their own files anyway.
    let arguments = SimArgs { local_traces: true, ..SimArgs::default() };
    let mut applier = Applier::new(cluster, Manner { manager: "skctl-sim", dry_run: false, force: true });
    apply(&mut applier, &volume(place)).await?;
    for mut object in installation::sim_in(&arguments, &cluster.namespace) {
        if object["kind"] == "Deployment" {
            listen_here(&mut object, controller_port);
        }
        apply(&mut applier, &object).await?;
    }
    Ok(())
}

/// Applies an object. A control plane that has just started on a busy machine answers some requests with a time-out of its
/// own admission; nothing else can be wrong with objects that every installation has.
async fn apply(applier: &mut Applier<'_>, object: &Value) -> Result<()> {
    for _ in 1..APPLY_TRIES {
        match applier.apply(object).await {
            Ok(_) => return Ok(()),
            Err(error) => eprintln!("trying again: {error}"),
        }
        tokio::time::sleep(APPLY_PAUSE).await;
    }
    applier.apply(object).await?;
    Ok(())
}

/// The volume that the installation claims; the claim's folder is beside it.
fn volume(place: &Place) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "simkube-lab-records"},
        "spec": {
            "capacity": {"storage": "100Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": place.claims()},
        },
    })
}

/// Nothing here routes a Service for a process: drivers find the controller by its port.
fn listen_here(deployment: &mut Value, port: u16) {
    let arguments = deployment.pointer_mut("/spec/template/spec/containers/0/args").and_then(Value::as_array_mut);
    if let Some(arguments) = arguments {
        arguments.retain(|argument| !argument.as_str().is_some_and(|text| text.starts_with("--bind=")));
        arguments.push(format!("--bind=127.0.0.1:{port}").into());
        arguments.push(format!("--records-url=https://127.0.0.1:{port}").into());
    }
}

/// Asked the way a record is fetched: the API server, KWOK's port forwarding, token and certificate are all tried.
async fn until_the_controller_answers(cluster: &Cluster) -> Result<()> {
    let last = std::cell::RefCell::new(String::new());
    let answered = eventually("the controller to answer", CONTROLLER_LIMIT, || async {
        let asked = async {
            let mut controller = CONTROLLER.open(cluster).await?;
            Ok::<_, anyhow::Error>(controller.text("/healthz", MAX_ANSWER_BYTES).await?)
        };
        Ok(match asked.await {
            Ok(_) => Some(()),
            Err(error) => {
                *last.borrow_mut() = format!("{error:#}");
                None
            }
        })
    });
    answered.await.with_context(|| format!("the controller does not answer: {}", last.borrow()))
}

/// A port that is free now; whoever takes it meanwhile makes the controller fail, which says so in its log.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_listens_where_drivers_of_this_machine_find_it() {
        let mut objects = installation::sim_in(&SimArgs::default(), names::NAMESPACE).into_iter();
        let mut deployment = objects.find(|object| object["kind"] == "Deployment").unwrap();
        listen_here(&mut deployment, 4711);
        let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap().clone();
        let having = |start: &str| arguments.iter().filter(|it| it.as_str().unwrap().starts_with(start)).count();
        assert_eq!((having("--bind="), having("--records-url=")), (1, 1));
        assert!(arguments.contains(&json!("--bind=127.0.0.1:4711")));
    }
}
