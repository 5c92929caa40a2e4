//! Problem documents as the OpenAPI document shows them.

use crate::openapi::{call::PAYMENT_EXAMPLE, named, reference_to};
use protocol::{Key, OperationState, Problem, ProblemType};
use serde_json::json;
use utoipa::{
    ToSchema,
    openapi::{
        AllOfBuilder, ContentBuilder, Header, HeaderBuilder, ObjectBuilder, RefOr, Response, ResponseBuilder, Schema,
        Type, example::ExampleBuilder,
    },
};

/// What any call can be told: refused at the door, a head that is too large, a fault of the bank, a bank that can't work.
pub(crate) const OF_ANY_CALL: [ProblemType; 4] =
    [ProblemType::Forbidden, ProblemType::PayloadTooLarge, ProblemType::Internal, ProblemType::Unavailable];

/// Whether a reference is to the refusal of one of those.
pub(crate) fn is_of_any_call(reference: &str) -> bool {
    OF_ANY_CALL.iter().any(|problem| reference.rsplit('/').next() == Some(problem.name()))
}

/// The name under which the refusal for these problems, all of one status, stands in the document.
pub(crate) fn name(problems: &[ProblemType]) -> String {
    let names: Vec<_> = problems.iter().map(|problem| problem.name()).collect();
    names.join("_or_")
}

/// The refusal for these problems, all of one status.
pub(crate) fn response(problems: &[ProblemType]) -> Response {
    let says: Vec<_> = problems.iter().map(|problem| says(*problem)).collect();
    let examples = problems.iter().flat_map(|problem| examples(*problem)).map(|(name, summary, problem)| {
        (name, ExampleBuilder::new().summary(summary).value(Some(json!(problem))).build())
    });
    let content = ContentBuilder::new().schema(Some(schema(problems))).examples_from_iter(examples);
    let echo = HeaderBuilder::new()
        .description(Some("The key of the request, where it carried a valid one."))
        .schema(Some(reference_to::<Key>()))
        .build();
    let response = ResponseBuilder::new()
        .description(says.join("\n"))
        .content(Problem::MEDIA_TYPE, content)
        .header("Idempotency-Key", echo);
    headers(problems).into_iter().fold(response, |response, (name, header)| response.header(name, header)).build()
}

/// The schemas that every refusal refers to.
pub(crate) fn schemas() -> Vec<(String, RefOr<Schema>)> {
    let mut schemas = vec![named::<Problem>(), named::<Key>()];
    Problem::schemas(&mut schemas);
    schemas
}

/// A problem document that is one of these.
fn schema(problems: &[ProblemType]) -> AllOfBuilder {
    let types = problems.iter().map(|problem| json!(problem)).collect::<Vec<_>>();
    let of_type = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(types));
    let statuses = problems.first().map(|problem| problem.status());
    let of_status = ObjectBuilder::new().schema_type(Type::Integer).enum_values(Some(statuses));
    let retryable = problems.first().map(|problem| problem.retryable());
    let of_retryable = ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some(retryable));
    let narrower = ObjectBuilder::new()
        .schema_type(Type::Object)
        .property("type", of_type)
        .property("status", of_status)
        .property("retryable", of_retryable);
    AllOfBuilder::new().item(reference_to::<Problem>()).item(narrower)
}

/// Headers that belong to a refusal of that status.
fn headers(problems: &[ProblemType]) -> Vec<(&'static str, Header)> {
    let header = |description: &str, schema: ObjectBuilder| {
        HeaderBuilder::new().description(Some(description)).schema(Some(schema)).build()
    };
    let seconds = |maximum: u16| {
        let whole = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(maximum));
        header("Whole seconds after which to ask again; jittered, so that clients don't come back together.", whole)
    };
    match problems.first() {
        Some(ProblemType::InProgress) => vec![("Retry-After", seconds(3))],
        Some(ProblemType::RateLimited | ProblemType::Unavailable) => vec![("Retry-After", seconds(60))],
        Some(ProblemType::Unauthorized) => {
            let bearer = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["Bearer"]));
            vec![("WWW-Authenticate", header("The scheme to use.", bearer))]
        }
        _ => Vec::new(),
    }
}

