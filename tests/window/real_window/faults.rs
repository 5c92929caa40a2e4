//! A bank that answers late, not at all, or is not there; and an app that is killed in the middle.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::{CROISSANT, NOTHING, ONCE};
use crate::{
    harness::until,
    stage::{Asks, Stage},
};

const STEP_LIMIT: Duration = Duration::from_secs(20);

#[test]
fn an_answer_lost_after_the_charge_is_unknown_and_then_approved_by_replay() -> Result<()> {
    Stage::play("answer-lost", Asks::NamedBank, async |stage| {
        // Charged, and no answer reaches the till until the fault is over.
        stage.bank()?.faults(json!([{"at": "saved", "do": "drop"}])).await?;
        let screen = stage.screen()?;
        screen.ring_up(CROISSANT).await?;
        screen.pay_by_card("tok_visa").await?;
        screen.see("pay-unknown").await?;
        screen.reads("pay-unknown", "Do not charge again").await?;
        screen.chip("waiting").await?;
        ensure!(!screen.shows("pay-declined").await?);
        ensure!(!screen.shows("pay-cash").await?, "cash could be the second payment");
        ensure!(stage.bank()?.charges().await? == ONCE);

        stage.bank()?.no_faults().await?;
        stage.screen()?.see_settled("pay-approved").await?;
        stage.screen()?.chip("ok").await?;
        ensure!(stage.bank()?.charges().await? == ONCE);
        Ok(())
    })
}

#[test]
fn with_the_bank_down_a_payment_waits_and_settles_once_it_is_up() -> Result<()> {
    Stage::play("bank-down", Asks::NamedBank, async |stage| {
        stage.bank()?.kill()?;
        let screen = stage.screen()?;
        screen.ring_up(CROISSANT).await?;
        screen.pay_by_card("tok_visa").await?;
        screen.see("pay-unknown").await?;
        screen.chip("waiting").await?;
        screen.reads("sync-chip", "1.85").await?;
        ensure!(stage.bank()?.charges().await? == NOTHING);

        stage.bank()?.start_again().await?;
        stage.screen()?.see_settled("pay-approved").await?;
        stage.screen()?.chip("ok").await?;
        ensure!(stage.bank()?.charges().await? == ONCE);
        Ok(())
    })
}

#[test]
fn an_app_killed_while_sending_settles_the_payment_when_it_is_started_again() -> Result<()> {
    Stage::play("killed-while-sending", Asks::NamedBank, async |stage| {
        // Charged, with the answer held back: the kill meets an operation in flight.
        stage.bank()?.faults(json!([{"at": "saved", "do": "hang"}])).await?;
        let screen = stage.screen()?;
        screen.ring_up(CROISSANT).await?;
        screen.pay_by_card("tok_visa").await?;
        screen.see("pay-sending").await?;
        let bank = stage.bank()?;
        until("the charge", STEP_LIMIT, async || Ok((bank.charges().await? == ONCE).then_some(()))).await?;
        stage.kill_app().await?;

        stage.bank()?.no_faults().await?;
        stage.open().await?;
        let screen = stage.screen()?;
        screen.chip("ok").await?;
        ensure!(screen.operations(1).await? == ["approved"]);
        ensure!(stage.bank()?.charges().await? == ONCE);
        Ok(())
    })
}
