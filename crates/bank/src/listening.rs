//! The address where a service takes connections.

use std::{io, net::SocketAddr};
use tokio::net::{TcpListener, TcpSocket};

/// Connections that wait for the service to get at them, where the system allows as many. The usual 128 are gone in some
/// milliseconds of a busy machine, and who finds none left is told nothing and tries again after a second.
const WAITING_MAX: u32 = 4_096;

/// Listens there; port 0 takes a free one.
///
/// # Errors
/// Where the address is not to be had.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // So that a service that was killed can be started again at once on the same address. Elsewhere the option would let
    // two listen on one.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING_MAX)
}
