//! The sale in front of the cashier: rung up, changed, put aside, taken up again. Every change is saved as it is made.

use crate::{
    Sale, SaleState, TillError, Unit, audit, audit::Signature, catalogue, lines, lines::LineRow, sale, sales,
    sales::SaleRow, settings,
};
use checkout::Quantity;
use rusqlite::Connection;
use serde_json::json;
use uuid::Uuid;

/// The most of one article, in thousandths: 99,999 pieces or kilograms. More is a slip of the finger.
const QUANTITY_MAX: i64 = 99_999_000;
/// How many sales put aside are shown at most.
const HELD_MAX: u32 = 200;

/// The sale in front, as it is shown.
pub(crate) fn in_front(conn: &Connection) -> Result<Option<Sale>, TillError> {
    sales::in_front(conn)?.map(|sale| sale::show(conn, &sale)).transpose()
}

/// The sale in front, made where there is none.
pub(crate) fn open_sale(tx: &Connection, signature: &Signature) -> Result<SaleRow, TillError> {
    if let Some(sale) = sales::in_front(tx)? {
        return Ok(sale);
    }
    let id = sales::insert(tx, signature, &settings::read(tx)?, true)?;
    sales::by_id(tx, id)
}

/// The sale in front, which must be open.
fn open_for_change(tx: &Connection, signature: &Signature) -> Result<SaleRow, TillError> {
    let sale = open_sale(tx, signature)?;
    match sale.state {
        SaleState::Open => Ok(sale),
        SaleState::Paying => Err(frozen()),
        SaleState::Completed => Err(TillError::SaleChanged("this sale is completed: begin a new one".to_owned())),
    }
}

fn frozen() -> TillError {
    TillError::SaleFrozen(
        "this sale is under payment: it can be changed again once its payments are declined or cancelled".to_owned(),
    )
}

/// Rings up an article by SKU or barcode; the same article again raises the quantity.
pub(crate) fn add_article(
    tx: &Connection,
    signature: &Signature,
    code: &str,
    quantity: Option<&str>,
) -> Result<Sale, TillError> {
    let sale = open_for_change(tx, signature)?;
    let offer =
        catalogue::offer(tx, code)?.ok_or_else(|| TillError::UnknownArticle(code.chars().take(64).collect()))?;
    let more = match quantity {
        Some(text) => read_quantity(text, offer.unit)?,
        None => Quantity::ONE,
    };
    match lines::same_article(tx, sale.id, &offer)? {
        Some(line) => {
            let sum = line.quantity.checked_add(more).filter(|sum| sum.thousandths() <= QUANTITY_MAX);
            lines::set_quantity(tx, line.id, sum.ok_or_else(too_much)?)?;
        }
        None => {
            lines::insert(tx, sale.id, &offer, more)?;
        }
    }
    changed(tx, signature, &sale)
}

pub(crate) fn set_quantity(
    tx: &Connection,
    signature: &Signature,
    line_id: i64,
    quantity: &str,
) -> Result<Sale, TillError> {
    let (line, sale) = line_for_change(tx, line_id)?;
    let quantity = read_quantity(quantity, line.unit)?;
    if quantity != line.quantity {
        lines::set_quantity(tx, line_id, quantity)?;
        let details = json!({"sku": line.sku, "before": line.quantity.to_string(), "after": quantity.to_string()});
        audit::append(tx, signature, "quantity-changed", Some(sale.id), &details)?;
    }
    changed(tx, signature, &sale)
}

pub(crate) fn remove_line(tx: &Connection, signature: &Signature, line_id: i64) -> Result<Sale, TillError> {
    let (line, sale) = line_for_change(tx, line_id)?;
    lines::remove(tx, line_id)?;
    let details = json!({"sku": line.sku, "quantity": line.quantity.to_string(), "unit_price": line.unit_price});
    audit::append(tx, signature, "line-removed", Some(sale.id), &details)?;
    changed(tx, signature, &sale)
}

/// Removes every line of the sale in front.
pub(crate) fn clear_sale(tx: &Connection, signature: &Signature) -> Result<Sale, TillError> {
    let sale = open_for_change(tx, signature)?;
    let before = sale::show(tx, &sale)?.total;
    let removed = lines::remove_all(tx, sale.id)?;
    if removed > 0 {
        let details = json!({"lines": removed, "total": before, "currency": sale.currency});
        audit::append(tx, signature, "sale-cleared", Some(sale.id), &details)?;
    }
    changed(tx, signature, &sale)
}

/// A line and its sale, which must be the open one in front.
fn line_for_change(tx: &Connection, line_id: i64) -> Result<(LineRow, SaleRow), TillError> {
    let (line, sale_id) = lines::by_id(tx, line_id)?.ok_or(TillError::NotFound("line"))?;
    let sale = sales::by_id(tx, sale_id)?;
    match (sale.state, sale.held) {
        (SaleState::Open, false) => Ok((line, sale)),
        (SaleState::Open, true) => {
            Err(TillError::SaleChanged("this sale was put aside: take it up again first".to_owned()))
        }
        (SaleState::Paying, _) => Err(frozen()),
        (SaleState::Completed, _) => Err(TillError::SaleChanged("this sale is completed".to_owned())),
    }
}

