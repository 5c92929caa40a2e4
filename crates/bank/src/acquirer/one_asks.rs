//! Of many who ask the same thing at the same time, one finds it out and all are told.

use std::{future::Future, time::Duration};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep_until},
};

/// A question with one answer for all who wait for it. An answer that came before somebody asked is never theirs: whoever
/// asks learns how things are now. Who hangs up while finding out leaves it to the next who waits.
pub(crate) struct OneAsks<T> {
    last: Mutex<Last<T>>,
    pause: Duration,
}

struct Last<T> {
    /// When somebody last began to find out.
    began: Option<Instant>,
    /// The last answer, and when it came.
    told: Option<(Instant, T)>,
}

impl<T: Clone> OneAsks<T> {
    /// Between one finding out and the beginning of the next lies at least `pause`; whoever comes meanwhile waits for the next.
    pub(crate) fn new(pause: Duration) -> Self {
        Self { last: Mutex::new(Last { began: None, told: None }), pause }
    }

    /// The answer; `find_out` is only begun where nobody else finds it out.
    pub(crate) async fn ask(&self, find_out: impl Future<Output = T>) -> T {
        let asked = Instant::now();
        // Held while finding out. All others wait here, and find an answer that came after they asked.
        let mut last = self.last.lock().await;
        if let Some((came, answer)) = &last.told
            && *came > asked
        {
            return answer.clone();
        }
        if let Some(began) = last.began {
            sleep_until(began + self.pause).await;
        }
        last.began = Some(Instant::now());
        let answer = find_out.await;
        last.told = Some((Instant::now(), answer.clone()));
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    const PAUSE: Duration = Duration::from_millis(250);
    const TIME: Duration = Duration::from_millis(40);

    /// How often it was found out, which is the answer too.
    #[derive(Default)]
    struct Found(AtomicU32);

    impl Found {
        async fn out(&self) -> u32 {
            tokio::time::sleep(TIME).await;
            self.0.fetch_add(1, Ordering::Relaxed) + 1
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_ask_while_one_finds_out_are_told_what_it_finds() {
        let (one_asks, found) = (Arc::new(OneAsks::new(PAUSE)), Arc::new(Found::default()));
        let asking: Vec<_> = (0..50)
            .map(|_| {
                let (one_asks, found) = (one_asks.clone(), found.clone());
                tokio::spawn(async move { one_asks.ask(found.out()).await })
            })
            .collect();
        for task in asking {
            assert_eq!(task.await.unwrap(), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_after_an_answer_gets_a_new_one_and_waits_for_it() {
        let (one_asks, found) = (OneAsks::new(PAUSE), Found::default());
        let start = Instant::now();
        for wanted in 1..=4 {
            assert_eq!(one_asks.ask(found.out()).await, wanted);
        }
        assert_eq!(start.elapsed(), PAUSE * 3 + TIME);
        tokio::time::sleep(PAUSE).await;
        let start = Instant::now();
        assert_eq!((one_asks.ask(found.out()).await, start.elapsed()), (5, TIME), "nobody waits for nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn who_hangs_up_while_finding_out_leaves_it_to_the_next() {
        let (one_asks, found) = (OneAsks::new(PAUSE), Found::default());
        let hangs_up = tokio::time::timeout(TIME / 2, one_asks.ask(found.out()));
        let waits = async {
            tokio::task::yield_now().await;
            one_asks.ask(found.out()).await
        };
        let start = Instant::now();
        let (hung_up, told) = tokio::join!(hangs_up, waits);
        assert!(hung_up.is_err() && told == 1);
        assert_eq!(start.elapsed(), PAUSE + TIME, "hanging up makes nothing quicker");
    }
}
