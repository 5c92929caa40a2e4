//! The list of sales: newest first, page by page, and found by what a person has of one: a number on paper, an amount, the last four
//! digits of a card, a time. However many sales there are, each question goes along an index and reads about a page of it.

use super::{COLUMNS, SaleRow, SaleState, sale};
use crate::{TenderKind, TenderState, TillError, operations, settings, tenders};
use jiff::Timestamp;
use protocol::Currency;
use rusqlite::{Connection, named_params};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use uuid::Uuid;

/// How many one answer holds at most.
const SALES_MAX: u32 = 200;
/// How many where nobody said.
const SALES: u32 = 50;

/// Which sales are asked for: those to which all of this applies. Only those that were under payment once are on the list, as they have
/// a number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SalesQuery {
    /// What a person typed: a whole number is the number of a receipt, a return or a sale, the last four digits of a card, or an amount
    /// in whole units; `24.90` and `24,9` are amounts in the shop's currency. All that it can mean is found; what means nothing finds
    /// nothing.
    pub text: Option<String>,
    /// The number of its receipt, or of that of goods that came back of it.
    pub receipt_number: Option<i64>,
    /// What it came to, or what one of its tenders was for, in minor units.
    pub amount: Option<i64>,
    /// The last four digits of a card that was used.
    pub last_four: Option<String>,
    /// Completed, or else changed last, at this time or later.
    pub from: Option<Timestamp>,
    /// Completed, or else changed last, before this time.
    pub before: Option<Timestamp>,
    /// How far it is.
    pub state: Option<SaleState>,
    /// After this one: the last of the page before.
    pub after: Option<SalePlace>,
    /// How many; 50 where nothing is said, at most 200.
    pub limit: Option<u32>,
}

/// The place of a sale in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SalePlace {
    /// When it was completed, or else changed last.
    pub at: Timestamp,
    /// Its number.
    pub number: i64,
}

/// A page of sales.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sales {
    /// Those found.
    pub sales: Vec<ListedSale>,
    /// Whether there are more.
    pub more: bool,
}

/// A sale as a list shows it. Amounts in minor units of its currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedSale {
    /// Its id.
    pub id: Uuid,
    /// Its place, by which the next page is asked for.
    pub place: SalePlace,
    /// The number of its receipt, once it is completed.
    pub receipt_number: Option<i64>,
    /// How far it is.
    pub state: SaleState,
    /// What it came to.
    pub total: i64,
    /// The currency.
    pub currency: Currency,
    /// What paid it, or was to.
    pub tenders: Vec<ListedTender>,
    /// What of it went back or is on its way back.
    pub given_back: i64,
}

/// A tender in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedTender {
    /// How it pays.
    pub kind: TenderKind,
    /// How far it is.
    pub state: TenderState,
    /// How much.
    pub amount: i64,
    /// The card's brand.
    pub card_brand: Option<String>,
    /// The last four digits of the card.
    pub last4: Option<String>,
    /// Its goods were handed over before the bank answered.
    pub accepted_offline: bool,
}

/// What a sale is found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Find {
    Number(i64),
    Receipt(i64),
    ReturnReceipt(i64),
    Amount(i64),
    LastFour(i64),
    /// In this stored state, by time.
    Time(&'static str),
}

