//! The way to the bank: nobody there, nobody who hears, a connection that is reset, a proxy of the system's, a connection that
//! the bank's restart made stale.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use tokio::net::TcpListener;

use crate::{
    harness::{checker::Verdict, process::Process, until},
    proxy::{
        Script,
        door::Door,
        plan::{Ask, At, End, Give, Plan},
        wire::Kind,
    },
    reply::Reply,
    scene::{AMOUNT, Case, Reached, STEP_LIMIT, Scene, TRANSPORT},
};

/// The bank says who it is, and then there is no way to it any more.
fn door_after_the_policy(door: Door) -> Script {
    Box::new(move |asked| {
        let first = asked.kind == Kind::Policy && asked.nth == 1;
        if first { Plan::pass().with_door(door) } else { Plan::pass() }
    })
}

#[tokio::test]
async fn what_no_connection_was_made_for_was_never_sent() -> Result<()> {
    let scene = Scene::set().await?;
    // One each: the first failure opens the breaker, and a second operation would be put back without a try.
    let refused = scene.case("refused", 1, |_| door_after_the_policy(Door::Shut)).await?;
    let unheard = scene.case("unheard", 1, |_| door_after_the_policy(Door::Full)).await?;
    let unsent = async |case: &Case| -> Result<()> {
        let sync = case.sync(&["--until-settled"])?;
        for key in &case.keys {
            let reading = case.first_reading(key).await?;
            ensure!(reading == "no-connection", "{}: {reading}", case.name);
            let operation = case.operation(key).await?;
            ensure!(operation["state"] == "saved", "{}: {operation}", case.name);
        }
        ensure!(case.proxy.log().of(Kind::Keyed).count() == 0, "{}: something came through", case.name);
        case.proxy.door(Door::Open).await?;
        case.ends(sync, 0).await
    };
    tokio::try_join!(unsent(&refused), unsent(&unheard))?;

    let mut reached = Reached::default();
    for case in [&refused, &unheard] {
        for key in &case.keys {
            let readings = case.readings(key).await?;
            let times = readings.iter().filter(|reading| *reading == "no-connection").count();
            reached.add(&case.name, times.try_into()?);
        }
    }
    reached.at_least(&[("refused", 1), ("unheard", 1)])?;
    ensure!(scene.verdict(&[&refused, &unheard]).await? == Verdict::all_approved(2));
    Ok(())
}

#[tokio::test]
async fn a_connection_that_is_reset_says_nothing_about_the_payment() -> Result<()> {
    let scene = Scene::set().await?;
    let faults = ["reset unread", "reset after the request", "reset in the head", "reset in the body"];
    let case = scene
        .case("resets", faults.len(), |keys| {
            let keys = keys.to_vec();
            Box::new(move |asked| {
                if asked.kind != Kind::Keyed || asked.nth_of_key > 1 {
                    return Plan::pass();
                }
                let nth = keys.iter().position(|key| Some(key) == asked.key.as_ref()).unwrap_or_default();
                let fault = Plan::fault(faults[nth]);
                match nth {
                    0 => fault.asking(Ask::NobodyUnread),
                    1 => fault.giving(Give::Cut(At::Start(0), End::Reset)),
                    2 => fault.giving(Give::Cut(At::Start(100), End::Reset)),
                    _ => fault.giving(Give::Cut(At::Body(100), End::Reset)),
                }
            })
        })
        .await?;
    case.settle().await?;
    for (key, fault) in case.keys.iter().zip(faults) {
        let readings = case.readings(key).await?;
        ensure!(readings.len() >= 2 && TRANSPORT.contains(&readings[0].as_str()), "{fault}: {readings:?}");
    }
    Reached::by(&[&case]).at_least(&faults.map(|fault| (fault, 1)))?;
    ensure!(scene.verdict(&[&case]).await? == Verdict::all_approved(faults.len()));
    Ok(())
}

#[tokio::test]
async fn a_proxy_of_the_system_is_never_asked() -> Result<()> {
    let scene = Scene::set().await?;
    let trap = TcpListener::bind("127.0.0.1:0").await?;
    let trap_url = format!("http://{}", trap.local_addr()?);
    let case = scene.case("system proxy", 3, |_| Box::new(|_| Plan::pass())).await?;
    let mut command = case.till.command(&["sync", "--until-settled"], Some(&case.proxy.url))?;
    command.env_remove("NO_PROXY").env_remove("no_proxy");
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        command.env(name, &trap_url);
    }
    let sync = Process::start("sync", &mut command, &case.folder)?;
    tokio::select! {
        ended = case.ends(sync, 0) => ended?,
        caught = trap.accept() => anyhow::bail!("the trap was contacted: {:?}", caught?.1),
    }
    ensure!(case.proxy.log().of(Kind::Keyed).count() == 3, "each payment went straight to the bank");
    ensure!(scene.verdict(&[&case]).await? == Verdict::all_approved(3));
    Ok(())
}

#[tokio::test]
async fn a_restart_of_the_bank_leaves_no_stale_connection() -> Result<()> {
    let mut scene = Scene::set().await?;
    // The first answers of the bank ask for patience, so that there is time for a restart before the second.
    let case = scene
        .case("stale connection", 2, |_| {
            Box::new(|asked| match (asked.kind, asked.nth_of_key) {
                (Kind::Keyed, 1) => {
                    let key = asked.key.clone().unwrap_or_default();
                    let patience = Reply::problem("in-progress", "409 Conflict").header("retry-after", "2");
                    Plan::fault("come back in 2 s").making(move |_| patience.header("idempotency-key", &key).message())
                }
                _ => Plan::pass(),
            })
        })
        .await?;
    let sync = case.sync(&["--until-settled"])?;
    until("both were asked to come back", STEP_LIMIT, async || {
        Ok((case.proxy.log().faults().values().sum::<u64>() == 2).then_some(()))
    })
    .await?;
    scene.bank.kill()?;
    scene.bank.start_elsewhere().await?;
    case.proxy.point_at(&scene.bank.url)?;
    case.ends(sync, 0).await?;

    for key in &case.keys {
        ensure!(case.readings(key).await? == ["in-progress", "approved"], "no attempt met a stale connection");
    }
    let log = case.proxy.log();
    let connections: BTreeSet<_> = log.exchanges.iter().map(|exchange| exchange.connection).collect();
    ensure!(connections.len() == log.exchanges.len(), "a connection was used twice: {connections:?}");
    ensure!(scene.verdict(&[&case]).await? == Verdict::all_approved(2));
    let amount = scene.bank.charges().await?.euros;
    ensure!(amount == 2 * AMOUNT, "{amount}");
    Ok(())
}
