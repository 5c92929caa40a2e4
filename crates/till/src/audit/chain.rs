//! The chain of the audit: what an entry's hash is made of, and the walk that finds the first break in it.
//!
//! The hash of an entry is the SHA-256 of these bytes, one after the other, and so of everything that came before it:
//!
//! 1. the hash of the entry before it, 32 bytes (zeros before the first);
//! 2. `seq`, `at` and `offset_s`, each a signed 64-bit integer, most significant byte first;
//! 3. `app_version`, `who`, `person_id`, `approved_by`, `approver_id`, `what`, `sale_id` and `details`, in this order: the byte 0 where
//!    the column is NULL, else the byte 1 and then the value: an integer as above, a text as its length in bytes (so as above) and its
//!    UTF-8 as it stands in the file.
//!
//! No two rows have the same bytes: every part has its length before it or a fixed one. What the chain can't show is a file whose
//! entries were all made anew with the right hashes: for that the head is printed on each Z report, on paper.

use crate::TillError;
use rusqlite::{
    Connection, Error, Row,
    functions::{Context, FunctionFlags},
};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// A link of the chain.
pub(super) type Hash = [u8; 32];

/// Entries between two words on the progress.
const PROGRESS_ENTRIES: i64 = 10_000;

/// What of an entry is hashed: all its columns but the two hashes.
pub(super) struct Columns<'a> {
    pub(super) seq: i64,
    pub(super) at: i64,
    pub(super) offset_s: i64,
    pub(super) app_version: Option<&'a str>,
    pub(super) who: &'a str,
    pub(super) person_id: Option<i64>,
    pub(super) approved_by: Option<&'a str>,
    pub(super) approver_id: Option<i64>,
    pub(super) what: &'a str,
    pub(super) sale_id: Option<&'a str>,
    pub(super) details: &'a str,
}

impl Columns<'_> {
    pub(super) fn hash(&self, previous: &Hash) -> Hash {
        let mut hasher = Sha256::new();
        hasher.update(previous);
        for number in [self.seq, self.at, self.offset_s] {
            hasher.update(number.to_be_bytes());
        }
        text(&mut hasher, self.app_version);
        text(&mut hasher, Some(self.who));
        number(&mut hasher, self.person_id);
        text(&mut hasher, self.approved_by);
        number(&mut hasher, self.approver_id);
        text(&mut hasher, Some(self.what));
        text(&mut hasher, self.sale_id);
        text(&mut hasher, Some(self.details));
        hasher.finalize().into()
    }
}

fn number(hasher: &mut Sha256, value: Option<i64>) {
    hasher.update([u8::from(value.is_some())]);
    if let Some(value) = value {
        hasher.update(value.to_be_bytes());
    }
}

fn text(hasher: &mut Sha256, value: Option<&str>) {
    hasher.update([u8::from(value.is_some())]);
    if let Some(value) = value {
        // A text in a SQLite file is shorter than 2^31.
        hasher.update(i64::try_from(value.len()).unwrap_or(i64::MAX).to_be_bytes());
        hasher.update(value.as_bytes());
    }
}

/// Gives a connection the function by which the entries of older files are chained.
pub(crate) fn register_hash(conn: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_DIRECTONLY;
    conn.create_scalar_function("audit_hash", 12, flags, |call| Ok(hash_of_call(call)?.to_vec()))
}

fn hash_of_call(call: &Context<'_>) -> rusqlite::Result<Hash> {
    let previous = call.get::<Hash>(0)?;
    let optional = |index| call.get::<Option<String>>(index);
    let (app_version, approved_by, sale_id) = (optional(4)?, optional(7)?, optional(10)?);
    let (who, what, details) = (call.get::<String>(5)?, call.get::<String>(9)?, call.get::<String>(11)?);
    let columns = Columns {
        seq: call.get(1)?,
        at: call.get(2)?,
        offset_s: call.get(3)?,
        app_version: app_version.as_deref(),
        who: &who,
        person_id: call.get(6)?,
        approved_by: approved_by.as_deref(),
        approver_id: call.get(8)?,
        what: &what,
        sale_id: sale_id.as_deref(),
        details: &details,
    };
    Ok(columns.hash(&previous))
}

/// How far the walk along the chain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainProgress {
    /// Entries looked at.
    pub checked: i64,
    /// Entries that the head says there are.
    pub of: i64,
}

/// What the walk found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ChainCheck {
    /// Entries that are right, from the first on.
    pub entries: i64,
    /// The first thing that is wrong; none where all is whole.
    pub broken: Option<Break>,
}

