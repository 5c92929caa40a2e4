//! Catalogue and settings.

use crate::{ArticleQuery, Articles, Category, Settings, Till, TillError, audit, catalogue, settings};
use store::Priority;

impl Till {
    /// The shop's settings.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn settings(&self) -> Result<Settings, TillError> {
        self.read(settings::read).await
    }

    /// Saves the settings. They hold from the next sale on.
    ///
    /// # Errors
    /// [`TillError::InvalidSetting`] where one can't have its value.
    pub async fn save_settings(&self, new: Settings) -> Result<(), TillError> {
        let signature = self.signature();
        let saved = self.inner.store.write(Priority::Click, move |tx| {
            let (before, after) = (settings::read(tx)?, new);
            if after == before {
                return Ok(());
            }
            settings::save(tx, &after)?;
            let details =
                serde_json::json!({"before": settings::document(&before), "after": settings::document(&after)});
            audit::append(tx, &signature, "settings-saved", None, &details)
        });
        saved.await.map_err(|error| self.not_written(error))
    }

    /// The categories, in their order, each with how many articles it holds.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn categories(&self) -> Result<Vec<Category>, TillError> {
        self.read(catalogue::categories).await
    }

    /// The articles of a category, or those that hold every word typed.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn articles(&self, query: ArticleQuery) -> Result<Articles, TillError> {
        self.read(move |conn| catalogue::articles(conn, &query)).await
    }
}
