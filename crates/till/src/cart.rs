//! The sale in front of the cashier: rung up, changed, put aside, taken up again. Every change is saved as it is made.

use crate::{
    Measure, Origin, Right, Sale, SaleState, Settings, TillError, Unit,
    amounts::format_amount,
    asked::Terms,
    audit,
    audit::Signature,
    catalogue,
    catalogue::Offer,
    ean13::{Label, LabelValue},
    editing, given, lines,
    lines::LineRow,
    rights, sale, sales,
    sales::SaleRow,
    settings, undo,
    undo::Before,
};
use checkout::Quantity;
use rusqlite::Connection;
use serde::Serialize;
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
        let is_blank = is_unused(tx, &sale)? && sale.terms == Terms::default();
        if !is_blank || check_terms(&sale, &settings::read(tx)?).is_ok() {
            return Ok(sale);
        }
        // It was begun before the shop went over to another currency, and there is nothing in it.
        sales::delete(tx, sale.id)?;
    }
    let id = sales::insert(tx, signature, &settings::read(tx)?, true)?;
    sales::by_id(tx, id)
}

/// Whether the catalogue's figures are of the sale's currency, and have the tax in them or not as the sale has.
fn check_terms(sale: &SaleRow, shop: &Settings) -> Result<(), TillError> {
    let taxed = |is_in: bool| if is_in { "tax in the prices" } else { "tax on top of the prices" };
    let (was, is) = if sale.currency != shop.currency {
        (sale.currency.code(), shop.currency.code())
    } else if sale.prices_include_tax != shop.prices_include_tax {
        (taxed(sale.prices_include_tax), taxed(shop.prices_include_tax))
    } else {
        return Ok(());
    };
    Err(TillError::OtherTerms(format!(
        "this sale was begun with {was}, and the articles are in the shop's list with {is} now: pay it as it is, or drop it and begin anew"
    )))
}

/// The sale in front, which must be open.
pub(crate) fn open_for_change(tx: &Connection, signature: &Signature) -> Result<SaleRow, TillError> {
    let sale = open_sale(tx, signature)?;
    match sale.state {
        SaleState::Open => Ok(sale),
        SaleState::Paying => Err(frozen()),
        SaleState::Completed => Err(TillError::SaleChanged("this sale is completed: begin a new one".to_owned())),
        SaleState::Dropped => Err(dropped()),
        SaleState::Voided => Err(voided()),
    }
}

/// This sale, which must be open and in front.
pub(crate) fn in_front_for_change(tx: &Connection, id: Uuid) -> Result<SaleRow, TillError> {
    let sale = sales::by_id(tx, id)?;
    check_for_change(&sale)?;
    Ok(sale)
}

fn check_for_change(sale: &SaleRow) -> Result<(), TillError> {
    match (sale.state, sale.held) {
        (SaleState::Open, false) => Ok(()),
        (SaleState::Open, true) => {
            Err(TillError::SaleChanged("this sale was put aside: take it up again first".to_owned()))
        }
        (SaleState::Paying, _) => Err(frozen()),
        (SaleState::Completed, _) => Err(TillError::SaleChanged("this sale is completed".to_owned())),
        (SaleState::Dropped, _) => Err(dropped()),
        (SaleState::Voided, _) => Err(voided()),
    }
}

fn voided() -> TillError {
    TillError::SaleChanged("this sale was voided: what was paid went back".to_owned())
}

fn dropped() -> TillError {
    TillError::SaleChanged("this sale was dropped".to_owned())
}

pub(crate) fn frozen() -> TillError {
    TillError::SaleFrozen(
        "this sale is under payment: it can be changed again once its payments are declined or cancelled".to_owned(),
    )
}

