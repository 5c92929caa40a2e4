//! The demo catalogue of a small European grocery with a café counter, seeded at first start.

use crate::{TillError, check_digit};
use rusqlite::{Connection, params};

/// Thousandths of a percent: the reduced rate, for food.
const FOOD: u32 = 7_000;
/// Thousandths of a percent: the standard rate, for drinks and household goods.
const STANDARD: u32 = 19_000;

struct Category {
    id: &'static str,
    name: &'static str,
    colour: &'static str,
    articles: &'static [Article],
}

struct Article {
    sku: &'static str,
    name: &'static str,
    /// Minor units of the euro, for one piece or one kilogram.
    price: i64,
    tax_rate: u32,
    weighed: bool,
    favourite: bool,
}

const fn piece(sku: &'static str, name: &'static str, price: i64, tax_rate: u32) -> Article {
    Article { sku, name, price, tax_rate, weighed: false, favourite: false }
}

const fn weighed(sku: &'static str, name: &'static str, price: i64, tax_rate: u32) -> Article {
    Article { weighed: true, ..piece(sku, name, price, tax_rate) }
}

const fn favourite(article: Article) -> Article {
    Article { favourite: true, ..article }
}

// The colours are dark enough for white text at 4.5:1 and far enough apart for eyes that tell red and green badly.
const CATALOGUE: [Category; 6] = [
    Category {
        id: "cafe",
        name: "Café",
        colour: "#7a4a21",
        articles: &[
            favourite(piece("CAF-101", "Espresso", 220, STANDARD)),
            favourite(piece("CAF-102", "Cappuccino", 340, STANDARD)),
            favourite(piece("CAF-103", "Flat White", 380, STANDARD)),
            piece("CAF-104", "Latte Macchiato", 390, STANDARD),
            piece("CAF-105", "Americano", 280, STANDARD),
            piece("CAF-106", "Hot Chocolate", 370, STANDARD),
            piece("CAF-107", "Fresh Mint Tea", 310, STANDARD),
            piece("CAF-108", "Oat Milk Extra", 50, STANDARD),
        ],
    },
    Category {
        id: "bakery",
        name: "Bakery",
        colour: "#9a5b00",
        articles: &[
            favourite(piece("BAK-201", "Butter Croissant", 185, FOOD)),
            favourite(piece("BAK-202", "Pain au Chocolat", 215, FOOD)),
            piece("BAK-203", "Cinnamon Roll", 260, FOOD),
            piece("BAK-204", "Pretzel", 110, FOOD),
            piece("BAK-205", "Sourdough Loaf 750 g", 495, FOOD),
            piece("BAK-206", "Rye Bread 1 kg", 450, FOOD),
            piece("BAK-207", "Baguette Tradition", 175, FOOD),
            piece("BAK-208", "Cheesecake, Slice", 395, FOOD),
        ],
    },
    Category {
        id: "produce",
        name: "Fruit & Vegetables",
        colour: "#2e6b34",
        articles: &[
            favourite(weighed("PRO-301", "Bananas", 199, FOOD)),
            weighed("PRO-302", "Apples Elstar", 279, FOOD),
            weighed("PRO-303", "Vine Tomatoes", 349, FOOD),
            weighed("PRO-304", "Carrots", 149, FOOD),
            weighed("PRO-305", "Potatoes, Waxy", 139, FOOD),
            weighed("PRO-306", "Grapes, Seedless", 459, FOOD),
            piece("PRO-307", "Avocado", 149, FOOD),
            piece("PRO-308", "Lemon", 45, FOOD),
        ],
    },
    Category {
        id: "dairy",
        name: "Dairy & Deli",
        colour: "#1f5f8b",
        articles: &[
            piece("DAI-401", "Whole Milk 1 l", 149, FOOD),
            piece("DAI-402", "Oat Drink 1 l", 199, STANDARD),
            piece("DAI-403", "Butter 250 g", 269, FOOD),
            piece("DAI-404", "Free-Range Eggs, 10", 379, FOOD),
            piece("DAI-405", "Greek Yoghurt 500 g", 285, FOOD),
            weighed("DAI-406", "Gouda, Aged 12 Months", 1890, FOOD),
            weighed("DAI-407", "Prosciutto Crudo", 3490, FOOD),
            weighed("DAI-408", "Olives, Marinated", 1650, FOOD),
        ],
    },
    Category {
        id: "drinks",
        name: "Drinks",
        colour: "#5b3f8c",
        articles: &[
            favourite(piece("DRI-501", "Mineral Water 0.5 l", 95, STANDARD)),
            piece("DRI-502", "Sparkling Water 1 l", 120, STANDARD),
            piece("DRI-503", "Apple Juice 1 l", 229, STANDARD),
            piece("DRI-504", "Orange Juice, Pressed 0.3 l", 420, STANDARD),
            piece("DRI-505", "Cola 0.33 l", 160, STANDARD),
            piece("DRI-506", "Ginger Lemonade 0.33 l", 240, STANDARD),
            piece("DRI-507", "Pilsner 0.5 l", 145, STANDARD),
            piece("DRI-508", "Riesling, Dry 0.75 l", 899, STANDARD),
        ],
    },
    Category {
        id: "pantry",
        name: "Pantry & Household",
        colour: "#8a2f4b",
        articles: &[
            piece("PAN-601", "Spaghetti 500 g", 169, FOOD),
            piece("PAN-602", "Basmati Rice 1 kg", 379, FOOD),
            piece("PAN-603", "Olive Oil, Extra Virgin 0.5 l", 999, FOOD),
            piece("PAN-604", "Blossom Honey 500 g", 649, FOOD),
            piece("PAN-605", "Dark Chocolate 70 % 100 g", 219, FOOD),
            piece("PAN-606", "Coffee Beans 1 kg", 1690, FOOD),
            piece("PAN-607", "Dish Soap 500 ml", 229, STANDARD),
            favourite(piece("PAN-608", "Paper Bag", 25, STANDARD)),
        ],
    },
];

