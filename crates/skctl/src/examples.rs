//! Bundled traces and scenarios, so that the first run needs nothing else.

use anyhow::{Result, anyhow};

/// A bundled trace and the scenario that goes with it.
pub(crate) struct Example {
    pub(crate) name: &'static str,
    pub(crate) trace: &'static [u8],
    pub(crate) scenario: &'static str,
}

const EXAMPLES: [Example; 2] = [
    Example {
        name: "nginx",
        trace: include_bytes!("../../../examples/nginx.sktrace"),
        scenario: include_str!("../../../examples/nginx.yaml"),
    },
    Example {
        name: "shop",
        trace: include_bytes!("../../../examples/shop.sktrace"),
        scenario: include_str!("../../../examples/shop.yaml"),
    },
];

/// How an example is named on the command line.
pub(crate) const PREFIX: &str = "example:";

/// The example called `name`.
pub(crate) fn find(name: &str) -> Result<&'static Example> {
    EXAMPLES.iter().find(|example| example.name == name).ok_or_else(|| {
        let known: Vec<_> = EXAMPLES.iter().map(|example| format!("{PREFIX}{}", example.name)).collect();
        anyhow!("there is no example called `{name}`; bundled are: {}", known.join(", "))
    })
}
