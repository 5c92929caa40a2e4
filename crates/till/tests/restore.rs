//! A copy brought back: under another name, and with nothing paid before the bank's payments since the copy were matched.

use serde_json::{Value, json};
use std::{
    error::Error,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use till::{Bank, CardPayment, CashPayment, Compared, Matched, SaleState, Secret, Till, TillError, Told};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

type Checked<T = ()> = Result<T, Box<dyn Error>>;

const BANK_ID: &str = "0b0b0b0b-0b0b-4b0b-8b0b-0b0b0b0b0b0b";
const KEY: &str = "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b";

fn kassa_till(data: &Path, args: &[&str]) -> Checked<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kassa-till"));
    for name in ["KASSA_BANK_URL", "KASSA_BANK_TOKEN", "KASSA_LOG", "RUST_LOG"] {
        command.env_remove(name);
    }
    Ok(command.env("KASSA_DATA_DIR", data).args(args).output()?)
}

/// A bank that lists these payments, cancels whatever it is asked to, and knows one key.
fn bank(payments: Vec<Value>) -> Checked<Bank> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that goes away in the middle is nobody's fault.
            let _ = serve(stream, &payments);
        }
    });
    Ok(Bank { url, token: Secret::new("s") })
}

fn serve(mut stream: TcpStream, payments: &[Value]) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let path = first.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match path {
        "/v1/policy" => (
            200,
            json!({"bank_id": BANK_ID, "merchant": "demo", "claims": "permanent", "retention_s": 86_400, "key_format": "uuid",
                "max_body_bytes": 65_536, "wait_ms": 3_000, "currencies": ["EUR"]}),
        ),
        path if path.starts_with("/v1/payments?") => (200, json!({"data": payments, "next": null})),
        path if path.starts_with("/v1/payments/") => {
            match payments.iter().find(|payment| path.ends_with(payment["id"].as_str().unwrap_or("?"))) {
                Some(payment) => (200, payment.clone()),
                None => (404, json!({"type": "/problems/not-found", "title": "unknown", "status": 404})),
            }
        }
        path if path.ends_with(KEY) => {
            let result = payments.iter().find(|payment| payment["operation"] == KEY);
            (
                200,
                json!({"key": KEY, "state": "approved", "kind": "payment", "result": result,
                "created_at": "2026-11-30T09:00:00Z", "completed_at": "2026-11-30T09:00:01Z"}),
            )
        }
        path if path.ends_with("/cancellation") => {
            let key = path.split('/').nth(3);
            (
                200,
                json!({"key": key, "state": "cancelled", "kind": null, "result": null,
                "created_at": "2026-11-30T09:00:00Z", "completed_at": "2026-11-30T09:00:01Z"}),
            )
        }
        _ => (404, json!({"type": "/problems/operation-unknown", "title": "unknown", "status": 404})),
    };
    let kind = if status == 200 { "application/json" } else { "application/problem+json" };
    let body = body.to_string();
    write!(
        stream,
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn payment(reference: &str, amount: i64, status: &str) -> Value {
    json!({"id": "pay_1", "status": status, "amount": amount, "currency": "EUR", "reference": reference, "operation": KEY,
        "short_code": "0000", "approval_code": "8F21K0", "card": {"brand": "visa", "last4": "4242"},
        "created_at": jiff::Timestamp::now().to_string()})
}

struct Shop {
    dir: TempDir,
    data: PathBuf,
    copy: PathBuf,
    /// Sale 2: under payment, its one tender declined.
    waiting: Uuid,
}

/// A till with a sale of 1.85 paid in cash and another under payment that is still due, and a copy of it.
async fn shop() -> Checked<Shop> {
    let dir = tempfile::tempdir()?;
    let (data, copy) = (dir.path().join("data"), dir.path().join("copy.db"));
    let till = Till::open(&data)?;
    let sale_id = till.add_article("BAK-201", None).await?.id;
    let tender_id = till.begin_tender(sale_id).await?.tender_id;
    till.pay_cash(CashPayment { tender_id, sale_id, tendered: 185 }).await?;
    till.new_sale().await?;
    let waiting = till.add_article("BAK-201", None).await?.id;
    let tender_id = till.begin_tender(waiting).await?.tender_id;
    let card = CardPayment { tender_id, sale_id: waiting, amount: 185, card: "tok_visa".into() };
    let operation = till.pay_card(card).await?;
    till.cancel(operation.key).await?;
    till.backup(&copy, |_| {}).await?;
    Ok(Shop { dir, data, copy, waiting })
}

/// Has the first match of the restored till be so long ago.
fn minutes_pass(data: &Path, minutes: i64) -> Checked {
    let file = rusqlite::Connection::open(data.join("till.db"))?;
    let sql = "SELECT sql FROM sqlite_schema WHERE name = 'restores_are_matched_once'";
    let trigger: String = file.query_row(sql, [], |row| row.get(0))?;
    file.execute_batch(&format!(
        "BEGIN; DROP TRIGGER restores_are_matched_once; UPDATE restores SET matched_at = matched_at - {}; {trigger}; COMMIT",
        minutes * 60_000
    ))?;
    Ok(())
}

/// Has the bank hear of what was cancelled.
fn tell_the_bank(shop: &Shop) -> Checked {
    let bank = bank(vec![])?;
    let told = kassa_till(&shop.data, &["sync", "--bank-url", &bank.url, "--bank-token", "s", "--until-settled"])?;
    assert_eq!(told.status.code(), Some(0), "{}", String::from_utf8_lossy(&told.stderr));
    Ok(())
}

async fn cash(till: &Till, sale_id: Uuid) -> Result<(), TillError> {
    let tender_id = till.begin_tender(sale_id).await?.tender_id;
    till.pay_cash(CashPayment { tender_id, sale_id, tendered: 185 }).await.map(drop)
}

async fn findings(till: &Till) -> Checked<Vec<String>> {
    let (tell, told) = std::sync::mpsc::channel();
    till.examine(move |told| {
        if let Told::Found(finding) = told {
            // The other end lives as long as this look.
            let _ = tell.send(format!("{finding:?}"));
        }
    })
    .await?;
    Ok(told.into_iter().collect())
}

#[tokio::test]
async fn a_restored_till_has_another_name_and_takes_no_payment_before_the_match() -> Checked {
    let shop = shop().await?;
    let new = shop.dir.path().join("new");
    let restored = Till::restore(&new, &shop.copy, None)?;
    assert_eq!((restored.till_name_before.as_str(), restored.aside), ("till-1", None));
    assert!(restored.till_name.starts_with("till-1-r"), "{}", restored.till_name);
    let till = Till::open(&new)?;
    assert_eq!(till.settings().await?.till_name, restored.till_name);
    assert!(till.waits_for_match().await?);
    let refused = cash(&till, shop.waiting).await.err().ok_or("cash was taken")?;
    assert_eq!((refused.code(), refused.retryable()), ("restored", false), "{refused}");
    let tender_id = till.begin_tender(shop.waiting).await?.tender_id;
    let card = CardPayment { tender_id, sale_id: shop.waiting, amount: 185, card: "tok_visa".into() };
    assert!(matches!(till.pay_card(card).await, Err(TillError::Restored)));
    assert_eq!(findings(&till).await?, Vec::<String>::new(), "a restored file is right");
    // Old sales keep the name under which their number was given.
    let receipt = till.receipt(shop.waiting).await?;
    assert!(receipt.text.contains("till-1  ") && !receipt.text.contains(&restored.till_name), "{}", receipt.text);
    // The bank has nothing: it is paid on again, the sale that the copy knows once the list was read a second time.
    let bank = bank(vec![])?;
    assert_eq!(till.match_restored(&bank).await?, Matched::default());
    assert!(!till.waits_for_match().await?);
    let refused = cash(&till, shop.waiting).await.err().ok_or("cash was taken")?;
    assert_eq!(refused.code(), "restored-sale", "{refused}");
    assert_eq!(till.match_restored(&bank).await?, Matched::default());
    assert_eq!(
        cash(&till, shop.waiting).await.err().map(|error| error.code()),
        Some("restored-sale"),
        "it is not due yet"
    );
    minutes_pass(&new, 6)?;
    assert_eq!(till.match_restored(&bank).await?, Matched::default());
    cash(&till, shop.waiting).await?;
    assert_eq!(till.sale(shop.waiting).await?.receipt_number, Some(2));
    till.new_sale().await?;
    let next = till.add_article("BAK-201", None).await?.id;
    cash(&till, next).await?;
    let text = till.receipt(next).await?.text;
    assert!(text.contains(&restored.till_name) && text.contains("Sale 3"), "{text}");
    assert_eq!(findings(&till).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_sale_that_was_paid_after_the_copy_is_closed_as_paid() -> Checked {
    let shop = shop().await?;
    let new = shop.dir.path().join("new");
    Till::restore(&new, &shop.copy, Some("till-9"))?;
    let till = Till::open(&new)?;
    let bank = bank(vec![payment("till-1/2", 185, "approved"), payment("till-12/2", 185, "approved")])?;
    assert_eq!(till.match_restored(&bank).await?, Matched { paid: vec![2], unknown: vec![] });
    let sale = till.sale(shop.waiting).await?;
    assert_eq!((sale.state, sale.receipt_number, sale.paid), (SaleState::Completed, Some(2), 185));
    let operation = sale.tenders.last().and_then(|tender| tender.operation.as_ref()).ok_or("no operation")?;
    assert_eq!((operation.key.to_string().as_str(), operation.approval_code.as_deref()), (KEY, Some("8F21K0")));
    assert_eq!(findings(&till).await?, Vec::<String>::new());
    let compared = till.compare_with_bank(&bank, |told| assert!(!matches!(told, Told::Found(_)), "{told:?}")).await?;
    assert!(matches!(compared, Compared::Whole(_)), "{compared:?}");
    // It is done once.
    assert_eq!(till.match_restored(&bank).await?, Matched::default());
    Ok(())
}

#[tokio::test]
async fn what_no_sale_here_could_have_is_named_for_a_person() -> Checked {
    for (reference, amount, status, named) in [
        ("till-1/9", 185, "approved", Some("no sale of that number")),
        ("till-1/1", 185, "approved", Some("no sale of that number that waits")),
        ("till-1/2", 186, "approved", Some("more than is due")),
        ("till-1/x", 185, "approved", Some("names no sale")),
        ("till-1/2", 185, "declined", None),
        ("order 17", 185, "approved", None),
    ] {
        let shop = shop().await?;
        let new = shop.dir.path().join("new");
        Till::restore(&new, &shop.copy, None)?;
        let till = Till::open(&new)?;
        let matched = till.match_restored(&bank(vec![payment(reference, amount, status)])?).await?;
        assert_eq!((matched.paid.len(), matched.unknown.len()), (0, usize::from(named.is_some())), "{matched:?}");
        if let Some(named) = named {
            assert!(matched.unknown[0].contains(named) && matched.unknown[0].contains(reference), "{matched:?}");
        }
        assert_eq!(till.sale(shop.waiting).await?.state, SaleState::Paying);
    }
    Ok(())
}

/// What the bank has that this file has not: the codes, and how many count.
async fn compared(till: &Till, bank: &Bank) -> Checked<(Vec<&'static str>, u64)> {
    let mut told = Vec::new();
    let tell = |one: Told| {
        if let Told::Found(finding) | Told::Known(finding) = one {
            told.push(finding.code);
        }
    };
    match till.compare_with_bank(bank, tell).await? {
        Compared::Whole(examined) => Ok((told, examined.findings)),
        Compared::Partly(_, others) => Err(format!("{others} are another bank's").into()),
        Compared::NotAsked(why) => Err(why.into()),
    }
}

#[tokio::test]
async fn a_payment_of_a_sale_that_is_lost_is_known_once_a_person_said_what_became_of_it() -> Checked {
    let shop = shop().await?;
    let new = shop.dir.path().join("new");
    Till::restore(&new, &shop.copy, None)?;
    let till = Till::open(&new)?;
    let bank = bank(vec![payment("till-1/9", 185, "approved")])?;
    till.match_restored(&bank).await?;
    assert_eq!(compared(&till, &bank).await?, (vec!["bank-payment-unknown"], 1));
    let entries = till.audit(None, 0, 100).await?.len();
    for (id, reason, code) in [
        ("pay_1", " ", "invalid-reason"),
        ("pay_2", "refunded at the bank", "not-found"),
        ("pay_1/../pay_1", "refunded at the bank", "not-found"),
        ("", "refunded at the bank", "not-found"),
    ] {
        let refused = till.acknowledge_payment(&bank, id, reason).await.err().ok_or(id)?;
        assert_eq!(refused.code(), code, "{id:?}: {refused}");
    }
    till.acknowledge_payment(&bank, "pay_1", "refunded at the bank").await?;
    till.acknowledge_payment(&bank, "pay_1", "refunded at the bank").await?;
    assert_eq!(compared(&till, &bank).await?, (vec!["bank-payment-known"], 0));
    let written = till.audit(None, 0, 100).await?;
    let last = written.last().ok_or("no entry")?;
    assert_eq!((written.len(), last.what.as_str()), (entries + 1, "bank-payment-known"));
    assert_eq!((&last.details["payment"], &last.details["amount"]), (&json!("pay_1"), &json!(185)));
    assert_eq!(findings(&till).await?, [""; 0]);
    // The same id with another amount is nothing that anybody said.
    let other = self::bank(vec![payment("till-1/9", 186, "approved")])?;
    assert_eq!(compared(&till, &other).await?, (vec!["bank-payment-unknown"], 1));
    // What this till knows itself, or is another's, is not taken for known.
    let others = self::bank(vec![payment("till-7/1", 187, "approved")])?;
    let refused = till.acknowledge_payment(&others, "pay_1", "of the other till").await;
    assert!(matches!(refused, Err(TillError::NotFound(_))), "{refused:?}");
    drop(till);

    let args = |more: &[&str]| -> Checked<Output> {
        let begin = ["--bank-url", &other.url, "--bank-token", "s", "doctor"];
        kassa_till(&new, &[&begin[..], more].concat())
    };
    assert_eq!(args(&[])?.status.code(), Some(1));
    assert_eq!(args(&["--acknowledge", "pay_1"])?.status.code(), Some(2), "with no reason");
    let done = args(&["--acknowledge", "pay_1", "--reason", "refunded at the bank"])?;
    let said = String::from_utf8(done.stdout)?;
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.starts_with("bank-payment-known: payment pay_1: ") && said.contains("nothing is wrong"), "{said}");
    Ok(())
}

#[tokio::test]
async fn without_the_bank_it_stays_restored() -> Checked {
    let shop = shop().await?;
    let new = shop.dir.path().join("new");
    Till::restore(&new, &shop.copy, None)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    drop(listener);
    let output = kassa_till(&new, &["sync", "--bank-url", &url, "--bank-token", "s", "--until-settled"])?;
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let till = Till::open(&new)?;
    assert!(till.waits_for_match().await?);
    assert!(matches!(cash(&till, shop.waiting).await, Err(TillError::Restored)));
    drop(till);
    let bank = bank(vec![payment("till-1/2", 185, "approved")])?;
    let output = kassa_till(&new, &["sync", "--bank-url", &bank.url, "--bank-token", "s", "--until-settled"])?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("sale 2 was paid after the copy was made"), "{stderr}");
    assert!(!Till::open(&new)?.waits_for_match().await?);
    Ok(())
}

#[tokio::test]
async fn a_file_with_unsettled_payments_is_not_replaced_and_a_settled_one_is_kept() -> Checked {
    let shop = shop().await?;
    let copy = shop.copy.to_str().ok_or("no text")?;
    let restore = |data: &Path| kassa_till(data, &["restore", copy]);
    // One was cancelled, and the bank has not heard of it.
    let refused = restore(&shop.data)?;
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("1 of its payments were cancelled, and the bank has not heard of it"), "{stderr}");
    tell_the_bank(&shop)?;
    let done = restore(&shop.data)?;
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let aside = shop.data.join("till.db.before-restore-1");
    assert_eq!(fs::read(&aside)?.len() % 4_096, 0);
    let restored: Value = serde_json::from_slice(&done.stdout)?;
    assert_eq!(restored["aside"], aside.to_str().ok_or("no text")?);
    // Another till, with a payment that is open.
    let busy = shop.dir.path().join("busy");
    let pay = ["pay", "--amount", "1", "--currency", "EUR", "--card", "tok_visa"];
    assert_eq!(kassa_till(&busy, &pay)?.status.code(), Some(0));
    let before = fs::read(busy.join("till.db"))?;
    let refused = restore(&busy)?;
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("1 of its payments are not settled"), "{stderr}");
    assert_eq!(fs::read(busy.join("till.db"))?, before);
    // One that is open in a process.
    let open = Till::open(&shop.data)?;
    assert!(matches!(Till::restore(&shop.data, &shop.copy, None), Err(TillError::InUse(_))));
    drop(open);
    assert!(matches!(Till::restore(&shop.data, &shop.data.join("till.db"), None), Err(TillError::Refused(_))));
    let new = shop.dir.path().join("new");
    assert!(matches!(Till::restore(&new, &shop.copy, Some("till-1")), Err(TillError::InvalidSetting(_))));
    let names: Vec<_> = fs::read_dir(&shop.data)?.map(|entry| Ok(entry?.file_name())).collect::<Checked<_>>()?;
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("restoring")), "{names:?}");
    Ok(())
}

