//! The figures of the queue, told to whoever listens: one look at a time, and not one for each click.

use crate::{Event, clock, queue, settling::Owner, till::not_read};
use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use store::Store;
use tokio::sync::broadcast;

/// How often clicks have them told at most.
const TELL_EVERY: Duration = Duration::from_millis(200);

pub(crate) struct Figures {
    store: Store,
    events: broadcast::Sender<Event>,
    owner: Owner,
    is_wanted: AtomicBool,
    is_running: AtomicBool,
}

impl Figures {
    pub(crate) fn new(store: Store, events: broadcast::Sender<Event>, owner: Owner) -> Arc<Self> {
        Arc::new(Self { store, events, owner, is_wanted: AtomicBool::new(false), is_running: AtomicBool::new(false) })
    }

    /// Has them told soon, where anybody listens. Whoever clicked does not wait for it.
    pub(crate) fn want(self: &Arc<Self>) {
        if self.events.receiver_count() == 0 {
            return;
        }
        self.is_wanted.store(true, Ordering::SeqCst);
        if !self.is_running.swap(true, Ordering::SeqCst) {
            tokio::spawn(tell_while_wanted(Running(Arc::downgrade(self))));
        }
    }

    /// Tells them now.
    pub(crate) async fn tell(&self) {
        let (now, settles) = (clock::now(), self.owner.settles());
        let look = self.store.read(move |conn| queue::summary(conn, now, settles));
        match look.await.map_err(not_read) {
            // Nobody may be listening.
            Ok(summary) => drop(self.events.send(Event::SummaryChanged(summary))),
            Err(error) => tracing::warn!(%error, "the summary could not be told"),
        }
    }
}

/// The one task that tells what clicks want told. It keeps neither the folder nor the file while it waits: everybody else may have
/// let them go.
struct Running(Weak<Figures>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(figures) = self.0.upgrade() {
            figures.is_running.store(false, Ordering::SeqCst);
        }
    }
}

async fn tell_while_wanted(running: Running) {
    while let Some(figures) = running.0.upgrade() {
        if !figures.is_wanted.swap(false, Ordering::SeqCst) {
            drop(running);
            // A click that came before that has found it running.
            if figures.is_wanted.load(Ordering::SeqCst) {
                figures.want();
            }
            return;
        }
        figures.tell().await;
        drop(figures);
        tokio::time::sleep(TELL_EVERY).await;
    }
}
