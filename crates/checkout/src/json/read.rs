//! Strict reading of a cart, each fault with its path.
//!
//! Values are read from their own text ([`RawValue`]): a number is then exactly the digits that were written, with no
//! detour over a float, and a member given twice is seen.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::cart::{Cart, Discount, LINES_MAX, Line, TENDERS_MAX, Tender, Tip, at_most, negative};
use crate::error::{Code, PriceError};
use crate::tenders::{CashRounding, CashRule};
use crate::{Currency, DecimalError, Quantity, Rate};

/// Longest input, in bytes: room for the most lines with every member and a name.
pub const INPUT_BYTES_MAX: usize = 16 * 1024 * 1024;

pub(super) fn cart(input: &str) -> Result<Cart, PriceError> {
    if input.len() > INPUT_BYTES_MAX {
        return Err(PriceError::new(Code::TooMany, "", format!("is over {INPUT_BYTES_MAX} bytes")));
    }
    // This first look checks the whole document's syntax, so that no later one can fail for it.
    let raw = serde_json::from_str(input).map_err(|error| PriceError::new(Code::Malformed, "", error))?;
    let mut root = Node { raw, path: String::new() }.object(&[
        "currency",
        "prices_include_tax",
        "cash_step",
        "cash_rounding",
        "lines",
        "discount",
        "tip",
        "tenders",
    ])?;
    let mut cart = Cart::new(root.required("currency")?.currency()?);
    if let Some(node) = root.optional("prices_include_tax") {
        cart.prices_include_tax = node.boolean()?;
    }
    cart.cash = cash_rule(&mut root)?;
    cart.lines = root.required("lines")?.array(LINES_MAX)?.into_iter().map(line).collect::<Result<_, _>>()?;
    cart.discount = root.optional("discount").map(discount).transpose()?;
    cart.tip = root.optional("tip").map(tip).transpose()?;
    if let Some(node) = root.optional("tenders") {
        cart.tenders = node.array(TENDERS_MAX)?.into_iter().map(tender).collect::<Result<_, _>>()?;
    }
    Ok(cart)
}

fn cash_rule(root: &mut Object<'_>) -> Result<CashRule, PriceError> {
    let mut step = CashRule::EXACT.step();
    let mut rounding = CashRule::EXACT.rounding();
    let step_path = root.path_of("cash_step");
    if let Some(node) = root.optional("cash_step") {
        step = node.amount()?;
    }
    if let Some(node) = root.optional("cash_rounding") {
        rounding = CashRounding::parse(&node.text()?).ok_or_else(|| node.invalid("must be nearest, up or down"))?;
    }
    CashRule::new(step, rounding).ok_or_else(|| PriceError::new(Code::InvalidValue, step_path, "must be at least 1"))
}

fn line(node: Node<'_>) -> Result<Line, PriceError> {
    let mut line = node.object(&["name", "unit_price", "quantity", "tax_rate", "discount"])?;
    if let Some(name) = line.optional("name") {
        // Names are for people; they make no price, but text they must be.
        name.text()?;
    }
    Ok(Line {
        unit_price: line.required("unit_price")?.amount()?,
        quantity: line.optional("quantity").map_or(Ok(Quantity::ONE), |node| node.decimal())?,
        tax_rate: line.optional("tax_rate").map_or(Ok(Rate::ZERO), |node| node.decimal())?,
        discount: line.optional("discount").map(discount).transpose()?,
    })
}

fn discount(node: Node<'_>) -> Result<Discount, PriceError> {
    percent_or_amount(node, Discount::Percent, Discount::Amount)
}

fn tip(node: Node<'_>) -> Result<Tip, PriceError> {
    percent_or_amount(node, Tip::Percent, Tip::Amount)
}

fn percent_or_amount<T>(node: Node<'_>, percent: fn(Rate) -> T, amount: fn(i64) -> T) -> Result<T, PriceError> {
    let mut object = node.object(&["percent", "amount"])?;
    let fault =
        |code, object: Object<'_>| Err(PriceError::new(code, object.path, "must have either percent or amount"));
    match (object.optional("percent"), object.optional("amount")) {
        (Some(node), None) => node.decimal().map(percent),
        (None, Some(node)) => node.amount().map(amount),
        (Some(_), Some(_)) => fault(Code::InvalidValue, object),
        (None, None) => fault(Code::MissingMember, object),
    }
}

