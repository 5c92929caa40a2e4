//! `kassa-till` as it is called: what it prints, and its exit codes.

use serde_json::Value;
use std::{
    error::Error,
    io::Write as _,
    path::Path,
    process::{Command, Output, Stdio},
};
use tempfile::TempDir;
use till::Till;

type Checked<T = ()> = Result<T, Box<dyn Error>>;

/// The program over a data folder, with no setting of the surroundings.
fn kassa_till(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kassa-till"));
    for name in ["KASSA_BANK_URL", "KASSA_BANK_TOKEN", "KASSA_LOG", "RUST_LOG"] {
        command.env_remove(name);
    }
    command.env("KASSA_DATA_DIR", data);
    command
}

fn run(data: &Path, args: &[&str]) -> Checked<Output> {
    Ok(kassa_till(data).args(args).output()?)
}

fn lines(output: &Output) -> Checked<Vec<Value>> {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone())?.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

fn data() -> Checked<(TempDir, std::path::PathBuf)> {
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    Ok((dir, data))
}

const PAY: [&str; 7] = ["pay", "--amount", "2490", "--currency", "EUR", "--card", "tok_visa"];

fn pay_with(data: &Path, more: &[&str]) -> Checked<Output> {
    run(data, &[&PAY[..], more].concat())
}

/// Refused with exactly one line on stderr and nothing on stdout.
fn assert_refused(output: &Output, code: i32, reason: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains(reason), "{stderr}");
    assert!(output.stdout.is_empty());
}

#[test]
fn what_is_saved_and_cannot_be_printed_is_not_told_as_refused() -> Checked {
    let (_dir, data) = data()?;
    let full = std::fs::File::options().write(true).open("/dev/full")?;
    let output = kassa_till(&data).args(PAY).args(["--times", "100"]).stdout(full).output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "who repeats what was refused charges twice: {stderr}");
    assert!(stderr.contains("saved") && stderr.lines().count() == 1, "{stderr}");
    assert_eq!(lines(&run(&data, &["operations", "--json"])?)?.len(), 100);
    Ok(())
}

#[test]
fn pay_saves_each_payment_and_prints_it() -> Checked {
    let (_dir, data) = data()?;
    let paid = lines(&pay_with(&data, &["--times", "3"])?)?;
    assert_eq!(paid.len(), 3);
    let members: Vec<_> = paid[0].as_object().ok_or("no object")?.keys().map(String::as_str).collect();
    assert_eq!(
        members,
        [
            "key",
            "short_code",
            "kind",
            "state",
            "amount",
            "currency",
            "attempts",
            "accepted_offline",
            "created_at",
            "due_at",
            "reason",
            "result"
        ]
    );
    for operation in &paid {
        assert_eq!(operation["state"], "saved");
        assert_eq!(operation["kind"], "payment");
        assert_eq!((&operation["amount"], &operation["currency"]), (&2490.into(), &"EUR".into()));
        assert_eq!(operation["accepted_offline"], false);
        assert!(operation["result"].is_null());
    }
    assert_eq!(lines(&run(&data, &["operations", "--json"])?)?, paid);
    assert_eq!(lines(&run(&data, &["operations", "--json", "--state", "saved"])?)?.len(), 3);
    assert_eq!(lines(&run(&data, &["operations", "--json", "--state", "approved"])?)?.len(), 0);
    let table = run(&data, &["operations"])?;
    let table = String::from_utf8(table.stdout)?;
    assert_eq!(table.lines().count(), 4);
    assert!(table.contains("24.90 EUR"), "{table}");
    // What was saved is in each sale of its own, by the till's own name for it.
    let file = rusqlite::Connection::open(data.join("till.db"))?;
    let references: Vec<String> = file
        .prepare("SELECT reference FROM tenders JOIN sales ON sales.id = sale_id ORDER BY number")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    assert_eq!(references, ["till-1/1", "till-1/2", "till-1/3"]);
    Ok(())
}

