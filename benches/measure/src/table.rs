//! A table that reads well as plain text and as Markdown.

use std::fmt::Write;

/// A table: the first column is text, all others are figures.
#[derive(Debug, Clone)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with this head and no rows.
    #[must_use]
    pub fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(ToString::to_string).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The lines of the table.
    pub fn text(&self) -> String {
        let columns = self.rows[0].len();
        let width = |column: usize| {
            let widths = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            widths.max().unwrap_or(0).max(2)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            for (column, width) in widths.iter().enumerate() {
                let cell = row.get(column).map_or("", String::as_str);
                // Writing to a string can't fail.
                let _ = if column == 0 { write!(text, "| {cell:<width$} ") } else { write!(text, "| {cell:>width$} ") };
            }
            text += "|\n";
            if number == 0 {
                for (column, width) in widths.iter().enumerate() {
                    let line = "-".repeat(*width);
                    let _ = if column == 0 { write!(text, "|-{line}-") } else { write!(text, "|-{line}:") };
                }
                text += "|\n";
            }
        }
        text
    }
}

/// A count with its thousands set apart.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A figure as a count.
pub fn rounded(figure: f64) -> String {
    count(figure.round() as u64)
}

/// How many times one figure is another.
pub fn times(figure: f64, other: Option<f64>) -> String {
    other.map_or_else(|| "–".to_owned(), |other| format!("{:.2}", figure / other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_below_each_other() {
        let mut table = Table::new(&["who", "req/s"]);
        table.row(vec!["Kassa".into(), count(1_234)]);
        table.row(vec!["a map, in memory".into(), count(98_765)]);
        let wanted = "\
| who              |  req/s |
|------------------|-------:|
| Kassa            |  1,234 |
| a map, in memory | 98,765 |
";
        assert_eq!(table.text(), wanted);
    }

    #[test]
    fn thousands_are_set_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(number), text);
        }
        assert_eq!((times(3.0, Some(2.0)), times(3.0, None)), ("1.50".into(), "–".into()));
        assert_eq!(rounded(999.6), "1,000");
    }
}
