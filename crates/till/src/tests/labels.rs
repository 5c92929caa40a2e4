//! What scales print and what articles without a price need.

use super::{Checked, Scene};
use crate::{Origin, Settings, TillError, Unit};

/// A shop whose scale labels cheese and fruit: `12345` at 18.90 a kilogram, `00301` at 1.99, and `50007`, a cake by the piece.
async fn scene() -> Checked<Scene> {
    let scene = Scene::new()?;
    scene.file()?.execute_batch(
        "INSERT INTO barcodes (barcode, article_id) SELECT '12345', id FROM articles WHERE sku = 'DAI-406';
         INSERT INTO barcodes (barcode, article_id) SELECT '00301', id FROM articles WHERE sku = 'PRO-301';
         INSERT INTO articles (sku, name, category, unit, price, tax_rate, position)
             VALUES ('50007', 'Cake', 'bakery', 'piece', 2500, 7000, 900);
         INSERT INTO articles (sku, name, category, unit, price, tax_rate, position, open_price)
             VALUES ('FLOWERS', 'Flowers', 'produce', 'piece', 0, 7000, 901, 1),
                    ('60008', 'Fish of the Day', 'dairy', 'weight', 0, 7000, 902, 1)",
    )?;
    let scale_barcodes = "21=price5 22=weight5 23=price4".parse()?;
    scene.till.save_settings(Settings { scale_barcodes, ..scene.till.settings().await? }).await?;
    Ok(scene)
}

/// The code with its check digit.
fn code(body: &str) -> String {
    let digits: Vec<u8> = body.bytes().map(|byte| byte - b'0').collect();
    format!("{body}{}", crate::check_digit(&digits.try_into().expect("twelve digits")))
}

#[tokio::test]
async fn a_weight_is_the_quantity_and_each_label_a_line_of_its_own() -> Checked {
    let scene = scene().await?;
    scene.till.add_article("PRO-301", Some("0.455")).await?;
    scene.till.add_article(&code("220030100455"), None).await?;
    let sale = scene.till.add_article(&code("220030100333"), None).await?;
    // 0.455 and 0.333 of 1.99 are 0.91 and 0.66, as printed on the labels; weighed together they were 1.57.
    let lines: Vec<_> =
        sale.lines.iter().map(|line| (line.quantity.as_str(), line.total, line.unit_price, line.origin)).collect();
    let label = |quantity, total| (quantity, total, 199, Origin::Label);
    assert_eq!(lines, [("0.455", 91, 199, Origin::Article), label("0.455", 91), label("0.333", 66)]);
    // More of it by hand goes to the line that was rung up by hand, and to no label's.
    let sale = scene.till.add_article("PRO-301", Some("1")).await?;
    assert_eq!(sale.lines.iter().map(|line| line.quantity.as_str()).collect::<Vec<_>>(), ["1.455", "0.455", "0.333"]);
    scene.till.remove_line(sale.lines[0].id).await?;
    let sale = scene.till.add_article("PRO-301", Some("2")).await?;
    assert_eq!(sale.lines.iter().map(|line| line.quantity.as_str()).collect::<Vec<_>>(), ["0.455", "0.333", "2"]);
    Ok(())
}

#[tokio::test]
async fn the_price_on_the_label_is_what_the_line_costs() -> Checked {
    let scene = scene().await?;
    for price in (1..400).chain([1_890, 4_999, 99_999]) {
        for item in ["00301", "12345", "50007"] {
            let sale = scene.till.add_article(&code(&format!("21{item}{price:05}")), None).await?;
            let line = sale.lines.last().ok_or("a line")?;
            assert_eq!((line.gross, line.total, line.origin), (price, price, Origin::Label), "{item} at {price}");
            match (item, line.unit) {
                // Each cent is a gram or more: the weight says it.
                ("00301", unit) => assert_eq!((unit, line.unit_price, &line.note), (Unit::Weight, 199, &None)),
                ("12345", Unit::Weight) => assert_eq!((line.unit_price, &line.note), (1_890, &None)),
                // No whole gram costs just that.
                ("12345", Unit::Piece) => {
                    assert!((1..=price).all(|gram| (gram * 1_890 + 500) / 1_000 != price), "{price} is a weight");
                    assert_eq!((line.quantity.as_str(), line.unit_price), ("1", price));
                    assert_eq!(line.note.as_deref(), Some("18.90 per kg"));
                }
                (_, unit) => assert_eq!((unit, line.unit_price, line.quantity.as_str()), (Unit::Piece, price, "1")),
            }
            scene.till.clear_sale().await?;
        }
    }
    let sale = scene.till.add_article(&code("231234561234"), None).await?;
    assert_eq!(sale.lines[0].total, 1_234, "four digits, and the digit before them is not looked at");
    Ok(())
}

