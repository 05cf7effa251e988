//! Any JSON gets an answer of Kubernetes' own kind: every recorded request once more with each of its fields, in turn, of every
//! other type. Nothing panics, and whatever is refused is refused by a `Status` with a code that a server has.

use serde_json::{Value, json};
use sk_apiserver::rest::{Call, Method};
use sk_apiserver::{ApiServer, Object, Request};
use sk_core::SimTime;
use sk_testkit::api::{Answered, Family, Player};

const NOW: SimTime = SimTime::from_secs(1_800_000_000);
/// Every so many fields are tried: all of them take minutes without optimisation. It shares no factor with the number of values
/// that are put there, so that each field meets each value in one family or another.
const EVERY: usize = 7;

fn server() -> ApiServer {
    let mut server = ApiServer::new(1).strict();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}});
    let namespace = Object::from_json(namespace).expect("a namespace is an object");
    server.handle(NOW, Request::create(namespace)).expect("an empty server takes its first namespace");
    server
}

/// Where something stands in a value: JSON pointers, also to what is inside.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, inner)| places(inner, &format!("{at}/{}", escaped(name)), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, inner)| places(inner, &format!("{at}/{index}"), found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn sent(call: &sk_testkit::api::Call, body: &Value) -> Call {
    let method = match call.method.as_str() {
        "GET" => Method::Get,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "PATCH" => Method::Patch,
        _ => Method::Delete,
    };
    let body = match body {
        Value::Null => Vec::new(),
        Value::String(text) => text.clone().into_bytes(),
        body => body.to_string().into_bytes(),
    };
    Call { method, path: call.path.clone(), content_type: call.content_type.clone(), body }
}

fn check(server: &mut ApiServer, call: &Call) {
    let reply = server.serve(NOW, call);
    let body = String::from_utf8_lossy(&call.body);
    assert!((200..=504).contains(&reply.code), "{} {body}: {}", call.path, reply.code);
    if reply.code >= 400 && reply.body.is_object() {
        assert_eq!(reply.body["kind"], "Status", "{} {body}", call.path);
        let message = reply.body["message"].as_str().unwrap_or_default();
        assert!(!message.is_empty(), "{} {body}", call.path);
    }
}

#[test]
fn every_request_with_a_field_of_another_type_gets_an_answer() {
    let others = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5e300),
        json!("\u{0}ü/"),
        json!([]),
        json!([null]),
        json!({"": {}}),
    ];
    let (mut tried, mut turn) = (0, 0);
    for family in Family::all().unwrap().into_iter().filter(|family| family.name != "bounds") {
        let (mut server, mut player) = (server(), Player::new(&family));
        while let Some(call) = player.next_call() {
            let mut found = Vec::new();
            places(&call.body, "", &mut found);
            for place in found.iter().filter(|_| call.body.is_object() || call.body.is_array()) {
                for other in &others {
                    turn += 1;
                    if turn % EVERY == 0 {
                        let mut body = call.body.clone();
                        *body.pointer_mut(place).expect("it stands there") = other.clone();
                        check(&mut server, &sent(&call, &body));
                        tried += 1;
                    }
                }
            }
            let reply = server.serve(NOW, &sent(&call, &call.body));
            player.answered(&call, Answered { code: reply.code, body: reply.body });
        }
    }
    assert!(tried > 10_000, "only {tried} were tried");
}
