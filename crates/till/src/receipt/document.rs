//! A receipt as pieces in their order, in a language, for whatever it is written on.

use super::{
    content::{Content, ContentLine, ContentTender, HowPaid},
    slip::write_leg,
    words::{Language, Words},
};
use crate::{TenderState, Unit, amounts::format_amount};
use protocol::Currency;

/// A part of a receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// A text in the middle.
    Centred { text: String, is_bold: bool },
    /// A text from the left, so many places in.
    Text { text: String, indent: usize, is_bold: bool },
    /// A text at the left and a figure at the right, which is never broken.
    Pair { left: String, right: String, indent: usize, is_bold: bool },
    /// A line across.
    Rule,
    /// Nothing, a line high.
    Gap,
    /// The tax table: what each column is, and a row for each rate.
    Taxes { head: [String; 4], rows: Vec<[String; 4]> },
}

pub(super) fn text(text: impl Into<String>, indent: usize) -> Piece {
    Piece::Text { text: text.into(), indent, is_bold: false }
}

pub(super) fn pair(left: impl Into<String>, right: impl Into<String>, indent: usize) -> Piece {
    Piece::Pair { left: left.into(), right: right.into(), indent, is_bold: false }
}

/// How much further in stands what belongs to the line above.
pub(super) const INDENT: usize = 2;

/// What a receipt is called.
pub(super) fn title(content: &Content, language: Language) -> String {
    let words = language.words();
    content.receipt_number.map_or_else(|| words.not_paid.to_owned(), |number| format!("{} {number}", words.receipt))
}

/// The pieces of a receipt.
pub(super) fn pieces(content: &Content, language: Language) -> Vec<Piece> {
    let words = language.words();
    let mut pieces = vec![Piece::Centred { text: content.shop.clone(), is_bold: true }, Piece::Gap];
    pieces.extend(numbered_copy(content.copy, words));
    pieces.push(Piece::Pair {
        left: title(content, language),
        right: content.at.clone(),
        indent: 0,
        is_bold: content.receipt_number.is_none(),
    });
    let sale = content.sale_number.map(|number| format!("{} {number}", words.sale)).unwrap_or_default();
    pieces.extend([pair(content.till.clone(), sale, 0), Piece::Rule]);
    for line in &content.lines {
        write_line(line, content, words, &mut pieces);
    }
    pieces.push(Piece::Rule);
    write_sums(content, words, &mut pieces);
    for tender in &content.tenders {
        write_tender(tender, content.currency, words, &mut pieces);
    }
    if !content.money_back.is_empty() {
        pieces.push(text(words.given_back, 0));
    }
    for leg in &content.money_back {
        write_leg(leg, content.currency, words, &mut pieces);
    }
    if content.due != 0 {
        let right = format_amount(content.due, content.currency);
        pieces.push(Piece::Pair { left: words.due.to_owned(), right, indent: 0, is_bold: true });
    }
    pieces.push(Piece::Rule);
    pieces.push(taxes(&content.taxes, content.currency, words));
    pieces.extend(numbered_copy(content.copy, words));
    pieces
}

/// That it is a copy, and which.
pub(super) fn numbered_copy(copy: Option<u32>, words: &Words) -> Option<Piece> {
    copy.map(|copy| Piece::Centred { text: format!("*** {} {copy} ***", words.copy), is_bold: true })
}

fn write_line(line: &ContentLine, content: &Content, words: &Words, pieces: &mut Vec<Piece>) {
    let amount = |minor_units| format_amount(minor_units, content.currency);
    pieces.push(text(line.name.clone(), 0));
    pieces.extend(line.note.iter().map(|note| text(note.clone(), INDENT)));
    let unit = match line.unit {
        Unit::Piece => String::new(),
        Unit::Weight => format!(" {}", words.kilogram),
    };
    pieces.push(pair(format!("{}{unit} × {}", line.quantity, amount(line.unit_price)), amount(line.gross), INDENT));
    if line.discount != 0 {
        pieces.push(pair(words.discount, amount(-line.discount), INDENT));
    }
}

fn write_sums(content: &Content, words: &Words, pieces: &mut Vec<Piece>) {
    let amount = |minor_units| format_amount(minor_units, content.currency);
    let between =
        [(words.sale_discount, -content.discount), (words.tax, content.added_tax()), (words.tip, content.tip)];
    if between.iter().any(|&(_, figure)| figure != 0) {
        pieces.push(pair(words.subtotal, amount(content.subtotal()), 0));
    }
    for (word, figure) in between {
        if figure != 0 {
            pieces.push(pair(word, amount(figure), 0));
        }
    }
    pieces.push(Piece::Pair {
        left: format!("{} {}", words.total, content.currency),
        right: amount(content.total),
        indent: 0,
        is_bold: true,
    });
    if content.rounding != 0 {
        pieces.push(pair(words.rounding, amount(content.rounding), 0));
    }
}

/// What paid, or was to, and how far it is.
pub(super) fn write_tender(tender: &ContentTender, currency: Currency, words: &Words, pieces: &mut Vec<Piece>) {
    let amount = |minor_units| format_amount(minor_units, currency);
    let (card, short_code, reference, bank_reference, approval_code, accepted_offline) = match &tender.how {
        HowPaid::Cash { tendered, change } => {
            pieces.push(pair(words.cash, amount(*tendered), 0));
            if *change != 0 {
                pieces.push(pair(words.change, amount(-change), INDENT));
            }
            return;
        }
        HowPaid::Card { card, short_code, reference, bank_reference, approval_code, accepted_offline } => {
            (card, short_code, reference, bank_reference, approval_code, *accepted_offline)
        }
    };
    let name = card
        .as_ref()
        .map_or_else(|| words.card.to_owned(), |(brand, last4)| format!("{} {brand} ··{last4}", words.card));
    // What did not pay stands in no column that adds up.
    pieces.push(if tender.state.counts() {
        pair(name, amount(tender.amount), 0)
    } else {
        text(format!("{name}: {}", amount(tender.amount)), 0)
    });
    if accepted_offline && tender.state.counts() && !tender.state.paid() {
        pieces.push(Piece::Text { text: words.offline.to_owned(), indent: INDENT, is_bold: true });
    }
    pieces.push(text(state(tender.state, approval_code.as_deref(), words), INDENT));
    if let Some(short_code) = short_code {
        let reference = reference.clone().unwrap_or_default();
        pieces.push(pair(format!("{} {short_code}", words.payment), reference, INDENT));
    }
    if let Some(id) = bank_reference {
        pieces.push(text(format!("{} {id}", words.bank), INDENT));
    }
}

fn state(state: TenderState, approval_code: Option<&str>, words: &Words) -> String {
    match state {
        TenderState::Approved | TenderState::Taken => {
            approval_code.map_or_else(|| words.approved.to_owned(), |code| format!("{} {code}", words.approved))
        }
        TenderState::Declined => words.declined.to_owned(),
        TenderState::Cancelled => words.cancelled.to_owned(),
        TenderState::Settling => words.waiting.to_owned(),
        TenderState::NeedsAttention => words.attention.to_owned(),
    }
}

/// The tax table: rate, net and tax of each rate.
pub(super) fn taxes(taxes: &[(String, i64, i64)], currency: Currency, words: &Words) -> Piece {
    let amount = |minor_units| format_amount(minor_units, currency);
    let rows = taxes
        .iter()
        .map(|(rate, net, tax)| [format!("{rate} %"), amount(*net), amount(*tax), amount(net + tax)])
        .collect();
    let head = [words.tax, words.net, words.tax, words.gross].map(str::to_owned);
    Piece::Taxes { head, rows }
}
