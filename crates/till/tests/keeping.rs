//! The catalogue as a shop keeps it: article by article, and as a table that goes out and comes in.

use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};
use tempfile::TempDir;
use till::{
    ArticleDetails, ArticleQuery, CategoryDetails, ImportError, ImportMode, Imported, Settings, Till, TillError, Unit,
};

type Checked<T = ()> = Result<T, Box<dyn Error>>;

fn till() -> Checked<(Till, TempDir)> {
    let dir = tempfile::tempdir()?;
    Ok((Till::open(dir.path())?, dir))
}

fn horn() -> Checked<ArticleDetails> {
    Ok(ArticleDetails {
        sku: "BAK-300".into(),
        name: "Almond Horn".into(),
        category: "bakery".into(),
        unit: Unit::Piece,
        price: Some(240),
        tax_rate: "7".parse()?,
        colour: Some("#123456".into()),
        favourite: true,
        barcodes: vec!["4006381333931".into(), "300".into()],
    })
}

async fn search(till: &Till, text: &str) -> Checked<Vec<String>> {
    let query = ArticleQuery { text: text.to_owned(), category: None };
    Ok(till.articles(query).await?.articles.into_iter().map(|article| article.name).collect())
}

async fn import(till: &Till, csv: &str, mode: ImportMode) -> Result<Imported, TillError> {
    till.import_catalogue(csv.as_bytes().to_vec(), mode, |_| {}).await
}

/// What is wrong, as `line column`.
fn places(errors: &[ImportError]) -> Vec<String> {
    errors.iter().map(|error| format!("{} {}", error.line, error.column.as_deref().unwrap_or("-"))).collect()
}

fn errors(done: Result<Imported, TillError>) -> Checked<Vec<ImportError>> {
    match done {
        Err(TillError::Import(wrong)) => Ok(wrong.errors),
        other => Err(format!("{other:?}").into()),
    }
}

#[tokio::test]
async fn an_article_is_made_changed_and_removed() -> Checked {
    let (till, _dir) = till()?;
    let made = till.save_article(None, horn()?).await?;
    assert_eq!(made.barcodes, ["300", "4006381333931"]);
    assert_eq!(till.article("BAK-300").await?, made);
    assert_eq!(search(&till, "4006381").await?, ["Almond Horn"]);
    let shown = till.articles(ArticleQuery { text: "almond".into(), category: None }).await?.articles.remove(0);
    assert_eq!((shown.colour.as_str(), shown.favourite, shown.price), ("#123456", true, 240));
    let changed = ArticleDetails {
        sku: "BAK-301".into(),
        price: None,
        colour: None,
        barcodes: vec!["301".into()],
        ..made.clone()
    };
    till.save_article(Some("BAK-300"), changed.clone()).await?;
    assert!(matches!(till.article("BAK-300").await, Err(TillError::NotFound("article"))));
    assert_eq!(search(&till, "300").await?, [""; 0]);
    let shown = till.articles(ArticleQuery { text: "BAK-301".into(), category: None }).await?.articles.remove(0);
    assert_eq!((shown.colour.as_str(), shown.open_price, shown.price), ("#9a5b00", true, 0));
    till.set_favourite("BAK-301", false).await?;
    assert!(!till.article("BAK-301").await?.favourite);
    // As it is: nothing to write down.
    till.set_favourite("BAK-301", false).await?;
    // A line that was rung up keeps its own copy.
    let sale = till.add_at_price("BAK-301", None, 260).await?;
    till.remove_article("BAK-301").await?;
    assert_eq!(till.open_sale().await?, sale);
    assert!(matches!(till.add_article("BAK-301", None).await, Err(TillError::UnknownArticle(_))));
    assert!(matches!(till.remove_article("BAK-301").await, Err(TillError::NotFound("article"))));
    let entries = till.audit(None, 0, 100).await?;
    let whats: Vec<_> = entries.iter().map(|entry| entry.what.as_str()).collect();
    assert_eq!(
        whats,
        ["till-set-up", "article-created", "article-changed", "article-changed", "price-asked", "article-removed"]
    );
    assert_eq!(
        (&entries[2].details["before"]["sku"], &entries[2].details["after"]["sku"]),
        (&"BAK-300".into(), &"BAK-301".into())
    );
    Ok(())
}

