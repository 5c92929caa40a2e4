//! `kassa-bank`: the mock bank on the command line.

use bank::{
    Bank, Gateway,
    cli::{self, Command},
    open_files,
};
use std::{
    io::{self, IsTerminal, Write},
    net::SocketAddr,
    process::ExitCode,
    time::SystemTime,
};
use tokio::net::TcpListener;
use tracing_subscriber::EnvFilter;

/// The exit code of a wrong command line.
const WRONG_FLAGS: u8 = 2;

fn main() -> ExitCode {
    let command = match cli::parse(std::env::args_os()) {
        Ok(command) => command,
        Err(error) => {
            complain(&error);
            return ExitCode::from(WRONG_FLAGS);
        }
    };
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&line(&error));
            ExitCode::FAILURE
        }
    }
}

/// The error and its causes in one line, without what was said already.
fn line(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |line, cause| match line.as_str() {
        "" => cause,
        said if said.contains(&cause) => line,
        _ => format!("{line}: {cause}"),
    })
}

#[tokio::main]
async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Print(text) => say(text.trim_end())?,
        Command::Serve { listen, config } => {
            protocol::check_clock(SystemTime::now())?;
            log();
            open_files::raise_limit();
            let bank = Bank::open(config).await?;
            let listener = bind(listen)?;
            let shutdown = told_to_end()?;
            say(&serde_json::to_string(&bank.ready(&listener)?)?)?;
            bank.serve(listener, shutdown).await?;
        }
        Command::Gateway { listen, config } => {
            protocol::check_clock(SystemTime::now())?;
            log();
            open_files::raise_limit();
            let gateway = Gateway::open(config).await?;
            let listener = bind(listen)?;
            let shutdown = told_to_end()?;
            let url = format!("http://{}", listener.local_addr()?);
            say(&serde_json::json!({"ready": true, "url": url}).to_string())?;
            gateway.serve(listener, shutdown).await?;
        }
    }
    Ok(())
}

fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    bank::listen(address).map_err(|error| anyhow::anyhow!("{address} can't be listened on: {error}"))
}

/// Writes one line to standard output, where whoever started the bank waits for it.
fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Writes one line to standard error, where there is anybody to read it.
fn complain(why: &dyn std::fmt::Display) {
    // The exit code tells it too.
    let _ = writeln!(io::stderr(), "kassa-bank: {why}");
}

/// Logs go to standard error; `RUST_LOG` says how much. A line that can't be written is lost, and nothing else: its reader may have
/// gone, or its disk be full.
fn log() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .log_internal_errors(false)
        .init();
}

/// Ends when the process is told to end. The signals are caught from here on.
#[cfg(unix)]
fn told_to_end() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    })
}

/// Ends when the process is told to end.
#[cfg(not(unix))]
fn told_to_end() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::error!(%error, "Ctrl-C can't be waited for");
        }
    })
}
