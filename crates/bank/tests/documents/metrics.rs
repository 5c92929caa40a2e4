//! The metrics agree with what was done, and hold nothing that a client sent.

use crate::running::{Answer, OPERATOR, Result, Running, SECRET, coffee, config, key, send, with_lab, within};
use bank::BankConfig;
use serde_json::json;
use std::{collections::BTreeMap, time::Duration};

/// Samples by name and labels, as they are written.
struct Samples(BTreeMap<String, f64>);

impl Samples {
    /// Reads a page strictly: each family is told once, before its samples.
    fn read(page: &Answer) -> Result<Self> {
        assert_eq!((page.status, page.header("content-type")), (200, Some("text/plain; version=0.0.4; charset=utf-8")));
        let mut samples = BTreeMap::new();
        let mut families: BTreeMap<&str, &str> = BTreeMap::new();
        let mut helped = "";
        for line in page.text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                helped = help.split_once(' ').ok_or("a help that says nothing")?.0;
            } else if let Some(family) = line.strip_prefix("# TYPE ") {
                let (name, kind) = family.split_once(' ').ok_or("a type of nothing")?;
                assert_eq!(name, helped, "a family without its help");
                assert!(families.insert(name, kind).is_none(), "{name} is told twice");
                assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
            } else {
                let (sample, value) = line.rsplit_once(' ').ok_or("a line of no kind")?;
                let name = sample.split('{').next().unwrap_or_default();
                let of_family = ["", "_bucket", "_sum", "_count"]
                    .iter()
                    .any(|part| name.strip_suffix(part).is_some_and(|family| families.contains_key(family)));
                assert!(of_family, "{name} is of no family");
                assert!(samples.insert(sample.to_owned(), value.parse()?).is_none(), "{sample} stands there twice");
            }
        }
        Ok(Self(samples))
    }

    fn get(&self, sample: &str) -> f64 {
        self.0.get(sample).copied().unwrap_or(f64::NAN)
    }
}