#[tokio::test]
async fn an_article_that_cannot_be_kept_is_refused() -> Checked {
    let (till, _dir) = till()?;
    let good = horn()?;
    let long = "x".repeat(129);
    for (what, wrong) in [
        ("no SKU", ArticleDetails { sku: String::new(), ..good.clone() }),
        ("a space in the SKU", ArticleDetails { sku: "BAK 300".into(), ..good.clone() }),
        ("another's SKU", ArticleDetails { sku: "BAK-201".into(), ..good.clone() }),
        ("no name", ArticleDetails { name: String::new(), ..good.clone() }),
        ("spaces around the name", ArticleDetails { name: " Horn".into(), ..good.clone() }),
        ("two lines", ArticleDetails { name: "Almond\nHorn".into(), ..good.clone() }),
        ("too long", ArticleDetails { name: long, ..good.clone() }),
        ("less than nothing", ArticleDetails { price: Some(-1), ..good.clone() }),
        ("too dear", ArticleDetails { price: Some(100_000_000), ..good.clone() }),
        ("a tax over all", ArticleDetails { tax_rate: "100.001".parse()?, ..good.clone() }),
        ("no colour", ArticleDetails { colour: Some("#12345G".into()), ..good.clone() }),
        ("another's barcode", ArticleDetails { barcodes: vec!["2000000000091".into()], ..good.clone() }),
        ("a barcode twice", ArticleDetails { barcodes: vec!["1".into(), "1".into()], ..good.clone() }),
        ("an empty barcode", ArticleDetails { barcodes: vec![String::new()], ..good.clone() }),
    ] {
        let refused = till.save_article(None, wrong).await;
        assert!(matches!(refused, Err(TillError::InvalidArticle(_))), "{what}: {refused:?}");
    }
    let nowhere = ArticleDetails { category: "nowhere".into(), ..good.clone() };
    assert!(matches!(till.save_article(None, nowhere).await, Err(TillError::NotFound("category"))));
    assert!(matches!(till.save_article(Some("NO-1"), good).await, Err(TillError::NotFound("article"))));
    assert_eq!(till.articles(ArticleQuery::default()).await?.articles.len(), 48);
    Ok(())
}

#[tokio::test]
async fn a_category_goes_when_no_article_is_in_it() -> Checked {
    let (till, _dir) = till()?;
    let books = CategoryDetails { id: "books".into(), name: "Books".into(), colour: "#333333".into() };
    till.save_category(books.clone()).await?;
    till.save_category(books.clone()).await?;
    till.save_category(CategoryDetails { name: "Books & Cards".into(), ..books.clone() }).await?;
    let categories = till.categories().await?;
    assert_eq!(categories.last().map(|category| category.name.as_str()), Some("Books & Cards"));
    till.save_article(None, ArticleDetails { category: "books".into(), ..horn()? }).await?;
    let refused = till.remove_category("books").await;
    assert!(matches!(refused, Err(TillError::CategoryInUse { articles: 1, .. })), "{refused:?}");
    till.remove_article("BAK-300").await?;
    till.remove_category("books").await?;
    assert!(matches!(till.remove_category("books").await, Err(TillError::NotFound("category"))));
    let wrong = CategoryDetails { colour: "red".into(), ..books };
    assert!(matches!(till.save_category(wrong).await, Err(TillError::InvalidArticle(_))));
    assert_eq!(till.categories().await?.len(), 6);
    let entries = till.audit(None, 1, 100).await?;
    let whats: Vec<_> =
        entries.iter().map(|entry| entry.what.as_str()).filter(|what| what.starts_with("cat")).collect();
    assert_eq!(whats, ["category-created", "category-changed", "category-removed"]);
    Ok(())
}

