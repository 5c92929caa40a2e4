//! Tests of the till over a real file, with the bank's word put in by hand.

mod approved;
mod audit_chain;
mod audited;
mod cart;
mod chance;
mod charge;
mod doctor;
mod editing;
mod export_sums;
mod frozen;
mod given;
mod labels;
mod late;
mod migrating;
mod money_alone;
mod offline;
mod older;
mod paid_out;
mod paper;
mod parking;
mod parts;
mod pay;
mod people;
mod queue;
mod receipt;
mod reconciling;
mod refused;
mod reports;
mod restoring;
mod returns;
mod sales_list;
mod screen;
mod settling;
mod shifts;
mod shifts_chance;
mod tampered;
mod tenders;
mod uncertain;
mod undo;
mod voids;
mod waived;
mod waived_chance;

use crate::{
    CardPayment, CashPayment, CashTaken, Operation, Refund, Sale, State, TakeOffline, Till, TillError, audit,
    audit::Signature, operations, pay as paying, refunds,
};
use jiff::Timestamp;
use rusqlite::{Connection, params};
use serde_json::json;
use std::error::Error;
use store::Priority;
use tempfile::TempDir;
use uuid::Uuid;

type Checked<T = ()> = Result<T, Box<dyn Error>>;

/// A till in a folder of its own, which goes with it.
struct Scene {
    till: Till,
    dir: TempDir,
}

impl Scene {
    fn new() -> Checked<Self> {
        let dir = tempfile::tempdir()?;
        Ok(Self { till: Till::open(&dir.path().join("data"))?, dir })
    }

    /// Another connection to the till's file, as another program would have it.
    fn file(&self) -> Checked<Connection> {
        let conn = Connection::open(self.dir.path().join("data/till.db"))?;
        conn.pragma_update(None, "foreign_keys", true)?;
        Ok(conn)
    }

    fn count(&self, sql: &str) -> Checked<i64> {
        Ok(self.file()?.query_row(sql, [], |row| row.get(0))?)
    }

    /// The till as the next start finds it after a kill: on the files as they stand, taken from under the one that has them open.
    fn killed(self) -> Checked<Self> {
        let dir = tempfile::tempdir()?;
        let data = dir.path().join("data");
        std::fs::create_dir(&data)?;
        for entry in std::fs::read_dir(self.till.data_dir())? {
            let entry = entry?;
            // What processes share in memory dies with them.
            if entry.file_type()?.is_file() && entry.file_name() != "till.db-shm" {
                std::fs::copy(entry.path(), data.join(entry.file_name()))?;
            }
        }
        Ok(Self { till: Till::open(&data)?, dir })
    }

    /// A card payment that takes its goods along.
    async fn taken_offline(&self, sale: &Sale, amount: i64) -> Checked<Operation> {
        let tender_id = self.by_card_tender(sale, amount).await?;
        Ok(self.till.take_offline(TakeOffline { tender_id, contact: None, over_limit: false }).await?)
    }

    /// Card payment of `amount`, by its tender.
    async fn by_card_tender(&self, sale: &Sale, amount: i64) -> Checked<Uuid> {
        let tender_id = self.till.begin_tender(sale.id).await?.tender_id;
        self.till.pay_card(CardPayment { tender_id, sale_id: sale.id, amount, card: "tok_visa".into() }).await?;
        Ok(tender_id)
    }

    /// Cash by a new tender.
    async fn in_cash(&self, sale: &Sale, tendered: i64) -> Checked<CashTaken> {
        let tender_id = self.till.begin_tender(sale.id).await?.tender_id;
        Ok(self.till.pay_cash(CashPayment { tender_id, sale_id: sale.id, tendered }).await?)
    }

    /// The operation of a tender or of a refund's leg.
    async fn operation_of(&self, intent_id: Uuid) -> Checked<Operation> {
        let found = self.till.read(move |conn| operations::by_intent(conn, intent_id)).await?;
        Ok(found.ok_or("it has no operation")?)
    }

    /// A sale of two croissants and an espresso: 1.85 × 2 at 7 %, 2.20 at 19 %, 5.90 together.
    async fn sale(&self) -> Checked<Sale> {
        self.till.add_article("BAK-201", Some("2")).await?;
        Ok(self.till.add_article("CAF-101", None).await?)
    }

    /// Card payment of `amount` by a new tender.
    async fn by_card(&self, sale: &Sale, amount: i64) -> Checked<Operation> {
        let tender_id = self.till.begin_tender(sale.id).await?.tender_id;
        Ok(self.till.pay_card(CardPayment { tender_id, sale_id: sale.id, amount, card: "tok_visa".into() }).await?)
    }

    /// Money alone given back of a sale that is under payment, as an older program did.
    async fn money_back(&self, refund: Refund) -> Checked<Operation> {
        let change =
            move |tx: &Connection| refunds::alone(tx, &Signature::of_program("test", Timestamp::now()), &refund);
        Ok(self.till.inner.store.write(Priority::Click, change).await?)
    }

    /// The bank's word, stored as the outbox stores it: with what it means for the till in the same commit.
    async fn settle(&self, operation: &Operation, state: State) -> Checked<Operation> {
        self.settle_at(operation, state, Timestamp::now()).await
    }

    async fn settle_at(&self, operation: &Operation, state: State, now: Timestamp) -> Checked<Operation> {
        let key = operation.key;
        let store = &self.till.inner.store;
        let settled = store.write(Priority::Background, move |tx| {
            let result = json!({"id": "pay_1", "approval_code": "8F21K0", "card": {"brand": "visa", "last4": "4242"}});
            tx.execute(
                "UPDATE operations SET state = ?2, result = ?3, due_at = NULL, updated_at = ?4,
                     settled_at = iif(?5, ?4, NULL)
                 WHERE key = ?1",
                params![key.as_bytes(), state.as_str(), result.to_string(), now.as_millisecond(), state.is_final()],
            )?;
            tx.execute(
                "INSERT INTO attempts (key, attempt, at, event) VALUES (?1, 1, ?2, 'answer')",
                params![key.as_bytes(), now.as_millisecond()],
            )?;
            let operation = outbox::by_key(tx, &key)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
            let signature = Signature::of_program(audit::BANK, now);
            paying::settled(tx, &signature, &operation)?;
            follow(tx, &signature, &operation)
        });
        settled.await?;
        Ok(self.till.operation(key).await?)
    }
}

/// What the outbox does with the refunds that wait for a payment, in the commit of its end.
fn follow(tx: &Connection, signature: &Signature, payment: &outbox::Operation) -> Result<(), TillError> {
    if payment.kind != outbox::Kind::Payment || !matches!(payment.state, State::Declined | State::Cancelled) {
        return Ok(());
    }
    for refund in outbox::refunds_of(tx, &payment.key)?.iter().filter(|refund| refund.state == State::Saved) {
        tx.execute(
            "UPDATE operations SET state = 'cancelled', due_at = NULL, updated_at = ?2, settled_at = ?2 WHERE key = ?1",
            params![refund.key.as_bytes(), signature.at.as_millisecond()],
        )?;
        let refund = outbox::by_key(tx, &refund.key)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        paying::settled(tx, signature, &refund)?;
    }
    Ok(())
}
