//! `kassa-till export` as it is called.

use serde_json::Value;
use std::{
    error::Error,
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};
use tempfile::TempDir;
use till::{CashPayment, Till};

type Checked<T = ()> = Result<T, Box<dyn Error>>;

fn kassa_till(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kassa-till"));
    for name in ["KASSA_BANK_URL", "KASSA_BANK_TOKEN", "KASSA_LOG", "RUST_LOG"] {
        command.env_remove(name);
    }
    command.env("KASSA_DATA_DIR", data);
    command
}

fn done(output: Output) -> Checked<String> {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

fn export(data: &Path, what: &str, format: &str) -> Checked<String> {
    done(kassa_till(data).args(["export", what, "--format", format]).output()?)
}

/// A sale of 1.85 in cash, and a payment of 24.90 with a reference that a spreadsheet would run.
async fn shop() -> Checked<(TempDir, PathBuf)> {
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    let till = Till::open(&data)?;
    let sale_id = till.add_article("BAK-201", None).await?.id;
    let tender_id = till.begin_tender(sale_id).await?.tender_id;
    till.pay_cash(CashPayment { tender_id, sale_id, tendered: 1_000 }).await?;
    drop(till);
    let pay =
        ["pay", "--amount", "2490", "--currency", "EUR", "--card", "tok_visa", "--reference", "=HYPERLINK(\"x\",1)"];
    done(kassa_till(&data).args(pay).output()?)?;
    Ok((dir, data))
}

/// The cells of a row with no quotes in it, by the head.
fn row<'a>(table: &'a str, at: usize) -> Vec<(&'a str, &'a str)> {
    let lines: Vec<_> = table.trim_start_matches('\u{feff}').split("\r\n").collect();
    let cells = |line: &'a str| line.split(',').collect::<Vec<_>>();
    cells(lines[0]).into_iter().zip(lines.get(at).map(|line| cells(line)).unwrap_or_default()).collect()
}

#[tokio::test]
async fn the_sales_are_a_table_with_amounts_as_people_write_them() -> Checked {
    let (_dir, data) = shop().await?;
    let table = export(&data, "sales", "csv")?;
    assert!(table.starts_with("\u{feff}kind,shift,number,receipt_number,state,"), "{table}");
    assert_eq!(table.matches("\r\n").count(), 3, "{table}");
    let first = row(&table, 1);
    for (column, value) in [
        ("kind", "sale"),
        ("shift", ""),
        ("number", "1"),
        ("receipt_number", "1"),
        ("state", "completed"),
        ("total", "1.85"),
        ("net", "1.73"),
        ("paid_in_cash", "1.85"),
        ("paid_by_card", "0.00"),
        ("change", "8.15"),
        ("due", "0.00"),
    ] {
        assert!(first.contains(&(column, value)), "{column} {value} in {first:?}");
    }
    assert!(row(&table, 2).contains(&("state", "paying")));
    let documents = export(&data, "sales", "json")?;
    let totals: Vec<_> = documents
        .lines()
        .map(|line| Ok(serde_json::from_str::<Value>(line)?["total"].clone()))
        .collect::<Checked<_>>()?;
    assert_eq!(totals, [Value::from(185), Value::from(2_490)]);
    Ok(())
}

#[tokio::test]
async fn no_reference_becomes_a_formula() -> Checked {
    let (_dir, data) = shop().await?;
    let table = export(&data, "payments", "csv")?;
    assert!(table.contains(",\"'=HYPERLINK(\"\"x\"\",1)\","), "{table}");
    assert!(table.contains(",24.90,EUR,2,,"), "{table}");
    let document: Value = serde_json::from_str(export(&data, "payments", "json")?.trim())?;
    assert_eq!(document["amount"], 2_490);
    assert!(document["attempts_log"].is_array());
    Ok(())
}

#[tokio::test]
async fn the_audit_is_written_out_whole() -> Checked {
    let (_dir, data) = shop().await?;
    let documents = export(&data, "audit", "json")?;
    let seqs: Vec<_> = documents
        .lines()
        .map(|line| Ok(serde_json::from_str::<Value>(line)?["seq"].as_i64().ok_or("no seq")?))
        .collect::<Checked<_>>()?;
    assert_eq!(seqs, (1..=seqs.len() as i64).collect::<Vec<_>>());
    assert!(seqs.len() > 3);
    let table = export(&data, "audit", "csv")?;
    assert_eq!(table.matches("\r\n").count(), seqs.len() + 1);
    assert!(table.contains(",till-set-up,,\"{\"\""), "{table}");
    Ok(())
}

#[tokio::test]
async fn a_reader_that_goes_and_a_full_disk_are_told_apart() -> Checked {
    let (_dir, data) = shop().await?;
    let more = ["pay", "--amount", "1", "--currency", "EUR", "--card", "tok_visa", "--times", "600"];
    done(kassa_till(&data).args(more).output()?)?;
    for (what, format) in
        [("sales", "csv"), ("sales", "json"), ("payments", "csv"), ("audit", "csv"), ("audit", "json")]
    {
        let mut head = kassa_till(&data).args(["export", what, "--format", format]).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        // Read a line and go, as `head -1` does.
        BufReader::with_capacity(16, head.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        assert_eq!(head.wait()?.code(), Some(0), "{what} as {format}");
        if cfg!(target_os = "linux") {
            let full = fs::File::options().write(true).open("/dev/full")?;
            let refused = kassa_till(&data).args(["export", what, "--format", format]).stdout(full).output()?;
            assert_eq!(refused.status.code(), Some(1), "{what} as {format}");
            assert!(String::from_utf8_lossy(&refused.stderr).contains("could not be written"));
        }
    }
    Ok(())
}
