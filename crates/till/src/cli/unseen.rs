//! What a terminal acts on, printed as an escape: in JSON it means the same. A bank's own words stand in what is printed.

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, Write},
};

/// What a terminal acts on, what turns a line round, and what is not seen at all. JSON has the other control characters escaped by
/// itself.
const fn is_unseen(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}') || protocol::is_invisible(c)
}

/// The same with all of that as `\uXXXX`. None of it stands outside of a string.
pub(crate) fn escaped(json: &str) -> Cow<'_, str> {
    if !json.contains(is_unseen) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_unseen(c) {
            // Beyond 16 bits it is a pair of escapes.
            for unit in c.encode_utf16(&mut [0; 2]) {
                // A string takes everything.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Writes JSON on with all of that escaped, in whatever pieces it comes.
pub(crate) struct Escaping<W> {
    out: W,
    /// The beginning of a character whose rest has not come.
    begun: Vec<u8>,
}

impl<W: Write> Escaping<W> {
    pub(crate) const fn new(out: W) -> Self {
        Self { out, begun: Vec::new() }
    }
}

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.begun) {
            Ok(text) => text,
            Err(error) if error.error_len().is_some() => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "what is to be printed is no text"));
            }
            Err(error) => std::str::from_utf8(&self.begun[..error.valid_up_to()]).unwrap_or_default(),
        };
        let length = whole.len();
        let written = self.out.write_all(escaped(whole).as_bytes());
        self.begun.drain(..length);
        written.map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_means_the_same_and_nothing_acts() {
        let text: String = ('\0'..='\u{3000}').chain(['\u{feff}', '\u{1f600}']).collect();
        let json = serde_json::to_string(&text).unwrap();
        let printed = escaped(&json);
        assert_eq!(serde_json::from_str::<String>(&printed).unwrap(), text);
        assert!(!printed.contains(|c: char| c.is_control() || is_unseen(c)));
        for acting in [
            '\u{7f}', '\u{80}', '\u{9b}', '\u{9f}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202e}', '\u{2066}',
            '\u{2069}',
        ] {
            assert!(!printed.contains(acting), "{acting:?}");
        }
        assert!(matches!(escaped("{\"a\":\"é€😀\"}"), Cow::Borrowed(_)), "what is harmless stays as it is");
    }

    #[test]
    fn in_whatever_pieces_it_comes_it_is_the_same() {
        let json = "{\"a\":\"é\u{9b}2J€\u{202e}😀\u{7f}\"}";
        for size in 1..=json.len() {
            let mut out = Vec::new();
            let mut escaping = Escaping::new(&mut out);
            for piece in json.as_bytes().chunks(size) {
                escaping.write_all(piece).unwrap();
            }
            escaping.flush().unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), escaped(json), "{size}");
        }
        assert!(Escaping::new(Vec::new()).write(b"a\xffb").is_err());
    }
}
