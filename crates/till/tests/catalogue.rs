//! The catalogue as a cashier searches it.

use std::error::Error;
use tempfile::TempDir;
use till::{Article, ArticleQuery, Till, Unit};

type Checked<T = ()> = Result<T, Box<dyn Error>>;

fn till() -> Checked<(Till, TempDir)> {
    let dir = tempfile::tempdir()?;
    Ok((Till::open(dir.path())?, dir))
}

async fn search(till: &Till, text: &str) -> Checked<Vec<String>> {
    let query = ArticleQuery { text: text.to_owned(), category: None };
    Ok(till.articles(query).await?.articles.into_iter().map(|article| article.name).collect())
}

#[tokio::test]
async fn a_new_till_has_the_demo_catalogue_once() -> Checked {
    let (till, dir) = till()?;
    drop(till);
    let till = Till::open(dir.path())?;
    let categories = till.categories().await?;
    assert_eq!(categories.len(), 6);
    assert_eq!(categories.iter().map(|category| category.count).sum::<u32>(), 48);
    let all = till.articles(ArticleQuery::default()).await?;
    assert_eq!((all.articles.len(), all.more), (48, false));
    assert!(all.articles[0].favourite && !all.articles[47].favourite);
    let bakery = till.articles(ArticleQuery { category: Some("bakery".into()), ..ArticleQuery::default() }).await?;
    assert_eq!(bakery.articles.len(), 8);
    assert_eq!(
        bakery.articles[0],
        Article {
            sku: "BAK-201".into(),
            name: "Butter Croissant".into(),
            price: 185,
            category: "bakery".into(),
            colour: "#9a5b00".into(),
            unit: Unit::Piece,
            favourite: true,
            tax_rate: "7".into(),
            open_price: false,
        }
    );
    Ok(())
}

#[tokio::test]
async fn articles_are_found_by_any_word_of_name_sku_or_barcode() -> Checked {
    let (till, _dir) = till()?;
    for (text, found) in [
        ("croissant", &["Butter Croissant"][..]),
        ("CROI", &["Butter Croissant"]),
        ("butter", &["Butter Croissant", "Butter 250 g"]),
        ("butter croi", &["Butter Croissant"]),
        ("croi butter", &["Butter Croissant"]),
        ("BAK-201", &["Butter Croissant"]),
        ("201", &["Butter Croissant"]),
        ("2000000000091", &["Butter Croissant"]),
        ("chocolat", &["Pain au Chocolat", "Hot Chocolate", "Dark Chocolate 70 % 100 g"]),
        ("  gouda  ", &["Gouda, Aged 12 Months"]),
        ("croissant gouda", &[]),
        ("roissant", &[]),
    ] {
        assert_eq!(search(&till, text).await?, found, "{text:?}");
    }
    let query = ArticleQuery { text: "butter".into(), category: Some("dairy".into()) };
    assert_eq!(till.articles(query).await?.articles.len(), 1);
    Ok(())
}

#[tokio::test]
async fn whatever_is_typed_is_only_searched_for() -> Checked {
    let (till, _dir) = till()?;
    let long = "x".repeat(100_000);
    let many = "butter ".repeat(10_000);
    for text in [
        "\"",
        "\"\"",
        "'",
        "*",
        "%",
        "_",
        "^",
        "-",
        "+",
        "(",
        ")",
        "()",
        ":",
        "words:croissant",
        "NEAR",
        "NEAR(",
        "AND",
        "OR",
        "NOT",
        "croissant*",
        "croissant OR gouda",
        "croissant AND",
        "\"croissant",
        "croi\"ssant",
        "🥐",
        "🥐 croissant",
        "\0",
        "croi\0ssant",
        "'; DROP TABLE articles; --",
        "\u{301}",
        "ﬁ",
        "１２３",
        "\u{202e}abc",
        &long,
        &many,
    ] {
        search(&till, text).await?;
    }
    assert_eq!(search(&till, "🥐 croissant").await?, ["Butter Croissant"]);
    assert_eq!(search(&till, "\"croissant\"").await?, ["Butter Croissant"]);
    assert_eq!(search(&till, "70 %").await?, ["Dark Chocolate 70 % 100 g"]);
    assert_eq!(search(&till, "%").await?, [""; 0]);
    assert_eq!(till.articles(ArticleQuery::default()).await?.articles.len(), 48);
    Ok(())
}

#[tokio::test]
async fn the_search_follows_the_catalogue() -> Checked {
    let (till, dir) = till()?;
    let file = rusqlite::Connection::open(dir.path().join("till.db"))?;
    file.pragma_update(None, "foreign_keys", true)?;
    file.execute_batch(
        "UPDATE articles SET name = 'Almond Horn' WHERE sku = 'BAK-201';
         DELETE FROM barcodes WHERE article_id = (SELECT id FROM articles WHERE sku = 'BAK-202');
         DELETE FROM articles WHERE sku = 'BAK-203'",
    )?;
    assert_eq!(search(&till, "almond").await?, ["Almond Horn"]);
    assert_eq!(search(&till, "2000000000091").await?, ["Almond Horn"]);
    assert_eq!(search(&till, "2000000000107").await?, [""; 0]);
    assert_eq!(search(&till, "pain").await?, ["Pain au Chocolat"]);
    assert_eq!(search(&till, "cinnamon").await?, [""; 0]);
    assert_eq!(search(&till, "2000000000114").await?, [""; 0]);
    assert!(file.execute("UPDATE barcodes SET barcode = '1' WHERE article_id = 1", []).is_err());
    let left: u32 = file.query_row("SELECT count(*) FROM article_words", [], |row| row.get(0))?;
    assert_eq!(left, 47);
    Ok(())
}

#[tokio::test]
async fn fifty_thousand_articles_are_searched_as_somebody_types() -> Checked {
    let (till, dir) = till()?;
    let file = rusqlite::Connection::open(dir.path().join("till.db"))?;
    file.execute_batch(
        "INSERT INTO articles (sku, name, category, unit, price, tax_rate, position)
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
         SELECT 'SKU-' || i, 'Article ' || i || ' of shelf ' || (i % 97), 'pantry', 'piece', i, 7000, 1000 + i FROM n;
         INSERT INTO barcodes (barcode, article_id) SELECT '40' || id, id FROM articles WHERE sku LIKE 'SKU-%'",
    )?;
    // As a cashier types it: first more than are shown, then fewer and fewer.
    for (text, found, more) in [
        ("", 200, true),
        ("a", 200, true),
        ("article", 200, true),
        ("article 49", 200, true),
        ("article 491", 111, false),
        ("article 4919", 11, false),
        ("article 4919 of shelf 69", 1, false),
        ("SKU-31415", 1, false),
        ("4050000", 1, false),
        ("article 50001", 0, false),
    ] {
        let articles = till.articles(ArticleQuery { text: text.into(), category: None }).await?;
        assert_eq!((articles.articles.len(), articles.more), (found, more), "{text:?}");
    }
    Ok(())
}
