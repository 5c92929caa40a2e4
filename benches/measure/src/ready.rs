//! What a process of a bench says once it can be asked, and how it knows that nobody will ask any more.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use tokio::net::TcpListener;

/// A setting as the database gave it back when it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// What it is called.
    pub name: String,
    /// What it is.
    pub value: String,
}

impl Setting {
    /// A setting as it was read.
    ///
    /// # Errors
    /// Where the value is not the one that was asked for: what was set and not taken promises nothing.
    pub fn read(name: &str, value: String, wanted: Option<&str>) -> Result<Self> {
        ensure!(
            wanted.is_none_or(|wanted| wanted == value),
            "{name} is {value}, and has to be {}",
            wanted.unwrap_or("-")
        );
        Ok(Self { name: name.to_owned(), value })
    }
}

/// What a process of the bench says once it listens.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ready {
    ready: bool,
    /// Where.
    pub url: String,
    /// What its database said of itself.
    #[serde(default)]
    pub settings: Vec<Setting>,
}

/// Tells whoever waits for it where it listens, and how its database is set.
///
/// # Errors
/// Nobody can be told.
pub fn say_ready(listener: &TcpListener, settings: &[Setting]) -> Result<()> {
    let ready = Ready { ready: true, url: format!("http://{}", listener.local_addr()?), settings: settings.to_vec() };
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, &ready)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

/// Ends when the standard input does, which whoever started this process holds open.
pub async fn parent_gone() {
    let (gone, told) = tokio::sync::oneshot::channel();
    // A thread of its own, which the end of the runtime does not wait for.
    std::thread::spawn(move || {
        let mut byte = [0];
        while matches!(std::io::stdin().read(&mut byte), Ok(1)) {}
        // Nobody listens where the process ends by itself.
        let _ = gone.send(());
    });
    // The sender lives until it has told.
    let _ = told.await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_was_not_taken_is_noticed() {
        let read = |value: &str, wanted| Setting::read("synchronous", value.to_owned(), wanted);
        assert_eq!(read("2", Some("2")).unwrap().value, "2");
        assert_eq!(read("anything", None).unwrap().value, "anything");
        assert_eq!(read("1", Some("2")).unwrap_err().to_string(), "synchronous is 1, and has to be 2");
    }
}
