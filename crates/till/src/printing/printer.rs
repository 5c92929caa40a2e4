//! Printers, and what is in their way.
//!
//! A printer on the network is told everything and says nothing: plain TCP to port 9100 has no word for "out of paper", "cover open"
//! or "printed". What is told as printed is that the printer took all bytes. A printer without paper takes what fits its memory and
//! then no more, which is told as a time-out.

use crate::TillError;
use protocol::is_unseen;
use serde::Serialize;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write as _},
    net::SocketAddr,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};
use thiserror::Error;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::oneshot,
    time::timeout,
};

/// The longest name that a machine has.
const HOST_BYTES_MAX: usize = 253;
/// The port of printers on a network.
const PORT: u16 = 9100;
/// How long each part of a print may take.
#[derive(Clone, Copy)]
struct Limits {
    /// To a connection.
    connect: Duration,
    /// Until the whole receipt is taken.
    write: Duration,
    /// For a printer to close, or break off, after the last byte. Many stay open.
    close: Duration,
}

/// The faults say them.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(3), write: Duration::from_secs(10), close: Duration::from_millis(500) };
/// How many files of one name a folder may have.
const SAME_NAMES_MAX: u32 = 1_000;

/// Where receipts are printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Printer {
    /// Nowhere.
    None,
    /// Into a folder, as a text file for each print; or to a device such as `/dev/usb/lp0`, as the printer takes it.
    File {
        /// The folder or device.
        path: PathBuf,
    },
    /// To a printer on the network.
    Tcp {
        /// Its name or address and its port: `10.0.0.7:9100`, `[fe80::1]:9100`.
        address: String,
    },
}

impl Printer {
    /// A printer on the network, by its name or address, with a port or with that of printers, 9100.
    ///
    /// # Errors
    /// [`TillError::InvalidSetting`].
    pub fn tcp(address: &str) -> Result<Self, TillError> {
        let wrong =
            TillError::InvalidSetting("a printer's address is a name or an IP address, and perhaps a colon and a port");
        let address = address.trim();
        let is_strange = |c: char| c.is_whitespace() || is_unseen(c) || c == '/' || c == '@';
        let is_plain = |host: &str| (1..=HOST_BYTES_MAX).contains(&host.len()) && !host.contains(is_strange);
        let bare_ip = address.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
        let full = match (address.parse::<SocketAddr>(), bare_ip) {
            (Ok(whole), _) => whole.to_string(),
            (_, Ok(ip)) => SocketAddr::new(ip, PORT).to_string(),
            _ => match address.rsplit_once(':') {
                Some((host, port))
                    if is_plain(host) && !host.contains(':') && port.parse::<u16>().is_ok_and(|port| port > 0) =>
                {
                    address.to_owned()
                }
                None if is_plain(address) => format!("{address}:{PORT}"),
                _ => return Err(wrong),
            },
        };
        Ok(Self::Tcp { address: full })
    }

    pub(super) fn of(kind: &str, target: String) -> Self {
        match kind {
            "file" => Self::File { path: target.into() },
            "tcp" => Self::Tcp { address: target },
            // The table refuses every other word.
            _ => Self::None,
        }
    }

    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::File { .. } => "file",
            Self::Tcp { .. } => "tcp",
        }
    }

    pub(super) fn target(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::File { path } => path.to_string_lossy().into_owned(),
            Self::Tcp { address } => address.clone(),
        }
    }

    /// Refuses what could never be printed to.
    pub(super) fn check(&self) -> Result<(), TillError> {
        match self {
            Self::None => Ok(()),
            // By a relative one each start of the program would mean another place.
            Self::File { path } if path.is_absolute() && path.to_str().is_some() => Ok(()),
            Self::File { .. } => {
                Err(TillError::InvalidSetting("a printer's folder or device is named by its whole path"))
            }
            Self::Tcp { address } => match Self::tcp(address) {
                Ok(same) if same == *self => Ok(()),
                _ => Err(TillError::InvalidSetting("a printer's address needs its port")),
            },
        }
    }
}

