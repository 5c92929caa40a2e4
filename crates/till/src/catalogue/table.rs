//! The catalogue as a table of text, for spreadsheets: CSV with a header row, one article a row. A row without an SKU is a category.
//!
//! | column | what stands in it |
//! |---|---|
//! | `sku` | the shop's number of the article; empty for a category |
//! | `name` | of the article or category |
//! | `category` | the category's id, such as `bakery` |
//! | `unit` | `piece` or `weight`; empty is `piece` |
//! | `price` | a decimal in the till's currency, such as `2.49`; `open` where it is asked for |
//! | `tax_rate` | percent, such as `7` or `8.875` |
//! | `colour` | `#rrggbb`; empty for the colour of the category, which must have one itself |
//! | `favourite` | `yes` or `no`; empty is `no` |
//! | `barcodes` | with spaces between them |
//!
//! The columns may stand in any order. Cells are told apart by `,` or `;`, as the header has them; with `;` decimals may have a comma.
//! A cell that a spreadsheet could take for a formula has an apostrophe before it, which reading takes off again.

use super::{
    import::ImportError,
    keeping::{ArticleDetails, CategoryDetails, price_range},
};
use crate::{TillError, Unit, amounts::format_amount};
use checkout::{DecimalError, Rate};
use csv::{ByteRecord, ReaderBuilder, Terminator, WriterBuilder};
use protocol::Currency;

/// The columns, in the order in which they are written.
const COLUMNS: [&str; 9] = ["sku", "name", "category", "unit", "price", "tax_rate", "colour", "favourite", "barcodes"];
/// Without these nothing can be read.
const REQUIRED: [&str; 1] = ["sku"];
/// Tells a spreadsheet that this is UTF-8.
const BOM: &[u8] = b"\xef\xbb\xbf";
/// The word for a price that is asked for.
const OPEN: &str = "open";

/// A row that was read. What has no column in the file is `None`.
#[derive(Debug)]
pub(super) struct ArticleRow {
    /// Where it begins in the file, from 1.
    pub(super) line: u64,
    pub(super) sku: String,
    pub(super) name: Option<String>,
    pub(super) category: Option<String>,
    pub(super) unit: Option<Unit>,
    /// `Some(None)` where it is asked for.
    pub(super) price: Option<Option<i64>>,
    pub(super) tax_rate: Option<Rate>,
    pub(super) colour: Option<Option<String>>,
    pub(super) favourite: Option<bool>,
    pub(super) barcodes: Option<Vec<String>>,
}

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Whether its decimals have a comma.
    pub(super) decimal_comma: bool,
    pub(super) categories: Vec<(u64, CategoryDetails)>,
    pub(super) articles: Vec<ArticleRow>,
    pub(super) errors: Vec<ImportError>,
}

/// Puts an apostrophe before what a spreadsheet would compute, and before one that is there already.
fn guarded(cell: &str) -> String {
    if cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\'']) { format!("'{cell}") } else { cell.to_owned() }
}

fn unguarded(cell: &str) -> &str {
    match cell.strip_prefix('\'') {
        Some(rest) if rest.starts_with(['=', '+', '-', '@', '\t', '\r', '\'']) => rest,
        _ => cell,
    }
}

/// Writes a catalogue.
pub(super) fn write(
    categories: &[CategoryDetails],
    articles: &[ArticleDetails],
    currency: Currency,
) -> Result<Vec<u8>, TillError> {
    let failed =
        |error: &dyn std::fmt::Display| TillError::Internal(format!("the catalogue could not be written: {error}"));
    let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(BOM.to_vec());
    writer.write_record(COLUMNS).map_err(|error| failed(&error))?;
    for category in categories {
        let cells = ["", &category.name, &category.id, "", "", "", &category.colour, "", ""];
        writer.write_record(cells.map(guarded)).map_err(|error| failed(&error))?;
    }
    for article in articles {
        let cells = [
            article.sku.as_str(),
            &article.name,
            &article.category,
            article.unit.as_str(),
            &article.price.map_or_else(|| OPEN.to_owned(), |price| format_amount(price, currency)),
            &article.tax_rate.to_string(),
            article.colour.as_deref().unwrap_or_default(),
            if article.favourite { "yes" } else { "" },
            &article.barcodes.join(" "),
        ];
        writer.write_record(cells.map(guarded)).map_err(|error| failed(&error))?;
    }
    writer.into_inner().map_err(|error| failed(&error))
}

