//! Rights: what each role may do, up to which limit, and whose PIN makes more of it allowed.
//!
//! A command that needs a right asks [`allow`] inside its transaction, and signs with what that gives:
//!
//! ```text
//! let signature = &rights::allow(tx, signature, Right::Refund, Measure::Amount(amount))?;
//! // the change
//! audit::append(tx, signature, "refund-begun", Some(sale_id), &details)?;
//! ```
//!
//! The entry then names who acted and, where that person's own right did not reach, who approved. The approval comes with the
//! signature: a face of the till that was given a manager's PIN with its command calls it on
//! [`Till::approved_by`](crate::Till::approved_by), so that no command needs an argument for it.
//!
//! Nobody is held up where there is nobody to be told apart: in a file with no people, and for programs that act by themselves (the
//! bank's answers, `kassa-till`: who may run programs on the file may write it as well).

use crate::{
    TillError,
    amounts::format_amount,
    audit::Signature,
    columns, people,
    people::{Person, Role},
    settings,
};
use protocol::Currency;
use rusqlite::{Connection, Row, params};
use serde::Serialize;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Something that not everybody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// Take something off a line or a sale: a part up to a percent, an amount up to an amount. A cashier by default: 10 %, or 5.00.
    Discount,
    /// Sell at another price than the catalogue's. A cashier by default: no.
    PriceOverride,
    /// Give money back, up to an amount. A cashier by default: 20.00.
    Refund,
    /// Drop a sale that was begun, or empty it. A cashier by default: yes.
    DropSale,
    /// Take cash out of the drawer, up to an amount. A cashier by default: no.
    CashOut,
    /// Open the drawer without a sale. A cashier by default: yes.
    NoSale,
    /// Take a payment offline over the shop's limits. A cashier by default: no.
    OfflineOverLimit,
    /// Give a payment up that was declined after the goods were handed over, or cancel one that needs a person's look. A cashier by
    /// default: no.
    WriteOff,
    /// Count the drawer and close the shift. A cashier by default: yes.
    CloseShift,
    /// See the running report of a shift, and so what the drawer should hold. A cashier by default: no, for who counts must not know.
    ShiftReport,
    /// Change the settings. A cashier by default: no.
    Settings,
    /// Change people, their PINs and rights. A cashier by default: no; a manager always.
    People,
    /// Change the catalogue. A cashier by default: no.
    Catalogue,
    /// Restore a backup. A cashier by default: no.
    Restore,
    /// Export the audit. A cashier by default: no.
    AuditExport,
}

impl Right {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Discount,
        Self::PriceOverride,
        Self::Refund,
        Self::DropSale,
        Self::CashOut,
        Self::NoSale,
        Self::OfflineOverLimit,
        Self::WriteOff,
        Self::CloseShift,
        Self::ShiftReport,
        Self::Settings,
        Self::People,
        Self::Catalogue,
        Self::Restore,
        Self::AuditExport,
    ];

    /// The word in the database and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Discount => "discount",
            Self::PriceOverride => "price_override",
            Self::Refund => "refund",
            Self::DropSale => "drop_sale",
            Self::CashOut => "cash_out",
            Self::NoSale => "no_sale",
            Self::OfflineOverLimit => "offline_over_limit",
            Self::WriteOff => "write_off",
            Self::CloseShift => "close_shift",
            Self::ShiftReport => "shift_report",
            Self::Settings => "settings",
            Self::People => "people",
            Self::Catalogue => "catalogue",
            Self::Restore => "restore",
            Self::AuditExport => "audit_export",
        }
    }

    fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|right| right.as_str() == word)
    }

    /// Whether it can have a limit in an amount.
    #[must_use]
    pub const fn has_amount(self) -> bool {
        matches!(self, Self::Discount | Self::Refund | Self::CashOut)
    }

    /// Whether it can have a limit in percent.
    #[must_use]
    pub const fn has_percent(self) -> bool {
        matches!(self, Self::Discount)
    }

    /// What is done by it, for people.
    const fn deed(self) -> &'static str {
        match self {
            Self::Discount => "a discount",
            Self::PriceOverride => "another price",
            Self::Refund => "a refund",
            Self::DropSale => "dropping a sale",
            Self::CashOut => "taking cash out",
            Self::NoSale => "opening the drawer without a sale",
            Self::OfflineOverLimit => "taking a payment offline over the limit",
            Self::WriteOff => "writing a payment off",
            Self::CloseShift => "closing the shift",
            Self::ShiftReport => "seeing the report of a shift",
            Self::Settings => "changing the settings",
            Self::People => "changing people and their rights",
            Self::Catalogue => "changing the catalogue",
            Self::Restore => "restoring a backup",
            Self::AuditExport => "exporting the audit",
        }
    }
}

