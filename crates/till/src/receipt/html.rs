//! The receipt as a page of its own: no script, nothing fetched, every text escaped, made to be printed.

use super::{document::Piece, words::Language};
use std::fmt::Write as _;

const STYLE: &str = "\
body{margin:0;background:#fff;color:#000;font:13px/1.4 ui-monospace,Menlo,Consolas,monospace}\
main{max-width:80mm;margin:0 auto;padding:4mm;box-sizing:border-box;overflow-wrap:anywhere}\
p{margin:0}.centred{text-align:center}.gap{height:1.4em}.pair{display:flex;justify-content:space-between;gap:1em}\
.pair span:last-child{text-align:right;white-space:nowrap}.bold{font-weight:bold}.in{padding-left:1.2em}\
hr{border:0;border-top:1px dashed #000;margin:.4em 0}table{width:100%;border-collapse:collapse}\
th,td{font-weight:normal;text-align:right;padding:0;white-space:nowrap}th:first-child,td:first-child{text-align:left}\
@media print{@page{margin:0}main{max-width:none;padding:2mm}}";

/// The page of a document.
pub(super) fn page(pieces: &[Piece], title: &str, language: Language) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<main>\n",
        language.code(),
        escaped(title)
    );
    for piece in pieces {
        page.push_str(&element(piece));
        page.push('\n');
    }
    page + "</main>\n</body>\n</html>\n"
}

fn element(piece: &Piece) -> String {
    match piece {
        Piece::Centred { text, is_bold } => format!("<p class=\"centred{}\">{}</p>", bold(*is_bold), escaped(text)),
        Piece::Text { text, indent, is_bold } => {
            format!("<p class=\"text{}{}\">{}</p>", inner(*indent), bold(*is_bold), escaped(text))
        }
        Piece::Pair { left, right, indent, is_bold } => format!(
            "<p class=\"pair{}{}\"><span>{}</span> <span>{}</span></p>",
            inner(*indent),
            bold(*is_bold),
            escaped(left),
            escaped(right)
        ),
        Piece::Rule => "<hr>".to_owned(),
        Piece::Gap => "<p class=\"gap\"></p>".to_owned(),
        Piece::Taxes { head, rows } => table(head, rows),
    }
}

const fn bold(is_bold: bool) -> &'static str {
    if is_bold { " bold" } else { "" }
}

const fn inner(indent: usize) -> &'static str {
    if indent > 0 { " in" } else { "" }
}

fn table(head: &[String; 4], rows: &[[String; 4]]) -> String {
    let cells = |name: &str, row: &[String; 4]| {
        row.iter().fold(String::new(), |mut cells, cell| {
            // Writing into a string does not fail.
            let _ = write!(cells, "<{name}>{}</{name}>", escaped(cell));
            cells
        })
    };
    let mut table = format!("<table>\n<tr>{}</tr>\n", cells("th", head));
    for row in rows {
        table.push_str(&format!("<tr>{}</tr>\n", cells("td", row)));
    }
    table + "</table>"
}

/// A text in which nothing is markup.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if protocol::is_unseen(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
