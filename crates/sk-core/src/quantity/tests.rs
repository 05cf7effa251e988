//! What real Kubernetes (apimachinery v0.36.4) answered, and the properties that hold for all quantities.

use proptest::prelude::*;

use super::*;

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// Text, how it is printed after arithmetic, how an API server answers, `Value()`, `MilliValue()`.
const REAL_ANSWERS: &[(&str, &str, &str, i64, i64)] = &[
    ("0", "0", "0", 0, 0),
    ("-0", "0", "0", 0, 0),
    ("+5", "5", "+5", 5, 5_000),
    ("005", "5", "005", 5, 5_000),
    ("1.5", "1500m", "1500m", 2, 1_500),
    ("1.500", "1500m", "1.500", 2, 1_500),
    ("1.125", "1125m", "1.125", 2, 1_125),
    ("0.125", "125m", "125m", 1, 125),
    (".5", "500m", "500m", 1, 500),
    ("5.", "5", "5.", 5, 5_000),
    (".", "0", "0", 0, 0),
    ("+", "0", "0", 0, 0),
    ("Ki", "0", "0", 0, 0),
    ("1000m", "1", "1", 1, 1_000),
    ("0.1m", "100u", "100u", 1, 1),
    ("0.1n", "1n", "1n", 1, 1),
    ("0.00000000001", "1n", "1n", 1, 1),
    ("1e3", "1e3", "1e3", 1_000, 1_000_000),
    ("1E3", "1e3", "1E3", 1_000, 1_000_000),
    ("1e0", "1", "1e0", 1, 1_000),
    ("1e5", "100e3", "100e3", 100_000, 100_000_000),
    ("1e-12", "1e-9", "1e-9", 1, 1),
    ("1Ki", "1Ki", "1Ki", 1_024, 1_024_000),
    ("1024", "1024", "1024", 1_024, 1_024_000),
    ("1024Ki", "1Mi", "1Mi", 1_048_576, 1_048_576_000),
    ("1000Ki", "1000Ki", "1000Ki", 1_024_000, 1_024_000_000),
    ("0.5Ki", "512", "512", 512, 512_000),
    ("0.0001Ki", "102400u", "102400u", 1, 103),
    ("1.5Gi", "1536Mi", "1536Mi", 1_610_612_736, 1_610_612_736_000),
    ("1.1Ki", "1126400m", "1126400m", 1_127, 1_126_400),
    ("1.0001Gi", "1073849198182400u", "1073849198182400u", 1_073_849_199, 1_073_849_198_183),
    ("123Mi", "123Mi", "123Mi", 128_974_848, 128_974_848_000),
    ("129M", "129M", "129M", 129_000_000, 129_000_000_000),
    ("-1.5", "-1500m", "-1500m", -2, -1_500),
    ("-1Ki", "-1Ki", "-1Ki", -1_024, -1_024_000),
    ("12.3456789012", "12345678902n", "12345678902n", 13, 12_346),
];

/// Texts whose value or thousandfold overflows in Kubernetes; the printed forms are its own.
const REAL_GIANTS: &[(&str, &str)] = &[
    ("1E", "1E"),
    ("1Ei", "1Ei"),
    ("8Ei", "9223372036854775807"),
    ("10000000000000000000Ki", "9223372036854775807"),
    ("9223372036854775808", "9223372036854775808"),
    ("1234567890123456789012", "1234567890123456789012"),
    ("1001E", "1001E"),
    ("1000E", "1"),
];

#[test]
fn quantities_read_print_and_round_as_kubernetes_answered() {
    for &(text, canonical, answered, value, milli) in REAL_ANSWERS {
        let read = quantity(text);
        assert_eq!(read.to_string(), canonical, "{text}");
        assert_eq!(as_answered(text).unwrap(), answered, "{text}");
        assert_eq!((read.value(), read.milli_value()), (value, milli), "{text}");
    }
    for &(text, canonical) in REAL_GIANTS {
        assert_eq!(quantity(text).to_string(), canonical, "{text}");
    }
}

#[test]
fn values_that_overflow_saturate() {
    assert_eq!(quantity("9223372036854775808").value(), i64::MAX);
    assert_eq!(quantity("-1000E").value(), i64::MIN);
    assert_eq!(quantity("1Ei").milli_value(), i64::MAX);
}

#[test]
fn what_kubernetes_refuses_is_refused_with_advice() {
    for text in ["", "1x", "1 ", "1.2.3", "e5Ki", "Pi", "e-12", "µ", "1µ"] {
        assert!(matches!(text.parse::<Quantity>(), Err(ParseQuantityError::Malformed(_))), "{text}");
    }
    for text in ["1K", "1ki", "1e", "1e-", "1ee3", "--1", "1e99999999999999999999"] {
        assert!(matches!(text.parse::<Quantity>(), Err(ParseQuantityError::UnknownSuffix(_))), "{text}");
    }
}

