//! What is printed.

use super::unseen::escaped;
use serde_json::{Value, json};
use std::{
    io::{self, Write as _},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};
use till::{Operation, format_amount};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Standard output, which its reader may close at any time: `kassa-till operations | head -1` is no fault.
pub(crate) struct Out {
    out: io::Stdout,
    is_closed: bool,
}

impl Out {
    pub(crate) fn new() -> Self {
        Self { out: io::stdout(), is_closed: false }
    }

    /// Prints a line at once, with nothing in it that a terminal would act on, or nothing any more once nobody reads.
    pub(crate) fn line(&mut self, line: &str) -> io::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        let mut out = self.out.lock();
        match writeln!(out, "{}", escaped(line)).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(())
            }
            done => done,
        }
    }

    /// Whether the reader has gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }
}

/// Lines that wait for a reader who is slower than the bank. Beyond it the printing waits, and nothing else does.
const WAITING_MAX: usize = 1_024;

/// Prints from a thread of its own: a reader who does not read holds up nobody who settles, and no end of the process.
pub(crate) struct Printer {
    lines: mpsc::Sender<String>,
    ended: oneshot::Receiver<io::Result<()>>,
    reader_gone: CancellationToken,
    printed: Arc<AtomicU64>,
}

impl Printer {
    pub(crate) fn start() -> io::Result<Self> {
        let (lines, mut waiting) = mpsc::channel::<String>(WAITING_MAX);
        let (end, ended) = oneshot::channel();
        let reader_gone = CancellationToken::new();
        let gone = reader_gone.clone();
        let printed_lines = Arc::new(AtomicU64::new(0));
        let count = printed_lines.clone();
        thread::Builder::new().name("printer".to_owned()).spawn(move || {
            let mut out = Out::new();
            let mut printed = Ok(());
            while let Some(line) = waiting.blocking_recv() {
                printed = out.line(&line);
                count.fetch_add(1, Ordering::Relaxed);
                if printed.is_err() || out.is_closed() {
                    break;
                }
            }
            gone.cancel();
            // Nobody waits for it where the command gave up on its reader.
            let _ = end.send(printed);
        })?;
        Ok(Self { lines, ended, reader_gone, printed: printed_lines })
    }

    /// Hands a line over, or drops it once nobody reads.
    pub(crate) async fn line(&self, line: String) {
        let _ = self.lines.send(line).await;
    }

    /// Cancelled when the reader has gone, or can take no more.
    pub(crate) fn reader_gone(&self) -> CancellationToken {
        self.reader_gone.clone()
    }

    /// How many lines the reader has taken, counted on.
    pub(crate) fn printed(&self) -> Arc<AtomicU64> {
        self.printed.clone()
    }

    /// Waits until all lines are printed.
    ///
    /// # Errors
    /// Where they could not be.
    pub(crate) async fn finish(self) -> io::Result<()> {
        drop(self.lines);
        self.ended.await.unwrap_or(Ok(()))
    }
}

/// An operation as the command line shows it.
pub(crate) fn document(operation: &Operation) -> Value {
    json!({
        "key": operation.key,
        "short_code": operation.short_code,
        "kind": operation.kind,
        "state": operation.state,
        "amount": operation.amount,
        "currency": operation.currency,
        "attempts": operation.attempts,
        "accepted_offline": operation.accepted_offline,
        "created_at": operation.created_at,
        "due_at": operation.due_at,
        "reason": operation.reason.as_ref().or(operation.last_answer.as_ref()),
        "result": operation.result,
    })
}

pub(crate) const TABLE_HEAD: &str =
    "CODE  STATE                  AMOUNT  TRIES  CREATED               KEY                                   REASON";

/// An operation as a row for people.
pub(crate) fn table_row(operation: &Operation) -> String {
    let amount = format!("{} {}", format_amount(operation.amount, operation.currency), operation.currency);
    let created = operation.created_at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let reason = operation.reason.as_ref().or(operation.last_answer.as_ref()).map_or("", String::as_str);
    let row = format!(
        "{:<4}  {:<15}  {amount:>12}  {:>5}  {created}  {}  {reason}",
        operation.short_code,
        operation.state.as_str(),
        operation.attempts,
        operation.key
    );
    row.trim_end().to_owned()
}
