//! Selectors and what they select; the odd ones were tried on apimachinery v0.36.4.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn selector(text: &str) -> LabelSelector {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

const LABELS: [(&str, &str); 4] = [("app", "web"), ("tier", ""), ("cores", "8"), ("in", "notin")];

#[test]
fn selectors_select_what_kubernetes_selects() {
    let selected = [
        "",
        "  ",
        "app",
        "app=web",
        "app == web",
        "app in (db, web)",
        "app notin (db)",
        "other notin (db)",
        "other!=db",
        "!other",
        "tier=",
        "tier in ()",
        "tier in (,)",
        "app in (,web)",
        "cores>7",
        "cores<9",
        "in=notin",
        "in in (notin)",
        "app=web,!other,cores>7",
    ];
    for text in selected {
        assert!(selector(text).matches(&LABELS[..]), "{text}");
    }
    let not_selected =
        ["other", "!app", "app=db", "app!=web", "app=", "app in ()", "cores>8", "app>1", "other<3", "app,other"];
    for text in not_selected {
        assert!(!selector(text).matches(&LABELS[..]), "{text}");
    }
}

#[test]
fn what_is_no_selector_is_refused_with_what_was_expected() {
    let wrong = [
        ",",
        "a,",
        "a,,b",
        "=a",
        "a=b=c",
        "a b",
        "a in",
        "a in x",
        "a in (x",
        "a in (x y)",
        "a in (=)",
        "!a=b",
        "!!a",
        "a=!b",
        "a===b",
        "(a)",
    ];
    for text in wrong {
        let error = text.parse::<LabelSelector>().unwrap_err();
        assert!(matches!(error, SelectorError::Syntax { .. }), "{text}: {error}");
        assert!(error.to_string().contains(text) && error.to_string().contains("expected"), "{error}");
    }
    assert!(matches!("a-=b".parse::<LabelSelector>(), Err(SelectorError::Key(_))));
    assert!(matches!("a=b-".parse::<LabelSelector>(), Err(SelectorError::Value { .. })));
    assert!(matches!("a>b".parse::<LabelSelector>(), Err(SelectorError::Values { .. })));
    let giant = "a,".repeat(text::MAX_SELECTOR_BYTES);
    assert!(matches!(giant.parse::<LabelSelector>(), Err(SelectorError::TooLong(_))));
}

#[test]
fn a_json_selector_is_both_its_parts_and_null_selects_nothing() {
    let json = json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "cores", "operator": "In", "values": ["8", "16"]},
            {"key": "other", "operator": "DoesNotExist"},
        ],
    });
    let both = LabelSelector::from_json(&json).unwrap();
    assert_eq!(both, selector("cores in (16,8),app=web,!other"));
    assert!(both.matches(&LABELS[..]));

    assert!(LabelSelector::from_json(&json!({})).unwrap().is_everything());
    let nothing = LabelSelector::from_json(&json!(null)).unwrap();
    assert!(nothing.is_nothing() && !nothing.is_everything() && !nothing.matches(&LABELS[..]));
}

#[test]
fn a_json_selector_of_another_shape_is_refused() {
    let wrong = [
        json!("app=web"),
        json!({"matchLabels": []}),
        json!({"matchLabels": {"app": 1}}),
        json!({"matchExpressions": {}}),
        json!({"matchExpressions": [{"key": "app", "operator": "Gt", "values": ["1"]}]}),
        json!({"matchExpressions": [{"key": "app", "operator": "In"}]}),
        json!({"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["a"]}]}),
        json!({"matchExpressions": [{"operator": "Exists"}]}),
        json!({"matchExpressions": [{"key": "app", "operator": "In", "values": "web"}]}),
    ];
    for json in wrong {
        assert!(LabelSelector::from_json(&json).is_err(), "{json}");
    }
}

#[test]
fn an_exact_value_is_known_only_if_there_is_one() {
    assert_eq!(selector("app=web,tier in (a,b)").exact_value("app"), Some("web"));
    assert_eq!(selector("app=web,tier in (a,b)").exact_value("tier"), None);
    assert_eq!(selector("app!=web").exact_value("app"), None);
    let fields: FieldSelector = "metadata.name=x,spec.nodeName!=y".parse().unwrap();
    assert_eq!((fields.exact_value("metadata.name"), fields.exact_value("spec.nodeName")), (Some("x"), None));
}

#[test]
fn field_selectors_compare_fields_and_absent_ones_are_empty() {
    let lookup = |field: &str| match field {
        "metadata.name" => Some("a,b"),
        "status.phase" => Some("Running"),
        _ => None,
    };
    let matches = |text: &str| text.parse::<FieldSelector>().unwrap().matches(lookup);
    let selected =
        ["", ",", "status.phase=Running", "status.phase==Running,", r"metadata.name=a\,b", "spec.nodeName=", "x!=y"];
    for text in selected {
        assert!(matches(text), "{text}");
    }
    for text in ["status.phase!=Running", "spec.nodeName=n", "status.phase=Running,x=y"] {
        assert!(!matches(text), "{text}");
    }
}

#[test]
fn field_selectors_that_compare_nothing_or_escape_wrongly_are_refused() {
    type Error = ParseFieldSelectorError;
    let error = |text: &str| text.parse::<FieldSelector>().unwrap_err();
    assert_eq!(error("metadata.name"), Error::NoOperator("metadata.name".into()));
    assert_eq!(error(r"a=\b"), Error::Escape(r"a=\b".into()));
    assert_eq!(error(r"a=b\"), Error::Escape(r"a=b\".into()));
    assert_eq!(error("a=b=c"), Error::Unescaped("a=b=c".into()));
}

fn any_requirement() -> impl Strategy<Value = Requirement> {
    let operators = prop::sample::select(vec![
        Operator::In,
        Operator::NotIn,
        Operator::Exists,
        Operator::DoesNotExist,
        Operator::GreaterThan,
        Operator::LessThan,
    ]);
    let values = prop::collection::vec("[a-c]?|[0-9]", 0..3);
    ("[a-c]", operators, values).prop_filter_map("an operator with values it takes", |(key, operator, values)| {
        Requirement::new(&key, operator, values).ok()
    })
}

proptest! {
    #[test]
    fn a_selectors_text_reads_back_as_the_same_selector(requirements in prop::collection::vec(any_requirement(), 0..5)) {
        let selector = LabelSelector::all(requirements);
        prop_assert_eq!(selector.to_string().parse::<LabelSelector>().unwrap(), selector);
    }

    #[test]
    fn a_field_selectors_text_reads_back_as_the_same_selector(text in r"([a-c.]{1,3}!?=([a-c]|\\,|\\=|\\\\){0,4},?){0,4}") {
        if let Ok(selector) = text.parse::<FieldSelector>() {
            prop_assert_eq!(selector.to_string().parse::<FieldSelector>().unwrap(), selector);
        }
    }

    #[test]
    fn no_text_makes_reading_a_selector_panic(text in r"([a-c=!(),<> \\]|in|notin|.){0,30}") {
        let _ = text.parse::<LabelSelector>();
        let _ = text.parse::<FieldSelector>();
    }
}
