//! Schemas of what can't be derived: values that are written by hand, and requests, which are read by hand.

use crate::{
    Amount, Currency, Key, Payment, PaymentRequest, Policy, ProblemType, Refund, RefundRequest, ShortCode,
    request::{CARD_CHARS_MAX, PAYMENT_ID_CHARS_MAX, REFERENCE_CHARS_MAX},
};
use serde_json::json;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        KnownFormat, ObjectBuilder, Ref, RefOr, Schema, SchemaFormat, Type,
        schema::{AdditionalProperties, AnyOfBuilder, SchemaType},
    },
};

fn text(description: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).description(Some(description))
}

/// A member that may be there, and whose `null` is as if it were not.
fn or_null(value: ObjectBuilder) -> ObjectBuilder {
    value.schema_type(SchemaType::from_iter([Type::String, Type::Null]))
}

fn reference_to<T: ToSchema>() -> RefOr<Schema> {
    Ref::from_schema_name(T::name()).into()
}

impl PartialSchema for Key {
    fn schema() -> RefOr<Schema> {
        text("The idempotency key of one operation, as the bank writes it: a UUID in lower case, bare.")
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)))
            .pattern(Some("^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"))
            .examples([json!("0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b")])
            .into()
    }
}

impl ToSchema for Key {}

impl PartialSchema for ShortCode {
    fn schema() -> RefOr<Schema> {
        text(
            "The short form of the key for people: the first 20 bits of the SHA-256 of its 16 bytes, in Crockford's base 32. \
             The till shows the same. It is for talking and not unique.",
        )
        .pattern(Some("^[0-9A-HJKMNP-TV-Z]{4}$"))
        .examples([json!("K7Q2")])
        .into()
    }
}

impl ToSchema for ShortCode {}

impl PartialSchema for Amount {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            .description(Some(
                "Money in minor units of its currency: 2490 is 24.90 EUR, and 2490 JPY. A whole number, never a fraction and \
                 never a text.",
            ))
            .minimum(Some(Self::MIN.get()))
            .maximum(Some(Self::MAX.get()))
            .examples([json!(2490)])
            .into()
    }
}

impl ToSchema for Amount {}

impl PartialSchema for Currency {
    fn schema() -> RefOr<Schema> {
        text("An ISO 4217 code, one of those that the policy lists.")
            .enum_values(Some(Self::supported().map(|currency| currency.code())))
            .examples([json!("EUR")])
            .into()
    }
}

impl ToSchema for Currency {}

impl PartialSchema for ProblemType {
    fn schema() -> RefOr<Schema> {
        text("Which problem it is. The path is also that of a readable page at this bank.")
            .enum_values(Some(Self::ALL.map(|problem| format!("/problems/{}", problem.name()))))
            .into()
    }
}

impl ToSchema for ProblemType {}

impl PartialSchema for PaymentRequest {
    fn schema() -> RefOr<Schema> {
        let card = text("The token that the card reader gave. It is in no answer and in no log.")
            .min_length(Some(1))
            .max_length(Some(CARD_CHARS_MAX));
        let reference = or_null(text("Your own name for the payment, such as till and receipt number."))
            .max_length(Some(REFERENCE_CHARS_MAX));
        let accepted_offline_at = or_null(text(
            "When the goods were handed over, where that was before the bank was ever asked. Only the instant counts: the \
             same one in another time zone is the same request.",
        ))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)));
        request("Charge a card.")
            .property("amount", reference_to::<Amount>())
            .required("amount")
            .property("currency", reference_to::<Currency>())
            .required("currency")
            .property("card", card)
            .required("card")
            .property("reference", reference)
            .property("accepted_offline_at", accepted_offline_at)
            .into()
    }
}

impl ToSchema for PaymentRequest {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.extend([named::<Amount>(), named::<Currency>()]);
    }
}

impl PartialSchema for RefundRequest {
    fn schema() -> RefOr<Schema> {
        let payment_id = text("The payment, by its `id`. The refund is in the payment's currency.")
            .min_length(Some(1))
            .max_length(Some(PAYMENT_ID_CHARS_MAX));
        request("Give a payment's money back, in whole or in part.")
            .property("payment_id", payment_id)
            .required("payment_id")
            .property("amount", reference_to::<Amount>())
            .required("amount")
            .into()
    }
}

impl ToSchema for RefundRequest {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push(named::<Amount>());
    }
}

/// How long a claim on a key holds.
pub(crate) fn claims() -> ObjectBuilder {
    text("How long a claim on a key holds: for ever. A key that was used once is never run again.")
        .enum_values(Some([Policy::CLAIMS_PERMANENT]))
}

/// What a key looks like.
pub(crate) fn key_format() -> ObjectBuilder {
    text("What a key looks like: a UUID.").enum_values(Some([Policy::KEY_FORMAT_UUID]))
}

/// What a key made: a payment or a refund, or nothing.
pub(crate) fn result_or_null() -> RefOr<Schema> {
    AnyOfBuilder::new()
        .item(reference_to::<Payment>())
        .item(reference_to::<Refund>())
        .item(ObjectBuilder::new().schema_type(Type::Null))
        .description(Some("The stored payment or refund, once there is one; `kind` says which."))
        .into()
}

/// A body that holds what is named and nothing else.
fn request(description: &str) -> ObjectBuilder {
    let nothing_else = AdditionalProperties::<Schema>::FreeForm(false);
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some(description))
        .additional_properties(Some(nothing_else))
}

fn named<T: ToSchema>() -> (String, RefOr<Schema>) {
    (T::name().into_owned(), T::schema())
}
