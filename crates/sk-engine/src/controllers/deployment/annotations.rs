//! The annotations that a Deployment writes on itself and on its ReplicaSets: revisions, and the desired and maximum
//! replicas by which it tells scaling from a rollout (`util/deployment_util.go`, 1.36).

use sk_apiserver::Labels;
use sk_core::SmolStr;

pub(super) const REVISION: SmolStr = SmolStr::new_static("deployment.kubernetes.io/revision");
const REVISION_HISTORY: SmolStr = SmolStr::new_static("deployment.kubernetes.io/revision-history");
pub(super) const DESIRED_REPLICAS: SmolStr = SmolStr::new_static("deployment.kubernetes.io/desired-replicas");
pub(super) const MAX_REPLICAS: SmolStr = SmolStr::new_static("deployment.kubernetes.io/max-replicas");
/// Annotations of a deployment that its replica sets do not get.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history",
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    "deprecated.deployment.rollback.to",
];
/// So much of a history is kept (`maxRevHistoryLengthInChars`).
const MAX_HISTORY_CHARS: usize = 2000;

/// A number in an annotation.
pub(super) fn number(annotations: &Labels, name: &SmolStr) -> Option<i32> {
    annotations.get(name)?.parse().ok().filter(|number| *number >= 0)
}

/// The revision of a replica set; 0 if it has none.
pub(super) fn revision(annotations: &Labels) -> i64 {
    annotations.get(&REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Writes an annotation if that is news.
pub(super) fn set(annotations: &mut Labels, name: SmolStr, value: SmolStr) {
    if annotations.get(&name) != Some(&value) {
        annotations.make_mut().insert(name, value);
    }
}

/// The newest replica set has the deployment's annotations and the highest revision; one that it had before goes into its
/// history (`SetNewReplicaSetAnnotations`).
pub(super) fn take_over(annotations: &mut Labels, deployment: &Labels, next_revision: i64) {
    for (name, value) in deployment.iter().filter(|(name, _)| !NOT_COPIED.contains(&name.as_str())) {
        set(annotations, name.clone(), value.clone());
    }
    let before = annotations.get(&REVISION).cloned();
    if revision(annotations) >= next_revision {
        return;
    }
    set(annotations, REVISION, next_revision.to_string().into());
    if let Some(before) = before {
        let history = lengthened(annotations.get(&REVISION_HISTORY), &before);
        set(annotations, REVISION_HISTORY, history);
    }
}

/// The history with one more revision, its oldest left out where it would become too long.
fn lengthened(history: Option<&SmolStr>, revision: &str) -> SmolStr {
    let known = history.map_or("", SmolStr::as_str);
    let mut kept: Vec<&str> = known.split(',').filter(|text| !text.is_empty()).collect();
    kept.push(revision);
    while kept.len() > 1 && kept.iter().map(|text| text.len() + 1).sum::<usize>() - 1 > MAX_HISTORY_CHARS {
        kept.remove(0);
    }
    kept.join(",").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_that_comes_back_keeps_its_old_numbers() {
        let deployment: Labels = [("team".into(), "a".into()), (REVISION, "9".into())].into_iter().collect();
        let mut set = Labels::default();
        for next in [1, 1, 3, 7] {
            take_over(&mut set, &deployment, next);
        }
        let text = |name: &str| set.get(name).map(SmolStr::as_str);
        assert_eq!((text(&REVISION), text(&REVISION_HISTORY)), (Some("7"), Some("1,3")));
        assert_eq!(text("team"), Some("a"), "other annotations are copied");
    }

    #[test]
    fn a_history_is_never_longer_than_its_bound() {
        let long = vec!["123456789"; 200].join(",");
        let history = lengthened(Some(&long.into()), "x");
        assert!(history.len() <= MAX_HISTORY_CHARS && history.ends_with(",x"), "{}", history.len());
    }
}
