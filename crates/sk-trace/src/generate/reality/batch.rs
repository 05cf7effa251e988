//! Pods of Jobs and CronJobs in the generated history. The lifetime of each is known when it is created, so it goes to a
//! node that is not drained before its end.

use std::collections::VecDeque;
use std::sync::Arc;

use sk_core::{ObjectRef, SimDuration, SimTime, SmolStr, StableHash, TemplateId};
use sk_store::trace::{Life, OwnerLives, TemplateLives};

use super::fleet::Need;
use super::live::{End, Live, Revision};
use super::{Due, Reality};
use crate::generate::batch::{self, CronJob, Job};
use crate::generate::platform::Pool;
use crate::generate::pods::Requests;
use crate::generate::random::Draw;
use crate::generate::spec::Lifetime;

/// A CronJob keeps so many finished Jobs (`successfulJobsHistoryLimit` of all that are generated).
const KEPT_JOBS: usize = 3;
/// The CronJob controller and garbage collection take so long to remove one, at most.
const CLEANED_MS: (u64, u64) = (200, 10_000);
/// A finished Job's pod is removed with it.
const COLLECTED_MS: (u64, u64) = (20, 500);

/// A CronJob.
#[derive(Debug)]
pub(super) struct Cron {
    owner: ObjectRef,
    revision: Arc<Revision>,
    pod_hash: StableHash,
    requests: Requests,
    every: SimDuration,
    life: Lifetime,
    /// Of lives, as without machines; and of everything else.
    lives_draw: Draw,
    draw: Draw,
    lives: Vec<Life>,
    /// The pods of Jobs that are not removed yet, and when each ends.
    kept: VecDeque<(Live, SimTime)>,
}

impl Reality {
    /// A Job is created at `at` and stays for `kept` when it is done. Its pods start later than drawn where there is no
    /// room for them.
    pub(in crate::generate) fn job(&mut self, at: SimTime, job: &mut Job, template: TemplateId, kept: SimDuration) {
        let owner = job.reference.clone();
        let mut draw = Draw::new(self.seed, &format!("pods of {owner}"));
        let revision = Arc::new(Revision { template, infix: SmolStr::default() });
        let mut pods = Vec::with_capacity(job.ends.len());
        let mut machines = Vec::with_capacity(job.ends.len());
        let requests = job.size.requests();
        for (start, end) in &mut job.ends {
            let name = format!("{}-{}", owner.key.name, draw.suffix());
            let pod = self.batch_pod(at, (name.into(), &revision), requests, (start, end), &machines, &mut draw);
            machines.push(pod.machine);
            pods.push(pod);
        }
        let removed = job.done(at) + kept + between(&mut draw, COLLECTED_MS);
        for (pod, (_, finished)) in pods.iter().zip(&job.ends) {
            self.tell_pod(&owner, pod, End { finished: Some(*finished), deleted: Some(removed) });
        }
        self.announce(at);
    }

    /// A pod that starts and ends then, or as much later as its machine is.
    fn batch_pod(
        &mut self,
        at: SimTime,
        named: (SmolStr, &Arc<Revision>),
        requests: Requests,
        (start, end): (&mut SimTime, &mut SimTime),
        siblings: &[u32],
        draw: &mut Draw,
    ) -> Live {
        // It may have to wait for a machine.
        let until = Some(*end + SimDuration::from_mins(3));
        let need = Need { requests, pool: Pool::General, apart: false, until };
        // A pod of the very start is a new one, too.
        let created = at + SimDuration::from_micros(1);
        let mut pod = Live::create(&mut self.fleet, created, named, &need, siblings, draw);
        let late = self.fleet.machine(pod.machine).ready.since(at).max(SimDuration::ZERO);
        (*start, *end) = (*start + late, *end + late);
        pod.started = *start;
        self.plan(*end, Due::Free(pod.machine, requests));
        pod
    }

    /// A CronJob is created.
    pub(in crate::generate) fn cron_job(&mut self, at: SimTime, cron: CronJob) {
        let owner = cron.reference.clone();
        let lives = cron.with_lives(Vec::new());
        let template = lives.templates.first();
        let (Some(template), Some(pod_hash)) =
            (template.and_then(|lives| lives.template.clone()), template.and_then(|lives| lives.pod_hash))
        else {
            return;
        };
        let first = cron.first_from(at);
        self.plan(first, Due::Fire(self.crons.len()));
        self.crons.push(Cron {
            draw: Draw::new(self.seed, &format!("pods of {owner}")),
            owner,
            revision: Arc::new(Revision { template, infix: SmolStr::default() }),
            pod_hash,
            requests: cron.size.requests(),
            every: cron.every(),
            life: cron.life,
            lives_draw: cron.draw,
            lives: Vec::new(),
            kept: VecDeque::new(),
        });
    }

    /// A CronJob makes a Job, and the Job its pod. The oldest Job that is kept goes when the new one is done.
    pub(super) fn fire(&mut self, at: SimTime, number: usize) {
        let cron = &mut self.crons[number];
        let (mut start, mut end) = batch::life(&mut cron.lives_draw, cron.life, at);
        let mut draw = cron.draw.clone();
        let minutes = at.as_secs() / 60;
        let name = format!("{}-{minutes}-{}", cron.owner.key.name, draw.suffix());
        let (revision, requests) = (Arc::clone(&cron.revision), cron.requests);
        let pod = self.batch_pod(at, (name.into(), &revision), requests, (&mut start, &mut end), &[], &mut draw);
        let (until, cleaned) = (self.end, between(&mut draw, CLEANED_MS));
        let cron = &mut self.crons[number];
        cron.draw = draw;
        if start < until {
            cron.lives.push(batch::recorded(start, end, until));
        }
        cron.kept.push_back((pod, end));
        let (owner, every) = (cron.owner.clone(), cron.every);
        let gone = if cron.kept.len() > KEPT_JOBS { cron.kept.pop_front() } else { None };
        if let Some((pod, finished)) = gone {
            let deleted = Some(finished.max(end) + cleaned);
            self.tell_pod(&owner, &pod, End { finished: Some(finished), deleted });
        }
        self.announce(at);
        self.plan(at + every, Due::Fire(number));
    }

    /// The lives of a CronJob's pods.
    pub(in crate::generate) fn lives_of_cron(&mut self, number: usize) -> Option<OwnerLives> {
        let cron = self.crons.get_mut(number)?;
        let (template, pod_hash) = (Some(cron.revision.template.clone()), Some(cron.pod_hash));
        let lives = std::mem::take(&mut cron.lives);
        Some(OwnerLives { owner: cron.owner.clone(), templates: vec![TemplateLives { template, pod_hash, lives }] })
    }

    /// What is left of a CronJob's pods at the end; is there such a CronJob?
    pub(super) fn tell_rest_of_cron(&mut self, number: usize) -> bool {
        let Some(cron) = self.crons.get_mut(number) else { return false };
        let (owner, kept) = (cron.owner.clone(), std::mem::take(&mut cron.kept));
        for (pod, finished) in kept {
            self.tell_pod(&owner, &pod, End { finished: Some(finished), deleted: None });
        }
        true
    }
}

fn between(draw: &mut Draw, (low, high): (u64, u64)) -> SimDuration {
    SimDuration::from_millis(draw.between(low, high) as i64)
}
