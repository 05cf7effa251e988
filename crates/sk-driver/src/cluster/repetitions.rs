//! All repetitions of a Simulation, one after the other, under one Lease.

use std::sync::Arc;

use kube::Client;
use sk_api::simulation::Simulation;
use sk_store::trace::Trace;

use super::counters::Counters;
use super::error::RunError;
use super::lease;
use super::request::RetryPolicy;
use super::root::{RootError, Roots};
use super::run::{Options, Outcome, Phase, Run, may_run_hooks};
use super::stop::Stop;

/// Runs one repetition and no more.
pub async fn run(
    client: Client,
    simulation: &Simulation,
    trace: Arc<Trace>,
    options: &Options,
    stop: Stop,
) -> Result<Outcome, RunError> {
    let repetitions = Repetitions::take(client, simulation, options, stop).await?;
    let outcome = repetitions.repeat(trace, options).await;
    let left = repetitions.end().await;
    // The first failure is reported.
    let outcome = outcome?;
    match left {
        Ok(()) => Ok(outcome),
        Err(error) => Err(RunError::LeftBehind { record: outcome.record, error: Box::new(error) }),
    }
}

/// The repetitions of a Simulation. Without a controller it holds the Lease, and keeps the SimulationRoot CRD, from the
/// first repetition to the last. [`Repetitions::end`] must be called.
pub struct Repetitions<'t> {
    client: Client,
    simulation: &'t Simulation,
    name: String,
    stop: Stop,
    /// For the end.
    clean_up: RetryPolicy,
    /// With a controller, it sees to it that one simulation runs at a time.
    lease: Option<lease::Held>,
}

impl<'t> Repetitions<'t> {
    /// Acquires the Lease, or returns who holds it.
    pub async fn take(
        client: Client,
        simulation: &'t Simulation,
        options: &Options,
        stop: Stop,
    ) -> Result<Self, RunError> {
        let name = simulation.metadata.name.clone().ok_or(RunError::NoName)?;
        may_run_hooks(simulation, options.allow_hooks)?;
        // What is counted before the run begins is not the run's.
        let retry = |phase| RetryPolicy::new(&Counters::default(), &stop, options.grace(phase)).in_need();
        let (begin, clean_up) = (retry(Phase::Replay), retry(Phase::CleanUp));
        let lease = match options.in_cluster {
            true => None,
            false => Some(lease::Held::take(&client, &begin, &name, &stop).await?),
        };
        let repetitions = Self { client, simulation, name, stop, clean_up, lease };
        if repetitions.lease.is_some()
            && let Err(error) = repetitions.roots(&begin).need_kind().await
        {
            // The first failure is reported.
            let _ = repetitions.end().await;
            return Err(error.into());
        }
        Ok(repetitions)
    }

    /// Runs one repetition. Whatever happens, what it made in the cluster is removed again.
    pub async fn repeat(&self, trace: Arc<Trace>, options: &Options) -> Result<Outcome, RunError> {
        let begin = RetryPolicy::new(&Counters::default(), &self.stop, options.grace(Phase::Replay)).in_need();
        let (client, simulation, name) = (self.client.clone(), self.simulation, self.name.clone());
        let run = Run { client, name, simulation, trace, options, stop: self.stop.clone() };
        run.under_a_root(&begin, &self.clean_up).await
    }

    /// Removes the SimulationRoot CRD, if nothing else needs it, and releases the Lease.
    pub async fn end(self) -> Result<(), RootError> {
        let Some(lease) = &self.lease else { return Ok(()) };
        let released = self.roots(&self.clean_up).release_kind().await;
        lease.release(&self.clean_up).await;
        released
    }

    fn roots<'r>(&'r self, retry: &'r RetryPolicy) -> Roots<'r> {
        Roots { client: &self.client, retry, simulation: &self.name }
    }
}
