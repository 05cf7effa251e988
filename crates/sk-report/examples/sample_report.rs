//! Writes the report of a made-up run, to look at while working on the page:
//! `cargo run -p sk-report --example sample_report -- report.html [week]`

#[path = "../tests/story/mod.rs"]
mod story;

use sk_record::{Warning, WarningKind};
use sk_report::figure::ToFigure;
use sk_report::html::{self, Asked};
use sk_report::{Analysis, Assertion, Judgement, Terms, check};

const SCENARIO: &str = "apiVersion: simkube.io/v1\nkind: Scenario\ncluster:\n  groups:\n    small: {min: 1, max: 10, cpu: 1, \
                        memory: 4Gi, price: 0.05, ready: 60s}\nassert:\n- unschedulable.pods == 0\n- nodes.max <= 10\n";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name the file to write")?;
    let week = std::env::args().nth(2).as_deref() == Some("week");
    let mut tables = if week { story::week(400) } else { story::nginx() };
    if week {
        let message = "node sizes of group edge are assumed".into();
        tables.meta.warnings = vec![Warning { code: "N001".into(), kind: WarningKind::Assumed, message, count: 1 }];
    }
    let analysis = Analysis::of(&tables)?;
    let assertions = ["unschedulable.pods == 0", "nodes.max <= 100"];
    let assertions = assertions.map(|text| Assertion { name: None, text: text.into() });
    let verdicts =
        check(&assertions, &tables.meta.groups, sk_report::Scope::default())?.judge(&analysis.summary.figure());
    let judgement = Judgement::of(&analysis, verdicts, &Terms::default());
    std::fs::write(path, html::render(&analysis, &judgement, Some(Asked { text: SCENARIO, differs: &[] }))?)?;
    Ok(())
}
