//! Refunds of a card tender: an operation of their own, saved before a byte leaves, and waiting for their payment's end.

use crate::{
    LegState, Operation, ReturnLeg, Right, SaleState, TenderKind, TenderState, TillError,
    amounts::format_amount,
    audit,
    audit::Signature,
    columns, offline, operations,
    people::{Person, Role},
    rights,
    rights::{Asking, Limit},
    sales,
    sales::SaleRow,
    tenders,
    tenders::TenderRow,
};
use outbox::{EnqueueError, Enqueued, Kind, NewOperation, Request};
use protocol::{Amount, Currency, Key};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

/// Money to give back.
#[derive(Debug, Clone, Copy)]
pub struct Refund {
    /// Names the intent: the same again gives the same operation back.
    pub intent_id: Uuid,
    /// The key of the payment, which may still be open.
    pub payment: Key,
    /// How much of it, in minor units of its currency.
    pub amount: Amount,
}

/// Of what a leg is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LegOf {
    /// Of goods that came back.
    Return(Uuid),
    /// Of a sale that was given up after a part was paid.
    Void(Uuid),
}

impl LegOf {
    /// As the columns `return_id` and `void_id` have it.
    pub(crate) fn columns(self) -> (Option<String>, Option<String>) {
        match self {
            Self::Return(id) => (Some(id.to_string()), None),
            Self::Void(id) => (None, Some(id.to_string())),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct RefundRow {
    pub(crate) id: Uuid,
    pub(crate) tender_id: Uuid,
    pub(crate) state: TenderState,
    pub(crate) amount: i64,
    /// Of what it is a leg; of nothing where money alone is given back.
    pub(crate) leg_of: Option<LegOf>,
    /// The refund in whose place it is.
    pub(crate) replaces: Option<Uuid>,
}

const COLUMNS: &str = "id, tender_id, state, amount, return_id, replaces, void_id";

fn refund_row(row: &Row<'_>) -> rusqlite::Result<RefundRow> {
    let (return_id, void_id) = (columns::optional_uuid(row, 4)?, columns::optional_uuid(row, 6)?);
    Ok(RefundRow {
        id: columns::uuid(row, 0)?,
        tender_id: columns::uuid(row, 1)?,
        state: columns::word(row, 2, TenderState::read)?,
        amount: row.get(3)?,
        leg_of: return_id.map(LegOf::Return).or(void_id.map(LegOf::Void)),
        replaces: columns::optional_uuid(row, 5)?,
    })
}

pub(crate) fn by_id(conn: &Connection, id: Uuid) -> Result<Option<RefundRow>, TillError> {
    let found = conn
        .prepare_cached(&format!("SELECT {COLUMNS} FROM refunds WHERE id = ?1"))?
        .query_row([id.to_string()], refund_row)
        .optional()?;
    Ok(found)
}

/// The refunds to cards of a return or a void, in the order of their saving.
pub(crate) fn legs_of(conn: &Connection, leg_of: LegOf) -> Result<Vec<RefundRow>, TillError> {
    let (column, id) = match leg_of {
        LegOf::Return(id) => ("return_id", id),
        LegOf::Void(id) => ("void_id", id),
    };
    let mut statement =
        conn.prepare_cached(&format!("SELECT {COLUMNS} FROM refunds WHERE {column} = ?1 ORDER BY rowid"))?;
    let rows = statement.query_map([id.to_string()], refund_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The refunds of a tender that are a leg of nothing, and are not refused: money alone that goes back, shown as legs are.
pub(crate) fn beside_legs(conn: &Connection, tender_id: Uuid) -> Result<Vec<ReturnLeg>, TillError> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM refunds WHERE tender_id = ?1 AND return_id IS NULL AND void_id IS NULL
             AND state NOT IN ('declined', 'cancelled') ORDER BY rowid"
    ))?;
    let rows: Vec<_> = statement.query_map([tender_id.to_string()], refund_row)?.collect::<Result<_, _>>()?;
    let leg = |refund: RefundRow| {
        Ok(ReturnLeg {
            id: refund.id,
            kind: TenderKind::Card,
            amount: refund.amount,
            rounding: 0,
            state: match refund.state {
                TenderState::NeedsAttention => LegState::NeedsAttention,
                TenderState::Approved => LegState::Approved,
                _ => LegState::Settling,
            },
            replaces: None,
            tender_id: Some(refund.tender_id),
            operation: operations::by_intent(conn, refund.id)?,
        })
    };
    rows.into_iter().map(leg).collect()
}

/// As many of what is owed are read at most: they are to be dealt with from the oldest on.
const OWED_MAX: u32 = 200;

/// The returns, or the voids, of which a card did not get its part and nobody has done anything about it; `of` is their column.
pub(crate) fn owed_sql(of: &str) -> String {
    format!(
        "SELECT DISTINCT refunds.{of} FROM refunds CROSS JOIN tenders ON tenders.id = refunds.tender_id
         WHERE refunds.{of} IS NOT NULL AND refunds.state IN ('declined', 'cancelled') AND tenders.state = 'approved'
             AND NOT EXISTS (SELECT 1 FROM refunds AS later WHERE later.replaces = refunds.id)
             AND NOT EXISTS (SELECT 1 FROM cash_refunds WHERE cash_refunds.instead_of = refunds.id)
         ORDER BY refunds.{of} LIMIT ?1"
    )
}

/// Their ids, oldest first.
pub(crate) fn owed(conn: &Connection, of: &str) -> Result<Vec<Uuid>, TillError> {
    let mut statement = conn.prepare_cached(&owed_sql(of))?;
    let ids = statement.query_map([OWED_MAX], |row| columns::uuid(row, 0))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

/// Money alone that the bank refused, so that the customer has nothing of it yet.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwedRefund {
    /// The sale.
    pub sale_id: Uuid,
    /// That sale's number.
    pub sale_number: Option<i64>,
    /// How much is owed, in minor units of its currency.
    pub amount: i64,
    /// The currency.
    pub currency: Currency,
    /// What the bank refused.
    pub operation: Operation,
}

/// The refunds of money alone that the bank refused and that nobody tried again, oldest first, each as far as its payment is not given back
/// otherwise.
pub(crate) fn owed_alone(conn: &Connection) -> Result<Vec<OwedRefund>, TillError> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM refunds INDEXED BY refunds_alone_not_given
         WHERE return_id IS NULL AND void_id IS NULL AND state = 'declined'
             AND (SELECT state FROM tenders WHERE tenders.id = refunds.tender_id) = 'approved'
             AND NOT EXISTS (SELECT 1 FROM refunds AS later WHERE later.tender_id = refunds.tender_id AND later.rowid > refunds.rowid
                 AND later.return_id IS NULL AND later.void_id IS NULL)
         ORDER BY rowid LIMIT ?1"
    ))?;
    let rows: Vec<_> = statement.query_map([OWED_MAX], refund_row)?.collect::<Result<_, _>>()?;
    rows.into_iter().filter_map(|refund| owed_refund(conn, &refund).transpose()).collect()
}