#[test]
fn what_an_i128_of_nanos_cannot_hold_is_refused_and_tiny_amounts_are_one_nano() {
    assert!(matches!("1e30".parse::<Quantity>(), Err(ParseQuantityError::TooLarge(_))));
    assert!(matches!("1e2000000000".parse::<Quantity>(), Err(ParseQuantityError::TooLarge(_))));
    assert!(matches!("9".repeat(300).parse::<Quantity>(), Err(ParseQuantityError::TooLong(300))));
    assert_eq!(quantity("1e-2000000000").to_string(), "1e-9");
    assert_eq!(quantity("0e2000000000"), Quantity::ZERO);
    assert_eq!(quantity(&format!("{}Ei", "9".repeat(200))).value(), i64::MAX);
}

#[test]
fn sums_take_the_format_of_the_first_amount_that_is_something() {
    let sum: Quantity = ["0", "512Mi", "512M"].into_iter().map(quantity).sum();
    assert_eq!(sum, quantity("1048870912"));
    assert_eq!(sum.format(), Format::BinarySi);
    assert_eq!((quantity("1Gi") + quantity("1Gi")).to_string(), "2Gi");
    assert_eq!((quantity("1") - quantity("250m")).to_string(), "750m");
    assert_eq!((-quantity("1Ki")).to_string(), "-1Ki");
}

#[test]
fn resource_lists_are_rounded_up_to_thousandths() {
    for (text, rounded) in [("100u", "1m"), ("1.0001Gi", "1073849198183m"), ("-0.1n", "-1m"), ("2", "2")] {
        assert_eq!(quantity(text).rounded_up_to_milli().to_string(), rounded, "{text}");
    }
}

#[test]
fn json_strings_numbers_and_null_are_read_and_strings_written() {
    let read = |json: &str| serde_json::from_str::<Quantity>(json);
    for (json, text) in [("\" 500m \"", "500m"), ("2", "2"), ("-3", "-3"), ("0.1", "100m"), ("null", "0")] {
        assert_eq!(read(json).unwrap().to_string(), text, "{json}");
    }
    assert_eq!(serde_json::to_string(&quantity("1.5Gi")).unwrap(), "\"1536Mi\"");
    for json in ["true", "[]", "{}", "\"two\"", "1e300"] {
        assert!(read(json).is_err(), "{json}");
    }
}

fn any_text() -> impl Strategy<Value = String> {
    let suffix = prop::sample::select(vec![
        "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e-9", "e-1", "e0", "e7",
    ]);
    ("[+-]?[0-9]{0,9}(\\.[0-9]{0,12})?", suffix).prop_map(|(number, suffix)| format!("{number}{suffix}"))
}

proptest! {
    #[test]
    fn the_canonical_form_reads_back_as_the_same_number_and_prints_the_same(text in any_text()) {
        let Ok(read) = text.parse::<Quantity>() else { return Ok(()) };
        // From 10^21 on decimal multiples have no suffix, see `Display`.
        prop_assume!(read.value() < i64::MAX && read.value() > i64::MIN);
        let printed = read.to_string();
        let again = quantity(&printed);
        prop_assert_eq!(again, read);
        prop_assert_eq!(again.to_string(), printed);
    }

    #[test]
    fn order_agrees_with_subtraction(a in any_text(), b in any_text()) {
        let (Ok(a), Ok(b)) = (a.parse::<Quantity>(), b.parse::<Quantity>()) else { return Ok(()) };
        prop_assert_eq!(a < b, (a - b).is_negative());
        prop_assert_eq!(a == b, (a - b).is_zero());
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
    }

    #[test]
    fn rounding_never_loses_an_amount(text in any_text()) {
        let Ok(read) = text.parse::<Quantity>() else { return Ok(()) };
        prop_assume!(read.milli_value() < i64::MAX && read.milli_value() > i64::MIN);
        let (milli, whole) = (Quantity::from_milli(read.milli_value()), Quantity::from_value(read.value()));
        if read.is_negative() {
            prop_assert!(whole <= milli && milli <= read);
        } else {
            prop_assert!(whole >= milli && milli >= read);
        }
    }

    #[test]
    fn no_text_makes_reading_panic(text in ".{0,40}") {
        let _ = text.parse::<Quantity>();
        let _ = as_answered(&text);
    }
}