/// What was in the way of a print. The sale is as it was, and its receipt can be printed again.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PrintFault {
    /// None is set.
    #[error("no printer is set: name one in the settings. The receipt can be shown")]
    NoPrinter,
    /// The machine is there, and nothing takes print jobs at that port.
    #[error("the printer at {0} refuses the connection: is it switched on, and is that its port?")]
    Refused(String),
    /// There is no way to it, or no machine of that name.
    #[error("the printer {0} can't be reached: {1}. Look at its cable, its network and its address")]
    Unreachable(String, String),
    /// It did not answer in 3 s.
    #[error("the printer at {0} did not answer in 3 s: is it switched on and on this network?")]
    ConnectTimeout(String),
    /// It did not take the receipt in 10 s. How much of it is on paper is not known.
    #[error(
        "the printer {0} took only a part of the receipt in 10 s: is it out of paper, open or busy? It can't tell. Print again for a copy"
    )]
    WriteTimeout(String),
    /// It broke off. How much of it is on paper is not known.
    #[error("the printer {0} broke off while it printed ({1}): look at it, and print again for a copy")]
    Disconnected(String, String),
    /// There is no such folder or device.
    #[error("there is no {0}: is the printer plugged in, or the folder gone?")]
    NotFound(String),
    /// Who runs the till may not write there.
    #[error("the till may not write to {0}: give it the right to")]
    NoPermission(String),
    /// The disk with the folder is full.
    #[error("no room is left for {0}: make some on that disk")]
    DiskFull(String),
    /// It is a file, in which each receipt would be hidden behind the one before it.
    #[error("{0} is a file, and no folder or device: name another in the settings")]
    NoPlace(String),
    /// Something else, in the system's words.
    #[error("{0} can't be printed to: {1}")]
    Other(String, String),
}

impl PrintFault {
    /// The code of the fault.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoPrinter => "no-printer",
            Self::Refused(_) => "printer-refused",
            Self::Unreachable(..) => "printer-unreachable",
            Self::ConnectTimeout(_) | Self::WriteTimeout(_) => "printer-timeout",
            Self::Disconnected(..) => "printer-disconnected",
            Self::NotFound(_) => "printer-not-found",
            Self::NoPermission(_) => "printer-no-permission",
            Self::DiskFull(_) => "printer-disk-full",
            Self::NoPlace(_) | Self::Other(..) => "printer-fault",
        }
    }

    /// Whether it is known that no byte came to the paper.
    #[must_use]
    pub const fn printed_nothing(&self) -> bool {
        !matches!(self, Self::WriteTimeout(_) | Self::Disconnected(..) | Self::Other(..))
    }

    /// Whether to print again may help with nothing else changed.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        !matches!(self, Self::NoPrinter | Self::NoPermission(_) | Self::NoPlace(_))
    }

    fn of(error: &io::Error, whom: String) -> Self {
        match error.kind() {
            ErrorKind::ConnectionRefused => Self::Refused(whom),
            ErrorKind::NotFound => Self::NotFound(whom),
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Self::NoPermission(whom),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::DiskFull(whom),
            ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => {
                Self::Disconnected(whom, error.to_string())
            }
            _ => Self::Other(whom, error.to_string()),
        }
    }
}

/// What is printed.
pub(crate) struct Job {
    /// For a file in a folder, with no ending.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) bytes: Vec<u8>,
}

/// Prints. Takes 14 s at most with a printer on a network.
pub(crate) async fn print(printer: &Printer, job: Job) -> Result<(), PrintFault> {
    match printer {
        Printer::None => Err(PrintFault::NoPrinter),
        Printer::Tcp { address } => over_tcp(address, &job.bytes, LIMITS).await,
        Printer::File { path } => {
            let (path, whom) = (path.clone(), path.display().to_string());
            let (end, ended) = oneshot::channel();
            // A device that takes nothing holds up this thread, and neither the till nor its end.
            let writing = thread::Builder::new().name("printing".to_owned()).spawn(move || {
                // Nobody waits for it after the time is up.
                let _ = end.send(into_path(&path, &job));
            });
            writing.map_err(|error| PrintFault::Other(whom.clone(), error.to_string()))?;
            match timeout(LIMITS.write, ended).await {
                Ok(Ok(done)) => done,
                Ok(Err(_)) => Err(PrintFault::Other(whom, "the program failed while it wrote".to_owned())),
                Err(_) => Err(PrintFault::WriteTimeout(whom)),
            }
        }
    }
}

async fn over_tcp(address: &str, bytes: &[u8], limits: Limits) -> Result<(), PrintFault> {
    let whom = || address.to_owned();
    let connecting = timeout(limits.connect, TcpStream::connect(address)).await;
    let mut stream =
        connecting.map_err(|_| PrintFault::ConnectTimeout(whom()))?.map_err(|error| match error.kind() {
            ErrorKind::ConnectionRefused => PrintFault::Refused(whom()),
            ErrorKind::TimedOut => PrintFault::ConnectTimeout(whom()),
            _ => PrintFault::Unreachable(whom(), error.to_string()),
        })?;
    let broken = |error: io::Error| PrintFault::Disconnected(whom(), error.to_string());
    let writing = async {
        stream.write_all(bytes).await?;
        stream.shutdown().await
    };
    timeout(limits.write, writing).await.map_err(|_| PrintFault::WriteTimeout(whom()))?.map_err(broken)?;
    // The system took the bytes; a printer that broke off says so now.
    let mut said = [0; 256];
    let ending = async {
        while stream.read(&mut said).await? > 0 {}
        io::Result::Ok(())
    };
    match timeout(limits.close, ending).await {
        Ok(Err(error)) => Err(broken(error)),
        Ok(Ok(())) | Err(_) => Ok(()),
    }
}

