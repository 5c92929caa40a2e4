//! The thread that writes: one batch after the other.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use rusqlite::Connection;

use super::batch::{BATCH_MAX, Batch, Turns, run_pieces};
use super::piece::Verdict;
use super::queue::{Queue, Waited};
use super::trust::Trust;
use super::{Done, begin, commit};
use crate::Priority;
use crate::damage::Damage;
use crate::error::StorageError;
use crate::place::Place;

pub(super) struct Thread {
    pub(super) path: PathBuf,
    pub(super) place: Place,
    pub(super) connection: Connection,
    /// There was an error on the connection, so it is to be replaced.
    pub(super) worn: bool,
    pub(super) trust: Trust,
    /// The last batch had clicks, and left all the background work that waited.
    pub(super) passed_over: bool,
    pub(super) done: Arc<Done>,
    pub(super) damage: Damage,
}

impl Thread {
    pub(super) fn batch(&mut self, queue: &Queue, waited: Waited) {
        // In a file that was moved, or that takes nothing durable, an earlier commit may stand that was not told.
        if let Err(error) = self.place.check().and_then(|()| self.prove()) {
            return self.fail(queue, waited, &self.not_run(error));
        }
        if let Err(error) = self.replace_worn().and_then(|()| Ok(begin(&self.connection)?)) {
            // Locked by another program is no reason to distrust the connection.
            self.worn |= !error.is_locked();
            return self.fail(queue, waited, &Verdict::Nothing(error));
        }
        let mut taken = Vec::with_capacity((waited.clicks + waited.background).min(BATCH_MAX));
        let mut turns = Turns::new(waited, self.passed_over);
        let ended = run_pieces(&self.connection, queue, &mut turns, &mut taken);
        self.passed_over = turns.passed_over();
        let verdict = match ended {
            Batch::Open => self.commit(),
            Batch::RolledBack => Verdict::Nothing(StorageError::RolledBack),
            Batch::Ended => self.doubt(StorageError::TransactionEnded),
            Batch::Broken(error) => {
                // What isn't committed never comes back. Locked by another program is no reason to distrust the connection.
                if !(error.is_locked() && self.connection.is_autocommit()) {
                    self.wear_out();
                }
                Verdict::Nothing(error)
            }
        };
        self.note(verdict.trouble());
        if matches!(verdict, Verdict::AsReturned) {
            self.done.pieces.fetch_add(taken.len() as u64, Ordering::Relaxed);
        }
        for (piece, own) in taken {
            piece.answer(own.map_or_else(|| verdict.clone(), Verdict::Nothing));
        }
    }

    fn commit(&mut self) -> Verdict {
        let began = Instant::now();
        match commit(&self.connection) {
            Ok(()) => {
                self.done.commits.fetch_add(1, Ordering::Relaxed);
                let took_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                self.done.commit_ns.fetch_add(took_ns, Ordering::Relaxed);
                self.in_its_place()
            }
            Err(error) => {
                tracing::error!(file = %self.path.display(), %error, "COMMIT failed, the file is opened again");
                self.doubt(error.into())
            }
        }
    }

    /// Whether what was committed just now is where it will be looked for. Where it is not, it is found as soon as the file is back.
    fn in_its_place(&mut self) -> Verdict {
        match self.gone() {
            Some(moved) => {
                tracing::error!(error = %moved, "what was committed is in no file that has a name");
                self.trust = Trust::Doubted;
                Verdict::Untrusted(moved)
            }
            None => Verdict::AsReturned,
        }
    }

    /// Whether file or log is known to be gone, after a commit. That nobody can look just now takes nothing back.
    pub(super) fn gone(&self) -> Option<StorageError> {
        self.place.note_log().err().filter(|error| matches!(error, StorageError::Moved { .. }))
    }

    /// Why a batch did not reach the file; none where it did. Damage stands, whatever the next one comes to.
    fn note(&self, trouble: Option<&StorageError>) {
        if let Some(error) = trouble {
            self.damage.note_of_file(error);
        }
        *self.done.trouble() = trouble.cloned();
    }

    /// Answers the waiting pieces without running them.
    fn fail(&self, queue: &Queue, waited: Waited, verdict: &Verdict) {
        if let Some(error) = verdict.trouble() {
            tracing::warn!(%error, pieces = waited.clicks + waited.background, "nothing could be written");
        }
        self.note(verdict.trouble());
        for (priority, count) in [(Priority::Click, waited.clicks), (Priority::Background, waited.background)] {
            for _ in 0..count {
                if let Some(piece) = queue.pop(priority) {
                    piece.answer(verdict.clone());
                }
            }
        }
    }
}
