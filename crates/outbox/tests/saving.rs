//! Saving an operation with the caller's own rows, and finding it again.

use std::path::Path;

use jiff::Timestamp;
use outbox::{AcceptError, CancelAs, CancelError, EnqueueError, Enqueued, Filter, Money, NewOperation, Request, State};
use protocol::{Amount, CardToken, Currency, Key, PaymentRequest};
use rusqlite::Connection;
use store::{Priority, Schema, Store, WriteError};
use uuid::Uuid;

fn open(folder: &Path) -> Result<Store, store::OpenError> {
    Store::open(&folder.join("till.db"), &Schema { application_id: 7, migrations: outbox::migrations(1..) })
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn payment(amount: i64, card: &str) -> Result<Request, Failure> {
    Ok(Request::Payment(PaymentRequest {
        amount: Amount::new(amount)?,
        currency: Currency::EUR,
        card: CardToken::new(card)?,
        reference: Some("till-1/1042".to_owned()),
        accepted_offline_at: None,
    }))
}

fn new(amount: i64, card: &str) -> Result<NewOperation, Failure> {
    Ok(NewOperation {
        intent_id: Uuid::new_v4(),
        replaces: None,
        lane: "sale-1".to_owned(),
        request: payment(amount, card)?,
    })
}

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

fn key() -> Key {
    Key::v7(now(), rand::random())
}

fn save(store: &Store, new: &NewOperation) -> Result<Enqueued, WriteError<EnqueueError>> {
    let new = new.clone();
    store.write_blocking(Priority::Click, move |tx| outbox::enqueue(tx, &new, key(), now()))
}

fn end(store: &Store, key: Key, state: State) -> Result<usize, WriteError<rusqlite::Error>> {
    store.write_blocking(Priority::Click, move |tx| {
        let settled = state.is_final().then_some(0_i64);
        tx.execute(
            "UPDATE operations SET state = ?1, settled_at = ?2 WHERE key = ?3",
            (state.as_str(), settled, key.as_bytes()),
        )
    })
}

#[test]
fn a_saved_operation_has_its_exact_request_and_the_first_line_of_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let new = new(2490, "tok_visa").unwrap();
    let Enqueued { operation, existed } = save(&store, &new).unwrap();
    assert!(!existed);
    assert_eq!(
        (operation.state, operation.attempts, operation.money),
        (State::Saved, 0, Some(Money { amount: 2490, currency: Currency::EUR }))
    );
    assert_eq!(operation.due_at, Some(now()));
    assert_eq!(operation.short_code, operation.key.short_code());
    let Request::Payment(request) = &new.request else { panic!("another request") };
    let expected = ("POST".to_owned(), "/v1/payments".to_owned(), request.encode());
    let key = operation.key;
    store
        .read_blocking(move |c| {
            let row = c.query_row("SELECT method, path, body FROM operations", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
            assert_eq!(row, expected);
            let log = outbox::attempts(c, &key)?;
            assert_eq!(log.len(), 1);
            assert_eq!((log[0].attempt, log[0].event.as_str()), (0, "saved"));
            assert_eq!(outbox::by_intent(c, new.intent_id)?, Some(operation));
            Ok::<_, rusqlite::Error>(())
        })
        .unwrap();
}

#[test]
fn what_saving_gives_is_what_reading_finds() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    // Finer than a millisecond, before and after the epoch: the file keeps no more.
    for at in ["2026-11-03T10:00:00.123456789Z", "1969-12-31T23:59:59.999600001Z"] {
        let at: Timestamp = at.parse().unwrap();
        let seen = store.write_blocking(Priority::Click, move |tx| {
            let mut seen = Vec::new();
            let mut look = |new: NewOperation| {
                let saved = outbox::enqueue(tx, &new, Key::v7(at, rand::random()), at)?.operation;
                seen.push((outbox::by_key(tx, &saved.key)?, saved.clone()));
                Ok::<_, Failure>(saved)
            };
            let mut offline = new(2490, "tok_visa")?;
            if let Request::Payment(request) = &mut offline.request {
                request.accepted_offline_at = Some(at);
            }
            look(offline)?;
            let message = outbox::Message::post("/hooks", b"{}".to_vec());
            look(NewOperation::new(Uuid::new_v4(), "hooks", Request::Message(message)))?;
            let refused = look(new(100, "tok_visa")?)?;
            tx.execute("UPDATE operations SET state = 'declined', settled_at = 0 WHERE key = ?1", [refused.key.as_bytes()])?;
            let paid = look(new(100, "tok_visa")?.replacing(refused.intent_id))?;
            let refund = |amount| Ok::<_, Failure>(Request::Refund { payment: paid.key, amount: Amount::new(amount)? });
            look(NewOperation::new(Uuid::new_v4(), "refund", refund(10)?))?;
            tx.execute(
                "UPDATE operations SET state = 'approved', settled_at = 0, result = '{\"id\":\"pay_1\"}', bank_id = ?2, merchant = 'demo' \
                 WHERE key = ?1",
                (paid.key.as_bytes(), Uuid::from_u128(7).as_bytes()),
            )?;
            look(NewOperation::new(Uuid::new_v4(), "refund", refund(20)?))?;
            Ok::<_, Failure>(seen)
        });
        let seen = seen.unwrap();
        assert_eq!(seen.len(), 6);
        for (found, saved) in seen {
            assert_eq!(found.as_ref(), Some(&saved));
        }
    }
}

