//! The slip of a return: what came back, what is given back for it, and how far that is.

use super::{
    document::{INDENT, Piece, numbered_copy, pair, taxes, text},
    words::{Language, Words},
};
use crate::{LegState, Operation, Return, ReturnLeg, Settings, TenderKind, Unit, amounts::format_amount};
use jiff::tz::TimeZone;
use protocol::Currency;

/// All that a slip says. Amounts in minor units of its currency, given back where they are above zero.
#[derive(Debug, Clone)]
pub(crate) struct Slip {
    pub(crate) shop: String,
    pub(crate) till: String,
    /// Date and time by the shop's clock.
    pub(crate) at: String,
    pub(crate) receipt_number: i64,
    pub(crate) sale_number: Option<i64>,
    pub(crate) sale_receipt_number: Option<i64>,
    /// Which copy of a slip that was printed before; none for the first print.
    pub(crate) copy: Option<u32>,
    pub(crate) currency: Currency,
    pub(crate) lines: Vec<SlipLine>,
    pub(crate) tip: i64,
    pub(crate) total: i64,
    /// What of that goes back to nobody, as it was never paid.
    pub(crate) waived: i64,
    /// What of it went back before, as money alone.
    pub(crate) refunded_before: i64,
    pub(crate) rounding: i64,
    /// Rate, net and tax of each rate.
    pub(crate) taxes: Vec<(String, i64, i64)>,
    pub(crate) legs: Vec<SlipLeg>,
}

#[derive(Debug, Clone)]
pub(crate) struct SlipLine {
    pub(crate) name: String,
    pub(crate) quantity: String,
    pub(crate) unit: Unit,
    pub(crate) amount: i64,
}

#[derive(Debug, Clone)]
pub(crate) struct SlipLeg {
    pub(crate) amount: i64,
    pub(crate) state: LegState,
    /// None in cash.
    pub(crate) card: Option<SlipCard>,
}

#[derive(Debug, Clone)]
pub(crate) struct SlipCard {
    /// Brand and last four digits, where the bank said them.
    pub(crate) card: Option<(String, String)>,
    pub(crate) short_code: Option<String>,
    /// The bank's id of the refund.
    pub(crate) bank_reference: Option<String>,
}

impl Slip {
    /// `paid` is what the legs' cards are called: the operation of the tender that each gives back.
    pub(crate) fn of(
        made: &Return,
        settings: &Settings,
        zone: TimeZone,
        paid: impl Fn(&ReturnLeg) -> Option<Operation>,
    ) -> Self {
        let at = made.created_at.to_zoned_datetime(zone);
        Self {
            shop: settings.shop_name.clone(),
            till: settings.till_name.clone(),
            at: at.strftime("%Y-%m-%d %H:%M").to_string(),
            receipt_number: made.receipt_number,
            sale_number: made.sale_number,
            sale_receipt_number: made.sale_receipt_number,
            copy: None,
            currency: made.currency,
            lines: made
                .lines
                .iter()
                .map(|line| SlipLine {
                    name: line.name.clone(),
                    quantity: line.quantity.clone(),
                    unit: line.unit,
                    amount: line.amount,
                })
                .collect(),
            tip: made.tip,
            total: made.total,
            waived: made.waived,
            refunded_before: made.refunded_before,
            // Of a leg that was paid out too.
            rounding: made.legs.iter().map(|leg| leg.rounding).sum(),
            taxes: made.taxes.iter().map(|tax| (tax.rate.clone(), tax.net, tax.tax)).collect(),
            legs: made.legs.iter().map(|leg| slip_leg(leg, paid(leg).as_ref())).collect(),
        }
    }

    /// The tax that comes on top of the prices; 0 where they have it in them.
    fn added_tax(&self) -> i64 {
        self.total - self.tip - self.lines.iter().map(|line| line.amount).sum::<i64>()
    }

    /// Whether its print opens the drawer: where cash is handed over, the first time.
    pub(crate) fn opens_drawer(&self) -> bool {
        self.copy.is_none() && self.legs.iter().any(|leg| leg.card.is_none() && leg.amount > 0)
    }

    /// What it is called.
    pub(super) fn title(&self, language: Language) -> String {
        format!("{} {}", language.words().refund, self.receipt_number)
    }

