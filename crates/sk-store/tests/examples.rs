//! The bundled examples: their v2 form is what converting their text gives, byte for byte.

mod support;

use std::path::Path;

use sk_core::SimTime;
use sk_store::trace::{Format, convert, open};
use support::story;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
const NAMES: &[&str] = &["nginx"];

#[test]
fn the_committed_traces_are_what_their_text_converts_to() {
    for name in NAMES {
        let text = open(&Path::new(EXAMPLES).join(format!("{name}.jsonl"))).unwrap();
        let (made, losses) = convert(&text, Format::V2, Vec::new()).unwrap();
        assert!(losses.is_none(), "{losses}");
        let path = Path::new(EXAMPLES).join(format!("{name}.sktrace"));
        if std::env::var_os("SIMKUBE_UPDATE_EXAMPLES").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let committed = std::fs::read(&path).unwrap();
        assert!(made == committed, "examples/{name}.sktrace is stale: run this with SIMKUBE_UPDATE_EXAMPLES=1");
    }
}

#[test]
fn the_nginx_story_is_told() {
    let trace = open(&Path::new(EXAMPLES).join("nginx.sktrace")).unwrap();
    let time = |text| SimTime::parse_rfc3339(text).unwrap();
    assert_eq!(trace.span(), Some((time("2026-01-05T09:00:00Z"), time("2026-01-05T09:40:00Z"))));
    assert_eq!(
        story(&trace),
        [
            "2026-01-05T09:00:00Z apply Deployment monitoring/node-watch",
            "2026-01-05T09:00:00Z apply Deployment web-tools/status-page",
            "2026-01-05T09:00:00Z apply Deployment default/nginx",
            "2026-01-05T09:05:00Z apply Deployment default/nginx",
            "2026-01-05T09:15:00Z apply Deployment default/nginx",
            "2026-01-05T09:25:00Z delete Deployment default/nginx",
        ]
    );
}
