//! A bank that answers late, not at all, or is not there; and an app that is killed in the middle.

use std::time::{Duration, Instant};

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

/// Charged, and what comes back is not the bank's word: never told as declined or approved, and settled by replay.
fn a_charge_is_answered_with(action: &str) -> Result<()> {
    Stage::play(&format!("answer-{action}"), Asks::NamedBank, async |stage| {
        stage.bank()?.faults(json!([{"at": "saved", "do": action}])).await?;
        let screen = stage.screen()?;
        screen.ring_up(CROISSANT).await?;
        screen.pay_by_card("tok_visa").await?;
        screen.see("pay-unknown").await?;
        screen.chip("waiting").await?;
        ensure!(!screen.shows("pay-cash").await?, "cash could be the second payment");
        ensure!(stage.bank()?.charges().await? == ONCE);

        stage.bank()?.no_faults().await?;
        stage.screen()?.see_settled("pay-approved").await?;
        ensure!(stage.bank()?.charges().await? == ONCE);
        ensure!(stage.screen()?.operations(1).await? == ["approved"]);
        Ok(())
    })
}

#[test]
fn a_torn_answer_is_unknown_and_then_approved_by_replay() -> Result<()> {
    a_charge_is_answered_with("truncate")
}

#[test]
fn a_web_page_with_200_is_unknown_and_then_approved_by_replay() -> Result<()> {
    a_charge_is_answered_with("garbage")
}

#[test]
fn an_answer_for_another_amount_is_unknown_and_then_approved_by_replay() -> Result<()> {
    a_charge_is_answered_with("foreign")
}

#[test]
fn a_bank_that_asks_for_time_is_not_asked_again_before_it() -> Result<()> {
    const RETRY_AFTER_S: u64 = 6;
    Stage::play("retry-after", Asks::NamedBank, async |stage| {
        let busy = json!([{"at": "received", "do": "status", "status": 503, "retry_after": RETRY_AFTER_S, "times": 1}]);
        stage.bank()?.faults(busy).await?;
        let screen = stage.screen()?;
        screen.ring_up(CROISSANT).await?;
        screen.choose_card("tok_visa").await?;
        let clicked = Instant::now();
        screen.click("confirm-pay").await?;
        screen.see("pay-unknown").await?;
        // No button passes it either.
        screen.click("check-now").await?;
        screen.see_settled("pay-approved").await?;
        let took = clicked.elapsed();
        ensure!(took >= Duration::from_secs(RETRY_AFTER_S), "asked again before the time given: {took:?}");
        ensure!(stage.bank()?.charges().await? == ONCE);
        Ok(())
    })
}

#[test]
fn a_slow_gateway_is_waited_for_and_then_approved() -> Result<()> {
    Stage::play("slow-gateway", Asks::NamedBank, async |stage| {
        // Longer than the bank lets a caller wait, so that it first says that it is at it.
        stage.bank()?.gateway_faults(json!([{"at": "received", "do": "delay", "ms": 5_000, "times": 1}])).await?;
        let screen = stage.screen()?;
        screen.ring_up(CROISSANT).await?;
        screen.pay_by_card("tok_visa").await?;
        screen.see("pay-sending").await?;
        ensure!(!screen.shows("pay-unknown").await?);
        screen.see_settled("pay-approved").await?;
        screen.open_operation().await?;
        screen.reads("operation-timeline", "the bank is at it").await?;
        ensure!(stage.bank()?.charges().await? == ONCE);
        Ok(())
    })
}

#[test]
fn a_payment_that_the_bank_will_not_take_needs_a_look_and_is_never_sent_again() -> Result<()> {
    Stage::play("poisoned", Asks::NamedBank, async |stage| {
        stage.bank()?.faults(json!([{"at": "received", "do": "status", "status": 422}])).await?;
        let screen = stage.screen()?;
        screen.ring_up(CROISSANT).await?;
        screen.pay_by_card("tok_visa").await?;
        screen.see("pay-attention").await?;
        screen.chip("attention").await?;
        ensure!(stage.bank()?.hits().await? == 1);

        // Nor where the bank would take it by now.
        stage.bank()?.no_faults().await?;
        stage.kill_and_open().await?;
        stage.screen()?.chip("attention").await?;
        ensure!(stage.screen()?.operations(1).await? == ["needs_attention"]);
        ensure!(stage.bank()?.charges().await? == NOTHING);
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
        // However early the bank's word came: an empty sale here would be rung up, and paid, again.
        screen.see_settled("pay-approved").await?;
        screen.chip("ok").await?;
        ensure!(screen.operations(1).await? == ["approved"]);
        ensure!(stage.bank()?.charges().await? == ONCE);
        Ok(())
    })
}
