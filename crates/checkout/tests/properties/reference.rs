//! The rules of money once more, by another way: exact fractions, and searches instead of formulas. Slow, obvious and for
//! everyday figures only.

use checkout::{Cart, CashRounding, Discount, Priced, Rate, Tender, Tip};

/// A fraction of a minor unit, not negative.
#[derive(Clone, Copy)]
struct Fraction {
    over: i128,
    under: i128,
}

impl Fraction {
    fn whole(amount: i64) -> Self {
        Self { over: amount.into(), under: 1 }
    }

    /// Times so many thousandths of a percent.
    fn percent(self, rate: Rate) -> Self {
        Self { over: self.over * i128::from(rate.thousandths()), under: self.under * 100_000 }
    }

    /// The whole number next to it, found by trying: the smallest that it is less than a half above.
    fn rounded(self) -> i64 {
        let mut near = (self.over / self.under).saturating_sub(2).max(0);
        while 2 * (self.over - near * self.under) >= self.under {
            near += 1;
        }
        i64::try_from(near).unwrap_or(i64::MAX)
    }
}

/// All that a price says, without its types.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Figures {
    lines: Vec<[i64; 4]>,
    taxes: Vec<(i64, i64, i64)>,
    sale: [i64; 5],
    tenders: Vec<i64>,
    balance: [i64; 4],
}

impl Figures {
    pub(crate) fn of(priced: &Priced) -> Self {
        let Priced { lines, discount, taxes, net, tax, tip, total, balance } = priced;
        Self {
            lines: lines.iter().map(|line| [line.gross, line.discount, line.sale_discount, line.total]).collect(),
            taxes: taxes.iter().map(|group| (group.rate.thousandths(), group.net, group.tax)).collect(),
            sale: [*discount, *net, *tax, *tip, *total],
            tenders: balance.tenders.iter().map(|priced| priced.amount).collect(),
            balance: [balance.rounding, balance.change, balance.drawer, balance.rest],
        }
    }
}

pub(crate) fn reckon(cart: &Cart) -> Figures {
    let mut lines = Vec::new();
    for line in &cart.lines {
        let exact = i128::from(line.unit_price) * i128::from(line.quantity.thousandths());
        let gross = Fraction { over: exact, under: 1_000 }.rounded();
        let left = match line.discount {
            None => gross,
            Some(Discount::Percent(rate)) => {
                let part = Fraction::whole(gross).percent(rate);
                Fraction { over: i128::from(gross) * part.under - part.over, under: part.under }.rounded()
            }
            Some(Discount::Amount(amount)) => (gross - amount).max(0),
        };
        lines.push([gross, gross - left, 0, left]);
    }
    let all: i64 = lines.iter().map(|line| line[3]).sum();
    let discount = match cart.discount {
        None => 0,
        Some(Discount::Percent(rate)) => Fraction::whole(all).percent(rate).rounded(),
        Some(Discount::Amount(amount)) if amount > all => all,
        Some(Discount::Amount(amount)) => amount,
    };
    share(discount, all, &mut lines);
    let taxes = taxes(cart, &lines);
    let net: i64 = taxes.iter().map(|group| group.1).sum();
    let tax: i64 = taxes.iter().map(|group| group.2).sum();
    let tip = match cart.tip {
        None => 0,
        Some(Tip::Percent(rate)) => Fraction::whole(net + tax).percent(rate).rounded(),
        Some(Tip::Amount(amount)) => amount,
    };
    let total = net + tax + tip;
    let (tenders, balance) = pay(cart, total);
    Figures { lines, taxes, sale: [discount, net, tax, tip, total], tenders, balance }
}

/// Everyone gets the whole units of the exact share; each unit left over goes to whoever is shortest of theirs.
fn share(discount: i64, all: i64, lines: &mut [[i64; 4]]) {
    let exact = |total: i64| i128::from(discount) * i128::from(total);
    let totals: Vec<i64> = lines.iter().map(|line| line[3]).collect();
    let mut shares = vec![0_i64; lines.len()];
    for (share, total) in shares.iter_mut().zip(&totals) {
        while (i128::from(*share) + 1) * i128::from(all) <= exact(*total) && *share < discount {
            // Leaps first, single steps at the end.
            let short = (exact(*total) - i128::from(*share) * i128::from(all)) / i128::from(all);
            *share += i64::try_from(short / 2).unwrap_or(0).max(1);
        }
    }
    let mut served = vec![false; lines.len()];
    for _ in shares.iter().sum::<i64>()..discount {
        let mut shortest: Option<(usize, i128)> = None;
        for index in 0..lines.len() {
            let short = exact(totals[index]) - i128::from(shares[index]) * i128::from(all);
            if !served[index] && shortest.is_none_or(|(_, most)| short > most) {
                shortest = Some((index, short));
            }
        }
        if let Some((index, _)) = shortest {
            served[index] = true;
            shares[index] += 1;
        }
    }
    for (line, share) in lines.iter_mut().zip(shares) {
        line[2] = share;
        line[3] -= share;
    }
}

fn taxes(cart: &Cart, lines: &[[i64; 4]]) -> Vec<(i64, i64, i64)> {
    let mut rates: Vec<i64> = cart.lines.iter().map(|line| line.tax_rate.thousandths()).collect();
    rates.sort_unstable();
    rates.dedup();
    let group = |rate: i64| {
        let of_rate = cart.lines.iter().zip(lines).filter(|(line, _)| line.tax_rate.thousandths() == rate);
        let sum: i64 = of_rate.map(|(_, line)| line[3]).sum();
        let over = i128::from(sum) * i128::from(rate);
        if cart.prices_include_tax {
            let tax = Fraction { over, under: 100_000 + i128::from(rate) }.rounded();
            (rate, sum - tax, tax)
        } else {
            (rate, sum, Fraction { over, under: 100_000 }.rounded())
        }
    };
    rates.into_iter().map(group).collect()
}

/// The tenders' amounts, and rounding, change, drawer and rest.
fn pay(cart: &Cart, total: i64) -> (Vec<i64>, [i64; 4]) {
    let mut handed = None;
    let mut due = total;
    for tender in &cart.tenders {
        match *tender {
            Tender::Card { amount } | Tender::Voucher { amount } => due -= amount,
            Tender::Cash { tendered } => handed = Some(handed.unwrap_or(0) + tendered),
        }
    }
    let step = cart.cash.step();
    // The steps on both sides of what is due, and the one that the rule picks.
    let below = (0..).map(|count| due - count).find(|amount| amount % step == 0).unwrap_or(due);
    let above = (0..).map(|count| due + count).find(|amount| amount % step == 0).unwrap_or(due);
    let rounded = match cart.cash.rounding() {
        CashRounding::Up => above,
        CashRounding::Down => below,
        CashRounding::Nearest if above - due <= due - below => above,
        CashRounding::Nearest => below,
    };
    let balance = match handed {
        None => [0, 0, 0, due],
        Some(handed) if handed < rounded => [0, 0, handed, due - handed],
        Some(handed) => [rounded - due, handed - rounded, rounded, 0],
    };
    let mut drawer = balance[2];
    let mut amounts = Vec::new();
    for tender in &cart.tenders {
        amounts.push(match *tender {
            Tender::Card { amount } | Tender::Voucher { amount } => amount,
            Tender::Cash { tendered } if tendered >= drawer => std::mem::take(&mut drawer),
            Tender::Cash { tendered } => {
                drawer -= tendered;
                tendered
            }
        });
    }
    (amounts, balance)
}