async fn samples(bank: &Running) -> Result<Samples> {
    Samples::read(&bank.get("/metrics").await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_numbers_agree_with_what_was_asked() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = Running::start(config(dir.path())).await?;
    let pay = |number, card: &str| bank.keyed("/v1/payments", &key(number), &coffee(card));
    for (number, card, status) in
        [(1, "tok_visa", 201), (1, "tok_visa", 201), (1, "tok_mir", 422), (2, "tok_lost", 402), (2, "tok_lost", 402)]
    {
        assert_eq!(send(pay(number, card)?).await?.status, status);
    }
    for number in [3, 3, 1] {
        let cancel = bank.request("PUT", &format!("/v1/operations/{}/cancellation", key(number)))?;
        assert_eq!(send(cancel).await?.status, 200);
    }
    assert_eq!(send(pay(3, "tok_visa")?).await?.status, 410);
    assert_eq!(bank.get("/nowhere").await?.status, 404);
    assert_eq!(bank.get("/v1/payments/pay_unheard_of").await?.status, 404);
    let nothing = json!({"payment_id": "pay_unheard_of", "amount": 1});
    assert_eq!(send(bank.keyed("/v1/refunds", &key(4), &nothing)?).await?.status, 404);

    let seen = samples(&bank).await?;
    let payments = |status: &str| {
        seen.get(&format!(
            "kassa_bank_http_requests_total{{route=\"/v1/payments\",method=\"POST\",status=\"{status}\"}}"
        ))
    };
    assert_eq!([payments("201"), payments("402"), payments("410"), payments("422")], [2.0, 2.0, 1.0, 1.0]);
    let count = "kassa_bank_http_request_duration_seconds_count{route=\"/v1/payments\",method=\"POST\"}";
    let last = "kassa_bank_http_request_duration_seconds_bucket{route=\"/v1/payments\",method=\"POST\",le=\"+Inf\"}";
    assert_eq!([seen.get(count), seen.get(last)], [6.0, 6.0]);
    let template = "kassa_bank_http_requests_total{route=\"/v1/payments/{id}\",method=\"GET\",status=\"404\"}";
    assert_eq!(seen.get(template), 1.0);
    assert_eq!(seen.get("kassa_bank_http_requests_total{route=\"none\",method=\"any\",status=\"404\"}"), 1.0);
    let answers = |kind: &str| seen.get(&format!("kassa_bank_keyed_answers_total{{kind=\"{kind}\"}}"));
    assert_eq!(["first", "replayed", "reused", "cancelled", "refused"].map(answers), [2.0, 2.0, 1.0, 1.0, 1.0]);
    let cancellations = |kind: &str| seen.get(&format!("kassa_bank_cancellations_total{{kind=\"{kind}\"}}"));
    assert_eq!(["cancelled", "kept", "settling", "unavailable"].map(cancellations), [2.0, 1.0, 0.0, 0.0]);
    let calls = |call: &str| seen.get(&format!("kassa_bank_gateway_calls_total{{call=\"{call}\",result=\"known\"}}"));
    assert_eq!(["send", "look"].map(calls), [2.0, 0.0]);
    // Once at its start, and again where an answer was late.
    assert!(calls("identify") >= 1.0);
    assert_eq!(seen.get("kassa_bank_gateway_call_duration_seconds_count{call=\"send\"}"), 2.0);
    let now_s = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs_f64();
    let up_s = now_s - seen.get("process_start_time_seconds");
    assert!((0.0..60.0).contains(&up_s), "up for {up_s} s");
    assert_eq!(seen.get("kassa_bank_operations{state=\"processing\"}"), 0.0);
    // This very request.
    assert_eq!(seen.get("kassa_bank_http_requests_being_answered"), 1.0);
    the_store_is_measured(&seen);

    let of_gateway = Samples::read(&bank.of_gateway("/metrics").await?)?;
    assert_eq!(of_gateway.get("kassa_gateway_keyed_answers_total{kind=\"first\"}"), 2.0);
    let charges = "kassa_gateway_http_requests_total{route=\"/v1/charges\",method=\"POST\",status=\"201\"}";
    assert_eq!(of_gateway.get(charges), 1.0);
    let named = |sample: &String| sample.starts_with("kassa_gateway_") || sample == "process_start_time_seconds";
    assert!(of_gateway.0.keys().all(named));
    bank.end().await
}

fn the_store_is_measured(seen: &Samples) {
    let of = |what: &str| seen.get(&format!("kassa_bank_store_{what}"));
    assert!(of("commits_total") >= 4.0 && of("pieces_total") >= of("commits_total"));
    let commit_s = of("commit_seconds_total");
    assert!(commit_s > 0.0 && commit_s < 60.0, "{commit_s} s");
    assert_eq!(["click", "background"].map(|priority| of(&format!("waiting{{priority=\"{priority}\"}}"))), [0.0, 0.0]);
    assert_eq!(of("overloaded_total"), 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_final_is_shown_while_it_is_not() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = Running::start(BankConfig { wait: Duration::from_millis(50), ..with_lab(dir.path()) }).await?;
    bank.faults(&bank.url, json!([{"at": "gateway_answered", "do": "hang"}])).await?;
    let hanging = bank.keyed("/v1/payments", &key(1), &coffee("tok_visa"))?;
    assert_eq!(send(hanging).await?.status, 409);
    let seen = samples(&bank).await?;
    assert_eq!(seen.get("kassa_bank_operations{state=\"processing\"}"), 1.0);
    assert_eq!(seen.get("kassa_bank_operations_in_hand"), 1.0);
    assert_eq!(seen.get("kassa_bank_keyed_answers_total{kind=\"in_progress\"}"), 1.0);
    assert!(seen.get("kassa_bank_oldest_processing_seconds") > 0.0);
    assert_eq!(send(bank.request("DELETE", "/lab/faults")?).await?.status, 204);
    within(
        async || Ok((samples(&bank).await?.get("kassa_bank_operations{state=\"processing\"}") == 0.0).then_some(())),
    )
    .await?;
    assert_eq!(samples(&bank).await?.get("kassa_bank_oldest_processing_seconds"), 0.0);

    bank.faults(&bank.gateway_url, json!([{"at": "committed", "do": "foreign"}])).await?;
    let stuck = bank.keyed("/v1/payments", &key(2), &coffee("tok_visa"))?;
    assert_eq!(send(stuck).await?.status, 409);
    let attention = "kassa_bank_operations{state=\"needs_attention\"}";
    within(async || Ok((samples(&bank).await?.get(attention) == 1.0).then_some(()))).await?;
    let result = "kassa_bank_gateway_calls_total{call=\"send\",result=\"needs_attention\"}";
    assert_eq!(samples(&bank).await?.get(result), 1.0);
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_was_never_there_shows() -> Result {
    let dir = tempfile::tempdir()?;
    // The discard port, at which nobody listens.
    let away = BankConfig { gateway_url: Some("http://127.0.0.1:9".into()), ..config(dir.path()) };
    let bank = Running::start(BankConfig { wait: Duration::from_millis(50), ..away }).await?;
    assert_eq!(send(bank.keyed("/v1/payments", &key(1), &coffee("tok_visa"))?).await?.status, 409);
    let unknown = "kassa_bank_gateway_calls_total{call=\"identify\",result=\"unknown\"}";
    within(async || Ok((samples(&bank).await?.get(unknown) >= 2.0).then_some(()))).await?;
    let seen = samples(&bank).await?;
    let sent = seen.0.iter().filter(|(sample, _)| sample.contains("gateway_calls_total{call=\"send\""));
    assert_eq!(sent.map(|(_, count)| count).sum::<f64>(), 0.0, "nothing was sent to a gateway that nobody knows");
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_client_sent_stands_in_the_metrics() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = Running::start(config(dir.path())).await?;
    let paid = send(bank.keyed("/v1/payments", &key(1), &coffee("tok_visa"))?).await?;
    let id = paid.json()?["id"].as_str().ok_or("no id")?.to_owned();
    bank.get(&format!("/v1/payments/{id}")).await?;
    bank.get("/v1/payments/tok_in_a_path?after=tok_in_a_query").await?;
    bank.get("/tok_nowhere").await?;
    bank.get("/operator/attention").await?;
    let page = bank.get("/metrics").await?.text + &bank.of_gateway("/metrics").await?.text;
    let digits = key(1).replace('-', "");
    for sent in [&key(1), &digits, &id, "tok_", SECRET, OPERATOR, "shop", "till-1", "4242"] {
        assert!(!page.contains(sent), "{sent} stands in the metrics");
    }
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_banks_of_one_process_count_for_themselves() -> Result {
    let (one, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let (one, other) = (Running::start(config(one.path())).await?, Running::start(config(other.path())).await?);
    assert_eq!(send(one.keyed("/v1/payments", &key(1), &coffee("tok_visa"))?).await?.status, 201);
    let first = "kassa_bank_keyed_answers_total{kind=\"first\"}";
    assert_eq!([samples(&one).await?.get(first), samples(&other).await?.get(first)], [1.0, 0.0]);
    one.end().await?;
    other.end().await
}
