//! What each shift came to, told a second time: out of the audit in its order, and the rows of what it names. Knows nothing of which
//! shift a row says it belongs to, nor of how a report is made.

use super::{Checked, Scene};
use crate::{ShiftReport, TenderKind};
use rusqlite::{Connection, params};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// How many, and what together.
type Sum = (i64, i64);

/// What went on in one shift, with what happened while none was open before it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) sales: i64,
    pub(super) net: i64,
    pub(super) tax: i64,
    pub(super) tips: i64,
    pub(super) total: i64,
    pub(super) rounding: i64,
    pub(super) tenders: BTreeMap<&'static str, Sum>,
    pub(super) taxes: BTreeMap<String, (i64, i64)>,
    pub(super) line_discounts: i64,
    pub(super) sale_discounts: i64,
    pub(super) returns: i64,
    pub(super) returned: (i64, i64, i64, i64),
    pub(super) returned_taxes: BTreeMap<String, (i64, i64)>,
    pub(super) back_to_nobody: Sum,
    pub(super) back_to_cards: Sum,
    pub(super) back_in_cash: Sum,
    pub(super) back_rounding: i64,
    pub(super) paid_out: Sum,
    pub(super) card_refunds: Sum,
    pub(super) late_declined: Sum,
    pub(super) late_collected: Sum,
    pub(super) late_in_cash: Sum,
    pub(super) late_written_off: Sum,
    pub(super) late_returned: Sum,
    pub(super) late_lost_returned: Sum,
    pub(super) voids: (i64, i64, i64),
    pub(super) drops: i64,
    pub(super) no_sales: i64,
    pub(super) float_amount: i64,
    pub(super) drawer: i64,
}

fn add(sum: &mut Sum, amount: i64) {
    sum.0 += 1;
    sum.1 += amount;
}

struct Paying {
    sale_id: String,
    kind: &'static str,
    amount: i64,
    state: String,
    is_offline: bool,
    collects: bool,
}

struct Replay<'a> {
    file: &'a Connection,
    tallies: BTreeMap<i64, Tally>,
    shift: i64,
    tenders: HashMap<String, Paying>,
    completed: Vec<String>,
}

fn text(details: &Value, name: &str) -> String {
    details[name].as_str().unwrap_or_default().to_owned()
}

fn number(details: &Value, name: &str) -> i64 {
    details[name].as_i64().unwrap_or_default()
}

