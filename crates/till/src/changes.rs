//! What changed since a place in the log of attempts: for a listener that missed events.

use crate::{Operation, Till, TillError, clock, operations};
use outbox::BankIdentity;
use protocol::Key;
use rusqlite::Connection;

/// After how many told changes a listener's place moves on: more than any queue of events holds, so that what is not told by
/// then was told as missed.
const TOLD_MAX: u32 = 8_192;

/// What changed, and how far the log was read for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes {
    /// The operations as they are now, each once, in the order of their last change.
    pub operations: Vec<Operation>,
    /// The place in the log up to which this is.
    pub up_to: i64,
    /// Whether the log goes on.
    pub more: bool,
}

impl Till {
    /// The end of the log of changes, for [`Till::changed_since`].
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn last_change(&self) -> Result<i64, TillError> {
        self.read(|conn| Ok(outbox::last_change(conn)?)).await
    }

    /// What changed after a place in the log.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn changed_since(&self, place: i64) -> Result<Changes, TillError> {
        self.read(move |conn| since(conn, place)).await
    }

    /// The bank that is asked now, once it has said who it is and while nothing is in the way of asking it.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn bank_asked(&self) -> Result<Option<BankIdentity>, TillError> {
        self.read(|conn| Ok(outbox::bank_asked(conn)?)).await
    }
}

/// What somebody asks who waits until everything is settled.
impl Till {
    /// How many operations that were cancelled here the bank is still to be told of: those of the bank that is asked now, once it
    /// has said who it is; else all.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn cancelled_to_tell(&self) -> Result<u32, TillError> {
        self.read(|conn| match outbox::bank_asked(conn)? {
            Some(bank) => Ok(outbox::tombstones_for(conn, &bank)?),
            None => Ok(outbox::summary(conn, clock::now())?.tombstones),
        })
        .await
    }

    /// How often settling was started on this file: what it says of the bank before the next start is an earlier one's.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn starts(&self) -> Result<i64, TillError> {
        self.read(|conn| Ok(outbox::starts(conn)?)).await
    }

    /// The place in the log of the last thing that the bank said of an operation; none where it never said anything.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn last_answer(&self, key: Key) -> Result<Option<i64>, TillError> {
        self.read(move |conn| Ok(outbox::last_answer(conn, &key)?)).await
    }
}

fn since(conn: &Connection, place: i64) -> Result<Changes, TillError> {
    let outbox::Changes { operations, up_to, more } = outbox::changed_since(conn, place)?;
    let operations = operations.iter().map(|operation| operations::show(conn, operation)).collect::<Result<_, _>>()?;
    Ok(Changes { operations, up_to, more })
}

/// A listener's place in the log, to catch up from where events were missed.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Everything up to here was told.
    from: i64,
    /// The end of the log some time ago, from where on `told` counts.
    mark: i64,
    told: u32,
}

impl Place {
    /// Begins at a place of the log: see [`Till::last_change`].
    #[must_use]
    pub fn at(place: i64) -> Self {
        Self { from: place, mark: place, told: 0 }
    }

    /// Where to catch up from. Some of it may have been told.
    #[must_use]
    pub fn to_catch_up_from(&self) -> i64 {
        self.from
    }

    /// Counts a change that was told, and moves on now and then. An event comes a moment after its row, in another order
    /// perhaps, and waits behind others: so the place is always one that more events lie behind than can wait.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn told_one(&mut self, till: &Till) -> Result<(), TillError> {
        self.told += 1;
        if self.told >= TOLD_MAX {
            let mark = till.last_change().await?;
            *self = Self { from: self.mark, mark, told: 0 };
        }
        Ok(())
    }
}
