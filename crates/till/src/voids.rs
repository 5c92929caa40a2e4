//! Sales that are given up after a part was paid: all of that goes back, each card by an operation of its own, the cash out of the
//! drawer, and the sale ends. The decision is one commit; a refund to a card settles by itself, also after a payment that was taken
//! offline and is open still. Of a card that may be charged, and nobody took the risk of, nothing is decided: the bank has its word first.

use crate::{
    ReturnLeg, ReturnState, SaleState, TenderKind, TenderState, TillError, audit,
    audit::Signature,
    clock, columns, editing, receipt, refunds,
    refunds::{LegOf, NewLeg},
    returns,
    returns::CashOut,
    sales,
    sales::SaleRow,
    span::Span,
    tenders,
    tenders::TenderRow,
};
use jiff::Timestamp;
use protocol::Currency;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

/// A partly paid sale to be given up.
#[derive(Debug, Clone)]
pub struct NewVoid {
    /// The id given when the dialog opened: however often it is clicked, it is one void.
    pub id: Uuid,
    /// The sale.
    pub sale_id: Uuid,
    /// Why, in at most 200 characters.
    pub reason: Option<String>,
}

/// What giving a sale up would give back. Nothing of it is saved. Amounts in minor units of the sale's currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PricedVoid {
    /// An id for it: whatever is clicked in this dialog, and how often, is this one void.
    pub void_id: Uuid,
    /// To cards.
    pub cards: i64,
    /// Out of the drawer.
    pub cash: i64,
    /// The currency of both.
    pub currency: Currency,
}

/// A sale that was given up after a part was paid. Amounts in minor units.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SaleVoid {
    /// Its id.
    pub id: Uuid,
    /// The sale.
    pub sale_id: Uuid,
    /// That sale's number.
    pub sale_number: Option<i64>,
    /// What goes back to cards.
    pub cards: i64,
    /// What was handed over in cash.
    pub cash: i64,
    /// The currency of every amount here.
    pub currency: Currency,
    /// How it goes back: to cards in the order in which they paid, then in cash, then what was tried again or paid out.
    pub legs: Vec<ReturnLeg>,
    /// How far it is.
    pub state: ReturnState,
    /// Why.
    pub reason: Option<String>,
    /// When.
    pub created_at: Timestamp,
}

/// What was given up after a part was paid, in a shift. Amounts in minor units of its currency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VoidFigures {
    /// How many sales.
    pub voids: i64,
    /// What went back to cards, whatever the bank says of it.
    pub cards: i64,
    /// What was handed over in cash.
    pub cash: i64,
}

/// What goes back of a sale.
struct Plan {
    cards: Vec<(TenderRow, i64)>,
    cash: i64,
}

impl Plan {
    fn to_cards(&self) -> i64 {
        self.cards.iter().map(|(_, amount)| amount).sum()
    }
}

fn plan(conn: &Connection, sale: &SaleRow) -> Result<Plan, TillError> {
    let changed = |why: &str| Err(TillError::SaleChanged(why.to_owned()));
    match sale.state {
        SaleState::Paying => {}
        SaleState::Open => return changed("nothing of this sale is paid: drop it"),
        SaleState::Completed => return changed("this sale is completed: its goods are taken back instead"),
        SaleState::Dropped => return changed("this sale was dropped"),
        SaleState::Voided => return Err(TillError::AlreadyFinal("this sale was voided".to_owned())),
    }
    let rows = tenders::of_sale(conn, sale.id)?;
    if !rows.iter().any(|tender| tender.state.counts()) {
        return changed("nothing of this sale is paid: go back to the cart, or drop it");
    }
    if let Some(open) = rows.iter().find(|tender| tender.state.counts() && !tender.lets_complete()) {
        return Err(match open.state {
            TenderState::NeedsAttention => {
                TillError::NeedsLook("somebody must look at a payment of this sale first: the card may be charged".to_owned())
            }
            _ => TillError::CardMayBeCharged(
                "a payment of this sale is open, and its card may be charged: wait for the bank, or cancel that payment first"
                    .to_owned(),
            ),
        });
    }
    let mut cards = Vec::new();
    for tender in rows.iter().filter(|tender| tender.kind == TenderKind::Card && tender.state.counts()) {
        let left = refunds::left_of(conn, tender)?;
        if left > 0 {
            cards.push((tender.clone(), left));
        }
    }
    let cash = rows.iter().filter(|tender| tender.kind == TenderKind::Cash).map(|tender| tender.amount).sum();
    Ok(Plan { cards, cash })
}

/// What giving a sale up would give back.
pub(crate) fn begin(conn: &Connection, sale_id: Uuid) -> Result<PricedVoid, TillError> {
    let sale = sales::by_id(conn, sale_id)?;
    let plan = plan(conn, &sale)?;
    Ok(PricedVoid { void_id: clock::new_id(), cards: plan.to_cards(), cash: plan.cash, currency: sale.currency })
}

