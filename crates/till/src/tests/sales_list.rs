//! The list of sales: all that were under payment, newest first, in pages, and found by what a person has of one.

use super::{Checked, Scene, returns::new as new_return};
use crate::{NewVoid, ReturnedGoods, Sale, SaleState, SalesQuery, State, TenderKind, TenderState};
use uuid::Uuid;

/// The numbers that a question finds.
async fn found(scene: &Scene, query: SalesQuery) -> Checked<Vec<i64>> {
    Ok(scene.till.sales(query).await?.sales.iter().map(|sale| sale.place.number).collect())
}

async fn typed(scene: &Scene, text: &str) -> Checked<Vec<i64>> {
    found(scene, SalesQuery { text: Some(text.to_owned()), ..SalesQuery::default() }).await
}

async fn paid_in_cash(scene: &Scene) -> Checked<Sale> {
    scene.till.new_sale().await?;
    let sale = scene.sale().await?;
    Ok(scene.in_cash(&sale, 1_000).await?.sale)
}

/// 1 in cash and taken back, 2 by two cards, 3 voided, 4 under payment, 5 dropped, 6 open again: all of 5.90.
async fn six(scene: &Scene) -> Checked {
    let sale = paid_in_cash(scene).await?;
    scene.till.return_goods(new_return(&sale, ReturnedGoods::Whole)).await?;
    scene.till.new_sale().await?;
    let sale = scene.sale().await?;
    scene.settle(&scene.by_card(&sale, 350).await?, State::Approved).await?;
    scene.settle(&scene.by_card(&sale, 240).await?, State::Approved).await?;
    for then in [SaleState::Voided, SaleState::Paying, SaleState::Dropped, SaleState::Open] {
        scene.till.new_sale().await?;
        let sale = scene.sale().await?;
        let card = scene.by_card(&sale, 120).await?;
        match then {
            SaleState::Voided => {
                scene.settle(&card, State::Approved).await?;
                scene.till.void_sale(NewVoid { id: Uuid::now_v7(), sale_id: sale.id, reason: None }).await?;
            }
            SaleState::Paying => drop(scene.till.hold_sale(sale.id).await?),
            _ => {
                scene.settle(&card, State::Declined).await?;
                if then == SaleState::Dropped {
                    scene.till.drop_sale(sale.id).await?;
                } else {
                    scene.till.back_to_cart(sale.id).await?;
                }
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn each_is_listed_with_what_a_list_shows_and_found_by_its_state() -> Checked {
    let scene = Scene::new()?;
    six(&scene).await?;
    // One that was never paid has no number yet.
    let all = scene.till.sales(SalesQuery::default()).await?;
    assert!(!all.more);
    let shown: Vec<_> =
        all.sales.iter().map(|sale| (sale.place.number, sale.state, sale.receipt_number, sale.given_back)).collect();
    assert_eq!(
        shown,
        [
            (6, SaleState::Open, None, 0),
            (5, SaleState::Dropped, None, 0),
            (4, SaleState::Paying, None, 0),
            (3, SaleState::Voided, None, 120),
            (2, SaleState::Completed, Some(3), 0),
            (1, SaleState::Completed, Some(1), 590),
        ]
    );
    assert!(all.sales.iter().all(|sale| sale.total == 590), "{all:?}");
    let tenders: Vec<_> =
        all.sales[4].tenders.iter().map(|tender| (tender.kind, tender.state, tender.amount)).collect();
    assert_eq!(tenders, [350, 240].map(|amount| (TenderKind::Card, TenderState::Approved, amount)));
    assert_eq!(all.sales[4].tenders[0].last4.as_deref(), Some("4242"));
    for (state, numbers) in [
        (SaleState::Open, vec![6]),
        (SaleState::Dropped, vec![5]),
        (SaleState::Paying, vec![4]),
        (SaleState::Voided, vec![3]),
        (SaleState::Completed, vec![2, 1]),
    ] {
        let query = SalesQuery { state: Some(state), ..SalesQuery::default() };
        assert_eq!(found(&scene, query.clone()).await?, numbers, "{state:?}");
        let query = SalesQuery { amount: Some(590), ..query };
        let frozen: Vec<_> = numbers.into_iter().filter(|number| ![5, 6].contains(number)).collect();
        assert_eq!(found(&scene, query).await?, frozen, "{state:?}: what was opened again comes to nothing yet");
    }
    Ok(())
}

#[tokio::test]
async fn what_a_person_types_finds_all_that_it_can_mean() -> Checked {
    let scene = Scene::new()?;
    six(&scene).await?;
    for (text, numbers) in [
        ("5.90", vec![4, 3, 2, 1]),
        ("5,9", vec![4, 3, 2, 1]),
        ("2.40", vec![2]),
        ("1.20", vec![6, 5, 4, 3]),
        ("4242", vec![6, 5, 3, 2]),
        // The number of a sale, of a receipt and of what came back of the first.
        ("2", vec![2, 1]),
        ("#3", vec![3, 2]),
        ("1", vec![1]),
        ("99", vec![]),
        ("tea", vec![]),
        ("5.905", vec![]),
        (" ", vec![6, 5, 4, 3, 2, 1]),
    ] {
        assert_eq!(typed(&scene, text).await?, numbers, "{text}");
    }
    let by = |receipt_number, last_four: Option<&str>, amount| SalesQuery {
        receipt_number,
        last_four: last_four.map(str::to_owned),
        amount,
        ..SalesQuery::default()
    };
    assert_eq!(found(&scene, by(Some(2), None, None)).await?, [1], "what came back of it");
    assert_eq!(found(&scene, by(Some(3), Some("4242"), None)).await?, [2]);
    assert_eq!(found(&scene, by(Some(1), Some("4242"), None)).await?, [] as [i64; 0]);
    assert_eq!(found(&scene, by(None, Some("4242"), Some(240))).await?, [2]);
    assert_eq!(found(&scene, by(None, Some("42"), None)).await?, [] as [i64; 0]);
    assert_eq!(found(&scene, by(None, None, Some(350))).await?, [2]);
    Ok(())
}

#[tokio::test]
async fn pages_follow_each_other_and_a_time_has_its_sales() -> Checked {
    let scene = Scene::new()?;
    for _ in 0..7 {
        paid_in_cash(&scene).await?;
    }
    for text in [None, Some("5.90".to_owned())] {
        let mut query = SalesQuery { text, limit: Some(3), ..SalesQuery::default() };
        let mut pages = Vec::new();
        loop {
            let page = scene.till.sales(query.clone()).await?;
            query.after = page.sales.last().map(|sale| sale.place);
            pages.push(page.sales.iter().map(|sale| sale.place.number).collect::<Vec<_>>());
            if !page.more {
                break;
            }
        }
        assert_eq!(pages, [vec![7, 6, 5], vec![4, 3, 2], vec![1]], "{query:?}");
    }
    let all = scene.till.sales(SalesQuery::default()).await?.sales;
    let (from, before) = (all[4].place.at, all[1].place.at);
    let expected: Vec<_> = all
        .iter()
        .map(|sale| sale.place)
        .filter(|place| place.at >= from && place.at < before)
        .map(|place| place.number)
        .collect();
    assert!(!expected.is_empty() && expected.len() < 7, "{expected:?}");
    for text in [None, Some("5.90".to_owned())] {
        let query = SalesQuery { text, from: Some(from), before: Some(before), ..SalesQuery::default() };
        assert_eq!(found(&scene, query).await?, expected);
    }
    Ok(())
}

/// A leg waits for its payment; where that never paid, nothing of it went back.
#[tokio::test]
async fn what_never_paid_gave_nothing_back() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let payment = scene.taken_offline(&sale, 590).await?;
    let made = scene.till.return_goods(new_return(&sale, ReturnedGoods::Whole)).await?;
    assert_eq!(made.legs.len(), 1);
    scene.till.new_sale().await?;
    let given_up = scene.sale().await?;
    let open = scene.taken_offline(&given_up, 300).await?;
    scene.till.void_sale(NewVoid { id: Uuid::now_v7(), sale_id: given_up.id, reason: None }).await?;
    let given_back = async || -> Checked<Vec<i64>> {
        Ok(scene.till.sales(SalesQuery::default()).await?.sales.iter().map(|sale| sale.given_back).collect())
    };
    assert_eq!(given_back().await?, [300, 590], "it is on its way");
    scene.settle(&payment, State::Declined).await?;
    scene.settle(&open, State::Declined).await?;
    assert_eq!(given_back().await?, [0, 0]);
    Ok(())
}
