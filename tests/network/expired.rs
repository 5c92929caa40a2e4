//! A till that comes back when the bank has dropped its response long ago.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::{Result, ensure};

use crate::{
    harness::{checker::Verdict, process::signal, until},
    proxy::{
        plan::{At, End, Give, Plan},
        wire::Kind,
    },
    scene::{Reached, STEP_LIMIT, Scene},
};

const CLICKS: usize = 4;
/// A day and an hour: the bank keeps its responses for a day.
const AHEAD_S: i64 = 90_000;

#[tokio::test]
async fn a_charge_whose_response_has_expired_is_found_and_not_made_again() -> Result<()> {
    let scene = Scene::set().await?;
    let is_away = Arc::new(AtomicBool::new(false));
    let away = is_away.clone();
    let case = scene
        .case("expired", CLICKS, |_| {
            // Whatever the till is told before it is away is lost.
            Box::new(move |asked| match asked.kind {
                Kind::Keyed if !away.load(Ordering::SeqCst) => {
                    Plan::fault("the answer lost").giving(Give::Cut(At::Start(0), End::Reset))
                }
                _ => Plan::pass(),
            })
        })
        .await?;
    let mut sync = case.sync(&[])?;
    until("all are charged, and nothing is known here", STEP_LIMIT, async || {
        // In the bank's books, which it writes together with its response.
        Ok((scene.bank.ledger().await?["charges"] == CLICKS).then_some(()))
    })
    .await?;
    signal("TERM", sync.pid())?;
    sync.ended(STEP_LIMIT).await?;
    is_away.store(true, Ordering::SeqCst);

    scene.bank.set_clock_ahead(AHEAD_S).await?;
    let purged = scene.bank.purge().await?;
    case.settle().await?;
    let mut expired = 0;
    for key in &case.keys {
        let readings = case.readings(key).await?;
        ensure!(readings.last().is_some_and(|reading| reading == "approved"), "{readings:?}");
        expired += u64::from(readings.iter().any(|reading| reading == "key-expired"));
    }
    let mut reached = Reached::by(&[&case]);
    reached.add("response dropped by the bank", purged);
    reached.add("found by a look", case.proxy.log().of(Kind::LookUp).count() as u64);
    reached.at_least(&[
        ("the answer lost", CLICKS as u64),
        ("response dropped by the bank", CLICKS as u64),
        ("found by a look", CLICKS as u64),
    ])?;
    // By the bank's own clock it is older than what the bank keeps, so it is not even asked for again.
    ensure!(expired == 0, "{expired} were sent again, to hear that their response has expired");
    ensure!(scene.verdict(&[&case]).await? == Verdict::all_approved(CLICKS));
    Ok(())
}
