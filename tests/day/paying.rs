//! Paying in every way: what is due, what is handed over and what comes back are the script's own figures, and the till has to say the same.

use anyhow::{Result, bail, ensure};
use rand::{Rng as _, seq::IndexedRandom as _};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    books::{Card, Sold, id, int, list, text},
    click::Click,
    day::{Day, SETTLE_LIMIT, Strike},
    goods::Rung,
    harness::until,
    plan::{Goods, Pay},
    prices::in_coins,
};

const GOOD_CARDS: [&str; 3] = ["tok_visa", "tok_mastercard", "tok_mir"];
const BAD_CARDS: [&str; 4] = ["tok_insufficient_funds", "tok_expired", "tok_lost", "tok_do_not_honor"];
const NOTES: [i64; 5] = [500, 1_000, 2_000, 5_000, 10_000];

impl Sold {
    /// A sale of which nothing is paid yet.
    fn unpaid(goods: Goods, pay: Pay, rung: Rung) -> Self {
        Self {
            sale_id: rung.sale_id,
            goods,
            pay,
            priced: rung.cart.priced(),
            returned: vec![0; rung.line_ids.len()],
            cart: rung.cart,
            line_ids: rung.line_ids,
            cards: Vec::new(),
            cash: 0,
            rounding: 0,
            waived: 0,
            back_by_cashier: 0,
            cash_back: (0, 0),
        }
    }

    /// What is still to pay.
    pub(crate) fn rest(&self) -> i64 {
        let cards: i64 = self.cards.iter().map(|card| card.amount).sum();
        self.priced.total + self.rounding - cards - self.cash
    }

    pub(crate) fn paid_by(&mut self, tender_id: Uuid, amount: i64) {
        self.cards.push(Card { tender_id, amount, left: amount });
    }
}

impl Day {
    /// Pays a sale that way, and puts it into the books.
    pub(crate) async fn pay(&mut self, goods: Goods, pay: Pay, rung: Rung) -> Result<()> {
        let mut sold = Sold::unpaid(goods, pay, rung);
        let total = sold.priced.total;
        // About the half, and in coins.
        let part = (total * self.chance.random_range(35..65) / 100 / 5 * 5).max(5);
        match pay {
            Pay::CashExact => self.cash(&mut sold, false).await?,
            Pay::CashChange => self.cash(&mut sold, true).await?,
            Pay::Card => self.card(&mut sold, total).await?,
            Pay::CardThenCash => {
                self.card(&mut sold, part - 3).await?;
                self.cash(&mut sold, true).await?;
            }
            Pay::CashThenCard => {
                self.cash_part(&mut sold, part).await?;
                self.card(&mut sold, total - part).await?;
            }
            Pay::TwoCards => {
                self.card(&mut sold, part).await?;
                self.card(&mut sold, total - part).await?;
            }
            Pay::ThreeCards => {
                self.card(&mut sold, 1).await?;
                self.card(&mut sold, part - 1).await?;
                self.card(&mut sold, total - part).await?;
            }
            Pay::DeclinedThenCard => {
                self.card(&mut sold, part).await?;
                self.declined(&sold, total - part).await?;
                self.card(&mut sold, total - part).await?;
            }
            Pay::DeclinedThenCash => {
                self.declined(&sold, total).await?;
                self.cash(&mut sold, true).await?;
            }
            Pay::Offline => self.offline(&mut sold).await?,
            Pay::CashInstead => self.cash_instead(&mut sold).await?,
            Pay::LateCollected | Pay::LateWrittenOff => self.declined_late(&sold).await?,
            Pay::HungOffline => self.hung_offline(&mut sold).await?,
            Pay::HungHeld => self.hung_held(&mut sold).await?,
            Pay::Dropped => bail!("a sale that is dropped is not paid"),
        }
        let is_late = matches!(pay, Pay::LateCollected | Pay::LateWrittenOff);
        ensure!(is_late || sold.rest() == 0, "the script left {} of {sold:?}", sold.rest());
        let is_completed = self.is_completed(sold.sale_id).await?;
        ensure!(is_completed != (pay == Pay::HungHeld), "completed: {is_completed}");
        self.tally.met(&format!("paid: {}", name(pay)));
        self.sold.push(sold);
        Ok(())
    }

