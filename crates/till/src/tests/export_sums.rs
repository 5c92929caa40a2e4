//! What the exports come to is what the Z reports say.

use super::{Checked, Scene};
use crate::{ExportFormat, Exported, ShiftReport, TenderKind};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
};

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn exported(scene: &Scene, what: Exported, format: ExportFormat) -> Checked<String> {
    let out = Written::default();
    scene.till.export(what, format, Box::new(out.clone())).await?;
    let bytes = out.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(String::from_utf8(bytes)?)
}

type Table = Vec<HashMap<String, String>>;

async fn table(scene: &Scene, what: Exported) -> Checked<Table> {
    let text = exported(scene, what, ExportFormat::Csv).await?;
    let text = text.strip_prefix('\u{feff}').ok_or("no mark")?;
    Ok(csv::Reader::from_reader(text.as_bytes()).into_deserialize().collect::<Result<_, _>>()?)
}

/// A decimal with two places as minor units; 0 of an empty cell.
fn cents(text: &str) -> Checked<i64> {
    if text.is_empty() {
        return Ok(0);
    }
    let (whole, part) = text.split_once('.').ok_or_else(|| format!("no amount: {text}"))?;
    assert_eq!(part.len(), 2, "{text}");
    Ok(format!("{whole}{part}").parse()?)
}

/// The rows of a table that are of one shift.
struct OfShift<'a>(Vec<&'a HashMap<String, String>>);

impl<'a> OfShift<'a> {
    fn of(table: &'a Table, shift: i64) -> Self {
        let shift = shift.to_string();
        Self(table.iter().filter(|row| row["shift"] == shift).collect())
    }

    /// The rows of a kind: how many, and the sum of each of these columns.
    fn sum<const N: usize>(&self, kind: &str, columns: [&str; N]) -> Checked<(i64, [i64; N])> {
        let rows: Vec<_> = self.0.iter().filter(|row| row["kind"] == kind).collect();
        let mut sums = [0; N];
        for (sum, column) in sums.iter_mut().zip(columns) {
            for row in &rows {
                *sum += cents(&row[column])?;
            }
        }
        Ok((i64::try_from(rows.len())?, sums))
    }
}

/// Everything of the reports that an accountant adds up, out of the exports alone, whatever happened since. Of euros.
pub(super) async fn assert_add_up(scene: &Scene, reports: &[ShiftReport]) -> Checked {
    let [sales, mut payments, taxes] = [
        table(scene, Exported::Sales).await?,
        table(scene, Exported::Payments).await?,
        table(scene, Exported::Taxes).await?,
    ];
    payments.retain(|row| row["state"] == "approved");
    for report in reports {
        let [sales, payments, taxes] = [&sales, &payments, &taxes].map(|table| OfShift::of(table, report.number));
        assert_adds_up(&sales, &payments, &taxes, report)?;
    }
    Ok(())
}

fn assert_adds_up(sales: &OfShift<'_>, payments: &OfShift<'_>, taxes: &OfShift<'_>, report: &ShiftReport) -> Checked {
    let paid = |kind| report.tenders.iter().find(|tender| tender.kind == kind).map_or(0, |tender| tender.amount);

    let figures = ["net", "tax", "tip", "line_discounts", "discount", "total"];
    let (count, [net, tax, tip, line_discounts, discount, total]) = sales.sum("sale", figures)?;
    assert_eq!((count, net, tax, tip), (report.sales, report.net, report.tax, report.tips), "{report:?}");
    assert_eq!((line_discounts, discount), (report.line_discounts, report.sale_discounts), "{report:?}");
    let (_, [rounding, by_card, in_cash, _]) =
        sales.sum("sale", ["rounding", "paid_by_card", "paid_in_cash", "due"])?;
    assert_eq!((total, rounding), (report.total, report.rounding), "{report:?}");
    assert_eq!((by_card, in_cash), (paid(TenderKind::Card), paid(TenderKind::Cash)), "{report:?}");

    let back = &report.returns;
    let (count, [net, tax, tip, ..]) = sales.sum("return", figures)?;
    assert_eq!((count, -net, -tax, -tip), (back.returns, back.net, back.tax, back.tips), "{report:?}");
    let (_, [total, by_card, in_cash, rounding]) =
        sales.sum("return", ["total", "paid_by_card", "paid_in_cash", "rounding"])?;
    assert_eq!((-total, -by_card), (back.total, back.cards.amount), "{report:?}");
    assert_eq!((-in_cash, -rounding), (back.cash.amount, back.rounding), "{report:?}");
    let (count, [in_cash, rounding]) = sales.sum("paid_out", ["paid_in_cash", "rounding"])?;
    assert_eq!((count, -in_cash, -rounding), (back.paid_out.count, back.paid_out.amount, back.paid_out_rounding));

    let (count, [by_card, in_cash]) = sales.sum("void", ["paid_by_card", "paid_in_cash"])?;
    assert_eq!((count, -by_card, -in_cash), (report.voids.voids, report.voids.cards, report.voids.cash), "{report:?}");

    let late = &report.late;
    let (count, [by_card]) = sales.sum("late_decline", ["paid_by_card"])?;
    assert_eq!((count, -by_card), (late.declined.count, late.declined.amount), "{report:?}");
    let (count, [due, in_cash, rounding]) = sales.sum("collected", ["due", "paid_in_cash", "rounding"])?;
    assert_eq!((count, -due), (late.collected.count, late.collected.amount), "{report:?}");
    assert_eq!((in_cash, rounding), (report.drawer.cash_collected, late.rounding), "{report:?}");
    let (count, [due]) = sales.sum("written_off", ["due"])?;
    assert_eq!((count, -due), (late.written_off.count, late.written_off.amount), "{report:?}");

    // All cash that went out for what came back is one figure of the drawer.
    let out: i64 = ["return", "paid_out", "void"]
        .into_iter()
        .map(|kind| Ok(sales.sum(kind, ["paid_in_cash"])?.1[0]))
        .sum::<Checked<i64>>()?;
    assert_eq!(-out, report.drawer.cash_refunds, "{report:?}");

    let (count, [amount]) = payments.sum("refund", ["amount"])?;
    assert_eq!((count, amount), (report.card_refunds.count, report.card_refunds.amount), "{report:?}");

    for (kind, sign, wanted) in [
        ("sale", 1, report.taxes.iter().map(|tax| (tax.rate.clone(), [tax.net, tax.tax])).collect::<BTreeMap<_, _>>()),
        ("return", -1, back.taxes.iter().map(|tax| (tax.rate.clone(), [tax.net, tax.tax])).collect()),
    ] {
        let mut rates = BTreeMap::new();
        for row in taxes.0.iter().filter(|row| row["kind"] == kind) {
            let sum: &mut [i64; 2] = rates.entry(row["rate"].clone()).or_default();
            sum[0] += sign * cents(&row["net"])?;
            sum[1] += sign * cents(&row["tax"])?;
        }
        assert_eq!(rates, wanted, "{kind}: {report:?}");
    }
    Ok(())
}

