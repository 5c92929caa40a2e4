//! Names that bank and gateway give to what they make.

use jiff::Timestamp;
use rand::Rng;
use uuid::{Builder, Uuid};

const CROCKFORD: [u8; 32] = *b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Characters of an approval code.
const APPROVAL_CHARS: usize = 6;
/// Characters of a secret that is made here.
const SECRET_CHARS: usize = 32;
/// Characters that 128 bits take in base 32.
const ID_CHARS: usize = 26;

/// A new id such as `pay_01j…`: its order follows the time of its making, so that an index over ids grows at its end.
pub(crate) fn new_id(prefix: &str, now: Timestamp) -> String {
    let unix_ms = u64::try_from(now.as_millisecond()).unwrap_or(0);
    let uuid = Builder::from_unix_timestamp_millis(unix_ms, &rand::rng().random()).into_uuid();
    format!("{prefix}_{}", base32(uuid).to_ascii_lowercase())
}

/// The code that stands on a receipt.
pub(crate) fn approval_code() -> String {
    let mut rng = rand::rng();
    (0..APPROVAL_CHARS).map(|_| char::from(CROCKFORD[rng.random_range(0..CROCKFORD.len())])).collect()
}

/// A new secret for a merchant, of 160 bits.
pub(crate) fn secret() -> String {
    let mut rng = rand::rng();
    let text: String = (0..SECRET_CHARS).map(|_| char::from(CROCKFORD[rng.random_range(0..CROCKFORD.len())])).collect();
    format!("sk_{}", text.to_ascii_lowercase())
}

/// A new id for a store, made once with it.
pub(crate) fn store_id() -> Uuid {
    Uuid::new_v4()
}

fn base32(uuid: Uuid) -> String {
    let bits = uuid.as_u128();
    (0..ID_CHARS).rev().map(|place| char::from(CROCKFORD[(bits >> (5 * place)) as usize & 31])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time_and_are_distinct() {
        let at = |second| new_id("pay", Timestamp::from_second(second).unwrap());
        let ids: std::collections::BTreeSet<_> = (0..100).map(|_| at(1_800_000_000)).collect();
        assert_eq!(ids.len(), 100);
        assert!(ids.iter().all(|id| id.len() == 30 && id < &at(1_800_000_001)));
    }

    #[test]
    fn base_32_holds_all_128_bits() {
        assert_eq!(base32(Uuid::max()), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
        assert_eq!(base32(Uuid::from_u128(33)), "00000000000000000000000011");
    }

    #[test]
    fn an_approval_code_has_six_characters() {
        assert!((0..50).map(|_| approval_code()).all(|code| code.len() == 6));
    }
}
