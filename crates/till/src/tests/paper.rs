//! Receipts as they look, in committed files under `tests/receipts`. `UPDATE_RECEIPTS=1` writes them anew.

use super::Checked;
use crate::{
    CodePages, Language, LegState, Paper, ReceiptForm, TenderState, Unit,
    receipt::{Content, ContentLine, ContentTender, HowPaid, Sheet, Slip, SlipCard, SlipLeg, SlipLine, VoidSlip},
};
use protocol::Currency;
use std::{
    env, fs,
    path::{Path, PathBuf},
};
use unicode_width::UnicodeWidthStr as _;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/receipts").join(name)
}

fn compare(name: &str, is: &str) -> Checked {
    let path = file(name);
    if env::var_os("UPDATE_RECEIPTS").is_some() {
        fs::create_dir_all(file(""))?;
        fs::write(&path, is)?;
    }
    let was = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    assert_eq!(is, was, "{} differs: UPDATE_RECEIPTS=1 writes it anew", path.display());
    Ok(())
}

fn line(name: &str, quantity: &str, unit_price: i64, gross: i64, discount: i64) -> ContentLine {
    let unit = if quantity.contains('.') { Unit::Weight } else { Unit::Piece };
    ContentLine { name: name.to_owned(), quantity: quantity.to_owned(), unit, unit_price, gross, discount, note: None }
}

fn cash(tendered: i64, amount: i64) -> ContentTender {
    let how = HowPaid::Cash { tendered, change: tendered - amount };
    ContentTender { amount, state: TenderState::Taken, how }
}

fn card(amount: i64, state: TenderState, accepted_offline: bool) -> ContentTender {
    let answered = matches!(state, TenderState::Approved | TenderState::Declined);
    let how = HowPaid::Card {
        card: answered.then(|| ("visa".to_owned(), "4242".to_owned())),
        short_code: Some("7QK2".to_owned()),
        reference: Some("till-1/1042".to_owned()),
        bank_reference: answered.then(|| "pay_01j9zq2m8e5h7w3k6v4t0r1s2x".to_owned()),
        approval_code: (state == TenderState::Approved).then(|| "8F21K0".to_owned()),
        accepted_offline,
    };
    ContentTender { amount, state, how }
}

/// A tea and a bread: 2.49 + 1.85 = 4.34, at 20 % and at 7 %.
fn content(tenders: Vec<ContentTender>) -> Content {
    Content {
        shop: "Kassa Demo Shop".to_owned(),
        till: "till-1".to_owned(),
        at: "2026-11-30 09:05".to_owned(),
        sale_number: Some(1_042),
        receipt_number: Some(1_040),
        copy: None,
        currency: Currency::EUR,
        lines: vec![line("Tea", "1", 249, 249, 0), line("Bread", "1", 185, 185, 0)],
        discount: 0,
        tip: 0,
        total: 434,
        rounding: 0,
        due: 0,
        taxes: vec![("7".to_owned(), 173, 12), ("20".to_owned(), 208, 41)],
        tenders,
        money_back: Vec::new(),
    }
}

