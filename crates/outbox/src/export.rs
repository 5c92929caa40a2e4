//! Everything that the outbox knows, in one call.

use std::io::{self, Write};

use rusqlite::Connection;
use serde::Serialize;

use crate::attempts::{Attempt, attempts};
use crate::operations::{Filter, Operation, list};

/// Operations that are read at a time.
const PAGE: u32 = 500;

/// Why an export is not whole.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The file could not be read.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    /// It could not be written where it was to go. What was written before it is there.
    #[error("{0}")]
    Io(#[from] io::Error),
}

#[derive(Serialize)]
struct Exported<'a> {
    #[serde(flatten)]
    operation: &'a Operation,
    attempts_log: &'a [Attempt],
}

/// Writes every operation with its log (`attempts_log`), oldest first, as a line of JSON each, and gives their number. It holds no
/// card token, no secret and no request body. Call it in one reading transaction, as [`store::Store::read`] gives one: then it is one state of the file.
///
/// # Errors
/// See [`ExportError`].
pub fn export(conn: &Connection, out: &mut dyn Write) -> Result<u64, ExportError> {
    let mut written = 0;
    let mut after_seq = None;
    loop {
        let page = list(conn, Filter { after_seq, limit: PAGE, ..Filter::default() })?;
        let Some(last) = page.last() else { break };
        after_seq = Some(last.seq);
        for operation in &page {
            let attempts = attempts(conn, &operation.key)?;
            let line = Exported { operation, attempts_log: &attempts };
            serde_json::to_writer(&mut *out, &line).map_err(io::Error::from)?;
            out.write_all(b"\n")?;
            written += 1;
        }
    }
    out.flush()?;
    Ok(written)
}
