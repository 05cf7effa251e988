//! Every flag of the autoscaler that a scenario takes reaches the engine: none is read and forgotten on the way.

use serde_json::Value;
use sk_api::Scenario;
use sk_replay::setup::Setup;

const SMALLEST: &str = "apiVersion: simkube.io/v1
kind: Scenario
cluster: {groups: {small: {max: 3, cpu: 4, memory: 16Gi, price: 1}}}
";

fn engine_flags(scenario: &str) -> sk_engine::Autoscaler {
    let scenario = Scenario::parse("flags.yaml", scenario).unwrap_or_else(|error| panic!("{error}: {scenario}"));
    Setup::new(&scenario).settings.autoscaler
}

/// Another value than the default that the flag can have.
fn another(flag: &str, default: &Value) -> String {
    let spelled = default.as_str().map_or(default.to_string(), ToOwned::to_owned);
    match spelled.as_str() {
        "true" => "false".to_owned(),
        "false" => "true".to_owned(),
        "0.5" => "0.25".to_owned(),
        "least-waste" => "price".to_owned(),
        "" => "some.io/label".to_owned(),
        range if range.contains(':') => "1:7".to_owned(),
        number if number.parse::<i64>().is_ok() => (number.parse::<i64>().unwrap_or(0) + 1).to_string(),
        // The longest back-off is no shorter than the first.
        _ if flag.starts_with("max-") => "77m".to_owned(),
        _ => "7m".to_owned(),
    }
}

#[test]
fn every_flag_of_a_scenario_changes_what_the_engine_is_set_up_with() {
    let defaults = serde_json::to_value(sk_api::scenario::Autoscaler::default()).expect("flags are data");
    let by_default = engine_flags(SMALLEST);
    assert_eq!(by_default, sk_engine::Autoscaler::default(), "both sides have the real one's defaults");
    let flags = defaults.as_object().expect("flags by name");
    assert!(flags.len() > 40, "{flags:?}");
    for (flag, default) in flags {
        let value = another(flag, default);
        let changed = engine_flags(&format!("{SMALLEST}autoscaler: {{{flag}: \"{value}\"}}\n"));
        assert_ne!(changed, by_default, "{flag}: {value}");
        let lines = |flags: &sk_engine::Autoscaler| -> Vec<String> {
            format!("{flags:#?}").lines().map(ToOwned::to_owned).collect()
        };
        let (before, after) = (lines(&by_default), lines(&changed));
        let others = after.iter().filter(|line| !before.contains(line)).count();
        assert!((1..=2).contains(&others), "{flag} changes itself alone: {after:?}");
    }
}
