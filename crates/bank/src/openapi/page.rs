//! The document as a page: what a developer reads first. It is made once, out of the document itself, so it says what the
//! document says.

use crate::{
    http::pages::{Page, escaped},
    openapi::{
        markdown::{self, anchor},
        refusals, schemas,
    },
};
use serde_json::Value;

/// The methods of a path, in the order in which they are shown.
const METHODS: [&str; 4] = ["post", "get", "put", "delete"];

/// One call of the document.
struct Shown<'a> {
    path: &'a str,
    method: &'static str,
    operation: &'a Value,
}

/// The page of a document.
pub(crate) fn of(document: &Value) -> Page {
    let title = text(&document["info"]["title"]);
    let calls = calls(document);
    let tags: Vec<&Value> = items(&document["tags"]).collect();
    let of_tag = |tag: &Value| calls.iter().filter(|call| call.operation["tags"][0] == tag["name"]).collect::<Vec<_>>();
    let sections: String = tags.iter().map(|tag| section(document, tag, &of_tag(tag))).collect();
    let guide = markdown::html(text(&document["info"]["description"]), 2);
    let contents: String = tags.iter().map(|tag| contents(tag, &of_tag(tag))).collect();
    let guide_contents = guide_contents(text(&document["info"]["description"]));
    let body = format!(
        "<div class=\"frame\">\n<nav class=\"side\" aria-label=\"Contents\">\n{guide_contents}{contents}\
         <ul><li><a href=\"#objects\">Objects</a></li><li><a href=\"/openapi.json\">openapi.json</a></li></ul>\n</nav>\n\
         <main id=\"main\">\n<h1>{}</h1>\n<p class=\"soft\">Version {}. The same as <a href=\"/openapi.json\">an OpenAPI {} document</a>, \
         for programs.</p>\n{guide}\n{sections}\n{}</main>\n</div>",
        escaped(title),
        escaped(text(&document["info"]["version"])),
        escaped(text(&document["openapi"])),
        objects(document),
    );
    Page::new(title, &body)
}

fn calls(document: &Value) -> Vec<Shown<'_>> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths
        .flat_map(|(path, item)| {
            METHODS
                .into_iter()
                .filter_map(move |method| item.get(method).map(|operation| Shown { path, method, operation }))
        })
        .collect()
}

fn guide_contents(prose: &str) -> String {
    let headings = prose.lines().filter_map(|line| line.strip_prefix("### "));
    let links: String =
        headings.map(|heading| format!("<li><a href=\"#{}\">{}</a></li>", anchor(heading), escaped(heading))).collect();
    format!("<strong>Guide</strong>\n<ul>{links}</ul>\n")
}

fn contents(tag: &Value, calls: &[&Shown<'_>]) -> String {
    let links: String = calls
        .iter()
        .map(|call| format!("<li><a href=\"#{}\">{}</a></li>", id(call), escaped(text(&call.operation["summary"]))))
        .collect();
    format!("<strong>{}</strong>\n<ul>{links}</ul>\n", escaped(text(&tag["name"])))
}

fn section(document: &Value, tag: &Value, calls: &[&Shown<'_>]) -> String {
    let name = text(&tag["name"]);
    let calls: String = calls.iter().map(|call| article(document, call)).collect();
    format!(
        "<h2 class=\"part\" id=\"tag-{}\">{}</h2>\n{}{calls}",
        anchor(name),
        escaped(name),
        markdown::html(text(&tag["description"]), 3)
    )
}

fn id<'a>(call: &Shown<'a>) -> &'a str {
    text(&call.operation["operationId"])
}

fn article(document: &Value, call: &Shown<'_>) -> String {
    let operation = call.operation;
    let secret = match operation["security"][0].as_object().and_then(|schemes| schemes.keys().next()) {
        None => "<p class=\"soft\">No authorization.</p>\n".to_owned(),
        Some(scheme) => {
            let says = text(&document["components"]["securitySchemes"][scheme]["description"]);
            format!("<p class=\"soft\"><code>Authorization: Bearer …</code> {}</p>\n", markdown::inline(says))
        }
    };
    format!(
        "<article id=\"{}\" aria-labelledby=\"{0}-title\">\n<h3 id=\"{0}-title\">{}</h3>\n\
         <p class=\"call\"><span class=\"{}\">{}</span> <code>{}</code></p>\n{secret}{}{}{}{}{}</article>\n",
        id(call),
        escaped(text(&operation["summary"])),
        call.method,
        call.method.to_uppercase(),
        escaped(call.path),
        markdown::html(text(&operation["description"]), 4),
        parameters(operation),
        request(document, operation),
        curl(call),
        answers(document, operation),
    )
}

