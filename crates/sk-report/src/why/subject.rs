//! The object in question: the whole run, an object with pods, a node, or a node group.

use std::fmt;

use sk_record::{PodRow, RunMeta};

use super::WhyError;
use crate::fleet::Fleet;

/// What is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Every pod of the run.
    Everything,
    /// A pod (`ns/name`) or an owner (`ns/Kind/name` or `ns/name`).
    Object(String),
    /// A node.
    Node(String),
    /// A node group.
    Group(String),
}

impl Subject {
    /// What `text` means in this run: nodes and groups have no namespace.
    pub fn find(text: &str, meta: &RunMeta) -> Self {
        if text.contains('/') {
            Self::Object(text.to_owned())
        } else if meta.groups.iter().any(|group| group.name == text) {
            Self::Group(text.to_owned())
        } else {
            Self::Node(text.to_owned())
        }
    }

    /// Is the pod asked about?
    pub(super) fn takes(&self, pod: &PodRow) -> bool {
        match self {
            Self::Everything => true,
            Self::Object(name) => is_of(pod, name),
            Self::Node(name) => pod.node.as_deref() == Some(name),
            Self::Group(name) => pod.group.as_deref() == Some(name),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everything => f.write_str("every pod"),
            Self::Object(name) => f.write_str(name),
            Self::Node(name) => write!(f, "node {name}"),
            Self::Group(name) => write!(f, "group {name}"),
        }
    }
}

/// `ns/name` of the pod or of its owner, or `ns/Kind/name` of its owner.
fn is_of(pod: &PodRow, name: &str) -> bool {
    let Some((namespace, rest)) = name.split_once('/') else { return false };
    let owner_name = pod.owner.splitn(3, '/').nth(2).unwrap_or_default();
    pod.owner == name || (pod.namespace == namespace && (pod.name == rest || owner_name == rest))
}

/// The owner in this run of a pod that another run or a recording has: a pod's name is its owner's with one or two more
/// words behind it, which no two runs share.
pub(super) fn owner_of_another(name: &str, pod: &PodRow) -> bool {
    let Some((namespace, rest)) = name.split_once('/') else { return false };
    let owner_name = pod.owner.splitn(3, '/').nth(2).unwrap_or_default();
    let more = rest.strip_prefix(owner_name).and_then(|more| more.strip_prefix('-'));
    let is_near = more.is_some_and(|more| !more.is_empty() && more.matches('-').count() <= 1);
    pod.namespace == namespace && is_near
}

/// What else there is, for the message when nothing was found.
#[derive(Debug, Default)]
pub(super) struct Known {
    found: bool,
    /// The owner of a pod that only another run has.
    pub(super) instead: Option<String>,
    owners: std::collections::BTreeSet<String>,
}

/// Owners that a message offers.
const NEAR_MAX: usize = 3;

impl Known {
    /// The object to answer about instead of one that the run does not have.
    pub(super) fn instead_of_nothing(&self) -> Option<Subject> {
        if self.found { None } else { self.instead.clone().map(Subject::Object) }
    }

    pub(super) fn see(&mut self, subject: &Subject, pod: &PodRow) {
        self.found |= subject.takes(pod);
        if let Subject::Object(name) = subject
            && self.instead.is_none()
            && owner_of_another(name, pod)
        {
            self.instead = Some(pod.owner.clone());
        }
        if !self.found && self.owners.len() < NEAR_MAX {
            self.owners.insert(pod.owner.clone());
        }
    }
}

/// Refuses what the run does not have.
pub(super) fn check(subject: &Subject, known: &Known, fleet: &Fleet, meta: &RunMeta) -> Result<(), WhyError> {
    let is_there = match subject {
        Subject::Everything => true,
        Subject::Object(_) => known.found,
        Subject::Node(name) => fleet.nodes().any(|node| node.row.name == *name),
        Subject::Group(name) => meta.groups.iter().any(|group| group.name == *name),
    };
    if is_there {
        return Ok(());
    }
    let asked = match subject {
        Subject::Everything => String::new(),
        Subject::Object(name) | Subject::Node(name) | Subject::Group(name) => name.clone(),
    };
    let owners: Vec<&str> = known.owners.iter().map(String::as_str).collect();
    let near = if owners.is_empty() { String::new() } else { format!("; it has, for example, {}", owners.join(", ")) };
    Err(WhyError::Unknown { asked, near })
}
