//! The OpenAPI document is what is committed, holds together, and says what the bank answers.

use crate::running::{Answer, Result, Running, coffee, config, key, send, with_lab, within};
use bank::BankConfig;
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, path::Path, time::Duration};

/// The document that is committed.
const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

async fn document(bank: &Running) -> Result<Value> {
    let answer = bank.get("/openapi.json").await?;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_the_committed_one() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = Running::start(BankConfig { operator: None, ..config(dir.path()) }).await?;
    let told = serde_json::to_string_pretty(&document(&bank).await?)? + "\n";
    bank.end().await?;
    if std::env::var_os("UPDATE").is_some() {
        fs::write(COMMITTED, &told)?;
    }
    let committed = fs::read_to_string(COMMITTED).unwrap_or_default();
    let differs = told.lines().zip(committed.lines()).position(|(told, committed)| told != committed);
    assert!(
        told == committed,
        "the bank's OpenAPI document is not docs/openapi.json (first difference: {:?}).\nLook at the difference; to accept it, type: \
         UPDATE=1 cargo test -p bank --test documents the_document_is",
        differs.map(|line| line + 1)
    );
    Ok(())
}

/// Every value under a name, wherever it stands.
fn under<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(members) => {
            for (member, value) in members {
                if member == name {
                    found.push(value);
                }
                under(value, name, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| under(item, name, found)),
        _ => {}
    }
}

/// Path template, method and operation of every call.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let operations = paths.flat_map(|(path, item)| {
        item.as_object()
            .into_iter()
            .flatten()
            .map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
    });
    operations.collect()
}