#[test]
fn twenty_saves_of_one_intent_are_one_operation() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let new = new(2490, "tok_visa").unwrap();
    let saved: Vec<_> = std::thread::scope(|scope| {
        let clicks: Vec<_> = (0..20).map(|_| scope.spawn(|| save(&store, &new).unwrap())).collect();
        clicks.into_iter().map(|click| click.join().unwrap()).collect()
    });
    assert_eq!(saved.iter().filter(|saved| !saved.existed).count(), 1);
    assert!(saved.iter().all(|other| other.operation == saved[0].operation));
    let all = store.read_blocking(|c| outbox::list(c, Filter::default())).unwrap();
    assert_eq!(all.len(), 1);
}

#[test]
fn a_click_that_comes_after_the_end_finds_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let new = new(2490, "tok_visa").unwrap();
    let key = save(&store, &new).unwrap().operation.key;
    end(&store, key, State::Approved).unwrap();
    let late = save(&store, &new).unwrap();
    assert!(late.existed);
    assert_eq!((late.operation.key, late.operation.state), (key, State::Approved));
}

#[test]
fn an_intent_is_never_used_for_another_charge() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let first = new(2490, "tok_visa").unwrap();
    let saved = save(&store, &first).unwrap().operation;
    for (amount, card) in [(2491, "tok_visa"), (2490, "tok_mir")] {
        let other = NewOperation { request: payment(amount, card).unwrap(), ..first.clone() };
        let refused = save(&store, &other).unwrap_err();
        let WriteError::Refused(EnqueueError::IntentReused(existing)) = refused else { panic!("{refused}") };
        assert_eq!(*existing, saved);
    }
    // A repeated command may come with another sale and another reference: it is the same charge.
    let Request::Payment(mut request) = first.request.clone() else { panic!("another request") };
    request.reference = Some("till-1/1043".to_owned());
    let again = NewOperation { lane: "sale-2".to_owned(), request: Request::Payment(request), ..first };
    assert_eq!(save(&store, &again).unwrap(), Enqueued { operation: saved, existed: true });
}

