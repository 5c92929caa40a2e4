//! What a request means, as a digest, and which of its members differ from another's.

use sha2::{Digest, Sha256};

/// The way in which digests are made now. A row remembers the one of its making and is compared by that.
pub(crate) const VERSION: i64 = 1;

/// The name under which another method or path stands in [`Meaning::differs`].
const PATH: &str = "path";

/// Bytes kept of each member's digest. They only name what differs; sameness is told by the whole digest.
const MEMBER_BYTES: usize = 8;

/// What a request means, apart from how it was written: the route, and each member with bytes that are equal
/// exactly where its meaning is equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) digest: Vec<u8>,
    /// For each member: the length of its name, the name, and the start of its digest. The route comes first.
    pub(crate) members: Vec<u8>,
}

impl Meaning {
    /// The digest as version `version` makes it; none for a version that this program doesn't know.
    pub(crate) fn make(version: i64, route: &str, members: &[(&'static str, Vec<u8>)]) -> Option<Self> {
        (version == VERSION).then(|| Self::of(route, members))
    }

    /// The digest as this version makes it.
    pub(crate) fn of(route: &str, members: &[(&'static str, Vec<u8>)]) -> Self {
        let mut whole = Sha256::new();
        let mut parts = Vec::with_capacity(32 * (members.len() + 1));
        absorb(&mut whole, b"idempotency meaning 1");
        for (name, value) in std::iter::once((PATH, route.as_bytes())).chain(members.iter().map(|(n, v)| (*n, &v[..])))
        {
            absorb(&mut whole, name.as_bytes());
            absorb(&mut whole, value);
            let name_bytes = u8::try_from(name.len()).unwrap_or(u8::MAX);
            parts.push(name_bytes);
            parts.extend_from_slice(&name.as_bytes()[..usize::from(name_bytes)]);
            parts.extend_from_slice(&Sha256::digest(value)[..MEMBER_BYTES]);
        }
        Self { digest: whole.finalize().to_vec(), members: parts }
    }

    /// The names of the members that differ: `path` alone for another route. Empty where both mean the same.
    pub(crate) fn differs(&self, other: &Self) -> Vec<String> {
        if self.digest == other.digest {
            return Vec::new();
        }
        let (ours, theirs) = (split(&self.members), split(&other.members));
        let find = |list: &[(String, [u8; MEMBER_BYTES])], name: &str| {
            list.iter().find(|(member, _)| member == name).map(|(_, digest)| *digest)
        };
        if find(&ours, PATH) != find(&theirs, PATH) {
            return vec![PATH.to_owned()];
        }
        let mut names: Vec<String> = theirs
            .iter()
            .filter(|(name, digest)| find(&ours, name) != Some(*digest))
            .map(|(name, _)| name.clone())
            .collect();
        names.extend(ours.into_iter().map(|(name, _)| name).filter(|name| find(&theirs, name).is_none()));
        names
    }
}

/// Hashes a part with its length before it, so that no two lists of parts give the same bytes.
fn absorb(hash: &mut Sha256, part: &[u8]) {
    hash.update((part.len() as u64).to_be_bytes());
    hash.update(part);
}

fn split(mut members: &[u8]) -> Vec<(String, [u8; MEMBER_BYTES])> {
    let mut out = Vec::new();
    while let Some((&name_bytes, rest)) = members.split_first() {
        let Some((name, rest)) = rest.split_at_checked(usize::from(name_bytes)) else { break };
        let Some((digest, rest)) = rest.split_first_chunk::<MEMBER_BYTES>() else { break };
        out.push((String::from_utf8_lossy(name).into_owned(), *digest));
        members = rest;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn meaning(route: &str, members: &[(&'static str, &str)]) -> Meaning {
        let members: Vec<_> = members.iter().map(|(name, value)| (*name, value.as_bytes().to_vec())).collect();
        Meaning::make(VERSION, route, &members).unwrap()
    }

    #[test]
    fn the_members_that_differ_are_named_and_another_route_beats_them() {
        let first = meaning("POST /a", &[("amount", "1"), ("card", "x")]);
        assert!(first.differs(&meaning("POST /a", &[("amount", "1"), ("card", "x")])).is_empty());
        assert_eq!(first.differs(&meaning("POST /a", &[("amount", "2"), ("card", "x")])), ["amount"]);
        assert_eq!(first.differs(&meaning("POST /a", &[("amount", "2"), ("card", "y")])), ["amount", "card"]);
        assert_eq!(first.differs(&meaning("POST /b", &[("amount", "2"), ("card", "x")])), ["path"]);
        assert_eq!(first.differs(&meaning("POST /a", &[("amount", "1")])), ["card"]);
        assert_eq!(first.differs(&meaning("POST /a", &[("amount", "1"), ("card", "x"), ("tip", "1")])), ["tip"]);
    }

    #[test]
    fn a_version_that_is_not_known_gives_no_digest() {
        assert_eq!(Meaning::make(VERSION + 1, "POST /a", &[]), None);
    }

    #[test]
    fn what_version_1_makes_never_changes() {
        // Stored in every row: a change here would make every old key look reused, or name the wrong members.
        let first = meaning("POST /v1/things", &[("size", "7")]);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(&first.digest), "4cfd1153745b88750f586370b6ccefc8e75ebd13c59a1ad04aa370e3ab1a21ec");
        let (path, size) = ("0470617468d6a1ee7f0d1e9d1d", "0473697a657902699be42c8a8e");
        assert_eq!(hex(&first.members), format!("{path}{size}"));
    }

    proptest! {
        #[test]
        fn two_lists_of_values_are_the_same_only_where_they_are_equal(a in ".{0,8}", b in ".{0,8}", c in ".{0,8}", d in ".{0,8}") {
            let (one, two) = (meaning("r", &[("m", &a), ("n", &b)]), meaning("r", &[("m", &c), ("n", &d)]));
            prop_assert_eq!(one.differs(&two).is_empty(), a == c && b == d);
        }
    }
}