#[tokio::test]
async fn what_goes_out_comes_in_as_the_same_catalogue_to_the_byte() -> Checked {
    let (till, _dir) = till()?;
    till.save_article(None, horn()?).await?;
    for (sku, name) in [
        ("=1+1", "=HYPERLINK(\"http://example.com\")"),
        ("-2", "@SUM(A1)"),
        ("+3", "'Quoted, with \"quotes\"; and more'"),
        ("'4", "''=x"),
        ("Ж-5", "Молоко 3,2 %"),
    ] {
        let article =
            ArticleDetails { sku: sku.into(), name: name.into(), barcodes: Vec::new(), price: None, ..horn()? };
        till.save_article(None, article).await?;
    }
    till.save_category(CategoryDetails { id: "empty".into(), name: "-Nothing".into(), colour: "#000000".into() })
        .await?;
    let exported = till.export_catalogue().await?;
    // As it is: nothing changes.
    let again = till.import_catalogue(exported.clone(), ImportMode::Merge, |_| {}).await?;
    assert_eq!(again, Imported { unchanged: 54, ..Imported::default() });
    // Into another till, in place of its own.
    let (other, _other_dir) = self::till()?;
    other.save_article(None, ArticleDetails { sku: "GONE".into(), barcodes: Vec::new(), ..horn()? }).await?;
    let came = other.import_catalogue(exported.clone(), ImportMode::Replace, |_| {}).await?;
    assert_eq!(came, Imported { added: 6, changed: 0, unchanged: 48, removed: 1 });
    assert_eq!(other.export_catalogue().await?, exported);
    assert_eq!(other.categories().await?, till.categories().await?);
    assert_eq!(other.articles(ArticleQuery::default()).await?, till.articles(ArticleQuery::default()).await?);
    assert_eq!(search(&other, "молоко").await?, ["Молоко 3,2 %"]);
    // No cell of it is a formula.
    let text = String::from_utf8(exported)?;
    let cells = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(text.trim_start_matches('\u{feff}').as_bytes())
        .into_records()
        .collect::<Result<Vec<_>, _>>()?;
    assert_eq!(cells.len(), 62);
    assert!(cells.iter().flatten().all(|cell| !cell.starts_with(['=', '+', '-', '@', '\t', '\r'])));
    Ok(())
}

#[tokio::test]
async fn in_place_of_the_catalogue_a_table_brings_its_own_order() -> Checked {
    let (till, _dir) = till()?;
    let csv = "sku,name,category,colour,price\n,Second,bakery,#111111,\n,First,cafe,#222222,\n\
               BAK-202,Two,bakery,,1\nCAF-101,Three,cafe,,2\nBAK-201,One,bakery,,3\n";
    let done = import(&till, csv, ImportMode::Replace).await?;
    assert_eq!(done, Imported { changed: 3, removed: 45, ..Imported::default() });
    let names: Vec<_> = till.categories().await?.into_iter().map(|category| category.name).collect();
    assert_eq!(names, ["Second", "First"]);
    // All three are favourites.
    assert_eq!(search(&till, "").await?, ["Two", "Three", "One"]);
    Ok(())
}

