//! How decisions are told: each figure by its name, so that a reader sees which rule it comes from.

use anyhow::{Result, bail};
use jiff::{SignedDuration, Timestamp};
use outbox::decide::{BankIdentity, Change, Next, Promise, Row};
use outbox::{Ask, Settings, State};
use protocol::Key;
use uuid::Uuid;

pub(crate) const NOW: Timestamp = Timestamp::UNIX_EPOCH;
/// Neither the shortest nor the longest of anything that is drawn.
pub(crate) const CHANCE: u64 = 7;
/// Unlike any figure of the settings.
pub(crate) const RETRY_AFTER: SignedDuration = SignedDuration::from_secs(60);
pub(crate) const RETENTION: SignedDuration = SignedDuration::from_hours(24);

pub(crate) fn key(number: u128) -> Result<Key> {
    Ok(Key::from_bytes(Uuid::from_u128(0x0194_f3a0_1c2d_7e3f_8a4b_0000_0000_0000 + number).into_bytes())?)
}

pub(crate) fn row(number: u128, state: State, ask: Next) -> Result<Row> {
    Ok(Row {
        key: key(number)?,
        lane: format!("lane-{number}"),
        state,
        ask,
        failures: 0,
        panics: 0,
        deaths: 0,
        first_sent_at: None,
    })
}

pub(crate) fn promise(permanent: bool) -> Promise {
    let identity = BankIdentity { bank_id: Uuid::from_u128(7), merchant: "demo".to_owned() };
    Promise { identity, retention: RETENTION, permanent }
}

pub(crate) fn question(ask: impl Into<Next>) -> &'static str {
    match ask.into() {
        Next::Send | Next::Resend => "request",
        Next::LookUp => "look-up",
        Next::Cancel => "cancellation",
    }
}

/// How long after `now`, by the rule that it comes from.
pub(crate) fn when(at: Timestamp, now: Timestamp) -> Result<&'static str> {
    let settings = Settings::default();
    let wait = at.duration_since(now);
    let within = |from: SignedDuration, jitter| wait >= from && wait <= from + jitter;
    let tenth = SignedDuration::from_millis(100);
    Ok(match wait {
        wait if wait <= SignedDuration::ZERO => "at once",
        wait if wait == settings.attention_every => "15 min",
        wait if wait == settings.backoff.base => "0.5 s",
        _ if within(RETRY_AFTER, settings.retry_after_jitter) => "`Retry-After`",
        _ if within(settings.retry_after_min, settings.retry_after_jitter) => "a second",
        _ if within(tenth / 100, settings.backoff.bound(2)) => "back-off",
        wait if wait <= settings.slice => "within 5 s",
        _ => bail!("{wait} after now is no time of the rules"),
    })
}

/// What an operation becomes: the state, and what is asked next, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Becomes {
    pub(crate) state: String,
    pub(crate) next: String,
}

pub(crate) fn becomes(change: &Change, asked: Ask, now: Timestamp) -> Result<Becomes> {
    let mut state = format!("`{}`", change.state);
    if let Some(reason) = &change.reason {
        state.push_str(&format!(", reason `{reason}`"));
    }
    if let Some(contradicts) = change.contradicts {
        state.push_str(&format!(", **alarm**: the bank says `{contradicts}`"));
    }
    let next = match change.due_at {
        None => "–".to_owned(),
        Some(at) => {
            let same = question(change.ask) == question(asked);
            format!("{}, {}", if same { "the same" } else { question(change.ask) }, when(at, now)?)
        }
    };
    Ok(Becomes { state, next })
}
