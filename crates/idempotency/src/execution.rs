//! One flight from the claim to the stored result, in a task of its own.

use crate::{
    engine::{Engine, Hindrance, Unavailable},
    flight::{Flight, Name, Phase},
    record::{Owner, Record, State},
    rows::{self, NewClaim},
    work::{Begin, BeginFn, Claim, Job, Rows, Settlement, Undo, Verdict, Work},
};
use futures::FutureExt;
use rusqlite::Connection;
use std::{future::Future, panic::AssertUnwindSafe, sync::Arc, time::Duration};
use store::{Priority, StorageError, WriteError};
use thiserror::Error;

/// After so many panics in a row a person must look.
const PANICS_MAX: u32 = 5;

/// What the claim's write found.
enum Claimed {
    /// The row is ours to run. `first` where it was made just now.
    Ours { record: Record, first: bool },
    /// There is nothing to run. `first` where the claim brought its own result.
    Over { record: Record, first: bool },
    /// Whoever asked went away before the writer came to it, with the word that nothing was claimed.
    CalledOff,
    /// The claim's own part refused it, and it was rolled back.
    Refused(&'static str),
    /// There is no such row.
    Nothing,
    /// It can't be told whether the claim is in the file. Where it is, the sweep takes it in hand.
    Unknown,
}

/// Why the claim's write was rolled back.
#[derive(Debug, Error)]
enum NoClaim {
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    #[error("{0}")]
    Refused(&'static str),
}

/// What became of writing a result.
enum Saved {
    /// It is in the file.
    Stored(Arc<Record>),
    /// It is not: somebody wants the operation cancelled.
    CancelWanted,
    /// It is not: the row is another's by now. What this run found out is void.
    Lost,
}

/// Why a result is not in the file and will not be by this process.
enum NotStored {
    /// It breaks a rule of the store, today and tomorrow.
    Never,
    /// The store is closing: the next process finishes it.
    Closing,
}

/// What a person is told of a result that breaks a rule of the store.
const NEVER: &str = "the result can't be stored: it breaks a rule of the store";

/// Takes the flight off the list however the task ends.
struct Landing<W: Work> {
    engine: Engine<W>,
    name: Name,
    flight: Arc<Flight>,
    last: Option<Phase>,
}

impl<W: Work> Landing<W> {
    /// Runs, in a new task, what is ours after the claim.
    fn fly(
        self,
        claim: impl Future<Output = Result<Claimed, Unavailable>> + Send + 'static,
        context: Option<W::Context>,
    ) {
        let tasks = self.engine.inner.tasks.clone();
        tasks.spawn(async move {
            let (engine, flight) = (self.engine.clone(), self.flight.clone());
            let flown = async {
                match claim.await {
                    Err(error) => {
                        tracing::warn!(%error, "a key could not be claimed");
                        Phase::NotClaimed(error.why())
                    }
                    Ok(Claimed::CalledOff | Claimed::Nothing) => Phase::NotClaimed(Hindrance::Store),
                    Ok(Claimed::Unknown) => Phase::Unknown,
                    Ok(Claimed::Refused(why)) => Phase::Refused(why),
                    Ok(Claimed::Over { record, first }) => Phase::Ended { record: Arc::new(record), first },
                    Ok(Claimed::Ours { record, first }) => {
                        let record = Arc::new(record);
                        flight.enter(Phase::Running(record.clone()));
                        engine.execute(record, context.filter(|_| first), first).await
                    }
                }
            };
            tokio::select! {
                biased;
                () = engine.inner.kill.cancelled() => drop(self),
                phase = Box::pin(flown) => self.land(phase),
            }
        });
    }

    /// Ends the flight with what those who wait are told.
    fn land(mut self, phase: Phase) {
        self.last = Some(phase);
    }
}

impl<W: Work> Drop for Landing<W> {
    fn drop(&mut self) {
        // Off the list first: whoever comes now reads the store, which already holds what is about to be told.
        self.engine.inner.flights.remove(&self.name);
        let last = self.last.take().unwrap_or_else(|| {
            if self.flight.call_off() { Phase::NotClaimed(Hindrance::Ending) } else { Phase::Unknown }
        });
        self.flight.enter(last);
    }
}

impl<W: Work> Engine<W> {
    /// Claims a key in a new task, and runs its work where the claim was made.
    pub(crate) fn lead_claim(
        &self,
        name: Name,
        flight: Arc<Flight>,
        new: NewClaim,
        begin: BeginFn,
        context: W::Context,
    ) {
        let engine = self.clone();
        let of_task = flight.clone();
        let landing = Landing { engine: self.clone(), name, flight, last: None };
        landing.fly(async move { engine.claim(of_task, new, begin).await }, Some(context));
    }