/// Rings up an article by SKU or barcode; the same article again raises the quantity. A `price` is for an article that has none
/// of its own.
pub(crate) fn add_article(
    tx: &Connection,
    signature: &Signature,
    code: &str,
    quantity: Option<&str>,
    price: Option<i64>,
) -> Result<Sale, TillError> {
    let sale = open_for_change(tx, signature)?;
    check_terms(&sale, &settings::read(tx)?)?;
    if let Some(label) = catalogue::label(tx, code)? {
        return add_labelled(tx, signature, &sale, &label, quantity, price);
    }
    let mut offer = catalogue::offer(tx, code)?.ok_or_else(|| unknown(code))?;
    let more = match quantity {
        Some(text) => read_quantity(text, offer.unit)?,
        None => Quantity::ONE,
    };
    let is_open = set_open_price(tx, signature, &sale, &mut offer, price)?;
    match lines::same_article(tx, sale.id, &offer)? {
        Some(mut line) if !is_open => {
            undo::remember(tx, sale.id, "article-added", &Before::of_line(&line))?;
            let sum = line.quantity.checked_add(more).filter(|sum| sum.thousandths() <= QUANTITY_MAX);
            line.quantity = sum.ok_or_else(too_much)?;
            lines::write(tx, sale.id, &line)?;
        }
        _ => {
            let origin = if is_open { Origin::OpenPrice } else { Origin::Article };
            add_line(tx, &sale, &offer, more, origin)?;
        }
    }
    changed(tx, signature, &sale)
}

fn unknown(code: &str) -> TillError {
    TillError::UnknownArticle(code.chars().take(64).collect())
}

fn add_line(
    tx: &Connection,
    sale: &SaleRow,
    offer: &Offer,
    quantity: Quantity,
    origin: Origin,
) -> Result<i64, TillError> {
    let id = lines::insert(tx, sale.id, offer, quantity, origin)?;
    undo::remember(tx, sale.id, "article-added", &Before::no_line(id))?;
    Ok(id)
}

/// Gives an article without a price of its own the one that was asked for, and says whether it is such an article.
fn set_open_price(
    tx: &Connection,
    signature: &Signature,
    sale: &SaleRow,
    offer: &mut Offer,
    price: Option<i64>,
) -> Result<bool, TillError> {
    match (offer.open_price, price) {
        (false, None) => Ok(false),
        (true, None) => Err(TillError::PriceNeeded(offer.name.clone())),
        (false, Some(_)) => Err(TillError::InvalidPrice(format!(
            "“{}” has a price: ring it up without one, and set the price of its line then",
            offer.name
        ))),
        (true, Some(price)) => {
            offer.price = editing::checked_price(price, sale.currency)?;
            let details = json!({"sku": offer.sku, "price": price});
            audit::append(tx, signature, "price-asked", Some(sale.id), &details)?;
            Ok(true)
        }
    }
}

/// Rings up what a scale labelled: a line of its own, which costs what the label says or what its weight comes to.
fn add_labelled(
    tx: &Connection,
    signature: &Signature,
    sale: &SaleRow,
    label: &Label,
    quantity: Option<&str>,
    price: Option<i64>,
) -> Result<Sale, TillError> {
    if quantity.is_some() {
        return Err(TillError::InvalidQuantity("a label is for one thing: scan each by itself".to_owned()));
    }
    let mut offer = catalogue::offer(tx, &label.item)?.ok_or_else(|| unknown(&label.item))?;
    let (quantity, note) = match label.value {
        LabelValue::Weight(weight) => {
            if offer.unit == Unit::Piece {
                let message = format!("this label carries a weight, and “{}” is sold by the piece", offer.name);
                return Err(TillError::InvalidBarcode(message));
            }
            set_open_price(tx, signature, sale, &mut offer, price)?;
            (weight, None)
        }
        LabelValue::Price(_) if price.is_some() => {
            return Err(TillError::InvalidPrice("the label says the price".to_owned()));
        }
        LabelValue::Price(cost) => match editing::quantity_that_costs(sale, &offer, cost)? {
            Some(quantity) => (quantity, None),
            // A piece, or so dear by weight that no whole gram costs just that: the label's price, as it is.
            None => {
                let by_weight = offer.unit == Unit::Weight && offer.price > 0;
                let note = by_weight.then(|| format!("{} per kg", format_amount(offer.price, sale.currency)));
                (offer.unit, offer.price) = (Unit::Piece, cost);
                (Quantity::ONE, note)
            }
        },
    };
    let id = add_line(tx, sale, &offer, quantity, Origin::Label)?;
    if note.is_some()
        && let Some((mut line, _)) = lines::by_id(tx, id)?
    {
        line.note = note;
        lines::write(tx, sale.id, &line)?;
    }
    changed(tx, signature, sale)
}

