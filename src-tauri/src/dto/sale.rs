//! A sale, its lines and its tenders.

use serde::{Deserialize, Serialize};
use specta::Type;
use till::TillError;

use super::{Minor, Operation, Seq, Unit, all};

/// A sale as it stands, every figure computed by the till.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sale {
    pub(crate) id: String,
    /// Its number at this till, from the first Pay on.
    pub(crate) number: Option<Seq>,
    pub(crate) state: SaleState,
    /// Whether it is out of the way: put aside, or completed and followed by another.
    pub(crate) held: bool,
    /// The name under which it was parked.
    pub(crate) name: Option<String>,
    pub(crate) lines: Vec<Line>,
    pub(crate) taxes: Vec<Tax>,
    pub(crate) net: Minor,
    pub(crate) tax: Minor,
    pub(crate) tip: Minor,
    pub(crate) tip_asked: Option<Asked>,
    /// The discount on the sale, beside those of its lines.
    pub(crate) discount: Minor,
    pub(crate) discount_asked: Option<Asked>,
    pub(crate) total: Minor,
    pub(crate) paid: Minor,
    /// What no tender covers yet. A card payment that is not settled covers its amount.
    pub(crate) due: Minor,
    /// What is not to be paid any more, of a payment that was taken offline and then declined.
    pub(crate) waived: Minor,
    /// What cash rounding added, or with a minus took away.
    pub(crate) rounding: Minor,
    pub(crate) currency: String,
    /// In the order in which they were begun, those that did not pay included.
    pub(crate) tenders: Vec<Tender>,
    pub(crate) receipt_number: Option<Seq>,
    /// What the next undo takes back: a word such as `line-removed`; none where there is nothing.
    pub(crate) undo: Option<String>,
    pub(crate) created_at: String,
    pub(crate) completed_at: Option<String>,
}

/// Where a sale stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SaleState {
    Open,
    /// Frozen: under payment.
    Paying,
    Completed,
    /// Given up before anything was paid.
    Dropped,
    /// Given up after a part was paid, which goes back.
    Voided,
}

/// One article of a sale.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line {
    pub(crate) id: String,
    /// From 1.
    pub(crate) position: u32,
    pub(crate) sku: String,
    pub(crate) name: String,
    pub(crate) unit: Unit,
    pub(crate) unit_price: Minor,
    /// Up to three decimals.
    pub(crate) quantity: String,
    pub(crate) gross: Minor,
    /// What was taken off: the line's own discount and its share of the sale's.
    pub(crate) discount: Minor,
    /// Its share of the sale's discount alone.
    pub(crate) sale_discount: Minor,
    pub(crate) discount_asked: Option<Asked>,
    pub(crate) total: Minor,
    /// Percent.
    pub(crate) tax_rate: String,
    pub(crate) origin: Origin,
    /// The price before a cashier set another.
    pub(crate) list_price: Option<Minor>,
    pub(crate) note: Option<String>,
}

/// How the price of a line came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Origin {
    /// From the catalogue.
    Article,
    /// It was asked for when the article was rung up.
    OpenPrice,
    /// From the label of a scale.
    Label,
}

/// A discount or a tip as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Asked {
    /// Percent, with up to three decimals.
    Percent(String),
    Amount(Minor),
}

/// What one tax rate comes to.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tax {
    /// Percent.
    pub(crate) rate: String,
    pub(crate) net: Minor,
    pub(crate) tax: Minor,
}

/// How a part of a sale is paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TenderKind {
    Card,
    Cash,
}

/// One way of paying a part of a sale.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tender {
    pub(crate) id: String,
    pub(crate) kind: TenderKind,
    pub(crate) amount: Minor,
    /// Cash handed over.
    pub(crate) tendered: Option<Minor>,
    /// Cash given back.
    pub(crate) change: Option<Minor>,
    pub(crate) state: TenderState,
    /// The declined or cancelled tender in whose place it was made.
    pub(crate) replaces: Option<String>,
    /// A card: when its goods were handed over before the bank had answered.
    pub(crate) taken_offline_at: Option<String>,
    pub(crate) operation: Option<Operation>,
}

/// Where a tender stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TenderState {
    /// Not yet final at the bank.
    Settling,
    Approved,
    Declined,
    Cancelled,
    NeedsAttention,
    /// Cash in the drawer.
    Taken,
}

