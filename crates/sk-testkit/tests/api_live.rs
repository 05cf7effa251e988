//! Are the recorded answers still the real server's? All of them are asked again, and so are the types of its kinds.

use std::time::Instant;

use serde_json::Value;
use sk_testkit::api::{Answer, Family, Recorded};
use sk_testkit::fixture::OpenApi;
use sk_testkit::recorder::ApiArena;

/// An answer without what differs from one server to the next: some messages quote the whole object, with its version and
/// the times of its changes, so every number within a message stands for any number.
fn comparable(answer: &Answer) -> Answer {
    let mut answer = answer.clone();
    without_numbers_in_messages(&mut answer.body);
    answer
}

fn without_numbers_in_messages(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if name == "message" => *text = without_numbers(text),
                    other => without_numbers_in_messages(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_numbers_in_messages),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn without_numbers(text: &str) -> String {
    // Versions and times that are scrubbed in one recording and not in the other are numbers all the same.
    let text = text.replace("<version>", "0").replace("<time>", "0-0-0T0:0:0Z");
    let pieces: Vec<&str> =
        text.split(|letter: char| letter.is_ascii_digit()).filter(|piece| !piece.is_empty()).collect();
    pieces.join("0")
}

#[tokio::test]
async fn the_real_server_answers_as_it_was_recorded() {
    let arena = ApiArena::start().await.expect("the API server starts");
    let mut different = Vec::new();
    for family in Family::all().expect("families are read") {
        let (recorded, began) = (Recorded::named(&family.name).expect("every family has a recording"), Instant::now());
        let now = arena.record(&family).await.expect("the real server answers");
        eprintln!("{}: {} requests in {:.1} s", family.name, now.answers.len(), began.elapsed().as_secs_f64());
        assert_eq!(recorded.answers.len(), now.answers.len(), "{}", family.name);
        for (then, now) in recorded.answers.iter().zip(&now.answers) {
            let (then, now) = (comparable(then), comparable(now));
            if then != now {
                different.push(format!("{}: {}\n  recorded {then:?}\n  now      {now:?}", family.name, then.name));
            }
        }
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
}

#[tokio::test]
async fn the_real_server_serves_the_types_that_were_recorded() {
    let now = ApiArena::start().await.expect("the API server starts").openapi().await.expect("it says its types");
    let recorded = OpenApi::recorded().expect("the types are recorded");
    assert_eq!((&now.kubernetes, &now.kinds), (&recorded.kubernetes, &recorded.kinds));
    let names = now.types.keys().chain(recorded.types.keys());
    let different: Vec<&String> = names.filter(|name| now.types.get(*name) != recorded.types.get(*name)).collect();
    assert!(different.is_empty(), "{different:?}");
    assert!(now.types.len() > 200, "only {} types are served", now.types.len());
}
