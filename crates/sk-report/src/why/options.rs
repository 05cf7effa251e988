//! What the autoscaler reported of each group when it decided about pods: `small: 3 nodes for 7 pods, waste 24.00%,
//! chosen by least-waste; gpu: node(s) had untolerated taint(s)`, as the record has it.

/// A group as a decision saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stance<'a> {
    /// It could have grown, or could have but for its size, the cluster's or a failure: its nodes suit the pods.
    Suits,
    /// Its nodes do not suit the pods, for this reason.
    Repels(&'a str),
}

/// Reasons of groups that may not grow now and whose nodes may suit all the same.
const HELD: [&str; 4] = ["max ", "in backoff", "not ready for scale-up", "exceeded quota"];

/// The groups of a decision, each with its message.
pub(super) fn read(options: &str) -> impl Iterator<Item = (&str, Stance<'_>)> {
    options.split("; ").filter_map(|said| {
        let (group, words) = said.split_once(": ")?;
        let is_option = words.starts_with(|first: char| first.is_ascii_digit());
        let is_held = HELD.iter().any(|held| words.starts_with(held));
        Some((group, if is_option || is_held { Stance::Suits } else { Stance::Repels(words) }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_may_not_grow_now_is_not_one_that_repels() {
        let options = "small: 3 nodes for 7 pods, waste 24.00%, chosen by least-waste; big: max node group size reached; gpu: \
                       node(s) had untolerated taint(s), Insufficient cpu";
        let gpu = Stance::Repels("node(s) had untolerated taint(s), Insufficient cpu");
        let read: Vec<_> = read(options).collect();
        assert_eq!(read, [("small", Stance::Suits), ("big", Stance::Suits), ("gpu", gpu)]);
    }
}
