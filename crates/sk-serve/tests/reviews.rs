//! What the API server is asked, and how often. The server is the test's own.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use http::{HeaderMap, Request, Response, StatusCode};
use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::Client;
use serde_json::{Value, json};
use sk_serve::{Refusal, Reviewer};

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// What was asked.
#[derive(Default)]
struct Asked {
    tokens: AtomicUsize,
    rights: AtomicUsize,
}

/// An API server that knows the token `good`, whose user may `create` and nothing else.
fn server(asked: &Arc<Asked>) -> Client {
    let asked = Arc::clone(asked);
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let asked = Arc::clone(&asked);
        async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect_bytes().await.expect("a body");
            let review: Value = serde_json::from_slice(&body).expect("a review");
            let mut answer = review.clone();
            answer["status"] = if path.ends_with("/tokenreviews") {
                asked.tokens.fetch_add(1, Ordering::SeqCst);
                match review["spec"]["token"].as_str() {
                    Some("good") => {
                        json!({"authenticated": true, "audiences": ["us"], "user": {"username": "jane"}})
                    }
                    Some("elsewhere") => json!({"authenticated": true, "user": {"username": "joe"}}),
                    _ => json!({"authenticated": false, "error": "no such token"}),
                }
            } else {
                asked.rights.fetch_add(1, Ordering::SeqCst);
                json!({"allowed": review["spec"]["resourceAttributes"]["verb"] == "create"})
            };
            Ok::<_, std::convert::Infallible>(
                Response::builder()
                    .status(StatusCode::CREATED)
                    .body(Body::from(answer.to_string()))
                    .expect("an answer"),
            )
        }
    });
    Client::new(service, "default")
}

fn showing(token: &str) -> HeaderMap {
    HeaderMap::from_iter([(http::header::AUTHORIZATION, format!("Bearer {token}").parse().expect("a header"))])
}

fn to(verb: &str) -> ResourceAttributes {
    ResourceAttributes { verb: Some(verb.to_owned()), ..ResourceAttributes::default() }
}

#[tokio::test]
async fn what_the_api_server_has_said_is_remembered_whether_it_was_yes_or_no() {
    let asked = Arc::new(Asked::default());
    let (client, reviewer) = (server(&asked), Reviewer::new("us"));
    for _ in 0..10 {
        let admitted = reviewer.check(&client, HERE, &showing("good"), &to("create")).await;
        assert_eq!(admitted.as_deref(), Ok("jane"));
        let refused = reviewer.check(&client, HERE, &showing("good"), &to("get")).await;
        assert_eq!(refused, Err(Refusal::Forbidden("jane".to_owned())));
        let unknown = reviewer.check(&client, HERE, &showing("made-up"), &to("create")).await;
        assert_eq!(unknown, Err(Refusal::BadToken("no such token".to_owned())));
        let for_others = reviewer.check(&client, HERE, &showing("elsewhere"), &to("create")).await;
        assert!(matches!(for_others, Err(Refusal::BadToken(_))), "a token for another audience: {for_others:?}");
        assert_eq!(reviewer.check(&client, HERE, &HeaderMap::new(), &to("create")).await, Err(Refusal::NoToken));
    }
    let (tokens, rights) = (asked.tokens.load(Ordering::SeqCst), asked.rights.load(Ordering::SeqCst));
    // A refusal is forgotten after five seconds, which ten rounds may take on a machine that stands still.
    assert!(tokens < 10 && rights < 10, "{tokens} and {rights} requests for 50 callers");
}

#[tokio::test]
async fn a_thousand_made_up_tokens_are_few_requests_and_do_not_hold_up_who_is_known() {
    let asked = Arc::new(Asked::default());
    let (client, reviewer) = (server(&asked), Reviewer::new("us"));
    reviewer.check(&client, HERE, &showing("good"), &to("create")).await.expect("jane may");
    let began = std::time::Instant::now();
    let mut turned_away = 0;
    for number in 0..1_000 {
        let refused = reviewer.check(&client, HERE, &showing(&format!("made-up-{number}")), &to("create")).await;
        turned_away += usize::from(refused == Err(Refusal::TooManyUnknown));
    }
    // Twenty at once and five a second, of one address.
    let most = 21 + 5 * (1 + usize::try_from(began.elapsed().as_secs()).expect("it is soon"));
    let tokens = asked.tokens.load(Ordering::SeqCst);
    assert!(tokens <= most && turned_away + most >= 1_000, "{tokens} requests, {turned_away} turned away");
    reviewer.check(&client, HERE, &showing("good"), &to("create")).await.expect("she is known");
    let elsewhere = IpAddr::from([10, 0, 0, 9]);
    let other = reviewer.check(&client, elsewhere, &showing("not-yet-known"), &to("create")).await;
    assert_eq!(other, Err(Refusal::BadToken("no such token".to_owned())), "another address has its own share");
}
