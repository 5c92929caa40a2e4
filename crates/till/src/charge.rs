//! A payment of an amount with no cart before it: what the command line takes. It is a sale of its own that no cashier put
//! aside: it never stands in front, and whatever becomes of it, it is found among the payments and not among the held sales.
//! A declined one is over: whoever asked for it asks anew, with another card.

use crate::{
    Operation, SaleState, Settings, TenderKind, TillError, Unit, audit::Signature, catalogue::Offer, lines,
    lines::Origin, offline, offline::Risk, operations, pay, pay::NewCard, sales, settings, tenders,
};
use checkout::Quantity;
use protocol::{Amount, CardToken, Currency, REFERENCE_CHARS_MAX, holds_card_number, is_unseen};
use rusqlite::Connection;
use uuid::Uuid;

/// What a charge without a cart asks for.
#[derive(Debug, Clone)]
pub struct Charge {
    /// Names the intent: the same again gives the same operation back.
    pub intent_id: Uuid,
    /// What to charge.
    pub amount: Amount,
    /// Its currency, which may be another than the till's.
    pub currency: Currency,
    /// The card.
    pub card: CardToken,
    /// What the bank is given as the reference; by default `TILL/NUMBER` of the sale. No part of the intent: where it comes
    /// again, the reference that the bank was given stays.
    pub reference: Option<String>,
    /// The goods are handed over before the bank is asked, at the shop's risk.
    pub accepted_offline: bool,
}

impl Charge {
    /// Whether its texts are such as may be kept: what a bank is told is kept for ever, here and there.
    ///
    /// # Errors
    /// [`TillError::InvalidReference`] for a reference that is empty, too long for the bank, holds what is not seen, or the number of a card. It
    /// does not repeat it.
    pub fn check(&self) -> Result<(), TillError> {
        let Some(reference) = &self.reference else { return Ok(()) };
        let wrong = |what: String| Err(TillError::InvalidReference(format!("the reference must {what}")));
        if !(1..=REFERENCE_CHARS_MAX).contains(&reference.chars().count()) {
            return wrong(format!("have 1 to {REFERENCE_CHARS_MAX} characters"));
        }
        if reference.contains(is_unseen) {
            return wrong("be on one line, and hold nothing that is not seen: it stands on the receipt".to_owned());
        }
        if holds_card_number(reference) {
            return wrong("not hold the number of a card: no such number is ever stored".to_owned());
        }
        Ok(())
    }
}

/// Saves the charge: sale, line, tender, operation and audit entry in one commit, or nothing.
pub(crate) fn charge(tx: &Connection, signature: &Signature, charge: &Charge) -> Result<Operation, TillError> {
    charge.check()?;
    if let Some(tender) = tenders::by_id(tx, charge.intent_id)? {
        let sale = sales::by_id(tx, tender.sale_id)?;
        let is_same =
            tender.kind == TenderKind::Card && tender.amount == charge.amount.get() && sale.currency == charge.currency;
        return if is_same {
            pay::again(tx, signature, &sale, &tender, charge.amount, charge.card.clone())
        } else {
            Err(pay::reused())
        };
    }
    let shop = settings::read(tx)?;
    // Nobody stands before a charge: over the limit it is refused.
    let risk = Risk { amount: charge.amount.get(), currency: charge.currency, over_limit: false };
    let taking = if charge.accepted_offline { Some(offline::allow(tx, signature, &shop, risk)?) } else { None };
    let settings = Settings { currency: charge.currency, ..shop };
    let id = sales::insert(tx, signature, &settings, false)?;
    let offer = Offer {
        sku: "AMOUNT".to_owned(),
        name: "Amount".to_owned(),
        unit: Unit::Piece,
        price: charge.amount.get(),
        tax_rate: 0,
        open_price: false,
    };
    lines::insert(tx, id, &offer, Quantity::ONE, Origin::Article)?;
    let sale = pay::under_payment(tx, signature, sales::by_id(tx, id)?)?;
    debug_assert_eq!(sale.state, SaleState::Paying);
    let reference = match &charge.reference {
        Some(reference) => reference.clone(),
        None => pay::reference(&settings, &sale)?,
    };
    let (tender_id, amount, card) = (charge.intent_id, charge.amount, charge.card.clone());
    let new = NewCard { tender_id, amount, card, reference, replaces: None, collects: None };
    let Some(taking) = taking else { return pay::begin_card(tx, signature, &sale, new) };
    let operation = pay::begin_card_at(tx, &taking.signature, &sale, new, Some(signature.at))?;
    offline::mark(tx, &taking, tender_id, None)?;
    pay::complete_if_paid(tx, signature, id)?;
    operations::by_key(tx, operation.key)
}
