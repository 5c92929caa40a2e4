//! What the till asks of the bank.

use crate::{
    Amount, Currency, holds_card_number,
    strict::{Object, Times, invalid},
};
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::fmt;
use thiserror::Error;

/// Characters of a card token at most.
pub(crate) const CARD_CHARS_MAX: usize = 64;
/// Characters of a reference at most.
pub const REFERENCE_CHARS_MAX: usize = 64;
/// Characters of a payment's id at most.
pub(crate) const PAYMENT_ID_CHARS_MAX: usize = 64;

/// Why a body is no request. It names the member at fault and never holds a value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{detail}")]
pub struct DecodeError {
    /// Whether it is no JSON object at all, or one with wrong members.
    pub kind: DecodeErrorKind,
    /// The member at fault, where there is one that may be named.
    pub member: Option<String>,
    /// What is wrong and what to send instead, for the developer of the client.
    pub detail: String,
}

/// The two ways in which a body can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeErrorKind {
    /// Not one JSON object.
    Malformed,
    /// A member is missing, doubled, unknown, or its value is not allowed.
    Invalid,
}

/// What the card reader gives in place of a card number. It is not printed by `Debug`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CardToken(String);

impl CardToken {
    /// Takes a token of 1 to 64 characters that is no card number: whoever makes a request keeps it, and so never has one.
    /// [`PaymentRequest::decode`] is for whoever is sent one, and takes any token, as the bank's contract says.
    ///
    /// # Errors
    /// [`DecodeError`] outside of that length, and for what [holds a card number](crate::holds_card_number).
    pub fn new(token: impl Into<String>) -> Result<Self, DecodeError> {
        let token = token.into();
        if !(1..=CARD_CHARS_MAX).contains(&token.chars().count()) {
            return Err(invalid("card", &format!("must have 1 to {CARD_CHARS_MAX} characters")));
        }
        if holds_card_number(&token) {
            return Err(invalid("card", "must be what the card reader gives, and not the number of a card"));
        }
        Ok(Self(token))
    }

    /// The token itself, for the bytes on the wire and the gateway's look at the account; never for a log or an answer.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for CardToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CardToken(…)")
    }
}

/// `POST /v1/payments`: charge a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentRequest {
    /// What to charge, in minor units of the currency.
    pub amount: Amount,
    /// The currency of the amount.
    pub currency: Currency,
    /// The card to charge.
    pub card: CardToken,
    /// The till's own name for the payment, such as `till-1/1042`: up to 64 characters.
    pub reference: Option<String>,
    /// When the goods were handed over, where that was before the bank was ever asked.
    pub accepted_offline_at: Option<Timestamp>,
}

impl PaymentRequest {
    /// Reads a body strictly: unknown or doubled members, fractions, texts in place of numbers and times that are not of
    /// RFC 3339 are refused.
    ///
    /// # Errors
    /// [`DecodeError`] with the first member at fault.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        Self::read(body, Times::Sent)
    }

    /// Reads what was stored by [`encode`](Self::encode), by an earlier version too: those took spellings of a time, and so
    /// years before 0, that are refused today.
    ///
    /// # Errors
    /// [`DecodeError`] with the first member at fault.
    pub fn decode_stored(body: &[u8]) -> Result<Self, DecodeError> {
        Self::read(body, Times::Stored)
    }

    fn read(body: &[u8], times: Times) -> Result<Self, DecodeError> {
        let mut object = Object::parse(body)?;
        let request = Self {
            amount: amount(&mut object)?,
            currency: Currency::parse(&object.text("currency", 3)?)
                .map_err(|error| invalid("currency", &says(error)))?,
            card: CardToken(object.text("card", CARD_CHARS_MAX)?),
            reference: object.optional_text("reference", REFERENCE_CHARS_MAX, 0)?,
            accepted_offline_at: object.optional_time("accepted_offline_at", times)?,
        };
        object.finish()?;
        Ok(request)
    }

    /// The body to send. Decoding it gives an equal request; the till stores these bytes and sends no others.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut object = Map::new();
        object.insert("amount".into(), self.amount.get().into());
        object.insert("currency".into(), self.currency.code().into());
        object.insert("card".into(), self.card.expose().into());
        if let Some(reference) = &self.reference {
            object.insert("reference".into(), reference.as_str().into());
        }
        if let Some(at) = self.accepted_offline_at {
            object.insert("accepted_offline_at".into(), at.to_string().into());
        }
        Value::Object(object).to_string().into_bytes()
    }

    /// Each member with bytes that are equal exactly where its meaning is equal: what sameness of two requests is told by.
    /// An absent member has no bytes, a present one has at least one.
    #[must_use]
    pub fn members(&self) -> Vec<(&'static str, Vec<u8>)> {
        vec![
            ("amount", present(self.amount.get().to_string())),
            ("currency", present(self.currency.code())),
            ("card", present(self.card.expose())),
            ("reference", self.reference.as_deref().map_or_else(Vec::new, present)),
            (
                "accepted_offline_at",
                self.accepted_offline_at.map_or_else(Vec::new, |at| present(at.as_nanosecond().to_string())),
            ),
        ]
    }
}

