//! Who may come in at all. A web page open on the same machine can send requests to a server on loopback; it
//! can't send them without an `Origin`, or, by a name that it made point here, without that name as the `Host`.

use crate::http::answer::Refusal;
use axum::http::{HeaderMap, Uri, header, uri::Authority};
use protocol::ProblemType;
use std::net::{IpAddr, SocketAddr};

/// The names under which a service may be called, besides the address that it listens on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Door {
    hosts: Vec<String>,
    /// The address that is listened on, such as 0.0.0.0, where it is another than a connection's own.
    listening: Option<IpAddr>,
}

impl Door {
    pub(crate) fn new(hosts: &[String]) -> Self {
        Self { hosts: hosts.iter().map(|host| host.to_ascii_lowercase()).collect(), listening: None }
    }

    /// The door of a service that listens there.
    pub(crate) fn at(mut self, listening: SocketAddr) -> Self {
        self.listening = Some(listening.ip());
        self
    }

    /// Lets a request in that came over a connection to `local`.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap, local: SocketAddr) -> Result<(), Refusal> {
        let refused = |detail| Err(Refusal::new(ProblemType::Forbidden, detail));
        if headers.contains_key(header::ORIGIN) {
            return refused("requests of web pages are not taken");
        }
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return refused("send one Host header");
        };
        let Some(host) = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()) else {
            return refused("the Host header is not one host");
        };
        if self.knows(&host, local) && uri.authority().is_none_or(|authority| self.knows(authority, local)) {
            Ok(())
        } else {
            refused("the Host is not a name of this service; start it with --host to add one")
        }
    }

    fn knows(&self, authority: &Authority, local: SocketAddr) -> bool {
        if authority.as_str().contains('@') {
            return false;
        }
        let host = authority.host().to_ascii_lowercase();
        if self.hosts.contains(&host) {
            return true;
        }
        let own_port = authority.port().is_none_or(|port| port.as_u16() == local.port());
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        let own = |address: IpAddr| address == local.ip().to_canonical() || Some(address) == self.listening;
        own_port && (host == "localhost" || address.is_some_and(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn let_in(door: &Door, host: &str, more: &[(&'static str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        for (name, value) in more {
            headers.append(*name, value.parse().unwrap());
        }
        door.check(&"/v1/policy".parse().unwrap(), &headers, "127.0.0.1:8460".parse().unwrap()).is_ok()
    }

    #[test]
    fn its_own_address_localhost_and_given_names_are_let_in() {
        let door = Door::new(&["Bank.example".into()]);
        for host in ["127.0.0.1:8460", "127.0.0.1", "localhost:8460", "LOCALHOST", "bank.example", "bank.example:443"] {
            assert!(let_in(&door, host, &[]), "{host}");
        }
        assert!(
            Door::default()
                .check(
                    &"/".parse().unwrap(),
                    &{
                        let mut headers = HeaderMap::new();
                        headers.insert(header::HOST, "[::1]:8460".parse().unwrap());
                        headers
                    },
                    "[::1]:8460".parse().unwrap()
                )
                .is_ok()
        );
    }

    #[test]
    fn the_address_that_it_tells_when_ready_is_its_own_also_where_that_is_every_address() {
        let door = Door::default().at("0.0.0.0:8460".parse().unwrap());
        assert!(let_in(&door, "0.0.0.0:8460", &[]) && let_in(&door, "127.0.0.1:8460", &[]));
        assert!(!let_in(&door, "0.0.0.0:1", &[]) && !let_in(&door, "127.0.0.2:8460", &[]));
        assert!(!let_in(&Door::default(), "0.0.0.0:8460", &[]), "it listens on one address");
    }

    #[test]
    fn all_else_is_kept_out() {
        let door = Door::default();
        for host in [
            "evil.example",
            "evil.example:8460",
            "127.0.0.1.evil.example",
            "127.0.0.1:1",
            "127.0.0.2",
            "a@127.0.0.1:8460",
            "localhost.",
            "",
            "bank.example",
        ] {
            assert!(!let_in(&door, host, &[]), "{host}");
        }
        for origin in ["https://evil.example", "null", "http://127.0.0.1:8460", ""] {
            assert!(!let_in(&door, "127.0.0.1:8460", &[("origin", origin)]), "{origin}");
        }
        assert!(!let_in(&door, "127.0.0.1:8460", &[("host", "127.0.0.1:8460")]), "two of them");
        let none = HeaderMap::new();
        assert!(door.check(&"/".parse().unwrap(), &none, "127.0.0.1:8460".parse().unwrap()).is_err());
        let mut fine = HeaderMap::new();
        fine.insert(header::HOST, "127.0.0.1:8460".parse().unwrap());
        let absolute: Uri = "http://evil.example/v1/policy".parse().unwrap();
        assert!(door.check(&absolute, &fine, "127.0.0.1:8460".parse().unwrap()).is_err());
    }
}