/// Fills an empty catalogue. Called inside a transaction; a catalogue that holds anything is left as it is.
pub(crate) fn seed(tx: &Connection) -> Result<(), TillError> {
    if tx.query_row("SELECT EXISTS (SELECT 1 FROM categories)", [], |row| row.get(0))? {
        return Ok(());
    }
    let mut categories = tx.prepare("INSERT INTO categories (id, name, colour, position) VALUES (?1, ?2, ?3, ?4)")?;
    let mut articles = tx.prepare(
        "INSERT INTO articles (sku, name, category, unit, price, tax_rate, favourite, position)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let mut barcodes = tx.prepare("INSERT INTO barcodes (barcode, article_id) VALUES (?1, ?2)")?;
    let mut position = 0u32;
    for (at, category) in (1u32..).zip(&CATALOGUE) {
        categories.execute(params![category.id, category.name, category.colour, at])?;
        for article in category.articles {
            position += 1;
            let unit = if article.weighed { "weight" } else { "piece" };
            articles.execute(params![
                article.sku,
                article.name,
                category.id,
                unit,
                article.price,
                article.tax_rate,
                article.favourite,
                position
            ])?;
            barcodes.execute(params![in_store_barcode(position), tx.last_insert_rowid()])?;
        }
    }
    Ok(())
}

/// An EAN-13 of the range that shops number for themselves (20 to 29), so that it is nobody else's article.
fn in_store_barcode(number: u32) -> String {
    let body = format!("20{number:010}");
    let mut digits = [0; 12];
    for (digit, byte) in digits.iter_mut().zip(body.bytes()) {
        *digit = byte - b'0';
    }
    format!("{body}{}", check_digit(&digits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_catalogue_is_one_a_shop_could_have() {
        let articles: Vec<_> = CATALOGUE.iter().flat_map(|category| category.articles).collect();
        assert_eq!(articles.len(), 48);
        assert_eq!(articles.iter().map(|article| article.sku).collect::<HashSet<_>>().len(), 48);
        assert_eq!(articles.iter().map(|article| article.name).collect::<HashSet<_>>().len(), 48);
        assert!(articles.iter().any(|article| article.weighed) && articles.iter().any(|article| article.favourite));
        assert!(articles.iter().all(|article| article.price > 0));
    }

    #[test]
    fn a_barcode_has_a_right_check_digit() {
        // Worked out by hand: 2·1 + 1·3 = 5 and 2·1 + 4·1 + 8·3 = 30.
        assert_eq!(in_store_barcode(1), "2000000000015");
        assert_eq!(in_store_barcode(48), "2000000000480");
    }
}