/// `POST /v1/refunds`: give a payment's money back, in whole or in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefundRequest {
    /// The bank's id of the payment.
    pub payment_id: String,
    /// What to give back, in minor units of the payment's currency.
    pub amount: Amount,
}

impl RefundRequest {
    /// Reads a body strictly, as [`PaymentRequest::decode`] does.
    ///
    /// # Errors
    /// [`DecodeError`] with the first member at fault.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut object = Object::parse(body)?;
        let request =
            Self { payment_id: object.text("payment_id", PAYMENT_ID_CHARS_MAX)?, amount: amount(&mut object)? };
        object.finish()?;
        Ok(request)
    }

    /// The body to send.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut object = Map::new();
        object.insert("payment_id".into(), self.payment_id.as_str().into());
        object.insert("amount".into(), self.amount.get().into());
        Value::Object(object).to_string().into_bytes()
    }

    /// Each member with bytes that are equal exactly where its meaning is equal.
    #[must_use]
    pub fn members(&self) -> Vec<(&'static str, Vec<u8>)> {
        vec![("payment_id", present(&self.payment_id)), ("amount", present(self.amount.get().to_string()))]
    }
}

fn amount(object: &mut Object) -> Result<Amount, DecodeError> {
    Amount::new(object.integer("amount")?).map_err(|error| invalid("amount", &says(error)))
}

/// The text of an error about a member, without the subject that the caller puts before it.
fn says(error: impl fmt::Display) -> String {
    let text = error.to_string();
    text.split_once(" must ").map_or_else(|| text.clone(), |(_, rest)| format!("must {rest}"))
}

