//! The short queries of somebody who waits until everything is settled.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use outbox::uuid::Uuid;
use outbox::{
    Amount, BankIdentity, CancelAs, CardToken, Currency, Key, NewOperation, PaymentRequest, cancel, enqueue,
    last_answer, tombstones_for,
};
use rusqlite::{Connection, params};

type Checked<T = ()> = Result<T, Box<dyn Error>>;

fn file() -> rusqlite::Result<Connection> {
    let conn = Connection::open_in_memory()?;
    outbox::MIGRATIONS.iter().try_for_each(|sql| conn.execute_batch(sql))?;
    Ok(conn)
}

fn saved(conn: &Connection, number: u8) -> Checked<Key> {
    let payment = PaymentRequest {
        amount: Amount::new(100)?,
        currency: Currency::EUR,
        card: CardToken::new("tok_visa")?,
        reference: None,
        accepted_offline_at: None,
    };
    let key = Key::v7(Timestamp::now(), [number; 10]);
    let new = NewOperation::new(Uuid::from_u128(number.into()), format!("sale {number}"), payment);
    Ok(enqueue(conn, &new, key, Timestamp::now())?.operation.key)
}

#[test]
fn only_the_bank_that_can_be_told_of_a_cancellation_is_waited_for() -> Checked {
    let conn = file()?;
    let bank =
        |number: u128, merchant: &str| BankIdentity { bank_id: Uuid::from_u128(number), merchant: merchant.to_owned() };
    // To nobody yet, to this bank, to another merchant of it, to another bank; and one that is not cancelled.
    let bound = [None, Some(bank(1, "shop")), Some(bank(1, "other")), Some(bank(2, "shop")), Some(bank(1, "shop"))];
    for (number, bound) in (1..).zip(&bound) {
        let key = saved(&conn, number)?;
        if let Some(bank) = bound {
            conn.execute(
                "UPDATE operations SET bank_id = ?2, merchant = ?3 WHERE key = ?1",
                params![key.as_bytes(), bank.bank_id.as_bytes(), bank.merchant],
            )?;
        }
        if number < 5 {
            cancel(&conn, &key, CancelAs::Wish, Timestamp::now())?;
        }
    }
    assert_eq!(outbox::summary(&conn, Timestamp::now())?.tombstones, 4);
    assert_eq!(tombstones_for(&conn, &bank(1, "shop"))?, 2);
    assert_eq!(tombstones_for(&conn, &bank(2, "shop"))?, 2);
    assert_eq!(tombstones_for(&conn, &bank(3, "shop"))?, 1);
    Ok(())
}

fn log(conn: &Connection, key: &Key, answer: Option<u16>) -> rusqlite::Result<i64> {
    conn.execute(
        "INSERT INTO attempts (key, attempt, at, event, answer) VALUES (?1, 1, 0, iif(?2 IS NULL, 'asked', 'answer'), ?2)",
        params![key.as_bytes(), answer],
    )?;
    Ok(conn.last_insert_rowid())
}

/// What needs attention is looked up every quarter of an hour, for as long as nobody settles it.
#[test]
fn the_last_answer_is_found_without_reading_the_log_before_it() -> Checked {
    let mut conn = file()?;
    let (key, other) = (saved(&conn, 1)?, saved(&conn, 2)?);
    assert_eq!(last_answer(&conn, &key)?, None);
    let mut last = None;
    for _ in 0..20_000 {
        log(&conn, &key, None)?;
        last = Some(log(&conn, &key, Some(404))?);
    }
    log(&conn, &key, None)?;
    log(&conn, &other, Some(404))?;
    let steps = Arc::new(AtomicU64::new(0));
    let counted = steps.clone();
    conn.progress_handler(
        1,
        Some(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            false
        }),
    )?;
    assert_eq!(last_answer(&conn, &key)?, last);
    let steps = steps.load(Ordering::Relaxed);
    assert!(steps > 0 && steps < 1_000, "{steps} steps");
    Ok(())
}
