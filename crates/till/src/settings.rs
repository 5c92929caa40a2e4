//! The shop's settings, a name and a text each.

use crate::{ScaleBarcodes, TillError, restore};
use checkout::{CashRounding, CashRule};
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use protocol::{Currency, holds_card_number, is_unseen};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Characters of the shop's name at most.
const SHOP_NAME_CHARS_MAX: usize = 64;
/// Characters of the till's name at most: a reference at the bank has 64, with the sale's number in it.
const TILL_NAME_CHARS_MAX: usize = 32;

/// How this shop and this till work. A sale keeps those it began with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Stands at the head of a receipt.
    pub shop_name: String,
    /// Names this till at the bank, as in `till-1/1042`. Letters, digits, `-`, `_` and `.`.
    pub till_name: String,
    /// The currency of the catalogue and of new sales.
    pub currency: Currency,
    /// Whether the prices of the catalogue have their tax in them.
    pub prices_include_tax: bool,
    /// How the part paid in cash is rounded.
    pub cash: CashRule,
    /// What the codes carry that this shop's scales print.
    pub scale_barcodes: ScaleBarcodes,
    /// The IANA name of the shop's time zone, such as `Europe/Berlin`; none for the machine's.
    pub time_zone: Option<String>,
    /// The hour at which the shop's day begins, 0 to 23: a bar that closes at three counts the night to the evening before.
    pub day_start_hour: u8,
    /// How much may be handed over before the bank has answered.
    pub offline: OfflineLimits,
}

/// How much a shop hands over before the bank has answered, at its own risk. Amounts in minor units of the shop's currency; what is in
/// another one is over the limit, as its worth is not known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfflineLimits {
    /// For one payment.
    pub payment_max: i64,
    /// For all of them together that are not settled.
    pub sum_max: i64,
    /// How many of them at most.
    pub count_max: u32,
    /// None once the oldest of them is so old, in hours.
    pub age_max_h: u32,
}

impl Default for OfflineLimits {
    fn default() -> Self {
        Self { payment_max: 5_000, sum_max: 100_000, count_max: 75, age_max_h: 24 }
    }
}

impl OfflineLimits {
    fn check(&self) -> Result<(), TillError> {
        let fits = (0..=99_999_999).contains(&self.payment_max)
            && (0..=100_000_000_000).contains(&self.sum_max)
            && self.count_max <= 10_000
            && (1..=8_760).contains(&self.age_max_h);
        if fits {
            return Ok(());
        }
        Err(TillError::InvalidSetting(
            "the offline limits must not be negative, with at most 10000 payments and 1 to 8760 hours",
        ))
    }
}

impl Default for Settings {
    /// A shop in the euro area: shelf prices, cash to the cent.
    fn default() -> Self {
        Self {
            shop_name: "Kassa Demo Shop".to_owned(),
            till_name: "till-1".to_owned(),
            currency: Currency::EUR,
            prices_include_tax: true,
            cash: CashRule::EXACT,
            scale_barcodes: ScaleBarcodes::default(),
            time_zone: None,
            day_start_hour: 0,
            offline: OfflineLimits::default(),
        }
    }
}

