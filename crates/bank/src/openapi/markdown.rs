//! The few marks that the document's prose is written with, as HTML: headings, paragraphs, lists, tables, code, strong words
//! and links.

use crate::http::pages::escaped;

/// HTML of a prose. Headings get an id, and are `level` deep.
pub(crate) fn html(prose: &str, level: u8) -> String {
    let mut html = String::new();
    let mut lines = prose.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim().is_empty() {
            continue;
        }
        if line.starts_with("```") {
            let code: Vec<_> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            html += &format!("<pre><code>{}</code></pre>\n", escaped(&code.join("\n")));
            continue;
        }
        let mut block = vec![line];
        while let Some(more) = lines.next_if(|more| !more.trim().is_empty() && !more.starts_with("```")) {
            block.push(more);
        }
        html += &of_block(&block, level);
    }
    html
}

fn of_block(block: &[&str], level: u8) -> String {
    let first = block.first().copied().unwrap_or_default();
    if let Some(heading) = first.strip_prefix("### ") {
        return format!("<h{level} id=\"{}\">{}</h{level}>\n", anchor(heading), inline(heading));
    }
    if first.starts_with('|') {
        return table(block);
    }
    if first.starts_with("- ") {
        return list("ul", block, |line| line.strip_prefix("- "));
    }
    if first.starts_with("1. ") {
        let numbered = |line: &str| line.split_once(". ").is_some_and(|(number, _)| number.parse::<u8>().is_ok());
        return list("ol", block, |line| numbered(line).then(|| line.split_once(". ").map_or(line, |(_, item)| item)));
    }
    format!("<p>{}</p>\n", inline(&block.join(" ")))
}

/// A list, whose lines that begin no item go on with the one before.
fn list(tag: &str, block: &[&str], item: impl for<'a> Fn(&'a str) -> Option<&'a str>) -> String {
    let mut items: Vec<String> = Vec::new();
    for line in block {
        match (item(line), items.last_mut()) {
            (None, Some(last)) => *last += &format!(" {}", line.trim()),
            (begun, _) => items.push(begun.unwrap_or(line).to_owned()),
        }
    }
    let items: Vec<_> = items.iter().map(|item| format!("<li>{}</li>", inline(item))).collect();
    format!("<{tag}>\n{}\n</{tag}>\n", items.join("\n"))
}

fn table(block: &[&str]) -> String {
    let cells = |line: &str, tag: &str| -> String {
        let cells = line.trim().trim_matches('|').split('|');
        cells.map(|cell| format!("<{tag}>{}</{tag}>", inline(cell.trim()))).collect()
    };
    let head = block.first().map_or_else(String::new, |line| cells(line, "th"));
    let rows: Vec<_> = block.iter().skip(2).map(|line| format!("<tr>{}</tr>", cells(line, "td"))).collect();
    format!("<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{}\n</tbody>\n</table>\n", rows.join("\n"))
}

/// The id of a heading.
pub(crate) fn anchor(heading: &str) -> String {
    let letters = heading.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    letters.collect::<String>().trim_matches('-').to_owned()
}

/// Marks within a line: `code`, in which nothing is a mark, **strong** and *other* words, and links to pages of this bank.
pub(crate) fn inline(text: &str) -> String {
    let mut html = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*', '[']) {
        let (before, marked) = rest.split_at(at);
        html += &escaped(before);
        let (done, after) = mark(marked);
        html += &done;
        rest = after;
    }
    html + &escaped(rest)
}

/// HTML of what begins with a mark, and what comes after it. A mark that isn't closed is a character.
fn mark(text: &str) -> (String, &str) {
    if let Some((code, after)) = text.strip_prefix('`').and_then(|rest| rest.split_once('`')) {
        return (format!("<code>{}</code>", escaped(code)), after);
    }
    if let Some((words, after)) = text.strip_prefix("**").and_then(|rest| rest.split_once("**")) {
        return (format!("<strong>{}</strong>", inline(words)), after);
    }
    if let Some((words, after)) = text.strip_prefix('*').and_then(|rest| rest.split_once('*'))
        && !words.is_empty()
        && !words.starts_with(' ')
    {
        return (format!("<em>{}</em>", inline(words)), after);
    }
    if let Some((words, target)) = text.strip_prefix('[').and_then(|rest| rest.split_once("]("))
        && let Some((target, after)) = target.split_once(')')
        && target.starts_with('/')
    {
        return (format!("<a href=\"{}\">{}</a>", escaped(target), inline(words)), after);
    }
    let (first, after) = text.split_at(1);
    (escaped(first), after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marks_become_html_and_all_else_is_text() {
        assert_eq!(
            html("a <b> `c < *d*` **e**\nf", 3),
            "<p>a &lt;b&gt; <code>c &lt; *d*</code> <strong>e</strong> f</p>\n"
        );
        assert_eq!(html("### One minute\n", 3), "<h3 id=\"one-minute\">One minute</h3>\n");
        assert_eq!(html("- a\n  b\n- c", 3), "<ul>\n<li>a b</li>\n<li>c</li>\n</ul>\n");
        assert_eq!(html("1. a\n   b\n2. c", 3), "<ol>\n<li>a b</li>\n<li>c</li>\n</ol>\n");
        assert_eq!(html("```\n<a>\n\n**b**\n```\nc", 3), "<pre><code>&lt;a&gt;\n\n**b**</code></pre>\n<p>c</p>\n");
        assert_eq!(
            inline("[`a`](/b) **c `d`** [e](http://f) 2 * 3 * 4 *g*"),
            "<a href=\"/b\"><code>a</code></a> <strong>c <code>d</code></strong> [e](http://f) 2 * 3 * 4 <em>g</em>"
        );
        let table = html("| A | B |\n|---|---|\n| 1 | `2` |", 3);
        assert!(
            table.contains("<th>A</th><th>B</th>") && table.contains("<td>1</td><td><code>2</code></td>"),
            "{table}"
        );
    }
}
