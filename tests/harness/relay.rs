//! A relay between till and bank that adds nothing and loses nothing: it writes down what was asked, and at a moment that a
//! test chose it holds everything still, for the test to strike.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::timeout,
};

/// A message longer than that is none of ours.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;

/// A moment of a keyed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The bank was given the last byte of the request.
    RequestPassedOn,
    /// The till was given the first half of the answer.
    HalfAnswered,
}

/// One request that came through.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Method and path.
    pub(crate) line: String,
    /// The key in its header, where it has one.
    pub(crate) key: Option<String>,
    pub(crate) at: Instant,
    /// When its answer had been passed on whole.
    pub(crate) answered_at: Option<Instant>,
}

/// The relay, as long as it is held.
pub(crate) struct Relay {
    pub(crate) url: String,
    shared: Arc<Shared>,
    _serving: JoinSet<()>,
}

struct Shared {
    bank: SocketAddr,
    asked: Mutex<Vec<Asked>>,
    trap: Mutex<Option<Trap>>,
    /// How many connections are held.
    held: watch::Sender<usize>,
    /// Changes when what is held is let go.
    let_go: watch::Sender<u64>,
}

/// The moment to hold still at, and how many passes of it go by before.
#[derive(Clone, Copy)]
struct Trap {
    moment: Moment,
    passes_left: u32,
}

impl Shared {
    fn asked(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trap(&self) -> MutexGuard<'_, Option<Trap>> {
        self.trap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this pass of the moment is the one that was chosen, or comes after it.
    fn springs(&self, moment: Moment) -> bool {
        let mut trap = self.trap();
        let Some(trap) = trap.as_mut().filter(|trap| trap.moment == moment) else { return false };
        trap.passes_left = trap.passes_left.saturating_sub(1);
        trap.passes_left == 0
    }

    /// Holds this connection as it is, until it is let go.
    async fn hold(&self) {
        let mut let_go = self.let_go.subscribe();
        self.held.send_modify(|held| *held += 1);
        // An error is the end of the relay itself, which lets go too.
        let _ = let_go.changed().await;
        self.held.send_modify(|held| *held -= 1);
    }
}

impl Relay {
    /// Starts it before the bank at that address.
    pub(crate) async fn start(bank_url: &str) -> Result<Self> {
        let bank = bank_url.strip_prefix("http://").and_then(|address| address.parse().ok());
        let bank = bank.with_context(|| format!("no address: {bank_url}"))?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared {
            bank,
            asked: Mutex::default(),
            trap: Mutex::default(),
            held: watch::Sender::new(0),
            let_go: watch::Sender::new(0),
        });
        let mut serving = JoinSet::new();
        serving.spawn(serve(shared.clone(), listener));
        Ok(Self { url, shared, _serving: serving })
    }

    /// From now on the connections are held still that come to that moment, from its n-th pass on.
    pub(crate) fn hold_at(&self, moment: Moment, pass: u32) {
        *self.shared.trap() = Some(Trap { moment, passes_left: pass });
    }

    /// Comes as soon as so many are held.
    pub(crate) async fn holds(&self, count: usize, limit: Duration) -> Result<()> {
        let mut held = self.shared.held.subscribe();
        let came = timeout(limit, held.wait_for(|held| *held >= count)).await;
        came.with_context(|| format!("not {count} came to that moment"))??;
        Ok(())
    }

    /// Nobody is held any more: who is, is let go by closing the connection as it stands.
    pub(crate) fn let_go(&self) {
        *self.shared.trap() = None;
        self.shared.let_go.send_modify(|times| *times += 1);
    }

    /// What was asked so far, oldest first.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.asked().clone()
    }

    /// The requests with a key so far: those that move money.
    pub(crate) fn keyed(&self) -> Vec<Asked> {
        self.asked().into_iter().filter(|asked| asked.key.is_some()).collect()
    }
}

async fn serve(shared: Arc<Shared>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    while let Ok((till, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let shared = shared.clone();
        // Whoever dies takes the connection along, and the other side is to see just that.
        connections.spawn(async move { drop(carry(&shared, till).await) });
    }
}

/// One connection, which the till uses for one request.
async fn carry(shared: &Shared, mut till: TcpStream) -> Result<()> {
    let request = read_message(&mut till).await?;
    let (line, key) = (first_line(&request)?, header(&request, "idempotency-key"));
    let is_keyed = key.is_some();
    let number = {
        let mut asked = shared.asked();
        asked.push(Asked { line, key, at: Instant::now(), answered_at: None });
        asked.len() - 1
    };
    let mut bank = TcpStream::connect(shared.bank).await?;
    bank.write_all(&addressed_to(shared.bank, &request)?).await?;
    if is_keyed && shared.springs(Moment::RequestPassedOn) {
        shared.hold().await;
        bail!("let go");
    }
    let answer = read_message(&mut bank).await?;
    let (half, rest) = answer.split_at(answer.len() / 2);
    till.write_all(half).await?;
    if is_keyed && shared.springs(Moment::HalfAnswered) {
        shared.hold().await;
        bail!("let go");
    }
    till.write_all(rest).await?;
    if let Some(asked) = shared.asked().get_mut(number) {
        asked.answered_at = Some(Instant::now());
    }
    till.shutdown().await?;
    Ok(())
}

/// A whole request or answer, its body by its `Content-Length`.
async fn read_message(stream: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        if let Some(head_bytes) = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4) {
            let body_bytes =
                header(&bytes[..head_bytes], "content-length").map_or(Ok(0), |text| text.parse::<usize>())?;
            if bytes.len() >= head_bytes + body_bytes {
                return Ok(bytes);
            }
        }
        ensure!(bytes.len() < MESSAGE_BYTES_MAX, "too long");
        ensure!(stream.read_buf(&mut bytes).await? > 0, "cut");
    }
}

/// The request with the bank's own address in it: the bank takes no request that names another one.
fn addressed_to(bank: SocketAddr, request: &[u8]) -> Result<Vec<u8>> {
    let named = header(request, "host").context("it names no host")?;
    let at = request.windows(named.len()).position(|bytes| bytes == named.as_bytes()).context("it names no host")?;
    Ok([&request[..at], bank.to_string().as_bytes(), &request[at + named.len()..]].concat())
}

fn first_line(message: &[u8]) -> Result<String> {
    let text = String::from_utf8_lossy(message);
    let mut words = text.split(' ');
    Ok(format!("{} {}", words.next().context("no method")?, words.next().context("no path")?))
}

fn header(message: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(message);
    let head = text.split("\r\n\r\n").next()?;
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find_map(|(found, value)| found.eq_ignore_ascii_case(name).then(|| value.trim().trim_matches('"').to_owned()))
}
