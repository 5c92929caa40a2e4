//! How many files and connections the system lets the process have open. Beyond it no connection is accepted, the gateway
//! can't be called and the database can't be opened again, so the bank stays well below.

/// Kept for the databases, the log and the process itself.
const OTHERS: u64 = 128;

/// Asks the system for as many as this process may have. For a program's start: a library changes nothing of the kind.
#[cfg(unix)]
pub fn raise_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}

/// Nothing to ask for: this system has no such limit.
#[cfg(not(unix))]
pub fn raise_limit() {}

/// How many connections may be accepted at once, at most `wanted`. The other half is left for calls to the gateway, both ends
/// of which may be in this process.
pub(crate) fn connections_max(wanted: usize) -> usize {
    #[cfg(unix)]
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(unix))]
    let limit = None;
    below(limit, wanted)
}

fn below(limit: Option<u64>, wanted: usize) -> usize {
    let half = limit.map_or(u64::MAX, |files| files.saturating_sub(OTHERS) / 2);
    usize::try_from(half).unwrap_or(usize::MAX).clamp(1, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_what_the_system_gives_is_for_connections() {
        assert_eq!(below(None, 4_096), 4_096);
        assert_eq!(below(Some(1_048_576), 4_096), 4_096);
        assert_eq!(below(Some(1_024), 4_096), 448);
        assert_eq!(below(Some(100), 4_096), 1);
    }
}
