//! Sales that were given up after a part was paid: the void against its sale, and its legs against what had paid.

use super::{
    Notes,
    money::Money,
    sale::{Facts, TenderFacts},
};
use crate::{TenderState, TillError};
use rusqlite::{Connection, OptionalExtension as _};

/// A void as its row has it.
struct VoidFacts {
    id: String,
    cards: i64,
    cash: i64,
    created_at: i64,
}

/// A leg, to a card or in cash, as its row has it.
struct Leg {
    id: String,
    /// None of cash.
    tender_id: Option<String>,
    /// None of cash, which is handed over.
    state: Option<String>,
    amount: i64,
    rounding: i64,
    replaces: Option<String>,
}

impl Leg {
    /// Whether it is of the void itself, and not in the place of one that did not go through.
    fn is_first(&self) -> bool {
        self.replaces.is_none()
    }
}

/// Looks at the void of a sale, if there is one or should be.
pub(super) fn check(
    conn: &Connection,
    sale: &Facts,
    tenders: &[TenderFacts],
    notes: &mut Notes<'_>,
) -> Result<(), TillError> {
    let Some(void) = of_sale(conn, &sale.id)? else {
        if sale.voided_at.is_some() {
            notes.found("sale-void", &sale.subject, "it is marked as voided, and has no void");
        }
        return Ok(());
    };
    match sale.voided_at {
        Some(at) if at == void.created_at => {}
        Some(_) => {
            notes.found("sale-void", &sale.subject, "it is marked as voided at another time than its void was made")
        }
        None => notes.found("sale-void", &sale.subject, "it has a void, and is not marked as voided"),
    }
    if sale.state != "paying" {
        notes.found("sale-void", &sale.subject, format!("it has a void, and is {}", sale.state));
    }
    let legs = legs(conn, &void.id)?;
    check_sums(sale, &void, &legs, tenders, notes);
    check_places(sale, &legs, tenders, notes);
    for tender in tenders.iter().filter(|tender| tender.kind == "card") {
        check_card(conn, sale, tender, &legs, notes)?;
    }
    Ok(())
}

fn of_sale(conn: &Connection, sale_id: &str) -> Result<Option<VoidFacts>, TillError> {
    let mut statement = conn.prepare_cached("SELECT id, cards, cash, created_at FROM voids WHERE sale_id = ?1")?;
    let found = statement.query_row([sale_id], |row| {
        Ok(VoidFacts { id: row.get(0)?, cards: row.get(1)?, cash: row.get(2)?, created_at: row.get(3)? })
    });
    Ok(found.optional()?)
}

fn legs(conn: &Connection, void_id: &str) -> Result<Vec<Leg>, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT id, tender_id, state, amount, 0, replaces FROM refunds WHERE void_id = ?1
         UNION ALL
         SELECT id, NULL, NULL, amount, rounding, instead_of FROM cash_refunds WHERE void_id = ?1",
    )?;
    let rows = statement.query_map([void_id], |row| {
        Ok(Leg {
            id: row.get(0)?,
            tender_id: row.get(1)?,
            state: row.get(2)?,
            amount: row.get(3)?,
            rounding: row.get(4)?,
            replaces: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The legs come to what the void says, and the cash to what was taken.
fn check_sums(sale: &Facts, void: &VoidFacts, legs: &[Leg], tenders: &[TenderFacts], notes: &mut Notes<'_>) {
    let money = Money(&sale.currency);
    let mut differs = |what: &str, is: i128, should: i128| {
        if is != should {
            let what = format!("{what} {}, and should be {}", money.of(is), money.of(should));
            notes.found("void-legs", &sale.subject, what);
        }
    };
    let first = |is_card: bool| {
        let legs = legs.iter().filter(move |leg| leg.is_first() && leg.tender_id.is_some() == is_card);
        legs.map(|leg| i128::from(leg.amount)).sum::<i128>()
    };
    let rounding = legs.iter().filter(|leg| leg.is_first()).map(|leg| i128::from(leg.rounding)).sum();
    let taken = tenders.iter().filter(|tender| tender.kind == "cash").map(|tender| i128::from(tender.amount)).sum();
    differs("what its void gives back to cards comes to", first(true), void.cards.into());
    differs("what its void gives back in cash comes to", first(false), void.cash.into());
    differs("its void gives back in cash", void.cash.into(), taken);
    differs("the rounding of the cash that its void gives back is", rounding, 0);
}

/// Each leg goes to a card of the sale, and what is tried again or paid out takes the place of one that did not go through.
fn check_places(sale: &Facts, legs: &[Leg], tenders: &[TenderFacts], notes: &mut Notes<'_>) {
    for leg in legs {
        let is_of_sale = |id: &String| tenders.iter().any(|tender| tender.id == *id && tender.kind == "card");
        if !leg.tender_id.as_ref().is_none_or(is_of_sale) {
            let what = format!("the leg {} of its void goes to a card that did not pay this sale", leg.id);
            notes.found("void-legs", &sale.subject, what);
        }
        let Some(replaces) = &leg.replaces else { continue };
        let before = legs.iter().find(|other| other.id == *replaces);
        let is_right = before.is_some_and(|before| {
            matches!(before.state.as_deref(), Some("declined" | "cancelled"))
                && before.amount == leg.amount.saturating_sub(leg.rounding)
                && (leg.tender_id.is_none() || leg.tender_id == before.tender_id)
        });
        if !is_right || legs.iter().filter(|other| other.replaces == leg.replaces).count() != 1 {
            let what = format!("the leg {} of its void does not take the place of one that did not go through", leg.id);
            notes.found("void-legs", &sale.subject, what);
        }
    }
}

/// What a card paid goes back to it, less what went back before the void.
fn check_card(
    conn: &Connection,
    sale: &Facts,
    tender: &TenderFacts,
    legs: &[Leg],
    notes: &mut Notes<'_>,
) -> Result<(), TillError> {
    let of_tender = |leg: &&Leg| leg.is_first() && leg.tender_id.as_ref() == Some(&tender.id);
    let given: i128 = legs.iter().filter(of_tender).map(|leg| i128::from(leg.amount)).sum();
    let counts = TenderState::read(&tender.state).is_some_and(TenderState::counts);
    // Taken offline it may have been declined since. What was declined before the void is none of it.
    if !counts && given == 0 {
        return Ok(());
    }
    if !counts && tender.taken_offline.is_none() {
        let what = format!("its void gives back to tender {}, which is {}", tender.id, tender.state);
        notes.found("void-legs", &sale.subject, what);
    }
    let (all, live): (i64, i64) = conn
        .prepare_cached(
            "SELECT coalesce(sum(amount), 0), coalesce(sum(amount) FILTER (WHERE state NOT IN ('declined', 'cancelled')), 0)
             FROM refunds WHERE tender_id = ?1 AND void_id IS NULL",
        )?
        .query_row([&tender.id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    // A refund from before that was open at the void may have been refused since: then less than all of them went back.
    let before = i128::from(tender.amount) - given;
    if !(i128::from(live)..=i128::from(all)).contains(&before) {
        let money = Money(&sale.currency);
        let what = format!(
            "its void gives {} back to tender {}, of which {} were paid and {} given back otherwise",
            money.of(given),
            tender.id,
            money.of(tender.amount),
            money.of(live)
        );
        notes.found("void-legs", &sale.subject, what);
    }
    Ok(())
}
