//! What each write of the driver does to its row, and what a scan reads.

use std::cell::RefCell;

use jiff::SignedDuration;
use protocol::{Amount, CardToken, Currency, PaymentRequest};
use rusqlite::{Connection, named_params};
use uuid::Uuid;

use super::due::{OTHERS_DUE, UNSETTLED_DUE};
use super::*;
use crate::bank::BankContract;
use crate::saving::{NewOperation, Request, enqueue};
use crate::settings::Settings;
use crate::state::Next;
use crate::step::{MakeDue, Record, Which};

type Anyhow<T> = Result<T, Box<dyn std::error::Error>>;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn key() -> Anyhow<Key> {
    Ok("0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b".parse()?)
}

fn bank() -> BankIdentity {
    BankIdentity { bank_id: Uuid::from_u128(7), merchant: "demo".to_owned() }
}

fn nothing(_: &Connection, _: &Operation) -> rusqlite::Result<()> {
    Ok(())
}

/// A file with one operation, changed so.
fn file(change: &str) -> Anyhow<Connection> {
    let conn = Connection::open_in_memory()?;
    conn.execute_batch(&crate::MIGRATIONS.concat())?;
    let request = PaymentRequest {
        amount: Amount::new(2490)?,
        currency: Currency::EUR,
        card: CardToken::new("tok_visa")?,
        reference: None,
        accepted_offline_at: None,
    };
    let new = NewOperation {
        intent_id: Uuid::from_u128(1),
        replaces: None,
        lane: "sale-1".to_owned(),
        request: Request::Payment(request),
    };
    enqueue(&conn, &new, key()?, NOW)?;
    conn.execute_batch(change)?;
    Ok(conn)
}

fn found(conn: &Connection) -> Anyhow<Row> {
    let mut rows = scan(conn, &bank(), 8, NOW, NOW)?.rows;
    rows.pop().ok_or_else(|| "nothing is due".into())
}

fn text(conn: &Connection, column: &str) -> rusqlite::Result<String> {
    conn.query_row(&format!("SELECT CAST({column} AS TEXT) FROM operations"), [], |row| row.get(0))
}

#[test]
fn a_look_up_permits_one_sending_and_none_after_a_death() {
    let conn = file("UPDATE operations SET state = 'unknown', ask = 'resend'").unwrap();
    let row = found(&conn).unwrap();
    let beginning =
        Beginning { row: &row, ask: Ask::Send, bank: &bank(), contract: &BankContract, epoch: 0, now: NOW, far: NOW };
    begin(&conn, &beginning, &nothing).unwrap().unwrap();
    assert_eq!((text(&conn, "state").unwrap(), text(&conn, "ask").unwrap()), ("sending".to_owned(), "send".to_owned()));

    let conn = file("UPDATE operations SET state = 'unknown', ask = 'resend'").unwrap();
    start(&conn, "http://127.0.0.1", &Settings::default(), NOW, &nothing).unwrap();
    assert_eq!(text(&conn, "ask").unwrap(), "look_up");
}

#[test]
fn a_request_is_not_begun_once_it_is_wished_cancelled() {
    let conn = file("UPDATE operations SET state = 'unknown', attempts = 1").unwrap();
    let row = found(&conn).unwrap();
    crate::cancel(&conn, &key().unwrap(), crate::CancelAs::Wish, NOW).unwrap();
    let beginning =
        Beginning { row: &row, ask: Ask::Send, bank: &bank(), contract: &BankContract, epoch: 0, now: NOW, far: NOW };
    assert!(begin(&conn, &beginning, &nothing).unwrap().is_none());
    // What is found now asks for the cancellation, and for nothing else.
    let row = found(&conn).unwrap();
    assert_eq!(row.ask, Next::Cancel);
    let prepared = begin(&conn, &Beginning { row: &row, ask: Ask::Cancel, ..beginning }, &nothing).unwrap().unwrap();
    assert_eq!(prepared.call.unwrap().method, "PUT");
    assert_eq!(prepared.operation.attempts, 1, "only requests are counted");
}

