//! Making sure that a key never has an effect.

use crate::{
    engine::{Engine, Unavailable},
    flight::{Name, Phase},
    record::{Record, State},
    rows,
    work::Work,
};
use store::Priority;
use tokio::time::{Instant, timeout_at};

/// What became of a wish to cancel.
#[derive(Debug)]
pub enum Cancel {
    /// The operation as it is: cancelled, or final before the wish came, or needing attention.
    Is(Box<Record>),
    /// The wish is stored. The operation settles first, and is then taken back.
    Settling,
}

impl<W: Work> Engine<W> {
    /// Makes sure that a key never has an effect. An unknown key gets a tombstone under which a late original
    /// is refused; a running operation is taken back once it has settled, after a crash too; a final one is
    /// left as it is.
    ///
    /// # Errors
    /// [`Unavailable`] where the store can't be written; then nothing is promised.
    pub async fn cancel(&self, scope: &str, key: [u8; 16]) -> Result<Cancel, Unavailable> {
        let told = self.make_sure(scope, key).await;
        self.inner.counters.cancelled(&told);
        told
    }

    async fn make_sure(&self, scope: &str, key: [u8; 16]) -> Result<Cancel, Unavailable> {
        let deadline = Instant::now() + self.inner.config.wait;
        let name: Name = (scope.into(), key);
        let record = self.wish(name.clone()).await?;
        if record.state != State::Processing {
            return Ok(Cancel::Is(Box::new(record)));
        }
        self.take_in_hand(name.clone());
        if let Some(flight) = self.inner.flights.get(&name)
            && let Some(_seat) = self.inner.flights.seat(&flight)
        {
            let mut phases = flight.subscribe();
            let over = phases.wait_for(|phase| !matches!(phase, Phase::Claiming | Phase::Running(_)));
            // Whichever way the waiting ends, the store says how far it is.
            let _ = timeout_at(deadline, over).await;
        }
        Ok(match self.lookup(scope, key).await? {
            Some(record) if record.state != State::Processing => Cancel::Is(Box::new(record)),
            _ => Cancel::Settling,
        })
    }

    /// Stores the wish in one write and gives the row after it.
    async fn wish(&self, (scope, key): Name) -> Result<Record, Unavailable> {
        let (owner, now) = (self.new_owner(), self.now());
        let piece = move |tx: &rusqlite::Connection| {
            if rows::claim_cancelled(tx, &scope, &key, owner, now)?.is_none() {
                rows::want_cancelled(tx, &scope, &key)?;
            }
            rows::by_key(tx, &scope, &key)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
        };
        Ok(self.inner.store.write(Priority::Click, piece).await?)
    }
}
