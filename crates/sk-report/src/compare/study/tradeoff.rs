//! Cost against waiting: the variants on the Pareto front.
//!
//! A variant is on the Pareto front if no other one costs at most as much and lets pods wait at most as long, and is
//! better in one of the two. Waiting is `pending.p99`: it counts pods that never got a node, so a cluster without
//! nodes does not look fast.

use super::super::column::Column;
use super::super::noise;

/// The figures of the two axes, as assertions name them.
pub const COST: &str = "cost.total";
/// The wait for a node that 99 % of the pods did not exceed.
pub const WAITING: &str = "pending.p99";

/// One variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The number of its column.
    pub column: usize,
    /// The mean cost of its runs.
    pub cost: f64,
    /// The mean wait of its runs, in seconds.
    pub waiting: f64,
    /// The column of the variant that is better, if there is one; nothing on the front.
    pub beaten_by: Option<usize>,
    /// Is the variant that beats it no further away than chance explains, in both figures?
    pub within_noise: bool,
}

impl Point {
    /// Is no other variant better?
    pub fn is_on_front(&self) -> bool {
        self.beaten_by.is_none()
    }

    fn is_beaten_by(&self, other: &Self) -> bool {
        let is_as_good = other.cost <= self.cost && other.waiting <= self.waiting;
        is_as_good && (other.cost < self.cost || other.waiting < self.waiting)
    }
}

/// A point for each of these columns that has a price.
pub(super) fn of(columns: &[Column], simulated: &[usize]) -> Vec<Point> {
    let point = |column: &usize| {
        let (cost, waiting) = (noise::mean(&costs(&columns[*column])?), noise::mean(&waits(&columns[*column])));
        Some(Point { column: *column, cost, waiting, beaten_by: None, within_noise: false })
    };
    let mut points: Vec<Point> = simulated.iter().filter_map(point).collect();
    let all = points.clone();
    for point in &mut points {
        // Of those that are better, the one that waits least among the cheapest: nothing beats it.
        let better = all.iter().filter(|other| point.is_beaten_by(other));
        let best = better.min_by(|a, b| a.cost.total_cmp(&b.cost).then(a.waiting.total_cmp(&b.waiting)));
        point.beaten_by = best.map(|best| best.column);
        point.within_noise = best.is_some_and(|best| is_noise(&columns[point.column], &columns[best.column]));
    }
    points
}

/// The cost of each run; nothing if one of them has no price.
fn costs(column: &Column) -> Option<Vec<f64>> {
    column.members.iter().map(|member| member.summary.cost.as_ref().map(|cost| cost.total)).collect()
}

fn waits(column: &Column) -> Vec<f64> {
    column.members.iter().map(|member| member.summary.pending.p99.as_secs_f64()).collect()
}

/// Do two columns differ in cost and waiting by no more than chance explains? Without repetitions that is unknown.
fn is_noise(a: &Column, b: &Column) -> bool {
    let (Some(cost_a), Some(cost_b)) = (costs(a), costs(b)) else { return false };
    let is_paired = a.seeds() == b.seeds();
    let by_chance = |a: &[f64], b: &[f64]| {
        noise::bound(a, b, is_paired).is_some_and(|bound| (noise::mean(a) - noise::mean(b)).abs() <= bound)
    };
    by_chance(&cost_a, &cost_b) && by_chance(&waits(a), &waits(b))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{column, priced};
    use super::*;

    fn front(columns: &[Column]) -> Vec<(usize, Option<usize>)> {
        let all: Vec<usize> = (0..columns.len()).collect();
        of(columns, &all).iter().map(|point| (point.column, point.beaten_by)).collect()
    }

    #[test]
    fn a_variant_that_costs_more_and_waits_longer_than_another_is_not_on_the_front() {
        let columns = [
            column("quick", &[priced(10.0, 5)]),
            column("cheap", &[priced(4.0, 60)]),
            column("middle", &[priced(7.0, 20)]),
            column("silly", &[priced(9.0, 30)]),
            column("twin", &[priced(4.0, 60)]),
        ];
        assert_eq!(front(&columns), [(0, None), (1, None), (2, None), (3, Some(2)), (4, None)]);
    }

    #[test]
    fn a_variant_without_a_price_is_not_placed() {
        let columns = [column("a", &[priced(1.0, 5)]), column("b", &[(None, 1)]), column("c", &[priced(2.0, 4)])];
        assert_eq!(front(&columns), [(0, None), (2, None)]);
    }

    #[test]
    fn what_repetitions_do_not_tell_apart_is_said_to_be_noise() {
        let near = [
            column("a", &[priced(10.0, 50), priced(12.0, 70)]),
            column("b", &[priced(11.0, 69), priced(11.5, 60)]),
            column("c", &[priced(90.0, 700), priced(91.0, 701)]),
        ];
        let points = of(&near, &[0, 1, 2]);
        assert_eq!((points[1].beaten_by, points[1].within_noise), (Some(0), true));
        assert_eq!((points[2].beaten_by, points[2].within_noise), (Some(0), false));
    }
}