#[test]
fn a_row_that_is_not_as_it_was_found_is_not_begun() {
    let another = "UPDATE operations SET bank_id = x'00000000000000000000000000000008', merchant = 'demo'";
    let unknown = "UPDATE operations SET state = 'unknown', attempts = 1";
    let later = "UPDATE operations SET due_at = 1";
    for change in [another, unknown, later] {
        let conn = file("").unwrap();
        let row = found(&conn).unwrap();
        conn.execute_batch(change).unwrap();
        let (bank, far) = (bank(), Timestamp::from_second(1).unwrap());
        let beginning =
            Beginning { row: &row, ask: Ask::Send, bank: &bank, contract: &BankContract, epoch: 0, now: NOW, far };
        assert!(begin(&conn, &beginning, &nothing).unwrap().is_none(), "{change}");
        assert_eq!(text(&conn, "state = 'sending'").unwrap(), "0", "{change}");
    }
}

#[test]
fn a_look_passes_over_what_is_to_wait_and_believes_no_time_that_is_too_far_off() {
    let far = Timestamp::from_second(1).unwrap();
    for column in ["due_at", "not_before"] {
        for (ms, is_found) in [(0, true), (1, false), (1_000, false), (1_001, true)] {
            let conn = file(&format!("UPDATE operations SET {column} = {ms}")).unwrap();
            let rows = scan(&conn, &bank(), 8, NOW, far).unwrap().rows;
            assert_eq!(!rows.is_empty(), is_found, "{column} = {ms}");
        }
    }
}

#[test]
fn a_clock_set_back_takes_the_time_of_the_first_sending_along_and_one_set_forward_does_not() {
    for (by_s, sent_ms) in [(-3_600, "-3599999"), (3_600, "1")] {
        let conn = file("UPDATE operations SET state = 'unknown', first_sent_at = 1").unwrap();
        let due = MakeDue { which: Which::All, shift: SignedDuration::from_secs(by_s), aged: SignedDuration::ZERO };
        make_due(&conn, due, 0, NOW).unwrap();
        assert_eq!(text(&conn, "first_sent_at").unwrap(), sent_ms);
    }
}

fn approved(result: &str) -> Change {
    Change {
        state: State::Approved,
        ask: Next::Send,
        failures: 0,
        panics: 0,
        due_at: None,
        not_before: None,
        hold_until: None,
        reason: None,
        last_answer: None,
        result: Some(result.to_owned()),
        called: true,
        event: "answer",
        reading: Some("approved".into()),
        detail: "of the bank".to_owned(),
        contact: true,
        contradicts: None,
    }
}

/// Saves a change of a row that is in flight, and gives what was late.
fn save_in_flight(conn: &Connection, change: &Change) -> Anyhow<(Saved, Vec<LateAnswer>)> {
    let late = RefCell::new(Vec::new());
    let hook = |_: &Connection, _: &Operation, answer: &LateAnswer| {
        late.borrow_mut().push(answer.clone());
        Err(rusqlite::Error::InvalidQuery)
    };
    let saved = {
        let key = key()?;
        let saving = Saving {
            key: &key,
            expected: State::Sending,
            begun: true,
            wished: false,
            change,
            status: Some(201),
            bank_at: None,
            epoch: 0,
            now: NOW,
        };
        save(conn, &saving, &nothing, &hook)?
    };
    Ok((saved, late.into_inner()))
}

fn last_event(conn: &Connection) -> Anyhow<(String, Option<String>, String)> {
    let entry = attempts::attempts(conn, &key()?)?.pop().ok_or("an empty log")?;
    Ok((entry.event, entry.reading, entry.detail))
}

const IN_FLIGHT: &str = "UPDATE operations SET state = 'sending', due_at = NULL";