fn tender(node: Node<'_>) -> Result<Tender, PriceError> {
    let mut tender = node.object(&["kind", "amount", "tendered"])?;
    let kind = tender.required("kind")?;
    let read = match kind.text()?.as_str() {
        "card" => Tender::Card { amount: tender.required("amount")?.amount()? },
        "voucher" => Tender::Voucher { amount: tender.required("amount")?.amount()? },
        "cash" => Tender::Cash { tendered: tender.required("tendered")?.amount()? },
        _ => return Err(kind.invalid("must be card, voucher or cash")),
    };
    // What is left over belongs to another kind: an amount with cash, what was tendered with a card.
    match tender.members.first() {
        Some((name, _)) => Err(tender.unknown(name)),
        None => Ok(read),
    }
}

/// A value and where it stands.
struct Node<'a> {
    raw: &'a RawValue,
    path: String,
}

impl<'a> Node<'a> {
    fn object(self, known: &[&str]) -> Result<Object<'a>, PriceError> {
        if !self.raw.get().starts_with('{') {
            return Err(self.wrong_type("an object"));
        }
        let Members(members) = self.parsed()?;
        let object = Object { path: self.path, members };
        for (index, (name, _)) in object.members.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                return Err(object.unknown(name));
            }
            if object.members.iter().take(index).any(|(earlier, _)| earlier == name) {
                return Err(PriceError::new(Code::DuplicateMember, object.path_of(name), "is there twice"));
            }
        }
        Ok(object)
    }

    fn array(self, most: usize) -> Result<Vec<Node<'a>>, PriceError> {
        if !self.raw.get().starts_with('[') {
            return Err(self.wrong_type("an array"));
        }
        let items: Vec<&RawValue> = self.parsed()?;
        at_most(&self.path, items.len(), most)?;
        let node = |(index, raw)| Node { raw, path: format!("{}[{index}]", self.path) };
        Ok(items.into_iter().enumerate().map(node).collect())
    }

    fn boolean(&self) -> Result<bool, PriceError> {
        match self.raw.get() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.wrong_type("true or false")),
        }
    }

    fn text(&self) -> Result<String, PriceError> {
        if self.raw.get().starts_with('"') { self.parsed() } else { Err(self.wrong_type("a string")) }
    }

    fn currency(&self) -> Result<Currency, PriceError> {
        Currency::parse(&self.text()?).map_err(|error| self.invalid(error))
    }

    /// Minor units: a whole number, not negative, written with digits only.
    fn amount(&self) -> Result<i64, PriceError> {
        let digits = self.digits("a whole number of minor units")?;
        digits.parse().map_err(|_| PriceError::new(Code::OutOfRange, &self.path, "is too large"))
    }

    /// A decimal string or a whole number. A number with a point is refused: many a writer of JSON makes it of a float.
    fn decimal<T: FromStr<Err = DecimalError>>(&self) -> Result<T, PriceError> {
        let text = if self.raw.get().starts_with('"') {
            self.text()?
        } else {
            self.digits("a decimal string or a whole number")?.to_owned()
        };
        text.parse().map_err(|error| match error {
            DecimalError::TooLarge => PriceError::new(Code::OutOfRange, &self.path, error),
            _ => self.invalid(error),
        })
    }

    /// The digits of a whole number.
    fn digits(&self, wanted: &str) -> Result<&'a str, PriceError> {
        let text = self.raw.get();
        if !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            return Err(self.wrong_type(wanted));
        }
        if text.starts_with('-') {
            return Err(negative(&self.path));
        }
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.invalid(format!("must be {wanted}, without point or exponent")));
        }
        Ok(text)
    }

    /// The value as Rust has it, once its syntax and type are known: what can still fail is an escape for half a character.
    fn parsed<T: Deserialize<'a>>(&self) -> Result<T, PriceError> {
        serde_json::from_str(self.raw.get()).map_err(|_| self.invalid("has text that is not Unicode"))
    }

    fn invalid(&self, message: impl fmt::Display) -> PriceError {
        PriceError::new(Code::InvalidValue, &self.path, message)
    }

    fn wrong_type(&self, wanted: &str) -> PriceError {
        PriceError::new(Code::WrongType, &self.path, format!("must be {wanted}"))
    }
}

/// An object whose members are known and there once, to be taken one by one.
struct Object<'a> {
    path: String,
    members: Vec<(String, &'a RawValue)>,
}

impl<'a> Object<'a> {
    fn optional(&mut self, name: &str) -> Option<Node<'a>> {
        let index = self.members.iter().position(|(member, _)| member == name)?;
        let (_, raw) = self.members.swap_remove(index);
        Some(Node { raw, path: self.path_of(name) })
    }

    fn required(&mut self, name: &str) -> Result<Node<'a>, PriceError> {
        let missing = PriceError::new(Code::MissingMember, self.path_of(name), "is missing");
        self.optional(name).ok_or(missing)
    }

    fn unknown(&self, name: &str) -> PriceError {
        PriceError::new(Code::UnknownMember, self.path_of(name), "is not a member that is known here")
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

/// All members of an object in their order, with names that come twice.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}
