//! Markdown.

/// A table. What the first column repeats is said once.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&head.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>());
    text.push_str(&format!("|{}\n", "---|".repeat(head.len())));
    let mut above: Option<&String> = None;
    for row in rows {
        let mut shown = row.clone();
        if let (Some(first), Some(above)) = (shown.first_mut(), above)
            && first == above
        {
            first.clear();
        }
        text.push_str(&line(&shown));
        above = row.first();
    }
    text
}

/// Puts together what has the same outcome, in the order in which each outcome first comes.
pub(crate) fn grouped<T, O: PartialEq>(pairs: impl IntoIterator<Item = (T, O)>) -> Vec<(Vec<T>, O)> {
    let mut groups: Vec<(Vec<T>, O)> = Vec::new();
    for (thing, outcome) in pairs {
        match groups.iter_mut().find(|(_, other)| *other == outcome) {
            Some((things, _)) => things.push(thing),
            None => groups.push((vec![thing], outcome)),
        }
    }
    groups
}

/// The groups of at least so many things that are the rest of all: told last, and by one word.
pub(crate) const REST: usize = 5;

/// The largest group last, where it is large enough to be told as the rest.
pub(crate) fn rest_last<T, O>(mut groups: Vec<(Vec<T>, O)>) -> Vec<(Vec<T>, O)> {
    let largest = groups.iter().enumerate().max_by_key(|(at, (things, _))| (things.len(), groups.len() - at));
    if let Some((at, (things, _))) = largest
        && things.len() >= REST
    {
        let group = groups.remove(at);
        groups.push(group);
    }
    groups
}