#[test]
fn an_outcome_is_kept_once_however_often_it_is_saved() {
    let conn = file(IN_FLIGHT).unwrap();
    for _ in 0..2 {
        assert!(matches!(save_in_flight(&conn, &approved("{}")).unwrap(), (Saved::Done(..), late) if late.is_empty()));
    }
    assert_eq!(attempts::attempts(&conn, &key().unwrap()).unwrap().len(), 2, "saved, and one answer");

    let unknown = Change { state: State::Unknown, result: None, due_at: Some(NOW), failures: 1, ..approved("") };
    let conn = file(IN_FLIGHT).unwrap();
    save_in_flight(&conn, &unknown).unwrap();
    conn.execute_batch("UPDATE operations SET due_at = 5").unwrap();
    assert!(
        matches!(save_in_flight(&conn, &unknown).unwrap().0, Saved::Done(..)),
        "a wake may have brought it forward"
    );
    assert_eq!(text(&conn, "due_at").unwrap(), "5");
}

#[test]
fn an_outcome_for_a_row_that_is_not_as_it_was_left_is_logged_and_asked_for_again() {
    let conn = file("UPDATE operations SET state = 'unknown', due_at = 900000").unwrap();
    let (saved, late) = save_in_flight(&conn, &approved("{}")).unwrap();
    assert!(
        matches!(saved, Saved::NotKept(operation) if operation.state == State::Unknown && operation.due_at == Some(NOW))
    );
    assert_eq!(late, []);
    let logged = ("not-kept".to_owned(), Some("approved".to_owned()), "of the bank".to_owned());
    assert_eq!(last_event(&conn).unwrap(), logged);
    assert_eq!(found(&conn).unwrap().key, key().unwrap(), "it is due at once");
}

#[test]
fn an_outcome_of_a_call_that_does_not_run_any_more_is_not_kept() {
    let conn = file("UPDATE operations SET state = 'sending', due_at = 0").unwrap();
    let (saved, late) = save_in_flight(&conn, &approved("{}")).unwrap();
    assert!(matches!(saved, Saved::NotKept(_)) && late.is_empty());
    assert_eq!(text(&conn, "state").unwrap(), "sending");
}

