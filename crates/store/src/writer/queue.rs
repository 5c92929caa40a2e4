//! What waits for the writing thread.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::piece::Piece;
use crate::Priority;

/// Pieces of one priority that may wait before more are refused.
const WAITING_MAX: usize = 1_024;

#[derive(Default)]
struct Waiting {
    clicks: VecDeque<Box<dyn Piece>>,
    background: VecDeque<Box<dyn Piece>>,
    closed: bool,
}

impl Waiting {
    fn line(&mut self, priority: Priority) -> &mut VecDeque<Box<dyn Piece>> {
        match priority {
            Priority::Click => &mut self.clicks,
            Priority::Background => &mut self.background,
        }
    }

    fn count(&self) -> Waited {
        Waited { clicks: self.clicks.len(), background: self.background.len() }
    }
}

/// How many pieces waited at some moment.
#[derive(Clone, Copy)]
pub(super) struct Waited {
    pub(super) clicks: usize,
    pub(super) background: usize,
}

/// Why a piece was not taken.
pub(super) enum NotTaken {
    Closed,
    Overloaded,
}

#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing panics while it holds the lock, so what it guards is whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count(&self) -> Waited {
        self.lock().count()
    }

    pub(super) fn push(&self, priority: Priority, piece: Box<dyn Piece>) -> Result<(), NotTaken> {
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(NotTaken::Closed);
        }
        let line = waiting.line(priority);
        if line.len() >= WAITING_MAX {
            return Err(NotTaken::Overloaded);
        }
        line.push_back(piece);
        // Not with the lock held: the thread that is woken would run into it, and have to be woken twice.
        drop(waiting);
        self.changed.notify_one();
        Ok(())
    }

    /// What waits is still done; nothing more is taken.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Waits for work and says how many pieces there are; `None` once closed and empty.
    pub(super) fn wait(&self) -> Option<Waited> {
        let mut waiting = self.lock();
        loop {
            let waited = waiting.count();
            if waited.clicks + waited.background > 0 {
                return Some(waited);
            }
            if waiting.closed {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn pop(&self, priority: Priority) -> Option<Box<dyn Piece>> {
        self.lock().line(priority).pop_front()
    }
}