impl Find {
    /// The numbers of the sales, newest first: along one index each.
    fn sql(self) -> String {
        let from = match self {
            Self::Number(_) => "FROM sales WHERE sales.number = :value",
            Self::Receipt(_) => "FROM sales WHERE sales.receipt_number = :value",
            Self::ReturnReceipt(_) => {
                "FROM returns CROSS JOIN sales ON sales.id = returns.sale_id WHERE returns.receipt_number = :value"
            }
            Self::Amount(_) | Self::LastFour(_) => {
                "FROM sale_marks AS mark CROSS JOIN sales ON sales.number = mark.number
                 WHERE mark.kind = :word AND mark.value = :value AND mark.number < :number"
            }
            Self::Time(_) => {
                "FROM sales WHERE sales.state = :word AND :value IS NULL AND (coalesce(completed_at, updated_at) < :at OR sales.number < :number)"
            }
        };
        let order = match self {
            Self::Time(_) => "ORDER BY coalesce(completed_at, updated_at) DESC, sales.number DESC",
            Self::Amount(_) | Self::LastFour(_) => "ORDER BY mark.number DESC",
            // One at most.
            Self::Number(_) | Self::Receipt(_) | Self::ReturnReceipt(_) => "",
        };
        format!(
            "SELECT coalesce(completed_at, updated_at), sales.number {from} AND sales.number IS NOT NULL
                 AND coalesce(completed_at, updated_at) >= :from AND coalesce(completed_at, updated_at) <= :to
                 AND (:state IS NULL OR :state = CASE WHEN dropped_at IS NOT NULL THEN 'dropped' WHEN voided_at IS NOT NULL THEN 'voided'
                     ELSE sales.state END)
                 AND (:receipt IS NULL OR sales.receipt_number = :receipt
                     OR EXISTS (SELECT 1 FROM returns AS back WHERE back.receipt_number = :receipt AND back.sale_id = sales.id))
                 AND (:amount IS NULL OR EXISTS (SELECT 1 FROM sale_marks AS other
                     WHERE other.kind = 'amount' AND other.value = :amount AND other.number = sales.number))
                 AND (:last_four IS NULL OR EXISTS (SELECT 1 FROM sale_marks AS other
                     WHERE other.kind = 'last_four' AND other.value = :last_four AND other.number = sales.number))
             {order} LIMIT :limit"
        )
    }

    fn word(self) -> Option<&'static str> {
        match self {
            Self::Amount(_) => Some("amount"),
            Self::LastFour(_) => Some("last_four"),
            Self::Time(state) => Some(state),
            Self::Number(_) | Self::Receipt(_) | Self::ReturnReceipt(_) => None,
        }
    }

    fn value(self) -> Option<i64> {
        match self {
            Self::Number(value)
            | Self::Receipt(value)
            | Self::ReturnReceipt(value)
            | Self::Amount(value)
            | Self::LastFour(value) => Some(value),
            Self::Time(_) => None,
        }
    }
}

/// What a person may have meant.
fn meanings(text: &str, currency: Currency) -> Vec<Find> {
    let text = text.trim();
    let text = text.strip_prefix('#').unwrap_or(text).trim();
    let mut found = Vec::new();
    if text.len() <= 18
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && let Ok(number) = text.parse::<i64>()
    {
        found.extend([Find::Number(number), Find::Receipt(number), Find::ReturnReceipt(number)]);
        found.extend((text.len() == 4).then_some(Find::LastFour(number)));
    }
    found.extend(amount(text, currency).map(Find::Amount));
    found
}

/// An amount as people write it, in minor units.
fn amount(text: &str, currency: Currency) -> Option<i64> {
    let digits = usize::from(currency.minor_digits());
    let (whole, part) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let all = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all(whole) || !all(part) || part.len() > digits || whole.len() + digits > 18 {
        return None;
    }
    format!("{whole}{part:0<digits$}").parse().ok()
}

fn last_four(text: &str) -> Option<i64> {
    let is_it = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_it.then(|| text.parse().ok()).flatten()
}

/// The ways in which a question is answered: what any of them finds is meant.
fn ways(conn: &Connection, query: &SalesQuery) -> Result<Vec<Find>, TillError> {
    if let Some(text) = query.text.as_deref().filter(|text| !text.trim().is_empty()) {
        return Ok(meanings(text, settings::read(conn)?.currency));
    }
    if let Some(number) = query.receipt_number {
        return Ok(vec![Find::Receipt(number), Find::ReturnReceipt(number)]);
    }
    if let Some(text) = &query.last_four {
        return Ok(last_four(text).map(Find::LastFour).into_iter().collect());
    }
    if let Some(amount) = query.amount {
        return Ok(vec![Find::Amount(amount)]);
    }
    let stored: &[&str] = match query.state {
        None => &["open", "paying", "completed"],
        Some(SaleState::Open | SaleState::Dropped) => &["open"],
        Some(SaleState::Paying | SaleState::Voided) => &["paying"],
        Some(SaleState::Completed) => &["completed"],
    };
    Ok(stored.iter().copied().map(Find::Time).collect())
}

