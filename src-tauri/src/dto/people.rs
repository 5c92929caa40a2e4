//! Who works at the till.

use serde::{Deserialize, Serialize};
use specta::Type;

/// Names a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(transparent)]
pub(crate) struct PersonId(#[specta(type = specta_typescript::Number)] pub(crate) i64);

/// Somebody who works here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Person {
    pub(crate) id: PersonId,
    pub(crate) name: String,
    pub(crate) role: Role,
}

/// What a person is at the till.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    Cashier,
    Manager,
}

/// Who stands at the till.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Session {
    /// Somebody must log in before anything is changed.
    pub(crate) locked: bool,
    /// Who is logged in; none while it is locked, and where there are no people.
    pub(crate) person: Option<Person>,
}

/// A PIN as it was typed. No `Debug`: it is shown nowhere.
#[derive(Deserialize, Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PinEntry {
    pub(crate) person_id: PersonId,
    pub(crate) pin: String,
}

/// Something that not everybody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Right {
    Discount,
    PriceOverride,
    Refund,
    DropSale,
    CashOut,
    NoSale,
    OfflineOverLimit,
    WriteOff,
    CloseShift,
    ShiftReport,
    Settings,
    People,
    Catalogue,
    Restore,
    AuditExport,
}

impl From<till::Person> for Person {
    fn from(person: till::Person) -> Self {
        let role = match person.role {
            till::Role::Cashier => Role::Cashier,
            till::Role::Manager => Role::Manager,
        };
        Self { id: PersonId(person.id), name: person.name, role }
    }
}

impl From<till::Session> for Session {
    fn from(session: till::Session) -> Self {
        Self { locked: session.locked, person: session.person.map(Person::from) }
    }
}

impl From<PinEntry> for till::PinEntry {
    fn from(entry: PinEntry) -> Self {
        Self { person_id: entry.person_id.0, pin: entry.pin }
    }
}

impl From<Right> for till::Right {
    fn from(right: Right) -> Self {
        match right {
            Right::Discount => Self::Discount,
            Right::PriceOverride => Self::PriceOverride,
            Right::Refund => Self::Refund,
            Right::DropSale => Self::DropSale,
            Right::CashOut => Self::CashOut,
            Right::NoSale => Self::NoSale,
            Right::OfflineOverLimit => Self::OfflineOverLimit,
            Right::WriteOff => Self::WriteOff,
            Right::CloseShift => Self::CloseShift,
            Right::ShiftReport => Self::ShiftReport,
            Right::Settings => Self::Settings,
            Right::People => Self::People,
            Right::Catalogue => Self::Catalogue,
            Right::Restore => Self::Restore,
            Right::AuditExport => Self::AuditExport,
        }
    }
}