impl From<till::Sale> for Sale {
    fn from(sale: till::Sale) -> Self {
        Self {
            id: sale.id.to_string(),
            number: sale.number.map(Seq),
            state: sale.state.into(),
            held: sale.held,
            name: sale.name,
            lines: all(sale.lines),
            taxes: all(sale.taxes),
            net: Minor(sale.net),
            tax: Minor(sale.tax),
            tip: Minor(sale.tip),
            tip_asked: sale.tip_asked.map(Asked::from),
            discount: Minor(sale.discount),
            discount_asked: sale.discount_asked.map(Asked::from),
            total: Minor(sale.total),
            paid: Minor(sale.paid),
            due: Minor(sale.due),
            waived: Minor(sale.waived),
            rounding: Minor(sale.rounding),
            currency: sale.currency.to_string(),
            tenders: all(sale.tenders),
            receipt_number: sale.receipt_number.map(Seq),
            undo: sale.undo,
            created_at: sale.created_at.to_string(),
            completed_at: sale.completed_at.map(|at| at.to_string()),
        }
    }
}

impl From<till::SaleState> for SaleState {
    fn from(state: till::SaleState) -> Self {
        match state {
            till::SaleState::Open => Self::Open,
            till::SaleState::Paying => Self::Paying,
            till::SaleState::Completed => Self::Completed,
            till::SaleState::Dropped => Self::Dropped,
            till::SaleState::Voided => Self::Voided,
        }
    }
}

impl From<till::SaleLine> for Line {
    fn from(line: till::SaleLine) -> Self {
        Self {
            id: line.id.to_string(),
            position: line.position,
            sku: line.sku,
            name: line.name,
            unit: line.unit.into(),
            unit_price: Minor(line.unit_price),
            quantity: line.quantity,
            gross: Minor(line.gross),
            discount: Minor(line.discount),
            sale_discount: Minor(line.sale_discount),
            discount_asked: line.discount_asked.map(Asked::from),
            total: Minor(line.total),
            tax_rate: line.tax_rate,
            origin: line.origin.into(),
            list_price: line.list_price.map(Minor),
            note: line.note,
        }
    }
}

impl From<till::Origin> for Origin {
    fn from(origin: till::Origin) -> Self {
        match origin {
            till::Origin::Article => Self::Article,
            till::Origin::OpenPrice => Self::OpenPrice,
            till::Origin::Label => Self::Label,
        }
    }
}

impl From<till::Asked> for Asked {
    fn from(asked: till::Asked) -> Self {
        match asked {
            till::Asked::Percent(rate) => Self::Percent(rate.to_string()),
            till::Asked::Amount(amount) => Self::Amount(Minor(amount)),
        }
    }
}

impl TryFrom<Asked> for till::Asked {
    type Error = TillError;

    fn try_from(asked: Asked) -> Result<Self, TillError> {
        match asked {
            Asked::Percent(text) => Self::percent(&text),
            Asked::Amount(Minor(amount)) => Ok(Self::Amount(amount)),
        }
    }
}

impl From<till::SaleTax> for Tax {
    fn from(tax: till::SaleTax) -> Self {
        Self { rate: tax.rate, net: Minor(tax.net), tax: Minor(tax.tax) }
    }
}

impl From<till::Tender> for Tender {
    fn from(tender: till::Tender) -> Self {
        Self {
            id: tender.id.to_string(),
            kind: tender.kind.into(),
            amount: Minor(tender.amount),
            tendered: tender.tendered.map(Minor),
            change: tender.change.map(Minor),
            state: tender.state.into(),
            replaces: tender.replaces.map(|id| id.to_string()),
            taken_offline_at: tender.taken_offline_at.map(|at| at.to_string()),
            operation: tender.operation.map(Operation::from),
        }
    }
}

impl From<till::TenderKind> for TenderKind {
    fn from(kind: till::TenderKind) -> Self {
        match kind {
            till::TenderKind::Card => Self::Card,
            till::TenderKind::Cash => Self::Cash,
        }
    }
}

impl From<till::TenderState> for TenderState {
    fn from(state: till::TenderState) -> Self {
        match state {
            till::TenderState::Settling => Self::Settling,
            till::TenderState::Approved => Self::Approved,
            till::TenderState::Declined => Self::Declined,
            till::TenderState::Cancelled => Self::Cancelled,
            till::TenderState::NeedsAttention => Self::NeedsAttention,
            till::TenderState::Taken => Self::Taken,
        }
    }
}
