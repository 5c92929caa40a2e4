//! Goods that come back, and their money.

use crate::{
    Event, NewReturn, Operation, OwedRefund, PaidOut, PricedReturn, Return, ReturnBegun, ReturnFigures, ReturnedGoods,
    Till, TillError, audit::Signature, late, operations, refunds, returns, sales, span::Span,
};
use jiff::Timestamp;
use protocol::Currency;
use rusqlite::Connection;
use uuid::Uuid;

impl Till {
    /// What can come back of a sale, and an id for the return: asked for when its dialog opens. Saves nothing.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::SaleChanged`] where the sale is not completed.
    pub async fn begin_return(&self, sale_id: Uuid) -> Result<ReturnBegun, TillError> {
        self.read(move |conn| returns::begin(conn, sale_id)).await
    }

    /// The same for the sale of a receipt.
    ///
    /// # Errors
    /// [`TillError::NotFound`] where no sale has this number.
    pub async fn begin_return_of_receipt(&self, receipt_number: i64) -> Result<ReturnBegun, TillError> {
        self.read(move |conn| returns::begin(conn, sales::by_receipt(conn, receipt_number)?.id)).await
    }

    /// What goods would give back, and how. Saves nothing.
    ///
    /// # Errors
    /// As [`Till::return_goods`].
    pub async fn price_return(&self, sale_id: Uuid, goods: ReturnedGoods) -> Result<PricedReturn, TillError> {
        self.read(move |conn| returns::price(conn, sale_id, &goods)).await
    }

    /// Takes goods back and gives their money back the way it was paid: an operation for each card, which waits for its payment's end,
    /// and then cash. What of the sale was never paid comes first, and goes back to nobody: a late decline is lower by it. One commit, with a number of the receipts' series. The same id again gives the same return back.
    ///
    /// # Errors
    /// [`TillError::InvalidReturn`] where it is more than is left, [`TillError::InvalidQuantity`], [`TillError::NotFound`],
    /// [`TillError::SaleChanged`] where the sale is not completed, [`TillError::OverRefund`] where not so much was paid,
    /// [`TillError::NotAllowed`] where it is more than who acts may give back, [`TillError::NoShift`] where cash goes back and no drawer is
    /// open, [`TillError::CardMayBeCharged`] where a payment of what may be owed is being cancelled or written off, and the bank has not said
    /// whether it charged, [`TillError::IntentReused`] where the id came with other goods,
    /// [`TillError::InvalidText`] for the reason; else as [`Till::pay_card`].
    pub async fn return_goods(&self, new: NewReturn) -> Result<Return, TillError> {
        let id = new.id;
        let change = move |tx: &Connection, signature: &Signature| returns::make(tx, signature, &new);
        let made = self.change_or_find(change, move |conn| returns::by_id(conn, id)).await?;
        for operation in made.legs.iter().filter_map(|leg| leg.operation.as_ref()) {
            self.begun(operation);
        }
        self.tell(Event::SaleChanged { sale_id: made.sale_id });
        let lowered = self.look_after(move |conn| late::lowered_by(conn, id).map(Some)).await;
        lowered.into_iter().flatten().for_each(|late| self.tell(Event::LateDecline(Box::new(late))));
        Ok(made)
    }

    /// Money alone that the bank refused to give back, and that nobody has tried again or given back otherwise: [`Till::refund`]. Oldest
    /// first, at most 200.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn owed_refunds(&self) -> Result<Vec<OwedRefund>, TillError> {
        self.read(refunds::owed_alone).await
    }

    /// Tries a card's leg of a return or a void again that the bank refused, or that was cancelled: a new operation in its place. The same new
    /// id again gives its operation back.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::CardMayBeCharged`] while it may still go through, [`TillError::AlreadyFinal`] where it did,
    /// or was tried again or paid out, [`TillError::NotRefundable`] where its payment did not pay; else as [`Till::pay_card`].
    pub async fn refund_again(&self, leg_id: Uuid, new_id: Uuid) -> Result<Operation, TillError> {
        let change = move |tx: &Connection, signature: &Signature| returns::try_again(tx, signature, leg_id, new_id);
        let operation = self.change_or_find(change, move |conn| operations::by_intent(conn, new_id)).await?;
        self.begun(&operation);
        Ok(operation)
    }

    /// Pays a card's leg of a return or a void out in cash that the bank refused, or that was cancelled. The same new id again gives the
    /// same answer back.
    ///
    /// # Errors
    /// [`TillError::NotAllowed`] where who acts may not take so much cash out, [`TillError::NoShift`]; else as [`Till::refund_again`].
    pub async fn refund_in_cash(&self, leg_id: Uuid, new_id: Uuid) -> Result<PaidOut, TillError> {
        let change = move |tx: &Connection, signature: &Signature| returns::pay_out(tx, signature, leg_id, new_id);
        let paid_out = self.change_or_find(change, move |conn| returns::paid_out(conn, new_id)).await?;
        self.tell(Event::SaleChanged { sale_id: paid_out.sale_id });
        Ok(paid_out)
    }

    /// The returns of a sale, oldest first.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn returns(&self, sale_id: Uuid) -> Result<Vec<Return>, TillError> {
        self.read(move |conn| returns::of_sale(conn, sale_id)).await
    }

    /// The returns whose customer still has something to get: a card's bank refused its part, or that was cancelled, and it was neither
    /// tried again nor paid out. Oldest first, 200 at most.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn owed_returns(&self) -> Result<Vec<Return>, TillError> {
        self.read(returns::owed).await
    }

    /// One return.
    ///
    /// # Errors
    /// [`TillError::NotFound`].
    pub async fn return_by_id(&self, id: Uuid) -> Result<Return, TillError> {
        self.read(move |conn| returns::by_id(conn, id)?.ok_or(TillError::NotFound("return"))).await
    }

    /// What came back in one currency, from a moment on and before another.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn return_figures(
        &self,
        currency: Currency,
        from: Timestamp,
        before: Timestamp,
    ) -> Result<ReturnFigures, TillError> {
        self.read(move |conn| returns::of_span(conn, currency, Span::Time(from, before))).await
    }
}
