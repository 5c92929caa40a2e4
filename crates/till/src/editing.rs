//! Prices, notes, discounts and tips of the sale in front. What a cashier gives away goes through one place, [`concede`].

use crate::{
    Asked, Measure, Right, Sale, TillError, Unit,
    amounts::format_amount,
    audit,
    audit::Signature,
    cart,
    catalogue::Offer,
    given,
    given::OffSale,
    lines,
    lines::LineRow,
    rights,
    rights::{Asking, Deed},
    sale, sales,
    sales::SaleRow,
    undo,
    undo::Before,
};
use checkout::{Cart, Line, Quantity, Rate};
use protocol::{Currency, holds_card_number, is_unseen};
use rusqlite::Connection;
use serde_json::{Value, json};
use uuid::Uuid;

/// The highest price of one piece or kilogram, in minor units: as much as one payment can be.
pub(crate) const PRICE_MAX: i64 = 99_999_999;
/// Characters of a reason at most.
pub(crate) const REASON_CHARS_MAX: usize = 200;
/// Characters of a note at most.
const NOTE_CHARS_MAX: usize = 200;

/// A change by which less, or more, is to be paid than the catalogue says.
struct Concession<'a> {
    what: &'static str,
    sale: &'a SaleRow,
    /// What would be paid without it, in minor units.
    list: i64,
    /// What is left to pay with it.
    left: i64,
    /// For the audit: what it is on, before and after.
    details: Value,
    /// What it needs; nothing to take a change away.
    needs: Option<(Right, Measure)>,
    /// The lines of the sale before and after it, and the sale after it.
    lines: (&'a [LineRow], &'a [LineRow]),
    after: &'a SaleRow,
}

/// What a discount needs: a part is held against the limit in percent, an amount against that in minor units.
pub(crate) fn discount_needs(discount: Option<Asked>) -> Option<(Right, Measure)> {
    discount.map(|asked| match asked {
        Asked::Percent(rate) => (Right::Discount, Measure::Percent(rate.thousandths())),
        Asked::Amount(amount) => (Right::Discount, Measure::Amount(amount)),
    })
}

/// Lets somebody give something away who may, and writes into the audit who did and who approved.
fn concede(tx: &Connection, signature: &Signature, concession: Concession<'_>) -> Result<(), TillError> {
    let Concession { what, sale, list, left, mut details, needs, lines: (before, lines), after } = concession;
    let signature = &match needs {
        Some(needs @ (Right::Discount, _)) => {
            let (had, all) = (OffSale::of(sale, before)?.off, OffSale::of(after, lines)?);
            let deed = Deed::of(needs, sale.currency);
            // Less than before is nothing that somebody would have to be asked for once more.
            let asked: [&dyn Asking; 2] = [&deed, &all];
            let asked = if all.off > had { &asked[..] } else { &asked[..1] };
            let signed = rights::allow_all(tx, signature, Right::Discount, asked)?;
            given::keep(tx, &signed, sale, Right::Discount, all.off)?;
            signed
        }
        Some((right, measure)) => {
            let signed = rights::allow(tx, signature, right, measure)?;
            given::keep(tx, &signed, sale, right, given::off_prices(after, lines)?)?;
            signed
        }
        None => signature.clone(),
    };
    details["list"] = list.into();
    details["left"] = left.into();
    audit::append(tx, signature, what, Some(sale.id), &details)
}

pub(crate) fn checked_price(price: i64, currency: Currency) -> Result<i64, TillError> {
    if (0..=PRICE_MAX).contains(&price) {
        return Ok(price);
    }
    let [least, most] = [0, PRICE_MAX].map(|price| format_amount(price, currency));
    Err(TillError::InvalidPrice(format!("the price must be from {least} to {most}")))
}

/// What so much of something costs by itself.
pub(crate) fn gross(sale: &SaleRow, unit_price: i64, quantity: Quantity) -> Result<i64, TillError> {
    gross_in(sale.currency, unit_price, quantity)
}