#[test]
fn the_same_intent_is_the_same_operation() -> Checked {
    let (_dir, data) = data()?;
    let intent = ["--intent", "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b", "--reference", "order 17"];
    let first = lines(&pay_with(&data, &intent)?)?;
    assert_eq!(lines(&pay_with(&data, &intent)?)?, first);
    assert_eq!(lines(&pay_with(&data, &intent[..2])?)?, first);
    // The reference is no part of what is charged: another one names the same operation, which keeps its own.
    assert_eq!(lines(&pay_with(&data, &[&intent[..2], &["--reference", "order 18"]].concat())?)?, first);
    for other in [
        &["pay", "--amount", "2491", "--currency", "EUR", "--card", "tok_visa"][..],
        &["pay", "--amount", "2490", "--currency", "USD", "--card", "tok_visa"],
        &["pay", "--amount", "2490", "--currency", "EUR", "--card", "tok_mir"],
    ] {
        let refused = run(&data, &[other, &intent[..2]].concat())?;
        assert_refused(&refused, 1, "already asked for");
    }
    assert_eq!(lines(&run(&data, &["operations", "--json"])?)?, first);
    // Any name will do, and names its own.
    let named = lines(&pay_with(&data, &["--intent", "order 19"])?)?;
    assert_ne!(named, first);
    assert_eq!(lines(&pay_with(&data, &["--intent", "order 19"])?)?, named);
    Ok(())
}

/// What is asked of an intent that there is already was decided at its first time, and is not decided anew without a word.
#[test]
fn what_comes_too_late_for_an_intent_is_told() -> Checked {
    let (_dir, data) = data()?;
    let pay = |name: &str, more: &[&str]| pay_with(&data, &[&["--intent", name], more].concat());
    let online = lines(&pay("on", &["--reference", "order 17"])?)?;
    let offline = lines(&pay("off", &["--offline"])?)?;
    for (name, more, words) in [
        ("on", &["--offline"][..], Some("--offline was not applied")),
        ("off", &[], Some("is accepted offline")),
        ("off", &["--offline"], None),
        ("on", &["--reference", "order 18"], Some("--reference was not applied")),
        ("on", &["--reference", "order 17"], None),
        ("on", &[], None),
    ] {
        let again = pay(name, more)?;
        assert_eq!(&lines(&again)?, if name == "on" { &online } else { &offline });
        let said = String::from_utf8(again.stderr)?;
        match words {
            Some(words) => assert!(said.contains(words) && said.lines().count() == 1, "{name} {more:?}: {said}"),
            None => assert_eq!(said, "", "{name} {more:?}"),
        }
    }
    Ok(())
}

#[test]
fn wrong_usage_is_told_and_changes_nothing() -> Checked {
    let (_dir, data) = data()?;
    let long = "t".repeat(65);
    for wrong in [
        &[][..],
        &["pay"],
        &["pay", "--amount", "0", "--currency", "EUR", "--card", "tok_visa"],
        &["pay", "--amount", "24.90", "--currency", "EUR", "--card", "tok_visa"],
        &["pay", "--amount", "100000000", "--currency", "EUR", "--card", "tok_visa"],
        &["pay", "--amount", "1", "--currency", "eur", "--card", "tok_visa"],
        &["pay", "--amount", "1", "--currency", "EUR", "--card", ""],
        &["pay", "--amount", "1", "--currency", "EUR", "--card", &long],
        &["pay", "--amount", "1", "--currency", "EUR", "--card", "tok_visa", "--reference", &long],
        &["pay", "--amount", "1", "--currency", "EUR", "--card", "tok_visa", "--times", "0"],
        &["pay", "--amount", "1", "--currency", "EUR", "--card", "tok_visa", "--times", "2", "--intent", "x"],
        &["refund"],
        &["sync"],
        &["sync", "--bank-url", "http://127.0.0.1:9"],
        &["sync", "--bank-url", "http://bank.example", "--bank-token", "sk_1"],
        &["sync", "--bank-url", "no address", "--bank-token", "sk_1"],
        &["sync", "--timeout", "soon"],
        &["log", "K7Q2"],
        &["operations", "--state", "failed"],
    ] {
        let refused = run(&data, wrong)?;
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}: {stderr}");
        assert!(!stderr.is_empty() && refused.stdout.is_empty(), "{wrong:?}");
        assert!(!stderr.contains(&long[..32]), "{stderr}");
    }
    assert!(!data.exists());
    Ok(())
}

