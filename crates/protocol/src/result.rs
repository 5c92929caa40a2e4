//! What the bank answers: the payment or refund as it is stored.
//!
//! A body never holds anything that differs between the first answer and a replay, so these types are all of it.

use crate::{Amount, Currency, Key, ShortCode};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The two results that a bank's answer can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The money moved.
    Approved,
    /// The money did not move and will not for this key.
    Declined,
}

/// What may be shown of a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Card {
    /// The brand, such as `visa`.
    pub brand: String,
    /// The last four digits.
    pub last4: String,
}

/// A payment: the body of a 201 (approved) or 402 (declined).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Payment {
    /// The bank's id, `pay_…`.
    #[cfg_attr(feature = "openapi", schema(pattern = "^pay_[0-7][0-9a-hjkmnp-tv-z]{25}$"))]
    pub id: String,
    /// Approved or declined.
    pub status: Outcome,
    /// The amount asked for, in minor units.
    pub amount: Amount,
    /// The currency of the amount.
    pub currency: Currency,
    /// The card, where the token named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub card: Option<Card>,
    /// The till's own name for the payment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub reference: Option<String>,
    /// On an approved payment: the code that stands on the receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub approval_code: Option<String>,
    /// On a declined payment: why. The codes so far are `insufficient_funds`, `expired`, `lost`, `do_not_honor`, `late_decline`
    /// (only where the goods were accepted offline) and `unknown_card`. More may come: one that you don't know is a decline all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub decline_code: Option<String>,
    /// The key under which it was asked for.
    pub operation: Key,
    /// The short form of the key.
    pub short_code: ShortCode,
    /// When the bank claimed the key.
    pub created_at: Timestamp,
}

/// A refund: the body of a 201 (approved) or 402 (declined).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Refund {
    /// The bank's id, `re_…`.
    #[cfg_attr(feature = "openapi", schema(pattern = "^re_[0-7][0-9a-hjkmnp-tv-z]{25}$"))]
    pub id: String,
    /// Approved or declined.
    pub status: Outcome,
    /// The payment whose money is given back.
    #[cfg_attr(feature = "openapi", schema(pattern = "^pay_[0-7][0-9a-hjkmnp-tv-z]{25}$"))]
    pub payment_id: String,
    /// The amount asked for, in minor units.
    pub amount: Amount,
    /// The payment's currency.
    pub currency: Currency,
    /// On a declined refund: why. `exceeds_refundable` where so much is not left of the payment, or the payment itself was declined.
    /// More codes may come: one that you don't know is a decline all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub decline_code: Option<String>,
    /// The key under which it was asked for.
    pub operation: Key,
    /// The short form of the key.
    pub short_code: ShortCode,
    /// When the bank claimed the key.
    pub created_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approved_payment_reads_as_the_contract_shows_it() {
        let key = Key::parse("0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b").unwrap();
        let payment = Payment {
            id: "pay_1".into(),
            status: Outcome::Approved,
            amount: Amount::new(2490).unwrap(),
            currency: Currency::EUR,
            card: Some(Card { brand: "visa".into(), last4: "4242".into() }),
            reference: Some("till-1/1042".into()),
            approval_code: Some("8F21K0".into()),
            decline_code: None,
            operation: key,
            short_code: key.short_code(),
            created_at: "2026-11-29T10:00:00Z".parse().unwrap(),
        };
        let wanted = format!(
            r#"{{"id":"pay_1","status":"approved","amount":2490,"currency":"EUR","card":{{"brand":"visa","last4":"4242"}},"reference":"till-1/1042","approval_code":"8F21K0","operation":"{key}","short_code":"{}","created_at":"2026-11-29T10:00:00Z"}}"#,
            key.short_code()
        );
        assert_eq!(serde_json::to_string(&payment).unwrap(), wanted);
        assert_eq!(serde_json::from_str::<Payment>(&wanted).unwrap(), payment);
    }
}
