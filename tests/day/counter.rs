//! The script's hand at the till: it starts the till's process, clicks, and where the process died it starts it again and goes on with
//! the click that was not answered. What the click had done already is found; what it had not is done now.

use std::{
    collections::VecDeque,
    env,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use rand::{Rng as _, rngs::StdRng};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};

use crate::{
    books::{flag, int},
    click::{Answer, Asked, Click, Pin},
    deaths::Deaths,
    harness::process::Process,
    till_process::{ALONE, BANK, CLICKS, DATA},
};

const START_LIMIT: Duration = Duration::from_secs(30);
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
const END_LIMIT: Duration = Duration::from_secs(30);
/// How long a click that is to be struck has run by then.
const STRUCK_AFTER_US: std::ops::Range<u64> = 0..4_000;

/// How an unanswered click was taken up again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TakenUp {
    /// It was saved before the death.
    pub(crate) found: u32,
    /// It was not, and was done now.
    pub(crate) made_again: u32,
}

/// The till's process and what is needed to start it again.
pub(crate) struct Counter {
    folder: PathBuf,
    bank_url: String,
    listener: TcpListener,
    life: Option<Life>,
    lives: u32,
    /// The named points of the coming lives.
    points: VecDeque<&'static str>,
    /// That of this one.
    point: Option<&'static str>,
    /// The next click is struck from outside.
    strike: Option<(&'static str, u64)>,
    /// Who is logged in.
    cashier: Option<Pin>,
    /// The sale in front, as it was told last.
    front: Value,
    pub(crate) deaths: Deaths,
    /// In the middle of which click, in the order of the deaths.
    pub(crate) died_at: Vec<String>,
    pub(crate) taken_up: TakenUp,
}

struct Life {
    process: Process,
    stream: BufReader<TcpStream>,
}

impl Counter {
    /// Starts a till on the folder `till` below that one. Its first lives end at these points, `NAME:PASS` each.
    pub(crate) async fn open(folder: &Path, bank_url: &str, points: &[&'static str]) -> Result<Self> {
        let mut counter = Self {
            folder: folder.to_owned(),
            bank_url: bank_url.to_owned(),
            listener: TcpListener::bind("127.0.0.1:0").await?,
            life: None,
            lives: 0,
            points: points.iter().copied().collect(),
            point: None,
            strike: None,
            cashier: None,
            front: Value::Null,
            deaths: Deaths::default(),
            died_at: Vec::new(),
            taken_up: TakenUp::default(),
        };
        counter.start().await?;
        Ok(counter)
    }

    /// Ends the till well: its clicks end.
    pub(crate) async fn close(mut self) -> Result<()> {
        let Life { mut process, stream } = self.life.take().context("the till is down")?;
        drop(stream);
        let status = process.ended(END_LIMIT).await?;
        ensure!(status.success(), "{status}: {} {}", process.said()?, process.printed()?);
        Ok(())
    }

    /// Logs somebody in, also after each start from now on.
    pub(crate) async fn log_in(&mut self, pin: Pin) -> Result<()> {
        let Pin { person_id, digits } = pin.clone();
        self.done(Click::LogIn { person_id, pin: digits }).await?;
        self.cashier = Some(pin);
        Ok(())
    }

    /// The next click is met by a kill from outside, some time after it was sent.
    pub(crate) fn strike_next(&mut self, name: &'static str, chance: &mut StdRng) {
        self.strike = Some((name, chance.random_range(STRUCK_AFTER_US)));
    }

    /// A click that must be done.
    pub(crate) async fn done(&mut self, click: Click) -> Result<Value> {
        self.done_by(click, None).await
    }

    /// The same with somebody's approval.
    pub(crate) async fn done_by(&mut self, click: Click, approval: Option<&Pin>) -> Result<Value> {
        match self.click(click.clone(), approval).await? {
            Answer::Done(value) => Ok(value),
            Answer::Refused { code, message } => bail!("{click:?} was refused: {code}: {message}"),
        }
    }

    /// A click that must be refused: the code and the words.
    pub(crate) async fn refused(&mut self, click: Click) -> Result<(String, String)> {
        match self.click(click.clone(), None).await? {
            Answer::Done(value) => bail!("{click:?} was not refused: {value}"),
            Answer::Refused { code, message } => Ok((code, message)),
        }
    }

    /// Clicks until it is answered, over however many lives.
    pub(crate) async fn click(&mut self, click: Click, approval: Option<&Pin>) -> Result<Answer> {
        let asked = Asked { click, approval: approval.cloned() };
        loop {
            let answer = match self.strike.take() {
                Some((name, after_us)) => self.struck(&asked, name, after_us).await?,
                None => self.ask(&asked).await?,
            };
            if let Some(answer) = answer {
                self.remember(&asked.click, &answer);
                return Ok(answer);
            }
            self.died(&asked.click).await?;
            self.start().await?;
            match self.look_for(&asked.click).await? {
                Looked::Died | Looked::NotLookedFor => {}
                Looked::Nothing => self.taken_up.made_again += 1,
                Looked::Same => self.taken_up.found += 1,
                Looked::Whole(value) => {
                    self.taken_up.found += 1;
                    let answer = Answer::Done(value);
                    self.remember(&asked.click, &answer);
                    return Ok(answer);
                }
            }
        }
    }

    /// What an unanswered click did before the till died.
    async fn look_for(&mut self, click: &Click) -> Result<Looked> {
        let look = async |counter: &mut Self, click| {
            let answer = counter.ask(&Asked { click, approval: None }).await?;
            match answer {
                None => Ok(None),
                Some(Answer::Done(value)) => Ok(Some(value)),
                Some(Answer::Refused { code, message }) => bail!("a look was refused: {code}: {message}"),
            }
        };
        match click {
            // The same once more would be one more: the cashier looks at the sale first.
            click if click.adds_up() => match look(self, Click::OpenSale).await? {
                None => Ok(Looked::Died),
                Some(sale) if sale == self.front => Ok(Looked::Nothing),
                Some(sale) => Ok(Looked::Whole(sale)),
            },
            Click::Park { sale_id, .. } => match look(self, Click::Sale { sale_id: *sale_id }).await? {
                None => Ok(Looked::Died),
                Some(sale) if !flag(&sale, "held")? => Ok(Looked::Nothing),
                Some(_) => Ok(look(self, Click::OpenSale).await?.map_or(Looked::Died, Looked::Whole)),
            },
            // These have an id of their own, and are clicked again whatever is there.
            Click::PayCard { tender_id, sale_id, .. } | Click::PayCash { tender_id, sale_id, .. } => {
                let Some(sale) = look(self, Click::Sale { sale_id: *sale_id }).await? else { return Ok(Looked::Died) };
                let tenders = sale["tenders"].as_array().context("a sale with no tenders")?;
                let is_there = tenders.iter().any(|tender| tender["id"] == tender_id.to_string());
                Ok(if is_there { Looked::Same } else { Looked::Nothing })
            }
            _ => Ok(Looked::NotLookedFor),
        }
    }

    /// Asks the process, and gives its answer; none where it died.
    async fn ask(&mut self, asked: &Asked) -> Result<Option<Answer>> {
        let line = serde_json::to_string(asked)? + "\n";
        let stream = &mut self.life.as_mut().context("the till is down")?.stream;
        if stream.write_all(line.as_bytes()).await.is_err() {
            return Ok(None);
        }
        let mut line = String::new();
        let read = timeout(ANSWER_LIMIT, stream.read_line(&mut line)).await;
        match read.with_context(|| format!("no answer to {asked:?}"))? {
            Ok(0) | Err(_) => Ok(None),
            Ok(_) if !line.ends_with('\n') => Ok(None),
            Ok(_) => Ok(Some(serde_json::from_str(&line)?)),
        }
    }

    /// Asks, and kills the process from outside before the answer was read.
    async fn struck(&mut self, asked: &Asked, name: &'static str, after_us: u64) -> Result<Option<Answer>> {
        let line = serde_json::to_string(asked)? + "\n";
        let life = self.life.as_mut().context("the till is down")?;
        life.stream.write_all(line.as_bytes()).await?;
        sleep(Duration::from_micros(after_us)).await;
        life.process.kill()?;
        self.point = Some(name);
        Ok(None)
    }

    fn remember(&mut self, click: &Click, answer: &Answer) {
        let is_front = click.adds_up() || matches!(click, Click::NewSale | Click::OpenSale | Click::Resume { .. });
        let is_edit = matches!(
            click,
            Click::SetPrice { .. }
                | Click::DiscountLine { .. }
                | Click::DiscountSale { .. }
                | Click::SetTip { .. }
                | Click::SetNote { .. }
                | Click::Park { .. }
                | Click::Drop { .. }
                | Click::Hold { .. }
        );
        if let Answer::Done(sale) = answer
            && (is_front || is_edit)
        {
            self.front = sale.clone();
        }
    }

    /// Counts a death where it was to be, and fails at any other end.
    async fn died(&mut self, click: &Click) -> Result<()> {
        let mut life = self.life.take().context("the till is down")?;
        let status = life.process.ended(END_LIMIT).await?;
        let place = self.point.take().unwrap_or("nowhere named");
        self.deaths
            .killed(place, status)
            .with_context(|| format!("{click:?}: {:?} {:?}", life.process.said(), life.process.printed()))?;
        let click = format!("{click:?}");
        self.died_at.push(format!("{place}, in {}", click.split([' ', '{']).next().unwrap_or_default()));
        Ok(())
    }

    async fn start(&mut self) -> Result<()> {
        self.lives += 1;
        let mut command = Command::new(env::current_exe()?);
        command.args(ALONE).env(CLICKS, self.listener.local_addr()?.to_string());
        command.env(DATA, self.folder.join("till")).env(BANK, &self.bank_url).env_remove("KASSA_DIE_AT");
        self.point = self.points.pop_front();
        if let Some(point) = self.point {
            command.env("KASSA_DIE_AT", point);
        }
        let mut process = Process::start(&format!("till-{}", self.lives), &mut command, &self.folder)?;
        let stream = match timeout(START_LIMIT, self.listener.accept()).await {
            Ok(accepted) => accepted?.0,
            Err(_) => {
                bail!("the till did not start: {:?} {} {}", process.has_ended()?, process.said()?, process.printed()?)
            }
        };
        stream.set_nodelay(true)?;
        self.life = Some(Life { process, stream: BufReader::new(stream) });
        if let Some(Pin { person_id, digits: pin }) = self.cashier.clone() {
            let asked = Asked { click: Click::LogIn { person_id, pin }, approval: None };
            let session = self.ask(&asked).await?.context("the till died at once")?;
            let Answer::Done(session) = session else { bail!("{session:?}") };
            ensure!(!flag(&session, "locked")? && int(&session["person"], "id")? == person_id, "{session}");
        }
        Ok(())
    }
}

enum Looked {
    /// The till died again.
    Died,
    /// The same again changes nothing, whatever is there.
    NotLookedFor,
    /// Nothing of it is there.
    Nothing,
    /// It is there, and the same again changes nothing.
    Same,
    /// It is there, and this is what it would have answered.
    Whole(Value),
}
