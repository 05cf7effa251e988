//! Scenarios, good and bad, that several tests look at.

/// Every section of the format.
pub(crate) const EVERYTHING: &str = include_str!("everything.yaml");

/// As little as a scenario can say to some use.
pub(crate) const SMALLEST: &str = "
apiVersion: simkube.io/v1
kind: Scenario
cluster:
  groups:
    small: {min: 1, max: 10, cpu: 1, memory: 4Gi, price: 0.05, ready: 60s}
assert:
  - unschedulable.pods == 0
  - nodes.max <= 10
";

/// A scenario that is refused.
pub(crate) struct Refused {
    /// What kind of mistake it makes.
    pub(crate) section: String,
    /// The scenario.
    pub(crate) text: String,
    /// Where the mistake stands, as `line:column`.
    pub(crate) place: String,
    /// What is said about it.
    pub(crate) message: String,
}

/// The cases of `refused.txt`, which says how they are written.
pub(crate) fn refused() -> Vec<Refused> {
    let mut section = String::new();
    let mut change = String::new();
    let mut cases = Vec::new();
    for line in include_str!("refused.txt").lines() {
        if let Some(name) = line.strip_prefix("## ") {
            name.clone_into(&mut section);
        } else if let Some(message) = line.strip_prefix("    ") {
            let (text, place) = unmark(&changed(&change.replace("\\n", "\n")));
            cases.push(Refused { section: section.clone(), text, place, message: message.to_owned() });
        } else {
            line.clone_into(&mut change);
        }
    }
    assert!(cases.len() > 60, "only {} cases were found", cases.len());
    cases
}

/// The smallest scenario with something changed: `old → new`.
fn changed(change: &str) -> String {
    let (old, new) = change.split_once(" → ").expect("a change has an arrow");
    assert!(SMALLEST.contains(old), "there is no `{old}` to change");
    SMALLEST.replacen(old, new, 1)
}

/// The text without its mark, and where that stood.
fn unmark(text: &str) -> (String, String) {
    let (before, after) = text.split_once('▸').expect("a change marks a place");
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    (format!("{before}{after}"), format!("{}:{column}", before.split('\n').count()))
}
