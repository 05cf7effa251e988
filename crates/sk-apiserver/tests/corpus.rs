//! Does sk-apiserver answer every request as a real API server has answered it?
//!
//! Each family is played on a server of its own; code, reason, message and body of each answer are compared with the
//! recording. What is known to differ is listed in `corpus/allowed.txt`; the list may only shrink.

#![allow(clippy::disallowed_methods, reason = "the test reads recordings and writes a page; the server does neither")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sk_apiserver::rest::{Call, Method};
use sk_apiserver::{ApiServer, Object, Request};
use sk_core::SimTime;
use sk_testkit::Versions;
use sk_testkit::api::{Answer, Answered, Family, Player, Recorded, scrub};

const NOW: SimTime = SimTime::from_secs(1_800_000_000);
/// Answers that differ, one `family: request # reason` per line.
const ALLOWED: &str = include_str!("corpus/allowed.txt");

/// A server as it is when nobody has asked it anything yet.
fn server() -> ApiServer {
    let mut server = ApiServer::new(1).strict();
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let namespace = Object::from_json(namespace).expect("a namespace is an object");
        server.handle(NOW, Request::create(namespace)).expect("an empty server takes its first namespaces");
    }
    server
}

fn play(family: &Family) -> Vec<Answer> {
    let mut server = server();
    let mut player = Player::new(family);
    while let Some(call) = player.next_call() {
        let method = match call.method.as_str() {
            "GET" => Method::Get,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "PATCH" => Method::Patch,
            "DELETE" => Method::Delete,
            other => panic!("{other} is no method"),
        };
        let body = match &call.body {
            Value::Null => Vec::new(),
            Value::String(text) => text.clone().into_bytes(),
            body => body.to_string().into_bytes(),
        };
        let sent = Call { method, path: call.path.clone(), content_type: call.content_type.clone(), body };
        let reply = server.serve(NOW, &sent);
        player.answered(&call, Answered { code: reply.code, body: reply.body });
    }
    player.into_answers()
}

/// Every answer that differs: its name, and both.
fn differences(family: &Family) -> Vec<(String, String)> {
    let recorded = Recorded::named(&family.name).expect("the family is recorded: `make record-fixtures SCENARIOS=api`");
    // Recordings may be older than what is known to differ between two servers.
    let theirs =
        recorded.answers.into_iter().map(|answer| Answer { body: scrub(answer.body, family.managers), ..answer });
    let pairs = theirs.zip(play(family));
    let differing = pairs.filter(|(theirs, ours)| theirs != ours);
    let told = |(theirs, ours): (Answer, Answer)| {
        let shown = |answer: &Answer| format!("{} {}", answer.code, answer.body);
        (format!("{}: {}", family.name, theirs.name), format!("  real {}\n  ours {}", shown(&theirs), shown(&ours)))
    };
    differing.map(told).collect()
}

#[test]
fn every_answer_is_the_real_servers_but_those_that_are_known_to_differ() {
    let listed = ALLOWED.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let reasoned = listed.map(|line| line.split_once(" # ").expect("every entry has its reason"));
    let allowed: BTreeSet<&str> = reasoned.map(|(name, _)| name).collect();
    let mut differing = BTreeMap::new();
    let mut unexpected = String::new();
    for family in Family::all().unwrap() {
        for (name, both) in differences(&family) {
            if !allowed.contains(name.as_str()) {
                unexpected.push_str(&format!("{name}\n{both}\n"));
            }
            differing.insert(name, both);
        }
    }
    if let Some(path) = std::env::var_os("API_DIFFERENCES") {
        fs::write(path, differing.iter().map(|(name, both)| format!("{name}\n{both}\n")).collect::<String>()).unwrap();
    }
    assert!(unexpected.is_empty(), "{unexpected}");
    let mended: Vec<_> = allowed.iter().filter(|name| !differing.contains_key(**name)).collect();
    assert!(mended.is_empty(), "these are answered right now; take them off the list: {mended:?}");
}

#[test]
fn there_are_at_least_400_requests_and_each_was_answered_as_it_is_now() {
    let pinned = format!("v{}", Versions::pinned().kubernetes);
    let mut requests = 0;
    for family in Family::all().unwrap() {
        let recorded = Recorded::named(&family.name).unwrap();
        assert_eq!(recorded.kubernetes, pinned, "{}: `make record-fixtures SCENARIOS=api`", family.name);
        assert_eq!(recorded.family, family.source, "{} has changed since it was recorded", family.name);
        assert_eq!(recorded.answers.len(), family.calls.len(), "{}", family.name);
        requests += family.calls.len();
    }
    assert!(requests >= 400, "{requests}");
}

#[test]
fn two_servers_answer_alike() {
    for family in Family::all().unwrap() {
        assert_eq!(play(&family), play(&family), "{}", family.name);
    }
}

/// What of docs/fidelity.md is made from the families.
fn compared() -> String {
    let mut text = "| family | about | requests | answered as recorded |\n|---|---|---|---|\n".to_owned();
    let (mut requests, mut equal) = (0, 0);
    for family in Family::all().expect("every family can be read") {
        let (all, differing) = (family.calls.len(), differences(&family).len());
        text.push_str(&format!("| {} | {} | {all} | {} |\n", family.name, family.about, all - differing));
        (requests, equal) = (requests + all, equal + all - differing);
    }
    format!(
        "{equal} of {requests} recorded requests have the real server's answer (code, reason, message, object):\n\n{text}"
    )
}

#[test]
fn the_page_on_fidelity_says_how_many_answers_are_the_real_servers() {
    const BEGIN: &str = "<!-- made from the requests by `make docs` -->\n";
    const END: &str = "<!-- end of the requests -->\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fidelity.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the requests");
    let (_, after) = rest.split_once(END).expect("the place for the requests ends");
    let generated = format!("{before}{BEGIN}{}{END}{after}", compared());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &generated).unwrap();
    }
    let page = fs::read_to_string(&path).unwrap();
    assert!(page == generated, "docs/fidelity.md is out of date: `make docs` writes it");
}
