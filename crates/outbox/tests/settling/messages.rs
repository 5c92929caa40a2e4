//! Requests that are no money, to somebody else than the bank, as a contract of the program's own says.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use outbox::answer::{Answer, Reading};
use outbox::{
    Ask, Bank as Address, BankIdentity, Call, CancelAs, Contract, EnqueueError, HttpTransport, Message, NewOperation,
    Operation, Promise, State, StoredRequest,
};
use serde_json::json;
use store::{Priority, WriteError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

use crate::till::Till;

/// Takes every 200 for an end, whatever stands in it. It has no look-up and no cancellation.
struct AnyAnswer;

impl Contract for AnyAnswer {
    fn introduction(&self) -> Call {
        Call::new("GET", "/")
    }

    fn read_introduction(&self, answer: &Answer, _: jiff::Timestamp) -> Result<Promise, Reading> {
        match answer.status {
            200 => Ok(Promise::for_ever(BankIdentity { bank_id: Uuid::from_u128(9), merchant: "shop".to_owned() })),
            status => Err(Reading::foreign(format!("status {status}"))),
        }
    }

    fn call(&self, ask: Ask, operation: &Operation, request: &StoredRequest) -> Option<Call> {
        // What a header can't hold, where the lane has it.
        let call = request.call().with("x-lane", operation.lane.clone()).with("content-type", "text/plain".to_owned());
        ask.sends().then(|| call.with("x-key", operation.key.to_string()))
    }

    fn read(&self, _: Ask, _: &Operation, _: &StoredRequest, answer: &Answer, _: jiff::Timestamp) -> Reading {
        if answer.status == 200 { Reading::approved(answer.text()) } else { Reading::foreign("not 200") }
    }
}

/// Answers everything with `ok`, and keeps what was asked.
struct Receiver {
    asked: Arc<Mutex<Vec<String>>>,
    url: String,
}

impl Receiver {
    async fn new() -> Result<Receiver> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}/hooks/", listener.local_addr()?);
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let kept = kept.clone();
                tokio::spawn(async move { answer(stream, &kept).await });
            }
        });
        Ok(Receiver { asked, url })
    }

    fn asked(&self, method: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.iter().filter(|text| text.starts_with(method)).cloned().collect()
    }

    fn transport(&self, token: &str) -> Result<Arc<HttpTransport>> {
        Ok(Arc::new(HttpTransport::new(&Address::new(&self.url, token))?))
    }
}

async fn answer(mut stream: TcpStream, kept: &Mutex<Vec<String>>) -> Result<()> {
    let mut text = Vec::new();
    // Each message of these tests ends so, and a question has no body.
    while !(text.ends_with(b"</end>") || (text.starts_with(b"GET") && text.ends_with(b"\r\n\r\n"))) {
        if stream.read_buf(&mut text).await? == 0 {
            return Ok(());
        }
    }
    kept.lock().unwrap_or_else(PoisonError::into_inner).push(String::from_utf8_lossy(&text).into_owned());
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").await?;
    Ok(())
}

fn message(lane: &str, path: &str) -> NewOperation {
    NewOperation::new(Uuid::new_v4(), lane, Message::post(path, "<parcel/></end>"))
}

async fn save(till: &Till, new: NewOperation) -> Result<Operation, WriteError<EnqueueError>> {
    let outbox = till.outbox.clone();
    let saved = till.store.write(Priority::Click, move |tx| outbox.enqueue(tx, &new)).await?;
    till.outbox.wake();
    Ok(saved.operation)
}

#[tokio::test]
async fn a_message_goes_out_as_it_was_saved_with_what_its_contract_adds() -> Result<()> {
    let receiver = Receiver::new().await?;
    let mut till = Till::new_with(AnyAnswer)?;
    till.start_with(receiver.transport("")?)?;
    let new = message("order-1", "/parcels?shop=7&dry=no");
    let saved = save(&till, new.clone()).await?;
    let ended = till.until_state(saved.key, State::Approved).await?;
    assert_eq!(ended.result, Some(json!("ok")), "what is no JSON is kept as text");
    assert_eq!(till.tender(saved.key).await?.0, "approved");
    let asked = receiver.asked("POST");
    let text = asked.first().context("nothing was sent")?;
    assert!(text.starts_with("POST /hooks/parcels?shop=7&dry=no HTTP/1.1\r\n"), "{text}");
    assert!(text.ends_with("\r\n\r\n<parcel/></end>"), "{text}");
    for header in [format!("x-key: {}", saved.key), "x-lane: order-1".to_owned(), "content-type: text/plain".to_owned()]
    {
        assert_eq!(text.matches(&header).count(), 1, "{header}: {text}");
    }
    assert!(!text.contains("authorization") && !text.contains("application/json"), "{text}");

    // The same intent is the same message, and never another one.
    assert_eq!(save(&till, new.clone()).await?, ended);
    let other = NewOperation { request: Message::post("/parcels", "<other/></end>").into(), ..new };
    assert!(matches!(save(&till, other).await, Err(WriteError::Refused(EnqueueError::IntentReused(_)))));
    assert_eq!(receiver.asked("POST").len(), 1);
    Ok(())
}

