//! The end of the day: everything settled, the drawer counted, the shift closed; and then the question whether all books agree.

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::{
    books::{Sums, int, list},
    click::Click,
    day::{self, Day},
    exports,
    harness::{
        checker::{self, Verdict},
        till::Till,
    },
    plan,
};

/// What was declined after its goods were gone, and what became of it: number and sum.
#[derive(Debug, Default, PartialEq, Eq)]
struct Late {
    declined: (i64, i64),
    collected: (i64, i64),
    written_off: (i64, i64),
}

/// How many sales a whole day has.
const SALES: usize = 200;
/// What each day must meet at least once, beside the goods and the ways of paying that it planned.
const MET: [&str; 31] = [
    "approved by a manager's PIN",
    "bank: 429",
    "bank: 500 after charging",
    "bank: drops the answer after charging",
    "bank: drops the answer to a refund",
    "bank: hangs after charging",
    "bank: its gateway's answer is lost",
    "bank: refuses connections",
    "bank: tears the answer",
    "cash: a part",
    "cash: exact",
    "cash: not rounded",
    "cash: rounded",
    "cash: with change",
    "clicked twice, and done once",
    "drawer: in",
    "drawer: opened for nothing",
    "drawer: out",
    "late: collected again",
    "late: written off",
    "offline: over a limit, with a manager's PIN",
    "offline: within the limits",
    "returned: by line, in cash",
    "returned: by line, to a card",
    "returned: by quantity, in cash",
    "returned: by quantity, to a card",
    "returned: whole, in cash",
    "returned: whole, to a card",
    "returned: whole, to a card and in cash",
    "sale: dropped",
    "sale: parked and resumed",
];
const GOODS: [&str; 16] = [
    "one line",
    "many lines",
    "the same article again",
    "weighed",
    "open price",
    "label with a price",
    "label with a weight",
    "with a note",
    "line discount",
    "line discount with a manager's PIN",
    "sale discount",
    "other price with a manager's PIN",
    "tip",
    "parked and resumed",
    "line removed and taken back",
    "three of one",
];
const PAID: [&str; 15] = [
    "cash, exact",
    "cash, with change",
    "card",
    "card, the rest in cash",
    "cash, the rest by card",
    "two cards",
    "three cards",
    "a leg declined, another card",
    "declined, then cash",
    "taken offline",
    "never sent, cash instead",
    "declined late, collected again",
    "declined late, written off",
    "taken offline while the bank hangs",
    "put aside while the bank hangs",
];
/// Where the till died.
const DIED: [&str; 5] =
    ["inserted:5", "saved:7", "answered:6", "from outside, ringing up", "from outside, paying in cash"];

#[tokio::test]
async fn a_day_with_two_hundred_sales_agrees_to_the_cent() -> Result<()> {
    let mut day = Day::begin(day::seed()?, true).await?;
    let turns = plan::whole_day(&mut day.chance);
    day.run(turns).await?;
    day.move_cash().await?;
    day.take_back().await?;
    let report = day.close(0).await?;
    day.met_all()?;
    ensure!(int(&report, "sales")? == i64::try_from(SALES)?, "{SALES} sales");
    day.agree(&report).await
}

#[tokio::test]
async fn a_drawer_that_is_one_euro_short_is_told_after_the_count_and_stays_on_the_report() -> Result<()> {
    let mut day = Day::begin(day::seed()?, false).await?;
    let turns = plan::short_day(&mut day.chance);
    day.run(turns).await?;
    day.move_cash().await?;
    let report = day.close(-100).await?;
    day.agree(&report).await
}

