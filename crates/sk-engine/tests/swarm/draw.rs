//! What happens to a random cluster.

use serde_json::{Value, json};
use sk_core::rng::Stream;
use sk_core::{Gvk, ObjectKey, ObjectRef};
use sk_engine::Engine;
use sk_engine::api::{DeleteOptions, Object, Propagation, Request};
use sk_engine::kinds::{
    CRON_JOB, DAEMON_SET, DEPLOYMENT, JOB, NAMESPACE, NODE, POD, POD_DISRUPTION_BUDGET, REPLICATION_CONTROLLER,
    STATEFUL_SET,
};

/// `v1.ResourceQuota`
const RESOURCE_QUOTA: Gvk = Gvk::new_static("", "v1", "ResourceQuota");

/// A namespace that is not always there.
pub(crate) const SECOND_NAMESPACE: &str = "shop";

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
        let request = match self.below(18) {
            0..3 => self.deployment(),
            3..6 => self.job(),
            6 | 7 => self.cron_job(false),
            8 | 9 => self.stateful_set(),
            10 => self.daemon_set(),
            11 => self.replication_controller(),
            12 => self.budget(),
            13 => {
                let kinds = [
                    &DEPLOYMENT,
                    &JOB,
                    &CRON_JOB,
                    &STATEFUL_SET,
                    &DAEMON_SET,
                    &REPLICATION_CONTROLLER,
                    &POD_DISRUPTION_BUDGET,
                ];
                let kind = kinds[self.below(kinds.len() as u64) as usize];
                self.delete_one(engine, kind)
            }
            14 => match self.flag() {
                true => self.delete_one(engine, &POD),
                false => self.one(engine, &POD).map(|pod| Request::Evict { pod: pod.key }),
            },
            15 => self.quota(engine),
            16 => self.namespace(engine),
            _ => self.fault(engine),
        };
        if let Some(request) = request {
            drop(engine.handle(request));
        }
    }

    /// CronJobs stop, nodes are heard of again and nothing is short any more, so that everything can settle.
    pub(crate) fn stop(&mut self, engine: &mut Engine) {
        let quotas: Vec<_> = engine.list(&RESOURCE_QUOTA).map(|quota| quota.reference()).collect();
        for target in quotas {
            drop(engine.handle(Request::Delete { target, options: DeleteOptions::default() }));
        }
        let silent: Vec<_> = engine.list(&NODE).filter_map(|node| heard(node, true)).collect();
        silent.into_iter().for_each(|node| drop(engine.handle(node)));
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
        let namespace = if self.below(4) == 0 { SECOND_NAMESPACE } else { "default" };
        let name = format!("d{}", self.below(4));
        let template = self.template(&name);
        apply(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
            "spec": {"replicas": self.below(9), "selector": {"matchLabels": {"app": name}}, "template": template},
        }))
    }

    fn stateful_set(&mut self) -> Option<Request> {
        let name = format!("s{}", self.below(3));
        let template = self.template(&name);
        let policy = ["OrderedReady", "Parallel"][self.below(2) as usize];
        let partition = self.below(3);
        let mut spec = json!({
            "replicas": self.below(5), "serviceName": name, "selector": {"matchLabels": {"app": name}},
            "podManagementPolicy": policy, "template": template, "minReadySeconds": self.below(4),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
        });
        if self.below(3) == 0 {
            let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
            spec["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": claim}]);
            let (deleted, scaled) = (self.retention(), self.retention());
            spec["persistentVolumeClaimRetentionPolicy"] = json!({"whenDeleted": deleted, "whenScaled": scaled});
        }
        let metadata = json!({"name": name, "namespace": "default"});
        apply(json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}))
    }

    fn retention(&mut self) -> &'static str {
        ["Retain", "Delete"][self.below(2) as usize]
    }

    /// Small enough that every node has room for all of them beside what else it runs, or makes room for them.
    fn daemon_set(&mut self) -> Option<Request> {
        let name = format!("n{}", self.below(2));
        let mut template = self.template(&name);
        template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("50m");
        template["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
        let surge = self.flag();
        let steps = if surge { json!({"maxSurge": 1, "maxUnavailable": 0}) } else { json!({"maxUnavailable": 1}) };
        apply(json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "selector": {"matchLabels": {"app": name}}, "template": template,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": steps},
            },
        }))
    }

    fn replication_controller(&mut self) -> Option<Request> {
        let name = format!("r{}", self.below(2));
        let template = self.template(&name);
        apply(json!({
            "apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": self.below(5), "selector": {"app": name}, "template": template},
        }))
    }

    /// A budget over one of the Deployments or StatefulSets, whether it is there or not.
    fn budget(&mut self) -> Option<Request> {
        let app = format!("{}{}", ["d", "s"][self.below(2) as usize], self.below(3));
        let bound = ["minAvailable", "maxUnavailable"][self.below(2) as usize];
        let much = if self.flag() { json!(self.below(4)) } else { json!(format!("{}%", self.below(101))) };
        apply(json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": app}}, bound: much},
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

    /// So many pods, and no more, until the quota goes again.
    fn quota(&mut self, engine: &Engine) -> Option<Request> {
        if self.below(3) == 0 {
            return self.delete_one(engine, &RESOURCE_QUOTA);
        }
        apply(json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"},
            "spec": {"hard": {"pods": self.below(30).to_string()}},
        }))
    }

    /// A second namespace comes, or goes with all that is in it.
    fn namespace(&mut self, engine: &Engine) -> Option<Request> {
        let target = ObjectRef::new(NAMESPACE.clone(), ObjectKey::cluster(SECOND_NAMESPACE));
        match engine.get(&NAMESPACE, &target.key) {
            Some(_) => Some(Request::Delete { target, options: DeleteOptions::default() }),
            None => apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SECOND_NAMESPACE}})),
        }
    }

    /// A node goes, falls silent or is heard of again, is closed or opened.
    fn fault(&mut self, engine: &Engine) -> Option<Request> {
        if self.below(3) == 0 {
            return self.delete_one(engine, &NODE);
        }
        let node = self.one(engine, &NODE)?;
        if self.flag() {
            let is_heard = self.flag();
            return heard(engine.get(&NODE, &node.key)?, is_heard);
        }
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
        let ways = [Propagation::Background, Propagation::Foreground, Propagation::Orphan];
        let propagation = ways[self.below(3) as usize];
        Some(Request::Delete { target, options: DeleteOptions { propagation, ..DeleteOptions::default() } })
    }
}

/// A node whose condition `Ready` is to become known, or unknown; `None`: it says so already, or has never reported.
fn heard(node: &Object, is_heard: bool) -> Option<Request> {
    let mut json = node.to_json();
    let conditions = json.pointer_mut("/status/conditions")?.as_array_mut()?;
    let ready = conditions.iter_mut().find(|condition| condition["type"] == "Ready")?;
    let (from, to) = if is_heard { ("Unknown", "True") } else { ("True", "Unknown") };
    if ready["status"] != from {
        return None;
    }
    ready["status"] = json!(to);
    Object::from_json(json).ok().map(Request::update_status)
}

fn apply(json: Value) -> Option<Request> {
    Object::from_json(json).ok().map(Request::apply)
}
