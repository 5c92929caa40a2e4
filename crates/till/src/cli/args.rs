//! What can be typed.

use clap::{
    Args, Parser, Subcommand, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use protocol::{Amount, Currency, Key};
use std::{path::PathBuf, time::Duration};
use till::State;

/// Characters of an intent's name at most.
const INTENT_CHARS_MAX: usize = 64;

/// What every command takes.
const HEADING: &str = "Till and bank";

/// The till with no window: takes payments, settles them, and shows what became of them.
///
/// Results go to stdout, one JSON document a line where said so; everything else goes to stderr.
/// Exit codes: 0 done, 1 refused (the reason is on stderr), 2 wrong usage.
#[derive(Debug, Parser)]
#[command(name = "kassa-till", version)]
pub(crate) struct Cli {
    /// The folder with the till's data, made private to you where it is missing [default: this system's folder for
    /// application data]
    #[arg(long, value_name = "DIR", env = "KASSA_DATA_DIR", global = true, help_heading = HEADING)]
    pub(crate) data: Option<PathBuf>,

    /// The bank's address. One that is not on this machine must be https
    #[arg(long, value_name = "URL", env = "KASSA_BANK_URL", global = true, help_heading = HEADING)]
    pub(crate) bank_url: Option<String>,

    /// The secret that names this shop at the bank. Better in the environment than here, where others see it
    #[arg(long, value_name = "SECRET", env = "KASSA_BANK_TOKEN", hide_env_values = true, global = true, help_heading = HEADING)]
    pub(crate) bank_token: Option<String>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Save card payments, each of a sale of its own. Nothing is sent: that is what `sync` does
    ///
    /// Prints each operation as a JSON line once it is safe on disk.
    Pay(Pay),
    /// Save a refund of a card payment, which may still be open. Nothing is sent: that is what `sync` does
    ///
    /// Prints the operation as a JSON line once it is safe on disk. It waits until its payment is approved; where that ends
    /// otherwise, the refund is cancelled.
    Refund(Refund),
    /// Cancel an operation: one that was never sent at once; of any other the wish is saved, and `sync` brings it to the bank
    ///
    /// Prints the operation as a JSON line. Exit code 1 where it has ended otherwise, or its goods were handed over before
    /// the bank answered.
    Cancel {
        /// The key of the operation
        key: Key,
    },
    /// Settle what is open with the bank: sends, asks again and waits, until every payment has its final result
    ///
    /// Prints a JSON line for each change. Exit codes: 0 all final, 3 not in time, 4 all final but some that need
    /// attention, or of which the bank said another end than the one that holds here, 1 refused, 2 no bank named. Ended by SIGTERM or Ctrl+C, what was in flight is `unknown` and is asked for
    /// again by the next `sync`, under the same key.
    Sync(Sync),
    /// Show the operations, oldest first
    Operations(Operations),
    /// Show every attempt of one operation, as JSON lines: what was sent, what came back, how it was read
    Log {
        /// The key of the operation
        key: Key,
    },
    /// Look through the file for what does not hold, and, where a bank is named, compare each payment with the bank's
    ///
    /// Prints a line for each finding, and one at the end with what was looked at. Nothing is changed, here or at the bank; a till
    /// that works meanwhile is not held up. Exit codes: 0 nothing is wrong, 1 something is, 3 nothing is, and the bank that was named
    /// could not be asked.
    Doctor {
        /// A JSON document for each, on a line of its own: {"code","subject","what"}, and {"summary":{…}} at the end
        #[arg(long)]
        json: bool,
        /// Before that, take a payment for known that only the bank has: its id there
        #[arg(long, value_name = "PAYMENT", requires = "reason")]
        acknowledge: Option<String>,
        /// What became of that payment
        #[arg(long, requires = "acknowledge")]
        reason: Option<String>,
    },
    /// Write out everything of a kind, oldest first, as one state of the file
    ///
    /// It holds no card token and no secret. JSON: a document for each, on a line of its own; a payment has every attempt of it. CSV: a
    /// table that a spreadsheet opens, its columns described in docs/EXPORT.md.
    Export {
        /// What to write out
        what: Exported,
        /// How
        #[arg(long, default_value = "json")]
        format: Format,
    },
    /// Copy the till's file to a new one, as one state of it, while the till sells on
    ///
    /// Only its owner can read the copy; it is looked through before it has its name. A file that is there is never written over.
    Backup {
        /// The file that the copy is to be
        file: PathBuf,
    },
    /// Bring a copy back as this till's file, under a new name of the till
    ///
    /// A file that is there is put aside, and only where nothing in it is unsettled. Nothing is paid before `sync` has matched the
    /// bank's payments since the copy.
    Restore {
        /// The copy
        file: PathBuf,
        /// The till's name from now on [default: the one it had, with a mark behind it]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Price a cart: JSON in, JSON out
    ///
    /// Bad input is answered on stdout as {"error":{"code","message","path"}}, exit code 1.
    Price {
        /// The file to read, or - for standard input
        #[arg(value_name = "FILE", default_value = "-")]
        file: PathBuf,
    },
}

/// What can be written out.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Exported {
    /// The sales that were paid or are under payment, each with what became of it
    Sales,
    /// The tax of completed sales and of goods that came back, by its rate
    Taxes,
    /// The operations, payments and refunds
    Payments,
    /// Who did what, when
    Audit,
}

impl From<Exported> for till::Exported {
    fn from(what: Exported) -> Self {
        match what {
            Exported::Sales => Self::Sales,
            Exported::Taxes => Self::Taxes,
            Exported::Payments => Self::Payments,
            Exported::Audit => Self::Audit,
        }
    }
}

/// How it is written out.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    /// A JSON document a line
    Json,
    /// A table
    Csv,
}

