//! The effect of each parameter: for each value of a field that varies, the mean of each figure over all variants with
//! that value.
//!
//! In a full product (`--vary` twice or more) every value of a field meets every value of the others, so the means
//! differ by the field alone. Fields that always change together cannot be separated and are one parameter. Where
//! combinations are missing, means mix fields; [`Parameter::is_balanced`] says so.

use super::super::column::Column;
use super::super::differs::Difference;
use super::super::noise;
use super::super::rows;
use crate::columns::{Column as FigureColumn, Unit};
use crate::figure::Figure;
use crate::figures::RUN_COLUMNS;

/// What a comparison tells of seeds; repetitions are not a parameter.
const SEED: &str = "seed";
/// Fields with up to this many values are shown; a sweep of more has a table of its own.
const MOST_VALUES: usize = 50;

/// A field that varies, or several that always change together.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The paths in the scenario.
    pub paths: Vec<String>,
    /// Its values, in the order of the columns.
    pub values: Vec<Setting>,
    /// Does each value meet the same values of the other parameters?
    pub is_balanced: bool,
    /// The figures that differ between its values, the one that moved most first.
    pub effects: Vec<Effect>,
}

/// One value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// What the field says; one for each path.
    pub texts: Vec<String>,
    /// The columns that have it.
    pub columns: Vec<usize>,
}

/// What a parameter does to one figure.
#[derive(Clone, Debug)]
pub struct Effect {
    /// The figure.
    pub shown: FigureColumn,
    /// Its mean for each value, over runs and columns.
    pub means: Vec<f64>,
    /// The highest mean less the lowest.
    pub spread: f64,
    /// Half the width of the 95 % interval of the spread, if all columns have the same seeds, two or more.
    pub noise: Option<f64>,
}

impl Effect {
    /// Is it more than chance explains? Unknown noise is taken for none.
    pub fn is_real(&self) -> bool {
        self.noise.is_none_or(|noise| self.spread > noise)
    }

    /// The spread as a share of the highest mean: figures of different units can be ordered by it.
    fn weight(&self) -> f64 {
        let highest = self.means.iter().map(|mean| mean.abs()).fold(0.0, f64::max);
        if highest == 0.0 { 0.0 } else { self.spread / highest }
    }
}

/// The parameters of these columns.
pub(super) fn of(columns: &[Column], differs: &[Vec<Difference>], simulated: &[usize]) -> Vec<Parameter> {
    let mut parameters: Vec<Parameter> = Vec::new();
    for path in paths(differs) {
        let values = settings(path, differs, simulated);
        if !(2..=MOST_VALUES).contains(&values.len()) {
            continue;
        }
        let twin = parameters.iter_mut().find(|known| is_same_split(&known.values, &values));
        match twin {
            Some(twin) => {
                twin.paths.push(path.to_owned());
                for (known, new) in twin.values.iter_mut().zip(values) {
                    known.texts.extend(new.texts);
                }
            }
            None => parameters.push(Parameter {
                paths: vec![path.to_owned()],
                values,
                is_balanced: false,
                effects: Vec::new(),
            }),
        }
    }
    let combinations: usize = parameters.iter().map(|parameter| parameter.values.len()).product();
    let figures = figures(columns);
    for parameter in &mut parameters {
        parameter.is_balanced = combinations == simulated.len();
        parameter.effects = effects(&parameter.values, &figures, have_same_seeds(columns, simulated));
    }
    parameters
}

/// Every path in which a column differs from the first, once.
fn paths(differs: &[Vec<Difference>]) -> Vec<&str> {
    let mut paths: Vec<&str> = Vec::new();
    for difference in differs.iter().flatten().filter(|difference| difference.path != SEED && difference.old != "…") {
        if !paths.contains(&difference.path.as_str()) {
            paths.push(&difference.path);
        }
    }
    paths
}

/// The values of a field and who has them. A column that does not differ has the value of the first.
fn settings(path: &str, differs: &[Vec<Difference>], simulated: &[usize]) -> Vec<Setting> {
    let found = |column: usize| differs.get(column.checked_sub(1)?)?.iter().find(|difference| difference.path == path);
    let first = differs.iter().flatten().find(|difference| difference.path == path).map_or("", |one| one.old.as_str());
    let mut settings: Vec<Setting> = Vec::new();
    for column in simulated {
        let text = found(*column).map_or(first, |difference| difference.new.as_str());
        match settings.iter_mut().find(|setting| setting.texts[0] == text) {
            Some(setting) => setting.columns.push(*column),
            None => settings.push(Setting { texts: vec![text.to_owned()], columns: vec![*column] }),
        }
    }
    settings
}

/// Do two fields always change together?
fn is_same_split(a: &[Setting], b: &[Setting]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.columns == b.columns)
}

fn have_same_seeds(columns: &[Column], simulated: &[usize]) -> bool {
    simulated.windows(2).all(|pair| columns[pair[0]].seeds() == columns[pair[1]].seeds())
}

/// A figure of every run, by column; nothing for a column that cannot tell it.
struct Values {
    shown: FigureColumn,
    of_columns: Vec<Option<Vec<f64>>>,
}

