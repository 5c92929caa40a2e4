//! The audit's chain: whole after whatever a till does, and broken where anything was changed past it.

use super::{Checked, Scene};
use crate::{Break, ChainCheck, ChainProgress, Settings, Till, audit, schema};
use rusqlite::Connection;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::sync::{Arc, Mutex};

/// A till with a sale that was paid, and five entries.
async fn scene() -> Checked<Scene> {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let operation = scene.by_card(&sale, 590).await?;
    scene.settle(&operation, crate::State::Approved).await?;
    scene.till.acting_as("window").hold_sale(sale.id).await?;
    assert_eq!(scene.till.audit_end().await?, 4);
    let sale = scene.sale().await?;
    scene.till.remove_line(sale.lines[0].id).await?;
    Ok(scene)
}

/// What somebody with the file in hand does, who takes the triggers away first and puts them back.
fn tamper(scene: &Scene, change: &str) -> Checked {
    let file = scene.file()?;
    let triggers: Vec<(String, String)> = file
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name LIKE 'audit%'")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    assert!(triggers.len() >= 7, "{triggers:?}");
    for (name, _) in &triggers {
        file.execute_batch(&format!("DROP TRIGGER {name}"))?;
    }
    file.execute_batch(change)?;
    for (_, sql) in &triggers {
        file.execute_batch(sql)?;
    }
    Ok(())
}

async fn check(scene: &Scene) -> Checked<ChainCheck> {
    Ok(scene.till.check_audit(|_| ()).await?)
}

