//! A piece of work on the file, and what its caller is told of it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::Connection;

use crate::damage::Damage;
use crate::error::{StorageError, WriteError, panic_message};

/// What the caller is told of its piece once the batch is over.
#[derive(Clone)]
pub(super) enum Verdict {
    /// What it returned: its COMMIT is durable, or it refused by itself.
    AsReturned,
    /// Nothing of it is in the file.
    Nothing(StorageError),
    /// It may be in the file; a look finds out.
    Unknown(StorageError),
    /// Nothing of it is in the file, and what a look finds there may be on no disk.
    Unproven(StorageError),
    /// It may be in the file, or come into it at the next start; a look proves nothing.
    Untrusted(StorageError),
}

impl Verdict {
    pub(super) fn trouble(&self) -> Option<&StorageError> {
        match self {
            Verdict::AsReturned => None,
            Verdict::Nothing(error)
            | Verdict::Unproven(error)
            | Verdict::Unknown(error)
            | Verdict::Untrusted(error) => Some(error),
        }
    }
}

/// What became of a piece's own run.
pub(super) enum Ran {
    Done,
    Refused,
    Panicked(StorageError),
}

pub(super) trait Piece: Send {
    fn run(&mut self, connection: &Connection) -> Ran;
    fn answer(self: Box<Self>, verdict: Verdict);
}

pub(super) struct Typed<T, E, F, A> {
    work: Option<F>,
    result: Option<Result<T, E>>,
    damage: Damage,
    answer: A,
}

impl<T, E, F, A> Typed<T, E, F, A> {
    pub(super) fn new(work: F, damage: Damage, answer: A) -> Typed<T, E, F, A> {
        Typed { work: Some(work), result: None, damage, answer }
    }
}

impl<T, E, F, A> Piece for Typed<T, E, F, A>
where
    T: Send,
    E: Send + 'static,
    F: FnOnce(&Connection) -> Result<T, E> + Send,
    A: FnOnce(Result<T, WriteError<E>>) + Send,
{
    fn run(&mut self, connection: &Connection) -> Ran {
        let Some(work) = self.work.take() else { return Ran::Refused };
        match catch_unwind(AssertUnwindSafe(|| work(connection))) {
            Ok(result) => {
                let ran = match &result {
                    Ok(_) => Ran::Done,
                    Err(error) => {
                        self.damage.note(error);
                        Ran::Refused
                    }
                };
                self.result = Some(result);
                ran
            }
            Err(payload) => Ran::Panicked(StorageError::Panicked(panic_message(&*payload))),
        }
    }

    fn answer(self: Box<Self>, verdict: Verdict) {
        (self.answer)(match (verdict, self.result) {
            (Verdict::AsReturned, Some(result)) => result.map_err(WriteError::Refused),
            (Verdict::AsReturned, None) => Err(WriteError::Closed),
            // A piece that refused is not in the file whatever became of the rest, and its own word says more.
            (_, Some(Err(refused))) => Err(WriteError::Refused(refused)),
            (Verdict::Nothing(error), _) => Err(WriteError::Storage(error)),
            (Verdict::Unproven(error), _) => Err(WriteError::Unproven(error)),
            (Verdict::Unknown(error), _) => Err(WriteError::Uncertain(error)),
            (Verdict::Untrusted(error), _) => Err(WriteError::Untrusted(error)),
        });
    }
}
