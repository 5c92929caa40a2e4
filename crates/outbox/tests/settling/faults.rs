//! A file that is locked, a hook that fails, a transport that panics, clocks that jump.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use outbox::answer::{Answer, CallError};
use outbox::{Bank as Address, BankError, Call, Clock, HttpTransport, Secret, State, SystemClock, Transport};
use protocol::{IDEMPOTENCY_KEY, Key};

use crate::bank::{Bank, Do};
use crate::till::{Till, quick, transport, until};

/// The real way to the bank, with something in the way.
struct Hindered<F> {
    inner: Arc<HttpTransport>,
    hinder: F,
}

impl<F: Fn(&Call) -> Option<CallError> + Send + Sync + 'static> Transport for Hindered<F> {
    fn address(&self) -> &str {
        self.inner.address()
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, CallError>> {
        match (self.hinder)(&call) {
            Some(error) => Box::pin(async { Err(error) }),
            None => self.inner.call(call),
        }
    }
}

#[tokio::test]
async fn only_where_no_connection_was_made_it_counts_as_never_sent() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    let left = AtomicU32::new(2);
    let hinder = move |call: &Call| {
        let counts = call.method == "POST"
            && left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1)).is_ok();
        counts.then(|| CallError::NoConnection("refused".to_owned()))
    };
    till.start_with(Arc::new(Hindered { inner: transport(&bank)?, hinder }))?;
    let key = till.pay(2490).await?.key;
    let paid = till.until_state(key, State::Approved).await?;
    assert_eq!((paid.attempts, bank.payments().len()), (3, 1));
    let log: Vec<_> = till.log(key).await?.into_iter().filter_map(|entry| entry.reading).collect();
    assert_eq!(log, ["no-connection", "no-connection", "approved"]);
    Ok(())
}

#[tokio::test]
async fn an_answer_is_kept_until_the_file_takes_it() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    let path = till.path();
    let locked = Arc::new(Mutex::new(None));
    let holder = locked.clone();
    let once = AtomicBool::new(true);
    let hinder = move |call: &Call| {
        // Another program takes the file after the attempt was counted.
        if call.method == "POST" && once.swap(false, Ordering::AcqRel) {
            let other = rusqlite::Connection::open(&path).ok()?;
            other.execute_batch("BEGIN IMMEDIATE").ok()?;
            *holder.lock().unwrap_or_else(PoisonError::into_inner) = Some(other);
        }
        None
    };
    till.start_with(Arc::new(Hindered { inner: transport(&bank)?, hinder }))?;
    let key = till.pay(2490).await?.key;
    until("the payment", || bank.charges() == 1).await?;
    assert_eq!(till.operation(key).await?.state, State::Sending, "not told before it is durable");
    // A write that came after the answer's own has failed, so that one has too.
    let other = till.store.write(store::Priority::Background, |_| Ok::<_, rusqlite::Error>(())).await;
    assert!(matches!(other, Err(store::WriteError::Storage(_))), "{other:?}");
    assert_eq!(till.operation(key).await?.state, State::Sending);
    drop(locked.lock().unwrap_or_else(PoisonError::into_inner).take());
    till.until_state(key, State::Approved).await?;
    assert_eq!(bank.payments().len(), 1, "it was not asked for again");
    Ok(())
}

#[tokio::test]
async fn an_operation_whose_handling_panics_is_set_aside_and_the_rest_go_on() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    let poison = till.pay(666).await?.key;
    let hinder = move |call: &Call| {
        assert!(call.header(IDEMPOTENCY_KEY) != Some(poison.to_string().as_str()), "a fault of the program");
        None
    };
    till.start_with(Arc::new(Hindered { inner: transport(&bank)?, hinder }))?;
    let other = till.pay(100).await?.key;
    till.until_state(other, State::Approved).await?;
    let aside = till.until_state(poison, State::NeedsAttention).await?;
    assert_eq!(aside.attempts, 3);
    assert!(aside.reason.is_some());
    assert_eq!(till.tender(poison).await?.0, "needs_attention");
    let panics = till.log(poison).await?.into_iter().filter(|entry| entry.event == "panicked").count();
    assert_eq!(panics, 3);
    Ok(())
}

#[tokio::test]
async fn a_hook_that_fails_for_one_operation_sets_that_one_aside() -> Result<()> {
    for panics in [false, true] {
        let bank = Bank::new().await?;
        let poison: Arc<Mutex<Option<Key>>> = Arc::default();
        let poisoned = poison.clone();
        let mut till = Till::new()?.set(move |outbox| {
            outbox.on_change(Arc::new(move |_, operation| {
                let is_poison = *poisoned.lock().unwrap_or_else(PoisonError::into_inner) == Some(operation.key);
                if is_poison && operation.state == State::Approved {
                    assert!(!panics, "a fault of the till");
                    return Err(rusqlite::Error::InvalidQuery);
                }
                Ok(())
            }))
        });
        let key = till.pay(666).await?.key;
        *poison.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
        till.start(&bank)?;
        let other = till.pay(100).await?.key;
        till.until_state(other, State::Approved).await?;
        till.until_state(key, State::NeedsAttention).await?;
        let log = till.log(key).await?;
        let panicked = log.iter().find(|entry| entry.event == "panicked").map(|entry| (&entry.reading, entry.answer));
        assert_eq!(panicked, Some((&Some("approved".to_owned()), Some(201))), "what the bank said is kept");
        // The till's fault is mended: a look-up finds what the bank has.
        *poison.lock().unwrap_or_else(PoisonError::into_inner) = None;
        till.outbox.check_now();
        till.until_state(key, State::Approved).await?;
        assert_eq!(bank.charges(), 2);
    }
    Ok(())
}

