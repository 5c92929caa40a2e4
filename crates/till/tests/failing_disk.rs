//! Clicks on a disk whose sync really fails at COMMIT, in a process of its own: told as failed is never done later, told as done
//! stays done, and while nobody can know, nothing is told as either.
#![cfg(target_os = "linux")]

use protocol::{Amount, CardToken, Currency};
use std::{error::Error, path::Path, process::Command};
use till::{Charge, Operation, Refund, Till, TillError};
use uuid::Uuid;

type Checked<T = ()> = Result<T, Box<dyn Error>>;

/// Names the click in the process that plays it.
const CLICK: &str = "TILL_CLICK";
/// How its disk fails.
const FAULT: &str = "TILL_FAULT";
/// The file that makes every sync of the log fail; with `.once` after it, one.
const FAIL_SYNC: &str = "FAIL_SYNC";

const CLICKS: [&str; 5] = ["a payment", "taken offline", "a refund", "a cancellation", "both cancelled"];

fn charge(intent: u128, accepted_offline: bool) -> Checked<Charge> {
    Ok(Charge {
        intent_id: Uuid::from_u128(intent),
        amount: Amount::new(2_490)?,
        currency: Currency::EUR,
        card: CardToken::new("tok_visa")?,
        reference: None,
        accepted_offline,
    })
}

/// The payment that the other clicks are about, and in one case its refund: clicked before the disk fails.
async fn before(till: &Till, click: &str) -> Checked<Operation> {
    let payment = till.charge(charge(1, false)?).await?;
    if click == "both cancelled" {
        // Once they are cancelled there is nothing to give back any more.
        let refund = Refund { intent_id: Uuid::from_u128(2), payment: payment.key, amount: Amount::new(490)? };
        if let Err(error) = till.refund(refund).await {
            assert!(matches!(error, TillError::NotRefundable(_)), "{error}");
        }
    }
    Ok(payment)
}

async fn clicked(till: &Till, click: &str, payment: &Operation) -> Checked<Result<Operation, TillError>> {
    let refund = Refund { intent_id: Uuid::from_u128(3), payment: payment.key, amount: Amount::new(2_000)? };
    Ok(match click {
        "a payment" => till.charge(charge(4, false)?).await,
        "taken offline" => till.charge(charge(5, true)?).await,
        "a refund" => till.refund(refund).await,
        "a cancellation" | "both cancelled" => till.cancel(payment.key).await,
        other => return Err(other.into()),
    })
}