/// A page, the newest first.
pub(crate) fn list(conn: &Connection, query: &SalesQuery) -> Result<Sales, TillError> {
    let limit = query.limit.unwrap_or(SALES).clamp(1, SALES_MAX) as usize;
    let ways = ways(conn, query)?;
    let mut places = BTreeSet::new();
    for way in &ways {
        places.extend(look(conn, query, *way, limit + 1)?);
    }
    let more = places.len() > limit;
    let mut sales = Vec::with_capacity(limit);
    for (_, number) in places.into_iter().rev().take(limit) {
        sales.push(show(conn, number)?);
    }
    Ok(Sales { sales, more })
}

/// The places that one way finds: by what orders it, and the number.
fn look(conn: &Connection, query: &SalesQuery, way: Find, limit: usize) -> Result<Vec<(i64, i64)>, TillError> {
    // What no card has can't be narrowed down to: it finds nothing.
    let four = query.last_four.as_deref().map(|text| last_four(text).unwrap_or(-1));
    let by_time = matches!(way, Find::Time(_));
    let ms = |at: Option<Timestamp>, none: i64| at.map_or(none, Timestamp::as_millisecond);
    let (at, number) = query.after.map_or((i64::MAX, i64::MAX), |place| (place.at.as_millisecond(), place.number));
    let before = ms(query.before, i64::MAX).saturating_sub(i64::from(query.before.is_some()));
    let to = if by_time { before.min(at) } else { before };
    let (is_one, limit) = (way.word().is_none(), i64::try_from(limit).unwrap_or(i64::MAX));
    let mut statement = conn.prepare_cached(&way.sql())?;
    let mut values: Vec<(&str, &dyn rusqlite::ToSql)> = Vec::new();
    let (word, value, from, state) =
        (way.word(), way.value(), ms(query.from, i64::MIN), query.state.map(SaleState::as_str));
    values.extend_from_slice(named_params! {
        ":value": value, ":from": from, ":to": to, ":state": state, ":receipt": query.receipt_number, ":amount": query.amount,
        ":last_four": four, ":limit": limit,
    });
    if !is_one {
        values.extend_from_slice(named_params! {":word": word, ":number": number});
    }
    if by_time {
        values.extend_from_slice(named_params! {":at": at});
    }
    let rows = statement.query_map(&*values, |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    let rows: Vec<(i64, i64)> = rows.collect::<Result<_, _>>()?;
    // What is found by a mark is in the order of its numbers, and one that is found by its own number comes among these.
    Ok(rows
        .into_iter()
        .filter(|(_, found)| by_time || *found < number)
        .map(|(at, number)| if by_time { (at, number) } else { (0, number) })
        .collect())
}

fn show(conn: &Connection, number: i64) -> Result<ListedSale, TillError> {
    let row: SaleRow =
        conn.prepare_cached(&format!("SELECT {COLUMNS} FROM sales WHERE number = ?1"))?.query_row([number], sale)?;
    let (at, id, total) = conn
        .prepare_cached("SELECT coalesce(completed_at, updated_at), id, total FROM sales WHERE number = ?1")?
        .query_row([number], |row| {
            Ok((crate::columns::timestamp(row, 0)?, row.get::<_, String>(1)?, row.get::<_, Option<i64>>(2)?))
        })?;
    let total = match total {
        Some(total) => total,
        // Open again after its payment did not go through.
        None => crate::sale::figures(conn, &row, &crate::lines::of_sale(conn, row.id)?)?.total,
    };
    let mut shown = Vec::new();
    for tender in tenders::of_sale(conn, row.id)? {
        let operation = match tender.kind {
            TenderKind::Card => operations::by_intent(conn, tender.id)?,
            TenderKind::Cash => None,
        };
        shown.push(ListedTender {
            kind: tender.kind,
            state: tender.state,
            amount: tender.amount,
            card_brand: operation.as_ref().and_then(|operation| operation.card_brand.clone()),
            last4: operation.and_then(|operation| operation.last4),
            accepted_offline: tender.taken_offline_at.is_some(),
        });
    }
    Ok(ListedSale {
        id: row.id,
        place: SalePlace { at, number },
        receipt_number: row.receipt_number,
        state: row.state,
        total,
        currency: row.currency,
        tenders: shown,
        given_back: given_back(conn, &id)?,
    })
}

/// By goods that came back, by money alone, by giving the sale up. A leg to a card whose payment never paid gives nothing back.
fn given_back(conn: &Connection, sale_id: &str) -> Result<i64, TillError> {
    Ok(conn
        .prepare_cached(
            "SELECT (SELECT coalesce(sum(total), 0) FROM returns WHERE sale_id = ?1)
                 - (SELECT coalesce(sum(return_waived.amount), 0)
                    FROM returns CROSS JOIN return_waived ON return_waived.return_id = returns.id WHERE returns.sale_id = ?1)
                 - (SELECT coalesce(sum(return_refunded.amount), 0)
                    FROM returns CROSS JOIN return_refunded ON return_refunded.return_id = returns.id WHERE returns.sale_id = ?1)
                 + (SELECT coalesce(sum(refunds.amount), 0) FROM tenders CROSS JOIN refunds ON refunds.tender_id = tenders.id
                    WHERE tenders.sale_id = ?1 AND refunds.return_id IS NULL AND refunds.void_id IS NULL
                        AND refunds.state NOT IN ('declined', 'cancelled'))
                 + (SELECT coalesce(sum(cards + cash), 0) FROM voids WHERE sale_id = ?1)
                 - (SELECT coalesce(sum(refunds.amount), 0) FROM tenders CROSS JOIN refunds ON refunds.tender_id = tenders.id
                    WHERE tenders.sale_id = ?1 AND tenders.state IN ('declined', 'cancelled') AND refunds.replaces IS NULL
                        AND (refunds.return_id IS NOT NULL OR refunds.void_id IS NOT NULL))",
        )?
        .query_row([sale_id], |row| row.get(0))?)
}

/// Notes the last four digits of a card, by which its sale is found.
pub(crate) fn mark_card(tx: &Connection, sale_id: Uuid, last4: &str) -> Result<(), TillError> {
    let Some(value) = last_four(last4) else { return Ok(()) };
    tx.prepare_cached(
        "INSERT OR IGNORE INTO sale_marks (kind, value, number) SELECT 'last_four', ?2, number FROM sales WHERE id = ?1",
    )?
    .execute(rusqlite::params![sale_id.to_string(), value])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Till, schema};

    #[test]
    fn what_is_typed_means_all_that_it_can() {
        let euros = |text| meanings(text, Currency::EUR);
        assert_eq!(euros(" 24.90 "), [Find::Amount(2490)]);
        assert_eq!(euros("24,9"), [Find::Amount(2490)]);
        let all =
            |number, amount| vec![Find::Number(number), Find::Receipt(number), Find::ReturnReceipt(number), amount];
        assert_eq!(euros("#17"), all(17, Find::Amount(1700)));
        let mut four = all(42, Find::LastFour(42));
        four.push(Find::Amount(4200));
        assert_eq!(euros("0042"), four);
        for nothing in ["", "#", "tea", "-5", "24.905", "1.2.3", "1e3", ".", ",5", "９", "99999999999999999999"] {
            assert_eq!(euros(nothing), [], "{nothing}");
        }
        assert_eq!(amount("1042", Currency::parse("JPY").unwrap()), Some(1042));
        assert_eq!(amount("1.5", Currency::parse("JPY").unwrap()), None);
        assert_eq!(amount("1.5", Currency::parse("BHD").unwrap()), Some(1500));
    }

    #[test]
    fn every_question_goes_along_an_index_and_sorts_nothing() {
        let dir = tempfile::tempdir().unwrap();
        drop(Till::open(dir.path()).unwrap());
        let file = Connection::open(dir.path().join("till.db")).unwrap();
        schema::prepare(&file).unwrap();
        let ways = [
            Find::Number(1),
            Find::Receipt(1),
            Find::ReturnReceipt(1),
            Find::Amount(1),
            Find::LastFour(1),
            Find::Time("completed"),
        ];
        for way in ways {
            let mut statement = file.prepare(&format!("EXPLAIN QUERY PLAN {}", way.sql())).unwrap();
            let mut rows = statement.raw_query();
            let mut plan = Vec::new();
            while let Some(row) = rows.next().unwrap() {
                plan.push(row.get::<_, String>(3).unwrap());
            }
            assert!(plan.len() >= 4, "{way:?}: {plan:?}");
            for step in &plan {
                assert!(!step.starts_with("SCAN") && !step.contains("TEMP B-TREE"), "{way:?}: {plan:?}");
            }
            if way == Find::Time("completed") {
                assert!(plan[0].contains("sales_by_time (state=? AND <expr>>? AND <expr><?)"), "{plan:?}");
            }
        }
    }
}
