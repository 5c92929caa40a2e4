//! The places for connections: so many and no more, and none of them lost to a client that asks for nothing.
//!
//! A newcomer who finds all places taken gets that of the connection that has asked for nothing for the longest: one that
//! is kept open for later, one that never finishes its head, one that doesn't read. A connection with a request in hand
//! keeps its place. Where all have one, the newcomer waits, and those behind it wait in the system's own queue.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

/// How long after an answer the place can't be taken: the answer is on the way.
const ANSWER_TIME_MIN: Duration = Duration::from_secs(1);
/// How often a newcomer who waits looks again: the time after an answer ends without a word.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// All places of one listener.
pub(crate) struct Places {
    max: usize,
    taken: Mutex<Taken>,
    given_back: Notify,
}

#[derive(Default)]
struct Taken {
    next: u64,
    list: BTreeMap<u64, Arc<Place>>,
}

struct Place {
    state: Mutex<State>,
    lost: CancellationToken,
}

#[derive(Clone, Copy)]
enum State {
    /// It was made then, and nothing was asked yet.
    New(Instant),
    /// The last answer was given then.
    Answered(Instant),
    /// A request is being answered.
    Asked,
    /// Another connection has the place.
    Lost,
}

/// A place that is taken; given back when dropped.
pub(crate) struct Held {
    places: Arc<Places>,
    number: u64,
    place: Arc<Place>,
}

/// Marks a connection as having a request in hand, until dropped.
pub(crate) struct InHand<'a>(&'a Place);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds one of these locks, so what they guard is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Places {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, taken: Mutex::default(), given_back: Notify::new() })
    }

    /// Takes a place; waits while every connection has a request in hand.
    pub(crate) async fn take(self: &Arc<Self>) -> Held {
        loop {
            if let Some(held) = self.try_take() {
                return held;
            }
            // Either way it looks again.
            let _ = timeout(LOOK_AGAIN, self.given_back.notified()).await;
        }
    }

    fn try_take(self: &Arc<Self>) -> Option<Held> {
        let mut taken = lock(&self.taken);
        if taken.list.len() >= self.max && !taken.free_one() {
            return None;
        }
        let place = Arc::new(Place { state: Mutex::new(State::New(Instant::now())), lost: CancellationToken::new() });
        let number = taken.next;
        taken.next += 1;
        taken.list.insert(number, place.clone());
        Some(Held { places: self.clone(), number, place })
    }

    /// Has the connection end that has asked for nothing for the longest. False where every one has a request in hand, or was just
    /// answered.
    pub(crate) fn free_one(&self) -> bool {
        lock(&self.taken).free_one()
    }
}

impl Taken {
    fn free_one(&mut self) -> bool {
        let idle = self.list.iter().filter_map(|(&number, place)| match *lock(&place.state) {
            State::New(since) => Some((since, number)),
            State::Answered(since) if since.elapsed() >= ANSWER_TIME_MIN => Some((since, number)),
            _ => None,
        });
        let Some((_, number)) = idle.min() else { return false };
        let Some(place) = self.list.remove(&number) else { return false };
        let mut state = lock(&place.state);
        if matches!(*state, State::Asked) {
            // It was asked just now.
            drop(state);
            self.list.insert(number, place);
            return false;
        }
        *state = State::Lost;
        place.lost.cancel();
        true
    }
}

impl Held {
    /// Marks that a request is in hand. None where the place was lost: then nothing may be begun.
    pub(crate) fn ask(&self) -> Option<InHand<'_>> {
        let mut state = lock(&self.place.state);
        if matches!(*state, State::Lost) {
            return None;
        }
        *state = State::Asked;
        Some(InHand(&self.place))
    }

    /// Waits until the place is lost.
    pub(crate) async fn lost(&self) {
        self.place.lost.cancelled().await;
    }
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        *lock(&self.0.state) = State::Answered(Instant::now());
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if lock(&self.places.taken).list.remove(&self.number).is_some() {
            self.places.given_back.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test(start_paused = true)]
    async fn the_one_too_many_gets_the_place_of_the_one_that_was_idle_for_longest() {
        let places = Places::new(3);
        let first = places.take().await;
        tokio::time::advance(Duration::from_millis(10)).await;
        let (second, third) = (places.take().await, places.take().await);
        let in_hand = first.ask().unwrap();
        let newcomer = places.take().await;
        assert!(second.lost().now_or_never().is_some() && third.lost().now_or_never().is_none());
        assert!(second.ask().is_none(), "nothing is begun on a lost place");
        assert!(first.lost().now_or_never().is_none(), "a request is in hand");
        drop(in_hand);
        drop(second);
        let _another = places.take().await;
        assert!(third.lost().now_or_never().is_some(), "its last request was earlier than the first one's");
        drop((first, newcomer));
    }

    #[tokio::test(start_paused = true)]
    async fn where_all_have_a_request_in_hand_the_newcomer_waits_for_one_to_end() {
        let places = Places::new(1);
        let held = places.take().await;
        let in_hand = held.ask().unwrap();
        let mut newcomer = Box::pin(places.take());
        assert!(timeout(Duration::from_secs(60), &mut newcomer).await.is_err());
        drop(in_hand);
        drop(held);
        newcomer.now_or_never().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_has_the_time_to_go_out() {
        let places = Places::new(1);
        let held = places.take().await;
        drop(held.ask());
        let began = Instant::now();
        places.take().await;
        assert!(began.elapsed() >= ANSWER_TIME_MIN && held.lost().now_or_never().is_some());
    }
}