/// The same in a currency.
pub(crate) fn gross_in(currency: Currency, unit_price: i64, quantity: Quantity) -> Result<i64, TillError> {
    let line = Line { unit_price, quantity, tax_rate: Rate::ZERO, discount: None };
    let currency = sale::engine_currency(currency).map_err(sale::broken)?;
    let priced = checkout::price(&Cart { lines: vec![line], ..Cart::new(currency) }).map_err(too_much)?;
    Ok(priced.lines.first().map_or(0, |line| line.gross))
}

/// A line by the list, and after all that was taken off it alone.
fn list_and_left(sale: &SaleRow, line: &LineRow) -> Result<(i64, i64), TillError> {
    let list = gross(sale, line.list_price.unwrap_or(line.unit_price), line.quantity)?;
    let alone = SaleRow { terms: Default::default(), ..sale.clone() };
    let priced = sale::price(&alone, std::slice::from_ref(line)).map_err(too_much)?;
    Ok((list, priced.lines.first().map_or(0, |line| line.total)))
}

pub(crate) fn too_much(error: checkout::PriceError) -> TillError {
    TillError::InvalidPrice(format!("this is more than one sale can hold: {error}"))
}

/// The weight of an article that costs just this, where there is one in whole grams.
pub(crate) fn quantity_that_costs(sale: &SaleRow, offer: &Offer, cost: i64) -> Result<Option<Quantity>, TillError> {
    if offer.unit == Unit::Piece || offer.price <= 0 {
        return Ok(None);
    }
    // Near enough: rounding moves the cost of a gram by half a minor unit at most.
    let near = i128::from(cost) * 1_000 / i128::from(offer.price);
    for thousandths in (near - 1).max(1)..=near + 1 {
        let thousandths = i64::try_from(thousandths).map_err(|error| TillError::Internal(error.to_string()))?;
        let quantity =
            Quantity::from_thousandths(thousandths).map_err(|error| TillError::Internal(error.to_string()))?;
        if gross(sale, offer.price, quantity)? == cost {
            return Ok(Some(quantity));
        }
    }
    Ok(None)
}

/// Sets another price of a line; that of the list again takes the change away.
pub(crate) fn set_price(tx: &Connection, signature: &Signature, line_id: i64, price: i64) -> Result<Sale, TillError> {
    let (line, sale) = cart::line_for_change(tx, line_id)?;
    let price = checked_price(price, sale.currency)?;
    if price == line.unit_price {
        return cart::changed(tx, signature, &sale);
    }
    let list_price = line.list_price.unwrap_or(line.unit_price);
    let after = LineRow { unit_price: price, list_price: (price != list_price).then_some(list_price), ..line.clone() };
    let details = json!({"sku": line.sku, "before": line.unit_price, "after": price, "list_price": list_price});
    let needs = after.list_price.map(|_| (Right::PriceOverride, Measure::Whole));
    change_line(tx, signature, &sale, "price-changed", (&line, &after), (details, needs))
}

/// Takes something off a line, or nothing any more.
pub(crate) fn discount_line(
    tx: &Connection,
    signature: &Signature,
    line_id: i64,
    asked: Option<Asked>,
) -> Result<Sale, TillError> {
    let (line, sale) = cart::line_for_change(tx, line_id)?;
    let discount = asked.map(|asked| asked.checked(sale.currency)).transpose()?.flatten();
    if discount == line.discount {
        return cart::changed(tx, signature, &sale);
    }
    let after = LineRow { discount, ..line.clone() };
    let details = json!({"sku": line.sku, "before": line.discount, "after": discount});
    let needs = discount_needs(discount);
    change_line(tx, signature, &sale, "line-discounted", (&line, &after), (details, needs))
}

fn change_line(
    tx: &Connection,
    signature: &Signature,
    sale: &SaleRow,
    what: &'static str,
    (before, after): (&LineRow, &LineRow),
    (details, needs): (Value, Option<(Right, Measure)>),
) -> Result<Sale, TillError> {
    let (list, left) = list_and_left(sale, after)?;
    let (was, is) = (lines::of_sale(tx, sale.id)?, given::with(tx, sale, after)?);
    let lines = (was.as_slice(), is.as_slice());
    concede(tx, signature, Concession { what, sale, list, left, details, needs, lines, after: sale })?;
    undo::remember(tx, sale.id, what, &Before::of_line(before))?;
    lines::write(tx, sale.id, after)?;
    cart::changed(tx, signature, sale)
}

