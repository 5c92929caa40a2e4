//! The till over files with few sales and with many: the same is done in each in turn, so that whatever else the machine does meets all.

use crate::sold::{self, wait_until_free};
use anyhow::{Context, Result, ensure};
use measure::latency::Latencies;
use protocol::Key;
use std::{
    path::{Path, PathBuf},
    time::Instant,
};
use till::{ArticleQuery, Count, OperationQuery, Sale, SalePlace, SalesQuery, ShiftOpening, State, Till};
use uuid::Uuid;

/// Sales in a shift before its X report is asked for, in each of the files.
const OF_THE_SHIFT: usize = 200;
/// How often each thing is done in a round, and the opening.
const TIMES: usize = 10;
const OPENED: usize = 3;
/// A page as a window shows it: full in each of the files.
const PAGE: u32 = 50;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    Open,
    Search,
    PayCash,
    PayCard,
    Payments,
    Sales,
    FurtherSales,
    SalesFound,
    XReport,
    ZReport,
}

impl Done {
    pub(crate) const ALL: [Self; 10] = [
        Self::Open,
        Self::Search,
        Self::PayCash,
        Self::PayCard,
        Self::Payments,
        Self::Sales,
        Self::FurtherSales,
        Self::SalesFound,
        Self::XReport,
        Self::ZReport,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Open => "opening, until the sale in front is there",
            Self::Search => "search of an article",
            Self::PayCash => "Pay in cash, to durable",
            Self::PayCard => "Pay by card, to durable",
            Self::Payments => "first page of the payments",
            Self::Sales => "first page of the sales",
            Self::FurtherSales => "next page of the sales",
            Self::SalesFound => "sales found by an amount",
            Self::XReport => "X report of the open shift",
            Self::ZReport => "closing the shift, with its Z report",
        }
    }
}

/// A file, and how long everything took over it.
pub(crate) struct Shop {
    pub(crate) sales: u64,
    pub(crate) made_s: f64,
    dir: PathBuf,
    latencies: Vec<Latencies>,
}

impl Shop {
    pub(crate) fn latencies(&self, done: Done) -> Option<&Latencies> {
        Done::ALL.iter().position(|one| *one == done).and_then(|at| self.latencies.get(at))
    }

    /// Makes a file with so many sales, the newest page of them from after that, and no shift open.
    async fn make(dir: PathBuf, sales: u64) -> Result<Self> {
        let begin = Instant::now();
        sold::folder(&dir, sales).await?;
        let made_s = begin.elapsed().as_secs_f64();
        println!("a file with {sales} sales made in {made_s:.1} s");
        let till = Till::open(&dir)?;
        for _ in 0..PAGE {
            let sale = sold::rung_up(&till).await?;
            let operation = till.pay_card(sold::card(&till, &sale).await?).await?;
            given_up(&till, &sale, operation.key).await?;
        }
        drop(till);
        wait_until_free(&dir).await?;
        let latencies = Done::ALL.iter().map(|_| Latencies::new()).collect::<Result<_>>()?;
        Ok(Self { sales, made_s, dir, latencies })
    }

    async fn round(&mut self) -> Result<()> {
        for _ in 0..OPENED {
            let begin = Instant::now();
            let till = Till::open(&self.dir)?;
            till.open_sale().await?;
            self.took(Done::Open, begin)?;
            drop(till);
            wait_until_free(&self.dir).await?;
        }
        let till = Till::open(&self.dir)?;
        let shift = till.open_shift(ShiftOpening { intent_id: Uuid::now_v7(), float_amount: 10_000 }).await?;
        for _ in 0..OF_THE_SHIFT {
            let sale = sold::rung_up(&till).await?;
            till.pay_cash(sold::cash(&till, &sale).await?).await?;
        }
        for _ in 0..TIMES {
            self.search(&till).await?;
            self.pay(&till).await?;
            self.look(&till).await?;
        }
        self.close(&till, shift.number).await?;
        drop(till);
        wait_until_free(&self.dir).await
    }

    async fn search(&mut self, till: &Till) -> Result<()> {
        let begin = Instant::now();
        let found = till.articles(ArticleQuery { text: "but croi".to_owned(), category: None }).await?;
        self.took(Done::Search, begin)?;
        ensure!(found.articles.iter().any(|article| article.sku == sold::ARTICLES[0]), "not found: {found:?}");
        Ok(())
    }

