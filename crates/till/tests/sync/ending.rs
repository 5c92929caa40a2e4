//! How `sync` ends where it can't go on, and what it says of that: it must be true for what had happened by then.

use super::{
    Checked, Scene,
    bank::{GOOD, SILENT, STRANGE},
    documents, signal, text, wait_for,
};
use protocol::ProblemType;
use rusqlite::Connection;
use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    process::{Child, Output},
    time::{Duration, Instant},
};

const PAGE_BYTES: u64 = 4_096;
/// Far less than its time limit, and more than the last writes wait for the file.
const SOON: Duration = Duration::from_secs(15);

/// A run that has charged one payment and waits for the answer to another.
fn in_the_middle(scene: &Scene, args: &[&str]) -> Checked<Child> {
    scene.pay(GOOD, "1")?;
    scene.pay(SILENT, "1")?;
    let child = scene.kassa_till(args).spawn()?;
    wait_for("one charged, and one asked for", || {
        scene.bank.seen(|seen| seen.requests == 2)
            && scene.states().is_ok_and(|states| states == ["approved", "sending"])
    })?;
    Ok(child)
}

/// Ended soon, with exit code 1, and with a last line that doesn't say that nothing was sent.
fn ended_with_the_truth(child: Child, words: &str) -> Checked {
    let begun = Instant::now();
    let ended = child.wait_with_output()?;
    let said = String::from_utf8(ended.stderr)?;
    let last = said.lines().last().unwrap_or_default();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(begun.elapsed() < SOON, "{:?}: {said}", begun.elapsed());
    assert!(last.starts_with("kassa-till: ") && last.contains(words), "no {words:?}: {said}");
    assert!(last.contains("the bank may have charged it") && !last.contains("nothing was saved"), "{said}");
    Ok(())
}

#[test]
fn a_file_that_goes_while_it_runs_ends_it() -> Checked {
    for (args, is_replaced) in [(&["sync"][..], false), (&["sync", "--until-settled"], true)] {
        let scene = Scene::new()?;
        let child = in_the_middle(&scene, args)?;
        let (file, other) = (scene.data.join("till.db"), scene.data.join("other.db"));
        if is_replaced {
            fs::copy(&file, &other)?;
            fs::rename(&other, &file)?;
        } else {
            fs::remove_file(&file)?;
        }
        ended_with_the_truth(child, "put that file back in its place, or a backup")?;
    }
    Ok(())
}

/// Not even what was under way: no answer is told as stored, and nothing more is sent.
#[test]
fn nothing_is_told_or_sent_from_a_file_that_is_gone() -> Checked {
    let scene = Scene::new()?;
    scene.pay(GOOD, "12")?;
    // Four are charged, and their answers come when the file is gone.
    scene.bank.seen(|seen| seen.answers_max = Some(0));
    let child = scene.kassa_till(&["sync"]).spawn()?;
    wait_for("four requests", || scene.bank.seen(|seen| seen.requests == 4))?;
    let file = scene.data.join("till.db");
    fs::rename(&file, scene.data.join("moved.db"))?;
    scene.bank.seen(|seen| seen.answers_max = None);
    let ended = child.wait_with_output()?;
    assert_eq!(ended.status.code(), Some(1), "{}", String::from_utf8_lossy(&ended.stderr));
    let told = String::from_utf8(ended.stdout)?;
    assert!(told.contains("sending") && !told.contains("approved"), "{told}");
    assert_eq!(scene.bank.seen(|seen| seen.requests), 4);
    // Back in its place it goes on, and each is charged once.
    fs::rename(scene.data.join("moved.db"), &file)?;
    assert_eq!(scene.run(&["sync", "--until-settled"])?.status.code(), Some(0));
    assert_eq!(scene.states()?, vec!["approved"; 12]);
    assert_eq!(scene.bank.seen(|seen| seen.payments.len()), 12);
    Ok(())
}

