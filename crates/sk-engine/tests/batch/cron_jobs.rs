//! CronJobs: when Jobs are made, which run beside each other, and which are kept.

use serde_json::{Value, json};
use sk_core::SimTime;
use sk_engine::kinds::{CRON_JOB, JOB};
use sk_engine::{Engine, Settings, Timing};

use crate::harness::{Cluster, START, job, merge, template};

/// A CronJob whose Jobs take `secs`.
fn cron(schedule: &str, secs: i64, spec: Value) -> Value {
    let mut cron = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick", "namespace": "default"},
        "spec": {"schedule": schedule, "jobTemplate": {"metadata": {"labels": {"app": "tick"}}, "spec": {"template": template(secs, 0)}}},
    });
    merge(&mut cron["spec"], spec);
    cron
}

/// When each Job was made, in seconds after the start.
fn starts(cluster: &Cluster) -> Vec<i64> {
    let events = cluster.engine.watch(0).expect("short tests stay within the log");
    let made = events.filter(|event| event.before.is_none() && event.object.gvk == JOB);
    made.map(|event| event.at.since(START).as_micros() / 1_000_000).collect()
}

fn status(cluster: &Cluster) -> Value {
    cluster.get(&CRON_JOB, "tick")["status"].clone()
}

#[test]
fn a_job_is_made_for_every_minute_that_is_due_and_named_after_it() {
    let mut cluster = Cluster::new(Timing::real_like());
    cluster.until(10).apply(cron("* * * * *", 5, json!({})));
    cluster.until(185);
    assert_eq!(starts(&cluster), [60, 120, 180]);
    let minute = START.as_secs() / 60;
    let names: Vec<_> = (1..=3).map(|n| format!("tick-{}", minute + n)).collect();
    assert_eq!(cluster.names(&JOB), names);
    let job = cluster.get(&JOB, &names[0]);
    assert_eq!(
        job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"],
        "2026-01-05T08:01:00Z"
    );
    assert_eq!((&job["metadata"]["labels"]["app"], &job["spec"]["backoffLimit"]), (&json!("tick"), &json!(6)));
    assert_eq!(job["status"]["succeeded"], 1);
    let status = status(&cluster);
    assert_eq!(status["lastScheduleTime"], "2026-01-05T08:03:00Z");
    assert_eq!(status["active"][0]["name"], names[2].as_str());
    assert!(
        status["lastSuccessfulTime"].as_str().is_some_and(|time| time.starts_with("2026-01-05T08:02:")),
        "{status}"
    );
}

#[test]
fn jobs_run_beside_the_last_one_or_wait_for_it_or_take_its_place() {
    let run = |policy: &str| {
        let mut cluster = Cluster::ideal();
        cluster.until(10).apply(cron("* * * * *", 90, json!({"concurrencyPolicy": policy})));
        cluster.until(250);
        let running = cluster.phase("Running");
        cluster.until(600);
        (starts(&cluster)[..4].to_vec(), running, status(&cluster).get("lastSuccessfulTime").is_some())
    };
    assert_eq!(run("Allow"), (vec![60, 120, 180, 240], 2, true));
    // The minute that is left out is made up for as soon as the one in the way has finished.
    assert_eq!(run("Forbid"), (vec![60, 151, 242, 333], 1, true));
    assert_eq!(run("Replace"), (vec![60, 120, 180, 240], 1, false));
}

#[test]
fn a_suspended_cron_job_makes_up_for_the_last_start_it_missed_unless_that_is_too_late() {
    let missed = |deadline: Option<i64>| {
        let mut cluster = Cluster::ideal();
        let spec = |suspend: bool| json!({"suspend": suspend, "startingDeadlineSeconds": deadline});
        cluster.until(10).apply(cron("0 * * * *", 5, spec(true)));
        cluster.until(3 * 3_600 + 600).apply(cron("0 * * * *", 5, spec(false)));
        cluster.until(4 * 3_600 + 60);
        starts(&cluster)
    };
    assert_eq!(missed(None), [11_400, 14_400], "one for the last hour, not three");
    assert_eq!(missed(Some(700)), [11_400, 14_400]);
    assert_eq!(missed(Some(300)), [14_400]);
}

#[test]
fn only_so_many_finished_jobs_are_kept() {
    let mut cluster = Cluster::ideal();
    cluster.until(10).apply(cron("* * * * *", 5, json!({"successfulJobsHistoryLimit": 2})));
    cluster.until(590);
    assert_eq!((starts(&cluster).len(), cluster.names(&JOB).len()), (9, 2));
    assert_eq!(cluster.pods().len(), 2, "their pods went with the others");
}

