//! A write that is about one row changes that one, or it is an error that rolls back all that was written with it.

/// Takes the number of rows that a write changed.
pub(crate) fn one_row(changed: usize) -> rusqlite::Result<()> {
    match changed {
        1 => Ok(()),
        other => Err(rusqlite::Error::StatementChangedRows(other)),
    }
}
