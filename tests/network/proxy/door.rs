//! Whether anybody can come in: the listener, at a port that stays the proxy's own however it stands.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::watch,
    time::timeout,
};

/// How the door stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Open,
    /// Nobody listens: connections are refused.
    Shut,
    /// Somebody listens, and takes nobody from a queue that is full: the system drops every further knock, and who knocks
    /// hears nothing.
    Full,
}

/// How long a knock goes without an answer before the queue counts as full. An answer on loopback takes microseconds.
const KNOCK: Duration = Duration::from_millis(300);
const KNOCKS_MAX: usize = 16;
const BACKLOG: u32 = 1_024;

/// The listener, however the door stands, and what it takes to keep it so.
pub(crate) struct Doorway {
    /// Bound and never listening, so that nobody else is given the port while the door is shut.
    _place: TcpSocket,
    pub(crate) address: SocketAddr,
    standing: Standing,
}

enum Standing {
    Open(TcpListener),
    Shut,
    Full { _listener: TcpListener, _queue: Vec<TcpStream> },
}

impl Doorway {
    pub(crate) fn open() -> io::Result<Self> {
        let place = bound(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let address = place.local_addr()?;
        let standing = Standing::Open(bound(address)?.listen(BACKLOG)?);
        Ok(Self { _place: place, address, standing })
    }

    /// The next one who comes in. While the door isn't open, nobody.
    pub(crate) async fn next(&self) -> io::Result<TcpStream> {
        match &self.standing {
            Standing::Open(listener) => Ok(listener.accept().await?.0),
            Standing::Shut | Standing::Full { .. } => std::future::pending().await,
        }
    }

    pub(crate) async fn stand(&mut self, door: Door) -> io::Result<()> {
        // The old listener first: two of them would share who comes.
        self.standing = Standing::Shut;
        match door {
            Door::Shut => {}
            Door::Open => self.standing = Standing::Open(bound(self.address)?.listen(BACKLOG)?),
            Door::Full => {
                let listener = bound(self.address)?.listen(0)?;
                let mut queue = Vec::new();
                while let Ok(knocked) = timeout(KNOCK, TcpStream::connect(self.address)).await {
                    queue.push(knocked?);
                    if queue.len() > KNOCKS_MAX {
                        return Err(io::Error::other("the queue does not become full"));
                    }
                }
                self.standing = Standing::Full { _listener: listener, _queue: queue };
            }
        }
        Ok(())
    }
}

fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Tells how the door is to stand, and learns that it does.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) wanted: watch::Sender<Door>,
    pub(crate) stands: watch::Receiver<Door>,
}

impl Handle {
    /// Comes back when the door stands so.
    pub(crate) async fn set(&self, door: Door) -> anyhow::Result<()> {
        self.wanted.send_replace(door);
        self.stands.clone().wait_for(|stands| *stands == door).await?;
        Ok(())
    }
}
