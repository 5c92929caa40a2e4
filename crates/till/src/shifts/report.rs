//! The report of a shift: X while it runs, Z at its end. Made of what is in the file and of nothing else, so that it agrees with the sum over
//! the sales of the shift.

use super::{
    Shift,
    drawer::CountMade,
    removed::{self, RemovedFigures},
    sums,
};
use crate::{
    LateFigures, ReturnFigures, State, TenderKind, TillError, VoidFigures, audit, audit::Signature, late, returns,
    settings, span::Span, voids,
};
use jiff::{Timestamp, civil::Date};
use protocol::{Currency, Key, Kind};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

/// Entries of the audit that tell of a sale that was dropped, or emptied.
const DROPS: [&str; 3] = ["sale-cleared", "sale-dropped", "sale-emptied"];
/// Of a drawer that was opened without a sale.
const NO_SALES: [&str; 1] = ["drawer-opened"];

/// Which report it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ReportKind {
    /// Of a shift that runs.
    X,
    /// Of a shift that was closed: kept whole, and never changed.
    Z,
}

/// The report of a shift. Amounts are minor units of its currency, sums are over the sales that completed in it: what comes back, or is
/// not paid after all, stands beside them in the shift in which that happens. What older programs did not tell apart is none in their
/// reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShiftReport {
    /// X or Z.
    pub kind: ReportKind,
    /// The number of the shift, and so of its Z report.
    pub number: i64,
    /// The shop's name at that time.
    pub shop_name: String,
    /// The till's name at that time.
    pub till_name: String,
    /// The currency of every amount, but where another is named.
    pub currency: Currency,
    /// The day that the shift counts for.
    pub business_day: Date,
    /// The IANA name of the shop's zone; none for the machine's.
    pub time_zone: Option<String>,
    /// When the shift was opened.
    pub opened_at: Timestamp,
    /// Who opened it.
    pub opened_by: String,
    /// When this report was made: for a Z report, when the shift was closed.
    pub made_at: Timestamp,
    /// Who made it.
    pub made_by: String,
    /// Sales that completed.
    pub sales: i64,
    /// Their goods without tax.
    pub net: i64,
    /// Their tax.
    pub tax: i64,
    /// Their tips.
    pub tips: i64,
    /// What they came to.
    pub total: i64,
    /// What cash rounding added, or with a minus took away. Total and rounding are what the tenders paid.
    pub rounding: i64,
    /// What paid, by its kind, when the sales completed: what was accepted offline is among it.
    pub tenders: Vec<TenderTotal>,
    /// What of it was accepted offline and had no final result when the report was made.
    #[serde(default)]
    pub offline_unsettled: Total,
    /// The tax, lowest rate first.
    pub taxes: Vec<TaxTotal>,
    /// What was taken off lines.
    pub line_discounts: i64,
    /// What was taken off whole sales.
    pub sale_discounts: i64,
    /// What came back in this shift, of whichever shift's sales. It is in no sum above.
    #[serde(default)]
    pub returns: ReturnFigures,
    /// Sales that were given up in this shift after a part was paid: they are in no sum of sales, what was paid in cash went through the
    /// drawer.
    #[serde(default)]
    pub voids: VoidFigures,
    /// Refunds to cards that the bank approved in this shift, of whichever shift's returns.
    pub card_refunds: Total,
    /// What went out of the drawer for refunds.
    pub cash_refunds: Total,
    /// What the bank approved of cards in this shift, and how that hangs together with the cards of its sales.
    #[serde(default)]
    pub cards: Cards,
    /// Sales that were partly paid when the report was made, of this shift and of earlier ones.
    #[serde(default)]
    pub partly_paid: Vec<PartlyPaid>,
    /// What was declined in this shift after its goods were gone, collected and written off in it, and what of all shifts is still open.
    #[serde(default)]
    pub late: LateFigures,
    /// The drawer.
    pub drawer: Drawer,
    /// Sales that were dropped or emptied.
    pub drops: i64,
    /// What went out of carts without being paid.
    #[serde(default)]
    pub removed: RemovedFigures,
    /// Lines sold at another price than the catalogue's.
    pub overrides: i64,
    /// How often the drawer was opened without a sale.
    pub no_sales: i64,
    /// Sales in other currencies, which are in no sum above.
    pub other_currencies: Vec<OtherCurrency>,
    /// What had no final result when the report was made, of this shift and of earlier ones. It goes on by itself.
    pub unsettled: Vec<Unsettled>,
    /// The last entry of the audit before the report.
    pub audit_seq: i64,
    /// Its hash: on paper, it shows an audit that was made anew.
    pub audit_hash: String,
}

/// How many, and what together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// How many.
    pub count: i64,
    /// In minor units.
    pub amount: i64,
}

/// What one kind of tender paid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenderTotal {
    /// Its kind.
    pub kind: TenderKind,
    /// How many there were.
    pub count: i64,
    /// What stayed of them.
    pub amount: i64,
}

/// One rate of the tax table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaxTotal {
    /// Percent, as the shortest decimal.
    pub rate: String,
    /// Goods of this rate without tax.
    pub net: i64,
    /// Their tax.
    pub tax: i64,
}

