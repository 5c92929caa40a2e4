//! The first sale, with a bank that is well.

use std::time::Duration;

use anyhow::{Result, ensure};
use thirtyfour::Key;

use super::{CROISSANT, NOTHING, ONCE};
use crate::{
    harness::bank::{self, Charges},
    stage::{Asks, Stage},
};

#[test]
fn an_approved_payment_is_charged_once() -> Result<()> {
    Stage::play("approved", Asks::NamedBank, async |stage| {
        let screen = stage.screen()?;
        screen.ring_up(CROISSANT).await?;
        screen.reads("total", "1.85").await?;
        screen.pay_by_card("tok_visa").await?;
        screen.see("pay-approved").await?;
        screen.reads("pay-approved", "1.85").await?;
        screen.chip("ok").await?;
        ensure!(stage.bank()?.charges().await? == ONCE);

        // The next customer finds an empty cart.
        let screen = stage.screen()?;
        screen.click("new-sale").await?;
        screen.see("pay").await?;
        ensure!(!screen.shows("line-1").await?);
        ensure!(screen.operations(1).await? == ["approved"]);
        Ok(())
    })
}

#[test]
fn a_declined_payment_is_not_charged_and_stays_declined() -> Result<()> {
    Stage::play("declined", Asks::NamedBank, async |stage| {
        let screen = stage.screen()?;
        screen.ring_up(CROISSANT).await?;
        screen.pay_by_card("tok_insufficient_funds").await?;
        screen.see("pay-declined").await?;
        screen.reads("pay-declined", "Not charged").await?;
        ensure!(stage.bank()?.charges().await? == NOTHING);

        // Another card is another operation, on the same sale.
        let screen = stage.screen()?;
        screen.click("other-card").await?;
        screen.click("card-tok_visa").await?;
        screen.click("confirm-pay").await?;
        screen.see("pay-approved").await?;
        ensure!(stage.bank()?.charges().await? == ONCE);

        stage.kill_and_open().await?;
        ensure!(stage.screen()?.operations(2).await? == ["approved", "declined"]);
        ensure!(stage.bank()?.charges().await? == ONCE);
        Ok(())
    })
}

#[test]
fn cash_is_taken_by_keyboard_alone_and_asks_no_bank() -> Result<()> {
    Stage::play("cash-by-keyboard", Asks::NamedBank, async |stage| {
        let screen = stage.screen()?;
        screen.ring_up(CROISSANT).await?;
        screen.press(Key::F10).await?;
        screen.reads("cash-given", "1.85").await?;
        screen.reads("confirm-pay", "1.85").await?;
        screen.press(Key::Enter).await?;
        screen.reads("change", "0.00").await?;
        screen.see("new-sale").await?;
        screen.chip("ok").await?;
        ensure!(stage.bank()?.charges().await? == NOTHING);
        Ok(())
    })
}

#[test]
fn a_declined_payment_is_paid_in_cash_and_never_charged() -> Result<()> {
    Stage::play("declined-then-cash", Asks::NamedBank, async |stage| {
        let screen = stage.screen()?;
        screen.ring_up(CROISSANT).await?;
        screen.pay_by_card("tok_insufficient_funds").await?;
        screen.see("pay-declined").await?;
        screen.click("pay-cash").await?;
        screen.click("cash-note-200").await?;
        screen.click("confirm-pay").await?;
        screen.reads("change", "0.15").await?;
        ensure!(screen.operations(1).await? == ["declined"]);
        ensure!(stage.bank()?.charges().await? == NOTHING);
        Ok(())
    })
}

#[test]
fn twenty_clicks_and_enter_held_down_are_one_payment() -> Result<()> {
    Stage::play("twenty-clicks", Asks::NamedBank, async |stage| {
        let screen = stage.screen()?;
        screen.ring_up(CROISSANT).await?;
        screen.choose_card("tok_visa").await?;
        // The button itself, twenty times, before the page can draw anything in between.
        screen.run("const pay = document.querySelector(\"[data-testid='confirm-pay']\"); for (let i = 0; i < 20; i++) pay.click();").await?;
        screen.see("pay-approved").await?;
        ensure!(screen.operations(1).await? == ["approved"]);
        ensure!(stage.bank()?.charges().await? == ONCE);

        // Enter, pressed on the button and held over everything that comes after it.
        let screen = stage.screen()?;
        screen.click("nav-sale").await?;
        if screen.shows("new-sale").await? {
            screen.click("new-sale").await?;
        }
        screen.ring_up(CROISSANT).await?;
        screen.choose_card("tok_visa").await?;
        screen.run("document.querySelector(\"[data-testid='confirm-pay']\").focus();").await?;
        stage.display.hold_key("Return", Duration::from_secs(3))?;
        let screen = stage.screen()?;
        screen.see("pay-approved").await?;
        ensure!(screen.operations(2).await? == ["approved", "approved"]);
        ensure!(stage.bank()?.charges().await? == Charges { count: 2, euros: 2 * ONCE.euros });
        Ok(())
    })
}

#[test]
fn with_no_bank_named_the_bundled_one_charges_once() -> Result<()> {
    Stage::play("bundled-bank", Asks::BundledBank, async |stage| {
        let screen = stage.screen()?;
        screen.ring_up(CROISSANT).await?;
        screen.pay_by_card("tok_visa").await?;
        screen.see("pay-approved").await?;
        screen.chip("ok").await?;
        stage.close().await?;
        ensure!(bank::charges_left_in(&stage.data.join("bank/bank-gateway.db"), &stage.folder).await? == ONCE);
        Ok(())
    })
}
