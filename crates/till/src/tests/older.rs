//! Files of every earlier version that a till ever wrote: their audit chained, what they sold in no shift, and all that was in them.

use super::{
    Checked, Scene,
    doctor::found,
    migrating::{old_file, write},
    returns::new,
    tampered::plain_day,
};
use crate::{LateQuery, LateState, ReturnedGoods, Settings, ShiftOpening, Till, schema};
use rusqlite::{Connection, types::Value};
use std::path::Path;
use uuid::Uuid;

/// A sale that was paid in cash, beside those of the old file, which are by card.
const IN_CASH: &str = "INSERT INTO sales (id, state, held, has_cart, currency, prices_include_tax, cash_step, cash_rounding, number, net,
        tax, tip, discount, total, rounding, receipt_number, created_at, updated_at, completed_at)
    VALUES ('01a229da-ffff-7151-ba32-889de2389db9', 'completed', 1, 1, 'EUR', 1, 1, 'nearest', 900, 500, 90, 0, 0, 590, 0, 900, 1, 1, 1);
    INSERT INTO tenders (id, sale_id, position, kind, state, amount, tendered, change, created_at, updated_at)
    VALUES ('01a229da-ffff-7151-ba32-889de2389dba', '01a229da-ffff-7151-ba32-889de2389db9', 1, 'cash', 'taken', 590, 1000, 410, 1, 1);";

/// The same where there were shifts already, and it was before the first.
const IN_NO_SHIFT: &str = "UPDATE sales SET shift = 0 WHERE shift IS NULL AND state = 'completed';
    UPDATE tenders SET shift = 0 WHERE shift IS NULL AND kind = 'cash'";

fn all(file: &Path, sql: &str) -> Checked<Vec<String>> {
    let file = Connection::open(file.join("till.db"))?;
    let mut statement = file.prepare(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

#[tokio::test]
async fn what_was_in_an_older_file_is_in_it_still_and_belongs_to_no_shift() -> Checked {
    let entries = "SELECT json_array(seq, at, offset_s, who, what, sale_id, details) FROM audit ORDER BY seq";
    let sales = "SELECT json_array(id, state, number, total, receipt_number, completed_at) FROM sales ORDER BY id";
    let tenders = "SELECT json_array(id, kind, state, amount, tendered, change) FROM tenders ORDER BY id";
    let newest = schema::schema().migrations.len();
    for version in 2..u32::try_from(newest)? {
        let dir = old_file(version)?;
        let data = dir.path().join("data");
        let file = Connection::open(data.join("till.db"))?;
        write(&file, IN_CASH)?;
        if version >= 6 {
            file.execute_batch(IN_NO_SHIFT)?;
        }
        drop(file);
        let before = (all(&data, entries)?, all(&data, sales)?, all(&data, tenders)?);
        assert!(before.0.len() >= 20 && before.1.len() > 10, "{version}: {before:?}");
        let till = Till::open(&data)?;
        assert_eq!((all(&data, entries)?, all(&data, sales)?, all(&data, tenders)?), before, "{version}");
        let chain = till.check_audit(|_| ()).await?;
        assert_eq!((usize::try_from(chain.entries)?, chain.broken), (before.0.len(), None), "{version}");
        let settings = till.settings().await?;
        assert_eq!((settings.time_zone, settings.day_start_hour), (None, 0), "{version}");
        // What completed before the first shift is in none, and what is still open will be in the next.
        till.open_shift(ShiftOpening { intent_id: Uuid::now_v7(), float_amount: 0 }).await?;
        let report = till.x_report().await?;
        assert_eq!((report.sales, report.drawer.expected), (0, 0), "{version}");
        assert!(report.unsettled.len() > 3, "{version}");
        assert_eq!(all(&data, "SELECT id FROM sales WHERE (shift IS 0) <> (state = 'completed')")?, [""; 0]);
        till.save_settings(Settings { shop_name: "Corner".into(), ..till.settings().await? }).await?;
        assert_eq!(till.check_audit(|_| ()).await?.broken, None, "{version}");
    }
    Ok(())
}

/// Every table's rows, by the columns that a file of version 8 has.
fn rows(conn: &Connection, tables: &[(String, Vec<String>)]) -> rusqlite::Result<Vec<Vec<Value>>> {
    let mut all = Vec::new();
    for (table, columns) in tables {
        let columns_of = columns.join(", ");
        let mut statement =
            conn.prepare(&format!("SELECT '{table}', {columns_of} FROM {table} ORDER BY {columns_of}"))?;
        let rows = statement.query_map([], |row| (0..=columns.len()).map(|at| row.get(at)).collect())?;
        for row in rows {
            all.push(row?);
        }
    }
    Ok(all)
}

/// What there is beside the tables' rows: kind, name and statement.
fn objects(conn: &Connection) -> rusqlite::Result<Vec<[String; 3]>> {
    conn.prepare(
        "SELECT type, name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name",
    )?
    .query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?
    .collect()
}

/// Takes away from a file what version 9 brought, so that it is as version 8 would have written it.
fn move_down_to_8(file: &Path) -> Checked<Vec<(String, Vec<String>)>> {
    let steps = old_file(8)?;
    let plain = Connection::open(steps.path().join("data/till.db"))?;
    let conn = Connection::open(file)?;
    conn.execute_batch("PRAGMA foreign_keys = OFF; BEGIN")?;
    for [kind, name, _] in objects(&conn)? {
        if kind == "trigger" {
            conn.execute_batch(&format!("DROP TRIGGER {name}"))?;
        }
    }
    conn.execute_batch("DROP TABLE return_waived; ALTER TABLE drawer_moves DROP COLUMN cash_refund_id")?;
    for [kind, _, sql] in objects(&plain)? {
        if kind == "trigger" {
            conn.execute_batch(&sql)?;
        }
    }
    conn.execute_batch("PRAGMA user_version = 8; COMMIT")?;
    assert_eq!(objects(&conn)?, objects(&plain)?);
    let mut tables = Vec::new();
    for [kind, name, sql] in objects(&conn)? {
        if kind == "table" && sql.contains("STRICT") {
            let columns = conn.prepare(&format!("SELECT * FROM {name}"))?;
            tables.push((name, columns.column_names().map(str::to_owned).collect()));
        }
    }
    Ok(tables)
}

#[tokio::test]
async fn a_file_of_version_8_moves_up_whole_and_takes_back_what_nobody_paid() -> Checked {
    let scene = plain_day().await?;
    let dir = scene.dir;
    drop(scene.till);
    let file = dir.path().join("data/till.db");
    let tables = move_down_to_8(&file)?;
    let before = rows(&Connection::open(&file)?, &tables)?;
    assert!(before.len() > 300 && tables.len() > 25, "{} of {}", before.len(), tables.len());
    // As a program, which does not log in.
    let scene = Scene { till: Till::open(&dir.path().join("data"))?.as_program("kassa-till"), dir };
    assert_eq!(rows(&Connection::open(&file)?, &tables)?, before);
    assert_eq!(found(&scene).await?.1, []);
    let open = scene.till.late_declines(LateQuery::default()).await?.late;
    let late = open.iter().find(|late| late.state == LateState::Open).ok_or("none is open")?;
    let sale = scene.till.sale(late.sale_id).await?;
    assert_eq!((late.amount, late.returned), (405, 185), "a part of it came back before its payment ended");
    let made = scene.till.return_goods(new(&sale, ReturnedGoods::Whole)).await?;
    assert_eq!((made.total, made.waived), (405, 405));
    assert_eq!(scene.till.sale(sale.id).await?.due, 0);
    assert_eq!(found(&scene).await?.1, []);
    Ok(())
}
