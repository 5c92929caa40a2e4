//! Pieces as lines of so many columns. Long texts wrap, nothing is cut off, and a figure stands whole.

use super::document::Piece;
use protocol::is_unseen;
use serde::{Deserialize, Serialize};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// How many characters a printer has in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Paper {
    /// 32: paper of 58 mm.
    #[serde(rename = "32")]
    Columns32,
    /// 42: paper of 80 mm, the usual font.
    #[serde(rename = "42")]
    Columns42,
    /// 48: paper of 80 mm, the dense font of newer printers.
    #[serde(rename = "48")]
    Columns48,
}

impl Paper {
    /// Every width there is.
    pub const ALL: [Self; 3] = [Self::Columns32, Self::Columns42, Self::Columns48];

    /// Characters of a line.
    #[must_use]
    pub const fn columns(self) -> usize {
        match self {
            Self::Columns32 => 32,
            Self::Columns42 => 42,
            Self::Columns48 => 48,
        }
    }
}

/// A line of the receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) is_bold: bool,
}

/// Places between the columns of the tax table.
const TABLE_GAP: usize = 2;

/// The lines of a document.
pub(super) fn lines(pieces: &[Piece], paper: Paper) -> Vec<Line> {
    let columns = paper.columns();
    let mut lines = Vec::new();
    for piece in pieces {
        let (texts, is_bold) = match piece {
            Piece::Centred { text, is_bold } => {
                (wrapped(text, columns).into_iter().map(|line| centred(&line, columns)).collect(), *is_bold)
            }
            Piece::Text { text, indent, is_bold } => (indented(wrapped(text, columns - indent), *indent), *is_bold),
            Piece::Pair { left, right, indent, is_bold } => {
                (indented(apart(left, right, columns - indent), *indent), *is_bold)
            }
            Piece::Rule => (vec!["-".repeat(columns)], false),
            Piece::Gap => (vec![String::new()], false),
            Piece::Taxes { head, rows } => (table(head, rows, columns), false),
        };
        lines.extend(texts.into_iter().map(|text| Line { text: text.trim_end().to_owned(), is_bold }));
    }
    lines
}

fn indented(lines: Vec<String>, indent: usize) -> Vec<String> {
    lines.into_iter().map(|line| " ".repeat(indent) + &line).collect()
}

fn centred(text: &str, columns: usize) -> String {
    " ".repeat(columns.saturating_sub(text.width()) / 2) + text
}

/// A text in lines no wider than that, broken between words, and within one only where it is wider than a line. At least one line.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let text = seen(text);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.width() + 1 + word.width() > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        for c in word.chars() {
            // A combining mark has no width, and stays with its letter.
            if line.width() + c.width().unwrap_or(0) > columns {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    lines.push(line);
    lines
}

/// The text as one line that a printer only prints: nothing of it breaks a line, turns one round, or is a word to the printer.
fn seen(text: &str) -> String {
    text.chars().map(|c| if is_unseen(c) { ' ' } else { c }).collect()
}

/// A text at the left, in as many lines as it needs, and one at the right edge of its last line, or of one more.
fn apart(left: &str, right: &str, columns: usize) -> Vec<String> {
    let mut lines = wrapped(left, columns);
    let right = &*seen(right);
    if right.is_empty() {
        return lines;
    }
    if right.width() > columns {
        // No figure is so wide.
        lines.extend(wrapped(right, columns));
        return lines;
    }
    let last = lines.pop().unwrap_or_default();
    let room = columns - right.width();
    if last.width() < room {
        lines.push(format!("{last}{}{right}", " ".repeat(room - last.width())));
    } else {
        lines.extend([last, " ".repeat(room) + right]);
    }
    lines
}

/// The tax table side by side where it has the room, else a figure a line.
fn table(head: &[String; 4], rows: &[[String; 4]], columns: usize) -> Vec<String> {
    let all = || std::iter::once(head).chain(rows);
    let widths: [usize; 4] = std::array::from_fn(|at| all().map(|row| row[at].width()).max().unwrap_or(0));
    let needed = widths.iter().sum::<usize>() + 3 * TABLE_GAP;
    if needed > columns {
        return rows.iter().flat_map(|row| stacked(head, row, columns)).collect();
    }
    // What is left over goes between the columns, in the same way in each row.
    let gap = TABLE_GAP + (columns - needed) / 3;
    let first = widths[0] + (columns - needed) % 3;
    all()
        .map(|row| {
            let mut line = format!("{}{}", row[0], " ".repeat(first - row[0].width()));
            for at in 1..4 {
                line.push_str(&" ".repeat(gap + widths[at] - row[at].width()));
                line.push_str(&row[at]);
            }
            line
        })
        .collect()
}

fn stacked(head: &[String; 4], row: &[String; 4], columns: usize) -> Vec<String> {
    let mut lines = wrapped(&format!("{} {}", head[0], row[0]), columns);
    for at in 1..4 {
        lines.extend(indented(apart(&head[at], &row[at], columns - 2), 2));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_breaks_its_line_or_speaks_to_the_printer() {
        let forged = "x\nTOTAL EUR\u{1b}@\0\u{202e}0.01".to_owned();
        let pair = Piece::Pair { left: forged.clone(), right: forged.clone(), indent: 0, is_bold: false };
        let long = Piece::Pair { left: "a".to_owned(), right: "x\n".repeat(60), indent: 0, is_bold: false };
        let text = Piece::Text { text: forged.clone(), indent: 2, is_bold: false };
        let centred = Piece::Centred { text: forged, is_bold: false };
        for piece in [pair, long, text, centred] {
            let made = lines(&[piece], Paper::Columns42);
            assert!(made.iter().all(|line| !line.text.contains(is_unseen)), "{made:?}");
            assert!(made.iter().all(|line| !line.text.starts_with("TOTAL")), "{made:?}");
        }
    }
}