#[tokio::test]
async fn a_panic_of_the_loop_itself_starts_it_again() -> Result<()> {
    let bank = Bank::new().await?;
    let calls = AtomicU32::new(0);
    let mut till = Till::new()?.set(|outbox| {
        outbox.with_random(Arc::new(move || {
            assert!(calls.fetch_add(1, Ordering::AcqRel) != 5, "a fault in the loop");
            4
        }))
    });
    till.start(&bank)?;
    let key = till.pay(2490).await?.key;
    till.until_state(key, State::Approved).await?;
    let epoch: i64 = till.store.read(|conn| conn.query_row("SELECT epoch FROM outbox", [], |row| row.get(0))).await?;
    assert_eq!(epoch, 2, "each start of the loop is a new owner");
    assert_eq!(bank.charges(), 1);
    Ok(())
}

/// The machine's clock, set by hand.
struct JumpingClock {
    system: SystemClock,
    ahead_s: AtomicI64,
}

impl Clock for JumpingClock {
    fn now(&self) -> Timestamp {
        let ahead = SignedDuration::from_secs(self.ahead_s.load(Ordering::Acquire));
        self.system.now().saturating_add(ahead).unwrap_or(Timestamp::MAX)
    }

    fn monotonic(&self) -> Duration {
        self.system.monotonic()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.system.sleep(duration)
    }
}

/// What writing, asking and a busy machine may add to a wait.
const BESIDE: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_clock_that_jumps_ten_years_delays_nothing() -> Result<()> {
    const TEN_YEARS_S: i64 = 10 * 365 * 24 * 3_600;
    for ahead_s in [-TEN_YEARS_S, TEN_YEARS_S] {
        let bank = Bank::new().await?;
        let clock = Arc::new(JumpingClock { system: SystemClock::default(), ahead_s: AtomicI64::new(0) });
        let of_outbox = clock.clone();
        let mut till = Till::new()?.set(|outbox| outbox.with_clock(of_outbox));
        bank.always(Some(Do::Problem(protocol::ProblemType::Internal, None)));
        till.start(&bank)?;
        let key = till.pay(2490).await?.key;
        until("some attempts", || bank.payments().len() >= 3).await?;
        clock.ahead_s.store(ahead_s, Ordering::Release);
        let so_far = bank.payments().len();
        until("more attempts", || bank.payments().len() >= so_far + 3).await?;
        let payments = bank.payments();
        let waits: Vec<_> = payments.windows(2).map(|pair| pair[1].at.duration_since(pair[0].at)).collect();
        let cap = quick().backoff.cap.unsigned_abs();
        // What the machine takes beside it is little against ten years, or the quarter of an hour that a bank may ask for.
        assert!(waits.iter().all(|wait| *wait <= cap + BESIDE), "{ahead_s}: {waits:?}");
        bank.always(None);
        till.until_state(key, State::Approved).await?;
        assert_eq!(bank.charges(), 1);
    }
    Ok(())
}

#[tokio::test]
async fn what_is_left_of_a_retry_after_is_left_whatever_the_clock_says() -> Result<()> {
    const TEN_YEARS_S: i64 = 10 * 365 * 24 * 3_600;
    for ahead_s in [-TEN_YEARS_S, TEN_YEARS_S] {
        let bank = Bank::new().await?;
        let clock = Arc::new(JumpingClock { system: SystemClock::default(), ahead_s: AtomicI64::new(0) });
        let of_outbox = clock.clone();
        let mut till = Till::new()?.set(|outbox| outbox.with_clock(of_outbox));
        bank.next([Do::Problem(protocol::ProblemType::Unavailable, Some(2))]);
        till.start(&bank)?;
        let key = till.pay(2490).await?.key;
        till.until_logged(key, "unavailable").await?;
        clock.ahead_s.store(ahead_s, Ordering::Release);
        till.until_state(key, State::Approved).await?;
        let payments = bank.payments();
        let waited = payments[1].at.duration_since(payments[0].at);
        assert!(waited >= Duration::from_secs(2) && waited < Duration::from_secs(10), "{ahead_s}: {waited:?}");
    }
    Ok(())
}

#[test]
fn only_a_bank_on_this_machine_may_be_asked_in_the_clear() {
    let made = |url: &str| HttpTransport::new(&Address { url: url.to_owned(), token: Secret::new("sk_test") });
    for url in
        ["http://127.0.0.1:8460", "http://localhost:1", "http://[::1]:1/", "http://127.9.9.9", "https://bank.example/"]
    {
        assert!(made(url).is_ok(), "{url}");
    }
    for url in ["http://bank.example", "http://10.0.0.1", "http://127.0.0.1.example", "http://0.0.0.0:1"] {
        assert!(matches!(made(url), Err(BankError::NotEncrypted)), "{url}");
    }
    for url in
        ["", "bank", "ftp://127.0.0.1", "http://user:secret@127.0.0.1", "http://127.0.0.1/?x=1", "file:///etc/passwd"]
    {
        assert!(matches!(made(url), Err(BankError::Address)), "{url}");
    }
    let unsendable = HttpTransport::new(&Address { url: "http://127.0.0.1".to_owned(), token: Secret::new("sk\n") });
    assert!(matches!(unsendable, Err(BankError::Token)));
    assert!(!format!("{:?}", Secret::new("sk_test")).contains("sk_test"));
}
