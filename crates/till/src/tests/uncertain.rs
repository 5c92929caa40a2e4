//! Clicks whose COMMIT gave no word: what is told of them is what stands in the file, also where it stands there after all.

use super::{Checked, Scene};
use crate::{
    CardPayment, CashPayment, Charge, Count, DrawerOpening, NewDrawerMove, Operation, Refund, ShiftOpening, State,
    Till, TillError,
};
use protocol::{Amount, CardToken, Currency, Key};
use rusqlite::Connection;
use std::{
    sync::mpsc,
    time::{Duration, Instant},
};
use store::{Priority, Store, WriteError};
use tokio::sync::oneshot;
use uuid::Uuid;

const LIMIT: Duration = Duration::from_secs(20);

/// What somebody clicks, with the ids that it had before.
#[derive(Clone, Debug)]
enum Click {
    Card(CardPayment),
    Cash(CashPayment),
    Charge(Charge),
    Refund(Refund),
    Cancel(Key),
    OpenShift(ShiftOpening),
    MoveDrawer(NewDrawerMove),
    CloseShift(i64),
}

/// What a click answered: whose it is, and how far.
#[derive(Debug, PartialEq)]
struct Told {
    id: String,
    state: String,
    cancel_wished: bool,
}

impl From<Operation> for Told {
    fn from(operation: Operation) -> Self {
        let Operation { key, state, cancel_wished, .. } = operation;
        Self { id: key.to_string(), state: state.as_str().to_owned(), cancel_wished }
    }
}

fn told(id: impl ToString, state: &str) -> Told {
    Told { id: id.to_string(), state: state.to_owned(), cancel_wished: false }
}

impl Click {
    async fn on(self, till: &Till) -> Result<Told, TillError> {
        Ok(match self {
            Self::Card(payment) => till.pay_card(payment).await?.into(),
            Self::Charge(charge) => till.charge(charge).await?.into(),
            Self::Refund(refund) => till.refund(refund).await?.into(),
            Self::Cancel(key) => till.cancel(key).await?.into(),
            Self::OpenShift(opening) => told(till.open_shift(opening).await?.number, "open"),
            Self::MoveDrawer(new) => told(till.move_drawer(new).await?.id, "moved"),
            Self::CloseShift(number) => told(till.close_shift(number).await?.number, "closed"),
            Self::Cash(payment) => {
                let sale = till.pay_cash(payment).await?.sale;
                Told { id: sale.id.to_string(), state: format!("{:?}", sale.state), cancel_wished: false }
            }
        })
    }
}

fn charge(accepted_offline: bool) -> Checked<Charge> {
    Ok(Charge {
        intent_id: Uuid::now_v7(),
        amount: Amount::new(2_490)?,
        currency: Currency::EUR,
        card: CardToken::new("tok_visa")?,
        reference: None,
        accepted_offline,
    })
}

/// Every click that saves something of its own, each on a till of its own where what it needs is there.
async fn clicks() -> Checked<Vec<(&'static str, Scene, Click)>> {
    let mut clicks = Vec::new();
    for name in ["by card", "in cash"] {
        let scene = Scene::new()?;
        let sale = scene.sale().await?;
        let tender_id = scene.till.begin_tender(sale.id).await?.tender_id;
        let card = CardPayment { tender_id, sale_id: sale.id, amount: 590, card: "tok_visa".into() };
        let cash = CashPayment { tender_id, sale_id: sale.id, tendered: 1_000 };
        clicks.push((name, scene, if name == "by card" { Click::Card(card) } else { Click::Cash(cash) }));
    }
    clicks.push(("a charge", Scene::new()?, Click::Charge(charge(false)?)));
    clicks.push(("taken offline", Scene::new()?, Click::Charge(charge(true)?)));
    for state in [State::Saved, State::Approved] {
        let scene = Scene::new()?;
        let payment = paid(&scene, state).await?;
        let refund = Refund { intent_id: Uuid::now_v7(), payment: payment.key, amount: Amount::new(490)? };
        clicks.push(("a refund", scene, Click::Refund(refund)));
    }
    for state in [State::Saved, State::Unknown] {
        let scene = Scene::new()?;
        let payment = paid(&scene, state).await?;
        clicks.push(("a cancellation", scene, Click::Cancel(payment.key)));
    }
    let opening = ShiftOpening { intent_id: Uuid::now_v7(), float_amount: 100 };
    clicks.push(("a shift opened", Scene::new()?, Click::OpenShift(opening)));
    let scene = Scene::new()?;
    scene.till.open_shift(opening).await?;
    let new = NewDrawerMove { id: Uuid::now_v7(), opening: DrawerOpening::Out(50), reason: "to the safe".into() };
    clicks.push(("cash taken out", scene, Click::MoveDrawer(new)));
    let scene = Scene::new()?;
    scene.till.open_shift(opening).await?;
    scene.till.count_drawer(Count::Total(100)).await?;
    clicks.push(("a shift closed", scene, Click::CloseShift(1)));
    Ok(clicks)
}

