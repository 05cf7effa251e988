//! The nginx story as a picture: what the real autoscaler did, and what ours does, one over the other.
//!
//! Drawn from the recording and from a run; the test says when `docs/autoscaler-nginx.svg` is not what comes out, and with
//! `UPDATE_DOCS=1` writes it.

use std::fmt::Write as _;

use sk_testkit::autoscaling::{self, Observation};

use crate::outcome::{Curve, Outcome};
use crate::player::Rig;
use crate::{SEED, outcome, player};

const SCENARIO: &str = "a1-nginx-story";
const WIDTH: f64 = 760.0;
const PANEL: f64 = 150.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 12.0;
/// From one panel to the next, with its title and its axis.
const STEP: f64 = PANEL + 62.0;
const TOP: f64 = 58.0;
const REAL: &str = "#c2410c";
const OURS: &str = "#1d4ed8";

/// One pair of curves.
struct Panel {
    title: &'static str,
    real: Curve,
    ours: Curve,
}

fn panels(seen: &Observation, run: &Outcome) -> Vec<Panel> {
    let (group, rows) = seen.nodes.iter().next().expect("the story has a group");
    let (app, pods) = seen.pods.iter().next().expect("the story has a workload");
    let ours = &run.nodes[group];
    let states = &run.pods[app];
    vec![
        Panel { title: "nodes", real: rows.iter().map(|row| (row.0, row.1)).collect(), ours: ours[0].clone() },
        Panel { title: "ready nodes", real: rows.iter().map(|row| (row.0, row.2)).collect(), ours: ours[1].clone() },
        Panel { title: "running pods", real: pods.iter().map(|row| (row.0, row.2)).collect(), ours: states[1].clone() },
        Panel { title: "pending pods", real: pods.iter().map(|row| (row.0, row.1)).collect(), ours: states[0].clone() },
    ]
}

/// A whole number of nodes or pods between two lines of the grid.
fn grid_step(most: i64) -> usize {
    usize::try_from((most / 4).max(1)).unwrap_or(1)
}

fn draw(panel: &Panel, top: f64, end: f64, svg: &mut String) {
    let most = panel.real.iter().chain(&panel.ours).map(|(_, value)| *value).max().unwrap_or(1).max(1);
    let x = |at: f64| LEFT + (at.clamp(0.0, end) / end) * (WIDTH - LEFT - RIGHT);
    let y = |value: i64| top + PANEL * (1.0 - value as f64 / most as f64);
    let _ = writeln!(svg, r#"<text x="{LEFT}" y="{:.1}" class="title">{}</text>"#, top - 8.0, panel.title);
    for value in (0..=most).step_by(grid_step(most)) {
        let _ = writeln!(
            svg,
            r#"<path d="M{LEFT} {y:.1}H{:.1}" class="grid"/><text x="{:.1}" y="{:.1}" class="axis" text-anchor="end">{value}</text>"#,
            WIDTH - RIGHT,
            LEFT - 6.0,
            y(value) + 4.0,
            y = y(value)
        );
    }
    for at in (0..=end as i64).step_by(30) {
        let at = at as f64;
        let _ = writeln!(
            svg,
            r#"<text x="{:.1}" y="{:.1}" class="axis" text-anchor="middle">{at} s</text>"#,
            x(at),
            top + PANEL + 16.0
        );
    }
    for (curve, colour, width) in [(&panel.real, REAL, 5.0), (&panel.ours, OURS, 1.8)] {
        let mut path = format!("M{:.1} {:.1}", x(0.0), y(before(curve)));
        for (at, value) in curve.iter().filter(|(at, _)| (0.0..=end).contains(at)) {
            let _ = write!(path, "H{:.1}V{:.1}", x(*at), y(*value));
        }
        let _ = write!(path, "H{:.1}", x(end));
        let opacity = if width > 2.0 { 0.45 } else { 1.0 };
        let _ = writeln!(
            svg,
            r#"<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-opacity="{opacity}"/>"#
        );
    }
}

/// The value at the beginning.
fn before(curve: &Curve) -> i64 {
    curve.iter().rev().find(|(at, _)| *at <= 0.0).map_or(0, |(_, value)| *value)
}

fn picture(seen: &Observation, run: &Outcome) -> String {
    let panels = panels(seen, run);
    let height = TOP + STEP * panels.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"system-ui, sans-serif\">\n\
         <style>.title{{font-size:14px;font-weight:600;fill:#111827}}.axis{{font-size:11px;fill:#6b7280}}\
         .grid{{stroke:#e5e7eb;stroke-width:1}}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let legend = [(LEFT, REAL, 5.0, "cluster-autoscaler 1.36.1, recorded"), (LEFT + 330.0, OURS, 1.8, "SimKube")];
    for (x, colour, width, text) in legend {
        let opacity = if width > 2.0 { 0.45 } else { 1.0 };
        let _ = writeln!(
            svg,
            r#"<path d="M{x} 18H{:.1}" stroke="{colour}" stroke-width="{width}" stroke-opacity="{opacity}"/><text x="{:.1}" y="22" class="title">{text}</text>"#,
            x + 26.0,
            x + 34.0
        );
    }
    for (place, panel) in panels.iter().enumerate() {
        draw(panel, TOP + STEP * place as f64, seen.ended, &mut svg);
    }
    svg.push_str("</svg>\n");
    svg
}

#[test]
fn the_picture_of_the_nginx_story_shows_what_comes_out() {
    let all = autoscaling::all();
    let seen = all.iter().find(|seen| seen.scenario == SCENARIO).expect("the story is there");
    let drawn = picture(seen, &outcome::of(player::play(seen, SEED, Rig::default(), |_| {})));
    autoscaling::docs_file("autoscaler-nginx.svg", &drawn).unwrap_or_else(|error| panic!("{error}"));
}
