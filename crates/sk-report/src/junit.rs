//! junit.xml: each assertion a test case, so that any CI system shows which one failed and by how much.

use crate::analysis::Analysis;
use crate::assertion::Verdict;
use crate::escape::markup;

/// The whole file.
pub fn render(analysis: &Analysis, verdicts: &[Verdict]) -> String {
    let run = markup(&analysis.meta.run_id);
    let failures = verdicts.iter().filter(|verdict| !verdict.passed).count();
    let counts = format!("tests=\"{}\" failures=\"{failures}\" errors=\"0\" skipped=\"0\"", verdicts.len());
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite name=\"{run}\" {counts}>\n"
    );
    for verdict in verdicts {
        xml.push_str(&case(verdict, &run));
    }
    xml + "  </testsuite>\n</testsuites>\n"
}

fn case(verdict: &Verdict, run: &str) -> String {
    let name = markup(verdict.name.as_deref().unwrap_or(&verdict.text));
    let open = format!("    <testcase classname=\"{run}\" name=\"{name}\"");
    if verdict.passed {
        return open + "/>\n";
    }
    let message = markup(&verdict.with_values());
    format!("{open}>\n      <failure message=\"{message}\"/>\n    </testcase>\n")
}
