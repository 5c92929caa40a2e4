//! What goes through the drawer of the open shift beside the sales, and its counts.

use super::{AMOUNT_MAX, check_amount, check_cash, expected, fault, needed, open_now, reused};
use crate::{
    TillError, audit,
    audit::Signature,
    columns, editing, rights,
    rights::{Measure, Right},
    settings,
};
use jiff::Timestamp;
use protocol::Currency;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

/// What opens the drawer beside a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DrawerMoveKind {
    /// Cash is put in.
    In,
    /// Cash is taken out.
    Out,
    /// It is opened, and nothing moves.
    NoSale,
    /// Cash is given back for goods.
    Refund,
}

impl DrawerMoveKind {
    /// The word in the database and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
            Self::NoSale => "no_sale",
            Self::Refund => "refund",
        }
    }

    fn read(word: &str) -> Option<Self> {
        [Self::In, Self::Out, Self::NoSale, Self::Refund].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Why the drawer is to be opened.
#[derive(Debug, Clone)]
pub enum DrawerOpening {
    /// To put cash in: the amount, in minor units.
    In(i64),
    /// To take cash out: the amount, in minor units.
    Out(i64),
    /// For something else, such as change for a note.
    NoSale,
}

/// Cash to be put in or taken out, or the drawer only to be opened.
#[derive(Debug, Clone)]
pub struct NewDrawerMove {
    /// Names the intent: the same again gives the same move back.
    pub id: Uuid,
    /// What for.
    pub opening: DrawerOpening,
    /// Why, in 1 to 200 characters.
    pub reason: String,
}

/// What went through the drawer beside the sales.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DrawerMove {
    /// Its id.
    pub id: Uuid,
    /// In which shift.
    pub shift: i64,
    /// What it was.
    pub kind: DrawerMoveKind,
    /// In minor units; 0 where nothing moved.
    pub amount: i64,
    /// Why.
    pub reason: String,
    /// Who.
    pub who: String,
    /// Whose PIN approved it.
    pub approved_by: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// What was counted in the drawer, in minor units.
#[derive(Debug, Clone)]
pub enum Count {
    /// All together.
    Total(i64),
    /// By coin and note.
    Pieces(Vec<Pieces>),
}

/// How many there are of one coin or note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Pieces {
    /// What one is worth, in minor units.
    pub value: i64,
    /// How many.
    pub pieces: u32,
}

/// A count of the drawer, with what it should have held: told only now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counted {
    /// Of which shift.
    pub shift: i64,
    /// What was counted.
    pub counted: i64,
    /// What it should hold.
    pub expected: i64,
    /// What is too much, or with a minus missing.
    pub difference: i64,
}

/// A count of the drawer as the report tells of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CountMade {
    /// When.
    pub at: Timestamp,
    /// Who counted.
    pub who: String,
    /// What was counted.
    pub counted: i64,
    /// What was too much then, or with a minus missing.
    pub difference: i64,
}

const MOVE_COLUMNS: &str = "id, shift, kind, amount, reason, who, approved_by, at";

fn drawer_move(row: &Row<'_>) -> rusqlite::Result<DrawerMove> {
    Ok(DrawerMove {
        id: columns::uuid(row, 0)?,
        shift: row.get(1)?,
        kind: columns::word(row, 2, DrawerMoveKind::read)?,
        amount: row.get(3)?,
        reason: row.get(4)?,
        who: row.get(5)?,
        approved_by: row.get(6)?,
        at: columns::timestamp(row, 7)?,
    })
}

/// One move.
pub(crate) fn move_by_id(conn: &Connection, id: Uuid) -> Result<Option<DrawerMove>, TillError> {
    let found = conn
        .prepare_cached(&format!("SELECT {MOVE_COLUMNS} FROM drawer_moves WHERE id = ?1"))?
        .query_row([id.to_string()], drawer_move)
        .optional()?;
    Ok(found)
}