/// Reads a catalogue. Never fails: what is wrong stands among the errors, each with its line.
pub(super) fn read(bytes: &[u8], currency: Currency, rows_max: usize) -> Table {
    let text = bytes.strip_prefix(BOM).unwrap_or(bytes);
    let head = text.split(|byte| matches!(byte, b'\n' | b'\r')).find(|line| !line.is_empty()).unwrap_or_default();
    let count = |wanted: u8| head.iter().filter(|byte| **byte == wanted).count();
    let delimiter = if count(b';') > count(b',') { b';' } else { b',' };
    let mut records = ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(text);
    let mut table = Table::default();
    let mut record = ByteRecord::new();
    let mut lines = Lines { text, at: 0, line: 1 };
    let mut cells = None;
    let mut rows = 0_usize;
    loop {
        match records.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                table.errors.push(ImportError::new(lines.line, None, error.to_string()));
                break;
            }
        }
        let line = lines.of(record.position().map_or(0, csv::Position::byte));
        let Some(known) = &cells else {
            match Cells::of_header(line, &record, delimiter, currency) {
                Ok(known) => {
                    table.decimal_comma = known.decimal_comma;
                    cells = Some(known);
                }
                Err(error) => {
                    table.errors.push(error);
                    return table;
                }
            }
            continue;
        };
        rows += 1;
        if rows > rows_max {
            table.errors.push(ImportError::new(line, None, format!("a catalogue has at most {rows_max} rows")));
            break;
        }
        known.read(line, &record, &mut table);
    }
    if cells.is_none() && table.errors.is_empty() {
        table.errors.push(ImportError::new(
            1,
            None,
            "the file is empty: its first row must name the columns".to_owned(),
        ));
    }
    table
}

/// Counts lines up to a place in a text. Blank ones before a record belong to no record.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    line: u64,
}

impl Lines<'_> {
    fn of(&mut self, byte: u64) -> u64 {
        let byte = usize::try_from(byte).unwrap_or(usize::MAX).min(self.text.len());
        while let Some(&here) = self.text.get(self.at) {
            let ends = here == b'\n' || (here == b'\r' && self.text.get(self.at + 1) != Some(&b'\n'));
            if self.at >= byte && !matches!(here, b'\n' | b'\r') {
                break;
            }
            self.at += 1;
            self.line += u64::from(ends);
        }
        self.line
    }
}

/// Which column stands where.
struct Cells {
    places: [Option<usize>; COLUMNS.len()],
    count: usize,
    decimal_comma: bool,
    currency: Currency,
}

impl Cells {
    fn of_header(line: u64, record: &ByteRecord, delimiter: u8, currency: Currency) -> Result<Self, ImportError> {
        let wrong = |column: Option<&str>, message: String| Err(ImportError::new(line, column, message));
        let mut places = [None; COLUMNS.len()];
        for (place, name) in record.iter().enumerate() {
            let Ok(name) = std::str::from_utf8(name) else {
                return wrong(None, "is not UTF-8: save the file as UTF-8".to_owned());
            };
            let name = name.trim().to_lowercase().replace(' ', "_");
            match COLUMNS.iter().position(|column| *column == name) {
                Some(column) if places[column].is_some() => {
                    return wrong(Some(&name), "is there twice in the first row".to_owned());
                }
                Some(column) => places[column] = Some(place),
                None => {
                    let known = COLUMNS.join(", ");
                    let name: String = name.chars().take(64).collect();
                    return wrong(None, format!("“{name}” is no column of a catalogue: there are {known}"));
                }
            }
        }
        for required in REQUIRED {
            if !COLUMNS.iter().zip(places).any(|(column, place)| *column == required && place.is_some()) {
                return wrong(Some(required), "must be among the columns of the first row".to_owned());
            }
        }
        Ok(Self { places, count: record.len(), decimal_comma: delimiter == b';', currency })
    }

