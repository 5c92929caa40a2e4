//! The words of a receipt in each language.

use serde::{Deserialize, Serialize};

/// A language that receipts are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Language {
    /// English.
    #[serde(rename = "en")]
    English,
    /// Russian.
    #[serde(rename = "ru")]
    Russian,
}

impl Language {
    /// Every language there is.
    pub const ALL: [Self; 2] = [Self::English, Self::Russian];

    /// Its code, as in BCP 47.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Russian => "ru",
        }
    }

    /// The language of a code.
    #[must_use]
    pub fn parse(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.code() == code)
    }

    pub(super) const fn words(self) -> &'static Words {
        match self {
            Self::English => &ENGLISH,
            Self::Russian => &RUSSIAN,
        }
    }
}

pub(super) struct Words {
    pub(super) receipt: &'static str,
    pub(super) not_paid: &'static str,
    pub(super) copy: &'static str,
    pub(super) sale: &'static str,
    pub(super) kilogram: &'static str,
    pub(super) discount: &'static str,
    pub(super) subtotal: &'static str,
    pub(super) sale_discount: &'static str,
    pub(super) tax: &'static str,
    pub(super) tip: &'static str,
    pub(super) total: &'static str,
    pub(super) rounding: &'static str,
    pub(super) cash: &'static str,
    pub(super) change: &'static str,
    pub(super) card: &'static str,
    pub(super) due: &'static str,
    pub(super) net: &'static str,
    pub(super) gross: &'static str,
    pub(super) payment: &'static str,
    pub(super) bank: &'static str,
    pub(super) approved: &'static str,
    pub(super) declined: &'static str,
    pub(super) cancelled: &'static str,
    pub(super) waiting: &'static str,
    pub(super) attention: &'static str,
    pub(super) offline: &'static str,
    pub(super) refund: &'static str,
    pub(super) of_receipt: &'static str,
    pub(super) given_back: &'static str,
    pub(super) waived: &'static str,
    pub(super) refunded_before: &'static str,
    pub(super) owed: &'static str,
    pub(super) replaced: &'static str,
    pub(super) void: &'static str,
    pub(super) voided: &'static str,
    pub(super) paid: &'static str,
}

const ENGLISH: Words = Words {
    receipt: "Receipt",
    not_paid: "NOT PAID YET",
    copy: "COPY",
    sale: "Sale",
    kilogram: "kg",
    discount: "Discount",
    subtotal: "Subtotal",
    sale_discount: "Discount on the sale",
    tax: "Tax",
    tip: "Tip",
    total: "TOTAL",
    rounding: "Cash rounding",
    cash: "Cash",
    change: "Change",
    card: "Card",
    due: "STILL DUE",
    net: "Net",
    gross: "Gross",
    payment: "Payment",
    bank: "Bank",
    approved: "Approved",
    declined: "Declined. Not charged.",
    cancelled: "Cancelled. Not charged.",
    waiting: "Waiting for the bank",
    attention: "Waiting for a look at it",
    offline: "Saved. Not yet approved by the bank.",
    refund: "Refund",
    of_receipt: "Of receipt",
    given_back: "GIVEN BACK",
    waived: "Never paid, not given back",
    refunded_before: "Given back before",
    owed: "Declined. Still owed to you.",
    replaced: "Declined. Given back otherwise.",
    void: "Never charged. Nothing to give back.",
    voided: "SALE VOIDED",
    paid: "PAID",
};

const RUSSIAN: Words = Words {
    receipt: "Чек",
    not_paid: "ЕЩЁ НЕ ОПЛАЧЕНО",
    copy: "КОПИЯ",
    sale: "Продажа",
    kilogram: "кг",
    discount: "Скидка",
    subtotal: "Подытог",
    sale_discount: "Скидка на покупку",
    tax: "Налог",
    tip: "Чаевые",
    total: "ИТОГО",
    rounding: "Округление наличных",
    cash: "Наличные",
    change: "Сдача",
    card: "Карта",
    due: "ОСТАЛОСЬ ОПЛАТИТЬ",
    net: "Без налога",
    gross: "С налогом",
    payment: "Платёж",
    bank: "Банк",
    approved: "Одобрено",
    declined: "Отклонено. Деньги не списаны.",
    cancelled: "Отменено. Деньги не списаны.",
    waiting: "Ждёт ответа банка",
    attention: "Требует проверки",
    offline: "Сохранено. Банк ещё не одобрил.",
    refund: "Возврат",
    of_receipt: "К чеку",
    given_back: "ВОЗВРАЩЕНО",
    waived: "Не оплачено, не возвращается",
    refunded_before: "Возвращено раньше",
    owed: "Отклонено. Деньги ещё за нами.",
    replaced: "Отклонено. Возвращено иначе.",
    void: "Деньги не списывались. Возвращать нечего.",
    voided: "ПРОДАЖА АННУЛИРОВАНА",
    paid: "ОПЛАЧЕНО",
};
