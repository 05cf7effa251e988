//! The study in the page: a chart of cost against waiting with its Pareto front, and the parameters. It needs no
//! script.

use super::super::Comparison;
use super::super::table::currency;
use super::text::sentence;
use super::tradeoff::Point;
use crate::columns::Unit;
use crate::escape::markup;

/// The picture's size, and what its axes take of it.
const WIDE: f64 = 720.0;
const TALL: f64 = 360.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 40.0;
const TOP: f64 = 32.0;
const BOTTOM: f64 = 44.0;

/// The sections; nothing if there is no study.
pub(in super::super) fn render(comparison: &Comparison) -> String {
    let Some(study) = &comparison.study else { return String::new() };
    let mut text = String::new();
    if !study.points.is_empty() {
        let (picture, table) = (picture(comparison, &study.points), table(comparison, &study.points));
        text.push_str(&format!(
            "<section class=\"card\">\n<h2>Cost against waiting</h2>\n{picture}{table}</section>\n"
        ));
    }
    if !study.parameters.is_empty() {
        let line = |parameter| format!("<li>{}</li>\n", sentence(comparison, parameter, &markup));
        let lines: String = study.parameters.iter().map(line).collect();
        text.push_str(&format!("<section>\n<h2>Which parameter moved what</h2>\n<ul>\n{lines}</ul>\n</section>\n"));
    }
    text
}

/// The cheaper a variant the further left, the shorter the wait the lower; the front is a line.
fn picture(comparison: &Comparison, points: &[Point]) -> String {
    let money = currency(comparison, 0);
    let x = Axis::of(points.iter().map(|point| point.cost), LEFT, WIDE - RIGHT);
    let y = Axis::of(points.iter().map(|point| point.waiting), TALL - BOTTOM, TOP);
    let dot = |point: &Point| {
        let class = if point.is_on_front() { "front" } else { "beaten" };
        let [cost, waiting] = [Unit::Money.text(point.cost, money), Unit::Time.text(point.waiting, money)];
        let label = markup(&comparison.columns[point.column].label);
        let (cx, cy) = (x.at(point.cost), y.at(point.waiting));
        let name = if point.is_on_front() {
            // Names of dots on the right half end at them, so that none leaves the picture.
            let anchor = if cx > WIDE / 2.0 { "end" } else { "start" };
            format!("<text x=\"{cx:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{label}</text>", cy - 9.0)
        } else {
            String::new()
        };
        format!(
            "<circle class=\"{class}\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"5\"><title>{label}: {}, {waiting}</title></circle>{name}\n",
            markup(&cost)
        )
    };
    let mut front: Vec<&Point> = points.iter().filter(|point| point.is_on_front()).collect();
    front.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    let corners: Vec<String> =
        front.iter().map(|point| format!("{:.1},{:.1}", x.at(point.cost), y.at(point.waiting))).collect();
    let dots: String = points.iter().map(dot).collect();
    let ends = [
        (x.from, TALL - BOTTOM + 18.0, "start", Unit::Money.text(x.least, money)),
        (x.to, TALL - BOTTOM + 18.0, "end", Unit::Money.text(x.most, money)),
        (LEFT - 8.0, y.from, "end", Unit::Time.text(y.least, money)),
        (LEFT - 8.0, y.to + 4.0, "end", Unit::Time.text(y.most, money)),
        ((LEFT + WIDE - RIGHT) / 2.0, TALL - 8.0, "middle", "cost".to_owned()),
        (LEFT - 8.0, TOP - 14.0, "end", "pending p99".to_owned()),
    ];
    let ends: String = ends
        .iter()
        .map(|(x, y, anchor, text)| {
            format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>\n", markup(text))
        })
        .collect();
    format!(
        "<svg class=\"tradeoff\" viewBox=\"0 0 {WIDE} {TALL}\" role=\"img\" aria-label=\"Cost against waiting of {} variants\">\n\
         <path class=\"axis\" d=\"M{LEFT} {TOP}V{}H{}\"/>\n<polyline class=\"front\" points=\"{}\"/>\n{dots}{ends}</svg>\n",
        points.len(),
        TALL - BOTTOM,
        WIDE - RIGHT,
        corners.join(" "),
    )
}

/// Values between two places of the picture.
struct Axis {
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn of(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        Self { least, most: values.fold(f64::NEG_INFINITY, f64::max), from, to }
    }

    /// The position of a value; the middle if all are the same.
    fn at(&self, value: f64) -> f64 {
        let length = self.most - self.least;
        let share = if length > 0.0 { (value - self.least) / length } else { 0.5 };
        self.from + share * (self.to - self.from)
    }
}

fn table(comparison: &Comparison, points: &[Point]) -> String {
    let row = |point: &Point| {
        let money = currency(comparison, point.column);
        let column = &comparison.columns[point.column];
        let says = match point.beaten_by {
            None => "on the Pareto front".to_owned(),
            Some(better) => {
                let noise = if point.within_noise { ", within noise" } else { "" };
                format!("{} is better{noise}", markup(&comparison.columns[better].label))
            }
        };
        format!(
            "<tr><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td>{says}</td></tr>\n",
            markup(&column.label),
            column.members.len(),
            markup(&Unit::Money.text(point.cost, money)),
            Unit::Time.text(point.waiting, money),
        )
    };
    let rows: String = points.iter().map(row).collect();
    format!(
        "<div class=\"scroll\"><table class=\"live\"><thead><tr><th scope=\"col\">variant</th><th scope=\"col\" class=\"num\">runs</th>\
         <th scope=\"col\" class=\"num\">cost</th><th scope=\"col\" class=\"num\">pending p99</th><th scope=\"col\"></th></tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n"
    )
}
