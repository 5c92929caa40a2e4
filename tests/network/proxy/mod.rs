//! A proxy that plays a bad network: between the till and the bank, at an address that stays over the bank's restarts. What it
//! does with each request is what a test's script says, and it keeps a log of what it saw and did.

mod carrying;
pub(crate) mod door;
pub(crate) mod log;
pub(crate) mod plan;
pub(crate) mod wire;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context, Result};
use tokio::{sync::watch, task::JoinSet};

use self::{
    carrying::carry,
    door::{Door, Doorway, Handle},
    log::{Asked, Log},
    plan::{Ask, Plan},
    wire::Message,
};

/// What is done with a request, by what it is.
pub(crate) type Script = Box<dyn Fn(&Asked) -> Plan + Send + Sync>;

/// The proxy, as long as it is held.
pub(crate) struct Proxy {
    pub(crate) url: String,
    shared: Arc<Shared>,
    _serving: JoinSet<()>,
}

/// What the proxy and its connections share.
pub(crate) struct Shared {
    bank: Mutex<SocketAddr>,
    script: Script,
    log: Mutex<Log>,
    door: Handle,
}

impl Shared {
    fn bank(&self) -> SocketAddr {
        *self.bank.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plan(&self, asked: &Asked) -> Plan {
        (self.script)(asked)
    }
}

impl Proxy {
    /// Starts it before the bank at that address.
    pub(crate) fn start(bank_url: &str, script: Script) -> Result<Self> {
        let doorway = Doorway::open()?;
        let url = format!("http://{}", doorway.address);
        let (wanted, wanted_seen) = watch::channel(Door::Open);
        let (standing, stands) = watch::channel(Door::Open);
        let shared = Arc::new(Shared {
            bank: Mutex::new(address(bank_url)?),
            script,
            log: Mutex::default(),
            door: Handle { wanted, stands },
        });
        let mut serving = JoinSet::new();
        serving.spawn(serve(shared.clone(), doorway, wanted_seen, standing));
        Ok(Self { url, shared, _serving: serving })
    }

    /// The bank is elsewhere now.
    pub(crate) fn point_at(&self, bank_url: &str) -> Result<()> {
        *self.shared.bank.lock().unwrap_or_else(PoisonError::into_inner) = address(bank_url)?;
        Ok(())
    }

    /// Opens or shuts the door.
    pub(crate) async fn door(&self, door: Door) -> Result<()> {
        self.shared.door.set(door).await
    }

    /// Says a request to the bank once more, long after; nobody else sees the answer.
    pub(crate) async fn say_again(&self, request: &Message) -> Result<Message> {
        carrying::ask(&self.shared, request, Ask::Bank).await
    }

    /// What it has seen and done so far.
    pub(crate) fn log(&self) -> Log {
        self.shared.log().clone()
    }
}

fn address(url: &str) -> Result<SocketAddr> {
    url.strip_prefix("http://").and_then(|address| address.parse().ok()).with_context(|| format!("no address: {url}"))
}

async fn serve(
    shared: Arc<Shared>,
    mut doorway: Doorway,
    mut wanted: watch::Receiver<Door>,
    standing: watch::Sender<Door>,
) {
    let mut connections = JoinSet::new();
    for connection in 0.. {
        let stream = tokio::select! {
            stream = doorway.next() => stream,
            Ok(()) = wanted.changed() => {
                let door = *wanted.borrow_and_update();
                match doorway.stand(door).await {
                    Ok(()) => drop(standing.send_replace(door)),
                    Err(error) => shared.log().failed(format!("the door: {error}")),
                }
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        match stream {
            Ok(stream) => drop(connections.spawn(carry(shared.clone(), connection, stream))),
            Err(error) => shared.log().failed(format!("the listener: {error}")),
        }
    }
}
