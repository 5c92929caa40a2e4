//! What is done while the bank does not answer, and after it said no too late: taken offline, cash instead, collected again, written
//! off.

use crate::{
    CashPayment, CashTaken, CollectAgain, CollectInCash, Event, LateDecline, LateDeclines, LateFigures, LateQuery,
    OfflineAsk, Operation, TakeOffline, TenderBegun, Till, TillError, audit::Signature, clock, instead, late, offline,
    operations, pay, span::Span,
};
use jiff::Timestamp;
use protocol::Currency;
use rusqlite::Connection;
use uuid::Uuid;

impl Till {
    /// What taking a card payment offline would mean: what it is, what is stored, what may be. Saves nothing; the command computes it
    /// again, in its own commit.
    ///
    /// # Errors
    /// [`TillError::NotFound`] where the tender is no card's.
    pub async fn offline_ask(&self, tender_id: Uuid) -> Result<OfflineAsk, TillError> {
        let now = clock::now();
        self.read(move |conn| offline::ask(conn, tender_id, now)).await
    }

    /// Hands the goods of an open card payment over before the bank has answered, at the shop's risk and within its limits. The sale
    /// completes where that was the last of it; the payment goes on being tried. The same again changes nothing.
    ///
    /// # Errors
    /// [`TillError::OfflineLimit`] with the figures, also where it is wanted over the limit and people are not told apart;
    /// [`TillError::NotAllowed`] where it is wanted so by somebody who may not, and no PIN came along that may;
    /// [`TillError::AlreadyFinal`] where the bank has answered or it is being cancelled, [`TillError::NeedsLook`],
    /// [`TillError::InvalidText`] for the contact, [`TillError::NotFound`], [`TillError::SaleChanged`] where the goods were gone before;
    /// else as [`Till::pay_card`].
    pub async fn take_offline(&self, take: TakeOffline) -> Result<Operation, TillError> {
        let tender_id = take.tender_id;
        let change = move |tx: &Connection, signature: &Signature| offline::take(tx, signature, &take);
        let find = move |conn: &Connection| {
            Ok(operations::by_intent(conn, tender_id)?.filter(|operation| operation.accepted_offline))
        };
        let operation = self.change_or_find(change, find).await?;
        self.begun(&operation);
        Ok(operation)
    }

    /// Notes how the customer of a payment that was taken offline can be reached; none takes the note away.
    ///
    /// # Errors
    /// [`TillError::InvalidText`] where it is too long or holds the number of a card, [`TillError::NotFound`].
    pub async fn note_contact(&self, tender_id: Uuid, contact: Option<String>) -> Result<(), TillError> {
        let wanted = contact.as_deref().map(str::trim).filter(|contact| !contact.is_empty()).map(str::to_owned);
        let change = move |tx: &Connection, signature: &Signature| {
            offline::note_contact(tx, signature, tender_id, contact.as_deref())
        };
        let find = move |conn: &Connection| Ok((offline::contact(conn, tender_id)? == wanted).then_some(()));
        self.change_or_find(change, find).await
    }

    /// What is due in cash in the place of a card payment, and an id for the tender that is to pay it. Saves nothing.
    ///
    /// # Errors
    /// As [`Till::pay_cash_instead`].
    pub async fn begin_cash_instead(&self, card_tender_id: Uuid) -> Result<TenderBegun, TillError> {
        self.read(move |conn| instead::begin(conn, card_tender_id)).await
    }

    /// Takes cash in the place of a card payment that was never sent, and cancels that: both in one commit. Of one that the bank
    /// declined, or confirmed as cancelled, there is nothing to cancel any more. The same tender id again gives the same answer back.
    ///
    /// # Errors
    /// [`TillError::CardMayBeCharged`] while it is not known whether the card was charged, [`TillError::AlreadyFinal`] where it was,
    /// [`TillError::AcceptedOffline`], [`TillError::NotFound`]; else as [`Till::pay_cash`].
    pub async fn pay_cash_instead(&self, payment: CashPayment, card_tender_id: Uuid) -> Result<CashTaken, TillError> {
        let tender_id = payment.tender_id;
        let change =
            move |tx: &Connection, signature: &Signature| instead::cash(tx, signature, &payment, card_tender_id);
        let taken = self.change_or_find(change, move |conn| pay::cash_taken(conn, tender_id)).await?;
        if let Some(cancelled) = self.look_after(move |conn| operations::by_intent(conn, card_tender_id)).await {
            self.begun(&cancelled);
        }
        self.tell(Event::SaleChanged { sale_id: taken.sale.id });
        Ok(taken)
    }

