//! Transforming: what the program says happens to an object, its deletes and its lives, and to nothing else.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

use proptest::prelude::*;
use serde_json::json;
use sk_core::{ObjectKey, ObjectRef, TemplateId};
use sk_store::trace::{Change, Format, Life, Observation, OwnerLives, Row, TemplateLives, Trace};
use sk_trace::generate::GenerateSpec;
use sk_trace::transform::{KindSummary, Program, TransformError, plan, transform};
use support::{START, deployment, generated, names, open, story, told, v2_traces};

fn owner(name: &str) -> ObjectRef {
    ObjectRef::new("apps/v1.Deployment".parse().unwrap(), ObjectKey::namespaced("default", name))
}

fn lives(name: &str) -> Row {
    let template = TemplateId::all_in(&deployment(name, 1), &["/spec/template".parse().unwrap()]).pop();
    let lives = vec![Life { start: START, end: None, guessed: false, exit_code: None }];
    Row::Lives(OwnerLives { owner: owner(name), templates: vec![TemplateLives { template, pod_hash: None, lives }] })
}

fn observation(name: &str) -> Row {
    Row::Observation(Observation {
        pod: ObjectKey::namespaced("default", format!("{name}-abc")),
        owner: Some(owner(name)),
        template: None,
        created: START,
        scheduled: None,
        started: None,
        finished: None,
        deleted: None,
        guessed: false,
        node: None,
        waits: Vec::new(),
    })
}

/// Two Deployments that come, change and go, with lives and observations.
fn sample() -> Trace {
    let mut story = story(&json!({"apps/v1.Deployment": {}})).mark(0);
    for name in ["web", "api"] {
        story = story.apply(1, deployment(name, 1)).row(lives(name)).row(observation(name));
    }
    for name in ["web", "api"] {
        story = story.apply(2, deployment(name, 3)).delete(3, names(&deployment(name, 3)));
    }
    story.trace()
}

fn run(trace: &Trace, program: &str) -> Result<Trace, TransformError> {
    let program = Program::compile(program).unwrap();
    transform(trace, &program, Format::Native, Vec::new()).map(|written| open(written.out))
}

fn owners(trace: &Trace) -> Vec<String> {
    let lives = trace.lives().unwrap().map(|row| row.unwrap().owner.key.to_string());
    lives.chain(trace.observations().unwrap().map(|row| row.unwrap().owner.unwrap().key.to_string())).collect()
}

#[test]
fn a_dropped_object_is_gone_with_its_deletes_and_lives() {
    // Only its second version has no output; it is dropped all the same.
    let after = run(&sample(), r#"select($name == "api" or .spec.replicas < 3)"#).unwrap();
    let events = told(&after);
    assert_eq!(events.len(), 3, "{events:?}");
    assert!(events.iter().all(|event| event.ends_with("default/api")), "{events:?}");
    assert_eq!(owners(&after), ["default/api", "default/api"]);
}

#[test]
fn a_new_name_goes_on_to_deletes_and_lives() {
    let after = run(&sample(), r#"if $name == "web" then .metadata.name = "front" else . end"#).unwrap();
    let events = told(&after);
    assert_eq!(events.iter().filter(|event| event.ends_with("default/front")).count(), 3, "{events:?}");
    assert!(!events.iter().any(|event| event.ends_with("default/web")), "{events:?}");
    assert_eq!(owners(&after), ["default/front", "default/api", "default/front", "default/api"]);
}

#[test]
fn lives_follow_a_template_that_is_changed() {
    let after = run(&sample(), r#".spec.template.spec.containers[0].image = "nginx:2""#).unwrap();
    let object = after.records().unwrap().find_map(|record| match record.unwrap().change {
        Change::Apply(object) => Some(object),
        _ => None,
    });
    let template = TemplateId::all_in(object.unwrap().value(), &["/spec/template".parse().unwrap()]).pop();
    let lives = after.lives().unwrap().next().unwrap().unwrap();
    assert_eq!(lives.templates[0].template, template);
}

#[test]
fn names_that_clash_or_differ_between_versions_are_refused() {
    let refuse = |program| run(&sample(), program).err().unwrap().to_string();
    assert!(refuse(r#".metadata.name = "one""#).contains("another object is Deployment default/one already"));
    let differs = refuse(r#".metadata.name = "\($name)-\(.spec.replicas)""#);
    assert!(differs.contains("renamed to Deployment default/web-1 before"), "{differs}");
    assert!(refuse(r#"if .spec.replicas > 2 then .metadata.name = "\($name)-x" else . end"#).contains("kept its name"));
}

#[test]
fn an_error_names_event_object_and_what_jq_says() {
    let error = run(&sample(), r#"if .spec.replicas > 2 then error("too many") else . end"#).err().unwrap().to_string();
    assert!(error.starts_with("event 3, 2026-01-05T00:00:02Z, Deployment default/web: too many;"), "{error}");
    let error = run(&sample(), "1").err().unwrap().to_string();
    assert!(error.contains("the output is not an object"), "{error}");
}

#[test]
fn a_plan_shows_the_first_changes_and_counts_all() {
    let program = Program::compile(r#"if $name == "api" then empty else .spec.replicas *= 2 end"#).unwrap();
    let plan = plan(&sample(), &program, 2).unwrap();
    let shown: Vec<_> = plan.diffs.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "2026-01-05T00:00:01Z Deployment default/web\n- /spec/replicas: 1\n+ /spec/replicas: 2\n",
            "2026-01-05T00:00:01Z Deployment default/api is dropped\n",
        ]
    );
    let expected = KindSummary { changed: 1, dropped: 1, renamed: 0 };
    assert_eq!(plan.summary.kinds.into_iter().collect::<Vec<_>>(), [("apps/v1.Deployment".parse().unwrap(), expected)]);
    assert_eq!((plan.summary.versions, plan.summary.changed_versions), (4, 2));
}

#[test]
fn a_program_that_changes_nothing_changes_nothing() {
    let bytes = generated(&GenerateSpec::preset("small").unwrap(), Format::Native);
    let program = Program::compile(".").unwrap();
    let written = transform(&open(bytes.clone()), &program, Format::Native, Vec::new()).unwrap();
    assert!(written.out == bytes, "not a byte differs");
    assert!(written.summary.kinds.is_empty());
    for path in v2_traces() {
        let trace = sk_store::trace::open(&path).unwrap();
        let after = run(&trace, ".").unwrap();
        let records = |trace: &Trace| trace.records().unwrap().map(|record| record.unwrap().change).collect::<Vec<_>>();
        assert!(records(&trace) == records(&after), "{}", path.display());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_makes_compiling_a_program_panic(code in r#"([a-z.|$\[\](){}"0-9,:;*+-]| |def |if |as |reduce ){0,40}"#) {
        let _ = Program::compile(&code);
    }
}
