//! Catalogues of every size, made of words as a grocer has them: a name is a brand, what it is, a kind and a size.

use std::fmt::Write;

const BRANDS: [&str; 20] = [
    "Alnatura",
    "Bergland",
    "Cortina",
    "Dorfmühle",
    "Eichhof",
    "Feinkost",
    "Goldähre",
    "Hofgut",
    "Inselhof",
    "Jura",
    "Kornblume",
    "Landliebe",
    "Morgentau",
    "Nordkap",
    "Olivia",
    "Panorama",
    "Quellgut",
    "Rosengarten",
    "Sonnenhof",
    "Talblick",
];
const GOODS: [&str; 50] = [
    "Apfelsaft",
    "Bohnen",
    "Butter",
    "Cashews",
    "Chips",
    "Couscous",
    "Datteln",
    "Dinkelmehl",
    "Eiernudeln",
    "Erbsen",
    "Essig",
    "Feigen",
    "Gouda",
    "Gurken",
    "Haferflocken",
    "Honig",
    "Ingwer",
    "Joghurt",
    "Kaffee",
    "Kakao",
    "Kekse",
    "Ketchup",
    "Kichererbsen",
    "Knäckebrot",
    "Linsen",
    "Mandeln",
    "Marmelade",
    "Milch",
    "Müsli",
    "Nudeln",
    "Oliven",
    "Orangensaft",
    "Paprika",
    "Pesto",
    "Quark",
    "Quinoa",
    "Reis",
    "Rosinen",
    "Sahne",
    "Salz",
    "Schokolade",
    "Senf",
    "Spinat",
    "Tee",
    "Tofu",
    "Tomaten",
    "Walnüsse",
    "Wasser",
    "Zimt",
    "Zucker",
];
const KINDS: [&str; 10] =
    ["Classic", "Bio", "Fein", "Mild", "Kräftig", "Natur", "Vollkorn", "Extra", "Light", "Premium"];
const SIZES: [&str; 5] = ["100 g", "250 g", "500 g", "1 kg", "2 kg"];
const CATEGORIES: usize = 20;

/// The words of an article's name that a search is made of.
pub(crate) struct Words {
    pub(crate) brand: &'static str,
    pub(crate) good: &'static str,
    pub(crate) kind: &'static str,
}

/// The words of the article of this number. As many numbers as there are names have another one each.
pub(crate) fn words(number: usize) -> Words {
    Words {
        good: GOODS[number % GOODS.len()],
        brand: BRANDS[number / GOODS.len() % BRANDS.len()],
        kind: KINDS[number / (GOODS.len() * BRANDS.len()) % KINDS.len()],
    }
}

pub(crate) fn name(number: usize) -> String {
    let Words { brand, good, kind } = words(number);
    let size = SIZES[number / (GOODS.len() * BRANDS.len() * KINDS.len()) % SIZES.len()];
    // One word that is in each of them: the worst that somebody can type.
    format!("{brand} {good} {kind} {size} Packung {number}")
}

pub(crate) fn sku(number: usize) -> String {
    format!("A{number:06}")
}

/// An EAN-13 of a country's range, with its check digit.
pub(crate) fn barcode(number: usize) -> String {
    let body = format!("40{number:010}");
    let mut digits = [0; 12];
    for (digit, byte) in digits.iter_mut().zip(body.bytes()) {
        *digit = byte - b'0';
    }
    format!("{body}{}", till::check_digit(&digits))
}

/// A catalogue of so many articles as a table that the till imports. One in a hundred is a favourite, the last ones too.
pub(crate) fn csv(articles: usize) -> String {
    let mut csv = String::from("sku,name,category,price,tax_rate,colour,favourite,barcodes\n");
    // Writing to a string can't fail.
    for category in 0..CATEGORIES {
        let _ = writeln!(csv, ",Category {category},c{category},,,#{category:02}4060,,");
    }
    for number in 0..articles {
        let (cents, favourite) = (number % 100, if number % 100 == 99 { "yes" } else { "" });
        let category = number % CATEGORIES;
        let (sku, name, barcode) = (sku(number), name(number), barcode(number));
        let _ = writeln!(csv, "{sku},{name},c{category},{}.{cents:02},7,,{favourite},{barcode}", number % 50);
    }
    csv
}