pub(crate) fn set_quantity(
    tx: &Connection,
    signature: &Signature,
    line_id: i64,
    quantity: &str,
) -> Result<Sale, TillError> {
    let (mut line, sale) = line_for_change(tx, line_id)?;
    let quantity = read_quantity(quantity, line.unit)?;
    if quantity != line.quantity {
        let before = Before::of_line(&line);
        let is_more = quantity > line.quantity;
        let details = json!({"sku": line.sku, "before": line.quantity.to_string(), "after": quantity.to_string()});
        line.quantity = quantity;
        let signature = &match is_more {
            true => given::raised(tx, signature, &sale, (&line, &given::with(tx, &sale, &line)?))?,
            false => signature.clone(),
        };
        undo::remember(tx, sale.id, "quantity-changed", &before)?;
        lines::write(tx, sale.id, &line)?;
        audit::append(tx, signature, "quantity-changed", Some(sale.id), &details)?;
    }
    changed(tx, signature, &sale)
}

pub(crate) fn remove_line(tx: &Connection, signature: &Signature, line_id: i64) -> Result<Sale, TillError> {
    let (line, sale) = line_for_change(tx, line_id)?;
    undo::remember(tx, sale.id, "line-removed", &Before::of_line(&line))?;
    lines::remove(tx, line_id)?;
    let details = json!({"sku": line.sku, "quantity": line.quantity.to_string(), "unit_price": line.unit_price});
    let signature = &emptied(tx, signature, &sale, "line-removed")?;
    audit::append(tx, signature, "line-removed", Some(sale.id), &details)?;
    changed(tx, signature, &sale)
}

/// Where a change took the last line of a sale away, it was emptied by it, however that was done: it needs the same right, and counts as
/// much, as to empty it at once. Gives the signature to sign the change with.
pub(crate) fn emptied(
    tx: &Connection,
    signature: &Signature,
    sale: &SaleRow,
    by: &str,
) -> Result<Signature, TillError> {
    if !lines::of_sale(tx, sale.id)?.is_empty() {
        return Ok(signature.clone());
    }
    let signature = rights::allow(tx, signature, Right::DropSale, Measure::Whole)?;
    audit::append(tx, &signature, "sale-emptied", Some(sale.id), &json!({"by": by}))?;
    Ok(signature)
}

/// Removes every line of the sale in front, with its discount and tip.
pub(crate) fn clear_sale(tx: &Connection, signature: &Signature) -> Result<Sale, TillError> {
    let sale = open_for_change(tx, signature)?;
    let before = sale::show(tx, &sale)?;
    let lines = lines::of_sale(tx, sale.id)?;
    if lines.is_empty() && sale.terms == Terms::default() {
        return Ok(before);
    }
    let signature = &rights::allow(tx, signature, Right::DropSale, Measure::Whole)?;
    undo::remember(tx, sale.id, "sale-cleared", &Before::of_sale(&sale, lines))?;
    let removed = lines::remove_all(tx, sale.id)?;
    sales::set_terms(tx, sale.id, Terms::default())?;
    let details = json!({"lines": removed, "total": before.total, "currency": sale.currency});
    audit::append(tx, signature, "sale-cleared", Some(sale.id), &details)?;
    changed(tx, signature, &sale)
}

/// A line and its sale, which must be the open one in front.
pub(crate) fn line_for_change(tx: &Connection, line_id: i64) -> Result<(LineRow, SaleRow), TillError> {
    let (line, sale_id) = lines::by_id(tx, line_id)?.ok_or(TillError::NotFound("line"))?;
    Ok((line, in_front_for_change(tx, sale_id)?))
}

/// Prices the sale anew, so that a change that can't be priced is refused with it.
pub(crate) fn changed(tx: &Connection, signature: &Signature, sale: &SaleRow) -> Result<Sale, TillError> {
    sale::price(&sales::by_id(tx, sale.id)?, &lines::of_sale(tx, sale.id)?)
        .map_err(|error| TillError::InvalidQuantity(format!("this is more than one sale can hold: {error}")))?;
    sales::touch(tx, signature, sale.id)?;
    sale::read(tx, sale.id)
}

