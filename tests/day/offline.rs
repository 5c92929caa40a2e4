//! Goods handed over before the bank has answered: within the limits, over them by a manager's word, declined late, collected again and
//! written off; and what else a cashier does while the bank is silent.

use anyhow::{Context, Result, ensure};
use uuid::Uuid;

use crate::{
    books::{Sold, id, int, list, text},
    click::Click,
    day::{Day, SETTLE_LIMIT},
    harness::until,
    paying::agrees,
    plan::{Pay, Weather},
};

/// What the till allows where nothing else is set: for one payment, together, and how many.
const PAYMENT_MAX: i64 = 5_000;
const SUM_MAX: i64 = 100_000;
const COUNT_MAX: usize = 75;

const NOT_YET: &str = "Saved. Not yet approved by the bank.";

impl Day {
    /// The bank is away: the card is taken offline, and pays when the bank is back.
    pub(crate) async fn offline(&mut self, sold: &mut Sold) -> Result<()> {
        let (amount, card) = (sold.rest(), self.good_card());
        let tender_id = self.click_card(sold, amount, card).await?;
        self.is_missed().await?;
        self.take_offline(sold, tender_id, amount).await?;
        sold.paid_by(tender_id, amount);
        Ok(())
    }

    /// The same with a card that the bank declines when it is back.
    pub(crate) async fn declined_late(&mut self, sold: &Sold) -> Result<()> {
        let amount = sold.rest();
        let tender_id = self.click_card(sold, amount, "tok_insufficient_funds").await?;
        self.is_missed().await?;
        self.take_offline(sold, tender_id, amount).await?;
        self.declined += 1;
        self.late.push((self.sold.len(), tender_id));
        Ok(())
    }

    /// Takes a payment offline, whoever must.
    async fn take_offline(&mut self, sold: &Sold, tender_id: Uuid, amount: i64) -> Result<()> {
        let stored: i64 = self.offline.iter().sum();
        let fits = amount <= PAYMENT_MAX && stored + amount <= SUM_MAX && self.offline.len() < COUNT_MAX;
        let ask = self.done(Click::OfflineAsk { tender_id }).await?;
        let told = (int(&ask, "amount")?, int(&ask, "stored")?, int(&ask, "payments")?);
        ensure!(told == (amount, stored, i64::try_from(self.offline.len())?), "{stored} stored: {ask}");
        ensure!(list(&ask, "over")?.is_empty() == fits, "{amount} and {stored}: {ask}");
        let contact = Some("Ms Lovelace, at the mill".to_owned());
        let take = |over_limit| Click::TakeOffline { tender_id, contact: contact.clone(), over_limit };
        let operation = if fits {
            self.tally.met("offline: within the limits");
            self.done(take(false)).await?
        } else {
            let (code, said) = self.refused(take(false)).await?;
            let figure = format!("{}.{:02}", amount / 100, amount % 100);
            ensure!(code == "offline-limit" && said.contains(&figure), "{code}, and no {figure}: {said}");
            self.tally.met("offline: over a limit, with a manager's PIN");
            self.approved(take(true)).await?
        };
        ensure!(operation["acceptedOffline"] == true, "{operation}");
        self.note_key(tender_id, &operation)?;
        self.offline.push(amount);
        let receipt = self.done(Click::Receipt { sale_id: sold.sale_id }).await?;
        ensure!(text(&receipt, "text")?.contains(NOT_YET), "{receipt}");
        Ok(())
    }

    /// The bank is away: a card that was never sent gives way to cash.
    pub(crate) async fn cash_instead(&mut self, sold: &mut Sold) -> Result<()> {
        let (sale_id, amount, card) = (sold.sale_id, sold.rest(), self.good_card());
        let card_tender_id = self.click_card(sold, amount, card).await?;
        self.is_missed().await?;
        // Where it was the first to find the bank away, it is written down as not sent right after.
        until("it is known that nothing was sent", SETTLE_LIMIT, async || {
            let sale = self.done(Click::Sale { sale_id }).await?;
            let tender = list(&sale, "tenders")?.last().context("no tender")?;
            Ok((tender["operation"]["state"] == "saved").then_some(()))
        })
        .await?;
        let dialog = self.done(Click::BeginCashInstead { card_tender_id }).await?;
        agrees(&dialog, sold)?;
        let tendered = self.note_over(int(&dialog, "cashDue")?);
        let tender_id = id(&dialog, "tenderId")?;
        let taken = self.done(Click::PayCashInstead { tender_id, sale_id, tendered, card_tender_id }).await?;
        self.takes(sold, &taken, tendered)?;
        self.cancelled += 1;
        Ok(())
    }

