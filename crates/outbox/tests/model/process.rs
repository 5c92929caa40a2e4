//! The till's process: the real outbox over a real file, in a runtime that can be dropped at any moment.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use jiff::SignedDuration;
use outbox::decide::Random;
use outbox::{BankContract, Ended, LateAnswer, Operation, Outbox, Settings, State};
use protocol::Key;
use rusqlite::Connection;
use store::{Migration, Schema, Store};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::clock::Hands;
use crate::rare::{Rare, reached};
use crate::wire::Wire;

/// How long anything may take that only threads wait for.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the hooks have in hand.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    /// The process dies at that commit of its own, counted from now; 0 is never.
    pub(crate) die_in: Arc<AtomicU32>,
    pub(crate) alarms: Arc<Mutex<Vec<(Key, State)>>>,
}

impl Hooks {
    fn committing(&self, hands: &Hands, operation: &Operation) {
        let left = self.die_in.load(Ordering::Acquire);
        if left == 0 {
            return;
        }
        self.die_in.store(left - 1, Ordering::Release);
        if left == 1 {
            if operation.due_at.is_some() || operation.state.is_final() {
                reached(Rare::DiedSaved);
            }
            hands.die();
        }
    }

    pub(crate) fn alarms(&self) -> Vec<(Key, State)> {
        self.alarms.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(crate) struct Process {
    // Dropped first: with it every task, whatever it was doing.
    runtime: Runtime,
    pub(crate) outbox: Outbox,
    pub(crate) store: Store,
    task: JoinHandle<Ended>,
    shutdown: CancellationToken,
}

/// What the caller keeps beside each operation, by its own hand and by the hook.
const MIRROR: &str = "CREATE TABLE mirror (key BLOB PRIMARY KEY, state TEXT NOT NULL) STRICT";

pub(crate) fn mirror(tx: &Connection, operation: &Operation) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO mirror (key, state) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET state = excluded.state",
    )?
    .execute((operation.key.as_bytes(), operation.state.as_str()))
    .map(|_| ())
}

/// How many operations are another thing to the caller than to the outbox.
pub(crate) fn told_otherwise(conn: &Connection) -> rusqlite::Result<i64> {
    conn.prepare_cached(
        "SELECT count(*) FROM operations AS o LEFT JOIN mirror AS m ON m.key = o.key WHERE m.state IS NOT o.state",
    )?
    .query_row([], |row| row.get(0))
}

pub(crate) fn open(path: &Path) -> Result<Store> {
    let mut migrations = outbox::migrations([1, 2]);
    migrations.push(Migration { version: 3, name: "mirror", sql: MIRROR });
    Ok(Store::open(path, &Schema { application_id: 7, migrations })?)
}

impl Process {
    pub(crate) fn start(store: Store, hands: &Hands, wire: &Wire, address: usize, hooks: &Hooks) -> Result<Process> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let (committing, at_commit) = (hooks.clone(), hands.clone());
        let alarms = hooks.alarms.clone();
        let chance = hands.clone();
        // The deadline is real time, and no part of the play.
        let settings = Settings { deadline: SignedDuration::from_hours(1), ..Settings::default() };
        let outbox = Outbox::new(store.clone(), BankContract)
            .with_clock(Arc::new(hands.clone()))
            // The same at the same moment, in whatever order things come to be decided then.
            .with_random(Arc::new(move || Random::new(chance.monotonic_ms() ^ chance.true_ms().cast_unsigned()).next()))
            .with_settings(settings)
            .on_change(Arc::new(move |tx: &Connection, operation: &Operation| {
                committing.committing(&at_commit, operation);
                mirror(tx, operation)
            }))
            .on_late_answer(Arc::new(move |_: &Connection, operation: &Operation, late: &LateAnswer| {
                alarms.lock().unwrap_or_else(PoisonError::into_inner).push((operation.key, late.state));
                Ok(())
            }));
        let shutdown = CancellationToken::new();
        let task = {
            let _inside = runtime.enter();
            outbox.start(wire.at(address, &store), shutdown.clone())?
        };
        Ok(Process { runtime, outbox, store, task, shutdown })
    }

    /// Runs until nothing moves: the loop sleeps, and all else that it began waits for the bank. True where the process died.
    pub(crate) fn run(&self, hands: &Hands, wire: &Wire) -> Result<bool> {
        let begin = Instant::now();
        let mut looks = None;
        loop {
            if hands.is_dead() {
                return Ok(true);
            }
            let is_quiet = self.runtime.metrics().num_alive_tasks() == 1 + wire.waiting() && hands.is_somebody_asleep();
            if is_quiet && looks == Some(hands.looks()) {
                return Ok(false);
            }
            looks = is_quiet.then(|| hands.looks());
            self.runtime.block_on(async {
                if is_quiet {
                    // Whatever has been reported is taken now, or nothing was.
                    for _ in 0..8 {
                        tokio::task::yield_now().await;
                    }
                } else {
                    let _ = tokio::time::timeout(Duration::from_millis(1), hands.looked_at.notified()).await;
                }
            });
            ensure!(begin.elapsed() < PATIENCE, "it does not come to rest");
        }
    }

    /// The program ends in good order.
    pub(crate) fn stop(self) -> Result<()> {
        self.shutdown.cancel();
        let ended = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, self.task).await });
        ended.context("it does not stop")??;
        Ok(())
    }
}
