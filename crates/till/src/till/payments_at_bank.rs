//! What the bank is asked beside the queue: looks that change nothing.

use crate::{TillError, doctor::BankPayment};
use jiff::{SignedDuration, Timestamp};
use outbox::answer::CallError;
use outbox::{Call, HttpTransport, Transport as _};
use protocol::PAYMENTS_PATH;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::time::Duration;

/// Payments that the bank lists at a time: fewer than it gives at most, so that a page fits an answer.
const PAYMENTS_PAGE: u32 = 50;
/// How often the bank is asked for one thing that it does not answer.
const TRIES: u32 = 3;
/// Between two tries, where the bank says nothing else.
const TRY_AGAIN: Duration = Duration::from_millis(500);
/// How long the bank may have it waited for.
const WAIT_MAX: SignedDuration = SignedDuration::from_secs(30);

/// Why it ended early.
pub(super) enum Stopped {
    Bank(String),
    Till(TillError),
}

impl From<TillError> for Stopped {
    fn from(error: TillError) -> Self {
        Self::Till(error)
    }
}

/// What the bank must know.
pub(super) fn known<T>(answer: Result<Option<T>, Stopped>) -> Result<T, Stopped> {
    answer?.ok_or_else(|| Stopped::Bank("the bank does not know what it was asked".to_owned()))
}

/// Asks the bank, again where it does not answer; none where it does not know what it was asked for.
pub(super) async fn ask<T: DeserializeOwned>(transport: &HttpTransport, path: &str) -> Result<Option<T>, Stopped> {
    let mut why = String::new();
    for attempt in 1..=TRIES {
        let mut wait = TRY_AGAIN;
        match transport.call(Call::new("GET", path)).await {
            Ok(answer) if answer.status == 200 => {
                let answer = answer.json().map_err(|_| Stopped::Bank("the bank's answer is none".to_owned()))?;
                return Ok(Some(answer));
            }
            Ok(answer) if answer.status == 404 && is_problem(answer.content_type.as_deref()) => return Ok(None),
            Ok(answer) => {
                if let Some(later) = answer.retry_in(Timestamp::now()) {
                    wait = Duration::try_from(later.min(WAIT_MAX)).unwrap_or(wait);
                }
                why = format!("it answered with status {}", answer.status);
                if matches!(answer.status, 401 | 403) {
                    break;
                }
            }
            Err(CallError::NoConnection(cause) | CallError::NoAnswer { detail: cause, .. }) => {
                why = format!("it could not be reached: {cause}");
            }
            Err(CallError::Unsendable(cause)) => return Err(Stopped::Bank(cause)),
        }
        if attempt < TRIES {
            tokio::time::sleep(wait).await;
        }
    }
    Err(Stopped::Bank(why))
}

fn is_problem(kind: Option<&str>) -> bool {
    kind.is_some_and(|kind| kind.starts_with("application/problem+json"))
}

#[derive(Deserialize)]
struct Page {
    data: Vec<Value>,
    next: Option<Value>,
}

/// The bank's list of payments, newest first, a page at a time.
pub(super) struct Pages {
    /// None once there are no more.
    path: Option<String>,
    since: Option<Timestamp>,
}

impl Pages {
    /// Those that the bank claimed since then, and a few before; all of them with `None`.
    pub(super) fn since(since: Option<Timestamp>) -> Self {
        Self { path: Some(format!("{PAYMENTS_PATH}?limit={PAYMENTS_PAGE}")), since }
    }

    /// The next page; none after the last.
    pub(super) async fn next(&mut self, transport: &HttpTransport) -> Result<Option<Vec<BankPayment>>, Stopped> {
        let Some(path) = self.path.take() else { return Ok(None) };
        let page: Page = known(ask(transport, &path).await)?;
        let payments = page.data.into_iter().map(BankPayment::read).collect::<Result<Vec<_>, _>>();
        let payments = payments.map_err(|_| Stopped::Bank("a payment in the bank's list is none".to_owned()))?;
        let is_past = self.since.is_some_and(|since| payments.iter().any(|payment| payment.created_at < since));
        let next = match page.next {
            Some(Value::String(next)) => Some(next),
            Some(Value::Number(next)) => Some(next.to_string()),
            _ => None,
        };
        self.path = next.filter(|_| !is_past).map(|next| format!("{PAYMENTS_PATH}?limit={PAYMENTS_PAGE}&after={next}"));
        Ok(Some(payments))
    }
}