#[test]
fn another_card_takes_the_place_of_a_refused_one_and_only_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let first = new(2490, "tok_expired").unwrap();
    let second = || NewOperation { replaces: Some(first.intent_id), ..new(2490, "tok_visa").unwrap() };
    let refused = |new: &NewOperation| match save(&store, new).unwrap_err() {
        WriteError::Refused(refused) => refused,
        other => panic!("{other}"),
    };
    assert!(matches!(refused(&second()), EnqueueError::ReplacesUnknown));
    let key = save(&store, &first).unwrap().operation.key;
    for state in [State::Saved, State::Sending, State::Unknown, State::NeedsAttention] {
        end(&store, key, state).unwrap();
        assert!(matches!(refused(&second()), EnqueueError::NotReplaceable(found) if found == state));
    }
    end(&store, key, State::Declined).unwrap();
    let taken = second();
    save(&store, &taken).unwrap();
    assert!(matches!(refused(&second()), EnqueueError::AlreadyReplaced(by) if by.intent_id == taken.intent_id));
    assert!(save(&store, &taken).unwrap().existed, "the same second card is still the same");
}

#[test]
fn the_file_itself_refuses_what_must_never_happen() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let first = save(&store, &new(2490, "tok_visa").unwrap()).unwrap().operation;
    let refused = |sql: &'static str| {
        let result = store.write_blocking(Priority::Click, move |tx| tx.execute(sql, []));
        assert!(matches!(result, Err(WriteError::Refused(_))), "{sql}: {result:?}");
    };
    refused("UPDATE operations SET body = x'7b7d'");
    refused("UPDATE operations SET amount = 1");
    refused("UPDATE operations SET key = randomblob(16)");
    refused("UPDATE operations SET state = 'failed'");
    refused("DELETE FROM operations");
    refused("DELETE FROM attempts");
    refused("UPDATE attempts SET detail = 'nothing happened'");
    refused("INSERT OR REPLACE INTO attempts (seq, key, attempt, at, event) SELECT 1, key, 0, 0, 'x' FROM operations");
    refused("UPDATE operations SET state = 'approved'");
    end(&store, first.key, State::Approved).unwrap();
    refused("UPDATE operations SET state = 'unknown', settled_at = NULL");
    refused("UPDATE operations SET result = '{}'");
    let bound = "UPDATE operations SET bank_id = randomblob(16), merchant = 'a'";
    store.write_blocking(Priority::Click, move |tx| tx.execute(bound, [])).unwrap();
    refused(bound);
}

#[test]
fn what_the_caller_writes_and_the_operation_are_one_commit() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let new = new(2490, "tok_visa").unwrap();
    let result = store.write_blocking(Priority::Click, move |tx| {
        outbox::enqueue(tx, &new, key(), now())?;
        tx.execute("INSERT INTO nowhere VALUES (1)", [])?;
        Ok::<_, EnqueueError>(())
    });
    assert!(matches!(result, Err(WriteError::Refused(EnqueueError::Sqlite(_)))));
    assert_eq!(store.read_blocking(|c| outbox::list(c, Filter::default())).unwrap(), []);
}

#[test]
fn listing_pages_both_ways_and_filters() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let saved: Vec<_> =
        (1..=5).map(|amount| save(&store, &new(amount, "tok_visa").unwrap()).unwrap().operation).collect();
    end(&store, saved[1].key, State::Declined).unwrap();
    let amounts = |filter: Filter| -> Vec<i64> {
        let found = store.read_blocking(move |c| outbox::list(c, filter)).unwrap();
        found.into_iter().filter_map(|operation| operation.money).map(|money| money.amount).collect()
    };
    assert_eq!(amounts(Filter::default()), [1, 2, 3, 4, 5]);
    assert_eq!(amounts(Filter { after_seq: Some(saved[2].seq), limit: 1, ..Filter::default() }), [4]);
    assert_eq!(amounts(Filter { newest_first: true, limit: 2, ..Filter::default() }), [5, 4]);
    let older = Filter { newest_first: true, before_seq: Some(saved[3].seq), ..Filter::default() };
    assert_eq!(amounts(older), [3, 2, 1]);
    assert_eq!(amounts(Filter { state: Some(State::Declined), ..Filter::default() }), [2]);
}

