//! The control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, KWOK, and Karpenter if asked for.
//!
//! It is ready after about four seconds on two cores. Each control plane has its own ports, folder, certificates and
//! accounts, so several can run side by side. Dropping it stops its processes. If the start fails, the error names the
//! component, the reason and what to do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::Value;

use crate::certificates::Authority;
use crate::child_process::{ChildProcess, Program, Supervision};
use crate::error::{ControlError, StartError};
use crate::folder::{ADMIN, Connection, Folder};
use crate::options::{Component, Options};
use crate::ports::{PortSource, Ports};
use crate::probe::Probe;
use crate::programs::Programs;
use crate::{command, logs};

/// Starts that are tried when ports turn out to be taken. Two in a row is bad luck, three is something else.
const MAX_STARTS: usize = 3;
/// How long a component may take to end when it is asked to: the API server lets requests finish for a few seconds.
const GRACE: Duration = Duration::from_secs(20);
/// Grace, and time for the killing after it.
const END_LIMIT: Duration = Duration::from_secs(30);

/// A running control plane.
pub struct ControlPlane {
    pub(crate) options: Options,
    pub(crate) programs: Programs,
    supervision: Supervision,
    folder: Folder,
    ports: Ports,
    running: BTreeMap<Component, ChildProcess>,
    client: Client,
    took: Duration,
}

impl ControlPlane {
    /// Starts one and waits until all of it is ready. `place` is the folder for everything that it needs, which must be
    /// empty; a temporary one, which goes with it, by default.
    pub async fn start(
        programs: &Programs,
        supervision: &Supervision,
        options: &Options,
        place: Option<&Path>,
    ) -> Result<Self, StartError> {
        let mut ports = PortSource::new(&options.first_ports);
        let mut starts = 1;
        loop {
            let set = ports.next_set().map_err(StartError::Ports)?;
            match Self::start_on(programs, supervision, options, set, place).await {
                Err(StartError::PortTaken { .. }) if starts < MAX_STARTS => starts += 1,
                Err(StartError::PortTaken { component, tail, .. }) => {
                    return Err(StartError::PortTaken { component, starts, tail });
                }
                started_or_failed => return started_or_failed,
            }
        }
    }

    async fn start_on(
        programs: &Programs,
        supervision: &Supervision,
        options: &Options,
        ports: Ports,
        place: Option<&Path>,
    ) -> Result<Self, StartError> {
        let began = Instant::now();
        let folder = Folder::new(place)?;
        folder.configure(options, &ports)?;
        let client = admin_client(&folder).await?;
        let mut plane = Self {
            options: options.clone(),
            programs: programs.clone(),
            supervision: supervision.clone(),
            folder,
            ports,
            running: BTreeMap::new(),
            client,
            took: Duration::ZERO,
        };
        // The API server waits for etcd by itself; the others give up, or back off for long, if they find no API server.
        plane.launch(&[Component::Etcd, Component::ApiServer]).await?;
        plane.bring_kinds().await?;
        plane
            .launch(&[Component::ControllerManager, Component::Scheduler, Component::Kwok, Component::Karpenter])
            .await?;
        plane.took = began.elapsed();
        Ok(plane)
    }

    /// How long the start took, until everything was ready.
    pub fn took(&self) -> Duration {
        self.took
    }

