//! The sale in front of the cashier.

use crate::{
    AuditEntry, ChainCheck, ChainProgress, Event, HeldSales, Measure, Right, Sale, Sales, SalesQuery, Till, TillError,
    audit, cart, rights, sale, sales::listing,
};
use uuid::Uuid;

impl Till {
    /// The sale in front, made where there is none: open, under payment, or completed and not yet followed by
    /// [`Till::new_sale`]. Only where it makes one does it write and tell.
    ///
    /// # Errors
    /// [`TillError::Storage`] where one can't be saved.
    pub async fn open_sale(&self) -> Result<Sale, TillError> {
        match self.read(cart::in_front).await? {
            Some(sale) => Ok(sale),
            None => self.change_sale(|tx, signature| sale::show(tx, &cart::open_sale(tx, signature)?)).await,
        }
    }

    /// Rings up an article by SKU or barcode: one of it, or the quantity given as a decimal with up to three places. The
    /// same article again raises the quantity. A code that one of the shop's scales printed, see
    /// [`Settings::scale_barcodes`](crate::Settings::scale_barcodes), is a line of its own with the weight or price it carries.
    ///
    /// # Errors
    /// [`TillError::UnknownArticle`], [`TillError::PriceNeeded`] where the article has no price: then [`Till::add_at_price`],
    /// [`TillError::InvalidQuantity`], [`TillError::InvalidBarcode`] where a code was misread, [`TillError::OtherTerms`] where the sale in
    /// front was begun before the shop's currency or tax rule changed, or [`TillError::SaleFrozen`] while it is under payment.
    pub async fn add_article(&self, code: &str, quantity: Option<&str>) -> Result<Sale, TillError> {
        self.ring_up(code, quantity, None).await
    }

    /// Rings up an article that has no price of its own, at this one, in minor units; always as a line of its own.
    ///
    /// # Errors
    /// [`TillError::InvalidPrice`], also where the article has a price; else as [`Till::add_article`].
    pub async fn add_at_price(&self, code: &str, quantity: Option<&str>, price: i64) -> Result<Sale, TillError> {
        self.ring_up(code, quantity, Some(price)).await
    }

    async fn ring_up(&self, code: &str, quantity: Option<&str>, price: Option<i64>) -> Result<Sale, TillError> {
        let (code, quantity) = (code.to_owned(), quantity.map(str::to_owned));
        self.change_sale(move |tx, signature| cart::add_article(tx, signature, &code, quantity.as_deref(), price)).await
    }

    /// Sets the quantity of a line: a decimal above zero with up to three places, whole for articles sold by the piece.
    ///
    /// # Errors
    /// [`TillError::InvalidQuantity`], [`TillError::NotFound`] where the line is gone, [`TillError::SaleFrozen`],
    /// [`TillError::SaleChanged`] where its sale is not the one in front.
    pub async fn set_quantity(&self, line_id: i64, quantity: &str) -> Result<Sale, TillError> {
        let quantity = quantity.to_owned();
        self.change_sale(move |tx, signature| cart::set_quantity(tx, signature, line_id, &quantity)).await
    }

    /// Removes a line.
    ///
    /// # Errors
    /// As [`Till::set_quantity`].
    pub async fn remove_line(&self, line_id: i64) -> Result<Sale, TillError> {
        self.change_sale(move |tx, signature| cart::remove_line(tx, signature, line_id)).await
    }

    /// Removes all lines of the sale in front, with its discount and tip.
    ///
    /// # Errors
    /// [`TillError::SaleFrozen`] while it is under payment.
    pub async fn clear_sale(&self) -> Result<Sale, TillError> {
        self.change_sale(cart::clear_sale).await
    }

    /// A sale to begin with: the one in front while it is open, a new one after a completed one.
    ///
    /// # Errors
    /// [`TillError::SaleFrozen`] while the one in front is under payment: hold it first.
    pub async fn new_sale(&self) -> Result<Sale, TillError> {
        self.change_sale(cart::new_sale).await
    }

