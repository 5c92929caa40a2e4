//! Finishing what an earlier process left behind, with nobody asking; and the purge of expired responses.

use crate::{
    engine::{Engine, Unavailable},
    flight::{Flight, Joined, Name, Phase},
    record::{Owner, Record},
    rows,
    work::Work,
};
use std::{collections::VecDeque, sync::Arc, time::Duration};
use store::Priority;
use tokio::sync::watch;

/// Rows that are looked at in one read, and taken over in one write.
const PAGE: u32 = 256;
/// Responses that are purged in one commit.
const PURGE_BATCH: u32 = 250;
/// How often the store is searched for operations that nobody runs, such as after a requeue that met a full engine.
const SWEEP: Duration = Duration::from_secs(15);
/// How often expired responses are purged.
const PURGE: Duration = Duration::from_secs(60);

/// How far the recovery after a start is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Operations that an earlier process left unfinished.
    pub found: u64,
    /// Operations that this process has taken in hand so far with nobody asking.
    pub taken: u64,
    /// Whether all of them have been taken in hand.
    pub taken_over: bool,
}

impl<W: Work> Engine<W> {
    /// Starts the tasks that work by themselves: the recovery, and the purge of expired responses.
    pub fn start(&self) {
        let engine = self.clone();
        self.spawn(async move { engine.recover().await });
        let engine = self.clone();
        self.spawn(async move { engine.purge_now_and_then().await });
    }

    /// How far the recovery is.
    #[must_use]
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.inner.progress.subscribe()
    }

    async fn recover(&self) {
        match self.inner.store.read(rows::count_processing).await {
            Ok(found) => {
                self.inner.progress.send_modify(|progress| progress.found = found);
                if found > 0 {
                    tracing::info!(found, "operations were left unfinished and go on now");
                }
            }
            Err(error) => tracing::warn!(%error, "unfinished operations could not be counted"),
        }
        while !self.inner.stop.is_cancelled() {
            match self.sweep().await {
                Ok(true) => self.took_over_all(),
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "the store could not be searched for unfinished operations"),
            }
            tokio::select! {
                () = self.inner.stop.cancelled() => {}
                () = tokio::time::sleep(SWEEP) => {}
            }
        }
    }

    fn took_over_all(&self) {
        self.inner.progress.send_if_modified(|progress| {
            let first = !progress.taken_over;
            if first && progress.found > 0 {
                tracing::info!(taken = progress.taken, "all that was left unfinished is in hand");
            }
            progress.taken_over = true;
            first
        });
    }

    /// Takes over every operation that is processing and that nobody runs, page by page: the next one is looked at when
    /// this one's rows are ours. False where the engine ended before the last.
    async fn sweep(&self) -> Result<bool, Unavailable> {
        let mut after = 0;
        loop {
            let page = self.inner.store.read(move |connection| rows::processing(connection, after, PAGE)).await?;
            let Some((last, _)) = page.last() else { return Ok(true) };
            after = *last;
            let mut names: VecDeque<Name> = page.into_iter().map(|(_, name)| name).collect();
            while !names.is_empty() {
                let mut count = self.inner.flights.count();
                let taking = async {
                    let ours = self.join_all(&mut names);
                    let taken = ours.len() as u64;
                    self.adopt_all(ours).await;
                    self.inner.progress.send_modify(|progress| progress.taken += taken);
                    if !names.is_empty() {
                        // The engine is full. The sender lives as long as it.
                        let _ = count.changed().await;
                    }
                };
                tokio::select! {
                    biased;
                    () = self.inner.stop.cancelled() => return Ok(false),
                    () = taking => {}
                }
            }
        }
    }

    /// Takes names off the list until the engine is full, and gives those that nobody has in hand.
    fn join_all(&self, names: &mut VecDeque<Name>) -> Vec<(Name, Arc<Flight>)> {
        let mut ours = Vec::new();
        while let Some(name) = names.front() {
            match self.inner.flights.join_left(name) {
                Joined::Full(_) => break,
                Joined::Follows(_) => {}
                Joined::Leads(flight) => ours.push((name.clone(), flight)),
            }
            names.pop_front();
        }
        ours
    }

    /// Runs an operation unless somebody has it in hand already. False where the engine is full.
    pub(crate) fn take_in_hand(&self, name: Name) -> bool {
        match self.inner.flights.join_left(&name) {
            Joined::Full(_) => return false,
            Joined::Follows(_) => {}
            Joined::Leads(flight) => {
                let engine = self.clone();
                self.spawn(async move { engine.adopt_all(vec![(name, flight)]).await });
            }
        }
        true
    }

    /// Operations that need attention, after number `after`, oldest first, at most `limit`.
    ///
    /// # Errors
    /// [`Unavailable`] where the store can't be read.
    pub async fn needing_attention(&self, after: i64, limit: u32) -> Result<Vec<Record>, Unavailable> {
        Ok(self.inner.store.read(move |connection| rows::needing_attention(connection, after, limit)).await?)
    }

    /// Puts an operation that needed attention back to work, after a person has looked, and has it in hand where the engine is not
    /// full. False where it didn't need any.
    ///
    /// # Errors
    /// [`Unavailable`] where the store can't be written.
    pub async fn requeue(&self, scope: &str, key: [u8; 16]) -> Result<bool, Unavailable> {
        let name: Name = (scope.into(), key);
        let of_write = name.clone();
        let changed =
            self.inner.store.write(Priority::Click, move |tx| rows::requeue(tx, &of_write.0, &of_write.1)).await?;
        let Some(stopped) = changed else { return Ok(false) };
        self.run_again(name, stopped).await;
        Ok(true)
    }

    /// Takes in hand what was just put back to work. The run that had stopped it may still be on its way out, with the result of
    /// a write that is done: until it is off the list it would be taken for one that works on.
    async fn run_again(&self, name: Name, stopped: Owner) {
        while let Some(flight) = self.inner.flights.get(&name) {
            let mut phases = flight.subscribe();
            let works_on = |phase: &Phase| matches!(phase, Phase::Running(record) if record.owner != stopped);
            let waits = |phase: &Phase| matches!(phase, Phase::Claiming | Phase::Running(_)) && !works_on(phase);
            // The sender lives as long as the flight.
            let Ok(phase) = phases.wait_for(|phase| !waits(phase)).await else { return };
            if works_on(&phase) {
                return;
            }
        }
        self.take_in_hand(name);
    }

    async fn purge_now_and_then(&self) {
        while !self.inner.stop.is_cancelled() {
            tokio::select! {
                () = self.inner.stop.cancelled() => return,
                () = tokio::time::sleep(PURGE) => {}
            }
            if let Err(error) = self.purge().await {
                tracing::warn!(%error, "expired responses could not be purged");
            }
        }
    }

    /// Drops the stored responses that have expired, in small batches, and says how many. Keys stay claimed,
    /// unfinished operations are left alone.
    ///
    /// # Errors
    /// [`Unavailable`] where the store can't be written.
    pub async fn purge(&self) -> Result<usize, Unavailable> {
        let before = self.expires_before();
        let mut purged = 0;
        loop {
            let batch =
                self.inner.store.write(Priority::Background, move |tx| rows::purge(tx, before, PURGE_BATCH)).await?;
            purged += batch;
            self.inner.counters.purged(batch);
            if batch < PURGE_BATCH as usize {
                return Ok(purged);
            }
        }
    }
}
