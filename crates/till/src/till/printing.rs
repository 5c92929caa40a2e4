//! Receipts, shown and on paper.

use crate::{
    Measure, Printed, PrinterSettings, Receipt, ReceiptForm, Right, Till, TillError, printing,
    printing::{Begun, Job, PrintOf},
    receipt, rights,
};
use uuid::Uuid;

impl Till {
    /// The receipt of a sale that is paid or under payment, as wide and in the language that the printer's settings say.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::SaleChanged`] where the sale is open, or was voided: then [`Till::void_slip`].
    pub async fn receipt(&self, sale_id: Uuid) -> Result<Receipt, TillError> {
        self.read(move |conn| receipt::receipt(conn, PrintOf::Sale(sale_id), None)).await
    }

    /// The same on another paper or in another language.
    ///
    /// # Errors
    /// As [`Till::receipt`].
    pub async fn receipt_in(&self, sale_id: Uuid, form: ReceiptForm) -> Result<Receipt, TillError> {
        self.read(move |conn| receipt::receipt(conn, PrintOf::Sale(sale_id), Some(form))).await
    }

    /// The slip of a return: what came back, and how far its money is on its way back. In `form`, or as the printer's settings say.
    ///
    /// # Errors
    /// [`TillError::NotFound`].
    pub async fn return_slip(&self, return_id: Uuid, form: Option<ReceiptForm>) -> Result<Receipt, TillError> {
        self.read(move |conn| receipt::receipt(conn, PrintOf::Return(return_id), form)).await
    }

    /// The slip of a sale that was voided: what was paid, what goes back and how, and how far each card's part of it is. In `form`, or as
    /// the printer's settings say.
    ///
    /// # Errors
    /// [`TillError::NotFound`] where the sale was not voided.
    pub async fn void_slip(&self, sale_id: Uuid, form: Option<ReceiptForm>) -> Result<Receipt, TillError> {
        self.read(move |conn| receipt::receipt(conn, PrintOf::Void(sale_id), form)).await
    }

    /// Where receipts are printed, and how.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn printer_settings(&self) -> Result<PrinterSettings, TillError> {
        self.read(printing::settings).await
    }

    /// Has receipts printed there from now on. The printer itself is not asked.
    ///
    /// # Errors
    /// [`TillError::InvalidSetting`], [`TillError::NotAllowed`], [`TillError::Storage`].
    pub async fn save_printer_settings(&self, settings: PrinterSettings) -> Result<(), TillError> {
        self.change(move |tx, signature| {
            let signature = rights::allow(tx, signature, Right::Settings, Measure::Whole)?;
            printing::save(tx, &signature, &settings)
        })
        .await
    }

    /// Prints the receipt of a sale that is paid or under payment: the first time as the original, then as a counted copy. What was
    /// perhaps printed counts as printed. Nothing of the sale changes, whatever the printer does, and nobody but the caller waits
    /// for it: with a printer on a network 14 s at most.
    ///
    /// # Errors
    /// [`TillError::Print`] with what was in the printer's way; [`TillError::Storage`] where the print could not be counted, and so was
    /// not made; [`TillError::NotFound`], [`TillError::SaleChanged`] as [`Till::receipt`].
    pub async fn print_receipt(&self, sale_id: Uuid) -> Result<Printed, TillError> {
        self.print(PrintOf::Sale(sale_id)).await
    }

    /// Prints the slip of a return, as [`Till::print_receipt`] does the receipt of a sale.
    ///
    /// # Errors
    /// [`TillError::Print`], [`TillError::Storage`], [`TillError::NotFound`].
    pub async fn print_return_slip(&self, return_id: Uuid) -> Result<Printed, TillError> {
        self.print(PrintOf::Return(return_id)).await
    }

    /// Prints the slip of a sale that was voided, as [`Till::print_receipt`] does the receipt of one that was paid.
    ///
    /// # Errors
    /// [`TillError::Print`], [`TillError::Storage`], [`TillError::NotFound`] where the sale was not voided.
    pub async fn print_void_slip(&self, sale_id: Uuid) -> Result<Printed, TillError> {
        self.print(PrintOf::Void(sale_id)).await
    }

    async fn print(&self, of: PrintOf) -> Result<Printed, TillError> {
        let Begun { printed, settings, sheet } =
            self.change(move |tx, signature| printing::begin(tx, signature, of)).await?;
        let job = Job {
            name: format!("{}-{}", sheet.name(), printed.print),
            text: sheet.text(settings.form),
            bytes: sheet.printer_bytes(settings.form, settings.code_pages),
        };
        let done = printing::print(&settings.printer, job).await;
        let fault = done.clone().err();
        let noted =
            self.change_unlocked(move |tx, signature| printing::end(tx, signature, printed, fault.as_ref())).await;
        if let Err(error) = noted {
            // It counts as perhaps printed then, and the next one is a copy.
            tracing::warn!(%error, "what became of a print could not be noted");
        }
        done.map(|()| printed).map_err(TillError::Print)
    }
}
