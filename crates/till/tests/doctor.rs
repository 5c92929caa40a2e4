//! `kassa-till doctor` as it is called, with a bank of a few lines beside it.

use serde_json::{Value, json};
use std::{
    error::Error,
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Arc,
    thread,
};
use tempfile::TempDir;

type Checked<T = ()> = Result<T, Box<dyn Error>>;

fn kassa_till(data: &Path, args: &[&str]) -> Checked<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kassa-till"));
    for name in ["KASSA_BANK_URL", "KASSA_BANK_TOKEN", "KASSA_LOG", "RUST_LOG"] {
        command.env_remove(name);
    }
    Ok(command.env("KASSA_DATA_DIR", data).args(args).output()?)
}

/// What was printed, by lines, and the exit code.
fn doctor(data: &Path, more: &[&str]) -> Checked<(Vec<Value>, Option<i32>)> {
    let output = kassa_till(data, &[&["doctor", "--json"], more].concat())?;
    let lines = String::from_utf8(output.stdout)?;
    let lines = lines.lines().map(|line| Ok(serde_json::from_str(line)?)).collect::<Checked<_>>()?;
    Ok((lines, output.status.code()))
}

/// A till with one payment that was never sent, and its key.
fn till() -> Checked<(TempDir, PathBuf, String)> {
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    let paid = kassa_till(&data, &["pay", "--amount", "2490", "--currency", "EUR", "--card", "tok_visa"])?;
    let paid: Value = serde_json::from_slice(&paid.stdout)?;
    let key = paid["key"].as_str().ok_or("no key")?.to_owned();
    Ok((dir, data, key))
}

/// A bank that answers each path by what `answer` says: a status and a document.
fn bank(answer: impl Fn(&str) -> (u16, Value) + Send + Sync + 'static) -> Checked<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that goes away in the middle is nobody's fault.
            let _ = serve(stream, &*answer);
        }
    });
    Ok(url)
}

fn serve(mut stream: TcpStream, answer: &dyn Fn(&str) -> (u16, Value)) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let (status, body) = match path.as_str() {
        "/v1/policy" => (
            200,
            json!({"bank_id": "0b0b0b0b-0b0b-4b0b-8b0b-0b0b0b0b0b0b", "merchant": "demo", "claims": "permanent", "retention_s": 86_400,
                "key_format": "uuid", "max_body_bytes": 65_536, "wait_ms": 3_000, "currencies": ["EUR"]}),
        ),
        path => answer(path),
    };
    let kind = if status == 200 { "application/json" } else { "application/problem+json" };
    let body = body.to_string();
    write!(
        stream,
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn unknown() -> (u16, Value) {
    (404, json!({"type": "/problems/operation-unknown", "title": "unknown", "status": 404}))
}

fn payment(key: &str, reference: &str) -> Value {
    json!({"id": "pay_01j9zq2m8e5h7w3k6v4t0r1s2x", "status": "approved", "amount": 2_490, "currency": "EUR", "reference": reference,
        "operation": key, "short_code": "0000", "created_at": "2026-11-30T09:00:00Z"})
}

const NOBODYS: &str = "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b";

#[test]
fn a_right_file_is_told_as_right() -> Checked {
    let (_dir, data, _) = till()?;
    let (lines, code) = doctor(&data, &[])?;
    let summary = json!({"summary": {"findings": 0, "sales": 1, "operations": 1, "bank": "not named"}});
    assert_eq!((lines, code), (vec![summary], Some(0)));
    let shown = String::from_utf8(kassa_till(&data, &["doctor"])?.stdout)?;
    assert_eq!(shown, "nothing is wrong; sales: 1, operations: 1, bank: not named\n");
    Ok(())
}

#[test]
fn a_tampered_file_ends_with_1_and_a_line_for_people() -> Checked {
    let (_dir, data, _) = till()?;
    rusqlite::Connection::open(data.join("till.db"))?.execute_batch("DROP TRIGGER tenders_stay")?;
    let output = kassa_till(&data, &["doctor"])?;
    let shown = String::from_utf8(output.stdout)?;
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.starts_with("schema-changed: trigger tenders_stay: is gone"), "{shown}");
    assert_eq!(shown.lines().count(), 2, "{shown}");
    Ok(())
}

