//! RUN as the URL of a folder: on a web server, which can list nothing.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use predicates::prelude::*;
use predicates::str::contains;
use support::{folder, skctl};
use tempfile::TempDir;

/// Answers requests with the files of a folder, for as long as the test runs; where it listens.
fn serve(root: PathBuf) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = listener.local_addr().expect("it listens");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("somebody calls");
            let reader = BufReader::new(stream.try_clone().expect("a stream can be shared"));
            let head: Vec<String> = reader.lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            let path = head.first().and_then(|line| line.split(' ').nth(1)).unwrap_or("/").trim_start_matches('/');
            let found = std::fs::read(root.join(path));
            let (status, body) = found.map_or(("404 Not Found", Vec::new()), |body| ("200 OK", body));
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    address
}

/// Two runs of the bundled example in `runs`, and the URLs of the same.
fn two_runs() -> (TempDir, [String; 2]) {
    let dir = folder();
    let run = |name: &str, more: &[&str]| {
        let args = ["run", "example:nginx", "-q", "--name", name, "-O", &format!("runs/{name}")].map(str::to_owned);
        skctl(&dir).args(args).args(more).assert().success();
    };
    run("as-is", &[]);
    run("sooner", &["--set", "autoscaler.scale-down-unneeded-time=2m"]);
    let address = serve(dir.path().join("runs"));
    (dir, ["as-is", "sooner"].map(|name| format!("http://{address}/{name}")))
}

/// Makes the record one of a version that knew no table of events and none of the autoscaler's decisions.
fn make_older(run: &Path) {
    let path = run.join("run.json");
    let mut manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).expect("it is there")).expect("JSON");
    for table in ["events", "autoscaler"] {
        manifest["tables"].as_object_mut().and_then(|tables| tables.remove(table)).expect("the record has the table");
        std::fs::remove_file(run.join(format!("{table}.parquet"))).expect("the table has a file");
    }
    std::fs::write(path, manifest.to_string()).expect("there is room");
}

fn answer(dir: &TempDir, args: &[&str]) -> String {
    let out = skctl(dir).args(args).assert().success();
    String::from_utf8_lossy(&out.get_output().stdout).into_owned()
}

#[test]
fn compare_report_and_why_say_the_same_of_a_run_at_a_url_as_of_its_folder() {
    let (dir, [as_is, sooner]) = two_runs();
    for format in ["table", "json", "markdown", "html"] {
        let here = answer(&dir, &["compare", "runs/as-is", "runs/sooner", "-o", format]);
        assert_eq!(answer(&dir, &["compare", &as_is, &sooner, "-o", format]), here, "{format}");
        assert_eq!(answer(&dir, &["compare", &as_is, "runs/sooner", "-o", format]), here, "{format}");
    }
    for format in ["json", "markdown", "junit", "html"] {
        let here = answer(&dir, &["report", "runs/as-is", "-o", format]);
        assert_eq!(answer(&dir, &["report", &as_is, "-o", format]), here, "{format}");
    }
    let report = answer(&dir, &["report", &as_is]);
    assert!(report.contains(&format!("report  {as_is}/report.html\n")), "{report}");
    for object in [&[][..], &["default/nginx"]] {
        let here = answer(&dir, &[&["why", "runs/as-is"], object].concat());
        assert_eq!(answer(&dir, &[&["why", as_is.as_str()], object].concat()), here);
    }
}

#[test]
fn a_record_of_an_earlier_version_is_read_from_a_url_too() {
    let (dir, [as_is, sooner]) = two_runs();
    make_older(&dir.path().join("runs/as-is"));
    for format in ["table", "json", "markdown", "html"] {
        answer(&dir, &["compare", &as_is, &sooner, "-o", format]);
    }
    assert!(answer(&dir, &["report", &as_is]).contains("12 pods created"));
    assert!(answer(&dir, &["why", &as_is, "default/nginx"]).contains("Insufficient cpu"));
}

#[test]
fn a_url_without_a_whole_run_is_refused_with_a_sentence() {
    let (dir, [as_is, _]) = two_runs();
    let nothing = as_is.replace("as-is", "nothing");
    for args in [&["report", &nothing][..], &["why", &nothing], &["compare", &as_is, &nothing]] {
        skctl(&dir).args(args).assert().code(2).stderr(contains("nothing"));
    }
    std::fs::remove_file(dir.path().join("runs/as-is/pods.parquet")).expect("the table has a file");
    let refused = contains("is incomplete: pods.parquet").and(contains(&as_is));
    skctl(&dir).args(["report", &as_is]).assert().code(2).stderr(refused);
}
