//! A bank and its gateway as two processes over files that outlive them, and how they are killed.

use crate::{
    program::{LIMIT, Life, Program, Result},
    traffic::{Sheet, client, random_ms},
    wire::{Ask, OPERATOR, SECRET, Wire},
};
use hyper::Method;
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};
use std::{
    os::unix::process::ExitStatusExt,
    sync::Arc,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

const SIGKILL: i32 = 9;
/// How long a start takes on a machine that has time.
const QUICK_START: Duration = Duration::from_millis(100);

/// Both programs and their folder.
pub(crate) struct Site {
    pub(crate) dir: TempDir,
    pub(crate) bank: Program,
    pub(crate) gateway: Program,
}

/// What one storm did to a program.
#[derive(Debug, Default)]
pub(crate) struct Deaths {
    pub(crate) kills: u32,
    /// Of these, before the process had said that it was ready.
    pub(crate) unready: u32,
    pub(crate) slowest_start: Duration,
}

/// Faults that a program is told of whenever it has started.
pub(crate) type Faults = Box<dyn Fn(&mut StdRng) -> Value + Send + Sync>;

impl Site {
    pub(crate) fn new() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let gateway = Program::new(dir.path(), "gateway", "gateway --db gateway.db --lab")?;
        let line = format!(
            "serve --db bank.db --lab --wait 1s --token shop={SECRET} --operator {OPERATOR} --gateway-url http://{}",
            gateway.address
        );
        let bank = Program::new(dir.path(), "bank", &line)?;
        Ok(Self { dir, bank, gateway })
    }
}

/// Puts load on a bank until it is dropped or ended.
pub(crate) struct Load {
    pub(crate) sheet: Arc<Sheet>,
    stop: CancellationToken,
    clients: TaskTracker,
}

impl Load {
    pub(crate) fn start(site: &Site, clients: usize, seed: u64) -> Self {
        let load = Self { sheet: Arc::default(), stop: CancellationToken::new(), clients: TaskTracker::new() };
        for number in 0..clients {
            let chance = StdRng::seed_from_u64(seed ^ (number as u64 + 1) << 32);
            load.clients.spawn(client(site.bank.address, load.sheet.clone(), load.stop.clone(), chance));
        }
        load
    }

    pub(crate) async fn end(self) -> Result<Arc<Sheet>> {
        self.stop.cancel();
        self.clients.close();
        timeout(LIMIT, self.clients.wait()).await?;
        Ok(self.sheet)
    }
}

/// A start that is expected to last: up, ready, and with these faults.
pub(crate) async fn up(program: &Program, faults: &Value) -> Result<Life> {
    let mut life = program.start()?;
    let made = async {
        life.ready().await?;
        tell(program, faults).await
    };
    if let Err(error) = made.await {
        return Err(format!("{error}; its log ends with: {}", last_lines(program)?).into());
    }
    Ok(life)
}

pub(crate) async fn tell(program: &Program, faults: &Value) -> Result {
    let told = Wire::to(program.address).need(Ask::new(Method::PUT, "/lab/faults").with(faults)).await?;
    if told.status == 200 { Ok(()) } else { Err(format!("faults were refused: {}", told.json()).into()) }
}

/// Starts a program again and again and kills it after each `life`, until `enough` were killed or it is told to stop.
/// It must never end by itself.
pub(crate) async fn kill_again_and_again(
    program: &Program,
    enough: u32,
    stop: CancellationToken,
    mut chance: StdRng,
    life: fn(&mut StdRng) -> Duration,
    faults: Faults,
) -> Result<Deaths> {
    let mut deaths = Deaths::default();
    let mut usual_start = QUICK_START;
    while deaths.kills < enough && !stop.is_cancelled() {
        // Where starting takes long, all takes long, and lives are longer in proportion.
        let pace = usual_start.div_duration_f64(QUICK_START).clamp(1.0, 4.0);
        let (born, end) = (Instant::now(), life(&mut chance).mul_f64(pace));
        let rules = faults(&mut chance);
        let mut process = program.start()?;
        let mut ready = None;
        let living = async {
            process.ready().await?;
            ready = Some(born.elapsed());
            tell(program, &rules).await?;
            process.ended().await
        };
        let lived = timeout(end.saturating_sub(born.elapsed()), living).await;
        let status = match lived {
            Err(_) => process.kill().await?,
            Ok(ended) => return Err(format!("it failed by itself: {ended:?}: {}", last_lines(program)?).into()),
        };
        if status.signal() != Some(SIGKILL) {
            return Err(format!("it ended by itself: {status}: {}", last_lines(program)?).into());
        }
        deaths.kills += 1;
        deaths.unready += u32::from(ready.is_none());
        usual_start = ready.map_or(usual_start, |start| (usual_start * 3 + start) / 4);
        deaths.slowest_start = deaths.slowest_start.max(ready.unwrap_or_default());
    }
    Ok(deaths)
}

fn last_lines(program: &Program) -> Result<String> {
    let log = program.log()?;
    let lines: Vec<&str> = log.lines().rev().take(5).collect();
    Ok(lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
}

/// Lives of a bank: many end while it starts, many while it takes over what the last one left, some last.
pub(crate) fn life_of_bank(chance: &mut StdRng) -> Duration {
    match chance.random_range(0..100) {
        0..20 => random_ms(chance, 40),
        20..45 => random_ms(chance, 150),
        45..85 => Duration::from_millis(100) + random_ms(chance, 300),
        _ => Duration::from_millis(400) + random_ms(chance, 1_000),
    }
}

/// Lives of a gateway, which must be up often enough that something happens.
pub(crate) fn life_of_gateway(chance: &mut StdRng) -> Duration {
    Duration::from_millis(500) + random_ms(chance, 3_000)
}

/// All that a gateway can do wrong and that its bank gets over by itself.
pub(crate) fn faulty_gateway(chance: &mut StdRng) -> Value {
    let mut rules = Vec::new();
    for at in ["received", "committed"] {
        rules.extend([
            json!({"at": at, "do": "hang", "probability": 0.002}),
            json!({"at": at, "do": "delay", "ms": chance.random_range(1..60), "probability": 0.1}),
            json!({"at": at, "do": "drop", "probability": 0.05}),
            json!({"at": at, "do": "status", "status": 500, "probability": 0.04}),
            json!({"at": at, "do": "status", "status": 503, "retry_after": 1, "probability": 0.02}),
            json!({"at": at, "do": "truncate", "probability": 0.04}),
            json!({"at": at, "do": "garbage", "probability": 0.03}),
        ]);
    }
    seeded(rules, chance)
}

/// Pauses in the bank itself, so that kills meet every point of the way.
pub(crate) fn slow_bank(chance: &mut StdRng) -> Value {
    let points = ["received", "claimed", "gateway_answered", "saved"];
    let rules = points.map(
        |at| json!({"at": at, "do": "delay", "ms": chance.random_range(1..40), "probability": 0.1, "times": 10_000}),
    );
    seeded(rules.into(), chance)
}

fn seeded(mut rules: Vec<Value>, chance: &mut StdRng) -> Value {
    for rule in &mut rules {
        rule["seed"] = chance.random::<u32>().into();
    }
    rules.into()
}
