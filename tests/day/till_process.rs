//! The till as a process of its own: this very test program, started again with the test below alone, which then reads clicks from a
//! connection and does them by the till's library, as a window would.

use std::{env, net::SocketAddr, path::PathBuf};

use anyhow::{Result, ensure};
use checkout::{CashRounding, CashRule};
use serde::Serialize;
use serde_json::Value;
use till::{
    Asked as Terms, Bank, CardPayment, CashPayment, CollectAgain, Count, DrawerOpening, Goods, LateQuery,
    NewDrawerMove, NewPerson, NewReturn, PinEntry, ReturnedGoods, Role, Secret, Settings, ShiftOpening, TakeOffline,
    Till, TillError,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;

use crate::{
    click::{Answer, Asked, Click, Opening, Pin},
    counter::Counter,
    harness::bank::SECRET,
};

/// Where the clicks come from. Only the process of the till has it.
pub(crate) const CLICKS: &str = "KASSA_DAY_CLICKS";
/// Its data folder.
pub(crate) const DATA: &str = "KASSA_DAY_DATA";
/// Its bank's address.
pub(crate) const BANK: &str = "KASSA_DAY_BANK";
/// What runs the test below and nothing else.
pub(crate) const ALONE: [&str; 3] = ["--exact", "till_process::the_till_answers_clicks_until_they_end", "--nocapture"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_till_answers_clicks_until_they_end() -> Result<()> {
    if let Ok(address) = env::var(CLICKS) {
        return serve(address.parse()?, PathBuf::from(env::var(DATA)?), env::var(BANK)?).await;
    }
    let folder = tempfile::tempdir()?;
    // A bank that nobody is at: the till works all the same.
    let mut counter = Counter::open(folder.path(), "http://127.0.0.1:9", &[]).await?;
    let sale = counter.done(Click::OpenSale).await?;
    ensure!(sale["state"] == "open", "{sale}");
    let (code, said) = counter.refused(Click::RingUp { code: "nothing".into(), quantity: None, price: None }).await?;
    ensure!(code == "unknown-article" && said.contains("nothing"), "{code}: {said}");
    counter.close().await
}

/// Does the clicks that come, one after the other, and settles with the bank meanwhile.
async fn serve(clicks: SocketAddr, data: PathBuf, bank_url: String) -> Result<()> {
    let till = Till::open(&data)?.acting_as("window");
    let shutdown = CancellationToken::new();
    let bank = Bank { url: bank_url, token: Secret::new(SECRET.to_owned()) };
    let mut settling = till.start_settling(Some(bank), shutdown.clone())?;
    let mut stream = BufReader::new(TcpStream::connect(clicks).await?);
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 0 {
        let asked: Asked = serde_json::from_str(&line)?;
        let answer = match answered(&till, asked).await {
            Ok(value) => Answer::Done(value),
            Err(error) => Answer::Refused { code: error.code().to_owned(), message: error.to_string() },
        };
        stream.write_all(format!("{}\n", serde_json::to_string(&answer)?).as_bytes()).await?;
        line.clear();
    }
    shutdown.cancel();
    Ok(settling.stopped().await?)
}

async fn answered(till: &Till, Asked { click, approval }: Asked) -> Result<Value, TillError> {
    match approval {
        Some(Pin { person_id, digits: pin }) => {
            done(&till.approved_by(PinEntry { person_id, pin }).await?, click).await
        }
        None => done(till, click).await,
    }
}

fn json<T: Serialize>(answer: T) -> Result<Value, TillError> {
    serde_json::to_value(answer).map_err(|error| TillError::Internal(error.to_string()))
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, TillError> {
    serde_json::from_value(value).map_err(|error| TillError::Internal(error.to_string()))
}

async fn done(till: &Till, click: Click) -> Result<Value, TillError> {
    match click {
        Click::AddPerson { name, is_manager, pin } => {
            let role = if is_manager { Role::Manager } else { Role::Cashier };
            json(till.add_person(NewPerson { name, role, pin }).await?)
        }
        Click::SaveSettings { cash_step, scale_barcodes } => {
            let cash = CashRule::new(cash_step, CashRounding::Nearest);
            let cash = cash.ok_or_else(|| TillError::Internal(format!("no step: {cash_step}")))?;
            let scale_barcodes = scale_barcodes.parse()?;
            json(till.save_settings(Settings { cash, scale_barcodes, ..till.settings().await? }).await?)
        }
        Click::SaveArticle { article } => json(till.save_article(None, read(article)?).await?),
        Click::LogIn { person_id, pin } => json(till.log_in(PinEntry { person_id, pin }).await?),
        Click::OpenShift { intent_id, float_amount } => {
            json(till.open_shift(ShiftOpening { intent_id, float_amount }).await?)
        }
        Click::MoveDrawer { id, opening, reason } => {
            let opening = match opening {
                Opening::In(amount) => DrawerOpening::In(amount),
                Opening::Out(amount) => DrawerOpening::Out(amount),
                Opening::NoSale => DrawerOpening::NoSale,
            };
            json(till.move_drawer(NewDrawerMove { id, opening, reason }).await?)
        }
        Click::Count { total } => json(till.count_drawer(Count::Total(total)).await?),
        Click::CloseShift { number } => json(till.close_shift(number).await?),
        Click::XReport => json(till.x_report().await?),
        Click::ZReport { number } => json(till.z_report(number).await?),
        Click::LateDeclines => json(till.late_declines(LateQuery { with_ended: true, ..LateQuery::default() }).await?),
        Click::Summary => json(till.summary().await?),
        Click::CheckNow => json(till.retry_now(None).await?),
        Click::CheckAudit => json(till.check_audit(|_| {}).await?),
        click => sold(till, click).await,
    }
}

/// What is done with the sale in front.
async fn sold(till: &Till, click: Click) -> Result<Value, TillError> {
    json(match click {
        Click::NewSale => till.new_sale().await?,
        Click::OpenSale => till.open_sale().await?,
        Click::Sale { sale_id } => till.sale(sale_id).await?,
        Click::RingUp { code, quantity, price: None } => till.add_article(&code, quantity.as_deref()).await?,
        Click::RingUp { code, quantity, price: Some(price) } => {
            till.add_at_price(&code, quantity.as_deref(), price).await?
        }
        Click::RemoveLine { line_id } => till.remove_line(line_id).await?,
        Click::Undo { sale_id } => till.undo(sale_id).await?,
        Click::SetPrice { line_id, price } => till.set_price(line_id, price).await?,
        Click::DiscountLine { line_id, asked } => till.discount_line(line_id, Some(read::<Terms>(asked)?)).await?,
        Click::DiscountSale { sale_id, asked } => till.discount_sale(sale_id, Some(read::<Terms>(asked)?)).await?,
        Click::SetTip { sale_id, asked } => till.set_tip(sale_id, Some(read::<Terms>(asked)?)).await?,
        Click::SetNote { line_id, note } => till.set_note(line_id, &note).await?,
        Click::Park { sale_id, name } => till.park_sale(sale_id, &name).await?,
        Click::Resume { sale_id } => till.resume_sale(sale_id).await?,
        Click::Drop { sale_id } => till.drop_sale(sale_id).await?,
        Click::Hold { sale_id } => till.hold_sale(sale_id).await?,
        click => return paid(till, click).await,
    })
}

/// What has to do with its money.
async fn paid(till: &Till, click: Click) -> Result<Value, TillError> {
    match click {
        Click::BeginTender { sale_id } => json(till.begin_tender(sale_id).await?),
        Click::PayCard { tender_id, sale_id, amount, card } => {
            json(till.pay_card(CardPayment { tender_id, sale_id, amount, card }).await?)
        }
        Click::PayCash { tender_id, sale_id, tendered } => {
            json(till.pay_cash(CashPayment { tender_id, sale_id, tendered }).await?)
        }
        Click::OfflineAsk { tender_id } => json(till.offline_ask(tender_id).await?),
        Click::TakeOffline { tender_id, contact, over_limit } => {
            json(till.take_offline(TakeOffline { tender_id, contact, over_limit }).await?)
        }
        Click::BeginCashInstead { card_tender_id } => json(till.begin_cash_instead(card_tender_id).await?),
        Click::PayCashInstead { tender_id, sale_id, tendered, card_tender_id } => {
            let payment = CashPayment { tender_id, sale_id, tendered };
            json(till.pay_cash_instead(payment, card_tender_id).await?)
        }
        Click::CollectAgain { tender_id, late_tender_id, card } => {
            json(till.collect_again(CollectAgain { tender_id, late_tender_id, card }).await?)
        }
        Click::WriteOff { late_tender_id, reason } => json(till.write_off(late_tender_id, &reason).await?),
        Click::BeginReturn { receipt_number } => json(till.begin_return_of_receipt(receipt_number).await?),
        Click::ReturnGoods { id, sale_id, goods, reason } => {
            let goods = match goods {
                None => ReturnedGoods::Whole,
                Some(goods) => ReturnedGoods::Lines(
                    goods.into_iter().map(|(line_id, quantity)| Goods { line_id, quantity }).collect(),
                ),
            };
            json(till.return_goods(NewReturn { id, sale_id, goods, reason }).await?)
        }
        Click::Return { id } => json(till.return_by_id(id).await?),
        Click::Receipt { sale_id } => json(till.receipt(sale_id).await?),
        other => Err(TillError::Internal(format!("nobody does {other:?}"))),
    }
}
