//! What somebody does at the till, as a line that its process reads.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// One call of the till's library.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Click {
    AddPerson { name: String, is_manager: bool, pin: String },
    SaveSettings { cash_step: i64, scale_barcodes: String },
    SaveArticle { article: Value },
    LogIn { person_id: i64, pin: String },
    OpenShift { intent_id: Uuid, float_amount: i64 },
    MoveDrawer { id: Uuid, opening: Opening, reason: String },
    Count { total: i64 },
    CloseShift { number: i64 },
    XReport,
    ZReport { number: i64 },
    NewSale,
    OpenSale,
    Sale { sale_id: Uuid },
    RingUp { code: String, quantity: Option<String>, price: Option<i64> },
    RemoveLine { line_id: i64 },
    Undo { sale_id: Uuid },
    SetPrice { line_id: i64, price: i64 },
    DiscountLine { line_id: i64, asked: Value },
    DiscountSale { sale_id: Uuid, asked: Value },
    SetTip { sale_id: Uuid, asked: Value },
    SetNote { line_id: i64, note: String },
    Park { sale_id: Uuid, name: String },
    Resume { sale_id: Uuid },
    Drop { sale_id: Uuid },
    Hold { sale_id: Uuid },
    BeginTender { sale_id: Uuid },
    PayCard { tender_id: Uuid, sale_id: Uuid, amount: i64, card: String },
    PayCash { tender_id: Uuid, sale_id: Uuid, tendered: i64 },
    OfflineAsk { tender_id: Uuid },
    TakeOffline { tender_id: Uuid, contact: Option<String>, over_limit: bool },
    BeginCashInstead { card_tender_id: Uuid },
    PayCashInstead { tender_id: Uuid, sale_id: Uuid, tendered: i64, card_tender_id: Uuid },
    LateDeclines,
    CollectAgain { tender_id: Uuid, late_tender_id: Uuid, card: String },
    WriteOff { late_tender_id: Uuid, reason: String },
    BeginReturn { receipt_number: i64 },
    ReturnGoods { id: Uuid, sale_id: Uuid, goods: Option<Vec<(i64, Option<String>)>>, reason: Option<String> },
    Return { id: Uuid },
    Receipt { sale_id: Uuid },
    Summary,
    CheckNow,
    CheckAudit,
}

impl Click {
    /// The sale in front is changed by it once more each time.
    pub(crate) fn adds_up(&self) -> bool {
        matches!(self, Self::RingUp { .. } | Self::RemoveLine { .. } | Self::Undo { .. })
    }
}

/// Why the drawer is opened beside a sale.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Opening {
    In(i64),
    Out(i64),
    NoSale,
}

/// A PIN as it is typed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pin {
    pub(crate) person_id: i64,
    pub(crate) digits: String,
}

/// A click, with the PIN of whoever approves it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) click: Click,
    pub(crate) approval: Option<Pin>,
}

/// What the till says to it: what a window would get.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Done(Value),
    Refused { code: String, message: String },
}