/// Gives a sale up: a refund for each card that paid, the cash, and the end of the sale, in one commit or not at all. The same id gives
/// the same void back.
pub(crate) fn make(tx: &Connection, signature: &Signature, new: &NewVoid) -> Result<SaleVoid, TillError> {
    if let Some(done) = by(tx, "id", new.id)? {
        let reused = || TillError::IntentReused("another sale was voided by this".to_owned());
        return if done.sale_id == new.sale_id { Ok(done) } else { Err(reused()) };
    }
    let reason = new.reason.as_deref().map(|reason| editing::checked_text(reason, "reason", editing::REASON_CHARS_MAX));
    let reason = reason.transpose()?.flatten();
    let sale = sales::by_id(tx, new.sale_id)?;
    let plan = plan(tx, &sale)?;
    let (cards, cash) = (plan.to_cards(), plan.cash);
    let signature = &refunds::allow(tx, signature, sale.id, cards + cash)?;
    let leg_of = LegOf::Void(new.id);
    let mut legs = Vec::new();
    for (tender, amount) in &plan.cards {
        let id = clock::id_at(signature.at);
        let leg = NewLeg { id, leg_of, replaces: None, tender, amount: *amount };
        let operation = refunds::begin_leg(tx, signature, &sale, &leg)?;
        legs.push(json!({"refund": id, "tender": tender.id, "amount": amount, "key": operation.key}));
    }
    if cash > 0 {
        let id = clock::id_at(signature.at);
        let out = CashOut { id, leg_of, instead_of: None, amount: cash, rounding: 0 };
        returns::hand_over(tx, signature, sale.currency, &out)?;
        legs.push(json!({"cash": id, "amount": cash}));
    }
    // Last: it closes what was saved before it, ends the sale, and the file checks that all that was paid goes back.
    tx.prepare_cached(
        "INSERT INTO voids (id, sale_id, cards, cash, reason, created_at, shift)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, (SELECT number FROM shift_now))",
    )?
    .execute(params![
        new.id.to_string(),
        sale.id.to_string(),
        cards,
        cash,
        reason,
        signature.at.as_millisecond()
    ])?;
    let details = json!({
        "void": new.id, "sale": sale.number, "cards": cards, "cash": cash, "currency": sale.currency, "legs": legs, "reason": reason,
    });
    receipt::keep_head(tx, new.id)?;
    audit::append(tx, signature, "sale-voided", Some(sale.id), &details)?;
    by(tx, "id", new.id)?.ok_or_else(|| TillError::Internal("a void was not saved".to_owned()))
}

/// The void of an id.
pub(crate) fn by_id(conn: &Connection, id: Uuid) -> Result<Option<SaleVoid>, TillError> {
    by(conn, "id", id)
}

/// The void of a sale.
pub(crate) fn of_sale(conn: &Connection, sale_id: Uuid) -> Result<Option<SaleVoid>, TillError> {
    by(conn, "sale_id", sale_id)
}

/// The voids of which a card did not get its part, and nobody has done anything about it, oldest first.
pub(crate) fn owed(conn: &Connection) -> Result<Vec<SaleVoid>, TillError> {
    refunds::owed(conn, "void_id")?.into_iter().filter_map(|id| by_id(conn, id).transpose()).collect()
}

struct VoidRow {
    id: Uuid,
    sale_id: Uuid,
    cards: i64,
    cash: i64,
    reason: Option<String>,
    created_at: Timestamp,
}

fn void_row(row: &Row<'_>) -> rusqlite::Result<VoidRow> {
    Ok(VoidRow {
        id: columns::uuid(row, 0)?,
        sale_id: columns::uuid(row, 1)?,
        cards: row.get(2)?,
        cash: row.get(3)?,
        reason: row.get(4)?,
        created_at: columns::timestamp(row, 5)?,
    })
}

fn by(conn: &Connection, column: &str, id: Uuid) -> Result<Option<SaleVoid>, TillError> {
    let found = conn
        .prepare_cached(&format!("SELECT id, sale_id, cards, cash, reason, created_at FROM voids WHERE {column} = ?1"))?
        .query_row([id.to_string()], void_row)
        .optional()?;
    let Some(VoidRow { id, sale_id, cards, cash, reason, created_at }) = found else { return Ok(None) };
    let sale = sales::by_id(conn, sale_id)?;
    let legs = returns::legs(conn, LegOf::Void(id))?;
    let (sale_number, currency, state) = (sale.number, sale.currency, returns::state(&legs));
    Ok(Some(SaleVoid { id, sale_id, sale_number, cards, cash, currency, legs, state, reason, created_at }))
}

/// What was given up in a shift, in one currency.
pub(crate) fn of_shift(conn: &Connection, currency: Currency, shift: i64) -> Result<VoidFigures, TillError> {
    let span = Span::Shift(shift);
    let (from, to) = span.ends();
    let within = span.within("voids.created_at", "voids.shift");
    Ok(conn
        .prepare_cached(&format!(
            "SELECT count(*), coalesce(sum(voids.cards), 0), coalesce(sum(voids.cash), 0)
             FROM voids JOIN sales ON sales.id = voids.sale_id WHERE {within} AND sales.currency = ?3"
        ))?
        .query_row(params![from, to, currency.code()], |row| {
            Ok(VoidFigures { voids: row.get(0)?, cards: row.get(1)?, cash: row.get(2)? })
        })?)
}
