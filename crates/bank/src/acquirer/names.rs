//! The bank's own names towards the gateway. They are a hash of what the operation is, so that a bank restored
//! from a backup, or one that lost its last commit, asks under the same key and is not charged again.

use protocol::Key;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use uuid::{Builder, Uuid};

/// What the gateway is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To charge a card.
    Charge,
    /// To give money back.
    Refund,
    /// To give the whole of a charge back, because it was cancelled.
    Reversal,
}

impl Purpose {
    /// The word in the bank's file, in the ledger, and in the hash.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Charge => "charge",
            Self::Refund => "refund",
            Self::Reversal => "reversal",
        }
    }
}

/// Bytes of a reference's hash.
const REFERENCE_BYTES: usize = 12;

/// An operation, as its names are made from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) bank: Uuid,
    pub(crate) merchant: &'a str,
    pub(crate) key: &'a Key,
}

impl Named<'_> {
    /// The key under which the gateway is asked, the same over every attempt and restart, and never the till's own.
    pub(crate) fn gateway_key(self, purpose: Purpose) -> Key {
        let hash = self.hash("key", purpose);
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        let uuid = Builder::from_custom_bytes(bytes).into_uuid();
        // A version 8 UUID is neither nil nor max, which are all that is no key.
        Key::from_uuid(uuid).unwrap_or(*self.key)
    }

    /// The name by which the gateway can be asked what became of it.
    pub(crate) fn reference(self, purpose: Purpose) -> String {
        let hash = self.hash("reference", purpose);
        let mut text = String::from("kassa-");
        for byte in &hash[..REFERENCE_BYTES] {
            // Writing to a string can't fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    fn hash(self, what: &str, purpose: Purpose) -> [u8; 32] {
        let mut hash = Sha256::new();
        let parts = [
            b"kassa gateway 1",
            what.as_bytes(),
            purpose.as_str().as_bytes(),
            self.bank.as_bytes(),
            self.merchant.as_bytes(),
            self.key.as_bytes(),
        ];
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_the_same_for_the_same_and_differ_for_all_else() {
        let (bank, key) = (Uuid::from_u128(1), Key::from_bytes([1; 16]).unwrap());
        let (other_bank, other_key) = (Uuid::from_u128(2), Key::from_bytes([2; 16]).unwrap());
        let named = Named { bank, merchant: "a", key: &key };
        let mut keys = BTreeSet::new();
        let mut references = BTreeSet::new();
        for named in [
            named,
            Named { bank: other_bank, ..named },
            Named { merchant: "b", ..named },
            Named { key: &other_key, ..named },
        ] {
            for purpose in [Purpose::Charge, Purpose::Refund, Purpose::Reversal] {
                assert_eq!(named.gateway_key(purpose), named.gateway_key(purpose));
                assert_ne!(named.gateway_key(purpose), *named.key);
                keys.insert(named.gateway_key(purpose));
                references.insert(named.reference(purpose));
            }
        }
        assert_eq!((keys.len(), references.len()), (12, 12));
    }

    #[test]
    fn the_names_of_an_operation_never_change() {
        // The gateway knows old operations by these: a change here would charge them again.
        let key = Key::parse("0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b").unwrap();
        let named = Named { bank: Uuid::from_u128(1), merchant: "demo", key: &key };
        let mut bytes = Vec::new();
        for part in [
            &b"kassa gateway 1"[..],
            b"reference",
            b"charge",
            &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            b"demo",
            key.as_bytes(),
        ] {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part);
        }
        let hex: String = Sha256::digest(&bytes)[..12].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(named.reference(Purpose::Charge), format!("kassa-{hex}"));
    }
}
