//! The receipt as what receipt printers take: ESC/POS, which Epson made and nearly all others speak.
//!
//! A printer has no Unicode but pages of 256 characters, of which one is chosen at a time. What is written changes the page where a
//! character needs it. A character that none of the printer's pages has is written as one that looks like it, or as `?`, one for
//! each column that it takes, so that the columns stay where they are; a combining mark is left out, its letter stays. Which pages a
//! printer has can't be asked of it: it is a setting.

use super::layout::Line;
use serde::{Deserialize, Serialize};
use unicode_width::UnicodeWidthChar as _;

/// Makes the printer forget what was set before.
const RESET: &[u8] = b"\x1b@";
/// Chooses a page, by the number that follows.
const PAGE: &[u8] = b"\x1bt";
const BOLD: &[u8] = b"\x1bE\x01";
const NOT_BOLD: &[u8] = b"\x1bE\x00";
/// Feeds the paper up to the knife, and cuts all but a point.
const CUT: &[u8] = b"\x1dVB\x00";
/// Opens the drawer at the first plug: 50 ms on, 500 ms off.
const DRAWER: &[u8] = b"\x1bp\x00\x19\xfa";

/// Which of its pages a printer is to use, beside the ASCII that each has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodePages {
    /// None.
    Ascii,
    /// Windows 1252, number 16: Western Europe, with the euro.
    Western,
    /// PC 866, number 17: Cyrillic.
    Cyrillic,
    /// Both, in turn.
    Both,
}

impl CodePages {
    /// Every choice there is.
    pub const ALL: [Self; 4] = [Self::Ascii, Self::Western, Self::Cyrillic, Self::Both];

    /// The word in the database and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ascii => "ascii",
            Self::Western => "western",
            Self::Cyrillic => "cyrillic",
            Self::Both => "both",
        }
    }

    const fn pages(self) -> &'static [Page] {
        match self {
            Self::Ascii => &[],
            Self::Western => &[Page::Windows1252],
            Self::Cyrillic => &[Page::Pc866],
            Self::Both => &[Page::Windows1252, Page::Pc866],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page {
    Windows1252,
    Pc866,
}

impl Page {
    const fn number(self) -> u8 {
        match self {
            Self::Windows1252 => 16,
            Self::Pc866 => 17,
        }
    }

    /// The byte of a character that is not ASCII.
    fn byte(self, c: char) -> Option<u8> {
        let code = u32::from(c);
        let from = |first: u32, byte: u32| u8::try_from(byte + (code - first)).ok();
        match (self, code) {
            (Self::Windows1252, 0xa1..=0xff) => u8::try_from(code).ok(),
            (Self::Windows1252, _) => WINDOWS_1252.iter().find(|&&(other, _)| other == c).map(|&(_, byte)| byte),
            // А to п, and р to я, with a gap between them for the frames of tables.
            (Self::Pc866, 0x410..=0x43f) => from(0x410, 0x80),
            (Self::Pc866, 0x440..=0x44f) => from(0x440, 0xe0),
            (Self::Pc866, _) => PC_866.iter().find(|&&(other, _)| other == c).map(|&(_, byte)| byte),
        }
    }
}

/// Between 0x80 and 0x9f.
const WINDOWS_1252: [(char, u8); 16] = [
    ('€', 0x80),
    ('‚', 0x82),
    ('„', 0x84),
    ('…', 0x85),
    ('Š', 0x8a),
    ('Œ', 0x8c),
    ('Ž', 0x8e),
    ('‘', 0x91),
    ('’', 0x92),
    ('“', 0x93),
    ('”', 0x94),
    ('–', 0x96),
    ('—', 0x97),
    ('š', 0x9a),
    ('œ', 0x9c),
    ('ž', 0x9e),
];

const PC_866: [(char, u8); 10] = [
    ('Ё', 0xf0),
    ('ё', 0xf1),
    ('Є', 0xf2),
    ('є', 0xf3),
    ('Ї', 0xf4),
    ('ї', 0xf5),
    ('Ў', 0xf6),
    ('ў', 0xf7),
    ('·', 0xfa),
    ('№', 0xfc),
];

/// What a printer is sent for the lines of a receipt.
pub(super) fn bytes(lines: &[Line], pages: CodePages, opens_drawer: bool) -> Vec<u8> {
    let mut out = RESET.to_vec();
    if opens_drawer {
        // First: the cashier gives the change while it prints.
        out.extend_from_slice(DRAWER);
    }
    let mut page = None;
    for line in lines {
        if line.is_bold {
            out.extend_from_slice(BOLD);
        }
        for c in line.text.chars() {
            write(c, pages, &mut page, &mut out);
        }
        if line.is_bold {
            out.extend_from_slice(NOT_BOLD);
        }
        out.push(b'\n');
    }
    out.extend_from_slice(CUT);
    out
}

fn write(c: char, pages: CodePages, page: &mut Option<Page>, out: &mut Vec<u8>) {
    if c.is_ascii_control() {
        // Whatever stands in a name, the printer is told nothing by it.
        return out.push(b' ');
    }
    if let Some(byte) = ascii(c) {
        return out.push(byte);
    }
    let chosen = page.filter(|page| page.byte(c).is_some());
    let having = chosen.or_else(|| pages.pages().iter().copied().find(|page| page.byte(c).is_some()));
    if let Some((wanted, byte)) = having.and_then(|page| Some((page, page.byte(c)?))) {
        if *page != Some(wanted) {
            out.extend_from_slice(PAGE);
            out.push(wanted.number());
            *page = Some(wanted);
        }
        return out.push(byte);
    }
    match alike(c) {
        Some(byte) => out.push(byte),
        None => out.extend(std::iter::repeat_n(b'?', c.width().unwrap_or(0))),
    }
}

fn ascii(c: char) -> Option<u8> {
    if c.is_ascii() { u8::try_from(u32::from(c)).ok() } else { None }
}

/// The ASCII that is read as the same.
const fn alike(c: char) -> Option<u8> {
    Some(match c {
        '×' => b'x',
        '·' | '•' | '…' => b'.',
        '–' | '—' | '−' | '‐' | '‑' => b'-',
        '‘' | '’' | '‚' => b'\'',
        '“' | '”' | '„' | '«' | '»' => b'"',
        '\u{a0}' | '\u{2009}' | '\u{202f}' => b' ',
        _ => return None,
    })
}
