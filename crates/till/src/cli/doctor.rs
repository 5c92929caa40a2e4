//! `doctor`: what does not hold, a line each.

use super::{Failure, complain, output::Out, progress::Progress};
use serde_json::json;
use std::{io, process::ExitCode, sync::mpsc};
use till::{Bank, Compared, Finding, Till, Told};

/// Something was found.
const FOUND: u8 = 1;
/// Nothing was found, and the bank could not be asked, or not about all.
const NOT_ASKED: u8 = 3;

/// Findings that wait to be printed.
const WAITING_MAX: usize = 1_024;

pub(super) async fn doctor(till: &Till, bank: Option<Bank>, as_json: bool) -> Result<ExitCode, Failure> {
    // Printed from a thread of its own: the look at the file waits for a slow reader, and the runtime does not.
    let (tell, told) = mpsc::sync_channel(WAITING_MAX);
    let printing = std::thread::Builder::new().name("printer".to_owned()).spawn(move || print(told, as_json))?;
    let of_file = tell.clone();
    let file = till
        .examine(move |told| {
            // Once nobody reads, only the exit code tells.
            let _ = of_file.send(told);
        })
        .await;
    let compared = match (&file, &bank) {
        (Ok(_), Some(bank)) => Some(till.compare_with_bank(bank, |told| drop(tell.send(told))).await),
        _ => None,
    };
    drop(tell);
    let found = printing.join().map_err(|_| anyhow::anyhow!("what was found could not be printed"))??;
    let (file, compared) = (file?, compared.transpose()?);
    let not_asked = match &compared {
        Some(Compared::NotAsked(why)) => Some(format!("the bank could not be asked: {why}")),
        Some(Compared::Partly(_, others)) => Some(format!(
            "operations of another bank: {others}. They were not compared: name the bank that they were sent to"
        )),
        _ => None,
    };
    let bank_word = match &compared {
        None => "not named",
        Some(Compared::Whole(_)) => "compared",
        Some(Compared::Partly(..)) => "compared in part",
        Some(Compared::NotAsked(_)) => "not asked",
    };
    if as_json {
        let summary = json!({"findings": found, "sales": file.sales, "operations": file.operations, "bank": bank_word});
        Out::new().line(&json!({"summary": summary}).to_string())?;
    } else {
        let found = if found == 0 { "nothing is wrong".to_owned() } else { format!("findings: {found}") };
        let line = format!("{found}; sales: {}, operations: {}, bank: {bank_word}", file.sales, file.operations);
        Out::new().line(&line)?;
    }
    if let Some(why) = &not_asked {
        complain(format_args!("{why}"));
    }
    Ok(match (found, not_asked) {
        (0, None) => ExitCode::SUCCESS,
        (0, Some(_)) => ExitCode::from(NOT_ASKED),
        _ => ExitCode::from(FOUND),
    })
}

/// Prints what is told, and gives how much was found.
fn print(told: mpsc::Receiver<Told>, as_json: bool) -> io::Result<u64> {
    let (mut out, mut found) = (Out::new(), 0);
    let mut progress = Progress::new();
    for told in told {
        match told {
            Told::Found(finding) => {
                found += 1;
                progress.clear();
                out.line(&line(&finding, as_json)?)?;
            }
            Told::Known(finding) => {
                progress.clear();
                out.line(&line(&finding, as_json)?)?;
            }
            Told::Progress { done, of } => progress.show(done, of),
        }
    }
    progress.clear();
    Ok(found)
}

fn line(finding: &Finding, as_json: bool) -> serde_json::Result<String> {
    if as_json {
        return serde_json::to_string(finding);
    }
    Ok(format!("{}: {}: {}", finding.code, finding.subject, finding.what))
}