#[tokio::test]
async fn a_label_that_cannot_be_right_is_refused_and_the_sale_stays() -> Checked {
    let scene = scene().await?;
    let before = scene.till.add_article("BAK-201", None).await?;
    for (code, quantity, price, refused) in [
        ("2112345004991".to_owned(), None, None, "invalid-barcode"),
        (code("211234500000"), None, None, "invalid-barcode"),
        (code("225000700455"), None, None, "invalid-barcode"),
        (code("219999900499"), None, None, "unknown-article"),
        (code("211234500499"), Some("2"), None, "invalid-quantity"),
        (code("211234500499"), None, Some(499), "invalid-price"),
        (code("226000800455"), None, None, "price-needed"),
    ] {
        let done = match price {
            Some(price) => scene.till.add_at_price(&code, quantity, price).await,
            None => scene.till.add_article(&code, quantity).await,
        };
        assert_eq!(done.map_err(|error| error.code()), Err(refused), "{code}");
    }
    let after = scene.till.open_sale().await?;
    assert_eq!((after.lines, after.undo), (before.lines, before.undo));
    // Where no prefix carries anything the same codes are articles' own, or nobody's.
    scene.till.save_settings(Settings::default()).await?;
    let unknown = scene.till.add_article("2112345004991", None).await;
    assert!(matches!(unknown, Err(TillError::UnknownArticle(_))), "{unknown:?}");
    let sale = scene.till.add_article("2000000000091", None).await?;
    assert_eq!(sale.lines[0].quantity, "2");
    Ok(())
}

#[tokio::test]
async fn an_article_without_a_price_is_asked_for_it() -> Checked {
    let scene = scene().await?;
    let refused = scene.till.add_article("FLOWERS", None).await;
    assert!(matches!(&refused, Err(TillError::PriceNeeded(name)) if name == "Flowers"), "{refused:?}");
    scene.till.add_at_price("FLOWERS", Some("2"), 1_250).await?;
    let sale = scene.till.add_at_price("FLOWERS", None, 1_250).await?;
    let lines: Vec<_> = sale.lines.iter().map(|line| (line.quantity.as_str(), line.unit_price, line.origin)).collect();
    assert_eq!(
        lines,
        [("2", 1_250, Origin::OpenPrice), ("1", 1_250, Origin::OpenPrice)],
        "nobody said that it is the same"
    );
    let weighed = scene.till.add_at_price(&code("226000800455"), None, 2_990).await?;
    assert_eq!((weighed.lines[2].quantity.as_str(), weighed.lines[2].total), ("0.455", 1_360));
    for price in [-1, 100_000_000] {
        let refused = scene.till.add_at_price("FLOWERS", None, price).await;
        assert!(matches!(refused, Err(TillError::InvalidPrice(_))), "{refused:?}");
    }
    let refused = scene.till.add_at_price("BAK-201", None, 1).await;
    assert!(
        matches!(refused, Err(TillError::InvalidPrice(_))),
        "an article's own price is not passed over: {refused:?}"
    );
    let entries = scene.till.audit(Some(sale.id), 0, 100).await?;
    let asked: Vec<_> = entries.iter().map(|entry| (entry.what.as_str(), &entry.details["price"])).collect();
    assert_eq!(asked, [("price-asked", &1_250.into()), ("price-asked", &1_250.into()), ("price-asked", &2_990.into())]);
    Ok(())
}