fn into_path(path: &Path, job: &Job) -> Result<(), PrintFault> {
    let at = |path: &Path| path.display().to_string();
    let kind = fs::metadata(path).map_err(|error| PrintFault::of(&error, at(path)))?;
    if kind.is_dir() {
        return into_folder(path, job);
    }
    if kind.is_file() {
        return Err(PrintFault::NoPlace(at(path)));
    }
    let mut device = OpenOptions::new().write(true).open(path).map_err(|error| PrintFault::of(&error, at(path)))?;
    device.write_all(&job.bytes).and_then(|()| device.flush()).map_err(|error| match PrintFault::of(&error, at(path)) {
        // What a device took before is on paper.
        fault if fault.printed_nothing() => PrintFault::Disconnected(at(path), error.to_string()),
        fault => fault,
    })
}

/// Writes a new file that others on this machine can't read, whole or not at all.
fn into_folder(folder: &Path, job: &Job) -> Result<(), PrintFault> {
    let (path, mut file) = create(folder, &job.name)?;
    file.write_all(job.text.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| {
        let fault = PrintFault::of(&error, path.display().to_string());
        match fs::remove_file(&path) {
            Ok(()) => fault,
            Err(left) => {
                PrintFault::Other(path.display().to_string(), format!("{error}; a part of it is left: {left}"))
            }
        }
    })
}

fn create(folder: &Path, name: &str) -> Result<(PathBuf, File), PrintFault> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // A restored till prints under names that are there already.
    let names = (1..=SAME_NAMES_MAX).map(|n| if n == 1 { format!("{name}.txt") } else { format!("{name}-{n}.txt") });
    for path in names.map(|name| folder.join(name)) {
        match options.open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(PrintFault::of(&error, path.display().to_string())),
        }
    }
    Err(PrintFault::Other(folder.display().to_string(), format!("too many files there are called {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{error::Error, io::Read as _, net::TcpListener};

    type Checked<T = ()> = Result<T, Box<dyn Error>>;

    /// More than the buffers of both ends hold.
    const BYTES: usize = 64 << 20;

    fn limits(write: Duration) -> Limits {
        Limits { write, ..LIMITS }
    }

    #[tokio::test]
    async fn a_printer_that_takes_no_more_is_out_of_time() -> Checked {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let done = over_tcp(&address, &vec![0; BYTES], limits(Duration::from_millis(200))).await;
        let fault = done.err().ok_or("a printer that reads nothing took everything")?;
        assert_eq!((fault.code(), fault.printed_nothing()), ("printer-timeout", false), "{fault}");
        assert!(fault.to_string().contains("out of paper"), "{fault}");
        Ok(())
    }

    #[test]
    fn what_the_system_says_is_told_as_its_cause() {
        let told = |kind: ErrorKind| PrintFault::of(&io::Error::from(kind), "there".to_owned());
        for (kind, code, nothing) in [
            (ErrorKind::StorageFull, "printer-disk-full", true),
            (ErrorKind::QuotaExceeded, "printer-disk-full", true),
            (ErrorKind::PermissionDenied, "printer-no-permission", true),
            (ErrorKind::ReadOnlyFilesystem, "printer-no-permission", true),
            (ErrorKind::NotFound, "printer-not-found", true),
            (ErrorKind::ConnectionReset, "printer-disconnected", false),
            (ErrorKind::OutOfMemory, "printer-fault", false),
        ] {
            let fault = told(kind);
            assert_eq!((fault.code(), fault.printed_nothing()), (code, nothing), "{fault}");
        }
    }

    #[tokio::test]
    async fn a_slow_printer_is_waited_for() -> Checked {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let reading = thread::spawn(move || {
            let (mut stream, _) = listener.accept()?;
            let (mut some, mut taken) = (vec![0; 1 << 20], 0);
            loop {
                match stream.read(&mut some)? {
                    0 => return io::Result::Ok(taken),
                    read => taken += read,
                }
                thread::yield_now();
            }
        });
        over_tcp(&address, &vec![0; BYTES], limits(Duration::from_secs(60))).await?;
        assert_eq!(reading.join().map_err(|_| "the printer's thread failed")??, BYTES);
        Ok(())
    }
}
