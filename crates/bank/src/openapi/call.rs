//! The description of one call.

use crate::openapi::{named, reference_to, refusals};
use protocol::{BANK_ID, ProblemType};
use serde_json::{Value, json};
use utoipa::{
    ToSchema,
    openapi::{
        AllOfBuilder, Content, ContentBuilder, Header, HttpMethod, ObjectBuilder, Ref, RefOr, Required, Response,
        ResponseBuilder, Schema, Type,
        example::ExampleBuilder,
        link::Link,
        path::{Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn},
        request_body::RequestBodyBuilder,
        security::SecurityRequirement,
    },
};

/// The scheme of a merchant's secret.
pub(crate) const SECRET: &str = "secret";
/// The scheme of the operator's secret.
pub(crate) const OPERATOR: &str = "operator";

/// How a key is written in a request: a UUID, bare or in double quotes, but neither nil nor max.
pub(crate) const KEY_PATTERN: &str = concat!(
    "^(?!\"?0{8}(-0{4}){3}-0{12}\"?$)(?!\"?[Ff]{8}(-[Ff]{4}){3}-[Ff]{12}\"?$)",
    "([0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|\"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\")$",
);

/// The key of the examples' payment.
pub(crate) const KEY_EXAMPLE: &str = "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b";
/// The id of the examples' payment.
pub(crate) const PAYMENT_EXAMPLE: &str = "pay_01kb7vr3q8e5tbqy0d2m9x4c6h";

/// A call.
pub(crate) struct Call {
    pub(crate) method: HttpMethod,
    pub(crate) path: String,
    pub(crate) schemas: Vec<(String, RefOr<Schema>)>,
    operation: Operation,
    answers: Vec<(u16, Answered)>,
    problems: Vec<ProblemType>,
}

impl Call {
    fn new(method: HttpMethod, path: &str, id: &str) -> Self {
        Self {
            method,
            path: path.to_owned(),
            schemas: refusals::schemas(),
            operation: OperationBuilder::new().operation_id(Some(id)).build(),
            answers: Vec::new(),
            problems: refusals::OF_ANY_CALL.to_vec(),
        }
    }

    pub(crate) fn get(path: &str, id: &str) -> Self {
        Self::new(HttpMethod::Get, path, id)
    }

    pub(crate) fn put(path: &str, id: &str) -> Self {
        Self::new(HttpMethod::Put, path, id)
    }

    pub(crate) fn post(path: &str, id: &str) -> Self {
        Self::new(HttpMethod::Post, path, id)
    }

    pub(crate) fn delete(path: &str, id: &str) -> Self {
        Self::new(HttpMethod::Delete, path, id)
    }

    fn with(mut self, change: impl FnOnce(OperationBuilder) -> OperationBuilder) -> Self {
        self.operation = change(self.operation.into()).build();
        self
    }

    pub(crate) fn tag(self, tag: &str) -> Self {
        self.with(|operation| operation.tag(tag))
    }

    /// A line, and what there is to know.
    pub(crate) fn says(self, summary: &str, prose: &str) -> Self {
        self.with(|operation| operation.summary(Some(summary)).description(Some(prose)))
    }

    /// The call needs a merchant's secret, and may say which bank and merchant it means.
    pub(crate) fn of_merchant(self) -> Self {
        let bank = ParameterBuilder::new()
            .name(pretty(BANK_ID))
            .parameter_in(ParameterIn::Header)
            .description(Some(
                "The bank that you mean, by the `bank_id` of its policy. Another one answers 403, before it claims anything, so \
                 that a request is never run at a bank to which the address has moved.",
            ))
            .schema(Some(text().description(Some("The `bank_id` of the policy."))));
        let merchant = ParameterBuilder::new()
            .name(pretty(protocol::MERCHANT))
            .parameter_in(ParameterIn::Header)
            .description(Some(
                "The merchant that you believe your secret to name. Where it names another, the answer is 403.",
            ))
            .schema(Some(text().description(Some("The `merchant` of the policy."))));
        self.with(|operation| {
            operation.security(SecurityRequirement::new::<_, _, String>(SECRET, [])).parameter(bank).parameter(merchant)
        })
        .refuses(&[ProblemType::Unauthorized])
    }

