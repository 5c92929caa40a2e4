//! The ceiling: a map in memory. It keeps the promise until the process ends, and nothing after.

use crate::contender::{
    Books,
    payment::{Claim, Claimed, Posting, Settled, Stored, Unfinished},
};
use anyhow::{Context, Result};
use protocol::{Key, Payment};
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Mutex, MutexGuard, PoisonError},
};

#[derive(Default)]
pub(crate) struct Memory {
    all: Mutex<All>,
}

#[derive(Default)]
struct All {
    numbers: HashMap<(&'static str, Key), usize>,
    /// By number, from 0.
    operations: Vec<Operation>,
    payments: Vec<Payment>,
    postings: Vec<(i64, Posting)>,
}

struct Operation {
    hash: [u8; 32],
    stored: Option<Stored>,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books for Memory {
    async fn claim(&self, claim: &Claim) -> Result<Claimed> {
        let mut all = self.lock();
        let All { numbers, operations, .. } = &mut *all;
        match numbers.entry((claim.merchant, claim.key)) {
            Entry::Vacant(new) => {
                let number = operations.len();
                new.insert(number);
                operations.push(Operation { hash: claim.hash, stored: None });
                Ok(Claimed::New(i64::try_from(number)?))
            }
            Entry::Occupied(known) => {
                let operation = operations.get(*known.get()).context("a key without its operation")?;
                Ok(Claimed::Known { hash: operation.hash.to_vec(), stored: operation.stored.clone() })
            }
        }
    }

    async fn settle(&self, operation: i64, settled: &Settled) -> Result<()> {
        let (stored, payment, postings) = (settled.stored.clone(), settled.payment.clone(), settled.postings.clone());
        let mut all = self.lock();
        let row = all.operations.get_mut(usize::try_from(operation)?).context("no such operation")?;
        row.stored = Some(stored);
        all.payments.push(payment);
        all.postings.extend(postings.map(|posting| (operation, posting)));
        Ok(())
    }

    async fn unfinished(&self) -> Result<Vec<Unfinished>> {
        Ok(Vec::new())
    }
}
