//! `skctl sweep plan`: plans the runs as `skctl run` does and writes the plan.
//!
//! Each run is checked before the plan is written: its resolved scenario alone must give the same run id as the whole
//! command. So every plan that exists can be executed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use sk_core::Quantity;
use sk_store::Location;
use sk_store::location::shown;

use super::file::{Line, Plan, SCENARIO, Sweep, put};
use super::location::RecordLocation;
use super::manifests::{self, Pods};
use crate::cli::{Global, RunArgs, RunRequestArgs, SweepPlanArgs};
use crate::commands::run::single::{self, SingleRun};
use crate::examples;
use crate::failure::Outcome;
use crate::{cluster, output, runs, scenarios, traces};

/// The Kubernetes objects in the plan's folder.
const JOB: &str = "job.yaml";
/// The default folder of plans.
const SWEEPS: &str = "sweeps";

pub(super) fn run(args: &SweepPlanArgs, global: &Global) -> Result<Outcome> {
    let asked = RunArgs { request: args.request.clone(), ..RunArgs::default() };
    let resolved = scenarios::resolve(&asked)?;
    let (trace, to) = (lasting_trace(&resolved.trace)?, absolute(&args.to)?);
    // A place that cannot be one is found out now and not by each run.
    RecordLocation::new(&to)?;
    if let Some(why) = manifests::obstacle(&trace, &to).filter(|_| args.apply) {
        bail!("--apply: {why}");
    }
    let all = single::list(&asked, global)?;
    let of_scenario = resolved.scenario.name.as_ref().map(ToString::to_string);
    let name = args.request.name.clone().or(of_scenario).unwrap_or_else(|| traces::default_name(&resolved.trace));
    let name = runs::folder_name(&name);
    let dir = args.out.clone().unwrap_or_else(|| Path::new(SWEEPS).join(&name));
    begin(&dir)?;
    let plan = Plan::new(name, trace, to, args.request.strict, resolved.assumptions);
    let mut sweep = Sweep { dir, plan, lines: Vec::new() };
    let job = write(args, &mut sweep, &all, global).inspect_err(|_| {
        // The folder was empty; what it has now is not a plan.
        let _ = fs::remove_dir_all(&sweep.dir);
    })?;
    let job = match job {
        Ok(job) if args.apply => job.apply(global)?,
        Ok(job) => format!("as a Job: {}", job.by_hand()),
        Err(why) => format!("as a Job: not possible, {why}"),
    };
    let (runs, variants, place) = (all.len(), count(&sweep), shown(&sweep.plan.to));
    let (name, dir) = (&sweep.plan.name, sweep.dir.display());
    output::print(&format!(
        "{name}: {runs} runs of {variants} variants, records in {place}\non this machine: skctl sweep run {dir}\n{job}\n"
    ))?;
    Ok(Outcome::Good)
}

/// The Kubernetes objects of a plan.
struct Manifests {
    file: PathBuf,
    objects: Vec<Value>,
}

impl Manifests {
    /// The command that applies them by hand.
    fn by_hand(&self) -> String {
        format!("kubectl apply -f {}", self.file.display())
    }

    /// Applies them; what to say of it. The plan is good whatever the cluster answers, so it stays.
    fn apply(&self, global: &Global) -> Result<String> {
        let applied = cluster::apply(&self.objects, global);
        let by_hand = self.by_hand();
        let cluster = applied
            .with_context(|| format!("the plan is written, but its Job could not be applied; `{by_hand}` does that"))?;
        Ok(format!("as a Job: started in {cluster}"))
    }
}

/// Writes the plan into its folder, and its Job unless something is in the way of that.
fn write(
    args: &SweepPlanArgs,
    sweep: &mut Sweep,
    all: &[SingleRun],
    global: &Global,
) -> Result<Result<Manifests, String>> {
    sweep.lines = lines(sweep, all)?;
    check(sweep, global)?;
    sweep.write()?;
    write_job(args, sweep, global)
}

/// Writes the Kubernetes objects beside the plan if pods can carry it out; else says why they cannot.
fn write_job(args: &SweepPlanArgs, sweep: &Sweep, global: &Global) -> Result<Result<Manifests, String>> {
    if let Some(why) = manifests::obstacle(&sweep.plan.trace, &sweep.plan.to) {
        return Ok(Err(why));
    }
    let image = args.image.clone().unwrap_or_else(|| format!("skctl:{}", env!("CARGO_PKG_VERSION")));
    let memory = args.memory.as_deref().map(str::parse::<Quantity>).transpose().context("--memory")?;
    let memory = memory.map(|memory| memory.to_string());
    let pods = Pods {
        image: &image,
        parallelism: args.parallelism.map(|most| most as usize),
        secret: args.secret.as_deref(),
        namespace: global.namespace.as_deref(),
        memory: memory.as_deref(),
        trace_bytes: traces::bytes_of(&sweep.plan.trace),
    };
    let objects = manifests::manifests(sweep, &pods)?;
    let file = sweep.dir.join(JOB);
    put(&file, serde_saphyr::to_string_multiple(&objects)?.as_bytes())?;
    Ok(Ok(Manifests { file, objects }))
}