/// Summed with no thought, what was sold is what was sold less what came back, and what nobody paid or keeps is none of it.
#[tokio::test]
async fn what_is_not_completed_is_in_no_sum_of_goods_and_a_void_takes_its_money_back() -> Checked {
    let scene = super::tampered::day_of_voids().await?;
    let report = scene.till.z_report(1).await?;
    assert_eq!((report.sales, report.voids.voids), (1, 3));
    assert_add_up(&scene, std::slice::from_ref(&report)).await?;
    let sales = table(&scene, Exported::Sales).await?;
    let sum = |column: &str| sales.iter().map(|row| cents(&row[column])).sum::<Checked<i64>>();
    assert_eq!((sum("total")?, sum("net")? + sum("tax")?), (590, 590));
    // Of the second sale 1.10 stayed with the shop: the bank refused to give that back.
    assert_eq!((sum("paid_by_card")?, sum("paid_in_cash")?, sum("due")?), (110, 590, 0));
    let kinds: Vec<_> =
        sales.iter().map(|row| (row["number"].as_str(), row["kind"].as_str(), row["state"].as_str())).collect();
    assert_eq!(
        kinds,
        [
            ("1", "sale", "voided"),
            ("1", "void", "done"),
            ("2", "sale", "voided"),
            ("2", "void", "settling"),
            ("3", "sale", "voided"),
            ("3", "void", "done"),
            ("4", "sale", "completed"),
        ]
    );
    Ok(())
}

#[tokio::test]
async fn a_document_of_a_sale_has_what_became_of_it() -> Checked {
    let scene = super::tampered::day().await?;
    let documents = exported(&scene, Exported::Sales, ExportFormat::Json).await?;
    let documents: Vec<Value> = documents.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let of = |number: i64| documents.iter().find(|sale| sale["number"] == number).ok_or("no such sale");
    assert_eq!((&of(2)?["shift"], &of(2)?["returns"][0]["shift"]), (&1.into(), &1.into()));
    assert_eq!(of(2)?["returns"][0]["total"], 185);
    assert_eq!(
        (&of(6)?["lateDeclines"][0]["state"], &of(6)?["lateDeclines"][0]["contact"]),
        (&"written_off".into(), &Value::Null)
    );
    assert_eq!((&of(9)?["shift"], &of(9)?["void"]), (&Value::Null, &Value::Null));
    let taxes = exported(&scene, Exported::Taxes, ExportFormat::Json).await?;
    let first: Value = serde_json::from_str(taxes.lines().next().ok_or("no taxes")?)?;
    assert_eq!((&first["kind"], &first["rate"], &first["receiptNumber"]), (&"sale".into(), &"7".into(), &1.into()));
    Ok(())
}

#[tokio::test]
async fn a_day_with_everything_in_it_adds_up() -> Checked {
    let scene = super::tampered::day().await?;
    let report = scene.till.z_report(1).await?;
    let late = &report.late;
    assert!(report.returns.returns > 0 && report.returns.paid_out.count > 0, "{report:?}");
    assert!(late.declined.count > 0 && late.collected.count > 0 && late.written_off.count > 0, "{report:?}");
    assert_add_up(&scene, &[report]).await
}

/// Who gave goods back for a reason that a spreadsheet would run.
#[tokio::test]
async fn no_reason_becomes_a_formula() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    scene.in_cash(&sale, 590).await?;
    let mut new = super::returns::new(&sale, crate::ReturnedGoods::Whole);
    new.reason = Some("=1+1".to_owned());
    scene.till.return_goods(new).await?;
    let text = exported(&scene, Exported::Sales, ExportFormat::Csv).await?;
    assert!(text.contains(",'=1+1,"), "{text}");
    Ok(())
}
