//! A start that did not succeed: one line for who typed the command, and a window for who clicked an icon.

use std::{borrow::Cow, io::Write};

use tauri::{
    App, Url, WebviewUrl, WebviewWindowBuilder,
    http::{Response, header},
};

use crate::log;

/// The page's own scheme. It is none of the window's pages, so that no command is open to it.
const SCHEME: &str = "failure";

/// Tells why the till did not start, and returns when the window that tells it is closed.
pub(crate) fn tell(error: &anyhow::Error) {
    say(&format!("{error:#}"));
    if let Err(fault) = show(&format!("{error:#}")) {
        say(&format!("nor could a window be opened: {fault}"));
    }
}

/// Says why there is no window: in one line on stderr, and in the log where there is one.
pub(crate) fn say(why: &str) {
    // Where nobody reads it, the log and the window tell it.
    let _ = writeln!(std::io::stderr(), "kassa: {why}");
    tracing::error!(target: log::NOT_ON_STDERR, "did not start: {why}");
}

fn show(reason: &str) -> tauri::Result<()> {
    let page = page(reason);
    tauri::Builder::default()
        .register_uri_scheme_protocol(SCHEME, move |_, _| {
            Response::builder()
                .header(header::CONTENT_TYPE, "text/html; charset=utf-8")
                .header(header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'")
                .body(Cow::Owned(page.clone().into_bytes()))
                .unwrap_or_default()
        })
        .setup(|app| Ok(open(app)?))
        .build(crate::context())?
        .run_return(|_, _| {});
    Ok(())
}

fn open(app: &App) -> tauri::Result<()> {
    let address = Url::parse(&format!("{SCHEME}://localhost/")).map_err(tauri::Error::InvalidUrl)?;
    WebviewWindowBuilder::new(app, "failure", WebviewUrl::CustomProtocol(address))
        .title("Kassa did not start")
        .inner_size(640.0, 360.0)
        .center()
        .build()?;
    Ok(())
}

fn page(reason: &str) -> String {
    format!(
        r#"<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Kassa did not start</title>
<style>
  :root {{ color-scheme: light dark; font: 18px/1.5 system-ui, sans-serif }}
  body {{ margin: 2.5rem }}
  h1 {{ font-size: 1.5rem; margin: 0 0 1rem }}
  p {{ overflow-wrap: anywhere }}
</style>
<main role="alert"><h1>Kassa did not start</h1><p data-testid="start-failure">{}</p>
<p>Close this window, put it right and start again.</p></main></html>"#,
        escaped(reason)
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_text_and_never_markup() {
        assert!(page("<script>a && b</script>").contains("&lt;script&gt;a &amp;&amp; b&lt;/script&gt;"));
    }
}
