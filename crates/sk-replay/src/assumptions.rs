//! What the engine decided without knowing, in warnings for people.

use std::collections::BTreeMap;

use sk_core::{SimDuration, SmolStr};
use sk_engine::api::Notice;
use sk_record::{Warning, WarningKind};

/// How many service accounts a warning names; the others are counted.
const NAMED_ACCOUNTS: usize = 5;

/// A warning for each, but one for all service accounts.
pub(crate) fn assumptions(notices: &BTreeMap<Notice, u64>, job_duration: SimDuration) -> Vec<Warning> {
    let warning = |kind, code: &str, message, count| Warning { code: code.to_owned(), kind, message, count };
    let (mut warnings, mut accounts) = (Vec::new(), Vec::new());
    for (notice, count) in notices {
        warnings.push(match notice {
            Notice::UnknownServiceAccount(account) => {
                accounts.push((account, *count));
                continue;
            }
            Notice::RefusedPod(words) => warning(WarningKind::Gap, "refused-pods", words.clone(), *count),
            Notice::UnknownPriorityClass(class) => {
                let message =
                    format!("priority class {class} is not in the trace: its pods keep their own priority, or 0");
                warning(WarningKind::Assumed, "priority-class", message, *count)
            }
            Notice::AssumedJobDuration => {
                let message = format!(
                    "nobody recorded how long these pods of Jobs run: {job_duration} assumed (timing.jobDuration, or the \
                     annotation static.simkube.io/lifetime)"
                );
                warning(WarningKind::Assumed, "job-duration", message, *count)
            }
        });
    }
    warnings.extend(supplied_accounts(&accounts));
    warnings
}

/// Most traces name service accounts that they do not hold, so one warning speaks of all of them.
fn supplied_accounts(accounts: &[(&SmolStr, u64)]) -> Option<Warning> {
    let named: Vec<&str> = accounts.iter().take(NAMED_ACCOUNTS).map(|(account, _)| account.as_str()).collect();
    let others = match accounts.len().checked_sub(NAMED_ACCOUNTS).filter(|others| *others > 0) {
        None => String::new(),
        Some(others) => format!(" and {others} more"),
    };
    let message =
        format!("ServiceAccounts that are not in the trace are taken for granted: {}{others}", named.join(", "));
    let count = accounts.iter().map(|(_, templates)| templates).sum();
    (!accounts.is_empty()).then(|| Warning {
        code: "service-account".to_owned(),
        kind: WarningKind::Assumed,
        message,
        count,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_accounts_that_a_trace_lacks_are_named_in_one_warning() {
        let account = |number: u64| (Notice::UnknownServiceAccount(format!("shop/robot-{number}").into()), number);
        let notices: BTreeMap<Notice, u64> =
            (1..=7).map(account).chain([(Notice::UnknownPriorityClass("high".into()), 2)]).collect();
        let warnings = assumptions(&notices, SimDuration::from_secs(60));
        assert_eq!(warnings.len(), 2);
        assert_eq!(
            (warnings[1].code.as_str(), warnings[1].kind, warnings[1].count),
            ("service-account", WarningKind::Assumed, 28)
        );
        assert_eq!(
            warnings[1].message,
            "ServiceAccounts that are not in the trace are taken for granted: shop/robot-1, shop/robot-2, shop/robot-3, \
             shop/robot-4, shop/robot-5 and 2 more"
        );
        assert!(assumptions(&BTreeMap::new(), SimDuration::ZERO).is_empty());
    }
}
