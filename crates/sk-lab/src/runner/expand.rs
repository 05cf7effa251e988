//! Text in a pod's command and environment that a kubelet would not take literally: `$(NAME)` references, and paths
//! under a mount, which a local process finds elsewhere.

use std::path::{Path, PathBuf};

/// Replaces `$(NAME)` by the variable's value. As in Kubernetes, an unknown name stays as it is and `$$` is a dollar.
pub(super) fn references(text: &str, value_of: impl Fn(&str) -> Option<String>) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        let (before, from) = rest.split_at(dollar);
        expanded.push_str(before);
        let reference = from.strip_prefix("$(").and_then(|inside| inside.split_once(')'));
        rest = if let Some(after) = from.strip_prefix("$$") {
            expanded.push('$');
            after
        } else if let Some((name, after)) = reference {
            expanded.push_str(&value_of(name).unwrap_or_else(|| format!("$({name})")));
            after
        } else {
            expanded.push('$');
            &from[1..]
        };
    }
    expanded + rest
}

/// Replaces paths at or below a mount point by where the volume really is.
pub(super) fn mounts(text: &str, mounts: &[(String, PathBuf)]) -> String {
    // The longest first, or /etc would take what belongs to /etc/tls.
    let mut sorted: Vec<_> = mounts.iter().collect();
    sorted.sort_by_key(|(mount, _)| std::cmp::Reverse(mount.len()));
    let mut result = String::new();
    let mut rest = text;
    'text: while let Some(first) = rest.chars().next() {
        for (mount, place) in &sorted {
            if let Some(after) = rest.strip_prefix(mount.as_str()).filter(|after| ends_a_name(after)) {
                result.push_str(&Path::new(place).to_string_lossy());
                rest = after;
                continue 'text;
            }
        }
        result.push(first);
        rest = &rest[first.len_utf8()..];
    }
    result
}

/// `/data` in `/data/x` is the mount, in `/database` it is not.
fn ends_a_name(after: &str) -> bool {
    after.chars().next().is_none_or(|next| !(next.is_alphanumeric() || ['-', '_', '.'].contains(&next)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_replaced_as_kubernetes_replaces_them() {
        let value_of = |name: &str| (name == "A").then(|| "1".to_owned());
        for (text, expanded) in [
            ("--a=$(A),$(A)", "--a=1,1"),
            ("$(B) stays", "$(B) stays"),
            ("$$(A) is escaped", "$(A) is escaped"),
            ("$ $( $", "$ $( $"),
            ("", ""),
        ] {
            assert_eq!(references(text, value_of), expanded, "{text}");
        }
    }

    #[test]
    fn only_whole_path_components_are_taken_for_a_mount() {
        let places = [("/data".to_owned(), PathBuf::from("/tmp/d")), ("/data/tls".to_owned(), PathBuf::from("/tmp/t"))];
        for (text, moved) in [
            ("--trace=file:///data/x.sktrace", "--trace=file:///tmp/d/x.sktrace"),
            ("/data/tls/tls.crt:/data", "/tmp/t/tls.crt:/tmp/d"),
            ("/database /data-2", "/database /data-2"),
        ] {
            assert_eq!(mounts(text, &places), moved, "{text}");
        }
    }
}
