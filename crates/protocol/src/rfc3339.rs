//! Times as they are sent: RFC 3339, section 5.6, and nothing else of ISO 8601.

use jiff::Timestamp;

/// The shape of a time without its fraction and offset; `d` is a digit.
const DATE_TIME: &[u8] = b"dddd-dd-ddTdd:dd:dd";
/// The shape of an offset after its sign.
const OFFSET: &[u8] = b"dd:dd";

/// Reads `YYYY-MM-DDThh:mm:ss[.fraction](Z|±hh:mm)`, T and Z in any case, as an instant. Second 60 is read as 59.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    // The library reads far more than that: it is asked for the value, not for what may be sent.
    if has_its_shape(text) { text.parse().ok() } else { None }
}

fn has_its_shape(text: &str) -> bool {
    let Some((date_time, rest)) = text.as_bytes().split_at_checked(DATE_TIME.len()) else { return false };
    let offset = match rest.strip_prefix(b".") {
        None => rest,
        Some(rest) => {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return false;
            }
            &rest[digits..]
        }
    };
    is_like(date_time, DATE_TIME) && is_offset(offset)
}

fn is_offset(text: &[u8]) -> bool {
    match text {
        [b'Z' | b'z'] => true,
        // The hour and the minute of an offset are those of a clock; in ASCII, digits are in order.
        [b'+' | b'-', offset @ ..] => is_like(offset, OFFSET) && &offset[..2] <= b"23" && &offset[3..] <= b"59",
        _ => false,
    }
}

/// Whether the text has that shape.
fn is_like(text: &[u8], shape: &[u8]) -> bool {
    text.len() == shape.len()
        && text.iter().zip(shape).all(|(byte, like)| match like {
            b'd' => byte.is_ascii_digit(),
            _ => byte.eq_ignore_ascii_case(like),
        })
}