/// What a schema of the document says against a value.
fn errors(document: &Value, schema: &Value, value: &Value) -> Result<Vec<String>> {
    // References are to the root, so the schema gets the document's components beside it.
    let rooted = json!({"components": document["components"], "allOf": [schema]});
    let validator = jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .should_validate_formats(true)
        .build(&rooted)?;
    Ok(validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_holds_together() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = Running::start(with_lab(dir.path())).await?;
    let document = document(&bank).await?;
    bank.end().await?;
    assert_eq!(document["openapi"], "3.1.0");
    let mut references = Vec::new();
    under(&document, "$ref", &mut references);
    assert!(references.len() > 100);
    for reference in references {
        let path = reference.as_str().and_then(|path| path.strip_prefix('#')).ok_or("not within the document")?;
        assert!(document.pointer(path).is_some(), "{reference} leads nowhere");
    }
    let mut ids = BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap_or_default();
        assert!(!id.is_empty() && ids.insert(id), "{method} {path}: {id:?} is not an id of its own");
        for member in ["summary", "description"] {
            assert!(operation[member].as_str().is_some_and(|says| !says.is_empty()), "{id} has no {member}");
        }
    }
    for wanted in
        ["createPayment", "createRefund", "cancelOperation", "requeueOperation", "getMetrics", "replaceFaults"]
    {
        assert!(ids.contains(wanted), "{wanted} is not in {ids:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schemas_are_as_narrow_as_what_the_bank_writes() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = Running::start(config(dir.path())).await?;
    let document = document(&bank).await?;
    bank.end().await?;
    assert_eq!(document["servers"][0]["url"], "/");
    let schemas = &document["components"]["schemas"];
    let member = |schema: &str, name: &str| &schemas[schema]["properties"][name];
    assert_eq!(member("Policy", "claims")["enum"], json!(["permanent"]));
    assert_eq!(member("Policy", "key_format")["enum"], json!(["uuid"]));
    let status = member("Problem", "status");
    assert_eq!((&status["minimum"], &status["maximum"]), (&json!(400), &json!(599)));
    assert!(member("Attention", "kind").to_string().contains("#/components/schemas/Kind"));
    for (schema, ids) in
        [("Payment", ["id"].as_slice()), ("Refund", &["id", "payment_id"]), ("Problem", &["payment_id", "refund_id"])]
    {
        for id in ids {
            let pattern = member(schema, id)["pattern"].as_str().unwrap_or_default();
            assert!(pattern.starts_with("^pay_") || pattern.starts_with("^re_"), "{schema}.{id}: {pattern:?}");
        }
    }
    for (path, schema) in [("/v1/payments/{id}", "Payment"), ("/v1/refunds/{id}", "Refund")] {
        let parameters = document["paths"][path]["get"]["parameters"].as_array().ok_or("no parameters")?;
        let id = parameters.iter().find(|parameter| parameter["name"] == "id").ok_or("no id")?;
        assert_eq!(id["schema"]["pattern"], member(schema, "id")["pattern"], "{path}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_is_what_its_schema_says() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = Running::start(with_lab(dir.path())).await?;
    let document = document(&bank).await?;
    bank.end().await?;
    let mut contents = Vec::new();
    under(&document, "content", &mut contents);
    let mut seen = 0;
    for content in contents.iter().flat_map(|content| content.as_object()).flatten().map(|(_, content)| content) {
        for (name, example) in content["examples"].as_object().into_iter().flatten() {
            let errors = errors(&document, &content["schema"], &example["value"])?;
            assert!(errors.is_empty(), "{name}: {errors:?}");
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen} examples");
    for (_, _, operation) in operations(&document) {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let Some(example) = parameter.get("example") else { continue };
            let errors = errors(&document, &parameter["schema"], example)?;
            assert!(errors.is_empty(), "{}: {errors:?}", parameter["name"]);
        }
    }
    Ok(())
}

/// Checks answers against the document, and remembers what was seen.
struct Checked<'a> {
    bank: &'a Running,
    document: Value,
    seen: BTreeSet<String>,
}

impl Checked<'_> {
    /// Sends a request to a call of the document, and checks the answer against what stands there.
    async fn ask(&mut self, request: RequestBuilder, status: u16) -> Result<Answer> {
        let (method, path) = {
            let built = request.try_clone().ok_or("the body can't be sent twice")?.build()?;
            (built.method().as_str().to_lowercase(), built.url().path().to_owned())
        };
        let answer = send(request).await?;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text);
        let (template, operation) = self.operation(&method, &path)?;
        let what = format!("{method} {template} {status}");
        let response = &operation["responses"][status.to_string()];
        let response = match response["$ref"].as_str() {
            Some(path) => self.document.pointer(path.trim_start_matches('#')).ok_or("leads nowhere")?,
            None => response,
        };
        assert!(response.is_object(), "{what} is not documented");
        self.check_body(&what, response, &answer)?;
        for (name, header) in response["headers"].as_object().into_iter().flatten() {
            if let Some(value) = answer.header(name) {
                let typed =
                    if header["schema"]["type"] == "integer" { json!(value.parse::<i64>()?) } else { json!(value) };
                let errors = errors(&self.document, &header["schema"], &typed)?;
                assert!(errors.is_empty(), "{what}, {name}: {errors:?}");
            }
        }
        for name in ["retry-after", "location", "idempotent-replayed", "idempotency-key", "allow", "www-authenticate"] {
            let documented = response["headers"].as_object().into_iter().flatten();
            let documented = documented.into_iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
            assert!(documented || answer.header(name).is_none(), "{what}: {name} is not documented");
        }
        self.seen.insert(what);
        Ok(answer)
    }

    fn check_body(&self, what: &str, response: &Value, answer: &Answer) -> Result {
        let Some(contents) = response["content"].as_object() else {
            assert!(answer.text.is_empty(), "{what}: {}", answer.text);
            return Ok(());
        };
        let media_type = answer.header("content-type").ok_or("no content type")?;
        let content = contents.get(media_type).ok_or_else(|| format!("{what}: {media_type} is not documented"))?;
        let body = if media_type.ends_with("json") { answer.json()? } else { json!(answer.text) };
        let errors = errors(&self.document, &content["schema"], &body)?;
        assert!(errors.is_empty(), "{what}: {errors:?}\n{}", answer.text);
        Ok(())
    }

    /// Whether the schema names the code that a declined one carries.
    fn knows_code(&self, schema: &str, declined: &Answer) -> Result {
        let says = &self.document["components"]["schemas"][schema]["properties"]["decline_code"]["description"];
        let code = declined.json()?["decline_code"].as_str().ok_or("no code")?.to_owned();
        assert!(
            says.as_str().is_some_and(|says| says.contains(&format!("`{code}`"))),
            "{schema}: {code} is not in {says}"
        );
        Ok(())
    }

    /// Whether the document shows the detail of a refusal, word for word.
    fn shows_detail(&self, response: &str, refusal: &Answer) -> Result {
        let content = &self.document["components"]["responses"][response]["content"]["application/problem+json"];
        let detail = &refusal.json()?["detail"];
        let shown = content["examples"].as_object().into_iter().flatten();
        let shown = shown.into_iter().any(|(_, example)| example["value"]["detail"] == *detail);
        assert!(shown, "{response} doesn't show {detail}");
        Ok(())
    }

    fn operation(&self, method: &str, path: &str) -> Result<(String, &Value)> {
        let fits = |template: &str| {
            let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
            template.len() == path.len()
                && template.iter().zip(&path).all(|(wanted, is)| wanted.starts_with('{') || wanted == is)
        };
        let found = operations(&self.document).into_iter().find(|(template, of, _)| *of == method && fits(template));
        let (template, _, _) = found.ok_or_else(|| format!("{method} {path} is not documented"))?;
        Ok((template.to_owned(), &self.document["paths"][template][method]))
    }
}

async fn checked(bank: &Running) -> Result<Checked<'_>> {
    Ok(Checked { bank, document: document(bank).await?, seen: BTreeSet::new() })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_bank_answers_is_what_the_document_says() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = Running::start(with_lab(dir.path())).await?;
    let mut checked = checked(&bank).await?;
    money_moves(&mut checked).await?;
    keys_are_kept(&mut checked).await?;
    what_is_wrong_is_refused(&mut checked).await?;
    the_rest_answers(&mut checked).await?;
    let seen = checked.seen.len();
    bank.end().await?;
    assert!(seen > 40, "{seen} answers");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_finished_is_answered_as_the_document_says() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = Running::start(BankConfig { wait: Duration::from_millis(100), ..with_lab(dir.path()) }).await?;
    let mut checked = checked(&bank).await?;
    it_still_runs(&mut checked).await?;
    it_needs_attention(&mut checked).await?;
    bank.end().await
}

