//! The rows of tenders: ways of paying a part of a sale, each with its state.

use crate::{TillError, audit::Signature, columns};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// How a tender pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TenderKind {
    /// By card: the bank decides.
    Card,
    /// In cash.
    Cash,
}

impl TenderKind {
    /// The word in the database and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Card => "card",
            Self::Cash => "cash",
        }
    }

    pub(crate) fn read(word: &str) -> Option<Self> {
        [Self::Card, Self::Cash].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// How far a tender is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TenderState {
    /// A card: the bank has not said its final word. The card may be charged.
    Settling,
    /// A card: charged, once.
    Approved,
    /// A card: not charged, by the bank's word.
    Declined,
    /// A card: not charged, and never will be for this tender.
    Cancelled,
    /// A card: a person must look. It may be charged.
    NeedsAttention,
    /// Cash: in the drawer.
    Taken,
}

impl TenderState {
    const ALL: [Self; 6] =
        [Self::Settling, Self::Approved, Self::Declined, Self::Cancelled, Self::NeedsAttention, Self::Taken];

    /// The word in the database and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Settling => "settling",
            Self::Approved => "approved",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
            Self::NeedsAttention => "needs_attention",
            Self::Taken => "taken",
        }
    }

    pub(crate) fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// It pays, or may still turn out to have paid: what it covers is not due.
    #[must_use]
    pub const fn counts(self) -> bool {
        !matches!(self, Self::Declined | Self::Cancelled)
    }

    /// It has paid.
    #[must_use]
    pub const fn paid(self) -> bool {
        matches!(self, Self::Approved | Self::Taken)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct TenderRow {
    pub(crate) id: Uuid,
    pub(crate) sale_id: Uuid,
    pub(crate) position: i64,
    pub(crate) kind: TenderKind,
    pub(crate) state: TenderState,
    pub(crate) amount: i64,
    pub(crate) tendered: Option<i64>,
    pub(crate) change: Option<i64>,
    /// What the bank was given for a card.
    pub(crate) reference: Option<String>,
    pub(crate) replaces: Option<Uuid>,
    /// The tender that was declined after the goods were gone, and that this one collects again.
    pub(crate) collects: Option<Uuid>,
    pub(crate) created_at: Timestamp,
    /// When its goods were handed over before the bank had answered.
    pub(crate) taken_offline_at: Option<Timestamp>,
}

impl TenderRow {
    /// Nothing more of it is waited for: it has paid, or its goods were handed over all the same.
    pub(crate) fn lets_complete(&self) -> bool {
        self.state.paid() || (self.state.counts() && self.taken_offline_at.is_some())
    }
}

const COLUMNS: &str =
    "tenders.id, sale_id, position, kind, state, amount, tendered, change, reference, replaces, created_at,
    taken_offline.at, collects";
const ROWS: &str = "tenders LEFT JOIN taken_offline ON taken_offline.tender_id = tenders.id";

fn tender(row: &Row<'_>) -> rusqlite::Result<TenderRow> {
    Ok(TenderRow {
        id: columns::uuid(row, 0)?,
        sale_id: columns::uuid(row, 1)?,
        position: row.get(2)?,
        kind: columns::word(row, 3, TenderKind::read)?,
        state: columns::word(row, 4, TenderState::read)?,
        amount: row.get(5)?,
        tendered: row.get(6)?,
        change: row.get(7)?,
        reference: row.get(8)?,
        replaces: columns::optional_uuid(row, 9)?,
        created_at: columns::timestamp(row, 10)?,
        taken_offline_at: columns::optional_timestamp(row, 11)?,
        collects: columns::optional_uuid(row, 12)?,
    })
}

pub(crate) fn by_id(conn: &Connection, id: Uuid) -> Result<Option<TenderRow>, TillError> {
    let found = conn
        .prepare_cached(&format!("SELECT {COLUMNS} FROM {ROWS} WHERE tenders.id = ?1"))?
        .query_row([id.to_string()], tender)
        .optional()?;
    Ok(found)
}

/// The tenders of a sale, in the order in which they were made.
pub(crate) fn of_sale(conn: &Connection, sale: Uuid) -> Result<Vec<TenderRow>, TillError> {
    let mut statement =
        conn.prepare_cached(&format!("SELECT {COLUMNS} FROM {ROWS} WHERE sale_id = ?1 ORDER BY position"))?;
    let rows = statement.query_map([sale.to_string()], tender)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The earliest tender of `tenders` that did not pay and that no other has taken the place of.
pub(crate) fn to_replace(tenders: &[TenderRow]) -> Option<Uuid> {
    let replaced = |id| tenders.iter().any(|other| other.replaces == Some(id));
    tenders.iter().find(|tender| !tender.state.counts() && !replaced(tender.id)).map(|tender| tender.id)
}

pub(crate) fn insert(tx: &Connection, row: &TenderRow) -> Result<(), TillError> {
    tx.prepare_cached(
        "INSERT INTO tenders (id, sale_id, position, kind, state, amount, tendered, change, reference, replaces,
             collects, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?12, ?11, ?11)",
    )?
    .execute(params![
        row.id.to_string(),
        row.sale_id.to_string(),
        row.position,
        row.kind.as_str(),
        row.state.as_str(),
        row.amount,
        row.tendered,
        row.change,
        row.reference,
        row.replaces.map(|id| id.to_string()),
        row.created_at.as_millisecond(),
        row.collects.map(|id| id.to_string())
    ])?;
    Ok(())
}

pub(crate) fn set_state(tx: &Connection, signature: &Signature, id: Uuid, state: TenderState) -> Result<(), TillError> {
    tx.prepare_cached("UPDATE tenders SET state = ?2, updated_at = ?3 WHERE id = ?1")?.execute(params![
        id.to_string(),
        state.as_str(),
        signature.at.as_millisecond()
    ])?;
    Ok(())
}
