//! The command line: flags, environment, and what may not stand together.

use crate::{
    BankConfig, GatewayConfig, LabConfig, RETENTION, Secret, Token, WAIT, acquirer::client::address as gateway_address,
};
use clap::{
    Args, Parser, Subcommand,
    builder::BoolishValueParser,
    error::{ContextKind, ContextValue, ErrorKind},
};
use std::{
    ffi::OsString,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

/// What was asked for.
#[derive(Debug)]
pub enum Command {
    /// The bank.
    Serve {
        /// Where to listen.
        listen: SocketAddr,
        /// How it is set up.
        config: BankConfig,
    },
    /// The gateway alone.
    Gateway {
        /// Where to listen.
        listen: SocketAddr,
        /// How it is set up.
        config: GatewayConfig,
    },
    /// A text to print, and nothing else.
    Print(String),
}

/// The mock bank.
#[derive(Parser)]
#[command(name = "kassa-bank", version, about = "A mock bank that holds play money, and fails on command")]
struct Cli {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Subcommand)]
enum Commands {
    /// Run the bank; it brings its own gateway along unless one is named
    Serve(Serve),
    /// Run the gateway alone: the card network behind the bank
    Gateway(Alone),
}

#[derive(Args)]
struct Serve {
    /// Where to listen; port 0 takes a free one
    #[arg(long, env = "KASSA_BANK_LISTEN", default_value = "127.0.0.1:8460", value_name = "ADDRESS", value_parser = address)]
    listen: SocketAddr,
    /// Another name under which the bank may be called
    #[arg(long, env = "KASSA_BANK_HOST", value_name = "NAME", value_delimiter = ',')]
    host: Vec<String>,
    /// The bank's database
    #[arg(long, env = "KASSA_BANK_DB", default_value = "bank.db", value_name = "FILE")]
    db: PathBuf,
    /// A merchant and a secret of it; without any, one merchant `demo` with a secret of its own
    #[arg(
        long,
        env = "KASSA_BANK_TOKENS",
        value_name = "MERCHANT=SECRET",
        value_delimiter = ',',
        hide_env_values = true
    )]
    token: Vec<String>,
    /// The secret of the bank's own people, who look at what needs attention; without it their calls are not there
    #[arg(long, env = "KASSA_BANK_OPERATOR", value_name = "SECRET", hide_env_values = true)]
    operator: Option<String>,
    /// The gateway's address; without it the bank runs one in the same process
    #[arg(long, env = "KASSA_BANK_GATEWAY_URL", value_name = "URL")]
    gateway_url: Option<String>,
    /// How long a response is stored, such as 24h
    #[arg(long, env = "KASSA_BANK_RETENTION", value_name = "TIME", value_parser = duration)]
    retention: Option<Duration>,
    /// How long a repeat waits for the outcome, such as 3s
    #[arg(long, env = "KASSA_BANK_WAIT", value_name = "TIME", value_parser = duration)]
    wait: Option<Duration>,
    /// Open the fault lab, on loopback only
    #[arg(long, env = "KASSA_BANK_LAB", value_parser = BoolishValueParser::new())]
    lab: bool,
}

#[derive(Args)]
struct Alone {
    /// Where to listen; port 0 takes a free one
    #[arg(long, env = "KASSA_BANK_LISTEN", default_value = "127.0.0.1:8461", value_name = "ADDRESS", value_parser = address)]
    listen: SocketAddr,
    /// The gateway's database
    #[arg(long, env = "KASSA_BANK_DB", default_value = "gateway.db", value_name = "FILE")]
    db: PathBuf,
    /// Open the fault lab
    #[arg(long, env = "KASSA_BANK_LAB", value_parser = BoolishValueParser::new())]
    lab: bool,
}

/// Reads a command line. The error is one line that names the flag, and no secret.
///
/// # Errors
/// What is wrong, and what to write instead.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, String> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            return Ok(Command::Print(error.render().to_string()));
        }
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            return Err("say `serve` or `gateway`; `--help` tells more".into());
        }
        Err(error) => return Err(explain(&error, &arguments)),
    };
    match cli.command {
        Commands::Serve(serve) => serve.check(),
        Commands::Gateway(gateway) => gateway.check(),
    }
}

