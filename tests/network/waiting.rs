//! `Retry-After` in every form: what the bank asks for is kept, seen from outside, and no longer than is believed.

use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};

use crate::{
    harness::checker::Verdict,
    proxy::{
        Script,
        plan::{Ask, Plan},
        wire::Kind,
    },
    reply::Reply,
    scene::{Case, Reached, Scene},
};

/// Four are in flight when the first is told to come back later, and two wait behind them.
const CLICKS: usize = 6;
/// By then all four have been sent, on a busy machine too.
const ALL_SENT: Duration = Duration::from_millis(1_500);
/// What the till may draw on top of each wait, with room for a busy machine.
const JITTER: Duration = Duration::from_secs(4);

/// The first answer is that one, when all that may be in flight with it is; the others of these are answered after it.
fn told_to_wait(name: &'static str, reply: impl Fn() -> Reply + Send + Sync + 'static) -> Script {
    Box::new(move |asked| match (asked.kind, asked.nth) {
        (Kind::Keyed, 1) => {
            let key = asked.key.clone().unwrap_or_default();
            let reply = reply().header("idempotency-key", &key);
            Plan::fault(name).asking(Ask::Nobody).waiting_after(ALL_SENT).making(move |_| reply.message())
        }
        (Kind::Keyed, 2..=4) => Plan::pass().waiting_after(ALL_SENT + Duration::from_millis(500)),
        _ => Plan::pass(),
    })
}

fn unavailable(retry_after: &str) -> Reply {
    Reply::problem("unavailable", "503 Service Unavailable").header("retry-after", retry_after)
}

fn rate_limited(retry_after: &str) -> Reply {
    Reply::problem("rate-limited", "429 Too Many Requests").header("retry-after", retry_after)
}

fn in_progress(retry_after: &str) -> Reply {
    Reply::problem("in-progress", "409 Conflict").header("retry-after", retry_after)
}

