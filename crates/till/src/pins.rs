//! PINs: which are taken, how they are kept, and how long one waits after wrong ones.

use crate::TillError;
use argon2::{
    Algorithm, Argon2, Params, Version,
    password_hash::{Error, PasswordHasher as _, PasswordVerifier as _, phc::PasswordHash},
};
use std::{fmt, ops::RangeInclusive};

/// Digits of a PIN.
const DIGITS: RangeInclusive<usize> = 4..=12;

/// What argon2id takes: memory in KiB, passes over it, lanes. The least that OWASP recommends (19 MiB, 2 passes): some 30 ms on a till's
/// processor, which a cashier does not feel. More would not make ten thousand PINs many: who has a copy of the file tries all with
/// four digits in minutes at any price that a till can pay, and only more digits change that. Against who stands at the till the count
/// of wrong tries helps, not the hash. Each PIN is kept with the parameters it was made with, so these may grow.
const MEMORY_KIB: u32 = 19 * 1_024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// The first wrong try in a row after which one waits.
pub(crate) const TRIES_FREE: u32 = 5;
/// The wait after it, in seconds. Each further wrong try doubles it.
const WAIT_S: u32 = 30;
/// What it grows to at most, in seconds: 24 tries a day, and a person who forgot the PIN still gets in the same day.
const WAIT_S_MAX: u32 = 3_600;

/// How long one waits after so many wrong tries in a row, in seconds.
///
/// | wrong tries | up to 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 and more |
/// |---|---|---|---|---|---|---|---|---|---|
/// | wait | none | 30 s | 1 min | 2 min | 4 min | 8 min | 16 min | 32 min | 1 h |
pub(crate) fn wait_s(wrong_tries: u32) -> u32 {
    match wrong_tries.checked_sub(TRIES_FREE) {
        None => 0,
        Some(further) => WAIT_S.saturating_mul(2_u32.saturating_pow(further)).min(WAIT_S_MAX),
    }
}

/// A PIN as it was typed, for a person. It comes with each command that needs one; it is kept nowhere and shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct PinEntry {
    /// Whose it is meant to be.
    pub person_id: i64,
    /// The digits.
    pub pin: String,
}

impl fmt::Debug for PinEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinEntry").field("person_id", &self.person_id).finish_non_exhaustive()
    }
}

/// Refuses what is no PIN, and those that everybody tries first.
pub(crate) fn check(pin: &str) -> Result<(), TillError> {
    if !DIGITS.contains(&pin.len()) || !pin.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(TillError::InvalidPin("a PIN has 4 to 12 digits, and nothing else"));
    }
    if is_trivial(pin.as_bytes()) {
        return Err(TillError::InvalidPin(
            "this PIN is one that everybody tries first: take one that is no row and does not repeat",
        ));
    }
    Ok(())
}

/// The same again and again (0000, 1212, 123123), a row up or down (1234, 7890, 4321), or down the middle of the keypad.
fn is_trivial(digits: &[u8]) -> bool {
    let repeats = (1..=digits.len() / 2)
        .filter(|length| digits.len().is_multiple_of(*length))
        .any(|length| digits.chunks(length).all(|chunk| Some(chunk) == digits.get(..length)));
    let steps_by = |step: u8| digits.windows(2).all(|pair| (pair[0] - b'0' + step) % 10 == pair[1] - b'0');
    repeats || steps_by(1) || steps_by(9) || digits == b"2580" || digits == b"0852"
}

fn hasher() -> Result<Argon2<'static>, TillError> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).map_err(fault)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn fault(error: impl fmt::Display) -> TillError {
    TillError::Internal(format!("a PIN could not be hashed: {error}"))
}

/// The PHC string of a PIN, with a salt of its own. Takes its time: never on the thread that writes.
pub(crate) fn hash(pin: &str) -> Result<String, TillError> {
    let hash: PasswordHash = hasher()?.hash_password(pin.as_bytes()).map_err(fault)?;
    Ok(hash.to_string())
}

/// Whether this is what is kept of a PIN, whichever one.
pub(crate) fn is_kept(kept: &str) -> bool {
    PasswordHash::new(kept).is_ok()
}

/// Whether this is the PIN that was hashed. Takes its time: never on the thread that writes.
pub(crate) fn is_right(pin: &str, kept: &str) -> Result<bool, TillError> {
    let kept = PasswordHash::new(kept).map_err(fault)?;
    match hasher()?.verify_password(pin.as_bytes(), &kept) {
        Ok(()) => Ok(true),
        Err(Error::PasswordInvalid) => Ok(false),
        Err(error) => Err(fault(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_has_four_to_twelve_digits_and_is_not_the_first_that_comes_to_mind() {
        for good in ["2847", "1357", "1987", "000123", "112233", "583920174652", "1243", "90210"] {
            check(good).unwrap();
        }
        for wrong in ["", "284", "5839201746521", "28 47", "28a7", "२८४७", "-2847"] {
            assert!(
                matches!(check(wrong), Err(TillError::InvalidPin(why)) if why.contains("4 to 12 digits")),
                "{wrong}"
            );
        }
        for trivial in [
            "0000",
            "9999",
            "000000000000",
            "1234",
            "0123",
            "7890",
            "8901",
            "4321",
            "0987",
            "123456789012",
            "1212",
            "123123",
            "2580",
            "0852",
        ] {
            assert!(
                matches!(check(trivial), Err(TillError::InvalidPin(why)) if why.contains("tries first")),
                "{trivial}"
            );
        }
    }

    #[test]
    fn a_pin_is_kept_as_its_own_hash_with_its_parameters() {
        let (first, second) = (hash("2847").unwrap(), hash("2847").unwrap());
        assert!(first.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{first}");
        assert_ne!(first, second);
        assert!(is_right("2847", &first).unwrap() && is_right("2847", &second).unwrap());
        assert!(!is_right("2848", &first).unwrap() && !is_right("", &first).unwrap());
        assert!(matches!(is_right("2847", "plain"), Err(TillError::Internal(_))));
        assert!(!format!("{:?}", PinEntry { person_id: 7, pin: "2847".to_owned() }).contains("2847"));
    }

    #[test]
    fn the_wait_doubles_from_the_fifth_wrong_try_on() {
        let waits: Vec<_> = (0..14).map(wait_s).collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600]);
        assert_eq!(wait_s(u32::MAX), 3_600);
    }
}
