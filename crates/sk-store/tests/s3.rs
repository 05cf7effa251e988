//! Traces in object stores, against a real S3 server over a folder and a plain HTTP server, both on loopback.
//! `cargo test -p sk-store --features s3-tests`

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "support/s3_server.rs"]
mod s3_server;
mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::thread;

use s3_server::serve_s3;
use sk_store::Location;
use sk_store::location::StoreSettings;
use sk_store::trace::{Format, convert};
use support::{deployment, event, story, v2};

fn settings(address: SocketAddr, secret: &str) -> StoreSettings {
    let endpoint = format!("http://{address}");
    StoreSettings::new([
        ("aws_endpoint", endpoint.as_str()),
        ("aws_allow_http", "true"),
        ("aws_region", "us-east-1"),
        ("aws_access_key_id", "key"),
        ("aws_secret_access_key", secret),
    ])
}

#[test]
fn a_trace_goes_to_s3_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("traces")).unwrap();
    let settings = settings(serve_s3(folder.path()), "secret");
    let location: Location = "s3://traces/prod/week.sktrace".parse().unwrap();
    let missing = location.open_with(&settings).unwrap_err().to_string();
    assert!(missing.contains("s3://traces/prod/week.sktrace"), "{missing}");

    let trace = support::open(v2(&[event(1, &[deployment("a", 1)], &[])]));
    let output = location.create_with(&settings).unwrap();
    let (output, _) = convert(&trace, Format::Native, output).unwrap();
    assert!(location.open_with(&settings).is_err(), "nothing is there before it is whole");
    output.commit().unwrap();
    assert_eq!(story(&location.open_with(&settings).unwrap()), story(&trace));
}

#[test]
fn a_large_object_goes_in_parts_and_comes_back_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("traces")).unwrap();
    let settings = settings(serve_s3(folder.path()), "secret");
    let location: Location = "s3://traces/large.yaml".parse().unwrap();
    // Two parts and a bit; manifests, because they are read through whatever they are.
    let manifest = "apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\n";
    let text = format!("{manifest}#{}", "x".repeat(33 << 20));
    let mut output = location.create_with(&settings).unwrap();
    output.write_all(text.as_bytes()).unwrap();
    output.commit().unwrap();
    assert!(fs::read(folder.path().join("traces/large.yaml")).unwrap() == text.as_bytes());
    assert_eq!(location.open_with(&settings).unwrap().records().unwrap().count(), 1);
}

#[test]
fn a_refusal_is_named_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("traces")).unwrap();
    let settings = settings(serve_s3(folder.path()), "wrong");
    let location: Location = "s3://traces/a.sktrace".parse().unwrap();
    let mut output = location.create_with(&settings).unwrap();
    output.write_all(b"bytes").unwrap();
    let refused = output.commit().unwrap_err().to_string();
    assert!(refused.contains("s3://traces/a.sktrace") && refused.contains("credentials"), "{refused}");
    assert!(!folder.path().join("traces/a.sktrace").exists());
}

#[test]
fn a_trace_is_read_over_http() {
    let body = v2(&[event(1, &[deployment("a", 1)], &[])]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let served = body.clone();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut request = [0; 4096];
            let len = socket.read(&mut request).unwrap();
            let found = request[..len].starts_with(b"GET /traces/a.sktrace ");
            let (status, body) = if found { ("200 OK", served.as_slice()) } else { ("404 Not Found", &b""[..]) };
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            socket.write_all(head.as_bytes()).unwrap();
            socket.write_all(body).unwrap();
        }
    });
    let settings = StoreSettings::new([("allow_http", "true")]);
    let open = |path: &str| format!("http://{address}{path}").parse::<Location>().unwrap().open_with(&settings);
    assert_eq!(story(&open("/traces/a.sktrace").unwrap()), story(&support::open(body)));
    assert!(open("/traces/b.sktrace").unwrap_err().to_string().contains("b.sktrace"));
}
