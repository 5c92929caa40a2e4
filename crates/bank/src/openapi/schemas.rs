//! Schemas as the page shows them.

use crate::{
    http::pages::escaped,
    openapi::{markdown, page::text},
};
use serde_json::Value;

/// How long a pattern may be to be shown, in characters.
const PATTERN_CHARS_MAX: usize = 80;

/// What a reference refers to; anything else as it is.
pub(crate) fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let target = value["$ref"].as_str().and_then(|path| document.pointer(path.strip_prefix('#')?));
    target.unwrap_or(value)
}

/// The members of an object, or the limits of a value.
pub(crate) fn table(document: &Value, schema: &Value) -> String {
    let whole = resolved(document, schema);
    let Some(members) = whole["properties"].as_object() else {
        let link = if schema["$ref"].is_null() { String::new() } else { format!("<p>{}</p>\n", link(schema)) };
        return format!("{link}{}", limits(whole));
    };
    let required =
        |name: &str| whole["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name));
    let rows: String = members
        .iter()
        .map(|(name, member)| {
            let must = if required(name) { "" } else { "<br><span class=\"soft\">may be absent</span>" };
            let own = text(&member["description"]);
            let says = if own.is_empty() { text(&resolved(document, member)["description"]) } else { own };
            format!(
                "<tr><td><code>{}</code>{must}</td><td>{}{}{}</td></tr>\n",
                escaped(name),
                markdown::html(says, 5),
                link(member),
                limits(member),
            )
        })
        .collect();
    format!("<table>\n<thead><tr><th>Member</th><th>What it is</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n")
}

/// The objects that a schema refers to, as links to where they are described.
pub(crate) fn link(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return format!("<a href=\"#object-{0}\">{0}</a>", escaped(name));
    }
    if let Some(items) = schema.get("items") {
        return format!("a list of {}", link(items));
    }
    let parts = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|of| schema[of].as_array()).flatten();
    let links: Vec<_> = parts.map(link).filter(|link| !link.is_empty()).collect();
    links.join(" or ")
}

/// What a value may be, in a line.
pub(crate) fn limits(schema: &Value) -> String {
    let mut says: Vec<String> = Vec::new();
    match &schema["type"] {
        Value::String(one) if one != "object" => says.push(escaped(one)),
        Value::Array(several) => {
            says.push(several.iter().map(|one| escaped(text(one))).collect::<Vec<_>>().join(" or "))
        }
        _ => {}
    }
    if let Some(format) = schema["format"].as_str() {
        says.push(escaped(format));
    }
    let mut range = |low: &str, high: &str, what: &str| match (&schema[low], &schema[high]) {
        (Value::Null, Value::Null) => {}
        (low, Value::Null) => says.push(format!("{low} or more{what}")),
        (Value::Null, high) => says.push(format!("up to {high}{what}")),
        (low, high) => says.push(format!("{low} to {high}{what}")),
    };
    range("minimum", "maximum", "");
    range("minLength", "maxLength", " characters");
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<_> = words.iter().map(|word| format!("<code>{}</code>", escaped(&plain(word)))).collect();
        says.push(format!("one of {}", words.join(" ")));
    }
    // A longer one says less than the words beside it.
    if let Some(pattern) = schema["pattern"].as_str().filter(|pattern| pattern.len() <= PATTERN_CHARS_MAX) {
        says.push(format!("like <code>{}</code>", escaped(pattern)));
    }
    if let Some(default) = schema.get("default") {
        says.push(format!("{} where it is absent", escaped(&plain(default))));
    }
    if says.is_empty() { String::new() } else { format!("<p class=\"soft\">{}</p>", says.join(", ")) }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
