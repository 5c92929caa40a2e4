//! What the app is told from outside.

use std::{env, path::PathBuf};

use anyhow::{Context, Result, bail};

/// The folder with the till's data; by default this system's for application data.
const DATA_DIR: &str = "KASSA_DATA_DIR";
/// The bank's address; without it the app runs the bundled one.
const BANK_URL: &str = "KASSA_BANK_URL";
/// The secret that names this shop at that bank.
const BANK_TOKEN: &str = "KASSA_BANK_TOKEN";

/// A start's circumstances.
pub(crate) struct Environment {
    pub(crate) data_dir: PathBuf,
    /// None: the bundled bank.
    pub(crate) bank: Option<outbox::Bank>,
}

impl Environment {
    /// Reads it.
    ///
    /// # Errors
    /// Where something is missing, in words for who set it.
    pub(crate) fn read() -> Result<Self> {
        let data_dir = match env::var_os(DATA_DIR).filter(|value| !value.is_empty()) {
            Some(named) => std::path::absolute(named).with_context(|| format!("{DATA_DIR} names no folder"))?,
            None => till::default_data_dir()
                .with_context(|| format!("this system has no folder for application data: name one with {DATA_DIR}"))?,
        };
        let bank = match (text(BANK_URL)?, text(BANK_TOKEN)?) {
            (Some(url), Some(token)) => Some(outbox::Bank { url, token: outbox::Secret::new(token) }),
            (Some(_), None) => bail!("{BANK_URL} names a bank, and {BANK_TOKEN} does not say its secret"),
            (None, _) => None,
        };
        Ok(Self { data_dir, bank })
    }
}

fn text(name: &str) -> Result<Option<String>> {
    match env::var(name) {
        Ok(value) if value.is_empty() => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => bail!("{name} is not text"),
    }
}
