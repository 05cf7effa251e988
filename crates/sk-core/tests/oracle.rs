//! Quantities and schedules against what Kubernetes' own libraries made of the same texts.

use std::collections::BTreeSet;

use serde::Deserialize;
use sk_core::cron::Schedule;
use sk_core::quantity::as_answered;
use sk_core::{Quantity, SimTime};
use sk_testkit::fixture::OracleFixture;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    input: String,
    /// What an API server answers; absent when it refuses the text.
    canonical: Option<String>,
    value: Option<i64>,
    milli_value: Option<i64>,
}

#[test]
fn quantities_are_what_kubernetes_makes_of_them() {
    let fixture = OracleFixture::<Case>::named("quantity").expect("the fixture is part of the repository");
    assert!(fixture.cases.len() >= 200);
    let mut too_large = BTreeSet::from(["1e100", "1e1000", "1e99999999999", "99999999999999999999999999999999999999"]);
    for case in &fixture.cases {
        let input = &case.input;
        if as_answered(input).is_err() && case.canonical.is_some() {
            // The one thing refused here and not there: no cluster has 10²⁹ of anything.
            assert!(too_large.remove(input.as_str()), "{input:?}");
            continue;
        }
        assert_eq!(as_answered(input).ok().as_deref(), case.canonical.as_deref(), "{input:?}");
        let Ok(quantity) = input.parse::<Quantity>() else { continue };
        // Where Kubernetes overflows or cuts off, we saturate and round; both are told apart by the sign and the size.
        let small = quantity.milli_value().unsigned_abs() < i64::MAX as u64 && !quantity.is_negative();
        if small {
            assert_eq!(
                (Some(quantity.value()), Some(quantity.milli_value())),
                (case.value, case.milli_value),
                "{input:?}"
            );
        }
    }
    assert!(too_large.is_empty(), "{too_large:?} are read now");
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CronCase {
    schedule: String,
    time_zone: Option<String>,
    after: String,
    count: usize,
    #[serde(default)]
    times: Vec<String>,
    error: Option<String>,
}

#[test]
fn schedules_come_when_kubernetes_says_also_in_the_night_when_clocks_change() {
    let fixture = OracleFixture::<CronCase>::named("cron").expect("the fixture is part of the repository");
    assert!(fixture.cases.len() >= 100);
    for CronCase { schedule, time_zone, after, count, times, error } in &fixture.cases {
        let asked = format!("{schedule:?} in {time_zone:?} after {after}");
        let parsed = match Schedule::parse(schedule, time_zone.as_deref()) {
            Ok(parsed) => parsed,
            Err(refused) => {
                assert_eq!(Some(refused.to_string()), *error, "{asked}");
                continue;
            }
        };
        assert_eq!(*error, None, "{asked}");
        let after = SimTime::parse_rfc3339(after).expect("the fixture's times are times");
        let all = std::iter::successors(parsed.next(after), |last| parsed.next(*last));
        let found: Vec<_> = all.take(*count).map(SimTime::to_rfc3339_secs).collect();
        assert_eq!(found, *times, "{asked}");
    }
}
