//! What `sync` prints while its reader is slow, and what it does while its file can't be read.

use super::{
    Checked, LIMIT, Scene,
    bank::{POOR, SILENT},
    documents, signal, states_of, text, wait_for,
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
};

/// More lines than a pipe and the queue before it hold, and fewer events than make a listener miss some: two for each payment, and two
/// more for each that was begun and put back.
const LINES: usize = 1_400;

/// The lines of one that was declined at its last attempt, and put back before it.
fn lines_of(operation: &Value) -> Vec<String> {
    let attempts = operation["attempts"].as_u64().unwrap_or_default();
    let put_back = (1..attempts).flat_map(|_| ["sending", "saved"]);
    put_back.chain(["sending", "declined"]).map(str::to_owned).collect()
}

#[test]
fn a_reader_who_comes_late_gets_a_line_for_each_change() -> Checked {
    let scene = Scene::new()?;
    scene.pay(POOR, &(LINES / 2).to_string())?;
    // The time ends it where a line is missing.
    let mut child = scene.kassa_till(&["sync", "--timeout", "40s"]).spawn()?;
    wait_for("the end of all", || {
        scene.bank.seen(|seen| seen.payments.len() == LINES / 2)
            && scene.states().is_ok_and(|states| states.iter().all(|state| state == "declined"))
    })?;
    let operations = documents(&scene.run(&["operations", "--json"])?)?;
    let expected: usize = operations.iter().map(|operation| lines_of(operation).len()).sum();
    assert!(expected >= LINES);
    let reading = BufReader::new(child.stdout.take().ok_or("no stdout")?);
    // All of them come out with nobody ending it.
    let mut lines = Vec::new();
    for line in reading.lines() {
        lines.push(serde_json::from_str::<Value>(&line?)?);
        if lines.len() == expected {
            signal(&child, "-TERM")?;
        }
    }
    assert_eq!(child.wait()?.code(), Some(0));
    assert_eq!(lines.len(), expected, "a line for each change, and no more");
    for operation in operations {
        assert_eq!(states_of(&lines, &text(&operation, "key")), lines_of(&operation));
    }
    Ok(())
}

#[test]
fn a_reader_who_takes_his_time_gets_all_of_it() -> Checked {
    let scene = Scene::new()?;
    scene.pay(POOR, &(LINES / 2).to_string())?;
    let mut child = scene.kassa_till(&["sync", "--until-settled"]).spawn()?;
    wait_for("the end of all", || scene.states().is_ok_and(|states| states.iter().all(|state| state == "declined")))?;
    let reading = BufReader::new(child.stdout.take().ok_or("no stdout")?);
    let mut count = 0;
    for line in reading.lines() {
        line?;
        count += 1;
        if count % 100 == 0 {
            // Over four seconds for all: longer than is waited for one who takes nothing.
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
    }
    let ended = child.wait_with_output()?;
    let operations = documents(&scene.run(&["operations", "--json"])?)?;
    let expected: usize = operations.iter().map(|operation| lines_of(operation).len()).sum();
    assert_eq!((ended.status.code(), count), (Some(0), expected), "{}", String::from_utf8_lossy(&ended.stderr));
    Ok(())
}

/// So slow that events are missed: then what changed is read from the file, and the last line of each is how it ended.
#[test]
fn a_reader_who_comes_too_late_gets_how_each_ended() -> Checked {
    let scene = Scene::new()?;
    scene.pay(POOR, "1800")?;
    let mut child = scene.kassa_till(&["sync", "--until-settled"]).spawn()?;
    wait_for("most of the payments", || scene.bank.seen(|seen| seen.payments.len() > 1_750))?;
    let reading = BufReader::new(child.stdout.take().ok_or("no stdout")?);
    let mut last = BTreeMap::new();
    let mut count = 0;
    for line in reading.lines() {
        let line: Value = serde_json::from_str(&line?)?;
        count += 1;
        last.insert(text(&line, "key"), text(&line, "state"));
    }
    assert_eq!(child.wait()?.code(), Some(0));
    assert!(count < 2 * 1_800, "nothing was missed: {count} lines");
    let listed = documents(&scene.run(&["operations", "--json"])?)?;
    let ended: BTreeMap<_, _> =
        listed.iter().map(|operation| (text(operation, "key"), text(operation, "state"))).collect();
    assert_eq!(last, ended);
    Ok(())
}

/// Trouble with the file may pass.
#[test]
fn a_file_that_cannot_be_read_for_a_while_ends_nothing() -> Checked {
    let scene = Scene::new()?;
    scene.pay(SILENT, "1")?;
    let mut child = scene.kassa_till(&["sync", "--until-settled"]).spawn()?;
    wait_for("the request", || scene.bank.seen(|seen| seen.requests == 1))?;
    let file = rusqlite::Connection::open(scene.data.join("till.db"))?;
    file.busy_timeout(LIMIT)?;
    file.execute_batch("PRAGMA legacy_alter_table = 1; ALTER TABLE outbox RENAME TO away")?;
    let mut said = BufReader::new(child.stderr.take().ok_or("no stderr")?).lines();
    let seen = said.find(|line| line.as_ref().is_ok_and(|line| line.contains("could not be read")));
    file.execute_batch("ALTER TABLE away RENAME TO outbox")?;
    assert!(seen.is_some(), "it ended, or never looked");
    signal(&child, "-TERM")?;
    let ended = child.wait_with_output()?;
    assert_eq!(ended.status.code(), Some(3));
    // It ended as it should: what was in flight is known to be.
    assert_eq!(scene.states()?, ["unknown"]);
    Ok(())
}
