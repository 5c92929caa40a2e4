//! Quick cash: what a customer is likely to hand over.

use std::collections::BTreeSet;

use crate::Currency;

/// How many amounts are suggested beside the exact one.
const SUGGESTED: usize = 3;
/// Coins and notes that change is counted in, as multiples of the smallest one worth suggesting. Twos are left out at
/// the bottom: few pay 12.30 with 14.
const LADDER: [i64; 8] = [1, 5, 10, 20, 50, 100, 200, 500];

/// The exact `due` and the next three amounts that come out of few notes: for 15.99 euros 15.99, 16, 20 and 50.
///
/// `due` is in minor units and already rounded for cash, see [`cash_due`](crate::cash_due). Ascending; fewer where the
/// next would not fit `i64`; the exact amount alone when nothing is due, and nothing at all below that. The amounts are
/// multiples of a whole coin, so a step in real use divides them; see [`CashRule::takes`](crate::CashRule::takes) where
/// the step is free to choose.
pub fn cash_notes(due: i64, currency: Currency) -> Vec<i64> {
    if due <= 0 {
        return if due == 0 { vec![0] } else { Vec::new() };
    }
    let (smallest, largest) = notes_in_use(currency);
    let rungs = LADDER.iter().filter_map(|times| smallest.checked_mul(*times)).filter(|note| *note <= largest);
    let mut amounts: BTreeSet<i64> = rungs.filter_map(|note| next_multiple(due.checked_sub(1)?, note)).collect();
    amounts.insert(due);
    while amounts.len() <= SUGGESTED {
        // Above the largest note only whole numbers of it are left to suggest.
        let Some(next) = amounts.last().and_then(|last| next_multiple(*last, largest)) else { break };
        amounts.insert(next);
    }
    amounts.into_iter().take(SUGGESTED.saturating_add(1)).collect()
}

/// The first multiple of `note` above `amount`, when it fits.
fn next_multiple(amount: i64, note: i64) -> Option<i64> {
    amount.checked_div(note)?.checked_add(1)?.checked_mul(note)
}

/// The smallest coin or note worth suggesting and the largest note in common use, in minor units.
fn notes_in_use(currency: Currency) -> (i64, i64) {
    let (smallest, largest) = match currency.code() {
        "AMD" | "HUF" | "KZT" => (100, 20_000),
        "CZK" | "RSD" | "RUB" => (10, 5_000),
        "DKK" | "NOK" | "SEK" => (10, 1_000),
        "KRW" => (1_000, 50_000),
        "GBP" => (1, 50),
        "USD" => (1, 100),
        "PLN" => (1, 500),
        _ => match currency.minor_digits() {
            0 => (100, 10_000),
            2 => (1, 200),
            _ => (1, 20),
        },
    };
    let unit = 10_i64.saturating_pow(currency.minor_digits().into());
    (unit.saturating_mul(smallest), unit.saturating_mul(largest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnknownCurrency;

    fn notes(due: i64, code: &str) -> Result<Vec<i64>, UnknownCurrency> {
        Ok(cash_notes(due, Currency::parse(code)?))
    }

    #[test]
    fn euros_and_cents() {
        assert_eq!(notes(1_599, "EUR"), Ok(vec![1_599, 1_600, 2_000, 5_000]));
        assert_eq!(notes(1_230, "EUR"), Ok(vec![1_230, 1_300, 1_500, 2_000]));
        assert_eq!(notes(35, "EUR"), Ok(vec![35, 100, 500, 1_000]));
        assert_eq!(notes(9_999, "EUR"), Ok(vec![9_999, 10_000, 20_000, 40_000]));
    }

    #[test]
    fn an_even_amount_is_not_suggested_twice() {
        assert_eq!(notes(4_500, "EUR"), Ok(vec![4_500, 5_000, 6_000, 10_000]));
        assert_eq!(notes(2_000, "EUR"), Ok(vec![2_000, 5_000, 10_000, 20_000]));
    }

    #[test]
    fn above_the_largest_note_come_more_of_it() {
        assert_eq!(notes(50_000, "EUR"), Ok(vec![50_000, 60_000, 80_000, 100_000]));
        assert_eq!(notes(5_000, "GBP"), Ok(vec![5_000, 6_000, 10_000, 15_000]));
    }

    #[test]
    fn no_decimals_and_three() {
        assert_eq!(notes(1_599, "JPY"), Ok(vec![1_599, 1_600, 2_000, 5_000]));
        assert_eq!(notes(1_599, "BHD"), Ok(vec![1_599, 2_000, 5_000, 10_000]));
        assert_eq!(notes(34_900, "RUB"), Ok(vec![34_900, 35_000, 40_000, 50_000]));
    }

    #[test]
    fn at_the_edges() {
        assert_eq!(notes(0, "EUR"), Ok(vec![0]));
        assert_eq!(notes(-5, "EUR"), Ok(vec![]));
        assert_eq!(notes(i64::MAX, "EUR"), Ok(vec![i64::MAX]));
    }
}
