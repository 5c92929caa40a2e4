//! The question that every test of the whole ends with: was each thing that was clicked kept, and charged once?
//!
//! The till, the bank and the gateway are read as any stranger may read them, and [`judge`] compares what they say. What
//! can't be read is an error, and never a pass.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use super::{bank::Bank, till::Till};

/// How many operations are asked about at a time.
const ASKED_TOGETHER: usize = 8;

/// What became of everything that was clicked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) clicked: usize,
    pub(crate) approved: usize,
    pub(crate) declined: usize,
    pub(crate) cancelled: usize,
    pub(crate) needs_attention: usize,
    /// Not final yet: charged once at most.
    pub(crate) open: usize,
}

impl Verdict {
    /// All that was clicked is approved.
    pub(crate) fn all_approved(clicked: usize) -> Self {
        Self { clicked, approved: clicked, ..Self::default() }
    }
}

/// What was read, at the end, of all who have a say.
#[derive(Clone, Debug)]
pub(crate) struct Books {
    /// The keys that `pay` and `refund` printed.
    pub(crate) clicked: Vec<String>,
    /// Of the tills: their operations.
    pub(crate) till: Vec<Value>,
    /// Of the bank: what became of each key; none where it never saw the key.
    pub(crate) bank: BTreeMap<String, Option<Value>>,
    /// Of the bank: its ledger, added up.
    pub(crate) bank_ledger: Value,
    /// Of the gateway: what moved under each operation's own gateway key; none where it was never asked.
    pub(crate) gateway: BTreeMap<String, Option<Value>>,
    /// Of the gateway: all that moved.
    pub(crate) gateway_ledger: Value,
}

/// Reads everything and judges it. `keys` are those that the till's clicks printed.
pub(crate) async fn one_charge_each(till: &Till, bank: &Bank, keys: &[String]) -> Result<Verdict> {
    one_charge_each_of(&[(till, keys)], bank).await
}

/// The same for all tills of one bank: only together do they add up to what the gateway moved.
pub(crate) async fn one_charge_each_of(tills: &[(&Till, &[String])], bank: &Bank) -> Result<Verdict> {
    judge(&read(tills, bank).await.context("not everything could be read, so nothing is proved")?)
}

async fn read(tills: &[(&Till, &[String])], bank: &Bank) -> Result<Books> {
    let mut books = Books {
        clicked: Vec::new(),
        till: Vec::new(),
        bank: BTreeMap::new(),
        bank_ledger: bank.ledger().await?,
        gateway: BTreeMap::new(),
        gateway_ledger: bank.gateway_ledger(None).await?,
    };
    for (till, keys) in tills {
        books.till.extend(till.operations().await?);
        books.clicked.extend_from_slice(keys);
    }
    let told: Vec<_> =
        stream::iter(&books.clicked)
            .map(|key| async move {
                Ok::<_, anyhow::Error>((key.clone(), bank.operation(key).await?, moved(bank, key).await?))
            })
            .buffered(ASKED_TOGETHER)
            .try_collect()
            .await?;
    for (key, at_bank, at_gateway) in told {
        books.bank.insert(key.clone(), at_bank);
        books.gateway.insert(key, at_gateway);
    }
    Ok(books)
}

/// What moved at the gateway for an operation; none where the gateway was never asked.
async fn moved(bank: &Bank, key: &str) -> Result<Option<Value>> {
    match bank.gateway_key(key).await? {
        Some(gateway_key) => Ok(Some(bank.gateway_ledger(Some(&gateway_key)).await?)),
        None => Ok(None),
    }
}

/// Counts and sums of what moved.
#[derive(Debug, Default, PartialEq, Eq)]
struct Moved {
    charges: i64,
    refunds: i64,
    /// Charged and not given back, in minor units by currency.
    net: BTreeMap<String, i64>,
}

impl Moved {
    fn read(ledger: &Value) -> Result<Self> {
        let count = |name: &str| ledger[name].as_i64().with_context(|| format!("no {name} in {ledger}"));
        let mut moved = Self { charges: count("charges")?, refunds: count("refunds")?, net: BTreeMap::new() };
        for (name, sign) in [("charged", 1), ("refunded", -1)] {
            let sums = ledger[name].as_object().with_context(|| format!("no {name} in {ledger}"))?;
            for (currency, sum) in sums {
                moved.add(currency, sign * sum.as_i64().with_context(|| format!("no sum in {ledger}"))?);
            }
        }
        Ok(moved)
    }

    fn add(&mut self, currency: &str, amount: i64) {
        let sum = self.net.entry(currency.to_owned()).or_default();
        *sum += amount;
        if *sum == 0 {
            self.net.remove(currency);
        }
    }

    fn add_all(&mut self, other: &Self) {
        self.charges += other.charges;
        self.refunds += other.refunds;
        other.net.iter().for_each(|(currency, amount)| self.add(currency, *amount));
    }
}