    async fn pay(&mut self, till: &Till) -> Result<()> {
        let sale = sold::rung_up(till).await?;
        let payment = sold::cash(till, &sale).await?;
        let begin = Instant::now();
        let taken = till.pay_cash(payment).await?;
        self.took(Done::PayCash, begin)?;
        ensure!(taken.sale.receipt_number.is_some(), "not completed");

        let sale = sold::rung_up(till).await?;
        let payment = sold::card(till, &sale).await?;
        let begin = Instant::now();
        let operation = till.pay_card(payment).await?;
        self.took(Done::PayCard, begin)?;
        ensure!(operation.state == State::Saved, "{operation:?}");
        given_up(till, &sale, operation.key).await
    }

    async fn look(&mut self, till: &Till) -> Result<()> {
        let begin = Instant::now();
        let page = till.operations(OperationQuery { limit: Some(PAGE), ..OperationQuery::default() }).await?;
        self.took(Done::Payments, begin)?;
        ensure!(page.operations.len() == PAGE as usize && page.more, "{} payments on a page", page.operations.len());
        let page = SalesQuery { limit: Some(PAGE), ..SalesQuery::default() };
        let newest = self.sales(till, Done::Sales, page.clone()).await?;
        let after = newest.last().copied();
        let further = self.sales(till, Done::FurtherSales, SalesQuery { after, ..page.clone() }).await?;
        ensure!(further.first() < after.as_ref(), "the second page begins with {:?}, after {after:?}", further.first());
        let text = Some(sold::TOTAL.to_owned());
        let found = self.sales(till, Done::SalesFound, SalesQuery { text, ..page }).await?;
        ensure!(found.first() == newest.first(), "found {:?} and not the newest sale", found.first());
        let begin = Instant::now();
        let report = till.x_report().await?;
        self.took(Done::XReport, begin)?;
        ensure!(report.sales >= i64::try_from(OF_THE_SHIFT)?, "{} sales on the report", report.sales);
        ensure!(report.unsettled.is_empty(), "something is left open");
        Ok(())
    }

    /// The places of a full page of sales.
    async fn sales(&mut self, till: &Till, done: Done, query: SalesQuery) -> Result<Vec<SalePlace>> {
        let begin = Instant::now();
        let page = till.sales(query).await?;
        self.took(done, begin)?;
        ensure!(
            page.sales.len() == PAGE as usize && page.more,
            "{} sales on a page: {}",
            page.sales.len(),
            done.name()
        );
        Ok(page.sales.iter().map(|sale| sale.place).collect())
    }

    /// Counts the drawer, which finds what should be there, and closes the shift.
    async fn close(&mut self, till: &Till, shift: i64) -> Result<()> {
        let drawer = till.count_drawer(Count::Total(0)).await?;
        till.count_drawer(Count::Total(drawer.expected)).await?;
        let begin = Instant::now();
        let report = till.close_shift(shift).await?;
        self.took(Done::ZReport, begin)?;
        ensure!(report.sales == i64::try_from(OF_THE_SHIFT + TIMES)?, "{} sales on the Z report", report.sales);
        Ok(())
    }

    fn took(&mut self, done: Done, begin: Instant) -> Result<()> {
        let took = begin.elapsed();
        let at = Done::ALL.iter().position(|one| *one == done).context("it is not measured")?;
        self.latencies.get_mut(at).context("it is not measured")?.record(took)
    }
}

/// Cancels a payment and drops its sale: with no bank it would stay for ever, and what is open must be the same in each round.
async fn given_up(till: &Till, sale: &Sale, key: Key) -> Result<()> {
    till.cancel(key).await?;
    till.drop_sale(sale.id).await?;
    Ok(())
}

/// Measures over files of all these sizes, so many rounds, each time beginning with another one.
pub(crate) async fn measure(dir: &Path, sizes: &[u64], rounds: usize) -> Result<Vec<Shop>> {
    let mut shops = Vec::new();
    for sales in sizes {
        shops.push(Shop::make(dir.join(format!("sales-{sales}")), *sales).await?);
    }
    for round in 0..rounds {
        let count = shops.len();
        for turn in 0..count {
            shops[(round + turn) % count].round().await?;
        }
    }
    Ok(shops)
}
