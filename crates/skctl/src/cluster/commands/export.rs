//! `skctl export`: downloads a trace from the tracer in the cluster.
//!
//! The tracer is found by its labels and reached through the API server, with a token for this purpose only. The file
//! appears under its name when it is complete; Ctrl-C leaves nothing.

use std::io::Write as _;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use indicatif::DecimalBytes;
use serde_json::{Value, json};
use sk_api::tracer::{ExportRequest, Filters};
use sk_core::duration::TimeSpec;
use sk_core::selector::{Operator, Requirement};
use sk_core::{LabelSelector, SimTime};
use sk_store::Location;

use crate::cli::{ExportArgs, Global};
use crate::cluster::channel::Channel;
use crate::cluster::installation::TRACER;
use crate::cluster::{self, Cluster};
use crate::failure::Outcome;
use crate::output;
use crate::progress::Progress;
use crate::times::Clock;

pub(crate) fn run(args: &ExportArgs, global: &Global) -> Result<Outcome> {
    if args.transform.is_some() {
        bail!(
            "--transform was removed: export first, then `skctl trace transform IN -f PROGRAM -O OUT` with a jq \
             program; docs/from-simkube.md has a jq line for each of SKEL's statements"
        );
    }
    let request = request(args, &Clock::of(global))?;
    let location: Location = args.out.parse()?;
    if location == Location::StandardInput {
        bail!("a trace cannot be written to a terminal; give a path or a URL for -O");
    }
    cluster::block_on(async {
        let progress = Progress::of_unknown_length("looking for the tracer".to_owned(), global.quiet)?;
        let mut tracer = progress.waiting(open(args, global)).await??;
        drop(progress);
        fetch(&mut tracer, &request, &location, global).await
    })
}

async fn open(args: &ExportArgs, global: &Global) -> Result<Channel> {
    match args.tracer_address.as_deref() {
        // A tracer without TLS takes no tokens, so no cluster is needed to ask it.
        Some(address) if address.starts_with("http://") => Ok(TRACER.open_at(address, None).await?),
        Some(address) => Ok(TRACER.open_at(address, Some(&Cluster::connect(global).await?)).await?),
        None => Ok(TRACER.open(&Cluster::connect(global).await?).await?),
    }
}

/// Asks, and puts the answer in its place.
async fn fetch(tracer: &mut Channel, request: &ExportRequest, location: &Location, global: &Global) -> Result<Outcome> {
    let body = serde_json::to_vec(request)?;
    let progress = Progress::of_unknown_length(format!("{} gathers the trace", tracer.peer()), global.quiet)?;
    let response = progress.waiting(tracer.ask(Method::POST, "/export", Some(body))).await??;
    drop(progress);
    if tracer_writes(location) {
        output::say(global, &format!("the tracer wrote {location}"));
        return Ok(Outcome::Good);
    }
    let length = response.headers().get(http::header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()).and_then(|length| length.parse().ok());
    let told = what_is_missing(response.headers());
    let bytes = save(response.into_body(), length, location, global).await?;
    output::say(global, &format!("wrote {location}: {}", DecimalBytes(bytes)));
    for line in told {
        anstream::eprintln!("warning: {}", output::plain(&line));
    }
    Ok(Outcome::Good)
}

/// The tracer's notes on a trace. They limit how far it can be trusted, so they are printed even with -q.
fn what_is_missing(headers: &HeaderMap) -> Vec<String> {
    let said = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let gaps =
        said("x-simkube-gaps").map(|gaps| format!("{gaps} gaps in the recording; export a native trace to see which"));
    let losses = said("x-simkube-losses").map(|losses| format!("this format cannot hold everything: {losses}"));
    let behind = said("x-simkube-behind").map(|kinds| format!("the last moments of {kinds} may be missing"));
    [gaps, losses, behind].into_iter().flatten().collect()
}

/// Writes the body and returns its length. A truncated one is not kept.
async fn save(mut body: Incoming, length: Option<u64>, location: &Location, global: &Global) -> Result<u64> {
    let mut output = location.create()?;
    let progress = Progress::of_bytes(length, format!("fetching {location}"), global.quiet)?;
    let mut bytes = 0;
    while let Some(frame) = progress.waiting(body.frame()).await? {
        let frame = frame.context("the tracer closed the connection; nothing was written; try again")?;
        let data: Bytes = frame.into_data().unwrap_or_default();
        output.write_all(&data).with_context(|| format!("cannot write {location}"))?;
        bytes += data.len() as u64;
        progress.bytes(bytes);
    }
    if length.is_some_and(|length| length != bytes) {
        bail!("the tracer closed the connection after {}; nothing was written; try again", DecimalBytes(bytes));
    }
    // Sending it on to a web server blocks, which the threads that talk to the cluster must not.
    tokio::task::spawn_blocking(move || output.commit()).await??;
    Ok(bytes)
}

/// Object stores are the tracer's own business: it has the credentials, and may have no other way out.
fn tracer_writes(location: &Location) -> bool {
    let place = location.to_string();
    ["s3://", "gs://", "azure://"].iter().any(|scheme| place.starts_with(scheme))
}

