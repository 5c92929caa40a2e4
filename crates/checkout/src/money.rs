//! Exact arithmetic on amounts: checked, through `i128`, rounded half away from zero.

/// A value that does not fit `i64`. The caller knows which part of the cart it came from and says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overflow;

/// The sum of `values`, when it fits.
pub(crate) fn sum(values: impl IntoIterator<Item = i64>) -> Result<i64, Overflow> {
    values.into_iter().try_fold(0_i64, add)
}

/// `a + b`, when it fits.
pub(crate) fn add(a: i64, b: i64) -> Result<i64, Overflow> {
    a.checked_add(b).ok_or(Overflow)
}

/// `a - b`, when it fits.
pub(crate) fn sub(a: i64, b: i64) -> Result<i64, Overflow> {
    a.checked_sub(b).ok_or(Overflow)
}

/// `amount × numerator ÷ denominator`, rounded half away from zero, when it fits.
///
/// The one place where the engine rounds to a minor unit. The product of two `i64` always fits `i128`; a denominator
/// that is not positive is answered like a result that does not fit.
pub(crate) fn scale(amount: i64, numerator: i64, denominator: i128) -> Result<i64, Overflow> {
    if denominator <= 0 {
        return Err(Overflow);
    }
    let product = i128::from(amount).checked_mul(i128::from(numerator)).ok_or(Overflow)?;
    let whole = product.checked_div(denominator).ok_or(Overflow)?;
    let remainder = product.checked_rem(denominator).ok_or(Overflow)?;
    // Division cuts towards zero, so the half that is left over goes away from zero by the product's own sign.
    let half_or_more = remainder.unsigned_abs() >= denominator.unsigned_abs().div_ceil(2);
    let rounded = if half_or_more { whole.checked_add(product.signum()) } else { Some(whole) };
    rounded.and_then(|value| i64::try_from(value).ok()).ok_or(Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_away_from_zero_on_both_sides() {
        let by_two = |amount| scale(amount, 1, 2);
        assert_eq!([by_two(1), by_two(2), by_two(3), by_two(5)], [Ok(1), Ok(1), Ok(2), Ok(3)]);
        assert_eq!([by_two(-1), by_two(-2), by_two(-3), by_two(-5)], [Ok(-1), Ok(-1), Ok(-2), Ok(-3)]);
    }

    #[test]
    fn an_odd_denominator_has_no_half() {
        let thirds = |amount| scale(amount, 1, 3);
        assert_eq!([thirds(0), thirds(1), thirds(2), thirds(4), thirds(5)], [Ok(0), Ok(0), Ok(1), Ok(1), Ok(2)]);
    }

    #[test]
    fn just_under_a_half_goes_down_even_at_the_edge() {
        assert_eq!(scale(49_999, 1, 100_000), Ok(0));
        assert_eq!(scale(50_000, 1, 100_000), Ok(1));
        assert_eq!(scale(i64::MAX, 1, 1), Ok(i64::MAX));
        assert_eq!(scale(i64::MAX, i64::MAX, i128::from(i64::MAX)), Ok(i64::MAX));
        assert_eq!(scale(i64::MIN, 1, 1), Ok(i64::MIN));
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        assert_eq!(scale(i64::MAX, 2, 1), Err(Overflow));
        assert_eq!(scale(i64::MAX, i64::MAX, 1), Err(Overflow));
        assert_eq!(scale(i64::MIN, -1, 1), Err(Overflow));
        assert_eq!(scale(1, 1, 0), Err(Overflow));
        assert_eq!(sum([i64::MAX, 1]), Err(Overflow));
        assert_eq!(sub(i64::MIN, 1), Err(Overflow));
    }
}
