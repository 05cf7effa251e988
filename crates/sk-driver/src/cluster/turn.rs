//! All repetitions of a Simulation, one after the other, with nobody else in between.

use std::sync::Arc;

use kube::Client;
use sk_api::simulation::Simulation;
use sk_store::trace::Trace;

use super::error::RunError;
use super::lease;
use super::request::Patience;
use super::root::{RootError, Roots};
use super::run::{Options, Outcome, Phase, Run, may_run_hooks};
use super::stop::Stop;
use super::tally::Tally;

/// Runs one repetition and no more.
pub async fn run(
    client: Client,
    simulation: &Simulation,
    trace: Arc<Trace>,
    options: &Options,
    stop: Stop,
) -> Result<Outcome, RunError> {
    let turn = Turn::take(client, simulation, options, stop).await?;
    let outcome = turn.repeat(trace, options).await;
    let left = turn.end().await;
    // What failed first is what matters.
    let outcome = outcome?;
    match left {
        Ok(()) => Ok(outcome),
        Err(error) => Err(RunError::LeftBehind { record: outcome.record, error: Box::new(error) }),
    }
}

/// A simulation's turn on a cluster, for all of its repetitions: without a controller the Lease is held and the kind of
/// roots is there from the first one to the last, so that nobody comes in between. A turn has to be ended.
pub struct Turn<'t> {
    client: Client,
    simulation: &'t Simulation,
    name: String,
    stop: Stop,
    /// For the end.
    clean_up: Patience,
    /// With a controller, it sees to it that one simulation runs at a time.
    lease: Option<lease::Held>,
}

impl<'t> Turn<'t> {
    /// Waits for the turn, or says who has it.
    pub async fn take(
        client: Client,
        simulation: &'t Simulation,
        options: &Options,
        stop: Stop,
    ) -> Result<Self, RunError> {
        let name = simulation.metadata.name.clone().ok_or(RunError::NoName)?;
        may_run_hooks(simulation, options.allow_hooks)?;
        // What is counted before the run begins is not the run's.
        let patience = |phase| Patience::new(&Tally::default(), &stop, options.grace(phase)).in_need();
        let (begin, clean_up) = (patience(Phase::Replay), patience(Phase::CleanUp));
        let lease = match options.in_cluster {
            true => None,
            false => Some(lease::Held::take(&client, &begin, &name, &stop).await?),
        };
        let turn = Self { client, simulation, name, stop, clean_up, lease };
        if turn.lease.is_some()
            && let Err(error) = turn.roots(&begin).need_kind().await
        {
            // What failed first is what matters.
            let _ = turn.end().await;
            return Err(error.into());
        }
        Ok(turn)
    }

    /// Runs one repetition. Whatever happens, what it made in the cluster is removed again.
    pub async fn repeat(&self, trace: Arc<Trace>, options: &Options) -> Result<Outcome, RunError> {
        let begin = Patience::new(&Tally::default(), &self.stop, options.grace(Phase::Replay)).in_need();
        let (client, simulation, name) = (self.client.clone(), self.simulation, self.name.clone());
        let run = Run { client, name, simulation, trace, options, stop: self.stop.clone() };
        run.under_a_root(&begin, &self.clean_up).await
    }

    /// Takes the kind of roots away, if nobody else needs it, and gives the Lease up.
    pub async fn end(self) -> Result<(), RootError> {
        let Some(lease) = &self.lease else { return Ok(()) };
        let released = self.roots(&self.clean_up).release_kind().await;
        lease.release(&self.clean_up).await;
        released
    }

    fn roots<'r>(&'r self, patience: &'r Patience) -> Roots<'r> {
        Roots { client: &self.client, patience, simulation: &self.name }
    }
}
