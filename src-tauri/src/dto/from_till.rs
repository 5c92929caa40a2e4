//! From the till's own types to those of the window: the same figures and words, none of them computed here.

use super::{
    Article, ArticlePage, BegunTender, CashTaken, Category, Chip, CurrencyAmount, Line, Minor, Operation,
    OperationKind, OperationPage, OperationState, Receipt, Sale, SaleState, Seq, Summary, Tax, Tender, TenderKind,
    TenderState, TimelineEntry, Unit,
};

impl From<till::Category> for Category {
    fn from(category: till::Category) -> Self {
        let till::Category { id, name, colour, count } = category;
        Self { id, name, colour, count }
    }
}

impl From<till::Article> for Article {
    fn from(article: till::Article) -> Self {
        let till::Article { sku, name, price, category, colour, unit, favourite, tax_rate, open_price: _ } = article;
        Self { sku, name, price: Minor(price), category, colour, unit: unit.into(), favourite, tax_rate }
    }
}

impl From<till::Articles> for ArticlePage {
    fn from(found: till::Articles) -> Self {
        Self { articles: all(found.articles), more: found.more }
    }
}

impl From<till::Unit> for Unit {
    fn from(unit: till::Unit) -> Self {
        match unit {
            till::Unit::Piece => Self::Piece,
            till::Unit::Weight => Self::Weight,
        }
    }
}

impl From<till::Sale> for Sale {
    fn from(sale: till::Sale) -> Self {
        Self {
            id: sale.id.to_string(),
            state: sale.state.into(),
            lines: all(sale.lines),
            taxes: all(sale.taxes),
            net: Minor(sale.net),
            tax: Minor(sale.tax),
            discount: Minor(sale.discount),
            total: Minor(sale.total),
            paid: Minor(sale.paid),
            due: Minor(sale.due),
            currency: sale.currency.to_string(),
            tenders: all(sale.tenders),
            receipt_number: sale.receipt_number.map(Seq),
        }
    }
}

impl From<till::SaleState> for SaleState {
    fn from(state: till::SaleState) -> Self {
        match state {
            till::SaleState::Open => Self::Open,
            till::SaleState::Paying => Self::Paying,
            till::SaleState::Completed => Self::Completed,
            // None comes to the window: it is neither in front nor put aside. Closed is what it is.
            till::SaleState::Dropped | till::SaleState::Voided => Self::Completed,
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
            total: Minor(line.total),
            tax_rate: line.tax_rate,
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

impl From<till::TenderBegun> for BegunTender {
    fn from(begun: till::TenderBegun) -> Self {
        Self {
            tender_id: begun.tender_id.to_string(),
            due: Minor(begun.due),
            cash_due: Minor(begun.cash_due),
            cash_notes: begun.cash_notes.into_iter().map(Minor).collect(),
            rounding: Minor(begun.rounding),
        }
    }
}

impl From<till::CashTaken> for CashTaken {
    fn from(taken: till::CashTaken) -> Self {
        Self {
            sale: taken.sale.into(),
            change: Minor(taken.change),
            rounding: Minor(taken.rounding),
            drawer: Minor(taken.drawer),
        }
    }
}

impl From<till::Operation> for Operation {
    fn from(operation: till::Operation) -> Self {
        Self {
            seq: Seq(operation.seq),
            key: operation.key.to_string(),
            short_code: operation.short_code,
            kind: match operation.kind {
                protocol::Kind::Payment => OperationKind::Payment,
                protocol::Kind::Refund => OperationKind::Refund,
            },
            state: operation.state.into(),
            amount: Minor(operation.amount),
            currency: operation.currency.to_string(),
            attempts: operation.attempts,
            created_at: operation.created_at.to_string(),
            updated_at: operation.updated_at.to_string(),
            due_at: operation.due_at.map(|at| at.to_string()),
            not_before: operation.not_before.map(|at| at.to_string()),
            reason: operation.reason,
            sale_id: operation.sale_id.to_string(),
            receipt_number: operation.receipt_number.map(Seq),
            approval_code: operation.approval_code,
            decline_code: operation.decline_code,
            card_brand: operation.card_brand,
            last4: operation.last4,
            last_answer: operation.last_answer,
        }
    }
}

impl From<till::State> for OperationState {
    fn from(state: till::State) -> Self {
        match state {
            till::State::Saved => Self::Saved,
            till::State::Sending => Self::Sending,
            till::State::Unknown => Self::Unknown,
            till::State::Approved => Self::Approved,
            till::State::Declined => Self::Declined,
            till::State::Cancelled => Self::Cancelled,
            till::State::NeedsAttention => Self::NeedsAttention,
        }
    }
}

impl From<OperationState> for till::State {
    fn from(state: OperationState) -> Self {
        match state {
            OperationState::Saved => Self::Saved,
            OperationState::Sending => Self::Sending,
            OperationState::Unknown => Self::Unknown,
            OperationState::Approved => Self::Approved,
            OperationState::Declined => Self::Declined,
            OperationState::Cancelled => Self::Cancelled,
            OperationState::NeedsAttention => Self::NeedsAttention,
        }
    }
}

impl From<till::Operations> for OperationPage {
    fn from(found: till::Operations) -> Self {
        Self { operations: all(found.operations), more: found.more }
    }
}

impl From<till::TimelineEntry> for TimelineEntry {
    fn from(entry: till::TimelineEntry) -> Self {
        Self { at: entry.at.to_string(), attempt: entry.attempt, event: entry.event, detail: entry.detail }
    }
}

impl From<till::Summary> for Summary {
    fn from(summary: till::Summary) -> Self {
        Self {
            unsettled: summary.unsettled,
            sending: summary.sending,
            waiting: summary.waiting,
            amounts: all(summary.amounts),
            oldest_at: summary.oldest_at.map(|at| at.to_string()),
            needs_attention: summary.needs_attention,
            other_bank: summary.other_bank,
            paused: summary.paused,
            bank_reachable: summary.bank_reachable,
            bank_problem: summary.bank_problem,
            last_contact_at: summary.last_contact_at.map(|at| at.to_string()),
            next_attempt_at: summary.next_attempt_at.map(|at| at.to_string()),
            chip: match summary.chip {
                till::Chip::Ok => Chip::Ok,
                till::Chip::Busy => Chip::Busy,
                till::Chip::Waiting => Chip::Waiting,
                till::Chip::Paused => Chip::Paused,
                till::Chip::Attention => Chip::Attention,
            },
        }
    }
}

impl From<till::AmountOf> for CurrencyAmount {
    fn from(sum: till::AmountOf) -> Self {
        Self { currency: sum.currency.to_string(), amount: Minor(sum.amount) }
    }
}

impl From<till::Receipt> for Receipt {
    fn from(receipt: till::Receipt) -> Self {
        Self {
            sale_id: receipt.sale_id.to_string(),
            receipt_number: receipt.receipt_number.map(Seq),
            lines: receipt.lines,
            text: receipt.text,
        }
    }
}

/// Each of a list.
pub(crate) fn all<A, B: From<A>>(list: Vec<A>) -> Vec<B> {
    list.into_iter().map(B::from).collect()
}
