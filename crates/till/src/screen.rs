//! How the window looks and is worked at this till: its language and look, its keys, and when it locks by itself. Rows among the settings,
//! each with a value that holds where there is none, as in files from before there were such settings.

mod keys;

pub use keys::{Command, KeyBindings, Shortcut};

use crate::{Language, Right, TillError, audit, audit::Signature, rights, rights::Measure};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// How large text may be, in percent of its usual size.
const TEXT_PERCENT: std::ops::RangeInclusive<u16> = 100..=200;
/// After how long with nobody there the till may lock, in seconds: less would lock it between two articles.
const LOCK_AFTER_S: std::ops::RangeInclusive<u32> = 15..=86_400;

/// Characters that a scanner may send before a code at most.
const SCANNER_PREFIX_CHARS_MAX: usize = 4;

/// Light or dark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Theme {
    /// As the desktop is.
    #[default]
    System,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

/// How the window looks and is worked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScreenSettings {
    /// The language of all text. That of receipts is the printer's.
    pub language: Language,
    /// Light or dark.
    pub theme: Theme,
    /// How large text is, in percent: 100 to 200.
    pub text_percent: u16,
    /// After how many seconds with nobody there the till locks, 15 to 86,400; none where it does not by itself.
    pub lock_after_s: Option<u32>,
    /// What a scanner sends before each code, 1 to 4 characters; none where it is told from a hand by its speed alone.
    pub scanner_prefix: Option<String>,
    /// What each key does.
    pub keys: KeyBindings,
}

impl Default for ScreenSettings {
    fn default() -> Self {
        Self {
            language: Language::English,
            theme: Theme::System,
            text_percent: 100,
            lock_after_s: None,
            scanner_prefix: None,
            keys: KeyBindings::default(),
        }
    }
}

impl ScreenSettings {
    fn check(&self) -> Result<(), TillError> {
        if !TEXT_PERCENT.contains(&self.text_percent) {
            return Err(TillError::InvalidSetting("text is from 100 to 200 percent of its usual size"));
        }
        if self.lock_after_s.is_some_and(|after_s| !LOCK_AFTER_S.contains(&after_s)) {
            return Err(TillError::InvalidSetting("the till locks by itself after 15 seconds to a day"));
        }
        let fits = |prefix: &String| {
            (1..=SCANNER_PREFIX_CHARS_MAX).contains(&prefix.chars().count())
                && !prefix.starts_with(char::is_alphanumeric)
                && !prefix.contains(char::is_whitespace)
        };
        if !self.scanner_prefix.as_ref().is_none_or(fits) {
            return Err(TillError::InvalidSetting(
                "a scanner's prefix has 1 to 4 characters, the first no letter or digit, and no space",
            ));
        }
        Ok(())
    }

    /// Whether the two are worked alike, however they look.
    fn is_worked_as(&self, other: &Self) -> bool {
        (&self.keys, self.lock_after_s, &self.scanner_prefix)
            == (&other.keys, other.lock_after_s, &other.scanner_prefix)
    }
}

/// The row that holds them, as a document.
const ROW: &str = "screen";

/// The settings as they are. A member that a later program wrote, or a value that is none, is as if it was never set: the window must show.
pub(crate) fn read(conn: &Connection) -> Result<ScreenSettings, TillError> {
    let text: Option<String> = conn
        .prepare_cached("SELECT value FROM settings WHERE name = ?1")?
        .query_row([ROW], |row| row.get(0))
        .optional()?;
    let Some(text) = text else { return Ok(ScreenSettings::default()) };
    let read = serde_json::from_str::<ScreenSettings>(&text).ok().filter(|settings| settings.check().is_ok());
    Ok(read.unwrap_or_else(|| {
        tracing::warn!("the settings of the window can't be read: those of a new till hold");
        ScreenSettings::default()
    }))
}

/// Saves them. How it looks is anybody's who is logged in; what keys and scanner do and when it locks is for who may change settings.
pub(crate) fn save(tx: &Connection, signature: &Signature, after: &ScreenSettings) -> Result<(), TillError> {
    let before = read(tx)?;
    let signature = &if before.is_worked_as(after) {
        rights::acting(tx, signature)?
    } else {
        rights::allow(tx, signature, Right::Settings, Measure::Whole)?
    };
    after.check()?;
    if before == *after {
        return Ok(());
    }
    let text = serde_json::to_string(after).map_err(|error| TillError::Internal(error.to_string()))?;
    tx.prepare_cached(
        "INSERT INTO settings (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    )?
    .execute(params![ROW, text])?;
    audit::append(tx, signature, "screen-settings-saved", None, &json!({"before": before, "after": after}))
}
