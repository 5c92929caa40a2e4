//! Ringing up: the articles of the demo catalogue and three of the script's own, with the prices that it knows them by.

use anyhow::{Result, ensure};
use rand::{Rng as _, seq::IndexedRandom as _};
use till::check_digit;
use uuid::Uuid;

use crate::{
    books::{id, int, list, text},
    click::Click,
    day::{Day, Strike},
    plan::Goods,
    prices::{Cart, Line, Part, decimal},
};

const FOOD: i64 = 7_000;
const STANDARD: i64 = 19_000;

/// By the piece: SKU, price in cents, tax rate in thousandths of a percent.
const PIECES: [(&str, i64, i64); 12] = [
    ("CAF-101", 220, STANDARD),
    ("CAF-102", 340, STANDARD),
    ("CAF-107", 310, STANDARD),
    ("BAK-201", 185, FOOD),
    ("BAK-203", 260, FOOD),
    ("BAK-207", 175, FOOD),
    ("DAI-401", 149, FOOD),
    ("DAI-403", 269, FOOD),
    ("DRI-501", 95, STANDARD),
    ("DRI-508", 899, STANDARD),
    ("PAN-603", 999, FOOD),
    ("PAN-608", 25, STANDARD),
];
/// By the kilogram.
const WEIGHED: [(&str, i64, i64); 5] = [
    ("PRO-301", 199, FOOD),
    ("PRO-303", 349, FOOD),
    ("PRO-306", 459, FOOD),
    ("DAI-406", 1_890, FOOD),
    ("DAI-408", 1_650, FOOD),
];
/// Its price is asked for.
pub(crate) const FLOWERS: (&str, i64) = ("FLO-901", STANDARD);
/// What the scale labels with a price, and what with a weight: the numbers in the labels are their barcodes.
pub(crate) const CHEESE: (&str, &str, i64) = ("SCA-902", "60902", FOOD);
pub(crate) const HAM: (&str, &str, i64, i64) = ("SCA-903", "60903", 2_490, FOOD);
/// What the shop's scales print.
pub(crate) const SCALE_BARCODES: &str = "21=price5 22=weight5";

/// An open sale with all that was rung up, and what the script makes of it.
pub(crate) struct Rung {
    pub(crate) sale_id: Uuid,
    pub(crate) cart: Cart,
    pub(crate) line_ids: Vec<i64>,
}

impl Rung {
    /// The line that was rung up last.
    fn last(&mut self) -> Option<(i64, &mut Line)> {
        Some((*self.line_ids.last()?, self.cart.lines.last_mut()?))
    }
}

/// The code that a scale prints: a prefix, the article's number, and five digits of price or weight.
fn label(prefix: u8, item: &str, value: i64) -> String {
    let body = format!("{prefix}{item}{value:05}");
    let mut digits = [0; 12];
    for (digit, byte) in digits.iter_mut().zip(body.bytes()) {
        *digit = byte - b'0';
    }
    format!("{body}{}", check_digit(&digits))
}

impl Day {
    /// Rings up goods of a kind on a new sale, and does to them what the kind says.
    pub(crate) async fn ring_up(&mut self, goods: Goods) -> Result<Rung> {
        let sale = self.done(Click::NewSale).await?;
        ensure!(sale["state"] == "open" && list(&sale, "lines")?.is_empty(), "no new sale: {sale}");
        let mut rung = Rung { sale_id: id(&sale, "id")?, cart: Cart::default(), line_ids: Vec::new() };
        match goods {
            Goods::One | Goods::Noted | Goods::Tip | Goods::OtherPrice => self.pieces(&mut rung, 1).await?,
            Goods::Many | Goods::SaleOff | Goods::Undone => {
                let count = self.chance.random_range(3..=6);
                self.pieces(&mut rung, count).await?;
                self.weighed(&mut rung).await?;
            }
            Goods::Again | Goods::LineOff | Goods::LineOffApproved | Goods::Parked => self.pieces(&mut rung, 2).await?,
            Goods::Weighed => self.weighed(&mut rung).await?,
            Goods::OpenPrice => {
                let price = self.chance.random_range(300..4_000);
                self.flowers(&mut rung, price).await?;
            }
            Goods::At(price) => self.flowers(&mut rung, price).await?,
            Goods::PriceLabel => {
                let price = self.chance.random_range(150..2_500);
                let line = Line { price, thousandths: 1_000, rate: CHEESE.2, off: None };
                self.ring(&mut rung, &label(21, CHEESE.1, price), None, None, line).await?;
            }
            Goods::WeightLabel => {
                let thousandths = self.chance.random_range(50..900);
                let line = Line { price: HAM.2, thousandths, rate: HAM.3, off: None };
                self.ring(&mut rung, &label(22, HAM.1, thousandths), None, None, line).await?;
            }
            Goods::Thirds => {
                let line = Line { price: 649, thousandths: 3_000, rate: FOOD, off: None };
                self.ring(&mut rung, "PAN-604", Some(3_000), None, line).await?;
                self.discount(&mut rung, Part::Percent(10_000), false).await?;
                self.pieces(&mut rung, 1).await?;
            }
        }
        self.then(goods, &mut rung).await?;
        self.agrees(&rung).await?;
        self.tally.met(&format!("goods: {}", name(goods)));
        Ok(rung)
    }

