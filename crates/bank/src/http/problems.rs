//! A readable page for each problem type.

use crate::http::{answer::Refusal, pages::Page, segment::Segment};
use protocol::ProblemType;

/// `GET /problems/{name}`
pub(crate) async fn show(Segment(name): Segment) -> Result<Page, Refusal> {
    let problem = ProblemType::from_name(&name)
        .ok_or_else(|| Refusal::new(ProblemType::NotFound, "there is no problem of this name"))?;
    Ok(page(problem))
}

/// The page. It holds nothing but constants, so nothing has to be escaped.
fn page(problem: ProblemType) -> Page {
    let (name, title, status) = (problem.name(), problem.title(), problem.status());
    let (happened, to_do) = explain(problem);
    let again = if problem.retryable() {
        "Yes: send the same request with the same key again, after the time in <code>Retry-After</code> where there is one."
    } else {
        "No: the same request gets the same answer."
    };
    let others: String = ProblemType::ALL
        .into_iter()
        .filter(|other| *other != problem)
        .map(|other| format!("<li><a href=\"/problems/{0}\"><code>{0}</code></a></li>\n", other.name()))
        .collect();
    let class = status / 100;
    let body = format!(
        "<main id=\"main\" class=\"narrow\">\n<p><a href=\"/docs\">Kassa's bank</a></p>\n<h1>{title}</h1>\n\
         <p class=\"call\"><span class=\"status s{class}\">{status}</span> <code>{name}</code></p>\n\
         <h2>What happened</h2>\n<p>{happened}</p>\n<h2>What to do</h2>\n<p>{to_do}</p>\n\
         <h2>Does it help to try again?</h2>\n<p>{again}</p>\n\
         <details><summary>Other problems</summary>\n<ul>\n{others}</ul></details>\n</main>"
    );
    Page::new(title, &body)
}

/// What happened, and what to do.
fn explain(problem: ProblemType) -> (&'static str, &'static str) {
    match problem {
        ProblemType::KeyMissing => (
            "A call that moves money came without an <code>Idempotency-Key</code>.",
            "Make one UUID for each payment or refund, store it, and send it with every attempt.",
        ),
        ProblemType::KeyInvalid => (
            "The key is no UUID, is the nil or the max UUID, or stands there more than once.",
            "Send one UUID, bare or in double quotes.",
        ),
        ProblemType::RequestMalformed => (
            "The body is not one whole JSON object. Nothing was claimed.",
            "Correct the body; the same key may be used.",
        ),
        ProblemType::RequestInvalid => (
            "A member is missing, doubled, unknown, or its value is not allowed. Nothing was claimed.",
            "Correct the member named in <code>detail</code>; the same key may be used.",
        ),
        ProblemType::Unauthorized => (
            "The request carries no secret, or one that nobody has.",
            "Send the merchant's secret as <code>Authorization: Bearer SECRET</code>.",
        ),
        ProblemType::Forbidden => (
            "The secret is not for this call, or the request came from a web page or for another host.",
            "Call from a program, by the address that the bank listens on.",
        ),
        ProblemType::OperationUnknown => (
            "This merchant never used this key.",
            "If the request was sent and not answered, it did not arrive: send it again with the same key.",
        ),
        ProblemType::PaymentUnknown => ("This merchant has no payment or refund of that id.", "Check the id."),
        ProblemType::NotFound => ("There is nothing at this path.", "Check the path."),
        ProblemType::MethodNotAllowed => {
            ("The path has other methods.", "Use one of those named in <code>Allow</code>.")
        }
        ProblemType::PayloadTooLarge => (
            "The body is larger than the policy's <code>max_body_bytes</code>, or path and headers together are larger than 32 KiB. \
             Nothing was claimed.",
            "Send a smaller body, or a shorter path and fewer or shorter headers, as <code>detail</code> says; the same key may be used.",
        ),
        ProblemType::UnsupportedMediaType => (
            "The body is not plain <code>application/json</code>.",
            "Send <code>Content-Type: application/json</code> and no <code>Content-Encoding</code>.",
        ),
        ProblemType::InProgress => (
            "The operation was claimed and its outcome is not known yet. It goes on by itself. With \
             <code>\"state\":\"needs_attention\"</code> the bank's people look at it.",
            "Keep the operation as unknown. Send the same request again later, or ask by its key.",
        ),
        ProblemType::KeyExpired => (
            "The operation ended long ago and its stored response has expired. It was not run again: a key is never free for a \
             second charge.",
            "Take <code>state</code> and the id in this document, or ask by the key.",
        ),
        ProblemType::OperationCancelled => {
            ("The key was cancelled, and never charges.", "Use a new key if the customer still wants to pay.")
        }
        ProblemType::KeyReused => (
            "The key belongs to another request. <code>differs</code> names what is not the same.",
            "Use a new key for a new payment. If this is a retry, send what was sent the first time.",
        ),
        ProblemType::RateLimited => (
            "Too many requests of this merchant are being answered, or too many of its operations are in hand. Nothing was claimed.",
            "Wait, and send the same request with the same key; send fewer at once.",
        ),
        ProblemType::Internal => {
            ("The bank failed.", "Keep the operation as unknown, and send the same request again.")
        }
        ProblemType::Unavailable => (
            "The bank can't take requests now: its store can't be used, it has too much in hand, or it is going down.",
            "Wait, and send the same request with the same key.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_has_a_page() {
        for problem in ProblemType::ALL {
            let page = page(problem);
            let page = page.html();
            assert!(page.contains(problem.name()) && page.contains(problem.title()), "{page}");
            assert_eq!(page.contains("Yes: send the same request"), problem.retryable(), "{page}");
        }
    }
}
