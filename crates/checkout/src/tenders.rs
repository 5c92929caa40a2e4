//! Tenders against a total: what is paid, rounded, given back and still due.

use crate::cart::{TENDERS_MAX, Tender, at_most, negative};
use crate::error::{Code, PriceError};
use crate::money::{Overflow, add, sub};

/// How cash is rounded: to the smallest coin in use, its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CashRule {
    step: i64,
    rounding: CashRounding,
}

/// Which way cash is rounded to its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CashRounding {
    /// To the nearest step; from half a step, up.
    Nearest,
    /// To the next step above.
    Up,
    /// To the next step below.
    Down,
}

impl CashRounding {
    /// The word for it in JSON and in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nearest => "nearest",
            Self::Up => "up",
            Self::Down => "down",
        }
    }

    /// The rounding of that word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Nearest, Self::Up, Self::Down].into_iter().find(|rounding| rounding.as_str() == word)
    }
}

impl CashRule {
    /// Cash to the minor unit, nothing to round.
    pub const EXACT: Self = Self { step: 1, rounding: CashRounding::Nearest };

    /// Rounding to `step` minor units, such as 5 where the smallest coin is 0.05; none below 1.
    pub fn new(step: i64, rounding: CashRounding) -> Option<Self> {
        (step >= 1).then_some(Self { step, rounding })
    }

    /// The step, in minor units.
    pub fn step(self) -> i64 {
        self.step
    }

    /// Which way it rounds.
    pub fn rounding(self) -> CashRounding {
        self.rounding
    }

    /// True when `tendered` can be handed over in coins of this step.
    pub fn takes(self, tendered: i64) -> bool {
        tendered >= 0 && self.beyond(tendered) == 0
    }

    /// How far `amount` is beyond the step below it.
    fn beyond(self, amount: i64) -> i64 {
        amount.checked_rem_euclid(self.step).unwrap_or(0)
    }

    fn round(self, amount: i64) -> Result<i64, Overflow> {
        let beyond = self.beyond(amount);
        let below = sub(amount, beyond)?;
        let up = match self.rounding {
            CashRounding::Nearest => beyond >= sub(self.step, beyond)?,
            CashRounding::Up => beyond > 0,
            CashRounding::Down => false,
        };
        if up { add(below, self.step) } else { Ok(below) }
    }
}

/// What must be handed over when the rest of a sale is paid in cash, in minor units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CashDue {
    /// The rest, rounded to the step.
    pub due: i64,
    /// What rounding adds, or with a minus takes away: `rest + rounding = due`.
    pub rounding: i64,
}

/// What is due when the `rest` of a sale, in minor units, is paid in cash.
///
/// Right also after a part was paid in cash: that part was a multiple of the step, so rounding the rest and rounding the
/// whole that is paid in cash are the same.
///
/// # Errors
/// [`Code::InvalidValue`] at `rest` below zero; [`Code::OutOfRange`] at `cash_step` when the rounded amount does not fit.
pub fn cash_due(rest: i64, cash: CashRule) -> Result<CashDue, PriceError> {
    if rest < 0 {
        return Err(negative("rest"));
    }
    let due = cash.round(rest).map_err(PriceError::overflow("cash_step"))?;
    let rounding = sub(due, rest).map_err(PriceError::overflow("cash_step"))?;
    Ok(CashDue { due, rounding })
}

/// Tenders against a total, in minor units. Always: total + rounding = sum of the tenders' amounts + rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Balance {
    /// The tenders, in the order given.
    pub tenders: Vec<PricedTender>,
    /// What cash rounding added, or with a minus took away. Nothing unless the sale is paid, and its last part in cash.
    pub rounding: i64,
    /// Back to the customer, out of cash alone.
    pub change: i64,
    /// What the drawer has more than before: all the cash tenders' amounts.
    pub drawer: i64,
    /// Still to pay; 0 when paid.
    pub rest: i64,
}

/// A tender and what of it pays the sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PricedTender {
    /// As given.
    pub tender: Tender,
    /// Its part of the sale: for cash, what of it stays in the drawer.
    pub amount: i64,
}