async fn money_moves(checked: &mut Checked<'_>) -> Result {
    let bank = checked.bank;
    let pay = |number, card: &str| bank.keyed("/v1/payments", &key(number), &coffee(card));
    let paid = checked.ask(pay(1, "tok_visa")?, 201).await?;
    for (number, card) in [(101, "tok_insufficient_funds"), (102, "tok_expired"), (103, "tok_do_not_honor")] {
        let declined = checked.ask(pay(number, card)?, 402).await?;
        checked.knows_code("Payment", &declined)?;
    }
    let late = json!({"amount": 290, "currency": "EUR", "card": "tok_late_decline", "accepted_offline_at": "2026-11-29T09:58:00Z"});
    let late = checked.ask(bank.keyed("/v1/payments", &key(104), &late)?, 402).await?;
    checked.knows_code("Payment", &late)?;
    let of_declined = json!({"payment_id": late.json()?["id"], "amount": 1});
    let refused = checked.ask(bank.keyed("/v1/refunds", &key(105), &of_declined)?, 402).await?;
    assert_eq!(refused.json()?["decline_code"], "exceeds_refundable");
    checked.knows_code("Refund", &refused)?;
    assert_eq!(paid.header("idempotent-replayed"), Some("false"));
    let again = checked.ask(pay(1, "tok_visa")?, 201).await?;
    assert_eq!((again.header("idempotent-replayed"), &again.text), (Some("true"), &paid.text));
    for (number, card) in [(2, "tok_lost"), (3, "tok_of_nobody")] {
        let declined = checked.ask(pay(number, card)?, 402).await?;
        checked.knows_code("Payment", &declined)?;
    }
    let id = paid.json()?["id"].as_str().ok_or("no id")?.to_owned();
    let refund = |number, amount| bank.keyed("/v1/refunds", &key(number), &json!({"payment_id": id, "amount": amount}));
    let refunded = checked.ask(refund(4, 100)?, 201).await?;
    checked.ask(refund(5, 291)?, 402).await?;
    let location = refunded.header("location").ok_or("no location")?.to_owned();
    checked.ask(bank.request("GET", &location)?, 200).await?;
    checked.ask(bank.request("GET", &format!("/v1/payments/{id}"))?, 200).await?;
    checked.ask(bank.request("GET", "/v1/payments?limit=1")?, 200).await?;
    checked.ask(bank.request("GET", &format!("/v1/operations/{}", key(1)))?, 200).await?;
    checked.ask(bank.request("GET", &format!("/v1/operations/{}", key(5)))?, 200).await?;
    Ok(())
}

