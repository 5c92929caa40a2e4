//! Answers that are wrong in every way that a network, a box in the middle or a confused bank can think of. Each is the first
//! answer to a payment of its own; what it may not do is end that payment.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::net::TcpListener;

use crate::{
    harness::checker::Verdict,
    proxy::{
        plan::{At, End, Give, Plan},
        wire::{Kind, Message},
    },
    reply::Reply,
    scene::{Case, Reached, Scene, TRANSPORT},
};

/// How the first answer must be read.
#[derive(Clone, Copy, Debug)]
enum Read {
    /// As none of the bank's.
    NotTheBanks,
    /// As the bank's, by that word of the log.
    As(&'static str),
}

use Read::{As, NotTheBanks};

/// A wrong answer: its name, how it must be read, and what is made of a key and the bank's true answer. The bank has charged by
/// then.
type Wrong = (&'static str, Read, fn(&str, &Message) -> Vec<u8>);

/// The bank's answer, changed.
fn true_one(answer: &Message, change: impl FnOnce(Reply) -> Reply) -> Vec<u8> {
    change(Reply::of(answer)).bytes()
}

/// The bank's object, changed.
fn object(answer: &Message, name: &str, value: serde_json::Value) -> Vec<u8> {
    true_one(answer, |reply| reply.object(|object| object[name] = value))
}

/// The bank's body, changed as text.
fn text(answer: &Message, change: impl FnOnce(String) -> String) -> Vec<u8> {
    true_one(answer, |reply| {
        let body = change(String::from_utf8_lossy(&reply.body).into_owned());
        reply.body(body)
    })
}

const REDIRECTS: [Wrong; 4] = [
    ("301 to another path", NotTheBanks, |_, _| Reply::new("301 Moved Permanently").header("location", "/v2").bytes()),
    ("302 to another path", NotTheBanks, |_, _| Reply::new("302 Found").header("location", "/v1/policy").bytes()),
    ("307 to itself", NotTheBanks, |_, _| {
        Reply::new("307 Temporary Redirect").header("location", "/v1/payments").bytes()
    }),
    ("308 to itself", NotTheBanks, |_, _| {
        Reply::new("308 Permanent Redirect").header("location", "/v1/payments").bytes()
    }),
];

const PAGES: [Wrong; 12] = [
    ("200 and a page", NotTheBanks, |_, _| Reply::page("200 OK").bytes()),
    ("201 and a page", NotTheBanks, |_, _| Reply::page("201 Created").bytes()),
    ("201 and a page that says it is JSON", NotTheBanks, |_, _| {
        Reply::page("201 Created").header("content-type", "application/json").bytes()
    }),
    ("402 and a page", NotTheBanks, |_, _| Reply::page("402 Payment Required").bytes()),
    ("401 and a page", NotTheBanks, |_, _| Reply::page("401 Unauthorized").bytes()),
    ("407 of a proxy", NotTheBanks, |_, _| Reply::page("407 Proxy Authentication Required").bytes()),
    ("409 and a page", NotTheBanks, |_, _| Reply::page("409 Conflict").bytes()),
    ("422 and a page", NotTheBanks, |_, _| Reply::page("422 Unprocessable Entity").bytes()),
    ("500 and a page", NotTheBanks, |_, _| Reply::page("500 Internal Server Error").bytes()),
    ("502 of a gateway", NotTheBanks, |_, _| Reply::page("502 Bad Gateway").bytes()),
    ("503 and a page", NotTheBanks, |_, _| {
        // Nobody but the bank may hold the queue.
        Reply::page("503 Service Unavailable").header("retry-after", "1000000000").bytes()
    }),
    ("511 of a portal", NotTheBanks, |_, _| Reply::page("511 Network Authentication Required").bytes()),
];

const RESULTS: [Wrong; 29] = [
    ("200 and the result", NotTheBanks, |_, answer| true_one(answer, |reply| reply.status("200 OK"))),
    ("202 and the result", NotTheBanks, |_, answer| true_one(answer, |reply| reply.status("202 Accepted"))),
    ("402 and an approved result", NotTheBanks, |_, answer| {
        true_one(answer, |reply| reply.status("402 Payment Required"))
    }),
    ("204 and nothing", NotTheBanks, |_, _| Reply::new("204 No Content").bytes()),
    ("201 and nothing", NotTheBanks, |_, answer| true_one(answer, |reply| reply.body(""))),
    ("201 and null", NotTheBanks, |_, answer| true_one(answer, |reply| reply.body("null"))),
    ("201 and a list of the result", NotTheBanks, |_, answer| text(answer, |body| format!("[{body}]"))),
    ("201 and more after the result", NotTheBanks, |_, answer| {
        text(answer, |body| body + "<!-- seen by the proxy -->")
    }),
    ("201 and a mark before the result", NotTheBanks, |_, answer| text(answer, |body| format!("\u{feff}{body}"))),
    ("201 of another operation", NotTheBanks, |_, answer| {
        object(answer, "operation", json!("0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b"))
    }),
    ("201 for another amount", NotTheBanks, |_, answer| object(answer, "amount", json!(2_491))),
    ("201 for the amount as a text", NotTheBanks, |_, answer| object(answer, "amount", json!("2490"))),
    ("201 for the amount as a fraction", NotTheBanks, |_, answer| object(answer, "amount", json!(2_490.5))),
    ("201 for another currency", NotTheBanks, |_, answer| object(answer, "currency", json!("USD"))),
    ("201 and declined", NotTheBanks, |_, answer| object(answer, "status", json!("declined"))),
    ("201 and a state of its own", NotTheBanks, |_, answer| object(answer, "status", json!("authorised"))),
    ("201 and a decline code", NotTheBanks, |_, answer| object(answer, "decline_code", json!("expired"))),
    ("201 with no key in it", NotTheBanks, |_, answer| {
        true_one(answer, |reply| {
            reply.object(|object| drop(object.as_object_mut().and_then(|members| members.remove("operation"))))
        })
    }),
    ("201 with the amount twice", NotTheBanks, |_, answer| {
        text(answer, |body| body.replacen("\"amount\":2490", "\"amount\":1,\"amount\":2490", 1))
    }),
    ("201 for another key's echo", NotTheBanks, |_, answer| {
        true_one(answer, |reply| reply.header("idempotency-key", "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b"))
    }),
    ("201 with our key's echo and another's", NotTheBanks, |key, answer| {
        let mut reply = Reply::of(answer).header("idempotency-key", key);
        reply.headers.push(("idempotency-key".to_owned(), "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b".to_owned()));
        reply.bytes()
    }),
    ("201 as plain text", NotTheBanks, |_, answer| {
        true_one(answer, |reply| reply.header("content-type", "text/plain"))
    }),
    ("201 with no content type", NotTheBanks, |_, answer| true_one(answer, |reply| reply.without("content-type"))),
    ("201 and no UTF-8", NotTheBanks, |_, answer| {
        true_one(answer, |mut reply| {
            let at = reply.body.windows(4).position(|four| four == b"visa").unwrap_or_default();
            reply.body[at] = 0xff;
            reply
        })
    }),
    ("201 and very deep JSON", NotTheBanks, |_, answer| true_one(answer, |reply| reply.body("[".repeat(60_000)))),
    ("201 and a deep member", NotTheBanks, |_, answer| {
        text(answer, |body| body.replacen('{', &format!("{{\"x\":{}1{},", "[".repeat(20_000), "]".repeat(20_000)), 1))
    }),
    ("201 and a number too large", NotTheBanks, |_, answer| {
        text(answer, |body| body.replacen('{', "{\"x\":1e999,", 1))
    }),
    ("201 and half a character", NotTheBanks, |_, answer| {
        text(answer, |body| body.replacen('{', "{\"x\":\"\\ud800\",", 1))
    }),
    ("201 that says it is packed", NotTheBanks, |_, answer| {
        true_one(answer, |reply| reply.header("content-encoding", "gzip").body([0x1f, 0x8b, 8, 0, 0, 0, 0, 0]))
    }),
];

const PROBLEMS: [Wrong; 13] = [
    ("409 with no echo", NotTheBanks, |_, _| {
        Reply::problem("in-progress", "409 Conflict").header("retry-after", "1").bytes()
    }),
    ("410 cancelled with no echo", NotTheBanks, |_, _| Reply::problem("operation-cancelled", "410 Gone").bytes()),
    ("410 expired with no echo", NotTheBanks, |_, _| Reply::problem("key-expired", "410 Gone").bytes()),
    ("422 with no echo", NotTheBanks, |_, _| Reply::problem("key-reused", "422 Unprocessable Entity").bytes()),
    ("410 cancelled for another key", NotTheBanks, |_, _| {
        let other = "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b";
        Reply::problem("operation-cancelled", "410 Gone").header("idempotency-key", other).bytes()
    }),
    ("410 cancelled of somebody else's type", NotTheBanks, |key, _| {
        Reply::problem("operation-cancelled", "410 Gone")
            .object(|problem| problem["type"] = json!("https://bank.example/problems/operation-cancelled"))
            .header("idempotency-key", key)
            .bytes()
    }),
    ("a problem of another status", NotTheBanks, |key, _| {
        Reply::problem("operation-cancelled", "410 Gone").status("409 Conflict").header("idempotency-key", key).bytes()
    }),
    ("a problem that names another status", NotTheBanks, |key, _| {
        Reply::problem("operation-cancelled", "410 Gone")
            .object(|problem| problem["status"] = json!(400))
            .header("idempotency-key", key)
            .bytes()
    }),
    ("a problem as plain JSON", NotTheBanks, |key, _| {
        Reply::problem("operation-cancelled", "410 Gone")
            .header("content-type", "application/json")
            .header("idempotency-key", key)
            .bytes()
    }),
    ("408 of the middle", NotTheBanks, |_, _| Reply::new("408 Request Timeout").bytes()),
    ("425 of the middle", NotTheBanks, |_, _| Reply::new("425 Too Early").bytes()),
    ("500 of the bank", As("internal"), |key, _| {
        Reply::problem("internal", "500 Internal Server Error").header("idempotency-key", key).bytes()
    }),
    ("410 expired", As("key-expired"), |key, _| {
        Reply::problem("key-expired", "410 Gone").header("idempotency-key", key).bytes()
    }),
];

const FRAMES: [Wrong; 15] = [
    ("no HTTP", NotTheBanks, |_, _| b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n".to_vec()),
    ("noise", NotTheBanks, |_, _| (0..2_048_u32).map(|n| (n.wrapping_mul(197) >> 3) as u8).collect()),
    ("a TLS alert", NotTheBanks, |_, _| vec![0x15, 3, 3, 0, 2, 2, 40]),
    ("HTTP/2", NotTheBanks, |_, _| {
        b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x80\0\x04\0\x01\0\0\0\x05\0\xff\xff\xff".to_vec()
    }),
    ("HTTP/3.7", NotTheBanks, |_, answer| [b"HTTP/3.7 ", &answer.bytes["HTTP/1.1 ".len()..]].concat()),
    ("a status of two digits", NotTheBanks, |_, answer| true_one(answer, |reply| reply.status("20 Created"))),
    ("101 to another protocol", NotTheBanks, |_, _| {
        Reply::new("101 Switching Protocols").header("upgrade", "websocket").header("connection", "upgrade").bytes()
    }),
    ("longer than it says", NotTheBanks, |_, answer| {
        true_one(answer, |reply| {
            let half = (reply.body.len() / 2).to_string();
            reply.header("content-length", &half)
        })
    }),
    ("shorter than it says", NotTheBanks, |_, answer| {
        true_one(answer, |reply| {
            let more = (reply.body.len() + 1).to_string();
            reply.header("content-length", &more)
        })
    }),
    ("two lengths", NotTheBanks, |_, answer| {
        let mut reply = Reply::of(answer);
        for more in [0, 1] {
            reply.headers.push(("content-length".to_owned(), (reply.body.len() + more).to_string()));
        }
        reply.bytes()
    }),
    ("a negative length", NotTheBanks, |_, answer| true_one(answer, |reply| reply.header("content-length", "-1"))),
    ("a length that does not fit", NotTheBanks, |_, answer| {
        true_one(answer, |reply| reply.header("content-length", "99999999999999999999999"))
    }),
    ("chunks of a wrong size", NotTheBanks, |_, answer| {
        true_one(answer, |reply| {
            let body = [b"fff\r\n", reply.body.as_slice(), b"\r\n0\r\n\r\n"].concat();
            reply.header("transfer-encoding", "chunked").body(body)
        })
    }),
    ("a header of 1 MB", NotTheBanks, |_, answer| {
        true_one(answer, |reply| reply.header("x-filler", &"x".repeat(1_048_576)))
    }),
    ("ten thousand headers", NotTheBanks, |_, answer| {
        true_one(answer, |mut reply| {
            reply.headers.extend((0..10_000).map(|n| (format!("x-filler-{n}"), "x".to_owned())));
            reply
        })
    }),
];

/// What looks odd and is right: the payment ends by it.
const ODD_AND_RIGHT: [Wrong; 5] = [
    ("1xx before the answer", As("approved"), |_, answer| {
        let noise = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n";
        [noise, answer.bytes.as_slice()].concat()
    }),
    ("HTTP/1.0", As("approved"), |_, answer| true_one(answer, |reply| Reply { version: "HTTP/1.0", ..reply })),
    ("HTTP/1.0 with no length", As("approved"), |_, answer| {
        [b"HTTP/1.0", &answer.until_close().bytes["HTTP/1.1".len()..]].concat()
    }),
    ("in chunks of one byte", As("approved"), |_, answer| answer.in_chunks(1).bytes),
    ("other words for the type", As("approved"), |_, answer| {
        true_one(answer, |reply| reply.header("content-type", "Application/JSON; charset=utf-8"))
    }),
];

/// A till with one payment for each, whose first answer is that one.
async fn first_answers(scene: &Scene, name: &str, wrong: Vec<Wrong>) -> Result<Case> {
    let case = scene
        .case(name, wrong.len(), |keys| {
            let keys = keys.to_vec();
            Box::new(move |asked| {
                let key = asked.key.clone().unwrap_or_default();
                match keys.iter().position(|known| *known == key) {
                    Some(nth) if asked.kind == Kind::Keyed && asked.nth_of_key == 1 => {
                        let (name, _, make) = wrong[nth];
                        let make = move |answer: Message| {
                            let bytes = make(&key, &answer);
                            Message { head_bytes: bytes.len(), bytes }
                        };
                        Plan::fault(name).making(make).giving(Give::Cut(At::End(0), End::Fin))
                    }
                    _ => Plan::pass(),
                }
            })
        })
        .await?;
    Ok(case)
}

async fn read_so(case: &Case, wrong: &[Wrong]) -> Result<()> {
    let mut misread = Vec::new();
    for (key, (name, read, _)) in case.keys.iter().zip(wrong) {
        let readings = case.readings(key).await?;
        let first = readings.first().with_context(|| format!("{name}: never read"))?;
        let is_right = match read {
            NotTheBanks => TRANSPORT.contains(&first.as_str()) && readings.len() >= 2,
            As(word) => first == word && (readings.len() >= 2 || *word == "approved"),
        };
        if !is_right {
            misread.push(format!("{name}: {readings:?} {:?}", case.till.log(key).await?));
        }
    }
    ensure!(misread.is_empty(), "{misread:#?}");
    Ok(())
}

#[tokio::test]
async fn no_wrong_answer_ends_a_payment() -> Result<()> {
    let scene = Scene::set().await?;
    let groups = [
        ("redirects and pages", [REDIRECTS.as_slice(), &PAGES].concat()),
        ("results", RESULTS.to_vec()),
        ("problems", PROBLEMS.to_vec()),
        ("frames", [FRAMES.as_slice(), &ODD_AND_RIGHT].concat()),
    ];
    let mut cases = Vec::new();
    for (name, wrong) in &groups {
        cases.push(first_answers(&scene, name, wrong.clone()).await?);
    }
    futures::future::try_join_all(cases.iter().map(Case::settle)).await?;
    for (case, (_, wrong)) in cases.iter().zip(&groups) {
        read_so(case, wrong).await.with_context(|| case.name.clone())?;
    }
    let cases: Vec<_> = cases.iter().collect();
    let planned: Vec<_> = groups.iter().flat_map(|(_, wrong)| wrong.iter().map(|(name, ..)| (*name, 1))).collect();
    Reached::by(&cases).at_least(&planned)?;
    ensure!(scene.verdict(&cases).await? == Verdict::all_approved(planned.len()));
    Ok(())
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() -> Result<()> {
    let scene = Scene::set().await?;
    let trap = TcpListener::bind("127.0.0.1:0").await?;
    let target = format!("http://{}/v1/payments", trap.local_addr()?);
    let statuses = ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"];
    let case = scene
        .case("elsewhere", statuses.len(), |keys| {
            let keys = keys.to_vec();
            Box::new(move |asked| match keys.iter().position(|key| Some(key) == asked.key.as_ref()) {
                Some(nth) if asked.nth_of_key == 1 => {
                    Plan::instead(statuses[nth], Reply::new(statuses[nth]).header("location", &target).bytes())
                }
                // Also the question who the bank is.
                None if asked.kind == Kind::Policy && asked.nth == 2 => {
                    Plan::instead("the policy's 307", Reply::new("307 Temporary").header("location", &target).bytes())
                }
                _ => Plan::pass(),
            })
        })
        .await?;
    tokio::select! {
        settled = case.settle() => drop(settled?),
        caught = trap.accept() => anyhow::bail!("the trap was contacted: {:?}", caught?.1),
    }
    let planned: Vec<_> = statuses.iter().map(|status| (*status, 1)).chain([("the policy's 307", 1)]).collect();
    Reached::by(&[&case]).at_least(&planned)?;
    ensure!(scene.verdict(&[&case]).await? == Verdict::all_approved(statuses.len()));
    Ok(())
}

/// Refusals that look like the bank's own in everything. The bank has charged all the same.
const REFUSALS: [Wrong; 7] = [
    ("400 of the bank", As("request-invalid"), |_, _| Reply::problem("request-invalid", "400 Bad Request").bytes()),
    ("404 of the bank", As("not-found"), |_, _| Reply::problem("not-found", "404 Not Found").bytes()),
    ("405 of the bank", As("method-not-allowed"), |_, _| {
        Reply::problem("method-not-allowed", "405 Method Not Allowed").header("allow", "GET").bytes()
    }),
    ("413 of the bank", As("payload-too-large"), |_, _| Reply::problem("payload-too-large", "413 Too Large").bytes()),
    ("415 of the bank", As("unsupported-media-type"), |_, _| {
        Reply::problem("unsupported-media-type", "415 Unsupported Media Type").bytes()
    }),
    ("422 of the bank", As("key-reused"), |key, _| {
        Reply::problem("key-reused", "422 Unprocessable Entity").header("idempotency-key", key).bytes()
    }),
    ("409 for its people", As("needs-attention"), |key, _| {
        Reply::problem("in-progress", "409 Conflict")
            .object(|problem| problem["state"] = json!("needs_attention"))
            .header("idempotency-key", key)
            .bytes()
    }),
];

#[tokio::test]
async fn a_refusal_is_no_end_and_a_look_finds_what_became_of_it() -> Result<()> {
    let scene = Scene::set().await?;
    let case = first_answers(&scene, "refusals", REFUSALS.to_vec()).await?;
    case.ends(case.sync(&["--until-settled"])?, 4).await?;
    let refused = scene.verdict(&[&case]).await?;
    let all_wait = Verdict { clicked: REFUSALS.len(), needs_attention: REFUSALS.len(), ..Verdict::default() };
    ensure!(refused == all_wait, "{refused:?}");
    // The next start looks, and sends none of them again.
    case.settle().await?;
    read_so(&case, &REFUSALS).await?;
    let sent = case.proxy.log().of(Kind::Keyed).count();
    ensure!(sent == REFUSALS.len(), "{sent} were sent");
    Reached::by(&[&case]).at_least(&REFUSALS.map(|(name, ..)| (name, 1)))?;
    ensure!(scene.verdict(&[&case]).await? == Verdict::all_approved(REFUSALS.len()));
    Ok(())
}

#[tokio::test]
async fn nothing_is_sent_before_the_bank_has_said_who_it_is() -> Result<()> {
    let scene = Scene::set().await?;
    type Answered = (&'static str, fn() -> Plan);
    let wrong: [Answered; 4] = [
        ("who it is: a page", || Plan::instead("who it is: a page", Reply::page("200 OK").bytes())),
        ("who it is: half of it", || Plan::fault("who it is: half of it").giving(Give::Cut(At::Body(100), End::Fin))),
        ("who it is: nobody", || {
            Plan::fault("who it is: nobody").making(|answer| {
                Reply::of(&answer).object(|policy| policy["bank_id"] = serde_json::Value::Null).message()
            })
        }),
        ("who it is: 500", || Plan::instead("who it is: 500", Reply::page("500 Internal Server Error").bytes())),
    ];
    let case = scene
        .case("who it is", 3, |_| {
            Box::new(move |asked| match wrong.get(asked.nth - 1) {
                Some((_, plan)) if asked.kind == Kind::Policy => plan(),
                _ => Plan::pass(),
            })
        })
        .await?;
    case.settle().await?;
    let log = case.proxy.log();
    let kinds: Vec<_> = log.exchanges.iter().map(|exchange| exchange.asked.kind).collect();
    ensure!(kinds[..5] == [Kind::Policy; 5] && kinds[5..] == [Kind::Keyed; 3], "{kinds:?}");
    Reached::by(&[&case]).at_least(&wrong.map(|(name, _)| (name, 1)))?;
    ensure!(scene.verdict(&[&case]).await? == Verdict::all_approved(3));
    Ok(())
}
