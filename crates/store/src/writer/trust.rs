//! Whether what the file shows is durable.
//!
//! A COMMIT that fails may leave all of its pages in the write-ahead log, where nobody reads them now and the next start
//! would find them. So after one nobody is told anything, and nothing more is run, before a commit that writes over them is
//! durable. While none is, the file can't be trusted, and that is what everybody is told.

use std::sync::Arc;

use rusqlite::Connection;

use super::piece::Verdict;
use super::thread::Thread;
use super::{begin, commit, rollback};
use crate::error::StorageError;
use crate::pragmas;

/// What is known of the commits that the file shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// All of them are durable.
    Proven,
    /// It was just opened. What its log brought back may stand in the system's memory alone, after a sync that failed; and what stands
    /// in a log that was there may come back only at a later start, as SQLite reads it anew only for the first who opens the file.
    Opened {
        /// Whether there was nothing in its log: then nothing can come back.
        log_was_empty: bool,
    },
    /// A COMMIT failed.
    Doubted,
}

impl Thread {
    /// What is known of a piece that did not run, and of the same one asked for before.
    pub(super) fn not_run(&self, error: StorageError) -> Verdict {
        match self.trust {
            Trust::Proven => Verdict::Nothing(error),
            Trust::Opened { log_was_empty: true } => Verdict::Unproven(error),
            Trust::Opened { log_was_empty: false } | Trust::Doubted => Verdict::Untrusted(error),
        }
    }

    /// Nobody knows what of the transaction is in the file: brings it into a state that a look can be trusted in.
    pub(super) fn doubt(&mut self, error: StorageError) -> Verdict {
        self.trust = Trust::Doubted;
        self.wear_out();
        match self.prove() {
            Ok(()) => Verdict::Unknown(error),
            Err(still) => {
                self.damage.note_of_file(&still);
                tracing::error!(error = %still, "the file takes no durable write, nothing can be said of what it holds");
                Verdict::Untrusted(error)
            }
        }
    }

    /// The connection is used no more: lets go of its transaction, and replaces it now or later.
    pub(super) fn wear_out(&mut self) {
        self.worn = true;
        if !self.connection.is_autocommit() {
            // Where that fails, closing the connection does it.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        // Where that fails, whoever writes next tries again, and is told.
        let _ = self.replace_worn();
    }

    /// The new connection is there before the old one goes: the last one to go takes the log's index along, and the next one
    /// would make it anew from all that stands in the log, a commit that failed included.
    pub(super) fn replace_worn(&mut self) -> Result<(), StorageError> {
        if self.worn {
            // None but the file that was opened first; not even for a moment, as the last to close a file tidies it up.
            self.place.check()?;
            let opened = pragmas::open_writer(&self.path).map_err(|error| StorageError::Reopen(Arc::new(error)))?;
            self.place.check()?;
            self.connection = opened;
            self.worn = false;
        }
        Ok(())
    }

    /// Proves the file before anybody waits for it, where no other program holds it. Where it is held, or fails, whoever writes
    /// next waits for it, and is told.
    pub(super) fn prove_early(&mut self) {
        let asked = pragmas::without_waiting(&self.connection, take_and_let_go).map_err(StorageError::from);
        match asked.and_then(|()| self.prove()) {
            Err(error) if !error.is_locked() => {
                self.damage.note_of_file(&error);
                tracing::error!(%error, "the file takes no durable write");
            }
            _ => {}
        }
    }

    /// Makes sure that what the file shows is durable, and that nothing else can come back.
    pub(super) fn prove(&mut self) -> Result<(), StorageError> {
        if self.trust == Trust::Proven {
            return Ok(());
        }
        let proven = self.replace_worn().and_then(|()| {
            if matches!(self.trust, Trust::Opened { .. }) {
                // A file that is held is found out by one wait, and not by one for the log and another for the commit.
                take_and_let_go(&self.connection)?;
                // A reader may keep it from being emptied: that costs nobody a wait.
                pragmas::without_waiting(&self.connection, empty_log)?;
            }
            commit_header(&self.connection)?;
            self.gone().map_or(Ok(()), Err)
        });
        match &proven {
            Ok(()) => self.trust = Trust::Proven,
            // Nothing is wrong with the connection.
            Err(StorageError::Moved { .. } | StorageError::NotSeen { .. }) => {}
            Err(error) if error.is_locked() => {}
            Err(_) => self.wear_out(),
        }
        proven
    }
}

/// Finds out whether another program keeps this one from writing.
fn take_and_let_go(connection: &Connection) -> rusqlite::Result<()> {
    begin(connection)?;
    rollback(connection)
}

/// Copies what the log holds into the file itself. A sync that failed once may count as done with the system ever after, though
/// the log's pages are on no disk; copied, they are written anew. Another program that reads just now may keep it from being
/// emptied, and then it is left to later checkpoints.
fn empty_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// A commit that writes: in the log it takes the place of one that failed, whose rest means nothing then.
fn commit_header(connection: &Connection) -> rusqlite::Result<()> {
    begin(connection)?;
    pragmas::rewrite_header(connection)?;
    commit(connection)
}
