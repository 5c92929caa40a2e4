//! Sales that are given up after a part was paid.

use serde::{Deserialize, Serialize};
use specta::Type;

use super::{Minor, Operation, Seq, TenderKind, all};

/// What giving a sale up would give back. Nothing is saved yet.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PricedVoid {
    pub(crate) void_id: String,
    /// To cards.
    pub(crate) cards: Minor,
    /// Out of the drawer.
    pub(crate) cash: Minor,
    pub(crate) currency: String,
}

/// A partly paid sale to be given up.
#[derive(Debug, Clone, Deserialize, Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NewVoid {
    /// The id given when the dialog opened.
    pub(crate) void_id: String,
    pub(crate) sale_id: String,
    pub(crate) reason: Option<String>,
}

/// A sale that was given up after a part was paid.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SaleVoid {
    pub(crate) id: String,
    pub(crate) sale_id: String,
    pub(crate) sale_number: Option<Seq>,
    pub(crate) cards: Minor,
    pub(crate) cash: Minor,
    pub(crate) currency: String,
    pub(crate) legs: Vec<ReturnLeg>,
    pub(crate) state: ReturnState,
    pub(crate) reason: Option<String>,
    pub(crate) created_at: String,
}

/// One way in which money goes back.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReturnLeg {
    pub(crate) id: String,
    pub(crate) kind: TenderKind,
    pub(crate) amount: Minor,
    /// What of it is there because of the coins that there are.
    pub(crate) rounding: Minor,
    pub(crate) state: LegState,
    /// The leg in whose place it is.
    pub(crate) replaces: Option<String>,
    /// The tender whose card gets it.
    pub(crate) tender_id: Option<String>,
    pub(crate) operation: Option<Operation>,
}

/// How far a leg is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LegState {
    Settling,
    Approved,
    /// Refused or cancelled: the customer has nothing yet.
    Owed,
    /// Refused or cancelled, and another leg took its place.
    Replaced,
    /// Its payment turned out not to have paid: there is nothing to give back.
    Void,
    NeedsAttention,
    /// Cash: handed over.
    HandedOver,
}

/// How far all that goes back is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReturnState {
    /// The customer has all of it.
    Done,
    Settling,
    /// A card did not get it.
    Owed,
    NeedsAttention,
}

impl From<till::PricedVoid> for PricedVoid {
    fn from(priced: till::PricedVoid) -> Self {
        Self {
            void_id: priced.void_id.to_string(),
            cards: Minor(priced.cards),
            cash: Minor(priced.cash),
            currency: priced.currency.to_string(),
        }
    }
}

impl From<till::SaleVoid> for SaleVoid {
    fn from(void: till::SaleVoid) -> Self {
        Self {
            id: void.id.to_string(),
            sale_id: void.sale_id.to_string(),
            sale_number: void.sale_number.map(Seq),
            cards: Minor(void.cards),
            cash: Minor(void.cash),
            currency: void.currency.to_string(),
            legs: all(void.legs),
            state: match void.state {
                till::ReturnState::Done => ReturnState::Done,
                till::ReturnState::Settling => ReturnState::Settling,
                till::ReturnState::Owed => ReturnState::Owed,
                till::ReturnState::NeedsAttention => ReturnState::NeedsAttention,
            },
            reason: void.reason,
            created_at: void.created_at.to_string(),
        }
    }
}

impl From<till::ReturnLeg> for ReturnLeg {
    fn from(leg: till::ReturnLeg) -> Self {
        Self {
            id: leg.id.to_string(),
            kind: leg.kind.into(),
            amount: Minor(leg.amount),
            rounding: Minor(leg.rounding),
            state: leg.state.into(),
            replaces: leg.replaces.map(|id| id.to_string()),
            tender_id: leg.tender_id.map(|id| id.to_string()),
            operation: leg.operation.map(Operation::from),
        }
    }
}

impl From<till::LegState> for LegState {
    fn from(state: till::LegState) -> Self {
        match state {
            till::LegState::Settling => Self::Settling,
            till::LegState::Approved => Self::Approved,
            till::LegState::Owed => Self::Owed,
            till::LegState::Replaced => Self::Replaced,
            till::LegState::Void => Self::Void,
            till::LegState::NeedsAttention => Self::NeedsAttention,
            till::LegState::HandedOver => Self::HandedOver,
        }
    }
}