/// Where the chain is broken first, by the place of the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Break {
    /// The entry is not what was written: its hash is of something else.
    Changed {
        /// Its place.
        seq: i64,
    },
    /// The entry is not there, and later ones are.
    Removed {
        /// Its place.
        seq: i64,
    },
    /// The entry is one that was written at another place.
    Moved {
        /// Where it stands.
        seq: i64,
    },
    /// The entry is whole in itself and does not follow the one before it: one of the two was made anew.
    Unlinked {
        /// Its place.
        seq: i64,
    },
    /// The entries after this place are gone.
    TailCut {
        /// The last that is there.
        seq: i64,
        /// The last that was written.
        head: i64,
    },
    /// The head is not the last entry's: it names an earlier one, or another hash, or is not there.
    HeadForged {
        /// The last entry that is there.
        seq: i64,
    },
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { seq } => write!(f, "audit entry {seq} was changed after it was written"),
            Self::Removed { seq } => write!(f, "audit entry {seq} was removed"),
            Self::Moved { seq } => write!(f, "audit entry {seq} was written at another place: entries were reordered"),
            Self::Unlinked { seq } => {
                write!(f, "audit entry {seq} does not follow the one before it: one of them was replaced")
            }
            Self::TailCut { seq, head } => {
                write!(f, "the audit ends at entry {seq}, and {head} were written: its tail was cut off")
            }
            Self::HeadForged { seq } => write!(f, "the audit's head does not fit its last entry, {seq}: it was forged"),
        }
    }
}

/// Walks the chain from its first entry to its head. One row is held in memory at a time, however many there are.
pub(crate) fn check(conn: &Connection, mut progress: impl FnMut(ChainProgress)) -> Result<ChainCheck, TillError> {
    let head = head(conn)?;
    let of = head.map_or(0, |(seq, _)| seq);
    let (mut last, mut previous) = (0, Hash::default());
    let mut statement = conn.prepare_cached(
        "SELECT seq, at, offset_s, app_version, who, person_id, approved_by, approver_id, what, sale_id, details, previous, hash
         FROM audit ORDER BY seq",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let link = match link(row) {
            Ok(link) => link,
            // No text, or no hash, where one was written.
            Err(Error::FromSqlConversionFailure(..) | Error::InvalidColumnType(..) | Error::Utf8Error(..)) => {
                return Ok(ChainCheck { entries: last, broken: Some(Break::Changed { seq: last + 1 }) });
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(broken) = broken(conn, &link, last, &previous)? {
            return Ok(ChainCheck { entries: last, broken: Some(broken) });
        }
        (last, previous) = (link.seq, link.hash);
        if last % PROGRESS_ENTRIES == 0 {
            progress(ChainProgress { checked: last, of });
        }
    }
    progress(ChainProgress { checked: last, of });
    let broken = match head {
        Some(head) if head == (last, previous) => None,
        Some((head, _)) if head > last => Some(Break::TailCut { seq: last, head }),
        _ => Some(Break::HeadForged { seq: last }),
    };
    Ok(ChainCheck { entries: last, broken })
}

/// Where the chain is said to end.
pub(super) fn head(conn: &Connection) -> Result<Option<(i64, Hash)>, TillError> {
    let mut statement = conn.prepare_cached("SELECT seq, hash FROM audit_head")?;
    let mut rows = statement.query([])?;
    let head = rows.next()?.map(|row| Ok::<_, Error>((row.get(0)?, row.get(1)?))).transpose()?;
    Ok(head)
}

/// A row, with what its hash should be.
struct Link {
    seq: i64,
    previous: Hash,
    hash: Hash,
    computed: Hash,
}

fn link(row: &Row<'_>) -> rusqlite::Result<Link> {
    let previous = row.get(11)?;
    let text = |index: usize| row.get_ref(index).map(|value| value.as_str_or_null());
    let columns = Columns {
        seq: row.get(0)?,
        at: row.get(1)?,
        offset_s: row.get(2)?,
        app_version: text(3)??,
        who: text(4)??.unwrap_or_default(),
        person_id: row.get(5)?,
        approved_by: text(6)??,
        approver_id: row.get(7)?,
        what: text(8)??.unwrap_or_default(),
        sale_id: text(9)??,
        details: text(10)??.unwrap_or_default(),
    };
    Ok(Link { seq: columns.seq, previous, hash: row.get(12)?, computed: columns.hash(&previous) })
}

/// What is wrong with an entry, as the one that follows `last`.
fn broken(conn: &Connection, link: &Link, last: i64, previous: &Hash) -> Result<Option<Break>, TillError> {
    let &Link { seq, .. } = link;
    let is_whole = link.computed == link.hash;
    Ok(if seq != last + 1 {
        Some(Break::Removed { seq: last + 1 })
    } else if is_whole && link.previous == *previous {
        None
    } else if is_whole {
        Some(Break::Unlinked { seq })
    } else if link.previous != *previous && follows_another(conn, link)? {
        Some(Break::Moved { seq })
    } else {
        Some(Break::Changed { seq })
    })
}

/// Whether the entry follows another one of the file than the one before it. Looks through all of it: once, at a break.
fn follows_another(conn: &Connection, link: &Link) -> Result<bool, TillError> {
    let mut statement = conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM audit WHERE hash = ?1 AND seq <> ?2)")?;
    Ok(statement.query_row((link.previous, link.seq), |row| row.get(0))?)
}