    /// The call needs the operator's secret, and is only there where the bank was started with one.
    pub(crate) fn of_operator(self) -> Self {
        self.with(|operation| operation.security(SecurityRequirement::new::<_, _, String>(OPERATOR, [])))
            .refuses(&[ProblemType::Unauthorized, ProblemType::NotFound])
    }

    /// The call needs the key.
    pub(crate) fn keyed(self, example: &str) -> Self {
        let key = ParameterBuilder::new()
            .name(pretty(protocol::IDEMPOTENCY_KEY))
            .parameter_in(ParameterIn::Header)
            .required(Required::True)
            .description(Some(
                "The key of this operation: a UUID of any version but nil and max, bare or as a quoted structured-field string, \
                 in any case. All spellings of one UUID are one key. Make it once, store it with what is to be paid, and send \
                 it with every attempt.",
            ))
            .schema(Some(key_schema()))
            .example(Some(json!(example)));
        self.with(|operation| operation.parameter(key)).refuses(&[
            ProblemType::KeyMissing,
            ProblemType::KeyInvalid,
            ProblemType::RequestMalformed,
            ProblemType::RequestInvalid,
            ProblemType::UnsupportedMediaType,
            ProblemType::InProgress,
            ProblemType::KeyExpired,
            ProblemType::OperationCancelled,
            ProblemType::KeyReused,
            ProblemType::RateLimited,
        ])
    }

    /// A variable segment of the path.
    pub(crate) fn in_path(
        self,
        name: &str,
        description: &str,
        schema: impl Into<RefOr<Schema>>,
        example: &str,
    ) -> Self {
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .description(Some(description))
            .schema(Some(schema))
            .example(Some(json!(example)));
        // A segment that can't be decoded names nothing.
        self.with(|operation| operation.parameter(parameter)).refuses(&[ProblemType::NotFound])
    }

    /// A key that stands in the path.
    pub(crate) fn key_in_path(self) -> Self {
        self.in_path("key", "The key, in any of its spellings.", key_schema(), KEY_EXAMPLE)
            .refuses(&[ProblemType::KeyInvalid])
    }

    /// A member of the query that may be left out.
    pub(crate) fn in_query(self, name: &str, description: &str, schema: impl Into<RefOr<Schema>>) -> Self {
        let parameter: Parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Query)
            .description(Some(description))
            .schema(Some(schema))
            .build();
        self.with(|operation| operation.parameter(parameter)).refuses(&[ProblemType::RequestInvalid])
    }

    /// The body, with examples that work.
    pub(crate) fn body<T: ToSchema>(mut self, description: &str, examples: &[(&str, &str, Value)]) -> Self {
        self.schemas.push(named::<T>());
        T::schemas(&mut self.schemas);
        self.body_of(reference_to::<T>(), description, examples)
    }

    /// The body, by its schema.
    pub(crate) fn body_of(
        self,
        schema: impl Into<RefOr<Schema>>,
        description: &str,
        examples: &[(&str, &str, Value)],
    ) -> Self {
        let content = with_examples(ContentBuilder::new().schema(Some(schema)), examples);
        let body = RequestBodyBuilder::new()
            .description(Some(description))
            .required(Some(Required::True))
            .content("application/json", content)
            .build();
        self.with(|operation| operation.request_body(Some(body)))
    }

    /// An answer that is no problem.
    pub(crate) fn answers(mut self, status: u16, answered: Answered) -> Self {
        self.schemas.extend(answered.schemas.iter().cloned());
        self.answers.push((status, answered));
        self
    }

    /// Problems that the call can end in.
    pub(crate) fn refuses(mut self, problems: &[ProblemType]) -> Self {
        self.problems.extend(problems);
        self
    }

    /// Problems of the call by status, in the order of the contract.
    fn problems_by_status(&self) -> Vec<(u16, Vec<ProblemType>)> {
        let mut by_status: Vec<(u16, Vec<ProblemType>)> = Vec::new();
        for problem in ProblemType::ALL.into_iter().filter(|problem| self.problems.contains(problem)) {
            match by_status.iter_mut().find(|(status, _)| *status == problem.status()) {
                Some((_, problems)) => problems.push(problem),
                None => by_status.push((problem.status(), vec![problem])),
            }
        }
        by_status
    }

    /// The refusals that the operation refers to, by name.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (String, RefOr<Response>)> {
        let shared = self.problems_by_status().into_iter();
        shared.map(|(_, problems)| (refusals::name(&problems), refusals::response(&problems).into()))
    }

    /// The operation as it stands in the document.
    pub(crate) fn operation(&self) -> Operation {
        let mut responses: Vec<(u16, RefOr<Response>)> = Vec::new();
        for (status, answered) in &self.answers {
            responses.push((*status, answered.response.clone().into()));
        }
        for (status, problems) in self.problems_by_status() {
            let refusal = Ref::from_response_name(refusals::name(&problems));
            match responses.iter_mut().find(|(known, _)| *known == status) {
                // An answer of its own with the same status: then it may be either.
                Some((_, RefOr::T(response))) => {
                    let refusal = refusals::response(&problems);
                    response.content.extend(refusal.content);
                    response.headers.extend(refusal.headers);
                }
                _ => responses.push((status, refusal.into())),
            }
        }
        responses.sort_by_key(|(status, _)| *status);
        let operation = OperationBuilder::from(self.operation.clone());
        responses
            .into_iter()
            .fold(operation, |operation, (status, response)| operation.response(status.to_string(), response))
            .build()
    }
}