    /// What is done to the goods of a kind once they are rung up.
    async fn then(&mut self, goods: Goods, rung: &mut Rung) -> Result<()> {
        let sale_id = rung.sale_id;
        match goods {
            Goods::Again => self.again(rung).await,
            Goods::Noted => {
                let Some((line_id, _)) = rung.last() else { return Ok(()) };
                let sale = self.done(Click::SetNote { line_id, note: "no sugar".into() }).await?;
                ensure!(list(&sale, "lines")?.last().is_some_and(|line| line["note"] == "no sugar"), "{sale}");
                Ok(())
            }
            Goods::LineOff => {
                let off = if self.chance.random() { Part::Percent(7_500) } else { Part::Amount(40) };
                self.discount(rung, off, false).await
            }
            Goods::LineOffApproved => self.discount(rung, Part::Percent(33_333), true).await,
            Goods::SaleOff => {
                let off = if self.chance.random() { Part::Percent(10_000) } else { Part::Amount(101) };
                rung.cart.off = Some(off);
                self.done(Click::DiscountSale { sale_id, asked: off.asked() }).await.map(drop)
            }
            Goods::OtherPrice => self.other_price(rung).await,
            Goods::Tip => {
                let tip = if self.chance.random() { Part::Percent(12_500) } else { Part::Amount(150) };
                rung.cart.tip = Some(tip);
                self.done(Click::SetTip { sale_id, asked: tip.asked() }).await.map(drop)
            }
            Goods::Parked => self.parked(rung).await,
            Goods::Undone => {
                let Some(&line_id) = rung.line_ids.get(1) else { return Ok(()) };
                let sale = self.done(Click::RemoveLine { line_id }).await?;
                ensure!(list(&sale, "lines")?.len() + 1 == rung.line_ids.len(), "not removed: {sale}");
                let sale = self.done(Click::Undo { sale_id }).await?;
                ensure!(list(&sale, "lines")?.len() == rung.line_ids.len(), "not taken back: {sale}");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// So many different articles by the piece.
    async fn pieces(&mut self, rung: &mut Rung, count: usize) -> Result<()> {
        let chosen: Vec<_> = PIECES.choose_multiple(&mut self.chance, count).copied().collect();
        for (sku, price, rate) in chosen {
            let pieces = self.chance.random_range(1..=3);
            let line = Line { price, thousandths: pieces * 1_000, rate, off: None };
            let asked = (pieces > 1).then_some(pieces * 1_000);
            self.ring(rung, sku, asked, None, line).await?;
        }
        Ok(())
    }

    async fn weighed(&mut self, rung: &mut Rung) -> Result<()> {
        let Some(&(sku, price, rate)) = WEIGHED.choose(&mut self.chance) else { return Ok(()) };
        let thousandths = self.chance.random_range(300..1_400);
        self.ring(rung, sku, Some(thousandths), None, Line { price, thousandths, rate, off: None }).await
    }

    async fn flowers(&mut self, rung: &mut Rung, price: i64) -> Result<()> {
        let unpriced = Click::RingUp { code: FLOWERS.0.into(), quantity: None, price: None };
        let (code, _) = self.refused(unpriced).await?;
        ensure!(code == "price-needed", "{code}");
        let line = Line { price, thousandths: 1_000, rate: FLOWERS.1, off: None };
        self.ring(rung, FLOWERS.0, None, Some(price), line).await
    }

    /// One more line.
    async fn ring(
        &mut self,
        rung: &mut Rung,
        code: &str,
        quantity: Option<i64>,
        price: Option<i64>,
        line: Line,
    ) -> Result<()> {
        if self.strikes(Strike::RingUp) {
            self.counter.strike_next("from outside, ringing up", &mut self.chance);
        }
        let sale = self.done(Click::RingUp { code: code.into(), quantity: quantity.map(decimal), price }).await?;
        rung.cart.lines.push(line);
        let lines = list(&sale, "lines")?;
        ensure!(sale["id"] == rung.sale_id.to_string() && lines.len() == rung.cart.lines.len(), "{code}: {sale}");
        rung.line_ids = lines.iter().map(|line| int(line, "id")).collect::<Result<_>>()?;
        let total = rung.cart.priced().total;
        ensure!(int(&sale, "total")? == total, "{code}: not {total}: {sale}");
        Ok(())
    }

    /// The article of the last line once more: the same line.
    async fn again(&mut self, rung: &mut Rung) -> Result<()> {
        let sale = self.done(Click::OpenSale).await?;
        let Some((_, line)) = rung.last() else { return Ok(()) };
        line.thousandths += 1_000;
        let code = list(&sale, "lines")?.last().map_or(Ok(""), |line| text(line, "sku"))?.to_owned();
        let sale = self.done(Click::RingUp { code, quantity: None, price: None }).await?;
        ensure!(list(&sale, "lines")?.len() == rung.line_ids.len(), "another line: {sale}");
        Ok(())
    }

    /// Takes something off the last line, with a manager's word where a cashier may not.
    async fn discount(&mut self, rung: &mut Rung, off: Part, needs_approval: bool) -> Result<()> {
        let Some((line_id, line)) = rung.last() else { return Ok(()) };
        line.off = Some(off);
        let click = Click::DiscountLine { line_id, asked: off.asked() };
        if needs_approval { self.approved(click).await.map(drop) } else { self.done(click).await.map(drop) }
    }

    async fn other_price(&mut self, rung: &mut Rung) -> Result<()> {
        let Some((line_id, line)) = rung.last() else { return Ok(()) };
        line.price += 7;
        let price = line.price;
        self.approved(Click::SetPrice { line_id, price }).await?;
        self.drawer.overrides += 1;
        Ok(())
    }

    /// Parks the sale, begins another, which is dropped later, and takes the first one up again.
    async fn parked(&mut self, rung: &mut Rung) -> Result<()> {
        let sale_id = rung.sale_id;
        let next = self.done(Click::Park { sale_id, name: "table 4".into() }).await?;
        let other = id(&next, "id")?;
        ensure!(other != sale_id && list(&next, "lines")?.is_empty(), "{next}");
        self.done(Click::RingUp { code: "CAF-105".into(), quantity: None, price: None }).await?;
        let sale = self.done(Click::Resume { sale_id }).await?;
        ensure!(sale["id"] == sale_id.to_string() && list(&sale, "lines")?.len() == rung.line_ids.len(), "{sale}");
        self.done(Click::Drop { sale_id: other }).await?;
        self.drawer.drops += 1;
        self.tally.met("sale: parked and resumed");
        let line = Line { price: 219, thousandths: 1_000, rate: FOOD, off: None };
        self.ring(rung, "PAN-605", None, None, line).await
    }

    /// The till's figures are the script's.
    async fn agrees(&mut self, rung: &Rung) -> Result<()> {
        let sale = self.done(Click::Sale { sale_id: rung.sale_id }).await?;
        let priced = rung.cart.priced();
        let lines: Vec<i64> = list(&sale, "lines")?.iter().map(|line| int(line, "total")).collect::<Result<_>>()?;
        ensure!(lines == priced.lines, "lines of {:?}: {sale}", priced.lines);
        ensure!((int(&sale, "total")?, int(&sale, "tip")?) == (priced.total, priced.tip), "{priced:?}: {sale}");
        ensure!(int(&sale, "discount")? == priced.off_sale, "{priced:?}: {sale}");
        let told: Vec<_> = list(&sale, "taxes")?
            .iter()
            .map(|tax| Ok((text(tax, "rate")?.to_owned(), int(tax, "net")?, int(tax, "tax")?)))
            .collect::<Result<_>>()?;
        let own: Vec<_> = priced.taxes.iter().map(|(rate, (net, tax))| (decimal(*rate), *net, *tax)).collect();
        ensure!(told == own, "taxes of {own:?}: {sale}");
        Ok(())
    }
}

/// The kind in the table.
pub(crate) fn name(goods: Goods) -> &'static str {
    match goods {
        Goods::One => "one line",
        Goods::Many => "many lines",
        Goods::Again => "the same article again",
        Goods::Weighed => "weighed",
        Goods::OpenPrice | Goods::At(_) => "open price",
        Goods::PriceLabel => "label with a price",
        Goods::WeightLabel => "label with a weight",
        Goods::Noted => "with a note",
        Goods::LineOff => "line discount",
        Goods::LineOffApproved => "line discount with a manager's PIN",
        Goods::SaleOff => "sale discount",
        Goods::OtherPrice => "other price with a manager's PIN",
        Goods::Tip => "tip",
        Goods::Parked => "parked and resumed",
        Goods::Undone => "line removed and taken back",
        Goods::Thirds => "three of one",
    }
}
