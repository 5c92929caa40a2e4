//! What is wrong with the bank, at which payment, and that it was met.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::{
    click::Click,
    day::{Day, SETTLE_LIMIT},
    harness::until,
    plan::Weather,
};

/// How many payments meet the bank that says 429: each of them costs everybody a second or two.
const LIMITED_MAX: u32 = 3;

impl Weather {
    /// What a payment meets in it, in the table.
    fn name(self) -> &'static str {
        match self {
            Self::Fair => "none",
            Self::Away => "refuses connections",
            Self::Drops => "drops the answer after charging",
            Self::Fails => "500 after charging",
            Self::Limits => "429",
            Self::Hangs => "hangs after charging",
            Self::Tears => "tears the answer",
            Self::Behind => "its gateway's answer is lost",
        }
    }
}

impl Day {
    /// The weather changes.
    pub(crate) async fn becomes(&mut self, weather: Weather) -> Result<()> {
        (self.weather, self.cards_in_weather) = (weather, 0);
        if weather == Weather::Away {
            self.bank.kill()?;
        }
        Ok(())
    }

    /// It is fair again, and all that waited settles.
    pub(crate) async fn clears(&mut self) -> Result<()> {
        if self.weather == Weather::Away {
            self.bank.start_again().await?;
            self.done(Click::CheckNow).await?;
        } else {
            self.bank.no_faults().await?;
        }
        self.weather = Weather::Fair;
        self.settle().await
    }

    /// Lets the payment that comes meet what this weather has, where it is its turn: each second one. Gives whether it is to.
    pub(crate) async fn gathers(&mut self) -> Result<bool> {
        self.cards_in_weather += 1;
        let turn = self.cards_in_weather;
        if turn.is_multiple_of(2) {
            return Ok(false);
        }
        let rule = match self.weather {
            Weather::Fair | Weather::Away | Weather::Hangs => return Ok(false),
            Weather::Limits if turn > 2 * LIMITED_MAX => return Ok(false),
            Weather::Drops => json!({"at": "saved", "do": "drop", "times": 1}),
            Weather::Fails => json!({"at": "saved", "do": "status", "status": 500, "times": 1}),
            Weather::Limits => json!({"at": "received", "do": "status", "status": 429, "retry_after": 1, "times": 1}),
            Weather::Tears if turn % 4 == 1 => json!({"at": "saved", "do": "truncate", "times": 1}),
            Weather::Tears => json!({"at": "saved", "do": "garbage", "times": 1}),
            Weather::Behind if turn % 4 == 1 => json!({"at": "committed", "do": "drop", "times": 1}),
            Weather::Behind => json!({"at": "committed", "do": "status", "status": 500, "times": 1}),
        };
        match self.weather {
            Weather::Behind => self.bank.gateway_faults(json!([rule])).await?,
            _ => self.bank.faults(json!([rule])).await?,
        }
        Ok(true)
    }

    /// The payment met it, and that is counted.
    pub(crate) async fn has_struck(&mut self) -> Result<()> {
        let hits = match self.weather {
            Weather::Behind => self.bank.gateway_hits().await?,
            _ => self.bank.hits().await?,
        };
        ensure!(hits == 1, "{:?} was met {hits} times", self.weather);
        self.tally.met(&format!("bank: {}", self.weather.name()));
        Ok(())
    }

    /// The till has found that the bank is away.
    pub(crate) async fn is_missed(&mut self) -> Result<()> {
        until("the till knows that the bank is away", SETTLE_LIMIT, async || {
            let summary = self.done(Click::Summary).await?;
            Ok((summary["bankReachable"] == false && summary["bankProblem"].is_string()).then_some(()))
        })
        .await?;
        self.tally.met(&format!("bank: {}", self.weather.name()));
        Ok(())
    }

    /// The bank charges the payment that comes, and says nothing until the weather clears.
    pub(crate) async fn hangs(&mut self) -> Result<()> {
        self.bank.faults(json!([{"at": "saved", "do": "hang", "times": 1}])).await
    }

    /// It does so now.
    pub(crate) async fn is_hanging(&mut self) -> Result<()> {
        until(
            "the bank has charged and hangs",
            SETTLE_LIMIT,
            async || Ok((self.bank.hits().await? == 1).then_some(())),
        )
        .await?;
        self.tally.met(&format!("bank: {}", self.weather.name()));
        Ok(())
    }
}
