//! The bank's answer, cut at every one of its bytes. The bank has charged each time, and no part of its answer may be taken for
//! the whole.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};

use crate::{
    harness::checker::Verdict,
    proxy::{
        Script,
        log::Exchange,
        plan::{At, End, Give, Plan},
        wire::{Kind, Message},
    },
    scene::{AMOUNT, Case, Reached, Scene, TRANSPORT},
};

/// How the answer is framed before it is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    /// As the bank wrote it, with its length.
    AsItIs,
    /// In chunks.
    Chunks,
    /// With no length: the end of the connection is the end of the body.
    UntilClose,
}

impl Frame {
    fn of(self, answer: Message) -> Message {
        match self {
            Self::AsItIs => answer,
            // A few, of a size that leaves a rest.
            Self::Chunks => answer.in_chunks(83),
            Self::UntilClose => answer.until_close(),
        }
    }
}

/// Of so many operations one is looked up in the till's own log, beside what `sync` told of all.
const LOG_EVERY: usize = 10;

/// One cut: of which answer, where, how.
type Cut = (&'static str, Frame, At, End);

/// Tills at work side by side: after each cut a till waits for a moment before it asks the bank again who it is.
const TILLS: usize = 10;
/// The end of an answer is cut once more, counted from there: its length may differ by the digits of a time.
const LAST: usize = 12;
/// By so much another answer may be longer than the one that was measured.
const LONGER: usize = 4;

/// Every cut of the bank's answer of that length, and of the same answer framed otherwise.
fn cuts(answer: &Message) -> Vec<Cut> {
    let whole = |frame: Frame| frame.of(answer.clone());
    let places = |frame: Frame, from: usize| {
        let bytes = whole(frame).bytes.len();
        (from..bytes + LONGER - LAST).map(At::Start).chain((1..=LAST).map(At::End))
    };
    let mut cuts: Vec<Cut> = Vec::new();
    cuts.extend(places(Frame::AsItIs, 0).map(|at| ("cut", Frame::AsItIs, at, End::Fin)));
    cuts.extend(places(Frame::AsItIs, 0).step_by(6).map(|at| ("cut by a reset", Frame::AsItIs, at, End::Reset)));
    // Their heads differ from the bank's in one line: from its last byte on.
    let body = whole(Frame::Chunks).head_bytes - 1;
    cuts.extend(places(Frame::Chunks, body).map(|at| ("cut in chunks", Frame::Chunks, at, End::Fin)));
    let body = whole(Frame::UntilClose).head_bytes - 1;
    cuts.extend(places(Frame::UntilClose, body).map(|at| ("cut without a length", Frame::UntilClose, at, End::Fin)));
    cuts
}

/// The first answer to each key is cut as planned for it.
fn script(keys: &[String], cuts: &[Cut]) -> Script {
    let planned: std::collections::HashMap<String, Cut> = keys.iter().cloned().zip(cuts.iter().copied()).collect();
    Box::new(move |asked| match asked.key.as_ref().and_then(|key| planned.get(key)) {
        Some(&(name, frame, at, end)) if asked.kind == Kind::Keyed && asked.nth_of_key == 1 => {
            Plan::fault(name).making(move |answer| frame.of(answer)).giving(Give::Cut(at, end))
        }
        _ => Plan::pass(),
    })
}

/// A whole answer of this bank, to be measured.
async fn measured(scene: &Scene) -> Result<(Case, Message)> {
    let case = scene.case("measured", 1, |_| Box::new(|_| Plan::pass())).await?;
    case.settle().await?;
    let log = case.proxy.log();
    let answer = log.of(Kind::Keyed).next().and_then(|exchange| exchange.from_bank.clone()).context("no answer")?;
    Ok((case, answer))
}

#[tokio::test]
async fn an_answer_cut_at_any_byte_is_no_answer() -> Result<()> {
    let scene = Scene::set().await?;
    let (measured, answer) = measured(&scene).await?;
    let all = cuts(&answer);
    let mut cases = Vec::new();
    for till in 0..TILLS {
        // Each has its share of every part, so that all are done at about the same time.
        let part: Vec<Cut> = all.iter().skip(till).step_by(TILLS).copied().collect();
        cases.push(scene.case(&format!("cut-{till}"), part.len(), |keys| script(keys, &part)).await?);
    }

    futures::future::try_join_all(cases.iter().map(Case::settle)).await?;

    for case in &cases {
        let told = case.told()?;
        for (nth, key) in case.keys.iter().enumerate() {
            let told = told.get(key).with_context(|| format!("{key}: nothing was told of it"))?;
            let read: Vec<&str> = told.iter().filter_map(|told| told.last_answer.as_deref()).collect();
            let ended = told.last().is_some_and(|told| told.state == "approved");
            ensure!(ended && is_no_answer(&read), "{}: {key}: {told:?}", case.name);
            // The log says the same; a command of its own for each would take longer than all else.
            if nth % LOG_EVERY == 0 {
                let readings = case.readings(key).await?;
                let (last, before) = readings.split_last().with_context(|| format!("{key}: never read"))?;
                let before: Vec<&str> = before.iter().map(String::as_str).collect();
                ensure!(last == "approved" && is_no_answer(&before), "{}: {key}: {readings:?}", case.name);
            }
        }
    }
    let cut: Vec<Exchange> =
        cases.iter().flat_map(|case| case.proxy.log().exchanges).filter(|exchange| exchange.fault.is_some()).collect();
    ensure!(cut.len() == all.len(), "{} cuts of {}", cut.len(), all.len());
    every_place(&cut, "cut", 0)?;
    every_place(&cut, "cut in chunks", Frame::Chunks.of(answer.clone()).head_bytes)?;
    every_place(&cut, "cut without a length", Frame::UntilClose.of(answer.clone()).head_bytes)?;

    let cases: Vec<&Case> = cases.iter().collect();
    let count = |name: &str| all.iter().filter(|cut| cut.0 == name).count() as u64;
    let names = ["cut", "cut by a reset", "cut in chunks", "cut without a length"];
    Reached::by(&cases).at_least(&names.map(|name| (name, count(name))))?;
    ensure!(all.len() >= 1_000, "{} cuts", all.len());
    let every: Vec<&Case> = cases.iter().copied().chain([&measured]).collect();
    ensure!(scene.verdict(&every).await? == Verdict::all_approved(all.len() + 1));
    let euros = scene.bank.charges().await?.euros;
    ensure!(euros == AMOUNT * i64::try_from(all.len() + 1)?, "{euros}");
    Ok(())
}

/// Whether all that was read before the end was no answer, and there was something.
fn is_no_answer(readings: &[&str]) -> bool {
    !readings.is_empty() && readings.iter().all(|reading| TRANSPORT.contains(reading))
}

/// There was a cut before every byte from `from` on, and none after the last.
fn every_place(cut: &[Exchange], name: &str, from: usize) -> Result<()> {
    let cut: Vec<&Exchange> = cut.iter().filter(|exchange| exchange.fault.as_deref() == Some(name)).collect();
    ensure!(cut.iter().all(|exchange| exchange.given_bytes < exchange.answer_bytes), "{name}: a whole answer");
    let shortest = cut.iter().map(|exchange| exchange.answer_bytes).min().with_context(|| format!("{name}: none"))?;
    let given: BTreeSet<usize> = cut.iter().map(|exchange| exchange.given_bytes).collect();
    let missed: Vec<usize> = (from..shortest - LAST).filter(|at| !given.contains(at)).collect();
    let left: BTreeSet<usize> = cut.iter().map(|exchange| exchange.answer_bytes - exchange.given_bytes).collect();
    ensure!(missed.is_empty() && (1..=LAST).all(|end| left.contains(&end)), "{name}: not cut at {missed:?}");
    Ok(())
}
