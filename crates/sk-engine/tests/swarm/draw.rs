//! What happens to a random cluster.

use serde_json::{Value, json};
use sk_core::rng::Stream;
use sk_core::{Gvk, ObjectRef};
use sk_engine::Engine;
use sk_engine::api::{DeleteOptions, Object, Propagation, Request};
use sk_engine::kinds::{CRON_JOB, DEPLOYMENT, JOB, NODE, POD};

/// A seeded hand that changes a cluster.
pub(crate) struct Draw {
    stream: Stream,
}

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self { stream: Stream::new(seed, "swarm") }
    }

    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.stream.below(most)
    }

    fn flag(&mut self) -> bool {
        self.below(2) == 0
    }

    /// One change. What the server refuses, such as a change of what may not change, is part of the story.
    pub(crate) fn act(&mut self, engine: &mut Engine) {
        let request = match self.below(12) {
            0..3 => self.deployment(),
            3..7 => self.job(),
            7 | 8 => self.cron_job(false),
            9 => {
                let kind = [&DEPLOYMENT, &JOB, &CRON_JOB][self.below(3) as usize];
                self.delete_one(engine, kind)
            }
            10 => match self.flag() {
                true => self.delete_one(engine, &POD),
                false => self.one(engine, &POD).map(|pod| Request::Evict { pod: pod.key }),
            },
            _ => self.fault(engine),
        };
        if let Some(request) = request {
            drop(engine.handle(request));
        }
    }

    /// CronJobs stop, so that everything can settle.
    pub(crate) fn stop(&mut self, engine: &mut Engine) {
        let crons: Vec<_> = engine.list(&CRON_JOB).map(|cron| cron.to_json()).collect();
        for mut cron in crons {
            cron["spec"]["suspend"] = json!(true);
            let object = Object::from_json(cron).expect("what came out goes in");
            engine.handle(Request::apply(object)).expect("a CronJob may be suspended");
        }
        let jobs: Vec<_> = engine.list(&JOB).map(|job| job.to_json()).collect();
        for mut job in jobs {
            job["spec"]["suspend"] = json!(false);
            drop(engine.handle(Request::apply(Object::from_json(job).expect("what came out goes in"))));
        }
    }

    fn template(&mut self, app: &str) -> Value {
        let cpu = format!("{}m", 100 + 300 * self.below(6));
        let annotations = json!({
            "simkube.io/kwok-stage-ready-delay": format!("{}ms", self.below(5_000)),
            "static.simkube.io/exit-code": if self.below(4) == 0 { "1" } else { "0" },
        });
        json!({
            "metadata": {"labels": {"app": app}, "annotations": annotations},
            "spec": {"containers": [{"name": "main", "image": "a:1", "resources": {"requests": {"cpu": cpu}}}]},
        })
    }

    fn deployment(&mut self) -> Option<Request> {
        let name = format!("d{}", self.below(4));
        let template = self.template(&name);
        apply(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": self.below(9), "selector": {"matchLabels": {"app": name}}, "template": template},
        }))
    }

    fn job_spec(&mut self) -> Value {
        let mut template = self.template("job");
        let lifetime = format!("{}us", (1 + self.below(60)) * 1_000_000);
        template["metadata"]["annotations"]["static.simkube.io/lifetime"] = json!(lifetime);
        template["spec"]["restartPolicy"] = json!(if self.below(3) == 0 { "OnFailure" } else { "Never" });
        let mut spec = json!({
            "template": template, "completions": self.below(6), "parallelism": 1 + self.below(4),
            "backoffLimit": self.below(4), "suspend": self.below(6) == 0,
        });
        if self.flag() {
            spec["completionMode"] = json!("Indexed");
            if self.flag() {
                spec["backoffLimitPerIndex"] = json!(self.below(2));
            }
        }
        if self.below(4) == 0 {
            spec["podReplacementPolicy"] = json!("Failed");
        }
        if self.below(4) == 0 {
            spec["ttlSecondsAfterFinished"] = json!(self.below(120));
        }
        if self.below(5) == 0 {
            spec["activeDeadlineSeconds"] = json!(self.below(90));
        }
        spec
    }

    fn job(&mut self) -> Option<Request> {
        let name = format!("j{}", self.below(8));
        let metadata = json!({"name": name, "namespace": "default"});
        apply(json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": self.job_spec()}))
    }

    fn cron_job(&mut self, suspend: bool) -> Option<Request> {
        let schedule = ["* * * * *", "*/2 * * * *", "@every 90s", "5-59/7 8-9 * * 1-5"][self.below(4) as usize];
        let policy = ["Allow", "Forbid", "Replace"][self.below(3) as usize];
        let metadata = json!({"name": format!("c{}", self.below(3)), "namespace": "default"});
        let mut template = self.job_spec();
        template["suspend"] = json!(false);
        apply(json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata,
            "spec": {
                "schedule": schedule, "concurrencyPolicy": policy, "suspend": suspend,
                "successfulJobsHistoryLimit": self.below(3), "jobTemplate": {"spec": template},
            },
        }))
    }

    /// A node goes, or is closed or opened.
    fn fault(&mut self, engine: &Engine) -> Option<Request> {
        if self.flag() {
            return self.delete_one(engine, &NODE);
        }
        let node = self.one(engine, &NODE)?;
        let mut json = engine.get(&NODE, &node.key)?.to_json();
        json["spec"]["unschedulable"] = json!(self.below(3) == 0);
        Object::from_json(json).ok().map(Request::update)
    }

    fn one(&mut self, engine: &Engine, kind: &Gvk) -> Option<ObjectRef> {
        let all: Vec<_> = engine.list(kind).map(|object| object.reference()).collect();
        let place = self.below(u64::try_from(all.len()).ok().filter(|count| *count > 0)?);
        all.into_iter().nth(usize::try_from(place).ok()?)
    }

    fn delete_one(&mut self, engine: &Engine, kind: &Gvk) -> Option<Request> {
        let target = self.one(engine, kind)?;
        let propagation = [Propagation::Background, Propagation::Foreground][self.below(2) as usize];
        Some(Request::Delete { target, options: DeleteOptions { propagation, ..DeleteOptions::default() } })
    }
}

fn apply(json: Value) -> Option<Request> {
    Object::from_json(json).ok().map(Request::apply)
}
