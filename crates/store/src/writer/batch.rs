//! The pieces of one transaction, each so that it can be undone by itself.

use rusqlite::Connection;

use super::piece::{Piece, Ran};
use super::queue::{Queue, Waited};
use super::{begin, rollback};
use crate::Priority;
use crate::error::StorageError;

/// Pieces in one commit. Also bounds what a click waits for: at most one such batch.
pub(super) const BATCH_MAX: usize = 128;

/// Background pieces that each batch has room for where so many wait. Without it clicks that never run dry would put them off
/// for ever.
const BACKGROUND_MIN: usize = 16;

/// How a batch went, before COMMIT.
pub(super) enum Batch {
    /// All pieces that were taken have run; those that refused are rolled back.
    Open,
    /// SQLite rolled everything back by itself.
    RolledBack,
    /// A piece ended the transaction by itself: what came before may be in the file.
    Ended,
    /// The transaction can't be brought back into order.
    Broken(StorageError),
}

pub(super) type Taken = Vec<(Box<dyn Piece>, Option<StorageError>)>;

/// Whose turn it is in a batch: what was waiting when it began, and the clicks that came meanwhile. Clicks go first, as long as
/// there is room for the background's share.
pub(super) struct Turns {
    /// Background pieces that are still to come.
    background: usize,
    /// Places that are kept for them.
    kept: usize,
    clicks_taken: usize,
    background_taken: usize,
    /// Whether each click has one background piece with it.
    in_company: bool,
}

impl Turns {
    /// A lone click is not to wait for the work of a queue, so a batch with clicks in it takes none of it, unless they fill all but
    /// the kept places. After one that did (`passed_over`) each click takes one piece along: where clicks never run dry the queue goes on as
    /// they do.
    pub(super) fn new(waited: Waited, passed_over: bool) -> Turns {
        let background = waited.background;
        Turns {
            background,
            kept: background.min(BACKGROUND_MIN),
            clicks_taken: 0,
            background_taken: 0,
            in_company: passed_over,
        }
    }

    /// Whether background work waited that this batch took nothing of.
    pub(super) fn passed_over(&self) -> bool {
        self.clicks_taken > 0 && self.background_taken == 0 && self.background > 0
    }

    fn next(&mut self, queue: &Queue, taken: usize) -> Option<Box<dyn Piece>> {
        let is_full_of_clicks = taken + self.kept >= BATCH_MAX;
        if !is_full_of_clicks && let Some(click) = queue.pop(Priority::Click) {
            self.clicks_taken += 1;
            return Some(click);
        }
        let is_its_turn = self.clicks_taken == 0
            || (self.in_company || is_full_of_clicks) && self.background_taken < self.clicks_taken;
        if self.background == 0 || !is_its_turn {
            return None;
        }
        self.background -= 1;
        self.background_taken += 1;
        self.kept = self.kept.saturating_sub(1);
        queue.pop(Priority::Background)
    }
}

pub(super) fn run_pieces(connection: &Connection, queue: &Queue, turns: &mut Turns, taken: &mut Taken) -> Batch {
    while taken.len() < BATCH_MAX {
        let Some(mut piece) = turns.next(queue, taken.len()) else { break };
        let (ran, batch) =
            if taken.is_empty() { run_first(connection, &mut *piece) } else { run_piece(connection, &mut *piece) };
        let own = match ran {
            Ran::Panicked(error) => {
                tracing::error!(%error, "a piece of work on the file panicked and was rolled back");
                Some(error)
            }
            Ran::Done | Ran::Refused => None,
        };
        taken.push((piece, own));
        if !matches!(batch, Batch::Open) {
            return batch;
        }
    }
    Batch::Open
}

/// Before the first piece there is nothing that would have to outlive its refusal, so it needs no savepoint, for which SQLite copies
/// each page that the piece changes. Most commits have one piece: a click.
fn run_first(connection: &Connection, piece: &mut dyn Piece) -> (Ran, Batch) {
    let ran = piece.run(connection);
    let batch = match (&ran, connection.is_autocommit()) {
        (Ran::Done, false) => Ok(Batch::Open),
        (Ran::Done, true) => Ok(Batch::Ended),
        (Ran::Refused | Ran::Panicked(_), true) => Ok(Batch::RolledBack),
        (Ran::Refused | Ran::Panicked(_), false) => {
            rollback(connection).and_then(|()| begin(connection)).map(|()| Batch::Open)
        }
    };
    (ran, batch.unwrap_or_else(|error| Batch::Broken(error.into())))
}