async fn keys_are_kept(checked: &mut Checked<'_>) -> Result {
    let bank = checked.bank;
    checked.ask(bank.keyed("/v1/payments", &key(1), &coffee("tok_mir"))?, 422).await?;
    let cancel = |number| bank.request("PUT", &format!("/v1/operations/{}/cancellation", key(number)));
    checked.ask(cancel(10)?, 200).await?;
    checked.ask(cancel(1)?, 200).await?;
    checked.ask(bank.keyed("/v1/payments", &key(10), &coffee("tok_visa"))?, 410).await?;
    checked.ask(bank.request("GET", &format!("/v1/operations/{}", key(10)))?, 200).await?;
    checked.ask(bank.request("PUT", "/lab/clock")?.json(&json!({"offset_s": 90_000})), 200).await?;
    let expired = checked.ask(bank.keyed("/v1/payments", &key(1), &coffee("tok_visa"))?, 410).await?;
    assert_eq!(expired.json()?["state"], "approved");
    checked.ask(bank.request("POST", "/lab/purge")?, 200).await?;
    checked.ask(bank.request("PUT", "/lab/clock")?.json(&json!({"offset_s": 0})), 200).await?;
    Ok(())
}

async fn it_still_runs(checked: &mut Checked<'_>) -> Result {
    let bank = checked.bank;
    let cancel = || bank.request("PUT", &format!("/v1/operations/{}/cancellation", key(11)));
    bank.faults(&bank.url, json!([{"at": "claimed", "do": "hang"}])).await?;
    checked.ask(bank.keyed("/v1/payments", &key(11), &coffee("tok_visa"))?, 409).await?;
    checked.ask(bank.request("GET", &format!("/v1/operations/{}", key(11)))?, 200).await?;
    checked.ask(cancel()?, 409).await?;
    checked.ask(bank.request("DELETE", "/lab/faults")?, 204).await?;
    within(async || Ok((send(cancel()?).await?.status == 200).then_some(()))).await
}

async fn it_needs_attention(checked: &mut Checked<'_>) -> Result {
    let bank = checked.bank;
    bank.faults(&bank.gateway_url, json!([{"at": "committed", "do": "foreign", "times": 1}])).await?;
    let pay = || bank.keyed("/v1/payments", &key(12), &coffee("tok_visa"));
    within(async || Ok((send(pay()?).await?.json()?["state"] == "needs_attention").then_some(()))).await?;
    checked.ask(pay()?, 409).await?;
    checked.ask(bank.request("GET", "/operator/attention")?, 200).await?;
    checked.ask(bank.request("GET", "/operator/attention?after=99")?, 200).await?;
    checked.ask(bank.request("POST", &format!("/operator/operations/shop/{}/requeue", key(12)))?, 200).await?;
    checked.ask(bank.request("POST", &format!("/operator/operations/shop/{}/requeue", key(99)))?, 404).await?;
    Ok(())
}