impl Day {
    /// Settles everything, counts the drawer without being told what it should hold, and closes the shift. Gives the Z report.
    async fn close(&mut self, too_much: i64) -> Result<Value> {
        self.settle().await?;
        let (code, _) = self.refused(Click::CloseShift { number: 1 }).await?;
        ensure!(code == "count-needed", "{code}");
        let drawer = self.drawer;
        let cash: i64 = self.sold.iter().map(|sold| sold.cash).sum();
        let expected = drawer.float_amount + cash + drawer.cash_in - drawer.cash_out - drawer.cash_refunds.1;
        let counted = self.done(Click::Count { total: expected + too_much }).await?;
        let told = (int(&counted, "counted")?, int(&counted, "expected")?, int(&counted, "difference")?);
        ensure!(told == (expected + too_much, expected, too_much), "{expected} in the drawer: {counted}");
        let report = self.done(Click::CloseShift { number: 1 }).await?;
        let told = &report["drawer"];
        ensure!(int(told, "expected")? == expected && int(told, "difference")? == too_much, "{told}");
        let manager = self.manager.clone();
        let again = self.counter.done_by(Click::ZReport { number: 1 }, Some(&manager)).await?;
        ensure!(again == report, "the report is kept as it was: {again}");
        Ok(report)
    }

    /// Each kind was met, and the table of how often.
    fn met_all(&self) -> Result<()> {
        let taken_up = self.counter.taken_up;
        println!("{}", self.tally);
        println!("The till died:\n{}\n{}", self.counter.deaths, self.counter.died_at.join("\n"));
        println!("Of the clicks that met a death {} were found, {} made again.", taken_up.found, taken_up.made_again);
        let goods = GOODS.map(|goods| format!("goods: {goods}"));
        let paid = PAID.map(|pay| format!("paid: {pay}"));
        let met = MET.into_iter().map(str::to_owned).chain(goods).chain(paid);
        let missing: Vec<_> = met.filter(|what| self.tally.of(what) == 0).collect();
        ensure!(missing.is_empty(), "never met: {missing:?}");
        for place in DIED {
            ensure!(self.counter.deaths.at(place) == 1, "nobody died at {place}");
        }
        ensure!(taken_up.found > 0 && taken_up.made_again > 0, "not both: {taken_up:?}");
        Ok(())
    }

    /// Everything that says what happened says the same.
    async fn agree(mut self, report: &Value) -> Result<()> {
        let mut told = Sums::default();
        let mut own = Sums::default();
        let mut receipts = std::mem::take(&mut self.return_receipts);
        for at in 0..self.sold.len() {
            let sale_id = self.sold[at].sale_id;
            let sale = self.done(Click::Sale { sale_id }).await?;
            let sold = &self.sold[at];
            let figures = (int(&sale, "total")?, int(&sale, "rounding")?, int(&sale, "waived")?, int(&sale, "due")?);
            let known = (sold.priced.total, sold.rounding, sold.waived, 0);
            ensure!(sale["state"] == "completed" && figures == known, "{known:?}: {sale}");
            receipts.push(int(&sale, "receiptNumber")?);
            told.add_told(&sale)?;
            own.add(sold);
        }
        ensure!(own == told, "the script sold {own:?}, and the till told {told:?}");
        let z = Sums::of_report(report)?;
        let late = self.late_is_told(report)?;
        // The report says what paid when the sales completed: what was declined later is among it, and what collected that is not.
        let at_completion = Sums {
            cards: (own.cards.0 + late.declined.0 - late.collected.0, own.cards.1 + late.declined.1 - late.collected.1),
            ..own.clone()
        };
        ensure!(at_completion == z, "the script sold {at_completion:?}, and the report says {z:?}");
        ensure!(z.total + z.rounding == z.cards.1 + z.cash.1, "the report does not add up: {z:?}");
        receipts.sort_unstable();
        let count = i64::try_from(receipts.len())?;
        ensure!(receipts == (1..=count).collect::<Vec<_>>(), "the receipts have gaps: {receipts:?}");
        self.beside_the_sales(report)?;

        let chain = self.done(Click::CheckAudit).await?;
        ensure!(chain["broken"].is_null() && int(&chain, "entries")? > 0, "{chain}");
        let began = self.began;
        self.at_the_gateway(&own, report).await?;
        println!("{count} receipts, {} entries of the audit, {:.1} s", chain["entries"], began.elapsed().as_secs_f64());
        Ok(())
    }