    /// The payments that were taken offline and did not pay, the newest first.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn late_declines(&self, query: LateQuery) -> Result<LateDeclines, TillError> {
        self.read(move |conn| late::list(conn, query)).await
    }

    /// What late declines of one currency came to, from a moment on and before another.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn late_figures(
        &self,
        currency: Currency,
        from: Timestamp,
        before: Timestamp,
    ) -> Result<LateFigures, TillError> {
        self.read(move |conn| late::of_span(conn, currency, Span::Time(from, before))).await
    }

    /// Collects again what was declined after the goods were gone, all of it, by another card payment of the same sale. The same
    /// tender id again gives its operation back.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::SaleFrozen`] while another one is with the bank, [`TillError::CardMayBeCharged`] where the
    /// bank has not said that the card was not charged, [`TillError::AlreadyFinal`] where nothing is owed any more,
    /// [`TillError::IntentReused`]; else as [`Till::pay_card`].
    pub async fn collect_again(&self, collect: CollectAgain) -> Result<Operation, TillError> {
        let (tender_id, late_id) = (collect.tender_id, collect.late_tender_id);
        let change = move |tx: &Connection, signature: &Signature| late::collect_again(tx, signature, &collect);
        let operation = self.change_or_find(change, move |conn| operations::by_intent(conn, tender_id)).await?;
        self.begun(&operation);
        if let Some(late) = self.look_after(move |conn| late::by_tender(conn, late_id)).await {
            self.tell(Event::LateDecline(Box::new(late)));
        }
        Ok(operation)
    }

    /// What is owed of a late decline, also in coins that there are, and an id for the tender that is to collect it: asked for when its
    /// dialog opens. Saves nothing.
    ///
    /// # Errors
    /// As [`Till::collect_again`].
    pub async fn begin_collecting(&self, late_tender_id: Uuid) -> Result<TenderBegun, TillError> {
        self.read(move |conn| late::begin_collecting(conn, late_tender_id)).await
    }

    /// Collects again what was declined after the goods were gone, all of it, in cash: the late decline is settled with it, and the cash
    /// is in the drawer of the open shift. The same tender id again gives the same answer back.
    ///
    /// # Errors
    /// [`TillError::InvalidAmount`] where it is less than is owed, or not in coins that there are, [`TillError::NoShift`]; else as
    /// [`Till::collect_again`].
    pub async fn collect_in_cash(&self, collect: CollectInCash) -> Result<CashTaken, TillError> {
        let (tender_id, late_id) = (collect.tender_id, collect.late_tender_id);
        let change = move |tx: &Connection, signature: &Signature| late::collect_in_cash(tx, signature, &collect);
        let taken = self.change_or_find(change, move |conn| pay::cash_taken(conn, tender_id)).await?;
        self.tell(Event::SaleChanged { sale_id: taken.sale.id });
        if let Some(late) = self.look_after(move |conn| late::by_tender(conn, late_id)).await {
            self.tell(Event::LateDecline(Box::new(late)));
        }
        Ok(taken)
    }

    /// Gives a payment up that was taken offline, for a reason: at once where it is known not to pay, else once the bank confirms that
    /// it never will. The same again changes nothing.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::NotAllowed`], [`TillError::InvalidReason`], [`TillError::InvalidText`], [`TillError::SaleFrozen`] while it is being
    /// collected, [`TillError::AlreadyFinal`] where nothing is owed; else as [`Till::pay_card`].
    pub async fn write_off(&self, late_tender_id: Uuid, reason: &str) -> Result<LateDecline, TillError> {
        let reason = reason.to_owned();
        let change =
            move |tx: &Connection, signature: &Signature| late::write_off(tx, signature, late_tender_id, &reason);
        let find =
            move |conn: &Connection| Ok(late::by_tender(conn, late_tender_id)?.filter(|late| late.reason.is_some()));
        let late = self.change_or_find(change, find).await?;
        self.begun(&late.operation);
        self.tell(Event::LateDecline(Box::new(late.clone())));
        Ok(late)
    }

    /// Looks for what is to be told of a change that is saved. Where the look fails the change is what it is, and is not answered with an
    /// error; who listens looks for itself at the next event.
    pub(super) async fn look_after<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Connection) -> Result<Option<T>, TillError> + Send + 'static,
    ) -> Option<T> {
        self.read(look).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "a change is saved, and what it is told with could not be read");
            None
        })
    }
}
