//! Commands worth trying after a run. They repeat what the user typed, so that they can be copied as they are.

use std::path::Path;

use super::conclude::Concluded;
use crate::cli::{NEWEST, RunArgs};
use crate::runs::RUNS;

/// A change that shows how much of the cost is nodes that wait to be removed.
const SOONER: &str = "autoscaler.scale-down-unneeded-time";

/// `skctl why` for the first incident, or the report if there is none; and the same run with a change.
pub(super) fn after(args: &RunArgs, trace: &str, concluded: &Concluded) -> Vec<String> {
    let Concluded { analysis, dir, .. } = concluded;
    let run = word_for(dir);
    let first = match analysis.incidents.first() {
        Some(incident) => format!("skctl why {run} {}", quoted(&without_kind(&incident.owner))),
        None => format!("skctl report {run} -o markdown"),
    };
    let can_shrink = analysis.meta.groups.iter().any(|group| group.max > group.min);
    let is_set = args.request.set.iter().any(|set| set.starts_with(SOONER));
    let change = if can_shrink && !is_set { format!("--set {SOONER}=2m") } else { "-N 5".to_owned() };
    let mut again = vec!["skctl run".to_owned(), quoted(trace)];
    again.extend(typed(args));
    again.push(change);
    vec![first, again.join(" ")]
}

/// `@` means the newest run in ./runs; a run elsewhere has a path.
fn word_for(dir: &Path) -> String {
    if dir.starts_with(RUNS) { NEWEST.to_owned() } else { quoted(&dir.display().to_string()) }
}

/// What a run depends on. The name and the folder are left out: another request is another run.
fn typed(args: &RunArgs) -> Vec<String> {
    let path = |path: &std::path::PathBuf| path.display().to_string();
    let one = |flag: &str, value: Option<String>| value.map(|value| format!("{flag} {}", quoted(&value)));
    let each = |flag: &'static str, values: &[String]| -> Vec<String> {
        values.iter().map(|value| format!("{flag} {}", quoted(value))).collect()
    };
    let request = &args.request;
    let part = &request.part;
    let mut words: Vec<String> = one("-f", request.scenario.as_ref().map(path)).into_iter().collect();
    words.extend(each("--set", &args.old.sets()));
    words.extend(each("--set", &request.set));
    words.extend(each("--overlay", &request.overlay));
    words.extend(each("--assert", &request.assert));
    words.extend(one("--baseline", args.baseline.clone()));
    words.extend(one("--seed", request.seed.map(|seed| seed.to_string())));
    let times = [("-s", &part.start), ("-t", &part.end), ("-D", &part.duration)];
    words.extend(times.into_iter().filter_map(|(flag, time)| one(flag, time.clone())));
    words.extend(args.cluster.then(|| "--cluster".to_owned()));
    words
}

/// `default/nginx` of `default/Deployment/nginx`.
fn without_kind(owner: &str) -> String {
    let mut parts = owner.splitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(namespace), Some(_), Some(name)) => format!("{namespace}/{name}"),
        _ => owner.to_owned(),
    }
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || "-_./:@=+,%".contains(char);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(quoted("traces/week.sktrace"), "traces/week.sktrace");
        assert_eq!(quoted("my traces/it's.sktrace"), r"'my traces/it'\''s.sktrace'");
        assert_eq!(quoted("nodes.max <= 9"), "'nodes.max <= 9'");
    }

    #[test]
    fn a_run_outside_of_the_runs_is_named_by_its_path() {
        assert_eq!(word_for(Path::new("runs/nginx-3fa91c")), "@");
        assert_eq!(word_for(Path::new("out/here")), "out/here");
    }
}
