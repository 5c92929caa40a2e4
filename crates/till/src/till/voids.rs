//! Sales that are given up after a part was paid.

use crate::{Event, NewVoid, PricedVoid, SaleVoid, Till, TillError, audit::Signature, voids};
use rusqlite::Connection;
use uuid::Uuid;

impl Till {
    /// What giving a partly paid sale up would give back, and an id for it: asked for when its dialog opens. Saves nothing.
    ///
    /// # Errors
    /// As [`Till::void_sale`].
    pub async fn begin_void(&self, sale_id: Uuid) -> Result<PricedVoid, TillError> {
        self.read(move |conn| voids::begin(conn, sale_id)).await
    }

    /// Gives a sale up that is paid in part: what each card paid goes back to it by an operation of its own, the cash out of the drawer,
    /// and the sale is [`SaleState::Voided`](crate::SaleState::Voided), out of the way and never paid or changed again. The refund of a
    /// payment that was taken offline waits for that. The same id again gives the same void back.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::SaleChanged`] where it is not under payment or nothing of it is paid,
    /// [`TillError::CardMayBeCharged`] while a payment is open that was not taken offline: wait for the bank, or
    /// [`Till::cancel`] it; [`TillError::NeedsLook`], [`TillError::AlreadyFinal`] where it was voided before,
    /// [`TillError::NotAllowed`] where who acts may not give so much back, [`TillError::NoShift`] and [`TillError::InvalidAmount`] where
    /// the drawer can't give the cash, [`TillError::InvalidText`] for the reason, [`TillError::IntentReused`]; else as [`Till::pay_card`].
    pub async fn void_sale(&self, new: NewVoid) -> Result<SaleVoid, TillError> {
        let id = new.id;
        let change = move |tx: &Connection, signature: &Signature| voids::make(tx, signature, &new);
        let made = self.change_or_find(change, move |conn| voids::by_id(conn, id)).await?;
        for operation in made.legs.iter().filter_map(|leg| leg.operation.as_ref()) {
            self.begun(operation);
        }
        self.tell(Event::SaleChanged { sale_id: made.sale_id });
        Ok(made)
    }

    /// The voids of which a card did not get its part, as the bank refused it or it was cancelled, and nobody has done anything about it:
    /// [`Till::refund_again`] or [`Till::refund_in_cash`]. Oldest first, at most 200.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn owed_voids(&self) -> Result<Vec<SaleVoid>, TillError> {
        self.read(voids::owed).await
    }

    /// How a sale was given up after a part was paid; none where it was not.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn void_of(&self, sale_id: Uuid) -> Result<Option<SaleVoid>, TillError> {
        self.read(move |conn| voids::of_sale(conn, sale_id)).await
    }
}
