//! Whose file `till.db` is, and how it came to look as it does.

use crate::audit;
use rusqlite::Connection;
use store::{Migration, Schema};

/// Marks the file as a till's, in SQLite's header: `KaTi`.
const APPLICATION_ID: i32 = 0x4b61_5469;

/// The steps of the schema. One that has been shipped never changes; the next change is the next step.
pub(crate) fn schema() -> Schema {
    let mut migrations = outbox::migrations([1, 3]);
    migrations.extend([
        Migration { version: 2, name: "till", sql: include_str!("migrations/002_till.sql") },
        Migration { version: 4, name: "refunds", sql: include_str!("migrations/004_refunds.sql") },
        Migration { version: 5, name: "sale", sql: include_str!("migrations/005_sale.sql") },
        Migration { version: 6, name: "people", sql: include_str!("migrations/006_people.sql") },
        Migration { version: 7, name: "returns", sql: include_str!("migrations/007_refunds.sql") },
        Migration { version: 8, name: "receipts", sql: include_str!("migrations/008_receipts.sql") },
        Migration { version: 9, name: "waived", sql: include_str!("migrations/009_waived.sql") },
        Migration { version: 10, name: "restores", sql: include_str!("migrations/010_restores.sql") },
        Migration { version: 11, name: "reports", sql: include_str!("migrations/011_reports.sql") },
    ]);
    migrations.sort_by_key(|migration| migration.version);
    Schema { application_id: APPLICATION_ID, migrations }
}

/// Gives a connection what the steps of a till's file need that SQL has not: the audit's hash, by which step 6 chains the entries of older
/// files. The till does so by itself; who makes a file of an older version by those steps needs it too.
///
/// # Errors
/// SQLite does not take the function.
pub fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    audit::register_hash(connection)
}