impl Settings {
    fn check(&self) -> Result<(), TillError> {
        let name_fits = |name: &str, most: usize| !name.trim().is_empty() && name.chars().count() <= most;
        if !name_fits(&self.shop_name, SHOP_NAME_CHARS_MAX) || self.shop_name.contains(is_unseen) {
            return Err(TillError::InvalidSetting("the shop's name must have 1 to 64 characters, on one line"));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !name_fits(&self.till_name, TILL_NAME_CHARS_MAX) || !self.till_name.chars().all(plain) {
            return Err(TillError::InvalidSetting(
                "the till's name must have 1 to 32 letters, digits, hyphens, underscores or points",
            ));
        }
        if self.time_zone.as_deref().is_some_and(|name| TimeZone::get(name).is_err()) {
            return Err(TillError::InvalidSetting("there is no such time zone: take a name such as Europe/Berlin"));
        }
        if self.day_start_hour > 23 {
            return Err(TillError::InvalidSetting("the shop's day begins at an hour from 0 to 23"));
        }
        if [&self.shop_name, &self.till_name].into_iter().any(|name| holds_card_number(name)) {
            return Err(TillError::InvalidSetting("a name must not hold the number of a card"));
        }
        self.offline.check()
    }

    /// The day that a moment counts for.
    pub(crate) fn business_day(&self, at: Timestamp) -> Date {
        let local = at.to_zoned_datetime(zone(self.time_zone.as_deref())).datetime();
        let is_before = local.hour() < i8::try_from(self.day_start_hour).unwrap_or(0);
        if is_before { local.date().yesterday().unwrap_or(local.date()) } else { local.date() }
    }

    fn rows(&self) -> [(&'static str, String); 13] {
        [
            ("shop_name", self.shop_name.clone()),
            ("till_name", self.till_name.clone()),
            ("currency", self.currency.code().to_owned()),
            ("prices_include_tax", u8::from(self.prices_include_tax).to_string()),
            ("cash_step", self.cash.step().to_string()),
            ("cash_rounding", self.cash.rounding().as_str().to_owned()),
            ("scale_barcodes", self.scale_barcodes.to_string()),
            ("time_zone", self.time_zone.clone().unwrap_or_default()),
            ("day_start_hour", self.day_start_hour.to_string()),
            ("offline_payment_max", self.offline.payment_max.to_string()),
            ("offline_sum_max", self.offline.sum_max.to_string()),
            ("offline_count_max", self.offline.count_max.to_string()),
            ("offline_age_max_h", self.offline.age_max_h.to_string()),
        ]
    }
}

/// The shop's zone, by its name. A name that this machine does not know was checked when it was saved; then the machine's own.
pub(crate) fn zone(name: Option<&str>) -> TimeZone {
    name.and_then(|name| TimeZone::get(name).ok()).unwrap_or_else(TimeZone::system)
}

/// The shop's zone as it is set; the machine's before there are settings.
pub(crate) fn time_zone(conn: &Connection) -> Result<TimeZone, TillError> {
    let name: Option<String> = conn
        .prepare_cached("SELECT value FROM settings WHERE name = 'time_zone' AND value <> ''")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(zone(name.as_deref()))
}

/// Reads the settings. Each of them is there since the first start, so a missing or wrong one is a damaged file.
pub(crate) fn read(conn: &Connection) -> Result<Settings, TillError> {
    let mut statement = conn.prepare_cached("SELECT name, value FROM settings")?;
    let rows: HashMap<String, String> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    let damaged = |name: &str| TillError::Internal(format!("the setting {name} is missing or wrong"));
    let text = |name: &str| rows.get(name).ok_or_else(|| damaged(name));
    let step = text("cash_step")?.parse().map_err(|_| damaged("cash_step"))?;
    let rounding = CashRounding::parse(text("cash_rounding")?).ok_or_else(|| damaged("cash_rounding"))?;
    Ok(Settings {
        shop_name: text("shop_name")?.clone(),
        till_name: text("till_name")?.clone(),
        currency: text("currency")?.parse().map_err(|_| damaged("currency"))?,
        prices_include_tax: text("prices_include_tax")? == "1",
        cash: CashRule::new(step, rounding).ok_or_else(|| damaged("cash_step"))?,
        scale_barcodes: text("scale_barcodes")?.parse().map_err(|_| damaged("scale_barcodes"))?,
        time_zone: Some(text("time_zone")?.clone()).filter(|name| !name.is_empty()),
        day_start_hour: text("day_start_hour")?.parse().map_err(|_| damaged("day_start_hour"))?,
        offline: OfflineLimits {
            payment_max: text("offline_payment_max")?.parse().map_err(|_| damaged("offline_payment_max"))?,
            sum_max: text("offline_sum_max")?.parse().map_err(|_| damaged("offline_sum_max"))?,
            count_max: text("offline_count_max")?.parse().map_err(|_| damaged("offline_count_max"))?,
            age_max_h: text("offline_age_max_h")?.parse().map_err(|_| damaged("offline_age_max_h"))?,
        },
    })
}

/// Saves the settings. Called inside a transaction.
pub(crate) fn save(tx: &Connection, settings: &Settings) -> Result<(), TillError> {
    settings.check()?;
    restore::check_new(tx, &settings.till_name)?;
    let mut statement = tx.prepare_cached(
        "INSERT INTO settings (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    )?;
    for (name, value) in settings.rows() {
        statement.execute(params![name, value])?;
    }
    Ok(())
}

/// Whether this file has been set up.
pub(crate) fn exist(conn: &Connection) -> Result<bool, TillError> {
    Ok(conn.query_row("SELECT EXISTS (SELECT 1 FROM settings)", [], |row| row.get(0))?)
}

/// The settings as the audit shows them.
pub(crate) fn document(settings: &Settings) -> Value {
    settings
        .rows()
        .into_iter()
        .map(|(name, value)| (name.to_owned(), Value::String(value)))
        .collect::<Map<_, _>>()
        .into()
}
