//! The bank lab: the bundled bank asked over its own HTTP, with the run's secret, for its books and for faults.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use reqwest::{Client, Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use till::Till;

use crate::{
    bundled::{Addresses, BundledBank},
    dto::{
        Count, CurrencyAmount, LabBankBooks, LabBankOperation, LabFault, LabFaultHits, LabFaultRule, LabGatewayBooks,
        LabGatewayOperation, LabOperation, LabState, Minor, Operation,
    },
    error::{CommandError, ErrorCode},
};

/// How many of the till's operations are shown.
const OPERATIONS_SHOWN: u32 = 20;
/// The lab answers at once where it answers at all.
const CALL_LIMIT: Duration = Duration::from_secs(5);
/// The account that [`Lab::drain`] empties: that of the test card `tok_account_1`.
const ACCOUNT: u8 = 1;

/// The lab of one run.
pub(crate) struct Lab {
    bank: Arc<BundledBank>,
    http: Client,
    /// The faults that are set, as they were named. Nobody else has the secret that sets them.
    set: Mutex<Vec<LabFaultRule>>,
}

/// Which of the two services a fault is set at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Bank,
    Gateway,
}

impl Lab {
    /// The lab of this bank.
    ///
    /// # Errors
    /// Where this system gives no HTTP client.
    pub(crate) fn new(bank: Arc<BundledBank>) -> Result<Self> {
        let http = Client::builder().no_proxy().timeout(CALL_LIMIT).build()?;
        Ok(Self { bank, http, set: Mutex::default() })
    }

    /// All three books.
    ///
    /// # Errors
    /// [`ErrorCode::LabRefused`] where a bank that runs does not answer; what the till says of its own.
    pub(crate) async fn state(&self, till: &Till) -> Result<LabState, CommandError> {
        let query = till::OperationQuery { limit: Some(OPERATIONS_SHOWN), ..till::OperationQuery::default() };
        let operations = till.operations(query).await?.operations.into_iter().map(Operation::from).collect();
        match self.bank.addresses().await {
            Some(at) => self.books(&at, operations).await.map_err(|error| refused(&error)),
            None => Ok(LabState {
                running: false,
                faults: Vec::new(),
                bank: None,
                gateway: None,
                operations: operations.into_iter().map(|operation| beside(operation, None, None)).collect(),
            }),
        }
    }

    async fn books(&self, at: &Addresses, operations: Vec<Operation>) -> Result<LabState> {
        let mut shown = Vec::with_capacity(operations.len());
        for operation in operations {
            let (bank, gateway) = self.of_operation(at, &operation.key).await?;
            shown.push(beside(operation, bank, gateway));
        }
        let bank: BankBooks = self.look(&format!("{}/lab/ledger", at.bank)).await?.context("the bank has no books")?;
        let gateway: GatewayBooks =
            self.look(&format!("{}/lab/ledger", at.gateway)).await?.context("the gateway has no books")?;
        Ok(LabState {
            running: true,
            faults: self.hits(at).await?,
            bank: Some(bank.into()),
            gateway: Some(gateway.into()),
            operations: shown,
        })
    }

    async fn of_operation(
        &self,
        at: &Addresses,
        key: &str,
    ) -> Result<(Option<LabBankOperation>, Option<LabGatewayOperation>)> {
        let Some(known) = self.look::<BankOperation>(&format!("{}/lab/operations/{key}", at.bank)).await? else {
            return Ok((None, None));
        };
        let BankOperation { gateway_key, gateway_attempts, state } = known;
        let gateway = match gateway_key {
            None => None,
            Some(key) => {
                let books = self.look(&format!("{}/lab/ledger?gateway_key={key}", at.gateway)).await?;
                let GatewayBooks { requests, charges, refunds, .. } = books.context("the gateway has no books")?;
                let (requests, charges, refunds) = (Count(requests), Count(charges), Count(refunds));
                Some(LabGatewayOperation { key, requests, charges, refunds })
            }
        };
        Ok((Some(LabBankOperation { state, gateway_attempts }), gateway))
    }

    /// The faults that are set, each with how often it was met.
    ///
    /// # Errors
    /// [`ErrorCode::LabRefused`] where a bank that runs does not answer.
    pub(crate) async fn faults(&self) -> Result<Vec<LabFaultHits>, CommandError> {
        match self.bank.addresses().await {
            Some(at) => self.hits(&at).await.map_err(|error| refused(&error)),
            None => Ok(Vec::new()),
        }
    }