#[tokio::test]
async fn an_entry_is_chained_to_all_before_it() -> Checked {
    let scene = scene().await?;
    let file = scene.file()?;
    // As documented, by hand: the first entry follows 32 zero bytes.
    let entries = scene.till.audit(None, 0, 10).await?;
    let first = &entries[0];
    assert_eq!((first.what.as_str(), first.app_version.as_deref()), ("till-set-up", Some(env!("CARGO_PKG_VERSION"))));
    let details: String = file.query_row("SELECT details FROM audit WHERE seq = 1", [], |row| row.get(0))?;
    let mut bytes = vec![0; 32];
    for number in [1, first.at.as_millisecond(), first.offset_s.into()] {
        bytes.extend(number.to_be_bytes());
    }
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.push(1);
        bytes.extend((text.len() as u64).to_be_bytes());
        bytes.extend(text.as_bytes());
    };
    text(&mut bytes, env!("CARGO_PKG_VERSION"));
    text(&mut bytes, "cashier");
    bytes.extend([0, 0, 0]);
    text(&mut bytes, "till-set-up");
    bytes.push(0);
    text(&mut bytes, &details);
    let hash: [u8; 32] = Sha256::digest(&bytes).into();
    assert_eq!(first.hash, hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let (seq, head): (i64, Vec<u8>) =
        file.query_row("SELECT seq, hash FROM audit_head", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let last = entries.last().ok_or("no entry")?;
    assert_eq!((seq, head.iter().map(|byte| format!("{byte:02x}")).collect()), (last.seq, last.hash.clone()));
    assert_eq!(check(&scene).await?, ChainCheck { entries: seq, broken: None });
    Ok(())
}

#[tokio::test]
async fn whatever_is_done_to_the_file_is_found_and_named() -> Checked {
    let swap = "UPDATE audit SET seq = 99 WHERE seq = 3; UPDATE audit SET seq = 3 WHERE seq = 4; UPDATE audit SET seq = 4 WHERE seq = 99";
    for (change, broken, words) in [
        (
            "UPDATE audit SET details = json_set(details, '$.amount', 1) WHERE seq = 2",
            Break::Changed { seq: 2 },
            "was changed",
        ),
        ("UPDATE audit SET who = 'nobody' WHERE seq = 1", Break::Changed { seq: 1 }, "was changed"),
        ("UPDATE audit SET at = at + 1 WHERE seq = 5", Break::Changed { seq: 5 }, "was changed"),
        ("UPDATE audit SET sale_id = NULL WHERE seq = 2", Break::Changed { seq: 2 }, "was changed"),
        ("UPDATE audit SET app_version = '9' WHERE seq = 2", Break::Changed { seq: 2 }, "was changed"),
        ("UPDATE audit SET hash = zeroblob(32) WHERE seq = 3", Break::Changed { seq: 3 }, "was changed"),
        ("UPDATE audit SET previous = zeroblob(32) WHERE seq = 3", Break::Changed { seq: 3 }, "was changed"),
        ("DELETE FROM audit WHERE seq = 1", Break::Removed { seq: 1 }, "was removed"),
        ("DELETE FROM audit WHERE seq = 3", Break::Removed { seq: 3 }, "was removed"),
        (swap, Break::Moved { seq: 3 }, "reordered"),
        ("DELETE FROM audit WHERE seq >= 4", Break::TailCut { seq: 3, head: 5 }, "its tail was cut off"),
        ("DELETE FROM audit", Break::TailCut { seq: 0, head: 5 }, "its tail was cut off"),
        ("UPDATE audit_head SET hash = zeroblob(32)", Break::HeadForged { seq: 5 }, "forged"),
        (
            "UPDATE audit_head SET seq = 4, hash = (SELECT hash FROM audit WHERE seq = 4)",
            Break::HeadForged { seq: 5 },
            "forged",
        ),
        ("DELETE FROM audit_head", Break::HeadForged { seq: 5 }, "forged"),
        // A removed entry whose place was closed again: its hash holds its own place.
        (
            "DELETE FROM audit WHERE seq = 3; UPDATE audit SET seq = seq - 1 WHERE seq > 3",
            Break::Changed { seq: 3 },
            "was changed",
        ),
    ] {
        let scene = scene().await?;
        assert_eq!(scene.till.audit_end().await?, 5);
        tamper(&scene, change)?;
        let found = check(&scene).await?;
        assert_eq!(found.broken, Some(broken), "{change}");
        assert!(broken.to_string().contains(words), "{broken}");
    }
    Ok(())
}

#[tokio::test]
async fn an_entry_made_anew_with_a_right_hash_does_not_fit_what_follows() -> Checked {
    let scene = scene().await?;
    schema::prepare(&Connection::open_in_memory()?)?;
    let file = scene.file()?;
    audit::register_hash(&file)?;
    for trigger in ["audit_never_changes", "audit_head_follows"] {
        file.execute_batch(&format!("DROP TRIGGER {trigger}"))?;
    }
    file.execute_batch(
        "UPDATE audit SET details = '{}', hash = audit_hash(previous, seq, at, offset_s, app_version, who, person_id, approved_by,
             approver_id, what, sale_id, '{}') WHERE seq = 3",
    )?;
    assert_eq!(check(&scene).await?, ChainCheck { entries: 3, broken: Some(Break::Unlinked { seq: 4 }) });
    Ok(())
}

#[tokio::test]
async fn the_walk_tells_how_far_it_is() -> Checked {
    let scene = Scene::new()?;
    let signature = audit::Signature::of_program("test", crate::clock::now());
    let append = scene.till.inner.store.write(store::Priority::Background, move |tx| {
        (0..20_004).try_for_each(|n| audit::append(tx, &signature, "tested", None, &json!({"n": n})))
    });
    append.await?;
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let found = scene
        .till
        .check_audit(move |ChainProgress { checked, of }| {
            if let Ok(mut told) = tell.lock() {
                told.push((checked, of));
            }
        })
        .await?;
    assert_eq!(found, ChainCheck { entries: 20_005, broken: None });
    let told = told.lock().map_err(|error| error.to_string())?;
    assert_eq!(*told, [(10_000, 20_005), (20_000, 20_005), (20_005, 20_005)]);
    Ok(())
}