fn run_piece(connection: &Connection, piece: &mut dyn Piece) -> (Ran, Batch) {
    if let Err(error) = savepoint(connection, "SAVEPOINT piece") {
        // The piece did not run. Its error is the batch's.
        return (Ran::Refused, Batch::Broken(error.into()));
    }
    let ran = piece.run(connection);
    // An error inside may have made SQLite roll back everything, with no word of it in the error itself.
    if connection.is_autocommit() {
        return match ran {
            Ran::Done => (ran, Batch::Ended),
            Ran::Refused | Ran::Panicked(_) => (ran, Batch::RolledBack),
        };
    }
    let ended = match ran {
        Ran::Done => savepoint(connection, "RELEASE piece"),
        Ran::Refused | Ran::Panicked(_) => {
            savepoint(connection, "ROLLBACK TO piece").and_then(|()| savepoint(connection, "RELEASE piece"))
        }
    };
    match ended {
        Ok(()) => (ran, Batch::Open),
        Err(error) => (ran, Batch::Broken(error.into())),
    }
}

fn savepoint(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::super::piece::{Piece, Ran, Verdict};
    use super::*;

    struct Nothing;

    impl Piece for Nothing {
        fn run(&mut self, _: &Connection) -> Ran {
            Ran::Done
        }

        fn answer(self: Box<Self>, _: Verdict) {}
    }

    fn waiting(clicks: usize, background: usize) -> Queue {
        let queue = Queue::default();
        for (priority, count) in [(Priority::Click, clicks), (Priority::Background, background)] {
            for _ in 0..count {
                assert!(queue.push(priority, Box::new(Nothing)).is_ok());
            }
        }
        queue
    }

    /// Clicks and background pieces that one batch takes, and whether it passed over.
    fn batch(queue: &Queue, passed_over: bool) -> (usize, usize, bool) {
        let mut turns = Turns::new(queue.count(), passed_over);
        let mut taken = 0;
        while taken < BATCH_MAX && turns.next(queue, taken).is_some() {
            taken += 1;
        }
        (turns.clicks_taken, turns.background_taken, turns.passed_over())
    }

    #[test]
    fn a_click_is_alone_in_its_batch_and_the_queue_has_the_next() {
        let queue = waiting(1, 5);
        assert_eq!(batch(&queue, false), (1, 0, true));
        assert_eq!(batch(&queue, true), (0, 5, false));
    }

    #[test]
    fn where_each_batch_has_a_click_every_second_has_background_work() {
        let queue = waiting(0, 5);
        let mut passed_over = false;
        let mut seen = Vec::new();
        for _ in 0..4 {
            assert!(queue.push(Priority::Click, Box::new(Nothing)).is_ok());
            let (clicks, background, over) = batch(&queue, passed_over);
            passed_over = over;
            seen.push((clicks, background));
        }
        assert_eq!(seen, [(1, 0), (1, 1), (1, 0), (1, 1)]);
    }

    #[test]
    fn where_background_work_was_passed_over_each_click_takes_one_along() {
        assert_eq!(batch(&waiting(2, 5), true), (2, 2, false));
        assert_eq!(batch(&waiting(2, 1), true), (2, 1, false));
        assert_eq!(batch(&waiting(2, 0), true), (2, 0, false));
    }

    #[test]
    fn a_click_that_comes_while_background_work_runs_joins_it_and_ends_the_batch() {
        let queue = waiting(0, 5);
        let mut turns = Turns::new(queue.count(), false);
        assert!(turns.next(&queue, 0).is_some());
        assert!(queue.push(Priority::Click, Box::new(Nothing)).is_ok());
        assert!(turns.next(&queue, 1).is_some());
        assert!(turns.next(&queue, 2).is_none());
        assert_eq!((turns.clicks_taken, turns.background_taken, turns.passed_over()), (1, 1, false));
    }

    #[test]
    fn clicks_that_never_run_dry_leave_the_kept_places() {
        assert_eq!(batch(&waiting(500, 100), false), (BATCH_MAX - BACKGROUND_MIN, BACKGROUND_MIN, false));
        assert_eq!(batch(&waiting(500, 3), false), (BATCH_MAX - 3, 3, false));
    }
}