/// It would be kept for ever, here and at the bank.
#[test]
fn a_card_number_is_refused_not_repeated_and_not_kept() -> Checked {
    let (_dir, data) = data()?;
    let pay = |card: &str, reference: &str| {
        run(&data, &["pay", "--amount", "1", "--currency", "EUR", "--card", card, "--reference", reference])
    };
    let long = format!("{} 4111 1111 1111 1111", "x".repeat(64));
    for (card, reference, option) in [
        ("4111111111111111", "order 17", "--card"),
        ("4111 1111 1111 1111", "order 17", "--card"),
        ("tok_4111-1111-1111-1111", "order 17", "--card"),
        ("tok_visa", "4111111111111111", "--reference"),
        ("tok_visa", "order 17, card 4111 1111 1111 1111", "--reference"),
        ("tok_visa", &long, "--reference"),
    ] {
        let refused = pay(card, reference)?;
        assert_refused(&refused, 2, option);
        assert!(!String::from_utf8(refused.stderr)?.contains("1111"), "it repeats the number");
    }
    assert!(!data.exists());
    // Other digits are nobody's card.
    assert_eq!(lines(&pay("tok_visa", "order 4111111111111112 of 2026-11-30")?)?.len(), 1);
    Ok(())
}

#[test]
fn a_secret_is_not_shown() -> Checked {
    let (_dir, data) = data()?;
    let help = kassa_till(&data).env("KASSA_BANK_TOKEN", "sk_hidden").args(["sync", "--help"]).output()?;
    assert_eq!(help.status.code(), Some(0));
    assert!(!String::from_utf8(help.stdout)?.contains("sk_hidden"));
    let refused = kassa_till(&data)
        .env("KASSA_BANK_TOKEN", "sk_hidden\u{e9}")
        .args(["sync", "--bank-url", "http://user:pw_hidden@127.0.0.1:9"])
        .output()?;
    assert_eq!(refused.status.code(), Some(2));
    assert!(!String::from_utf8(refused.stderr)?.contains("hidden"));
    Ok(())
}

#[test]
fn the_log_of_an_operation_is_one_line_an_event() -> Checked {
    let (_dir, data) = data()?;
    let paid = lines(&pay_with(&data, &[])?)?;
    let key = paid[0]["key"].as_str().ok_or("no key")?;
    let log = lines(&run(&data, &["log", key])?)?;
    assert_eq!(log.len(), 1);
    assert_eq!((&log[0]["event"], &log[0]["key"]), (&"saved".into(), &paid[0]["key"]));
    assert_eq!(lines(&run(&data, &["log", &key.to_uppercase()])?)?, log);
    assert_refused(&run(&data, &["log", "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b"])?, 1, "no such operation");
    Ok(())
}

#[test]
fn a_folder_in_use_is_refused_but_can_be_read() -> Checked {
    let (_dir, data) = data()?;
    let paid = lines(&pay_with(&data, &[])?)?;
    let owner = Till::open(&data)?;
    assert_refused(&pay_with(&data, &[])?, 1, "in use by another process");
    let sync = run(&data, &["sync", "--bank-url", "http://127.0.0.1:9", "--bank-token", "sk_1"])?;
    assert_refused(&sync, 1, "in use by another process");
    assert_eq!(lines(&run(&data, &["operations", "--json"])?)?, paid);
    assert_eq!(lines(&run(&data, &["log", paid[0]["key"].as_str().ok_or("no key")?])?)?.len(), 1);
    drop(owner);
    assert_eq!(lines(&pay_with(&data, &[])?)?.len(), 1);
    Ok(())
}

/// Beside its file SQLite makes an index that a full disk has no room for. Here no file may have a byte more than it has.
#[cfg(unix)]
#[test]
fn what_is_saved_can_be_read_where_nothing_can_be_written() -> Checked {
    let (_dir, data) = data()?;
    let paid = lines(&pay_with(&data, &["--times", "3"])?)?;
    let key = text(&paid[0], "key");
    assert!(!data.join("till.db-shm").exists(), "there is an index already");
    let limited = |args: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_kassa-till")]);
        command.args(args).env("KASSA_DATA_DIR", &data).output()
    };
    assert_eq!(limited(&PAY)?.status.code(), Some(1), "something can be written");
    assert_eq!(lines(&limited(&["operations", "--json"])?)?, paid);
    assert_eq!(lines(&limited(&["log", key])?)?.len(), 1);
    assert_eq!(lines(&limited(&["export", "payments"])?)?.len(), 3);
    Ok(())
}

