//! The checks of `skctl doctor`.
//!
//! A check looks at one thing and reports what it found; it never changes anything. Checks go from the outside in:
//! without an API server that answers there is nothing else to check. A warning may be intended; a failure keeps the
//! installation from working.

mod objects;
mod roles;
mod sim;
mod stages;
mod tracer;

use std::fmt;

use anyhow::Result;
use serde::Serialize;

use crate::cli::Part;
use crate::cluster::rights::Right;
use crate::cluster::{Cluster, words};

/// The oldest minor version of Kubernetes 1 that is tried: TokenRequest, server-side apply, CEL in schemas and job
/// success policies are all there.
const OLDEST_MINOR: u32 = 30;

/// How many names of things that are missing are said; the rest is a number.
const NAMED: usize = 4;

/// How a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// As it should be.
    Ok,
    /// Perhaps not as it is meant.
    Warn,
    /// Not as it must be.
    Fail,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) state: State,
    /// What was checked.
    pub(crate) subject: String,
    /// How it is.
    pub(crate) what: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) advice: Option<String>,
}

impl Finding {
    pub(crate) fn ok(subject: &str, what: impl Into<String>) -> Self {
        Self { state: State::Ok, subject: subject.to_owned(), what: what.into(), advice: None }
    }

    pub(crate) fn warn(subject: &str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        let (what, advice) = (what.into(), Some(advice.into()));
        Self { state: State::Warn, subject: subject.to_owned(), what, advice }
    }

    pub(crate) fn fail(subject: &str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { state: State::Fail, ..Self::warn(subject, what, advice) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Ok => "OK",
            State::Warn => "WARN",
            State::Fail => "FAIL",
        };
        write!(f, "{state:<5} {:<12} {}", self.subject, self.what)?;
        match &self.advice {
            Some(advice) => write!(f, "\n{:<18} → {advice}", ""),
            None => Ok(()),
        }
    }
}

/// Looks at everything that one installation, or both, needs.
pub(crate) async fn examine(cluster: &Cluster, part: Option<Part>) -> Result<Vec<Finding>> {
    let mut findings = vec![reachability(cluster).await];
    if findings[0].state == State::Fail {
        return Ok(findings);
    }
    if part != Some(Part::Sim) {
        findings.extend(tracer::examine(cluster).await?);
    }
    if part != Some(Part::Tracer) {
        findings.extend(sim::examine(cluster).await?);
    }
    Ok(findings)
}

async fn reachability(cluster: &Cluster) -> Finding {
    match cluster.client.apiserver_version().await {
        Ok(version) => {
            let digits: String = version.minor.chars().take_while(char::is_ascii_digit).collect();
            let what = format!("{cluster}, Kubernetes {}", version.git_version);
            match digits.parse::<u32>() {
                Ok(minor) if minor < OLDEST_MINOR => {
                    let advice = format!("SimKube is tested with Kubernetes 1.{OLDEST_MINOR} and newer");
                    Finding::warn("server", what, advice)
                }
                _ => Finding::ok("server", what),
            }
        }
        Err(error) => Finding::fail(
            "server",
            format!("{cluster} does not answer: {}", words(&error)),
            "check --context, your network, and that your credentials are still valid",
        ),
    }
}

/// Does the server let us do all of this? `whom` to ask for what is missing.
async fn rights(cluster: &Cluster, wanted: &[Right], advice: &str) -> Finding {
    let mut missing = Vec::new();
    for right in wanted {
        match right.is_granted(cluster).await {
            Ok(true) => {}
            Ok(false) => missing.push(right.name()),
            Err(error) => {
                return Finding::warn("rights", format!("cannot review your access: {}", words(&error)), "try again");
            }
        }
    }
    if missing.is_empty() {
        let names: Vec<_> = wanted.iter().map(Right::name).collect();
        return Finding::ok("rights", format!("you may {}", names.join(", ")));
    }
    Finding::fail("rights", format!("you may not {}", missing.join(", ")), advice)
}

/// The first of many names; of the rest only how many there are.
fn the_first(mut names: Vec<String>, separator: &str) -> String {
    let rest = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("{}{more}", names.join(separator))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_names_the_first_are_said() {
        let names = |count: u32| (1..=count).map(|number| number.to_string()).collect();
        assert_eq!(the_first(names(2), ", "), "1, 2");
        assert_eq!(the_first(names(6), "; "), "1; 2; 3; 4 and 2 more");
    }

    #[test]
    fn a_finding_is_a_line_and_its_advice_another() {
        assert_eq!(Finding::ok("pod", "is ready").to_string(), "OK    pod          is ready");
        let fail = Finding::fail("pod", "is Pending", "wait").to_string();
        assert_eq!(fail, "FAIL  pod          is Pending\n                   → wait");
        let json = serde_json::to_value(Finding::fail("pod", "is Pending", "wait")).unwrap();
        assert_eq!(json["state"], "fail");
    }
}