fn parameters(operation: &Value) -> String {
    let rows: String = items(&operation["parameters"])
        .map(|parameter| {
            let must = if parameter["required"] == true { ", required" } else { "" };
            format!(
                "<tr><td><code>{}</code><br><span class=\"soft\">{}{must}</span></td><td>{}{}</td></tr>\n",
                escaped(text(&parameter["name"])),
                escaped(text(&parameter["in"])),
                markdown::html(text(&parameter["description"]), 5),
                schemas::limits(&parameter["schema"]),
            )
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<h4>Parameters</h4>\n<table>\n<thead><tr><th>Name</th><th>What it is</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n"
    )
}

fn request(document: &Value, operation: &Value) -> String {
    let body = &operation["requestBody"];
    let Some(content) = body["content"].get("application/json") else { return String::new() };
    format!(
        "<h4>Body</h4>\n{}{}{}",
        markdown::html(text(&body["description"]), 5),
        schemas::table(document, &content["schema"]),
        examples(content),
    )
}

/// The line for a terminal.
fn curl(call: &Shown<'_>) -> String {
    let operation = call.operation;
    let mut path = call.path.to_owned();
    let mut headers = String::new();
    for parameter in items(&operation["parameters"]) {
        let (name, example) = (text(&parameter["name"]), text(&parameter["example"]));
        match text(&parameter["in"]) {
            "path" => path = path.replace(&format!("{{{name}}}"), example),
            "header" if parameter["required"] == true => headers += &format!(" \\\n     -H '{name}: {example}'"),
            _ => {}
        }
    }
    if !operation["security"].is_null() {
        headers = format!(" \\\n     -H \"Authorization: Bearer $SECRET\"{headers}");
    }
    let content = &operation["requestBody"]["content"]["application/json"];
    let example = content["examples"].as_object().and_then(|examples| examples.values().next());
    let body = example.map_or_else(String::new, |example| {
        format!(" \\\n     -H 'Content-Type: application/json' \\\n     -d '{}'", example["value"])
    });
    let method = if call.method == "get" || !body.is_empty() && call.method == "post" {
        String::new()
    } else {
        format!(" -X {}", call.method.to_uppercase())
    };
    let line = format!("curl -s{method} \"$BANK{path}\"{headers}{body}");
    format!("<h4>From a terminal</h4>\n<pre tabindex=\"0\"><code>{}</code></pre>\n", escaped(&line))
}

fn answers(document: &Value, operation: &Value) -> String {
    let all = operation["responses"].as_object().into_iter().flatten();
    // What any call can be told stands in one line: it would bury what is this call's own.
    let (always, own): (Vec<_>, Vec<_>) =
        all.partition(|(_, response)| refusals::is_of_any_call(text(&response["$ref"])));
    let rows: String = own
        .into_iter()
        .map(|(status, response)| answer(document, status, schemas::resolved(document, response)))
        .collect();
    let always: Vec<_> = always
        .into_iter()
        .map(|(status, response)| {
            let name = text(&response["$ref"]).rsplit('/').next().unwrap_or_default();
            format!("<a href=\"/problems/{0}\"><code>{0}</code></a> ({1})", escaped(name), escaped(status))
        })
        .collect();
    format!(
        "<h4>Answers</h4>\n<table>\n<thead><tr><th>Status</th><th>What it says</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n\
         <p class=\"soft\">And as any call: {}.</p>\n",
        always.join(", ")
    )
}

fn answer(document: &Value, status: &str, response: &Value) -> String {
    let class = status.chars().next().unwrap_or('0');
    let headers: Vec<_> = response["headers"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| format!("<code>{}</code>", escaped(name)))
        .collect();
    let headers = if headers.is_empty() {
        String::new()
    } else {
        format!("<p class=\"soft\">Headers: {}</p>", headers.join(", "))
    };
    let contents: String = response["content"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(media_type, content)| {
            let schema = &content["schema"];
            // An object with a name is described once, below; one without has no other place.
            let members =
                if schema["properties"].is_object() { schemas::table(document, schema) } else { String::new() };
            let link = schemas::link(schema);
            format!("<p class=\"soft\">{} {link}</p>{members}{}", escaped(media_type), examples(content))
        })
        .collect();
    format!(
        "<tr><td><span class=\"status s{class}\">{}</span></td><td>{}{headers}{contents}</td></tr>\n",
        escaped(status),
        markdown::html(text(&response["description"]), 5),
    )
}

fn examples(content: &Value) -> String {
    let examples = content["examples"].as_object().into_iter().flatten();
    examples
        .map(|(_, example)| {
            let value = serde_json::to_string_pretty(&example["value"]).unwrap_or_default();
            format!(
                "<details><summary>Example: {}</summary>\n<pre tabindex=\"0\"><code>{}</code></pre></details>\n",
                escaped(text(&example["summary"])),
                escaped(&value)
            )
        })
        .collect()
}

/// Every object that the calls speak of.
fn objects(document: &Value) -> String {
    let all: String = document["components"]["schemas"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, schema)| {
            format!(
                "<article id=\"object-{0}\"><h3>{0}</h3>\n{1}{2}</article>\n",
                escaped(name),
                markdown::html(text(&schema["description"]), 4),
                schemas::table(document, schema),
            )
        })
        .collect();
    format!("<h2 class=\"part\" id=\"objects\">Objects</h2>\n{all}")
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