#[test]
fn what_cannot_be_opened_is_told_in_one_line() -> Checked {
    let (dir, data) = data()?;
    assert_refused(&run(&data, &["operations"])?, 1, "no such file");
    assert!(!data.exists());
    let file = dir.path().join("a file");
    std::fs::write(&file, "")?;
    assert_refused(&pay_with(&file.join("data"), &[])?, 1, "");
    // A newer program was here: its file is left as it is.
    pay_with(&data, &[])?;
    rusqlite::Connection::open(data.join("till.db"))?.pragma_update(None, "user_version", 99)?;
    let before = std::fs::read(data.join("till.db"))?;
    assert_refused(&pay_with(&data, &[])?, 1, "newer version");
    assert_eq!(std::fs::read(data.join("till.db"))?, before);
    Ok(())
}

/// SQLite takes an empty file for a new one: a shop's data would be gone without a word.
#[test]
fn a_file_that_is_empty_or_gone_is_not_taken_for_a_new_till() -> Checked {
    let (_dir, data) = data()?;
    let paid = lines(&pay_with(&data, &[])?)?;
    let file = data.join("till.db");
    let copy = std::fs::read(&file)?;
    let sync = ["sync", "--bank-url", "http://127.0.0.1:9", "--bank-token", "sk_1"];
    for (lost, what) in [(true, "is gone"), (false, "is empty")] {
        if lost {
            std::fs::remove_file(&file)?
        } else {
            std::fs::write(&file, "")?
        }
        for command in [&PAY[..], &sync, &["operations"], &["export", "payments"]] {
            let refused = run(&data, command)?;
            assert_refused(&refused, 1, what);
            assert_refused(&refused, 1, "put a copy of it back");
        }
        assert_eq!(file.metadata().map_or(0, |found| found.len()), 0, "something was begun");
        std::fs::write(&file, &copy)?;
        assert_eq!(lines(&run(&data, &["operations", "--json"])?)?, paid);
    }
    // Whoever wants it begins anew.
    std::fs::remove_file(&file)?;
    std::fs::remove_file(data.join("till.begun"))?;
    assert_ne!(lines(&pay_with(&data, &[])?)?, paid);
    assert_eq!(lines(&run(&data, &["operations", "--json"])?)?.len(), 1);
    Ok(())
}

/// A start that was killed before it had written anything, and a till of an earlier version, have no mark.
#[test]
fn an_empty_file_where_no_till_was_begun_is_one_that_begins() -> Checked {
    let (_dir, data) = data()?;
    std::fs::create_dir(&data)?;
    std::fs::write(data.join("till.db"), "")?;
    let paid = lines(&pay_with(&data, &[])?)?;
    std::fs::remove_file(data.join("till.begun"))?;
    assert_eq!(lines(&run(&data, &["operations", "--json"])?)?, paid);
    assert_eq!(lines(&pay_with(&data, &[])?)?.len(), 1);
    assert!(data.join("till.begun").exists(), "it is marked at the next start");
    Ok(())
}

#[cfg(unix)]
#[test]
fn the_folder_is_private() -> Checked {
    use std::os::unix::fs::PermissionsExt as _;
    let (_dir, data) = data()?;
    pay_with(&data, &[])?;
    assert_eq!(std::fs::metadata(&data)?.permissions().mode() & 0o777, 0o700);
    for entry in std::fs::read_dir(&data)? {
        let entry = entry?;
        assert_eq!(entry.metadata()?.permissions().mode() & 0o077, 0, "{}", entry.path().display());
    }
    Ok(())
}