    /// A client that may do everything.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A kubeconfig file that may do everything. It goes with the control plane.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.kubeconfig(ADMIN)
    }

    /// The port on which KWOK plays the kubelet of its nodes. The ports that were wished for are only tried first.
    pub fn kubelet_port(&self) -> u16 {
        self.ports.kwok
    }

    /// The port of etcd's own API.
    pub fn etcd_port(&self) -> u16 {
        self.ports.etcd
    }

    /// How it was asked to be.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// How clients find this control plane.
    pub(crate) fn connection(&self) -> Connection {
        self.folder.connection(&self.options.name, &self.ports)
    }

    /// How its processes are supervised.
    pub(crate) fn supervision(&self) -> &Supervision {
        &self.supervision
    }

    /// The folder with one log per component.
    pub fn logs_dir(&self) -> PathBuf {
        self.folder.logs()
    }

    /// What one component has written to its log.
    pub fn log(&self, component: Component) -> PathBuf {
        self.folder.log(component)
    }

    /// The end of each component's log: what a failing test shows.
    pub fn last_words(&self) -> String {
        let running = Component::ALL.into_iter().filter(|component| self.options.runs(*component));
        running
            .map(|component| {
                format!("--- the last words of {component}\n{}\n", logs::tail(&self.folder.log(component)))
            })
            .collect()
    }

    /// The authority that signed the API server's certificate; a test's webhook may have one from it too.
    pub fn authority(&self) -> &Authority {
        self.folder.authority()
    }

    /// Asks a component to end (SIGTERM) and waits until it has.
    pub async fn stop(&mut self, component: Component) -> Result<(), ControlError> {
        self.end(component, ChildProcess::ask_to_end).await
    }

    /// Kills a component (SIGKILL) and waits until it is gone.
    pub async fn kill(&mut self, component: Component) -> Result<(), ControlError> {
        self.end(component, ChildProcess::kill).await
    }

    /// Stops a component if it runs, starts it again on the same port and data, and waits until it is ready.
    pub async fn restart(&mut self, component: Component) -> Result<(), ControlError> {
        if self.running.contains_key(&component) {
            self.stop(component).await?;
        }
        self.options.without.remove(&component);
        Ok(self.launch(&[component]).await?)
    }

    /// Gives the scheduler another KubeSchedulerConfiguration, which it reads when it is started again.
    pub fn configure_scheduler(&mut self, configuration: &Value) -> Result<(), StartError> {
        self.options.scheduler = Some(configuration.clone());
        self.folder.configure_scheduler(self.options.scheduler.as_ref())
    }

    async fn end(&mut self, component: Component, how: fn(&mut ChildProcess)) -> Result<(), ControlError> {
        let mut process = self.running.remove(&component).ok_or(ControlError::NotRunning(component))?;
        how(&mut process);
        let ended = tokio::time::timeout(END_LIMIT, process.wait()).await;
        ended.map(drop).map_err(|_| ControlError::DoesNotEnd { component, waited: END_LIMIT })
    }

    /// Starts those of the components that are wanted, all at once, and waits until all of them are ready.
    async fn launch(&mut self, components: &[Component]) -> Result<(), StartError> {
        let wanted: Vec<_> = components.iter().copied().filter(|component| self.options.runs(*component)).collect();
        for component in &wanted {
            let process = self.spawn(*component)?;
            self.running.insert(*component, process);
        }
        let authority = self.folder.path("ca.crt");
        let limit = Duration::from_secs(self.options.ready_within_secs);
        let mut waits = Vec::new();
        for (component, process) in &mut self.running {
            if wanted.contains(component) {
                let probe = Probe::new(*component, &self.ports, &authority)?;
                let log = self.folder.log(*component);
                waits.push(async move { probe.until_ready(process, &log, limit).await });
            }
        }
        let ready = try_join_all(waits).await;
        ready.map(drop).map_err(|error| self.first_to_end().unwrap_or(error))
    }

    /// The component that failed first, in the order of dependencies: an API server that ends because etcd did is not the
    /// cause.
    fn first_to_end(&mut self) -> Option<StartError> {
        self.running.iter_mut().find_map(|(component, process)| {
            let status = process.ended()?;
            Some(StartError::of_ended(*component, status, &self.folder.log(*component)))
        })
    }

    fn spawn(&self, component: Component) -> Result<ChildProcess, StartError> {
        let program = self.programs.component(component)?;
        let arguments = command::arguments(component, &self.options, &self.folder, &self.ports);
        let child = Program {
            supervision: self.supervision.clone(),
            command: std::iter::once(program.clone().into()).chain(arguments.into_iter().map(Into::into)).collect(),
            env: command::environment(component, &self.folder),
            folder: Some(self.folder.path("")),
            log: self.folder.log(component),
            grace: GRACE,
        };
        child.start().map_err(|source| StartError::Spawn { program, source })
    }
}

impl ControlPlane {
    /// Keeps the logs when it is dropped; returns its folder.
    pub fn keep_logs(&mut self) -> PathBuf {
        self.folder.keep()
    }

    /// How a component has ended that should be running; `None` while it runs, or was never started.
    pub fn ended(&mut self, component: Component) -> Option<String> {
        self.running.get_mut(&component)?.ended().map(|status| status.to_string())
    }

    /// Stops everything with SIGTERM, dependents first.
    pub async fn shut_down(mut self) {
        while let Some((_, mut process)) = self.running.pop_last() {
            process.ask_to_end();
            process.wait().await;
        }
    }
}

impl Drop for ControlPlane {
    /// Ends every process. Those that need the others go first, so that nobody fills a log with complaints about the
    /// missing.
    fn drop(&mut self) {
        while self.running.pop_last().is_some() {}
    }
}

async fn admin_client(folder: &Folder) -> Result<Client, StartError> {
    let wrong = |error: &dyn std::fmt::Display| StartError::Client(error.to_string());
    let kubeconfig = Kubeconfig::read_from(folder.kubeconfig(ADMIN)).map_err(|error| wrong(&error))?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| wrong(&error))?;
    // An eviction that a budget refuses is answered with 429, and whoever asked wants to hear that.
    config.default_retry = false;
    Client::try_from(config).map_err(|error| wrong(&error))
}
