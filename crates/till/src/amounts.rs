//! Amounts as people read them.

use protocol::Currency;

/// An amount in minor units as a decimal with all its places: `2490` in euros is `24.90`. For reading: nothing is computed
/// from it.
#[must_use]
pub fn format_amount(minor_units: i64, currency: Currency) -> String {
    let digits = usize::from(currency.minor_digits());
    let sign = if minor_units < 0 { "-" } else { "" };
    let figures = format!("{:0width$}", minor_units.unsigned_abs(), width = digits + 1);
    let (whole, part) = figures.split_at(figures.len() - digits);
    if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_has_the_places_of_its_currency() {
        let text = |amount, code| format_amount(amount, Currency::parse(code).unwrap());
        assert_eq!(text(2490, "EUR"), "24.90");
        assert_eq!(text(5, "EUR"), "0.05");
        assert_eq!(text(0, "EUR"), "0.00");
        assert_eq!(text(-2, "EUR"), "-0.02");
        assert_eq!(text(333, "JPY"), "333");
        assert_eq!(text(1, "BHD"), "0.001");
        assert_eq!(text(i64::MIN, "EUR"), "-92233720368547758.08");
    }
}