    fn read(&self, line: u64, record: &ByteRecord, table: &mut Table) {
        if record.len() != self.count {
            let message = format!("has {} cells, and the first row has {}", record.len(), self.count);
            table.errors.push(ImportError::new(line, None, message));
            return;
        }
        let mut row = Row { cells: self, record, line, errors: &mut table.errors };
        let Some(sku) = row.text("sku") else { return };
        if sku.is_empty() {
            if let Some(category) = row.category() {
                table.categories.push((line, category));
            }
        } else {
            let article = row.article(sku);
            table.articles.push(article);
        }
    }
}

/// One row and what is wrong with it.
struct Row<'a> {
    cells: &'a Cells,
    record: &'a ByteRecord,
    line: u64,
    errors: &'a mut Vec<ImportError>,
}

impl Row<'_> {
    fn wrong(&mut self, column: &'static str, message: String) {
        self.errors.push(ImportError::new(self.line, Some(column), message));
    }

    /// A cell, with what guarded it taken off; none where there is no such column, or it is no text.
    fn text(&mut self, column: &'static str) -> Option<String> {
        let at = COLUMNS.iter().position(|known| *known == column)?;
        let cell = self.record.get(self.cells.places.get(at).copied().flatten()?)?;
        match std::str::from_utf8(cell) {
            Ok(cell) => Some(unguarded(cell.trim_matches(' ')).to_owned()),
            Err(_) => {
                self.wrong(column, "is not UTF-8: save the file as UTF-8".to_owned());
                None
            }
        }
    }

    /// A row without an SKU.
    fn category(&mut self) -> Option<CategoryDetails> {
        for column in ["unit", "price", "tax_rate", "favourite", "barcodes"] {
            if self.text(column).is_some_and(|cell| !cell.is_empty()) {
                self.wrong(
                    "sku",
                    "is empty: an article must have one, and a category has neither price nor unit".to_owned(),
                );
                return None;
            }
        }
        let (id, name, colour) = (self.text("category")?, self.text("name")?, self.text("colour")?);
        let category = CategoryDetails { id, name, colour };
        match category.check() {
            Ok(()) => Some(category),
            Err((column, message)) => {
                self.wrong(column, message);
                None
            }
        }
    }

    fn article(&mut self, sku: String) -> ArticleRow {
        ArticleRow {
            line: self.line,
            sku,
            name: self.text("name"),
            category: self.text("category"),
            unit: self.parsed("unit", |_, cell| match cell {
                "" => Ok(Unit::Piece),
                word => Unit::read(word).ok_or_else(|| "must be piece or weight".to_owned()),
            }),
            price: self.parsed("price", |cells, cell| {
                if cell.eq_ignore_ascii_case(OPEN) { Ok(None) } else { cells.amount(cell).map(Some) }
            }),
            tax_rate: self.parsed("tax_rate", |cells, cell| {
                cells.decimal(cell).parse().map_err(|error| match error {
                    DecimalError::Malformed => {
                        format!("must be a percentage such as 7 or {}", written("8.875", cells.decimal_comma))
                    }
                    error => error.to_string(),
                })
            }),
            colour: self.text("colour").map(|colour| (!colour.is_empty()).then_some(colour)),
            favourite: self.parsed("favourite", |_, cell| match cell.to_lowercase().as_str() {
                "yes" | "1" | "true" => Ok(true),
                "" | "no" | "0" | "false" => Ok(false),
                _ => Err("must be yes or no".to_owned()),
            }),
            barcodes: self.parsed("barcodes", |_, cell| {
                let mut barcodes: Vec<String> = cell.split_whitespace().map(str::to_owned).collect();
                if let Some(number) = barcodes.iter().find(|barcode| is_rounded(barcode)) {
                    return Err(format!(
                        "“{number}” was made of a barcode by a spreadsheet: have its column hold text"
                    ));
                }
                barcodes.sort_unstable();
                Ok(barcodes)
            }),
        }
    }

    fn parsed<T>(&mut self, column: &'static str, parse: impl Fn(&Cells, &str) -> Result<T, String>) -> Option<T> {
        let cell = self.text(column)?;
        match parse(self.cells, &cell) {
            Ok(value) => Some(value),
            Err(message) => {
                self.wrong(column, message);
                None
            }
        }
    }
}

