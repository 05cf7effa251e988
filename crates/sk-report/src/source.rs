//! The source of rows: a run record, or tables in memory (tests, and traces read as runs).

use sk_record::{AutoscalerRow, DecisionRow, Error, NodeRow, PodRow, Run, RunMeta, SeriesRow};

/// Rows that can be read as often as needed. Every reading gives the same rows in the same order.
pub trait Source {
    /// What was asked.
    fn meta(&self) -> &RunMeta;
    /// All pods.
    fn pods(&self) -> Result<impl Iterator<Item = Result<PodRow, Error>>, Error>;
    /// Shows all pods, one after the other, without a copy of any. A run's have no uid here.
    fn each_pod(&self, show: impl FnMut(&PodRow<&str>)) -> Result<(), Error>;
    /// All nodes.
    fn nodes(&self) -> Result<impl Iterator<Item = Result<NodeRow, Error>>, Error>;
    /// All changes of series.
    fn series(&self) -> Result<impl Iterator<Item = Result<SeriesRow, Error>>, Error>;
    /// All answers of the scheduler.
    fn decisions(&self) -> Result<impl Iterator<Item = Result<DecisionRow, Error>>, Error>;
    /// Shows all answers of the scheduler, one after the other, without a copy of any. A run's have no owner, counts and victims
    /// here.
    fn each_decision(&self, show: impl FnMut(&DecisionRow<&str>)) -> Result<(), Error>;
    /// All decisions of the autoscaler; a recording has none.
    fn autoscaler(&self) -> Result<impl Iterator<Item = Result<AutoscalerRow, Error>>, Error>;
}

impl Source for Run {
    fn meta(&self) -> &RunMeta {
        Run::meta(self)
    }
    fn pods(&self) -> Result<impl Iterator<Item = Result<PodRow, Error>>, Error> {
        Run::pods(self)
    }
    fn each_pod(&self, mut show: impl FnMut(&PodRow<&str>)) -> Result<(), Error> {
        let mut rows = Run::pods(self)?.without(&["uid"]);
        while let Some(pod) = rows.next_borrowed()? {
            show(&pod);
        }
        Ok(())
    }
    fn nodes(&self) -> Result<impl Iterator<Item = Result<NodeRow, Error>>, Error> {
        Run::nodes(self)
    }
    fn series(&self) -> Result<impl Iterator<Item = Result<SeriesRow, Error>>, Error> {
        Run::series(self)
    }
    fn decisions(&self) -> Result<impl Iterator<Item = Result<DecisionRow, Error>>, Error> {
        Run::decisions(self)
    }
    fn each_decision(&self, mut show: impl FnMut(&DecisionRow<&str>)) -> Result<(), Error> {
        let mut rows = Run::decisions(self)?.without(&["owner", "evaluated", "feasible", "victims"]);
        while let Some(decision) = rows.next_borrowed()? {
            show(&decision);
        }
        Ok(())
    }
    fn autoscaler(&self) -> Result<impl Iterator<Item = Result<AutoscalerRow, Error>>, Error> {
        Run::autoscaler(self)
    }
}

/// A run in memory.
#[derive(Clone, Debug)]
pub struct Tables {
    /// What was asked.
    pub meta: RunMeta,
    /// All pods.
    pub pods: Vec<PodRow>,
    /// All nodes.
    pub nodes: Vec<NodeRow>,
    /// All changes of series.
    pub series: Vec<SeriesRow>,
    /// All answers of the scheduler.
    pub decisions: Vec<DecisionRow>,
    /// All decisions of the autoscaler; a recording has none.
    pub autoscaler: Vec<AutoscalerRow>,
}

impl Source for Tables {
    fn meta(&self) -> &RunMeta {
        &self.meta
    }
    fn pods(&self) -> Result<impl Iterator<Item = Result<PodRow, Error>>, Error> {
        Ok(self.pods.iter().cloned().map(Ok))
    }
    fn each_pod(&self, mut show: impl FnMut(&PodRow<&str>)) -> Result<(), Error> {
        self.pods.iter().for_each(|pod| show(&pod.borrowed()));
        Ok(())
    }
    fn nodes(&self) -> Result<impl Iterator<Item = Result<NodeRow, Error>>, Error> {
        Ok(self.nodes.iter().cloned().map(Ok))
    }
    fn series(&self) -> Result<impl Iterator<Item = Result<SeriesRow, Error>>, Error> {
        Ok(self.series.iter().cloned().map(Ok))
    }
    fn decisions(&self) -> Result<impl Iterator<Item = Result<DecisionRow, Error>>, Error> {
        Ok(self.decisions.iter().cloned().map(Ok))
    }
    fn each_decision(&self, mut show: impl FnMut(&DecisionRow<&str>)) -> Result<(), Error> {
        self.decisions.iter().for_each(|decision| show(&decision.borrowed()));
        Ok(())
    }
    fn autoscaler(&self) -> Result<impl Iterator<Item = Result<AutoscalerRow, Error>>, Error> {
        Ok(self.autoscaler.iter().cloned().map(Ok))
    }
}
