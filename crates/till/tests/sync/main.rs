//! `kassa-till sync` as it is called, against a bank that answers as the test wants it.
#![cfg(unix)]

mod bank;
mod ending;
mod library;
mod telling;

use bank::{FakeBank, GOOD, POOR, SILENT, STRANGE};
use serde_json::Value;
use std::{
    error::Error,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

type Checked<T = ()> = Result<T, Box<dyn Error>>;

/// Long enough for anything that is not stuck.
const LIMIT: Duration = Duration::from_secs(60);

/// A till's folder and its bank.
struct Scene {
    bank: FakeBank,
    data: PathBuf,
    _dir: TempDir,
}

impl Scene {
    fn new() -> Checked<Self> {
        let dir = tempfile::tempdir()?;
        Ok(Self { bank: FakeBank::start()?, data: dir.path().join("data"), _dir: dir })
    }

    fn kassa_till(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kassa-till"));
        command.env_remove("KASSA_LOG").env_remove("RUST_LOG").env("KASSA_DATA_DIR", &self.data);
        command.env("KASSA_BANK_URL", &self.bank.url).env("KASSA_BANK_TOKEN", "sk_test").args(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &[&str]) -> Checked<Output> {
        Ok(self.kassa_till(args).output()?)
    }

    fn pay(&self, card: &str, times: &str) -> Checked {
        let paid = self.run(&["pay", "--amount", "2490", "--currency", "EUR", "--card", card, "--times", times])?;
        assert!(paid.status.success(), "{}", String::from_utf8_lossy(&paid.stderr));
        Ok(())
    }

    /// The states of all operations, oldest first.
    fn states(&self) -> Checked<Vec<String>> {
        let listed = self.run(&["operations", "--json"])?;
        Ok(documents(&listed)?.iter().map(|operation| text(operation, "state")).collect())
    }
}

fn documents(output: &Output) -> Checked<Vec<Value>> {
    String::from_utf8(output.stdout.clone())?.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

fn text(document: &Value, member: &str) -> String {
    document[member].as_str().unwrap_or_default().to_owned()
}

fn states_of(documents: &[Value], key: &str) -> Vec<String> {
    documents.iter().filter(|document| document["key"] == key).map(|document| text(document, "state")).collect()
}

/// Waits for a condition, and no longer than is good.
fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) -> Checked {
    let begun = Instant::now();
    while !is_there() {
        if begun.elapsed() > LIMIT {
            return Err(format!("{what} did not come in {LIMIT:?}").into());
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn signal(child: &Child, name: &str) -> Checked {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status()?;
    if sent.success() { Ok(()) } else { Err("the signal was not sent".into()) }
}

#[test]
fn everything_is_settled_and_each_change_is_a_line() -> Checked {
    let scene = Scene::new()?;
    scene.pay(GOOD, "3")?;
    scene.pay(POOR, "1")?;
    let synced = scene.run(&["sync", "--until-settled"])?;
    assert_eq!(synced.status.code(), Some(0), "{}", String::from_utf8_lossy(&synced.stderr));
    assert_eq!(scene.states()?, ["approved", "approved", "approved", "declined"]);
    let lines = documents(&synced)?;
    for operation in documents(&scene.run(&["operations", "--json"])?)? {
        let states = states_of(&lines, &text(&operation, "key"));
        assert_eq!(states, ["sending".to_owned(), text(&operation, "state")]);
        assert_eq!(lines.iter().rfind(|line| line["key"] == operation["key"]), Some(&operation));
        assert_eq!(operation["result"]["operation"], operation["key"]);
        assert_eq!(operation["attempts"], 1);
    }
    let log = documents(&scene.run(&["log", &text(&lines[0], "key")])?)?;
    assert_eq!(log.iter().map(|entry| text(entry, "event")).collect::<Vec<_>>(), ["saved", "sent", "answer"]);
    assert_eq!(scene.bank.seen(|seen| (seen.requests, seen.payments.len())), (4, 4));
    // The sales went along: three receipts, numbered without a gap, and one sale that is still to be paid.
    let file = rusqlite::Connection::open(scene.data.join("till.db"))?;
    let sales: Vec<(String, Option<i64>)> = file
        .prepare("SELECT state, receipt_number FROM sales ORDER BY receipt_number")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let completed = |number| ("completed".to_owned(), Some(number));
    assert_eq!(sales, [("paying".to_owned(), None), completed(1), completed(2), completed(3)]);
    Ok(())
}

#[test]
fn a_bank_out_of_reach_is_no_end() -> Checked {
    let mut scene = Scene::new()?;
    scene.pay(GOOD, "2")?;
    let there = std::mem::replace(&mut scene.bank.url, "http://127.0.0.1:9".to_owned());
    let synced = scene.run(&["sync", "--until-settled", "--timeout", "700ms"])?;
    assert_eq!(synced.status.code(), Some(3));
    let why = String::from_utf8(synced.stderr)?;
    assert!(
        why.starts_with("kassa-till: 2 payments are not settled: the bank can't be reached")
            && why.lines().count() == 1,
        "{why}"
    );
    assert_eq!(scene.states()?, ["saved", "saved"]);
    scene.bank.url = there;
    assert_eq!(scene.run(&["sync", "--until-settled"])?.status.code(), Some(0));
    assert_eq!(scene.states()?, ["approved", "approved"]);
    // With nothing open there is nothing to wait for, bank or no bank.
    scene.bank.url = "http://127.0.0.1:9".to_owned();
    assert_eq!(scene.run(&["sync", "--until-settled"])?.status.code(), Some(0));
    Ok(())
}

#[test]
fn what_needs_attention_is_looked_up_and_told_by_the_exit_code() -> Checked {
    let scene = Scene::new()?;
    scene.pay(STRANGE, "1")?;
    scene.pay(GOOD, "1")?;
    let synced = scene.run(&["sync", "--until-settled"])?;
    assert_eq!(synced.status.code(), Some(4), "{}", String::from_utf8_lossy(&synced.stderr));
    assert_eq!(scene.states()?, ["needs_attention", "approved"]);
    let attention = documents(&scene.run(&["operations", "--json", "--state", "needs_attention"])?)?;
    assert!(!text(&attention[0], "reason").is_empty(), "{attention:?}");
    // The next start is a Check now: it is looked up, never sent again.
    let lookups = scene.bank.seen(|seen| seen.lookups);
    assert_eq!(scene.run(&["sync", "--until-settled"])?.status.code(), Some(4));
    assert!(scene.bank.seen(|seen| seen.lookups) > lookups);
    scene.bank.seen(|seen| seen.is_resolved = true);
    assert_eq!(scene.run(&["sync", "--until-settled"])?.status.code(), Some(0));
    assert_eq!(scene.states()?, ["approved", "approved"]);
    assert_eq!(scene.bank.seen(|seen| seen.requests), 2);
    Ok(())
}

#[test]
fn what_belongs_to_another_merchant_is_not_waited_for_and_says_so() -> Checked {
    let scene = Scene::new()?;
    scene.pay(STRANGE, "1")?;
    scene.pay(SILENT, "1")?;
    let child = scene.kassa_till(&["sync"]).spawn()?;
    wait_for("both", || scene.bank.seen(|seen| seen.requests == 2))?;
    wait_for("the end of the first", || scene.states().is_ok_and(|states| states == ["needs_attention", "sending"]))?;
    signal(&child, "-TERM")?;
    child.wait_with_output()?;
    scene.bank.seen(|seen| seen.merchant = Some("another"));
    let lookups = scene.bank.seen(|seen| seen.lookups);
    // The unsettled one waits for its merchant, and names it.
    assert_eq!(scene.run(&["sync", "--until-settled", "--timeout", "2s"])?.status.code(), Some(3));
    let waiting = documents(&scene.run(&["operations", "--json", "--state", "unknown"])?)?;
    let reason = text(&waiting[0], "reason");
    assert!(reason.starts_with("other-bank: demo at 00000000-0000-0000-0000-00000000ba4c"), "{reason:?}");
    assert_eq!(scene.bank.seen(|seen| (seen.requests, seen.lookups)), (2, lookups));
    Ok(())
}

#[test]
fn what_needs_attention_at_another_merchant_ends_the_wait() -> Checked {
    let scene = Scene::new()?;
    scene.pay(STRANGE, "1")?;
    assert_eq!(scene.run(&["sync", "--until-settled"])?.status.code(), Some(4));
    scene.bank.seen(|seen| seen.merchant = Some("another"));
    let lookups = scene.bank.seen(|seen| seen.lookups);
    let begun = Instant::now();
    let synced = scene.run(&["sync", "--until-settled", "--timeout", "60s"])?;
    assert_eq!(synced.status.code(), Some(4), "{}", String::from_utf8_lossy(&synced.stderr));
    assert!(begun.elapsed() < Duration::from_secs(40), "it waited for a look that nobody makes");
    assert_eq!(scene.bank.seen(|seen| seen.lookups), lookups);
    // Back at its own it is looked up, whatever bank was there the time before.
    scene.bank.seen(|seen| seen.merchant = None);
    assert_eq!(scene.run(&["sync", "--until-settled"])?.status.code(), Some(4));
    assert!(scene.bank.seen(|seen| seen.lookups) > lookups, "the bank of an earlier start was believed");
    Ok(())
}

/// What was cancelled here and belongs to another merchant can't be told to this one.
#[test]
fn what_was_cancelled_of_another_merchant_is_not_waited_for() -> Checked {
    let scene = Scene::new()?;
    scene.pay(GOOD, "1")?;
    let synced = scene.run(&["sync", "--until-settled"])?;
    let key = text(documents(&synced)?.last().ok_or("no line")?, "key");
    // A refund belongs to the bank of its payment before it was ever sent.
    let refund = documents(&scene.run(&["refund", &key, "--amount", "100"])?)?;
    assert_eq!(scene.run(&["cancel", &text(&refund[0], "key")])?.status.code(), Some(0));
    let told = || Ok::<_, Box<dyn Error>>(scene.bank.seen(|seen| seen.cancellations));
    let sync = |merchant| -> Checked<(Option<i32>, Duration)> {
        scene.bank.seen(|seen| seen.merchant = Some(merchant));
        let begun = Instant::now();
        let ended = scene.run(&["sync", "--until-settled", "--timeout", "30s"])?;
        Ok((ended.status.code(), begun.elapsed()))
    };
    let (code, took) = sync("another")?;
    assert_eq!((code, told()?), (Some(0), 0));
    assert!(took < Duration::from_secs(20), "it waited {took:?} for somebody who is not there");
    // Its own is told, and waited for.
    assert_eq!((sync("demo")?.0, told()?), (Some(0), 1));
    Ok(())
}

/// A copy of the folder had it charged: the cancellation here promised what was not so.
#[test]
fn an_alarm_is_a_line_a_reason_and_the_exit_code() -> Checked {
    let scene = Scene::new()?;
    scene.pay(GOOD, "2")?;
    let listed = documents(&scene.run(&["operations", "--json"])?)?;
    let (key, code) = (text(&listed[0], "key"), text(&listed[0], "short_code"));
    let copy = tempfile::tempdir()?;
    for file in std::fs::read_dir(&scene.data)? {
        let file = file?;
        std::fs::copy(file.path(), copy.path().join(file.file_name()))?;
    }
    let charged = scene.kassa_till(&["sync", "--until-settled"]).env("KASSA_DATA_DIR", copy.path()).output()?;
    assert_eq!(charged.status.code(), Some(0));
    assert_eq!(scene.run(&["cancel", &key])?.status.code(), Some(0));
    let synced = scene.run(&["sync", "--until-settled"])?;
    let said = String::from_utf8(synced.stderr.clone())?;
    assert_eq!(synced.status.code(), Some(4), "{said}");
    let line = said.lines().last().unwrap_or_default();
    assert!(
        line.starts_with(&format!(
            "kassa-till: payment {code} of 24.90 EUR is cancelled here, and the bank says approved"
        )),
        "{said}"
    );
    // In what it prints, and in what is printed later.
    let told = documents(&synced)?;
    let told = told.iter().rfind(|line| line["key"] == key.as_str()).ok_or("no line")?;
    assert_eq!(
        (text(told, "state"), text(told, "reason")),
        ("cancelled".into(), "late-answer: the bank says approved".into())
    );
    let listed = documents(&scene.run(&["operations", "--json"])?)?;
    assert_eq!(&listed[0], told);
    assert_eq!((text(&listed[1], "state"), &listed[1]["reason"]), ("approved".into(), &Value::Null));
    // It is told once; and nothing was sent for it.
    assert_eq!(scene.run(&["sync", "--until-settled"])?.status.code(), Some(0));
    assert_eq!(scene.bank.seen(|seen| seen.requests), 3);
    Ok(())
}

#[test]
fn asked_to_end_it_leaves_what_was_in_flight_unknown() -> Checked {
    let scene = Scene::new()?;
    scene.pay(SILENT, "1")?;
    let child = scene.kassa_till(&["sync"]).spawn()?;
    wait_for("the request", || scene.bank.seen(|seen| seen.requests == 1))?;
    signal(&child, "-TERM")?;
    let ended = child.wait_with_output()?;
    assert_eq!(ended.status.code(), Some(3), "{}", String::from_utf8_lossy(&ended.stderr));
    let lines = documents(&ended)?;
    assert_eq!(lines.iter().map(|line| text(line, "state")).collect::<Vec<_>>(), ["sending", "unknown"]);
    assert_eq!(scene.states()?, ["unknown"]);
    Ok(())
}

#[test]
fn a_reader_who_does_not_read_holds_up_neither_the_bank_nor_the_end() -> Checked {
    let scene = Scene::new()?;
    // More lines than a pipe and the queue before it hold.
    scene.pay(POOR, "1500")?;
    let mut child = scene.kassa_till(&["sync", "--until-settled"]).spawn()?;
    wait_for("all payments", || scene.bank.seen(|seen| seen.payments.len() == 1_500))?;
    let mut ended = None;
    wait_for("the end", || {
        ended = child.try_wait().ok().flatten();
        ended.is_some()
    })?;
    assert_eq!(ended.and_then(|status| status.code()), Some(0));
    assert!(scene.states()?.iter().all(|state| state == "declined"));
    Ok(())
}

#[test]
fn killed_in_the_middle_nothing_is_charged_twice() -> Checked {
    let scene = Scene::new()?;
    scene.pay(GOOD, "20")?;
    // The cards of the last ones are charged, and no answer comes.
    scene.bank.seen(|seen| seen.answers_max = Some(6));
    let mut child = scene.kassa_till(&["sync"]).spawn()?;
    wait_for("some requests", || scene.bank.seen(|seen| seen.requests >= 10))?;
    child.kill()?;
    child.wait()?;
    scene.bank.seen(|seen| seen.answers_max = None);
    let approved = scene.states()?.iter().filter(|state| *state == "approved").count();
    assert!(approved < 10, "{approved} were answered");
    assert_eq!(scene.run(&["sync", "--until-settled"])?.status.code(), Some(0));
    assert_eq!(scene.states()?, vec!["approved"; 20]);
    assert_eq!(scene.bank.seen(|seen| seen.payments.len()), 20);
    Ok(())
}

#[test]
fn a_second_sync_on_the_folder_is_refused_in_a_line() -> Checked {
    let scene = Scene::new()?;
    scene.pay(SILENT, "1")?;
    let first = scene.kassa_till(&["sync"]).spawn()?;
    wait_for("the first", || scene.bank.seen(|seen| seen.requests == 1))?;
    let second = scene.run(&["sync"])?;
    let stderr = String::from_utf8(second.stderr)?;
    assert_eq!((second.status.code(), stderr.lines().count()), (Some(1), 1), "{stderr}");
    assert!(stderr.contains(&format!("in use by another process (pid {})", first.id())), "{stderr}");
    // Who only reads is not in the way.
    assert_eq!(scene.states()?, ["sending"]);
    signal(&first, "-INT")?;
    assert_eq!(first.wait_with_output()?.status.code(), Some(3));
    Ok(())
}

#[test]
fn without_an_end_it_goes_on_until_it_is_asked() -> Checked {
    let scene = Scene::new()?;
    scene.pay(POOR, "1")?;
    let mut child = scene.kassa_till(&["sync"]).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
    let states: Vec<_> =
        lines.by_ref().take(2).map(|line| Ok(text(&serde_json::from_str(&line?)?, "state"))).collect::<Checked<_>>()?;
    assert_eq!(states, ["sending", "declined"]);
    assert!(child.try_wait()?.is_none(), "it ended with nobody asking it to");
    drop(lines);
    signal(&child, "-TERM")?;
    let ended = child.wait_with_output()?;
    assert_eq!((ended.status.code(), String::from_utf8(ended.stderr)?.as_str()), (Some(0), ""));
    Ok(())
}