/// Sets `tenders` against a `total` in minor units, which may have been frozen long before.
///
/// Cash comes last, wherever it stands, and several cash tenders count as one. It is rounded only when it pays all that
/// the others leave: too little cash is a part payment, and leaves an exact rest.
///
/// Cash that was taken before stands with its amount, what of it stayed in the drawer: its change is in the customer's
/// hand. The figures are the same as when it was taken, and still right when a card beside it was declined since.
///
/// # Errors
/// A [`PriceError`] at the tender, when its amount is negative ([`Code::InvalidValue`]), is over what is due and not cash
/// ([`Code::OverDue`]), or is cash that is no multiple of the step ([`Code::CashStep`]); when all cash together does not
/// fit ([`Code::OutOfRange`]); at `tenders` when there are more than [`TENDERS_MAX`]; at `total` when that is negative.
pub fn balance(total: i64, tenders: &[Tender], cash: CashRule) -> Result<Balance, PriceError> {
    if total < 0 {
        return Err(negative("total"));
    }
    at_most("tenders", tenders.len(), TENDERS_MAX)?;
    let due = after_others(total, tenders)?;
    let handed = all_cash(tenders, cash)?;
    let paid = match handed {
        None => CashPaid { drawer: 0, rounding: 0, change: 0, rest: due },
        Some(handed) => pay_in_cash(due, handed, cash)?,
    };
    Ok(Balance {
        tenders: fill(tenders, paid.drawer).map_err(PriceError::overflow("tenders"))?,
        rounding: paid.rounding,
        change: paid.change,
        drawer: paid.drawer,
        rest: paid.rest,
    })
}

/// What the tenders other than cash leave of `total`.
fn after_others(total: i64, tenders: &[Tender]) -> Result<i64, PriceError> {
    let mut due = total;
    for (index, tender) in tenders.iter().enumerate() {
        let (Tender::Card { amount } | Tender::Voucher { amount }) = *tender else { continue };
        let path = || format!("tenders[{index}].amount");
        if amount < 0 {
            return Err(negative(path()));
        }
        if amount > due {
            let message = format!("only {due} is due, and only cash gives change");
            return Err(PriceError::new(Code::OverDue, path(), message));
        }
        due = sub(due, amount).map_err(PriceError::overflow(path()))?;
    }
    Ok(due)
}

/// All cash handed over; none when no tender is cash, which is not the same as cash of nothing.
fn all_cash(tenders: &[Tender], cash: CashRule) -> Result<Option<i64>, PriceError> {
    let mut all = None;
    for (index, tender) in tenders.iter().enumerate() {
        let Tender::Cash { tendered } = *tender else { continue };
        let path = || format!("tenders[{index}].tendered");
        if tendered < 0 {
            return Err(negative(path()));
        }
        if !cash.takes(tendered) {
            let message = format!("cash comes in multiples of {}", cash.step);
            return Err(PriceError::new(Code::CashStep, path(), message));
        }
        all = Some(add(all.unwrap_or(0), tendered).map_err(PriceError::overflow(path()))?);
    }
    Ok(all)
}

struct CashPaid {
    drawer: i64,
    rounding: i64,
    change: i64,
    rest: i64,
}

fn pay_in_cash(due: i64, handed: i64, cash: CashRule) -> Result<CashPaid, PriceError> {
    let rounded = cash_due(due, cash)?;
    if handed < rounded.due {
        // A multiple of the step under the rounded due is under the exact due too: the rest is never negative.
        let rest = sub(due, handed).map_err(PriceError::overflow("tenders"))?;
        return Ok(CashPaid { drawer: handed, rounding: 0, change: 0, rest });
    }
    let change = sub(handed, rounded.due).map_err(PriceError::overflow("tenders"))?;
    Ok(CashPaid { drawer: rounded.due, rounding: rounded.rounding, change, rest: 0 })
}

/// Gives each tender its amount. Cash fills up what stays in the drawer in the order given, so that change comes out of
/// the last.
fn fill(tenders: &[Tender], drawer: i64) -> Result<Vec<PricedTender>, Overflow> {
    let mut to_fill = drawer;
    tenders
        .iter()
        .map(|&tender| {
            let amount = match tender {
                Tender::Card { amount } | Tender::Voucher { amount } => amount,
                Tender::Cash { tendered } => {
                    let amount = tendered.min(to_fill);
                    to_fill = sub(to_fill, amount)?;
                    amount
                }
            };
            Ok(PricedTender { tender, amount })
        })
        .collect()
}
