//! The window as a person uses it: things are found by their test ids, waited for, read and clicked.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use thirtyfour::{By, Key, WebDriver, WebElement};

use crate::harness::until;

/// Time for what the till does by itself: drawing, and settling at a healthy bank.
const SEEN_LIMIT: Duration = Duration::from_secs(15);
/// Time for what comes only with a later try at a bank that was away: the longest back-off, and some.
const SETTLED_LIMIT: Duration = Duration::from_secs(60);
/// One question to the driver.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// One run of the app's window.
pub(crate) struct Screen {
    session: WebDriver,
}

impl Screen {
    pub(crate) fn new(session: WebDriver) -> Self {
        Self { session }
    }

    /// Ends the session, and the app with it.
    pub(crate) async fn quit(self) -> Result<()> {
        tokio::time::timeout(ANSWER_LIMIT, self.session.quit())
            .await
            .context("the driver does not end the session")??;
        Ok(())
    }

    /// Lets go of a session whose app was killed, once the driver has found that out: it opens one session at a time.
    pub(crate) async fn abandon(self) -> Result<()> {
        until("the driver knows that the app is gone", ANSWER_LIMIT, async || {
            Ok(tokio::time::timeout(ANSWER_LIMIT, self.session.title()).await?.is_err().then_some(()))
        })
        .await?;
        self.session.leak().context("the session was ended before")
    }

    /// The element of this test id, once it is shown.
    pub(crate) async fn see(&self, test_id: &str) -> Result<WebElement> {
        self.see_within(test_id, SEEN_LIMIT).await
    }

    /// The same, for what settles only by later tries.
    pub(crate) async fn see_settled(&self, test_id: &str) -> Result<WebElement> {
        self.see_within(test_id, SETTLED_LIMIT).await
    }

    async fn see_within(&self, test_id: &str, limit: Duration) -> Result<WebElement> {
        until(&format!("`{test_id}` is shown"), limit, async || {
            for element in self.all(test_id).await? {
                // It may go while it is looked at; then it is not shown.
                if element.is_displayed().await.unwrap_or(false) {
                    return Ok(Some(element));
                }
            }
            Ok(None)
        })
        .await
    }

    /// Whether anything of this test id is there now.
    pub(crate) async fn shows(&self, test_id: &str) -> Result<bool> {
        Ok(!self.all(test_id).await?.is_empty())
    }

    /// Clicks what has this test id, once it is shown and takes a click.
    pub(crate) async fn click(&self, test_id: &str) -> Result<()> {
        until(&format!("`{test_id}` takes a click"), SEEN_LIMIT, async || {
            let element = self.see(test_id).await?;
            if !element.is_enabled().await.unwrap_or(false) {
                return Ok(None);
            }
            // Something may lie over it, or it may be drawn anew, while the screen still changes.
            Ok(element.click().await.ok())
        })
        .await
    }

    /// Waits until the text of what has this test id contains something.
    pub(crate) async fn reads(&self, test_id: &str, part: &str) -> Result<()> {
        let mut last = String::new();
        until(&format!("`{test_id}` reads “{part}”"), SEEN_LIMIT, async || {
            // What can't be selected with the mouse is no text to WebDriver's own question for it.
            last = self.see(test_id).await?.prop("textContent").await?.unwrap_or_default();
            Ok(last.contains(part).then_some(()))
        })
        .await
        .with_context(|| format!("it reads: {last}"))
    }

    /// Waits until the chip in the top bar has this `data-state`.
    pub(crate) async fn chip(&self, state: &str) -> Result<()> {
        until(&format!("the chip is `{state}`"), SETTLED_LIMIT, async || {
            let chip = self.see("sync-chip").await?;
            Ok((chip.attr("data-state").await?.as_deref() == Some(state)).then_some(()))
        })
        .await
    }

    /// The `data-state` of each operation in the list of payments, newest first, once there are so many.
    pub(crate) async fn operations(&self, count: usize) -> Result<Vec<String>> {
        self.click("nav-payments").await?;
        let rows = until(&format!("{count} operations are listed"), SEEN_LIMIT, async || {
            let rows = self.operation_rows().await?;
            Ok((rows.len() >= count).then_some(rows))
        })
        .await?;
        ensure!(rows.len() == count, "{} operations are listed, not {count}", rows.len());
        let mut states = Vec::new();
        for row in rows {
            states.push(row.attr("data-state").await?.context("an operation without a state")?);
        }
        Ok(states)
    }

    /// Opens the newest operation in the list of payments.
    pub(crate) async fn open_operation(&self) -> Result<()> {
        self.operations(1).await?;
        until("the operation opens", SEEN_LIMIT, async || {
            let rows = self.operation_rows().await?;
            let Some(row) = rows.first() else { return Ok(None) };
            Ok(row.click().await.ok())
        })
        .await?;
        self.see("operation-timeline").await?;
        Ok(())
    }

    async fn operation_rows(&self) -> Result<Vec<WebElement>> {
        let rows = By::Css("[data-testid^='operation-'][data-state]");
        Ok(tokio::time::timeout(ANSWER_LIMIT, self.session.find_all(rows))
            .await
            .context("the driver does not answer")??)
    }

    /// Rings up one article.
    pub(crate) async fn ring_up(&self, sku: &str) -> Result<()> {
        self.click(&format!("article-{sku}")).await?;
        self.see("line-1").await?;
        Ok(())
    }

    /// From the cart to a chosen card, with only the last click left to do.
    pub(crate) async fn choose_card(&self, token: &str) -> Result<()> {
        self.click("pay").await?;
        self.click("tender-card").await?;
        self.click(&format!("card-{token}")).await?;
        self.see("confirm-pay").await?;
        Ok(())
    }

    /// From the cart to a payment that is saved.
    pub(crate) async fn pay_by_card(&self, token: &str) -> Result<()> {
        self.choose_card(token).await?;
        self.click("confirm-pay").await
    }

    /// Presses a key, for whatever has the focus.
    pub(crate) async fn press(&self, key: Key) -> Result<()> {
        let press = self.session.action_chain().key_down(key.clone()).key_up(key);
        Ok(tokio::time::timeout(ANSWER_LIMIT, press.perform()).await.context("the driver does not answer")??)
    }

    /// Runs a script in the page, as a person's many hands would.
    pub(crate) async fn run(&self, script: &str) -> Result<serde_json::Value> {
        let done = tokio::time::timeout(ANSWER_LIMIT, self.session.execute(script, Vec::new()));
        Ok(done.await.context("the driver does not answer")??.json().clone())
    }

    pub(crate) async fn save_source(&self, file: &Path) -> Result<()> {
        let source =
            tokio::time::timeout(ANSWER_LIMIT, self.session.source()).await.context("the driver does not answer")??;
        Ok(fs::write(file, source)?)
    }

    async fn all(&self, test_id: &str) -> Result<Vec<WebElement>> {
        let found = self.session.find_all(By::Css(format!("[data-testid='{test_id}']")));
        Ok(tokio::time::timeout(ANSWER_LIMIT, found).await.context("the driver does not answer")??)
    }
}
