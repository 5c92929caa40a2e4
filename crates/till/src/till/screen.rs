//! Settings of the window, and of the bank that is asked.

use crate::{Bank, BankAccess, NewBankAccess, ScreenSettings, Till, TillError, bank_access, screen};

impl Till {
    /// How the window looks and is worked; as in a new till where nothing was ever set.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn screen_settings(&self) -> Result<ScreenSettings, TillError> {
        self.read(screen::read).await
    }

    /// Has the window look and work so from now on. Language, theme and size of text are anybody's who is logged in.
    ///
    /// # Errors
    /// [`TillError::InvalidSetting`]; [`TillError::NotAllowed`] where keys, the scanner's prefix or the time after which it locks are other ones and who acts
    /// may not change settings; [`TillError::Locked`], [`TillError::Storage`].
    pub async fn save_screen_settings(&self, settings: ScreenSettings) -> Result<(), TillError> {
        self.change(move |tx, signature| screen::save(tx, signature, &settings)).await
    }

    /// The bank that was entered here, without the secret; none where none was.
    ///
    /// # Errors
    /// [`TillError::NotRead`], and [`TillError::NoBank`] where what is kept is no such thing: enter it again.
    pub async fn bank_access(&self) -> Result<Option<BankAccess>, TillError> {
        Ok(self.entered_bank().await?.as_ref().map(bank_access::shown))
    }

    /// The same with the secret, to ask it: for the program, and never for a window.
    ///
    /// # Errors
    /// As [`Till::bank_access`].
    pub async fn entered_bank(&self) -> Result<Option<Bank>, TillError> {
        let data_dir = self.data_dir().to_owned();
        on_disk(move || bank_access::read(&data_dir)).await
    }

    /// Keeps where the bank is, and the secret where one is given: in a file that only its owner can read, and in no copy, export or entry
    /// of the audit. It asks nobody: see [`Till::change_bank`].
    ///
    /// # Errors
    /// [`TillError::NoBank`] where the address or the secret can't be used, or another address comes without a secret;
    /// [`TillError::NotAllowed`], [`TillError::Locked`], [`TillError::Storage`].
    pub async fn save_bank_access(&self, new: NewBankAccess) -> Result<BankAccess, TillError> {
        let data_dir = self.data_dir().to_owned();
        let (before, after, next) = on_disk(move || {
            // What can't be read is entered anew, with its secret.
            let before = bank_access::read(&data_dir).or_else(|error| match error {
                TillError::NoBank(_) => Ok(None),
                error => Err(error),
            })?;
            let after = bank_access::checked(before.as_ref(), new)?;
            let next = bank_access::write(&data_dir, &after)?;
            Ok((before, after, next))
        })
        .await?;
        let shown = bank_access::shown(&after);
        self.change(move |tx, signature| bank_access::note(tx, signature, before.as_ref(), Some(&after))).await?;
        on_disk(move || next.take_place()).await?;
        Ok(shown)
    }

    /// Keeps no bank any more.
    ///
    /// # Errors
    /// [`TillError::NotAllowed`], [`TillError::Locked`], [`TillError::Storage`].
    pub async fn forget_bank_access(&self) -> Result<(), TillError> {
        let before = self.entered_bank().await.unwrap_or_default();
        self.change(move |tx, signature| bank_access::note(tx, signature, before.as_ref(), None)).await?;
        let data_dir = self.data_dir().to_owned();
        on_disk(move || bank_access::forget(&data_dir)).await
    }
}

async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, TillError> + Send + 'static,
) -> Result<T, TillError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| TillError::Internal(format!("work on a file ended by a fault: {error}")))?
}
