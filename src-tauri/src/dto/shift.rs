//! Shifts, as far as cash can be taken only while one is open.

use serde::{Deserialize, Serialize};
use specta::Type;

use super::{Minor, Seq};

/// The time between the float and the count of a drawer.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Shift {
    pub(crate) number: Seq,
    /// The day that it counts for, as `2026-11-29`.
    pub(crate) business_day: String,
    pub(crate) currency: String,
    /// What was in the drawer to begin with.
    pub(crate) float_amount: Minor,
    pub(crate) opened_at: String,
    pub(crate) opened_by: String,
}

/// A shift to be opened.
#[derive(Debug, Clone, Deserialize, Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ShiftOpening {
    /// A new UUID of this dialog: the same again gives the same shift back.
    pub(crate) intent_id: String,
    /// What is in the drawer.
    pub(crate) float_amount: Minor,
}

impl From<till::Shift> for Shift {
    fn from(shift: till::Shift) -> Self {
        Self {
            number: Seq(shift.number),
            business_day: shift.business_day.to_string(),
            currency: shift.currency.to_string(),
            float_amount: Minor(shift.float_amount),
            opened_at: shift.opened_at.to_string(),
            opened_by: shift.opened_by,
        }
    }
}