/// As the file has them, and never in minor units.
#[tokio::test]
async fn a_price_or_rate_that_can_not_be_is_told_as_people_write_them_with_its_line_and_column() -> Checked {
    let (till, _dir) = till()?;
    let head = "sku,name,category,tax_rate,price\nA-1,Tea,drinks,7,1.00\n";
    let euro_head = "sku;name;category;tax_rate;price\nA-1;Tea;drinks;7;1,00\n";
    for (csv, said) in [
        (format!("{head}A-2,Tea,drinks,7,1000000"), "line 3: price must be from 0.00 to 999999.99"),
        (format!("{head}A-2,Tea,drinks,7,99999999999999999999"), "line 3: price must be from 0.00 to 999999.99"),
        (
            format!("{head}A-2,Tea,drinks,7,2.495"),
            "line 3: price must have at most 2 decimals: there are no more in EUR",
        ),
        (format!("{head}A-2,Tea,drinks,7,\"2,49\""), "line 3: price must be a number such as 2.49, or open"),
        (format!("{head}A-2,Tea,drinks,seven,2.49"), "line 3: tax_rate must be a percentage such as 7 or 8.875"),
        (format!("{head}A-2,Tea,drinks,101,2.49"), "line 3: tax_rate must be at most 100"),
        (format!("{euro_head}A-2;Tea;drinks;7;1000000"), "line 3: price must be from 0,00 to 999999,99"),
        (format!("{euro_head}A-2;Tea;drinks;7;two"), "line 3: price must be a number such as 2,49, or open"),
        (format!("{euro_head}A-2;Tea;drinks;x;2,49"), "line 3: tax_rate must be a percentage such as 7 or 8,875"),
    ] {
        let refused = till.import_catalogue(csv.clone().into_bytes(), ImportMode::Merge, |_| {}).await;
        let Err(TillError::Import(errors)) = refused else { return Err(format!("{csv}: {refused:?}").into()) };
        assert_eq!(errors.to_string(), said, "{csv}");
    }
    till.save_settings(Settings { currency: "JPY".parse()?, ..till.settings().await? }).await?;
    for (price, said) in [
        ("100000000", "line 2: price must be from 0 to 99999999"),
        ("2.5", "line 2: price must have no decimals: there are none in JPY"),
    ] {
        let csv = format!("sku,name,category,tax_rate,price\nA-2,Tea,drinks,7,{price}");
        let refused = till.import_catalogue(csv.into_bytes(), ImportMode::Merge, |_| {}).await;
        let Err(TillError::Import(errors)) = refused else { return Err(format!("{price}: {refused:?}").into()) };
        assert_eq!(errors.to_string(), said);
    }
    let article = ArticleDetails { price: Some(100_000_000), ..horn()? };
    let refused = till.save_article(None, article).await.err().ok_or("too dear")?;
    assert_eq!(refused.to_string(), "price: must be from 0 to 99999999");
    Ok(())
}

#[tokio::test]
async fn a_table_from_a_spreadsheet_is_read() -> Checked {
    let (till, _dir) = till()?;
    // A mark of UTF-8, semicolons, decimal commas, columns in another order, blank lines, quotes, and an old Mac's line ends.
    let csv = "\u{feff}Price;SKU;Name;Tax Rate;Category;Barcodes\r\n2,5;A-1;\"Tea; green\";7;drinks;111 112\r\n\r\nOPEN;A-2;Water;19,0;drinks;\r\n";
    assert_eq!(import(&till, csv, ImportMode::Merge).await?, Imported { added: 2, ..Imported::default() });
    let tea = till.article("A-1").await?;
    assert_eq!((tea.name.as_str(), tea.price, tea.unit, tea.favourite), ("Tea; green", Some(250), Unit::Piece, false));
    assert_eq!(tea.barcodes, ["111", "112"]);
    let water = till.article("A-2").await?;
    assert_eq!((water.price, water.tax_rate.to_string()), (None, "19".to_owned()));
    // A list of prices alone: all else stays.
    let done = import(&till, "sku,price\rA-1,3.00\rBAK-201,1.85", ImportMode::Merge).await?;
    assert_eq!(done, Imported { changed: 1, unchanged: 1, ..Imported::default() });
    assert_eq!(till.article("A-1").await?, ArticleDetails { price: Some(300), ..tea });
    // Barcodes change hands within one table.
    let done = import(&till, "sku,barcodes\nA-1,113\nA-2,111 112", ImportMode::Merge).await?;
    assert_eq!(done.changed, 2);
    assert_eq!(till.article("A-2").await?.barcodes, ["111", "112"]);
    assert_eq!(search(&till, "111").await?, ["Water"]);
    Ok(())
}