/// What went through the drawer of a shift beside the sales, oldest first.
pub(crate) fn moves(conn: &Connection, number: i64) -> Result<Vec<DrawerMove>, TillError> {
    let mut statement =
        conn.prepare_cached(&format!("SELECT {MOVE_COLUMNS} FROM drawer_moves WHERE shift = ?1 ORDER BY at, id"))?;
    let rows = statement.query_map([number], drawer_move)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Opens the drawer beside a sale. The same id gives the same move back.
pub(crate) fn make_move(tx: &Connection, signature: &Signature, new: &NewDrawerMove) -> Result<DrawerMove, TillError> {
    let (kind, amount, what) = match new.opening {
        DrawerOpening::In(amount) => (DrawerMoveKind::In, amount, "cash-in"),
        DrawerOpening::Out(amount) => (DrawerMoveKind::Out, amount, "cash-out"),
        DrawerOpening::NoSale => (DrawerMoveKind::NoSale, 0, "drawer-opened"),
    };
    let reason = editing::needed_reason(&new.reason)?;
    if let Some(done) = move_by_id(tx, new.id)? {
        let is_same = (done.kind, done.amount, &done.reason) == (kind, amount, &reason);
        return if is_same { Ok(done) } else { Err(reused()) };
    }
    let shift = needed(tx)?;
    let signature = &match new.opening {
        DrawerOpening::In(_) => signature.clone(),
        DrawerOpening::Out(_) => rights::allow_amount(tx, signature, Right::CashOut, (amount, shift.currency))?,
        DrawerOpening::NoSale => rights::allow(tx, signature, Right::NoSale, Measure::Whole)?,
    };
    if kind != DrawerMoveKind::NoSale {
        check_amount(amount, 1, &settings::read(tx)?)?;
    }
    if kind == DrawerMoveKind::Out && amount > expected(tx, shift.number)? {
        return Err(TillError::InvalidAmount("this is more than the drawer should hold: count it".to_owned()));
    }
    tx.prepare_cached(
        "INSERT INTO drawer_moves (id, shift, kind, amount, reason, who, approved_by, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        new.id.to_string(),
        shift.number,
        kind.as_str(),
        amount,
        reason,
        signature.who(),
        signature.approver.as_ref().map(|person| &person.name),
        signature.at.as_millisecond()
    ])?;
    let details =
        json!({"shift": shift.number, "move": new.id, "amount": amount, "currency": shift.currency, "reason": reason});
    audit::append(tx, signature, what, None, &details)?;
    move_by_id(tx, new.id)?.ok_or_else(|| TillError::Internal("a move of the drawer was not saved".to_owned()))
}

/// Takes cash out of the drawer that is given back for goods. Before there were shifts there is no drawer to take it from; afterwards it is
/// that of the open one.
pub(crate) fn give_back(
    tx: &Connection,
    signature: &Signature,
    id: Uuid,
    amount: i64,
    currency: Currency,
) -> Result<(), TillError> {
    check_cash(tx, currency)?;
    let Some(shift) = open_now(tx)?.filter(|_| amount > 0) else { return Ok(()) };
    if amount > expected(tx, shift.number)? {
        return Err(TillError::InvalidAmount("this is more than the drawer should hold: count it".to_owned()));
    }
    tx.prepare_cached(
        "INSERT INTO drawer_moves (id, shift, kind, amount, reason, who, approved_by, at) VALUES (?1, ?2, 'refund', ?3, 'refund', ?4, ?5, ?6)",
    )?
    .execute(params![
        id.to_string(),
        shift.number,
        amount,
        signature.who(),
        signature.approver.as_ref().map(|person| &person.name),
        signature.at.as_millisecond()
    ])?;
    Ok(())
}

/// Saves a count of the open shift's drawer, and only then tells what it should hold. Counted again, both stand in the file and on the report.
pub(crate) fn count(tx: &Connection, signature: &Signature, count: &Count) -> Result<Counted, TillError> {
    let signature = &rights::allow(tx, signature, Right::CloseShift, Measure::Whole)?;
    let shift = needed(tx)?;
    let (counted, pieces) = match count {
        Count::Total(total) => (Some(*total), None),
        Count::Pieces(pieces) => (worth(pieces), Some(serde_json::to_value(pieces).map_err(fault)?)),
    };
    let counted = counted
        .filter(|counted| (0..=AMOUNT_MAX).contains(counted))
        .ok_or_else(|| TillError::InvalidAmount("this is no amount that a drawer holds".to_owned()))?;
    let expected = expected(tx, shift.number)?;
    tx.prepare_cached(
        "INSERT INTO drawer_counts (shift, counted, expected, pieces, who, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        shift.number,
        counted,
        expected,
        pieces.as_ref().map(ToString::to_string),
        signature.who(),
        signature.at.as_millisecond()
    ])?;
    let difference = counted - expected;
    let details = json!({
        "shift": shift.number, "counted": counted, "expected": expected, "difference": difference, "currency": shift.currency,
        "pieces": pieces,
    });
    audit::append(tx, signature, "drawer-counted", None, &details)?;
    Ok(Counted { shift: shift.number, counted, expected, difference })
}

/// The counts of a shift's drawer, the first one first.
pub(crate) fn counts(conn: &Connection, number: i64) -> Result<Vec<CountMade>, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT at, who, counted, counted - expected FROM drawer_counts WHERE shift = ?1 ORDER BY id",
    )?;
    let rows = statement.query_map([number], |row| {
        Ok(CountMade {
            at: columns::timestamp(row, 0)?,
            who: row.get(1)?,
            counted: row.get(2)?,
            difference: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What coins and notes are worth together, if that is an amount.
fn worth(pieces: &[Pieces]) -> Option<i64> {
    pieces.iter().try_fold(0_i64, |sum, Pieces { value, pieces }| {
        let worth = (*value > 0).then(|| value.checked_mul(i64::from(*pieces))).flatten()?;
        sum.checked_add(worth)
    })
}
