//! The till's clock, and the ids that are made by it. Neither has a time at which it fails.

use jiff::Timestamp;
use protocol::Key;
use std::time::SystemTime;
use uuid::Uuid;

/// What the machine's clock says.
pub(crate) fn now() -> Timestamp {
    protocol::instant(SystemTime::now())
}

/// An id for something that begins now, such as the intent of a payment: make it before the first click, and give the same with each.
#[must_use]
pub fn new_id() -> Uuid {
    id_at(now())
}

/// An id whose order in an index follows the time of its making, to less than a microsecond. It is unique by its random part
/// alone, wherever the clock stands.
pub(crate) fn id_at(now: Timestamp) -> Uuid {
    let mut random: [u8; 10] = rand::random();
    // The bits that follow the milliseconds (RFC 9562, 6.2, method 3).
    let ns = u64::try_from(now.as_nanosecond().rem_euclid(1_000_000)).unwrap_or(0);
    let [.., high, low] = (ns * 4_096 / 1_000_000).to_be_bytes();
    random[..2].copy_from_slice(&[high, low]);
    Uuid::from_bytes(*Key::v7(now, random).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;
    use std::collections::HashSet;

    #[test]
    fn an_id_can_be_made_at_any_time_and_is_never_made_twice() {
        let times = [Timestamp::MIN, Timestamp::new(-1, -1).unwrap(), Timestamp::UNIX_EPOCH, now(), Timestamp::MAX];
        let ids: HashSet<_> = times.into_iter().flat_map(|at| (0..1_000).map(move |_| id_at(at))).collect();
        assert_eq!(ids.len(), times.len() * 1_000);
        assert!(ids.iter().all(|id| id.get_version_num() == 7));
    }

    #[test]
    fn ids_are_in_the_order_of_their_making() {
        let begin = now();
        let ids: Vec<_> = (0..5_000_i64)
            .filter_map(|step| begin.checked_add(SignedDuration::from_nanos(step * 500)).ok())
            .map(id_at)
            .collect();
        assert_eq!(ids.len(), 5_000);
        assert!(ids.is_sorted());
    }
}