fn owed_refund(conn: &Connection, refund: &RefundRow) -> Result<Option<OwedRefund>, TillError> {
    let tender = offline::card_tender(conn, refund.tender_id)?;
    let amount = refund.amount.min(left_of(conn, &tender)?);
    if amount == 0 {
        return Ok(None);
    }
    let sale = sales::by_id(conn, tender.sale_id)?;
    let operation = operations::by_intent(conn, refund.id)?;
    Ok(Some(OwedRefund {
        sale_id: sale.id,
        sale_number: sale.number,
        amount,
        currency: sale.currency,
        operation: operation.ok_or_else(|| TillError::Internal("a refund has no operation".to_owned()))?,
    }))
}

/// What of a card's tender is not given back yet. A part that went to a return or a void stays its own, also where the bank refused it: it is
/// tried again or paid out in cash.
pub(crate) fn left_of(conn: &Connection, tender: &TenderRow) -> Result<i64, TillError> {
    let given: i64 = conn
        .prepare_cached(
            "SELECT coalesce(sum(amount), 0) FROM refunds
             WHERE tender_id = ?1 AND replaces IS NULL
                 AND (return_id IS NOT NULL OR void_id IS NOT NULL OR state NOT IN ('declined', 'cancelled'))",
        )?
        .query_row([tender.id.to_string()], |row| row.get(0))?;
    Ok(tender.amount - given)
}

