//! The cluster when the clock starts: which objects of the trace already exist then and are not created all at once.
//!
//! Everything that was applied before the start exists. So does everything at the first instant of a trace that knows
//! pods from before it, or that knows nodes but no pods: such a trace is of a running cluster. So it is of any trace
//! if the scenario says so (`begin.placement`). Otherwise objects at a trace's first instant are created at that
//! instant: manifests are deployed.

use std::collections::BTreeMap;

use sk_core::{ObjectRef, SimDuration, SimTime};
use sk_store::trace::{Change, Object, Record, Trace, TraceError};

/// The least time in which a cluster that begins with something finds its feet before the clock runs: nodes of groups come
/// up in a few minutes, and the autoscaler takes back what is too much after ten.
const LEAD: SimDuration = SimDuration::from_mins(30);
/// And more for each pod: controllers send 20 requests in a second (`--kube-api-qps`), one for each pod, and as many again
/// for whatever else they do.
const LEAD_PER_POD: SimDuration = SimDuration::from_millis(100);
/// More than a day would be more than most windows.
const LEAD_MAX: SimDuration = SimDuration::from_mins(24 * 60);

/// Which records tell of the state at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// When the clock begins.
    pub at: SimTime,
    /// Does what is applied at that very moment belong to the state?
    pub includes_first_moment: bool,
}

impl Start {
    /// Of a window of a trace. `is_said`: the scenario wants what stands at the first moment to be there before it.
    pub fn of(trace: &Trace, at: SimTime, is_said: bool) -> Result<Self, TraceError> {
        Ok(Self { at, includes_first_moment: is_said || was_running(trace, at)? })
    }

    /// Does a record of this time tell of the state?
    pub(crate) fn includes(&self, at: SimTime) -> bool {
        at < self.at || (at == self.at && self.includes_first_moment)
    }
}

/// Was the cluster running at that moment? Pods from before it say so; where no pods were observed, nodes do.
fn was_running(trace: &Trace, at: SimTime) -> Result<bool, TraceError> {
    let mut has_observations = false;
    for observation in trace.observations()? {
        if observation?.created < at {
            return Ok(true);
        }
        has_observations = true;
    }
    for owner in trace.lives()? {
        if owner?.templates.iter().any(|template| template.lives.iter().any(|life| life.start < at)) {
            return Ok(true);
        }
    }
    if has_observations {
        return Ok(false);
    }
    for event in trace.node_events()? {
        let event = event?;
        if event.at <= at && event.object.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The objects that exist when the clock starts, each in its last version, in the order of their creation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Initial {
    objects: Vec<Option<Object>>,
    places: BTreeMap<ObjectRef, usize>,
}

impl Initial {
    /// Takes in a record from before the clock.
    pub(crate) fn take(&mut self, record: Record) {
        match record.change {
            Change::Apply(object) => match self.places.get(object.reference()) {
                Some(place) => self.objects[*place] = Some(object),
                None => {
                    self.places.insert(object.reference().clone(), self.objects.len());
                    self.objects.push(Some(object));
                }
            },
            Change::Delete(deletion) => {
                if let Some(place) = self.places.remove(&deletion.object) {
                    self.objects[place] = None;
                }
            }
            Change::Mark(_) => {}
        }
    }

    /// The objects, given away.
    pub(crate) fn into_objects(self) -> impl Iterator<Item = Object> {
        self.objects.into_iter().flatten()
    }

    /// How long before the clock the cluster has to begin so that all of it can stand when it does; nothing if there is
    /// nothing.
    pub(crate) fn lead(&self) -> SimDuration {
        if self.places.is_empty() {
            return SimDuration::ZERO;
        }
        let pods: i64 = self.objects.iter().flatten().map(wanted_pods).sum();
        let more = LEAD_PER_POD.as_micros().saturating_mul(pods);
        (LEAD + SimDuration::from_micros(more)).min(LEAD_MAX)
    }
}

/// About how many pods an object makes; one too many is no harm.
fn wanted_pods(object: &Object) -> i64 {
    let spec = |field: &str| object.value().pointer(&format!("/spec/{field}")).and_then(serde_json::Value::as_i64);
    spec("replicas").or_else(|| spec("parallelism")).unwrap_or(1).clamp(0, 1_000_000)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sk_store::trace::{Deletion, Mark};

    use super::*;

    fn deployment(name: &str, replicas: u32) -> Object {
        Object::new(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "a"},
            "spec": {"replicas": replicas},
        }))
        .unwrap()
    }

    fn initial(changes: Vec<Change>) -> Initial {
        let mut initial = Initial::default();
        for (seq, change) in (0..).zip(changes) {
            initial.take(Record { at: SimTime::EPOCH, seq, change });
        }
        initial
    }

    #[test]
    fn only_what_is_left_at_the_start_is_there_and_as_it_last_was() {
        let gone = Deletion { object: deployment("b", 1).reference().clone(), last: None };
        let initial = initial(vec![
            Change::Apply(deployment("a", 1)),
            Change::Apply(deployment("b", 1)),
            Change::Apply(deployment("a", 7)),
            Change::Delete(gone),
            Change::Mark(Mark::Moment),
            Change::Apply(deployment("c", 3)),
        ]);
        assert_eq!(initial.lead(), LEAD + SimDuration::from_secs(1), "ten pods");
        let left: Vec<_> =
            initial.into_objects().map(|object| (object.reference().key.name.clone(), wanted_pods(&object))).collect();
        assert_eq!(left, [("a".into(), 7), ("c".into(), 3)]);
    }

    #[test]
    fn nothing_before_the_clock_needs_no_time_before_the_clock() {
        assert_eq!(Initial::default().lead(), SimDuration::ZERO);
    }

    #[test]
    fn a_trace_that_knows_no_pods_from_before_deploys_at_its_first_moment() {
        let trace = sk_store::trace::from_bytes("x.yaml", deployment("a", 1).value().to_string()).unwrap();
        let at = SimTime::from_secs(60);
        let start = Start::of(&trace, at, false).unwrap();
        assert!(start.includes(SimTime::EPOCH) && !start.includes(at));
        assert!(Start::of(&trace, at, true).unwrap().includes(at));
    }
}
