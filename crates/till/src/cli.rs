//! The commands: each reads its arguments, calls the till, prints what it gives.

mod args;
mod backup;
mod doctor;
mod lines;
mod log;
mod output;
mod progress;
mod sync;
mod unseen;

use anyhow::Context as _;
use args::{Cli, Command, Format};
use clap::Parser as _;
use output::{Out, document};
use protocol::{CardToken, Key};
use sha2::{Digest as _, Sha256};
use std::{
    fs::File,
    io::{self, BufWriter, Read as _, Write as _},
    iter,
    path::{Path, PathBuf},
    process::ExitCode,
};
use till::{Charge, ExportFormat, Operation, OperationQuery, Refund, State, Till, TillError, new_id};
use unseen::Escaping;
use uuid::Uuid;

/// How many payments are saved at the same time: they share the commits that make them durable.
const SAVED_TOGETHER: usize = 64;
/// How many operations are read at a time.
const PAGE: u32 = 500;

/// Why a command ended otherwise than it was meant to.
#[derive(Debug)]
enum Failure {
    /// Wrong usage: exit code 2.
    Usage(String),
    /// Refused, with a reason: exit code 1.
    Refused(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    log::to_stderr();
    match run(cli) {
        Ok(code) => code,
        Err(Failure::Usage(reason)) => {
            log::last_word(reason);
            ExitCode::from(2)
        }
        Err(Failure::Refused(reason)) => {
            log::last_word(format_args!("{reason:#}"));
            ExitCode::from(1)
        }
    }
}

/// Writes one line to stderr, where there is anybody to read it: a reader who has gone must not end what is under way.
pub(super) fn complain(why: impl std::fmt::Display) {
    // The exit code tells it too.
    let _ = writeln!(io::stderr(), "kassa-till: {why}");
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    if let Command::Price { file } = &cli.command {
        return price(file);
    }
    let data_dir = data_dir(cli.data)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match cli.command {
        Command::Price { file } => price(&file),
        Command::Pay(pay) => {
            let times = pay.times;
            let charge = charge(pay)?;
            runtime.block_on(save(&open(&data_dir)?, charge, times))
        }
        Command::Refund(refund) => {
            let intent_id = refund.intent.as_deref().map_or_else(new_id, intent_id);
            let refund = Refund { intent_id, payment: refund.key, amount: refund.amount };
            let till = open(&data_dir)?;
            print_one(&runtime.block_on(till.refund(refund))?)
        }
        Command::Cancel { key } => {
            let till = open(&data_dir)?;
            print_one(&runtime.block_on(till.cancel(key))?)
        }
        Command::Sync(sync) => {
            let bank = sync::bank(cli.bank_url, cli.bank_token)?;
            runtime.block_on(sync::sync(open(&data_dir)?, bank, &sync))
        }
        Command::Operations(list) => {
            let till = Till::open_read_only(&data_dir)?;
            runtime.block_on(operations(&till, list.state, list.json))
        }
        Command::Export { what, format } => {
            let till = Till::open_read_only(&data_dir)?.as_program("command line");
            let out = BufWriter::new(io::stdout());
            let (format, out): (_, Box<dyn io::Write + Send>) = match format {
                Format::Json => (ExportFormat::Json, Box::new(Escaping::new(out))),
                // What JSON has as an escape, a table has no way to say: it is data for a file, as it is.
                Format::Csv => (ExportFormat::Csv, Box::new(out)),
            };
            match runtime.block_on(till.export(what.into(), format, out)) {
                // Whoever reads `| head` has what was wanted.
                Err(TillError::Export(error)) if error.kind() == io::ErrorKind::BrokenPipe => {}
                ended => drop(ended?),
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Backup { file } => {
            let till = Till::open_read_only(&data_dir)?.as_program("command line");
            runtime.block_on(backup::backup(&till, &file))
        }
        Command::Restore { file, name } => backup::restore(&data_dir, &file, name.as_deref()),
        Command::Doctor { json, acknowledge, reason } => {
            let bank = sync::named_bank(cli.bank_url, cli.bank_token)?;
            if let (Some(payment), Some(reason)) = (acknowledge, reason) {
                let named =
                    bank.as_ref().ok_or_else(|| Failure::Usage("name the bank that has the payment".to_owned()))?;
                runtime.block_on(Till::open(&data_dir)?.acknowledge_payment(named, &payment, &reason))?;
            }
            runtime.block_on(doctor::doctor(&Till::open_read_only(&data_dir)?, bank, json))
        }
        Command::Log { key } => runtime.block_on(log(&Till::open_read_only(&data_dir)?, key)),
    }
}

fn data_dir(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    named.filter(|dir| !dir.as_os_str().is_empty()).or_else(till::default_data_dir).ok_or_else(|| {
        Failure::Usage("this system has no folder for application data: name one with --data DIR".to_owned())
    })
}

fn open(data_dir: &Path) -> Result<Till, TillError> {
    Ok(Till::open(data_dir)?.as_program("command line"))
}

fn price(file: &Path) -> Result<ExitCode, Failure> {
    let mut input = Vec::new();
    // One byte more than is taken, so that a longer input is told as too long and not cut.
    let limit = checkout::json::INPUT_BYTES_MAX as u64 + 1;
    if file == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut input).context("standard input")?;
    } else {
        File::open(file)
            .and_then(|file| file.take(limit).read_to_end(&mut input))
            .with_context(|| file.display().to_string())?;
    }
    let mut out = Out::new();
    match checkout::json::run_bytes(&input) {
        Ok(priced) => out.line(&priced).map(|()| ExitCode::SUCCESS),
        Err(error) => out.line(&error).map(|()| ExitCode::from(1)),
    }
    .map_err(Into::into)
}

fn charge(pay: args::Pay) -> Result<Charge, Failure> {
    let charge = Charge {
        intent_id: pay.intent.as_deref().map_or_else(new_id, intent_id),
        amount: pay.amount,
        currency: pay.currency,
        card: CardToken::new(pay.card).map_err(|error| Failure::Usage(format!("--card: {error}")))?,
        reference: pay.reference,
        accepted_offline: pay.offline,
    };
    charge.check().map_err(|error| Failure::Usage(format!("--reference: {error}")))?;
    Ok(charge)
}

/// Prints what was saved. That it could not be printed is no refusal: it is saved.
fn print_one(operation: &Operation) -> Result<ExitCode, Failure> {
    if let Err(error) = Out::new().line(&document(operation).to_string()) {
        complain(format_args!("saved, but it could not be printed ({error}); `kassa-till operations` shows it"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The intent of a name: a UUID stands for itself, any other name for a UUID made out of it, always the same.
fn intent_id(name: &str) -> Uuid {
    Uuid::try_parse(name).ok().filter(|uuid| !uuid.is_nil() && !uuid.is_max()).unwrap_or_else(|| {
        let digest = Sha256::new().chain_update(b"kassa intent\0").chain_update(name.as_bytes()).finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    })
}

/// Saves the charge, `times` over with an intent of its own each, and prints each in the order of saving.
async fn save(till: &Till, charge: Charge, times: u32) -> Result<ExitCode, Failure> {
    let mut intents = iter::once(charge.intent_id).chain(iter::repeat_with(new_id)).take(times as usize).peekable();
    let (mut out, mut unprinted, mut saved_before) = (Out::new(), None, 0_usize);
    while intents.peek().is_some() {
        let together: Vec<_> = intents
            .by_ref()
            .take(SAVED_TOGETHER)
            .map(|intent_id| {
                let (till, charge) = (till.clone(), Charge { intent_id, ..charge.clone() });
                tokio::spawn(async move { till.charge(charge).await })
            })
            .collect();
        // All are saved, whether or not anybody reads on, and whatever became of another.
        let (mut saved, mut refused) = (Vec::new(), None);
        for saving in together {
            match saving.await.context("saving a payment")? {
                Ok(operation) => saved.push(operation),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        saved.sort_by_key(|operation| operation.seq);
        for operation in &saved {
            let printed = out.line(&document(operation).to_string());
            unprinted = unprinted.or(printed.err());
            for too_late in decided_before(operation, &charge) {
                complain(too_late);
            }
        }
        saved_before += saved.len();
        if let Some(error) = refused {
            // Whoever takes it for all of them would charge those again.
            return Err(if saved_before == 0 { error.into() } else { some_saved(saved_before, times, &error) });
        }
    }
    if let Some(error) = unprinted {
        // Not a refusal: whoever repeats what was refused would charge twice.
        complain(format_args!("saved, but not all could be printed ({error}); `kassa-till operations` shows them"));
    }
    Ok(ExitCode::SUCCESS)
}

fn some_saved(saved: usize, times: u32, error: &TillError) -> Failure {
    Failure::Refused(anyhow::anyhow!(
        "{saved} of {times} payments are saved, printed above, and will be sent; of the others: {error}"
    ))
}

/// What was asked of a payment that was there already, and was decided otherwise when it was saved.
fn decided_before(operation: &Operation, asked: &Charge) -> impl Iterator<Item = String> {
    let offline = match (operation.accepted_offline, asked.accepted_offline) {
        (false, true) => Some("and not as accepted offline: --offline was not applied, the goods wait for the bank"),
        (true, false) => Some("and is accepted offline: the goods were handed over before the bank answered"),
        _ => None,
    };
    let reference = asked.reference.as_ref().filter(|asked| operation.reference.as_ref() != Some(asked));
    let reference = reference.map(|_| "under another reference: --reference was not applied");
    let code = operation.short_code.clone();
    offline.into_iter().chain(reference).map(move |what| format!("payment {code} was saved before, {what}"))
}

async fn operations(till: &Till, state: Option<State>, json: bool) -> Result<ExitCode, Failure> {
    let mut out = Out::new();
    if !json {
        out.line(output::TABLE_HEAD)?;
    }
    let mut after = None;
    loop {
        let query = OperationQuery { state, after, limit: Some(PAGE), oldest_first: true, ..OperationQuery::default() };
        let page = till.operations(query).await?;
        for operation in &page.operations {
            let line = if json { document(operation).to_string() } else { output::table_row(operation) };
            out.line(&line)?;
        }
        after = page.operations.last().map(|operation| operation.seq);
        if !page.more || out.is_closed() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

async fn log(till: &Till, key: Key) -> Result<ExitCode, Failure> {
    let mut out = Out::new();
    for attempt in till.attempts(key).await? {
        out.line(&serde_json::to_string(&attempt)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_always_the_same_intent() {
        let uuid = "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b";
        assert_eq!(intent_id(uuid).to_string(), uuid);
        assert_eq!(intent_id(&uuid.to_uppercase()).to_string(), uuid);
        assert_eq!(intent_id("order 17"), intent_id("order 17"));
        assert_ne!(intent_id("order 17"), intent_id("order 18"));
        assert!(!intent_id("00000000-0000-0000-0000-000000000000").is_nil());
    }
}
