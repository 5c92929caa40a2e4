//! Pages for people: plain HTML with one style, no script, and nothing from elsewhere.

use axum::{
    http::{HeaderName, HeaderValue, header},
    response::{Html, IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use sha2::{Digest, Sha256};
use std::sync::Arc;

const STYLE: &str = include_str!("pages.css");

/// A page, written once and sent as often as it is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    html: Arc<str>,
    policy: HeaderValue,
}

impl Page {
    /// A page around `body`, which is HTML already.
    pub(crate) fn new(title: &str, body: &str) -> Self {
        let title = escaped(title);
        let html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
             <style>{STYLE}</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the text</a>\n{body}\n</body>\n</html>\n"
        );
        Self { html: html.into(), policy: policy() }
    }

    /// The page as it is sent.
    #[cfg(test)]
    pub(crate) fn html(&self) -> &str {
        &self.html
    }
}

/// Nothing may be loaded, run, framed or sent from a page; the one style is told by its digest.
fn policy() -> HeaderValue {
    let style = BASE64_STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"))
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let headers: [(HeaderName, HeaderValue); 3] = [
            (header::CONTENT_SECURITY_POLICY, self.policy),
            (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        ];
        (headers, Html(self.html.to_string())).into_response()
    }
}

/// Text as it stands in HTML, in an attribute too.
pub(crate) fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html += "&amp;",
            '<' => html += "&lt;",
            '>' => html += "&gt;",
            '"' => html += "&quot;",
            '\'' => html += "&#39;",
            c => html.push(c),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_allows_its_own_style_and_nothing_else() {
        let response = Page::new("a < b", "<main id=\"main\"></main>").into_response();
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
        let page = Page::new("a < b", "");
        assert!(page.html().contains("<title>a &lt; b</title>"), "{}", page.html());
        // The digest is of what stands between the tags, to the byte.
        let style = page.html().split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
        assert!(policy.contains(&BASE64_STANDARD.encode(Sha256::digest(style))), "{policy}");
    }
}
