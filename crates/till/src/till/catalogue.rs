//! Catalogue and settings.

use super::give_back_unless_saved;
use crate::{
    ArticleDetails, ArticleQuery, Articles, Category, CategoryDetails, Event, ImportMode, ImportProgress, Imported,
    Right, Settings, Till, TillError, audit, audit::Signature, catalogue, rights, rights::Measure, settings, shifts,
};
use rusqlite::Connection;
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
    /// [`TillError::InvalidSetting`] where one can't have its value, [`TillError::NotAllowed`], [`TillError::Locked`].
    pub async fn save_settings(&self, new: Settings) -> Result<(), TillError> {
        self.change(move |tx, signature| {
            let (before, after) = (settings::read(tx)?, new);
            if after == before {
                return Ok(());
            }
            let signature = &rights::allow(tx, signature, Right::Settings, Measure::Whole)?;
            if after.currency != before.currency && shifts::open_now(tx)?.is_some() {
                return Err(TillError::InvalidSetting(
                    "close the shift before the currency changes: its drawer holds the old one",
                ));
            }
            settings::save(tx, &after)?;
            let details =
                serde_json::json!({"before": settings::document(&before), "after": settings::document(&after)});
            audit::append(tx, signature, "settings-saved", None, &details)
        })
        .await
        .inspect(|()| self.tell(Event::CatalogueChanged))
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

    /// One article with all that the shop keeps of it.
    ///
    /// # Errors
    /// [`TillError::NotFound`].
    pub async fn article(&self, sku: &str) -> Result<ArticleDetails, TillError> {
        let sku = sku.to_owned();
        self.read(move |conn| catalogue::article(conn, &sku)).await
    }

    /// Makes an article, at the end of the catalogue; or, with the SKU that it has so far, changes one. Gives it as it is kept.
    ///
    /// # Errors
    /// [`TillError::InvalidArticle`], also for an SKU or barcode that another article has; [`TillError::NotFound`] for a category
    /// or an article that is not there, [`TillError::NotAllowed`], [`TillError::Locked`].
    pub async fn save_article(
        &self,
        before: Option<&str>,
        article: ArticleDetails,
    ) -> Result<ArticleDetails, TillError> {
        let before = before.map(str::to_owned);
        self.change_catalogue(move |tx, signature| catalogue::save_article(tx, signature, before.as_deref(), article))
            .await
    }

    /// Shows an article first, or no more.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::NotAllowed`], [`TillError::Locked`].
    pub async fn set_favourite(&self, sku: &str, favourite: bool) -> Result<(), TillError> {
        let sku = sku.to_owned();
        let change = move |tx: &Connection, signature: &Signature| {
            let article = ArticleDetails { favourite, ..catalogue::article(tx, &sku)? };
            catalogue::save_article(tx, signature, Some(&sku), article).map(drop)
        };
        self.change_catalogue(change).await
    }

    /// Removes an article. Lines that it was sold or rung up on keep their own copy of it.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::NotAllowed`], [`TillError::Locked`].
    pub async fn remove_article(&self, sku: &str) -> Result<(), TillError> {
        let sku = sku.to_owned();
        self.change_catalogue(move |tx, signature| catalogue::remove_article(tx, signature, &sku)).await
    }

    /// Makes a category, after the others, or changes the one of this id.
    ///
    /// # Errors
    /// [`TillError::InvalidArticle`], [`TillError::NotAllowed`], [`TillError::Locked`].
    pub async fn save_category(&self, category: CategoryDetails) -> Result<(), TillError> {
        self.change_catalogue(move |tx, signature| catalogue::save_category(tx, signature, &category)).await
    }

    /// Removes a category that no article is in.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::CategoryInUse`], [`TillError::NotAllowed`], [`TillError::Locked`].
    pub async fn remove_category(&self, id: &str) -> Result<(), TillError> {
        let id = id.to_owned();
        self.change_catalogue(move |tx, signature| catalogue::remove_category(tx, signature, &id)).await
    }

    /// Brings a catalogue in from CSV, as [`Till::export_catalogue`] writes it: all of it in one commit, or nothing. `tell` hears of
    /// the progress, on another thread; what it hears of is saved only when this answers. Nothing else is saved meanwhile, some
    /// seconds for 50,000 articles.
    ///
    /// The first row names the columns: `sku`, `name`, `category` (an id), `unit` (`piece` or `weight`), `price` (a decimal, or
    /// `open`), `tax_rate` (percent), `colour` (`#rrggbb`), `favourite` (`yes` or `no`), `barcodes` (with spaces between them). They
    /// may stand in any order, told apart by `,` or `;`. A row without an SKU is a category: its id, name and colour.
    ///
    /// # Errors
    /// [`TillError::Import`] with every error of the file up to 100, each with its line; [`TillError::NotAllowed`],
    /// [`TillError::Locked`].
    pub async fn import_catalogue(
        &self,
        csv: Vec<u8>,
        mode: ImportMode,
        tell: impl Fn(ImportProgress) + Send + 'static,
    ) -> Result<Imported, TillError> {
        // Read before the writer is asked: it has better to do.
        let draft = self.read(move |conn| catalogue::draft(conn, &csv)).await?;
        let signature = self.signature();
        let approval = signature.approval().cloned();
        let import = move |tx: &Connection| {
            let signature = rights::allow(tx, &signature, Right::Catalogue, Measure::Whole)?;
            catalogue::import(tx, &signature, draft, mode, &tell)
        };
        let written = self.inner.store.write(Priority::Background, import).await;
        give_back_unless_saved(approval.as_ref(), &written);
        written.map_err(|error| self.not_written(error)).inspect(|_| self.tell(Event::CatalogueChanged))
    }

    /// The whole catalogue as CSV in UTF-8, which brings the same catalogue back, in its order. A spreadsheet opens it and computes
    /// nothing of it.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn export_catalogue(&self) -> Result<Vec<u8>, TillError> {
        self.read(catalogue::export).await
    }

    /// One change of the catalogue in one commit, by somebody who may.
    async fn change_catalogue<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Connection, &Signature) -> Result<T, TillError> + Send + 'static,
    ) -> Result<T, TillError> {
        let allowed = move |tx: &Connection, signature: &Signature| {
            change(tx, &rights::allow(tx, signature, Right::Catalogue, Measure::Whole)?)
        };
        self.change(allowed).await.inspect(|_| self.tell(Event::CatalogueChanged))
    }
}