#[derive(Debug, Args)]
pub(crate) struct Pay {
    /// What to charge, in minor units: 2490 is 24.90
    #[arg(long, value_name = "N", value_parser = amount)]
    pub(crate) amount: Amount,
    /// The currency, by its three letters
    #[arg(long, value_name = "CODE")]
    pub(crate) currency: Currency,
    /// What the card reader gave, such as tok_visa: 1 to 64 characters
    // Read as it is and checked later: an error about a value repeats it, and a card's must not be seen.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) card: String,
    /// Your name for the payment at the bank, in up to 64 characters [default: the till's name and the sale's number]
    // Read as it is and checked later too: somebody may type a card's number here.
    #[arg(long, value_name = "R")]
    pub(crate) reference: Option<String>,
    /// The goods are handed over before the bank is asked, at the shop's risk and within its offline limits: over one of them, nothing is
    /// saved and the exit code is 1
    #[arg(long)]
    pub(crate) offline: bool,
    /// How many payments to save, each a sale and an operation of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) times: u32,
    /// Names what is meant, in up to 64 characters: the same name again gives the same operation back, whatever became of it
    #[arg(long, value_name = "ID", value_parser = intent, conflicts_with = "times")]
    pub(crate) intent: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Refund {
    /// The key of the payment
    pub(crate) key: Key,
    /// How much to give back, in minor units of the payment's currency
    #[arg(long, value_name = "N", value_parser = amount)]
    pub(crate) amount: Amount,
    /// Names what is meant, in up to 64 characters: the same name again gives the same operation back, whatever became of it
    #[arg(long, value_name = "ID", value_parser = intent)]
    pub(crate) intent: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Sync {
    /// End as soon as every operation has its final result, or needs attention
    #[arg(long)]
    pub(crate) until_settled: bool,
    /// How long to try at most: 500ms, 60s, 5m, 1h [default: 60s with --until-settled, no end without]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct Operations {
    /// A JSON document for each, on a line of its own
    #[arg(long)]
    pub(crate) json: bool,
    /// Only those in this state
    #[arg(long, value_name = "S", value_parser = states())]
    pub(crate) state: Option<State>,
}

fn states() -> impl TypedValueParser<Value = State> {
    PossibleValuesParser::new(State::ALL.map(State::as_str)).try_map(|word| State::parse(&word).ok_or("no such state"))
}

fn amount(text: &str) -> Result<Amount, String> {
    text.parse()
        .ok()
        .and_then(|minor_units| Amount::new(minor_units).ok())
        .ok_or_else(|| "must be a whole number of minor units from 1 to 99999999".to_owned())
}

fn intent(text: &str) -> Result<String, String> {
    let is_short = (1..=INTENT_CHARS_MAX).contains(&text.chars().count());
    is_short.then(|| text.to_owned()).ok_or_else(|| format!("must have 1 to {INTENT_CHARS_MAX} characters"))
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "must be a whole number with ms, s, m or h, such as 60s".to_owned();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u32 = number.parse().map_err(|_| wrong())?;
    match unit {
        "ms" => Ok(Duration::from_millis(number.into())),
        "s" | "" => Ok(Duration::from_secs(number.into())),
        "m" => Ok(Duration::from_secs(u64::from(number) * 60)),
        "h" => Ok(Duration::from_secs(u64::from(number) * 3_600)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(duration("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("60"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3_600)));
        for wrong in ["", "s", "-1s", "1.5s", "1 s", "1d", "99999999999s"] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
    }
}
