//! The reports on paper: what is committed here is what a manager reads, and what a file of this version holds.

use super::{Checked, Scene};
use crate::{Drawer, ReportKind, ShiftReport};

const STORED: &str = include_str!("reports/z.json");
/// What a till of version 6 put into its file: it told nothing of returns and late declines.
const STORED_BY_6: &str = include_str!("reports/z_of_version_6.json");

#[test]
fn a_z_report_reads_as_committed() -> Checked {
    let report: ShiftReport = serde_json::from_str(STORED)?;
    assert_eq!(report.text(), include_str!("reports/z.txt"));
    assert_adds_up(&report);
    let late: [i64; 6] =
        ["Its goods", "Collected again", "Goods came back (", "Written off", "Still open", "Declined ("]
            .map(|name| printed(&block(&report.text(), "DECLINED AFTER"), name));
    assert_eq!(late[..5].iter().sum::<i64>(), late[5], "nothing was open before: {late:?}");
    Ok(())
}

/// The lines between two rules of which one begins so.
fn block(text: &str, begins: &str) -> Vec<String> {
    let rule = "-".repeat(42);
    let blocks = text.split(rule.as_str()).map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>());
    blocks.into_iter().find(|lines| lines.iter().any(|line| line.starts_with(begins))).unwrap_or_default()
}

/// The figure at the end of a line, in the smallest unit of a currency with two places.
fn figure(line: &str) -> Option<i64> {
    line.rsplit(' ').next()?.replace('.', "").parse().ok()
}

/// The figures of the lines that begin so, leading spaces aside.
fn printed(lines: &[String], name: &str) -> i64 {
    lines.iter().filter(|line| line.trim_start().starts_with(name)).filter_map(|line| figure(line)).sum()
}

/// That whoever adds up what stands on the paper comes to the sums that stand on it.
pub(super) fn assert_adds_up(report: &ShiftReport) {
    let text = report.text();
    for (begins, sum) in [("Float", "DRAWER SHOULD HOLD"), ("Cards of sales", "APPROVED BY THE BANK")] {
        let lines = block(&text, begins);
        let Some(end) = lines.iter().position(|line| line.starts_with(sum)) else { continue };
        assert_eq!(lines[..end].iter().filter_map(|line| figure(line)).sum::<i64>(), printed(&lines, sum), "{text}");
    }
    let lines = block(&text, "Sales ");
    let paid = printed(&lines, "Card (") + printed(&lines, "Cash (");
    assert_eq!(printed(&lines, "TOTAL ") + printed(&lines, "Cash rounding"), paid, "{text}");
    assert_eq!(["Net", "Tax", "Tips"].map(|name| printed(&lines, name)).iter().sum::<i64>(), printed(&lines, "TOTAL "));
    let lines = block(&text, "RETURNED ");
    let back = ["Never paid", "Went back before", "To cards", "In cash"].map(|name| printed(&lines, name));
    assert_eq!(printed(&lines, "RETURNED ") + printed(&lines, "Cash rounding"), back.iter().sum::<i64>(), "{text}");
    let lines = block(&text, "DECLINED AFTER");
    let in_drawer = printed(&lines, "Of it in cash") + printed(&lines, "Cash rounding of that");
    assert_eq!(in_drawer, printed(&block(&text, "Float"), "Collected after a late decline"), "{text}");
}

#[test]
fn an_x_report_shows_what_there_is_and_no_count() -> Checked {
    let report: ShiftReport = serde_json::from_str(STORED)?;
    let drawer = Drawer {
        cash_collected: 0,
        expected: report.drawer.expected - report.drawer.cash_collected,
        counted: None,
        difference: None,
        counts: 0,
        each_count: Vec::new(),
        ..report.drawer
    };
    let quiet = ShiftReport {
        kind: ReportKind::X,
        offline_unsettled: Default::default(),
        returns: Default::default(),
        voids: Default::default(),
        late: Default::default(),
        removed: Default::default(),
        line_discounts: 0,
        sale_discounts: 0,
        rounding: 0,
        tips: 0,
        card_refunds: Default::default(),
        cash_refunds: Default::default(),
        cards: Default::default(),
        partly_paid: Vec::new(),
        other_currencies: Vec::new(),
        unsettled: Vec::new(),
        drawer,
        ..report
    };
    assert_eq!(quiet.text(), include_str!("reports/x.txt"));
    Ok(())
}

#[test]
fn a_report_that_a_file_of_this_version_holds_can_be_read_and_is_the_same() -> Checked {
    let report: ShiftReport = serde_json::from_str(STORED)?;
    assert_eq!(serde_json::to_string(&report)?, STORED.trim_end());
    Ok(())
}

#[test]
fn a_report_of_an_older_version_is_read_with_what_it_tells() -> Checked {
    let older: ShiftReport = serde_json::from_str(STORED_BY_6)?;
    let now: ShiftReport = serde_json::from_str(STORED)?;
    assert_eq!((older.total, older.rounding, &older.tenders), (now.total, now.rounding, &now.tenders));
    assert_eq!((older.returns.returns, older.late.declined.count, older.offline_unsettled.count), (0, 0, 0));
    assert!(!older.text().contains("RETURNED") && older.text().contains("Refunds to cards (2)"));
    Ok(())
}

/// What a till of version 8 put into its file: it waived nothing.
#[test]
fn a_report_from_before_anything_was_waived_is_read() -> Checked {
    let mut stored: serde_json::Value = serde_json::from_str(STORED)?;
    let mut remove = |path: &str, name: &str| stored.pointer_mut(path)?.as_object_mut()?.remove(name);
    for (path, name) in
        [("/returns", "waived"), ("/returns", "refundedBefore"), ("/late", "returned"), ("/late", "lostReturned")]
    {
        assert!(remove(path, name).is_some(), "{path}/{name}");
    }
    let older: ShiftReport = serde_json::from_value(stored)?;
    assert_eq!((older.returns.waived.count, older.late.returned.count, older.late.lost_returned.count), (0, 0, 0));
    assert!(older.text().contains("RETURNED EUR") && !older.text().contains("Never paid"), "{}", older.text());
    Ok(())
}

#[tokio::test]
async fn no_line_is_wider_than_the_paper() -> Checked {
    let mut report: ShiftReport = serde_json::from_str(STORED)?;
    report.shop_name = "A shop with a name of sixty-four characters, which is the most ok".to_owned();
    report.opened_by = "x".repeat(40);
    report.total = i64::MAX;
    report.drawer.difference = Some(i64::MIN);
    report.taxes[0].net = 1_000_000_000_000;
    for line in report.text().lines() {
        assert!(line.chars().count() <= 42, "{line}");
    }
    let scene = Scene::new()?;
    scene.till.open_shift(crate::ShiftOpening { intent_id: uuid::Uuid::now_v7(), float_amount: 0 }).await?;
    let text = scene.till.x_report().await?.text();
    assert!(text.contains("X REPORT (shift 1 is open)") && text.contains("DRAWER SHOULD HOLD"), "{text}");
    Ok(())
}
