//! What the till's commands say of the day's file: the doctor finds nothing, and the tables for a spreadsheet add up to the report.

use std::{collections::HashMap, time::Duration};

use anyhow::{Context, Result, ensure};

use crate::{
    books::Sums,
    harness::{bank::Bank, till::Till},
};

const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// The doctor finds nothing, in the file and beside the bank.
pub(crate) async fn doctor_finds_nothing(till: &Till, bank: &Bank) -> Result<()> {
    let mut doctor = till.start("doctor", &["doctor", "--json"], Some(&bank.url))?;
    let status = doctor.ended(COMMAND_LIMIT).await?;
    ensure!(status.code() == Some(0), "{status}: {} {}", doctor.printed()?, doctor.said()?);
    let found = doctor.printed()?;
    ensure!(found.lines().count() == 1 && found.contains("summary"), "only a summary, and not: {found}");
    Ok(())
}

/// The sums of `export sales` are the report's, those of `export payments` the gateway's.
pub(crate) async fn add_up(till: &Till, report: &Sums, refunds: (i64, i64)) -> Result<()> {
    let rows = table(till, "sales").await?;
    let sales: Vec<_> = rows.iter().filter(|row| row["kind"] == "sale").collect();
    ensure!(sales.iter().all(|sale| sale["state"] == "completed"), "a sale is not completed");
    let sold = |column: &str| sales.iter().map(|sale| cents(sale, column)).sum::<Result<i64>>();
    // With what was declined late, and how it ended.
    let late = ["sale", "late_decline", "collected", "written_off"];
    let of_late = || rows.iter().filter(|row| late.contains(&row["kind"].as_str()));
    let sum = |column: &str| of_late().map(|row| cents(row, column)).sum::<Result<i64>>();
    ensure!(i64::try_from(sales.len())? == report.sales, "{} sales are exported", sales.len());
    let of_sales = [sold("net")?, sold("tax")?, sold("tip")?, sold("total")?, sum("rounding")?, sold("discount")?];
    let of_report = [report.net, report.tax, report.tips, report.total, report.rounding, report.off.1];
    ensure!(of_sales == of_report, "the sales exported come to {of_sales:?}, and the report says {of_report:?}");
    let paid = [sum("paid_by_card")?, sum("paid_in_cash")?, sum("due")?];
    ensure!(paid == [report.cards.1, report.cash.1, 0], "the sales exported are paid by {paid:?}: {report:?}");

    let payments = table(till, "payments").await?;
    for (kind, wanted) in [("payment", report.cards), ("refund", refunds)] {
        let approved: Vec<_> =
            payments.iter().filter(|one| one["kind"] == kind && one["state"] == "approved").collect();
        let sum = approved.iter().map(|one| cents(one, "amount")).sum::<Result<i64>>()?;
        ensure!((i64::try_from(approved.len())?, sum) == wanted, "{kind}s come to {sum}, and not {wanted:?}");
    }
    Ok(())
}

/// A table as it is exported: a row by its columns.
async fn table(till: &Till, what: &str) -> Result<Vec<HashMap<String, String>>> {
    let mut export = till.start(what, &["export", what, "--format", "csv"], None)?;
    let status = export.ended(COMMAND_LIMIT).await?;
    ensure!(status.success(), "{status}: {}", export.said()?);
    let text = export.printed()?;
    let text = text.strip_prefix('\u{feff}').context("no mark at the begin of the table")?;
    let rows = csv::Reader::from_reader(text.as_bytes()).into_deserialize();
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A decimal with two places as minor units.
fn cents(row: &HashMap<String, String>, column: &str) -> Result<i64> {
    let text = row.get(column).with_context(|| format!("no column {column}"))?;
    let (whole, part) = text.split_once('.').with_context(|| format!("no amount: {text}"))?;
    ensure!(part.len() == 2, "no cents: {text}");
    Ok(format!("{whole}{part}").parse()?)
}
