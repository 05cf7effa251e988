//! How far two means may differ by chance alone.
//!
//! With the same seeds on both sides (the usual case: variants of one scenario) the runs are paired and the bound is
//! the 95 % confidence interval of the mean difference; pairing removes what both sides have in common. With other
//! seeds it is Welch's interval. With a single run on a side the noise is unknown, and nothing is claimed.

/// The 97.5 % point of Student's t for 1 to 30 degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// The same for very many.
const T_LIMIT: f64 = 1.960;

/// Half the width of the 95 % interval of `mean(new) - mean(baseline)`; nothing if a side has one run only.
pub fn bound(baseline: &[f64], new: &[f64], is_paired: bool) -> Option<f64> {
    if baseline.len() < 2 || new.len() < 2 {
        return None;
    }
    if is_paired && baseline.len() == new.len() {
        let differences: Vec<f64> = new.iter().zip(baseline).map(|(new, old)| new - old).collect();
        let count = differences.len();
        return Some(student(count as f64 - 1.0) * (variance(&differences) / count as f64).sqrt());
    }
    let share = |values: &[f64]| variance(values) / values.len() as f64;
    let (a, b) = (share(baseline), share(new));
    if a + b == 0.0 {
        return Some(0.0);
    }
    let weight = |share: f64, count: usize| share * share / (count as f64 - 1.0);
    let freedom = (a + b).powi(2) / (weight(a, baseline.len()) + weight(b, new.len()));
    Some(student(freedom) * (a + b).sqrt())
}

/// The mean.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / (values.len() as f64 - 1.0)
}

/// Degrees of freedom are rounded down, which widens the interval.
fn student(freedom: f64) -> f64 {
    let place = freedom.floor().max(1.0) as usize - 1;
    T.get(place).copied().unwrap_or(T_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_says_nothing_about_noise() {
        assert_eq!(bound(&[1.0], &[2.0, 3.0], false), None);
    }

    #[test]
    fn pairs_take_out_what_both_sides_share() {
        let (baseline, new) = ([10.0, 20.0, 30.0], [11.0, 21.0, 31.0]);
        assert_eq!(bound(&baseline, &new, true), Some(0.0));
        assert!(bound(&baseline, &new, false).is_some_and(|bound| bound > 10.0));
    }

    #[test]
    fn the_interval_is_the_one_of_the_textbook() {
        // Differences 1, 2, 3: mean 2, deviation 1, so 4.303 × 1 / √3.
        let bound = bound(&[0.0, 0.0, 0.0], &[1.0, 2.0, 3.0], true).expect("two runs are enough");
        assert!((bound - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn runs_that_do_not_vary_have_no_noise() {
        assert_eq!(bound(&[5.0, 5.0], &[7.0, 7.0], false), Some(0.0));
    }
}
