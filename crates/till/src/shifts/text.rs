//! The report of a shift as text of 42 columns, for paper.

use super::report::{ReportKind, ShiftReport, Unsettled};
use crate::{State, TenderKind, amounts::format_amount, settings};
use jiff::Timestamp;
use protocol::Kind;

/// Characters of a line: what an 80 mm printer has.
const WIDTH: usize = 42;
/// Characters of a column of the tax table.
const TAX_COLUMN: usize = 11;
/// Characters of the audit's hash on paper: enough that nobody finds another with the same.
const HASH_CHARS: usize = 32;

/// What of the late declines was collected in cash: its rounding comes after it.
const IN_CASH: &str = "  Of it in cash";

impl ShiftReport {
    /// The report as text, in lines of 42 characters at most.
    #[must_use]
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        self.write_head(&mut lines);
        self.write_sales(&mut lines);
        self.write_returns(&mut lines);
        self.write_taxes(&mut lines);
        self.write_drawer(&mut lines);
        self.write_cards(&mut lines);
        self.write_late(&mut lines);
        self.write_partly_paid(&mut lines);
        self.write_unsettled(&mut lines);
        lines.push(rule());
        lines.push(apart("Audit entry", &self.audit_seq.to_string()));
        lines.push(cut(&self.audit_hash, HASH_CHARS));
        lines.join("\n") + "\n"
    }

    fn amount(&self, minor_units: i64) -> String {
        format_amount(minor_units, self.currency)
    }

    fn at(&self, at: Timestamp) -> String {
        let zone = settings::zone(self.time_zone.as_deref());
        at.to_zoned_datetime(zone).strftime("%Y-%m-%d %H:%M").to_string()
    }

    /// A name and an amount, where there is one.
    fn line(&self, name: &str, minor_units: i64, lines: &mut Vec<String>) {
        if minor_units != 0 {
            lines.push(apart(name, &self.amount(minor_units)));
        }
    }

    /// A name with how many, and an amount, where there is any.
    fn sum(&self, name: &str, count: i64, minor_units: i64, lines: &mut Vec<String>) {
        if count != 0 {
            lines.push(apart(&format!("{name} ({count})"), &self.amount(minor_units)));
        }
    }

    fn write_head(&self, lines: &mut Vec<String>) {
        let title = match self.kind {
            ReportKind::X => format!("X REPORT (shift {} is open)", self.number),
            ReportKind::Z => format!("Z REPORT {}", self.number),
        };
        lines.extend([centred(&self.shop_name), centred(&title), String::new()]);
        lines.push(apart("Till", &self.till_name));
        lines.push(apart("Business day", &self.business_day.to_string()));
        let made = match self.kind {
            ReportKind::X => "Now",
            ReportKind::Z => "Closed",
        };
        for (what, at, who) in [("Opened", self.opened_at, &self.opened_by), (made, self.made_at, &self.made_by)] {
            lines.push(apart(what, &self.at(at)));
            lines.push(apart("  by", &cut(who, WIDTH - 5)));
        }
        lines.push(rule());
    }

    fn write_sales(&self, lines: &mut Vec<String>) {
        lines.push(apart("Sales", &self.sales.to_string()));
        lines.push(apart("Net", &self.amount(self.net)));
        lines.push(apart("Tax", &self.amount(self.tax)));
        self.line("Tips", self.tips, lines);
        lines.push(apart(&format!("TOTAL {}", self.currency), &self.amount(self.total)));
        self.line("Cash rounding", self.rounding, lines);
        for tender in &self.tenders {
            let name = match tender.kind {
                TenderKind::Card => "Card",
                TenderKind::Cash => "Cash",
            };
            lines.push(apart(&format!("  {name} ({})", tender.count), &self.amount(tender.amount)));
            if tender.kind == TenderKind::Card {
                self.sum(
                    "    accepted offline, open",
                    self.offline_unsettled.count,
                    self.offline_unsettled.amount,
                    lines,
                );
            }
        }
        for other in &self.other_currencies {
            let total = format!("{} {}", format_amount(other.total, other.currency), other.currency);
            lines.push(apart(&format!("Also, not in these sums ({})", other.sales), &total));
            for (name, minor_units) in [("  Returned", other.returned), ("  Voided", other.voided)] {
                if minor_units != 0 {
                    let amount = format!("{} {}", format_amount(-minor_units, other.currency), other.currency);
                    lines.push(apart(name, &amount));
                }
            }
        }
        lines.push(rule());
        self.line("Discounts on lines", -self.line_discounts, lines);
        self.line("Discounts on sales", -self.sale_discounts, lines);
        for (name, refunds) in [("Refunds to cards", self.card_refunds), ("Refunds in cash", self.cash_refunds)] {
            self.line(&format!("{name} ({})", refunds.count), -refunds.amount, lines);
        }
        let voids = &self.voids;
        // Its cash is among the refunds above, and its cards are once the bank has approved them.
        self.sum("  Of it, of voided sales", voids.voids, -voids.cards.saturating_add(voids.cash), lines);
        self.sum("Lines removed", self.removed.lines.count, self.removed.lines.amount, lines);
        lines.push(apart("Sales dropped or emptied", &self.drops.to_string()));
        self.line("  They came to", self.removed.sales.amount, lines);
        lines.push(apart("Prices changed", &self.overrides.to_string()));
        lines.push(apart("Drawer opened without a sale", &self.no_sales.to_string()));
        lines.push(rule());
    }

    /// What came back, where anything did.
    fn write_returns(&self, lines: &mut Vec<String>) {
        let back = &self.returns;
        if back.returns == 0 && back.paid_out.count == 0 {
            return;
        }
        lines.push(apart("Returns", &back.returns.to_string()));
        for (name, minor_units) in [("Net", back.net), ("Tax", back.tax), ("Tips", back.tips)] {
            self.line(name, -minor_units, lines);
        }
        lines.push(apart(&format!("RETURNED {}", self.currency), &self.amount(-back.total)));
        self.line("Cash rounding", -back.rounding, lines);
        self.sum("  Never paid, to nobody", back.waived.count, -back.waived.amount, lines);
        self.sum("  Went back before", back.refunded_before.count, -back.refunded_before.amount, lines);
        self.sum("  To cards", back.cards.count, -back.cards.amount, lines);
        self.sum("  In cash", back.cash.count, -back.cash.amount, lines);
        self.sum("Cash in place of cards", back.paid_out.count, -back.paid_out.amount, lines);
        self.line("  Of it cash rounding", -back.paid_out_rounding, lines);
        lines.push(apart("SALES LESS RETURNS", &self.amount(self.total.saturating_sub(back.total))));
        lines.push(rule());
    }

    fn write_taxes(&self, lines: &mut Vec<String>) {
        lines.push(columns(["Tax", "Net", "Tax", "Gross"]));
        let sold = self.taxes.iter().map(|tax| (&tax.rate, tax.net, tax.tax));
        self.write_rates(sold, lines);
        if !self.returns.taxes.is_empty() {
            lines.push("Returned".to_owned());
            self.write_rates(self.returns.taxes.iter().map(|tax| (&tax.rate, -tax.net, -tax.tax)), lines);
        }
        lines.push(rule());
    }

    fn write_rates<'a>(&self, rates: impl Iterator<Item = (&'a String, i64, i64)>, lines: &mut Vec<String>) {
        for (rate, net, tax) in rates {
            let rate = format!("{rate} %");
            let [net, tax, gross] = [net, tax, net.saturating_add(tax)].map(|minor_units| self.amount(minor_units));
            if [&net, &tax, &gross].into_iter().all(|text| text.chars().count() < TAX_COLUMN) {
                lines.push(columns([&rate, &net, &tax, &gross]));
            } else {
                lines.extend([apart(&format!("{rate} Net"), &net), apart("  Tax", &tax), apart("  Gross", &gross)]);
            }
        }
    }

    fn write_drawer(&self, lines: &mut Vec<String>) {
        let drawer = &self.drawer;
        lines.push(apart("Float", &self.amount(drawer.float_amount)));
        lines.push(apart("Cash of sales", &self.amount(drawer.cash_of_sales)));
        self.line("Cash of sales still open", drawer.cash_of_open_sales, lines);
        self.line("Of it in earlier shifts", -drawer.cash_of_earlier_shifts, lines);
        self.line("Collected after a late decline", drawer.cash_collected, lines);
        self.line("Cash in", drawer.cash_in, lines);
        self.line("Cash out", -drawer.cash_out, lines);
        self.line("Cash refunds", -drawer.cash_refunds, lines);
        lines.push(apart("DRAWER SHOULD HOLD", &self.amount(drawer.expected)));
        if let (Some(counted), Some(difference)) = (drawer.counted, drawer.difference) {
            let times =
                if drawer.counts == 1 { String::new() } else { format!(" (the last of {} counts)", drawer.counts) };
            lines.push(apart(&format!("Counted{times}"), &self.amount(counted)));
            lines.push(apart("Difference", &self.signed(difference)));
        }
        if !drawer.each_count.is_empty() {
            lines.push("Counts".to_owned());
        }
        for one in &drawer.each_count {
            lines.push(apart(&format!("  {}", self.at(one.at)), &self.amount(one.counted)));
            lines.push(apart(&format!("  by {}", one.who), &self.signed(one.difference)));
        }
    }

    /// A difference, with its sign.
    fn signed(&self, minor_units: i64) -> String {
        let sign = if minor_units > 0 { "+" } else { "" };
        format!("{sign}{}", self.amount(minor_units))
    }

    /// How the cards of the sales hang together with what the bank has, where it has any.
    fn write_cards(&self, lines: &mut Vec<String>) {
        let cards = &self.cards;
        if cards.approved.count == 0 && cards.of_sales == 0 {
            return;
        }
        lines.push(rule());
        lines.push(apart("Cards of sales", &self.amount(cards.of_sales)));
        self.line("Of it in earlier shifts", -cards.of_earlier_shifts, lines);
        self.line("Of it offline, not approved", -cards.not_approved, lines);
        self.line("Cards of sales still open", cards.of_open_sales, lines);
        self.line("Cards of voided sales", cards.of_voided_sales, lines);
        self.line("Offline of earlier shifts", cards.offline_of_earlier_shifts, lines);
        self.line("Collected after a late decline", cards.collected, lines);
        lines.push(apart(
            &format!("APPROVED BY THE BANK ({})", cards.approved.count),
            &self.amount(cards.approved.amount),
        ));
    }

    fn write_partly_paid(&self, lines: &mut Vec<String>) {
        if self.partly_paid.is_empty() {
            return;
        }
        lines.extend([rule(), format!("PARTLY PAID, STILL OPEN: {}", self.partly_paid.len())]);
        for one in &self.partly_paid {
            let [paid, total] = [one.paid, one.total].map(|minor_units| format_amount(minor_units, one.currency));
            lines.push(apart(&format!("Sale {}", one.sale_number), &format!("{paid} of {total} {}", one.currency)));
        }
    }

    /// What was declined after its goods were gone, where there is any.
    fn write_late(&self, lines: &mut Vec<String>) {
        let late = &self.late;
        let sums = [
            ("Declined", late.declined),
            ("  Its goods came back before", late.returned_before),
            ("Collected again", late.collected),
            (IN_CASH, late.collected_in_cash),
            ("Goods came back", late.returned),
            ("Written off", late.written_off),
            ("  Goods came back after it", late.lost_returned),
            ("Still open, of all shifts", late.open),
        ];
        if sums.iter().all(|(_, total)| total.count == 0) {
            return;
        }
        lines.extend([rule(), "DECLINED AFTER THE SALE".to_owned()]);
        for (name, total) in sums {
            self.sum(name, total.count, total.amount, lines);
            if name == IN_CASH {
                self.line("  Cash rounding of that", late.rounding, lines);
            }
        }
    }

    fn write_unsettled(&self, lines: &mut Vec<String>) {
        if self.unsettled.is_empty() {
            return;
        }
        lines.push(rule());
        lines.push(format!("NOT YET SETTLED: {}", self.unsettled.len()));
        lines.push("They stay safe and go on by themselves.".to_owned());
        for one in &self.unsettled {
            let amount = format!("{} {}", format_amount(one.amount, one.currency), one.currency);
            lines.push(apart(&format!("{} {}", one.short_code, self.at(one.created_at)), &amount));
            lines.push(format!("  {}", told(one)));
            if one.accepted_offline {
                lines.push("  accepted offline: its goods are gone".to_owned());
            }
        }
    }
}

fn told(one: &Unsettled) -> String {
    let sale = one.sale_number.map_or_else(String::new, |number| format!(", sale {number}"));
    let kind = match one.kind {
        Kind::Payment => "payment",
        Kind::Refund => "refund",
    };
    let state = match one.state {
        State::NeedsAttention => "needs a look",
        State::Saved => "never sent yet",
        _ => "no answer yet",
    };
    format!("{kind}{sale}: {state}")
}

fn rule() -> String {
    "-".repeat(WIDTH)
}

fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

fn centred(text: &str) -> String {
    format!("{:^WIDTH$}", cut(text, WIDTH)).trim_end().to_owned()
}

/// A text at the left and one at the right edge, the left one cut where there is no room for both.
fn apart(left: &str, right: &str) -> String {
    let right = cut(right, WIDTH);
    let room = WIDTH - right.chars().count();
    let left = cut(left, room.saturating_sub(1));
    format!("{left:<room$}{right}").trim_end().to_owned()
}

fn columns([rate, net, tax, gross]: [&str; 4]) -> String {
    format!("{rate:<9}{net:>11}{tax:>11}{gross:>11}")
}