/// What is told, in one word.
fn word(told: &Result<Operation, TillError>) -> String {
    match told {
        Ok(operation) => format!("done {}", operation.state),
        Err(TillError::Storage(_)) => "failed".to_owned(),
        Err(TillError::Unreadable(_)) => "open".to_owned(),
        Err(other) => format!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_click_in_the_process_that_plays_it() -> Checked {
    let (Ok(click), Ok(fault), Ok(fail)) = (std::env::var(CLICK), std::env::var(FAULT), std::env::var(FAIL_SYNC))
    else {
        return Ok(());
    };
    let fail = Path::new(&fail);
    let till = Till::open(&fail.with_file_name("data"))?;
    let say = |word: &str| println!("\nsaid: {word}");
    if fault == "from the start" {
        for intent in [1, 4] {
            say(&word(&till.charge(charge(intent, false)?).await));
        }
        say("end");
        std::process::exit(0);
    }
    let payment = before(&till, &click).await?;
    if fault == "ended in order" {
        drop(till);
        say("end");
        return Ok(());
    }
    let told = async || clicked(&till, &click, &payment).await.map(|told| word(&told));
    match fault.as_str() {
        "once" => {
            std::fs::write(fail.with_extension("once"), "")?;
            say(&told().await?);
        }
        "for a while" | "until the end" => {
            std::fs::write(fail, "")?;
            say(&told().await?);
            say(&told().await?);
            say(if till.probe().await.is_ok() { "works" } else { "fails" });
            if fault == "for a while" {
                std::fs::remove_file(fail)?;
                say(&told().await?);
            }
        }
        "none" => {
            say(&told().await?);
            let page = till.operations(till::OperationQuery { oldest_first: true, ..Default::default() }).await?;
            let states: Vec<_> = page.operations.iter().map(|operation| operation.state.as_str()).collect();
            say(&states.join(" "));
        }
        // Nothing is clicked: only whether it was is looked at.
        "a look" => {
            let page = till.operations(till::OperationQuery { oldest_first: true, ..Default::default() }).await?;
            let states: Vec<_> = page.operations.iter().map(|operation| operation.state.as_str()).collect();
            say(&states.join(" "));
        }
        other => return Err(other.into()),
    }
    say("end");
    // As by a kill: nothing is put in order on the way out.
    std::process::exit(0);
}

/// Plays a click in a process of its own, and gives the words that it said.
fn play(click: &str, fault: &str, folder: &Path) -> Checked<Vec<String>> {
    let library = folder.join("sync.so");
    if !library.exists() {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../store/tests/failing_disk/sync.c");
        let built =
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).args([source, "-ldl"]).output()?;
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }
    let played = Command::new(std::env::current_exe()?)
        .args(["--exact", "the_click_in_the_process_that_plays_it", "--nocapture"])
        .env(CLICK, click)
        .env(FAULT, fault)
        .env(FAIL_SYNC, folder.join("fail"))
        .env("LD_PRELOAD", &library)
        .current_dir(folder)
        .output()?;
    let said = String::from_utf8(played.stdout)?;
    let words: Vec<_> =
        said.lines().filter_map(|line| line.split_once("said: ")).map(|(_, word)| word.to_owned()).collect();
    let ended = words.last().is_some_and(|word| word == "end");
    assert!(ended, "{click}, {fault}: {said}\n{}", String::from_utf8_lossy(&played.stderr));
    Ok(words[..words.len() - 1].to_vec())
}

/// The states of all operations before the click, and after it; and what it is told as where it is done.
fn expected(click: &str) -> (&'static str, &'static str, &'static str) {
    match click {
        "a cancellation" => ("saved", "cancelled", "done cancelled"),
        "both cancelled" => ("saved saved", "cancelled cancelled", "done cancelled"),
        _ => ("saved", "saved saved", "done saved"),
    }
}

/// What an earlier process saved is there, and perhaps on no disk; what is clicked now is not, unless a log was left that may hold it.
#[test]
fn on_a_disk_that_fails_from_the_start_what_is_new_is_told_as_failed_and_what_is_there_as_open() -> Checked {
    for (left, told, there) in
        [("ended in order", ["open", "failed"], "saved"), ("none", ["open", "open"], "saved saved")]
    {
        let folder = tempfile::tempdir()?;
        play("a payment", left, folder.path())?;
        let fail = folder.path().join("fail");
        std::fs::write(&fail, "")?;
        assert_eq!(play("a payment", "from the start", folder.path())?, told, "{left}");
        std::fs::remove_file(&fail)?;
        assert_eq!(play("a payment", "a look", folder.path())?, [there], "{left}");
    }
    Ok(())
}

#[test]
fn a_click_that_is_told_as_failed_is_not_there_at_the_next_start() -> Checked {
    for click in CLICKS {
        let (without, with, done) = expected(click);
        let folder = tempfile::tempdir()?;
        assert_eq!(play(click, "once", folder.path())?, ["failed"], "{click}");
        assert_eq!(play(click, "a look", folder.path())?, [without], "{click}: told as failed, and it came back");
        assert_eq!(play(click, "none", folder.path())?, [done, with], "{click}");
    }
    Ok(())
}

#[test]
fn while_the_disk_fails_a_click_is_told_as_open_and_then_as_it_is() -> Checked {
    for click in CLICKS {
        let (_, with, done) = expected(click);
        let folder = tempfile::tempdir()?;
        assert_eq!(play(click, "for a while", folder.path())?, ["open", "open", "fails", done], "{click}");
        assert_eq!(play(click, "a look", folder.path())?, [with], "{click}: told as done, and it is not there");
    }
    Ok(())
}

#[test]
fn after_a_death_on_a_failing_disk_the_same_click_is_done_once() -> Checked {
    for click in CLICKS {
        let (without, with, done) = expected(click);
        let folder = tempfile::tempdir()?;
        assert_eq!(play(click, "until the end", folder.path())?, ["open", "open", "fails"], "{click}");
        std::fs::remove_file(folder.path().join("fail"))?;
        // What the log brings back was told neither as done nor as failed.
        let found = play(click, "a look", folder.path())?;
        assert!(found == [without] || found == [with], "{click}: {found:?}");
        assert_eq!(play(click, "none", folder.path())?, [done, with], "{click}");
    }
    Ok(())
}
