//! The tables of `docs/ERRORS.md`: each code that there is in the source, with what it means and what to do. One that is missing, or
//! that no source has any more, fails; `UPDATE_DOCS=1 cargo test -p till --test errors` writes the tables anew.

use std::{
    collections::BTreeSet,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

type Checked<T = ()> = Result<T, Box<dyn Error>>;

/// A code, what it means, and what to do.
type Rows = &'static [(&'static str, &'static str, &'static str)];

const TILL: Rows = &[
    (
        "accepted-offline",
        "The goods were handed over before the bank answered.",
        "The payment can't be cancelled: wait for the bank, or refund it.",
    ),
    (
        "already-final",
        "The operation has its end, and it is another than the one that was wished.",
        "Look at it: an approved payment is refunded, not cancelled.",
    ),
    (
        "backup",
        "No copy of the till's file was made: there is a file of that name, or it can't be written.",
        "Name a new file, or make room there. The till's file is as it was.",
    ),
    (
        "card-may-be-charged",
        "It is not known whether the card was charged, so nothing else may be taken or given for it.",
        "Wait for the bank's answer, or have it cancelled first.",
    ),
    ("category-in-use", "The category has articles.", "Give them another category first."),
    (
        "clock",
        "The machine's clock stands where it can't be right.",
        "Set the clock, and start again. Nothing was begun.",
    ),
    ("count-needed", "The drawer must be counted first, or again.", "Count it."),
    (
        "export",
        "What was to be written out could not be written where it was to go.",
        "Make room there, or name another place, and export again.",
    ),
    (
        "import",
        "The catalogue that was to be brought in has errors; the message names the lines. Nothing was imported.",
        "Mend those lines, and import again.",
    ),
    ("in-use", "Another process has the data folder.", "End the other one, or wait for it."),
    (
        "intent-reused",
        "The tender or intent belongs to another request already.",
        "Open the dialog anew. A fault of the caller where that does not help.",
    ),
    ("internal", "A fault of the program.", "Report it with the log. What was saved is what it was."),
    ("invalid-amount", "The amount is none that can be taken here.", "Type another."),
    ("invalid-article", "The article or category is none that can be kept.", "Type what the message says."),
    (
        "invalid-barcode",
        "The code was misread, or says what this shop has no use for.",
        "Scan again, or search by name.",
    ),
    (
        "invalid-card",
        "What was given for the card is none, or is the number of a card.",
        "Read the card again. A card's number is never typed.",
    ),
    ("invalid-discount", "The discount or tip is none that can be taken here.", "Type another."),
    (
        "invalid-key",
        "No such key can do anything, or a command would have no key.",
        "Choose another: a function key, a sign, or a letter with Ctrl or Alt.",
    ),
    ("invalid-person", "A person can't be like this.", "Type another name, or leave one active manager."),
    ("invalid-pin", "The new PIN is none, or one that everybody tries first.", "Choose another."),
    ("invalid-price", "The price is none that can be taken here.", "Type another."),
    (
        "invalid-quantity",
        "The quantity is none that this article can have.",
        "Type a number above zero, whole for what is sold by the piece.",
    ),
    ("invalid-reason", "The reason is none.", "Write why, in a few words."),
    (
        "invalid-reference",
        "No bank takes this reference, or it holds what is not seen, or the number of a card.",
        "Name another, of 1 to 64 characters.",
    ),
    (
        "invalid-return",
        "What should come back is not what was sold, or came back before.",
        "Type what is left: the message says how much.",
    ),
    ("invalid-setting", "A setting can't have this value.", "Type what the message says."),
    ("invalid-text", "The name or note is empty, too long, or holds what must not be kept.", "Type another."),
    ("key-used-twice", "Two uses were made of one key.", "Give one of the two commands in the message another key."),
    ("locked", "Somebody must log in first.", "Log in with a PIN."),
    ("needs-look", "A person must look at the payment first.", "Look at it, with the bank where that does not help."),
    (
        "no-bank",
        "No bank is named, or its address or secret can't be used.",
        "Name the bank in the settings. Payments are saved and wait.",
    ),
    ("no-printer", "No printer is set.", "Name one in the settings. The receipt can be shown."),
    (
        "no-shift",
        "Cash can't be taken, counted or moved: no shift is open, or its drawer holds another currency.",
        "Open a shift.",
    ),
    ("not-allowed", "Who acts may not do this alone.", "Ask who the message names for a PIN."),
    (
        "not-found",
        "There is no such sale, line, operation or article.",
        "Look again: it may have been removed meanwhile.",
    ),
    ("not-refundable", "The payment did not move money, and won't.", "There is nothing to give back."),
    ("nothing-to-undo", "There is no change of this sale that could be taken back.", "-"),
    (
        "offline-limit",
        "It is over what may be taken offline; the message has the figures.",
        "Wait for the bank, or ask who may take it over the limit for a PIN.",
    ),
    (
        "other-terms",
        "The sale was begun in another currency than the shop's list of articles, or with another tax rule.",
        "Pay it as it is, or drop it, and begin anew.",
    ),
    ("over-due", "More than is due.", "Take what is due. Only cash gives change."),
    ("over-refund", "More than is left of the payment, refunds under way counted.", "Give back what is left."),
    (
        "payment-unmatched",
        "The bank has a payment for this sale, made before a restore, that has no place in it.",
        "Do not charge again. `kassa-till doctor` with the bank names it; find out what it paid, then `doctor --acknowledge PAYMENT --reason TEXT`.",
    ),
    ("pin-wait", "There were too many wrong PINs: this one was not looked at.", "Wait as long as the message says."),
    ("price-needed", "The article has no price of its own.", "Ask for the price, and ring it up with it."),
    (
        "printer-disconnected",
        "The printer broke off while it printed.",
        "Look at what came out, and print again: it is a copy.",
    ),
    (
        "printer-disk-full",
        "The disk with the printer's folder is full.",
        "Make room there, and print again: it is the original still.",
    ),
    (
        "printer-fault",
        "Something else is in the printer's way; the message has the system's words.",
        "Mend that, and print again: it is a copy, unless nothing came out.",
    ),
    (
        "printer-no-permission",
        "The till may not write to the printer's folder or device.",
        "Give who runs the till the right to (on Linux: the group `lp`), or name another.",
    ),
    ("printer-not-found", "There is no such folder or device.", "Plug the printer in, or make the folder."),
    (
        "printer-refused",
        "The machine is there, and takes no print jobs at that port.",
        "Switch the printer on, look at the port (9100 for nearly all).",
    ),
    (
        "printer-timeout",
        "The printer did not answer in 3 s, or did not take the receipt in 10 s.",
        "Look for paper, an open cover, the network. Plain TCP can't tell which. Print again.",
    ),
    (
        "printer-unreachable",
        "There is no way to the printer, or no machine of that name.",
        "Look at its cable, its network and its address.",
    ),
    (
        "restored",
        "The file was brought back from a copy, and the bank's payments since then were not matched yet: nothing is paid, given back or given up.",
        "Let the bank be reached: settling matches them first, in the window and in `kassa-till sync`. Until then the summary is paused by `restored`.",
    ),
    (
        "restored-sale",
        "The file was brought back from a copy that knows this sale, and the bank's payments were matched only once.",
        "Wait: five minutes after the first match settling does it again, or the next `kassa-till sync` does. New sales are paid meanwhile.",
    ),
    (
        "sale-changed",
        "The sale is another than the caller thinks: completed, put aside, or not paid yet.",
        "Show the sale again.",
    ),
    (
        "sale-frozen",
        "The sale is under payment: it can't be edited, dropped or paid twice.",
        "Wait for its tenders, or hold it and begin another.",
    ),
    (
        "sale-not-completed",
        "Money was to go back of a sale that is still under payment.",
        "Complete the sale and take its goods back, or give it up: that gives back all that was paid.",
    ),
    ("shift-open", "A shift is open already.", "Close it first."),
    (
        "storage",
        "The till's file can't be written or read, was refused or is damaged; the message says which, and whether something was saved.",
        "Make room on the disk or mend it. Where it may be saved, look at the payment before you do it again.",
    ),
    ("unknown-article", "No article has this SKU or barcode.", "Scan again, or search by name."),
    ("wrong-pin", "The PIN is not that person's.", "Try again; from the fifth wrong one on there is a wait."),
];

