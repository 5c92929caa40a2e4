//! The bank's ledger, in double entry: what the gateway owes the bank for the cards, and what the bank owes its
//! merchants.

use crate::acquirer::names::Purpose;
use protocol::Currency;
use rusqlite::Connection;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The account of what the gateway owes.
const GATEWAY: &str = "gateway";

/// Writes an entry of two postings that add up to nothing. `amount` is in minor units.
pub(crate) fn post(
    tx: &Connection,
    operation: i64,
    purpose: Purpose,
    merchant: &str,
    currency: Currency,
    amount: i64,
) -> rusqlite::Result<()> {
    let to_gateway = if purpose == Purpose::Charge { amount } else { -amount };
    tx.prepare_cached(
        "INSERT INTO postings (operation, entry, account, currency, amount) VALUES (?1, ?2, ?3, ?5, ?6), (?1, ?2, ?4, ?5, -?6)",
    )?
    .execute((
        operation,
        purpose.as_str(),
        GATEWAY,
        format!("merchant/{merchant}"),
        currency.code(),
        to_gateway,
    ))
    .map(|_| ())
}

/// The ledger, added up.
#[derive(Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Books {
    /// How many charges.
    charges: i64,
    /// How many refunds, reversals included.
    refunds: i64,
    /// What was charged, in minor units by currency.
    charged: BTreeMap<String, i64>,
    /// What was given back, in minor units by currency.
    refunded: BTreeMap<String, i64>,
    /// Whether each entry's postings add up to nothing.
    balanced: bool,
}

/// Adds everything up.
pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Books> {
    let mut books = Books {
        balanced: !connection
            .prepare_cached(
                "SELECT 1 FROM postings GROUP BY operation, entry, currency HAVING sum(amount) <> 0 LIMIT 1",
            )?
            .exists([])?,
        ..Books::default()
    };
    let mut statement = connection.prepare_cached(
        "SELECT entry, currency, count(*), sum(amount) FROM postings WHERE account = ?1 GROUP BY entry, currency",
    )?;
    let rows = statement.query_map([GATEWAY], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?, row.get::<_, i64>(3)?))
    })?;
    for row in rows {
        let (entry, currency, count, amount) = row?;
        if entry == Purpose::Charge.as_str() {
            books.charges += count;
            *books.charged.entry(currency).or_default() += amount;
        } else {
            books.refunds += count;
            *books.refunded.entry(currency).or_default() -= amount;
        }
    }
    Ok(books)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Connection {
        let tx = Connection::open_in_memory().unwrap();
        tx.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        tx.execute_batch(idempotency::SCHEMA).unwrap();
        tx.execute_batch(super::super::SCHEMA).unwrap();
        tx
    }

    #[test]
    fn charges_refunds_and_reversals_add_up_and_balance() {
        let tx = file();
        let usd = Currency::parse("USD").unwrap();
        post(&tx, 1, Purpose::Charge, "a", Currency::EUR, 1_000).unwrap();
        post(&tx, 2, Purpose::Charge, "b", usd, 500).unwrap();
        post(&tx, 3, Purpose::Refund, "a", Currency::EUR, 400).unwrap();
        post(&tx, 2, Purpose::Reversal, "b", usd, 500).unwrap();
        let map = |list: &[(&str, i64)]| list.iter().map(|(code, sum)| ((*code).to_owned(), *sum)).collect();
        assert_eq!(
            read(&tx).unwrap(),
            Books {
                charges: 2,
                refunds: 2,
                charged: map(&[("EUR", 1_000), ("USD", 500)]),
                refunded: map(&[("EUR", 400), ("USD", 500)]),
                balanced: true
            }
        );
        assert!(post(&tx, 1, Purpose::Charge, "a", Currency::EUR, 1).is_err(), "an operation is charged once");
        assert!(tx.execute("UPDATE postings SET amount = 1", []).is_err());
        assert!(tx.execute("DELETE FROM postings", []).is_err());
        tx.execute("INSERT INTO postings VALUES (9, 'charge', 'gateway', 'EUR', 1)", []).unwrap();
        assert!(!read(&tx).unwrap().balanced);
    }
}