/// The cards of a shift, in minor units of its currency. What its sales were paid, less what of that the bank did not approve in it, and
/// with what it approved for other sales, is what the bank has of the shift, before refunds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cards {
    /// Cards of the sales that completed in this shift.
    pub of_sales: i64,
    /// Of these, what was approved in earlier shifts.
    pub of_earlier_shifts: i64,
    /// Of these, what was accepted offline and is not approved.
    pub not_approved: i64,
    /// Approved in this shift, for sales that are not completed.
    pub of_open_sales: i64,
    /// Approved in this shift, for sales that were given up.
    pub of_voided_sales: i64,
    /// Approved in this shift, for sales that completed in earlier ones: they were accepted offline.
    pub offline_of_earlier_shifts: i64,
    /// Approved in this shift in the place of what was declined after its goods were gone.
    pub collected: i64,
    /// All that the bank approved in this shift.
    pub approved: Total,
}

/// A sale of which a part is paid. Amounts in minor units of its currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartlyPaid {
    /// Its number.
    pub sale_number: i64,
    /// What of it is approved or taken in cash.
    pub paid: i64,
    /// What it comes to.
    pub total: i64,
    /// Its currency.
    pub currency: Currency,
}

/// The drawer of a shift, in minor units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Drawer {
    /// What it began with.
    pub float_amount: i64,
    /// Cash of the sales that completed in this shift.
    pub cash_of_sales: i64,
    /// Cash that was taken in this shift for sales that did not complete in it: their card was still open.
    pub cash_of_open_sales: i64,
    /// Of the cash of this shift's sales, what was taken in earlier shifts and lies in their drawers.
    pub cash_of_earlier_shifts: i64,
    /// Cash that collected what was declined after its goods were gone.
    #[serde(default)]
    pub cash_collected: i64,
    /// What was put in.
    pub cash_in: i64,
    /// What was taken out.
    pub cash_out: i64,
    /// What was given back.
    pub cash_refunds: i64,
    /// What it should hold: float, cash of sales and of open ones, less that of earlier shifts, with what was collected, put in, taken out and
    /// given back.
    pub expected: i64,
    /// What was counted last; none while the shift runs.
    pub counted: Option<i64>,
    /// What was too much, or with a minus missing.
    pub difference: Option<i64>,
    /// How often it was counted.
    pub counts: i64,
    /// Each of these counts, the first one first: who counts again once the difference was told makes it go away, and it shows here.
    #[serde(default)]
    pub each_count: Vec<CountMade>,
}

/// Sales in another currency than the shift's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherCurrency {
    /// The currency.
    pub currency: Currency,
    /// How many.
    pub sales: i64,
    /// What they came to, in its minor units.
    pub total: i64,
    /// What came back.
    #[serde(default)]
    pub returned: i64,
    /// What was given back of sales that were given up.
    #[serde(default)]
    pub voided: i64,
}

/// An operation without a final result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unsettled {
    /// Its key.
    pub key: Key,
    /// The key's short form.
    pub short_code: String,
    /// Payment or refund.
    pub kind: Kind,
    /// How far it is.
    pub state: State,
    /// In minor units of its currency.
    pub amount: i64,
    /// Its currency.
    pub currency: Currency,
    /// Its goods were handed over before the bank answered.
    #[serde(default)]
    pub accepted_offline: bool,
    /// The number of its sale.
    pub sale_number: Option<i64>,
    /// When it was clicked.
    pub created_at: Timestamp,
}

/// Makes the report of a shift as it stands.
pub(super) fn make(
    conn: &Connection,
    shift: &Shift,
    signature: &Signature,
    kind: ReportKind,
) -> Result<ShiftReport, TillError> {
    let settings = settings::read(conn)?;
    let sold = sums::sums(conn, shift)?;
    let tenders = sums::tenders(conn, shift)?;
    let cash_of_sales = tenders.iter().filter(|sum| sum.kind == TenderKind::Cash).map(|sum| sum.amount).sum();
    let (line_discounts, sale_discounts) = sums::discounts(conn, shift)?;
    let drawer = sums::drawer(conn, shift, cash_of_sales)?;
    let entries = |what: &[&str]| sums::entries(conn, shift, what);
    let (audit_seq, audit_hash) = audit::head(conn)?;
    Ok(ShiftReport {
        kind,
        number: shift.number,
        shop_name: settings.shop_name.clone(),
        till_name: settings.till_name.clone(),
        currency: shift.currency,
        business_day: shift.business_day,
        time_zone: settings.time_zone,
        opened_at: shift.opened_at,
        opened_by: shift.opened_by.clone(),
        made_at: signature.at,
        made_by: signature.who().to_owned(),
        sales: sold.sales,
        net: sold.net,
        tax: sold.tax,
        tips: sold.tips,
        total: sold.total,
        rounding: sold.rounding,
        tenders,
        offline_unsettled: sums::offline_unsettled(conn, shift)?,
        taxes: sums::taxes(conn, shift)?,
        line_discounts,
        sale_discounts,
        returns: returns::of_span(conn, shift.currency, Span::Shift(shift.number))?,
        voids: voids::of_shift(conn, shift.currency, shift.number)?,
        card_refunds: sums::card_refunds(conn, shift)?,
        cash_refunds: sums::moved(conn, shift, "refund")?,
        cards: sums::cards(conn, shift)?,
        partly_paid: sums::partly_paid(conn)?,
        late: late::of_span(conn, shift.currency, Span::Shift(shift.number))?,
        drawer,
        drops: entries(&DROPS)?,
        removed: removed::of_shift(conn, shift)?,
        overrides: sums::overrides(conn, shift)?,
        no_sales: entries(&NO_SALES)?,
        other_currencies: sums::other_currencies(conn, shift)?,
        unsettled: sums::unsettled(conn)?,
        audit_seq,
        audit_hash: super::hex(&audit_hash),
    })
}