const PRICE: Rows = &[
    ("cash-step", "Cash that is no multiple of the smallest coin.", "Take coins that there are."),
    ("duplicate-member", "A member is named twice.", "Name it once."),
    ("invalid-value", "The right type, but no value that the member takes.", "See the message and `path`."),
    ("malformed", "The input is no JSON document, or no object.", "Mend the JSON."),
    ("missing-member", "A member that must be there is not.", "Add it: `path` says which."),
    ("out-of-range", "An amount given, or coming out, does not fit 64 bits.", "Nothing is sold for so much."),
    ("over-due", "A tender other than cash is more than what is still to pay.", "Change comes out of cash alone."),
    (
        "over-return",
        "More of a line comes back than is left of it.",
        "Give back what is left: the message says how much.",
    ),
    ("too-many", "More lines or tenders, or a longer text, than the engine takes.", "Split the sale."),
    ("unknown-member", "A member that the input does not have.", "Leave it out: `path` says which."),
    ("wrong-type", "Another type of JSON value than the member takes.", "See `path`."),
];

const DOCTOR: Rows = &[
    (
        "audit-chain",
        "The chain of the audit breaks at this entry.",
        "It was changed past the till: compare the head with the last Z report, and the file with a backup.",
    ),
    ("audit-gap", "An entry of the audit is missing.", "Somebody removed it past the till: compare with a backup."),
    ("bank-ahead", "The bank has the end of an operation that is open here.", "Run `kassa-till sync`."),
    (
        "bank-amount",
        "The bank has the operation with another amount.",
        "Call the bank with the key: one of the two books was changed.",
    ),
    (
        "bank-payment-known",
        "The same as `bank-payment-unknown`, and somebody said what became of it: no finding that counts.",
        "-",
    ),
    (
        "bank-payment-unknown",
        "The bank has a payment of this till's name that the till does not know.",
        "Made before a restore, or on a file that is lost: match it to a sale by its reference, or refund it at the bank; then `doctor --acknowledge PAYMENT --reason TEXT`.",
    ),
    ("bank-reference", "The bank calls the payment otherwise than it stands here.", "Call the bank with the key."),
    (
        "bank-state",
        "The till has another end than the bank.",
        "The bank's word counts for the card. Look at the sale, and call the bank.",
    ),
    (
        "bank-unknown",
        "The bank does not know an operation that ended with its word.",
        "Is it the right bank and secret? Else call the bank.",
    ),
    (
        "counter-wrong",
        "The last number given is not the highest in use.",
        "The file was changed past the till: compare with a backup.",
    ),
    (
        "drawer-move",
        "What was put into the drawer or taken out is not what the audit has.",
        "A move was changed or removed past the till: the audit is right.",
    ),
    (
        "drawer-refund",
        "Cash that was given back and cash that left the drawer for it are not the same, or not of one shift.",
        "A row of one of them was changed or removed past the till.",
    ),
    (
        "file-damaged",
        "SQLite finds the file damaged. Where its pages are, nothing else is looked at.",
        "Take a copy of the file, then restore a backup.",
    ),
    (
        "late-decline",
        "A late decline does not fit its payments and what came back of it, or does not come to what was taken offline.",
        "The file was changed past the till: look at the sale's payments and returns.",
    ),
    (
        "line-figures",
        "A line's figures are not what price, quantity and discounts give.",
        "The file was changed past the till: compare with a backup.",
    ),
    ("number-twice", "A number was given twice.", "A row was copied or changed past the till: compare with a backup."),
    (
        "operation-missing",
        "A card's tender or a refund has no operation.",
        "Removed past the till: ask the bank for the sale's reference.",
    ),
    (
        "operation-request",
        "The bytes that are sent ask for another amount than the row.",
        "Do not sync: compare with a backup.",
    ),
    (
        "operation-result",
        "The bank's stored word is missing or about something else.",
        "Look the key up at the bank: name it to `doctor`.",
    ),
    ("operation-state", "State and time of the end do not belong together.", "The file was changed past the till."),
    (
        "operation-strange",
        "An operation belongs to no tender and no refund.",
        "The tender was removed past the till: the bank may have charged. Look its key up.",
    ),
    (
        "people-manager",
        "There are people, and no active manager among them.",
        "The file was changed past the till: restore a backup.",
    ),
    ("person-pin", "What is kept of a person's PIN is none.", "Set that person a new PIN."),
    (
        "receipt-number-gap",
        "A receipt number was skipped.",
        "A completed sale was removed past the till: compare with a backup.",
    ),
    ("reference-broken", "A row refers to one that is not there.", "A row was removed past the till."),
    (
        "refund-amount",
        "A refund's amount or payment is not its operation's.",
        "The file was changed past the till; the operation is what the bank was asked.",
    ),
    ("refund-over", "More is given back than was paid.", "The file was changed past the till."),
    (
        "refund-state",
        "A refund's state is not its operation's.",
        "The file was changed past the till; the operation is right.",
    ),
    (
        "return-figures",
        "A return's lines, taxes or sums are not what the engine gives back of the sale.",
        "The file was changed past the till: compare with a backup, or the printed slip.",
    ),
    (
        "return-legs",
        "The ways in which a return's money goes back, and what was never paid of it, do not come to it, or it goes to whom had not paid.",
        "A leg was changed or removed past the till: compare with the bank and the drawer.",
    ),
    (
        "rights-missing",
        "A right of a role is missing, or the one to see to people is taken away from managers.",
        "The file was changed past the till: restore a backup.",
    ),
    (
        "row-illegible",
        "A row holds a word that there is not, or a value that can't be read.",
        "The file was changed past the till: compare with a backup.",
    ),
    ("sale-discount", "The shares of the sale's discount do not come to it.", "The file was changed past the till."),
    (
        "sale-lines",
        "The lines do not come to the sale's figures, or are not there.",
        "A line was changed or removed past the till: compare with a backup, or the printed receipt.",
    ),
    (
        "sale-mark",
        "A sale is not found by its amount or its card, or is found by what is not its own.",
        "The file was changed past the till: the sale itself is right, its place in the list is not.",
    ),
    ("sale-number-gap", "A sale's number was skipped.", "A sale was removed past the till: compare with a backup."),
    (
        "sale-paid",
        "The tenders do not come to total and rounding.",
        "A tender was changed or removed past the till: compare with the bank and the drawer.",
    ),
    ("sale-price", "The engine gives another total, or none.", "The file was changed past the till."),
    ("sale-rounding", "Rounding without cash, or of a step or more.", "The file was changed past the till."),
    ("sale-state", "The sale's state and what belongs to it do not fit.", "The state was forced past the till."),
    ("sale-taxes", "The tax table does not come to the sale's net and tax.", "The file was changed past the till."),
    ("sale-total", "The total is not net, tax and tip.", "The file was changed past the till."),
    (
        "sale-void",
        "A sale is marked as voided without a void, or has a void that its state and its mark do not fit.",
        "The file was changed past the till: look at what was given back, and compare with the bank and the drawer.",
    ),
    (
        "schema-changed",
        "A table, index or trigger is missing, another, or nobody's.",
        "What it guarded may have been changed: compare with a backup.",
    ),
    (
        "shift-count",
        "A count of the drawer is not the one that the audit has, or not the one that the shift was closed with.",
        "The file was changed past the till: compare with the Z report on paper.",
    ),
    (
        "shift-drawer",
        "The drawer of a shift is not what went through it, or its float not what the audit says.",
        "The file was changed past the till: compare with the Z report on paper.",
    ),
    ("shift-number-gap", "A shift's number was skipped.", "A shift was removed past the till: compare with a backup."),
    (
        "shift-report",
        "A Z report is not the one that was made, or not what its shift's sales, returns and audit are.",
        "Compare with the Z report on paper: the report, a sale or a return of the shift or the audit was changed past the till.",
    ),
    (
        "shift-unknown",
        "A sale, cash, a refund, a return or a late decline belongs to a shift that is not there.",
        "The file was changed past the till.",
    ),
    (
        "taken-offline",
        "A tender and its operation, or its mark, disagree on whether it was taken offline, or is settled since.",
        "The file was changed past the till; the operation is right.",
    ),
    ("tax-table", "The tax table is not what the lines give.", "The file was changed past the till."),
    (
        "tender-amount",
        "A tender's amount is not its operation's, or not what was handed over less the change.",
        "The file was changed past the till; the operation is what the bank was asked.",
    ),
    (
        "tender-state",
        "A tender's state is not its operation's.",
        "The file was changed past the till; the operation is right.",
    ),
    (
        "void-legs",
        "What a void gives back does not come to what was paid, or not to whom had paid.",
        "A leg was changed or removed past the till: compare with the bank and the drawer.",
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The literals of a source that are codes: small letters, words joined by hyphens. Tests after the code are none of it.
fn codes(source: &str, is_code: fn(&str) -> bool) -> BTreeSet<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    code.split('"')
        .skip(1)
        .step_by(2)
        .filter(|text| is_code(text) && text.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
        .map(str::to_owned)
        .collect()
}

/// The same, of one function alone.
fn codes_in(path: &str, function: &str) -> Checked<BTreeSet<String>> {
    let source = fs::read_to_string(root().join(path))?;
    let (_, body) = source.split_once(function).ok_or_else(|| format!("no {function} in {path}"))?;
    let body = body.split("\n    }\n").next().unwrap_or_default();
    Ok(codes(body, |text| !text.is_empty()))
}

fn doctors_codes() -> Checked<BTreeSet<String>> {
    let mut all = codes(&fs::read_to_string(root().join("crates/till/src/doctor.rs"))?, |text| text.contains('-'));
    for file in fs::read_dir(root().join("crates/till/src/doctor"))? {
        let source = fs::read_to_string(file?.path())?;
        all.extend(codes(&source, |text| text.contains('-')));
    }
    Ok(all)
}

fn table(rows: Rows) -> String {
    let mut table = "| Code | What it means | What to do |\n|---|---|---|\n".to_owned();
    for (code, means, to_do) in rows {
        table.push_str(&format!("| `{code}` | {means} | {to_do} |\n"));
    }
    table
}

fn put(page: &str, name: &str, text: &str) -> Checked<String> {
    let (begin, end) = (format!("<!-- {name}: written by a test -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = page.split_once(&begin).ok_or_else(|| format!("no place for {name}"))?;
    let (_, after) = rest.split_once(&end).ok_or_else(|| format!("no end of {name}"))?;
    Ok(format!("{before}{begin}\n{text}\n{end}{after}"))
}

#[test]
fn every_code_is_explained_and_every_explained_code_is_there() -> Checked {
    let mut till = codes_in("crates/till/src/error.rs", "pub const fn code(")?;
    till.extend(codes_in("crates/till/src/printing/printer.rs", "pub const fn code(")?);
    for (name, rows, found) in [
        ("till", TILL, till),
        ("price", PRICE, codes_in("crates/checkout/src/error.rs", "pub fn as_str(")?),
        ("doctor", DOCTOR, doctors_codes()?),
    ] {
        let explained: BTreeSet<_> = rows.iter().map(|(code, ..)| (*code).to_owned()).collect();
        assert_eq!(explained.len(), rows.len(), "{name}: a code is explained twice");
        assert!(rows.is_sorted(), "{name}: the codes are not in their order");
        let missing: Vec<_> = found.difference(&explained).collect();
        let gone: Vec<_> = explained.difference(&found).collect();
        assert!(missing.is_empty() && gone.is_empty(), "{name}: not explained {missing:?}, in no source {gone:?}");
    }
    Ok(())
}

#[test]
fn the_page_has_the_tables() -> Checked {
    let path = root().join("docs/ERRORS.md");
    let written = fs::read_to_string(&path)?;
    let mut made = written.clone();
    for (name, rows) in [("till", TILL), ("price", PRICE), ("doctor", DOCTOR)] {
        made = put(&made, name, &table(rows))?;
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &made)?;
        return Ok(());
    }
    let differs = made.lines().zip(written.lines()).find(|(made, written)| made != written);
    assert!(
        made == written,
        "to write docs/ERRORS.md anew: UPDATE_DOCS=1 cargo test -p till --test errors\n{differs:#?}"
    );
    Ok(())
}
