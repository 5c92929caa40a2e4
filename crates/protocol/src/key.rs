//! The idempotency key of an operation, and its short form for people.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest, Sha256};
use std::{fmt, str::FromStr};
use thiserror::Error;
use uuid::{Builder, Uuid};

/// The idempotency key of one operation: a UUID of any version but nil and max.
///
/// It belongs to what the customer is asked to pay, not to an attempt at asking: made once, when Pay is clicked, and the same
/// in every attempt and after every restart. All spellings of one UUID are one key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Uuid);

/// Why a text is no key. It never repeats the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyError {
    /// Nothing was given.
    #[error("the key is empty; send a UUID")]
    Empty,
    /// Not the 36 characters of a UUID, bare or in double quotes.
    #[error("the key is not a UUID; send one as 8-4-4-4-12 hexadecimal digits, bare or in double quotes")]
    NotUuid,
    /// The nil or the max UUID: what a client sends that forgot to make one.
    #[error("the nil and the max UUID are no keys; make a new UUID for each operation")]
    Reserved,
}

/// Characters of a hyphenated UUID.
const UUID_CHARS: usize = 36;

impl Key {
    /// Reads a key as it stands in the `Idempotency-Key` header: a UUID with hyphens in any case, bare or as a quoted
    /// structured-field string.
    ///
    /// # Errors
    /// [`KeyError`] where the text is no key. Braces, a `urn:` prefix and a form without hyphens are refused: two spellings
    /// are what clients send, and more would only hide a fault of theirs.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let text = text.trim_matches([' ', '\t']);
        if text.is_empty() || text == "\"\"" {
            return Err(KeyError::Empty);
        }
        let bare = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
        if bare.len() != UUID_CHARS {
            return Err(KeyError::NotUuid);
        }
        Self::from_uuid(Uuid::try_parse(bare).map_err(|_| KeyError::NotUuid)?)
    }

    /// Takes a UUID as a key.
    ///
    /// # Errors
    /// [`KeyError::Reserved`] for the nil and the max UUID.
    pub fn from_uuid(uuid: Uuid) -> Result<Self, KeyError> {
        if uuid.is_nil() || uuid.is_max() { Err(KeyError::Reserved) } else { Ok(Self(uuid)) }
    }

    /// Reads a key from the 16 bytes under which both databases store it.
    ///
    /// # Errors
    /// [`KeyError::Reserved`] for the nil and the max UUID.
    pub fn from_bytes(bytes: [u8; 16]) -> Result<Self, KeyError> {
        Self::from_uuid(Uuid::from_bytes(bytes))
    }

    /// Makes a version 7 key, whose order in an index follows the time of its making.
    ///
    /// `random` is the caller's: a test hands in what it likes, a till hands in what its operating system gives.
    /// A time before 1970 counts as 1970; the key is unique by its random part alone.
    #[must_use]
    pub fn v7(now: Timestamp, random: [u8; 10]) -> Self {
        let unix_ms = u64::try_from(now.as_millisecond()).unwrap_or(0);
        Self(Builder::from_unix_timestamp_millis(unix_ms, &random).into_uuid())
    }

    /// The 16 bytes of the key.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The four characters by which people at the till and at the bank name this operation to each other.
    #[must_use]
    pub fn short_code(&self) -> ShortCode {
        let digest = Sha256::digest(self.as_bytes());
        let bits = u32::from_be_bytes([0, digest[0], digest[1], digest[2]]) >> 4;
        ShortCode([15, 10, 5, 0].map(|shift| CROCKFORD[(bits >> shift) as usize & 31]))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::parse(text)
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

/// Crockford's base 32: no I, L, O or U, which are misread or misheard.
const CROCKFORD: [u8; 32] = *b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// The first 20 bits of the SHA-256 of a key's 16 bytes, as four characters of Crockford's base 32.
///
/// It is for talking ("the payment K7Q2"), the same on the till's screen, on the receipt and at the bank. It is not unique and
/// nothing is looked up by it alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShortCode([u8; 4]);

impl ShortCode {
    /// Reads a short code as it stands in a result.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; 4] = text.as_bytes().try_into().ok()?;
        bytes.iter().all(|byte| CROCKFORD.contains(byte)).then_some(Self(bytes))
    }
}