/// Prices the sale anew, so that a change that can't be priced is refused with it.
fn changed(tx: &Connection, signature: &Signature, sale: &SaleRow) -> Result<Sale, TillError> {
    sale::price(sale, &lines::of_sale(tx, sale.id)?)
        .map_err(|error| TillError::InvalidQuantity(format!("this is more than one sale can hold: {error}")))?;
    sales::touch(tx, signature, sale.id)?;
    sale::read(tx, sale.id)
}

fn read_quantity(text: &str, unit: Unit) -> Result<Quantity, TillError> {
    let quantity: Quantity = text
        .trim()
        .parse()
        .map_err(|error| TillError::InvalidQuantity(format!("the quantity is not right: {error}")))?;
    if quantity.thousandths() == 0 {
        return Err(TillError::InvalidQuantity("the quantity must be above zero: remove the line instead".to_owned()));
    }
    if unit == Unit::Piece && !quantity.is_whole() {
        return Err(TillError::InvalidQuantity(
            "this article is sold by the piece: the quantity must be whole".to_owned(),
        ));
    }
    if quantity.thousandths() > QUANTITY_MAX {
        return Err(too_much());
    }
    Ok(quantity)
}

fn too_much() -> TillError {
    TillError::InvalidQuantity("the quantity must be at most 99999".to_owned())
}

/// A sale to begin with: the one in front while it is open, a new one after a completed one.
pub(crate) fn new_sale(tx: &Connection, signature: &Signature) -> Result<Sale, TillError> {
    let sale = open_sale(tx, signature)?;
    match sale.state {
        SaleState::Open => sale::show(tx, &sale),
        SaleState::Paying => Err(TillError::SaleFrozen(
            "the sale in front is under payment: hold it before you begin another".to_owned(),
        )),
        SaleState::Completed => {
            sales::set_held(tx, signature, sale.id, true)?;
            sale::show(tx, &open_sale(tx, signature)?)
        }
    }
}

/// Puts a sale under payment aside and gives the one to go on with. It completes by itself when the bank answers. One that
/// completed meanwhile goes out of the way all the same: the cashier asked for the next customer.
pub(crate) fn hold_sale(tx: &Connection, signature: &Signature, id: Uuid) -> Result<Sale, TillError> {
    let sale = sales::by_id(tx, id)?;
    match sale.state {
        SaleState::Open => return Err(TillError::SaleChanged("only a sale under payment is put aside".to_owned())),
        SaleState::Paying if !sale.held => {
            sales::set_held(tx, signature, id, true)?;
            audit::append(tx, signature, "sale-held", Some(id), &json!({"sale": sale.number}))?;
        }
        SaleState::Completed if !sale.held => sales::set_held(tx, signature, id, true)?,
        SaleState::Paying | SaleState::Completed => {}
    }
    sale::show(tx, &open_sale(tx, signature)?)
}

/// Takes a sale up again that was put aside. The one in front goes aside for it, or goes altogether where it is empty.
pub(crate) fn resume_sale(tx: &Connection, signature: &Signature, id: Uuid) -> Result<Sale, TillError> {
    let sale = sales::by_id(tx, id)?;
    if sale.state == SaleState::Completed || !sale.held {
        // It was completed by the bank's answer or taken up meanwhile: there is nothing to swap, and it can be shown.
        return sale::show(tx, &sale);
    }
    if !sale.has_cart {
        return Err(TillError::SaleChanged("this payment had no cart: there is nothing to take up again".to_owned()));
    }
    if let Some(front) = sales::in_front(tx)? {
        let is_unused =
            front.state == SaleState::Open && front.number.is_none() && lines::of_sale(tx, front.id)?.is_empty();
        if is_unused {
            sales::delete(tx, front.id)?;
        } else {
            sales::set_held(tx, signature, front.id, true)?;
        }
    }
    sales::set_held(tx, signature, id, false)?;
    audit::append(tx, signature, "sale-resumed", Some(id), &json!({"sale": sale.number}))?;
    sale::read(tx, id)
}

/// Opens a sale again whose payments were all declined or cancelled. An open one stays as it is.
pub(crate) fn back_to_cart(tx: &Connection, signature: &Signature, id: Uuid) -> Result<Sale, TillError> {
    let row = sales::by_id(tx, id)?;
    match row.state {
        SaleState::Open => {}
        SaleState::Completed => return Err(TillError::SaleChanged("this sale is completed".to_owned())),
        SaleState::Paying => {
            if crate::tenders::of_sale(tx, id)?.iter().any(|tender| tender.state.counts()) {
                return Err(frozen());
            }
            sales::thaw(tx, signature, id)?;
            lines::thaw(tx, id)?;
            audit::append(tx, signature, "back-to-cart", Some(id), &json!({"sale": row.number}))?;
        }
    }
    sale::read(tx, id)
}

/// The sales put aside, oldest first.
pub(crate) fn held_sales(conn: &Connection) -> Result<Vec<Sale>, TillError> {
    sales::held(conn, HELD_MAX)?.iter().map(|sale| sale::show(conn, sale)).collect()
}