/// The bytes of a member that is there: marked, so that an empty text is not an absent one.
fn present(text: impl AsRef<str>) -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.extend_from_slice(text.as_ref().as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn good() -> Map<String, Value> {
        let Value::Object(good) = json!({"amount": 2490, "currency": "EUR", "card": "tok_visa"}) else {
            unreachable!()
        };
        good
    }

    fn with(member: &str, value: Value) -> Vec<u8> {
        let mut body = good();
        body.insert(member.into(), value);
        Value::Object(body).to_string().into_bytes()
    }

    #[test]
    fn a_wrong_member_is_named_and_its_value_is_not() {
        let cases = [
            ("amount", json!(0)),
            ("amount", json!(-1)),
            ("amount", json!(100_000_000)),
            ("amount", json!(u64::MAX)),
            ("amount", json!(24.9)),
            ("amount", json!(2490.0)),
            ("amount", json!("2490")),
            ("amount", Value::Null),
            ("amount", json!(true)),
            ("currency", json!("EURO")),
            ("currency", json!("XXX")),
            ("currency", json!("tok_visa")),
            ("card", json!("")),
            ("card", json!(5)),
            ("card", json!("t".repeat(65))),
            ("card", json!(["tok_visa"])),
            ("reference", json!("r".repeat(65))),
            ("reference", json!(5)),
            ("accepted_offline_at", json!("yesterday")),
            ("accepted_offline_at", json!(0)),
            ("surprise", json!(1)),
        ];
        for (member, value) in cases {
            let error = PaymentRequest::decode(&with(member, value.clone())).unwrap_err();
            assert_eq!(error.kind, DecodeErrorKind::Invalid, "{member} {value}");
            assert_eq!(error.member.as_deref(), Some(member), "{value}");
            assert!(error.detail.contains(member), "{error}");
            assert!(!error.detail.contains("tok_") && !error.detail.contains("yesterday"), "{error}");
        }
    }

    #[test]
    fn a_missing_or_doubled_member_is_named() {
        for member in ["amount", "currency", "card"] {
            let mut body = good();
            body.remove(member);
            let error = PaymentRequest::decode(Value::Object(body).to_string().as_bytes()).unwrap_err();
            assert_eq!(error.member.as_deref(), Some(member));
        }
        for (member, body) in [
            ("amount", r#"{"amount":1,"amount":2490,"currency":"EUR","card":"tok_visa"}"#),
            ("x", r#"{"amount":1,"currency":"EUR","card":"tok_visa","x":1,"x":2}"#),
        ] {
            let error = PaymentRequest::decode(body.as_bytes()).unwrap_err();
            assert_eq!(error.member.as_deref(), Some(member));
            assert!(error.detail.contains("twice"), "{error}");
        }
    }

    #[test]
    fn an_unknown_member_is_named_only_where_its_name_can_be_nothing_else() {
        for name in [
            "tok_insufficient_funds",
            "a_tok_visa",
            "sk_aaaa",
            "4242424242424242",
            "Visa",
            "",
            "a b",
            &"a".repeat(60_000),
        ] {
            let once = with(name, json!(1));
            let twice = format!(r#"{{"{name}":1,"{name}":2,"amount":1,"currency":"EUR","card":"tok_visa"}}"#);
            for body in [&once[..], twice.as_bytes()] {
                let error = PaymentRequest::decode(body).unwrap_err();
                assert_eq!((error.kind, &error.member), (DecodeErrorKind::Invalid, &None), "{name}");
                assert!(error.detail.starts_with("a member that is not known here"), "{error}");
                assert!(error.detail.len() < 100 && !error.detail.contains("tok_"), "{error}");
            }
        }
    }

    #[test]
    fn times_are_those_of_rfc_3339_and_no_others() {
        let read = |text: &str| PaymentRequest::decode(&with("accepted_offline_at", json!(text)));
        for (text, canonical) in [
            ("2026-11-29T10:00:00Z", "2026-11-29T10:00:00Z"),
            ("2026-11-29t10:00:00z", "2026-11-29T10:00:00Z"),
            ("2026-11-29T12:30:00+02:30", "2026-11-29T10:00:00Z"),
            ("2026-11-29T10:00:00-00:00", "2026-11-29T10:00:00Z"),
            ("2026-11-28T10:01:00-23:59", "2026-11-29T10:00:00Z"),
            ("2026-11-29T10:00:00.000000001Z", "2026-11-29T10:00:00.000000001Z"),
            ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59Z"),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
        ] {
            let at = read(text).unwrap().accepted_offline_at.unwrap();
            assert_eq!(at.to_string(), canonical, "{text}");
        }
        for text in [
            "20261129T100000Z",
            "2026-11-29T10Z",
            "2026-11-29T10:00Z",
            "2026-11-29 10:00:00Z",
            "2026-11-29T10:00:00",
            "2026-11-29",
            "-009999-01-02T03:04:05Z",
            "+002026-11-29T10:00:00Z",
            "2026-11-29T10:00:00Z[Europe/Berlin]",
            "2026-11-29T10:00:00+01:00[Europe/Berlin]",
            "2026-11-29T10:00:00+25:59",
            "2026-11-29T10:00:00+24:00",
            "2026-11-29T10:00:00+01:60",
            "2026-11-29T10:00:00+01",
            "2026-11-29T10:00:00+0100",
            "2026-11-29T10:00:00+01:00:00",
            "2026-11-29T10:00:00,5Z",
            "2026-11-29T10:00:00.Z",
            "2026-11-29T10:00:00.5",
            "2026-11-31T10:00:00Z",
            "2026-11-29T24:00:00Z",
            "2026-11-29T10:00:61Z",
            "2026-W48-7T10:00:00Z",
            "2026-11-29T10:00:00\u{2212}01:00",
            "２026-11-29T10:00:00Z",
            " 2026-11-29T10:00:00Z",
            "2026-11-29T10:00:00Z ",
            "2026-11-29T10:00:00ZZ",
        ] {
            let error = read(text).expect_err(text);
            assert_eq!(error.member.as_deref(), Some("accepted_offline_at"), "{text}");
            assert!(error.detail.ends_with("must be a time such as 2026-11-29T10:00:00Z"), "{error}");
        }
    }

    #[test]
    fn a_stored_time_that_no_wire_takes_any_more_is_still_read() {
        let stored = with("accepted_offline_at", json!("-009999-01-02T03:04:05Z"));
        let request = PaymentRequest::decode_stored(&stored).unwrap();
        assert_eq!(PaymentRequest::decode_stored(&request.encode()).unwrap(), request);
        assert!(PaymentRequest::decode(&stored).is_err());
    }

    #[test]
    fn what_is_no_object_is_malformed_and_not_repeated() {
        for body in [
            &b""[..],
            b"[]",
            b"tok_visa",
            b"\"tok_visa\"",
            b"{\"card\":\"tok_visa",
            b"{\"amount\":1e999}",
            b"{} {}",
            &[0xff, 0xfe],
        ] {
            let error = PaymentRequest::decode(body).unwrap_err();
            assert_eq!(error.kind, DecodeErrorKind::Malformed, "{body:?}");
            assert!(!error.detail.contains("tok_"), "{error}");
        }
    }

    #[test]
    fn lengths_count_characters_and_not_bytes() {
        assert!(PaymentRequest::decode(&with("reference", json!("é".repeat(64)))).is_ok());
        assert!(PaymentRequest::decode(&with("card", json!("é".repeat(64)))).is_ok());
    }

    #[test]
    fn null_is_as_absent_and_equal_instants_are_equal() {
        let absent = PaymentRequest::decode(&with("reference", Value::Null)).unwrap();
        assert_eq!(absent, PaymentRequest::decode(&Value::Object(good()).to_string().into_bytes()).unwrap());
        let at = |text: &str| PaymentRequest::decode(&with("accepted_offline_at", json!(text))).unwrap();
        assert_eq!(at("2026-11-29T10:00:00Z").members(), at("2026-11-29T13:00:00.000+03:00").members());
        assert_ne!(absent.members(), PaymentRequest::decode(&with("reference", json!(""))).unwrap().members());
    }

    #[test]
    fn no_card_number_is_taken_for_a_token_and_none_is_repeated() {
        for number in ["4111111111111111", "4111 1111 1111 1111", "tok_4111-1111-1111-1111"] {
            let error = CardToken::new(number).unwrap_err();
            assert_eq!(error.member.as_deref(), Some("card"), "{number}");
            assert!(error.detail.contains("card reader") && !error.detail.contains("1111"), "{error}");
        }
        assert!(CardToken::new("4111111111111112").is_ok());
        // What a bank is sent is a token, by its contract: one that it knows no card of.
        assert!(PaymentRequest::decode(&with("card", json!("4111111111111111"))).is_ok());
    }

    #[test]
    fn a_token_is_not_printed() {
        let request = PaymentRequest::decode(&with("card", json!("tok_visa"))).unwrap();
        assert!(!format!("{request:?}").contains("tok_"));
    }

    fn any_request() -> impl Strategy<Value = PaymentRequest> {
        let currency = prop::sample::select(Currency::supported().collect::<Vec<_>>());
        let at = prop::option::of(
            (-60_000_000_000_i64..250_000_000_000).prop_map(|second| Timestamp::from_second(second).unwrap()),
        );
        (1..=99_999_999_i64, currency, "\\PC{1,64}", prop::option::of("\\PC{0,64}"), at).prop_map(
            |(amount, currency, card, reference, accepted_offline_at)| PaymentRequest {
                amount: Amount::new(amount).unwrap(),
                currency,
                card: CardToken::new(card).unwrap(),
                reference,
                accepted_offline_at,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes_to_the_same(request in any_request()) {
            prop_assert_eq!(PaymentRequest::decode(&request.encode()).unwrap(), request);
        }

        #[test]
        fn exactly_the_members_that_were_changed_differ(a in any_request(), b in any_request(), changed in 0..5_usize) {
            let mut c = a.clone();
            match changed {
                0 => c.amount = b.amount,
                1 => c.currency = b.currency,
                2 => c.card = b.card,
                3 => c.reference = b.reference,
                _ => c.accepted_offline_at = b.accepted_offline_at,
            }
            let differing: Vec<usize> = (0..5).filter(|&i| a.members()[i] != c.members()[i]).collect();
            prop_assert_eq!(differing, if a == c { vec![] } else { vec![changed] });
        }

        #[test]
        fn no_body_makes_decoding_panic(body: Vec<u8>) {
            let _: Result<PaymentRequest, DecodeError> = PaymentRequest::decode(&body);
            let _: Result<RefundRequest, DecodeError> = RefundRequest::decode(&body);
        }
    }
}
