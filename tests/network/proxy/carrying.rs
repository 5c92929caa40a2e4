//! One connection: its requests are read, and what is planned for each is carried out.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

use super::{
    Shared,
    log::{Asked, Exchange},
    plan::{Ask, At, End, Give, Make, Pick, Plan},
    wire::Message,
};

/// How long the other side is waited for at most, in whatever it does.
const PATIENCE: Duration = Duration::from_secs(30);
/// The bank may wait for an outcome before it answers, for 3 s.
const BANK_ANSWER: Duration = Duration::from_secs(20);
/// Pause between two looks at a request that isn't read, while it isn't all there.
const PEEK_EVERY: Duration = Duration::from_millis(1);

/// Serves a connection to its end.
pub(super) async fn carry(shared: Arc<Shared>, connection: usize, mut stream: TcpStream) {
    loop {
        match one(&shared, connection, &mut stream).await {
            Ok(Next::AnotherRequest) => {}
            Ok(Next::End(End::Fin)) => break,
            Ok(Next::End(End::Reset)) => {
                if let Err(error) = stream.set_zero_linger() {
                    shared.log().failed(format!("a connection could not be reset: {error}"));
                }
                break;
            }
            Err(error) => {
                // The other side went away in the middle: the log shows it by what is not done.
                if !is_gone(&error) {
                    shared.log().failed(format!("{error:#}"));
                }
                break;
            }
        }
    }
}

/// Whether the other side was not there, or no longer: nothing that this proxy did wrong.
fn is_gone(error: &anyhow::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotConnected, UnexpectedEof};
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    matches!(kind, Some(BrokenPipe | ConnectionRefused | ConnectionReset | NotConnected | UnexpectedEof))
}

enum Next {
    AnotherRequest,
    End(End),
}

/// One request, from its first byte to the last that is done about it.
async fn one(shared: &Shared, connection: usize, stream: &mut TcpStream) -> Result<Next> {
    let Some(seen) = peek(stream).await? else { return Ok(Next::End(End::Fin)) };
    let (kind, key) = seen.asks();
    let (place, plan) = {
        let mut log = shared.log();
        let asked = log.place(kind, key);
        let plan = shared.plan(&asked);
        (begin(&mut log.exchanges, asked, connection, &plan), plan)
    };
    if let Some(door) = plan.door {
        shared.door.set(door).await?;
    }
    let mut note = Note { shared, place };
    if plan.ask == Ask::NobodyUnread {
        note.end(true);
        return Ok(Next::End(End::Reset));
    }
    let request = Message::read(stream).await?.context("a request that was there is gone")?;
    note.exchange(|exchange| exchange.request = request.clone());
    let done = carry_out(shared, &mut note, stream, &request, plan).await;
    note.end(matches!(done, Ok((_, true))));
    done.map(|(next, _)| next)
}

fn begin(exchanges: &mut Vec<Exchange>, asked: Asked, connection: usize, plan: &Plan) -> usize {
    exchanges.push(Exchange {
        asked,
        connection,
        asked_at: Instant::now(),
        request: Message::default(),
        fault: plan.name.clone(),
        from_bank: None,
        answer_bytes: 0,
        given_bytes: 0,
        ended_at: None,
        is_done: false,
    });
    exchanges.len() - 1
}

/// The place in the log where this request's story is written.
struct Note<'a> {
    shared: &'a Shared,
    place: usize,
}

impl Note<'_> {
    fn exchange(&mut self, write: impl FnOnce(&mut Exchange)) {
        if let Some(exchange) = self.shared.log().exchanges.get_mut(self.place) {
            write(exchange);
        }
    }

    fn end(&mut self, is_done: bool) {
        self.exchange(|exchange| (exchange.ended_at, exchange.is_done) = (Some(Instant::now()), is_done));
    }
}

/// What is planned, and whether it was done to the end.
async fn carry_out(
    shared: &Shared,
    note: &mut Note<'_>,
    stream: &mut TcpStream,
    request: &Message,
    plan: Plan,
) -> Result<(Next, bool)> {
    sleep(plan.wait_before).await;
    let answer = match ask(shared, request, plan.ask).await {
        Ok(answer) => answer,
        // The bank is away: so is the way to it, and the till hears it as a reset.
        Err(error) if is_gone(&error) => return Ok((Next::End(End::Reset), false)),
        Err(error) => return Err(error),
    };
    if plan.ask != Ask::Nobody {
        note.exchange(|exchange| exchange.from_bank = Some(answer.clone()));
    }
    sleep(plan.wait_after).await;
    let answer = match plan.make {
        Make::AsItIs => answer,
        Make::Other(make) => make(answer),
    };
    note.exchange(|exchange| exchange.answer_bytes = answer.bytes.len());
    give(note, stream, &answer, plan.give).await
}

