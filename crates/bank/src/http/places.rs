//! The places for connections: so many and no more, and none of them lost to a client that asks for nothing.
//!
//! A newcomer who finds all places taken gets that of the connection that has had nothing begun for the longest: one that
//! is kept open for later, one that never finishes its head or its body, one that doesn't read. From the moment a request
//! has come whole, body included, its connection keeps the place. Where all have such a request, the newcomer waits, and
//! those behind it wait in the system's own queue.

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
    /// The head of a request came then. Its body is not whole, and nothing is begun.
    Reading(Instant),
    /// A request has come whole and is being answered.
    Asked,
    /// Another connection has the place.
    Lost,
}

impl State {
    /// Since when nothing has been begun; none where the place can't be taken.
    fn idle_since(self) -> Option<Instant> {
        match self {
            Self::New(since) | Self::Reading(since) => Some(since),
            Self::Answered(since) => (since.elapsed() >= ANSWER_TIME_MIN).then_some(since),
            Self::Asked | Self::Lost => None,
        }
    }
}

/// A place that is taken; given back when dropped.
pub(crate) struct Held {
    places: Arc<Places>,
    number: u64,
    place: Arc<Place>,
}

/// Marks a connection as having a request in hand, until dropped.
pub(crate) struct InHand(Arc<Place>);

/// A request whose body has not been read to its end. Dropped before that, nobody wants the rest.
pub(crate) struct Unread(Arc<Place>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds one of these locks, so what they guard is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Places {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, taken: Mutex::default(), given_back: Notify::new() })
    }

    /// Takes a place; waits while every connection has a request that came whole.
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

    /// Has the connection end that has had nothing begun for the longest. False where every one has a request that came
    /// whole, or was just answered.
    pub(crate) fn free_one(&self) -> bool {
        lock(&self.taken).free_one()
    }
}

impl Taken {
    fn free_one(&mut self) -> bool {
        loop {
            let idle = self.list.iter().filter_map(|(&number, place)| Some((lock(&place.state).idle_since()?, number)));
            let Some((since, number)) = idle.min() else { return false };
            let Some(place) = self.list.get(&number) else { return false };
            let mut state = lock(&place.state);
            // Otherwise it was asked just now, and another one has been idle for longer.
            if state.idle_since() == Some(since) {
                *state = State::Lost;
                place.lost.cancel();
                drop(state);
                self.list.remove(&number);
                return true;
            }
        }
    }
}

impl Held {
    /// Marks that a request is in hand, and whether it has come whole or its body is still to be read. None where the place was
    /// lost: then nothing may be begun.
    pub(crate) fn ask(&self, whole: bool) -> Option<InHand> {
        let mut state = lock(&self.place.state);
        if matches!(*state, State::Lost) {
            return None;
        }
        *state = if whole { State::Asked } else { State::Reading(Instant::now()) };
        Some(InHand(self.place.clone()))
    }

    /// Waits until the place is lost.
    pub(crate) async fn lost(&self) {
        self.place.lost.cancelled().await;
    }
}

impl InHand {
    /// For whoever reads the body.
    pub(crate) fn unread(&self) -> Unread {
        Unread(self.0.clone())
    }
}

impl Unread {
    /// Marks that the request has come whole, so that it keeps the place. False where the place was lost before: then nothing
    /// may be begun.
    pub(crate) fn whole(self) -> bool {
        self.0.begin()
    }
}

impl Place {
    fn begin(&self) -> bool {
        let mut state = lock(&self.state);
        if matches!(*state, State::Reading(_)) {
            *state = State::Asked;
        }
        !matches!(*state, State::Lost)
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.0.begin();
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        if !matches!(*state, State::Lost) {
            *state = State::Answered(Instant::now());
        }
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
        let in_hand = first.ask(true).unwrap();
        let newcomer = places.take().await;
        assert!(second.lost().now_or_never().is_some() && third.lost().now_or_never().is_none());
        assert!(second.ask(true).is_none(), "nothing is begun on a lost place");
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
        let in_hand = held.ask(true).unwrap();
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
        drop(held.ask(true));
        let began = Instant::now();
        places.take().await;
        assert!(began.elapsed() >= ANSWER_TIME_MIN && held.lost().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_keeps_its_place_from_when_its_body_is_whole() {
        let places = Places::new(2);
        let (first, second) = (places.take().await, places.take().await);
        let (in_hand, slow) = (first.ask(false).unwrap(), second.ask(false).unwrap());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(in_hand.unread().whole());
        let third = places.take().now_or_never().expect("the other body is not there");
        assert!(second.lost().now_or_never().is_some() && first.lost().now_or_never().is_none());
        assert!(!slow.unread().whole(), "nothing is begun on a lost place");
        drop(slow);
        assert!(second.ask(true).is_none(), "lost for ever");
        // Nobody wants its body, so it is begun without.
        let without = third.ask(false).unwrap();
        drop(without.unread());
        assert!(timeout(Duration::from_secs(60), places.take()).await.is_err());
    }
}