#[test]
fn a_payment_that_the_till_does_not_know_is_found_and_those_of_other_tills_are_not() -> Checked {
    let (_dir, data, key) = till()?;
    let of = key.clone();
    let url = bank(move |path| match path {
        path if path.starts_with("/v1/operations/") => unknown(),
        path if path.contains("after=2") => {
            (200, json!({"data": [payment(NOBODYS, "till-1/7"), payment(&of, "till-1/1")], "next": null}))
        }
        _ => (200, json!({"data": [payment(NOBODYS, "till-12/7"), payment(NOBODYS, "order 17")], "next": "2"})),
    })?;
    let (lines, code) = doctor(&data, &["--bank-url", &url, "--bank-token", "s"])?;
    assert_eq!((lines.len(), code), (2, Some(1)), "{lines:?}");
    assert_eq!(lines[0]["code"], "bank-payment-unknown");
    let what = lines[0]["what"].as_str().unwrap_or_default();
    assert!(what.contains("till-1/7") && what.contains(NOBODYS) && what.contains(" 24.90 EUR "), "{what}");
    assert_eq!(lines[1]["summary"], json!({"findings": 1, "sales": 1, "operations": 1, "bank": "compared"}));
    Ok(())
}

#[test]
fn an_operation_that_the_bank_has_otherwise_is_named() -> Checked {
    let (_dir, data, key) = till()?;
    for (state, amount, code) in
        [("approved", 2_490, Some("bank-ahead")), ("approved", 2_491, Some("bank-amount")), ("processing", 2_490, None)]
    {
        let of = key.clone();
        let url = bank(move |path| match path {
            path if path.starts_with("/v1/operations/") => {
                let result = if state == "approved" { json!({"id": "pay_1", "amount": amount}) } else { Value::Null };
                (
                    200,
                    json!({"key": of, "state": state, "kind": "payment", "result": result,
                    "created_at": "2026-11-30T09:00:00Z", "completed_at": null}),
                )
            }
            _ => (200, json!({"data": [], "next": null})),
        })?;
        let (lines, exit) = doctor(&data, &["--bank-url", &url, "--bank-token", "s"])?;
        let found: Vec<_> = lines.iter().filter_map(|line| line["code"].as_str()).collect();
        assert_eq!((found, exit), (code.into_iter().collect(), Some(i32::from(code.is_some()))), "{lines:?}");
    }
    Ok(())
}

#[test]
fn what_was_sent_to_another_bank_is_said_to_be_not_compared() -> Checked {
    let (_dir, data, _) = till()?;
    rusqlite::Connection::open(data.join("till.db"))?
        .execute("UPDATE operations SET bank_id = x'0c0c0c0c0c0c4c0c8c0c0c0c0c0c0c0c', merchant = 'demo'", [])?;
    let url = bank(|path| match path {
        path if path.starts_with("/v1/operations/") => unknown(),
        _ => (200, json!({"data": [], "next": null})),
    })?;
    let (lines, code) = doctor(&data, &["--bank-url", &url, "--bank-token", "s"])?;
    assert_eq!((lines[0]["summary"]["bank"].as_str(), code), (Some("compared in part"), Some(3)), "{lines:?}");
    let said = String::from_utf8(kassa_till(&data, &["doctor", "--bank-url", &url, "--bank-token", "s"])?.stderr)?;
    assert!(said.contains("operations of another bank: 1"), "{said}");
    Ok(())
}

#[test]
fn a_bank_that_can_not_be_asked_ends_with_3_and_a_bank_without_a_secret_with_2() -> Checked {
    let (_dir, data, _) = till()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    drop(listener);
    let (lines, code) = doctor(&data, &["--bank-url", &url, "--bank-token", "s"])?;
    assert_eq!((lines[0]["summary"]["bank"].as_str(), code), (Some("not asked"), Some(3)), "{lines:?}");
    rusqlite::Connection::open(data.join("till.db"))?.execute_batch("DROP TRIGGER tenders_stay")?;
    let (_, code) = doctor(&data, &["--bank-url", &url, "--bank-token", "s"])?;
    assert_eq!(code, Some(1), "what is wrong with the file counts more");
    assert_eq!(kassa_till(&data, &["doctor", "--bank-url", &url])?.status.code(), Some(2));
    Ok(())
}