pub(super) async fn ask(shared: &Shared, request: &Message, ask: Ask) -> Result<Message> {
    let bank = shared.bank();
    match ask {
        Ask::Nobody | Ask::NobodyUnread => Ok(Message::default()),
        Ask::Bank => answer_of(&mut sent_to(bank, request).await?).await,
        Ask::BankTwice(pick) => {
            let mut first = sent_to(bank, request).await?;
            let mut second = sent_to(bank, request).await?;
            let (first, second) = tokio::try_join!(answer_of(&mut first), answer_of(&mut second))?;
            Ok(if pick == Pick::First { first } else { second })
        }
    }
}

/// A connection of its own to the bank, with the request written to it.
async fn sent_to(bank: std::net::SocketAddr, request: &Message) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(bank).await?;
    stream.write_all(&request.bytes).await?;
    Ok(stream)
}

async fn answer_of(stream: &mut TcpStream) -> Result<Message> {
    let answer = timeout(BANK_ANSWER, Message::read(stream)).await.context("the bank does not answer")??;
    answer.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof).into())
}

/// Hands the answer over as planned.
async fn give(note: &mut Note<'_>, stream: &mut TcpStream, answer: &Message, give: Give) -> Result<(Next, bool)> {
    stream.set_nodelay(true)?;
    let bytes = &answer.bytes;
    let part = |at: At| at.of(answer).map(|at| &bytes[..at]).context("an answer that has no such place");
    match give {
        Give::Whole => {
            stream.write_all(bytes).await?;
            note.exchange(|exchange| exchange.given_bytes = bytes.len());
            Ok((Next::AnotherRequest, true))
        }
        Give::Cut(at, end) => {
            let part = part(at)?;
            stream.write_all(part).await?;
            note.exchange(|exchange| exchange.given_bytes = part.len());
            if end == End::Fin {
                stream.shutdown().await?;
            }
            Ok((Next::End(end), true))
        }
        Give::Silence(at) => {
            let part = part(at)?;
            stream.write_all(part).await?;
            note.exchange(|exchange| exchange.given_bytes = part.len());
            // Done once the other side has given up.
            let gave_up = gone(stream).await;
            Ok((Next::End(End::Reset), gave_up))
        }
        Give::Trickle(each) => {
            for byte in bytes {
                // Too slow for the other side is what it was meant to be: done, either way.
                tokio::select! {
                    () = sleep(each) => {}
                    gave_up = gone(stream) => return Ok((Next::End(End::Reset), gave_up)),
                }
                if stream.write_all(std::slice::from_ref(byte)).await.is_err() {
                    return Ok((Next::End(End::Reset), true));
                }
                note.exchange(|exchange| exchange.given_bytes += 1);
            }
            Ok((Next::AnotherRequest, true))
        }
        Give::Flood { last, up_to } => flood(note, stream, bytes, last, up_to).await,
    }
}

/// Writes more and more, until that many bytes were written or the other side is gone. Done either way.
async fn flood(
    note: &mut Note<'_>,
    stream: &mut TcpStream,
    answer: &[u8],
    last: usize,
    up_to: usize,
) -> Result<(Next, bool)> {
    stream.write_all(answer).await?;
    let again = &answer[answer.len().checked_sub(last).context("an answer shorter than its end")?..];
    let mut given = answer.len();
    while given < up_to {
        if !matches!(timeout(PATIENCE, stream.write_all(again)).await, Ok(Ok(()))) {
            break;
        }
        given += again.len();
        note.exchange(|exchange| exchange.given_bytes = given);
    }
    Ok((Next::End(End::Fin), true))
}

/// Waits until the other side closes; whether it did.
async fn gone(stream: &mut TcpStream) -> bool {
    matches!(timeout(PATIENCE, stream.read_u8()).await, Ok(Err(_)))
}

/// The head of the next request, which stays unread; none where there is none any more.
async fn peek(stream: &TcpStream) -> Result<Option<Message>> {
    let mut bytes = [0; 8 * 1_024];
    loop {
        let count = stream.peek(&mut bytes).await?;
        if count == 0 {
            return Ok(None);
        }
        if let Some(head) = Message::head_alone(&bytes[..count]) {
            return Ok(Some(head));
        }
        sleep(PEEK_EVERY).await;
    }
}