/// Whether this is what a spreadsheet makes of a long number, such as `4.00638E+12`: the last digits are lost.
fn is_rounded(barcode: &str) -> bool {
    let Some((digits, power)) = barcode.split_once("E+") else { return false };
    let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains(char::is_alphabetic);
    is_number(digits) && is_number(power)
}

impl Cells {
    fn decimal(&self, cell: &str) -> String {
        if self.decimal_comma { cell.replacen(',', ".", 1) } else { cell.to_owned() }
    }

    /// Minor units of a decimal, read digit by digit: nothing is rounded, and more decimals than the currency has are an error.
    fn amount(&self, cell: &str) -> Result<i64, String> {
        let digits = usize::from(self.currency.minor_digits());
        let amount = |price| written(&format_amount(price, self.currency), self.decimal_comma);
        let must = || format!("must be a number such as {}, or {OPEN}", amount(249));
        let cell = self.decimal(cell);
        let (whole, part) = cell.split_once('.').unwrap_or((&cell, ""));
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !are_digits(whole) || !are_digits(part) || (part.is_empty() && cell.contains('.')) {
            return Err(must());
        }
        if part.len() > digits {
            let currency = self.currency;
            return Err(match digits {
                0 => format!("must have no decimals: there are none in {currency}"),
                digits => format!("must have at most {digits} decimals: there are no more in {currency}"),
            });
        }
        format!("{whole}{part:0<digits$}").parse().map_err(|_| price_range(amount))
    }
}

/// A decimal as this file has it.
pub(super) fn written(decimal: &str, decimal_comma: bool) -> String {
    if decimal_comma { decimal.replacen('.', ",", 1) } else { decimal.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formula_is_guarded_and_comes_back_as_it_was() {
        for cell in ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "'", "''", "'=1", "'Olives", "Olives", "", "a=b"] {
            assert_eq!(unguarded(&guarded(cell)), cell);
            assert!(!guarded(cell).starts_with(['=', '+', '-', '@', '\t', '\r']), "{cell:?}");
        }
        assert_eq!(guarded("=1+1"), "'=1+1");
        // Another program's text keeps its apostrophe.
        assert_eq!(unguarded("'s Hertogenbosch"), "'s Hertogenbosch");
    }

    fn prices(currency: &str, decimal_comma: bool) -> Cells {
        let currency = Currency::parse(currency).unwrap();
        Cells { places: [None; COLUMNS.len()], count: 0, decimal_comma, currency }
    }

    #[test]
    fn a_price_is_read_to_the_last_digit() {
        let euros = prices("EUR", false);
        for (cell, price) in
            [("2.49", 249), ("0.5", 50), ("7", 700), ("0", 0), ("0090071992547409.93", 9_007_199_254_740_993)]
        {
            assert_eq!(euros.amount(cell), Ok(price), "{cell}");
        }
        for cell in
            ["", ".5", "5.", "-1", "+1", "1e3", "2,49", "1 000", "2.495", "€2", "0x1", "½", "99999999999999999999"]
        {
            assert!(euros.amount(cell).is_err(), "{cell:?}");
        }
        assert_eq!(prices("EUR", true).amount("2,49"), Ok(249));
        assert!(prices("EUR", true).amount("1.234,56").is_err());
        assert_eq!(prices("JPY", false).amount("333"), Ok(333));
        assert!(prices("JPY", false).amount("333.0").is_err());
        assert_eq!(prices("BHD", false).amount("1.5"), Ok(1_500));
    }
}