    async fn hits(&self, at: &Addresses) -> Result<Vec<LabFaultHits>> {
        #[derive(Deserialize)]
        struct Hit {
            hits: u32,
        }
        let mut of_bank = self.look::<Vec<Hit>>(&faults_of(&at.bank)).await?.unwrap_or_default().into_iter();
        let mut of_gateway = self.look::<Vec<Hit>>(&faults_of(&at.gateway)).await?.unwrap_or_default().into_iter();
        // Each service shows its own in the order in which they were set.
        Ok(self
            .set()
            .into_iter()
            .map(|LabFaultRule { fault, times }| {
                let met = match rule(fault).0 {
                    At::Bank => of_bank.next(),
                    At::Gateway => of_gateway.next(),
                };
                LabFaultHits { fault, times, hits: met.map_or(0, |met| met.hits) }
            })
            .collect())
    }

    /// Sets these faults in place of those before.
    ///
    /// # Errors
    /// [`ErrorCode::LabRefused`] where the bank is stopped or does not take one.
    pub(crate) async fn set_faults(&self, faults: Vec<LabFaultRule>) -> Result<Vec<LabFaultHits>, CommandError> {
        if faults.is_empty() {
            self.clear().await?;
            return Ok(Vec::new());
        }
        let at = self.running().await?;
        let set = async {
            for (which, url) in [(At::Bank, &at.bank), (At::Gateway, &at.gateway)] {
                let rules: Vec<Value> = faults
                    .iter()
                    .map(|fault| (rule(fault.fault), fault.times))
                    .filter(|((at, _), _)| *at == which)
                    .map(|((_, rule), times)| limited(rule, times))
                    .collect();
                self.call(Method::PUT, &faults_of(url), Some(json!(rules))).await?;
            }
            *self.set.lock().unwrap_or_else(PoisonError::into_inner) = faults;
            self.hits(&at).await
        };
        set.await.map_err(|error| refused(&error))
    }

    /// Ends every fault, and lets go what hangs.
    ///
    /// # Errors
    /// [`ErrorCode::LabRefused`] where the bank does not do it.
    pub(crate) async fn clear(&self) -> Result<(), CommandError> {
        if let Some(at) = self.bank.addresses().await {
            for url in [&at.bank, &at.gateway] {
                self.call(Method::DELETE, &faults_of(url), None).await.map_err(|error| refused(&error))?;
            }
        }
        self.forget();
        Ok(())
    }

    /// Empties the account of `tok_account_1` in the shop's currency, as if its holder had spent all of it elsewhere: no
    /// charge of this shop's, so that the books still tell what was charged here.
    ///
    /// # Errors
    /// [`ErrorCode::LabRefused`] where the bank is stopped.
    pub(crate) async fn drain(&self, till: &Till) -> Result<(), CommandError> {
        let at = self.running().await?;
        let currency = till.settings().await?.currency;
        let url = format!("{}/lab/accounts/{ACCOUNT}", at.gateway);
        let balance = json!({"currency": currency.to_string(), "balance": 0});
        self.call(Method::PUT, &url, Some(balance)).await.map(drop).map_err(|error| refused(&error))
    }

    /// Kills the bank where it stands. Its faults go with it: they were in its memory.
    ///
    /// # Errors
    /// None so far.
    pub(crate) async fn stop(&self) -> Result<(), CommandError> {
        self.bank.kill().await;
        self.forget();
        Ok(())
    }

    /// Starts it again on its data, at the same address.
    ///
    /// # Errors
    /// [`ErrorCode::LabRefused`] where its files or its port can't be had.
    pub(crate) async fn start(&self) -> Result<(), CommandError> {
        self.bank.start_again().await.map_err(|error| refused(&error))
    }

    async fn running(&self) -> Result<Addresses, CommandError> {
        let stopped = || CommandError::of_lab(ErrorCode::LabRefused, "the bank is stopped: start it first");
        self.bank.addresses().await.ok_or_else(stopped)
    }

