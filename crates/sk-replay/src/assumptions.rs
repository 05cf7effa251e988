//! Warnings about what the engine assumed because the trace does not say.

use std::collections::BTreeMap;

use sk_core::{SimDuration, SmolStr};
use sk_engine::api::Notice;
use sk_record::{Warning, WarningKind};

/// How many service accounts or definitions a warning names; the others are counted.
const NAMED: usize = 5;

/// A warning for each, but one for all service accounts, and one for all definitions with rules that are not evaluated.
pub(crate) fn assumptions(notices: &BTreeMap<Notice, u64>, job_duration: SimDuration) -> Vec<Warning> {
    let warning = |kind, code: &str, message, count| Warning { code: code.to_owned(), kind, message, count };
    let (mut warnings, mut accounts, mut definitions) = (Vec::new(), Vec::new(), Vec::new());
    for (notice, count) in notices {
        warnings.push(match notice {
            Notice::UnknownServiceAccount(account) => {
                accounts.push((account, *count));
                continue;
            }
            Notice::UnaskedRules(definition) => {
                definitions.push(definition);
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
                    "the durations of these Job pods were not recorded: {job_duration} assumed (timing.jobDuration, or the \
                     annotation static.simkube.io/lifetime)"
                );
                warning(WarningKind::Assumed, "job-duration", message, *count)
            }
        });
    }
    warnings.extend(supplied_accounts(&accounts));
    warnings.extend(unasked_rules(&definitions));
    warnings
}

/// Most traces name service accounts that they do not contain, so one warning names all of them.
fn supplied_accounts(accounts: &[(&SmolStr, u64)]) -> Option<Warning> {
    let named: Vec<&SmolStr> = accounts.iter().map(|(account, _)| *account).collect();
    let message = format!("ServiceAccounts that are not in the trace are assumed to exist: {}", first_few(&named));
    let count = accounts.iter().map(|(_, templates)| templates).sum();
    (!accounts.is_empty()).then(|| Warning {
        code: "service-account".to_owned(),
        kind: WarningKind::Assumed,
        message,
        count,
    })
}

/// CustomResourceDefinitions whose CEL validation rules are not evaluated.
fn unasked_rules(definitions: &[&SmolStr]) -> Option<Warning> {
    let message = format!(
        "CEL validation rules (x-kubernetes-validations) are not evaluated, so objects that they would refuse are accepted: {}",
        first_few(definitions)
    );
    let count = definitions.len() as u64;
    let warning = Warning { code: "custom-rules".to_owned(), kind: WarningKind::Assumed, message, count };
    (count > 0).then_some(warning)
}

fn first_few(names: &[&SmolStr]) -> String {
    let named: Vec<&str> = names.iter().take(NAMED).map(|name| name.as_str()).collect();
    match names.len().checked_sub(NAMED).filter(|others| *others > 0) {
        None => named.join(", "),
        Some(others) => format!("{} and {others} more", named.join(", ")),
    }
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
            "ServiceAccounts that are not in the trace are assumed to exist: shop/robot-1, shop/robot-2, shop/robot-3, \
             shop/robot-4, shop/robot-5 and 2 more"
        );
        assert!(assumptions(&BTreeMap::new(), SimDuration::ZERO).is_empty());
    }

    #[test]
    fn definitions_whose_rules_are_not_evaluated_are_named() {
        let notices = BTreeMap::from([(Notice::UnaskedRules("widgets.example.com".into()), 1)]);
        let warnings = assumptions(&notices, SimDuration::ZERO);
        assert_eq!((warnings[0].code.as_str(), warnings[0].count), ("custom-rules", 1));
        assert!(warnings[0].message.ends_with("are accepted: widgets.example.com"), "{}", warnings[0].message);
    }
}
