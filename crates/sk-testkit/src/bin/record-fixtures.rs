//! `make record-fixtures`: records what the real control plane does with each scenario, what the real scheduler does
//! with each family of scheduling scenarios, which kinds and types the API server serves, and the answers of the
//! oracles. Arguments name what to record (`job`, `scheduler/preemption`, `api/pods`, `discovery`, `openapi`,
//! `oracle-cron`, or `scheduler` and `api` for all their families); without arguments it records everything.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use futures::future::join_all;

use sk_testkit::Scenario;
use sk_testkit::recorder::{
    ApiArena, ORACLES, RecordError, Recorder, record_discovery, record_openapi, record_oracle, write, write_api,
    write_discovery, write_openapi, write_oracle,
};
use sk_testkit::scheduling::Family;
use sk_testkit::scheduling::live::{self, Arena, Flags, PlayError};

/// Clusters at the same time, unless the variable of this name says otherwise: they mostly wait.
const AT_ONCE: usize = 2;

/// What can go wrong here.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Play(#[from] PlayError),
    #[error("not recorded:\n{0}")]
    Failed(String),
}

#[tokio::main]
async fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    match record_wanted(&wanted).await {
        Ok(0) => {
            eprintln!("nothing is called {}: see crates/sk-testkit/scenarios and oracle", wanted.join(" or "));
            ExitCode::from(2)
        }
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("record-fixtures: {error}");
            ExitCode::from(2)
        }
    }
}

/// Records what is wanted and says how many that were.
async fn record_wanted(wanted: &[String]) -> Result<usize, Error> {
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|want| want == name);
    let mut recorded = 0;
    for oracle in ORACLES.into_iter().filter(|oracle| is_wanted(&format!("oracle-{oracle}"))) {
        println!("{}", write_oracle(&record_oracle(oracle)?)?.display());
        recorded += 1;
    }
    if is_wanted("discovery") {
        println!("{}", write_discovery(&record_discovery().await?)?.display());
        recorded += 1;
    }
    if is_wanted("openapi") {
        println!("{}", write_openapi(&record_openapi().await?)?.display());
        recorded += 1;
    }
    let scenarios = Scenario::all().map_err(RecordError::from)?;
    recorded += record_scenarios(scenarios.into_iter().filter(|scenario| is_wanted(&scenario.name)).collect()).await?;
    let requests = sk_testkit::api::Family::all().map_err(RecordError::from)?;
    let of_api = |family: &&sk_testkit::api::Family| is_wanted("api") || is_wanted(&format!("api/{}", family.name));
    recorded += record_api(requests.iter().filter(of_api)).await?;
    let families = Family::all().map_err(RecordError::from)?;
    let of_scheduler = |family: &&Family| is_wanted("scheduler") || is_wanted(&format!("scheduler/{}", family.name));
    Ok(recorded + record_families(families.iter().filter(of_scheduler)).await?)
}

/// Plays scenarios on several clusters at a time, those that start the control plane alike one after the other: they share one.
/// One that fails does not keep the others from being recorded.
async fn record_scenarios(mut scenarios: Vec<Scenario>) -> Result<usize, Error> {
    scenarios.sort_by_key(|scenario| (scenario.endings, format!("{:?}", scenario.control_plane)));
    let (count, waiting) = (scenarios.len(), Mutex::new(VecDeque::from(scenarios)));
    let next = || waiting.lock().ok().and_then(|mut waiting| waiting.pop_front());
    let record_one_after_the_other = |_| async {
        let (mut recorder, mut failed) = (Recorder::default(), Vec::new());
        while let Some(scenario) = next() {
            let began = Instant::now();
            match recorder.record(&scenario).await.and_then(|fixture| write(&fixture)) {
                Ok(path) => println!("{} ({:.0} s)", path.display(), began.elapsed().as_secs_f64()),
                Err(error) => failed.push(format!("{}: {error}", scenario.name)),
            }
        }
        failed
    };
    let at_once = std::env::var("AT_ONCE").ok().and_then(|count| count.parse().ok()).unwrap_or(AT_ONCE);
    let failed: Vec<_> = join_all((0..at_once).map(record_one_after_the_other)).await.into_iter().flatten().collect();
    if failed.is_empty() { Ok(count) } else { Err(Error::Failed(failed.join("\n"))) }
}

/// One API server answers all families of requests, each in a namespace of its own.
async fn record_api(families: impl Iterator<Item = &sk_testkit::api::Family>) -> Result<usize, Error> {
    let (mut arena, mut recorded) = (None, 0);
    for family in families {
        let arena = match &mut arena {
            Some(arena) => arena,
            none => none.insert(ApiArena::start().await?),
        };
        let began = Instant::now();
        let path = write_api(&family.name, &arena.record(family).await?)?;
        println!("{} ({} requests, {:.0} s)", path.display(), family.calls.len(), began.elapsed().as_secs_f64());
        recorded += 1;
    }
    Ok(recorded)
}

/// One API server serves all families; the scheduler is restarted for each scenario.
async fn record_families(families: impl Iterator<Item = &Family>) -> Result<usize, Error> {
    let mut arena = None;
    let mut recorded = 0;
    for family in families {
        let arena = match &mut arena {
            Some(arena) => arena,
            none => none.insert(Arena::start(Flags::Deterministic).await?),
        };
        let began = Instant::now();
        let path = live::write(&family.name, &arena.record(family).await?)?;
        let (scenarios, seconds) = (family.scenarios.len(), began.elapsed().as_secs_f64());
        println!("{} ({scenarios} scenarios, {seconds:.0} s)", path.display());
        recorded += 1;
    }
    Ok(recorded)
}
