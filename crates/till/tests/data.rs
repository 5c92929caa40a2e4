//! The tables and the picture of `docs/DATA.md`: read out of a file that a till has just made, so that they say what is there. A
//! difference fails, and `UPDATE_DOCS=1 cargo test -p till --test data` writes them anew.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use rusqlite::{Connection, OpenFlags};

/// By subject, each table and view with what it holds. One that is not named here fails the test.
const SUBJECTS: &[(&str, &[(&str, &str)])] = &[
    (
        "Shop",
        &[
            ("settings", "how this shop works: a name and a value each"),
            ("counters", "the last number given of each series; a number is taken in the commit that uses it"),
        ],
    ),
    (
        "Catalogue",
        &[
            ("categories", "the groups of articles, with colour and order"),
            ("articles", "what is sold, at which price and tax rate"),
            ("barcodes", "the codes of an article"),
            (
                "article_words",
                "the words of name, SKU and codes, by which an article is found (FTS5), kept by triggers",
            ),
        ],
    ),
    (
        "Sale",
        &[
            ("sales", "a sale from its first line on; from Pay on with its frozen figures"),
            ("lines", "its lines, frozen at Pay too, with the article's name and price as they were"),
            ("sale_taxes", "its tax table, frozen at Pay"),
            ("sale_changes", "the last fifty changes of an open sale, to be undone"),
            (
                "sale_marks",
                "the amounts and last four digits of cards by which a sale is found, kept by triggers but for the digits",
            ),
        ],
    ),
    (
        "Payment",
        &[
            ("tenders", "each way in which a sale is or was to be paid; a card's id is the intent of its operation"),
            ("taken_offline", "that goods were handed over before the bank answered, and the customer's contact"),
            ("offline_stored", "view: what is at the shop's risk now"),
            (
                "late_declines",
                "payments that were taken offline and did not pay, until collected again or written off, or their goods are back",
            ),
        ],
    ),
    (
        "Return",
        &[
            ("returns", "what a customer brought back, once, with its number of the receipts' series"),
            ("return_lines", "how much of which line came back"),
            ("return_taxes", "its tax table"),
            ("return_waived", "what of it goes back to nobody, as it was never paid, by late decline"),
            ("return_refunded", "what of it went back before, as money alone"),
            ("refunds", "each leg to a card; its id is the intent of its operation"),
            ("cash_refunds", "each leg out of the drawer"),
            ("voids", "a partly paid sale that was given up, with what of it goes back to cards and in cash"),
        ],
    ),
    (
        "People",
        &[
            ("people", "who works here, with role, PIN (argon2id) and wrong tries"),
            ("rights", "what each role may do, and up to which limit"),
            ("sessions", "who is logged in, and in which opening of the file"),
            ("audit", "who did what, when: append-only, each entry with the hash of the one before"),
            ("audit_head", "where that chain ends, so that a cut tail shows"),
        ],
    ),
    (
        "Shift",
        &[
            ("shifts", "from the float to the count, with the Z report as it was"),
            ("drawer_moves", "what went in and out of the drawer beside the sales"),
            ("drawer_counts", "each count of the drawer, against what it should have held"),
            ("drawers", "view: what each shift's drawer should hold"),
            ("shift_now", "view: the shift that what happens now belongs to"),
        ],
    ),
    (
        "Paper",
        &[
            ("receipt_printer", "one row: where this machine prints, how wide, in which language"),
            ("receipt_prints", "each print of a receipt, counted before it is made, and what became of it"),
            ("return_prints", "the same of the slip of what came back"),
            ("receipt_heads", "the shop's name and zone on it, as they were when the sale, return or void was made"),
        ],
    ),
    (
        "Copy",
        &[
            (
                "restores",
                "each time the file was brought back from a copy, and when the bank's payments were matched since",
            ),
            ("till_names", "each name that the till had, with the first numbers given under it; none comes back"),
            (
                "unmatched_payments",
                "what the lost file had charged and no sale here has a place for: its sale takes no money until it has, or somebody looked",
            ),
        ],
    ),
    (
        "Queue",
        &[
            ("operations", "each request to the bank: key, exact bytes, state, result; see [OUTBOX.md](OUTBOX.md)"),
            ("attempts", "what was sent for it, when, and what came back"),
            ("outbox", "one row: the bank that is spoken to, what is known of it, and the epoch of the owner"),
        ],
    ),
];

/// What belongs together by value alone: the outbox knows nothing of a till, so that no foreign key can say it.
const BY_VALUE: &[(&str, &str, &str)] =
    &[("tenders", "id = intent_id", "operations"), ("refunds", "id = intent_id", "operations")];

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/DATA.md")
}

