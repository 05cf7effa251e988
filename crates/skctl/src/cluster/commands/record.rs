//! `skctl record -O FILE`: runs a tracer in the foreground until Ctrl-C.
//!
//! Events go to a durable log beside the file, `FILE.recording/`, as they do in the cluster. At the end the trace is
//! exported from it and the log is deleted. After a crash or with a full disk the log stays, and the same command
//! continues it; the time in between is a gap in the trace.
//!
//! A recording cannot be repeated, so the command refuses an existing file before it records, and checks again before
//! it writes the trace.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use indicatif::{DecimalBytes, HumanCount};
use sk_core::SimTime;
use sk_store::Location;
use sk_store::log::Query;
use sk_tracer::{Counts, Options, Tracer};

use crate::cli::{Global, RecordArgs};
use crate::cluster::installation;
use crate::cluster::recording::{self, access};
use crate::cluster::{self, Cluster};
use crate::failure::Outcome;
use crate::outputs::Destination;
use crate::progress::Progress;
use crate::{output, progress};

/// How often the counter moves.
const TICK: Duration = Duration::from_millis(200);
/// In the folder of a recording: when it began, so that a recording that goes on begins where the first part did.
const BEGAN: &str = "began";

pub(crate) fn run(args: &RecordArgs, global: &Global) -> Result<Outcome> {
    let destination = Destination::beside_an_answer(out(args)?, None)?;
    refuse_to_overwrite(args)?;
    let config = installation::tracer_config(args.config.as_deref(), global)?;
    let folder = Folder::beside(&args.out);
    let trace = cluster::block_on(async {
        let cluster = Cluster::connect(global).await?;
        if folder.is_resumed {
            output::say(global, &format!("continuing the recording in {}", folder.path.display()));
        }
        let options = Options { data_dir: Some(folder.path.clone()), ..Options::default() };
        let tracer = Tracer::start(access(global).await?, config, options).await?;
        let Some(start) = watch(&tracer, &cluster, &folder, global).await? else { return Ok(None) };
        progress::heed();
        let progress = Progress::of_unknown_length("making the trace".to_owned(), global.quiet)?;
        let trace = progress.waiting(tracer.export(Query::window(start, SimTime::MAX), destination.format())).await;
        // Whatever became of the export, what was seen is to be on disk.
        tracer.shutdown().await?;
        Ok(Some(trace.with_context(|| folder.advice())?.with_context(|| folder.advice())?))
    });
    let Some(trace) = trace? else {
        folder.remove_if_new();
        return Ok(Outcome::Interrupted);
    };
    refuse_to_overwrite(args).with_context(|| folder.advice())?;
    recording::save(trace, &destination, global).with_context(|| folder.advice())?;
    folder.remove()?;
    Ok(Outcome::Good)
}

fn out(args: &RecordArgs) -> Result<&str> {
    args.out.to_str().context("--out: the path is not UTF-8")
}

/// Refuses to replace an existing file without --force. A broken link exists, too.
fn refuse_to_overwrite(args: &RecordArgs) -> Result<()> {
    let location: Location = out(args)?.parse()?;
    match &location {
        Location::File(path) if !args.force && path.symlink_metadata().is_ok() => {
            bail!("{location} exists already; choose another name for -O, or add --force to replace it")
        }
        Location::File(_) | Location::StandardInput | Location::Remote(_) => Ok(()),
    }
}

/// Shows the progress until Ctrl-C. Returns when the recording began, or `None` if it never did.
async fn watch(tracer: &Tracer, cluster: &Cluster, folder: &Folder, global: &Global) -> Result<Option<SimTime>> {
    let progress = Progress::of_unknown_length(format!("first look at {cluster}"), global.quiet)?;
    if progress.waiting(tracer.ready()).await.is_err() {
        return Ok(None);
    }
    let start = folder.began()?;
    output::say(global, &format!("recording {cluster}; Ctrl-C ends it and writes the trace"));
    let mut ticks = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            _ = ticks.tick() => if let ControlFlow::Break(()) = progress.at(0, || words(&tracer.counts())) {
                return Ok(Some(start));
            },
            () = tracer.failed() => bail!("the recording was interrupted; {}", folder.advice()),
        }
    }
}

/// `1,204 events · 310 objects · lag 0.1s · 12 MB`
fn words(counts: &Counts) -> String {
    let gaps = if counts.gaps > 0 { format!(" · {} gaps", HumanCount(counts.gaps)) } else { String::new() };
    format!(
        "{} events · {} objects and pods · lag {:.1}s · {}{gaps}",
        HumanCount(counts.events),
        HumanCount(counts.live),
        counts.lag,
        DecimalBytes(counts.log_bytes)
    )
}

fn now() -> SimTime {
    SimTime::from_micros(jiff::Timestamp::now().as_microsecond())
}

/// Where a recording lies until its trace is written.
struct Folder {
    path: PathBuf,
    is_resumed: bool,
}

impl Folder {
    fn beside(out: &Path) -> Self {
        let mut path = out.as_os_str().to_owned();
        path.push(".recording");
        let path = PathBuf::from(path);
        let is_resumed = path.join(BEGAN).is_file();
        Self { path, is_resumed }
    }

    /// When the recording began: now, if it has not before.
    fn began(&self) -> Result<SimTime> {
        let file = self.path.join(BEGAN);
        if self.is_resumed {
            let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let time = SimTime::parse_rfc3339(text.trim());
            return time
                .with_context(|| format!("{} contains no time; remove the folder to start again", file.display()));
        }
        let now = now();
        fs::write(&file, now.to_rfc3339_micros()).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(now)
    }

    fn advice(&self) -> String {
        format!("the recording is in {}; the same command continues it", self.path.display())
    }

    fn remove(&self) -> Result<()> {
        fs::remove_dir_all(&self.path).with_context(|| {
            format!(
                "the trace is written, but the folder of the recording could not be removed: {}",
                self.path.display()
            )
        })
    }

    /// Nothing was recorded: a folder that was not there before is of no use to anybody.
    fn remove_if_new(&self) {
        if !self.is_resumed {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_that_goes_on_begins_where_its_first_part_did() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("a.sktrace");
        let first = Folder::beside(&out);
        assert!(!first.is_resumed);
        fs::create_dir(&first.path).unwrap();
        let began = first.began().unwrap();
        let second = Folder::beside(&out);
        assert!(second.is_resumed);
        assert_eq!(second.began().unwrap(), began);
        second.remove_if_new();
        assert!(second.path.exists(), "what somebody recorded is not thrown away");
        second.remove().unwrap();
        assert!(!second.path.exists());
    }

    #[test]
    fn the_counter_says_what_was_seen_and_what_was_not() {
        let counts = Counts { events: 1204, live: 310, lag: 0.14, log_bytes: 12_000_000, ..Counts::default() };
        assert_eq!(words(&counts), "1,204 events · 310 objects and pods · lag 0.1s · 12.00 MB");
        assert!(words(&Counts { gaps: 2, ..counts }).ends_with("2 gaps"));
    }
}