    /// Takes over operations whose owner is dead, in one write that is tried again until it succeeds, and runs each in a
    /// new task. One that can't be read keeps none of the others from it, and is for a person.
    pub(crate) async fn adopt_all(&self, names: Vec<(Name, Arc<Flight>)>) {
        let landings: Vec<_> = names
            .into_iter()
            .map(|(name, flight)| {
                // The claim stands since long; nobody can call it off.
                flight.take();
                Landing { engine: self.clone(), name, flight, last: None }
            })
            .collect();
        match self.take_over_all(&landings).await {
            Ok(adopted) => fly_all(landings, adopted),
            // The next process takes them over.
            Err(NotStored::Closing) => {}
            Err(NotStored::Never) => {
                for landing in landings {
                    match self.take_over_all(std::slice::from_ref(&landing)).await {
                        Ok(adopted) => fly_all(vec![landing], adopted),
                        Err(NotStored::Closing) => return,
                        Err(NotStored::Never) => self.set_aside(&landing.name).await,
                    }
                }
            }
        }
    }

    async fn take_over_all(&self, landings: &[Landing<W>]) -> Result<Vec<Claimed>, NotStored> {
        if landings.is_empty() {
            return Ok(Vec::new());
        }
        let asked: Arc<[(Name, Owner)]> =
            landings.iter().map(|landing| (landing.name.clone(), self.new_owner())).collect();
        let mut pause = Pause::new();
        loop {
            let asked = asked.clone();
            let piece = move |tx: &Connection| -> rusqlite::Result<Vec<Claimed>> {
                asked.iter().map(|((scope, key), owner)| take_over(tx, scope, key, *owner)).collect()
            };
            match self.inner.store.write(Priority::Background, piece).await {
                Ok(adopted) => return Ok(adopted),
                Err(WriteError::Closed) => return Err(NotStored::Closing),
                Err(error) if never_passes(&error) => {
                    tracing::error!(%error, operations = landings.len(), "unfinished operations can't be taken over together");
                    return Err(NotStored::Never);
                }
                Err(error) => {
                    tracing::warn!(%error, operations = landings.len(), "unfinished operations could not be taken over yet");
                }
            }
            tokio::select! {
                () = self.inner.kill.cancelled() => return Err(NotStored::Closing),
                () = pause.rest() => {}
            }
        }
    }

    /// Marks an operation whose row can't be read as needing attention, without reading it.
    async fn set_aside(&self, (scope, key): &Name) {
        let (scope, key) = (scope.clone(), *key);
        let piece = move |tx: &Connection| rows::set_aside(tx, &scope, &key, "what is stored of it can't be read");
        // Where that fails, the next sweep comes to it again.
        match self.inner.store.write(Priority::Background, piece).await {
            Ok(_) => tracing::error!("an unfinished operation can't be read and needs attention"),
            Err(error) => tracing::error!(%error, "an unfinished operation can't be read, nor set aside"),
        }
    }