    /// Puts a sale under payment aside, where it completes by itself when the bank answers, and gives the sale to go on with.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::SaleChanged`] where the sale is open.
    pub async fn hold_sale(&self, sale_id: Uuid) -> Result<Sale, TillError> {
        let sale = self.change_sale(move |tx, signature| cart::hold_sale(tx, signature, sale_id)).await?;
        self.tell(Event::SaleChanged { sale_id });
        Ok(sale)
    }

    /// The sales that a cashier put aside, not completed, oldest first, at most 200: [`Till::held_page`] has those after them. A
    /// [`Till::charge`] is none of them: there is no cart to go on with.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn held_sales(&self) -> Result<Vec<Sale>, TillError> {
        Ok(self.held_page(None).await?.sales)
    }

    /// The sales that a cashier put aside, as [`Till::held_sales`], 200 at a time: after one, the last of the page before, or from the
    /// oldest on.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn held_page(&self, after: Option<Uuid>) -> Result<HeldSales, TillError> {
        self.read(move |conn| cart::held_sales(conn, after)).await
    }

    /// Takes up a sale that was put aside. The one in front goes aside for it, or goes altogether where it is empty.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::SaleChanged`] where it is a [`Till::charge`].
    pub async fn resume_sale(&self, sale_id: Uuid) -> Result<Sale, TillError> {
        self.change_sale(move |tx, signature| cart::resume_sale(tx, signature, sale_id)).await
    }

    /// Opens a sale again whose payments were all declined or cancelled.
    ///
    /// # Errors
    /// [`TillError::SaleFrozen`] while one of them paid or may have paid, [`TillError::SaleChanged`] after its completion.
    pub async fn back_to_cart(&self, sale_id: Uuid) -> Result<Sale, TillError> {
        self.change_sale(move |tx, signature| cart::back_to_cart(tx, signature, sale_id)).await
    }

    /// One sale, whatever became of it.
    ///
    /// # Errors
    /// [`TillError::NotFound`].
    pub async fn sale(&self, sale_id: Uuid) -> Result<Sale, TillError> {
        self.read(move |conn| sale::read(conn, sale_id)).await
    }

    /// A page of the sales that were under payment once, the newest first: by the time of their completion, else of their last change;
    /// where they are found by a number, an amount or a card, by their own numbers. Each question reads about a page, however many there
    /// are.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn sales(&self, query: SalesQuery) -> Result<Sales, TillError> {
        self.read(move |conn| listing::list(conn, &query)).await
    }

    /// Entries of the audit after `after_seq`, of one sale or of all; oldest first. All of it is for who may export it: it holds what drawers
    /// should have held.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read; of all of it [`TillError::NotAllowed`] and
    /// [`TillError::Locked`].
    pub async fn audit(&self, sale_id: Option<Uuid>, after_seq: i64, limit: u32) -> Result<Vec<AuditEntry>, TillError> {
        if sale_id.is_none() {
            self.see_audit().await?;
        }
        self.read(move |conn| audit::list(conn, sale_id, after_seq, limit)).await
    }

    /// Lets who may export the audit see it. With another's PIN that leaves an entry.
    pub(super) async fn see_audit(&self) -> Result<(), TillError> {
        if !self.has_approval() {
            let signature = self.signature();
            return self
                .read(move |conn| rights::allow(conn, &signature, Right::AuditExport, Measure::Whole).map(drop))
                .await;
        }
        self.change(|tx, signature| {
            let signature = rights::allow(tx, signature, Right::AuditExport, Measure::Whole)?;
            match signature.approver {
                Some(_) => audit::append(tx, &signature, "audit-seen", None, &serde_json::json!({})),
                None => Ok(()),
            }
        })
        .await
    }

    /// Walks the audit's chain from its first entry to its head and says where it is broken first, with a word on the progress every
    /// 10,000 entries. Holds one entry in memory at a time.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn check_audit(
        &self,
        progress: impl FnMut(ChainProgress) + Send + 'static,
    ) -> Result<ChainCheck, TillError> {
        self.read(move |conn| audit::check(conn, progress)).await
    }
}
