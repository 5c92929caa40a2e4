//! Goods that come back, whole, by line and by quantity, to cards and in cash: shares of what was paid, by the script's own count.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    books::{Sold, id, int, list, text},
    click::Click,
    day::{Day, SETTLE_LIMIT},
    harness::until,
    plan::{Goods, Pay},
    prices::{decimal, given_back, in_coins},
};

/// What a cashier gives back of a sale without a manager.
const REFUND_MAX: i64 = 2_000;

/// What comes back: by the place of the line, so much of it in thousandths, or all that is left.
type Back = Vec<(usize, Option<i64>)>;

/// What a return is to give.
struct Owed {
    total: i64,
    /// By the tender.
    cards: Vec<(Uuid, i64)>,
    /// What is handed over, and what of that is there because of the coins.
    cash: Option<(i64, i64)>,
}

impl Day {
    /// Everything that comes back on this day.
    pub(crate) async fn take_back(&mut self) -> Result<()> {
        self.whole(Goods::Tip, Pay::CashExact, "whole, in cash").await?;
        self.whole(Goods::Tip, Pay::Card, "whole, to a card").await?;
        self.whole(Goods::Many, Pay::CardThenCash, "whole, to a card and in cash").await?;
        let by_line = [(1, None)];
        self.parts(Goods::Many, Pay::TwoCards, &[&by_line, &[(0, None)]], "by line, to a card").await?;
        self.parts(Goods::Many, Pay::CashChange, &[&by_line, &[(2, None)]], "by line, in cash").await?;
        let thirds: [&[_]; 3] = [&[(0, Some(1_000))], &[(0, Some(1_000))], &[(0, None)]];
        self.parts(Goods::Thirds, Pay::Card, &thirds, "by quantity, to a card").await?;
        self.parts(Goods::Thirds, Pay::CashExact, &thirds, "by quantity, in cash").await?;
        let weighed: [&[_]; 2] = [&[(0, Some(125))], &[(0, None)]];
        self.parts(Goods::Weighed, Pay::Card, &weighed, "by weight, to a card").await?;
        // One of them meets a bank that gives the money and drops the answer.
        self.bank.faults(json!([{"at": "saved", "do": "drop", "times": 1}])).await?;
        self.whole(Goods::Many, Pay::TwoCards, "what is left, to two cards").await?;
        ensure!(self.bank.hits().await? == 1, "no refund met the fault");
        self.tally.met("bank: drops the answer to a refund");
        self.bank.no_faults().await
    }

    /// A sale of that kind that is to come back.
    fn find(&self, goods: Goods, pay: Pay) -> Result<usize> {
        let found = self.sold.iter().position(|sold| sold.goods == goods && sold.pay == pay);
        found.with_context(|| format!("no {goods:?} by {pay:?} was sold"))
    }

    async fn whole(&mut self, goods: Goods, pay: Pay, what: &str) -> Result<()> {
        let at = self.find(goods, pay)?;
        let rest = (0..self.sold[at].line_ids.len()).filter(|&line| self.sold[at].left_of(line) > 0);
        let rest = rest.map(|line| (line, None)).collect();
        self.returned(at, &rest, true).await.with_context(|| what.to_owned())?;
        let sold = &self.sold[at];
        ensure!(sold.cards.iter().all(|card| card.left == 0), "not all went back: {sold:?}");
        ensure!(sold.cash_back.1 == sold.cash, "not all cash went back: {sold:?}");
        self.tally.met(&format!("returned: {what}"));
        Ok(())
    }

    async fn parts(&mut self, goods: Goods, pay: Pay, parts: &[&[(usize, Option<i64>)]], what: &str) -> Result<()> {
        let at = self.find(goods, pay)?;
        for part in parts {
            self.returned(at, &part.to_vec(), false).await.with_context(|| format!("{what}: {part:?}"))?;
        }
        self.tally.met(&format!("returned: {what}"));
        Ok(())
    }

