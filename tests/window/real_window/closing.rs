//! Closing the window: asked about where payments are not settled, and at once where they are.

use std::{fs, time::Duration};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{CROISSANT, ONCE};
use crate::{
    harness::until,
    screen::Screen,
    stage::{Asks, Stage},
};

const STEP_LIMIT: Duration = Duration::from_secs(20);
/// The till's window.
const TITLE: &str = "Kassa";

/// Has the page note what it is asked at a close.
const LISTEN: &str = "
    const tauri = window.__TAURI_INTERNALS__;
    window.asked = [];
    const handler = tauri.transformCallback(({ payload }) => window.asked.push(payload));
    tauri.invoke('plugin:event|listen', { event: 'close-requested', target: { kind: 'Any' }, handler })
        .then(() => { window.listens = true; });";

/// Has the page send a command that the lab's screen has a button for, and gives its answer.
async fn invoke(screen: &Screen, command: &str) -> Result<Value> {
    let script = format!(
        "window.answer = undefined;
         window.__TAURI_INTERNALS__.invoke('{command}').then((answer) => {{ window.answer = {{ answer }}; }});"
    );
    screen.run(&script).await?;
    until(&format!("{command} answers"), STEP_LIMIT, async || {
        let answer = screen.run("return window.answer ?? null").await?;
        Ok((!answer.is_null()).then(|| answer["answer"].clone()))
    })
    .await
}

async fn listen(screen: &Screen) -> Result<()> {
    screen.run(LISTEN).await?;
    until("the page listens", STEP_LIMIT, async || {
        Ok((screen.run("return window.listens === true").await? == json!(true)).then_some(()))
    })
    .await
}

async fn asked(screen: &Screen, times: usize) -> Result<Value> {
    until("the page is asked", STEP_LIMIT, async || {
        let asked = screen.run("return window.asked").await?;
        Ok((asked.as_array().is_some_and(|asked| asked.len() == times)).then(|| asked[times - 1].clone()))
    })
    .await
}

#[test]
fn with_a_payment_unsettled_the_window_is_asked_and_closes_when_told_to() -> Result<()> {
    Stage::play("close-asked", Asks::BundledBank, async |stage| {
        let screen = stage.screen()?;
        invoke(screen, "lab_bank_stop").await?;
        screen.ring_up(CROISSANT).await?;
        screen.pay_by_card("tok_visa").await?;
        screen.see("pay-unknown").await?;
        listen(screen).await?;
        stage.display.ask_to_close(stage.display.window(TITLE)?)?;
        let question = asked(screen, 1).await?;
        ensure!(question == json!({"unsettled": 1, "amounts": [{"currency": "EUR", "amount": 185}]}), "{question}");
        screen.see("pay-unknown").await?;

        // The button of the question, a little later: the window goes with it, and could not answer for the script.
        screen.run("setTimeout(() => window.__TAURI_INTERNALS__.invoke('close_anyway'), 100)").await?;
        stage.ended().await?;
        stage.open().await?;
        let screen = stage.screen()?;
        screen.chip("ok").await?;
        let charged = &invoke(screen, "lab_state").await?["gateway"]["charged"];
        ensure!(*charged == json!([{"currency": "EUR", "amount": ONCE.euros}]), "{charged}");
        Ok(())
    })
}

#[test]
fn a_page_that_does_not_answer_is_closed_by_a_second_click_on_the_cross() -> Result<()> {
    Stage::play("close-twice", Asks::BundledBank, async |stage| {
        let screen = stage.screen()?;
        invoke(screen, "lab_bank_stop").await?;
        screen.ring_up(CROISSANT).await?;
        screen.pay_by_card("tok_visa").await?;
        screen.see("pay-unknown").await?;
        listen(screen).await?;
        let window = stage.display.window(TITLE)?;
        stage.display.ask_to_close(window)?;
        asked(screen, 1).await?;
        stage.display.ask_to_close(window)?;
        stage.ended().await
    })
}

#[test]
fn with_all_settled_it_closes_at_once_and_comes_back_to_its_place() -> Result<()> {
    Stage::play("close-settled", Asks::BundledBank, async |stage| {
        let place = [70, 40, 1_100, 720];
        let window = stage.display.window(TITLE)?;
        stage.display.place(window, place)?;
        stage.display.ask_to_close(window)?;
        stage.ended().await?;

        stage.open().await?;
        until("the window is back in its place", STEP_LIMIT, async || {
            Ok((stage.display.placed(stage.display.window(TITLE)?)? == place).then_some(()))
        })
        .await?;
        stage.close().await?;

        // Left on a screen that is gone: the window must be seen all the same.
        let far = json!({"x": 9_000, "y": 9_000, "width": 1_100, "height": 720, "maximized": false});
        fs::write(stage.data.join("window.json"), far.to_string())?;
        stage.open().await?;
        let [x, y, ..] = stage.display.placed(stage.display.window(TITLE)?)?;
        ensure!(x < 1_360 && y < 880, "it opened off the screen, at {x}, {y}");
        Ok(())
    })
}