/// The figures that are compared, each once: the cost per month is the same figure as the cost.
fn figures(columns: &[Column]) -> Vec<Values> {
    let trees: Vec<Vec<Figure>> = columns.iter().map(rows::trees).collect();
    let of = |shown: &FigureColumn| {
        let of_columns = columns.iter().zip(&trees).map(|(column, trees)| rows::values(shown, column, trees));
        Values { shown: *shown, of_columns: of_columns.collect() }
    };
    RUN_COLUMNS.iter().filter(|shown| !matches!(shown.unit, Unit::MoneyPer(_))).map(of).collect()
}

fn effects(settings: &[Setting], figures: &[Values], is_paired: bool) -> Vec<Effect> {
    let mut effects: Vec<Effect> = figures.iter().filter_map(|figure| effect(settings, figure, is_paired)).collect();
    effects.sort_by(|a, b| b.is_real().cmp(&a.is_real()).then(b.weight().total_cmp(&a.weight())));
    effects
}

/// What the values do to one figure; nothing if there is no effect, or a variant lacks the figure.
fn effect(settings: &[Setting], figure: &Values, is_paired: bool) -> Option<Effect> {
    let runs: Vec<Vec<f64>> = settings.iter().map(|setting| runs(setting, figure, is_paired)).collect::<Option<_>>()?;
    let means: Vec<f64> = runs.iter().map(|runs| noise::mean(runs)).collect();
    let place = |is_better: fn(&f64, &f64) -> bool| {
        let better = |best: usize, next: usize| if is_better(&means[next], &means[best]) { next } else { best };
        (0..means.len()).reduce(better)
    };
    let (lowest, highest) = (place(|a, b| a < b)?, place(|a, b| a > b)?);
    let spread = means[highest] - means[lowest];
    let noise = noise::bound(&runs[lowest], &runs[highest], is_paired);
    (spread != 0.0).then_some(Effect { shown: figure.shown, means, spread, noise })
}

/// A figure under one value: seed by seed, each the mean of all columns; run by run where the seeds differ.
fn runs(setting: &Setting, figure: &Values, is_paired: bool) -> Option<Vec<f64>> {
    let columns: Vec<&Vec<f64>> =
        setting.columns.iter().map(|column| figure.of_columns[*column].as_ref()).collect::<Option<_>>()?;
    if !is_paired {
        return Some(columns.into_iter().flatten().copied().collect());
    }
    let of_seed = |seed: usize| noise::mean(&columns.iter().map(|runs| runs[seed]).collect::<Vec<_>>());
    Some((0..columns.first()?.len()).map(of_seed).collect())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{column, priced};
    use super::*;

    fn difference(path: &str, old: &str, new: &str) -> Difference {
        Difference { path: path.into(), old: old.into(), new: new.into() }
    }

    #[test]
    fn in_a_product_each_parameter_is_told_by_itself() {
        // The cost depends on the size alone, the wait on the delay alone.
        let columns = [
            column("a", &[priced(10.0, 5)]),
            column("b", &[priced(10.0, 50)]),
            column("c", &[priced(4.0, 5)]),
            column("d", &[priced(4.0, 50)]),
        ];
        let (max, delay) = (difference("max", "10", "4"), difference("delay", "1m", "10m"));
        let differs = [vec![delay.clone()], vec![max.clone()], vec![delay, max]];
        let found = of(&columns, &differs, &[0, 1, 2, 3]);
        let told: Vec<(&str, Vec<&str>)> = found
            .iter()
            .map(|one| (one.paths[0].as_str(), one.effects.iter().map(|effect| effect.shown.path).collect()))
            .collect();
        assert_eq!(told, [("delay", vec!["pending.longest"]), ("max", vec!["cost.total"])]);
        assert_eq!(found[1].effects[0].means, [10.0, 4.0]);
        assert!(found.iter().all(|one| one.is_balanced));
    }

    #[test]
    fn fields_that_always_change_together_are_one_parameter_and_seeds_are_none() {
        let columns = [column("a", &[priced(10.0, 5)]), column("b", &[priced(9.0, 5)]), column("c", &[priced(8.0, 5)])];
        let both = |cpu: &str, memory: &str| {
            vec![difference("cpu", "1", cpu), difference("memory", "4Gi", memory), difference("seed", "1", "2")]
        };
        let found = of(&columns, &[both("2", "8Gi"), both("4", "16Gi")], &[0, 1, 2]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].paths, ["cpu", "memory"]);
        assert_eq!(found[0].values[2].texts, ["4", "16Gi"]);
    }

    #[test]
    fn what_repetitions_explain_comes_last_and_is_not_real() {
        let columns = [
            column("a", &[priced(10.0, 5), priced(10.1, 90)]),
            column("b", &[priced(4.0, 60), priced(4.1, 20)]),
            column("c", &[priced(3.0, 50), priced(3.1, 10)]),
        ];
        let differs = [vec![difference("max", "10", "4")], vec![difference("max", "10", "3")]];
        let effects = &of(&columns, &differs, &[0, 1, 2])[0].effects;
        let told: Vec<(&str, bool)> = effects.iter().map(|effect| (effect.shown.path, effect.is_real())).collect();
        assert_eq!(told, [("cost.total", true), ("pending.longest", false)]);
    }
}
