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
        let bank = named_bank(text(BANK_URL)?, text(BANK_TOKEN)?)?;
        Ok(Self { data_dir, bank })
    }
}

/// One without the other is a slip, and the till would ask another bank than was meant.
fn named_bank(url: Option<String>, token: Option<String>) -> Result<Option<outbox::Bank>> {
    match (url, token) {
        (Some(url), Some(token)) => Ok(Some(outbox::Bank { url, token: outbox::Secret::new(token) })),
        (Some(_), None) => bail!("{BANK_URL} names a bank, and {BANK_TOKEN} does not say its secret"),
        (None, Some(_)) => bail!("{BANK_TOKEN} says a bank's secret, and {BANK_URL} does not name the bank"),
        (None, None) => Ok(None),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bank_is_named_with_its_secret_or_not_at_all() {
        let said =
            |url: Option<&str>, token: Option<&str>| named_bank(url.map(str::to_owned), token.map(str::to_owned));
        let (url, token) = ("http://127.0.0.1:8460", "sk_shop");
        assert_eq!(said(Some(url), Some(token)).unwrap().unwrap().url, url);
        assert!(said(None, None).unwrap().is_none());
        for (url, token, missing) in [(Some(url), None, BANK_TOKEN), (None, Some(token), BANK_URL)] {
            let Err(refused) = said(url, token) else { panic!("{missing} is missing") };
            assert!(refused.to_string().contains(missing), "{refused}");
            assert!(!refused.to_string().contains("sk_shop"), "{refused}");
        }
    }
}