/// Says what is wrong with a command line by the names of flags and by positions. What was typed is never repeated: it may
/// be a secret in the wrong place.
fn explain(error: &clap::Error, arguments: &[OsString]) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let named = context(ContextKind::InvalidArg).unwrap_or_default();
    if error.kind() == ErrorKind::UnknownArgument {
        return unknown(named, context(ContextKind::SuggestedArg), arguments);
    }
    // Anywhere else this is a flag of ours, such as `--listen <ADDRESS>`.
    let flag = named.split([' ', '=']).next().unwrap_or_default();
    let flag = if KNOWN.iter().any(|(known, _)| *known == flag) { flag } else { "the command line" };
    match error.kind() {
        ErrorKind::InvalidSubcommand | ErrorKind::MissingSubcommand => {
            "say `serve` or `gateway`; `--help` tells more".into()
        }
        ErrorKind::ArgumentConflict => format!("{flag}: it can't be given twice"),
        ErrorKind::InvalidUtf8 => "an argument is not UTF-8".into(),
        _ => match KNOWN.iter().find(|(known, _)| *known == flag) {
            Some((_, hint)) => format!("{flag} (or its environment variable): {hint}"),
            None => "the command line can't be read; `--help` tells more".into(),
        },
    }
}

/// Flags, and what to write for each.
const KNOWN: [(&str, &str); 9] = [
    ("--listen", "write an address and a port, such as 127.0.0.1:8460"),
    ("--host", "write a host's name"),
    ("--db", "write a file's name"),
    ("--token", "a token is written MERCHANT=SECRET"),
    ("--operator", "write the operator's secret"),
    ("--gateway-url", "write an address such as http://127.0.0.1:8461"),
    ("--retention", "write a whole number with a unit, such as 24h or 7d"),
    ("--wait", "write a whole number with a unit, such as 500ms or 3s"),
    ("--lab", "it takes no value; the variable is true or false"),
];

/// An argument that nobody knows, by its position, and by its name where it looks like a flag's.
fn unknown(named: &str, suggested: Option<&str>, arguments: &[OsString]) -> String {
    let flag = named.split('=').next().unwrap_or_default();
    let is_flag = flag.len() <= FLAG_CHARS_MAX
        && flag.strip_prefix("--").is_some_and(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '-'));
    let position = arguments.iter().position(|argument| argument.to_string_lossy().starts_with(named));
    let what = match position {
        _ if is_flag && !flag.is_empty() => format!("{flag}: there is no such flag"),
        Some(position) => format!("argument {position} is not expected there"),
        None => "an argument is not expected there".to_owned(),
    };
    match suggested.filter(|flag| KNOWN.iter().any(|(known, _)| known == flag)) {
        Some(flag) => format!("{what}; did you mean {flag}?"),
        None => what,
    }
}

/// Characters of what may be a flag's name: no secret worth the name is so short and has letters alone.
const FLAG_CHARS_MAX: usize = 24;

impl Serve {
    fn check(self) -> Result<Command, String> {
        let mut tokens = Vec::with_capacity(self.token.len());
        for text in &self.token {
            let token = Token::parse(text).map_err(|why| format!("--token: {why}"))?;
            if tokens.iter().any(|known: &Token| known.secret == token.secret && known.merchant != token.merchant) {
                return Err("--token: one secret names two merchants".into());
            }
            tokens.push(token);
        }
        let operator =
            self.operator.as_deref().map(Secret::parse).transpose().map_err(|why| format!("--operator: {why}"))?;
        if tokens.iter().any(|token| Some(&token.secret) == operator.as_ref()) {
            return Err("--operator: a merchant has this secret".into());
        }
        if !self.listen.ip().is_loopback() {
            if tokens.is_empty() {
                return Err("--listen: an address that is not loopback needs a --token".into());
            }
            if self.lab {
                return Err("--lab: the fault lab opens on loopback only".into());
            }
        }
        let retention = self.retention.unwrap_or(RETENTION);
        if retention < Duration::from_secs(1) {
            return Err("--retention: a response is stored for at least 1s".into());
        }
        let wait = self.wait.unwrap_or(WAIT);
        if wait > WAIT_MAX {
            return Err("--wait: a repeat waits for at most 60s".into());
        }
        if let Some(url) = &self.gateway_url {
            gateway_address(url).map_err(|why| format!("--gateway-url: {why}"))?;
        }
        let config = BankConfig {
            db: self.db,
            hosts: self.host,
            tokens,
            gateway_url: self.gateway_url,
            retention,
            wait,
            operator,
            lab: lab(self.lab),
        };
        Ok(Command::Serve { listen: self.listen, config })
    }
}

impl Alone {
    fn check(self) -> Result<Command, String> {
        if !self.listen.ip().is_loopback() {
            return Err("--listen: the gateway knows no secrets, so it listens on loopback only".into());
        }
        let config = GatewayConfig { db: self.db, hosts: Vec::new(), secret: None, lab: lab(self.lab) };
        Ok(Command::Gateway { listen: self.listen, config })
    }
}

/// The longest wait: clients and proxies in between give up after about this.
const WAIT_MAX: Duration = Duration::from_secs(60);

fn lab(open: bool) -> Option<LabConfig> {
    open.then_some(LabConfig { secret: None, may_abort: true })
}

