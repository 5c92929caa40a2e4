//! What goes into the books of every contender.

use anyhow::Result;
use jiff::Timestamp;
use protocol::{Card, Key, Outcome, Payment, PaymentRequest};
use sha2::{Digest, Sha256};

/// The account of what the gateway owes the bank.
const GATEWAY_ACCOUNT: &str = "gateway";

/// The account of what the bank owes a merchant.
fn merchant_account(merchant: &str) -> String {
    format!("merchant/{merchant}")
}

/// One side of an entry of the ledger.
#[derive(Debug, Clone)]
pub(crate) struct Posting {
    pub(crate) account: String,
    pub(crate) amount: i64,
}

/// A key on its way into the books.
pub(crate) struct Claim {
    pub(crate) merchant: &'static str,
    pub(crate) key: Key,
    /// What the request means.
    pub(crate) hash: [u8; 32],
    pub(crate) request: PaymentRequest,
    /// What is needed to finish it after a crash.
    pub(crate) payload: Vec<u8>,
    /// To the millisecond, as the books hold it.
    pub(crate) created_at: Timestamp,
}

/// What became of a claim.
pub(crate) enum Claimed {
    /// It is the first under this key; the number of the operation.
    New(i64),
    /// The key was known.
    Known {
        hash: Vec<u8>,
        /// None while it runs.
        stored: Option<Stored>,
    },
}

/// The stored answer.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) status: u16,
    pub(crate) payment_id: String,
    pub(crate) body: Vec<u8>,
}

/// A result on its way into the books.
pub(crate) struct Settled {
    pub(crate) merchant: &'static str,
    pub(crate) payment: Payment,
    /// Their amounts add up to nothing.
    pub(crate) postings: [Posting; 2],
    pub(crate) stored: Stored,
    pub(crate) completed_at: Timestamp,
}

/// What an earlier process claimed and did not settle.
pub(crate) struct Unfinished {
    pub(crate) operation: i64,
    pub(crate) key: Key,
    pub(crate) payload: Vec<u8>,
    pub(crate) created_at: Timestamp,
}

/// What the gateway said.
pub(crate) struct Charged {
    pub(crate) card: Option<Card>,
    pub(crate) approval_code: String,
}

impl Claim {
    pub(crate) fn new(merchant: &'static str, key: Key, request: PaymentRequest) -> Result<Self> {
        Self::made_at(merchant, key, request, Timestamp::from_millisecond(Timestamp::now().as_millisecond())?)
    }

    fn made_at(merchant: &'static str, key: Key, request: PaymentRequest, created_at: Timestamp) -> Result<Self> {
        let mut hash = Sha256::new();
        hash.update(b"POST /v1/payments");
        for (name, value) in request.members() {
            for part in [name.as_bytes(), &value] {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part);
            }
        }
        let (hash, payload) = (hash.finalize().into(), request.encode());
        Ok(Self { merchant, key, hash, request, payload, created_at })
    }

    /// The claim as it was made by an earlier process.
    pub(crate) fn again(merchant: &'static str, unfinished: &Unfinished) -> Result<Self> {
        let request = PaymentRequest::decode(&unfinished.payload)?;
        Self::made_at(merchant, unfinished.key, request, unfinished.created_at)
    }

    /// The key under which the gateway is asked: the same for every attempt, and not the till's.
    pub(crate) fn gateway_key(&self) -> Result<Key> {
        let hash = self.name("key");
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        Ok(Key::from_uuid(uuid::Builder::from_custom_bytes(bytes).into_uuid())?)
    }

    /// The name by which the gateway knows the charge.
    pub(crate) fn gateway_reference(&self) -> String {
        let hash = self.name("reference");
        let hex: String = hash[..12].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("bench-{hex}")
    }

    fn name(&self, what: &str) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in [b"bench gateway", what.as_bytes(), self.merchant.as_bytes(), self.key.as_bytes()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }

    /// The result of an approved charge.
    pub(crate) fn settled(self, charged: Charged) -> Result<Settled> {
        let payment = Payment {
            id: payment_id(self.created_at),
            status: Outcome::Approved,
            amount: self.request.amount,
            currency: self.request.currency,
            card: charged.card,
            reference: self.request.reference,
            approval_code: Some(charged.approval_code),
            decline_code: None,
            operation: self.key,
            short_code: self.key.short_code(),
            created_at: self.created_at,
        };
        let stored = Stored { status: 201, payment_id: payment.id.clone(), body: serde_json::to_vec(&payment)? };
        let amount = payment.amount.get();
        let postings = [
            Posting { account: GATEWAY_ACCOUNT.to_owned(), amount },
            Posting { account: merchant_account(self.merchant), amount: -amount },
        ];
        Ok(Settled { merchant: self.merchant, payment, postings, stored, completed_at: Timestamp::now() })
    }
}

/// A new id, whose order follows the time.
fn payment_id(now: Timestamp) -> String {
    let unix_ms = u64::try_from(now.as_millisecond()).unwrap_or(0);
    let uuid = uuid::Builder::from_unix_timestamp_millis(unix_ms, &rand::random()).into_uuid();
    format!("pay_{}", uuid.simple())
}
