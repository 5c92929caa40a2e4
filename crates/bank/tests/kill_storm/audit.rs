//! The account that is settled after a storm: what the clients heard, what the bank tells, what its file holds and what the
//! cardholders paid must be one story.

use crate::{
    program::Result,
    site::Site,
    traffic::{PAYMENTS, Sent, Wish},
    wire::{Ask, Told, Wire},
};
use futures::{StreamExt, TryStreamExt, stream};
use hyper::Method;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, Instant},
};

/// Connections that ask at once.
const ASKING: usize = 16;
/// What a log of commits may grow to, in bytes: twice what it is cut back to.
const LOG_BYTES_MAX: u64 = 16 << 20;
/// Findings that are printed.
const SHOWN_MAX: usize = 20;

/// Whether operations may be left that a person must look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attention {
    None,
    Allowed,
}

/// What was found, in numbers.
#[derive(Debug, Default)]
pub(crate) struct Count {
    /// Keys that were sent.
    pub(crate) sent: u32,
    /// Of these, those whose outcome the client was not told.
    pub(crate) untold: u32,
    /// Of the untold, those that the bank finished all the same.
    pub(crate) finished_untold: u32,
    pub(crate) states: BTreeMap<String, u32>,
    /// Operations that a later process finished than the one that claimed them, at the least.
    pub(crate) recovered: u32,
    pub(crate) gateway_requests: i64,
    pub(crate) charges: i64,
    pub(crate) reversals: i64,
    pub(crate) refunds: i64,
    findings: Vec<String>,
}

impl Count {
    fn check(&mut self, holds: bool, finding: impl FnOnce() -> String) {
        if !holds {
            self.findings.push(finding());
        }
    }

    fn same<T: PartialEq + fmt::Debug>(&mut self, what: &str, one: T, other: T) {
        self.check(one == other, || format!("{what}: {one:?} and {other:?}"));
    }

    pub(crate) fn state(&self, state: &str) -> u32 {
        self.states.get(state).copied().unwrap_or(0)
    }

    /// The numbers, where nothing was found wrong.
    pub(crate) fn clean(mut self) -> Result<Self> {
        if self.findings.is_empty() {
            return Ok(self);
        }
        let mut findings = std::mem::take(&mut self.findings);
        let all = findings.len();
        findings.truncate(SHOWN_MAX);
        Err(format!("{all} findings:\n{}\n{self:?}", findings.join("\n")).into())
    }
}

/// What the bank's file holds at a moment. So much of it as is unfinished has a time to be finished in.
pub(crate) struct Found {
    since: Instant,
    last_id: i64,
    /// Operations that are unfinished.
    pub(crate) unfinished: i64,
}