/// Builds the export request for the tracer.
fn request(args: &ExportArgs, clock: &Clock) -> Result<ExportRequest> {
    let (start, end) = window(args, clock)?;
    let seconds = |time: SimTime| time.since(SimTime::EPOCH).as_secs_f64();
    Ok(ExportRequest {
        start_ts: seconds(start),
        end_ts: seconds(end),
        until_now: ends_now(args),
        export_path: args.out.clone(),
        filters: Filters {
            excluded_namespaces: args.excluded_namespaces.clone(),
            excluded_labels: Vec::new(),
            included_namespaces: args.include_namespaces.clone(),
            included_labels: label_selector(&args.selector)?.into_iter().collect(),
        },
        format: Some(args.format.name().to_owned()),
    })
}

/// From when to when. There is no trace yet, so `+` counts from the start that was asked for.
fn window(args: &ExportArgs, clock: &Clock) -> Result<(SimTime, SimTime)> {
    let start = TimeSpec::parse(&args.start).context("--start")?;
    if let TimeSpec::AfterStart(_) = start {
        bail!("--start: `{}` counts from a trace's start, and there is no trace yet; use -2h or a date", args.start);
    }
    let start = start.resolve(clock.now, clock.now, &clock.zone)?;
    let end = match (&args.end, &args.duration) {
        (Some(end), _) => clock.moment(end, start).context("--end")?,
        (None, Some(duration)) => start + duration.parse().context("--duration")?,
        (None, None) => clock.now,
    };
    if end <= start {
        bail!("the window is empty: it begins {start} and ends {end}");
    }
    Ok((start, end))
}

/// Does the window end when the tracer is asked? When that is, the tracer knows better than this machine's clock.
fn ends_now(args: &ExportArgs) -> bool {
    match &args.end {
        Some(end) => TimeSpec::parse(end) == Ok(TimeSpec::Now),
        None => args.duration.is_none(),
    }
}

/// As Kubernetes' JSON has it; `None` if everything is wanted.
fn label_selector(selector: &LabelSelector) -> Result<Option<Value>> {
    if selector.is_everything() {
        return Ok(None);
    }
    let expression = |requirement: &Requirement| {
        let operator = match requirement.operator() {
            Operator::In => "In",
            Operator::NotIn => "NotIn",
            Operator::Exists => "Exists",
            Operator::DoesNotExist => "DoesNotExist",
            Operator::GreaterThan | Operator::LessThan => {
                bail!("--selector: a tracer does not compare numbers; export more, then `skctl trace slice -l`")
            }
        };
        let values: Vec<&str> = requirement.values().iter().map(AsRef::as_ref).collect();
        Ok(json!({"key": requirement.key(), "operator": operator, "values": values}))
    };
    let expressions = selector.requirements().iter().map(expression).collect::<Result<Vec<_>>>()?;
    Ok(Some(json!({"matchExpressions": expressions})))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use jiff::tz::TimeZone;

    use super::*;
    use crate::cli::{Cli, ClusterCommand, Command};

    fn ask(line: &str) -> Result<ExportRequest> {
        let words = ["skctl", "export", "-O", "a.sktrace"].into_iter().chain(line.split_whitespace());
        let Command::Cluster(ClusterCommand::Export(args)) = Cli::try_parse_from(words).unwrap().command else {
            panic!("it is an export")
        };
        request(&args, &Clock { now: SimTime::from_secs(100_000), zone: TimeZone::UTC })
    }

    #[test]
    fn times_are_counted_from_now_and_the_end_from_the_start() {
        let window = |line: &str| ask(line).map(|request| (request.start_ts, request.end_ts)).unwrap();
        assert_eq!(window("-s -1h"), (96_400.0, 100_000.0));
        assert_eq!(window("--start-time -1h --end-time -30m"), (96_400.0, 98_200.0));
        assert_eq!(window("-s -1h -D 10m"), (96_400.0, 97_000.0));
        assert_eq!(window("-s -1h -t +10m"), (96_400.0, 97_000.0));
    }

    #[test]
    fn only_a_window_that_ends_now_goes_on_until_the_tracer_is_asked() {
        let until_now = |line: &str| ask(line).unwrap().until_now;
        assert!(until_now("-s -1h") && until_now("-s -1h -t now"));
        assert!(!until_now("-s -1h -t -1s") && !until_now("-s -1h -D 10m"));
    }

    #[test]
    fn a_window_that_cannot_be_is_refused_with_advice() {
        let refuse = |line: &str| format!("{:#}", ask(line).unwrap_err());
        assert!(refuse("-s +1h").contains("there is no trace yet"));
        assert!(refuse("-s -1h -t -2h").contains("the window is empty"));
        assert!(refuse("-s yesterday").contains("--start"));
    }

    #[test]
    fn filters_and_the_form_are_passed_on() {
        let request =
            ask("-s -1h --include-namespaces a,b --excluded-namespaces c -l app=web,!debug --format v2").unwrap();
        assert_eq!(request.filters.included_namespaces, ["a", "b"]);
        assert_eq!(request.filters.excluded_namespaces, ["c"]);
        assert_eq!(request.format.as_deref(), Some("v2"));
        let read = LabelSelector::from_json(&request.filters.included_labels[0]).unwrap();
        assert_eq!(read, "app=web,!debug".parse().unwrap());
        assert!(format!("{:#}", ask("-s -1h -l cpus>5").unwrap_err()).contains("does not compare numbers"));
    }
}