#[tokio::test]
async fn what_is_no_copy_is_refused_and_what_is_there_stays() -> Checked {
    let shop = shop().await?;
    tell_the_bank(&shop)?;
    let other = shop.dir.path().join("other.db");
    for bytes in [b"".to_vec(), b"not a database at all, whatever its name".repeat(50)] {
        fs::write(&other, bytes)?;
        let refused = Till::restore(&shop.data, &other, None).err().ok_or("it was brought back")?;
        assert!(matches!(&refused, TillError::Refused(why) if why.contains("other.db")), "{refused}");
        assert_eq!(Till::open_read_only(&shop.data)?.sale(shop.waiting).await?.number, Some(2));
    }
    Ok(())
}

#[tokio::test]
async fn the_database_refuses_to_forget_a_restore() -> Checked {
    let shop = shop().await?;
    let new = shop.dir.path().join("new");
    Till::restore(&new, &shop.copy, None)?;
    let file = rusqlite::Connection::open(new.join("till.db"))?;
    for (change, reason) in [
        ("DELETE FROM restores", "never forgotten"),
        ("UPDATE restores SET last_sale = 0", "never changes but that it is matched"),
        ("INSERT INTO restores VALUES (2, 0, 0, 'a', 'b', 0, 0, NULL, NULL)", "begins unmatched"),
        ("INSERT INTO restores VALUES (7, 0, 0, 'a', 'b', 0, NULL, NULL, NULL)", "begins unmatched"),
        ("UPDATE restores SET matched_at = 1, closed_at = 1", "once, and then closed"),
        (
            "INSERT INTO tenders (id, sale_id, position, kind, state, amount, tendered, change, reference, replaces,
                 created_at, updated_at)
             SELECT '00000000-0000-4000-8000-000000000000', sale_id, 9, kind, 'settling', 185, NULL, NULL, 'r', NULL, 0, 0
             FROM tenders WHERE kind = 'card'",
            "takes no payment before",
        ),
    ] {
        let refused = file.execute(change, []).err().ok_or_else(|| format!("{change} went through"))?;
        assert!(refused.to_string().contains(reason), "{change}: {refused}");
    }
    file.execute("UPDATE restores SET matched_at = 1", [])?;
    let again = file.execute("UPDATE restores SET matched_at = 2", []).err().ok_or("matched twice")?;
    assert!(again.to_string().contains("once"), "{again}");
    file.execute("UPDATE restores SET closed_at = 2", [])?;
    assert!(file.execute("UPDATE restores SET closed_at = NULL", []).is_err());
    Ok(())
}