/// What went back of a sale as money alone, or is on its way, and was counted as given back by no return of its goods yet.
pub(crate) fn alone_uncounted(conn: &Connection, sale_id: Uuid) -> Result<i64, TillError> {
    let uncounted: i64 = conn
        .prepare_cached(
            "SELECT (SELECT coalesce(sum(refunds.amount), 0) FROM tenders CROSS JOIN refunds ON refunds.tender_id = tenders.id
                     WHERE tenders.sale_id = ?1 AND refunds.return_id IS NULL AND refunds.void_id IS NULL
                         AND refunds.state NOT IN ('declined', 'cancelled'))
                 - (SELECT coalesce(sum(return_refunded.amount), 0)
                    FROM returns CROSS JOIN return_refunded ON return_refunded.return_id = returns.id WHERE returns.sale_id = ?1)",
        )?
        .query_row([sale_id.to_string()], |row| row.get(0))?;
    // Below zero where the bank refused what was counted before.
    Ok(uncounted.max(0))
}

/// What of a return went back before it, as money alone.
pub(crate) fn before_return(conn: &Connection, return_id: Uuid) -> Result<i64, TillError> {
    Ok(conn
        .prepare_cached("SELECT coalesce(sum(amount), 0) FROM return_refunded WHERE return_id = ?1")?
        .query_row([return_id.to_string()], |row| row.get(0))?)
}

/// Whether a refund that did not go through was tried again or paid out.
pub(crate) fn is_resolved(conn: &Connection, id: Uuid) -> Result<bool, TillError> {
    Ok(conn
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM refunds WHERE replaces = ?1) OR EXISTS (SELECT 1 FROM cash_refunds WHERE instead_of = ?1)",
        )?
        .query_row([id.to_string()], |row| row.get(0))?)
}

/// Money that is to go back of a sale, with what of it went back before: the limit of a role holds for all of a sale that persons of that
/// role answered for, by their own right or by their PIN. Else a refund of 400.00 would be twenty of 20.00.
pub(crate) struct BackOfSale<'a> {
    pub(crate) conn: &'a Connection,
    pub(crate) sale_id: Uuid,
    pub(crate) amount: i64,
    /// Of the sale.
    pub(crate) currency: Currency,
}

impl BackOfSale<'_> {
    /// With the refunds that the bank refused not counted: of them nothing went back.
    fn before(&self, role: Role) -> Result<i64, TillError> {
        Ok(self
            .conn
            .prepare_cached(
                "SELECT coalesce(sum(coalesce(refunds.amount, json_extract(audit.details, '$.total')
                     - coalesce(json_extract(audit.details, '$.refunded_before'), 0))), 0)
                 FROM audit JOIN people ON people.id = coalesce(audit.approver_id, audit.person_id)
                 LEFT JOIN refunds ON audit.what = 'refund-begun' AND refunds.id = json_extract(audit.details, '$.refund')
                 WHERE audit.sale_id = ?1 AND people.role = ?2 AND (audit.what = 'goods-returned'
                     OR (refunds.return_id IS NULL AND refunds.state NOT IN ('declined', 'cancelled')))",
            )?
            .query_row([&self.sale_id.to_string(), role.as_str()], |row| row.get(0))?)
    }

    fn with_before(&self, role: Role) -> Result<i64, TillError> {
        let sum = self.before(role)?.checked_add(self.amount);
        sum.ok_or_else(|| TillError::Internal("the refunds of a sale are more than there can be".to_owned()))
    }
}