#[tokio::test]
async fn every_error_is_told_with_its_line_and_nothing_is_half_done() -> Checked {
    let (till, _dir) = till()?;
    let before = till.export_catalogue().await?;
    let csv = "sku,name,category,unit,price,tax_rate,colour,favourite,barcodes\n\
               N-1,Good,bakery,piece,1.00,7,,,\n\
               N-2,,bakery,piece,1.00,7,,,\n\
               \n\
               N-3,\"Two\nlines\",bakery,piece,1.00,7,,,\n\
               N-4,Nowhere,nowhere,piece,1.00,7,,,\n\
               N-5,Bad,bakery,litre,one,-7,blue,maybe,\n\
               N-6,Short,bakery\n\
               N-1,Again,bakery,piece,1.00,7,,,\n\
               N-7,Code,bakery,piece,1.00,7,,,2000000000091\n\
               N-8,Code,bakery,piece,1.00,7,,,777\n\
               N-9,Code,bakery,piece,1.00,7,,,777\n\
               ,Without SKU,bakery,,1.00,,,,\n\
               ,Books,books,,,,green,,\n\
               N-10,Dear,bakery,piece,1000000.00,7,,,\n\
               N-11,Much,bakery,piece,1.005,7,,,\n\
               N-12,Rounded,bakery,piece,1.00,7,,,4.00638E+12\n";
    let told = errors(import(&till, csv, ImportMode::Merge).await)?;
    assert_eq!(
        places(&told),
        [
            "3 name",
            "5 name",
            "7 category",
            "8 unit",
            "8 price",
            "8 tax_rate",
            "8 favourite",
            "9 -",
            "10 sku",
            "11 barcodes",
            "13 barcodes",
            "14 sku",
            "15 colour",
            "16 price",
            "17 price",
            "18 barcodes",
        ]
    );
    assert_eq!(told[11].message, "is empty: an article must have one, and a category has neither price nor unit");
    assert!(told[9].message.contains("BAK-201"), "{}", told[9]);
    assert_eq!(till.export_catalogue().await?, before);
    assert_eq!(till.audit(None, 1, 10).await?, []);
    // Over a hundred are counted.
    let many = format!("sku,price\n{}", "X,1\n".repeat(250));
    let Err(TillError::Import(wrong)) = import(&till, &many, ImportMode::Replace).await else {
        return Err("imported".into());
    };
    assert_eq!((wrong.errors.len(), wrong.more), (100, 150));
    assert!(wrong.to_string().ends_with("and 249 more"), "{wrong}");
    assert_eq!(till.export_catalogue().await?, before);
    Ok(())
}

#[tokio::test]
async fn a_file_that_is_no_table_says_so() -> Checked {
    let (till, _dir) = till()?;
    for (file, place) in [
        (&b""[..], "1 -"),
        (b"\xef\xbb\xbf\r\n\r\n", "1 -"),
        (b"name,price\nTea,1\n", "1 sku"),
        (b"sku,sku\n", "1 sku"),
        (b"sku,cost\n", "1 -"),
        (b"\n\nsku,cost\n", "3 -"),
        (b"sku,name\nA,T\xe9\n", "2 name"),
        (b"sk\xfc\n", "1 -"),
        (b"PK\x03\x04 a spreadsheet of its own kind", "1 -"),
    ] {
        let told = errors(till.import_catalogue(file.to_vec(), ImportMode::Replace, |_| {}).await)?;
        assert_eq!(places(&told)[0], place, "{file:?}: {told:?}");
    }
    assert_eq!(till.articles(ArticleQuery::default()).await?.articles.len(), 48);
    Ok(())
}

#[tokio::test]
async fn prices_are_in_the_tills_currency() -> Checked {
    let (till, _dir) = till()?;
    till.save_settings(Settings { currency: "JPY".parse()?, ..till.settings().await? }).await?;
    import(&till, "sku,name,category,price,tax_rate\nJ-1,Tea,drinks,333,10\n", ImportMode::Merge).await?;
    assert_eq!(till.article("J-1").await?.price, Some(333));
    let told = errors(import(&till, "sku,price\nJ-1,3.33\n", ImportMode::Merge).await)?;
    assert_eq!(places(&told), ["2 price"]);
    assert!(String::from_utf8(till.export_catalogue().await?)?.contains("J-1,Tea,drinks,piece,333,10,,,\r\n"));
    Ok(())
}