/// How much of something is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// It is done or not.
    Whole,
    /// In minor units of the till's currency.
    Amount(i64),
    /// In thousandths of a percent.
    Percent(i64),
}

/// How far a right goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Limit {
    /// Whether it is there at all.
    pub allowed: bool,
    /// Up to this amount, in minor units of the till's currency; none for any.
    pub amount_max: Option<i64>,
    /// Up to this percent, in thousandths; none for any.
    pub percent_max: Option<i64>,
}

impl Limit {
    pub(crate) fn reaches(&self, measure: Measure) -> bool {
        let within = |most: Option<i64>, asked: i64| most.is_none_or(|most| asked <= most);
        self.allowed
            && match measure {
                Measure::Whole => true,
                Measure::Amount(amount) => within(self.amount_max, amount),
                Measure::Percent(percent) => within(self.percent_max, percent),
            }
    }
}

/// One right of one role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleRight {
    /// Whose.
    pub role: Role,
    /// To do what.
    pub right: Right,
    /// How far.
    pub limit: Limit,
}

/// The word of a person whose PIN was right, for whoever was logged in then, and for one command: the first that needs it uses it up.
/// Only [`Till::approved_by`](crate::Till::approved_by) makes one.
#[derive(Debug, Clone)]
pub(crate) struct Approval {
    pub(crate) person_id: i64,
    /// Who was logged in.
    acting: Option<i64>,
    /// Which command used it up; 0 where none did.
    used_by: Arc<AtomicU64>,
    /// The command that it comes with.
    command: u64,
}

/// The number of the next command that comes with an approval.
static NEXT_COMMAND: AtomicU64 = AtomicU64::new(1);

impl Approval {
    pub(crate) fn new(person_id: i64, acting: Option<i64>) -> Self {
        Self { person_id, acting, used_by: Arc::default(), command: 0 }
    }

    /// The same word, as it comes with one command.
    pub(crate) fn for_command(&self) -> Self {
        Self { command: NEXT_COMMAND.fetch_add(1, Ordering::Relaxed), ..self.clone() }
    }

    /// Uses it up, where no other command did and who was logged in still is. One command may need it more than once.
    pub(crate) fn take(&self, acting: &Person) -> bool {
        if self.acting != Some(acting.id) {
            return false;
        }
        let taken = self.used_by.compare_exchange(0, self.command, Ordering::AcqRel, Ordering::Acquire);
        taken.is_ok() || taken == Err(self.command)
    }

