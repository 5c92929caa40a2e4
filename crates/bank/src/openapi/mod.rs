//! Calls that say what they are. A call is put into the router together with its description, so the OpenAPI document, and the
//! page made of it, hold every call that is there and none that isn't.

pub(crate) mod call;
pub(crate) mod markdown;
pub(crate) mod page;
pub(crate) mod refusals;
pub(crate) mod schemas;

use crate::{
    http::counting::OfRoute,
    metrics::Metrics,
    openapi::call::{Answered, Call},
};
use axum::{
    Router,
    extract::State,
    handler::Handler,
    http::{HeaderValue, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{MethodFilter, on},
};
use bytes::Bytes;
use std::sync::Arc;
use utoipa::{
    ToSchema,
    openapi::{
        Components, HttpMethod, Info, OpenApi, Paths, Ref, RefOr, Schema, Server, security::SecurityScheme, tag::Tag,
    },
};

/// Where the document is.
const DOCUMENT_PATH: &str = "/openapi.json";
/// Where the page is.
const PAGE_PATH: &str = "/docs";

/// A router and the description of all that is in it.
pub(crate) struct Calls<S> {
    router: Router<S>,
    paths: Paths,
    components: Components,
    metrics: Arc<Metrics>,
}

impl<S: Clone + Send + Sync + 'static> Calls<S> {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        Self { router: Router::new(), paths: Paths::new(), components: Components::new(), metrics }
    }

    /// Adds a call with what answers it.
    pub(crate) fn call<H, T>(self, call: Call, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        let described = self.describe(&call);
        described.undescribed(call.method, &call.path, handler)
    }

    /// Adds a call whose description is always there, and what answers it only where `is_there`.
    pub(crate) fn call_if<H, T>(self, is_there: bool, call: Call, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        if is_there { self.call(call, handler) } else { self.describe(&call) }
    }

    /// Adds a call that stands in no document, such as those between bank and gateway.
    pub(crate) fn undescribed<H, T>(mut self, method: HttpMethod, path: &str, handler: H) -> Self
    where
        H: Handler<T, S>,
        T: 'static,
    {
        let (filter, name) = match method {
            HttpMethod::Put => (MethodFilter::PUT, "PUT"),
            HttpMethod::Post => (MethodFilter::POST, "POST"),
            HttpMethod::Delete => (MethodFilter::DELETE, "DELETE"),
            _ => (MethodFilter::GET, "GET"),
        };
        let of = OfRoute(self.metrics.counting.route(name, path));
        let marked = on(filter, handler).route_layer(middleware::map_response_with_state(of, mark));
        self.router = self.router.route(path, marked);
        self
    }

    fn describe(mut self, call: &Call) -> Self {
        self.paths.add_path_operation(&call.path, vec![call.method.clone()], call.operation());
        self.components.schemas.extend(call.schemas.iter().cloned());
        self.components.responses.extend(call.refusals());
        self
    }

    /// Puts the router to work on its state; more calls, on another one, may be added to what this gives.
    pub(crate) fn with_state<S2>(self, state: S) -> Calls<S2> {
        let Self { router, paths, components, metrics } = self;
        Calls { router: router.with_state(state), paths, components, metrics }
    }

    /// Adds all of another router.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.paths.merge(other.paths);
        self.components.schemas.extend(other.components.schemas);
        self.components.responses.extend(other.components.responses);
        self
    }

    /// The router alone.
    pub(crate) fn into_router(self) -> Router<S> {
        self.router
    }
}

impl Calls<()> {
    /// The router, with two more calls: the document, and a readable page of it.
    pub(crate) fn with_document(self, about: About) -> Router {
        let described = self.describe(&document_call()).describe(&page_call());
        let mut components = described.components.clone();
        for (name, scheme) in about.security {
            components.add_security_scheme(name, scheme);
        }
        let mut document = OpenApi::new(about.info, described.paths.clone());
        document.components = Some(components);
        document.tags = Some(about.tags);
        document.servers = Some(about.servers);
        let json = serde_json::to_value(&document).unwrap_or_default();
        let (bytes, page) = (Bytes::from(json.to_string()), page::of(&json));
        let as_json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        described
            .undescribed(HttpMethod::Get, DOCUMENT_PATH, async move || (as_json, bytes).into_response())
            .undescribed(HttpMethod::Get, PAGE_PATH, async move || page.clone().into_response())
            .into_router()
    }
}

/// What stands in a document besides its calls.
pub(crate) struct About {
    pub(crate) info: Info,
    pub(crate) tags: Vec<Tag>,
    pub(crate) servers: Vec<Server>,
    pub(crate) security: Vec<(&'static str, SecurityScheme)>,
}

fn document_call() -> Call {
    Call::get(DOCUMENT_PATH, "getDocument")
        .tag("Service")
        .says("This document", "OpenAPI 3.1, made from the calls themselves. No authorization.")
        .answers(200, Answered::json_object("The document."))
}

fn page_call() -> Call {
    Call::get(PAGE_PATH, "getPage")
        .tag("Service")
        .says(
            "This document as a page",
            "A readable page of it, with no script in it and nothing from elsewhere. No authorization.",
        )
        .answers(200, Answered::text("The page.", "text/html; charset=utf-8"))
}

/// Marks a response with the route that made it.
async fn mark(State(of): State<OfRoute>, mut response: Response) -> Response {
    response.extensions_mut().insert(of);
    response
}

/// A type's schema under its name.
pub(crate) fn named<T: ToSchema>() -> (String, RefOr<Schema>) {
    (T::name().into_owned(), T::schema())
}

/// The name of a type's schema, as a reference.
pub(crate) fn reference_to<T: ToSchema>() -> Ref {
    Ref::from_schema_name(T::name())
}
