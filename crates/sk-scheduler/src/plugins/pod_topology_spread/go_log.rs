//! The natural logarithm to the bit as Go computes it.
//!
//! A score is a rounded sum of logarithms times counts, so the last bit can decide. Go's `math.Log` (amd64 assembly and
//! the portable version alike) follows FreeBSD's `e_log.c`: the same reduction, polynomial and order of operations, and no
//! fused multiply-add. Rust's `ln` is the C library's, which may differ.

#![expect(clippy::excessive_precision, reason = "the constants are written as FreeBSD writes them")]

/// ln 2, split so that multiples of the high part are exact.
const LN2_HI: f64 = 6.931_471_803_691_238_164_90e-01;
const LN2_LO: f64 = 1.908_214_929_270_587_700_02e-10;
/// The polynomial's coefficients, odd and even.
const L1: f64 = 6.666_666_666_666_735_130e-01;
const L2: f64 = 3.999_999_999_940_941_908e-01;
const L3: f64 = 2.857_142_874_366_239_149e-01;
const L4: f64 = 2.222_219_843_214_978_396e-01;
const L5: f64 = 1.818_357_216_161_805_012e-01;
const L6: f64 = 1.531_383_769_920_937_332e-01;
const L7: f64 = 1.479_819_860_511_658_591e-01;

/// ln x for a finite x ≥ 1.
pub(super) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut k = ((bits >> 52) & 0x7FF) as f64 - f64::from(0x3FE);
    let mut fraction = f64::from_bits((bits & 0x000F_FFFF_FFFF_FFFF) | 0x3FE0_0000_0000_0000);
    if fraction < std::f64::consts::FRAC_1_SQRT_2 {
        fraction *= 2.0;
        k -= 1.0;
    }
    let f = fraction - 1.0;
    let s = f / (2.0 + f);
    let s2 = s * s;
    let s4 = s2 * s2;
    let odd = s2 * (L1 + s4 * (L3 + s4 * (L5 + s4 * L7)));
    let even = s4 * (L2 + s4 * (L4 + s4 * L6));
    let rest = odd + even;
    let half_square = 0.5 * f * f;
    k * LN2_HI - ((half_square - (s * (half_square + rest) + k * LN2_LO)) - f)
}

#[cfg(test)]
mod tests {
    use super::ln;

    #[test]
    fn logarithms_are_within_a_bit_of_the_c_librarys() {
        for size in 2..20_000_i32 {
            let (ours, theirs) = (ln(f64::from(size)), f64::from(size).ln());
            assert!((ours - theirs).abs() <= theirs * f64::EPSILON, "ln {size}: {ours} and {theirs}");
        }
    }

    #[test]
    fn logarithms_equal_gos() {
        // Printed by Go 1.26 on amd64: math.Float64bits(math.Log(x)).
        for (size, bits) in GO {
            assert_eq!(ln(size).to_bits(), bits, "ln {size}");
        }
    }

    const GO: [(f64, u64); 16] = [
        (2.0, 0x3FE6_2E42_FEFA_39EF),
        (3.0, 0x3FF1_93EA_7AAD_030A),
        (4.0, 0x3FF6_2E42_FEFA_39EF),
        (5.0, 0x3FF9_C041_F7ED_8D33),
        (6.0, 0x3FFC_AB0B_FA2A_2002),
        (7.0, 0x3FFF_2272_AE32_5A57),
        (9.0, 0x4001_93EA_7AAD_030B),
        (10.0, 0x4002_6BB1_BBB5_5516),
        (12.0, 0x4003_E116_BCD3_9E7D),
        (34.0, 0x400C_35FC_81B9_0DF6),
        (102.0, 0x4012_7FF8_DF87_C7BD),
        (257.0, 0x4016_3241_004E_9011),
        (502.0, 0x4018_DFD8_B5B3_E920),
        (1002.0, 0x401B_A396_5D40_5F5F),
        (4097.0, 0x4020_A2D2_3E3B_B61E),
        (5002.0, 0x4021_0901_F6DC_84B9),
    ];
}