/// How many variants there are.
fn count(sweep: &Sweep) -> usize {
    sweep.lines.iter().map(|line| line.folder.as_str()).collect::<std::collections::BTreeSet<_>>().len()
}

/// The trace as it can be named from anywhere.
fn lasting_trace(typed: &str) -> Result<String> {
    if typed.starts_with(examples::PREFIX) {
        return Ok(typed.to_owned());
    }
    Ok(match typed.parse()? {
        Location::StandardInput => bail!("a sweep reads its trace many times, and standard input can be read once"),
        Location::Remote(_) => typed.to_owned(),
        Location::File(path) => {
            let path = path.canonicalize().with_context(|| format!("cannot find the trace {}", path.display()))?;
            path.to_str().context("the path of the trace is not text")?.to_owned()
        }
    })
}

/// A folder as it can be named from anywhere; a URL stays.
fn absolute(place: &str) -> Result<String> {
    Ok(match place.parse()? {
        Location::File(path) => {
            let path = std::path::absolute(&path).with_context(|| format!("--to {}", path.display()))?;
            path.to_str().context("--to: the path is not text")?.to_owned()
        }
        Location::Remote(_) => place.trim_end_matches('/').to_owned(),
        Location::StandardInput => bail!("--to: `-` is not a folder"),
    })
}

/// Makes the folder, which must be new or empty.
fn begin(dir: &Path) -> Result<()> {
    let named = || format!("cannot make the folder {}", dir.display());
    fs::create_dir_all(dir).with_context(named)?;
    if fs::read_dir(dir).with_context(named)?.next().is_some() {
        bail!("{} is not empty; remove it, or name another folder with -O", dir.display());
    }
    Ok(())
}

/// Writes the scenario of each variant, and says which run uses which.
fn lines(sweep: &Sweep, all: &[SingleRun]) -> Result<Vec<Line>> {
    let mut folders: BTreeMap<&str, String> = BTreeMap::new();
    let mut lines = Vec::new();
    for (index, run) in all.iter().enumerate() {
        let known = folders.get(run.variant.as_str()).cloned();
        let folder = known.unwrap_or_else(|| format!("v{}", folders.len()));
        if folders.insert(&run.variant, folder.clone()).is_none() {
            write_variant(&sweep.dir.join(&folder), run)?;
        }
        lines.push(Line {
            index,
            variant: run.variant.clone(),
            folder,
            seed: run.seed,
            name: run.name.clone(),
            run_id: run.run_id.clone(),
        });
    }
    Ok(lines)
}

fn write_variant(dir: &Path, run: &SingleRun) -> Result<()> {
    fs::create_dir(dir).with_context(|| format!("cannot make the folder {}", dir.display()))?;
    put(&dir.join(SCENARIO), run.scenario.as_bytes())?;
    run.files.iter().try_for_each(|(name, content)| put(&dir.join(name), content))
}

/// Finds out whether the plan alone gives the same runs: the first and the last of each variant.
fn check(sweep: &Sweep, global: &Global) -> Result<()> {
    for (place, line) in sweep.lines.iter().enumerate() {
        let is_edge = |other: Option<&Line>| other.is_none_or(|other| other.folder != line.folder);
        let before = place.checked_sub(1).and_then(|before| sweep.lines.get(before));
        if !is_edge(before) && !is_edge(sweep.lines.get(place + 1)) {
            continue;
        }
        let id = single::id(&arguments(sweep, line, None), global).map_err(explain_baseline)?;
        if id != line.run_id {
            bail!(
                "run {} is {id} when it is asked for alone, and not {}; please report this",
                line.label(),
                line.run_id
            );
        }
    }
    Ok(())
}

/// What `skctl run` is asked for one line.
pub(super) fn arguments(sweep: &Sweep, line: &Line, out: Option<PathBuf>) -> RunArgs {
    let request = RunRequestArgs {
        trace: Some(sweep.plan.trace.clone()),
        scenario: Some(sweep.scenario(line)),
        seed: Some(line.seed),
        name: Some(line.name.clone()),
        strict: sweep.plan.strict,
        ..RunRequestArgs::default()
    };
    RunArgs { request, out, ..RunArgs::default() }
}

/// Assertions that compare runs cannot be judged where each run is made by itself.
fn explain_baseline(error: anyhow::Error) -> anyhow::Error {
    let text = format!("{error:#}");
    if !text.contains("baseline") && !text.contains("ratio") {
        return error;
    }
    error.context(
        "the runs of a sweep are judged one by one, so assertions cannot name `baseline` or `ratio`; take them out",
    )
}