    fn set(&self) -> Vec<LabFaultRule> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn forget(&self) {
        self.set.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// What is there; none where it is not.
    async fn look<T: for<'a> Deserialize<'a>>(&self, url: &str) -> Result<Option<T>> {
        let answer = self.http.get(url).bearer_auth(self.bank.secret()).send().await?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        Ok(Some(answer.error_for_status()?.json().await?))
    }

    async fn call(&self, method: Method, url: &str, body: Option<Value>) -> Result<()> {
        let request = self.http.request(method, url).bearer_auth(self.bank.secret());
        let answer = body.iter().fold(request, |request, body| request.json(body)).send().await?;
        let status = answer.status();
        ensure!(status.is_success(), "the lab answered with status {status}: {}", answer.text().await?);
        Ok(())
    }
}

fn faults_of(url: &str) -> String {
    format!("{url}/lab/faults")
}

fn refused(error: &anyhow::Error) -> CommandError {
    CommandError::of_lab(ErrorCode::LabRefused, format!("the bundled bank: {error:#}"))
}

/// What a named fault is, in the words of the fault lab.
fn rule(fault: LabFault) -> (At, Value) {
    match fault {
        LabFault::Hang => (At::Bank, json!({"at": "received", "do": "hang"})),
        LabFault::Slow => (At::Bank, json!({"at": "received", "do": "delay", "ms": 3_000})),
        LabFault::GatewaySlow => (At::Gateway, json!({"at": "received", "do": "delay", "ms": 8_000})),
        LabFault::DropAfterCharge => (At::Bank, json!({"at": "saved", "do": "drop"})),
        LabFault::ErrorAfterCharge => (At::Bank, json!({"at": "saved", "do": "status", "status": 500})),
        LabFault::Truncated => (At::Bank, json!({"at": "saved", "do": "truncate"})),
        LabFault::Garbage => (At::Bank, json!({"at": "saved", "do": "garbage"})),
        LabFault::ForeignAmount => (At::Bank, json!({"at": "saved", "do": "foreign"})),
        LabFault::RateLimited => (At::Bank, json!({"at": "received", "do": "status", "status": 429, "retry_after": 5})),
        LabFault::Unavailable => (At::Bank, json!({"at": "received", "do": "status", "status": 503, "retry_after": 5})),
        LabFault::GatewayDrop => (At::Gateway, json!({"at": "committed", "do": "drop"})),
    }
}

fn limited(mut rule: Value, times: Option<u32>) -> Value {
    if let Some(times) = times {
        rule["times"] = times.into();
    }
    rule
}

fn beside(operation: Operation, bank: Option<LabBankOperation>, gateway: Option<LabGatewayOperation>) -> LabOperation {
    LabOperation {
        key: operation.key,
        short_code: operation.short_code,
        kind: operation.kind,
        amount: operation.amount,
        currency: operation.currency,
        till_state: operation.state,
        till_attempts: operation.attempts,
        bank,
        gateway,
    }
}

#[derive(Deserialize)]
struct BankOperation {
    gateway_key: Option<String>,
    gateway_attempts: u32,
    state: String,
}

#[derive(Deserialize)]
struct BankBooks {
    charges: i64,
    refunds: i64,
    charged: BTreeMap<String, i64>,
    refunded: BTreeMap<String, i64>,
    balanced: bool,
}

#[derive(Deserialize)]
struct GatewayBooks {
    requests: i64,
    distinct_keys: i64,
    charges: i64,
    refunds: i64,
    charged: BTreeMap<String, i64>,
    refunded: BTreeMap<String, i64>,
}

fn amounts(sums: BTreeMap<String, i64>) -> Vec<CurrencyAmount> {
    sums.into_iter().map(|(currency, amount)| CurrencyAmount { currency, amount: Minor(amount) }).collect()
}

impl From<BankBooks> for LabBankBooks {
    fn from(books: BankBooks) -> Self {
        let BankBooks { charges, refunds, charged, refunded, balanced } = books;
        Self {
            charges: Count(charges),
            refunds: Count(refunds),
            charged: amounts(charged),
            refunded: amounts(refunded),
            balanced,
        }
    }
}

impl From<GatewayBooks> for LabGatewayBooks {
    fn from(books: GatewayBooks) -> Self {
        let GatewayBooks { requests, distinct_keys, charges, refunds, charged, refunded } = books;
        Self {
            requests: Count(requests),
            distinct_keys: Count(distinct_keys),
            charges: Count(charges),
            refunds: Count(refunds),
            charged: amounts(charged),
            refunded: amounts(refunded),
        }
    }
}

#[cfg(test)]
mod tests;