#[test]
fn price_answers_in_json_good_or_bad() -> Checked {
    let (dir, data) = data()?;
    let price = |input: &str| -> Checked<(Option<i32>, Value)> {
        let mut child = kassa_till(&data).arg("price").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        child.stdin.take().ok_or("no stdin")?.write_all(input.as_bytes())?;
        let output = child.wait_with_output()?;
        Ok((output.status.code(), serde_json::from_slice(&output.stdout)?))
    };
    let (code, priced) = price(r#"{"currency":"EUR","lines":[{"unit_price":399,"quantity":"0.755"}]}"#)?;
    assert_eq!((code, &priced["total"]), (Some(0), &301.into()));
    let (code, refused) = price(r#"{"currency":"EUR","lines":[{"unit_price":399,"quantity":"0.7555"}]}"#)?;
    assert_eq!((code, &refused["error"]["path"]), (Some(1), &"lines[0].quantity".into()));
    assert!(refused["error"]["code"].is_string() && refused["error"]["message"].is_string());
    assert_eq!(price("{")?.0, Some(1));
    assert_eq!(price("")?.0, Some(1));

    let file = dir.path().join("cart.json");
    std::fs::write(&file, r#"{"currency":"EUR","lines":[{"unit_price":100}]}"#)?;
    let output = run(&data, &["price", file.to_str().ok_or("no text")?])?;
    assert_eq!(lines(&output)?[0]["total"], 100);
    assert_refused(&run(&data, &["price", "/no/such/file"])?, 1, "/no/such/file");
    assert!(!data.exists(), "pricing needs no till");
    Ok(())
}

#[test]
fn a_reader_that_goes_away_is_no_fault() -> Checked {
    let (_dir, data) = data()?;
    let mut pay = kassa_till(&data);
    let mut child = pay.args(PAY).args(["--times", "700"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    drop(child.stdout.take());
    let ended = child.wait_with_output()?;
    assert_eq!((ended.status.code(), String::from_utf8(ended.stderr)?.as_str()), (Some(0), ""));
    // All were saved all the same, and more than one page of them is read.
    assert_eq!(lines(&run(&data, &["operations", "--json"])?)?.len(), 700);
    let mut list = kassa_till(&data);
    let mut child = list.args(["operations", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    drop(child.stdout.take());
    let ended = child.wait_with_output()?;
    assert_eq!((ended.status.code(), String::from_utf8(ended.stderr)?.as_str()), (Some(0), ""));
    Ok(())
}

fn text<'a>(document: &'a Value, member: &str) -> &'a str {
    document[member].as_str().unwrap_or_default()
}

#[test]
fn a_refund_is_saved_and_never_over_what_is_left() -> Checked {
    let (_dir, data) = data()?;
    let paid = lines(&pay_with(&data, &[])?)?;
    let key = text(&paid[0], "key");
    let refund = |args: &[&str]| run(&data, &[&["refund", key, "--amount"], args].concat());
    let saved = lines(&refund(&["2000", "--intent", "returned bottles"])?)?;
    assert_eq!(saved.len(), 1);
    assert_eq!((text(&saved[0], "kind"), text(&saved[0], "state")), ("refund", "saved"));
    assert_eq!((&saved[0]["amount"], text(&saved[0], "currency")), (&Value::from(2000), "EUR"));
    let again = lines(&refund(&["2000", "--intent", "returned bottles"])?)?;
    assert_eq!(again, saved);
    assert_refused(&refund(&["1999", "--intent", "returned bottles"])?, 1, "another amount or payment");
    assert_refused(&refund(&["491"])?, 1, "4.91 is more than the 4.90 that is left to give back");
    assert_refused(&run(&data, &["refund", text(&saved[0], "key"), "--amount", "1"])?, 1, "no such payment");
    let unknown = "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b";
    assert_refused(&run(&data, &["refund", unknown, "--amount", "1"])?, 1, "no such payment");
    assert_eq!(refund(&["0"])?.status.code(), Some(2));
    assert_eq!(lines(&run(&data, &["operations", "--json"])?)?.len(), 2);
    Ok(())
}

#[test]
fn what_was_never_sent_is_cancelled_at_once_with_its_refunds() -> Checked {
    let (_dir, data) = data()?;
    let paid = lines(&pay_with(&data, &[])?)?;
    let key = text(&paid[0], "key");
    lines(&run(&data, &["refund", key, "--amount", "490"])?)?;
    for _ in 0..2 {
        let cancelled = lines(&run(&data, &["cancel", key])?)?;
        assert_eq!((cancelled.len(), text(&cancelled[0], "state")), (1, "cancelled"));
    }
    let states: Vec<_> =
        lines(&run(&data, &["operations", "--json"])?)?.iter().map(|line| text(line, "state").to_owned()).collect();
    assert_eq!(states, ["cancelled", "cancelled"]);
    assert_refused(&run(&data, &["refund", key, "--amount", "1"])?, 1, "nothing to give back");
    let unknown = "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b";
    assert_refused(&run(&data, &["cancel", unknown])?, 1, "no such operation");
    // The tender went along, once, and stands in the audit.
    let file = rusqlite::Connection::open(data.join("till.db"))?;
    let state: String = file.query_row("SELECT state FROM tenders", [], |row| row.get(0))?;
    let wishes: i64 =
        file.query_row("SELECT count(*) FROM audit WHERE what = 'cancel-wished'", [], |row| row.get(0))?;
    assert_eq!((state.as_str(), wishes), ("cancelled", 1));
    Ok(())
}

#[test]
fn what_is_taken_offline_from_the_outset_says_so_and_is_not_cancelled() -> Checked {
    let (_dir, data) = data()?;
    let paid = lines(&pay_with(&data, &["--offline"])?)?;
    assert_eq!(paid[0]["accepted_offline"], true);
    assert_refused(&run(&data, &["cancel", text(&paid[0], "key")])?, 1, "a manager writes it off");
    let file = rusqlite::Connection::open(data.join("till.db"))?;
    let body: Vec<u8> = file.query_row("SELECT body FROM operations", [], |row| row.get(0))?;
    let body: Value = serde_json::from_slice(&body)?;
    assert!(body["accepted_offline_at"].is_string(), "{body}");
    Ok(())
}

#[test]
fn nothing_is_taken_offline_over_the_limits() -> Checked {
    let (_dir, data) = data()?;
    let offline = |amount: &str, currency: &str, times: &str| {
        let pay =
            ["pay", "--amount", amount, "--currency", currency, "--card", "tok_visa", "--offline", "--times", times];
        run(&data, &pay)
    };
    assert_refused(&offline("5001", "EUR", "1")?, 1, "50.01 is over the limit of 50.00 for one payment");
    assert_refused(&offline("100", "USD", "1")?, 1, "it is in USD, and the limits are in EUR");
    // What fits is saved and printed, and the first that does not is the end.
    let most = offline("5000", "EUR", "21")?;
    assert_eq!((most.status.code(), most.stdout.split(|byte| *byte == b'\n').count() - 1), (Some(1), 20));
    assert_refused(&offline("1", "EUR", "1")?, 1, "over the limit of 1000.00 together");
    assert_eq!(lines(&run(&data, &["operations", "--json"])?)?.len(), 20);
    Ok(())
}

#[test]
fn the_payments_are_exported_whole_and_a_reader_that_goes_is_no_fault() -> Checked {
    let (_dir, data) = data()?;
    lines(&pay_with(&data, &["--times", "700"])?)?;
    let exported = lines(&run(&data, &["export", "payments"])?)?;
    assert_eq!(exported.len(), 700);
    assert!(exported.iter().all(|line| line["attempts_log"][0]["event"] == "saved"));
    let listed = lines(&run(&data, &["operations", "--json"])?)?;
    let keys = |lines: &[Value]| lines.iter().map(|line| text(line, "key").to_owned()).collect::<Vec<_>>();
    assert_eq!(keys(&exported), keys(&listed));
    let mut reader =
        kassa_till(&data).args(["export", "payments"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    drop(reader.stdout.take());
    let ended = reader.wait_with_output()?;
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    let full = std::fs::File::options().write(true).open("/dev/full")?;
    let refused = kassa_till(&data).args(["export", "payments"]).stdout(full).output()?;
    assert_refused(&refused, 1, "the export could not be written");
    Ok(())
}

/// A bank's own words stand in its result, and in the log: what a terminal acts on there is printed as what it is.
#[test]
fn what_a_terminal_acts_on_is_printed_escaped_and_means_the_same() -> Checked {
    let (_dir, data) = data()?;
    assert_eq!(lines(&pay_with(&data, &[])?)?.len(), 1);
    let acting = "a\u{9b}2J\u{7f}b\u{202e}c\u{200f}d\u{2066}e";
    let file = rusqlite::Connection::open(data.join("till.db"))?;
    let result = serde_json::json!({ "id": "pay_1", "words": acting }).to_string();
    file.execute("UPDATE operations SET state = 'approved', result = ?1, due_at = NULL, settled_at = 1", [&result])?;
    for args in [&["operations", "--json"][..], &["export", "payments", "--format", "json"]] {
        let output = run(&data, args)?;
        let printed = String::from_utf8(output.stdout.clone())?;
        let found = lines(&output)?.iter().any(|line| line.to_string().contains(acting));
        assert!(found, "{args:?}: the words are gone: {printed:?}");
        let raw = printed.chars().find(|&c| acting.contains(c) && !c.is_ascii_graphic());
        assert_eq!(raw, None, "{args:?}: {printed:?}");
        assert!(printed.contains(r"a\u009b2J\u007fb\u202ec\u200fd\u2066e"), "{args:?}: {printed:?}");
    }
    Ok(())
}