fn new_file(folder: &Path) -> Result<Connection> {
    drop(till::Till::open(folder)?);
    Ok(Connection::open_with_flags(folder.join("till.db"), OpenFlags::SQLITE_OPEN_READ_ONLY)?)
}

fn rows(file: &Connection, sql: &str, of: &str) -> Result<Vec<Vec<String>>> {
    let mut statement = file.prepare(sql)?;
    let columns = statement.column_count();
    let rows = statement.query_map([of], |row| (0..columns).map(|at| row.get::<_, String>(at)).collect())?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The tables and views that are the till's own: not SQLite's, and not those in which FTS5 keeps its index.
fn in_the_file(file: &Connection) -> Result<BTreeSet<String>> {
    let names = rows(
        file,
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'view', 'virtual') AND name NOT LIKE ?1",
        "sqlite_%",
    )?;
    Ok(names.into_iter().flatten().collect())
}

fn tables(file: &Connection) -> Result<String> {
    let mut text = String::new();
    for (subject, tables) in SUBJECTS {
        write!(text, "### {subject}\n\n| Table | Holds | Columns |\n|---|---|---|\n")?;
        for (table, holds) in *tables {
            let columns = rows(
                file,
                "SELECT name || CASE WHEN \"notnull\" = 0 AND pk = 0 AND type <> '' THEN '?' ELSE '' END FROM pragma_table_info(?1)",
                table,
            )?;
            let columns: Vec<_> = columns.into_iter().flatten().map(|column| format!("`{column}`")).collect();
            writeln!(text, "| `{table}` | {holds} | {} |", columns.join(" "))?;
        }
        text.push('\n');
    }
    Ok(text)
}

fn picture(file: &Connection) -> Result<String> {
    let mut text = "```mermaid\nflowchart LR\n".to_owned();
    for (subject, tables) in SUBJECTS {
        writeln!(text, "  subgraph about_{subject} [{subject}]")?;
        for (table, _) in *tables {
            writeln!(text, "    {table}")?;
        }
        text.push_str("  end\n");
    }
    for (table, _) in SUBJECTS.iter().flat_map(|(_, tables)| *tables) {
        let keys = rows(file, "SELECT \"from\", \"table\" FROM pragma_foreign_key_list(?1) ORDER BY \"from\"", table)?;
        for key in keys {
            let [column, to] = &key[..] else { anyhow::bail!("{key:?}") };
            writeln!(text, "  {table} -->|{column}| {to}")?;
        }
    }
    for (table, why, to) in BY_VALUE {
        writeln!(text, "  {table} -.->|{why}| {to}")?;
    }
    text.push_str("```\n");
    Ok(text)
}

/// The words with which the triggers refuse a change, by table.
fn refusals(file: &Connection) -> Result<String> {
    let mut text = "| Table | What the file refuses, by its own words |\n|---|---|\n".to_owned();
    for (table, _) in SUBJECTS.iter().flat_map(|(_, tables)| *tables) {
        let triggers = rows(file, "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?1", table)?;
        let mut words = BTreeSet::new();
        for sql in triggers.iter().flatten() {
            for refusal in sql.split("RAISE(ABORT, '").skip(1) {
                let (refusal, _) = refusal.split_once("')").with_context(|| format!("no end of a refusal: {sql}"))?;
                words.insert(refusal.replace("''", "'"));
            }
        }
        if !words.is_empty() {
            writeln!(text, "| `{table}` | {} |", words.into_iter().collect::<Vec<_>>().join(" · "))?;
        }
    }
    Ok(text)
}

/// Puts the text between the two marks of that name.
fn put(page: &str, name: &str, text: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- {name}: written by a test -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = page.split_once(&begin).with_context(|| format!("no place for {name}"))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("no end of {name}"))?;
    Ok(format!("{before}{begin}\n{text}\n{end}{after}"))
}

#[test]
fn the_docs_name_every_table_and_what_the_file_refuses() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = new_file(folder.path())?;
    let named: BTreeSet<_> =
        SUBJECTS.iter().flat_map(|(_, tables)| *tables).map(|(table, _)| (*table).to_owned()).collect();
    assert_eq!(named, in_the_file(&file)?, "left: named here; right: in the file");

    let written = std::fs::read_to_string(page())?;
    let mut made = written.clone();
    for (name, text) in [("picture", picture(&file)?), ("tables", tables(&file)?), ("refusals", refusals(&file)?)] {
        made = put(&made, name, text.trim_end())?;
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(page(), &made)?;
        return Ok(());
    }
    let differs = made.lines().zip(written.lines()).find(|(made, written)| made != written);
    ensure!(
        made == written,
        "docs/DATA.md is not what the file is; to write it anew: UPDATE_DOCS=1 cargo test -p till --test data\n\
         the first difference (file, docs): {differs:#?}"
    );
    Ok(())
}