/// A quantity that somebody typed, of something that is sold so. `instead` says what to do in the place of a zero.
pub(crate) fn typed_quantity(text: &str, unit: Unit, instead: &str) -> Result<Quantity, TillError> {
    let quantity: Quantity = text
        .trim()
        .parse()
        .map_err(|error| TillError::InvalidQuantity(format!("the quantity is not right: {error}")))?;
    if quantity == Quantity::NONE {
        return Err(TillError::InvalidQuantity(format!("the quantity must be above zero: {instead}")));
    }
    if unit == Unit::Piece && !quantity.is_whole() {
        return Err(TillError::InvalidQuantity(
            "this article is sold by the piece: the quantity must be whole".to_owned(),
        ));
    }
    Ok(quantity)
}

/// The quantity of a line.
fn read_quantity(text: &str, unit: Unit) -> Result<Quantity, TillError> {
    let quantity = typed_quantity(text, unit, "remove the line instead")?;
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
        SaleState::Dropped => Err(dropped()),
        SaleState::Voided => Err(voided()),
    }
}

/// Puts a sale under payment aside and gives the one to go on with. It completes by itself when the bank answers. One that
/// completed meanwhile goes out of the way all the same: the cashier asked for the next customer.
pub(crate) fn hold_sale(tx: &Connection, signature: &Signature, id: Uuid) -> Result<Sale, TillError> {
    let sale = sales::by_id(tx, id)?;
    match sale.state {
        SaleState::Open => return Err(TillError::SaleChanged("only a sale under payment is put aside".to_owned())),
        SaleState::Dropped => return Err(dropped()),
        SaleState::Voided => return Err(voided()),
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
    match sale.state {
        SaleState::Dropped => return Err(dropped()),
        SaleState::Voided => return Err(voided()),
        SaleState::Open | SaleState::Paying | SaleState::Completed => {}
    }
    if sale.state == SaleState::Completed || !sale.held {
        // It was completed by the bank's answer or taken up meanwhile: there is nothing to swap, and it can be shown.
        return sale::show(tx, &sale);
    }
    if !sale.has_cart {
        return Err(TillError::SaleChanged("this payment had no cart: there is nothing to take up again".to_owned()));
    }
    if let Some(front) = sales::in_front(tx)? {
        if is_unused(tx, &front)? {
            sales::delete(tx, front.id)?;
        } else {
            sales::set_held(tx, signature, front.id, true)?;
        }
    }
    sales::set_held(tx, signature, id, false)?;
    audit::append(tx, signature, "sale-resumed", Some(id), &json!({"sale": sale.number}))?;
    sale::read(tx, id)
}

/// Whether nothing was ever done with a sale that stands in front.
pub(crate) fn is_unused(conn: &Connection, sale: &SaleRow) -> Result<bool, TillError> {
    Ok(sale.state == SaleState::Open && sale.number.is_none() && lines::of_sale(conn, sale.id)?.is_empty())
}

/// Opens a sale again whose payments were all declined or cancelled. An open one stays as it is.
pub(crate) fn back_to_cart(tx: &Connection, signature: &Signature, id: Uuid) -> Result<Sale, TillError> {
    let row = sales::by_id(tx, id)?;
    match row.state {
        SaleState::Open => {}
        SaleState::Completed => return Err(TillError::SaleChanged("this sale is completed".to_owned())),
        SaleState::Dropped => return Err(dropped()),
        SaleState::Voided => return Err(voided()),
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

/// A page of the sales put aside.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeldSales {
    /// Oldest first.
    pub sales: Vec<Sale>,
    /// Whether there are more after them.
    pub more: bool,
}

/// The sales put aside, oldest first: those after one, or from the first on.
pub(crate) fn held_sales(conn: &Connection, after: Option<Uuid>) -> Result<HeldSales, TillError> {
    let rows = sales::held(conn, after, HELD_MAX + 1)?;
    let (more, shown) = (rows.len() > HELD_MAX as usize, rows.iter().take(HELD_MAX as usize));
    Ok(HeldSales { sales: shown.map(|sale| sale::show(conn, sale)).collect::<Result<_, _>>()?, more })
}
