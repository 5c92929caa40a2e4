//! Answers without end. The till reads no more of one than its limit, and keeps no more of it in memory.

use anyhow::{Result, ensure};

use crate::{
    harness::{checker::Verdict, process::signal, until},
    proxy::{
        plan::{Give, Plan},
        wire::{Kind, Message},
    },
    reply::Reply,
    scene::{Case, Reached, SETTLE_LIMIT, STEP_LIMIT, Scene, memory_peak_kib},
};

const HUNDRED_MB: usize = 100 * 1_024 * 1_024;
const BLOCK: usize = 64 * 1_024;
/// What a till may need more than one that met no such answer.
const MORE_KIB: u64 = 16 * 1_024;

/// A fault: its name, and what is made of the bank's answer, whose last bytes are then said again and again.
type Endless = (&'static str, fn(&Message) -> (Vec<u8>, usize));

const ENDLESS: [Endless; 4] = [
    // The result is all there, and only blanks follow: tempting.
    ("100 MB with its length", |answer| {
        let reply = Reply::of(answer).header("content-length", &HUNDRED_MB.to_string());
        ([reply.bytes(), vec![b' '; BLOCK]].concat(), BLOCK)
    }),
    ("100 MB in chunks", |answer| {
        let mut chunked = answer.in_chunks(1_024).bytes;
        chunked.truncate(chunked.len() - b"0\r\n\r\n".len());
        let chunk = [b"10000\r\n".as_slice(), &[b' '; BLOCK], b"\r\n"].concat();
        ([chunked, chunk.clone()].concat(), chunk.len())
    }),
    ("100 MB until the end", |answer| ([answer.until_close().bytes, vec![b' '; BLOCK]].concat(), BLOCK)),
    ("100 MB of headers", |_| {
        let line = [b"x-filler: ".as_slice(), &[b'x'; BLOCK], b"\r\n"].concat();
        ([b"HTTP/1.1 201 Created\r\n".as_slice(), &line].concat(), line.len())
    }),
];

#[tokio::test]
async fn an_answer_without_end_is_refused_in_bounded_memory() -> Result<()> {
    let scene = Scene::set().await?;
    let plain = scene.case("plain", ENDLESS.len(), |_| Box::new(|_| Plan::pass())).await?;
    let flooded = scene
        .case("flooded", ENDLESS.len(), |keys| {
            let keys = keys.to_vec();
            Box::new(move |asked| match keys.iter().position(|key| Some(key) == asked.key.as_ref()) {
                Some(nth) if asked.kind == Kind::Keyed && asked.nth_of_key == 1 => {
                    let (name, make) = ENDLESS[nth];
                    // How many of the bytes are repeated follows from the block alone, not from the answer.
                    let (_, last) = make(&Message::default());
                    Plan::fault(name)
                        .making(move |answer| {
                            let (bytes, _) = make(&answer);
                            Message { head_bytes: bytes.len(), bytes }
                        })
                        .giving(Give::Flood { last, up_to: HUNDRED_MB })
                }
                _ => Plan::pass(),
            })
        })
        .await?;
    let (peak_kib, peak_flooded_kib) = tokio::try_join!(peak_of(&plain), peak_of(&flooded))?;
    println!("network: memory of the till at its peak: {peak_kib} KiB, flooded {peak_flooded_kib} KiB");
    ensure!(peak_flooded_kib <= peak_kib + MORE_KIB, "{peak_flooded_kib} KiB, and {peak_kib} KiB without floods");

    for (key, (name, _)) in flooded.keys.iter().zip(ENDLESS) {
        let readings = flooded.readings(key).await?;
        let wanted = if name == "100 MB of headers" { "reset" } else { "too-large" };
        ensure!(readings.len() >= 2 && readings[0] == wanted, "{name}: {readings:?}");
    }
    for exchange in flooded.proxy.log().exchanges.iter().filter(|exchange| exchange.fault.is_some()) {
        let given = exchange.given_bytes;
        ensure!((BLOCK..HUNDRED_MB).contains(&given), "{:?}: {given} bytes were taken", exchange.fault);
    }
    let cases = [&plain, &flooded];
    Reached::by(&cases).at_least(&ENDLESS.map(|(name, _)| (name, 1)))?;
    ensure!(scene.verdict(&cases).await? == Verdict::all_approved(2 * ENDLESS.len()));
    Ok(())
}

/// The most memory that a till had until all was approved.
async fn peak_of(case: &Case) -> Result<u64> {
    let mut sync = case.sync(&[])?;
    until(&format!("{}: all is approved", case.name), SETTLE_LIMIT, async || {
        let operations = case.till.operations().await?;
        Ok(operations.iter().all(|operation| operation["state"] == "approved").then_some(()))
    })
    .await?;
    let peak_kib = memory_peak_kib(sync.pid())?;
    signal("TERM", sync.pid())?;
    let status = sync.ended(STEP_LIMIT).await?;
    ensure!(status.success(), "{}: {status}: {}", case.name, sync.said()?);
    Ok(peak_kib)
}
