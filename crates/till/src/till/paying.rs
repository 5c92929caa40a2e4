//! Pay, refund, cancel: each one commit, and then the queue is woken.

use crate::{
    CardPayment, CashPayment, CashTaken, Charge, Event, Operation, Refund, TenderBegun, Till, TillError,
    audit::Signature, cancelling, charge, operations, pay, refunds,
};
use protocol::Key;
use rusqlite::Connection;
use uuid::Uuid;

impl Till {
    /// What is due, and an id for the tender that is to pay it: asked for when its dialog opens. Saves nothing.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::InvalidAmount`] where the sale is empty, [`TillError::SaleFrozen`] where its
    /// payment is under way, [`TillError::SaleChanged`] where it is paid.
    pub async fn begin_tender(&self, sale_id: Uuid) -> Result<TenderBegun, TillError> {
        self.read(move |conn| pay::begin(conn, sale_id)).await
    }

    /// Pays by card. One commit freezes the sale and saves tender, key, operation and audit entry; only then is anything
    /// sent. The same tender id again gives its operation back, in whatever state it is by then.
    ///
    /// # Errors
    /// [`TillError::InvalidAmount`], [`TillError::InvalidCard`], [`TillError::OverDue`], [`TillError::SaleFrozen`],
    /// [`TillError::SaleChanged`], [`TillError::IntentReused`] where the tender id came with another amount, card or sale,
    /// [`TillError::Storage`] where nothing was saved and nothing will be sent, [`TillError::Unreadable`] where that can't
    /// be told.
    pub async fn pay_card(&self, payment: CardPayment) -> Result<Operation, TillError> {
        let tender_id = payment.tender_id;
        let change = move |tx: &Connection, signature: &Signature| pay::card(tx, signature, &payment);
        let operation = self.change_or_find(change, move |conn| operations::by_intent(conn, tender_id)).await?;
        self.begun(&operation);
        Ok(operation)
    }

    /// Pays in cash: all that is due, with change, or a part of it, which is not rounded and leaves the rest due. The same tender id
    /// again gives the same answer back.
    ///
    /// # Errors
    /// [`TillError::InvalidAmount`] where it is nothing, or not in coins that there are; else as [`Till::pay_card`].
    pub async fn pay_cash(&self, payment: CashPayment) -> Result<CashTaken, TillError> {
        let tender_id = payment.tender_id;
        let change = move |tx: &Connection, signature: &Signature| pay::cash(tx, signature, &payment);
        let taken = self.change_or_find(change, move |conn| pay::cash_taken(conn, tender_id)).await?;
        self.tell(Event::SaleChanged { sale_id: taken.sale.id });
        Ok(taken)
    }

    /// Charges an amount with no cart before it, as a sale of its own that no cashier ever has in front. The same intent again
    /// gives the same operation back.
    ///
    /// # Errors
    /// [`TillError::InvalidReference`] as [`Charge::check`] says, [`TillError::IntentReused`] where the intent came with another
    /// amount, currency or card; else as [`Till::pay_card`].
    pub async fn charge(&self, charge: Charge) -> Result<Operation, TillError> {
        let intent_id = charge.intent_id;
        let change = move |tx: &Connection, signature: &Signature| charge::charge(tx, signature, &charge);
        let operation = self.change_or_find(change, move |conn| operations::by_intent(conn, intent_id)).await?;
        self.begun(&operation);
        Ok(operation)
    }

    /// Gives money of a card payment back, which may still be open: then the refund waits for its end. The same intent again
    /// gives the same operation back.
    ///
    /// # Errors
    /// [`TillError::NotFound`] where the key is no payment's, [`TillError::OverRefund`], [`TillError::NotRefundable`] where the
    /// payment was declined or cancelled, [`TillError::IntentReused`]; else as [`Till::pay_card`].
    pub async fn refund(&self, refund: Refund) -> Result<Operation, TillError> {
        let intent_id = refund.intent_id;
        let change = move |tx: &Connection, signature: &Signature| refunds::refund(tx, signature, &refund);
        let operation = self.change_or_find(change, move |conn| operations::by_intent(conn, intent_id)).await?;
        self.begun(&operation);
        Ok(operation)
    }

    /// Cancels an operation: at once where it was never sent, else the wish is saved and brought to the bank. Gives the
    /// operation as it is then. The same again changes nothing.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::AlreadyFinal`] where it ended otherwise, [`TillError::AcceptedOffline`],
    /// [`TillError::NotAllowed`] where it needs a person's look and who acts may not write payments off, [`TillError::Storage`] where nothing was saved, [`TillError::Unreadable`] where that can't be told.
    pub async fn cancel(&self, key: Key) -> Result<Operation, TillError> {
        let change = move |tx: &Connection, signature: &Signature| cancelling::cancel(tx, signature, key);
        let done = self.change_or_find(change, move |conn| cancelling::done(conn, key)).await?;
        store::points::reach(store::points::Point::CancelSaved);
        for operation in std::iter::once(&done.operation).chain(&done.refunds) {
            self.begun(operation);
        }
        Ok(done.operation)
    }

    /// Wakes the queue and tells the listeners, after an operation was saved.
    pub(super) fn begun(&self, operation: &Operation) {
        store::points::reach(store::points::Point::Saved);
        self.inner.queue.outbox.wake();
        self.tell(Event::OperationChanged(Box::new(operation.clone())));
        self.tell(Event::SaleChanged { sale_id: operation.sale_id });
        self.inner.figures.want();
    }

    pub(crate) async fn tell_summary(&self) {
        self.inner.figures.tell().await;
    }
}