#[tokio::test]
async fn settling_matches_a_restored_file_first_and_sends_nothing_before() -> Checked {
    let shop = shop().await?;
    let new = shop.dir.path().join("new");
    Till::restore(&new, &shop.copy, None)?;
    let till = Till::open(&new)?;
    let nobody = Bank { url: "http://127.0.0.1:9".to_owned(), token: Secret::new("s") };
    let shutdown = CancellationToken::new();
    let mut settling = till.start_settling(Some(nobody.clone()), shutdown.clone())?;
    assert!(matches!(till.start_settling(Some(nobody), shutdown.clone()), Err(TillError::InUse(_))));
    assert_eq!(till.summary().await?.paused.as_deref(), Some("restored"));
    // Another address, in the middle of it.
    till.change_bank(&bank(vec![payment("till-1/2", 185, "approved")])?)?;
    let limit = Instant::now() + Duration::from_secs(60);
    while till.waits_for_match().await? {
        assert!(Instant::now() < limit, "it was never matched");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(till.sale(shop.waiting).await?.state, SaleState::Completed);
    assert_eq!(till.summary().await?.paused, None);
    // Then it settles: the bank is told of what was cancelled.
    while till.summary().await?.tombstones > 0 {
        assert!(Instant::now() < limit, "it never began to settle");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    shutdown.cancel();
    settling.stopped().await?;
    Ok(())
}

#[tokio::test]
async fn what_is_no_file_is_refused_before_it_is_opened() -> Checked {
    let shop = shop().await?;
    let pipe = shop.dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status()?.success());
    for (path, why) in
        [(pipe.as_path(), "a device or a pipe"), (shop.dir.path(), "a folder"), (Path::new("/none"), "No such file")]
    {
        let refused = kassa_till(&shop.data, &["restore", path.to_str().ok_or("no text")?])?;
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(why) && stderr.contains(path.to_str().ok_or("no text")?), "{stderr}");
    }
    // What is wrong is said of the file that was named.
    let newer = shop.dir.path().join("newer.db");
    fs::copy(&shop.copy, &newer)?;
    rusqlite::Connection::open(&newer)?.pragma_update(None, "user_version", 9_999)?;
    let refused =
        Till::restore(&shop.dir.path().join("new"), &newer, None).err().ok_or("it was brought back")?.to_string();
    assert!(refused.contains("newer.db") && !refused.contains("restoring"), "{refused}");
    Ok(())
}
