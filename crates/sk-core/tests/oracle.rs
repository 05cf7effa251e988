//! Quantities against what Kubernetes' own library made of the same texts.

use serde::Deserialize;
use sk_core::Quantity;
use sk_core::quantity::as_answered;
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
    for case in &fixture.cases {
        let input = &case.input;
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
}
