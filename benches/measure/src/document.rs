//! The generated parts of a document, between their marks; everything else in it is kept.

use anyhow::{Context, Result, ensure};
use std::{fs, io, path::Path};

/// Puts the text between the marks of that name, in place of what was there. Where there are no such marks yet, they come at the end.
///
/// # Errors
/// Where one mark stands without the other, or more than once: then nobody knows what is generated and what is not.
pub fn replaced(document: &str, name: &str, text: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
    let (begins, ends) = (document.matches(&begin).count(), document.matches(&end).count());
    let text = format!("{begin}\n{}\n\n{end}", text.trim());
    if (begins, ends) == (0, 0) {
        let above = document.trim_end();
        return Ok(if above.is_empty() { format!("{text}\n") } else { format!("{above}\n\n{text}\n") });
    }
    ensure!((begins, ends) == (1, 1), "the marks of {name} don't stand there once each");
    let (above, rest) = document.split_once(&begin).context("no begin")?;
    let (_, below) = rest.split_once(&end).with_context(|| format!("the end of {name} stands before its begin"))?;
    Ok(format!("{above}{text}{below}"))
}

/// What stands between the marks of that name; none where they don't stand there.
pub fn part<'a>(document: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = document.split_once(&format!("<!-- begin {name} -->\n"))?;
    Some(rest.split_once(&format!("<!-- end {name} -->"))?.0)
}

/// The document as it is; empty where it isn't there.
pub fn read(path: &Path) -> Result<String> {
    match fs::read_to_string(path) {
        Ok(document) => Ok(document),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error).with_context(|| format!("{} can't be read", path.display())),
    }
}

/// Puts several parts, by name and text, into a file, which is made where it isn't there: all of them or none.
pub fn write(path: &Path, parts: &[(&str, String)]) -> Result<()> {
    let mut document = read(path)?;
    for (name, text) in parts {
        document = replaced(&document, name, text).with_context(|| path.display().to_string())?;
    }
    fs::write(path, document).with_context(|| format!("{} can't be written", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let first = replaced("# Figures\n\nAbove.\n", "bench", "old").unwrap();
        assert_eq!(first, "# Figures\n\nAbove.\n\n<!-- begin bench -->\n\nold\n\n<!-- end bench -->\n");
        let second = replaced(&format!("{first}\nBelow.\n"), "bench", "new\nlines\n").unwrap();
        let wanted = "# Figures\n\nAbove.\n\n<!-- begin bench -->\n\nnew\nlines\n\n<!-- end bench -->\n\nBelow.\n";
        assert_eq!(second, wanted);
        assert_eq!((part(&second, "bench"), part(&second, "soak")), (Some("\nnew\nlines\n\n"), None));
        let other = replaced(&second, "soak", "flat").unwrap();
        assert!(other.starts_with(&second) && other.contains("<!-- begin soak -->\n\nflat\n"), "{other}");
        assert_eq!(replaced("", "bench", "x").unwrap(), "<!-- begin bench -->\n\nx\n\n<!-- end bench -->\n");
    }

    #[test]
    fn marks_that_do_not_fit_are_left_alone() {
        for wrong in [
            "<!-- begin bench -->\n",
            "<!-- end bench -->",
            "<!-- end bench --> <!-- begin bench -->\n",
            "<!-- begin bench -->\n<!-- begin bench -->\n<!-- end bench -->",
        ] {
            assert!(replaced(wrong, "bench", "x").is_err(), "{wrong}");
        }
    }
}
