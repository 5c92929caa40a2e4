//! The example, run as a stranger would run it: so that it stays true.
#![cfg(unix)]

use reqwest::{Client, Response};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, SystemTime},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

const KEY: &str = "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b";
/// The longest that any step may take.
const LIMIT: Duration = Duration::from_secs(20);

/// The built example. It is built together with the tests, unless this file alone was asked for.
fn program() -> Result<PathBuf> {
    let deps = std::env::current_exe()?;
    let profile = deps.parent().and_then(Path::parent).ok_or("no build folder")?;
    let program = profile.join("examples/labels");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/labels.rs");
    let built = fs::metadata(&program).and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    if built < fs::metadata(source)?.modified()? {
        let mut cargo = std::process::Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--offline", "--package", "idempotency", "--example", "labels"]);
        cargo.arg("--target-dir").arg(profile.parent().ok_or("no target folder")?);
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        if !cargo.status()?.success() {
            return Err("the example does not build".into());
        }
    }
    Ok(program)
}

struct Labels {
    url: String,
    child: Child,
    http: Client,
}

impl Labels {
    async fn start(folder: &Path, print_ms: u32) -> Result<Self> {
        let mut command = Command::new(program()?);
        command.arg("127.0.0.1:0").arg(folder).arg(print_ms.to_string());
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().ok_or("no output")?;
        timeout(LIMIT, BufReader::new(out).read_line(&mut line)).await??;
        let url = line.trim().strip_prefix("listening on ").ok_or("it doesn't listen")?.to_owned();
        Ok(Self { url, child, http: Client::builder().no_proxy().build()? })
    }

    async fn ask(&self, key: &str, body: &str) -> reqwest::Result<Response> {
        let request = self.http.post(format!("{}/labels", self.url)).header("Idempotency-Key", key);
        request.body(body.to_owned()).timeout(LIMIT).send().await
    }

    async fn operation(&self, key: &str) -> Result<Value> {
        Ok(self.http.get(format!("{}/operations/{key}", self.url)).send().await?.json().await?)
    }
}

/// Sheets in the printer's tray.
fn sheets(folder: &Path) -> Result<usize> {
    Ok(fs::read_dir(folder.join("tray"))?.count())
}

const FOR_ANN: &str = r#"{"parcel":"P-1","to":"Ann","weight_g":500}"#;

#[tokio::test]
async fn a_label_is_printed_once_replayed_and_its_key_is_good_for_nothing_else() -> Result {
    let dir = tempfile::tempdir()?;
    let labels = Labels::start(dir.path(), 0).await?;
    let first = labels.ask(KEY, FOR_ANN).await?;
    assert_eq!((first.status().as_u16(), &first.headers()["idempotent-replayed"]), (201, &"false".parse()?));
    let first = first.bytes().await?;
    let again = labels.ask(KEY, r#" {"weight_g":500,"parcel":"\u0050-1","to":"Ann"}"#).await?;
    assert_eq!((again.status().as_u16(), &again.headers()["idempotent-replayed"]), (201, &"true".parse()?));
    assert_eq!(again.bytes().await?, first);
    let other = labels.ask(KEY, r#"{"parcel":"P-1","to":"Bob","weight_g":500}"#).await?;
    assert_eq!(other.status(), 422);
    assert_eq!(other.json::<Value>().await?["differs"], json!(["to"]));
    assert_eq!(labels.ask("7", FOR_ANN).await?.status(), 400);
    assert_eq!(labels.ask(KEY, r#"{"parcel":"P-1","to":"Ann","weight_g":500,"more":1}"#).await?.status(), 400);
    assert_eq!(labels.operation(KEY).await?, json!({"state": "printed", "label": "label-1"}));
    assert_eq!(sheets(dir.path())?, 1);
    Ok(())
}

#[tokio::test]
async fn killed_in_the_middle_it_finishes_the_label_after_the_next_start_with_nobody_asking() -> Result {
    let dir = tempfile::tempdir()?;
    let mut labels = Labels::start(dir.path(), 60_000).await?;
    let asking = async { labels.ask(KEY, FOR_ANN).await.is_err() };
    let claimed = async {
        while labels.operation(KEY).await?["state"] != "processing" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Result::Ok(())
    };
    tokio::select! {
        _ = asking => return Err("it was answered".into()),
        claimed = timeout(LIMIT, claimed) => claimed??,
    }
    labels.child.kill().await?;
    assert_eq!(sheets(dir.path())?, 0);

    let labels = Labels::start(dir.path(), 0).await?;
    let printed = async {
        while labels.operation(KEY).await?["state"] != "printed" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Result::Ok(())
    };
    timeout(LIMIT, printed).await??;
    assert_eq!(sheets(dir.path())?, 1);
    assert_eq!(labels.ask(KEY, FOR_ANN).await?.headers()["idempotent-replayed"], "true");
    Ok(())
}

#[tokio::test]
async fn told_to_end_it_answers_what_runs_and_goes() -> Result {
    let dir = tempfile::tempdir()?;
    let mut labels = Labels::start(dir.path(), 3_000).await?;
    let pid = labels.child.id().ok_or("it has ended")?.to_string();
    let ending = async {
        let claimed = async {
            while labels.operation(KEY).await?["state"] != "processing" {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Result::Ok(())
        };
        timeout(LIMIT, claimed).await??;
        Ok(std::process::Command::new("kill").args(["-s", "INT", &pid]).status()?.success())
    };
    let (answer, ending): (_, Result<bool>) = tokio::join!(labels.ask(KEY, FOR_ANN), ending);
    assert!(ending?, "the signal was not sent");
    assert_eq!(answer?.status(), 201);
    assert!(timeout(LIMIT, labels.child.wait()).await??.success());
    Ok(())
}
