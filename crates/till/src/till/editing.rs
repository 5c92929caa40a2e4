//! What is done to the sale in front beside ringing up: prices, notes, discounts, tip, undo, parked and dropped.

use crate::{Asked, Event, Sale, Till, TillError, editing, parking, undo};
use uuid::Uuid;

impl Till {
    /// Sets another price of a line, in minor units for one piece or kilogram. The price before is kept on the line and in the
    /// audit; that price again takes the change away.
    ///
    /// # Errors
    /// [`TillError::InvalidPrice`]; else as [`Till::set_quantity`].
    pub async fn set_price(&self, line_id: i64, price: i64) -> Result<Sale, TillError> {
        self.change_sale(move |tx, signature| editing::set_price(tx, signature, line_id, price)).await
    }

    /// Takes a part or an amount off a line; `None` takes it off no more.
    ///
    /// # Errors
    /// [`TillError::InvalidDiscount`], [`TillError::NotAllowed`] over the limit of who is logged in; else as [`Till::set_quantity`].
    pub async fn discount_line(&self, line_id: i64, discount: Option<Asked>) -> Result<Sale, TillError> {
        self.change_sale(move |tx, signature| editing::discount_line(tx, signature, line_id, discount)).await
    }

    /// Takes a part or an amount off the sale in front; `None` takes it off no more.
    ///
    /// # Errors
    /// [`TillError::InvalidDiscount`], [`TillError::NotAllowed`], [`TillError::NotFound`], [`TillError::SaleFrozen`], [`TillError::SaleChanged`] where the
    /// sale is not the one in front.
    pub async fn discount_sale(&self, sale_id: Uuid, discount: Option<Asked>) -> Result<Sale, TillError> {
        self.change_sale(move |tx, signature| editing::discount_sale(tx, signature, sale_id, discount)).await
    }

    /// Sets the tip of the sale in front; `None` takes it away.
    ///
    /// # Errors
    /// As [`Till::discount_sale`].
    pub async fn set_tip(&self, sale_id: Uuid, tip: Option<Asked>) -> Result<Sale, TillError> {
        self.change_sale(move |tx, signature| editing::set_tip(tx, signature, sale_id, tip)).await
    }

    /// Notes something on a line, at most 200 characters; an empty note takes it away.
    ///
    /// # Errors
    /// [`TillError::InvalidText`]; else as [`Till::set_quantity`].
    pub async fn set_note(&self, line_id: i64, note: &str) -> Result<Sale, TillError> {
        let note = note.to_owned();
        self.change_sale(move |tx, signature| editing::set_note(tx, signature, line_id, &note)).await
    }

    /// Takes the last change of the sale in front back: an article rung up, a quantity, a line removed, the sale cleared, a
    /// price, a note, a discount or the tip. The last 50 changes can be taken back, one after the other, also after a restart;
    /// Pay ends it. [`Sale::undo`] says what comes next.
    ///
    /// # Errors
    /// [`TillError::NothingToUndo`]; else as [`Till::discount_sale`].
    pub async fn undo(&self, sale_id: Uuid) -> Result<Sale, TillError> {
        self.change_sale(move |tx, signature| undo::undo(tx, signature, sale_id)).await
    }

    /// Parks the open sale in front under a name of at most 64 characters, and gives the sale to go on with. It is one of
    /// [`Till::held_sales`] then, and [`Till::resume_sale`] takes it up again.
    ///
    /// # Errors
    /// [`TillError::InvalidText`] for no name, [`TillError::SaleChanged`] where the sale is empty or not in front,
    /// [`TillError::SaleFrozen`] where it is under payment: hold it instead.
    pub async fn park_sale(&self, sale_id: Uuid, name: &str) -> Result<Sale, TillError> {
        let name = name.to_owned();
        let next = self.change_sale(move |tx, signature| parking::park(tx, signature, sale_id, &name)).await?;
        self.tell(Event::SaleChanged { sale_id });
        Ok(next)
    }

    /// Gives an open sale up, in front or put aside, or one whose payments were all declined or cancelled; and gives the sale
    /// to go on with. It stays in the file as it was, dropped, and can't be taken up again. The same again changes nothing.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::SaleFrozen`] while a payment of it pays or may have paid,
    /// [`TillError::SaleChanged`] where it is completed.
    pub async fn drop_sale(&self, sale_id: Uuid) -> Result<Sale, TillError> {
        let next = self.change_sale(move |tx, signature| parking::drop_sale(tx, signature, sale_id)).await?;
        self.tell(Event::SaleChanged { sale_id });
        Ok(next)
    }
}
