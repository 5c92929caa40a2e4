//! How bank and gateway are set up.

use crate::{http::secrets::Secret, lab::LabConfig};
use std::{path::PathBuf, time::Duration};

/// How long a response is stored where nothing else is said.
pub const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a repeat waits for the outcome where nothing else is said.
pub const WAIT: Duration = Duration::from_secs(3);

/// How the bank is set up.
#[derive(Debug, Clone)]
pub struct BankConfig {
    /// The bank's database; made where it is not there. Its lock file, its own gateway's database and its
    /// secret stand beside it.
    pub db: PathBuf,
    /// Names besides the listening address and `localhost` under which the bank may be called.
    pub hosts: Vec<String>,
    /// Merchants and their secrets. Without any there is one merchant `demo`, with a secret made at the first start.
    pub tokens: Vec<Token>,
    /// The gateway's address; without it the bank brings one along.
    pub gateway_url: Option<String>,
    /// How long a response is stored.
    pub retention: Duration,
    /// How long a repeat waits for the outcome.
    pub wait: Duration,
    /// The secret of the bank's own people; without it their calls are not there.
    pub operator: Option<Secret>,
    /// The fault lab, of the bank and of the gateway that it brings along.
    pub lab: Option<LabConfig>,
}

impl BankConfig {
    /// The bank over that database, with its own gateway, the demo merchant, and no lab.
    #[must_use]
    pub fn new(db: impl Into<PathBuf>) -> Self {
        Self {
            db: db.into(),
            hosts: Vec::new(),
            tokens: Vec::new(),
            gateway_url: None,
            retention: RETENTION,
            wait: WAIT,
            operator: None,
            lab: None,
        }
    }
}

/// How a gateway is set up.
#[derive(Debug, Clone)]
pub struct GatewayConfig {
    /// The gateway's database; made where it is not there.
    pub db: PathBuf,
    /// Names besides the listening address and `localhost` under which the gateway may be called.
    pub hosts: Vec<String>,
    /// What whoever moves money must prove itself by; none where whoever reaches the gateway may.
    pub secret: Option<Secret>,
    /// The fault lab.
    pub lab: Option<LabConfig>,
}

/// A merchant and one of its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The merchant's name.
    pub merchant: String,
    /// One of its secrets.
    pub secret: Secret,
}

/// Characters of a merchant's name at most.
const MERCHANT_CHARS_MAX: usize = 64;
/// Characters of a secret at least: enough to type a short one for a demo.
const SECRET_CHARS_MIN: usize = 4;

impl Token {
    /// Reads `MERCHANT=SECRET`. The error never repeats the text.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (merchant, secret) = text.split_once('=').ok_or("a token is written MERCHANT=SECRET")?;
        let named = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if merchant.is_empty() || merchant.len() > MERCHANT_CHARS_MAX || !merchant.chars().all(named) {
            return Err("a merchant's name is made of 1 to 64 letters, digits, '-', '_' and '.'");
        }
        Ok(Self { merchant: merchant.to_owned(), secret: Secret::parse(secret)? })
    }
}

impl Secret {
    /// Reads a secret. The error never repeats the text.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.len() < SECRET_CHARS_MIN || !text.chars().all(|c| c.is_ascii_graphic()) {
            return Err("a secret is made of at least 4 visible characters of ASCII");
        }
        Ok(Self::new(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_and_a_wrong_one_is_not_repeated() {
        let token = Token::parse("shop_a=sk_a=b").unwrap();
        assert_eq!((token.merchant.as_str(), token.secret.expose()), ("shop_a", "sk_a=b"));
        for wrong in
            ["sk_secret", "=sk_secret", "shop a=sk_secret", "shop=", "shop=abc", "shop=sk secret", "shop=sk_é\u{7f}"]
        {
            let error = Token::parse(wrong).unwrap_err();
            assert!(!error.contains("sk_"), "{error}");
        }
    }
}
