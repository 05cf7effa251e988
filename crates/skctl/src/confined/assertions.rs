//! Assertions in a process with limits, ended by Ctrl-C.

use anyhow::Result;
use sk_record::Group;
use sk_report::figure::Figure;
use sk_report::{Assertion, Scope, Verdict};
use sk_sandbox::assertions::{self, Error};

use crate::failure::Interrupted;
use crate::progress;

/// Assertions that are well-formed and name only figures that exist.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checked(assertions::Checked);

/// Checks assertions before a run: syntax, names, types. `groups` are the scenario's, `scope` says what else can be
/// named.
pub(crate) fn check(assertions: Vec<Assertion>, groups: &[Group], scope: Scope) -> Result<Checked> {
    assertions::check(assertions, groups, scope, is_interrupted()).map(Checked).map_err(failure)
}

impl Checked {
    /// Does any of them name the run that this one is compared with?
    pub(crate) fn name_baseline(&self) -> bool {
        self.0.name_baseline()
    }

    /// Is there nothing to judge?
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Judges a run. An assertion that takes too much is not judged, and those after it are.
    pub(crate) fn judge(&self, figures: &Figure) -> Result<Vec<Verdict>> {
        self.0.judge(figures, is_interrupted()).map_err(failure)
    }
}

/// Whoever has stopped a simulation wants to see what there is of it judged; a second Ctrl-C ends everything.
fn is_interrupted() -> impl Fn() -> bool + Clone + Send + 'static {
    let before = progress::is_interrupted();
    move || !before && progress::is_interrupted()
}

fn failure(error: Error) -> anyhow::Error {
    match error {
        Error::Interrupted => std::io::Error::other(Interrupted).into(),
        Error::Assertion(error) => error.into(),
        error @ (Error::Figures(_) | Error::Worker(_) | Error::Unexpected(_)) => error.into(),
    }
}