#[test]
fn a_changed_schedule_counts_from_its_next_moment_on() {
    let mut cluster = Cluster::ideal();
    cluster.until(10).apply(cron("0 0 * * *", 5, json!({})));
    cluster.until(5_000).apply(cron("0 * * * *", 5, json!({})));
    cluster.until(2 * 3_600 + 60);
    assert_eq!(starts(&cluster), [7_200], "the hours before the change are not made up for");
}

#[test]
fn the_night_when_clocks_change_skips_an_hour_or_meets_it_twice() {
    let night = |start: &str| {
        let start = SimTime::parse_rfc3339(start).expect("the test's time is a time");
        let mut engine = Engine::new(&Settings { timing: Timing::ideal(), ..Settings::default() }, start);
        let spec = json!({"timeZone": "Europe/Berlin", "successfulJobsHistoryLimit": 10, "suspend": false});
        let object = sk_engine::api::Object::from_json(cron("30 2 * * *", 5, spec)).expect("a CronJob");
        engine.handle(sk_engine::api::Request::create(object)).expect("it is taken");
        engine.advance_to(start + sk_core::SimDuration::from_mins(30 * 60));
        let annotation = "batch.kubernetes.io/cronjob-scheduled-timestamp";
        engine.list(&JOB).map(|job| job.meta.annotations[annotation].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(night("2026-03-28T20:00:00Z"), ["2026-03-30T02:30:00+02:00"]);
    assert_eq!(
        night("2026-10-24T20:00:00Z"),
        ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-26T02:30:00+01:00"]
    );
}

#[test]
fn schedules_and_zones_that_nobody_can_read_are_refused_in_the_servers_words() {
    let mut cluster = Cluster::ideal();
    let mut refused = |cron: Value| cluster.try_apply(cron).expect_err("the API server refuses it").message;
    let cases = [
        ("0 0 L * *", json!({}), "spec.schedule: Invalid value: \"0 0 L * *\": failed to parse int from L"),
        ("TZ=UTC 0 0 * * *", json!({}), "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
        (
            "* * * * *",
            json!({"timeZone": "Nowhere/Land"}),
            "spec.timeZone: Invalid value: \"Nowhere/Land\": unknown time zone",
        ),
        ("* * * * *", json!({"timeZone": "Local"}), "timeZone must be an explicit time zone"),
        ("* * * * *", json!({"startingDeadlineSeconds": -1}), "spec.startingDeadlineSeconds: Invalid value: -1"),
        ("* * * * *", json!({"jobTemplate": {"spec": {"parallelism": -1}}}), "spec.jobTemplate.spec.parallelism"),
    ];
    for (schedule, spec, words) in cases {
        let message = refused(cron(schedule, 5, spec));
        assert!(message.starts_with("CronJob.batch \"tick\" is invalid: ") && message.contains(words), "{message}");
    }
}

#[test]
fn a_schedule_that_never_comes_and_one_that_always_comes_do_not_hang() {
    let mut cluster = Cluster::ideal();
    cluster.until(10).apply(cron("59 23 31 2 *", 5, json!({})));
    cluster.until(86_400);
    assert_eq!(starts(&cluster), [0; 0]);
    let mut cluster = Cluster::ideal();
    cluster.until(10).apply(cron("@every 1s", 5, json!({"concurrencyPolicy": "Forbid"})));
    cluster.until(200);
    // A Job is named after its minute, so there is one a minute at most.
    assert!(starts(&cluster).len() <= 4, "{:?}", starts(&cluster));
}

#[test]
fn a_job_of_that_name_that_is_somebody_elses_is_left_alone() {
    let mut cluster = Cluster::ideal();
    let taken = format!("tick-{}", START.as_secs() / 60 + 1);
    cluster.until(1).apply(job(&taken, 0, json!({})));
    cluster.until(10).apply(cron("* * * * *", 5, json!({}))).until(130);
    assert_eq!(starts(&cluster), [1], "Kubernetes, too, then waits for the next change of the CronJob");
    assert!(cluster.get(&JOB, &taken)["metadata"].get("ownerReferences").is_none());
    cluster.apply(cron("* * * * *", 5, json!({"failedJobsHistoryLimit": 2}))).until(200);
    assert_eq!(starts(&cluster), [1, 130, 180]);
}