impl Asking for BackOfSale<'_> {
    fn money(&self) -> Option<(i64, Currency)> {
        Some((self.amount, self.currency))
    }

    fn is_within(&self, role: Role, limit: &Limit) -> Result<bool, TillError> {
        let Some(most) = limit.amount_max else { return Ok(true) };
        Ok(self.with_before(role)? <= most)
    }

    fn over(&self, person: &Person, limit: &Limit, currency: Currency) -> Result<Option<String>, TillError> {
        let Some(most) = limit.amount_max else { return Ok(None) };
        let (sum, amount) = (self.with_before(person.role)?, |minor_units| format_amount(minor_units, currency));
        let (name, this, most) = (&person.name, amount(self.amount), amount(most));
        Ok(Some(if sum == self.amount {
            format!("a refund of {this} is over {name}'s limit of {most}")
        } else {
            let sum = amount(sum);
            format!("a refund of {this} makes {sum} of this sale, which is over {name}'s limit of {most}")
        }))
    }
}

/// Lets somebody give money back who may.
pub(crate) fn allow(
    tx: &Connection,
    signature: &Signature,
    sale_id: Uuid,
    amount: i64,
) -> Result<Signature, TillError> {
    let currency = sales::by_id(tx, sale_id)?.currency;
    rights::allow_all(tx, signature, Right::Refund, &[&BackOfSale { conn: tx, sale_id, amount, currency }])
}

/// Saves a refund of money alone, of a sale that is paid or had no cart. The same intent gives the same operation back.
pub(crate) fn refund(tx: &Connection, signature: &Signature, refund: &Refund) -> Result<Operation, TillError> {
    if outbox::by_intent(tx, refund.intent_id)?.is_none() {
        check_sale(tx, refund)?;
    }
    alone(tx, signature, refund)
}

/// A sale under payment is not given back in parts: what is due of it would not say that anything went back. An amount that was charged
/// with no cart is all that there is of its sale.
fn check_sale(tx: &Connection, refund: &Refund) -> Result<(), TillError> {
    let Some(payment) = outbox::by_key(tx, &refund.payment)? else { return Ok(()) };
    let Some(tender) = tenders::by_id(tx, payment.intent_id)? else { return Ok(()) };
    let sale = sales::by_id(tx, tender.sale_id)?;
    if sale.state == SaleState::Paying && sale.has_cart && tender.state.counts() {
        return Err(TillError::SaleNotCompleted);
    }
    Ok(())
}

/// Saves a refund of money alone: its row, operation and audit entry in one commit, or nothing.
pub(crate) fn alone(tx: &Connection, signature: &Signature, refund: &Refund) -> Result<Operation, TillError> {
    let payment = outbox::by_key(tx, &refund.payment)?.filter(|operation| operation.kind == Kind::Payment);
    let payment = payment.ok_or(TillError::NotFound("payment"))?;
    let tender = tenders::by_id(tx, payment.intent_id)?
        .ok_or_else(|| TillError::Internal(format!("payment {} belongs to no tender", payment.key)))?;
    // What was saved before is given back to whoever asks.
    let signature = &match outbox::by_intent(tx, refund.intent_id)? {
        Some(_) => signature.clone(),
        None => allow(tx, signature, tender.sale_id, refund.amount.get())?,
    };
    let currency = sales::by_id(tx, tender.sale_id)?.currency;
    let Enqueued { operation, existed } = enqueue(tx, signature, refund, None, (&payment.lane, currency))?;
    if existed {
        return operations::show(tx, &operation);
    }
    let left = left_of(tx, &tender)?;
    if refund.amount.get() > left {
        return Err(TillError::OverRefund { amount: refund.amount.get(), left, currency });
    }
    insert(tx, signature, refund, &tender, None)?;
    begun(tx, signature, refund, &tender, &operation)?;
    operations::show(tx, &operation)
}

/// A leg of a return or a void: what goes back to one card.
pub(crate) struct NewLeg<'a> {
    pub(crate) id: Uuid,
    pub(crate) leg_of: LegOf,
    /// The leg that did not go through, in whose place it is.
    pub(crate) replaces: Option<Uuid>,
    pub(crate) tender: &'a TenderRow,
    pub(crate) amount: i64,
}

