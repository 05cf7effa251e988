//! `skctl sweep`: many runs, planned once and made one by one.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{RunRequestArgs, TableFormat};

pub(super) const EXAMPLES: &str = "Examples:
  skctl sweep plan week.sktrace -f pack.yaml --vary cluster.groups.general.max=40,36,32 -N 20
  skctl sweep run sweeps/pack
  skctl sweep status sweeps/pack
  skctl compare runs/pack-*
  skctl sweep plan s3://sim-traces/week.sktrace -f pack.yaml -N 200 --to s3://sim-runs/pack --secret s3 --apply
  skctl sweep fetch sweeps/pack

If the trace and the records are in an object store, the plan also has a job.yaml: an Indexed Job with a pod for each run.
You can stop a sweep and run it again: it skips the runs whose record exists. Each run is judged on its own, so assertions
cannot use `baseline` or `ratio`.";

/// `skctl sweep`
#[derive(Debug, Subcommand)]
pub enum SweepCommand {
    /// Write a plan with one run for each variant, varied value and repetition.
    Plan(Box<SweepPlanArgs>),
    /// Run the simulations of a plan that have no record yet.
    Run(SweepRunArgs),
    /// Show which runs of a plan are done, failed or missing. Exit code 1 until all are done.
    Status(SweepStatusArgs),
    /// Copy the records of a plan from the object store into a folder.
    Fetch(SweepFetchArgs),
}

/// `skctl sweep plan`
#[derive(Debug, Args)]
pub struct SweepPlanArgs {
    /// Which runs.
    #[command(flatten)]
    pub request: RunRequestArgs,
    /// Where the records go: a folder, or a folder in an object store (s3://…, gs://…, azure://…).
    #[arg(long, value_name = "PLACE", default_value = "runs")]
    pub to: String,
    /// The folder to write the plan to; by default ./sweeps/NAME.
    #[arg(short = 'O', long = "out", value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The image of skctl; by default skctl:VERSION.
    #[arg(long, value_name = "IMAGE", help_heading = AS_A_JOB)]
    pub image: Option<String>,
    /// Run this many pods at the same time; by default 10.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = AS_A_JOB)]
    pub parallelism: Option<u32>,
    /// A Secret to use as environment of the pods: credentials for the object store.
    #[arg(long, value_name = "NAME", help_heading = AS_A_JOB)]
    pub secret: Option<String>,
    /// Memory of each pod, such as 2Gi; by default estimated from the size of the trace.
    #[arg(long, value_name = "QUANTITY", help_heading = AS_A_JOB)]
    pub memory: Option<String>,
    /// Apply job.yaml to the cluster of --context, in the namespace of -n.
    #[arg(long, help_heading = AS_A_JOB)]
    pub apply: bool,
}

/// The heading of flags about Kubernetes objects.
const AS_A_JOB: &str = "As a Kubernetes Job";

/// `skctl sweep run`
#[derive(Debug, Args)]
pub struct SweepRunArgs {
    /// The folder of the plan.
    pub plan: PathBuf,
    /// Run this many at the same time; by default one per core.
    #[arg(short = 'j', long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Run only this one, counted from 0, as a pod of the Job does. Exit code 0 if its record exists afterwards, whatever
    /// its assertions say.
    #[arg(long, value_name = "N", env = "JOB_COMPLETION_INDEX", hide_env = true)]
    pub index: Option<usize>,
}

/// `skctl sweep status`
#[derive(Debug, Args)]
pub struct SweepStatusArgs {
    /// The folder of the plan.
    pub plan: PathBuf,
    /// Output format.
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub output: TableFormat,
}

/// `skctl sweep fetch`
#[derive(Debug, Args)]
pub struct SweepFetchArgs {
    /// The folder of the plan.
    pub plan: PathBuf,
    /// Copy the records to this folder; by default ./runs.
    #[arg(short = 'O', long = "out", value_name = "DIR")]
    pub out: Option<PathBuf>,
}
