//! The lab over a bundled bank and a till that settles with it.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use till::{CardPayment, State, TakeOffline, Till};
use tokio_util::sync::CancellationToken;

use super::*;

/// For what settles by itself.
const STEP_LIMIT: Duration = Duration::from_secs(40);

struct Scene {
    _folder: tempfile::TempDir,
    till: Till,
    lab: Lab,
    bank: Arc<BundledBank>,
    end: CancellationToken,
    settling: till::Settling,
}

impl Scene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let till = Till::open(&folder.path().join("till")).unwrap();
        let bank = Arc::new(BundledBank::start(&folder.path().join("till")).await.unwrap());
        let end = CancellationToken::new();
        let settling = till.start_settling(Some(bank.asked()), end.clone()).unwrap();
        let lab = Lab::new(Arc::clone(&bank)).unwrap();
        Self { _folder: folder, till, lab, bank, end, settling }
    }

    /// Pays a croissant for 1.85, and says under which tender and key.
    async fn pay(&self, card: &str) -> (uuid::Uuid, protocol::Key) {
        let sale = self.till.add_article("BAK-201", None).await.unwrap();
        let begun = self.till.begin_tender(sale.id).await.unwrap();
        let card = card.to_owned();
        let payment = CardPayment { tender_id: begun.tender_id, sale_id: sale.id, amount: begun.due, card };
        (begun.tender_id, self.till.pay_card(payment).await.unwrap().key)
    }

    /// Waits until an operation is in a state, and the queue is woken meanwhile.
    async fn settled(&self, key: protocol::Key, state: State) {
        let reached = async {
            while self.till.operation(key).await.unwrap().state != state {
                self.till.retry_now(Some(key)).await.unwrap();
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let limited = tokio::time::timeout(STEP_LIMIT, reached).await;
        assert!(limited.is_ok(), "it is {:?}", self.till.operation(key).await.unwrap());
    }

    async fn state(&self) -> LabState {
        self.lab.state(&self.till).await.unwrap()
    }

    async fn set(&self, fault: LabFault) {
        let set = self.lab.set_faults(vec![LabFaultRule { fault, times: None }]).await.unwrap();
        assert_eq!(set, [LabFaultHits { fault, times: None, hits: 0 }]);
    }

    async fn end(mut self) {
        self.end.cancel();
        self.settling.stopped().await.unwrap();
        self.bank.stop().await.unwrap();
    }
}

fn euros(amount: i64) -> Vec<CurrencyAmount> {
    vec![CurrencyAmount { currency: "EUR".to_owned(), amount: Minor(amount) }]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_one_charge_in_all_three_books() {
    let scene = Scene::new().await;
    scene.set(LabFault::DropAfterCharge).await;
    let (_, key) = scene.pay("tok_visa").await;
    scene.settled(key, State::Unknown).await;
    let lost = scene.state().await;
    assert!(lost.running && lost.faults[0].hits > 0, "{lost:?}");
    let shown = &lost.operations[0];
    assert_eq!(shown.bank.as_ref().unwrap().state, "approved", "{shown:?}");
    assert_eq!(shown.gateway.as_ref().unwrap().charges, Count(1), "{shown:?}");
    assert_ne!(shown.gateway.as_ref().unwrap().key, shown.key, "the gateway has the bank's own key");

    scene.lab.clear().await.unwrap();
    scene.settled(key, State::Approved).await;
    let after = scene.state().await;
    let (bank, gateway) = (after.bank.unwrap(), after.gateway.unwrap());
    assert_eq!((bank.charges, bank.balanced), (Count(1), true));
    assert_eq!((gateway.charges, gateway.charged), (Count(1), euros(185)));
    assert!(after.faults.is_empty());
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bank_that_is_killed_refuses_and_comes_back_with_what_it_had() {
    let scene = Scene::new().await;
    let (_, first) = scene.pay("tok_visa").await;
    scene.settled(first, State::Approved).await;
    scene.till.new_sale().await.unwrap();
    let address = scene.bank.asked().url;

    // Killed in the middle of a request that hangs.
    scene.set(LabFault::Hang).await;
    let (_, second) = scene.pay("tok_visa").await;
    scene.settled(second, State::Sending).await;
    scene.lab.stop().await.unwrap();
    scene.lab.stop().await.unwrap();
    let stopped = scene.state().await;
    assert!(!stopped.running && stopped.gateway.is_none() && stopped.faults.is_empty(), "{stopped:?}");
    assert_eq!(stopped.operations.len(), 2);
    let refused = scene.lab.set_faults(vec![LabFaultRule { fault: LabFault::Hang, times: None }]).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::LabRefused);
    scene.settled(second, State::Unknown).await;

    scene.lab.start().await.unwrap();
    scene.lab.start().await.unwrap();
    assert_eq!(scene.bank.asked().url, address);
    scene.settled(second, State::Approved).await;
    assert_eq!(scene.state().await.gateway.unwrap().charges, Count(2));
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_drained_after_the_goods_are_gone_is_a_late_decline() {
    let scene = Scene::new().await;
    scene.set(LabFault::Hang).await;
    let (tender_id, key) = scene.pay("tok_account_1").await;
    scene.settled(key, State::Sending).await;
    scene.till.take_offline(TakeOffline { tender_id, contact: None, over_limit: false }).await.unwrap();
    scene.lab.drain(&scene.till).await.unwrap();
    scene.lab.clear().await.unwrap();
    scene.settled(key, State::Declined).await;
    let late = scene.till.late_declines(till::LateQuery::default()).await.unwrap().late;
    assert_eq!(late.len(), 1);
    let books = scene.state().await.gateway.unwrap();
    assert_eq!((books.charges, books.charged), (Count(0), Vec::new()), "draining is no charge of this shop's");
    scene.end().await;
}

/// The bank takes each fault that the window has a button for; `abort` is none of them.
#[tokio::test(flavor = "multi_thread")]
async fn every_named_fault_is_one_that_the_lab_takes() {
    let folder = tempfile::tempdir().unwrap();
    let bank = Arc::new(BundledBank::start(folder.path()).await.unwrap());
    let lab = Lab::new(Arc::clone(&bank)).unwrap();
    let all: Vec<LabFault> = [
        "hang",
        "slow",
        "gateway_slow",
        "drop_after_charge",
        "error_after_charge",
        "truncated",
        "garbage",
        "foreign_amount",
        "rate_limited",
        "unavailable",
        "gateway_drop",
    ]
    .into_iter()
    .map(|word| serde_json::from_value(json!(word)).unwrap())
    .collect();
    let wanted: Vec<LabFaultRule> = all.iter().map(|&fault| LabFaultRule { fault, times: Some(2) }).collect();
    let set = lab.set_faults(wanted).await.unwrap();
    assert_eq!(set.iter().map(|set| set.fault).collect::<Vec<_>>(), all);
    assert!(set.iter().all(|set| set.times == Some(2) && set.hits == 0), "{set:?}");
    assert_eq!(lab.faults().await.unwrap(), set);
    assert!(lab.set_faults(Vec::new()).await.unwrap().is_empty());
    assert!(lab.faults().await.unwrap().is_empty());
    bank.stop().await.unwrap();
}