/// Takes something off the sale, or nothing any more.
pub(crate) fn discount_sale(
    tx: &Connection,
    signature: &Signature,
    sale_id: Uuid,
    asked: Option<Asked>,
) -> Result<Sale, TillError> {
    let sale = cart::in_front_for_change(tx, sale_id)?;
    let discount = asked.map(|asked| asked.checked(sale.currency)).transpose()?.flatten();
    let before = sale.terms.discount;
    if discount == before {
        return cart::changed(tx, signature, &sale);
    }
    let mut after = sale.clone();
    after.terms.discount = discount;
    let line_rows = lines::of_sale(tx, sale_id)?;
    let priced = sale::price(&after, &line_rows).map_err(too_much)?;
    let left = priced.lines.iter().map(|line| line.total).sum::<i64>();
    let list = left + priced.discount;
    let details = json!({"before": before, "after": discount});
    let needs = discount_needs(discount);
    let lines = (line_rows.as_slice(), line_rows.as_slice());
    let what = "sale-discounted";
    concede(tx, signature, Concession { what, sale: &sale, list, left, details, needs, lines, after: &after })?;
    undo::remember(tx, sale_id, "sale-discounted", &Before::of_terms(&sale))?;
    sales::set_terms(tx, sale_id, after.terms)?;
    cart::changed(tx, signature, &sale)
}

/// Sets the tip, or takes it away.
pub(crate) fn set_tip(
    tx: &Connection,
    signature: &Signature,
    sale_id: Uuid,
    asked: Option<Asked>,
) -> Result<Sale, TillError> {
    let sale = cart::in_front_for_change(tx, sale_id)?;
    let mut terms = sale.terms;
    terms.tip = asked.map(|asked| asked.checked(sale.currency)).transpose()?.flatten();
    if terms != sale.terms {
        undo::remember(tx, sale_id, "tip-changed", &Before::of_terms(&sale))?;
        sales::set_terms(tx, sale_id, terms)?;
        let details = json!({"before": sale.terms.tip, "after": terms.tip});
        audit::append(tx, signature, "tip-changed", Some(sale_id), &details)?;
    }
    cart::changed(tx, signature, &sale)
}

/// Notes something on a line; an empty note takes it away.
pub(crate) fn set_note(tx: &Connection, signature: &Signature, line_id: i64, note: &str) -> Result<Sale, TillError> {
    let (line, sale) = cart::line_for_change(tx, line_id)?;
    let note = checked_text(note, "note", NOTE_CHARS_MAX)?;
    if note != line.note {
        undo::remember(tx, sale.id, "note-changed", &Before::of_line(&line))?;
        lines::write(tx, sale.id, &LineRow { note, ..line })?;
    }
    cart::changed(tx, signature, &sale)
}

/// A reason, where there must be one.
pub(crate) fn needed_reason(text: &str) -> Result<String, TillError> {
    let none = TillError::InvalidReason("say why, in 1 to 200 characters on one line");
    checked_text(text, "reason", REASON_CHARS_MAX)?.ok_or(none)
}

/// A text that somebody typed, on one line; none where it is empty. It may stand on a receipt and is kept for ever.
pub(crate) fn checked_text(text: &str, what: &str, chars_max: usize) -> Result<Option<String>, TillError> {
    let text = text.trim();
    let wrong = |must: String| Err(TillError::InvalidText(format!("the {what} must {must}")));
    if text.contains(is_unseen) {
        return wrong("be on one line, and hold nothing that is not seen".to_owned());
    }
    if text.chars().count() > chars_max {
        return wrong(format!("have at most {chars_max} characters"));
    }
    if holds_card_number(text) {
        return wrong("not hold the number of a card: no such number is ever stored".to_owned());
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}