fn receipts() -> Checked<Vec<(&'static str, Content)>> {
    let tender = |state, offline| content(vec![card(434, state, offline)]);
    Ok(vec![
        ("cash-rounded", Content { rounding: 1, ..content(vec![cash(1_000, 435)]) }),
        ("card", tender(TenderState::Approved, false)),
        (
            "mixed-declined",
            content(vec![
                card(400, TenderState::Declined, false),
                card(234, TenderState::Approved, false),
                cash(200, 200),
            ]),
        ),
        ("accepted-offline", tender(TenderState::Settling, true)),
        (
            "waiting",
            Content { receipt_number: None, due: 134, ..content(vec![card(300, TenderState::Settling, false)]) },
        ),
        ("attention", Content { receipt_number: None, ..tender(TenderState::NeedsAttention, false) }),
        (
            "discounts",
            Content {
                lines: vec![
                    ContentLine {
                        note: Some("<b>no sugar</b>, and a slice of lemon for each of the two of them".to_owned()),
                        ..line("Tea", "2", 249, 498, 50)
                    },
                    line("Apples", "0.755", 199, 150, 0),
                ],
                discount: 100,
                tip: 25,
                total: 523,
                taxes: vec![("7".to_owned(), 117, 8), ("20".to_owned(), 311, 62)],
                ..content(vec![cash(523, 523)])
            },
        ),
        (
            "tax-on-top",
            Content {
                lines: vec![line("Bagel", "3", 250, 750, 0)],
                total: 817,
                taxes: vec![("8.875".to_owned(), 750, 67)],
                currency: Currency::parse("USD").map_err(|_| "no dollars")?,
                ..content(vec![cash(1_000, 817)])
            },
        ),
        (
            "no-decimals",
            Content {
                lines: vec![line("緑茶のペットボトル", "2", 160, 320, 0)],
                total: 320,
                taxes: vec![("8".to_owned(), 296, 24)],
                currency: Currency::parse("JPY").map_err(|_| "no yen")?,
                ..content(vec![cash(1_000, 320)])
            },
        ),
        (
            "three-decimals",
            Content {
                lines: vec![line("Dates", "1.250", 3_200, 4_000, 0)],
                total: 4_000,
                taxes: vec![("10".to_owned(), 3_636, 364)],
                currency: Currency::parse("BHD").map_err(|_| "no dinars")?,
                ..content(vec![cash(5_000, 4_000)])
            },
        ),
        (
            "long-names",
            Content {
                shop: "The Very Old and Very Long Named Coffee House at the Market".to_owned(),
                lines: vec![
                    line(
                        "Cafe\u{301} cre\u{300}me with oat milk, a double shot and <extra> cinnamon & sugar",
                        "1",
                        1_234_567_890_123,
                        1_234_567_890_123,
                        0,
                    ),
                    line(
                        "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
                        "1",
                        100,
                        100,
                        0,
                    ),
                    line("パン屋さんの特製あんパンとメロンパンの詰め合わせ", "1", 100, 100, 0),
                ],
                total: 1_234_567_890_323,
                taxes: vec![("20".to_owned(), 1_028_806_575_269, 205_761_315_054)],
                ..content(vec![card(1_234_567_890_323, TenderState::Approved, false)])
            },
        ),
        (
            "money-back",
            Content {
                money_back: vec![to_card(-100, LegState::Approved), to_card(-34, LegState::Settling)],
                ..tender(TenderState::Approved, false)
            },
        ),
        ("copy", Content { copy: Some(2), ..tender(TenderState::Approved, false) }),
    ])
}

fn to_card(amount: i64, state: LegState) -> SlipLeg {
    let card = SlipCard {
        card: Some(("visa".to_owned(), "4242".to_owned())),
        short_code: Some("K9QD".to_owned()),
        bank_reference: (state == LegState::Approved).then(|| "ref_01j9zq2m8e5h7w3k6v4t0r1s2x".to_owned()),
    };
    SlipLeg { amount, state, card: Some(card) }
}

fn in_cash(amount: i64) -> SlipLeg {
    SlipLeg { amount, state: LegState::HandedOver, card: None }
}

/// A tea and some of the apples come back: 2.49 + 1.50 = 3.99, at 20 % and at 7 %.
fn slip(legs: Vec<SlipLeg>) -> Slip {
    let line = |name: &str, quantity: &str, unit, amount| SlipLine {
        name: name.to_owned(),
        quantity: quantity.to_owned(),
        unit,
        amount,
    };
    Slip {
        shop: "Kassa Demo Shop".to_owned(),
        till: "till-1".to_owned(),
        at: "2026-11-30 10:15".to_owned(),
        receipt_number: 1_041,
        sale_number: Some(1_042),
        sale_receipt_number: Some(1_040),
        copy: None,
        currency: Currency::EUR,
        lines: vec![line("Tea", "1", Unit::Piece, 249), line("Apples", "0.755", Unit::Weight, 150)],
        tip: 0,
        total: 399,
        waived: 0,
        refunded_before: 0,
        rounding: 0,
        taxes: vec![("7".to_owned(), 140, 10), ("20".to_owned(), 208, 41)],
        legs,
    }
}