    /// What was declined late, by the script and by the report.
    fn late_is_told(&self, report: &Value) -> Result<Late> {
        let mut late = Late::default();
        for (at, _) in &self.late {
            let amount = self.sold[*at].priced.total;
            let end = if self.sold[*at].waived > 0 { &mut late.written_off } else { &mut late.collected };
            for sum in [&mut late.declined, end] {
                *sum = (sum.0 + 1, sum.1 + amount);
            }
        }
        let told = |name: &str| {
            let figure = &report["late"][name];
            Ok::<_, anyhow::Error>((int(figure, "count")?, int(figure, "amount")?))
        };
        let told =
            Late { declined: told("declined")?, collected: told("collected")?, written_off: told("writtenOff")? };
        ensure!(told == late, "{late:?} were late, and the report says {told:?}");
        let cards = report["tenders"].as_array().and_then(|all| all.iter().find(|one| one["kind"] == "card"));
        let cards = cards.map_or(Ok(0), |cards| int(cards, "amount"))?;
        let of_cards = cards - told.declined.1 + told.collected.1;
        let own: i64 = self.sold.iter().flat_map(|sold| &sold.cards).map(|card| card.amount).sum();
        ensure!(of_cards == own, "by the report cards paid {of_cards} in the end, and by the script {own}");
        Ok(late)
    }

    /// The rest of the report.
    fn beside_the_sales(&self, report: &Value) -> Result<()> {
        let drawer = &self.drawer;
        let refunds =
            |name: &str| Ok::<_, anyhow::Error>((int(&report[name], "count")?, int(&report[name], "amount")?));
        ensure!(refunds("cardRefunds")? == drawer.card_refunds, "{:?}: {report}", drawer.card_refunds);
        let returned = &report["returns"];
        let told = (int(returned, "returns")?, int(returned, "total")?);
        ensure!(told == drawer.returns, "{:?}: {report}", drawer.returns);
        ensure!(refunds("cashRefunds")? == drawer.cash_refunds, "{:?}: {report}", drawer.cash_refunds);
        let told = (int(report, "drops")?, int(report, "noSales")?, int(report, "overrides")?);
        ensure!(told == (drawer.drops, drawer.no_sales, drawer.overrides), "{drawer:?}: {report}");
        let told = (int(&report["drawer"], "cashIn")?, int(&report["drawer"], "cashOut")?);
        ensure!(told == (drawer.cash_in, drawer.cash_out), "{drawer:?}: {report}");
        ensure!(list(report, "unsettled")?.is_empty(), "all is settled: {report}");
        Ok(())
    }

    /// One charge for each operation that is approved, none lost, and the cards' figures of the report are the gateway's.
    async fn at_the_gateway(self, own: &Sums, report: &Value) -> Result<()> {
        let (approved, refunds) = (own.cards, self.drawer.card_refunds);
        let keys: Vec<String> = self.keys.values().cloned().collect();
        self.counter.close().await?;
        let till = Till::in_folder(self.folder.path());
        let verdict = checker::one_charge_each(&till, &self.bank, &keys).await?;
        println!("{verdict:?}");
        let wanted = Verdict {
            clicked: keys.len(),
            approved: usize::try_from(approved.0 + refunds.0)?,
            declined: self.declined,
            cancelled: self.cancelled,
            ..Verdict::default()
        };
        ensure!(verdict == wanted, "the script knows of {wanted:?}, and found is {verdict:?}");
        let ledger = self.bank.gateway_ledger(None).await?;
        let sum = |name: &str| ledger[name]["EUR"].as_i64().unwrap_or(0);
        let moved = (int(&ledger, "charges")?, sum("charged"), int(&ledger, "refunds")?, sum("refunded"));
        ensure!(moved == (approved.0, approved.1, refunds.0, refunds.1), "{report} and {ledger}");
        exports::add_up(&till, own, refunds).await?;
        exports::doctor_finds_nothing(&till, &self.bank).await
    }
}
