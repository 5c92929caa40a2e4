//! Files of earlier versions, with what a till had written into them.

use super::{Checked, Scene};
use crate::{Origin, SaleState, Till};
use rusqlite::Connection;

/// Thirteen sales in every state that there was, as a till of version 2 wrote them.
const WRITTEN_BY_2: &str = include_str!("../../../../tests/crash/old/version_2.sql");

/// Its catalogue.
const AN_ARTICLE: &str = "INSERT INTO categories VALUES ('old', 'Old', '#123456', 1);
    INSERT INTO articles (id, sku, name, category, unit, price, tax_rate, favourite, position)
        VALUES (1, 'OLD-1', 'Old Article', 'old', 'piece', 150, 7000, 1, 1);
    INSERT INTO barcodes VALUES ('2100000001500', 1);
    INSERT INTO article_words (rowid, words) VALUES (1, 'Old Article OLD-1 2100000001500')";

/// A file as a till of an earlier version left it: with the data of version 2 where that is older.
pub(super) fn old_file(version: u32) -> Checked<tempfile::TempDir> {
    let dir = tempfile::tempdir()?;
    std::fs::create_dir(dir.path().join("data"))?;
    let conn = Connection::open(dir.path().join("data/till.db"))?;
    crate::schema::prepare(&conn)?;
    let schema = crate::schema::schema();
    conn.execute_batch("PRAGMA journal_mode = wal; PRAGMA foreign_keys = OFF")?;
    for migration in schema.migrations.iter().filter(|migration| migration.version <= version) {
        conn.execute_batch(migration.sql)?;
        if migration.version == 2 {
            write(&conn, WRITTEN_BY_2)?;
            write(&conn, AN_ARTICLE)?;
        }
    }
    conn.pragma_update(None, "application_id", schema.application_id)?;
    conn.pragma_update(None, "user_version", version)?;
    Ok(dir)
}

/// Past the triggers: they guard how a till works, and this is what it has come to.
pub(super) fn write(conn: &Connection, data: &str) -> Checked {
    let triggers: Vec<(String, String)> = conn
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (name, _) in &triggers {
        conn.execute_batch(&format!("DROP TRIGGER {name}"))?;
    }
    conn.execute_batch(data)?;
    for (_, trigger) in &triggers {
        conn.execute_batch(trigger)?;
    }
    Ok(())
}

#[tokio::test]
async fn what_was_sold_before_is_what_it_was_and_selling_goes_on() -> Checked {
    for version in 2..=9 {
        let dir = old_file(version)?;
        let before: Vec<(String, i64)> = Connection::open(dir.path().join("data/till.db"))?
            .prepare("SELECT id, total FROM sales ORDER BY id")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        assert_eq!(before.len(), 13);
        let scene = Scene { till: Till::open(&dir.path().join("data"))?, dir };
        for (id, total) in before {
            let sale = scene.till.sale(id.parse()?).await?;
            assert_eq!((sale.total, sale.discount_asked, sale.tip_asked, sale.name), (total, None, None, None));
            assert!(sale.state != SaleState::Dropped && sale.undo.is_none());
            assert!(sale.lines.iter().all(|line| line.origin == Origin::Article && line.list_price.is_none()));
            assert_eq!(sale.lines.iter().map(|line| (line.total, line.discount)).collect::<Vec<_>>(), [(total, 0)]);
        }
        // No prefix carries anything that nobody set: the old code is still its article's own.
        assert_eq!(scene.till.settings().await?.scale_barcodes.to_string(), "");
        let sale = scene.till.add_article("2100000001500", Some("2")).await?;
        assert_eq!((sale.total, sale.lines[0].unit_price), (300, 150));
        assert_eq!(scene.till.undo(sale.id).await?.lines, []);
        let sale = scene.till.add_article("OLD-1", None).await?;
        let operation = scene.by_card(&sale, 150).await?;
        assert_eq!(operation.sale_number, Some(14), "version {version}");
    }
    Ok(())
}

#[tokio::test]
async fn a_file_that_was_never_begun_begins_now() -> Checked {
    // A first start that died between two steps left it.
    for version in 1..=9 {
        let dir = tempfile::tempdir()?;
        std::fs::create_dir(dir.path().join("data"))?;
        let conn = Connection::open(dir.path().join("data/till.db"))?;
        crate::schema::prepare(&conn)?;
        let schema = crate::schema::schema();
        for migration in schema.migrations.iter().filter(|migration| migration.version <= version) {
            conn.execute_batch(migration.sql)?;
        }
        conn.pragma_update(None, "application_id", schema.application_id)?;
        conn.pragma_update(None, "user_version", version)?;
        drop(conn);
        let till = Till::open(&dir.path().join("data"))?;
        assert_eq!(till.settings().await?, crate::Settings::default(), "version {version}");
        assert_eq!(till.categories().await?.len(), 6);
    }
    Ok(())
}