    /// What the dialog of a tender begins with, which has to be what is left.
    async fn dialog(&mut self, sold: &Sold) -> Result<Uuid> {
        let dialog = self.done(Click::BeginTender { sale_id: sold.sale_id }).await?;
        agrees(&dialog, sold)?;
        id(&dialog, "tenderId")
    }

    /// All the rest in cash: exact, or with a note that is more.
    async fn cash(&mut self, sold: &mut Sold, with_change: bool) -> Result<()> {
        let tender_id = self.dialog(sold).await?;
        let due = in_coins(sold.rest());
        let tendered = if with_change { self.note_over(due) } else { due };
        let click = Click::PayCash { tender_id, sale_id: sold.sale_id, tendered };
        if self.strikes(Strike::PayCash) {
            self.counter.strike_next("from outside, paying in cash", &mut self.chance);
        }
        let taken = self.done(click.clone()).await?;
        self.takes(sold, &taken, tendered)?;
        if self.chance.random_range(0..4) == 0 {
            ensure!(self.done(click).await? == taken, "clicked twice");
            self.tally.met("clicked twice, and done once");
        }
        Ok(())
    }

    /// Cash was taken for all that is left: in the books, and as the till says.
    pub(crate) fn takes(&mut self, sold: &mut Sold, taken: &Value, tendered: i64) -> Result<()> {
        let due = in_coins(sold.rest());
        sold.rounding = due - sold.rest();
        sold.cash += due;
        let told = (int(taken, "drawer")?, int(taken, "change")?, int(taken, "rounding")?);
        ensure!(told == (due, tendered - due, sold.rounding), "{due} due of {tendered}: {taken}");
        ensure!(taken["sale"]["state"] == "completed" && int(&taken["sale"], "due")? == 0, "{taken}");
        let rounding = if sold.rounding == 0 { "not rounded" } else { "rounded" };
        let change = if tendered == due { "exact" } else { "with change" };
        self.tally.met(&format!("cash: {rounding}"));
        self.tally.met(&format!("cash: {change}"));
        Ok(())
    }

    /// A note, or two of them, that is more than so much.
    pub(crate) fn note_over(&mut self, due: i64) -> i64 {
        let over: Vec<i64> = NOTES.into_iter().filter(|note| *note > due).collect();
        over.choose(&mut self.chance).copied().unwrap_or(due + 1_000)
    }

    /// A part in cash, which is not rounded.
    async fn cash_part(&mut self, sold: &mut Sold, amount: i64) -> Result<()> {
        let tender_id = self.dialog(sold).await?;
        let taken = self.done(Click::PayCash { tender_id, sale_id: sold.sale_id, tendered: amount }).await?;
        sold.cash += amount;
        let told = (int(&taken, "drawer")?, int(&taken, "change")?, int(&taken, "rounding")?);
        ensure!(told == (amount, 0, 0) && int(&taken["sale"], "due")? == sold.rest(), "{taken}");
        self.tally.met("cash: a part");
        Ok(())
    }

    /// A card that pays, whatever the weather, waited for.
    async fn card(&mut self, sold: &mut Sold, amount: i64) -> Result<()> {
        let meets = self.gathers().await?;
        let card = self.good_card();
        let tender_id = self.click_card(sold, amount, card).await?;
        let state = self.answered(sold.sale_id, tender_id).await?;
        ensure!(state == "approved", "{state}");
        if meets {
            self.has_struck().await?;
        }
        sold.paid_by(tender_id, amount);
        Ok(())
    }