fn slips() -> Checked<Vec<(&'static str, Slip)>> {
    Ok(vec![
        ("refund-mixed", Slip { rounding: 1, ..slip(vec![to_card(300, LegState::Approved), in_cash(100)]) }),
        ("refund-waiting", slip(vec![to_card(399, LegState::Settling)])),
        ("refund-owed", slip(vec![to_card(299, LegState::Approved), to_card(100, LegState::Owed)])),
        ("refund-paid-out", slip(vec![to_card(399, LegState::Replaced), in_cash(399)])),
        ("refund-void", slip(vec![to_card(399, LegState::Void)])),
        ("refund-waived", Slip { waived: 299, ..slip(vec![in_cash(100)]) }),
        ("refund-refunded-before", Slip { refunded_before: 299, ..slip(vec![in_cash(100)]) }),
        ("refund-never-paid", Slip { waived: 399, ..slip(vec![]) }),
        ("refund-attention", slip(vec![to_card(399, LegState::NeedsAttention)])),
        (
            "refund-tax-on-top",
            Slip {
                tip: 100,
                total: 535,
                taxes: vec![("9".to_owned(), 399, 36)],
                currency: Currency::parse("USD").map_err(|_| "no dollars")?,
                ..slip(vec![to_card(535, LegState::Approved)])
            },
        ),
        ("refund-copy", Slip { copy: Some(1), ..slip(vec![in_cash(399)]) }),
    ])
}

/// A sale of 5.90 with 3.00 paid by card, or so much taken offline, and 1.00 in cash.
fn void(state: TenderState, legs: Vec<SlipLeg>) -> VoidSlip {
    let is_offline = state != TenderState::Approved;
    VoidSlip {
        shop: "Kassa Demo Shop".to_owned(),
        till: "till-1".to_owned(),
        at: "2026-11-30 10:15".to_owned(),
        sale_number: Some(1_042),
        copy: None,
        currency: Currency::EUR,
        total: 590,
        tenders: vec![card(300, state, is_offline), card(290, TenderState::Declined, false), cash(100, 100)],
        legs,
        rounding: 0,
    }
}

fn voids() -> Vec<(&'static str, VoidSlip)> {
    let approved = |legs| void(TenderState::Approved, legs);
    vec![
        ("void-mixed", approved(vec![to_card(300, LegState::Approved), in_cash(100)])),
        (
            "void-parts",
            approved(vec![to_card(110, LegState::Approved), to_card(190, LegState::Settling), in_cash(100)]),
        ),
        ("void-waiting", void(TenderState::Settling, vec![to_card(300, LegState::Settling), in_cash(100)])),
        ("void-never-charged", void(TenderState::Declined, vec![to_card(300, LegState::Void), in_cash(100)])),
        ("void-owed", approved(vec![to_card(300, LegState::Owed), in_cash(100)])),
        (
            "void-paid-out",
            VoidSlip { rounding: 2, ..approved(vec![to_card(300, LegState::Replaced), in_cash(100), in_cash(302)]) },
        ),
        ("void-attention", approved(vec![to_card(300, LegState::NeedsAttention), in_cash(100)])),
        ("void-copy", VoidSlip { copy: Some(1), ..approved(vec![to_card(300, LegState::Approved), in_cash(100)]) }),
    ]
}

fn cases() -> Checked<Vec<(&'static str, Sheet)>> {
    let receipts = receipts()?.into_iter().map(|(name, content)| (name, Sheet::Sale(content)));
    let slips = slips()?.into_iter().map(|(name, slip)| (name, Sheet::Return(slip)));
    let voids = voids().into_iter().map(|(name, slip)| (name, Sheet::Void(slip)));
    Ok(receipts.chain(slips).chain(voids).collect())
}

#[test]
fn receipts_look_as_they_did() -> Checked {
    for (name, sheet) in cases()? {
        let text_in = |paper, language| sheet.text(ReceiptForm { paper, language });
        for paper in Paper::ALL {
            let text = text_in(paper, Language::English);
            let widest = text.lines().map(str::width).max();
            assert!(widest <= Some(paper.columns()), "{name} is {widest:?} wide on {paper:?}:\n{text}");
            if paper != Paper::Columns48 || matches!(name, "card" | "long-names") {
                compare(&format!("{name}.{}.txt", paper.columns()), &text)?;
            }
        }
        compare(&format!("{name}.ru.txt"), &text_in(Paper::Columns42, Language::Russian))?;
    }
    Ok(())
}

