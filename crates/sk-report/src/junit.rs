//! junit.xml: each assertion is a test case, so that any CI system shows which one failed and by how much.
//!
//! An assertion that holds on an incomplete run is `skipped`, one that could not be evaluated an `error`. If a part of
//! the trace was not simulated, that is a test case of its own, so that a run without assertions is not an empty,
//! green suite.

use crate::analysis::Analysis;
use crate::assertion::Verdict;
use crate::escape::attribute;
use crate::verdict::{Exit, Judged, Judgement, Mark};
use crate::words::plural;

/// The whole file of one run.
pub fn render(analysis: &Analysis, judgement: &Judgement) -> String {
    document(&[suite(analysis, judgement)])
}

/// The test suite of one run, to be put into a [`document`] with others.
pub fn suite(analysis: &Analysis, judgement: &Judgement) -> Suite {
    let named = |verdict: &Verdict| verdict.name.clone().unwrap_or_else(|| verdict.text.clone());
    let judged = judgement.verdicts.iter().map(|verdict| {
        let message = verdict.with_values();
        (named(verdict), message, judgement.judged(verdict))
    });
    let cases = judged.chain(wholeness(judgement)).chain(strictness(judgement)).collect();
    let properties = vec![
        ("run_id", analysis.meta.run_id.clone()),
        ("verdict", judgement.mark.word().to_owned()),
        ("strict", judgement.strict.to_string()),
        ("partial", judgement.partial.to_string()),
    ];
    Suite { name: analysis.meta.name.clone(), properties, cases }
}

/// A test suite: its name, and each case with its message.
#[derive(Clone, Debug)]
pub struct Suite {
    /// What it is called: the scenario's or variant's name, which stays the same from run to run.
    pub name: String,
    /// What a reader must know beside the cases, as properties: which run it was, how it went, whether it is strict.
    pub properties: Vec<(&'static str, String)>,
    /// Name, message and result.
    pub cases: Vec<(String, String, Judged)>,
}

impl Suite {
    /// The same of one of several runs: `pack packed #2`.
    #[must_use]
    pub fn labelled(mut self, label: &str) -> Self {
        if !label.is_empty() {
            self.name = format!("{} {label}", self.name);
        }
        self
    }

    fn counts(suites: &[Self]) -> String {
        let count = |is: fn(&Judged) -> bool| {
            suites.iter().flat_map(|suite| &suite.cases).filter(|(_, _, judged)| is(judged)).count()
        };
        format!(
            "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
            count(|_| true),
            count(|judged| matches!(judged, Judged::Fail)),
            count(|judged| matches!(judged, Judged::Error(_))),
            count(|judged| matches!(judged, Judged::Skipped(_))),
        )
    }
}

/// One file of several suites.
pub fn document(suites: &[Suite]) -> String {
    let mut xml = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {}>\n", Suite::counts(suites));
    for suite in suites {
        let name = attribute(&suite.name);
        xml.push_str(&format!("  <testsuite name=\"{name}\" {}>\n", Suite::counts(std::slice::from_ref(suite))));
        xml.push_str(&properties(suite));
        for (case_name, message, judged) in &suite.cases {
            xml.push_str(&case(&name, case_name, message, judged));
        }
        xml.push_str("  </testsuite>\n");
    }
    xml + "</testsuites>\n"
}

fn properties(suite: &Suite) -> String {
    let one =
        |(name, value): &(&str, String)| format!("      <property name=\"{name}\" value=\"{}\"/>\n", attribute(value));
    let all: String = suite.properties.iter().map(one).collect();
    if all.is_empty() { all } else { format!("    <properties>\n{all}    </properties>\n") }
}

/// Was the whole trace simulated, to its end? A case only if it was not.
fn wholeness(judgement: &Judgement) -> Option<(String, String, Judged)> {
    let why = judgement.why_not_whole()?;
    let name = "all of the trace was simulated".to_owned();
    let judged = match judgement.exit() {
        _ if judgement.is_empty => Judged::Error(why.clone()),
        Exit::Bad if judgement.mark != Mark::Fail => Judged::Fail,
        Exit::Good | Exit::Bad | Exit::Unjudged => Judged::Skipped(why.clone()),
    };
    Some((name, why, judged))
}

/// Are there warnings, which make a run bad under `--strict`? Asked only then.
fn strictness(judgement: &Judgement) -> Option<(String, String, Judged)> {
    let doubts = i64::try_from(judgement.doubts).unwrap_or(i64::MAX);
    let limit = if doubts == 1 { "limits" } else { "limit" };
    let message = format!("{} {limit} how far this run can be trusted", plural(doubts, "warning"));
    let judged = if judgement.doubts > 0 { Judged::Fail } else { Judged::Pass };
    judgement.strict.then(|| ("--strict: no warnings".to_owned(), message, judged))
}

fn case(run: &str, name: &str, message: &str, judged: &Judged) -> String {
    let open = format!("    <testcase classname=\"{run}\" name=\"{}\"", attribute(name));
    let (element, message) = match judged {
        Judged::Pass => return open + "/>\n",
        Judged::Fail => ("failure", message),
        Judged::Skipped(why) => ("skipped", why.as_str()),
        Judged::Error(why) => ("error", why.as_str()),
    };
    format!("{open}>\n      <{element} message=\"{}\"/>\n    </testcase>\n", attribute(message))
}