    /// One return, clicked twice, with a manager's PIN where it is much.
    async fn returned(&mut self, at: usize, back: &Back, is_whole: bool) -> Result<()> {
        let sale_id = self.sold[at].sale_id;
        let sale = self.done(Click::Sale { sale_id }).await?;
        let begun = self.done(Click::BeginReturn { receipt_number: int(&sale, "receiptNumber")? }).await?;
        let return_id = id(&begun, "returnId")?;
        self.sold[at].left_is(&begun)?;
        let lines = back.iter().map(|(line, much)| (self.sold[at].line_ids[*line], much.map(decimal))).collect();
        let goods = if is_whole { None } else { Some(lines) };
        let owed = self.sold[at].gives_back(back);
        let click = Click::ReturnGoods { id: return_id, sale_id, goods, reason: Some("not as wished".into()) };
        // The limit is that of the sale, in however many parts its goods come back.
        let by_cashier = self.sold[at].back_by_cashier + owed.total;
        let made = if by_cashier > REFUND_MAX {
            self.approved(click.clone()).await?
        } else {
            self.sold[at].back_by_cashier = by_cashier;
            self.done(click.clone()).await?
        };
        let again = self.done(click).await?;
        ensure!(again["receiptNumber"] == made["receiptNumber"], "clicked twice: {made} and {again}");
        self.agrees_with(&made, &owed)?;
        self.drawer.returns = (self.drawer.returns.0 + 1, self.drawer.returns.1 + owed.total);
        self.return_receipts.push(int(&made, "receiptNumber")?);
        self.until_given(return_id).await
    }

    /// The till gives what the script says, in the ways that it says.
    fn agrees_with(&mut self, made: &Value, owed: &Owed) -> Result<()> {
        ensure!(int(made, "total")? == owed.total, "{} and not: {made}", owed.total);
        let (mut cards, mut cash) = (Vec::new(), None);
        for leg in list(made, "legs")? {
            let amount = int(leg, "amount")?;
            if leg["kind"] == "cash" {
                cash = Some((amount, int(leg, "rounding")?));
            } else {
                cards.push((id(leg, "tenderId")?, amount));
                self.note_key(id(leg, "id")?, &leg["operation"])?;
                self.drawer.card_refunds.0 += 1;
                self.drawer.card_refunds.1 += amount;
            }
        }
        ensure!((&cards, cash) == (&owed.cards, owed.cash), "{:?} {:?}, and not: {made}", owed.cards, owed.cash);
        if let Some((amount, _)) = cash {
            // Nothing that is nothing is a move of the drawer.
            self.drawer.cash_refunds.0 += i64::from(amount > 0);
            self.drawer.cash_refunds.1 += amount;
        }
        Ok(())
    }

    async fn until_given(&mut self, id: Uuid) -> Result<()> {
        until("the customer has the money back", SETTLE_LIMIT, async || {
            let made = self.done(Click::Return { id }).await?;
            match text(&made, "state")? {
                "done" => Ok(Some(())),
                "settling" => Ok(None),
                _ => anyhow::bail!("the money does not go back: {made}"),
            }
        })
        .await
    }
}

impl Sold {
    fn left_of(&self, line: usize) -> i64 {
        self.cart.lines[line].thousandths - self.returned[line]
    }

    /// The dialog of a return begins with what is left.
    fn left_is(&self, begun: &Value) -> Result<()> {
        for (at, line) in list(begun, "lines")?.iter().enumerate() {
            let left = decimal(self.left_of(at));
            // A label with a price may be a weight that costs it: then only all or nothing of it can be told.
            let is_labelled = self.goods == Goods::PriceLabel;
            ensure!(is_labelled || text(line, "left")? == left, "{left} is left: {line}");
        }
        Ok(())
    }

    /// What comes back of it gives so much: a share of each line, and the tip with the last of them; the cards first, then cash.
    fn gives_back(&mut self, back: &Back) -> Owed {
        let mut total = 0;
        for (line, much) in back {
            let much = much.unwrap_or_else(|| self.left_of(*line));
            let (paid, sold) = (self.priced.lines[*line], self.cart.lines[*line].thousandths);
            let before = given_back(paid, self.returned[*line], sold);
            self.returned[*line] += much;
            total += given_back(paid, self.returned[*line], sold) - before;
        }
        if (0..self.returned.len()).all(|line| self.left_of(line) == 0) {
            total += self.priced.tip;
        }
        let (mut rest, mut cards) = (total, Vec::new());
        for card in &mut self.cards {
            let amount = card.left.min(rest);
            if amount > 0 {
                card.left -= amount;
                rest -= amount;
                cards.push((card.tender_id, amount));
            }
        }
        let cash = (rest > 0).then(|| {
            let (exact, handed) = self.cash_back;
            let amount = in_coins(exact + rest) - handed;
            self.cash_back = (exact + rest, handed + amount);
            (amount, amount - rest)
        });
        Owed { total, cards, cash }
    }
}