/// Saves a leg with its operation, which waits for its payment's end.
pub(crate) fn begin_leg(
    tx: &Connection,
    signature: &Signature,
    sale: &SaleRow,
    new: &NewLeg<'_>,
) -> Result<Operation, TillError> {
    let payment = offline::of_tender(tx, new.tender)?.key;
    let amount = Amount::new(new.amount).map_err(|error| TillError::InvalidAmount(error.to_string()))?;
    let refund = Refund { intent_id: new.id, payment, amount };
    let lane = sale.id.to_string();
    let Enqueued { operation, existed } = enqueue(tx, signature, &refund, new.replaces, (&lane, sale.currency))?;
    if existed {
        return Err(TillError::IntentReused("this was already asked for with another refund".to_owned()));
    }
    insert(tx, signature, &refund, new.tender, Some(new))?;
    begun(tx, signature, &refund, new.tender, &operation)?;
    operations::show(tx, &operation)
}

fn insert(
    tx: &Connection,
    signature: &Signature,
    refund: &Refund,
    tender: &TenderRow,
    leg: Option<&NewLeg<'_>>,
) -> Result<(), TillError> {
    let (return_id, void_id) = leg.map_or((None, None), |leg| leg.leg_of.columns());
    tx.prepare_cached(
        "INSERT INTO refunds (id, tender_id, state, amount, return_id, void_id, replaces, created_at, updated_at)
         VALUES (?1, ?2, 'settling', ?3, ?4, ?7, ?5, ?6, ?6)",
    )?
    .execute(params![
        refund.intent_id.to_string(),
        tender.id.to_string(),
        refund.amount.get(),
        return_id,
        leg.and_then(|leg| leg.replaces).map(|id| id.to_string()),
        signature.at.as_millisecond(),
        void_id
    ])?;
    Ok(())
}

fn begun(
    tx: &Connection,
    signature: &Signature,
    refund: &Refund,
    tender: &TenderRow,
    operation: &outbox::Operation,
) -> Result<(), TillError> {
    let details = json!({
        "refund": refund.intent_id, "tender": tender.id, "amount": refund.amount, "payment": refund.payment,
        "key": operation.key, "short_code": operation.short_code,
    });
    audit::append(tx, signature, "refund-begun", Some(tender.sale_id), &details)
}

fn enqueue(
    tx: &Connection,
    signature: &Signature,
    refund: &Refund,
    replaces: Option<Uuid>,
    (lane, currency): (&str, Currency),
) -> Result<Enqueued, TillError> {
    let new = NewOperation {
        intent_id: refund.intent_id,
        replaces,
        lane: lane.to_owned(),
        request: Request::Refund { payment: refund.payment, amount: refund.amount },
    };
    let saved = outbox::enqueue(tx, &new, Key::v7(signature.at, rand::random()), signature.at);
    saved.map_err(|error| match error {
        EnqueueError::IntentReused(_) => {
            TillError::IntentReused("this was already asked for with another amount or payment".to_owned())
        }
        EnqueueError::OverRefund { asked, left } => TillError::OverRefund { amount: asked, left, currency },
        EnqueueError::PaymentUnknown => TillError::NotFound("payment"),
        error @ EnqueueError::NothingToRefund(_) => TillError::NotRefundable(error.to_string()),
        EnqueueError::Sqlite(error) => error.into(),
        error => TillError::Internal(error.to_string()),
    })
}

/// Writes into the refund how far its operation is. Runs in the commit that changed it.
pub(crate) fn settled(
    tx: &Connection,
    signature: &Signature,
    refund: &RefundRow,
    operation: &outbox::Operation,
) -> Result<(), TillError> {
    let state = operations::tender_state(operation.state);
    if state == refund.state {
        return Ok(());
    }
    tx.prepare_cached("UPDATE refunds SET state = ?2, updated_at = ?3 WHERE id = ?1")?.execute(params![
        refund.id.to_string(),
        state.as_str(),
        signature.at.as_millisecond()
    ])?;
    let details = json!({
        "refund": refund.id, "tender": refund.tender_id, "key": operation.key, "short_code": operation.short_code,
        "amount": refund.amount, "before": refund.state.as_str(), "after": state.as_str(),
    });
    let sale_id = tenders::by_id(tx, refund.tender_id)?.map(|tender| tender.sale_id);
    audit::append(tx, signature, "refund-settled", sale_id, &details)
}
