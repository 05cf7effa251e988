//! Variants, and fields that `--vary` gives several values.

use sk_api::scenario::{Family, Holds, Scenario, Variation};

const PACK: &str = "apiVersion: simkube.io/v1
kind: Scenario
cluster:
  groups:
    small: {min: 1, max: 10, cpu: 1, memory: 4Gi}
variants:
  as-is: {}
  packed: {cluster.groups.small.max: 4, autoscaler.expander: most-pods}
assert:
  - nodes.max <= 10
  - {that: nodes.max <= 4, for: [packed]}
  - {that: pods.failed == 0, for: any}
";

fn family(text: &str, varied: &[&str]) -> Result<Family, String> {
    let varied = varied.iter().map(|text| text.parse()).collect::<Result<Vec<Variation>, _>>();
    Scenario::family("pack.yaml", text, &[], &varied.map_err(|error| error.to_string())?)
        .map_err(|error| error.to_string())
}

fn labels(family: &Family) -> Vec<&str> {
    family.members.iter().map(|member| member.label.as_str()).collect()
}

#[test]
fn every_variant_is_the_file_with_its_fields_in_the_order_written() {
    let family = family(PACK, &[]).unwrap();
    assert_eq!(labels(&family), ["as-is", "packed"]);
    let sizes: Vec<u32> = family.members.iter().map(|member| member.scenario.cluster.groups["small"].max).collect();
    assert_eq!(sizes, [10, 4]);
    assert_eq!(family.base.variants.len(), 2);
}

#[test]
fn a_member_reads_back_from_its_own_text_and_keeps_only_what_concerns_it() {
    for member in family(PACK, &[]).unwrap().members {
        let again = Scenario::parse("scenario.yaml", &member.scenario.to_yaml()).unwrap();
        assert_eq!(again, member.scenario);
        let texts: Vec<&str> = again.assertions.iter().map(|assertion| assertion.that.as_str()).collect();
        let expected: &[&str] = match member.label.as_str() {
            "packed" => &["nodes.max <= 10", "nodes.max <= 4", "pods.failed == 0"],
            _ => &["nodes.max <= 10", "pods.failed == 0"],
        };
        assert_eq!(texts, expected);
        assert!(again.assertions.iter().all(|assertion| !matches!(assertion.holds, Holds::Variants(_))));
    }
}

#[test]
fn varied_fields_multiply_with_each_other_and_with_variants() {
    let varied = ["cluster.groups.small.min=0, 2", "autoscaler.scan-interval=10s,1m"];
    let family = family(PACK, &varied).unwrap();
    assert_eq!(family.members.len(), 8);
    assert_eq!(
        labels(&family)[..3],
        ["as-is min=0 scan-interval=10s", "as-is min=0 scan-interval=1m", "as-is min=2 scan-interval=10s"]
    );
    assert_eq!(family.members[7].scenario.cluster.groups["small"].min, 2);
    let simple = PACK.split("variants:").next().unwrap();
    let twins = self::family(
        simple,
        &[
            "cluster.groups.small.min=0,1",
            "cluster.groups.small={max: 3, cpu: 2, memory: 1Gi},{max: 2, cpu: 1, memory: 1Gi}",
        ],
    );
    assert_eq!(twins.unwrap().members.len(), 4, "a comma within brackets separates nothing");
}

#[test]
fn what_is_wrong_with_a_variant_is_found_where_it_stands() {
    let wrong = PACK.replace("small.max: 4", "small.max: none");
    let refused = family(&wrong, &[]).unwrap_err();
    assert!(refused.starts_with("pack.yaml:8:38: cluster.groups.small.max: "), "{refused}");
    let wrong = PACK.replace("groups.small.max: 4", "groups.smal.max: 4");
    let refused = family(&wrong, &[]).unwrap_err();
    assert!(refused.starts_with("pack.yaml:8:12: variants.packed[\"cluster.groups.smal.max\"]: "), "{refused}");
    assert!(refused.contains("did you mean `small`?"), "{refused}");
    let wrong = PACK.replace("autoscaler.expander: most-pods", "repetitions: 3");
    assert!(family(&wrong, &[]).unwrap_err().contains("all variants have this in common"));
}

#[test]
fn what_is_wrong_with_a_varied_value_is_told_with_its_flag() {
    let refused = |varied: &str| family(PACK.split("variants:").next().unwrap(), &[varied]).unwrap_err();
    assert!(refused("cluster.groups.small.max=3,x").starts_with("--vary cluster.groups.small.max=x: "));
    assert!(refused("seed=1,2,1").contains("twice"));
    assert!(refused("name=a,b").contains("vary another field"));
    assert!(refused("seed").contains("has no `=`"));
    let twice = family(PACK.split("variants:").next().unwrap(), &["seed=1,2", "seed=3"]).unwrap_err();
    assert_eq!(twice, "--vary seed is given twice; write all values in one, as in --vary seed=A,B");
    let both = family(PACK, &["cluster.groups.small.max=3,5"]).unwrap_err();
    assert!(both.contains("this variant sets it, and --vary sets it again"), "{both}");
    let thousands = (0..1_001).map(|seed| seed.to_string()).collect::<Vec<_>>().join(",");
    assert!(refused(&format!("seed={thousands}")).contains("more than 1000 runs"));
}