/// That many seconds ahead, as HTTP writes it.
fn date_ahead(seconds: u64) -> String {
    let at = SystemTime::now() + Duration::from_secs(seconds);
    jiff::Timestamp::try_from(at).unwrap_or_default().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// When the answer that asked for patience was handed over, and whose it was.
fn asked_to_wait(case: &Case) -> Result<(Instant, String)> {
    let log = case.proxy.log();
    let told = log.exchanges.iter().find(|exchange| exchange.fault.is_some() && exchange.is_done);
    let told = told.with_context(|| format!("{}: never asked to wait", case.name))?;
    Ok((told.ended_at.context("no end")?, told.asked.key.clone().unwrap_or_default()))
}

/// How long after it the next request came, if any did.
fn next_after(case: &Case, at: Instant) -> Option<Duration> {
    let log = case.proxy.log();
    log.exchanges.iter().filter_map(|exchange| exchange.asked_at.checked_duration_since(at)).min()
}

/// Nothing at all came within that time, and the next thing soon after.
fn waited(case: &Case, wait: Duration) -> Result<()> {
    let next = next_after(case, asked_to_wait(case)?.0).with_context(|| format!("{}: nothing came", case.name))?;
    ensure!((wait..wait + JITTER).contains(&next), "{}: asked to wait {wait:?}, waited {next:?}", case.name);
    Ok(())
}

#[tokio::test]
async fn what_the_bank_asks_everybody_to_wait_is_waited() -> Result<()> {
    let scene = Scene::set().await?;
    let mut cases = Vec::new();
    let told: [(&'static str, Script); 8] = [
        ("503, 2 s", told_to_wait("503, 2 s", || unavailable("2"))),
        ("429, 2 s", told_to_wait("429, 2 s", || rate_limited("2"))),
        ("503, a date", told_to_wait("503, a date", || unavailable(&date_ahead(5)))),
        (
            "429, a date that is over",
            told_to_wait("429, a date that is over", || rate_limited("Sun, 06 Nov 1994 08:49:37 GMT")),
        ),
        ("503, negative", told_to_wait("503, negative", || unavailable("-5"))),
        ("503, no number", told_to_wait("503, no number", || unavailable("in a while"))),
        ("503, not said", told_to_wait("503, not said", || unavailable("2").without("retry-after"))),
        (
            "503 to who it is",
            Box::new(|asked| match (asked.kind, asked.nth) {
                (Kind::Policy, 1) => Plan::fault("503 to who it is").making(|_| unavailable("2").message()),
                _ => Plan::pass(),
            }),
        ),
    ];
    for (name, script) in told {
        cases.push(scene.case(name, CLICKS, |_| script).await?);
    }
    futures::future::try_join_all(cases.iter().map(Case::settle)).await?;

    for case in &cases {
        match case.name.as_str() {
            "503, 2 s" | "429, 2 s" | "503 to who it is" => waited(case, Duration::from_secs(2))?,
            // The date was 5 s ahead, in whole seconds, and it was told 1.5 s later: 2.5 s are left, less what the machine was busy.
            "503, a date" => waited(case, Duration::from_millis(1_500))?,
            // Not stormed, whatever it says.
            "429, a date that is over" | "503, negative" => waited(case, Duration::from_secs(1))?,
            // Not believed: the operation alone waits, for its own back-off.
            _ => waited(case, Duration::ZERO)?,
        }
        if case.name != "503 to who it is" {
            let readings = case.readings(&asked_to_wait(case)?.1).await?;
            let wanted = if case.name.starts_with("429") { "rate-limited" } else { "unavailable" };
            ensure!(readings == [wanted, "approved"], "{}: {readings:?}", case.name);
        }
    }
    let cases: Vec<&Case> = cases.iter().collect();
    let planned: Vec<_> = cases.iter().map(|case| (case.name.as_str(), 1)).collect();
    Reached::by(&cases).at_least(&planned)?;
    ensure!(scene.verdict(&cases).await? == Verdict::all_approved(cases.len() * CLICKS));
    Ok(())
}

#[tokio::test]
async fn what_the_bank_asks_for_one_operation_holds_no_other() -> Result<()> {
    let scene = Scene::set().await?;
    let case = scene.case("409, 3 s", CLICKS, |_| told_to_wait("409, 3 s", || in_progress("3"))).await?;
    case.settle().await?;
    let (asked_at, key) = asked_to_wait(&case)?;
    let log = case.proxy.log();
    let (own, others): (Vec<_>, Vec<_>) =
        log.of(Kind::Keyed).partition(|exchange| exchange.asked.key.as_ref() == Some(&key));
    ensure!(own.len() == 2 && others.len() == CLICKS - 1, "{} and {}", own.len(), others.len());
    let wait = own[1].asked_at.duration_since(asked_at);
    ensure!(wait >= Duration::from_secs(3) && wait < Duration::from_secs(3) + JITTER, "it waited {wait:?}");
    let last = others.iter().map(|exchange| exchange.asked_at).max().context("no others")?;
    ensure!(last < own[1].asked_at, "the others were held");
    ensure!(case.readings(&key).await? == ["in-progress", "approved"]);
    Reached::by(&[&case]).at_least(&[("409, 3 s", 1)])?;
    ensure!(scene.verdict(&[&case]).await? == Verdict::all_approved(CLICKS));
    Ok(())
}

/// What is waited for is far off: the till asks nothing meanwhile, not after a restart either, and nothing is lost.
#[tokio::test]
async fn thirty_years_are_kept_for_as_long_as_is_believed() -> Result<()> {
    let scene = Scene::set().await?;
    let long = "1000000000";
    let everybody =
        scene.case("503, 10^9 s", CLICKS, |_| told_to_wait("503, 10^9 s", move || unavailable(long))).await?;
    let one = scene.case("409, 10^9 s", CLICKS, |_| told_to_wait("409, 10^9 s", move || in_progress(long))).await?;
    let cases = [&everybody, &one];
    let not_in_time =
        async |case: &Case, timeout| case.ends(case.sync(&["--until-settled", "--timeout", timeout])?, 3).await;
    tokio::try_join!(not_in_time(&everybody, "7s"), not_in_time(&one, "7s"))?;
    ensure!(next_after(&everybody, asked_to_wait(&everybody)?.0).is_none(), "something came inside of it");

    let (_, key) = asked_to_wait(&one)?;
    let due_at: jiff::Timestamp = one.operation(&key).await?["due_at"].as_str().context("no due time")?.parse()?;
    let due_in = due_at.duration_since(jiff::Timestamp::now());
    println!("network: 409, 10^9 s: due in {due_in:#}");
    ensure!((14 * 60..=15 * 60 + 1).contains(&due_in.as_secs()), "15 min is what is believed, not {due_in:#}");

    // A new process knows of it, and its start is no reason to ask.
    tokio::try_join!(not_in_time(&everybody, "4s"), not_in_time(&one, "4s"))?;
    ensure!(next_after(&everybody, asked_to_wait(&everybody)?.0).is_none(), "the next process asked");
    let of_the_one = one.proxy.log().exchanges.into_iter().filter(|exchange| exchange.asked.key.as_ref() == Some(&key));
    ensure!(of_the_one.count() == 1, "the one was asked for again");

    let verdict = scene.verdict(&cases).await?;
    // The one held alone, and of the others those that were not in flight with the one that was told, which are two or more.
    ensure!(verdict.approved + verdict.open == 2 * CLICKS && (4..=6).contains(&verdict.open), "{verdict:?}");
    Reached::by(&cases).at_least(&[("503, 10^9 s", 1), ("409, 10^9 s", 1)])?;
    Ok(())
}