impl fmt::Display for ShortCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|&byte| write!(f, "{}", char::from(byte)))
    }
}

impl fmt::Debug for ShortCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShortCode({self})")
    }
}

impl Serialize for ShortCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ShortCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("not four characters of Crockford's base 32"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: &str = "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b";

    #[test]
    fn all_spellings_are_one_key() {
        let key = Key::parse(KEY).unwrap();
        for spelling in
            [KEY.to_uppercase(), format!("\"{KEY}\""), format!("\"{}\"", KEY.to_uppercase()), format!(" {KEY}\t")]
        {
            assert_eq!(Key::parse(&spelling), Ok(key), "{spelling}");
        }
        assert_eq!(key.to_string(), KEY);
    }

    #[test]
    fn what_is_no_uuid_is_refused() {
        for empty in ["", "  ", "\"\""] {
            assert_eq!(Key::parse(empty), Err(KeyError::Empty), "{empty:?}");
        }
        let list = format!("{KEY},{KEY}");
        let simple = KEY.replace('-', "");
        let braced = format!("{{{simple}}}");
        let urn = format!("urn:uuid:{KEY}");
        let half_quoted = format!("\"{KEY}");
        let moved_hyphen = "0194f3a01-c2d-7e3f-8a4b-5c6d7e8f9a0b";
        let long = "x".repeat(300);
        let not_ascii = "é".repeat(18);
        for wrong in
            ["abc", &list, &simple, &braced, &urn, &half_quoted, moved_hyphen, "' OR 1=1 --", &long, &not_ascii]
        {
            assert_eq!(Key::parse(wrong), Err(KeyError::NotUuid), "{wrong:?}");
        }
        for reserved in ["00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"] {
            assert_eq!(Key::parse(reserved), Err(KeyError::Reserved), "{reserved}");
        }
    }

    #[test]
    fn the_short_code_is_the_first_20_bits_of_the_digest() {
        // Worked out apart from this code: SHA-256 of the sixteen bytes 00 01 … 0f is be45cb2605bf36be…, and be45c in groups of
        // five bits is 10111 11001 00010 11100: 23, 25, 2, 28.
        let bytes: [u8; 16] = std::array::from_fn(|i| u8::try_from(i).unwrap());
        assert_eq!(Key::from_bytes(bytes).unwrap().short_code().to_string(), "QS2W");
    }

    #[test]
    fn a_key_of_the_till_is_a_version_7_uuid_that_sorts_by_time() {
        let at = |second| Key::v7(Timestamp::from_second(second).unwrap(), [7; 10]);
        assert_eq!(at(1_800_000_000).0.get_version_num(), 7);
        assert!(at(1_800_000_000) < at(1_800_000_001));
        assert_eq!(at(-5), at(0), "a clock before 1970 still makes a key");
    }

    proptest! {
        #[test]
        fn a_key_survives_every_spelling(bytes in any::<[u8; 16]>(), quoted: bool, upper: bool) {
            prop_assume!(bytes != [0; 16] && bytes != [255; 16]);
            let key = Key::from_bytes(bytes).unwrap();
            let mut text = key.to_string();
            if upper { text = text.to_uppercase(); }
            if quoted { text = format!("\"{text}\""); }
            prop_assert_eq!(Key::parse(&text), Ok(key));
            let json = serde_json::to_string(&key).unwrap();
            prop_assert_eq!(serde_json::from_str::<Key>(&json).unwrap(), key);
            let code = key.short_code();
            prop_assert_eq!(ShortCode::parse(&code.to_string()), Some(code));
        }

        #[test]
        fn no_text_makes_parsing_panic(text: String) {
            let _: Result<Key, KeyError> = Key::parse(&text);
        }
    }
}