/// Says of every answer what the other side may have put into it.
struct Dirty {
    name_for_us: &'static str,
}

const DIRTY: &str = "odd\u{1b}[2J\n\u{202e}word";

impl Contract for Dirty {
    fn introduction(&self) -> Call {
        AnyAnswer.introduction()
    }

    fn read_introduction(&self, _: &Answer, _: jiff::Timestamp) -> Result<Promise, Reading> {
        let merchant = self.name_for_us.to_owned();
        Ok(Promise::for_ever(BankIdentity { bank_id: Uuid::from_u128(9), merchant }))
    }

    fn call(&self, ask: Ask, operation: &Operation, request: &StoredRequest) -> Option<Call> {
        AnyAnswer.call(ask, operation, request)
    }

    fn read(&self, _: Ask, operation: &Operation, _: &StoredRequest, _: &Answer, _: jiff::Timestamp) -> Reading {
        match operation.lane.as_str() {
            "refused" => Reading::refused(DIRTY.to_owned(), DIRTY),
            "attention" => Reading::BankAttention(DIRTY.to_owned()),
            _ => Reading::trouble(DIRTY.to_owned()),
        }
    }
}

#[tokio::test]
async fn whatever_words_the_other_side_uses_file_and_screen_get_them_on_one_line() -> Result<()> {
    let receiver = Receiver::new().await?;
    let mut till = Till::new_with(Dirty { name_for_us: "shop" })?;
    till.start_with(receiver.transport("")?)?;
    let clean = "odd [2J  word";
    for (lane, reason) in [("refused", format!("{clean}: {clean}")), ("attention", format!("bank: {clean}"))] {
        let key = save(&till, message(lane, "/parcels")).await?.key;
        let aside = till.until_state(key, State::NeedsAttention).await?;
        assert_eq!(aside.reason, Some(reason));
        let answers: Vec<_> = till.log(key).await?.into_iter().filter(|line| line.reading.is_some()).collect();
        assert!(answers.iter().any(|line| line.detail == clean), "{answers:?}");
    }
    let key = save(&till, message("trouble", "/parcels")).await?.key;
    let failed = till.until(key, "failed", |operation| operation.last_answer.is_some()).await?;
    assert_eq!(failed.last_answer.as_deref(), Some(clean));
    Ok(())
}

#[tokio::test]
async fn a_name_for_us_that_cant_be_shown_is_no_introduction() -> Result<()> {
    let receiver = Receiver::new().await?;
    let mut till = Till::new_with(Dirty { name_for_us: DIRTY })?;
    let key = save(&till, message("order-1", "/parcels")).await?.key;
    till.start_with(receiver.transport("")?)?;
    till.until_summary("refused", |summary| summary.bank_problem.as_deref() == Some("not-the-bank")).await?;
    assert_eq!(till.operation(key).await?.state, State::Saved);
    assert!(receiver.asked("POST").is_empty());
    Ok(())
}

#[tokio::test]
async fn what_can_never_be_sent_is_not_saved_or_is_set_aside_and_holds_up_nobody() -> Result<()> {
    let receiver = Receiver::new().await?;
    let mut till = Till::new_with(AnyAnswer)?;
    let mut wrong = message("order-1", "/parcels");
    wrong.request = Message { method: "P OST".to_owned(), ..Message::post("/parcels", "") }.into();
    for new in [wrong, message("order-1", "parcels"), message("order-1", "https://elsewhere.example/")] {
        assert!(matches!(save(&till, new).await, Err(WriteError::Refused(EnqueueError::Unsendable(_)))));
    }
    let poison = save(&till, message("order\n1", "/parcels")).await?.key;
    let other = save(&till, message("order-2", "/parcels")).await?.key;
    till.start_with(receiver.transport("secret")?)?;
    let aside = till.until_state(poison, State::NeedsAttention).await?;
    assert_eq!(aside.reason.as_deref(), Some("unsendable: x-lane can't be sent"));
    till.until_state(other, State::Approved).await?;
    let sent = receiver.asked("POST");
    assert_eq!(sent.len(), 1);
    assert!(sent.iter().all(|text| text.contains("authorization: Bearer secret")), "{sent:?}");
    assert_eq!(receiver.asked("GET").len(), 1, "it was no failure of the way there");
    Ok(())
}

#[tokio::test]
async fn a_message_that_was_cancelled_here_is_done_with_where_nobody_can_be_told() -> Result<()> {
    let receiver = Receiver::new().await?;
    let mut till = Till::new_with(AnyAnswer)?;
    let key = save(&till, message("order-1", "/parcels")).await?.key;
    let now = jiff::Timestamp::now();
    till.store.write(Priority::Click, move |tx| outbox::cancel(tx, &key, CancelAs::Wish, now)).await?;
    till.start_with(receiver.transport("")?)?;
    let done = till.until(key, "done with", |operation| !operation.tombstone).await?;
    assert_eq!((done.state, done.due_at), (State::Cancelled, None));
    let readings: Vec<_> = till.log(key).await?.into_iter().filter_map(|entry| entry.reading).collect();
    assert_eq!(readings, ["not-offered"], "asked once, and not for ever");
    assert!(receiver.asked("POST").is_empty());
    Ok(())
}
