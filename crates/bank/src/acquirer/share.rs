//! Each merchant's share of the requests that are answered at once, so that one that sends without measure leaves room for the
//! others. The operations behind them, which run on when their requests are answered, are bounded by the engine.

use crate::http::answer::Refusal;
use protocol::ProblemType;
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Keyed requests of one merchant that are answered at once. A till has one, or four when it drains.
pub(crate) const REQUESTS_MAX: usize = 2_048;

/// The merchants of this bank, and how many requests of each may be answered at once.
pub(crate) struct Shares {
    merchants: BTreeMap<String, Arc<Semaphore>>,
}

impl Shares {
    pub(crate) fn new(merchants: impl IntoIterator<Item = String>) -> Self {
        let share = |merchant| (merchant, Arc::new(Semaphore::new(REQUESTS_MAX)));
        Self { merchants: merchants.into_iter().map(share).collect() }
    }

    /// The merchants' names, in order.
    pub(crate) fn merchants(&self) -> impl Iterator<Item = &str> {
        self.merchants.keys().map(String::as_str)
    }

    /// Takes a place for a request of that merchant; given back when dropped.
    ///
    /// # Errors
    /// `rate-limited`, before anything is claimed, where it has too many in hand already.
    pub(crate) fn take(&self, merchant: &str) -> Result<OwnedSemaphorePermit, Refusal> {
        let place = self.merchants.get(merchant).and_then(|share| share.clone().try_acquire_owned().ok());
        place.ok_or_else(|| {
            let detail = format!(
                "{REQUESTS_MAX} requests of this merchant are being answered already; send the same request again later, and fewer at once"
            );
            Refusal::new(ProblemType::RateLimited, detail)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merchant_that_has_too_much_in_hand_takes_nothing_from_another() {
        let shares = Shares::new(["a".to_owned(), "b".to_owned()]);
        let mut places: Vec<_> = (0..REQUESTS_MAX).map(|_| shares.take("a").unwrap()).collect();
        let refusal = shares.take("a").unwrap_err();
        assert_eq!((refusal.problem.status, refusal.problem.problem), (429, ProblemType::RateLimited));
        assert!(refusal.retry_after_s.is_some());
        assert!(shares.take("b").is_ok());
        places.pop();
        assert!(shares.take("a").is_ok());
    }
}