async fn what_is_wrong_is_refused(checked: &mut Checked<'_>) -> Result {
    let bank = checked.bank;
    let post = |body: &str| -> Result<RequestBuilder> {
        let request = bank.request("POST", "/v1/payments")?.header("idempotency-key", key(20));
        Ok(request.header("content-type", "application/json").body(body.to_owned()))
    };
    checked.ask(bank.request("POST", "/v1/payments")?.json(&coffee("tok_visa")), 400).await?;
    checked.ask(bank.keyed("/v1/payments", "7", &coffee("tok_visa"))?, 400).await?;
    checked.ask(post("[]")?, 400).await?;
    checked.ask(post("{}")?, 400).await?;
    let body = checked.ask(post(&" ".repeat(70_000))?, 413).await?;
    checked.shows_detail("payload-too-large", &body)?;
    checked.ask(bank.request("POST", "/v1/payments")?.header("idempotency-key", key(20)).body("{}"), 415).await?;
    let nothing = json!({"payment_id": "pay_nothing", "amount": 1});
    checked.ask(bank.keyed("/v1/refunds", &key(20), &nothing)?, 404).await?;
    for path in ["/v1/payments/pay_nothing", "/v1/refunds/re_nothing", "/v1/payments/%ff", "/problems/nothing"] {
        checked.ask(bank.request("GET", path)?, 404).await?;
    }
    checked.ask(bank.request("GET", &format!("/v1/operations/{}", key(20)))?, 404).await?;
    checked.ask(bank.request("GET", "/v1/operations/7")?, 400).await?;
    checked.ask(bank.request("PUT", "/v1/operations/7/cancellation")?, 400).await?;
    checked.ask(bank.request("GET", "/v1/payments?limit=0")?, 400).await?;
    checked.ask(bank.request("GET", "/operator/attention?after=x")?, 400).await?;
    for path in ["/v1/policy", "/v1/payments", "/operator/attention"] {
        let nobody = bank
            .request("GET", path)?
            .headers([("authorization".parse()?, "Bearer sk_nobody".parse()?)].into_iter().collect());
        checked.ask(nobody, 401).await?;
    }
    for path in ["/v1/policy", "/healthz", "/metrics", "/docs", "/openapi.json", "/problems/internal"] {
        checked.ask(bank.request("GET", path)?.header("origin", "null"), 403).await?;
    }
    checked.ask(bank.request("GET", "/v1/policy")?.header("kassa-merchant", "another"), 403).await?;
    let padded = bank.request("GET", "/v1/policy")?.header("x-padding", "x".repeat(40_000));
    let head = checked.ask(padded, 413).await?;
    checked.shows_detail("payload-too-large", &head)?;
    Ok(())
}

async fn the_rest_answers(checked: &mut Checked<'_>) -> Result {
    let bank = checked.bank;
    for path in [
        "/v1/policy",
        "/healthz",
        "/metrics",
        "/docs",
        "/openapi.json",
        "/problems/internal",
        "/lab/ledger",
        "/lab/faults",
    ] {
        checked.ask(bank.request("GET", path)?, 200).await?;
    }
    checked.ask(bank.request("GET", &format!("/lab/operations/{}", key(1)))?, 200).await?;
    let rules = json!([{"at": "saved", "do": "delay", "ms": 1, "key": key(77)}]);
    checked.ask(bank.request("PUT", "/lab/faults")?.json(&rules), 200).await?;
    checked.ask(bank.request("PUT", "/lab/faults")?.json(&json!([{"at": "nowhere", "do": "drop"}])), 400).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bank_without_its_store_says_so_as_documented() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = Running::start(config(dir.path())).await?;
    let mut checked = checked(&bank).await?;
    let other = lock(dir.path())?;
    checked.ask(bank.keyed("/v1/payments", &key(1), &coffee("tok_visa"))?, 503).await?;
    checked.ask(bank.request("GET", "/healthz")?, 503).await?;
    drop(other);
    checked.ask(bank.keyed("/v1/payments", &key(1), &coffee("tok_visa"))?, 201).await?;
    bank.end().await
}

/// Locks the bank's file, as another program may, until it is dropped.
fn lock(dir: &Path) -> Result<rusqlite::Connection> {
    let other = rusqlite::Connection::open(dir.join("bank.db"))?;
    other.execute_batch("BEGIN IMMEDIATE")?;
    Ok(other)
}