    /// A card that the bank declines, waited for.
    async fn declined(&mut self, sold: &Sold, amount: i64) -> Result<()> {
        let card = BAD_CARDS.choose(&mut self.chance).copied().unwrap_or(BAD_CARDS[0]);
        let tender_id = self.click_card(sold, amount, card).await?;
        let state = self.answered(sold.sale_id, tender_id).await?;
        ensure!(state == "declined", "{state}");
        self.declined += 1;
        Ok(())
    }

    /// Clicks Pay for a card, once or twice.
    pub(crate) async fn click_card(&mut self, sold: &Sold, amount: i64, card: &str) -> Result<Uuid> {
        let tender_id = self.dialog(sold).await?;
        let click = Click::PayCard { tender_id, sale_id: sold.sale_id, amount, card: card.into() };
        let operation = self.done(click.clone()).await?;
        ensure!(int(&operation, "amount")? == amount && operation["kind"] == "payment", "{operation}");
        self.note_key(tender_id, &operation)?;
        if self.chance.random_range(0..4) == 0 {
            let again = self.done(click).await?;
            self.note_key(tender_id, &again)?;
            self.tally.met("clicked twice, and done once");
        }
        Ok(tender_id)
    }

    pub(crate) fn good_card(&mut self) -> &'static str {
        GOOD_CARDS.choose(&mut self.chance).copied().unwrap_or(GOOD_CARDS[0])
    }

    /// One intent is one key, however often it is told.
    pub(crate) fn note_key(&mut self, intent: Uuid, operation: &Value) -> Result<()> {
        let key = text(operation, "key")?;
        let noted = self.keys.entry(intent).or_insert_with(|| key.to_owned());
        ensure!(noted == key, "{intent} has the keys {noted} and {key}");
        Ok(())
    }

    /// Waits until the bank's last word on a tender is in, and gives it. Where no answer came, the cashier has the till ask again.
    pub(crate) async fn answered(&mut self, sale_id: Uuid, tender_id: Uuid) -> Result<String> {
        let mut has_asked = false;
        until("the bank's answer", SETTLE_LIMIT, async || {
            let sale = self.done(Click::Sale { sale_id }).await?;
            let tender = list(&sale, "tenders")?.iter().find(|tender| tender["id"] == tender_id.to_string());
            let Some(tender) = tender else { bail!("the tender is gone: {sale}") };
            let state = text(tender, "state")?;
            if state != "settling" {
                return Ok(Some(state.to_owned()));
            }
            if !has_asked && tender["operation"]["state"] == "unknown" {
                has_asked = true;
                self.done(Click::CheckNow).await?;
            }
            Ok(None)
        })
        .await
    }
}

/// Whether a dialog begins with what is left of a sale.
pub(crate) fn agrees(dialog: &Value, sold: &Sold) -> Result<()> {
    let (rest, coins) = (sold.rest(), in_coins(sold.rest()));
    let told = (int(dialog, "due")?, int(dialog, "cashDue")?, int(dialog, "rounding")?);
    ensure!(told == (rest, coins, coins - rest), "{rest} is left: {dialog}");
    Ok(())
}

/// The way of paying in the table.
pub(crate) fn name(pay: Pay) -> &'static str {
    match pay {
        Pay::CashExact => "cash, exact",
        Pay::CashChange => "cash, with change",
        Pay::Card => "card",
        Pay::CardThenCash => "card, the rest in cash",
        Pay::CashThenCard => "cash, the rest by card",
        Pay::TwoCards => "two cards",
        Pay::ThreeCards => "three cards",
        Pay::DeclinedThenCard => "a leg declined, another card",
        Pay::DeclinedThenCash => "declined, then cash",
        Pay::Offline => "taken offline",
        Pay::CashInstead => "never sent, cash instead",
        Pay::LateCollected => "declined late, collected again",
        Pay::LateWrittenOff => "declined late, written off",
        Pay::HungOffline => "taken offline while the bank hangs",
        Pay::HungHeld => "put aside while the bank hangs",
        Pay::Dropped => "not at all",
    }
}