    async fn claim(&self, flight: Arc<Flight>, new: NewClaim, begin: BeginFn) -> Result<Claimed, Unavailable> {
        let (scope, key, owner) = (new.scope.clone(), new.key, new.owner);
        let of_piece = flight.clone();
        let piece = move |tx: &Connection| {
            if !of_piece.take() {
                return Ok(Claimed::CalledOff);
            }
            let Some(id) = rows::claim(tx, &new)? else {
                return Ok(take_over(tx, &new.scope, &new.key, owner)?);
            };
            let now = new.now;
            match begin(tx, Claim { id, created_at: now })? {
                Begin::Refused(why) => Err(NoClaim::Refused(why)),
                Begin::Run => Ok(Claimed::Ours { record: new.into_record(id), first: true }),
                Begin::Settled(settlement) => {
                    let record = new.into_record(id);
                    let (outcome, subject) = (settlement.outcome, settlement.subject.as_deref());
                    if !rows::settle(tx, (id, owner), outcome, subject, &settlement.response, now, false)? {
                        // Nobody may be told a result that is not in the file.
                        return Err(NoClaim::Sql(rusqlite::Error::StatementChangedRows(0)));
                    }
                    (settlement.rows)(tx)?;
                    Ok(Claimed::Over { record: settled(&record, &settlement, now), first: true })
                }
            }
        };
        match self.inner.store.write(Priority::Click, piece).await {
            Ok(claimed) => Ok(claimed),
            Err(WriteError::Refused(NoClaim::Refused(why))) => Ok(Claimed::Refused(why)),
            Err(WriteError::Uncertain(error)) => {
                tracing::warn!(%error, "a claim may or may not be stored: looking");
                Ok(self.look_for_claim(&scope, key, owner).await)
            }
            Err(WriteError::Untrusted(error)) if flight.was_taken() => {
                // Told as "not claimed" it could be charged all the same.
                tracing::error!(%error, "it can't be told whether a claim is stored");
                Ok(Claimed::Unknown)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Finds out whether a claim is in the file whose COMMIT failed.
    async fn look_for_claim(&self, scope: &str, key: [u8; 16], owner: Owner) -> Claimed {
        let mut pause = Pause::new();
        loop {
            match self.lookup(scope, key).await {
                Ok(Some(record)) if record.owner == owner && record.state == State::Processing => {
                    return Claimed::Ours { record, first: true };
                }
                Ok(Some(record)) if record.owner == owner => return Claimed::Over { record, first: true },
                Ok(_) => return Claimed::Nothing,
                Err(error) => tracing::warn!(%error, "the store can't be read"),
            }
            pause.rest().await;
        }
    }

    /// Runs the work until its result is stored, and says what to tell those who wait.
    async fn execute(&self, record: Arc<Record>, mut context: Option<W::Context>, first: bool) -> Phase {
        let mut panics = 0;
        let mut pause = Pause::new();
        loop {
            let job = job(&record, context.take());
            let verdict = match AssertUnwindSafe(self.inner.work.run(job)).catch_unwind().await {
                Ok(verdict) => verdict,
                Err(_) => {
                    panics += 1;
                    self.inner.counters.panicked();
                    tracing::error!(operation = record.id, panics, "the work panicked");
                    if panics < PANICS_MAX {
                        pause.rest().await;
                        continue;
                    }
                    Verdict::NeedsAttention("the work panicked again and again".into())
                }
            };
            let saved = match verdict {
                Verdict::NeedsAttention(reason) => self.save_attention(&record, reason).await,
                Verdict::Settled(settlement) => match self.save(&record, settlement.clone(), false).await {
                    Ok(Saved::CancelWanted) => self.undo(&record, settlement).await,
                    saved => saved,
                },
            };
            let saved = match saved {
                Err(NotStored::Never) => self.save_attention(&record, NEVER.into()).await,
                saved => saved,
            };
            return match saved {
                Ok(Saved::Stored(record)) => Phase::Ended { record, first },
                Ok(Saved::CancelWanted | Saved::Lost) => {
                    tracing::error!(operation = record.id, owner = %record.owner, "a result was void: the operation is another's");
                    Phase::Unknown
                }
                // The next process finishes it.
                Err(NotStored::Closing | NotStored::Never) => Phase::Unknown,
            };
        }
    }

    /// Takes back a result that came although the operation was wanted cancelled.
    async fn undo(&self, record: &Arc<Record>, settlement: Settlement) -> Result<Saved, NotStored> {
        let mut pause = Pause::new();
        for _ in 0..PANICS_MAX {
            let undoing = self.inner.work.undo(job(record, None), settlement.clone());
            match AssertUnwindSafe(undoing).catch_unwind().await {
                Ok(Undo::Cancelled(rows)) => return self.save_cancelled(record, rows).await,
                Ok(Undo::Kept) => return self.save(record, settlement, true).await,
                Ok(Undo::NeedsAttention(reason)) => return self.save_attention(record, reason).await,
                Err(_) => tracing::error!(operation = record.id, "taking back panicked"),
            }
            pause.rest().await;
        }
        self.save_attention(record, "taking back panicked again and again".into()).await
    }

    async fn save(&self, record: &Arc<Record>, settlement: Settlement, even_so: bool) -> Result<Saved, NotStored> {
        let now = self.now();
        let record = record.clone();
        self.persist(move |tx| {
            let (outcome, subject) = (settlement.outcome, settlement.subject.as_deref());
            if rows::settle(tx, (record.id, record.owner), outcome, subject, &settlement.response, now, even_so)? {
                (settlement.rows)(tx)?;
                return Ok(Saved::Stored(Arc::new(settled(&record, &settlement, now))));
            }
            Ok(match rows::by_id(tx, record.id)? {
                Some(row) if row.owner == record.owner && row.state == State::Processing => Saved::CancelWanted,
                row => already(row, &record),
            })
        })
        .await
    }

    async fn save_cancelled(&self, record: &Arc<Record>, own: Rows) -> Result<Saved, NotStored> {
        let now = self.now();
        let record = record.clone();
        self.persist(move |tx| {
            if rows::cancelled(tx, record.id, record.owner, now)? {
                own(tx)?;
                let changed = Record { state: State::Cancelled, completed_at: Some(now), ..Record::clone(&record) };
                return Ok(Saved::Stored(Arc::new(changed)));
            }
            Ok(already(rows::by_id(tx, record.id)?, &record))
        })
        .await
    }

    async fn save_attention(&self, record: &Arc<Record>, reason: String) -> Result<Saved, NotStored> {
        tracing::error!(operation = record.id, %reason, "an operation needs attention");
        let record = record.clone();
        self.persist(move |tx| {
            if rows::attention(tx, record.id, record.owner, &reason)? {
                let state = State::NeedsAttention { reason: reason.clone() };
                return Ok(Saved::Stored(Arc::new(Record { state, ..Record::clone(&record) })));
            }
            Ok(already(rows::by_id(tx, record.id)?, &record))
        })
        .await
    }

    /// Writes until it is in the file. Nobody is told a result before; those who wait are told to come again.
    async fn persist<T: Send + 'static>(
        &self,
        piece: impl Fn(&Connection) -> rusqlite::Result<T> + Send + Sync + 'static,
    ) -> Result<T, NotStored> {
        let piece = Arc::new(piece);
        let mut pause = Pause::new();
        loop {
            let piece = piece.clone();
            match self.inner.store.write(Priority::Click, move |tx| piece(tx)).await {
                Ok(done) => return Ok(done),
                Err(WriteError::Closed) => return Err(NotStored::Closing),
                Err(error) if never_passes(&error) => {
                    tracing::error!(%error, "a result can't be stored");
                    return Err(NotStored::Never);
                }
                Err(error) => tracing::warn!(%error, "a result could not be stored yet"),
            }
            pause.rest().await;
        }
    }
}

/// Whether the same write fails tomorrow as it fails today.
fn never_passes(error: &WriteError<rusqlite::Error>) -> bool {
    match error {
        WriteError::Refused(error) => !may_pass(error),
        WriteError::Storage(StorageError::Panicked(_)) => true,
        _ => false,
    }
}

/// Runs, each in a new task, what was taken over.
fn fly_all<W: Work>(landings: Vec<Landing<W>>, adopted: Vec<Claimed>) {
    for (landing, claimed) in landings.into_iter().zip(adopted) {
        landing.fly(async { Ok(claimed) }, None);
    }
}

/// Whether the same statements may succeed when they are tried again: what stood in the way was the file's state, such as
/// locked or full, and not what is written.
#[must_use]
pub fn may_pass(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{
        CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, FileLockingProtocolFailed, NoLargeFileSupport,
        OperationAborted, OperationInterrupted, OutOfMemory, PermissionDenied, ReadOnly, SystemIoFailure,
    };
    matches!(
        error.sqlite_error_code(),
        Some(
            CannotOpen
                | DatabaseBusy
                | DatabaseLocked
                | DiskFull
                | FileLockingProtocolFailed
                | NoLargeFileSupport
                | OperationAborted
                | OperationInterrupted
                | OutOfMemory
                | PermissionDenied
                | ReadOnly
                | SystemIoFailure
        )
    )
}

/// Reads a known key, and makes it ours where it is processing: its flight would be known if its owner were alive.
fn take_over(tx: &Connection, scope: &str, key: &[u8; 16], owner: Owner) -> rusqlite::Result<Claimed> {
    let Some(mut record) = rows::by_key(tx, scope, key)? else { return Ok(Claimed::Nothing) };
    if record.state == State::Processing && rows::adopt(tx, record.id, record.owner, owner)? {
        record.owner = owner;
        return Ok(Claimed::Ours { record, first: false });
    }
    Ok(Claimed::Over { record, first: false })
}

/// What is known where a write found the row not as expected: its own earlier try, whose COMMIT failed but took,
/// or another's.
fn already(row: Option<Record>, ours: &Record) -> Saved {
    match row {
        Some(row) if row.owner == ours.owner && row.state != State::Processing => Saved::Stored(Arc::new(row)),
        _ => Saved::Lost,
    }
}

/// The record as it stands after [`rows::settle`].
fn settled(record: &Record, settlement: &Settlement, now: jiff::Timestamp) -> Record {
    Record {
        state: State::Settled { outcome: settlement.outcome.to_owned() },
        subject: settlement.subject.clone(),
        completed_at: Some(now),
        response: Some(settlement.response.clone()),
        payload: None,
        ..record.clone()
    }
}

fn job<C>(record: &Record, context: Option<C>) -> Job<C> {
    Job {
        id: record.id,
        scope: record.scope.clone(),
        key: record.key,
        kind: record.kind.clone().unwrap_or_default(),
        payload: record.payload.clone().unwrap_or_default(),
        created_at: record.created_at,
        context,
    }
}

/// A growing pause between tries: 50 ms, doubled up to 2 s.
struct Pause(Duration);

impl Pause {
    fn new() -> Self {
        Self(Duration::from_millis(50))
    }

    async fn rest(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(Duration::from_secs(2));
    }
}
