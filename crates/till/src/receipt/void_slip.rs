//! The slip of a sale that was given up after a part was paid: what was paid, what goes back, and how far that is.

use super::{
    content::{ContentTender, tender},
    document::{Piece, numbered_copy, pair, write_tender},
    slip::{SlipLeg, slip_leg, write_leg},
    words::Language,
};
use crate::{LegState, Operation, ReturnLeg, Sale, SaleVoid, Settings, amounts::format_amount};
use jiff::tz::TimeZone;
use protocol::Currency;

/// All that such a slip says. Amounts in minor units of its currency.
#[derive(Debug, Clone)]
pub(crate) struct VoidSlip {
    pub(crate) shop: String,
    pub(crate) till: String,
    /// Date and time of the void by the shop's clock.
    pub(crate) at: String,
    pub(crate) sale_number: Option<i64>,
    /// Which copy of a slip that was printed before; none for the first print.
    pub(crate) copy: Option<u32>,
    pub(crate) currency: Currency,
    /// What the sale had come to.
    pub(crate) total: i64,
    pub(crate) tenders: Vec<ContentTender>,
    /// With what had gone back before it was given up.
    pub(crate) legs: Vec<SlipLeg>,
    /// What cash rounding added to what goes back, where a card's part was paid out.
    pub(crate) rounding: i64,
}

impl VoidSlip {
    /// `legs` are those of the void after what had gone back before, each with the operation of the tender that it gives back.
    pub(crate) fn of(
        sale: &Sale,
        void: &SaleVoid,
        legs: &[(ReturnLeg, Option<Operation>)],
        settings: &Settings,
        zone: TimeZone,
    ) -> Self {
        let at = void.created_at.to_zoned_datetime(zone);
        Self {
            shop: settings.shop_name.clone(),
            till: settings.till_name.clone(),
            at: at.strftime("%Y-%m-%d %H:%M").to_string(),
            sale_number: sale.number,
            copy: None,
            currency: void.currency,
            total: sale.total,
            tenders: sale.tenders.iter().map(tender).collect(),
            legs: legs.iter().map(|(leg, paid)| slip_leg(leg, paid.as_ref())).collect(),
            rounding: legs.iter().map(|(leg, _)| leg.rounding).sum(),
        }
    }

    fn paid(&self) -> i64 {
        self.tenders.iter().filter(|tender| tender.state.counts()).map(|tender| tender.amount).sum()
    }

    /// What goes back, before cash is rounded: of what a card did not get, what is paid out in its place.
    fn given_back(&self) -> i64 {
        let counts = |leg: &&SlipLeg| !matches!(leg.state, LegState::Replaced | LegState::Void);
        self.legs.iter().filter(counts).map(|leg| leg.amount).sum::<i64>() - self.rounding
    }

    /// Whether its print opens the drawer: where cash is handed over, the first time.
    pub(crate) fn opens_drawer(&self) -> bool {
        self.copy.is_none() && self.legs.iter().any(|leg| leg.card.is_none() && leg.amount > 0)
    }

    /// What it is called.
    pub(super) fn title(&self, language: Language) -> String {
        language.words().voided.to_owned()
    }

    /// Its pieces.
    pub(super) fn pieces(&self, language: Language) -> Vec<Piece> {
        let words = language.words();
        let amount = |minor_units| format_amount(minor_units, self.currency);
        let sale = self.sale_number.map(|number| format!("{} {number}", words.sale)).unwrap_or_default();
        let sum = |word: &str, figure| Piece::Pair {
            left: format!("{word} {}", self.currency),
            right: amount(figure),
            indent: 0,
            is_bold: true,
        };
        let mut pieces = vec![Piece::Centred { text: self.shop.clone(), is_bold: true }, Piece::Gap];
        pieces.extend(numbered_copy(self.copy, words));
        pieces.push(Piece::Pair { left: self.title(language), right: self.at.clone(), indent: 0, is_bold: true });
        pieces.extend([pair(self.till.clone(), sale, 0), Piece::Rule]);
        pieces.push(pair(words.total, amount(self.total), 0));
        for tender in &self.tenders {
            write_tender(tender, self.currency, words, &mut pieces);
        }
        pieces.extend([sum(words.paid, self.paid()), Piece::Rule]);
        for leg in &self.legs {
            write_leg(leg, self.currency, words, &mut pieces);
        }
        if self.rounding != 0 {
            pieces.push(pair(words.rounding, amount(-self.rounding), 0));
        }
        pieces.push(sum(words.given_back, self.given_back()));
        pieces.extend(numbered_copy(self.copy, words));
        pieces
    }
}
