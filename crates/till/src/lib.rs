//! The till over its SQLite file: catalogue, the sale in front of the cashier, Pay, receipts, settings, audit.
//!
//! The window and the command line are two faces of this crate; what they show and do is here, and they decide nothing. Money
//! is computed by `checkout`, what is asked of the bank is kept and settled by `outbox`, in the same file.
//!
//! **The one invariant:** a sale under payment is frozen together with what is asked of the bank, in one commit, before a
//! byte leaves; from then on its figures never change, one tender is one operation for ever, and only what is declined or
//! cancelled may be paid another way. The database itself refuses the rest.
//!
//! ```no_run
//! # async fn example() -> Result<(), till::TillError> {
//! use till::{CardPayment, Till};
//!
//! let till = Till::open("data".as_ref())?;
//! let sale = till.add_article("BAK-201", None).await?;
//! let dialog = till.begin_tender(sale.id).await?;
//! let payment =
//!     CardPayment { tender_id: dialog.tender_id, sale_id: sale.id, amount: dialog.due, card: "tok_visa".to_owned() };
//! let operation = till.pay_card(payment.clone()).await?;
//! // Clicked again, by mistake or after a crash: the same operation.
//! assert_eq!(till.pay_card(payment).await?.key, operation.key);
//! # Ok(()) }
//! ```

mod acknowledging;
mod alarms;
mod amounts;
mod asked;
mod audit;
mod backup;
mod bank_access;
mod begun;
mod cancelling;
mod cart;
mod catalogue;
mod changes;
mod charge;
mod clock;
mod columns;
mod demo;
mod doctor;
mod ean13;
mod editing;
mod error;
mod export;
mod figures;
mod given;
mod instead;
mod late;
mod lines;
mod network;
mod offline;
mod operations;
mod parking;
mod pay;
mod people;
mod pins;
mod printing;
mod queue;
mod receipt;
mod refunds;
mod restore;
mod returns;
mod rights;
mod sale;
mod sales;
mod schema;
mod screen;
mod settings;
mod settling;
mod shifts;
mod span;
mod tenders;
mod till;
mod trouble;
mod undo;
mod voids;

pub use alarms::Alarm;
pub use amounts::format_amount;
pub use asked::Asked;
pub use audit::{AuditEntry, Break, ChainCheck, ChainProgress};
pub use backup::{BackedUp, BackupProgress, Restored};
pub use bank_access::{BankAccess, NewBankAccess};
pub use cart::HeldSales;
pub use catalogue::{
    Article, ArticleDetails, ArticleQuery, Articles, Category, CategoryDetails, ImportError, ImportErrors, ImportMode,
    ImportProgress, Imported, Unit,
};
pub use changes::{Changes, Place};
pub use charge::Charge;
pub use clock::new_id;
pub use doctor::{Examined, Finding, Told};
pub use ean13::{Carries, ScaleBarcodes, ValueDigits, check_digit};
pub use error::TillError;
pub use export::{ExportFormat, Exported};
pub use late::{CollectAgain, CollectInCash, LateDecline, LateDeclines, LateFigures, LateQuery, LateState, LateTotal};
pub use lines::Origin;
pub use offline::{OfflineAsk, OverLimit, TakeOffline};
pub use operations::{Operation, OperationQuery, Operations, TimelineEntry};
pub use outbox::{Attempt, Bank, BankIdentity, Secret, State};
pub use pay::{CardPayment, CashPayment, CashTaken, TenderBegun};
pub use people::{NewPerson, Person, PersonChange, Role, Session};
pub use pins::PinEntry;
pub use printing::{PrintFault, Printed, Printer, PrinterSettings};
pub use queue::{AmountOf, Backlog, Chip, Event, Summary};
pub use receipt::{CodePages, Language, Paper, Receipt, ReceiptForm};
pub use refunds::{OwedRefund, Refund};
pub use restore::Matched;
pub use returns::{
    CardPart, Goods, LegState, NewReturn, PaidOut, PricedGoods, PricedReturn, Return, ReturnBegun, ReturnFigures,
    ReturnLeg, ReturnLine, ReturnLineBegun, ReturnState, ReturnedGoods,
};
pub use rights::{Limit, Measure, Right, RoleRight};
pub use sale::{Sale, SaleLine, SaleTax, Tender};
pub use sales::{
    SaleState,
    listing::{ListedSale, ListedTender, SalePlace, Sales, SalesQuery},
};
pub use schema::prepare;
pub use screen::{Command, KeyBindings, ScreenSettings, Shortcut, Theme};
pub use settings::{OfflineLimits, Settings};
pub use settling::Settling;
pub use shifts::{
    Shift, ShiftEnd, ShiftOpening,
    drawer::{Count, CountMade, Counted, DrawerMove, DrawerMoveKind, DrawerOpening, NewDrawerMove, Pieces},
    removed::RemovedFigures,
    report::{
        Cards, Drawer, OtherCurrency, PartlyPaid, ReportKind, ShiftReport, TaxTotal, TenderTotal, Total, Unsettled,
    },
};
pub use tenders::{TenderKind, TenderState};
pub use till::{Compared, Till, default_data_dir};
pub use voids::{NewVoid, PricedVoid, SaleVoid, VoidFigures};

#[cfg(test)]
mod tests;
