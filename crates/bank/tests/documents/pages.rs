//! The pages are readable, and nothing from elsewhere is needed to read them.

use crate::running::{Result, Running, config, with_lab};

#[tokio::test(flavor = "multi_thread")]
async fn a_page_needs_nothing_from_elsewhere() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = Running::start(config(dir.path())).await?;
    for path in ["/docs", "/problems/key-reused"] {
        let page = bank.get(path).await?;
        assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
        let policy = page.header("content-security-policy").unwrap_or_default();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        for foreign in ["<script", "<link", "<img", "<iframe", "url(", "@import", "href=\"http", "src=", "onclick"] {
            assert!(!page.text.contains(foreign), "{path} has {foreign}");
        }
    }
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_every_call_and_its_links_lead_somewhere() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = Running::start(with_lab(dir.path())).await?;
    let page = bank.get("/docs").await?.text;
    let document = bank.get("/openapi.json").await?.json()?;
    let mut calls = 0;
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (_, operation) in item.as_object().into_iter().flatten() {
            let id = operation["operationId"].as_str().unwrap_or_default();
            assert!(page.contains(&format!("<article id=\"{id}\"")), "{id} is not shown");
            assert!(page.contains(&format!("<code>{path}</code>")), "{path} is not shown");
            calls += 1;
        }
    }
    assert!(calls > 15, "{calls}");
    let mut paths = std::collections::BTreeSet::new();
    for link in page.split("href=\"").skip(1) {
        let target = link.split('"').next().unwrap_or_default();
        match target.strip_prefix('#') {
            Some(id) => assert!(page.contains(&format!("id=\"{id}\"")), "#{id} leads nowhere"),
            None => {
                paths.insert(target.to_owned());
            }
        }
    }
    assert!(paths.len() > 10, "{paths:?}");
    for path in paths {
        assert_eq!(bank.get(&path).await?.status, 200, "{path}");
    }
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lab_is_shown_only_where_it_is() -> Result {
    let (plain, lab) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let bank = Running::start(config(plain.path())).await?;
    assert!(!bank.get("/openapi.json").await?.text.contains("/lab/"));
    bank.end().await?;
    let bank = Running::start(with_lab(lab.path())).await?;
    assert!(bank.get("/openapi.json").await?.text.contains("/lab/faults"));
    assert_eq!(bank.of_gateway("/docs").await?.status, 404, "the gateway's wire is its bank's alone");
    bank.end().await
}