impl Replay<'_> {
    fn now(&mut self) -> &mut Tally {
        self.tallies.entry(self.shift).or_default()
    }

    fn entry(&mut self, what: &str, sale_id: &str, details: &Value) -> Checked {
        match what {
            "shift-opened" => {
                self.shift = number(details, "shift");
                self.now().float_amount = number(details, "float");
                self.now().drawer += number(details, "float");
            }
            "shift-closed" => self.shift = number(details, "shift") + 1,
            "payment-begun" => self.begun("card", "settling", sale_id, details),
            "cash-taken" => {
                self.begun("cash", "taken", sale_id, details);
                if details["collects"].is_string() {
                    let amount = number(details, "amount") - number(details, "rounding");
                    add(&mut self.now().late_collected, amount);
                    add(&mut self.now().late_in_cash, amount);
                }
                self.now().drawer += number(details, "amount");
            }
            "payment-taken-offline" => {
                if let Some(tender) = self.tenders.get_mut(&text(details, "tender")) {
                    tender.is_offline = true;
                }
            }
            "payment-settled" => self.settled(&text(details, "tender"), text(details, "after")),
            "sale-completed" => self.completed(sale_id, details)?,
            "goods-returned" => self.returned(details)?,
            "refund-settled" if details["after"] == "approved" => {
                add(&mut self.now().card_refunds, number(details, "amount"));
            }
            "refund-paid-out" => {
                add(&mut self.now().paid_out, number(details, "amount"));
                self.now().drawer -= number(details, "amount");
            }
            "late-decline" if details["after"] == "written_off" => {
                add(&mut self.now().late_written_off, number(details, "amount"));
            }
            "sale-voided" => {
                let (cards, cash) = (number(details, "cards"), number(details, "cash"));
                let now = self.now();
                now.voids = (now.voids.0 + 1, now.voids.1 + cards, now.voids.2 + cash);
                now.drawer -= cash;
            }
            "cash-in" => self.now().drawer += number(details, "amount"),
            "cash-out" => self.now().drawer -= number(details, "amount"),
            "drawer-opened" => self.now().no_sales += 1,
            "sale-dropped" | "sale-cleared" | "sale-emptied" => self.now().drops += 1,
            _ => {}
        }
        Ok(())
    }

    fn begun(&mut self, kind: &'static str, state: &str, sale_id: &str, details: &Value) {
        let (amount, collects) = (number(details, "amount"), details["collects"].is_string());
        let is_offline = details["accepted_offline"] == true;
        let (state, sale_id) = (state.to_owned(), sale_id.to_owned());
        let tender = Paying { sale_id, kind, amount, state, is_offline, collects };
        self.tenders.insert(text(details, "tender"), tender);
    }

    fn settled(&mut self, tender_id: &str, after: String) {
        let Some(tender) = self.tenders.get_mut(tender_id) else { return };
        tender.state = after;
        let (amount, is_over) = (tender.amount, self.completed.contains(&tender.sale_id));
        let (is_offline, collects, state) = (tender.is_offline, tender.collects, tender.state.clone());
        if is_over && is_offline && matches!(state.as_str(), "declined" | "cancelled") {
            add(&mut self.now().late_declined, amount);
        }
        if collects && state == "approved" {
            add(&mut self.now().late_collected, amount);
        }
    }

    fn completed(&mut self, sale_id: &str, details: &Value) -> Checked {
        self.completed.push(sale_id.to_owned());
        let counting: Vec<(&'static str, i64)> = self
            .tenders
            .values()
            .filter(|tender| tender.sale_id == sale_id && !matches!(tender.state.as_str(), "declined" | "cancelled"))
            .map(|tender| (tender.kind, tender.amount))
            .collect();
        let (net, tax, tips): (i64, i64, i64) =
            self.file.query_row("SELECT net, tax, tip FROM sales WHERE id = ?1", [sale_id], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        let lines = rows(self.file, "SELECT discount, sale_discount, 0 FROM lines WHERE sale_id = ?1", sale_id)?;
        let taxes = rows(self.file, "SELECT rate, net, tax FROM sale_taxes WHERE sale_id = ?1", sale_id)?;
        let tally = self.now();
        tally.sales += 1;
        tally.net += net;
        tally.tax += tax;
        tally.tips += tips;
        tally.total += number(details, "total");
        tally.rounding += number(details, "rounding");
        for (kind, amount) in counting {
            add(tally.tenders.entry(kind).or_default(), amount);
        }
        for (line, sale, _) in lines {
            tally.line_discounts += line;
            tally.sale_discounts += sale;
        }
        add_rates(&mut tally.taxes, taxes);
        Ok(())
    }

    fn returned(&mut self, details: &Value) -> Checked {
        let id = text(details, "return");
        let figures = self.file.query_row("SELECT net, tax, tip, total FROM returns WHERE id = ?1", [&id], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?, row.get::<_, i64>(3)?))
        })?;
        let taxes = rows(self.file, "SELECT rate, net, tax FROM return_taxes WHERE return_id = ?1", &id)?;
        let tally = self.now();
        tally.returns += 1;
        tally.returned.0 += figures.0;
        tally.returned.1 += figures.1;
        tally.returned.2 += figures.2;
        tally.returned.3 += figures.3;
        add_rates(&mut tally.returned_taxes, taxes);
        for waived in details["waived"].as_array().into_iter().flatten() {
            let amount = number(waived, "amount");
            add(&mut tally.back_to_nobody, amount);
            let is_lost = waived["was_lost"] == true;
            add(if is_lost { &mut tally.late_lost_returned } else { &mut tally.late_returned }, amount);
        }
        for leg in details["legs"].as_array().into_iter().flatten() {
            let amount = number(leg, "amount");
            if leg["cash"].is_string() {
                add(&mut tally.back_in_cash, amount);
                tally.back_rounding += number(leg, "rounding");
                tally.drawer -= amount;
            } else {
                add(&mut tally.back_to_cards, amount);
            }
        }
        Ok(())
    }
}

