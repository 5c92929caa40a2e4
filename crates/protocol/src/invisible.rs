//! Characters that are not seen.

/// Whether nothing of the character is seen, or it turns the line round it: a text with it reads as another one than it is. Control
/// characters ([`char::is_control`]) are none of these.
#[must_use]
pub const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Whether a text with it may read, or print, as another one than it is: a control character, or [`is_invisible`].
#[must_use]
pub fn is_unseen(c: char) -> bool {
    c.is_control() || is_invisible(c)
}
