//! What stands on a receipt: figures and names, in no language and no form yet.

use super::slip::{SlipLeg, slip_leg};
use crate::{ReturnLeg, Sale, SaleLine, Settings, Tender, TenderKind, TenderState, Unit};
use jiff::tz::TimeZone;
use protocol::Currency;

/// All that a receipt says. Amounts in minor units of its currency.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) shop: String,
    pub(crate) till: String,
    /// Date and time by the shop's clock.
    pub(crate) at: String,
    pub(crate) sale_number: Option<i64>,
    /// None while the sale is not paid.
    pub(crate) receipt_number: Option<i64>,
    /// Which copy of a receipt that was printed before; none for the first print.
    pub(crate) copy: Option<u32>,
    pub(crate) currency: Currency,
    pub(crate) lines: Vec<ContentLine>,
    /// The discount on the sale, beside those of its lines.
    pub(crate) discount: i64,
    pub(crate) tip: i64,
    pub(crate) total: i64,
    pub(crate) rounding: i64,
    pub(crate) due: i64,
    /// Rate, net and tax of each rate.
    pub(crate) taxes: Vec<(String, i64, i64)>,
    pub(crate) tenders: Vec<ContentTender>,
    /// Money alone that went back to cards or is on its way; below zero.
    pub(crate) money_back: Vec<SlipLeg>,
}

#[derive(Debug, Clone)]
pub(crate) struct ContentLine {
    pub(crate) name: String,
    pub(crate) quantity: String,
    pub(crate) unit: Unit,
    pub(crate) unit_price: i64,
    pub(crate) gross: i64,
    /// Its own, and not its share of the sale's.
    pub(crate) discount: i64,
    /// What the cashier noted.
    pub(crate) note: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct ContentTender {
    pub(crate) amount: i64,
    pub(crate) state: TenderState,
    pub(crate) how: HowPaid,
}

#[derive(Debug, Clone)]
pub(crate) enum HowPaid {
    Cash {
        tendered: i64,
        change: i64,
    },
    Card {
        /// Brand and last four digits, where the bank said them.
        card: Option<(String, String)>,
        short_code: Option<String>,
        /// What the bank was given for it.
        reference: Option<String>,
        /// The bank's id of it.
        bank_reference: Option<String>,
        approval_code: Option<String>,
        accepted_offline: bool,
    },
}

impl Content {
    pub(crate) fn of(sale: &Sale, settings: &Settings, zone: TimeZone) -> Self {
        let at = sale.completed_at.unwrap_or(sale.created_at).to_zoned_datetime(zone);
        Self {
            shop: settings.shop_name.clone(),
            till: settings.till_name.clone(),
            at: at.strftime("%Y-%m-%d %H:%M").to_string(),
            sale_number: sale.number,
            receipt_number: sale.receipt_number,
            copy: None,
            currency: sale.currency,
            lines: sale.lines.iter().map(line).collect(),
            discount: sale.discount,
            tip: sale.tip,
            total: sale.total,
            rounding: sale.rounding,
            due: sale.due,
            taxes: sale.taxes.iter().map(|tax| (tax.rate.clone(), tax.net, tax.tax)).collect(),
            tenders: sale.tenders.iter().map(tender).collect(),
            money_back: sale.money_back.iter().map(|leg| money_back(sale, leg)).collect(),
        }
    }

    /// What the lines come to, before what is taken off and added for the sale as a whole.
    pub(crate) fn subtotal(&self) -> i64 {
        self.lines.iter().map(|line| line.gross - line.discount).sum()
    }

    /// The tax that comes on top of the prices; 0 where they have it in them.
    pub(crate) fn added_tax(&self) -> i64 {
        self.total - self.tip - (self.subtotal() - self.discount)
    }

    /// Whether its print opens the drawer: where cash was taken, the first time.
    pub(crate) fn opens_drawer(&self) -> bool {
        let is_cash = |tender: &ContentTender| matches!(tender.how, HowPaid::Cash { .. });
        self.copy.is_none() && self.receipt_number.is_some() && self.tenders.iter().any(is_cash)
    }
}

fn money_back(sale: &Sale, leg: &ReturnLeg) -> SlipLeg {
    let paid = sale.tenders.iter().find(|tender| Some(tender.id) == leg.tender_id);
    let leg = slip_leg(leg, paid.and_then(|tender| tender.operation.as_ref()));
    SlipLeg { amount: -leg.amount, ..leg }
}

fn line(line: &SaleLine) -> ContentLine {
    ContentLine {
        name: line.name.clone(),
        quantity: line.quantity.clone(),
        unit: line.unit,
        unit_price: line.unit_price,
        gross: line.gross,
        discount: line.discount - line.sale_discount,
        note: line.note.clone(),
    }
}

pub(super) fn tender(tender: &Tender) -> ContentTender {
    let how = match tender.kind {
        TenderKind::Cash => HowPaid::Cash {
            tendered: tender.tendered.unwrap_or(tender.amount),
            change: tender.change.unwrap_or_default(),
        },
        TenderKind::Card => {
            let operation = tender.operation.as_ref();
            HowPaid::Card {
                card: operation.and_then(|operation| operation.card_brand.clone().zip(operation.last4.clone())),
                short_code: operation.map(|operation| operation.short_code.clone()),
                reference: operation.and_then(|operation| operation.reference.clone()),
                bank_reference: operation.and_then(|operation| operation.bank_reference.clone()),
                approval_code: operation.and_then(|operation| operation.approval_code.clone()),
                accepted_offline: tender.taken_offline_at.is_some(),
            }
        }
    };
    ContentTender { amount: tender.amount, state: tender.state, how }
}
