//! junit.xml: each assertion a test case, so that any CI system shows which one failed and by how much.
//!
//! What holds on a run that is not whole is `skipped`, what could not be evaluated an `error`. That the whole trace was
//! simulated is a case of its own where it was not, so that a run without assertions is not an empty, green suite.

use crate::analysis::Analysis;
use crate::assertion::Verdict;
use crate::escape::markup;
use crate::verdict::{Exit, Judged, Judgement, Mark};

/// The whole file.
pub fn render(analysis: &Analysis, judgement: &Judgement) -> String {
    let run = markup(&analysis.meta.run_id);
    let named = |verdict: &Verdict| verdict.name.clone().unwrap_or_else(|| verdict.text.clone());
    let judged = judgement.verdicts.iter().map(|verdict| {
        let message = verdict.with_values();
        (named(verdict), message, judgement.judged(verdict))
    });
    let cases: Vec<_> = judged.chain(wholeness(judgement)).chain(strictness(judgement)).collect();
    let count = |is: fn(&Judged) -> bool| cases.iter().filter(|(_, _, judged)| is(judged)).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        cases.len(),
        count(|judged| matches!(judged, Judged::Fail)),
        count(|judged| matches!(judged, Judged::Error(_))),
        count(|judged| matches!(judged, Judged::Skipped(_))),
    );
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite name=\"{run}\" {counts}>\n"
    );
    for (name, message, judged) in &cases {
        xml.push_str(&case(&run, name, message, judged));
    }
    xml + "  </testsuite>\n</testsuites>\n"
}

/// Was all of the trace simulated, to its end? Only said where it was not.
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

/// Warnings that make a run bad under `--strict`.
fn strictness(judgement: &Judgement) -> Option<(String, String, Judged)> {
    let counts = judgement.strict && judgement.doubts > 0;
    let message = format!("{} warnings limit how far this run can be trusted", judgement.doubts);
    counts.then(|| ("--strict: no warnings".to_owned(), message, Judged::Fail))
}

fn case(run: &str, name: &str, message: &str, judged: &Judged) -> String {
    let open = format!("    <testcase classname=\"{run}\" name=\"{}\"", markup(name));
    let (element, message) = match judged {
        Judged::Pass => return open + "/>\n",
        Judged::Fail => ("failure", message),
        Judged::Skipped(why) => ("skipped", why.as_str()),
        Judged::Error(why) => ("error", why.as_str()),
    };
    format!("{open}>\n      <{element} message=\"{}\"/>\n    </testcase>\n", markup(message))
}
