//! Messages of schedulers about unschedulable pods. The default scheduler uses a few fixed phrases, which stay readable
//! because reports use them. Messages of other schedulers are free text and are hashed.

use crate::privacy::{PrivacyKey, Spelling};

/// The longest message that is kept. It names each reason once, with a count, so a longer one is rare; the beginning
/// says what matters.
const MAX_BYTES: usize = 1_024;

/// The longest word that is taken for a condition's reason.
const MAX_REASON_BYTES: usize = 64;

/// Whole phrases of kube-scheduler's plugins (pkg/scheduler/framework, v1.36.4, and what older versions said instead).
const PHRASES: [&str; 41] = [
    "All PostFilter plugins are skipped",
    "No preemption victims found for incoming pod",
    "Preemption is not helpful for scheduling",
    "Scheduling is blocked due to non-empty scheduling gates",
    "Too many pods",
    "cannot allocate all claims",
    "invalid resource pools were encountered",
    "no candidate node for preemption",
    "no new claims to deallocate",
    "no nodes available to schedule pods",
    "node(s) did not have enough free storage",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) didn't have free ports for the requested pod ports",
    "node(s) didn't match Pod's node affinity",
    "node(s) didn't match Pod's node affinity/selector",
    "node(s) didn't match Pod's required features",
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't match pod affinity rules",
    "node(s) didn't match pod anti-affinity rules",
    "node(s) didn't match pod topology spread constraints",
    "node(s) didn't match pod topology spread constraints (missing required label)",
    "node(s) didn't match scheduler-enforced node affinity",
    "node(s) didn't match the requested node name",
    "node(s) didn't satisfy existing pods anti-affinity rules",
    "node(s) exceed max volume count",
    "node(s) had no available disk",
    "node(s) had no available volume zone",
    "node(s) had taints that the pod didn't tolerate",
    "node(s) had unknown conditions",
    "node(s) had untolerated taint(s)",
    "node(s) had volume node affinity conflict",
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
    "node(s) were not ready",
    "node(s) were out of disk space",
    "node(s) were unschedulable",
    "pod affinity terms conflict",
    "pod has unbound immediate PersistentVolumeClaims",
    "still not schedulable",
    "waiting for the preemption for this pod to be finished",
    "waiting for minCount pods from a gang to appear in scheduling queue",
];

/// A condition's reason, which Kubernetes wants to be one word. Anything else is hidden if there is a key.
pub(crate) fn reason(text: &str, key: Option<&PrivacyKey>) -> String {
    let is_word =
        text.len() <= MAX_REASON_BYTES && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    hidden_unless(is_word, text, key)
}

/// A condition's message: as it is if the default scheduler may have said it or if there is no key, else hidden.
pub(crate) fn message(text: &str, key: Option<&PrivacyKey>) -> String {
    hidden_unless(is_known(text), text, key)
}

fn hidden_unless(is_known: bool, text: &str, key: Option<&PrivacyKey>) -> String {
    let Some(key) = key.filter(|_| !is_known) else { return cut(text).to_owned() };
    let mut hidden = Vec::new();
    key.hide(text, Spelling::Text, &mut hidden);
    String::from_utf8(hidden).expect("a hash is spelt in ASCII, and a text stays one")
}

/// The beginning of a message, cut between letters.
fn cut(message: &str) -> &str {
    let end = (0..=MAX_BYTES.min(message.len())).rev().find(|at| message.is_char_boundary(*at));
    &message[..end.unwrap_or(0)]
}

/// Is every clause one of the scheduler's? `0/3 nodes are available: 1 Insufficient cpu, 2 Too many pods. preemption: …`
fn is_known(message: &str) -> bool {
    message.trim_end().trim_end_matches('.').split(". ").flat_map(|sentence| sentence.split(", ")).all(is_clause)
}

fn is_clause(clause: &str) -> bool {
    let clause = clause.strip_prefix("preemption: ").unwrap_or(clause);
    let reason = match clause.split_once(" nodes are available") {
        Some((counts, rest)) => {
            let are_numbers = counts.split_once('/').is_some_and(|(of, all)| is_number(of) && is_number(all));
            match rest.strip_prefix(": ") {
                _ if !are_numbers => return false,
                None => return rest.is_empty(),
                Some(reason) => reason,
            }
        }
        None => clause,
    };
    let counted = reason.split_once(' ').filter(|(count, _)| is_number(count)).map(|(_, reason)| reason);
    is_reason(counted.unwrap_or(reason))
}

fn is_reason(reason: &str) -> bool {
    // What stands in these is recorded elsewhere too: requests of pods, taints of nodes, claims of pods.
    let resource = || reason.strip_prefix("Insufficient ").is_some_and(is_name);
    let taint = || {
        let taint = reason.strip_prefix("node(s) had untolerated taint {")?.strip_suffix('}')?;
        let (key, value) = taint.split_once(": ")?;
        Some(is_name(key) && (value.is_empty() || is_name(value)))
    };
    let claim = || {
        let name = reason.strip_prefix("persistentvolumeclaim \"")?.strip_suffix("\" not found")?;
        Some(is_name(name))
    };
    PHRASES.contains(&reason) || resource() || taint() == Some(true) || claim() == Some(true)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Is it spelt as names of resources, taints and claims are?
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_schedulers_words_are_kept() {
        for text in [
            "",
            "0/1 nodes are available",
            "0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient example.com/gpu.",
            "0/8 nodes are available: 8 Insufficient cpu. no new claims to deallocate, preemption: 0/8 nodes are available: \
             8 Preemption is not helpful for scheduling.",
            "0/2 nodes are available: 1 node(s) had untolerated taint {dedicated: batch}, 1 node(s) were unschedulable.",
            "0/2 nodes are available: 2 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.",
            "0/1 nodes are available: persistentvolumeclaim \"data-db-0\" not found.",
            "Scheduling is blocked due to non-empty scheduling gates",
        ] {
            assert_eq!(message(text, Some(&PrivacyKey::new([1; 16]))), text);
        }
    }

    #[test]
    fn anybody_elses_words_are_hidden_unless_everything_is_kept() {
        let key = PrivacyKey::new([1; 16]);
        for text in [
            "tenant acme-corp is over its budget",
            "0/3 nodes are available: 3 tenant acme-corp is over its budget.",
            "0/3 nodes are available: 1 Insufficient cpu, 2 quota of acme-corp.",
            "acme/corp nodes are available",
            "0/3 nodes are available for acme-corp",
            "Insufficient funds of acme-corp",
        ] {
            assert!(message(text, Some(&key)).starts_with("sk:"), "{text}");
            assert_eq!(message(text, Some(&key)), message(text, Some(&key)), "equal complaints stay equal");
            assert_eq!(message(text, None), text);
        }
        assert_eq!(reason("Unschedulable", Some(&key)), "Unschedulable");
        assert!(reason("see acme-corp", Some(&key)).starts_with("sk:"));
    }

    #[test]
    fn a_long_message_is_cut_between_letters() {
        assert_eq!(message(&"ü".repeat(MAX_BYTES), None).len(), MAX_BYTES);
        assert_eq!(message(&format!("x{}", "ü".repeat(MAX_BYTES)), None).len(), MAX_BYTES - 1);
    }
}
