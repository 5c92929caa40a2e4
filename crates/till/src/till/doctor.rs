//! The doctor: the file looked through, and compared with the bank.

use super::payments_at_bank::{Pages, Stopped, ask, known};
use crate::{
    Examined, Till, TillError, Told, acknowledging, doctor,
    doctor::{BankPayment, BankSide, Notes},
    restore,
};
use jiff::{SignedDuration, Timestamp};
use outbox::{Bank, BankIdentity, Filter, HttpTransport};
use protocol::{Key, PAYMENTS_PATH, POLICY_PATH, Policy};
use serde_json::Value;

/// Operations that are read at a time.
const PAGE: u32 = 200;
/// How much earlier than the till's first operation the bank's list is read to: the two clocks may differ.
const CLOCKS_APART: SignedDuration = SignedDuration::from_hours(48);

/// How the comparison with the bank ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compared {
    /// All was compared.
    Whole(Examined),
    /// All that are this bank's were compared, and so many operations are another bank's: name that one for them.
    Partly(Examined, u64),
    /// The bank could not be asked, with why. What was found before was told.
    NotAsked(String),
}

impl Till {
    /// Looks through the whole file, as one state of it, and tells what does not hold. Sees nothing that is written meanwhile, and holds
    /// nobody up.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn examine(&self, mut tell: impl FnMut(Told) + Send + 'static) -> Result<Examined, TillError> {
        self.read(move |conn| doctor::examine(conn, &mut tell)).await
    }

    /// Compares each operation that was sent to this bank with the bank's word, and each payment of the bank's with this till's
    /// operations. Changes nothing, here or there.
    ///
    /// # Errors
    /// [`TillError::NoBank`] where the address or the secret can't be used, [`TillError::NotRead`] or [`TillError::Damaged`] where the
    /// file can't be read.
    pub async fn compare_with_bank(
        &self,
        bank: &Bank,
        mut tell: impl FnMut(Told) + Send,
    ) -> Result<Compared, TillError> {
        let transport = HttpTransport::new(bank).map_err(|error| TillError::NoBank(error.to_string()))?;
        let mut notes = Notes::new(&mut tell);
        match self.compare(&transport, &mut notes).await {
            Ok((operations, others)) => {
                let examined = Examined { sales: 0, operations, findings: notes.findings };
                Ok(if others == 0 { Compared::Whole(examined) } else { Compared::Partly(examined, others) })
            }
            Err(Stopped::Bank(why)) => Ok(Compared::NotAsked(why)),
            Err(Stopped::Till(error)) => Err(error),
        }
    }

    /// Takes a payment for known that only the bank has, such as that of a sale which was rung up after a copy that was brought back: a
    /// person found out what became of it. It is written into the audit as the bank has it now, and [`Till::compare_with_bank`] tells it as
    /// known from then on. The same again changes nothing.
    ///
    /// # Errors
    /// [`TillError::NoBank`] where the bank can't be asked, [`TillError::NotFound`] where it has no such payment or this till knows it,
    /// [`TillError::InvalidReason`], [`TillError::InvalidText`], [`TillError::NotAllowed`], [`TillError::Storage`].
    pub async fn acknowledge_payment(&self, bank: &Bank, payment_id: &str, reason: &str) -> Result<(), TillError> {
        let is_id = !payment_id.is_empty() && payment_id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !is_id {
            return Err(TillError::NotFound("payment at the bank"));
        }
        let transport = HttpTransport::new(bank).map_err(|error| TillError::NoBank(error.to_string()))?;
        let found: Option<Value> =
            ask(&transport, &format!("{PAYMENTS_PATH}/{payment_id}")).await.map_err(not_asked)?;
        let payment = BankPayment::read(found.ok_or(TillError::NotFound("payment at the bank"))?)
            .ok()
            .filter(|payment| payment.id == payment_id)
            .ok_or_else(|| TillError::NoBank("the bank answered with something else than this payment".to_owned()))?;
        let reason = reason.to_owned();
        let read = self.read(acknowledging::read).await?;
        self.change(move |tx, signature| acknowledging::acknowledge(tx, signature, &payment, &reason, &read)).await
    }

    /// How many operations were compared, and how many are another bank's.
    async fn compare(&self, transport: &HttpTransport, notes: &mut Notes<'_>) -> Result<(u64, u64), Stopped> {
        let policy: Policy = known(ask(transport, POLICY_PATH).await)?;
        let bank = BankIdentity { bank_id: policy.bank_id, merchant: policy.merchant };
        let (mut after_seq, mut compared, mut others, mut first_at) = (None, 0, 0, None::<Timestamp>);
        loop {
            let filter = Filter { after_seq, limit: PAGE, ..Filter::default() };
            let page = self.read(move |conn| Ok(outbox::list(conn, filter)?)).await?;
            let Some(last) = page.last() else { break };
            after_seq = Some(last.seq);
            for operation in page {
                first_at = Some(first_at.map_or(operation.created_at, |first| first.min(operation.created_at)));
                // What belongs to another bank is not this one's to know.
                let is_other = operation.bank_id.is_some_and(|id| id != bank.bank_id)
                    || operation.merchant.as_ref().is_some_and(|merchant| *merchant != bank.merchant);
                if is_other {
                    others += 1;
                    continue;
                }
                let theirs = look_up(transport, &operation.key).await?;
                notes.tell_of(doctor::operation(&operation, &theirs));
                compared += 1;
            }
        }
        self.compare_payments(transport, first_at, notes).await?;
        Ok((compared, others))
    }

    /// Goes through the bank's list, newest first, back to before this till's first operation.
    async fn compare_payments(
        &self,
        transport: &HttpTransport,
        first_at: Option<Timestamp>,
        notes: &mut Notes<'_>,
    ) -> Result<(), Stopped> {
        let since = first_at.and_then(|first| first.checked_sub(CLOCKS_APART).ok());
        let names = self.read(restore::names).await?;
        let known = self.read(acknowledging::all).await?;
        let mut pages = Pages::since(since);
        while let Some(page) = pages.next(transport).await? {
            let (names, looked) = (names.clone(), page.clone());
            let found = self
                .read(move |conn| {
                    looked.iter().map(|payment| doctor::payment(conn, &names, payment)).collect::<Result<Vec<_>, _>>()
                })
                .await?;
            for (finding, payment) in found.into_iter().zip(&page) {
                match (finding, acknowledging::find(&known, payment)) {
                    (Some(finding), Some(known)) => notes.known(doctor::known(finding, known.reason())),
                    (finding, _) => notes.tell_of(finding),
                }
            }
        }
        Ok(())
    }
}

fn not_asked(stopped: Stopped) -> TillError {
    match stopped {
        Stopped::Bank(why) => TillError::NoBank(format!("the bank could not be asked: {why}")),
        Stopped::Till(error) => error,
    }
}

async fn look_up(transport: &HttpTransport, key: &Key) -> Result<BankSide, Stopped> {
    let known: Option<protocol::Operation> = ask(transport, &protocol::operation_path(key)).await?;
    match known {
        Some(known) if known.key != *key => Err(Stopped::Bank("the bank answered for another key".to_owned())),
        Some(known) => Ok(BankSide::Known(known)),
        None => Ok(BankSide::Unknown),
    }
}