fn address(text: &str) -> Result<SocketAddr, String> {
    if let Some(port) = text.strip_prefix("localhost:").and_then(|port| port.parse().ok()) {
        return Ok((IpAddr::V4(Ipv4Addr::LOCALHOST), port).into());
    }
    text.parse().map_err(|_| "write an address and a port, such as 127.0.0.1:8460".to_owned())
}

/// Reads a whole number with a unit: 500ms, 3s, 10m, 24h, 7d.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "write a whole number with a unit, such as 500ms, 3s, 10m, 24h or 7d".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit_ms).filter(|&ms| ms <= DURATION_MAX_MS).map(Duration::from_millis).ok_or_else(wrong)
}

/// A hundred years: a longer time is a slip of the keyboard.
const DURATION_MAX_MS: u64 = 100 * 366 * 86_400_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Command, String> {
        parse(std::iter::once("kassa-bank").chain(line.split_whitespace()).map(OsString::from))
    }

    fn refused(line: &str) -> String {
        let error = read(line).err().unwrap_or_else(|| panic!("{line} was taken"));
        assert!(!error.contains('\n') && !error.is_empty(), "{error:?}");
        error
    }

    #[test]
    fn a_bank_is_set_up_as_the_flags_say() {
        let Ok(Command::Serve { listen, config }) = read(
            "serve --listen 127.0.0.1:0 --db x/b.db --token a=sk_a1 --token b=sk_b1 --retention 2h --wait 1500ms --lab",
        ) else {
            panic!("not taken")
        };
        assert_eq!(listen, "127.0.0.1:0".parse().unwrap());
        assert_eq!(config.db, PathBuf::from("x/b.db"));
        assert_eq!(config.tokens.len(), 2);
        assert_eq!((config.retention, config.wait), (Duration::from_secs(7_200), Duration::from_millis(1_500)));
        assert!(config.lab.is_some_and(|lab| lab.may_abort && lab.secret.is_none()));
        let Ok(Command::Serve { listen, config }) = read("serve") else { panic!("not taken") };
        assert_eq!(listen, "127.0.0.1:8460".parse().unwrap());
        assert_eq!((config.retention, config.wait), (RETENTION, WAIT));
        assert!(config.lab.is_none() && config.tokens.is_empty() && config.gateway_url.is_none());
        assert!(matches!(read("gateway --listen localhost:0"), Ok(Command::Gateway { .. })));
    }

    #[test]
    fn a_wrong_flag_is_one_line_with_no_secret_in_it() {
        for line in [
            "",
            "run",
            "serve --database-url postgres://x",
            "serve --listen nowhere",
            "serve --wait 3",
            "serve --wait 61s",
            "serve --retention 0s",
            "serve --retention 99999999999999999d",
            "serve --listen 0.0.0.0:1",
            "serve --listen 0.0.0.0:1 --token a=sk_a1 --lab",
            "serve --token sk_secret",
            "serve --token a=sk_secret --token b=sk_secret",
            "serve --operator abc",
            "serve --token a=x b=sk_secret",
            "serve sk_secret",
            "sk_secret",
            "serve --tokne a=sk_secret",
            "serve --tokne=a=sk_secret",
            "serve --sk_secret",
            "serve -sk_secret",
            "serve --lab=sk_secret",
            "serve --lab sk_secret",
            "serve --listen sk_secret",
            "serve --wait sk_secret",
            "serve --retention sk_secret",
            "serve --gateway-url sk_secret",
            "serve --gateway-url http://a:sk_secret@127.0.0.1",
            "serve --db sk_secret --db sk_secret",
            "serve --token",
            "serve --token a=sk_secret --operator sk_secret",
            "gateway --listen 0.0.0.0:1",
            "gateway --token a=sk_a1",
        ] {
            let error = refused(line);
            assert!(!error.contains("sk_secret"), "{error}");
        }
        assert!(read("serve --listen 0.0.0.0:1 --token a=sk_a1").is_ok());
    }

    #[test]
    fn what_is_wrong_is_named_by_flag_or_position() {
        assert!(refused("serve --database-url x").starts_with("--database-url: there is no such flag"));
        assert_eq!(refused("serve --token a=sk_1234 b=sk_1234"), "argument 4 is not expected there");
        assert!(refused("serve --tokne a=sk_1234").contains("did you mean --token?"));
        assert!(refused("serve --wait soon").starts_with("--wait "));
        assert!(refused("serve --gateway-url nonsense").starts_with("--gateway-url: "));
        assert!(refused("serve --db a --db b").starts_with("--db: "));
    }

    #[test]
    fn times_have_units() {
        assert_eq!(duration("24h"), Ok(Duration::from_secs(86_400)));
        assert_eq!(duration("7d"), Ok(Duration::from_secs(604_800)));
        for wrong in ["", "3", "s", "-3s", "1.5s", "3 s", "3sec"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