async fn paid(scene: &Scene, state: State) -> Checked<Operation> {
    let payment = scene.till.charge(charge(false)?).await?;
    if state == State::Saved { Ok(payment) } else { scene.settle(&payment, state).await }
}

async fn waiting(store: &Store, clicks: u64) -> Checked {
    let begun = Instant::now();
    while store.work().clicks_waiting != clicks {
        if begun.elapsed() > LIMIT {
            return Err(format!("not {clicks} waited: {:?}", store.work()).into());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

/// Runs a click in one commit with something that ends it by `how`, so that nobody can be told how it ended.
async fn with_the_word_lost(till: &Till, click: Click, how: &'static str) -> Checked<Result<Told, TillError>> {
    let store = till.inner.store.clone();
    let (let_go, held) = mpsc::channel::<()>();
    let (begin, begun) = oneshot::channel();
    let holding = tokio::spawn({
        let store = store.clone();
        async move {
            let hold = move |_: &Connection| {
                let _ = begin.send(());
                held.recv().map_err(|error| error.to_string())
            };
            store.write(Priority::Click, hold).await
        }
    });
    // While it holds the file, what comes now goes into the same commit, in its order.
    begun.await?;
    let meanwhile = async {
        waiting(&store, 1).await?;
        let ending = tokio::spawn({
            let store = store.clone();
            async move { store.write(Priority::Click, move |tx| tx.execute_batch(how)).await }
        });
        waiting(&store, 2).await?;
        let_go.send(())?;
        drop(holding.await?);
        assert!(matches!(ending.await?, Err(WriteError::Uncertain(_))), "its commit gave a word");
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    let (told, done) = tokio::join!(click.on(till), meanwhile);
    done?;
    Ok(told)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_click_that_is_in_the_file_though_its_commit_gave_no_word_is_told_as_done() -> Checked {
    for (name, scene, click) in clicks().await? {
        let told = with_the_word_lost(&scene.till, click.clone(), "COMMIT").await?;
        let told = told.map_err(|error| format!("{name}: told as failed, and it is done: {error}"))?;
        let operations = scene.count("SELECT count(*) FROM operations")?;
        assert_eq!(click.on(&scene.till).await?, told, "{name}: the same again");
        assert_eq!(scene.count("SELECT count(*) FROM operations")?, operations, "{name}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_click_that_is_not_in_the_file_is_told_as_failed_and_works_again() -> Checked {
    for (name, scene, click) in clicks().await? {
        let before = (scene.count("SELECT count(*) FROM attempts")?, scene.count("SELECT count(*) FROM audit")?);
        let told = with_the_word_lost(&scene.till, click.clone(), "ROLLBACK").await?;
        assert!(matches!(told, Err(TillError::Storage(_))), "{name}: {told:?}");
        let after = (scene.count("SELECT count(*) FROM attempts")?, scene.count("SELECT count(*) FROM audit")?);
        assert_eq!(after, before, "{name}: told as failed, and something is there");
        click.on(&scene.till).await.map_err(|error| format!("{name}: {error}"))?;
        let after = (scene.count("SELECT count(*) FROM attempts")?, scene.count("SELECT count(*) FROM audit")?);
        assert_ne!(after, before, "{name}: told as done, and nothing is there");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_found_in_the_file_tells_of_the_refunds_that_went_along() -> Checked {
    let scene = Scene::new()?;
    let payment = paid(&scene, State::Saved).await?;
    let refund = Refund { intent_id: Uuid::now_v7(), payment: payment.key, amount: Amount::new(490)? };
    let refund = scene.money_back(refund).await?;
    let mut events = scene.till.subscribe();
    with_the_word_lost(&scene.till, Click::Cancel(payment.key), "COMMIT").await??;
    let mut cancelled = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let crate::Event::OperationChanged(operation) = event {
            cancelled.push((operation.key, operation.state));
        }
    }
    assert_eq!(cancelled, [(payment.key, State::Cancelled), (refund.key, State::Cancelled)]);
    Ok(())
}
