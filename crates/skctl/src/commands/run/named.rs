//! Checks that the trace has the namespaces that assertions name, before anything is simulated.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use sk_core::SmolStr;
use sk_store::trace::What;

use super::inputs::Inputs;
use crate::output;

/// How many of the trace's namespaces are listed in a message.
const LISTED: usize = 12;

/// Refuses an assertion about a namespace that nothing of the inputs is in. The trace is read only if one is named.
pub(super) fn refuse_unknown<'a>(
    assertions: impl Iterator<Item = &'a str>,
    inputs: &Inputs,
    place: impl Fn(&str) -> String,
) -> Result<()> {
    let named: Vec<(&str, &str)> = assertions.flat_map(|text| in_text(text).map(move |name| (text, name))).collect();
    if named.is_empty() {
        return Ok(());
    }
    let known = namespaces(inputs)?;
    for (text, name) in named {
        if !known.contains(name) {
            let all: Vec<&str> = known.iter().take(LISTED).map(SmolStr::as_str).collect();
            let more = if known.len() > LISTED { ", …" } else { "" };
            bail!(
                "{}assertion `{text}`: the trace has nothing in a namespace `{}`, only in {}{more}",
                place(text),
                output::line(name),
                output::line(&all.join(", "))
            );
        }
    }
    Ok(())
}

/// The names between the quotes of `namespaces["…"]`.
fn in_text(text: &str) -> impl Iterator<Item = &str> {
    text.split("namespaces[").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|char| ['"', '\''].contains(char))?;
        rest[1..].split(quote).next()
    })
}

/// Every namespace that an object of the trace, or one laid over it, is in.
fn namespaces(inputs: &Inputs) -> Result<BTreeSet<SmolStr>> {
    let mut found = BTreeSet::new();
    for head in inputs.trace.heads()? {
        if let What::Apply(object, _) = head?.what
            && let Some(namespace) = object.key.namespace.as_ref()
            && !found.contains(namespace)
        {
            found.insert(namespace.clone());
        }
    }
    let laid_over = inputs.overlay.objects().filter_map(|object| object.pointer("/metadata/namespace")?.as_str());
    found.extend(laid_over.map(SmolStr::from));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_between_both_kinds_of_quotes() {
        let found = |text| in_text(text).collect::<Vec<_>>();
        assert_eq!(found(r#"namespaces["shop"].pods.ran > 1 && namespaces['a-b'].pods.ran > 1"#), ["shop", "a-b"]);
        assert_eq!(found("namespaces.all(n, namespaces[n].pods.ran > 1)"), Vec::<&str>::new());
        assert_eq!(found("nodes.max < 3"), Vec::<&str>::new());
    }
}