#[test]
fn the_summary_adds_up_what_is_unsettled() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let saved: Vec<_> =
        (1..=5).map(|amount| save(&store, &new(amount, "tok_visa").unwrap()).unwrap().operation).collect();
    for (operation, state) in saved.iter().zip([State::Approved, State::NeedsAttention, State::Sending]) {
        end(&store, operation.key, state).unwrap();
    }
    let summary = store.read_blocking(|c: &Connection| outbox::summary(c, now())).unwrap();
    assert_eq!((summary.unsettled, summary.sending, summary.waiting), (3, 1, 2));
    assert_eq!(summary.needs_attention, 1);
    assert_eq!(summary.amounts, [(Currency::EUR, 12)]);
    assert_eq!(summary.oldest_at, Some(now()));
    assert_eq!(summary.next_attempt_at, Some(now()));
    assert_eq!((summary.bank_reachable, summary.paused), (None, None));
}

#[test]
fn the_next_attempt_is_of_one_that_may_be_made() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let of_lane = |lane: &str| NewOperation { lane: lane.to_owned(), ..new(2490, "tok_visa").unwrap() };
    let change = |sql: &'static str| {
        store.write_blocking(Priority::Click, move |tx| tx.execute(sql, [])).unwrap();
    };
    let next = || store.read_blocking(|c: &Connection| outbox::summary(c, now())).unwrap().next_attempt_at;
    save(&store, &of_lane("sale-1")).unwrap();
    change("UPDATE operations SET state = 'sending', due_at = NULL");
    save(&store, &of_lane("sale-1")).unwrap();
    assert_eq!(next(), None, "it waits for the older one of its lane");
    save(&store, &of_lane("sale-2")).unwrap();
    assert_eq!(next(), Some(now()));
    change("UPDATE outbox SET bank_id = zeroblob(16), merchant = 'demo'");
    change("UPDATE operations SET bank_id = zeroblob(16), merchant = 'other' WHERE lane = 'sale-2'");
    assert_eq!(next(), None, "it waits for another merchant");
    change("UPDATE outbox SET merchant = 'other'");
    assert_eq!(next(), Some(now()));
}

#[test]
fn a_wish_whose_write_misses_its_row_is_an_error_and_leaves_nothing_behind() {
    for (state, kind) in [("saved", "payment"), ("saved", "refund"), ("unknown", "payment"), ("accepted", "payment")] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).unwrap();
        let key = save(&store, &new(100, "tok_visa").unwrap()).unwrap().operation.key;
        let refund = Request::Refund { payment: key, amount: Amount::new(10).unwrap() };
        save(&store, &NewOperation::new(Uuid::new_v4(), "sale-1", refund)).unwrap();
        let before =
            format!("UPDATE operations SET state = 'unknown' WHERE kind = 'payment' AND '{state}' = 'unknown'");
        let lose = format!(
            "CREATE TRIGGER lost BEFORE UPDATE ON operations WHEN OLD.kind = '{kind}' BEGIN SELECT RAISE(IGNORE); END"
        );
        store.write_blocking(Priority::Click, move |tx| tx.execute_batch(&format!("{before}; {lose}"))).unwrap();
        let lost = if state == "accepted" {
            let accepted = store.write_blocking(Priority::Click, move |tx| outbox::accept_offline(tx, &key, now()));
            matches!(accepted, Err(WriteError::Refused(AcceptError::Sqlite(rusqlite::Error::StatementChangedRows(0)))))
        } else {
            let wished = move |tx: &Connection| outbox::cancel(tx, &key, CancelAs::Wish, now());
            let cancelled = store.write_blocking(Priority::Click, wished);
            matches!(cancelled, Err(WriteError::Refused(CancelError::Sqlite(rusqlite::Error::StatementChangedRows(0)))))
        };
        assert!(lost, "a {kind} of one that is {state}");
        let (found, log) = store
            .read_blocking(move |conn| {
                Ok::<_, rusqlite::Error>((outbox::by_key(conn, &key)?, outbox::attempts(conn, &key)?))
            })
            .unwrap();
        let found = found.unwrap();
        assert!(
            !found.state.is_final() && found.cancel_wished_at.is_none(),
            "a {kind} of one that is {state}: {found:?}"
        );
        assert_eq!(log.len(), 1, "it was only saved: {log:?}");
    }
}
