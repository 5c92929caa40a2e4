//! The acceptance of the whole: a bank that dies every second, a network that loses one answer in three, and five hundred
//! payments that are charged once each.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::{
    harness::checker::Verdict,
    proxy::{
        plan::{At, End, Give, Plan},
        wire::Kind,
    },
    scene::{Case, Reached, Scene},
};

const CLICKS: usize = 500;
/// How long a bank lives before it is killed.
const LIFE: Duration = Duration::from_secs(1);
/// Each answer that is lost opens the till's breaker, and each death of the bank does: some five hundred waits of half a second
/// on average, since no completed operation came between many of them. With nothing else to do it takes about three minutes.
const LIMIT: Duration = Duration::from_secs(480);

#[tokio::test]
async fn five_hundred_payments_outlive_a_dying_bank_and_lost_answers() -> Result<()> {
    let mut scene = Scene::set().await?;
    let case = scene
        .case("acceptance", CLICKS, |_| {
            Box::new(|asked| match (asked.kind, asked.nth % 3) {
                (Kind::Keyed | Kind::LookUp, 0) => {
                    Plan::fault("an answer dropped").giving(Give::Cut(At::Start(0), End::Fin))
                }
                _ => Plan::pass(),
            })
        })
        .await?;
    let start = Instant::now();
    let mut sync = case.sync(&["--until-settled", "--timeout", "480s"])?;
    let mut kills = 0;
    let status = loop {
        tokio::select! {
            ended = sync.ended(LIMIT) => break ended?,
            () = tokio::time::sleep(LIFE) => {}
        }
        ensure!(start.elapsed() < LIMIT, "not settled after {LIMIT:?} and {kills} kills");
        scene.bank.kill()?;
        kills += 1;
        scene.bank.start_elsewhere().await?;
        case.proxy.point_at(&scene.bank.url)?;
    };
    println!("network: settled after {:?}, {:?} of it with no request under way", start.elapsed(), idle(&case, start));
    ensure!(status.success(), "{status}: {}", sync.said()?);
    let mut reached = Reached::by(&[&case]);
    reached.add("the bank killed", kills);
    reached.at_least(&[("an answer dropped", 150), ("the bank killed", 10)])?;
    let verdict = scene.verdict(&[&case]).await?;
    ensure!(verdict == Verdict::all_approved(CLICKS), "{verdict:?}");
    let charges = scene.bank.charges().await?;
    ensure!(charges.count == 500, "{charges:?}");
    Ok(())
}

/// How long nothing was under way between till and bank.
fn idle(case: &Case, start: Instant) -> Duration {
    let (mut idle, mut busy_until) = (Duration::ZERO, start);
    for exchange in case.proxy.log().exchanges {
        idle += exchange.asked_at.saturating_duration_since(busy_until);
        busy_until = busy_until.max(exchange.ended_at.unwrap_or(exchange.asked_at));
    }
    idle
}
