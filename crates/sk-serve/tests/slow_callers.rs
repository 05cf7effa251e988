//! Callers who say nothing, say half of it, or say it slowly. All on loopback.

use std::future::pending;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Extension;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sk_serve::{ConnectionHandle, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// Longer than any test waits.
const NEVER: Duration = Duration::from_secs(3_600);

/// Limits that only pushing out is left of.
const PATIENT: Limits =
    Limits { first_request: NEVER, idle: NEVER, request: NEVER, stall: NEVER, per_address: 64, ..Limits::new(64, 16) };

/// `/work` says that it works, and does so until somebody lets it go.
static WORKING: Semaphore = Semaphore::const_new(0);
static GO: Semaphore = Semaphore::const_new(0);

async fn work(Extension(connection): Extension<ConnectionHandle>) -> Response {
    match connection.work() {
        Ok(work) => {
            WORKING.add_permits(1);
            GO.acquire().await.expect("nobody closes it").forget();
            work.until_sent("done".into_response())
        }
        Err(crowded) => (http::StatusCode::SERVICE_UNAVAILABLE, crowded.to_string()).into_response(),
    }
}

async fn started(limits: Limits) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
    let address = listener.local_addr().expect("it listens");
    let routes = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/slow", get(pending::<&'static str>))
        .route("/work", get(work));
    tokio::spawn(sk_serve::serve(listener, || None, routes, limits, pending()));
    address
}

async fn say(address: SocketAddr, words: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(words.as_bytes()).await.expect("it listens");
    stream
}

/// Everything that is said before the connection ends; at most for [`LIMIT`].
async fn heard(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    // A connection that was cut with bytes unread ends with an error, which is an end as well.
    let _ = tokio::time::timeout(LIMIT, stream.read_to_end(&mut text)).await.expect("it ends");
    String::from_utf8_lossy(&text).into_owned()
}

async fn ask(address: SocketAddr, path: &str) -> String {
    heard(say(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_connections_that_say_nothing_or_half_of_it_keep_no_probe_from_its_answer() {
    let address = started(PATIENT).await;
    let mut slow = Vec::new();
    for number in 0..1_000 {
        let words = ["", "G", "GET /healthz HTTP/1.1\r\n", "POST /work HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf"];
        slow.push(say(address, words[number % words.len()]).await);
        if number % 100 == 99 {
            let began = Instant::now();
            let answer = ask(address, "/healthz").await;
            assert!(answer.ends_with("ok\n"), "after {number}, {:?}: {answer}", began.elapsed());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_at_work_is_not_evicted_and_some_places_are_left_to_others() {
    let address = started(PATIENT).await;
    let working: Vec<_> = (0..16).map(|_| tokio::spawn(async move { ask(address, "/work").await })).collect();
    WORKING.acquire_many(16).await.expect("nobody closes it").forget();
    let one_more = ask(address, "/work").await;
    assert!(one_more.contains("503") && one_more.contains("try again"), "{one_more}");
    let mut slow = Vec::new();
    for _ in 0..200 {
        slow.push(say(address, "").await);
    }
    assert!(ask(address, "/healthz").await.ends_with("ok\n"));
    GO.add_permits(1_000);
    for answer in working {
        let answer = answer.await.expect("it is asked");
        assert!(answer.ends_with("done") || answer.contains("done\r\n"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_does_not_ask_or_asks_for_ever_is_ended_and_drips_do_not_help() {
    let short = Duration::from_millis(300);
    let address = started(Limits { first_request: short, idle: short, request: short, ..PATIENT }).await;
    assert_eq!(heard(say(address, "").await).await, "", "it said nothing");
    assert!(!heard(say(address, "GET /healthz HT").await).await.contains("ok"), "it said half of it");
    let kept = heard(say(address, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await).await;
    assert!(kept.ends_with("ok\n"), "it is answered, and ended when nothing more is asked: {kept}");
    assert!(!heard(say(address, "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").await).await.contains("200"));
    let mut dripping = say(address, "GET /healthz HTTP/1.1\r\n").await;
    let began = Instant::now();
    while dripping.write_all(b"X").await.is_ok() {
        assert!(began.elapsed() < LIMIT, "a letter now and then keeps the connection for ever");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn when_it_is_stopped_it_answers_whom_it_has_heard_and_lets_nobody_else_in() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
    let address = listener.local_addr().expect("it listens");
    static HEARD: Semaphore = Semaphore::const_new(0);
    let late = get(async || {
        HEARD.add_permits(1);
        tokio::time::sleep(Duration::from_millis(300)).await;
        "late\n"
    });
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let routes = Router::new().route("/late", late);
    let serving = tokio::spawn(sk_serve::serve(listener, || None, routes, PATIENT, async {
        let _ = stopped.await;
    }));
    let asked = tokio::spawn(async move { ask(address, "/late").await });
    HEARD.acquire().await.expect("nobody closes it").forget();
    stop.send(()).expect("it serves");
    assert!(asked.await.expect("it is asked").ends_with("late\n"));
    tokio::time::timeout(LIMIT, serving).await.expect("it ends").expect("it does not panic");
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}