impl Found {
    /// Looks. Before a start, this is what the process is to finish, and the time runs from before it is there.
    pub(crate) fn now(site: &Site) -> Result<Self> {
        let sql = "SELECT coalesce(max(id), 0), count(*) FILTER (WHERE state = 0) FROM operations";
        let (last_id, unfinished) = bank_file(site)?.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Self { since: Instant::now(), last_id, unfinished })
    }

    /// Waits until all of it is finished, whatever came since, and says how long that took from the look on; an error where it
    /// takes longer than `limit`.
    pub(crate) async fn is_finished(&self, site: &Site, limit: Duration) -> Result<Duration> {
        let bank = bank_file(site)?;
        loop {
            let sql = "SELECT count(*) FROM operations WHERE state = 0 AND id <= ?1";
            let left: i64 = bank.query_row(sql, [self.last_id], |row| row.get(0))?;
            let after = self.since.elapsed();
            if left == 0 && after <= limit {
                return Ok(after);
            }
            if after > limit {
                return Err(format!("{left} of {} operations are unfinished after {after:?}", self.unfinished).into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The bank's file, for a reader that changes nothing.
fn bank_file(site: &Site) -> Result<Connection> {
    Ok(Connection::open_with_flags(site.dir.path().join("bank.db"), OpenFlags::SQLITE_OPEN_READ_ONLY)?)
}

/// Both files, the gateway's as `gateway`.
fn both_files(site: &Site) -> Result<Connection> {
    let connection = bank_file(site)?;
    let gateway = format!("file:{}?mode=ro", site.dir.path().join("gateway.db").display());
    connection.execute("ATTACH ?1 AS gateway", [gateway])?;
    Ok(connection)
}

/// Checks everything. Bank and gateway are up, without faults, and nothing runs.
pub(crate) async fn audit(site: &Site, sent: &[Sent], attention: Attention) -> Result<Count> {
    let mut count = Count { sent: sent.len().try_into()?, ..Count::default() };
    check_keys(site, sent, &mut count).await?;
    check_files(site, attention, &mut count)?;
    check_books(site, attention, &mut count).await?;
    if attention == Attention::None {
        count.same("operations that need attention", count.state("needs_attention"), 0);
    }
    for program in [&site.bank, &site.gateway] {
        let log = program.log()?;
        for line in log.lines().filter(|line| line.contains("panicked")) {
            count.findings.push(line.to_owned());
        }
        // Nothing that a kill or a faulty gateway does is an error of the program itself. What needs attention is counted.
        let errors =
            log.lines().filter(|line| line.contains(" ERROR ") && !line.contains("an operation needs attention"));
        count.findings.extend(errors.map(str::to_owned));
    }
    count.clean()
}

/// What the bank now says of a key, and what it replays.
struct Now {
    operation: Told,
    replay: Option<Told>,
}

async fn check_keys(site: &Site, sent: &[Sent], count: &mut Count) -> Result {
    let share = sent.len().div_ceil(ASKING).max(1);
    let asking = sent.chunks(share).map(async |sent| -> Result<Vec<Now>> {
        let mut wire = Wire::to(site.bank.address);
        let mut found = Vec::with_capacity(sent.len());
        for sent in sent {
            found.push(look(&mut wire, sent).await?);
        }
        Ok(found)
    });
    let found: Vec<Vec<Now>> = stream::iter(asking).buffered(ASKING).try_collect().await?;
    for (sent, now) in sent.iter().zip(found.iter().flatten()) {
        check_key(sent, now, count);
    }
    Ok(())
}

/// Asks for the operation; where there is one, repeats the request, which is allowed by now.
async fn look(wire: &mut Wire, sent: &Sent) -> Result<Now> {
    let operation = wire.need(Ask::new(Method::GET, &format!("/v1/operations/{}", sent.key))).await?;
    let replay = match operation.status {
        200 => Some(wire.need(Ask::keyed(sent.path, &sent.key, &sent.body)).await?),
        _ => None,
    };
    Ok(Now { operation, replay })
}

fn check_key(sent: &Sent, now: &Now, count: &mut Count) {
    let key = &sent.key;
    let operation = now.operation.json();
    let state = match now.operation.status {
        200 => operation["state"].as_str().unwrap_or("nothing").to_owned(),
        404 => "not claimed".to_owned(),
        status => format!("status {status}"),
    };
    check_replay(sent, &state, &operation, now, count);
    let told = match &sent.told {
        None => {
            count.untold += 1;
            count.finished_untold += u32::from(now.operation.status == 200);
            ""
        }
        Some(told) => match told.status {
            201 => "approved",
            402 => "declined",
            // In progress, and not what needs attention.
            409 => {
                count.untold += 1;
                count.finished_untold += 1;
                let possible = ["approved", "declined", "cancelled", "needs_attention"].contains(&state.as_str());
                count.check(possible, || format!("{key}: told as running, and is {state}"));
                ""
            }
            410 => "cancelled",
            // Nothing was claimed, unless the wish to cancel left its tombstone.
            503 if operation["kind"].is_null() && state == "cancelled" => "cancelled",
            503 => "not claimed",
            other => {
                count.findings.push(format!("{key}: was told {other}: {}", told.json()));
                ""
            }
        },
    };
    count.check(told.is_empty() || told == state, || format!("{key}: told as {told}, and is {state}"));
    check_wish(sent, &state, count);
    *count.states.entry(state).or_default() += 1;
}

/// A repeat says what is stored: to the byte what was told before, or what was told to nobody.
fn check_replay(sent: &Sent, state: &str, operation: &Value, now: &Now, count: &mut Count) {
    let (key, Some(replay)) = (&sent.key, &now.replay) else { return };
    let expected = match state {
        "approved" => 201,
        "declined" => 402,
        "cancelled" => 410,
        _ => 409,
    };
    count.check(replay.status == expected, || format!("{key} is {state}, and a repeat gets {}", replay.status));
    if !replay.is_result() {
        return;
    }
    count.check(replay.replayed == Some(true), || format!("{key}: run again"));
    count.check(operation["result"] == replay.json(), || format!("{key}: {operation} and {}", replay.json()));
    if let Some(told) = sent.told.as_ref().filter(|told| told.is_result()) {
        count.check(told.replayed == Some(false), || format!("{key}: the first answer was no first answer"));
        let again = Told { replayed: Some(false), ..replay.clone() };
        count.check(*told == again, || format!("{key}: told {told:?}, and again {replay:?}"));
    }
}

fn check_wish(sent: &Sent, state: &str, count: &mut Count) {
    let key = &sent.key;
    let told = match &sent.cancellation {
        Wish::None => {
            return count.check(state != "cancelled", || format!("{key}: cancelled, and nobody asked for it"));
        }
        Wish::Unanswered => return,
        Wish::Told(told) => told,
    };
    match told.status {
        200 => {
            let then = told.json();
            let then = then["state"].as_str().unwrap_or_default();
            count.check(then == state || then == "needs_attention", || format!("{key}: was {then}, and is {state}"));
        }
        // The wish is stored: a payment is taken back, a refund that went through stays.
        409 => {
            let stays = sent.path != PAYMENTS && state == "approved";
            let fits = state == "cancelled" || stays || state == "needs_attention";
            count.check(fits, || format!("{key}: wanted cancelled, and is {state}"));
        }
        503 => {}
        other => count.findings.push(format!("{key}: its cancellation was told {other}: {}", told.json())),
    }
}

/// For each operation, what went over the cardholder's account, seen from the bank's file and from the gateway's.
const MONEY: &str = "
    SELECT o.id, o.state, coalesce(o.outcome, ''), coalesce(o.kind, ''), coalesce(p.amount, r.amount, 0),
           coalesce((SELECT sum(g.amount) FROM gateway_calls c JOIN gateway.operations go ON go.scope = 'bank' AND go.key = c.key
                     JOIN gateway.charges g ON g.operation = go.id AND g.status = 'approved'
                     WHERE c.operation = o.id AND c.purpose = 'charge'), 0),
           coalesce((SELECT sum(g.amount) FROM gateway_calls c JOIN gateway.operations go ON go.scope = 'bank' AND go.key = c.key
                     JOIN gateway.refunds g ON g.operation = go.id AND g.status = 'approved'
                     WHERE c.operation = o.id AND c.purpose = 'refund'), 0),
           coalesce((SELECT sum(g.amount) FROM gateway_calls c JOIN gateway.operations go ON go.scope = 'bank' AND go.key = c.key
                     JOIN gateway.refunds g ON g.operation = go.id AND g.status = 'approved'
                     WHERE c.operation = o.id AND c.purpose = 'reversal'), 0)
    FROM operations o LEFT JOIN payments p ON p.operation = o.id LEFT JOIN refunds r ON r.operation = o.id";

/// What must find nothing.
const NOTHING: [(&str, &str); 5] = [
    (
        "charges that no operation of the bank asked for",
        "SELECT go.id FROM gateway.operations go WHERE NOT EXISTS (SELECT 1 FROM gateway_calls c WHERE c.key = go.key)",
    ),
    (
        "references charged twice",
        "SELECT 1 FROM gateway.charges WHERE status = 'approved' GROUP BY reference HAVING count(*) > 1",
    ),
    (
        "references given back twice",
        "SELECT 1 FROM gateway.refunds WHERE status = 'approved' GROUP BY reference HAVING count(*) > 1",
    ),
    ("entries out of balance", "SELECT 1 FROM postings GROUP BY operation, entry, currency HAVING sum(amount) <> 0"),
    (
        "payments refunded beyond their amount",
        "SELECT 1 FROM payments p JOIN refunds r ON r.payment = p.operation AND r.status = 'approved' GROUP BY p.operation HAVING sum(r.amount) > p.amount",
    ),
];

/// Operations that are owned by a later process than one that was claimed after them: at least these were taken over.
const RECOVERED: &str = "
    SELECT count(*) FROM (
        SELECT owner >> 32 AS epoch, min(owner >> 32) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS later
        FROM operations)
    WHERE later < epoch";

fn check_files(site: &Site, attention: Attention, count: &mut Count) -> Result {
    let files = both_files(site)?;
    for (what, sql) in NOTHING {
        let found = files.prepare(sql)?.query_map([], |_| Ok(()))?.count();
        count.same(what, found, 0);
    }
    for schema in ["main", "gateway"] {
        let found: String = files.query_row(&format!("PRAGMA {schema}.integrity_check"), [], |row| row.get(0))?;
        count.same("the file is whole", found.as_str(), "ok");
    }
    let mut money = files.prepare(MONEY)?;
    let mut rows = money.query([])?;
    while let Some(row) = rows.next()? {
        let (state, outcome, kind): (i64, String, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let (amount, moved): (i64, (i64, i64, i64)) = (row.get(4)?, (row.get(5)?, row.get(6)?, row.get(7)?));
        let fits = match (state, outcome.as_str(), kind.as_str()) {
            (1, "approved", "payment") => moved == (amount, 0, 0),
            (1, "approved", "refund") => moved == (0, amount, 0),
            (1, "declined", _) => moved == (0, 0, 0),
            (2, ..) => moved.0 == moved.2 && moved.1 == 0,
            (3, ..) => attention == Attention::Allowed,
            _ => false,
        };
        let id: i64 = row.get(0)?;
        count.check(fits, || format!("operation {id} is {state} {outcome} {kind} of {amount}, and moved {moved:?}"));
    }
    count.recovered = files.query_row(RECOVERED, [], |row| row.get(0))?;
    for name in ["bank.db-wal", "gateway.db-wal"] {
        let bytes = site.dir.path().join(name).metadata()?.len();
        count.check(bytes <= LOG_BYTES_MAX, || format!("{name} has grown to {bytes} bytes"));
    }
    Ok(())
}

async fn check_books(site: &Site, attention: Attention, count: &mut Count) -> Result {
    let ledger = async |address| Wire::to(address).need(Ask::new(Method::GET, "/lab/ledger")).await;
    let (bank, gateway) = (ledger(site.bank.address).await?.json(), ledger(site.gateway.address).await?.json());
    let number = |ledger: &Value, name: &str| ledger[name].as_i64().ok_or_else(|| format!("no {name} in {ledger}"));
    count.same("balanced", &bank["balanced"], &Value::Bool(true));
    count.charges = number(&gateway, "charges")?;
    count.gateway_requests = number(&gateway, "requests")?;
    let returned = number(&gateway, "refunds")?;
    let files = both_files(site)?;
    let one = |sql: &str| files.query_row(sql, [], |row| row.get::<_, i64>(0));
    let approved =
        |kind: &str| one(&format!("SELECT count(*) FROM operations WHERE outcome = 'approved' AND kind = '{kind}'"));
    let (payments, refunds) = (approved("payment")?, approved("refund")?);
    count.refunds = refunds;
    count.reversals = returned - refunds;
    if attention == Attention::None {
        count.same(
            "charges without those that were reversed, and approved payments",
            count.charges - count.reversals,
            payments,
        );
        for member in ["charges", "refunds", "charged", "refunded"] {
            count.same(member, &bank[member], &gateway[member]);
        }
        let net = "SELECT count(*) FROM (
            SELECT currency, sum(amount) AS net FROM (
                SELECT currency, amount FROM payments WHERE status = 'approved' AND operation IN (SELECT id FROM operations WHERE outcome = 'approved')
                UNION ALL SELECT p.currency, -r.amount FROM refunds r JOIN payments p ON p.operation = r.payment WHERE r.status = 'approved'
                UNION ALL SELECT currency, -amount FROM gateway.charges WHERE status = 'approved'
                UNION ALL SELECT currency, amount FROM gateway.refunds WHERE status = 'approved')
            GROUP BY currency HAVING net <> 0)";
        count.same("currencies in which bank and cardholders disagree", one(net)?, 0);
    }
    Ok(())
}
