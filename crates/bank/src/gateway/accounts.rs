//! The cardholders' accounts.

use protocol::Currency;
use rusqlite::Connection;

/// What every account starts with, in whole units of the currency.
const START: i64 = 1_000;

/// Draws `amount` minor units. False where there is not enough.
pub(crate) fn draw(tx: &Connection, number: u8, currency: Currency, amount: i64) -> rusqlite::Result<bool> {
    let start = START * 10_i64.pow(currency.minor_digits().into());
    tx.prepare_cached("INSERT INTO accounts (number, currency, balance) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?
        .execute((number, currency.code(), start))?;
    tx.prepare_cached(
        "UPDATE accounts SET balance = balance - ?3 WHERE number = ?1 AND currency = ?2 AND balance >= ?3",
    )?
    .execute((number, currency.code(), amount))
    .map(|rows| rows == 1)
}

/// Gives `amount` minor units back to an account that was drawn on.
pub(crate) fn give_back(tx: &Connection, number: u8, currency: &str, amount: i64) -> rusqlite::Result<()> {
    tx.prepare_cached("UPDATE accounts SET balance = balance + ?3 WHERE number = ?1 AND currency = ?2")?
        .execute((number, currency, amount))
        .map(|_| ())
}

/// Sets what is left on an account, in minor units.
pub(crate) fn set(tx: &Connection, number: u8, currency: Currency, balance: i64) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO accounts (number, currency, balance) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET balance = excluded.balance",
    )?
    .execute((number, currency.code(), balance))
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_starts_with_a_thousand_and_is_never_overdrawn() {
        let tx = Connection::open_in_memory().unwrap();
        tx.execute_batch(idempotency::SCHEMA).unwrap();
        tx.execute_batch(super::super::SCHEMA).unwrap();
        assert!(!draw(&tx, 7, Currency::EUR, 100_001).unwrap());
        assert!(draw(&tx, 7, Currency::EUR, 60_000).unwrap());
        assert!(!draw(&tx, 7, Currency::EUR, 40_001).unwrap());
        assert!(draw(&tx, 7, Currency::EUR, 40_000).unwrap());
        assert!(!draw(&tx, 7, Currency::EUR, 1).unwrap());
        assert!(draw(&tx, 8, Currency::EUR, 1).unwrap(), "another account");
        let yen = Currency::parse("JPY").unwrap();
        assert!(!draw(&tx, 7, yen, 1_001).unwrap() && draw(&tx, 7, yen, 1_000).unwrap(), "a yen has no cents");
        give_back(&tx, 7, "EUR", 500).unwrap();
        assert!(draw(&tx, 7, Currency::EUR, 500).unwrap() && !draw(&tx, 7, Currency::EUR, 1).unwrap());
    }
}