#[tokio::test]
async fn fifty_thousand_articles_come_in_at_once_and_go_out_again() -> Checked {
    let (till, _dir) = till()?;
    let mut csv = String::from(
        "sku,name,category,unit,price,tax_rate,colour,favourite,barcodes\r\n,Pantry,pantry,,,,#8a2f4b,,\r\n",
    );
    for number in 0..50_000 {
        let (whole, cents, shelf) = (number / 100, number % 100, number % 97);
        csv += &format!(
            "SKU-{number},Article {number} of shelf {shelf},pantry,piece,{whole}.{cents:02},7,,,40{number:06}\r\n"
        );
    }
    let told = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&told);
    let begin = Instant::now();
    let tell = move |progress| hears.lock().unwrap_or_else(PoisonError::into_inner).push(progress);
    let done = till.import_catalogue(csv.clone().into_bytes(), ImportMode::Replace, tell).await?;
    println!("imported in {:.1} s", begin.elapsed().as_secs_f64());
    assert_eq!(done, Imported { added: 50_000, removed: 48, ..Imported::default() });
    let told = told.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_eq!((told.len(), told.last().map(|progress| progress.done)), (100, Some(50_000)));
    assert!(told.windows(2).all(|pair| pair[0].done < pair[1].done && pair[1].of == 50_000));
    assert_eq!(till.export_catalogue().await?, [b"\xef\xbb\xbf", csv.as_bytes()].concat());
    let begin = Instant::now();
    let again = till.import_catalogue(csv.into_bytes(), ImportMode::Replace, |_| {}).await?;
    println!("the same again in {:.1} s", begin.elapsed().as_secs_f64());
    assert_eq!(again.unchanged, 50_000);
    assert_eq!(search(&till, "SKU-31415").await?, ["Article 31415 of shelf 84"]);
    Ok(())
}

#[tokio::test]
async fn the_audit_of_an_import_says_which_prices_are_other_ones() -> Checked {
    let (till, _dir) = till()?;
    import(&till, "sku,price\nBAK-201,2.05\nCAF-101,2.20\nDAI-401,open\n", ImportMode::Merge).await?;
    let last = till.audit(None, 0, 1_000).await?.pop().ok_or("no entry")?;
    assert_eq!((last.what.as_str(), &last.details["prices_changed"]), ("catalogue-imported", &2.into()));
    let expected = serde_json::json!([
        {"sku": "BAK-201", "before": 185, "after": 205}, {"sku": "DAI-401", "before": 149, "after": null},
    ]);
    assert_eq!(last.details["prices"], expected);
    // Of many there is how many, and a digest of the same list: an entry stays small.
    let mut digests = Vec::new();
    for price in ["1.00", "2.00", "1.00", "2.00"] {
        let rows = (0..201).map(|number| format!("N-{number},Article {number},bakery,{price},7\n"));
        let csv = format!("sku,name,category,price,tax_rate\n{}", rows.collect::<String>());
        import(&till, &csv, ImportMode::Merge).await?;
        let details = till.audit(None, 0, 1_000).await?.pop().ok_or("no entry")?.details;
        digests.push((details["prices_changed"].clone(), details["prices_sha256"].clone()));
        assert_eq!(details["prices"].is_null(), details["prices_changed"] == 201, "{details}");
    }
    assert_eq!(digests[0], (0.into(), serde_json::Value::Null), "new articles had no price before");
    assert!(digests[1..].iter().all(|(count, digest)| *count == 201 && digest.as_str().map(str::len) == Some(64)));
    assert!(digests[1] == digests[3] && digests[1] != digests[2]);
    Ok(())
}
