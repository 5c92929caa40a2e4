//! The doctor: looks at a till's file as somebody who trusts nothing that the program wrote, and names what does not hold.
//!
//! Whatever the database refuses is checked again here: a file can be changed past its triggers. A sale is priced anew by the
//! engine and each figure compared. Everything is read in one reading transaction, a sale at a time, so that a file of any size takes
//! the same memory; a till that works meanwhile is not held up, only its log is written back later.

mod bank;
mod file;
mod late;
mod marks;
mod money;
mod numbers;
mod operations;
mod people;
mod returns;
mod sale;
mod shifts;
mod voids;

pub(crate) use bank::{BankPayment, BankSide, known, operation, payment};

use crate::{TillError, audit, settings};
use rusqlite::{Connection, Error};
use serde::Serialize;

/// Something that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What kind of thing is wrong: one of the words of `docs/ERRORS.md`.
    pub code: &'static str,
    /// What it is about: `sale 17`, `operation 7QK2 (019…)`, `file`.
    pub subject: String,
    /// What is there, and what should be.
    pub what: String,
}

impl Finding {
    pub(crate) fn new(code: &'static str, subject: impl Into<String>, what: impl Into<String>) -> Self {
        Self { code, subject: subject.into(), what: what.into() }
    }
}

/// What the doctor says while at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// Something is wrong.
    Found(Finding),
    /// Something would be, and a person said what became of it: nothing that counts.
    Known(Finding),
    /// How far it is: so many of so many sales, or operations at the bank.
    Progress {
        /// Looked at.
        done: u64,
        /// To be looked at.
        of: u64,
    },
}

/// What was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Examined {
    /// Sales.
    pub sales: u64,
    /// Operations.
    pub operations: u64,
    /// What was found.
    pub findings: u64,
}

/// Between two words on the progress.
pub(crate) const PROGRESS_EVERY: u64 = 1_000;

/// Hears what is told, and counts what is wrong.
pub(crate) struct Notes<'a> {
    tell: &'a mut (dyn FnMut(Told) + Send),
    pub(crate) findings: u64,
}

impl<'a> Notes<'a> {
    pub(crate) fn new(tell: &'a mut (dyn FnMut(Told) + Send)) -> Self {
        Self { tell, findings: 0 }
    }

    pub(crate) fn found(&mut self, code: &'static str, subject: impl Into<String>, what: impl Into<String>) {
        self.findings += 1;
        (self.tell)(Told::Found(Finding::new(code, subject, what)));
    }

    pub(crate) fn known(&mut self, finding: Finding) {
        (self.tell)(Told::Known(finding));
    }

    pub(crate) fn tell_of(&mut self, finding: Option<Finding>) {
        if let Some(finding) = finding {
            self.findings += 1;
            (self.tell)(Told::Found(finding));
        }
    }

    fn progress(&mut self, done: u64, of: u64) {
        if done.is_multiple_of(PROGRESS_EVERY) || done == of {
            (self.tell)(Told::Progress { done, of });
        }
    }
}

impl Notes<'_> {
    /// What was read of a row, where it could be; else the row is named, and the look goes on.
    fn legible<T>(&mut self, subject: &str, read: rusqlite::Result<T>) -> Result<Option<T>, TillError> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(
                error @ (Error::FromSqlConversionFailure(..)
                | Error::InvalidColumnType(..)
                | Error::IntegralValueOutOfRange(..)
                | Error::InvalidQuery
                | Error::Utf8Error(..)),
            ) => {
                self.found("row-illegible", subject, format!("what stands there is none that there is: {error}"));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A part of the look, which a value that can't be right ends. The other parts are done all the same.
    fn part<T: Default>(&mut self, subject: &str, looked: Result<T, TillError>) -> Result<T, TillError> {
        match looked {
            Err(TillError::Internal(why)) => {
                self.found("row-illegible", subject, format!("what stands there can't be looked at: {why}"));
                Ok(T::default())
            }
            looked => looked,
        }
    }
}

/// Whether the audit is what was written, from its first entry to its head.
fn check_chain(conn: &Connection, notes: &mut Notes<'_>) -> Result<(), TillError> {
    let checked = audit::check(conn, |_| {})?;
    if let Some(broken) = checked.broken {
        notes.found("audit-chain", format!("audit entry {}", checked.entries + 1), broken.to_string());
    }
    Ok(())
}

/// Looks at the whole file. Call it in one reading transaction: then it is one state of it.
pub(crate) fn examine(conn: &Connection, tell: &mut (dyn FnMut(Told) + Send)) -> Result<Examined, TillError> {
    let mut notes = Notes::new(tell);
    if !file::is_whole(conn, &mut notes)? {
        // What stands in it can't be trusted, and more findings would hide this one.
        return Ok(Examined { findings: notes.findings, ..Examined::default() });
    }
    file::check_references(conn, &mut notes)?;
    file::check_schema(conn, &mut notes)?;
    let looked = settings::read(conn).map(drop);
    notes.part("settings", looked)?;
    let looked = numbers::check(conn, &mut notes);
    notes.part("numbers", looked)?;
    let looked = check_chain(conn, &mut notes);
    notes.part("audit", looked)?;
    let sales = sale::check_all(conn, &mut notes)?;
    let looked = marks::check(conn, &mut notes);
    notes.part("marks of sales", looked)?;
    let operations = operations::check_all(conn, &mut notes)?;
    let looked = shifts::check(conn, &mut notes);
    notes.part("shifts", looked)?;
    let looked = people::check(conn, &mut notes);
    notes.part("people and rights", looked)?;
    Ok(Examined { sales, operations, findings: notes.findings })
}