/// Says what became of everything, or which of the promises was broken.
pub(crate) fn judge(books: &Books) -> Result<Verdict> {
    let kept: BTreeSet<&str> = books.till.iter().filter_map(|operation| operation["key"].as_str()).collect();
    let clicked: BTreeSet<&str> = books.clicked.iter().map(String::as_str).collect();
    ensure!(clicked.len() == books.clicked.len(), "two clicks have one key");
    ensure!(kept.len() == books.till.len(), "two operations of the tills have one key");
    ensure!(
        kept == clicked,
        "clicked and not kept, or kept and not clicked: {:?}",
        kept.symmetric_difference(&clicked)
    );

    let mut verdict = Verdict { clicked: clicked.len(), ..Verdict::default() };
    let mut owed = Moved::default();
    for operation in &books.till {
        let moved = one(books, operation, &mut verdict).with_context(|| format!("{operation}"))?;
        owed.add_all(&moved);
    }
    totals(books, &owed, &verdict)?;
    Ok(verdict)
}

/// Judges one operation and gives what moved for it, reversals aside.
fn one(books: &Books, operation: &Value, verdict: &mut Verdict) -> Result<Moved> {
    let text = |name: &str| operation[name].as_str().with_context(|| format!("it has no {name}"));
    let key = text("key")?;
    let at_bank = books.bank.get(key).context("the bank was not asked")?;
    let moved = match books.gateway.get(key).context("the gateway was not asked")? {
        Some(ledger) => Moved::read(ledger)?,
        None => Moved::default(),
    };
    let mut whole = Moved::default();
    match text("kind")? {
        "payment" => whole.charges = 1,
        "refund" => whole.refunds = 1,
        other => anyhow::bail!("a kind of operation that the checker does not know: {other}"),
    }
    let amount = operation["amount"].as_i64().context("it has no amount")?;
    whole.add(text("currency")?, if whole.charges == 1 { amount } else { -amount });

    match text("state")? {
        "approved" => {
            verdict.approved += 1;
            same_end(operation, at_bank.as_ref(), "approved")?;
            ensure!(moved == whole, "approved, and at the gateway is {moved:?} and not {whole:?}");
        }
        "declined" => {
            verdict.declined += 1;
            same_end(operation, at_bank.as_ref(), "declined")?;
            ensure!(moved == Moved::default(), "declined, and at the gateway is {moved:?}");
        }
        "cancelled" => {
            verdict.cancelled += 1;
            // One that was never sent may be unknown there.
            let at_bank = at_bank.as_ref().map(|found| &found["state"]);
            ensure!(at_bank.is_none_or(|state| state == "cancelled"), "cancelled, and the bank says {at_bank:?}");
            // What was charged before it was cancelled is given back under a gateway key of its own: see the totals.
            return Ok(Moved::default());
        }
        "needs_attention" => {
            verdict.needs_attention += 1;
            ensure!(moved == Moved::default() || moved == whole, "at the gateway is {moved:?}");
        }
        "saved" | "sending" | "unknown" => {
            verdict.open += 1;
            ensure!(moved == Moved::default() || moved == whole, "at the gateway is {moved:?}");
        }
        other => anyhow::bail!("a state that the checker does not know: {other}"),
    }
    Ok(moved)
}

/// The till's final result is the bank's stored one, member for member, and is about what was clicked.
fn same_end(operation: &Value, at_bank: Option<&Value>, state: &str) -> Result<()> {
    let at_bank = at_bank.context("the bank does not know it")?;
    ensure!(at_bank["state"] == state, "the bank says {at_bank}");
    ensure!(operation["result"].is_object(), "it has no result");
    ensure!(at_bank["result"] == operation["result"], "the bank's result is {at_bank}");
    for (name, wanted) in [("amount", "amount"), ("currency", "currency"), ("operation", "key"), ("status", "state")] {
        ensure!(operation["result"][name] == operation[wanted], "its result is about another {name}");
    }
    Ok(())
}

/// Nothing moved beside what the operations account for: in the end the gateway's ledger and the bank's say the same sums.
fn totals(books: &Books, owed: &Moved, verdict: &Verdict) -> Result<()> {
    let gateway = Moved::read(&books.gateway_ledger).context("the gateway's ledger")?;
    ensure!(
        gateway.net == owed.net,
        "the gateway moved {:?} in all, and the operations account for {:?}",
        gateway.net,
        owed.net
    );
    let reversals = gateway.charges - owed.charges;
    ensure!(gateway.refunds - owed.refunds == reversals, "{gateway:?} at the gateway, {owed:?} by the operations");
    ensure!(
        (0..=i64::try_from(verdict.cancelled)?).contains(&reversals),
        "{} charges at the gateway, {} by the operations, {} cancelled",
        gateway.charges,
        owed.charges,
        verdict.cancelled
    );
    let bank = Moved::read(&books.bank_ledger).context("the bank's ledger")?;
    ensure!(books.bank_ledger["balanced"] == true, "the bank's ledger does not balance: {}", books.bank_ledger);
    // What the bank has not finished may have moved at the gateway and not in its books.
    let finished = |found: &Option<Value>| {
        found.as_ref().is_none_or(|found| found["state"] != "processing" && found["state"] != "needs_attention")
    };
    if books.bank.values().all(finished) {
        ensure!(bank == gateway, "the bank's ledger says {bank:?}, the gateway's {gateway:?}");
    }
    Ok(())
}
