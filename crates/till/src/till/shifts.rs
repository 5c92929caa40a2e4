//! Shifts and their drawer.

use crate::{
    Count, Counted, DrawerMove, Event, NewDrawerMove, Shift, ShiftOpening, ShiftReport, Till, TillError, shifts,
    shifts::drawer,
};

impl Till {
    /// The open shift.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn shift(&self) -> Result<Option<Shift>, TillError> {
        self.read(shifts::open_now).await
    }

    /// Closed shifts, the newest first, before a number; at most 500.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn closed_shifts(&self, before: Option<i64>, limit: u32) -> Result<Vec<Shift>, TillError> {
        self.read(move |conn| shifts::closed(conn, before, limit)).await
    }

    /// Opens a shift with what is in the drawer. From the first one on cash is only taken while one is open. The same intent again gives
    /// the same shift back.
    ///
    /// # Errors
    /// [`TillError::ShiftOpen`] where one is open, [`TillError::InvalidAmount`], [`TillError::IntentReused`] where the intent came with
    /// another float, [`TillError::Locked`], [`TillError::Storage`], [`TillError::Unreadable`].
    pub async fn open_shift(&self, opening: ShiftOpening) -> Result<Shift, TillError> {
        let intent_id = opening.intent_id;
        let change = move |tx: &rusqlite::Connection, signature: &_| shifts::open(tx, signature, opening);
        self.change_or_find(change, move |conn| shifts::by_intent(conn, intent_id))
            .await
            .inspect(|_| self.tell(Event::ShiftChanged))
    }

    /// Puts cash into the drawer of the open shift, takes some out, or opens it without a sale. The same id again gives the same move back.
    ///
    /// # Errors
    /// [`TillError::NoShift`], [`TillError::NotAllowed`], [`TillError::Locked`], [`TillError::InvalidReason`], [`TillError::InvalidText`],
    /// [`TillError::InvalidAmount`] where there are no such coins or the drawer should not hold so much, [`TillError::IntentReused`] where
    /// the id came with another amount or reason, [`TillError::Storage`], [`TillError::Unreadable`].
    pub async fn move_drawer(&self, new: NewDrawerMove) -> Result<DrawerMove, TillError> {
        let id = new.id;
        let change = move |tx: &rusqlite::Connection, signature: &_| drawer::make_move(tx, signature, &new);
        self.change_or_find(change, move |conn| drawer::move_by_id(conn, id))
            .await
            .inspect(|_| self.tell(Event::ShiftChanged))
    }

    /// What went through the drawer of a shift beside the sales, oldest first.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn drawer_moves(&self, shift: i64) -> Result<Vec<DrawerMove>, TillError> {
        self.read(move |conn| drawer::moves(conn, shift)).await
    }

    /// Saves what was counted in the drawer of the open shift, and only then tells what it should hold. Each count stays on the report.
    ///
    /// # Errors
    /// [`TillError::NoShift`], [`TillError::NotAllowed`], [`TillError::Locked`], [`TillError::InvalidAmount`].
    pub async fn count_drawer(&self, count: Count) -> Result<Counted, TillError> {
        self.change(move |tx, signature| drawer::count(tx, signature, &count))
            .await
            .inspect(|_| self.tell(Event::ShiftChanged))
    }

    /// Closes the open shift with its last count, and gives its Z report. What is unsettled is named there and goes on as it is. The same
    /// number again gives the same report back, to who closed it or may see it.
    ///
    /// # Errors
    /// [`TillError::CountNeeded`] where nothing was counted, or cash went through the drawer since; [`TillError::NoShift`] where another
    /// shift is open or none, [`TillError::NotAllowed`], [`TillError::Locked`], [`TillError::Storage`], [`TillError::Unreadable`].
    pub async fn close_shift(&self, number: i64) -> Result<ShiftReport, TillError> {
        let change = move |tx: &rusqlite::Connection, signature: &_| shifts::close(tx, signature, number);
        self.change_or_find(change, move |conn| shifts::z_report(conn, number))
            .await
            .inspect(|_| self.tell(Event::ShiftChanged))
    }

    /// The X report: how the open shift stands. Seen by another's PIN it leaves an entry in the audit.
    ///
    /// # Errors
    /// [`TillError::NoShift`], [`TillError::NotAllowed`], [`TillError::Locked`].
    pub async fn x_report(&self) -> Result<ShiftReport, TillError> {
        if self.has_approval() {
            return self.change(move |tx, signature| shifts::show(tx, signature, None)).await;
        }
        let signature = self.signature();
        self.read(move |conn| shifts::report_of(conn, &signature, None).map(|(report, _)| report)).await
    }

    /// The Z report of a closed shift, as it was when it was closed. Seen by another's PIN it leaves an entry in the audit.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::NotAllowed`], [`TillError::Locked`].
    pub async fn z_report(&self, number: i64) -> Result<ShiftReport, TillError> {
        if self.has_approval() {
            return self.change(move |tx, signature| shifts::show(tx, signature, Some(number))).await;
        }
        let signature = self.signature();
        self.read(move |conn| shifts::report_of(conn, &signature, Some(number)).map(|(report, _)| report)).await
    }
}