    /// The bank has charged and says nothing: the customer goes with the goods.
    pub(crate) async fn hung_offline(&mut self, sold: &mut Sold) -> Result<()> {
        self.hangs().await?;
        let (amount, card) = (sold.rest(), self.good_card());
        let tender_id = self.click_card(sold, amount, card).await?;
        self.is_hanging().await?;
        let instead = self.click_instead(tender_id).await?;
        ensure!(instead == "card-may-be-charged", "{instead}");
        self.take_offline(sold, tender_id, amount).await?;
        sold.paid_by(tender_id, amount);
        Ok(())
    }

    /// The same, and the customer waits: the next one is served.
    pub(crate) async fn hung_held(&mut self, sold: &mut Sold) -> Result<()> {
        self.hangs().await?;
        let (amount, card) = (sold.rest(), self.good_card());
        let tender_id = self.click_card(sold, amount, card).await?;
        self.is_hanging().await?;
        let (code, _) = self.refused(Click::Drop { sale_id: sold.sale_id }).await?;
        ensure!(code == "sale-frozen", "{code}");
        self.done(Click::Hold { sale_id: sold.sale_id }).await?;
        sold.paid_by(tender_id, amount);
        Ok(())
    }

    async fn click_instead(&mut self, card_tender_id: Uuid) -> Result<String> {
        Ok(self.refused(Click::BeginCashInstead { card_tender_id }).await?.0)
    }

    /// What was declined late is collected again or written off.
    pub(crate) async fn collect_late(&mut self) -> Result<()> {
        ensure!(self.weather == Weather::Fair, "the bank is not back");
        for (at, late_tender_id) in self.late.clone() {
            let sold = self.sold.get(at).context("no such sale")?;
            let (sale_id, pay, amount) = (sold.sale_id, sold.pay, sold.rest());
            let sale = self.done(Click::Sale { sale_id }).await?;
            ensure!(int(&sale, "due")? == amount && sale["state"] == "completed", "{amount} is owed: {sale}");
            self.late_is(late_tender_id, "open", amount).await?;
            if pay == Pay::LateCollected {
                let tender_id = Uuid::now_v7();
                let card = self.good_card().to_owned();
                let collect = Click::CollectAgain { tender_id, late_tender_id, card };
                let operation = self.done(collect.clone()).await?;
                self.note_key(tender_id, &operation)?;
                let again = self.done(collect).await?;
                self.note_key(tender_id, &again)?;
                let state = self.answered(sale_id, tender_id).await?;
                ensure!(state == "approved", "{state}");
                self.late_is(late_tender_id, "settled", amount).await?;
                self.sold[at].paid_by(tender_id, amount);
                self.tally.met("late: collected again");
            } else {
                self.approved(Click::WriteOff { late_tender_id, reason: "never seen again".into() }).await?;
                self.late_is(late_tender_id, "written_off", amount).await?;
                self.sold[at].waived = amount;
                self.tally.met("late: written off");
            }
        }
        Ok(())
    }

    async fn late_is(&mut self, tender_id: Uuid, state: &str, amount: i64) -> Result<()> {
        let found = self.done(Click::LateDeclines).await?;
        let late = list(&found, "late")?;
        ensure!(late.len() == self.late.len(), "{} declined late: {found}", self.late.len());
        let one = late.iter().find(|one| one["tenderId"] == tender_id.to_string()).context("it is not in the list")?;
        ensure!(one["state"] == state && int(one, "amount")? == amount, "not {state}: {one}");
        Ok(())
    }
}