#[test]
fn a_file_or_a_log_that_is_cut_while_it_runs_ends_it_with_the_truth() -> Checked {
    for name in ["till.db", "till.db-wal"] {
        let scene = Scene::new()?;
        let child = in_the_middle(&scene, &["sync", "--until-settled"])?;
        let cut = File::options().write(true).open(scene.data.join(name))?;
        if name == "till.db" {
            Connection::open(scene.data.join(name))?.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        }
        // So short that what each look reads is gone: what only a write meets takes the pauses between its tries.
        cut.set_len(cut.metadata()?.len() / PAGE_BYTES / 4 * PAGE_BYTES)?;
        ended_with_the_truth(child, "damaged").map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

/// The index of what is open is read at each look, and written only when something changes.
#[test]
fn damage_that_only_a_look_meets_ends_it() -> Checked {
    let scene = Scene::new()?;
    let child = in_the_middle(&scene, &["sync", "--until-settled"])?;
    damage(&scene, "operations_open")?;
    ended_with_the_truth(child, "damaged")
}

/// The index of the log is written with each step of an operation, and nobody who waits for the end looks anything up in it.
#[test]
fn damage_that_only_a_write_of_the_queues_own_meets_ends_it() -> Checked {
    let scene = Scene::new()?;
    scene.pay(GOOD, "1")?;
    damage(&scene, "attempts_key")?;
    let child = scene.kassa_till(&["sync", "--until-settled"]).spawn()?;
    ended_with_the_truth(child, "damaged")?;
    assert_eq!(scene.bank.seen(|seen| seen.payments.len()), 0, "it was sent, though its attempt could not be counted");
    Ok(())
}

/// What belongs to the till alone, and is written in the commit of the bank's answer: the audit of a sale.
#[test]
fn damage_that_only_the_tills_own_part_of_a_write_meets_ends_it() -> Checked {
    let scene = Scene::new()?;
    scene.pay(GOOD, "1")?;
    damage(&scene, "audit_by_sale")?;
    let child = scene.kassa_till(&["sync", "--until-settled"]).spawn()?;
    ended_with_the_truth(child, "damaged")
}

/// Overwrites the first page of a table or an index.
fn damage(scene: &Scene, name: &str) -> Checked {
    let file = Connection::open(scene.data.join("till.db"))?;
    let root: u64 = file.query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [name], |row| {
        row.get::<_, u32>(0).map(u64::from)
    })?;
    file.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    let bytes = File::options().write(true).open(scene.data.join("till.db"))?;
    bytes.write_all_at(&[0xa5; PAGE_BYTES as usize], (root - 1) * PAGE_BYTES)?;
    // What others keep of it in memory counts no more.
    file.pragma_update(
        None,
        "user_version",
        file.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))?,
    )?;
    Ok(())
}

/// The last line, without what is the same in all of them.
fn why(ended: &Output, code: i32) -> Checked<String> {
    let said = String::from_utf8(ended.stderr.clone())?;
    assert_eq!(ended.status.code(), Some(code), "{said}");
    let line = said.lines().last().unwrap_or_default();
    let line = line.strip_prefix("kassa-till: 1 payment is not settled: ").ok_or_else(|| said.clone())?;
    Ok(line.strip_suffix("; nothing is lost, and the next `sync` goes on").ok_or(said.clone())?.to_owned())
}

#[test]
fn each_end_has_a_sentence_of_its_own() -> Checked {
    let scene = Scene::new()?;
    scene.pay(SILENT, "1")?;
    for (name, asked) in [("-INT", 1), ("-TERM", 2)] {
        let child = scene.kassa_till(&["sync"]).spawn()?;
        wait_for("the request", || scene.bank.seen(|seen| seen.requests == asked))?;
        signal(&child, name)?;
        assert_eq!(why(&child.wait_with_output()?, 3)?, "it was asked to end before");
    }
    let mut child = scene.kassa_till(&["sync"]).spawn()?;
    drop(child.stdout.take());
    let ended = child.wait_with_output()?;
    assert_eq!(why(&ended, 3)?, "it ended because what it prints can't be printed any more");
    assert_eq!(why(&scene.run(&["sync", "--until-settled", "--timeout", "500ms"])?, 3)?, "the time was up");
    Ok(())
}

/// It said who it is not, and yet it is there.
#[test]
fn a_bank_that_answers_is_not_told_as_out_of_reach() -> Checked {
    let scene = Scene::new()?;
    scene.pay(GOOD, "1")?;
    for problem in [ProblemType::RateLimited, ProblemType::Unavailable, ProblemType::Internal] {
        scene.bank.seen(|seen| seen.problem = Some(problem));
        let synced = scene.run(&["sync", "--until-settled", "--timeout", "700ms"])?;
        let why = why(&synced, 3)?;
        assert!(why.starts_with("the bank answers, but takes none now ("), "{problem:?}: {why}");
    }
    Ok(())
}