fn add_rates(taxes: &mut BTreeMap<String, (i64, i64)>, rows: Vec<(i64, i64, i64)>) {
    for (rate, net, tax) in rows {
        let rate = format!("{}.{:03}", rate / 1_000, rate % 1_000);
        let sum = taxes.entry(rate.trim_end_matches('0').trim_end_matches('.').to_owned()).or_default();
        sum.0 += net;
        sum.1 += tax;
    }
}

fn rows(file: &Connection, sql: &str, id: &str) -> rusqlite::Result<Vec<(i64, i64, i64)>> {
    file.prepare_cached(sql)?.query_map(params![id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
}

/// What each shift came to. 0: before the first.
pub(super) fn tallies(scene: &Scene) -> Checked<BTreeMap<i64, Tally>> {
    let file = scene.file()?;
    let mut replay =
        Replay { file: &file, tallies: BTreeMap::new(), shift: 0, tenders: HashMap::new(), completed: Vec::new() };
    let entries: Vec<(String, Option<String>, String)> = file
        .prepare("SELECT what, sale_id, details FROM audit ORDER BY seq")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    for (what, sale_id, details) in entries {
        replay.entry(&what, &sale_id.unwrap_or_default(), &serde_json::from_str(&details)?)?;
    }
    Ok(replay.tallies)
}

/// The same as a report says it.
pub(super) fn tally(report: &ShiftReport) -> Tally {
    let rates = |taxes: &mut dyn Iterator<Item = (&String, i64, i64)>| -> BTreeMap<String, (i64, i64)> {
        taxes.map(|(rate, net, tax)| (rate.clone(), (net, tax))).collect()
    };
    let back = &report.returns;
    let kind = |kind: TenderKind| if kind == TenderKind::Card { "card" } else { "cash" };
    Tally {
        sales: report.sales,
        net: report.net,
        tax: report.tax,
        tips: report.tips,
        total: report.total,
        rounding: report.rounding,
        tenders: report.tenders.iter().map(|sum| (kind(sum.kind), (sum.count, sum.amount))).collect(),
        taxes: rates(&mut report.taxes.iter().map(|tax| (&tax.rate, tax.net, tax.tax))),
        line_discounts: report.line_discounts,
        sale_discounts: report.sale_discounts,
        returns: back.returns,
        returned: (back.net, back.tax, back.tips, back.total),
        returned_taxes: rates(&mut back.taxes.iter().map(|tax| (&tax.rate, tax.net, tax.tax))),
        back_to_nobody: (back.waived.count, back.waived.amount),
        back_to_cards: (back.cards.count, back.cards.amount),
        back_in_cash: (back.cash.count, back.cash.amount),
        back_rounding: back.rounding,
        paid_out: (back.paid_out.count, back.paid_out.amount),
        card_refunds: (report.card_refunds.count, report.card_refunds.amount),
        late_declined: (report.late.declined.count, report.late.declined.amount),
        late_collected: (report.late.collected.count, report.late.collected.amount),
        late_in_cash: (report.late.collected_in_cash.count, report.late.collected_in_cash.amount),
        late_returned: (report.late.returned.count, report.late.returned.amount),
        late_lost_returned: (report.late.lost_returned.count, report.late.lost_returned.amount),
        late_written_off: (report.late.written_off.count, report.late.written_off.amount),
        voids: (report.voids.voids, report.voids.cards, report.voids.cash),
        drops: report.drops,
        no_sales: report.no_sales,
        float_amount: report.drawer.float_amount,
        drawer: report.drawer.expected,
    }
}
