//! Who works at the till: logging in, PINs, people and their rights.

use crate::{
    Event, Measure, NewPerson, Person, PersonChange, PinEntry, Right, RoleRight, Session, Till, TillError,
    audit::Signature, people, people::Try, pins, rights, rights::Approval,
};
use rusqlite::Connection;
use std::sync::Arc;

impl Till {
    /// Who stands at the till, and whether somebody must log in first.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn session(&self) -> Result<Session, TillError> {
        let opening = self.inner.opening;
        self.read(move |conn| people::session(conn, opening)).await
    }

    /// Everybody who works here or did, by name.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn people(&self) -> Result<Vec<Person>, TillError> {
        self.read(people::list).await
    }

    /// What each role may do, and how far.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn rights(&self) -> Result<Vec<RoleRight>, TillError> {
        self.read(rights::list).await
    }

    /// Whether who is logged in may do this much without another's PIN: for a face to ask for one in time. The command asks again.
    ///
    /// # Errors
    /// [`TillError::NotAllowed`], [`TillError::Locked`], [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn check_right(&self, right: Right, measure: Measure) -> Result<(), TillError> {
        let signature = self.signature();
        let approval = signature.approval().cloned();
        let allowed = self.read(move |conn| rights::allow(conn, &signature, right, measure).map(drop)).await;
        // It was only asked.
        approval.iter().for_each(Approval::give_back);
        allowed
    }

    /// Logs a person in, in the place of whoever was.
    ///
    /// # Errors
    /// [`TillError::WrongPin`], [`TillError::PinWait`], [`TillError::NotFound`], [`TillError::NotAllowed`] where the person does not
    /// work here any more, [`TillError::Storage`] where a try can't be counted: then none is made.
    pub async fn log_in(&self, entry: PinEntry) -> Result<Session, TillError> {
        let (person_id, _) = self.right_pin(entry).await?;
        self.change_unlocked(move |tx, signature| people::log_in(tx, signature, person_id))
            .await
            .inspect(|_| self.tell(Event::SessionChanged))
    }

    /// Locks the till until somebody logs in. The sale in front, and all that is with the bank, go on as they are.
    ///
    /// # Errors
    /// [`TillError::Storage`] where it can't be saved.
    pub async fn lock(&self) -> Result<Session, TillError> {
        self.change_unlocked(people::lock).await.inspect(|_| self.tell(Event::SessionChanged))
    }

    /// The same till with a person's approval: what the one who is logged in may not do alone is done in both names. It is for one
    /// command, the first that needs it and is saved, and only while that person is logged in: each other one takes another PIN.
    ///
    /// # Errors
    /// As [`Till::log_in`].
    pub async fn approved_by(&self, entry: PinEntry) -> Result<Self, TillError> {
        let (person_id, acting) = self.right_pin(entry).await?;
        Ok(Self { approval: Some(Approval::new(person_id, acting)), ..self.clone() })
    }

    /// Adds a person. The first one must be a manager, needs nobody's right, and is logged in by it; every later start is locked.
    ///
    /// # Errors
    /// [`TillError::InvalidPerson`], [`TillError::InvalidPin`], [`TillError::NotAllowed`], [`TillError::Locked`].
    pub async fn add_person(&self, new: NewPerson) -> Result<Person, TillError> {
        let pin = self.hashed(new.pin.clone()).await?;
        self.change(move |tx, signature| people::add(tx, signature, &new, &pin))
            .await
            .inspect(|_| self.tell(Event::SessionChanged))
    }

    /// Changes the name or role of a person, or whether the person works here.
    ///
    /// # Errors
    /// [`TillError::InvalidPerson`] also where no active manager would be left; [`TillError::NotFound`], [`TillError::NotAllowed`],
    /// [`TillError::Locked`].
    pub async fn change_person(&self, new: PersonChange) -> Result<Person, TillError> {
        self.change(move |tx, signature| people::change(tx, signature, &new))
            .await
            .inspect(|_| self.tell(Event::SessionChanged))
    }

    /// Gives a person another PIN and forgets the wrong tries. One's own: with [`Till::approved_by`] of the old one.
    ///
    /// # Errors
    /// [`TillError::InvalidPin`], [`TillError::NotFound`], [`TillError::NotAllowed`], [`TillError::Locked`].
    pub async fn set_pin(&self, person_id: i64, pin: &str) -> Result<(), TillError> {
        let hashed = self.hashed(pin.to_owned()).await?;
        self.change(move |tx, signature| people::set_pin(tx, signature, person_id, &hashed)).await
    }

    /// Sets how far a right of a role goes.
    ///
    /// # Errors
    /// [`TillError::InvalidSetting`] for a limit that the right can't have, [`TillError::NotAllowed`], [`TillError::Locked`].
    pub async fn set_right(&self, new: RoleRight) -> Result<(), TillError> {
        self.change(move |tx, signature| rights::set(tx, signature, new))
            .await
            .inspect(|_| self.tell(Event::SessionChanged))
    }

    /// Whose PIN was entered, and who was logged in then. The try is counted, durably, before the PIN is looked at.
    async fn right_pin(&self, PinEntry { person_id, pin }: PinEntry) -> Result<(i64, Option<i64>), TillError> {
        let begun = self.change_unlocked(move |tx, signature| people::begin_try(tx, person_id, signature.at)).await?;
        let (kept, tries) = match begun {
            Try::Wait { wait_s } => return Err(TillError::PinWait { wait_s }),
            Try::Counted { kept, tries } => (kept, tries),
        };
        if !self.hashing(move || pins::is_right(&pin, &kept)).await? {
            self.change_unlocked(move |tx, signature| people::was_wrong(tx, signature, person_id, tries)).await?;
            return Err(TillError::WrongPin {
                tries_left: pins::TRIES_FREE.saturating_sub(tries),
                wait_s: pins::wait_s(tries),
            });
        }
        let opening = self.inner.opening;
        let right = move |tx: &Connection, _: &Signature| {
            people::was_right(tx, person_id)?;
            people::logged_in(tx, opening)
        };
        let acting = self.change_unlocked(right).await?;
        Ok((person_id, acting.map(|person| person.id)))
    }

    async fn hashed(&self, pin: String) -> Result<String, TillError> {
        pins::check(&pin)?;
        self.hashing(move || pins::hash(&pin)).await
    }

    /// Hashes off the threads that write and that click, and one at a time: each takes memory.
    async fn hashing<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, TillError> + Send + 'static,
    ) -> Result<T, TillError> {
        let turns = Arc::clone(&self.inner.hashing);
        let fault = |error: &dyn std::fmt::Display| TillError::Internal(format!("a PIN could not be hashed: {error}"));
        let turn = turns.acquire_owned().await.map_err(|error| fault(&error))?;
        let hashed = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        hashed.await.map_err(|error| fault(&error))?
    }
}