/// A line on a problem.
fn says(problem: ProblemType) -> String {
    let line = format!("- [`{0}`](/problems/{0}): {1}.", problem.name(), problem.title());
    match problem {
        ProblemType::PayloadTooLarge => {
            format!("{line} Its body, or its path and headers together; of a call without a body, the latter.")
        }
        _ => line,
    }
}

const RATE_LIMITED_REQUESTS: &str =
    "2048 requests of this merchant are being answered already; send the same request again later, and fewer at once";
const RATE_LIMITED_OPERATIONS: &str =
    "the bank has too many operations of this merchant in hand right now; send the same request again later";
const TOO_LARGE_BODY: &str = "the body may have up to 65536 bytes";
const TOO_LARGE_HEAD: &str = "path and headers may have up to 32768 bytes";

/// Documents of the type, each with its name and a summary.
fn examples(problem: ProblemType) -> Vec<(&'static str, &'static str, Problem)> {
    match problem {
        ProblemType::PayloadTooLarge => vec![
            ("payload-too-large-head", "Path and headers are too large", Problem::new(problem, TOO_LARGE_HEAD)),
            ("payload-too-large-body", "The body is too large", Problem::new(problem, TOO_LARGE_BODY)),
        ],
        ProblemType::RateLimited => vec![
            ("rate-limited-requests", "Too many requests at once", Problem::new(problem, RATE_LIMITED_REQUESTS)),
            ("rate-limited-operations", "Too many operations in hand", Problem::new(problem, RATE_LIMITED_OPERATIONS)),
        ],
        _ => vec![(problem.name(), problem.title(), example(problem))],
    }
}

/// A document of the type, with a detail such as the bank writes.
fn example(problem: ProblemType) -> Problem {
    let mut example = Problem::new(problem, detail(problem));
    match problem {
        ProblemType::InProgress => example.state = Some(OperationState::Processing),
        ProblemType::KeyExpired => {
            example.state = Some(OperationState::Approved);
            example.payment_id = Some(PAYMENT_EXAMPLE.to_owned());
        }
        ProblemType::KeyReused => example.differs = Some(vec!["amount".into()]),
        _ => {}
    }
    example
}

fn detail(problem: ProblemType) -> &'static str {
    match problem {
        ProblemType::KeyMissing => "send a UUID in the Idempotency-Key header",
        ProblemType::KeyInvalid => "send the Idempotency-Key header once",
        ProblemType::RequestMalformed => "the body is not one JSON object (line 1, column 9)",
        ProblemType::RequestInvalid => "`amount` must be a whole number of minor units from 1 to 99999999",
        ProblemType::Unauthorized => "send a valid secret as `Authorization: Bearer SECRET`",
        ProblemType::Forbidden => "requests of web pages are not taken",
        ProblemType::OperationUnknown => "this merchant never used this key",
        ProblemType::PaymentUnknown => "this merchant has nothing of that id",
        ProblemType::NotFound => "there is nothing at this path",
        // Of no call: it is the answer to a method that no call has.
        ProblemType::MethodNotAllowed => problem.title(),
        ProblemType::PayloadTooLarge => TOO_LARGE_BODY,
        ProblemType::UnsupportedMediaType => "send the body as application/json",
        ProblemType::InProgress => {
            "the operation runs and its outcome is not known yet; send the same request again later"
        }
        ProblemType::KeyExpired => {
            "the stored response has expired, and the operation was not run again; ask what became of it by its key"
        }
        ProblemType::OperationCancelled => "the key was cancelled and never charges",
        ProblemType::KeyReused => "the key belongs to another request, which differs in: amount",
        ProblemType::RateLimited => RATE_LIMITED_REQUESTS,
        ProblemType::Internal => "the bank failed; send the same request again later",
        ProblemType::Unavailable => "the bank's store can't be used right now; send the same request again later",
    }
}
