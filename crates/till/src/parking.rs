//! Open sales that a cashier parks under a name, and those that are given up.

use crate::{
    Measure, Right, Sale, SaleState, TillError, audit, audit::Signature, cart, editing, lines, rights, sale, sales,
    tenders,
};
use rusqlite::Connection;
use serde_json::json;
use uuid::Uuid;

/// Characters of the name of a parked sale at most.
const NAME_CHARS_MAX: usize = 64;

/// Parks the open sale in front under a name and gives the one to go on with.
pub(crate) fn park(tx: &Connection, signature: &Signature, id: Uuid, name: &str) -> Result<Sale, TillError> {
    let sale = cart::in_front_for_change(tx, id)?;
    let name = editing::checked_text(name, "name", NAME_CHARS_MAX)?
        .ok_or_else(|| TillError::InvalidText("the sale must have a name to be found by".to_owned()))?;
    if cart::is_unused(tx, &sale)? {
        return Err(TillError::SaleChanged("there is nothing to park: the sale is empty".to_owned()));
    }
    sales::park(tx, signature, id, &name)?;
    audit::append(tx, signature, "sale-parked", Some(id), &json!({"name": name}))?;
    sale::show(tx, &cart::open_sale(tx, signature)?)
}

/// Gives an open sale up, in front or parked, and gives the one to go on with. One that was never used just stays in front.
pub(crate) fn drop_sale(tx: &Connection, signature: &Signature, id: Uuid) -> Result<Sale, TillError> {
    let row = sales::by_id(tx, id)?;
    if !row.has_cart {
        return Err(TillError::SaleChanged("this payment had no cart: there is nothing to drop".to_owned()));
    }
    match row.state {
        SaleState::Open => {}
        SaleState::Paying if tenders::of_sale(tx, id)?.iter().any(|tender| tender.state.counts()) => {
            return Err(cart::frozen());
        }
        SaleState::Paying => {
            sales::thaw(tx, signature, id)?;
            lines::thaw(tx, id)?;
        }
        SaleState::Completed => return Err(TillError::SaleChanged("this sale is completed".to_owned())),
        SaleState::Voided => return Err(TillError::SaleChanged("this sale was voided".to_owned())),
        // The second click.
        SaleState::Dropped => return sale::show(tx, &cart::open_sale(tx, signature)?),
    }
    if row.held || !cart::is_unused(tx, &row)? {
        let sale = sale::read(tx, id)?;
        let signature = &rights::allow(tx, signature, Right::DropSale, Measure::Whole)?;
        sales::mark_dropped(tx, signature, id)?;
        let details = json!({
            "sale": sale.number, "name": sale.name, "lines": sale.lines.len(), "total": sale.total, "currency": sale.currency,
        });
        audit::append(tx, signature, "sale-dropped", Some(id), &details)?;
    }
    sale::show(tx, &cart::open_sale(tx, signature)?)
}
