//! The day itself: set-up, its turns, its end.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    books::{Drawer, Sold, Tally, flag, int, text},
    click::{Click, Opening, Pin},
    counter::Counter,
    goods::{CHEESE, FLOWERS, HAM, SCALE_BARCODES},
    harness::{bank::Bank, until},
    plan::{self, Pay, Turn, Weather},
};

/// What is in the drawer in the morning.
const FLOAT: i64 = 40_000;
/// How long everything may take to settle once there are no faults any more.
pub(crate) const SETTLE_LIMIT: Duration = Duration::from_secs(60);
/// At which points the first lives of the till end, each at a pass that comes in the middle of a sale.
const DEATHS: [&str; 3] = ["inserted:5", "saved:7", "answered:6"];
/// How many sales into a turn the till is struck from outside.
const STRUCK_AT: usize = 3;

/// What the till is struck in the middle of, from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strike {
    RingUp,
    PayCash,
}

/// Everything that the script has and knows.
pub(crate) struct Day {
    pub(crate) counter: Counter,
    pub(crate) bank: Bank,
    pub(crate) chance: StdRng,
    pub(crate) manager: Pin,
    cashiers: [Pin; 2],
    pub(crate) weather: Weather,
    /// Card payments in this weather so far.
    pub(crate) cards_in_weather: u32,
    to_strike: Option<Strike>,
    pub(crate) sold: Vec<Sold>,
    /// Those that were declined late: the sale's place in `sold`, and the tender.
    pub(crate) late: Vec<(usize, Uuid)>,
    pub(crate) drawer: Drawer,
    /// The key of each tender and leg that was clicked.
    pub(crate) keys: BTreeMap<Uuid, String>,
    pub(crate) declined: usize,
    pub(crate) cancelled: usize,
    /// What is taken offline and not settled.
    pub(crate) offline: Vec<i64>,
    /// The numbers of the returns' receipts.
    pub(crate) return_receipts: Vec<i64>,
    pub(crate) tally: Tally,
    pub(crate) began: Instant,
    pub(crate) folder: tempfile::TempDir,
}

/// The choices of a run, printed to be repeated with `KASSA_DAY_SEED`.
pub(crate) fn seed() -> Result<u64> {
    let seed = match std::env::var("KASSA_DAY_SEED") {
        Ok(text) => text.parse()?,
        Err(_) => rand::rng().random(),
    };
    println!("KASSA_DAY_SEED={seed}");
    Ok(seed)
}

impl Day {
    /// Sets the shop up and opens its shift.
    pub(crate) async fn begin(seed: u64, with_deaths: bool) -> Result<Self> {
        let (folder, began) = (tempfile::tempdir()?, Instant::now());
        let bank = Bank::start(folder.path()).await?;
        let deaths: &[&str] = if with_deaths { &DEATHS } else { &[] };
        let counter = Counter::open(folder.path(), &bank.url, deaths).await?;
        let pin = |person_id, digits: &str| Pin { person_id, digits: digits.to_owned() };
        let mut day = Self {
            counter,
            bank,
            chance: StdRng::seed_from_u64(seed),
            manager: pin(0, "4826"),
            cashiers: [pin(0, "7391"), pin(0, "60417")],
            weather: Weather::Fair,
            cards_in_weather: 0,
            to_strike: None,
            sold: Vec::new(),
            late: Vec::new(),
            drawer: Drawer { float_amount: FLOAT, ..Drawer::default() },
            keys: BTreeMap::new(),
            declined: 0,
            cancelled: 0,
            offline: Vec::new(),
            return_receipts: Vec::new(),
            tally: Tally::default(),
            began,
            folder,
        };
        day.set_up().await?;
        day.open().await?;
        Ok(day)
    }

    async fn set_up(&mut self) -> Result<()> {
        self.manager.person_id = self.person("Mara", true, self.manager.digits.clone()).await?;
        for (at, name) in [(0, "Chen"), (1, "Ida")] {
            self.cashiers[at].person_id = self.person(name, false, self.cashiers[at].digits.clone()).await?;
        }
        self.done(Click::SaveSettings { cash_step: 5, scale_barcodes: SCALE_BARCODES.into() }).await?;
        let article = |sku: &str, name: &str, unit: &str, price: Option<i64>, rate: i64, barcodes: &[&str]| {
            json!({
                "sku": sku, "name": name, "category": "pantry", "unit": unit, "price": price,
                "taxRate": (rate / 1_000).to_string(), "colour": null, "favourite": false, "barcodes": barcodes,
            })
        };
        for article in [
            article(FLOWERS.0, "Flowers", "piece", None, FLOWERS.1, &[]),
            article(CHEESE.0, "Cheese, cut", "piece", None, CHEESE.2, &[CHEESE.1]),
            article(HAM.0, "Ham, sliced", "weight", Some(HAM.2), HAM.3, &[HAM.1]),
        ] {
            self.done(Click::SaveArticle { article }).await?;
        }
        Ok(())
    }

    async fn person(&mut self, name: &str, is_manager: bool, pin: String) -> Result<i64> {
        let person = self.done(Click::AddPerson { name: name.into(), is_manager, pin }).await?;
        int(&person, "id")
    }

