//! Prices and errors as JSON.

use serde_json::{Value, json};

use crate::cart::Tender;
use crate::error::PriceError;
use crate::price::{Priced, PricedLine};
use crate::tax::TaxGroup;
use crate::tenders::PricedTender;

pub(super) fn document(priced: &Priced) -> Value {
    let Priced { lines, discount, taxes, net, tax, tip, total, balance } = priced;
    json!({
        "lines": lines.iter().map(line).collect::<Vec<_>>(),
        "discount": discount,
        "taxes": taxes.iter().map(tax_group).collect::<Vec<_>>(),
        "net": net,
        "tax": tax,
        "tip": tip,
        "total": total,
        "tenders": balance.tenders.iter().map(tender).collect::<Vec<_>>(),
        "rounding": balance.rounding,
        "change": balance.change,
        "drawer": balance.drawer,
        "rest": balance.rest,
    })
}

pub(super) fn error_document(error: &PriceError) -> Value {
    json!({ "error": { "code": error.code.as_str(), "message": error.message, "path": error.path } })
}

fn line(line: &PricedLine) -> Value {
    let PricedLine { gross, discount, sale_discount, total } = line;
    json!({ "gross": gross, "discount": discount, "sale_discount": sale_discount, "total": total })
}

fn tax_group(group: &TaxGroup) -> Value {
    json!({ "rate": group.rate.to_string(), "net": group.net, "tax": group.tax })
}

fn tender(priced: &PricedTender) -> Value {
    match priced.tender {
        Tender::Card { amount } => json!({ "kind": "card", "amount": amount }),
        Tender::Voucher { amount } => json!({ "kind": "voucher", "amount": amount }),
        Tender::Cash { tendered } => json!({ "kind": "cash", "tendered": tendered, "amount": priced.amount }),
    }
}
