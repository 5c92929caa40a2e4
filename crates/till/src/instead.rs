//! Cash in the place of a card payment that can't have charged the card: one that was never sent, or that the bank says it never
//! charges. While it is not known, nothing is: the customer would pay twice.

use crate::{
    CashPayment, CashTaken, SaleState, TenderBegun, TenderKind, TenderState, TillError, audit::Signature, cancelling,
    offline, pay, sale, sales, tenders, tenders::TenderRow,
};
use outbox::State;
use rusqlite::Connection;
use uuid::Uuid;

/// Whether cash can take the place of this payment, and whether it must be cancelled for that.
enum Place {
    /// It was never sent: it is cancelled with the same commit.
    Never(protocol::Key),
    /// It ended with no charge.
    Free,
}

fn place(conn: &Connection, card: &TenderRow) -> Result<Place, TillError> {
    let operation = offline::of_tender(conn, card)?;
    if operation.accepted_offline_at.is_some() && !operation.state.is_final() {
        return Err(TillError::AcceptedOffline(
            "its goods were handed over before the bank answered: a manager writes it off".to_owned(),
        ));
    }
    match operation.state {
        State::Saved => Ok(Place::Never(operation.key)),
        State::Declined | State::Cancelled => Ok(Place::Free),
        State::Approved => Err(TillError::AlreadyFinal("the card has paid: it is approved".to_owned())),
        State::Sending | State::Unknown | State::NeedsAttention => Err(TillError::CardMayBeCharged(
            "no cash now: the card may be charged. Wait for the bank, or cancel the payment and take cash once the bank \
             confirms that it never charges"
                .to_owned(),
        )),
    }
}

/// What the dialog begins with: what would be due with that payment cancelled. Saves nothing.
pub(crate) fn begin(conn: &Connection, card_tender_id: Uuid) -> Result<TenderBegun, TillError> {
    let card = offline::card_tender(conn, card_tender_id)?;
    place(conn, &card)?;
    let sale = sales::by_id(conn, card.sale_id)?;
    let (SaleState::Paying, Some(frozen)) = (sale.state, sale.frozen) else {
        return pay::begin(conn, sale.id);
    };
    let mut rows = tenders::of_sale(conn, sale.id)?;
    for row in rows.iter_mut().filter(|row| row.id == card.id && row.kind == TenderKind::Card) {
        row.state = TenderState::Cancelled;
    }
    let rest = sale::balance(&sale, frozen.total, &rows)?.rest;
    pay::begun(&sale, rest)
}

/// Cancels the card payment where it was never sent, and takes the cash: both or nothing. The same tender id gives the same answer
/// back.
pub(crate) fn cash(
    tx: &Connection,
    signature: &Signature,
    payment: &CashPayment,
    card_tender_id: Uuid,
) -> Result<CashTaken, TillError> {
    if tenders::by_id(tx, payment.tender_id)?.is_none() {
        let card = offline::card_tender(tx, card_tender_id)?;
        if card.sale_id != payment.sale_id {
            return Err(TillError::NotFound("payment of this sale"));
        }
        if let Place::Never(key) = place(tx, &card)? {
            cancelling::cancel(tx, signature, key)?;
        }
    }
    pay::cash(tx, signature, payment)
}
