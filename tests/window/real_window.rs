//! What a cashier sees, and what the gateway counts: one module for each subject.

mod closing;
mod faults;
mod sale;
mod starts;

use crate::harness::bank::Charges;

/// A croissant of the demo catalogue, for 1.85.
const CROISSANT: &str = "BAK-201";
const ONCE: Charges = Charges { count: 1, euros: 185 };
const NOTHING: Charges = Charges { count: 0, euros: 0 };