/// A file as a program before the chain left it, with entries.
fn older(scene_dir: &std::path::Path, entries: &str) -> Checked {
    std::fs::create_dir_all(scene_dir)?;
    let file = Connection::open(scene_dir.join("till.db"))?;
    let schema = schema::schema();
    for step in schema.migrations.iter().filter(|step| step.version < 6) {
        file.execute_batch(step.sql)?;
    }
    file.execute_batch(entries)?;
    file.pragma_update(None, "application_id", schema.application_id)?;
    file.pragma_update(None, "user_version", 5)?;
    Ok(())
}

#[tokio::test]
async fn entries_of_older_files_are_chained_as_they_are() -> Checked {
    let dir = tempfile::tempdir()?;
    let entries = "INSERT INTO audit VALUES
        (1, 1000, 3600, 'cashier', 'till-set-up', NULL, '{\"shop\":\"Кофе ☕\"}'),
        (2, 2000, -3600, 'window', 'sale-held', '0197b2c0-0000-7000-8000-000000000000', '{}'),
        (3, 1500, 0, 'bank', 'late-answer', NULL, '{}')";
    older(dir.path(), entries)?;
    let till = Till::open(dir.path())?;
    assert_eq!(till.check_audit(|_| ()).await?.broken, None);
    let kept = till.audit(None, 0, 10).await?;
    let shown = |entry: &crate::AuditEntry| (entry.seq, entry.at.as_millisecond(), entry.offset_s, entry.who.clone());
    assert_eq!(
        kept[..3].iter().map(shown).collect::<Vec<_>>(),
        [(1, 1_000, 3_600, "cashier".into()), (2, 2_000, -3_600, "window".into()), (3, 1_500, 0, "bank".into())]
    );
    assert!(kept[..3].iter().all(|entry| entry.app_version.is_none() && entry.person_id.is_none()));
    assert_eq!((&kept[0].details["shop"], kept[1].sale_id.is_some()), (&json!("Кофе ☕"), true));
    // The file had no settings: its first start was finished now, and stands in the chain.
    assert_eq!((kept[3].seq, kept[3].what.as_str()), (4, "till-set-up"));
    assert_eq!(till.check_audit(|_| ()).await?.entries, 4);
    Ok(())
}

#[tokio::test]
async fn a_gap_that_somebody_made_in_an_older_file_is_carried_over_and_found() -> Checked {
    let dir = tempfile::tempdir()?;
    let entries = "INSERT INTO audit VALUES (1, 1, 0, 'a', 'b', NULL, '{}'), (2, 1, 0, 'a', 'b', NULL, '{}'),
            (3, 1, 0, 'a', 'b', NULL, '{}');
        DROP TRIGGER audit_never_shrinks;
        DELETE FROM audit WHERE seq = 2;
        CREATE TRIGGER audit_never_shrinks BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END";
    older(dir.path(), entries)?;
    let till = Till::open(dir.path())?;
    let found = till.check_audit(|_| ()).await?;
    assert_eq!(found, ChainCheck { entries: 1, broken: Some(Break::Removed { seq: 2 }) });
    assert_eq!(till.audit_end().await?, 4);
    Ok(())
}

#[tokio::test]
async fn an_entry_has_the_offset_of_the_shops_zone() -> Checked {
    let scene = Scene::new()?;
    let zone = |name: &str| Settings { time_zone: Some(name.to_owned()), ..Settings::default() };
    // Neither has another offset in any season, and no machine has both.
    scene.till.save_settings(zone("Asia/Kathmandu")).await?;
    scene.till.save_settings(zone("Asia/Tokyo")).await?;
    let entries = scene.till.audit(None, 1, 10).await?;
    assert_eq!(entries.iter().map(|entry| entry.offset_s).collect::<Vec<_>>(), [20_700, 32_400]);
    assert_eq!(scene.till.check_audit(|_| ()).await?.broken, None);
    Ok(())
}