#[test]
fn pages_look_as_they_did_and_hold_no_markup_of_others() -> Checked {
    for (name, sheet) in cases()? {
        let page = sheet.page(Language::English);
        for wrong in ["<script", "<extra>", "<b>", "src=", "href=", "http:", "https:", "url("] {
            assert!(!page.contains(wrong), "{wrong} in {name}");
        }
        if matches!(
            name,
            "mixed-declined" | "discounts" | "long-names" | "copy" | "refund-mixed" | "refund-copy" | "void-copy"
        ) {
            compare(&format!("{name}.html"), &page)?;
        }
    }
    Ok(())
}

/// Bytes as a text of which a person can see what changed.
fn shown(bytes: &[u8]) -> String {
    let mut out = String::new();
    for &byte in bytes {
        match byte {
            b'\n' => out.push_str("\\n\n"),
            0x20..=0x7e if byte != b'\\' => out.push(char::from(byte)),
            byte => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out + "\n"
}

#[test]
fn printers_get_what_they_got() -> Checked {
    for (name, sheet) in cases()? {
        let form = |language| ReceiptForm { paper: Paper::Columns42, language };
        let both = sheet.printer_bytes(form(Language::Russian), CodePages::Both);
        let kick = b"\x1bp\x00\x19\xfa";
        let is_cash = matches!(
            name,
            "cash-rounded"
                | "mixed-declined"
                | "discounts"
                | "tax-on-top"
                | "no-decimals"
                | "three-decimals"
                | "refund-mixed"
                | "refund-paid-out"
                | "refund-waived"
                | "refund-refunded-before"
        ) || (name.starts_with("void-") && name != "void-copy");
        assert_eq!(
            both.windows(kick.len()).any(|part| part == kick),
            is_cash,
            "{name}: the drawer opens for cash alone"
        );
        assert!(both.starts_with(b"\x1b@") && both.ends_with(b"\x1dVB\x00"));
        if matches!(name, "cash-rounded" | "card" | "copy" | "long-names" | "refund-mixed" | "void-mixed") {
            compare(&format!("{name}.both.escpos.txt"), &shown(&both))?;
        }
    }
    Ok(())
}

#[test]
fn what_a_printer_has_no_character_for_is_not_lost_in_silence() {
    let form = ReceiptForm { paper: Paper::Columns42, language: Language::English };
    let named = |name: &str, pages| {
        let content = Content { lines: vec![line(name, "1", 249, 249, 0)], ..content(vec![]) };
        let bytes = Sheet::Sale(content).printer_bytes(form, pages);
        let lines: Vec<_> = bytes.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
        lines.get(5).cloned().unwrap_or_default()
    };
    assert_eq!(named("Чай", CodePages::Ascii), b"???");
    assert_eq!(named("Чай", CodePages::Western), b"???");
    assert_eq!(named("Чай", CodePages::Cyrillic), b"\x1bt\x11\x97\xa0\xa9");
    assert_eq!(named("Чай 5 €", CodePages::Both), b"\x1bt\x11\x97\xa0\xa9 5 \x1bt\x10\x80");
    assert_eq!(named("Tea – “green”", CodePages::Ascii), b"Tea - \"green\"");
    // One for each column, so that the columns stay; a mark goes and its letter stays.
    assert_eq!(named("茶", CodePages::Both), b"??");
    assert_eq!(named("e\u{301}", CodePages::Both), b"e");
    // No name gives the printer orders.
    assert_eq!(named("a\u{1b}p\u{0}b\u{1d}V", CodePages::Both), b"a p b V");
}

#[test]
fn the_drawer_opens_once_and_for_what_is_paid() {
    let paid = content(vec![cash(434, 434)]);
    assert!(paid.opens_drawer());
    assert!(!Content { copy: Some(1), ..paid.clone() }.opens_drawer());
    assert!(!Content { receipt_number: None, ..paid }.opens_drawer());
    assert!(!content(vec![card(434, TenderState::Approved, false)]).opens_drawer());
}