#[test]
fn another_end_after_the_end_is_an_alarm_and_changes_nothing() {
    for (before, after, word) in
        [("declined", approved("{}"), "declined"), ("approved", approved(r#"{"id":"pay_2"}"#), "approved")]
    {
        let conn = file(&format!(
            "UPDATE operations SET state = '{before}', result = '{{\"id\":1}}', settled_at = 0, due_at = NULL"
        ))
        .unwrap();
        let (saved, late) = save_in_flight(&conn, &after).unwrap();
        assert!(matches!(saved, Saved::Late(_)));
        assert_eq!(late, [LateAnswer { state: State::Approved, result: after.result }]);
        assert_eq!(last_event(&conn).unwrap().0, "late-answer");
        assert_eq!(
            (text(&conn, "state").unwrap(), text(&conn, "result").unwrap()),
            (word.to_owned(), r#"{"id":1}"#.to_owned())
        );
    }
}

#[test]
fn a_contradiction_that_lasts_is_told_once() {
    let conn = file("").unwrap();
    let key = key().unwrap();
    crate::cancel(&conn, &key, crate::CancelAs::Wish, NOW).unwrap();
    let told = RefCell::new(0);
    let hook = |_: &Connection, _: &Operation, late: &LateAnswer| {
        assert_eq!(late.state, State::NeedsAttention);
        *told.borrow_mut() += 1;
        Ok(())
    };
    let change = Change {
        state: State::Cancelled,
        ask: Next::Cancel,
        due_at: Some(NOW),
        last_answer: Some("needs-attention".into()),
        result: None,
        contradicts: Some(State::NeedsAttention),
        ..approved("")
    };
    for _ in 0..3 {
        let saving = Saving {
            key: &key,
            expected: State::Cancelled,
            begun: false,
            wished: true,
            change: &change,
            status: Some(200),
            bank_at: None,
            epoch: 0,
            now: NOW,
        };
        save(&conn, &saving, &nothing, &hook).unwrap();
    }
    assert_eq!(told.into_inner(), 1);
    let events: Vec<_> = attempts::attempts(&conn, &key).unwrap().into_iter().map(|entry| entry.event).collect();
    assert_eq!(events, ["saved", "cancelled", "late-answer", "answer", "answer"]);
    assert!(by_key(&conn, &key).unwrap().unwrap().tombstone, "the bank has not said that it is cancelled");
}

#[test]
fn looking_for_what_is_due_reads_only_what_is_open() {
    let conn = Connection::open_in_memory().unwrap();
    conn.execute_batch(&crate::MIGRATIONS.concat()).unwrap();
    for (sql, is_of_lanes) in [(UNSETTLED_DUE, true), (OTHERS_DUE, false)] {
        let plan: Vec<String> = conn
            .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
            .unwrap()
            .query_map(
                named_params! { ":now": 0, ":far": 1, ":bank": [0_u8; 16], ":merchant": "demo", ":limit": 8 },
                |row| row.get("detail"),
            )
            .unwrap()
            .collect::<rusqlite::Result<_>>()
            .unwrap();
        assert!(plan[0].contains("USING INDEX operations_open"), "{plan:?}");
        assert_eq!(plan.iter().any(|step| step.contains("operations_open_lane")), is_of_lanes, "{plan:?}");
        assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:?}");
    }
}

/// Every statement over what is open names its index, and SQLite refuses to prepare one that can't use it.
#[test]
fn each_statement_over_what_is_open_reads_its_index() {
    let words = open!().trim_start_matches('(').trim_end_matches(')').replace("tombstone = 1", "tombstone = 1;");
    assert!(
        crate::MIGRATIONS[1].contains(&format!("ON operations (seq, due_at, not_before)\n    WHERE {words}")),
        "{words}"
    );
    let mut conn = file("").unwrap();
    start(&conn, "http://127.0.0.1", &Settings::default(), NOW, &nothing).unwrap();
    scan(&conn, &bank(), 8, NOW, NOW).unwrap();
    for which in [Which::All, Which::Transport] {
        make_due(&conn, MakeDue { which, shift: SignedDuration::from_secs(-1), aged: SignedDuration::ZERO }, 1, NOW)
            .unwrap();
    }
    record(&conn, &Record { bank: Some(bank()), ..Record::default() }, 1, NOW, &nothing).unwrap();
    crate::summary(&conn, NOW).unwrap();
    for state in State::ALL {
        crate::list(&conn, crate::Filter { state: Some(state), ..crate::Filter::default() }).unwrap();
    }
    // The same statements over a file whose index holds something else.
    conn =
        file("DROP INDEX operations_open; CREATE INDEX operations_open ON operations (seq) WHERE state = 'approved'")
            .unwrap();
    assert!(start(&conn, "http://127.0.0.1", &Settings::default(), NOW, &nothing).is_err());
    assert!(scan(&conn, &bank(), 8, NOW, NOW).is_err());
    for which in [Which::All, Which::Transport] {
        assert!(
            make_due(&conn, MakeDue { which, shift: SignedDuration::ZERO, aged: SignedDuration::ZERO }, 0, NOW)
                .is_err()
        );
    }
    assert!(record(&conn, &Record { bank: Some(bank()), ..Record::default() }, 0, NOW, &nothing).is_err());
    assert!(crate::summary(&conn, NOW).is_err());
    let saved = crate::Filter { state: Some(State::Saved), ..crate::Filter::default() };
    assert!(crate::list(&conn, saved).is_err());
}

#[test]
fn whatever_was_in_flight_at_a_death_is_suspected() {
    for (in_flight, deaths) in [
        ("UPDATE operations SET state = 'sending', due_at = NULL", "1"),
        ("UPDATE operations SET state = 'unknown', ask = 'look_up', due_at = NULL", "1"),
        ("UPDATE operations SET state = 'needs_attention', ask = 'look_up', due_at = NULL", "1"),
        ("UPDATE operations SET state = 'unknown'", "0"),
        ("", "0"),
    ] {
        let conn = file(in_flight).unwrap();
        start(&conn, "http://127.0.0.1", &Settings::default(), NOW, &nothing).unwrap();
        assert_eq!(text(&conn, "deaths").unwrap(), deaths, "{in_flight}");
    }
}

#[test]
fn a_hold_is_in_the_file_with_the_answer_that_asked_for_it() {
    let conn = file(IN_FLIGHT).unwrap();
    let until = Timestamp::from_second(60).unwrap();
    let busy =
        Change { state: State::Unknown, result: None, due_at: Some(NOW), hold_until: Some(until), ..approved("") };
    save_in_flight(&conn, &busy).unwrap();
    let started = start(&conn, "http://127.0.0.1", &Settings::default(), NOW, &nothing).unwrap();
    assert_eq!(started.hold_until, None, "nobody knows whose hold it is");
    let conn = file("UPDATE outbox SET address = 'http://127.0.0.1'").unwrap();
    conn.execute_batch(IN_FLIGHT).unwrap();
    save_in_flight(&conn, &busy).unwrap();
    let started = start(&conn, "http://127.0.0.1", &Settings::default(), NOW, &nothing).unwrap();
    assert_eq!(started.hold_until, Some(until));
}

#[test]
fn what_fails_by_itself_keeps_its_own_back_off_when_an_outage_ends() {
    for (failures, due_at) in [(2, "0"), (3, "5000")] {
        let conn = file(&format!(
            "UPDATE operations SET state = 'unknown', failures = {failures}, last_answer = 'reset', due_at = 5000"
        ))
        .unwrap();
        let end = MakeDue { which: Which::Transport, shift: SignedDuration::ZERO, aged: SignedDuration::ZERO };
        make_due(&conn, end, 0, NOW).unwrap();
        assert_eq!(text(&conn, "due_at").unwrap(), due_at, "{failures} failures");
    }
}

#[test]
fn what_is_older_by_the_banks_clock_is_as_old_here() {
    let conn = file("UPDATE operations SET state = 'unknown', first_sent_at = 90000000").unwrap();
    let aged = MakeDue { which: Which::All, shift: SignedDuration::ZERO, aged: SignedDuration::from_hours(23) };
    make_due(&conn, aged, 0, NOW).unwrap();
    assert_eq!(text(&conn, "first_sent_at").unwrap(), "7200000");
    let aged = MakeDue { aged: SignedDuration::from_hours(10_000 * 9_000), ..aged };
    make_due(&conn, aged, 0, NOW).unwrap();
    found(&conn).unwrap();
}

#[test]
fn a_look_says_whether_anything_waits_for_another_bank_and_takes_what_is_to_be_settled_first() {
    let scan = |conn: &Connection, limit| scan(conn, &bank(), limit, NOW, NOW).unwrap();
    let conn = file("").unwrap();
    assert_eq!(scan(&conn, 8).other_bank, Some(false));
    assert_eq!(scan(&conn, 1).other_bank, None, "not asked for");
    let conn = file(
        "UPDATE operations SET state = 'unknown', bank_id = x'00000000000000000000000000000009', merchant = 'demo'",
    )
    .unwrap();
    let found = scan(&conn, 8);
    assert_eq!((found.rows.len(), found.other_bank), (0, Some(true)));
}

#[test]
fn a_contradiction_is_told_once_whatever_comes_between() {
    let conn = file("").unwrap();
    let key = key().unwrap();
    crate::cancel(&conn, &key, crate::CancelAs::Wish, NOW).unwrap();
    let told = RefCell::new(0);
    let hook = |_: &Connection, _: &Operation, _: &LateAnswer| {
        *told.borrow_mut() += 1;
        Ok(())
    };
    let still = Change { state: State::Cancelled, ask: Next::Cancel, due_at: Some(NOW), result: None, ..approved("") };
    let contradicts = Change {
        last_answer: Some("needs-attention".into()),
        reading: Some("needs-attention".into()),
        contradicts: Some(State::NeedsAttention),
        ..still.clone()
    };
    let lost = Change { last_answer: Some("time-out".into()), reading: Some("time-out".into()), ..still };
    for change in [&contradicts, &lost, &contradicts] {
        let saving = Saving {
            key: &key,
            expected: State::Cancelled,
            begun: false,
            wished: true,
            change,
            status: Some(200),
            bank_at: None,
            epoch: 0,
            now: NOW,
        };
        save(&conn, &saving, &nothing, &hook).unwrap();
    }
    assert_eq!(told.into_inner(), 1);
}

/// A write to an operation that this condition fits changes nothing, and is no error of SQLite.
fn lose_writes_to(conn: &Connection, condition: &str) -> rusqlite::Result<()> {
    conn.execute_batch(&format!(
        "CREATE TRIGGER lost BEFORE UPDATE ON operations WHEN {condition} BEGIN SELECT RAISE(IGNORE); END"
    ))
}

/// A refund that waits for the payment.
fn enqueue_refund(conn: &Connection) -> Anyhow<()> {
    let request = Request::Refund { payment: key()?, amount: Amount::new(100)? };
    let refund = NewOperation::new(Uuid::from_u128(2), "sale-1", request);
    enqueue(conn, &refund, "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0c".parse()?, NOW)?;
    Ok(())
}

fn is_a_lost_write<T>(result: &Result<T, RowError>) -> bool {
    matches!(result, Err(RowError::Sqlite(rusqlite::Error::StatementChangedRows(0))))
}

#[test]
fn a_write_that_misses_its_row_is_an_error_of_the_change() {
    let key = key().unwrap();
    let lost = |conn: &Connection, change: &Change| {
        let saving = Saving {
            key: &key,
            expected: State::Sending,
            begun: true,
            wished: false,
            change,
            status: None,
            bank_at: None,
            epoch: 0,
            now: NOW,
        };
        is_a_lost_write(&save(conn, &saving, &nothing, &|_, _, _| Ok(())))
    };
    // What waited for the payment gets its bytes, or is cancelled with it.
    let declined = Change { state: State::Declined, result: Some("{}".to_owned()), ..approved("") };
    for change in [approved(r#"{"id":"pay_1"}"#), declined] {
        let conn = file("").unwrap();
        enqueue_refund(&conn).unwrap();
        conn.execute_batch("UPDATE operations SET state = 'sending', due_at = NULL WHERE kind = 'payment'").unwrap();
        lose_writes_to(&conn, "OLD.kind = 'refund'").unwrap();
        assert!(lost(&conn, &change), "{change:?}");
    }
    // One that is not as it was left is due at once.
    let conn = file("UPDATE operations SET state = 'unknown', due_at = 900000").unwrap();
    lose_writes_to(&conn, "TRUE").unwrap();
    assert!(lost(&conn, &approved("{}")));
    // What was wished cancelled while its call ran, and never left, is cancelled here.
    let conn = file(IN_FLIGHT).unwrap();
    crate::cancel(&conn, &key, crate::CancelAs::Wish, NOW).unwrap();
    lose_writes_to(&conn, "NEW.state = 'cancelled'").unwrap();
    let never_left = Change { state: State::Saved, result: None, due_at: Some(NOW), ..approved("") };
    assert!(lost(&conn, &never_left));
    // What is known of the bank has a row of its own.
    let conn = file("").unwrap();
    conn.execute_batch("CREATE TRIGGER lost BEFORE UPDATE ON outbox BEGIN SELECT RAISE(IGNORE); END").unwrap();
    assert!(is_a_lost_write(&record(&conn, &Record::default(), 0, NOW, &nothing)));
    assert!(is_a_lost_write(&change_address(&conn, "http://127.0.0.1", 0)));
}

#[test]
fn what_stood_ready_is_called_for_only_where_its_row_still_wants_it() {
    let begun = "UPDATE operations SET state = 'sending', due_at = NULL, epoch = 3, attempts = 1, first_sent_at = 0;";
    let wished = "UPDATE operations SET cancel_wished_at = 1;";
    let again = "UPDATE operations SET due_at = 1;";
    let cases = [
        ("", Ask::Send, 3, true),
        ("", Ask::Send, 4, false),
        (again, Ask::Send, 3, false),
        (wished, Ask::Send, 3, false),
        (wished, Ask::Cancel, 3, true),
        (wished, Ask::LookUp, 3, true),
    ];
    for (since, ask, epoch, wanted) in cases {
        let conn = file(&format!("{begun}{since}")).unwrap();
        assert_eq!(is_wanted(&conn, &key().unwrap(), ask, epoch).unwrap(), wanted, "{since} {ask:?} {epoch}");
    }
}

#[test]
fn what_was_counted_and_not_called_is_as_it_was() {
    let conn = file("UPDATE operations SET last_answer = 'internal', deaths = 1, failures = 2").unwrap();
    let before = found(&conn).unwrap();
    let (bank, contract) = (bank(), BankContract);
    let beginning =
        Beginning { row: &before, ask: Ask::Send, bank: &bank, contract: &contract, epoch: 0, now: NOW, far: NOW };
    begin(&conn, &beginning, &nothing).unwrap().unwrap();
    let change = crate::outcome::broken_off(&before, Ask::Send, false, "put-back", NOW);
    let (saved, _) = save_in_flight(&conn, &change).unwrap();
    assert!(matches!(saved, Saved::Done(..)));
    assert_eq!(found(&conn).unwrap(), before, "first_sent_at and deaths too");
    assert_eq!(text(&conn, "last_answer").unwrap(), "internal");
    let free = "SELECT bank_id IS NULL AND merchant IS NULL FROM operations";
    assert!(conn.query_row(free, [], |row| row.get::<_, bool>(0)).unwrap(), "and may go to another bank");
}

/// The age of an operation, and its bank, are those of its first attempt, and be it that no connection was made for it.
#[test]
fn an_attempt_that_found_no_way_still_counts_as_the_first() {
    let before = NOW - SignedDuration::from_hours(30);
    let attempted = "UPDATE operations SET attempts = 1, first_sent_at = -108000000, bank_id = x'00000000000000000000000000000007', \
                     merchant = 'demo'";
    let conn = file(attempted).unwrap();
    let row = found(&conn).unwrap();
    assert_eq!((row.state, row.first_sent_at), (State::Saved, Some(before)));
    let (bank, contract) = (bank(), BankContract);
    let refused = crate::answer::Reading::NoConnection("refused".to_owned());
    let mut random = crate::backoff::Random::new(7);
    let endings = [
        crate::outcome::broken_off(&row, Ask::Send, false, "put-back", NOW),
        Change {
            due_at: Some(NOW),
            ..crate::outcome::settle(&row, Ask::Send, &refused, true, &Settings::default(), NOW, &mut random)
        },
    ];
    for ending in endings {
        let beginning =
            Beginning { row: &row, ask: Ask::Send, bank: &bank, contract: &contract, epoch: 0, now: NOW, far: NOW };
        begin(&conn, &beginning, &nothing).unwrap().unwrap();
        save_in_flight(&conn, &ending).unwrap();
        assert_eq!(found(&conn).unwrap().first_sent_at, Some(before), "{}", ending.event);
        let bound = "SELECT bank_id IS NOT NULL FROM operations";
        assert!(conn.query_row(bound, [], |row| row.get::<_, bool>(0)).unwrap(), "{}", ending.event);
        conn.execute_batch("UPDATE operations SET failures = 0").unwrap();
    }
}