/// What was to be done does not hang on what could be printed.
#[test]
fn what_cannot_be_printed_is_not_told_as_refused() -> Checked {
    let scene = Scene::new()?;
    scene.pay(GOOD, "1")?;
    let full = File::options().write(true).open("/dev/full")?;
    let ended = scene.kassa_till(&["sync", "--until-settled"]).stdout(full).output()?;
    let said = String::from_utf8(ended.stderr)?;
    assert!(matches!(ended.status.code(), Some(0 | 3)), "{said}");
    assert!(said.contains("not all could be printed") && said.contains("kassa-till operations"), "{said}");
    assert!(!said.contains("nothing was saved"), "{said}");
    Ok(())
}

/// The last line of a run that did not settle all.
fn last_line(ended: &Output) -> Checked<String> {
    let said = String::from_utf8(ended.stderr.clone())?;
    assert_eq!(ended.status.code(), Some(3), "{said}");
    Ok(said.lines().last().unwrap_or_default().to_owned())
}

#[test]
fn what_is_left_is_called_what_it_is_and_counted_without_what_waits_for_a_person() -> Checked {
    let mut scene = Scene::new()?;
    scene.pay(STRANGE, "1")?;
    // A refund of a payment that a person must look at: nothing that time settles.
    let key = |state: &str| -> Checked<String> {
        let listed = documents(&scene.run(&["operations", "--json", "--state", state])?)?;
        Ok(text(listed.first().ok_or("none")?, "key"))
    };
    let refund = |key: &str, amount: &str| -> Checked {
        let refunded = scene.run(&["refund", key, "--amount", amount])?;
        assert!(refunded.status.success(), "{}", String::from_utf8_lossy(&refunded.stderr));
        Ok(())
    };
    refund(&key("saved")?, "100")?;
    scene.pay(GOOD, "1")?;
    let synced = scene.run(&["sync", "--until-settled"])?;
    assert_eq!(synced.status.code(), Some(4), "{}", String::from_utf8_lossy(&synced.stderr));
    refund(&key("approved")?, "1")?;
    let there = std::mem::replace(&mut scene.bank.url, "http://127.0.0.1:9".to_owned());
    let short = ["sync", "--until-settled", "--timeout", "500ms"];
    let line = last_line(&scene.run(&short)?)?;
    assert!(line.starts_with("kassa-till: 1 refund is not settled: the bank can't be reached ("), "{line}");
    scene.pay(GOOD, "1")?;
    let line = last_line(&scene.run(&short)?)?;
    assert!(line.starts_with("kassa-till: 2 operations are not settled: the bank can't be reached ("), "{line}");
    scene.bank.url = there;
    let synced = scene.run(&["sync", "--until-settled"])?;
    assert_eq!(synced.status.code(), Some(4), "{}", String::from_utf8_lossy(&synced.stderr));
    Ok(())
}

#[test]
fn a_bank_that_is_away_is_told_beside_what_belongs_to_another() -> Checked {
    let mut scene = Scene::new()?;
    scene.pay(SILENT, "1")?;
    let child = scene.kassa_till(&["sync"]).spawn()?;
    wait_for("the request", || scene.bank.seen(|seen| seen.requests == 1))?;
    signal(&child, "-TERM")?;
    child.wait_with_output()?;
    scene.bank.seen(|seen| seen.merchant = Some("another"));
    let short = ["sync", "--until-settled", "--timeout", "2s"];
    let line = last_line(&scene.run(&short)?)?;
    let elsewhere = "kassa-till: 1 payment is not settled: 1 for another bank or merchant than the one named";
    assert!(line.starts_with(&format!("{elsewhere}; nothing is lost")), "{line}");
    scene.pay(SILENT, "1")?;
    let line = last_line(&scene.run(&short)?)?;
    let elsewhere = "kassa-till: 2 payments are not settled: 1 for another bank or merchant than the one named";
    assert!(line.starts_with(&format!("{elsewhere}, and the time was up; nothing is lost")), "{line}");
    scene.bank.url = "http://127.0.0.1:9".to_owned();
    let line = last_line(&scene.run(&short)?)?;
    assert!(line.starts_with(&format!("{elsewhere}, and the bank can't be reached (")), "{line}");
    Ok(())
}
