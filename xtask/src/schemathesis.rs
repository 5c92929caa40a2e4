//! `cargo xtask schemathesis`: asks the bank, with thousands of made-up requests, whether its OpenAPI document is true.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::step::{cargo, installed, program, root, step, succeed, target};

/// Where configuration, hooks and the version of schemathesis are kept.
const FOLDER: &str = "tests/schemathesis";
/// The merchant, its secret, and the operator's, of the bank that is asked.
const MERCHANT: &str = "shop";
const SECRET: &str = "sk_schemathesis";
const OPERATOR: &str = "op_schemathesis";
/// Where chance begins, where nothing else is asked for.
const SEEDS: [u32; 3] = [1, 2, 3];
/// Requests for each call and kind of test, where nothing else is asked for.
const EXAMPLES: u32 = 60;
/// How long the bank may take to be ready, and to answer one question.
const READY_TIME_MAX: Duration = Duration::from_secs(20);

#[derive(Args)]
pub(crate) struct Options {
    /// Where chance begins; each seed is a run of its own
    #[arg(long = "seed", value_name = "NUMBER", default_values_t = SEEDS)]
    seeds: Vec<u32>,
    /// Requests for each call and kind of test
    #[arg(long, value_name = "NUMBER", default_value_t = EXAMPLES)]
    examples: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { seeds: SEEDS.to_vec(), examples: EXAMPLES }
    }
}

/// Why the check can't be made here: what it needs can't be had.
pub(crate) struct LeftOut(pub(crate) String);

/// Gets schemathesis, builds and starts a bank, and asks it.
///
/// # Errors
/// Where schemathesis can't be had, and where the document is not true.
pub(crate) fn run(options: &Options) -> Result<()> {
    match install() {
        Ok(program) => {
            step("Bank: build", || succeed(cargo().args(["build", "--package", "bank"])))?;
            check(&program, options)
        }
        Err(LeftOut(why)) => bail!("{why}"),
    }
}

/// Gets schemathesis into a folder of its own below `target`. A second time there is nothing to do.
pub(crate) fn install() -> Result<PathBuf, LeftOut> {
    if !installed("python3") {
        return Err(LeftOut("there is no python3 here: install Python 3.10 or newer, with its venv module".into()));
    }
    let folder = target().join("schemathesis");
    let (wanted, stamp) = (root().join(FOLDER).join("requirements.txt"), folder.join("requirements.txt"));
    let program_path = folder.join("bin/schemathesis");
    let known = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    if known(&stamp) == known(&wanted) && program_path.is_file() {
        return Ok(program_path);
    }
    let made = step("Schemathesis: install", || {
        succeed(program("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        let mut pip = program(folder.join("bin/python"));
        // Where there is no way out, that is known soon.
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--timeout",
            "20",
            "--retries",
            "1",
        ]);
        succeed(pip.arg("--requirement").arg(&wanted))?;
        fs::copy(&wanted, &stamp).with_context(|| format!("cannot write {}", stamp.display()))
    });
    match made {
        Ok(_) => Ok(program_path),
        Err(error) => {
            Err(LeftOut(format!("schemathesis needs python3 with its venv module, and the Python registry: {error:#}")))
        }
    }
}

/// Asks a bank that was built, once for each seed.
///
/// # Errors
/// Where the bank can't be started, and where the document is not true.
pub(crate) fn check(schemathesis: &Path, options: &Options) -> Result<()> {
    let place = target().join("schemathesis-run");
    if place.exists() {
        fs::remove_dir_all(&place).with_context(|| format!("cannot empty {}", place.display()))?;
    }
    fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let bank = Bank::start(&place)?;
    for seed in &options.seeds {
        step(&format!("Bank: its OpenAPI document, asked by schemathesis from seed {seed}"), || {
            // In a chain of calls the secret of the first is kept, so the operator's calls are asked apart.
            succeed(bank.asked_by(schemathesis, *seed, options).args(["--exclude-tag", "Operator"]))?;
            let mut apart = bank.asked_by(schemathesis, *seed, options);
            succeed(apart.args(["--include-tag", "Operator", "--phases", "examples,coverage,fuzzing"]))
        })?;
    }
    Ok(())
}

/// A bank that runs until it is dropped.
struct Bank {
    process: Child,
    url: String,
    id: String,
    place: PathBuf,
}

impl Bank {
    fn start(place: &Path) -> Result<Self> {
        let log = fs::File::create(place.join("bank.log")).context("cannot write the bank's log")?;
        let mut command = program(target().join("debug/kassa-bank"));
        command.args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--token",
            &format!("{MERCHANT}={SECRET}"),
            "--operator",
            OPERATOR,
        ]);
        command.arg("--db").arg(place.join("bank.db")).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut process = command.spawn().context("cannot start kassa-bank")?;
        let out = process.stdout.take();
        // From here on it is ended whatever goes wrong.
        let mut bank = Self { process, url: String::new(), id: String::new(), place: place.to_owned() };
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let read = out.map(|out| BufReader::new(out).read_line(&mut line));
            // Nobody listens any more where it took too long.
            let _ = tell.send(read.is_some().then_some(line));
        });
        let line = told.recv_timeout(READY_TIME_MAX).ok().flatten().unwrap_or_default();
        bank.url = member(&line, "url")
            .with_context(|| format!("kassa-bank is not ready; see {}/bank.log", place.display()))?;
        bank.id = member(&policy(&bank.url)?, "bank_id").context("the policy names no bank")?;
        Ok(bank)
    }

    /// A run of schemathesis. Whatever it writes, it writes below `target`.
    fn asked_by(&self, schemathesis: &Path, seed: u32, options: &Options) -> Command {
        let folder = root().join(FOLDER);
        let mut command = Command::new(schemathesis);
        command.current_dir(&self.place);
        command.env("PYTHONPATH", &folder).env("SCHEMATHESIS_HOOKS", "hooks").env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("KASSA_MERCHANT", MERCHANT).env("KASSA_SECRET", SECRET).env("KASSA_OPERATOR", OPERATOR);
        command.env("KASSA_BANK_ID", &self.id);
        command.arg("--config-file").arg(folder.join("schemathesis.toml"));
        command.args(["run", &format!("{}/openapi.json", self.url)]);
        command.args(["--seed", &seed.to_string(), "--max-examples", &options.examples.to_string()]);
        command
    }
}

impl Drop for Bank {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The bank's policy, as it comes over the wire.
fn policy(url: &str) -> Result<String> {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).context("the bank can't be reached")?;
    stream.set_read_timeout(Some(READY_TIME_MAX)).context("no time limit")?;
    let request = format!(
        "GET /v1/policy HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {SECRET}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).context("the bank can't be asked")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("the bank doesn't answer")?;
    Ok(answer)
}

/// The value of a member of one of the bank's own JSON lines: a plain text, with nothing escaped in it.
fn member(json: &str, name: &str) -> Option<String> {
    let (_, after) = json.split_once(&format!("\"{name}\":\""))?;
    after.split_once('"').map(|(value, _)| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_found_by_its_whole_name() {
        let line = r#"{"ready":true,"gateway_url":"http://b","url":"http://a"}"#;
        assert_eq!(member(line, "url").as_deref(), Some("http://a"));
        assert_eq!(member(line, "ready"), None);
        assert_eq!(member("", "url"), None);
    }
}
