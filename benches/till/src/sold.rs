//! Files with many completed sales, made quickly: the till itself sells two, one in cash and one by card, and their rows are copied.

use anyhow::{Context, Result, ensure};
use bank::{Bank, BankConfig, Token};
use measure::rows::{self, Template};
use rusqlite::{Connection, types::Value};
use sha2::{Digest as _, Sha256};
use std::{
    net::Ipv4Addr,
    path::Path,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use till::{CardPayment, CashPayment, Count, Sale, ShiftOpening, Till};
use tokio_util::sync::CancellationToken;
use uuid::{NoContext, Timestamp, Uuid};

/// Sales between two commits.
const BATCH: u64 = 20_000;
/// The sales were made over this time up to now.
const SPAN: Duration = Duration::from_secs(3 * 365 * 24 * 3_600);
/// How long a payment may take to settle with the bank beside it.
const SETTLED_IN: Duration = Duration::from_secs(20);
const SECRET: &str = "sk_of_the_bench";
/// The till's file in its folder.
const FILE: &str = "till.db";
/// What is rung up on each sale.
pub(crate) const ARTICLES: [&str; 2] = ["BAK-201", "CAF-101"];
/// What they come to, as a person types it.
pub(crate) const TOTAL: &str = "4.05";

/// Makes a till's folder with that many completed sales in a shift that was closed, every second one by card.
pub(crate) async fn folder(dir: &Path, sales: u64) -> Result<()> {
    let till = Till::open(dir)?;
    let shift = till.open_shift(ShiftOpening { intent_id: Uuid::now_v7(), float_amount: 10_000 }).await?;
    let patterns = [in_cash(&till).await?, by_card(&till, dir).await?];
    drop(till);
    wait_until_free(dir).await?;
    rows::fast(&dir.join(FILE), |db| fill(db, patterns, sales.saturating_sub(2)))?;
    let till = Till::open(dir)?;
    let drawer = till.count_drawer(Count::Total(0)).await?;
    till.count_drawer(Count::Total(drawer.expected)).await?;
    let report = till.close_shift(shift.number).await?;
    ensure!(u64::try_from(report.sales)? == sales.max(2), "{} sales on the report", report.sales);
    let chain = till.check_audit(|_| {}).await?;
    ensure!(chain.broken.is_none(), "the audit is broken: {chain:?}");
    drop(till);
    wait_until_free(dir).await
}

/// A sale in front, with its articles.
pub(crate) async fn rung_up(till: &Till) -> Result<Sale> {
    till.new_sale().await?;
    let mut sale = till.open_sale().await?;
    for article in ARTICLES {
        sale = till.add_article(article, None).await?;
    }
    Ok(sale)
}

/// What pays it in cash.
pub(crate) async fn cash(till: &Till, sale: &Sale) -> Result<CashPayment> {
    let dialog = till.begin_tender(sale.id).await?;
    Ok(CashPayment { tender_id: dialog.tender_id, sale_id: sale.id, tendered: dialog.cash_due })
}

/// What pays it by card.
pub(crate) async fn card(till: &Till, sale: &Sale) -> Result<CardPayment> {
    let dialog = till.begin_tender(sale.id).await?;
    Ok(CardPayment { tender_id: dialog.tender_id, sale_id: sale.id, amount: dialog.due, card: "tok_visa".to_owned() })
}

async fn in_cash(till: &Till) -> Result<Uuid> {
    let sale = rung_up(till).await?;
    let payment = cash(till, &sale).await?;
    ensure!(till.pay_cash(payment).await?.sale.receipt_number.is_some(), "not completed");
    Ok(sale.id)
}

/// Settled with a bank of its own, in this process.
async fn by_card(till: &Till, dir: &Path) -> Result<Uuid> {
    let mut config = BankConfig::new(dir.join("bank.db"));
    config.tokens = vec![Token { merchant: "shop".to_owned(), secret: bank::Secret::new(SECRET.to_owned()) }];
    let bank = Bank::open(config).await?;
    let listener = bank::listen((Ipv4Addr::LOCALHOST, 0).into())?;
    let url = bank.ready(&listener)?.url;
    let end = CancellationToken::new();
    let served = tokio::spawn(bank.serve(listener, end.clone().cancelled_owned()));

    let sale = rung_up(till).await?;
    till.pay_card(card(till, &sale).await?).await?;
    let shutdown = CancellationToken::new();
    let asked = till::Bank { url, token: till::Secret::new(SECRET.to_owned()) };
    let mut settling = till.start_settling(Some(asked), shutdown.clone())?;
    let begin = Instant::now();
    while till.sale(sale.id).await?.receipt_number.is_none() {
        ensure!(begin.elapsed() < SETTLED_IN, "the payment is not settled");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    shutdown.cancel();
    settling.stopped().await?;
    end.cancel();
    served.await??;
    Ok(sale.id)
}

/// Waits until whoever had the folder has let it go: the file's writer ends after its last handle.
pub(crate) async fn wait_until_free(dir: &Path) -> Result<()> {
    let begin = Instant::now();
    while let Err(error) = Till::open(dir) {
        ensure!(begin.elapsed() < SETTLED_IN, "the folder is not let go: {error}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

/// Copies two sales in turn, so many times together, with numbers and an audit that follow the last ones.
fn fill(db: &Connection, patterns: [Uuid; 2], copies: u64) -> Result<()> {
    let patterns = patterns.map(|id| Pattern::read(db, id));
    let [cash, card] = patterns;
    let patterns = [cash?, card?];
    let one = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0));
    let last = one("SELECT last FROM counters WHERE name = 'receipt'")?;
    ensure!(one("SELECT last FROM counters WHERE name = 'sale'")? == last, "a sale without a receipt");
    let mut chain = Chain::at_head(db)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    for begin in (0..copies).step_by(usize::try_from(BATCH)?) {
        db.execute_batch("BEGIN IMMEDIATE")?;
        for (number, pattern) in (begin..(begin + BATCH).min(copies)).zip(patterns.iter().cycle()) {
            let at = now - SPAN.mul_f64(1.0 - number as f64 / copies as f64);
            pattern.copy(db, last + 1 + i64::try_from(number)?, at, &mut chain)?;
        }
        db.execute_batch("COMMIT")?;
    }
    db.execute("UPDATE counters SET last = last + ?1", [i64::try_from(copies)?])?;
    db.execute("UPDATE audit_head SET (seq, hash) = (SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1)", [])?;
    Ok(())
}

/// The rows of one sale.
struct Pattern {
    sale: Template,
    parts: Vec<Template>,
    tender: Template,
    operation: Option<(Template, Vec<Template>)>,
    audit: Vec<Template>,
}

impl Pattern {
    fn read(db: &Connection, id: Uuid) -> Result<Self> {
        let id = id.to_string();
        let one = |rows: Vec<Template>| rows.into_iter().next().context("there is no such row");
        let of_sale = |table, rest: &str| Template::read(db, table, rest, [id.as_str()]);
        let tender = one(of_sale("tenders", "WHERE sale_id = ?1")?)?;
        let operation = match of_sale("operations", "WHERE lane = ?1")?.into_iter().next() {
            Some(operation) => {
                let key = operation.value("key").cloned().context("an operation without a key")?;
                Some((operation, Template::read(db, "attempts", "WHERE key = ?1 ORDER BY seq", [key])?))
            }
            None => None,
        };
        Ok(Self {
            sale: one(of_sale("sales", "WHERE id = ?1")?)?,
            parts: [of_sale("lines", "WHERE sale_id = ?1")?, of_sale("sale_taxes", "WHERE sale_id = ?1")?].concat(),
            tender,
            operation,
            audit: of_sale("audit", "WHERE sale_id = ?1 ORDER BY seq")?,
        })
    }

    fn copy(&self, db: &Connection, number: i64, at: Duration, chain: &mut Chain) -> Result<()> {
        let made = || Uuid::new_v7(Timestamp::from_unix(NoContext, at.as_secs(), at.subsec_nanos()));
        let (sale_id, tender_id, key) = (made().to_string(), made(), made());
        let at_ms = Value::Integer(i64::try_from(at.as_millis())?);
        let of_sale = ("sale_id", Value::Text(sale_id.clone()));
        let times = [("created_at", at_ms.clone()), ("updated_at", at_ms.clone())];
        let numbers = ["number", "receipt_number"].map(|column| (column, Value::Integer(number)));
        let sale = [("id", Value::Text(sale_id.clone())), ("completed_at", at_ms.clone()), ("held", Value::Integer(1))];
        insert(db, &self.sale, &[&sale[..], &times, &numbers].concat())?;
        for part in &self.parts {
            insert(db, part, &[of_sale.clone(), ("id", Value::Null)])?;
        }
        let mut tender = vec![of_sale.clone(), ("id", Value::Text(tender_id.to_string()))];
        if let Some((operation, attempts)) = &self.operation {
            tender.push(("reference", Value::Text(format!("till-1/{number}"))));
            let of_key = ("key", Value::Blob(key.as_bytes().to_vec()));
            let mut named = vec![("seq", Value::Null), of_key.clone(), ("lane", Value::Text(sale_id.clone()))];
            named.push(("intent_id", Value::Blob(tender_id.as_bytes().to_vec())));
            let moments = ["first_sent_at", "settled_at", "created_at", "updated_at"];
            named.extend(moments.map(|column| (column, at_ms.clone())));
            insert(db, operation, &named)?;
            for attempt in attempts {
                insert(db, attempt, &[("seq", Value::Null), of_key.clone(), ("at", at_ms.clone())])?;
            }
        }
        insert(db, &self.tender, &[&tender[..], &times].concat())?;
        for entry in &self.audit {
            let entry = entry.with(&[of_sale.clone(), ("at", at_ms.clone()), ("seq", Value::Integer(chain.seq + 1))]);
            let hash = Value::Blob(chain.hash_of(&entry)?);
            let previous = Value::Blob(std::mem::take(&mut chain.hash));
            insert(db, &entry, &[("previous", previous), ("hash", hash.clone())])?;
            chain.seq += 1;
            if let Value::Blob(hash) = hash {
                chain.hash = hash;
            }
        }
        Ok(())
    }
}

fn insert(db: &Connection, template: &Template, named: &[(&str, Value)]) -> Result<()> {
    template.insert(db, &template.copy(named))
}

/// The end of the audit, whose entries follow each other as the till's own do: see `crates/till/src/audit/chain.rs`.
struct Chain {
    seq: i64,
    hash: Vec<u8>,
}

impl Chain {
    fn at_head(db: &Connection) -> Result<Self> {
        let head = db.query_row("SELECT seq, hash FROM audit_head", [], |row| Ok((row.get(0)?, row.get(1)?)));
        let (seq, hash) = head?;
        Ok(Self { seq, hash })
    }

    fn hash_of(&self, entry: &Template) -> Result<Vec<u8>> {
        let mut hasher = Sha256::new();
        hasher.update(&self.hash);
        let value = |column: &str| entry.value(column).with_context(|| format!("an entry without {column}"));
        for column in ["seq", "at", "offset_s"] {
            let Value::Integer(number) = value(column)? else { anyhow::bail!("{column} is no number") };
            hasher.update(number.to_be_bytes());
        }
        let rest = ["app_version", "who", "person_id", "approved_by", "approver_id", "what", "sale_id", "details"];
        for column in rest {
            match value(column)? {
                Value::Null => hasher.update([0]),
                Value::Integer(number) => {
                    hasher.update([1]);
                    hasher.update(number.to_be_bytes());
                }
                Value::Text(text) => {
                    hasher.update([1]);
                    hasher.update(i64::try_from(text.len())?.to_be_bytes());
                    hasher.update(text.as_bytes());
                }
                other => anyhow::bail!("{column} is {other:?}"),
            }
        }
        Ok(hasher.finalize().to_vec())
    }
}