    /// Its pieces.
    pub(super) fn pieces(&self, language: Language) -> Vec<Piece> {
        let words = language.words();
        let amount = |minor_units| format_amount(minor_units, self.currency);
        let numbered =
            |word: &str, number: Option<i64>| number.map(|number| format!("{word} {number}")).unwrap_or_default();
        let mut pieces = vec![Piece::Centred { text: self.shop.clone(), is_bold: true }, Piece::Gap];
        pieces.extend(numbered_copy(self.copy, words));
        pieces.push(Piece::Pair { left: self.title(language), right: self.at.clone(), indent: 0, is_bold: true });
        pieces.push(pair(self.till.clone(), numbered(words.sale, self.sale_number), 0));
        pieces.push(text(numbered(words.of_receipt, self.sale_receipt_number), 0));
        pieces.push(Piece::Rule);
        for line in &self.lines {
            let unit = match line.unit {
                Unit::Piece => String::new(),
                Unit::Weight => format!(" {}", words.kilogram),
            };
            pieces.push(text(line.name.clone(), 0));
            pieces.push(pair(format!("{}{unit} ×", line.quantity), amount(line.amount), INDENT));
        }
        pieces.push(Piece::Rule);
        for (word, figure) in [(words.tax, self.added_tax()), (words.tip, self.tip)] {
            if figure != 0 {
                pieces.push(pair(word, amount(figure), 0));
            }
        }
        let less = [(words.waived, self.waived), (words.refunded_before, self.refunded_before)];
        if less.iter().any(|(_, figure)| *figure != 0) {
            pieces.push(pair(words.total, amount(self.total), 0));
        }
        for (word, figure) in less.into_iter().filter(|(_, figure)| *figure != 0) {
            pieces.push(pair(word, amount(-figure), 0));
        }
        let left = format!("{} {}", words.given_back, self.currency);
        pieces.push(Piece::Pair {
            left,
            right: amount(self.total - self.waived - self.refunded_before),
            indent: 0,
            is_bold: true,
        });
        if self.rounding != 0 {
            pieces.push(pair(words.rounding, amount(self.rounding), 0));
        }
        for leg in &self.legs {
            write_leg(leg, self.currency, words, &mut pieces);
        }
        pieces.push(Piece::Rule);
        pieces.push(taxes(&self.taxes, self.currency, words));
        pieces.extend(numbered_copy(self.copy, words));
        pieces
    }
}

pub(super) fn slip_leg(leg: &ReturnLeg, paid: Option<&Operation>) -> SlipLeg {
    let card = (leg.kind == TenderKind::Card).then(|| SlipCard {
        card: paid.and_then(|paid| paid.card_brand.clone().zip(paid.last4.clone())),
        short_code: leg.operation.as_ref().map(|operation| operation.short_code.clone()),
        bank_reference: leg.operation.as_ref().and_then(|operation| operation.bank_reference.clone()),
    });
    SlipLeg { amount: leg.amount, state: leg.state, card }
}

pub(super) fn write_leg(leg: &SlipLeg, currency: Currency, words: &Words, pieces: &mut Vec<Piece>) {
    let amount = format_amount(leg.amount, currency);
    let Some(SlipCard { card, short_code, bank_reference }) = &leg.card else {
        pieces.push(pair(words.cash, amount, 0));
        return;
    };
    let name = card
        .as_ref()
        .map_or_else(|| words.card.to_owned(), |(brand, last4)| format!("{} {brand} ··{last4}", words.card));
    let (counts, state) = match leg.state {
        LegState::Settling => (true, words.waiting),
        LegState::Approved | LegState::HandedOver => (true, words.approved),
        LegState::NeedsAttention => (true, words.attention),
        LegState::Owed => (true, words.owed),
        LegState::Replaced => (false, words.replaced),
        LegState::Void => (false, words.void),
    };
    // What does not go that way stands in no column that adds up.
    pieces.push(if counts { pair(name, amount, 0) } else { text(format!("{name}: {amount}"), 0) });
    let is_bold = leg.state == LegState::Owed;
    pieces.push(Piece::Text { text: state.to_owned(), indent: INDENT, is_bold });
    if let Some(short_code) = short_code {
        pieces.push(text(format!("{} {short_code}", words.refund), INDENT));
    }
    if let Some(id) = bank_reference {
        pieces.push(text(format!("{} {id}", words.bank), INDENT));
    }
}