    /// The first cashier logs in, not with the first PIN that comes to mind, and opens the shift.
    async fn open(&mut self) -> Result<()> {
        let cashier = self.cashiers[0].clone();
        let (code, _) = self.refused(Click::LogIn { person_id: cashier.person_id, pin: "9999".into() }).await?;
        ensure!(code == "wrong-pin", "{code}");
        self.counter.log_in(cashier).await?;
        let intent_id = Uuid::now_v7();
        let opening = Click::OpenShift { intent_id, float_amount: FLOAT };
        let shift = self.done(opening.clone()).await?;
        ensure!(self.done(opening).await? == shift && int(&shift, "number")? == 1, "the same click: {shift}");
        let (code, _) = self.refused(Click::XReport).await?;
        ensure!(code == "not-allowed", "{code}");
        Ok(())
    }

    /// All turns of the day, and what was agreed for between them.
    pub(crate) async fn run(&mut self, turns: Vec<Turn>) -> Result<()> {
        let count = turns.len();
        for (at, turn) in turns.into_iter().enumerate() {
            if at == count / 2 {
                let cashier = self.cashiers[1].clone();
                self.counter.log_in(cashier).await?;
            }
            let weather = turn.weather;
            self.turn(turn).await.with_context(|| format!("in turn {at}, {weather:?}"))?;
        }
        Ok(())
    }

    async fn turn(&mut self, turn: Turn) -> Result<()> {
        self.becomes(turn.weather).await?;
        for (at, (goods, pay)) in turn.sales.into_iter().enumerate() {
            if at == STRUCK_AT {
                self.to_strike = match turn.weather {
                    Weather::Drops => Some(Strike::RingUp),
                    Weather::Tears => Some(Strike::PayCash),
                    _ => None,
                };
            }
            self.sell(goods, pay).await.with_context(|| format!("sale {at}: {goods:?} by {pay:?}"))?;
        }
        self.clears().await?;
        if turn.weather == Weather::Away {
            self.collect_late().await?;
        }
        Ok(())
    }

    async fn sell(&mut self, goods: plan::Goods, pay: Pay) -> Result<()> {
        let rung = self.ring_up(goods).await?;
        if pay == Pay::Dropped {
            self.done(Click::Drop { sale_id: rung.sale_id }).await?;
            self.drawer.drops += 1;
            self.tally.met("sale: dropped");
            return Ok(());
        }
        self.pay(goods, pay, rung).await
    }

    /// Cash in and out, and the drawer opened for nothing.
    pub(crate) async fn move_cash(&mut self) -> Result<()> {
        let [put_in, out] = [5_000, 12_000];
        let deposit = Click::MoveDrawer { id: Uuid::now_v7(), opening: Opening::In(put_in), reason: "change".into() };
        let moved = self.done(deposit.clone()).await?;
        ensure!(self.done(deposit).await? == moved, "the same click: {moved}");
        let taken = Click::MoveDrawer { id: Uuid::now_v7(), opening: Opening::Out(out), reason: "to the safe".into() };
        let (code, said) = self.refused(taken.clone()).await?;
        ensure!(code == "not-allowed" && said.contains("Mara"), "{code}: {said}");
        self.approved(taken).await?;
        let opened = Click::MoveDrawer { id: Uuid::now_v7(), opening: Opening::NoSale, reason: "a coin stuck".into() };
        self.done(opened).await?;
        self.drawer.cash_in += put_in;
        self.drawer.cash_out += out;
        self.drawer.no_sales += 1;
        for what in ["in", "out", "opened for nothing"] {
            self.tally.met(&format!("drawer: {what}"));
        }
        Ok(())
    }

    /// Waits until nothing is open, with a look at the bank where the till says that it waits.
    pub(crate) async fn settle(&mut self) -> Result<()> {
        until("everything is settled", SETTLE_LIMIT, async || {
            let summary = self.done(Click::Summary).await?;
            ensure!(int(&summary, "needsAttention")? == 0, "something needs a look: {summary}");
            let open = int(&summary, "unsettled")? + int(&summary, "tombstones")?;
            if open > 0 && text(&summary, "chip")? == "waiting" {
                self.done(Click::CheckNow).await?;
            }
            Ok((open == 0).then_some(()))
        })
        .await?;
        self.offline.clear();
        Ok(())
    }

    /// Whether the click that comes is the one to be struck.
    pub(crate) fn strikes(&mut self, what: Strike) -> bool {
        let strikes = self.to_strike == Some(what);
        if strikes {
            self.to_strike = None;
        }
        strikes
    }

    pub(crate) async fn done(&mut self, click: Click) -> Result<Value> {
        self.counter.done(click).await
    }

    pub(crate) async fn refused(&mut self, click: Click) -> Result<(String, String)> {
        self.counter.refused(click).await
    }

    /// Refused to the cashier, and done with the manager's PIN.
    pub(crate) async fn approved(&mut self, click: Click) -> Result<Value> {
        let (code, _) = self.refused(click.clone()).await?;
        ensure!(code == "not-allowed", "{code} for {click:?}");
        self.tally.met("approved by a manager's PIN");
        let manager = self.manager.clone();
        self.counter.done_by(click, Some(&manager)).await
    }

    /// Whether the sale is completed, by a fresh look.
    pub(crate) async fn is_completed(&mut self, sale_id: Uuid) -> Result<bool> {
        let sale = self.done(Click::Sale { sale_id }).await?;
        let is_completed = sale["state"] == "completed";
        ensure!(!is_completed || !flag(&sale, "held")? || sale["receiptNumber"].is_i64(), "no receipt: {sale}");
        Ok(is_completed)
    }
}