/// An answer that is no problem.
#[derive(Clone)]
pub(crate) struct Answered {
    response: Response,
    schemas: Vec<(String, RefOr<Schema>)>,
}

impl Answered {
    fn new(description: &str, media_type: &str, content: impl Into<Content>) -> Self {
        let response = ResponseBuilder::new().description(description).content(media_type, content).build();
        Self { response, schemas: Vec::new() }
    }

    /// A JSON answer.
    pub(crate) fn json<T: ToSchema>(description: &str, examples: &[(&str, &str, Value)]) -> Self {
        let content = with_examples(ContentBuilder::new().schema(Some(reference_to::<T>())), examples);
        Self::new(description, "application/json", content).knows::<T>()
    }

    /// A JSON answer of a type, which is narrower than the type says.
    pub(crate) fn json_where<T: ToSchema>(
        description: &str,
        narrower: ObjectBuilder,
        examples: &[(&str, &str, Value)],
    ) -> Self {
        let schema = AllOfBuilder::new().item(reference_to::<T>()).item(narrower);
        let content = with_examples(ContentBuilder::new().schema(Some(schema)), examples);
        Self::new(description, "application/json", content).knows::<T>()
    }

    /// A JSON answer with a schema of its own.
    pub(crate) fn json_of(
        description: &str,
        schema: impl Into<RefOr<Schema>>,
        examples: &[(&str, &str, Value)],
    ) -> Self {
        Self::new(description, "application/json", with_examples(ContentBuilder::new().schema(Some(schema)), examples))
    }

    /// Some JSON object.
    pub(crate) fn json_object(description: &str) -> Self {
        Self::json_of(description, ObjectBuilder::new().schema_type(Type::Object), &[])
    }

    /// A text.
    pub(crate) fn text(description: &str, media_type: &str) -> Self {
        Self::new(description, media_type, ContentBuilder::new().schema(Some(text())))
    }

    /// An answer with nothing in it.
    pub(crate) fn empty(description: &str) -> Self {
        Self { response: ResponseBuilder::new().description(description).build(), schemas: Vec::new() }
    }

    /// The answer's schema refers to this one.
    pub(crate) fn knows<T: ToSchema>(mut self) -> Self {
        self.schemas.push(named::<T>());
        T::schemas(&mut self.schemas);
        self
    }

    pub(crate) fn header(mut self, name: &str, header: Header) -> Self {
        self.response.headers.insert(pretty(name), header.into());
        self
    }

    pub(crate) fn link(mut self, name: &str, link: Link) -> Self {
        self.response.links.insert(name.to_owned(), link.into());
        self
    }
}

fn with_examples(content: ContentBuilder, examples: &[(&str, &str, Value)]) -> ContentBuilder {
    let named = examples.iter().map(|(name, summary, value)| {
        (*name, ExampleBuilder::new().summary(*summary).value(Some(value.clone())).build())
    });
    content.examples_from_iter(named)
}

/// The schema of a key in a request.
fn key_schema() -> ObjectBuilder {
    text().pattern(Some(KEY_PATTERN)).description(Some("A UUID, bare or in double quotes, neither nil nor max."))
}

/// The schema of a text.
pub(crate) fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// The name of a header as people write it.
pub(crate) fn pretty(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let mut letters = word.chars();
        letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
    });
    words.collect::<Vec<_>>().join("-")
}