    /// Takes it back for a command of which nothing was saved.
    pub(crate) fn give_back(&self) {
        // Where another command used it up, it stays that one's.
        let _ = self.used_by.compare_exchange(self.command, 0, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// Something that needs a right, and how much of it.
pub(crate) trait Asking {
    /// Whether a limit of this role reaches so far.
    fn is_within(&self, role: Role, limit: &Limit) -> Result<bool, TillError>;

    /// What it comes to, where that is an amount which is held against a limit, and in which currency.
    fn money(&self) -> Option<(i64, Currency)>;

    /// By how much it is over a limit that this person has, for people; none where it has no such limit.
    fn over(&self, person: &Person, limit: &Limit, currency: Currency) -> Result<Option<String>, TillError>;
}

/// What a right is asked for, with how much of it.
pub(crate) struct Deed {
    pub(crate) right: Right,
    pub(crate) measure: Measure,
    /// Of an amount; none for the till's own.
    pub(crate) currency: Option<Currency>,
}

impl Deed {
    /// So much of something, in this currency where it is an amount.
    pub(crate) fn of((right, measure): (Right, Measure), currency: Currency) -> Self {
        Self { right, measure, currency: Some(currency) }
    }
}

impl Asking for Deed {
    fn money(&self) -> Option<(i64, Currency)> {
        match self.measure {
            Measure::Amount(amount) => Some((amount, self.currency?)),
            Measure::Whole | Measure::Percent(_) => None,
        }
    }

    fn is_within(&self, _: Role, limit: &Limit) -> Result<bool, TillError> {
        Ok(limit.reaches(self.measure))
    }

    fn over(&self, person: &Person, limit: &Limit, currency: Currency) -> Result<Option<String>, TillError> {
        let amount = |minor_units| format_amount(minor_units, currency);
        let (name, deed) = (&person.name, self.right.deed());
        Ok(match (self.measure, limit.amount_max, limit.percent_max) {
            (Measure::Amount(asked), Some(most), _) => {
                Some(format!("{deed} of {} is over {name}'s limit of {}", amount(asked), amount(most)))
            }
            (Measure::Percent(asked), _, Some(most)) => {
                Some(format!("{deed} of {} % is over {name}'s limit of {} %", percent(asked), percent(most)))
            }
            _ => None,
        })
    }
}

/// Who acts: the signature with the person who is logged in. Every change from a face of the till asks it first.
///
/// # Errors
/// [`TillError::Locked`] where there are people and none of them is logged in.
pub(crate) fn acting(conn: &Connection, signature: &Signature) -> Result<Signature, TillError> {
    let Some(face) = &signature.face else { return Ok(signature.clone()) };
    let person = people::logged_in(conn, face.opening)?;
    if person.is_none() && people::exist(conn)? {
        return Err(TillError::Locked);
    }
    Ok(Signature { person, ..signature.clone() })
}

/// Whether who acts may do this much of something, by own right or by the approval that came along. Gives the signature to sign with.
///
/// # Errors
/// [`TillError::Locked`]; [`TillError::NotAllowed`], which says what is needed and who can give it.
pub(crate) fn allow(
    conn: &Connection,
    signature: &Signature,
    right: Right,
    measure: Measure,
) -> Result<Signature, TillError> {
    allow_all(conn, signature, right, &[&Deed { right, measure, currency: None }])
}

/// The same for an amount of money that is perhaps not in the till's currency.
pub(crate) fn allow_amount(
    conn: &Connection,
    signature: &Signature,
    right: Right,
    (amount, currency): (i64, Currency),
) -> Result<Signature, TillError> {
    allow_all(conn, signature, right, &[&Deed::of((right, Measure::Amount(amount)), currency)])
}

/// The same for what is measured otherwise than by one amount or percent. All of it must be within the right of the same person.
pub(crate) fn allow_all(
    conn: &Connection,
    signature: &Signature,
    right: Right,
    asked: &[&dyn Asking],
) -> Result<Signature, TillError> {
    let signature = acting(conn, signature)?;
    let Some(person) = &signature.person else { return Ok(signature) };
    let Some(over) = first_over(conn, person.role, right, asked)? else { return Ok(signature) };
    let approval = signature.approval();
    let approver = match approval {
        Some(approval) => Some(people::by_id(conn, approval.person_id)?).filter(|person| person.active),
        None => None,
    };
    let Some(approver) = approver else { return Err(refusal(conn, person, right, (over, asked))?) };
    if let Some(over) = first_over(conn, approver.role, right, asked)? {
        return Err(refusal(conn, &approver, right, (over, asked))?);
    }
    if approval.is_some_and(|approval| approval.take(person)) {
        return Ok(Signature { approver: Some(approver), ..signature });
    }
    Err(refusal(conn, person, right, (over, asked))?)
}

/// Whether who acts may see something by the own right: where it may not, it is left out, and nothing is refused.
pub(crate) fn may_see(conn: &Connection, signature: &Signature, right: Right) -> Result<bool, TillError> {
    match allow(conn, &signature.without_approval(), right, Measure::Whole) {
        Ok(_) => Ok(true),
        Err(TillError::NotAllowed(_) | TillError::Locked) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether this person may do this much by the role's own right.
pub(crate) fn may(conn: &Connection, person: &Person, right: Right, asked: &[&dyn Asking]) -> Result<bool, TillError> {
    Ok(person.active && first_over(conn, person.role, right, asked)?.is_none())
}

/// The first of what is asked that a role's right does not reach.
fn first_over<'a>(
    conn: &Connection,
    role: Role,
    right: Right,
    asked: &[&'a dyn Asking],
) -> Result<Option<&'a dyn Asking>, TillError> {
    let limit = limit(conn, role, right)?;
    for one in asked {
        // Of another currency a limit lets nothing pass: how much it would be there is not known.
        let limit = match limit.amount_max {
            Some(_) if is_elsewhere(conn, *one)? => Limit { amount_max: Some(0), ..limit },
            _ => limit,
        };
        if !limit.allowed || !one.is_within(role, &limit)? {
            return Ok(Some(*one));
        }
    }
    Ok(None)
}

/// Whether what is asked is an amount in another currency than the till's, which is that of the limits.
fn is_elsewhere(conn: &Connection, asked: &dyn Asking) -> Result<bool, TillError> {
    let Some((_, currency)) = asked.money() else { return Ok(false) };
    Ok(currency != settings::read(conn)?.currency)
}

/// Says what is over which limit, and who can allow it.
fn refusal(
    conn: &Connection,
    person: &Person,
    right: Right,
    (over, asked): (&dyn Asking, &[&dyn Asking]),
) -> Result<TillError, TillError> {
    let own = limit(conn, person.role, right)?;
    let shop = settings::read(conn)?.currency;
    let said = match over.money().filter(|(_, currency)| own.amount_max.is_some() && *currency != shop) {
        _ if !own.allowed => None,
        Some((amount, currency)) => Some(format!(
            "{} of {} {} can't be held against {}'s limit, which is in {}",
            right.deed(),
            format_amount(amount, currency),
            currency.code(),
            person.name,
            shop.code()
        )),
        None => over.over(person, &own, shop)?,
    };
    let what = said.unwrap_or_else(|| format!("{} is not allowed to {}", right.deed(), person.name));
    let mut can = Vec::new();
    for other in people::list(conn)?.into_iter().filter(|other| other.active) {
        if first_over(conn, other.role, right, asked)?.is_none() {
            can.push(other.name);
        }
    }
    let who = if can.is_empty() {
        "nobody here can approve it: a manager changes the rights".to_owned()
    } else {
        format!("it needs the PIN of {}", can.join(" or "))
    };
    Ok(TillError::NotAllowed(format!("{what}: {who}")))
}

pub(crate) fn percent(thousandths: i64) -> String {
    let (whole, part) = (thousandths / 1_000, thousandths % 1_000);
    let text = format!("{whole}.{part:03}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

const COLUMNS: &str = "role, name, allowed, amount_max, percent_max";

fn role_right(row: &Row<'_>) -> rusqlite::Result<RoleRight> {
    Ok(RoleRight {
        role: columns::word(row, 0, Role::read)?,
        right: columns::word(row, 1, Right::read)?,
        limit: Limit { allowed: row.get(2)?, amount_max: row.get(3)?, percent_max: row.get(4)? },
    })
}

fn limit(conn: &Connection, role: Role, right: Right) -> Result<Limit, TillError> {
    let found = conn
        .prepare_cached(&format!("SELECT {COLUMNS} FROM rights WHERE role = ?1 AND name = ?2"))?
        .query_row([role.as_str(), right.as_str()], role_right)?;
    Ok(found.limit)
}

/// Every right of every role.
pub(crate) fn list(conn: &Connection) -> Result<Vec<RoleRight>, TillError> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM rights"))?;
    let mut found: Vec<RoleRight> = statement.query_map([], role_right)?.collect::<Result<_, _>>()?;
    found.sort_by_key(|one| (one.role, one.right));
    Ok(found)
}

/// Sets how far a right of a role goes.
pub(crate) fn set(tx: &Connection, signature: &Signature, new: RoleRight) -> Result<(), TillError> {
    let signature = &allow(tx, signature, Right::People, Measure::Whole)?;
    let RoleRight { role, right, limit: after } = new;
    if role == Role::Manager && right == Right::People && !after.allowed {
        return Err(TillError::InvalidSetting(
            "managers always may change people and rights: else nobody could ever again",
        ));
    }
    let limits = [(after.amount_max, right.has_amount(), i64::MAX), (after.percent_max, right.has_percent(), 100_000)];
    let fits = |(limit, can_have, most): (Option<i64>, bool, i64)| {
        limit.is_none_or(|limit| after.allowed && can_have && (0..=most).contains(&limit))
    };
    if !limits.into_iter().all(fits) {
        return Err(TillError::InvalidSetting("this right can't have that limit"));
    }
    let before = limit(tx, role, right)?;
    if before == after {
        return Ok(());
    }
    tx.prepare_cached(
        "UPDATE rights SET allowed = ?3, amount_max = ?4, percent_max = ?5 WHERE role = ?1 AND name = ?2",
    )?
    .execute(params![role.as_str(), right.as_str(), after.allowed, after.amount_max, after.percent_max])?;
    let details = serde_json::json!({"role": role, "right": right, "before": before, "after": after});
    crate::audit::append(tx, signature, "right-changed", None, &details)
}
